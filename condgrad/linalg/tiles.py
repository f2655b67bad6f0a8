"""Products of all pairs of columns, a tile of nine of them at a time: Gram matrices of blocks of rows."""

from __future__ import annotations

import numpy as np

from condgrad.compiled import kernel

_ROWS = 248  # rows that are transposed together: nine sums over them stay in registers, and the columns in the cache
_PAD = 8  # entries between transposed columns: with a power of two of them, columns would share their places in a cache
_TILE = 3  # nine sums and six entries fit into the 16 registers of most processors


def workspace(n_columns: int) -> np.ndarray:
    """Return room for the transposed rows of :func:`add_products`."""
    return np.empty((n_columns, _ROWS + _PAD))


@kernel
def add_products(X, root, space, H):
    """Add sum_i root_i^2 x_i x_i' to the lower triangle of H."""
    for first in range(0, X.shape[0], _ROWS):
        height = min(_ROWS, X.shape[0] - first)
        _transpose(X, root, first, height, space)
        _add_tiles(space, height, H)


@kernel
def _transpose(X, root, first, height, space):
    """Set the columns of ``space`` to rows of X, each times its root, eight rows at a time: a line of a cache."""
    whole = height - height % 8
    for top in range(0, whole, 8):
        for j in range(X.shape[1]):
            for i in range(8):
                space[j, top + i] = root[first + top + i] * X[first + top + i, j]
    for i in range(whole, height):
        for j in range(X.shape[1]):
            space[j, i] = root[first + i] * X[first + i, j]


@kernel
def _add_tiles(space, height, H):
    k = H.shape[0]
    last = k - 1
    for a in range(0, k, _TILE):
        x0, x1, x2 = space[a], space[min(a + 1, last)], space[min(a + 2, last)]
        for b in range(0, a + 1, _TILE):
            y0, y1, y2 = space[b], space[min(b + 1, last)], space[min(b + 2, last)]
            s00, s01, s02, s10, s11, s12, s20, s21, s22 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            for i in range(height):
                s00 += x0[i] * y0[i]
                s01 += x0[i] * y1[i]
                s02 += x0[i] * y2[i]
                s10 += x1[i] * y0[i]
                s11 += x1[i] * y1[i]
                s12 += x1[i] * y2[i]
                s20 += x2[i] * y0[i]
                s21 += x2[i] * y1[i]
                s22 += x2[i] * y2[i]
            sums = (s00, s01, s02, s10, s11, s12, s20, s21, s22)
            for q in range(_TILE * _TILE):
                row, column = a + q // _TILE, b + q % _TILE
                if column <= row < k:
                    H[row, column] += sums[q]
