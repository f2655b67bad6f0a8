"""Factored: a matrix of low rank, stored as the product of thin factors and never as a full array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike

from condgrad.linalg.saved import take_floats

NEGLIGIBLE = 1e-9  # singular value relative to the largest, below which it is rounding or about to vanish
_WELL_CONDITIONED = 100.0  # norm of an inverse R up to which a Cholesky factor is exact enough: 1e4 times rounding


class Factored:
    """The m x n matrix U diag(s) V', with U of shape (m, k) and V of shape (n, k).

    Attributes
    ----------
    U, s, V : arrays

    Examples
    --------
    >>> import numpy as np
    >>> W = Factored(np.ones((2, 1)), np.array([3.0]), np.ones((4, 1)))
    >>> W.shape, W.rank, round(W.nuclear_norm(), 6)
    ((2, 4), 1, 8.485281)
    >>> W.at([0, 1], [3, 0])
    array([3., 3.])
    """

    def __init__(self, U: np.ndarray, s: np.ndarray, V: np.ndarray) -> None:
        self.U, self.s, self.V = U, s, V

    @classmethod
    def zero(cls, shape: tuple[int, int]) -> Factored:
        """Return the zero matrix, of rank 0."""
        return cls(np.zeros((shape[0], 0)), np.zeros(0), np.zeros((shape[1], 0)))

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the matrix."""
        return self.U.shape[0], self.V.shape[0]

    @property
    def size(self) -> int:
        """The number of entries of the matrix."""
        return self.U.shape[0] * self.V.shape[0]

    @property
    def rank(self) -> int:
        """The number of columns of the factors: the rank, for a compressed matrix."""
        return self.s.size

    def __repr__(self) -> str:
        return f"Factored({self.shape[0]} x {self.shape[1]} of rank {self.rank})"

    def copy(self) -> Factored:
        """Return a copy with new arrays."""
        return Factored(self.U.copy(), self.s.copy(), self.V.copy())

    def at(self, rows: Sequence[int] | np.ndarray, columns: Sequence[int] | np.ndarray) -> np.ndarray:
        """Return the entries at the given places."""
        return np.einsum("ij,ij->i", self.U[rows] * self.s, self.V[columns])

    def to_dense(self) -> np.ndarray:
        """Return the matrix as an array of its shape."""
        return (self.U * self.s) @ self.V.T

    def scaled(self, rows: np.ndarray | None, columns: np.ndarray | None, factor: float = 1.0) -> Factored:
        """Return factor * diag(rows) W diag(columns); None stands for ones."""
        U = self.U if rows is None else self.U * rows[:, None]
        V = self.V if columns is None else self.V * columns[:, None]
        return Factored(U, factor * self.s, V)

    def with_values(self, s: np.ndarray) -> Factored:
        """Return the matrix with other singular values; columns with value 0 are removed."""
        kept = s > 0.0
        return Factored(self.U[:, kept], s[kept], self.V[:, kept])

    def plus(self, other: Factored) -> Factored:
        """Return the sum, with the factors of both side by side."""
        U, V = np.hstack([self.U, other.U]), np.hstack([self.V, other.V])
        return Factored(U, np.concatenate([self.s, other.s]), V)

    def compressed(self, cutoff: float = 0.0) -> Factored:
        """Return the singular value decomposition, without values of at most ``cutoff`` times the largest one."""
        if not self.rank:
            return self.copy()
        left, right = _Orthonormal(self.U), _Orthonormal(self.V)
        X, s, Yt = np.linalg.svd((left.R * self.s) @ right.R.T, full_matrices=False)
        kept = s > cutoff * s[0]
        return Factored(left.times(X[:, kept]), s[kept], right.times(Yt.T[:, kept]))

    def balanced(self) -> tuple[np.ndarray, np.ndarray]:
        """Return A and B with W = A B', each with half of every singular value."""
        half = np.sqrt(self.s)
        return self.U * half, self.V * half

    def spread(self) -> float:
        """Return sum_k |s_k| ||u_k|| ||v_k||, a bound of sum_k |s_k u_ik v_jk| for every entry (i, j)."""
        return float(np.abs(self.s) @ (np.linalg.norm(self.U, axis=0) * np.linalg.norm(self.V, axis=0)))

    def nuclear_norm(self) -> float:
        """Return the sum of the singular values."""
        return float(self.compressed().s.sum())


class _Orthonormal:
    """A = Q R with orthonormal columns of Q and a square R, of which only products Q X are computed.

    R is the Cholesky factor of A'A, for columns of length 1, and Q X = A (R^-1 X): half the operations of Householder
    reflections, all of them in products of matrices. Q'Q has an error of about u |R^-1|^2; where that is large, A is
    decomposed by reflections.
    """

    def __init__(self, A: np.ndarray) -> None:
        A = np.ascontiguousarray(A)  # products round in another way for other layouts, and a checkpoint stores only one
        lengths = np.linalg.norm(A, axis=0)
        self._A = A / np.where(lengths > 0.0, lengths, 1.0)
        try:
            R = np.linalg.cholesky(self._A.T @ self._A).T
            inverse = scipy.linalg.solve_triangular(R, np.eye(len(R)))
            is_good = bool(np.linalg.norm(inverse) <= _WELL_CONDITIONED)
        except np.linalg.LinAlgError:  # columns that depend on each other
            is_good = False
        if is_good:
            self._inverse = inverse
        else:
            self._A, R = np.linalg.qr(self._A)
            self._inverse = np.eye(len(R))
        self.R = R * lengths

    def times(self, X: np.ndarray) -> np.ndarray:
        """Return Q X."""
        product: np.ndarray = self._A @ (self._inverse @ X)
        return product


class RankOne(NamedTuple):
    """The vertex s = -radius u v' that the oracle of the ball returns for a gradient G.

    ``error`` bounds by how much <G, s> exceeds the minimum over the ball.
    ``u`` and ``v`` are unit vectors in the coordinates of the plain ball.
    """

    u: np.ndarray
    v: np.ndarray
    radius: float
    error: float

    def as_factored(self) -> Factored:
        """Return the vertex as a matrix."""
        return Factored(-self.u[:, None], np.array([self.radius]), self.v[:, None])


Iterate: TypeAlias = np.ndarray | Factored  # iterate of a solver
IterateLike: TypeAlias = ArrayLike | Factored  # iterate as users may pass it


def sizes(w: Iterate) -> np.ndarray:
    """Return the magnitudes of the entries, or the singular values of a factored matrix; a simple w has few nonzero."""
    return np.abs(w.s if isinstance(w, Factored) else w)


def to_arrays(w: Iterate, name: str) -> dict[str, np.ndarray]:
    """Return an iterate as named arrays, for a file."""
    return {f"{name}.{part}": getattr(w, part) for part in "UsV"} if isinstance(w, Factored) else {name: w}


def from_arrays(arrays: dict[str, np.ndarray], name: str, like: Iterate) -> Iterate:
    """Return the iterate that :func:`to_arrays` stored under ``name``, of the kind and the size of another one."""
    if isinstance(like, Factored):
        return factored_from(arrays, like.shape, f"{name}.")
    return take_floats(arrays, name, like.size)


def factored_from(arrays: dict[str, np.ndarray], shape: tuple[int, int], prefix: str = "") -> Factored:
    """Return the matrix whose factors are saved."""
    s = take_floats(arrays, f"{prefix}s", None)
    U, V = (take_floats(arrays, f"{prefix}{part}", size, s.size) for part, size in zip("UV", shape, strict=True))
    return Factored(U, s, V)
