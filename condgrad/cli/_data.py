"""Read data files of every format as X and y; errors name the file and the line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from condgrad.cli._columns import Wanted
from condgrad.cli._reading import open_text, reading
from condgrad.cli._samples import Data
from condgrad.storage.sources.libsvm import read_samples
from condgrad.storage.sources.libsvm_copy import read_with_copy
from condgrad.storage.sources.text import Text, TextFile, read_bytes, suffix_of

if TYPE_CHECKING:
    import argparse

    from condgrad.losses import Loss
    from condgrad.models.linear import Model
    from condgrad.models.multi import MultiModel

_SUFFIXES = {".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".pq": "parquet", ".npz": "npz"}


def read_data(args: argparse.Namespace, *, labels: bool, model: Model | MultiModel | None = None) -> Data:
    """Return the data that the options of ``args`` describe.

    With ``labels`` targets may be words. With a ``model`` the features are those of the model, by name if both have
    names, and the file need not hold targets.
    """
    path = Path(args.data)
    if path.is_dir():
        return _read_folder(args, path, model)
    form = args.format or _SUFFIXES.get(suffix_of(args.data), "libsvm")
    if form == "libsvm":
        return _read_libsvm(args, model)
    for option, value in (("--n-features", args.n_features), ("--cache", args.cache or None)):
        if value is not None:
            raise ValueError(f"{option} is for LIBSVM text; other formats need no such thing.")
    wanted = Wanted(args.target, args.header, labels, model, args.weights)
    if form == "csv":
        from condgrad.cli._csv import read_csv

        text = open_text(args.data)
        with reading(args, text.name) as report:
            return _checked(read_csv(text, wanted, report))
    name = "standard input" if args.data == "-" else path.name
    content = sys.stdin.buffer.read() if args.data == "-" else read_bytes(path)
    if not content:
        raise ValueError(f"{name} is empty.")
    if form == "parquet":
        from condgrad.cli._parquet import parse_parquet

        return _checked(parse_parquet(content, name, wanted))
    from condgrad.cli._npz import parse_npz

    return _checked(parse_npz(content, name, wanted))


def _checked(data: Data) -> Data:
    """Return the data if their weights can be weights."""
    if data.weight is not None and not (data.weight.min() >= 0.0 and data.weight.sum() > 0.0):
        worst = int(data.weight.argmin())
        raise ValueError(f"weights of {data.name} must be numbers of at least 0, not all 0; sample {worst + 1} has "
                         f"{data.weight[worst]:g}.")  # fmt: skip
    return data


def _read_libsvm(args: argparse.Namespace, model: Model | MultiModel | None) -> Data:
    for option, value in (("--target", args.target), ("--weights", args.weights)):
        if value is not None:
            raise ValueError(f"{option} is for CSV and Parquet; LIBSVM text has its target at the start of a line.")
    if args.cache and args.data == "-":
        raise ValueError("--cache keeps a copy beside a file; standard input is none.")
    text = Text("standard input", sys.stdin.buffer) if args.data == "-" else open_text(args.data)
    n_features = args.n_features if model is None else model.n_features
    with reading(args, text.name) as report:
        if args.cache and isinstance(text, TextFile):
            X, y = read_with_copy(text, n_features, report)
        else:
            X, y = read_samples(text, n_features, report)
    return Data(X, y, None, text.name)


def read_columns(args: argparse.Namespace) -> Data | None:
    """Return the columns of a folder that ``condgrad convert --columns`` wrote, on disk; None for files."""
    path = Path(args.data)
    if not path.is_dir():
        return None
    from condgrad.storage.stored_columns import StoredColumns

    _refuse_options_of_files(args, path)
    columns = StoredColumns.of_folder(path)
    if columns.y is None:
        raise ValueError(f"{str(path)!r} was converted without targets; convert it again with them.")
    names = None if columns.feature_names is None else tuple(columns.feature_names)
    return Data(columns, columns.y, names, path.name)


def _refuse_options_of_files(args: argparse.Namespace, path: Path) -> None:
    given = {"--target": args.target, "--n-features": args.n_features, "--format": args.format,
             "--weights": args.weights, "--cache": args.cache or None}  # fmt: skip
    for option, value in given.items():
        if value is not None:
            raise ValueError(f"{option} is for files; the folder {str(path)!r} was converted with its own.")


def _read_folder(args: argparse.Namespace, path: Path, model: Model | MultiModel | None) -> Data:
    """Return the rows of a folder that ``condgrad convert`` wrote; they stay on disk."""
    from condgrad.storage.stored_rows import StoredRows

    _refuse_options_of_files(args, path)
    rows = StoredRows.of_folder(path)
    if rows.y is None and model is None:
        raise ValueError(f"{str(path)!r} was converted without targets; convert it again with them.")
    if model is not None:
        rows.check_names(model.feature_names)
    names = None if rows.feature_names is None else tuple(rows.feature_names)
    return Data(rows, rows.y, names, path.name)


def encode_targets(
    y: Any, loss: Loss, classes: tuple[Any, ...] | None = None
) -> tuple[np.ndarray, tuple[Any, ...] | None]:
    """Return the targets as the loss needs them, and the labels of its two classes (None for other losses)."""
    if loss.classes is None:
        return y, None
    found = np.unique(y)
    if classes is None:
        if found.size != 2:
            shown = ", ".join(map(str, found[:5].tolist())) + (", ..." if found.size > 5 else "")
            raise ValueError(f"{type(loss).__name__} needs targets of two classes; got {found.size}: {shown}.")
        classes = tuple(map(_as_label, found.tolist()))
    strange = found[~np.isin(found, np.asarray(classes))]
    if strange.size:
        raise ValueError(f"the model has the classes {classes[0]} and {classes[1]}; got {strange[0]}.")
    return np.where(y == classes[1], loss.classes[1], loss.classes[0]), classes


def _as_label(value: object) -> object:
    """Return a label as people write it: 1 and not 1.0."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
