"""Predict with a saved model.

Writes a CSV with one line per sample: the prediction, for a loss of two classes also the score
x_i'w + b and, where the loss models it, the probability of the second class; for more than two
classes the scores and probabilities of all of them. If the file holds targets, the mean loss
and the share of errors (or the root mean squared error) are reported.

For a completed matrix the file holds ids of rows and columns, and values where they are known;
each line of the CSV repeats the ids. Ids that were not in the fit are predicted by biases alone.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from condgrad.cli import _options as options
from condgrad.cli._files import Outputs
from condgrad.cli._outputs import note, show, write_text
from condgrad.linalg.names import visible

if TYPE_CHECKING:
    import numpy as np

    from condgrad.linalg.convert import Checked
    from condgrad.models.completion import CompletionModel
    from condgrad.models.linear import Model
    from condgrad.models.multi import MultiModel
    from condgrad.storage.stored_rows import StoredRows

_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # how a cell begins that a spreadsheet computes

EPILOG = """\
Columns of a CSV or Parquet file are found by name if the model has names, in any order; if there
is one column more than the features, it is the target.

examples:
  condgrad predict model.npz test.svm --out predictions.csv
  condgrad predict model.npz new.csv | head
  condgrad predict completed.npz pairs.csv --out predictions.csv

exit codes: 0 done, 2 bad input
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("model", metavar="MODEL", help="model file, as --out of fit, cv or complete writes it")
    group = options.add_data(parser)
    options.add_columns(group, "of a completed matrix; the value may be left out; default: the first ones")
    options.add_outputs(parser, "CSV file with the predictions (default: standard output)")


def run(args: argparse.Namespace) -> int:
    """Predict, write, report."""
    args.out = None if args.out == "-" else args.out
    outputs = Outputs(args)
    from condgrad.cli._data import read_data
    from condgrad.models.completion import CompletionModel
    from condgrad.models.files import load_model
    from condgrad.storage.stored_rows import StoredRows

    if args.json and args.out is None:
        raise ValueError("--json prints the scores on standard output; give --out FILE for the predictions.")
    model = load_model(args.model)
    if isinstance(model, CompletionModel):
        return _predict_entries(args, model, outputs)
    if args.columns is not None:
        raise ValueError("--columns is for completed matrices; this model is a linear one.")
    data = read_data(args, labels=model.classes is not None, model=model)
    if isinstance(data.X, StoredRows):
        return _predict_rows(args, model, data.X, outputs)
    text = _as_csv(args, _columns_of(model, data.X))
    if args.out is None:
        write_text(text)
        return 0
    outputs.write("out", lambda: [_encoded(text)])
    _report(args, {"n_samples": data.X.shape[0], "out": args.out} | _scores_of(model, data.X, data.y))
    return outputs.end(0)


def _scores_of(model: Model | MultiModel, X: Checked | StoredRows, y: np.ndarray | None) -> dict[str, object]:
    """Return how well the model predicts the targets, if there are any."""
    from condgrad.cli._data import encode_targets
    from condgrad.models.multi import MultiModel

    if y is None:
        return {}
    if isinstance(model, MultiModel):
        return {} if model.classes is None else {"error_rate": float((model.predict(X) != y).mean())}
    return dict(score(model, X, encode_targets(y, model.loss, model.classes)[0]))


def _columns_of(model: Model | MultiModel, X: Checked, offset: np.ndarray | None = None) -> dict[str, list[object]]:
    """Return the columns of the output: predictions and, for classes, scores and probabilities."""
    given: dict[str, Any] = {} if offset is None else {"offset": offset}  # a MultiModel has no offsets
    columns: dict[str, np.ndarray] = _named("prediction", model.predict(X, **given), None)
    if model.classes is not None:
        columns |= _named("score", model.decide(X, **given), model.classes)
        if (probability := model.probabilities(X, **given)) is not None:
            columns |= _named("probability", probability, model.classes)
    return {name: column.tolist() for name, column in columns.items()}


def _predict_rows(args: argparse.Namespace, model: Model | MultiModel, rows: StoredRows, outputs: Outputs) -> int:
    """Predict for rows on disk, chunk by chunk, in the order in which they are stored."""
    if args.out is None:
        for text in _texts(args, model, rows):
            write_text(text)
        return 0
    outputs.write("out", lambda: (_encoded(text) for text in _texts(args, model, rows)))
    _report(args, {"n_samples": rows.shape[0], "out": args.out} | _scores_of(model, rows, rows.y))
    return outputs.end(0)


def _texts(args: argparse.Namespace, model: Model | MultiModel, rows: StoredRows) -> Iterator[str]:
    """Yield the predictions of one chunk after the other."""
    from condgrad.models.linear import Model

    offset = rows.offset if isinstance(model, Model) and model.has_offset else None
    for chunk in rows.chunks():
        own = None if offset is None else offset[chunk.place]
        columns = _columns_of(model, chunk.matrix.chosen(slice(None)).X, own)
        yield _as_csv(args, columns, has_header=chunk.first == 0)


def _named(name: str, values: np.ndarray, classes: Sequence[object] | None) -> dict[str, np.ndarray]:
    """Return one column, or one for each class or output, with names."""
    if values.ndim == 1:
        return {name: values}
    return {f"{name} {label}": values[:, k] for k, label in enumerate(classes or range(values.shape[1]))}


def _predict_entries(args: argparse.Namespace, model: CompletionModel, outputs: Outputs) -> int:
    """Predict places of a completed matrix, write, report."""
    from condgrad.cli._entries import predict_entries, read_entries, unknown_ids

    for option, value in (("--target", args.target), ("--n-features", args.n_features)):
        if value is not None:
            raise ValueError(f"{option} is for linear models; this one is a completed matrix, see --columns.")
    if args.format not in (None, "csv"):
        raise ValueError(
            f"a completed matrix reads text with ids of rows and columns; leave out --format {args.format}."
        )
    entries = read_entries(args, args.data, model)
    p, numbers = predict_entries(model, entries)
    if numbers["n_unseen"]:
        note(args, f"{numbers['n_unseen']} of {p.size} entries are in rows or columns that were not in the fit "
             f"({unknown_ids(model, entries)}); biases alone predict them")  # fmt: skip
    ids = [(entries.row_labels or (), entries.rows), (entries.col_labels or (), entries.cols)]
    rows, columns = ([labels[k] for k in places.tolist()] for labels, places in ids)
    text = _as_csv(args, {"row": rows, "column": columns, "prediction": p.tolist()})
    if args.out is None:
        write_text(text)
        if "rmse" in numbers:
            note(args, f"rmse {numbers['rmse']:.6g}, mae {numbers['mae']:.6g} on {p.size} entries")
        return 0
    outputs.write("out", lambda: [_encoded(text)])
    _report(args, numbers | {"out": args.out})
    return outputs.end(0)


def _report(args: argparse.Namespace, numbers: dict[str, object]) -> None:
    names = {"n_samples": "samples", "n_unseen": "unseen", "mean_loss": "mean loss", "error_rate": "errors"}
    rows = {
        names.get(key, key): f"{value:.6g}" if isinstance(value, float) else value
        for key, value in numbers.items()
        if value is not None
    }
    show(args, rows, numbers)


def score(model: Model | MultiModel, X: Checked | StoredRows, y: np.ndarray) -> dict[str, float]:
    """Return the mean loss, and the share of errors of a classifier or else the root mean squared error."""
    import numpy as np

    p = model.decide(X)
    scores = {"mean_loss": float(np.mean(model.loss.value(p, y)))}
    if model.classes is not None:
        return scores | {"error_rate": float(np.mean((p > 0.0) != (y == 1.0)))}
    return scores | {"rmse": float(np.sqrt(np.mean((model.predict(X) - y) ** 2)))}


def _as_csv(args: argparse.Namespace, columns: Mapping[str, Sequence[object]], has_header: bool = True) -> str:
    """Return columns as CSV; on standard output, which may be a terminal, control characters are escapes."""
    rows: list[str] = []
    # Cells with a character of the end of a line are put into quotes: with either of these two, then.
    writer = csv.writer(types.SimpleNamespace(write=rows.append), lineterminator="\r\n")
    lines: Iterable[Iterable[object]] = zip(*columns.values())
    for line in itertools.chain([columns] if has_header else [], lines):
        writer.writerow([_cell(value, args.out is None) for value in line])
    return "".join(f"{row[:-2]}\n" for row in rows)


def _encoded(text: str) -> bytes:
    return text.encode(errors="backslashreplace")  # names may hold halves of characters


def _cell(value: object, is_shown: bool) -> object:
    """Return what a cell holds: text that a spreadsheet would take for a formula begins with an apostrophe."""
    if not isinstance(value, str):
        return value
    from condgrad.storage.sources.delimited import is_number

    safe = f"'{value}" if value.startswith(_FORMULA) and not is_number(value) else value
    return visible(safe) if is_shown else safe
