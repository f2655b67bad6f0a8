"""Point: a feasible w with its predictions, gradient, best vertex and gap, kept up to date as it moves."""

from __future__ import annotations

from typing import Any

import numpy as np

from condgrad import samples as outer
from condgrad.linalg.vectors import inner
from condgrad.problem import Evaluation, Problem, gap_at
from condgrad.segment import PredictionSegment

_SAVED = ("b", "gap", "is_still", "gradient_evaluations", "lmo_calls", "_touched")  # by a checkpoint


class Point:
    """The iterate of a solver that sees the whole gradient.

    After every move ``p = Xw``, ``alpha`` (derivatives), ``r`` (gradient), ``s`` (vertex that minimises <r, s>) and
    ``gap`` are those of the new ``w``. A move along a sparse direction changes few predictions: then only their
    derivatives and rows are touched. ``refresh`` computes everything anew, which bounds the rounding error.
    """

    def __init__(self, problem: Problem, w: np.ndarray) -> None:
        self.problem = problem
        self.r: Any = None  # None: out of date
        self.b = 0.0
        self.gradient_evaluations = 0
        self.lmo_calls = 0
        self.is_still = False  # whether the last move had no length
        self.reset(w)

    def reset(self, w: np.ndarray) -> None:
        """Go to ``w`` and compute everything anew."""
        self.w = np.array(w, dtype=np.float64)
        self.p = self.problem.matrix.dot(self.w)
        self._touched = 0  # entries of X used by partial updates since the last full gradient
        self._derive()
        self.look()

    def segment(self, **course: Any) -> PredictionSegment:
        """Return F along a line from here."""
        return PredictionSegment(self, **course)

    def move(self, line: Any, gamma: float, *, look: bool = True) -> None:
        """Go to w + gamma d along a segment that starts here; ``look=False`` leaves r, s and gap unknown."""
        line.add_to(self.w, gamma)
        self.is_still = gamma == 0.0
        if not look:
            self.r = None
        if line.rows is None:
            self.p += gamma * line.q
            self._derive()
        else:
            self.p[line.rows] += gamma * line.q
            self._rederive(line.rows)
        if look:
            self.look()

    def look(self) -> None:
        """Compute r where it is out of date, then the best vertex and the gap."""
        if self.r is None:
            self.r = self.problem.matrix.transpose_dot(self.alpha)
            self._touched = 0
        self.s = self.problem.lmo(self.r)
        self.gap = gap_at(self.r, self.w, self.s)
        self.lmo_calls += 1

    def along(self) -> float:
        """Return <r, w>."""
        return inner(self.r, self.w)

    def evaluate(self) -> Evaluation:
        """Return what is known of w; the objective costs one sum over the samples, the rest nothing."""
        if self.r is None:
            self.look()
        return Evaluation(outer.value(self.problem.samples, self.p, self.b), self.r, self.gap, self.s, self.b)

    def snapshot(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return all that is kept, as numbers and as arrays."""
        arrays = {"w": self.w, "p": self.p, "alpha": self.alpha}
        if self.r is not None:
            arrays["r"] = self.r
        return {name: getattr(self, name) for name in _SAVED}, arrays

    def restore(self, numbers: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Go back to a snapshot."""
        for name in _SAVED:
            setattr(self, name, numbers[name])
        self.w, self.p, self.alpha, self.r = arrays["w"], arrays["p"], arrays["alpha"], arrays.get("r")
        self.s = None if self.r is None else self.problem.lmo(self.r)

    def _derive(self) -> None:
        if self.problem.has_intercept:
            self.b = outer.best_intercept(self.problem.samples, self.p, self.b)
        self.alpha = outer.derivatives(self.problem.samples, self.p, self.b)
        self.gradient_evaluations += self.p.size
        self.r = None
        self.gap = np.inf  # not known before the next look

    def _rederive(self, rows: np.ndarray) -> None:
        matrix = self.problem.matrix
        if self.problem.has_intercept:  # b moves, and every derivative with it
            self._derive()
            return
        change = outer.rederive(self.problem.samples, rows, self.p, self.b, self.alpha)
        self.gradient_evaluations += rows.size
        self.gap = np.inf
        if self.r is None:
            return
        stored = matrix.count_stored(rows)
        self._touched += stored
        # An entry costs several times more here than in a full pass, which also ends the rounding errors that pile up.
        if 8 * stored < matrix.n_stored and self._touched < matrix.n_stored:
            matrix.add_rows(rows, change, self.r)
        else:
            self.r = None
