"""ThreadedPoint: a SmoothPoint of large data, whose passes run on all cores."""

from __future__ import annotations

import functools

import numpy as np

from condgrad.linalg import threads
from condgrad.paths.columns import offsets_of
from condgrad.paths.oracle import LazyBounds, move, scan
from condgrad.paths.smooth_point import IS_TOTAL, LEVEL, MU, B, SmoothPoint, take_residual
from condgrad.paths.working_set import Atoms
from condgrad.problems.samples import derive_block, total_block

_WORK_PER_SAMPLE = 20  # cost of a sample in multiply-adds: that of a loss with an exponential, about
_WORTH_THREADS = 4_000_000  # multiply-adds of a pass from which threads win more than the search in Python costs


def is_worth_threads(n_samples: int, n_stored: int) -> bool:
    """Return whether passes over data of that size should run on all cores."""
    return threads.n_threads() > 1 and _WORK_PER_SAMPLE * n_samples + n_stored > _WORTH_THREADS


class ThreadedPoint:
    """The arrays of a point and its search, which Python runs: the same methods, with other passes."""

    pursue, guess, step = SmoothPoint.pursue, SmoothPoint.guess, SmoothPoint.step

    def __init__(self, point: SmoothPoint, n_stored: int) -> None:
        self.samples, self.columns, self.has_intercept = point.samples, point.columns, point.has_intercept
        self.features, self.model, self.totals, self.numbers = point.features, point.model, point.totals, point.numbers
        self.x, self.before, self.saved, self.correlation = point.x, point.before, point.saved, point.correlation
        self.p, self.a, self.R, self.d, self.saved_p = point.p, point.a, point.R, point.d, point.saved_p
        n = self.p.size
        self.borders = threads.cut(n, _WORK_PER_SAMPLE * n)
        self.apart = threads.cut(self.columns.norm.size, n_stored, offsets_of(self.columns))
        self.size = int(self.model.n_atoms())
        self.atoms = Atoms(self.columns, self.features[: self.size])

    def arrive(self, wants_totals: bool) -> None:
        """Compute everything that belongs to x; the totals only where they are wanted."""
        self.p[:] = self.atoms.predict(self.x[: self.size])
        if self.has_intercept:
            self.numbers[B] = self.samples.best_intercept(self.p, self.numbers[B])

        def derive(start: int, stop: int) -> None:
            part = slice(start, stop)
            derive_block(self.samples, start, self.p[part], self.numbers[B], self.a[part], self.d[part])

        threads.run(derive, self.borders)
        take_residual(self.columns.weight, self.p, self.x, self.a, self.R, self.numbers, self.size)
        self.correlate()
        if wants_totals:
            self.add_up()

    def add_up(self) -> None:
        """Compute the totals, unless they are there."""
        if self.numbers[IS_TOTAL] > 0.0:
            return

        def total(start: int, stop: int) -> np.ndarray:
            part, totals = slice(start, stop), np.zeros(self.totals.size)
            total_block(self.samples, start, self.p[part], self.numbers[B], self.a[part], self.d[part], totals)
            return totals

        self.totals[:] = functools.reduce(np.add, threads.run(total, self.borders))
        self.numbers[IS_TOTAL] = 1.0

    def value_before(self, b: float) -> float:
        """Return F at ``saved_p`` with the intercept b."""
        return self.samples.value(self.saved_p, b)

    def correlate(self) -> None:
        """Compute the correlations of the atoms."""
        zeros, out = np.zeros(self.size), self.correlation[: self.size]
        self.numbers[LEVEL] = self.atoms.correlate(self.a, self.numbers[MU], zeros, 0.0, out)

    def ask(self, bounds: LazyBounds, level: float) -> None:
        """Let ``bounds`` find the features whose correlations exceed a level."""
        move(bounds, self.columns.weight, self.R)
        scan(bounds, self.columns, self.a, self.numbers[MU], level, level, self.apart)
