"""Increasing vectors between two bounds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse

from condgrad.constraints._isotonic import nearest_increasing
from condgrad.constraints._protocol import constraint_set, known_features
from condgrad.constraints._rounding import WIDE_EPS, shortfall
from condgrad.constraints.linear_rows import LinearRows
from condgrad.constraints.vertices import DenseVertex


@constraint_set
class IsotonicBox(NamedTuple):
    """The set {w : lower <= w_1 <= w_2 <= ... <= w_d <= upper}: models that increase with the feature's place.

    Its d + 1 vertices step once from lower to upper; the oracle finds the best step by the sums of r from the right, in
    O(d). For decreasing vectors take ``Scale(IsotonicBox(-upper, -lower), -1.0)``.

    Parameters
    ----------
    lower, upper : float
        The bounds.

    Examples
    --------
    >>> box = IsotonicBox(0.0, 1.0)
    >>> box.contains([0.0, 0.2, 0.2, 0.9]), box.contains([0.0, 0.3, 0.2, 0.9])
    (True, False)
    """

    lower: float
    upper: float

    vertex = DenseVertex
    is_polytope = True
    has_projection = True

    def check(self):
        """Raise unless the bounds are finite and in order."""
        if not (np.isfinite(self.lower) and np.isfinite(self.upper) and self.lower <= self.upper):
            raise ValueError(
                "lower and upper of IsotonicBox must be finite, and lower must not exceed upper; "
                f"got {self.lower!r} and {self.upper!r}."
            )

    def lmo(self, r):
        """Return lower before the place from which the sum of r is smallest, and upper from there."""
        d = r.size()
        largest = abs(r.at(r.argmax_abs()))
        total, best, step = 0.0, 0.0, d
        for j in range(d - 1, -1, -1):
            total += r.at(j) / largest if largest > 0.0 else 0.0
            if total < best:
                best, step = total, j
        values = np.empty(d)
        for j in range(d):
            values[j] = self.lower if j < step else self.upper
        return DenseVertex(values)

    def oracle_rounding(self, r, s):
        """Return <r, s> minus the smallest of the values of all d + 1 vertices, rounded up."""

        def top(x):
            tails = np.cumsum(x[::-1])
            width = self.upper - np.longdouble(self.lower)
            sizes = np.abs(x).sum() * (np.abs(self.lower) + width)
            return width * max(-tails.min(), 0.0) - self.lower * tails[-1] + 4 * (x.size + 8) * WIDE_EPS * sizes

        return shortfall(top, r, s)

    def linear_rows(self, n_features):
        """Return the rows w_j - w_(j+1) <= 0, and the bounds."""
        n_rows = n_features - 1
        A = scipy.sparse.diags_array([np.ones(n_rows), -np.ones(n_rows)], offsets=[0, 1], shape=(n_rows, n_features))
        low, high = np.full(n_features, self.lower), np.full(n_features, self.upper)
        return LinearRows(low, high, A.tocsr(), np.zeros(n_rows)) if n_rows else LinearRows(low, high)

    def violation(self, w):
        """Return the largest of lower - w_1, w_j - w_(j+1) and w_d - upper."""
        return float(-np.diff(np.concatenate([[self.lower], w, [self.upper]])).min())

    def diameter(self, order=2, n_features=None):
        """Return the distance of the constant vectors: exact."""
        if order == np.inf:
            return self.upper - self.lower
        return (self.upper - self.lower) * known_features(self, n_features) ** (1.0 / order)

    def decompose(self, w):
        """Return one vertex per step of ``w``."""
        width = self.upper - self.lower
        if width == 0.0:
            return [(1.0, self.start(w.size))]
        shares = np.maximum(np.diff(np.concatenate([[self.lower], w, [self.upper]])), 0.0) / width
        return [
            (float(shares[step]), DenseVertex(np.where(np.arange(w.size) < step, self.lower, self.upper)))
            for step in np.flatnonzero(shares)
        ]

    def project(self, w):
        """Return the point of the set nearest to ``w``: isotonic regression, then clipped."""
        return np.clip(nearest_increasing(np.array(w, dtype=np.float64)), self.lower, self.upper)
