"""Base classes of sets of matrices: w holds the entries of a matrix of a given shape, row by row."""

from __future__ import annotations

from typing import Any

import numpy as np

from condgrad.constraints._parameters import as_positive_integer, shown
from condgrad.constraints._protocol import ConstraintSet, as_array
from condgrad.linalg.factored import Iterate
from condgrad.linalg.vectors import Vector


class MatrixSet(ConstraintSet):
    """A set of matrices of one shape, which may be None if the problem provides it."""

    def __init__(self, shape: tuple[int, int] | None) -> None:
        self.shape: tuple[int, int] | None = None
        if shape is not None:
            name = type(self).__name__
            if not isinstance(shape, tuple | list) or len(shape) != 2:
                raise ValueError(f"shape of {name} must be a pair of numbers (rows, columns); got {shape!r}.")
            m, n = (as_positive_integer(name, "shape", size) for size in shape)
            self.shape = (m, n)
            self.n_features = m * n

    def __repr__(self) -> str:
        settings = {name: value for name, value in vars(self).items() if name != "n_features" and value is not None}
        parts = (f"{name}={shown(v) if isinstance(v, np.ndarray) else repr(v)}" for name, v in settings.items())
        return f"{type(self).__name__}({', '.join(parts)})"

    def check_features(self, n_features: int) -> None:
        """Raise ValueError where the shape is not known or does not fit ``n_features``."""
        if self.shape is None:
            raise ValueError(f"{type(self).__name__} needs the shape of the matrix here: pass shape=(rows, columns).")
        super().check_features(n_features)

    def violation(self, w: Iterate) -> float:
        """Return by how much ``w`` breaks the constraint (at most 0: it does not); nan if w is not finite."""
        if isinstance(w, np.ndarray) and not np.isfinite(w).all():  # decompositions would not converge
            return float("nan")
        return self.excess(w)

    def excess(self, w: Any) -> float:
        """Return the violation of a finite ``w``."""
        raise NotImplementedError

    def as_matrix(self, r: Vector | np.ndarray) -> np.ndarray:
        """Return a flat array or a vector in the shape of the matrix."""
        if self.shape is None:
            raise ValueError(f"{type(self).__name__} needs the shape of the matrix here: pass shape=(rows, columns).")
        return (r if isinstance(r, np.ndarray) else as_array(r)).reshape(self.shape)


class SymmetricSet(MatrixSet):
    """A set of symmetric positive semidefinite matrices of one size; oracles use the symmetric part of r only."""

    def __init__(self, size: int) -> None:
        size = as_positive_integer(type(self).__name__, "size", size)
        super().__init__((size, size))
        self.size = size

    def __repr__(self) -> str:
        return super().__repr__().replace(f"shape={self.shape!r}, ", "").replace(f", shape={self.shape!r}", "")

    def spectrum(self, r: Vector | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the eigenvalues of the symmetric part, ascending, and their vectors."""
        M = self.as_matrix(r)
        return np.linalg.eigh(0.5 * (M + M.T))

    def asymmetry(self, w: np.ndarray) -> float:
        """Return max |W_ij - W_ji|."""
        M = self.as_matrix(w)
        return float(np.abs(M - M.T).max())
