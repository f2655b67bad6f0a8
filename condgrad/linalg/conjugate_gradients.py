"""Preconditioned conjugate gradients for A x = b with a positive semidefinite A, once for Python and for kernels.

:class:`ConjugateGradients` is the method as kernels run it, with a compiled operator. :class:`ThreadedGradients` runs
the same code in Python, for products with A that use several threads: a step then costs two calls beside its product.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from condgrad.compiled import bits_of, compiled, float_of, kernel

_ROUNDING = 1e-30  # slope relative to the first one, at which only rounding is left; it is quadratic in the residual


class Operator(Protocol):
    """The matrix A, known by its products."""

    def apply(self, v: np.ndarray, out: np.ndarray) -> None:
        """Fill ``out`` with A v."""


class Preconditioner(Protocol):
    """A matrix M that is close to A and easy to solve with; kernels must understand it."""

    def solve(self, v: np.ndarray, out: np.ndarray) -> None:
        """Fill ``out`` with the solution of M out = v."""


@compiled
class Diagonal(NamedTuple):
    """The diagonal of A as preconditioner, stored as its inverse; where ``inverse`` is 0, the unknown stays 0."""

    inverse: np.ndarray

    def solve(self, v, out):
        """Fill ``out`` with the quotients."""
        for k in range(v.shape[0]):
            out[k] = self.inverse[k] * v[k]


@compiled
class Flatness(NamedTuple):
    """The least curvature of x'Ax/2 along a direction v for which a minimum along v is more than rounding.

    ``diagonal`` is that of A without its ridge, and v'Av must exceed ``flat`` times sum_k diagonal_k v_k^2. With
    ``flat`` = 0 any positive curvature is enough. A ridge adds curvature to every direction: where half of it exceeds
    ``lost`` times that sum, there is a minimum, however flat.
    """

    diagonal: np.ndarray
    ridge: float = 0.0
    flat: float = 0.0
    lost: float = 0.0

    def has_minimum(self, v, curvature):
        """Return whether x'Ax/2 - b'x has a minimum along v, for curvature = v'Av."""
        if self.flat == 0.0:
            return curvature > 0.0
        size, squared = 0.0, 0.0
        for k in range(v.shape[0]):
            size += self.diagonal[k] * v[k] * v[k]
            squared += v[k] * v[k]
        return curvature > self.flat * size or curvature > 0.5 * self.ridge * squared > self.lost * size


@compiled
class ConjugateGradients(NamedTuple):
    """The vectors of the method: x, ``rest`` = b - A x, the direction, ``image`` = A direction, and M z = rest."""

    x: np.ndarray
    rest: np.ndarray
    direction: np.ndarray
    image: np.ndarray
    z: np.ndarray

    def begin(self):
        """Set x = 0; ``rest`` must hold the right-hand side b."""
        for k in range(self.x.shape[0]):
            self.x[k] = 0.0
            self.direction[k] = 0.0

    def solve(self, operator, preconditioner, flatness, goal, most):
        """Improve x until max |b - A x| <= goal, by at most ``most`` products with A.

        It stops early when only rounding is left of b, and at a direction that is flat up to rounding.
        """
        first = slope = self.turn(preconditioner, 0.0, goal)
        for _ in range(most):
            if slope <= _ROUNDING * first:
                return
            operator.apply(self.direction, self.image)
            if not self.step(flatness, slope):
                return
            slope = self.turn(preconditioner, slope, goal)

    def turn(self, preconditioner, slope, goal):
        """Make the next direction conjugate to the last one; return the slope along it, 0 once the goal is reached."""
        if goal > 0.0 and self.largest_rest() <= goal:
            return 0.0
        preconditioner.solve(self.rest, self.z)
        next_slope = 0.0
        for k in range(self.rest.shape[0]):
            next_slope += self.rest[k] * self.z[k]
        share = next_slope / slope if slope > 0.0 else 0.0
        for k in range(self.rest.shape[0]):
            self.direction[k] = self.z[k] + share * self.direction[k]
        return next_slope

    def largest_rest(self):
        """Return max |b - A x|; a maximum of integers vectorises."""
        largest = np.int64(0)
        for k in range(self.rest.shape[0]):
            largest = max(largest, bits_of(abs(self.rest[k])))
        return float_of(largest)

    def step(self, flatness, slope):
        """Move x to the minimum along the direction; return whether there is one."""
        curvature = 0.0
        for k in range(self.x.shape[0]):
            curvature += self.direction[k] * self.image[k]
        if not flatness.has_minimum(self.direction, curvature):
            return False
        length = slope / curvature
        for k in range(self.x.shape[0]):
            self.x[k] += length * self.direction[k]
            self.rest[k] -= length * self.image[k]
        return True


def vectors_for(size: int) -> ConjugateGradients:
    """Return vectors for systems with ``size`` unknowns."""
    return ConjugateGradients(np.zeros(size), np.zeros(size), np.zeros(size), np.zeros(size), np.zeros(size))


class ThreadedGradients:
    """The same method for an operator that Python calls, because its products use several threads.

    ``solve`` is that of :class:`ConjugateGradients`; the operations on the vectors are compiled.
    """

    def __init__(self, b: np.ndarray) -> None:
        self.vectors = vectors_for(b.size)
        self.vectors.rest[:] = b
        self.x, self.direction, self.image = self.vectors.x, self.vectors.direction, self.vectors.image

    def turn(self, preconditioner: Preconditioner, slope: float, goal: float) -> float:
        """Make the next direction conjugate to the last one; return the slope along it, 0 once the goal is reached."""
        return _turn(self.vectors, preconditioner, slope, goal)

    def step(self, flatness: Flatness, slope: float) -> bool:
        """Move x to the minimum along the direction; return whether there is one."""
        return _step(self.vectors, flatness, slope)

    solve: Callable[..., None] = ConjugateGradients.solve


@kernel
def _turn(vectors, preconditioner, slope, goal):
    return vectors.turn(preconditioner, slope, goal)


@kernel
def _step(vectors, flatness, slope):
    return vectors.step(flatness, slope)
