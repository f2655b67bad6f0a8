"""LinearGroups: a linear problem as the engine of group paths uses it; its predictions, its groups, its curvature."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from condgrad.compiled import kernel
from condgrad.constraints._group_form import GroupForm
from condgrad.linalg import threads
from condgrad.linalg.rounding import UNIT, gamma
from condgrad.linalg.vectors import DenseVector
from condgrad.paths.gauges import Gauge
from condgrad.paths.least_squares import Goal
from condgrad.paths.packed_columns import PackedColumns
from condgrad.paths.point_rounding import PointRounding
from condgrad.paths.smooth_curvature import Curvature
from condgrad.paths.smooth_data import MemoryData
from condgrad.paths.working_set import Atoms
from condgrad.problems.linear import Problem
from condgrad.problems.totals import Totals

_SMALL_GROUP = 16  # features up to which their products are made one by one: for more, whole matrices are faster
_SLACK = 1e-9  # share of an eigenvalue that its own rounding may have taken away


class Arrival(NamedTuple):
    """What belongs to a point: predictions p, intercept b, residuals R (weighted: a, of sum mu) and curvatures d."""

    totals: Totals
    along: float  # <R, p>: how fast F falls along x
    b: float
    mu: float
    p: np.ndarray
    a: np.ndarray
    R: np.ndarray
    d: np.ndarray


class LinearGroups:
    """The features of a problem, divided by their prices, in groups.

    Parameters
    ----------
    problem : Problem
        In memory.
    form : GroupForm
        The norm whose balls are the sets of the path.

    Attributes
    ----------
    reach, spread : arrays
        The largest singular value of the features of each group, or a bound of it, and their norm as a matrix.
    of_dual : float
        The relative error of a dual norm that is computed from correlations.
    group_of : array
        The group of each feature.
    curvature : Curvature
        The curvatures of the samples of which models are made.
    """

    def __init__(self, problem: Problem, form: GroupForm) -> None:
        self.problem, self.form = problem, form
        is_plain = bool((form.price == 1.0).all())
        self.data = MemoryData(problem, Gauge(None if is_plain else form.price, is_symmetric=True))
        self.columns = self.data.columns
        self.sizes = np.diff(form.offsets)
        self.group_of = np.empty(form.price.size, np.int64)
        self.group_of[form.members] = np.repeat(np.arange(self.sizes.size), self.sizes)
        self.of_dual = float(form.norm.dual_rounding(float(self.sizes.max()))) * UNIT
        squares = self.columns.norm**2 + (self.columns.scale * self.columns.mean) ** 2
        self.spread = np.sqrt(np.add.reduceat(squares[form.members], form.offsets[:-1]))
        self.reach = np.minimum(self._reach(), self.spread)
        samples, zeros = problem.samples, np.zeros(problem.n_samples)
        self._null_intercept = samples.best_intercept(zeros, 0.0) if problem.has_intercept else 0.0
        self.scale = samples.loss_scale(zeros + self._null_intercept)
        self.floor = samples.least_value()
        # The norm of a group is at least the Euclidean one: the sizes of its products are at most its norm times its
        # spread.
        self._rounds = PointRounding(
            problem,
            null_intercept=self._null_intercept,
            farthest=float(self.spread.max(initial=0.0)),
            largest_entry=self.data.largest_entry,
            of_dual=self.of_dual,
        )
        self.zero = self.arrive(None, np.empty(0))
        self.forget()

    def forget(self) -> None:
        """Go back to the curvatures at zero."""
        self.curvature = Curvature(self.problem, self.data, self.zero.d)
        is_fixed = self.problem.is_quadratic and self.columns.offsets() is None  # the curvature of dense data
        self._packed = PackedColumns(self.columns, self.zero.d) if is_fixed else None

    def fill(self, G: np.ndarray, atoms: Atoms, features: np.ndarray, first: int) -> None:
        """Compute the rows and columns of the curvature that belong to the features from ``first`` on."""
        if self._packed is not None and self._packed.has_room(features.size):
            self._packed.fill(G, features, first)
        else:
            self._packed = None
            self.curvature.fill(G, atoms, features, first)

    def keep(self, places: np.ndarray) -> None:
        """Follow the working set, which has kept the features at these places alone."""
        if self._packed is not None:
            self._packed.keep(places)

    def _reach(self) -> np.ndarray:
        form, columns, out = self.form, self.columns, np.empty(self.sizes.size)
        for size in np.unique(self.sizes):
            same = np.flatnonzero(self.sizes == size)
            members = form.members[form.offsets[same][:, None] + np.arange(size)]
            if size == 1:
                out[same] = columns.norm[members[:, 0]]
                continue
            if size <= _SMALL_GROUP:
                grams = np.empty((same.size, size, size))
                work = float(size) * size * self.data.n_stored * same.size / columns.norm.size
                threads.run(functools.partial(_grams, columns, members, grams), threads.cut(same.size, work))
            else:
                weight = self.problem.samples.weight
                scales = columns.scale[members]
                found = zip(members, scales, strict=True)
                grams = np.array([self.problem.feature_curvature(own, scale, weight) for own, scale in found])
            rounding = _SLACK + size * gamma(self.problem.n_samples + 8)  # of the eigenvalue, and of its matrix
            out[same] = np.sqrt(np.maximum(np.linalg.eigvalsh(grams)[:, -1], 0.0)) * (1.0 + rounding)
        return out

    # A point.

    def atoms(self, features: np.ndarray) -> Atoms:
        """Return the columns of these features."""
        return Atoms(*self.columns.chosen(features))

    def arrive(self, atoms: Atoms | None, x: np.ndarray, b: float | None = None) -> Arrival:
        """Return what belongs to the coefficients x of some features; b is a guess of the intercept."""
        problem, samples = self.problem, self.problem.samples
        p = np.zeros(problem.n_samples) if atoms is None else atoms.predict(x, np.empty(problem.n_samples))
        guess = self._null_intercept if b is None else b
        b = samples.best_intercept(p, guess) if problem.has_intercept else 0.0
        totals, alpha, d = samples.expand(p, b)
        a = np.negative(alpha, out=alpha)
        R = np.divide(a, samples.weight, out=np.zeros_like(a), where=samples.weight > 0.0)
        return Arrival(totals, float(a @ p), b, float(a.sum()), p, a, R, d)

    def correlate(self, at: Arrival, atoms: Atoms) -> np.ndarray:
        """Return the correlations of some features with the residual."""
        out = np.empty(atoms.features.size)
        atoms.correlate(at.a, at.mu, np.zeros(out.size), 0.0, out)
        return out

    def dual_norms(self, at: Arrival, groups: np.ndarray) -> np.ndarray:
        """Return the dual norms of the correlations of some groups."""
        out, form = np.empty(groups.size), self.form
        task = functools.partial(_scan, self.columns, form.norm, form.members, form.offsets, groups, at.a, at.mu, out)
        stored = self.data.n_stored / self.columns.norm.size * float(self.sizes[groups].sum())
        threads.run(task, threads.cut(groups.size, stored))
        return out

    # Its certificate.

    def rounding(
        self, at: Arrival, goal: Goal, features: np.ndarray, x: np.ndarray, norm: float, largest: float
    ) -> float:
        """Return a bound of what rounding does to the gap."""
        value = at.totals.value
        return self._rounds.of_gap(
            at.totals,
            n_terms=x.size,
            norm=norm,
            size_of_w=float(np.abs(x) @ self.columns.scale[features]),
            b=abs(at.b),
            radius=abs(value - self.floor) / goal.target + norm if goal.is_penalised else goal.target,
            largest=largest,
            is_penalised=goal.is_penalised,
        )


@kernel
def _scan(columns, norm, members, offsets, groups, a, mu, out, start, stop):
    """Compute the dual norms of a range of the groups."""
    widest = 0
    for k in range(start, stop):
        widest = max(widest, offsets[groups[k] + 1] - offsets[groups[k]])
    correlation = np.empty(widest)
    for k in range(start, stop):
        first = offsets[groups[k]]
        size = offsets[groups[k] + 1] - first
        for q in range(size):
            correlation[q] = columns.correlation(members[first + q], a, mu)
        out[k] = norm.dual(correlation, 0, size)


@kernel
def _grams(columns, members, out, start, stop):
    """Compute the products of all pairs of features of a range of groups."""
    buffer = np.zeros(columns.weight.shape[0])
    vector = DenseVector(buffer)
    for g in range(start, stop):
        for q in range(members.shape[1]):
            for i in range(buffer.shape[0]):
                buffer[i] = 0.0
            columns.add(members[g, q], 1.0, vector)
            mu = 0.0
            for i in range(buffer.shape[0]):
                buffer[i] *= columns.weight[i]
            for i in range(buffer.shape[0]):
                mu += buffer[i]
            for k in range(q + 1):
                value = columns.correlation(members[g, k], buffer, mu)
                out[g, q, k] = value
                out[g, k, q] = value
