"""ColumnRows: the samples of a problem whose columns lie on disk, for the solvers of :func:`condgrad.minimize`.

A look reads the columns on which w is not zero, which are mostly in memory, and then all columns once.
"""

from __future__ import annotations

import functools
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from condgrad.linalg.convert import as_targets, as_weights
from condgrad.linalg.interrupts import Interrupts
from condgrad.losses._protocol import as_loss
from condgrad.paths.disk_columns import DiskColumns, Question
from condgrad.paths.gauges import Gauge, gauge_of
from condgrad.problems.active_set import AtomStack, Stack
from condgrad.problems.base import BaseProblem, Feature
from condgrad.problems.linear import Problem
from condgrad.problems.offset import as_offset
from condgrad.problems.rows.base import AnyPass, Found, Rows, Task
from condgrad.problems.rows.findings import GradientSums, Joined, Measures, Pass
from condgrad.problems.rows.memory import MemoryRows
from condgrad.problems.samples import Samples
from condgrad.storage.stored_columns import StoredColumns


class ColumnRows(Rows):
    """All samples as one block.

    Parameters
    ----------
    stored : StoredColumns
    samples : Samples
    has_intercept : bool
        Whether columns with far means are centred, because an intercept takes up what is subtracted.
    gauge : Gauge
        The norm of the path, by whose weights its features are divided.
    """

    offers = BaseProblem.offers | {Feature.CURVATURE}

    def __init__(self, stored: StoredColumns, samples: Samples, has_intercept: bool, gauge: Gauge) -> None:
        self.stored, self.samples, self.has_intercept, self.gauge = stored, samples, has_intercept, gauge
        self.n_samples, self.n_features = stored.shape

    @functools.cached_property
    def residual(self) -> np.ndarray:
        """Minus the derivatives of the loss at w = 0 with the best intercept, without the weights of the samples."""
        zeros, samples = np.zeros(self.n_samples), self.samples
        b = samples.best_intercept(zeros, 0.0) if self.has_intercept else 0.0
        a, R = samples.derivatives(zeros, b), np.zeros(self.n_samples)
        return np.divide(-a, samples.weight, out=R, where=samples.weight > 0.0)

    @functools.cached_property
    def columns(self) -> DiskColumns:
        """The features of the path: all columns are read once."""
        question = Question(self.samples.weight, self.residual, self.has_intercept, standardize=False)
        return DiskColumns(self.stored, question, self.gauge)

    def read_first(self) -> None:
        """Read all columns once, to check and measure them, unless that is done."""
        _ = self.columns

    @property
    def n_reads(self) -> float:
        """How often X has been read; single columns count by their share."""
        return self.stored.n_reads

    @property
    def bytes_of_pass(self) -> int:
        """The number of bytes of all columns."""
        return self.stored.n_bytes

    def sweep(self, task: Task[Found], w: np.ndarray) -> Found:
        """Run a task on all samples."""
        return task(_AllSamples(self), w)

    def head(self, n_rows: int) -> Rows:
        """Return all samples: a subsample would be a read of all columns."""
        return self

    def curvature(self, found: AnyPass, atoms: Stack, n_rows: float, n_known: int, has_intercept: bool) -> np.ndarray:
        """Return the curvature on atoms with one entry, from their columns."""
        if not isinstance(atoms, AtomStack):
            raise TypeError("columns on disk need sets whose vertices have a single entry; use data in memory.")
        matrix, places = self.columns.matrix(atoms.index)
        here = AtomStack(places, atoms.value)
        return MemoryRows(matrix, self.samples).curvature(found, here, n_rows, n_known, has_intercept)

    def with_targets(self, y: np.ndarray) -> Self:
        """Return the same columns with other targets."""
        return type(self)(self.stored, self.samples._replace(y=y), self.has_intercept, self.gauge)

    def definition(self) -> tuple[object, ...]:
        """Return shape, file, loss, targets and weights."""
        return (self.stored.shape, str(self.stored.path), self.samples)

    @property
    def cost_of_pass(self) -> float:
        """Two multiply-adds for every stored entry of X."""
        return 2.0 * self.stored.n_stored

    def along_shift(self, w: np.ndarray, features: np.ndarray | None = None) -> float:
        """Return <shift, w> for centred columns."""
        shift = self.columns.shift
        return float((shift if features is None else shift[features]) @ w)


class _AllSamples:
    """All samples of columns on disk, as the block of a pass."""

    def __init__(self, rows: ColumnRows) -> None:
        self.columns, self.samples = rows.columns, rows.samples

    def predict(self, w: np.ndarray) -> np.ndarray:
        """Return X w, from the columns on which w is not zero."""
        used = np.flatnonzero(w)
        matrix, places = self.columns.matrix(used)
        of_places = np.zeros(matrix.shape[1])
        of_places[places] = w[used]
        return matrix.dot(of_places) if used.size else np.zeros(self.samples.y.size)

    def expand(self, w: np.ndarray, b: float, p: np.ndarray | None, sums: GradientSums | None) -> Pass:
        """Return sums, gradient and curvatures; there is no other block to add to."""
        totals, alpha, d = self.samples.expand(self.predict(w) if p is None else p, b)
        return Pass(totals, self.combine(alpha), Joined((d,)))

    def combine(self, a: np.ndarray) -> np.ndarray:
        """Return X'a, in one read of all columns."""
        parts = []
        for block, _ in self.columns.blocks():
            Interrupts.end_pass()
            parts.append(block.matrix.transpose_dot(a))
        return np.concatenate(parts)

    def measure(self) -> Measures:
        """Return the sizes of the columns, which the first read has measured."""
        return Measures(self.columns.squares(), self.columns.largest_entry)


def problem_on_disk(
    stored: StoredColumns,
    y: ArrayLike,
    loss: object,
    constraint: object,
    *,
    sample_weight: ArrayLike | None,
    offset: ArrayLike | None,
    intercept: bool,
) -> Problem:
    """Return the problem of a path on columns on disk; raise one sentence if the path needs them in memory."""
    gauge, n_samples = gauge_of(constraint), stored.shape[0]
    if gauge is None:
        raise ValueError(
            "columns on disk need an l1 ball, a weighted or a non-negative one; got "
            f"{type(constraint).__name__}. Use data in memory for other sets."
        )
    weight, known = as_weights(sample_weight, n_samples), as_offset(offset, n_samples)
    samples = Samples(as_loss(loss), as_targets(y, n_samples), weight, known)
    rows = ColumnRows(stored, samples, intercept, gauge)
    problem = Problem.of_rows(rows, constraint, intercept=intercept)
    if not problem.is_convex:
        raise ValueError(f"columns on disk need a convex loss; {type(loss).__name__} is not. Use data in memory.")
    return problem
