"""TiltedProblem: F on a subsample plus a linear term, which gives it the gradient of another F at one point."""

from __future__ import annotations

import numpy as np

from condgrad.constraints.vertices import Vertex
from condgrad.linalg import convert
from condgrad.linalg.factored import IterateLike
from condgrad.linalg.vectors import inner
from condgrad.problems.active_set import Stack
from condgrad.problems.base import BaseProblem
from condgrad.problems.evaluation import Evaluation, gap_at
from condgrad.problems.look import Look


class TiltedProblem(BaseProblem):
    """Minimise F_S(w) + <tilt, w> over the set of a problem with the objective F_S.

    With tilt = grad F(u) - grad F_S(u) its gradient at u is that of F. If S is a large sample of all data, its
    curvature is nearly that of F too, and its minimiser is much closer to that of F than u is.
    """

    def __init__(self, part: BaseProblem, tilt: np.ndarray) -> None:
        self.on_sample, self.tilt = part, tilt
        self.n_samples, self.n_features, self.constraint = part.n_samples, part.n_features, part.constraint
        self.offers, self.has_intercept, self.is_quadratic = part.offers, part.has_intercept, part.is_quadratic

    @property
    def is_convex(self) -> bool:
        """Whether F_S is convex."""
        return self.on_sample.is_convex

    @property
    def cost_of_pass(self) -> float:
        """The cost of a pass over the subsample."""
        return self.on_sample.cost_of_pass

    def look(self, w: IterateLike) -> TiltedLook:
        """Make a pass at w over the subsample; nothing is certified, as this is a step of another problem."""
        w = convert.as_point(w, self.n_features, "w")
        seen = self.on_sample.look(w)
        r = seen.gradient + self.tilt
        s = self.lmo(r)
        value, gap = seen.objective + float(inner(self.tilt, w)), max(0.0, gap_at(r, w, s))
        return TiltedLook(Evaluation(value, r, gap, s, seen.intercept, offset=seen.evaluation.offset), seen)


class TiltedLook(Look):
    """A pass over the subsample; a linear term has no curvature."""

    def __init__(self, evaluation: Evaluation, seen: Look) -> None:
        super().__init__(evaluation)
        self.seen = seen

    def curvature(
        self, atoms: Stack | list[Vertex], known: np.ndarray | None = None, n_rows: float = np.inf
    ) -> np.ndarray:
        """Return the curvature on the atoms, of the subsample."""
        return self.seen.curvature(atoms, known, n_rows)
