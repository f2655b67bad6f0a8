"""The ellipsoid."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike

from condgrad.constraints._parameters import as_reals
from condgrad.constraints._protocol import constraint_set
from condgrad.constraints._rounding import WIDE_EPS, norm, rounded_up, shortfall
from condgrad.constraints._sphere import stretch
from condgrad.constraints.vertices import DenseVertex
from condgrad.linalg.rounding import UNIT

_SMALL = 50  # features up to which products in wide floats take no noticeable time


@constraint_set
class Ellipsoid(NamedTuple):
    """The ellipsoid {w : (w - center)' A (w - center) <= 1}: near a given model, in a metric of your own.

    Every boundary point is extreme. The oracle returns center - A^-1 r / sqrt(r' A^-1 r), in O(d^2) with the inverse of
    a Cholesky factor of A.

    Parameters
    ----------
    A : array of shape (n_features, n_features)
        A symmetric positive definite matrix: the covariance of a prior, inverted; X'X of other data.
    center : array of shape (n_features,), optional
        The centre, by default 0.
    root : leave out
        Computed from ``A``: the inverse of its lower Cholesky factor.
    spread : leave out
        Computed from ``A``: a bound of the largest eigenvalue of the inverse of root A root', 1 but for rounding.

    Examples
    --------
    >>> ellipsoid = Ellipsoid([[1.0, 0.0], [0.0, 4.0]], center=[5.0, 5.0])
    >>> ellipsoid.contains([6.0, 5.0]), ellipsoid.contains([5.0, 6.0])
    (True, False)
    """

    A: ArrayLike
    center: ArrayLike | None = None
    root: np.ndarray | None = None
    spread: float = 1.0

    vertex = DenseVertex

    def __repr__(self):
        return f"Ellipsoid(<{self.n_features} features>)"

    @property
    def n_features(self):
        """The length of the centre."""
        return self.center.size

    @property
    def is_symmetric(self):
        """Whether the centre is 0."""
        return not self.center.any()

    def prepare(self):
        """Return the fields with the factor of the matrix."""
        if self.root is not None:
            return self
        A = as_reals("Ellipsoid", "A", self.A, n_dims=2)
        if A.shape[0] != A.shape[1] or np.abs(A - A.T).max() > 1e-10 * np.abs(A).max():
            raise ValueError(f"A of Ellipsoid must be a symmetric matrix; got an asymmetric one of shape {A.shape}.")
        center = np.zeros(len(A)) if self.center is None else as_reals("Ellipsoid", "center", self.center)
        if center.size != len(A):
            raise ValueError(f"center of Ellipsoid must have one entry per row of A, {len(A)}; got {center.size}.")
        try:
            factor = np.linalg.cholesky(A)
        except np.linalg.LinAlgError:
            smallest = float(np.linalg.eigvalsh(A)[0])
            raise ValueError(
                f"A of Ellipsoid must be positive definite; got the eigenvalue {smallest:g}. "
                "Add a multiple of the identity."
            ) from None
        root = scipy.linalg.solve_triangular(factor, np.eye(len(A)), lower=True)
        return A, center, np.ascontiguousarray(root), _spread(0.5 * (A + A.T), root)

    def lmo(self, r):
        """Return center - root' u / ||u|| for u = root r."""
        d = r.size()
        largest = abs(r.at(r.argmax_abs()))
        scale = largest if largest > 0.0 else 1.0
        u = np.empty(d)
        for i in range(d):
            total = 0.0
            for j in range(i + 1):
                total += self.root[i, j] * (r.at(j) / scale)
            u[i] = total
        stretch(u, -1.0)
        values = self.center.copy()
        for i in range(d):
            for j in range(i + 1):
                values[j] += self.root[i, j] * u[i]
        return DenseVertex(values)

    def oracle_rounding(self, r, s):
        """Return sqrt(r' A^-1 r) - <r, center> + <r, s>, rounded up, where A^-1 is at most spread root' root."""

        def top(x):
            # Products of matrices in wide floats would take longer than a pass over the data.
            entries, is_small = x.astype(np.float64), x.size <= _SMALL
            sizes = np.abs(self.root) @ np.abs(entries)
            image = (self.root @ (x if is_small else entries)).astype(np.longdouble)
            unit = WIDE_EPS if is_small else UNIT
            length = norm(image) + 4 * (x.size + 8) * unit * norm(sizes.astype(np.longdouble))
            middle = 4 * (x.size + 8) * WIDE_EPS * np.abs(self.center * x).sum() - (self.center * x).sum()
            return np.sqrt(np.longdouble(self.spread)) * length + middle

        return shortfall(top, r, s)

    def reach(self, c):
        """Return sum_j c_j times the width of the ellipsoid along feature j: a bound."""
        widths = 2.0 * np.sqrt(self.spread) * np.linalg.norm(self.root, axis=0)
        return rounded_up(c @ widths, c.size)

    def violation(self, w):
        """Return sqrt((w - center)' A (w - center)) - 1, by the factor of A, so that no large terms cancel."""
        moved = scipy.linalg.solve_triangular(self.root, w - self.center, lower=True, trans="T", check_finite=False)
        return float(np.linalg.norm(moved) - 1.0)

    def diameter(self, order=2, n_features=None):
        """Return twice the longest axis for order 2 and the widest side for inf: exact; else a bound from both."""
        box = float(np.linalg.norm(2.0 * np.linalg.norm(self.root, axis=0), order))
        longest = 2.0 * float(np.linalg.norm(self.root, 2))
        return min(box, longest * self.n_features ** max(1.0 / order - 0.5, 0.0))


def _spread(A: np.ndarray, root: np.ndarray) -> float:
    """Return a bound of the largest eigenvalue of M^-1 for M = root A root': 1 / (1 - ||M - I||_inf)."""
    rounding = 4.0 * (len(A) + 4) * UNIT * (np.abs(root) @ (np.abs(A) @ np.abs(root.T)))
    distance = float((np.abs(root @ A @ root.T - np.eye(len(A))) + rounding).sum(axis=1).max())
    return 1.0 / (1.0 - distance) * (1.0 + 1e-15) if distance < 1.0 else np.inf
