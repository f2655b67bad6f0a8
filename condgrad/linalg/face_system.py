"""The equations of a face of a quadratic program: of its minimiser, and of the multipliers of its rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from scipy.linalg import lapack

_DEPENDENT = 1e-11  # pivot, relative, below which a row of the face depends on the others
_CLEAR = 1e-4  # root of a pivot, relative, from which on rows are surely independent
_SOME, _MOST = 100, 2000  # rows of A of which all products are kept: with fewer they cost nothing, with more memory


def dense(A: Any) -> np.ndarray:
    """Return rows, which may be sparse, as an array."""
    return A.toarray() if scipy.sparse.issparse(A) else A


class Factor:
    """The Cholesky factor L of a positive definite H, and L^-1 a for the rows a of A that were asked for so far.

    H is overwritten. The entries of L above the diagonal have no meaning.
    """

    def __init__(self, H: np.ndarray, A: Any) -> None:
        # H is symmetric, and LAPACK takes columns.
        self.L = lapack.dpotrf(H.T, lower=1, clean=0, overwrite_a=1)[0] if H.size else H
        self.A = A
        self._images = np.empty((H.shape[0], A.shape[0]), order="F")
        self._is_known = np.zeros(A.shape[0], dtype=bool)
        self._products = np.empty((A.shape[0], A.shape[0])) if _SOME <= A.shape[0] <= _MOST else None

    def images(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the matrix Y with L Y = A' for the chosen rows, and Y'Y."""
        new = rows[~self._is_known[rows]]
        if new.size and self.L.size:
            self._add(new)
        Y = self._images[:, rows]
        return Y, Y.T @ Y if self._products is None or not self.L.size else self._products[rows][:, rows]

    def _add(self, new: np.ndarray) -> None:
        Y = lapack.dtrtrs(self.L, dense(self.A[new]).T, lower=1)[0]
        self._images[:, new] = Y
        if self._products is not None:
            known = np.flatnonzero(self._is_known)
            mixed = Y.T @ self._images[:, known]
            self._products[np.ix_(new, new)] = Y.T @ Y
            self._products[np.ix_(new, known)], self._products[np.ix_(known, new)] = mixed, mixed.T
        self._is_known[new] = True

    def solve(self, p: np.ndarray, is_transposed: bool = False) -> np.ndarray:
        """Return L^-1 p, or L'^-1 p."""
        result: np.ndarray = lapack.dtrtrs(self.L, p, lower=1, trans=int(is_transposed))[0] if p.size else p
        return result


class System:
    """The equations H x + A'y = p, A x = q for some rows of A; a row that depends on the others gets y = 0."""

    def __init__(self, factor: Factor, rows: np.ndarray) -> None:
        self.factor = factor
        self.Y, S = factor.images(rows)
        self.scale = 1.0 / np.sqrt(np.maximum(np.diag(S), 1e-300))
        S *= self.scale
        S *= self.scale[:, None]
        self.S, self.chosen = _independent(S)

    def solve(self, p: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return x and y."""
        y, t = np.zeros(q.size), self.factor.solve(p)
        if self.chosen.size:
            rest = (self.scale * (self.Y.T @ t - q))[self.chosen]
            y[self.chosen] = lapack.dpotrs(self.S, rest, lower=1)[0] * self.scale[self.chosen]
            t = t - self.Y @ y
        return self.factor.solve(t, is_transposed=True), y


def _independent(S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the Cholesky factor of S on independent rows, and their places."""
    if S.shape[0] >= _SOME:  # without a search for pivots it takes half of the time
        factor, failure = lapack.dpotrf(S, lower=1)
        if failure == 0 and np.diag(factor).min() >= _CLEAR:
            return factor, np.arange(S.shape[0])
    S, order, rank, _ = lapack.dpstrf(S, tol=_DEPENDENT, lower=1) if S.size else (S, np.zeros(0, np.intp), 0, 0)
    return S[:rank, :rank], order[:rank] - 1
