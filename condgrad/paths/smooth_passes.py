"""SmoothPasses: what the search of a smooth loss needs of samples and columns, on all cores where they are many."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

from condgrad.compiled import Bound, Errand, compiled, kernel
from condgrad.linalg import threads
from condgrad.paths.oracle import Oracle, Scan
from condgrad.paths.smooth_course import B_BEFORE, BEFORE, EVALUATION, EXPANSION, STAGE, STEPPED, TOTALS
from condgrad.paths.smooth_point import IS_TOTAL, LEVEL, MU, B, SmoothPoint, settle, take_residual
from condgrad.paths.working_set import Atoms, correlate_atoms
from condgrad.problems.samples import Samples, derive_block, expand_block, total_block, value_of_range

_CALLS = 100_000.0  # work of the calls of one step, in multiply-adds
_WORK_PER_SAMPLE = 20  # cost of a sample in multiply-adds: that of a loss with an exponential, about
_WORK_PER_PAIR = 0.7  # cost of a model for each pair of atoms
_NONE = Errand(0, 0)  # nowhere: several threads compute the loss


@compiled
class LossService(NamedTuple):
    """The loss at the predictions p of a point, for kernels that were compiled without knowing the loss."""

    samples: Samples
    has_intercept: bool
    p: np.ndarray
    saved_p: np.ndarray
    a: np.ndarray
    d: np.ndarray
    totals: np.ndarray
    numbers: np.ndarray
    course: np.ndarray

    def serve(self, what):
        """Compute the derivatives and the curvatures at p, or the totals there, or both."""
        samples, p, numbers, n = self.samples, self.p, self.numbers, self.p.shape[0]
        if what != TOTALS and self.has_intercept:
            numbers[B] = samples.best_intercept(p, numbers[B])
        if what == EVALUATION:
            derive_block(samples, 0, p, numbers[B], self.a, self.d)
        elif what == EXPANSION:
            self.totals[:] = 0.0
            expand_block(samples, 0, p, numbers[B], self.a, self.d, self.totals)
        elif numbers[IS_TOTAL] == 0.0:
            self.totals[:] = 0.0
            total_block(samples, 0, p, numbers[B], self.a, self.d, self.totals)
            numbers[IS_TOTAL] = 1.0
        if what == TOTALS and lacks_value_before(self.course):
            self.course[BEFORE] = value_of_range(samples, self.saved_p, self.course[B_BEFORE], 0, n)


class SmoothPasses:
    """The passes at a point, whose arrays they set.

    Attributes
    ----------
    atoms : Atoms
        The columns of the working set.
    errand : Errand
        What computes the loss on one thread, where that is enough.
    """

    def __init__(self, point: SmoothPoint, course: np.ndarray) -> None:
        self.point, self.course, self.numbers, self.p = point, course, point.numbers, point.p
        self.borders = threads.cut(self.p.size, _WORK_PER_SAMPLE * self.p.size)
        self.has_one_range = len(self.borders) == 2
        self._bound = Bound(self._service()) if self.has_one_range else None
        self.errand = _NONE if self._bound is None else self._bound.errand
        self.size = -1  # no atoms were taken yet

    def _service(self) -> LossService:
        point = self.point
        arrays = point.p, point.saved_p, point.a, point.d, point.totals, point.numbers, self.course
        return LossService(point.samples, point.has_intercept, *arrays)

    def take(self, point: SmoothPoint) -> None:
        """Take the same point with another working set."""
        self.point, self.size = point, int(point.model.n_atoms())
        self.atoms = Atoms(*point.columns.chosen(point.features[: self.size]))

    @property
    def is_alone(self) -> bool:
        """Whether one thread is enough for all of them."""
        return self.has_one_range and (self.size <= 0 or self.atoms.is_whole)

    @property
    def work(self) -> float:
        """How much work a step is, in multiply-adds."""
        passes = 2.0 * self.atoms.n_stored + _WORK_PER_SAMPLE * self.p.size
        return _CALLS + passes + _WORK_PER_PAIR * self.size**2

    def begin(self) -> None:
        """Compute everything that belongs to x = 0."""
        self.evaluate()
        take_residual(self.point.columns.weight, self.p, self.point.x, self.point.a, self.point.R, self.numbers, 0)
        self.add_up()

    def arrive(self, wants_totals: bool) -> None:
        """Compute everything that belongs to x; the totals only where they are wanted."""
        point = self.point
        self.atoms.predict(point.x, self.p)
        self.evaluate()
        weight, p, a, R = point.columns.weight, self.p, point.a, point.R
        if self.atoms.is_whole:  # one call for what follows
            atoms = self.atoms.columns, self.atoms.features
            settle(*atoms, weight, p, point.x, a, R, point.correlation, self.numbers, self.size)
        else:
            take_residual(weight, p, point.x, a, R, self.numbers, self.size)
            self.correlate()
        if wants_totals:
            self.add_up()

    def evaluate(self) -> None:
        """Compute the derivatives and curvatures at p."""
        if self.has_one_range:
            _run(self.errand, EVALUATION)
            return
        if self.point.has_intercept:
            self.numbers[B] = self.point.samples.best_intercept(self.p, self.numbers[B])
        threads.run(self._derive, self.borders)

    def _derive(self, start: int, stop: int) -> None:
        part, point = slice(start, stop), self.point
        derive_block(point.samples, start, self.p[part], self.numbers[B], point.a[part], point.d[part])

    def add_up(self) -> None:
        """Compute the totals at x, and F before the last step, unless they are there."""
        if self.has_one_range:
            _run(self.errand, TOTALS)
            return
        if lacks_value_before(self.course):
            self.course[BEFORE] = self.point.samples.value(self.point.saved_p, float(self.course[B_BEFORE]))
        if self.numbers[IS_TOTAL] == 0.0:
            self.point.totals[:] = functools.reduce(np.add, threads.run(self._total, self.borders))
            self.numbers[IS_TOTAL] = 1.0

    def _total(self, start: int, stop: int) -> np.ndarray:
        part, point, totals = slice(start, stop), self.point, np.zeros(self.point.totals.size)
        total_block(point.samples, start, self.p[part], self.numbers[B], point.a[part], point.d[part], totals)
        return totals

    def correlate(self, first: int = 0) -> None:
        """Compute the correlations of the atoms, or of those from ``first`` on if the others are known."""
        point, mu = self.point, self.numbers[MU]
        if first == 0:
            self.numbers[LEVEL] = self.atoms.correlate(point.a, mu, point.x, 0.0, point.correlation[: self.size])
            return
        atoms = self.atoms.columns, self.atoms.features
        largest = correlate_atoms(*atoms, point.a, mu, point.x, 0.0, point.correlation, first, self.size)
        self.numbers[LEVEL] = max(float(self.numbers[LEVEL]), largest)

    def ask(self, oracle: Oracle, level: float) -> Scan:
        """Let the oracle find the features whose correlations exceed a level."""
        return oracle.move_and_scan(self.point.R, self.point.a, self.numbers[MU], level, level)


@kernel
def lacks_value_before(course):
    """Tell whether a step is to be judged by F, and F before it is not known."""
    return course[STAGE] == STEPPED and math.isnan(course[BEFORE])


@kernel
def _run(errand, what):
    errand.run(what)
