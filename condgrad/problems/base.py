"""VectorProblem: what problems share whose iterate w is an array, one number per feature."""

from __future__ import annotations

from typing import Any

import numpy as np

from condgrad.linalg import convert
from condgrad.linalg.arrays import ArrayVector


class VectorProblem:
    """A problem over arrays w; where another kind of iterate answers differently, solvers ask these."""

    n_features: int
    constraint: Any

    @property
    def n_coordinates(self) -> int:
        """The length of the vectors that steps work on: that of w and of its gradient."""
        return self.n_features

    def start(self) -> tuple[np.ndarray, list[tuple[float, Any]]]:
        """Return where solvers start, and the same as weighted vertices."""
        s = self.constraint.start(self.n_features)
        return s.to_dense(self.n_features), [(1.0, s)]

    def best_offset(self, w: np.ndarray) -> float:
        """Return the intercept that steps work with (0 for a problem without one)."""
        return 0.0

    def as_iterate(self, w: Any, name: str) -> np.ndarray:
        """Return a point that the user gave as an array."""
        return convert.as_point(w, self.n_features, name)

    def in_coordinates(self, w: np.ndarray) -> np.ndarray:
        """Return an iterate in the coordinates of the steps."""
        return w

    def vector_at(self, w: np.ndarray) -> Any:
        """Return an iterate as the vector that interpreted steps move."""
        return ArrayVector(w.copy())

    def iterate_of(self, vector: Any) -> np.ndarray:
        """Return the iterate that a vector of the steps stands for."""
        return vector.to_array()
