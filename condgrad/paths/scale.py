"""How large the loss is at w = 0: what relative tolerances are relative to."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from condgrad.problems import samples as outer
from condgrad.problems.softmax import SoftmaxProblem

SMALLEST_SCALE = 1e-9  # of the loss of predicting zero, for targets that a constant predicts up to rounding


def null_loss(problem: Any) -> float:
    """Return the objective at w = 0, with the best intercept where there is one."""
    if isinstance(problem, SoftmaxProblem):
        return problem.objective(np.zeros(problem.n_features))
    zeros = np.zeros(problem.n_samples)
    b = outer.best_intercept(problem.samples, zeros, 0.0) if problem.has_intercept else 0.0
    return outer.value(problem.samples, zeros, b)


def loss_scale(problem: Any) -> float:
    """Return the mean size of the loss at w = 0, which ``tol`` is relative to."""
    if isinstance(problem, SoftmaxProblem):
        return max(null_loss(problem), SMALLEST_SCALE * math.log(problem.n_classes))
    samples, zeros = problem.samples, np.zeros(problem.n_samples)
    plain = float(samples.weight @ np.abs(samples.loss.value(zeros, samples.y)))
    if not problem.has_intercept:
        return plain
    b = outer.best_intercept(samples, zeros, 0.0)
    return max(float(samples.weight @ np.abs(samples.loss.value(zeros + b, samples.y))), SMALLEST_SCALE * plain)
