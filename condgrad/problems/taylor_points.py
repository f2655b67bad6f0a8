"""The Taylor points b_i of TUFW: how they are stored, and the updates of q, H and g = q + H w when they are renewed.

A problem chooses the class that suits its terms. ``renew`` runs in kernels, for one sample; ``renew_all`` and
``recompute`` are full passes. All of them work on the solver's arrays: w, r (the paper's g), q and H.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from condgrad.compiled import compiled, kernel
from condgrad.linalg.slices import Slices
from condgrad.linalg.vectors import product
from condgrad.problems.curvature import ImplicitCurvature, StoredCurvature
from condgrad.problems.finite_sum import Table


class Workspace(Protocol):
    """The attributes and methods of a run from which Taylor points are made."""

    n: int
    d: int
    problem: Any  # the problem that is solved
    view: Any  # the form of this problem for kernels

    def table(self) -> Table:
        """Return a table with a zero for each sample."""

    def columns(self) -> Slices:
        """Return the columns of X."""


class TaylorPoints(Protocol):
    """The methods of Taylor points that TUFW calls; the arrays are those of the solver."""

    def gradients_per_sample(self) -> int:
        """Return the number of gradients that one renewal evaluates."""

    def renew(self, F: Any, i: int, arrays: Any) -> None:
        """Set b_i to w."""

    def renew_all(self, space: Any, arrays: Any) -> None:
        """Set every b_i to w: the estimate is the exact gradient."""

    def recompute(self, space: Any, arrays: Any) -> None:
        """Compute running sums anew from the points."""


@compiled
class PredictionPoints(NamedTuple):
    """Points for linear predictions: p_i = x_i'b_i, v_i = f'(p_i) and t_i = f''(p_i), the last two weighted."""

    v: Table
    t: Table
    p: Table

    def gradients_per_sample(self):
        """Return the number of gradients that one renewal evaluates: the one at the new point."""
        return 1

    def renew(self, F, i, arrays):
        """Set b_i to w: equation (2.1)."""
        p = F.predict(i, arrays.w)
        v, t = F.derivative(i, p), F.curvature(i, p)
        estimated = self.v.at(i) + self.t.at(i) * (p - self.p.at(i))
        constant = v - t * p - self.v.at(i) + self.t.at(i) * self.p.at(i)
        F.X.add_slice(i, constant, arrays.q)
        arrays.H.renew(F.X, i, t - self.t.at(i))
        arrays.r.add_row(F, i, v - estimated, p)  # g = q + H w
        self.v.replace(i, v)
        self.t.replace(i, t)
        self.p.replace(i, p)

    def renew_all(self, space, arrays):
        """Set every b_i to w: g is the exact gradient."""
        p = space.predictions(arrays.w.to_array())
        _, self.v.values[:], self.t.values[:] = space.problem.samples.expand(p, 0.0)
        self.p.values[:] = p
        self.collect(space, arrays, p)

    def recompute(self, space, arrays):
        """Compute q, H and g anew from the numbers of the samples."""
        self.collect(space, arrays, space.predictions(arrays.w.to_array()))

    def collect(self, space, arrays, p):
        """Set q, H and g to the sums over all samples, where p = X w."""
        v, t = self.v.values, self.t.values
        arrays.q.set_to(space.transpose_dot(v - t * self.p.values))
        if isinstance(arrays.H, StoredCurvature):
            arrays.H.H[:] = space.problem.matrix.gram(np.arange(space.d), np.ones(space.d), t)
        arrays.r.set_to(space.transpose_dot(v + t * (p - self.p.values)), arrays.w.to_array())


@compiled
class VectorPoints(NamedTuple):
    """Points for general terms, stored themselves: one row of ``b`` per sample.

    The contribution of a sample to q and H at its former point is computed again and subtracted: storing its Hessian
    would take d x d numbers per sample.
    """

    b: np.ndarray

    def gradients_per_sample(self):
        """Return the number of gradients that one renewal evaluates: at the new point and at the former one."""
        return 2

    def renew(self, F, i, arrays):
        """Set b_i to w: equation (2.1) for a general Hessian."""
        b, w = self.b[i], arrays.w.values
        for sign in (-1.0, 1.0):  # a loop: the terms are compiled into the kernel only once
            self.expand(F, i, b if sign < 0.0 else w, sign * F.weight, arrays)
        for j in range(w.shape[0]):
            b[j] = w[j]

    def expand(self, F, i, b, c, arrays):
        """Add c times the expansion grad f_i(b) + hess f_i(b) (w - b) to the model, that is to q, H and g."""
        gradient = F.terms.gradient(i, b)
        Hb = F.terms.hessian_product(i, b, b)
        Hw = F.terms.hessian_product(i, b, arrays.w.values)
        arrays.q.add_array(c, gradient)
        arrays.q.add_array(-c, Hb)
        F.terms.add_hessian(i, b, c, arrays.H.H)
        arrays.r.add_array(c, gradient, arrays.w)
        arrays.r.add_array(c, Hw, arrays.w)
        arrays.r.add_array(-c, Hb, arrays.w)

    def renew_all(self, space, arrays):
        """Set every b_i to w: g is the exact gradient."""
        self.b[:] = arrays.w.to_array()
        _expand_at(space.problem, arrays.w.to_array(), arrays)

    def recompute(self, space, arrays):
        """Compute q, H and g anew from the points."""
        arrays.H.H[:] = 0.0
        arrays.q.shrink(0.0)
        arrays.r.shrink(0.0)
        run = _expand_each if space.is_compiled else expand_each
        run(space.view, arrays)
        arrays.r.synchronise(arrays.w.to_array())


@compiled
class SharedPoint(NamedTuple):
    """Points for general terms under a rule that renews all Taylor points or none: one point b for all samples."""

    b: np.ndarray

    def gradients_per_sample(self):
        """Return the number of gradients that one renewal evaluates: the one at the new point."""
        return 1

    def renew(self, F, i, arrays):
        """Do nothing: a rule that renews all points draws no samples."""

    def renew_all(self, space, arrays):
        """Set b to w: g is the exact gradient."""
        self.b[:] = arrays.w.to_array()
        self.recompute(space, arrays)

    def recompute(self, space, arrays):
        """Compute q, H and g anew from b."""
        _expand_at(space.problem, self.b, arrays)


def expand_each(F, arrays):
    """Add the expansions of all samples, each at its own point, to the model."""
    points = arrays.points
    for i in range(points.b.shape[0]):
        points.expand(F, i, points.b[i], F.weight, arrays)


_expand_each = kernel(expand_each)


Expansions: TypeAlias = tuple[TaylorPoints, StoredCurvature | ImplicitCurvature]  # the points, and H


def _expand_at(problem: Any, b: np.ndarray, arrays: Any) -> None:
    """Set q, H and g to the values for a single Taylor point b of all samples."""
    w, gradient, H = arrays.w.to_array(), problem.gradient(b), problem.hessian(b)
    arrays.H.H[:] = H
    arrays.q.set_to(gradient - product(H, b))
    arrays.r.set_to(gradient + product(H, w - b), w)


def of_predictions(space: Workspace, form: str) -> Expansions:
    """Return the points of a problem with linear predictions, and H in the requested form.

    "auto" chooses the cheaper form: reading a column of H, or the rows that a column of X touches.
    """
    points = PredictionPoints(space.table(), space.table(), space.table())
    matrix = space.problem.matrix
    rows_of_a_column = matrix.n_stored**2 / (space.n * space.d)
    is_small = space.d <= 5000 and (not matrix.is_sparse or space.d <= 4 * rows_of_a_column)
    if form == "stored" or (form == "auto" and is_small):
        return points, StoredCurvature(np.zeros((space.d, space.d)))
    return points, ImplicitCurvature(space.view.X, space.columns(), points.t.values)


def of_terms(space: Workspace, form: str, renews_all: bool) -> Expansions:
    """Return the points of a general problem, and H, which is always stored."""
    if form == "implicit":
        raise ValueError("form='implicit' needs predictions x_i'w, which a GeneralProblem does not have; use 'stored'.")
    H = StoredCurvature(np.zeros((space.d, space.d)))
    if renews_all:
        return SharedPoint(np.zeros(space.d)), H
    return VectorPoints(np.zeros((space.n, space.d))), H
