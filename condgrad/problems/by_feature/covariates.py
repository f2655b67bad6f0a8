"""Covariates: products of all features with the features of w, for the gradient of a quadratic loss."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.compiled import compiled
from condgrad.linalg.vectors import Vector

# The places of the numbers in ``status``: one of the three values below, and the number of cached columns. A checkpoint
# stores them in this order.
_USE, _N_CACHED = range(2)
_NOT_USED, _USED, _GIVEN_UP = 0, 1, -1
_MOST_CACHED = 2**24  # largest number of cached products: 128 MiB


@compiled
class Covariates(NamedTuple):
    """The products X'(h * Xw) of all features, updated by the products of single columns, which are cached.

    They are given up when there is no room for another column. The products with column j are ``gram[place[j]]``.
    """

    products: Vector
    gram: np.ndarray
    place: np.ndarray
    status: np.ndarray

    def is_used(self):
        """Return whether the products are up to date."""
        return self.status[_USE] == _USED

    def may_be_used(self):
        """Return whether the products are neither in use nor given up."""
        return self.status[_USE] == _NOT_USED

    def begin(self):
        """Mark the products as up to date from now on."""
        self.status[_USE] = _USED

    def n_cached(self):
        """Return the number of filled rows of ``gram``."""
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
        """Return the row of ``gram`` for column ``j``, computed in one pass if new; -1 if ``gram`` is full."""
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

    def is_sound(self):
        """Return whether the filled rows exist, and the place of every column is one of them."""
        use, n_cached = self.status
        is_filled = self.place.min(initial=-1) >= -1 and self.place.max(initial=-1) < n_cached <= self.gram.shape[0]
        return bool(is_filled and abs(use) <= 1 and (use != _USED or self.gram.shape[0] > 0))


def covariates(products: Vector, n_features: int) -> Covariates:
    """Return Covariates with room for ``n_features`` features (0: none), which are not in use yet."""
    capacity = min(n_features, max(1, _MOST_CACHED // max(1, n_features)))
    return Covariates(
        products,
        np.empty((capacity, n_features)),  # the system allocates memory only when it is written
        np.full(n_features, -1, dtype=np.int64),
        np.array([_NOT_USED, 0], dtype=np.int64),
    )
