"""Predict with a saved model.

Writes a CSV with one line per sample: the prediction, for a loss of two classes also the score
x_i'w + b and, where the loss models it, the probability of the second class. Where the file
holds targets, the mean loss and the share of errors (or the root mean squared error) are told.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
from typing import Any

from condgrad.cli import _options as options
from condgrad.cli._outputs import check_outputs, show

EPILOG = """\
Columns of a CSV or Parquet file are found by name where the model has names, in any order; one
column more than the features is taken for the target.

examples:
  condgrad predict model.npz test.svm --out predictions.csv
  condgrad predict model.npz new.csv | head

exit codes: 0 done, 2 bad input
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("model", metavar="MODEL", help="model file, as `condgrad fit --out` writes it")
    options.add_data(parser)
    options.add_outputs(parser, "CSV file with the predictions (default: standard output)")


def run(args: argparse.Namespace) -> int:
    """Predict, write, report."""
    args.out = None if args.out == "-" else args.out
    check_outputs(args.out, force=args.force)
    from condgrad.cli._data import encode_targets, read_data
    from condgrad.model_file import load_model
    from condgrad.sealed_file import write_file

    if args.json and args.out is None:
        raise ValueError("--json prints the scores on standard output; give --out FILE for the predictions.")
    model = load_model(args.model)
    data = read_data(args, labels=model.classes is not None, model=model)
    columns: dict[str, Any] = {"prediction": model.predict(data.X)}
    if model.classes is not None:
        columns["score"] = model.decide(data.X)
        if (probability := model.probabilities(data.X)) is not None:
            columns["probability"] = probability
    text = _as_csv(columns)
    if args.out is None:
        sys.stdout.write(text)
        return 0
    write_file(args.out, text.encode())
    numbers: dict[str, Any] = {"n_samples": data.X.shape[0], "out": args.out}
    if data.y is not None:
        numbers |= score(model, data.X, encode_targets(data.y, model.loss, model.classes)[0])
    names = {"n_samples": "samples", "mean_loss": "mean loss", "error_rate": "errors", "rmse": "rmse", "out": "out"}
    rows = {names[key]: f"{value:.6g}" if isinstance(value, float) else value for key, value in numbers.items()}
    show(args, rows, numbers)
    return 0


def score(model: Any, X: Any, y: Any) -> dict[str, float]:
    """Return the mean loss, and the share of errors of a classifier or else the root mean squared error."""
    import numpy as np

    p = model.decide(X)
    scores = {"mean_loss": float(np.mean(model.loss.value(p, y)))}
    if model.classes is not None:
        return scores | {"error_rate": float(np.mean((p > 0.0) != (y == 1.0)))}
    return scores | {"rmse": float(np.sqrt(np.mean((model.predict(X) - y) ** 2)))}


def _as_csv(columns: dict[str, Any]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(column.tolist() for column in columns.values())))
    return buffer.getvalue()
