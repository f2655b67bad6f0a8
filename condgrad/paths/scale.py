"""How large the loss is at w = 0: what relative tolerances are relative to."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from condgrad.problems import samples as outer
from condgrad.problems.completion import CompletionProblem
from condgrad.problems.softmax import SoftmaxProblem

_SMALLEST_SCALE = 1e-9  # of the loss of predicting zero, for targets that a constant predicts up to rounding


def null_loss(problem: Any) -> float:
    """Return the objective at w = 0, with the best intercept where there is one."""
    if isinstance(problem, SoftmaxProblem):
        return problem.objective(np.zeros(problem.n_features))
    return outer.value(problem.samples, _null_predictions(problem), 0.0)


def loss_scale(problem: Any) -> float:
    """Return the mean size of the loss at w = 0, with the best intercept or biases, which ``tol`` is relative to."""
    if isinstance(problem, SoftmaxProblem):
        return max(null_loss(problem), _SMALLEST_SCALE * math.log(problem.n_classes))
    samples = problem.samples
    return max(mean_size(samples, _null_predictions(problem)), _SMALLEST_SCALE * mean_size(samples, 0.0))


def mean_size(samples: outer.Samples, p: np.ndarray | float) -> float:
    """Return the weighted mean of |f(p_i, y_i)|."""
    return float(samples.weight @ np.abs(samples.loss.value(p, samples.y)))


def _null_predictions(problem: Any) -> np.ndarray:
    """Return the predictions of w = 0: those of the free intercept, or of the free biases, alone."""
    zeros = np.zeros(problem.n_samples)
    if isinstance(problem, CompletionProblem):
        return problem.predict(zeros, problem.best_biases(zeros))
    return zeros + outer.best_intercept(problem.samples, zeros, 0.0) if problem.has_intercept else zeros
