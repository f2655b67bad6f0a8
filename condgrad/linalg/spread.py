"""Rows that stand for all: spread evenly, at places that no period of the data can meet."""

from __future__ import annotations

import math

import numpy as np

GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)  # its multiples are spread evenly between the integers, and never periodic


def spread_rows(n: int, every: int) -> np.ndarray:
    """Return one of every ``every`` rows of n: row k is at a place of range k that the golden ratio gives.

    Rows 0, every, 2 every, ... would all be of one kind where every second row, or every tenth, is.
    """
    k = np.arange(-(-n // every))
    turns = GOLDEN * k
    rows: np.ndarray = np.minimum(every * k + (every * (turns - np.floor(turns))).astype(np.int64), n - 1)
    return rows
