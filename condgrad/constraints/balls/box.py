"""The box."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from condgrad.constraints._parameters import as_integer, as_reals, shown
from condgrad.constraints._protocol import constraint_set, known_features
from condgrad.constraints._rounding import rounded_up
from condgrad.constraints.linear_rows import LinearRows
from condgrad.constraints.vertices import DenseVertex


@constraint_set
class Box(NamedTuple):
    """The box {w : lower_j <= w_j <= upper_j}.

    Its vertices are the corners, and the oracle takes the lower bound where r_j is positive.

    Parameters
    ----------
    lower, upper : float or array of shape (n_features,)
        The bounds. A number stands for all features; two numbers make a box of any dimension.
    size : int, optional
        The number of features, 0 for any; by default it follows from the bounds.

    Examples
    --------
    >>> Box(0.0, 1.0).contains([0.0, 0.5, 1.0])
    True
    >>> Box(0.0, [1.0, 2.0])
    Box(lower=[0, 0], upper=[1, 2])
    """

    lower: ArrayLike
    upper: ArrayLike
    size: int | None = None

    vertex = DenseVertex
    is_polytope = True
    has_projection = True

    def __repr__(self):
        if self.size == 0:
            return f"Box(lower={self.lower[0]:g}, upper={self.upper[0]:g})"
        return f"Box(lower={shown(self.lower)}, upper={shown(self.upper)})"

    @property
    def n_features(self):
        """The number of features, None for a box of any dimension."""
        return self.size or None

    def prepare(self):
        """Return the fields with bounds of the length ``size``; a box of any dimension stores one entry of each."""
        bounds = [self.lower, self.upper]
        lengths = {np.size(bound) for bound in bounds if np.ndim(bound) > 0}
        size = max(lengths, default=0) if self.size is None else as_integer("Box", "size", self.size)
        if not lengths <= {max(size, 1)}:
            raise ValueError(
                f"lower and upper of Box must be numbers or arrays of one length; got lengths {sorted(lengths)}"
                + ("." if self.size is None else f" and size={size}.")
            )
        lower, upper = (
            as_reals("Box", name, [bound] * max(size, 1) if np.ndim(bound) == 0 else bound)
            for name, bound in zip(("lower", "upper"), bounds)
        )
        return lower, upper, size

    def check(self):
        """Raise unless every lower bound is at most the upper one."""
        wrong = np.flatnonzero(self.lower > self.upper)
        if wrong.size:
            j = wrong[0]
            raise ValueError(
                f"lower of Box must not exceed upper; got lower = {self.lower[j]:g} and upper = {self.upper[j]:g} "
                f"at feature {j}."
            )

    def lmo(self, r):
        """Return lower_j where r_j is positive and upper_j elsewhere."""
        stride = 0 if self.size == 0 else 1
        values = np.empty(r.size())
        for j in range(r.size()):
            values[j] = self.lower[stride * j] if r.at(j) > 0.0 else self.upper[stride * j]
        return DenseVertex(values)

    def oracle_rounding(self, r, s):
        """Return 0: the oracle compares entries and copies bounds."""
        return 0.0

    def reach(self, c):
        """Return sum_j c_j (upper_j - lower_j): exact."""
        return rounded_up((c * (self.upper - self.lower)).sum(), c.size)

    def linear_rows(self, n_features):
        """Return the bounds."""
        return LinearRows(*(np.broadcast_to(bound, n_features) for bound in (self.lower, self.upper)))

    def violation(self, w):
        """Return the largest of lower_j - w_j and w_j - upper_j."""
        return float(np.maximum(self.lower - w, w - self.upper).max())

    def diameter(self, order=2, n_features=None):
        """Return ||upper - lower||_order, the diagonal."""
        widths = self.upper - self.lower
        if self.size == 0 and order == np.inf:
            return float(widths[0])
        return float(np.linalg.norm(np.broadcast_to(widths, known_features(self, n_features)), order))

    def project(self, w):
        """Return the point of the box nearest to ``w``."""
        return np.clip(w, self.lower, self.upper)
