"""Projected gradient steps on S in W = U S V', for fixed orthonormal U and V.

A sweep over factors A B' = W moves a direction in proportion to the roots of its singular value: those that are small
grow and vanish slowly. Steps on S move all directions alike; and as F has about the same curvature along most matrices
of low rank, if entries are spread or the norm is weighted accordingly, few steps are enough. They do not turn U and V,
which is what sweeps are good at. A step needs a bound L of the curvature on its way; one that F refutes is enlarged.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from condgrad.constraints import NuclearBall
from condgrad.linalg.entries import Entries
from condgrad.linalg.factored import Factored
from condgrad.problems.completion.biases import Biases
from condgrad.problems.samples import Samples

_FIRST_BOUND = 2.0  # first bound of the curvature, over its mean along all matrices of rank one
_LARGER = 1.5  # factor by which a bound that does not hold is enlarged
_MOST_BOUNDS = 20
_ROUNDING = 1e-13  # share of F that rounding may add to it


class Cored(Protocol):
    """The attributes and methods of a completion problem that steps on S use."""

    samples: Samples
    entries: Entries
    constraint: NuclearBall

    def out_of_ball(self, Z: Factored) -> Factored:
        """Return the matrix W that Z represents."""

    def predict(self, x: np.ndarray, biases: Biases | None) -> np.ndarray:
        """Return predictions at the entries, from the values x of W there and the biases."""

    def mean_curvature(self, p: np.ndarray) -> float:
        """Return the mean curvature of F along matrices of rank one, at predictions p."""


def improve_core(problem: Cored, Z: Factored, biases: Biases | None, steps: int) -> Factored:
    """Return a better matrix of the ball with the row and column spaces of Z, whose factors are orthonormal.

    The first S is the multiple of Z in the ball, so that no direction is lost before F has judged it.
    """
    ball, samples, entries = problem.constraint, problem.samples, problem.entries
    Z = Z.scaled(None, None, min(1.0, ball.radius / float(Z.s.sum())))
    W = problem.out_of_ball(Z)
    U, S, V = np.ascontiguousarray(W.U), np.diag(Z.s), np.ascontiguousarray(W.V)
    p = problem.predict(entries.values_of(U @ S, V), biases)
    L = _FIRST_BOUND * problem.mean_curvature(p)
    if not L > 0.0:  # all entries lie in flat parts of the loss
        return Z
    for _ in range(steps):
        totals, alpha, _ = samples.expand(p, 0.0)
        gradient = U.T @ entries.dot_each(alpha, V)
        for _ in range(_MOST_BOUNDS):  # S+ = the point of the ball nearest to S - grad / L
            X, s, Yt = np.linalg.svd(S - gradient / L)
            s = ball.nearest_values(s)
            step = (X * s) @ Yt - S
            new = p + entries.values_of(U @ step, V)
            bound = totals.value + float(np.vdot(gradient, step)) + 0.5 * L * float(np.vdot(step, step))
            if samples.value(new, 0.0) <= bound + _ROUNDING * abs(totals.value):
                break
            L *= _LARGER
        S, p = S + step, new
    return Factored(Z.U @ X, s, Z.V @ Yt.T).with_values(s)
