"""Point: a feasible w with its gradient, best vertex and gap, kept up to date as it moves."""

from __future__ import annotations

from typing import Any, Protocol, Unpack, cast

import numpy as np

from condgrad.constraints.vertices import Vertex
from condgrad.linalg.vectors import inner
from condgrad.problems.active_set import ActiveSet
from condgrad.problems.evaluation import Evaluation, gap_at
from condgrad.problems.segment import Course, Segment


class Whole(Protocol):
    """What a point asks of its problem."""

    n_samples: int
    n_features: int

    @property
    def is_convex(self) -> bool:
        """Whether F is convex."""

    def lmo(self, r: np.ndarray) -> Vertex:
        """Return a vertex that minimises <r, s>."""

    def evaluate(self, w: np.ndarray) -> Evaluation:
        """Return what a fresh pass tells about w."""

    def objective(self, w: np.ndarray) -> float:
        """Return F(w)."""

    def gradient(self, w: np.ndarray) -> np.ndarray:
        """Return the gradient of F at w."""

    def lipschitz(self) -> float:
        """Return a Lipschitz constant of grad F; inf where none is known."""


class Point:
    """The iterate of a solver that sees the whole gradient.

    After every move ``r`` (gradient), ``s`` (vertex that minimises <r, s>) and ``gap`` are those of the new ``w``. A
    kind of problem says, in a class of its own, how the gradient is found and what else is kept for it.
    """

    b = 0.0  # the intercept, where the problem has one
    # What a checkpoint saves:
    numbers: tuple[str, ...] = ("gap", "is_still", "is_fresh", "gradient_evaluations", "lmo_calls")
    arrays: tuple[str, ...] = ("w",)

    def __init__(self, problem: Whole, w: np.ndarray) -> None:
        self.problem = problem
        self.gradient_evaluations = 0
        self.lmo_calls = 0
        self.is_still = False  # whether the last move had no length
        self.is_fresh = True  # whether all that is known comes from a look at w itself, not from moves
        self.reset(w)

    def reset(self, w: np.ndarray) -> None:
        """Go to ``w`` and compute everything anew."""
        self.w = np.array(w, dtype=np.float64)
        self.r: Any = None  # None: out of date
        self.gap = np.inf  # inf: not known before the next look
        self._arrive()
        self.ask_oracle()
        self.is_fresh = True

    def segment(self, **course: Unpack[Course]) -> Segment:
        """Return F along a line from here."""
        raise NotImplementedError

    def move(self, line: Segment, gamma: float, *, asks: bool = True) -> None:
        """Go to w + gamma d along a segment that starts here; ``asks=False`` leaves r, s and gap unknown."""
        line.add_to(self.w, gamma)
        self.is_still = gamma == 0.0
        self.is_fresh = False
        self.gap = np.inf
        if not asks:
            self.r = None
        self._follow(line, gamma)
        if asks:
            self.ask_oracle()

    def differentiate(self) -> None:
        """Compute r where it is out of date, and ask the oracle nothing."""
        if self.r is None:
            self.r = self._gradient()

    def ask_oracle(self) -> None:
        """Compute r where it is out of date, then the best vertex and the gap."""
        self.differentiate()
        self.s = self.problem.lmo(self.r)
        self.gap = max(gap_at(self.r, self.w, self.s), 0.0)
        self.lmo_calls += 1

    def along(self) -> float:
        """Return <r, w>."""
        return inner(self.r, self.w)

    def evaluate(self) -> Evaluation:
        """Return what is known of w; the objective costs one sum over the samples, the rest nothing.

        Where w has not moved since it was last computed anew, a fresh pass certifies it.
        """
        if self.is_fresh:
            return self.problem.evaluate(self.w)
        if self.gap == np.inf:
            self.ask_oracle()
        return Evaluation(self._objective(), self.r, self.gap, self.s, self._intercept())

    def knows_atoms(self, active: ActiveSet) -> bool:
        """Tell whether ``atom_products`` works for these atoms."""
        return False

    def atom_products(self, active: ActiveSet) -> np.ndarray:
        """Return <grad F(w), v_k> for every active atom, without the rest of the gradient."""
        raise NotImplementedError

    def snapshot(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return all that is kept, as numbers and as arrays."""
        names = self.arrays if self.r is None else (*self.arrays, "r")
        return {name: getattr(self, name) for name in self.numbers}, {name: getattr(self, name) for name in names}

    def restore(self, numbers: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Go back to a snapshot."""
        for name in self.numbers:
            setattr(self, name, numbers[name])
        for name in self.arrays:
            setattr(self, name, arrays[name])
        self.r = arrays.get("r")
        self.s = cast("Vertex", None if self.r is None else self.problem.lmo(self.r))  # asked for before it is read

    def _arrive(self) -> None:
        """Compute what is kept besides r, at a new w."""

    def _follow(self, line: Segment, gamma: float) -> None:
        """Bring what is kept up to date after w has moved; r, or None where it must be computed anew."""
        self.r = None

    def _gradient(self) -> np.ndarray:
        raise NotImplementedError

    def _objective(self) -> float:
        raise NotImplementedError

    def _intercept(self) -> Any:
        """Return the intercept as users know it."""
        return self.b
