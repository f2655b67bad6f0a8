"""The Taylor points b_i of TUFW: what is kept of them, and how q, H and g = q + H w follow when they are renewed.

A problem chooses the kind that suits its terms. ``renew`` runs in kernels, for one sample; ``renew_all`` and
``recompute`` are full passes. All of them work on the solver's state: w, r (the paper's g), q and H.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from condgrad.compiled import compiled, kernel
from condgrad.linalg.slices import Slices
from condgrad.linalg.vectors import product
from condgrad.problems.curvature import ImplicitCurvature, StoredCurvature
from condgrad.problems.finite_sum import Table


class Parts(Protocol):
    """What the Taylor points of a run are made from."""

    n: int
    d: int
    problem: Any  # the one that these points are of
    view: Any  # of it, for kernels

    def table(self) -> Table:
        """Return a zero per sample."""

    def columns(self) -> Slices:
        """Return the columns of X."""


class TaylorPoints(Protocol):
    """What TUFW asks of its Taylor points; the state is that of the solver."""

    def gradients_per_sample(self) -> int:
        """Return how many gradients a renewal takes."""

    def renew(self, problem: Any, i: int, state: Any) -> None:
        """Set b_i to w."""

    def renew_all(self, parts: Any, state: Any) -> None:
        """Set every b_i to w: the estimate is the exact gradient."""

    def recompute(self, parts: Any, state: Any) -> None:
        """Compute running sums anew from the points."""


@compiled
class PredictionPoints(NamedTuple):
    """For linear predictions three numbers a sample: p_i = x_i'b_i, v_i = f'(p_i) and t_i = f''(p_i), both weighted."""

    v: Table
    t: Table
    p: Table

    def gradients_per_sample(self):
        """Return how many gradients a renewal takes: that at the new point."""
        return 1

    def renew(self, problem, i, state):
        """Set b_i to w: equation (2.1)."""
        p = problem.predict(i, state.w)
        v, t = problem.derivative(i, p), problem.curvature(i, p)
        estimated = self.v.at(i) + self.t.at(i) * (p - self.p.at(i))
        constant = v - t * p - self.v.at(i) + self.t.at(i) * self.p.at(i)
        problem.X.add_slice(i, constant, state.q)
        state.H.renew(problem.X, i, t - self.t.at(i))
        state.r.add_row(problem, i, v - estimated, p)  # g = q + H w
        self.v.replace(i, v)
        self.t.replace(i, t)
        self.p.replace(i, p)

    def renew_all(self, parts, state):
        """Set every b_i to w: g is the exact gradient."""
        p = parts.predictions(state.w.to_array())
        _, self.v.values[:], self.t.values[:] = parts.problem.samples.expand(p, 0.0)
        self.p.values[:] = p
        self.collect(parts, state, p)

    def recompute(self, parts, state):
        """Compute q, H and g anew from the numbers of the samples."""
        self.collect(parts, state, parts.predictions(state.w.to_array()))

    def collect(self, parts, state, p):
        """Set q, H and g to the sums over all samples, where p = X w."""
        v, t = self.v.values, self.t.values
        state.q.set_to(parts.transpose_dot(v - t * self.p.values))
        if isinstance(state.H, StoredCurvature):
            state.H.H[:] = parts.problem.matrix.gram(np.arange(parts.d), np.ones(parts.d), t)
        state.r.set_to(parts.transpose_dot(v + t * (p - self.p.values)), state.w.to_array())


@compiled
class VectorPoints(NamedTuple):
    """For general terms the points themselves: one row of ``b`` per sample.

    What a sample gave to q and H at its former point is computed again to be taken out: storing its Hessian would take
    d x d numbers a sample.
    """

    b: np.ndarray

    def gradients_per_sample(self):
        """Return how many gradients a renewal takes: those at the new point and at the former one."""
        return 2

    def renew(self, problem, i, state):
        """Set b_i to w: equation (2.1) for a general Hessian."""
        b, w = self.b[i], state.w.values
        for sign in (-1.0, 1.0):  # a loop, so that the terms are compiled into the kernel once
            self.expand(problem, i, b if sign < 0.0 else w, sign * problem.weight, state)
        for j in range(w.shape[0]):
            b[j] = w[j]

    def expand(self, problem, i, b, c, state):
        """Add c times the expansion grad f_i(b) + hess f_i(b) (w - b) to the model: its parts to q, H and g."""
        gradient = problem.terms.gradient(i, b)
        Hb = problem.terms.hessian_product(i, b, b)
        Hw = problem.terms.hessian_product(i, b, state.w.values)
        state.q.add_array(c, gradient)
        state.q.add_array(-c, Hb)
        problem.terms.add_hessian(i, b, c, state.H.H)
        state.r.add_array(c, gradient, state.w)
        state.r.add_array(c, Hw, state.w)
        state.r.add_array(-c, Hb, state.w)

    def renew_all(self, parts, state):
        """Set every b_i to w: g is the exact gradient."""
        self.b[:] = state.w.to_array()
        _expand_at(parts.problem, state.w.to_array(), state)

    def recompute(self, parts, state):
        """Compute q, H and g anew from the points."""
        state.H.H[:] = 0.0
        state.q.shrink(0.0)
        state.r.shrink(0.0)
        run = _expand_each if parts.is_compiled else expand_each
        run(parts.view, state)
        state.r.synchronise(state.w.to_array())


@compiled
class SharedPoint(NamedTuple):
    """For general terms under a rule that renews all Taylor points or none: one point b for all samples."""

    b: np.ndarray

    def gradients_per_sample(self):
        """Return how many gradients a renewal takes: that at the new point."""
        return 1

    def renew(self, problem, i, state):
        """Do nothing: such a rule draws no samples."""

    def renew_all(self, parts, state):
        """Set b to w: g is the exact gradient."""
        self.b[:] = state.w.to_array()
        self.recompute(parts, state)

    def recompute(self, parts, state):
        """Compute q, H and g anew from b."""
        _expand_at(parts.problem, self.b, state)


def expand_each(problem, state):
    """Add the expansions of all samples, each at its own point, to the model."""
    points = state.points
    for i in range(points.b.shape[0]):
        points.expand(problem, i, points.b[i], problem.weight, state)


_expand_each = kernel(expand_each)


Expansions: TypeAlias = tuple[TaylorPoints, StoredCurvature | ImplicitCurvature]  # the points, and H


def _expand_at(problem: Any, b: np.ndarray, state: Any) -> None:
    """Set q, H and g to those of a single Taylor point for all samples."""
    w, gradient, H = state.w.to_array(), problem.gradient(b), problem.hessian(b)
    state.H.H[:] = H
    state.q.set_to(gradient - product(H, b))
    state.r.set_to(gradient + product(H, w - b), w)


def of_predictions(parts: Parts, form: str) -> Expansions:
    """Return the points of a problem with linear predictions, and H in the form asked for.

    "auto" takes the one that costs less: a column of H, or the rows that a column of X touches.
    """
    points = PredictionPoints(parts.table(), parts.table(), parts.table())
    matrix = parts.problem.matrix
    rows_of_a_column = matrix.n_stored**2 / (parts.n * parts.d)
    is_small = parts.d <= 5000 and (not matrix.is_sparse or parts.d <= 4 * rows_of_a_column)
    if form == "stored" or (form == "auto" and is_small):
        return points, StoredCurvature(np.zeros((parts.d, parts.d)))
    return points, ImplicitCurvature(parts.view.X, parts.columns(), points.t.values)


def of_terms(parts: Parts, form: str, renews_all: bool) -> Expansions:
    """Return the points of a general problem, and H, which is always stored."""
    if form == "implicit":
        raise ValueError("form='implicit' needs predictions x_i'w, which a GeneralProblem does not have; use 'stored'.")
    H = StoredCurvature(np.zeros((parts.d, parts.d)))
    if renews_all:
        return SharedPoint(np.zeros(parts.d)), H
    return VectorPoints(np.zeros((parts.n, parts.d))), H
