"""Coordinates for steps over batches of entries: the vector of W at the observed entries, together with its factors.

In these coordinates X is the identity, a sample is an entry, and the gradient is alpha itself; so the solvers of
:mod:`condgrad.solvers` run without changes. Steps are interpreted (not compiled), and an oracle call costs a few
products with the sparse gradient.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from condgrad.linalg.arrays import ArrayVector
from condgrad.linalg.factored import NEGLIGIBLE, Factored, RankOne, from_arrays, to_arrays
from condgrad.linalg.saved import take_floats, take_indices
from condgrad.linalg.slices import Slices
from condgrad.linalg.vectors import Vector
from condgrad.problems.completion.point import Completing

_SPARE = 50  # number of columns beyond twice the last rank at which the factors are compressed
_STEPS = 12  # Lanczos steps per oracle call: few are enough from the vector of the last call


class EntryVertex:
    """A vertex of the ball, with its values at the observed entries."""

    def __init__(self, s: RankOne, values: np.ndarray) -> None:
        self.s, self.values = s, values

    def inner(self, r: Vector) -> float:
        """Return <r, s> for a vector ``r``."""
        return r.inner(self.values)

    def blend_into(self, w: FactoredVector, gamma: float) -> None:
        """Set w to (1 - gamma) w + gamma s."""
        w.shrink(1.0 - gamma)
        w.add_vertex(gamma, self)

    def dot_row_of(self, X: Slices, i: int) -> float:
        """Return s at entry ``i``."""
        return float(self.values[i])


class FactoredVector(ArrayVector):
    """W at the observed entries, stored together with its factors in the coordinates of the plain ball."""

    def __init__(self, problem: Completing, Z: Factored) -> None:
        super().__init__(problem.values_of(Z))
        self.problem = problem
        self.take(Z)

    def take(self, Z: Factored) -> None:
        """Set the factors to ``Z``, which are compressed."""
        self._kept = Z
        self._parts: list[tuple[float, RankOne]] = []  # vertices added since the compression, with their weights

    @property
    def Z(self) -> Factored:
        """The factors."""
        if self._parts:
            U = np.column_stack([-s.u for _, s in self._parts])
            V = np.column_stack([s.v for _, s in self._parts])
            weights = np.array([weight * s.radius for weight, s in self._parts])
            self.take(self._kept.plus(Factored(U, weights, V)).compressed(NEGLIGIBLE))
        return self._kept

    def shrink(self, factor: float) -> None:
        """Multiply by ``factor``."""
        super().shrink(factor)
        self._kept = self._kept.scaled(None, None, factor)
        self._parts = [(factor * weight, s) for weight, s in self._parts if factor * weight != 0.0]

    def add_vertex(self, gamma: float, vertex: EntryVertex) -> None:
        """Add gamma times a vertex."""
        self.values += gamma * vertex.values
        self._parts.append((gamma, vertex.s))
        if len(self._parts) > self._kept.rank + _SPARE:
            self.values[:] = self.problem.values_of(self.Z)  # exact values of the compressed Z

    def snapshot(self) -> dict[str, np.ndarray]:
        """Return the factors as arrays."""
        return to_arrays(self.Z, "factors")

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Restore the factors from a snapshot; the values are stored separately in it."""
        self.take(cast("Factored", from_arrays(arrays, "factors", self._kept)))


class Pattern:
    """X in these coordinates: the identity."""

    def add_slice(self, i: int, c: float, out: Vector) -> None:
        """Add c times row ``i`` to ``out``."""
        out.add_at(i, c)


class EntryOracle:
    """The oracle of the ball in these coordinates: approximate, without a bound of its error, hence no certificates."""

    def __init__(self, problem: Completing) -> None:
        self.problem = problem
        self.calls = 0
        self.guess: np.ndarray | None = None

    def score(self) -> None:
        """Return None: a tree cannot find the best vertex."""

    def lmo(self, r: Vector) -> EntryVertex:
        """Return a vertex with nearly the smallest <r, s>."""
        rng = np.random.default_rng([self.problem.n_samples, self.calls])
        search = self.problem.search(r.to_array(), rng, self.guess)
        search.lanczos.extend(_STEPS)
        s = search.best_vertex(self.problem.constraint.radius, 0.0)
        self.guess = search.guess_from(s)
        self.calls += 1
        return EntryVertex(s, self.problem.vertex_predictions(s))


class EntrySum:
    """The problem one entry at a time, as :class:`~condgrad.problems.finite_sum.FiniteSum` is for samples."""

    def __init__(self, problem: Completing) -> None:
        self.X = Pattern()
        self.samples = problem.samples
        self.constraint = EntryOracle(problem)
        self.b = np.zeros(1)

    def predict(self, i: int, w: Vector) -> float:
        """Return W at entry ``i``."""
        return w.at(i)

    def derivative(self, i: int, p: float) -> float:
        """Return weight_i f'(p, y_i)."""
        derivative: float = self.samples.derivative_at(i, p)
        return derivative

    def curvature(self, i: int, p: float) -> float:
        """Return weight_i f''(p, y_i)."""
        curvature: float = self.samples.curvature_at(i, p)
        return curvature

    def snapshot(self) -> dict[str, np.ndarray]:
        """Return the state of the oracle as arrays."""
        guess = {} if self.constraint.guess is None else {"oracle.guess": self.constraint.guess}
        return {"oracle.calls": np.array([self.constraint.calls])} | guess

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Restore the state of the oracle from a snapshot."""
        self.constraint.calls = int(take_indices(arrays, "oracle.calls", 2**53, size=1)[0])
        smaller = min(self.constraint.problem.shape)  # the side of the matrix whose singular vectors are searched
        self.constraint.guess = take_floats(arrays, "oracle.guess", smaller) if "oracle.guess" in arrays else None
