"""What a completed matrix recommends: the best columns of a row, and columns that are like another one."""

from __future__ import annotations

import numpy as np


def best_columns(scores: np.ndarray, n: int, is_allowed: np.ndarray) -> np.ndarray:
    """Return the ``n`` allowed places with the largest scores, the best first; ties in the order of their places.

    >>> best_columns(np.array([1.0, 3.0, 2.0, 3.0]), 2, np.array([True, True, True, False]))
    array([1, 2])
    """
    places = np.flatnonzero(is_allowed)
    order = np.argsort(-scores[places], kind="stable")
    return places[order[:n]]


def cosines(A: np.ndarray, B: np.ndarray, column: int) -> np.ndarray:
    """Return the cosines of the columns of A B' with one of them; 0 for columns of zeros."""
    gram = A.T @ A
    lengths = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", B, gram, B), 0.0))
    products = B @ (gram @ B[column])
    sizes = lengths * lengths[column]
    return np.divide(products, sizes, out=np.zeros_like(products), where=sizes > 0.0)
