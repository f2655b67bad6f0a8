"""Refits: the factors of a matrix in a nuclear-norm ball, fitted again in its own directions and in new ones.

A refit is not convex and not certified: it is a proposal. The solver ``low-rank`` accepts one if it is better than a
Frank-Wolfe step, and the rough path over radii (:mod:`condgrad.paths.factor_walk`) consists of nothing else.
"""

from __future__ import annotations

import math
import time
from typing import Protocol

import numpy as np

from condgrad.linalg.factored import Factored
from condgrad.problems.completion.biases import Biases
from condgrad.problems.completion.core_steps import improve_core
from condgrad.problems.completion.oracle import Search
from condgrad.problems.completion.problem import CompletionProblem

_DENSE_STEPS = 20  # largest number of steps of a dense fit that take the place of a sweep over the factors
_FEW = 10  # number of new directions that a refit may always add; it may also triple the rank
_STEPS_PER_DIRECTION = 3  # largest number of Lanczos steps per direction
_STEPS_PER_ROUND = 100  # and per sweep and per step on the core: a rough fit needs fewer directions
_MANY_ABOVE = 0.06  # share of Ritz values above the multiplier, at which more steps would find more of them
_ABOVE = 1e-3  # relative margin above the multiplier that a singular value of the gradient needs to add its direction
_LEAST_CURVATURE = 0.02  # smallest curvature of an entry, as a fraction of the largest: flat parts give unbounded steps
_CUTOFF = 1e-6  # singular values of W below this fraction of the largest are dropped


class Place(Protocol):
    """A matrix Z in factors with its biases, its values x and predictions p at the entries, and the derivatives there.

    Z is in the coordinates of the plain ball; ``search`` is one for the singular vectors of the gradient.
    """

    Z: Factored
    biases: Biases | None
    x: np.ndarray
    p: np.ndarray
    alpha: np.ndarray
    search: Search


def refit(
    problem: CompletionProblem, place: Place, sweeps: int, deadline: float = math.inf, core_steps: int = 0
) -> tuple[Factored, Biases | None]:
    """Return a matrix fitted in the directions of Z and in new ones, inside the ball, and its biases.

    Steps on the core come before the sweeps: they decide how much of each new direction is needed.
    """
    if problem.is_narrow:
        Z, biases = _dense_fit(problem, place, sweeps, deadline)
    else:
        Z, biases = _factor_fit(problem, place, sweeps, deadline, core_steps)
    return _into_ball(problem, Z, biases)[0], biases


def _dense_fit(
    problem: CompletionProblem, place: Place, sweeps: int, deadline: float
) -> tuple[Factored, Biases | None]:
    fit = problem.dense_fit(place.Z, place.biases)
    fit.improve(_DENSE_STEPS * sweeps, deadline)
    return fit.Z.compressed(_CUTOFF), fit.biases


def _factor_fit(
    problem: CompletionProblem, place: Place, sweeps: int, deadline: float, core_steps: int
) -> tuple[Factored, Biases | None]:
    Z, biases = _enlarged(problem, place, _STEPS_PER_ROUND * (sweeps + core_steps)), place.biases
    if core_steps and Z.rank:
        Z = improve_core(problem, Z, biases, core_steps)
    for _ in range(sweeps):
        if time.perf_counter() >= deadline:
            break
        Z, lam, p = _into_ball(problem, Z, biases)
        fit = problem.factor_fit(Z, p, biases)
        fit.sweep(lam)
        Z, biases = Factored(fit.A, np.ones(fit.A.shape[1]), fit.B).compressed(_CUTOFF), fit.biases
    return Z, biases


def _enlarged(problem: CompletionProblem, place: Place, most: int) -> Factored:
    """Return Z plus directions whose singular value in the gradient exceeds the multiplier of the ball.

    At most ``most`` Lanczos steps find them.

    Some of them are new, others are close to directions of Z and correct these. The weight of each direction is the
    length of a Newton step along it alone.
    """
    # In a larger ball than that of Z the multiplier will be lower, about as the inverse root of the radius.
    lam = _multiplier(problem, place.alpha, place.x)
    size = float(place.Z.s.sum())
    lam *= math.sqrt(problem.constraint.radius / size) if size > 0.0 else 0.0
    U, s, V = place.search.triplets(_count_above((1.0 + _ABOVE) * lam, place, most))
    if lam == 0.0:  # the multiplier is not known yet
        lam = 0.5 * s[-1] if s.size else 0.0
    d = problem.curvatures(place.p)
    d = np.maximum(d, _LEAST_CURVATURE * d.max(initial=0.0))
    W = problem.out_of_ball(Factored(U, s, V))
    bend = np.einsum("ik,ik->k", W.U**2, problem.entries.dot_each(d, W.V**2))
    weights = np.divide(s - lam, bend, out=np.zeros_like(s), where=bend > 0.0)
    return place.Z.plus(Factored(-U, weights, V)).compressed(_CUTOFF)


def _count_above(level: float, place: Place, most: int) -> int:
    """Return how many singular values of the gradient above ``level`` to use; at most ``most`` steps find them."""
    lanczos, wanted = place.search.lanczos, max(_FEW, 2 * place.Z.rank)
    most = min(_STEPS_PER_DIRECTION * wanted, most)
    lanczos.extend(2 * _FEW - lanczos.n_steps)
    while True:
        count = int(np.count_nonzero(lanczos.values() > level))
        is_settled = level == 0.0 or count <= _MANY_ABOVE * lanczos.n_steps
        if is_settled or lanczos.is_exhausted or lanczos.n_steps >= most:
            return min(count, wanted)
        lanczos.extend(min(lanczos.n_steps // 2, most - lanczos.n_steps))


def _into_ball(problem: CompletionProblem, Z: Factored, biases: Biases | None) -> tuple[Factored, float, np.ndarray]:
    """Return the best multiple of Z in the ball, the multiplier there, and the predictions; the biases are fixed."""
    # If Z is too large, the penalty was too small: every singular value is reduced as a larger penalty would do.
    Z = Z.with_values(problem.constraint.nearest_values(Z.s))
    size, x = float(Z.s.sum()), problem.values_of(Z)
    offset = problem.predict(np.zeros_like(x), biases)
    if size == 0.0:
        return Z, 0.0, offset
    factor = problem.best_multiple(x, offset, problem.constraint.radius / size)
    Z, x = Z.scaled(None, None, factor), factor * x
    p = offset + x
    return Z, _multiplier(problem, problem.derivatives(p, 0.0), x), p


def _multiplier(problem: CompletionProblem, alpha: np.ndarray, x: np.ndarray) -> float:
    """Return lam = -<grad F(W), W> / radius (at least 0), which at the optimum is the norm of the gradient."""
    return max(0.0, -float(alpha @ x) / problem.constraint.radius)
