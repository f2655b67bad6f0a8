"""The choice of the form of F, one feature at a time, that suits a loss."""

from __future__ import annotations

import functools
from typing import Protocol

import numpy as np

from condgrad.linalg.vectors import Vector
from condgrad.problems.by_feature.quadratic import QuadraticByFeature, quadratic
from condgrad.problems.by_feature.smooth import SmoothByFeature, smooth
from condgrad.problems.linear import Problem


class MakesVectors(Protocol):
    """A function that makes a vector from an array."""

    def __call__(self, values: np.ndarray, *, shrinks: bool) -> Vector: ...


def by_feature(
    problem: Problem, w: np.ndarray, vector: MakesVectors, *, caches: bool
) -> QuadraticByFeature | SmoothByFeature:
    """Return F at ``w``, one feature at a time, in the form that suits the loss; both forms have the same methods.

    ``vector(array, shrinks=...)`` makes a vector from an array; ``caches`` allocates a cache for products of columns.
    """
    if problem.loss.is_quadratic:
        return quadratic(problem, w, functools.partial(vector, shrinks=True), caches)
    return smooth(problem, w, vector(np.zeros(problem.n_samples), shrinks=False))
