"""Files of entries of a matrix: ratings to learn from, and places to predict."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from condgrad.cli._reading import open_text, reading
from condgrad.datasets.ratings import Ratings, ratings_of

if TYPE_CHECKING:
    import argparse

    from condgrad.models.completion import CompletionModel


def read_entries(args: argparse.Namespace, file: str, model: CompletionModel | None = None) -> Ratings:
    """Return the entries of a file, or of standard input for "-"; with a ``model`` values may be missing."""
    text = open_text(file)
    with reading(args, text.name) as report:
        if model is None:
            return ratings_of(text, columns=args.columns, header=args.header, report=report)
        rows, columns = frozenset(model.row_labels or ()), frozenset(model.column_labels or ())
        return ratings_of(
            text, columns=args.columns, header=args.header, needs_values=False, report=report,
            is_known=lambda row, column: row in rows or column in columns,
        )  # fmt: skip


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


def unknown_ids(model: CompletionModel, entries: Ratings, most: int = 6) -> str:
    """Return the first ids of a file that were not in the fit, as text."""
    kinds = (("row", entries.row_labels or (), model.rows_of, model.is_row_seen),
             ("column", entries.col_labels or (), model.columns_of, model.is_column_seen))  # fmt: skip
    found = []
    for kind, labels, places_of, is_seen in kinds:
        known = np.append(is_seen, False)[places_of(labels)]
        found += [f"{kind} {label!r}" for label, is_known in zip(labels, known.tolist(), strict=True) if not is_known]
    return ", ".join(found[:most]) + (f" and {len(found) - most} more" if len(found) > most else "")
