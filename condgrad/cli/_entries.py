"""Files of entries of a matrix: ratings to learn from, and places to predict."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from condgrad.datasets.ratings import Ratings, parse_ratings
from condgrad.storage.sources.text import read_bytes

if TYPE_CHECKING:
    import argparse

    from condgrad.models.completion import CompletionModel


def read_entries(args: argparse.Namespace, file: str, model: CompletionModel | None = None) -> Ratings:
    """Return the entries of a file, or of standard input for "-"; with a ``model`` values may be missing."""
    name = "standard input" if file == "-" else Path(file).name
    content = sys.stdin.buffer.read() if file == "-" else read_bytes(Path(file))
    if not content:
        raise ValueError(f"{name} is empty.")
    if model is None:
        return parse_ratings(content, name, columns=args.columns, header=args.header)

    def is_known(row: str, column: str) -> bool:
        return row in (model.row_labels or ()) or column in (model.column_labels or ())

    return parse_ratings(content, name, columns=args.columns, header=args.header, needs_values=False, is_known=is_known)


def predict_entries(model: CompletionModel, entries: Ratings) -> tuple[np.ndarray, dict[str, object]]:
    """Return the predictions at the places of a file; and their number, the number of unseen places, and errors."""
    rows, columns = model.rows_of(entries.row_labels or ()), model.columns_of(entries.col_labels or ())
    rows, columns = rows[entries.rows], columns[entries.cols]
    p, is_seen = model.at(rows, columns)
    numbers: dict[str, object] = {"n_samples": p.size, "n_unseen": int(np.count_nonzero(~is_seen))}
    if entries.values is not None:
        error = p - entries.values
        numbers |= {"rmse": float(np.sqrt(np.mean(error**2))), "mae": float(np.mean(np.abs(error)))}
    return p, numbers
