"""Covariates: products of all features with those of w, for the gradient of a quadratic loss."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.compiled import compiled
from condgrad.linalg.vectors import Vector

# The places of the numbers in ``status``: one of the three values below, and how many columns are cached. A checkpoint
# holds them in this order.
_USE, _N_CACHED = range(2)
_NOT_USED, _USED, _GIVEN_UP = 0, 1, -1
_MOST_CACHED = 2**24  # numbers that the cached products may take: 128 MiB


@compiled
class Covariates(NamedTuple):
    """The products X'(h * Xw) of all features, kept up to date by those of single columns, each computed once.

    They are given up where there is no room for another column. The products with column j are ``gram[place[j]]``.
    """

    products: Vector
    gram: np.ndarray
    place: np.ndarray
    status: np.ndarray

    def is_used(self):
        """Tell whether the products are up to date."""
        return self.status[_USE] == _USED

    def may_be_used(self):
        """Tell whether the products are not in use yet, nor given up."""
        return self.status[_USE] == _NOT_USED

    def begin(self):
        """Say that the products are up to date from now on."""
        self.status[_USE] = _USED

    def n_cached(self):
        """Return how many rows of ``gram`` are filled."""
        return self.status[_N_CACHED]

    def blend(self, X, h, s, gamma, column):
        """Set the products to those of (1 - gamma) w + gamma s; ``column`` is a vector to work with."""
        self.products.shrink(1.0 - gamma)
        for k in range(s.n_entries()):
            at = self.place_of(X, h, s.feature(k), column)
            if at < 0:
                self.status[_USE] = _GIVEN_UP
                return
            self.products.add_array(gamma * s.entry(k), self.gram[at])

    def place_of(self, X, h, j, column):
        """Return where the products of all columns with column ``j`` are, after one pass where they are new."""
        if self.place[j] < 0 and self.status[_N_CACHED] < self.gram.shape[0]:
            column.clear()
            X.add_slice(j, 1.0, column)
            for k in range(column.support.size()):
                column.values[column.support.row(k)] *= h[column.support.row(k)]
            for other in range(self.gram.shape[1]):
                self.gram[self.status[_N_CACHED], other] = X.dot_slice(other, column.values)
            self.place[j] = self.status[_N_CACHED]
            self.status[_N_CACHED] += 1
        return self.place[j]


def covariates(products: Vector, n_features: int) -> Covariates:
    """Return room for the products of ``n_features`` features (0: none), which are not in use yet."""
    capacity = min(n_features, max(1, _MOST_CACHED // max(1, n_features)))
    return Covariates(
        products,
        np.empty((capacity, n_features)),  # memory is not taken before it is written
        np.full(n_features, -1, dtype=np.int64),
        np.array([_NOT_USED, 0], dtype=np.int64),
    )
