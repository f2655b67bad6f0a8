"""Read data files of every format as X and y; errors name the file and the line."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from condgrad.cli._columns import Wanted
from condgrad.storage.sources.libsvm import read_samples
from condgrad.storage.sources.text import Text, read_bytes

if TYPE_CHECKING:
    import argparse

    from condgrad.losses import Loss
    from condgrad.models.linear import Model
    from condgrad.models.multi import MultiModel

_SUFFIXES = {".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".pq": "parquet", ".npz": "npz"}
_PACKED = (".bz2", ".gz", ".xz")


class Data(NamedTuple):
    """Samples, their targets and the names of the features; None where the file has no targets or no names."""

    X: Any
    y: np.ndarray | None
    feature_names: tuple[str, ...] | None
    name: str

    def __str__(self) -> str:
        kind = getattr(self.X, "format", "dense")
        return f"{self.name}: {self.X.shape[0]} samples, {self.X.shape[1]} features, {kind}"


def read_data(args: argparse.Namespace, *, labels: bool, model: Model | MultiModel | None = None) -> Data:
    """Return the data that the options of ``args`` describe.

    With ``labels`` targets may be words. With a ``model`` the features are those of the model, by name if both have
    names, and the file need not hold targets.
    """
    path = Path(args.data)
    if path.is_dir():
        return _read_folder(args, path, model)
    name = "standard input" if args.data == "-" else path.name
    content = sys.stdin.buffer.read() if args.data == "-" else read_bytes(path)
    if not content:
        raise ValueError(f"{name} is empty.")
    wanted = Wanted(args.target, args.header, labels, model)
    form = args.format or _guess(path)
    if form == "libsvm":
        if args.target is not None:
            raise ValueError("--target is for CSV and Parquet; LIBSVM text has its target at the start of a line.")
        n_features = args.n_features if model is None else model.n_features
        return Data(*read_samples(Text(name, io.BytesIO(content)), n_features), None, name)
    if args.n_features is not None:
        raise ValueError("--n-features is for LIBSVM text; other formats define it themselves.")
    if form == "csv":
        from condgrad.cli._csv import parse_csv

        delimiter = "\t" if ".tsv" in path.suffixes else ","
        return Data(*parse_csv(content, name, delimiter, wanted), name)
    if form == "parquet":
        from condgrad.cli._parquet import parse_parquet

        return Data(*parse_parquet(content, name, wanted), name)
    from condgrad.cli._npz import parse_npz

    return Data(*parse_npz(content, name, wanted), name)


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
    for option, value in (("--target", args.target), ("--n-features", args.n_features), ("--format", args.format)):
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


def _guess(path: Path) -> str:
    suffix = path.with_suffix("").suffix if path.suffix in _PACKED else path.suffix
    return _SUFFIXES.get(suffix.lower(), "libsvm")
