"""Point: a feasible w with its gradient, best vertex and gap, updated after each move."""

from __future__ import annotations

from typing import Any, Protocol, Unpack

import numpy as np

from condgrad.constraints.vertices import Vertex
from condgrad.linalg.saved import take_floats
from condgrad.linalg.vectors import inner
from condgrad.problems.active_set import ActiveSet
from condgrad.problems.evaluation import Evaluation, gap_at
from condgrad.problems.segment import Course, Segment


class Whole(Protocol):
    """The attributes and methods of a problem that a point uses."""

    n_samples: int
    n_features: int

    @property
    def is_convex(self) -> bool:
        """Whether F is convex."""

    def lmo(self, r: np.ndarray) -> Vertex:
        """Return a vertex that minimises <r, s>."""

    def evaluate(self, w: np.ndarray) -> Evaluation:
        """Return the results of a fresh pass at w."""

    def objective(self, w: np.ndarray) -> float:
        """Return F(w)."""

    def gradient(self, w: np.ndarray) -> np.ndarray:
        """Return the gradient of F at w."""

    def lipschitz(self) -> float:
        """Return a Lipschitz constant of grad F; inf if none is known."""


class Point:
    """The iterate of a solver that uses the whole gradient.

    After every move ``r`` (gradient), ``s`` (vertex that minimises <r, s>) and ``gap`` are those of the new ``w``. For
    each kind of problem a subclass defines how the gradient is computed and what else is stored for it.
    """

    b = 0.0  # the intercept; 0 for a problem without one
    # What a checkpoint saves:
    numbers: tuple[str, ...] = ("gap", "is_still", "is_fresh", "gradient_evaluations", "lmo_calls")
    arrays: tuple[str, ...] = ("w",)

    def __init__(self, problem: Whole, w: np.ndarray) -> None:
        self.problem = problem
        self.gradient_evaluations = 0
        self.lmo_calls = 0
        self.is_still = False  # whether the last move had length 0
        self.is_fresh = True  # whether all values were computed at w itself, not updated along moves
        self.last_gap = np.inf  # what the oracle found when it was called last, here or at an earlier w
        self.reset(w)

    def reset(self, w: np.ndarray) -> None:
        """Go to ``w`` and compute everything anew."""
        self.w = np.array(w, dtype=np.float64)
        self.r: Any = None  # None: out of date
        self.gap = np.inf  # inf: unknown until the oracle is called
        self._arrive()
        self.ask_oracle()
        self.is_fresh = True

    def segment(self, **course: Unpack[Course]) -> Segment:
        """Return F along a line from here."""
        raise NotImplementedError

    def move(self, line: Segment, gamma: float, *, asks: bool = True) -> None:
        """Go to w + gamma d along a segment that starts here; with ``asks=False`` r, s and gap are not computed."""
        line.add_to(self.w, gamma)
        self.is_still = gamma == 0.0
        self.is_fresh = False
        self.gap = np.inf
        if not asks:
            self.r = None
        self._update(line, gamma)
        if asks:
            self.ask_oracle()

    def differentiate(self) -> None:
        """Compute r if it is out of date, without calling the oracle."""
        if self.r is None:
            self.r = self._gradient()

    def ask_oracle(self) -> None:
        """Compute r if it is out of date, then the best vertex and the gap."""
        self.differentiate()
        self.s = self.problem.lmo(self.r)
        self.gap = self.last_gap = max(gap_at(self.r, self.w, self.s), 0.0)
        self.lmo_calls += 1

    def along(self) -> float:
        """Return <r, w>."""
        return inner(self.r, self.w)

    def evaluate(self) -> Evaluation:
        """Return the evaluation at w from the stored values; only the objective costs a sum over the samples.

        If w has not moved since the last ``reset``, a fresh pass certifies it instead.
        """
        if self.is_fresh:
            return self.problem.evaluate(self.w)
        if self.gap == np.inf:
            self.ask_oracle()
        return Evaluation(self._objective(), self.r, self.gap, self.s, self._intercept())

    def knows_atoms(self, active: ActiveSet) -> bool:
        """Return whether ``atom_products`` supports these atoms."""
        return False

    def atom_products(self, active: ActiveSet) -> np.ndarray:
        """Return <grad F(w), v_k> for every active atom, without the rest of the gradient."""
        raise NotImplementedError

    def snapshot(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the whole state of the point, as numbers and as arrays."""
        names = self.arrays if self.r is None else (*self.arrays, "r")
        return {name: getattr(self, name) for name in self.numbers}, {name: getattr(self, name) for name in names}

    def restore(self, numbers: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Restore a snapshot."""
        for name in self.numbers:
            setattr(self, name, numbers[name])
        for name in self.arrays:
            setattr(self, name, take_floats(arrays, name, *getattr(self, name).shape))
        self.r = take_floats(arrays, "r", self.w.size) if "r" in arrays else None
        if self.r is not None:
            self.s = self.problem.lmo(self.r)
        elif self.gap < np.inf:
            raise ValueError("it has no array 'r' for its gap")

    def _arrive(self) -> None:
        """Compute all stored values except r, at a new w."""

    def _update(self, line: Segment, gamma: float) -> None:
        """Update the stored values after a move of w; set r to None if it must be computed anew."""
        self.r = None

    def _gradient(self) -> np.ndarray:
        raise NotImplementedError

    def _objective(self) -> float:
        raise NotImplementedError

    def _intercept(self) -> Any:
        """Return the intercept for the columns as the user gave them."""
        return self.b
