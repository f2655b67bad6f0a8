"""SmoothPasses: what the search of a smooth loss needs of samples and columns, on all cores where they are many."""

from __future__ import annotations

import functools

import numpy as np

from condgrad.linalg import threads
from condgrad.paths.oracle import Oracle, Scan
from condgrad.paths.smooth_point import IS_TOTAL, LEVEL, MU, B, SmoothPoint, settle, take_residual
from condgrad.paths.working_set import Atoms
from condgrad.problems.samples import derive_block, expand_block, total_block

_CALLS = 100_000.0  # work of the calls of one step, in multiply-adds
_SMALL = 1500  # samples up to which another call costs more than totals that may not be needed
_WORK_PER_SAMPLE = 20  # cost of a sample in multiply-adds: that of a loss with an exponential, about


class SmoothPasses:
    """The passes at a point, whose arrays they set.

    Attributes
    ----------
    atoms : Atoms
        The columns of the working set.
    has_few_samples : bool
        Whether the samples are so few that the totals are computed with every evaluation.
    """

    def __init__(self, point: SmoothPoint) -> None:
        self.point, self.numbers, self.p = point, point.numbers, point.p
        self.borders = threads.cut(self.p.size, _WORK_PER_SAMPLE * self.p.size)
        self.has_few_samples = self.p.size <= _SMALL
        self.size = int(point.model.n_atoms())
        self.atoms = Atoms(*point.columns.chosen(point.features[: self.size]))

    @property
    def work(self) -> float:
        """How much work a step is, in multiply-adds."""
        return _CALLS + 2.0 * self.atoms.n_stored + _WORK_PER_SAMPLE * self.p.size

    def begin(self) -> None:
        """Compute everything that belongs to x = 0."""
        self.evaluate()
        take_residual(self.point.columns.weight, self.p, self.point.x, self.point.a, self.point.R, self.numbers, 0)
        if self.has_few_samples:
            self.numbers[IS_TOTAL] = 1.0
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
        if self.has_few_samples:
            self.numbers[IS_TOTAL] = 1.0
        elif wants_totals:
            self.add_up()

    def evaluate(self) -> None:
        """Compute the derivatives and curvatures at p, and the totals if the samples are few."""
        point = self.point
        if point.has_intercept:
            self.numbers[B] = point.samples.best_intercept(self.p, self.numbers[B])
        if self.has_few_samples:
            point.totals[:] = 0.0
            expand_block(point.samples, 0, self.p, self.numbers[B], point.a, point.d, point.totals)
        else:
            threads.run(self._derive, self.borders)

    def _derive(self, start: int, stop: int) -> None:
        part, point = slice(start, stop), self.point
        derive_block(point.samples, start, self.p[part], self.numbers[B], point.a[part], point.d[part])

    def add_up(self) -> None:
        """Compute the totals, unless they are there."""
        if self.numbers[IS_TOTAL] > 0.0:
            return
        self.point.totals[:] = functools.reduce(np.add, threads.run(self._total, self.borders))
        self.numbers[IS_TOTAL] = 1.0

    def _total(self, start: int, stop: int) -> np.ndarray:
        part, point, totals = slice(start, stop), self.point, np.zeros(self.point.totals.size)
        total_block(point.samples, start, self.p[part], self.numbers[B], point.a[part], point.d[part], totals)
        return totals

    def correlate(self) -> None:
        """Compute the correlations of the atoms."""
        out, x = self.point.correlation[: self.size], self.point.x
        self.numbers[LEVEL] = self.atoms.correlate(self.point.a, self.numbers[MU], x, 0.0, out)

    def ask(self, oracle: Oracle, level: float) -> Scan:
        """Let the oracle find the features whose correlations exceed a level."""
        return oracle.move_and_scan(self.point.R, self.point.a, self.numbers[MU], level, level)
