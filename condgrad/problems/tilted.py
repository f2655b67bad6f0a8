"""TiltedProblem: F on a subsample plus terms that give it gradient and curvature of another F at one point."""

from __future__ import annotations

import numpy as np

from condgrad.constraints.vertices import Vertex
from condgrad.linalg import convert
from condgrad.linalg.factored import IterateLike
from condgrad.linalg.vectors import inner
from condgrad.problems.active_set import AtomStack, Stack, as_stack
from condgrad.problems.base import BaseProblem
from condgrad.problems.evaluation import Evaluation, gap_at
from condgrad.problems.look import Bends, Look


class Bowl:
    """The quadratic (w - u)'Q(w - u)/2 on some features; Q may have negative eigenvalues."""

    def __init__(self, features: np.ndarray, Q: np.ndarray, u: np.ndarray) -> None:
        self.features, self.Q, self.centre, self.n_features = features, Q, u[features], u.size

    @classmethod
    def between(cls, of_all: Bends, on_sample: Look, u: np.ndarray) -> Bowl:
        """Return the difference of the second derivatives of two objectives at u."""
        atoms = AtomStack(of_all.features, np.ones(of_all.features.size))
        return cls(of_all.features, of_all.H - on_sample.curvature(atoms), u)

    def at(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the value at w, and the derivatives by the features."""
        step = w[self.features] - self.centre
        r: np.ndarray = self.Q @ step
        return 0.5 * float(inner(r, step)), r

    def curvature(self, atoms: Stack) -> np.ndarray:
        """Return <v_k, Q v_l> for all pairs of atoms."""
        if isinstance(atoms, AtomStack):
            order = np.argsort(self.features)
            at = order[np.searchsorted(self.features, atoms.index, sorter=order).clip(max=order.size - 1)]
            value = np.where(self.features[at] == atoms.index, atoms.value, 0.0)
            H: np.ndarray = self.Q[np.ix_(at, at)] * np.outer(value, value)
            return H
        V = np.array([atoms.vertex(k).to_dense(self.n_features)[self.features] for k in range(len(atoms))])
        product: np.ndarray = V @ self.Q @ V.T
        return product


class TiltedProblem(BaseProblem):
    """Minimise F_S(w) + <tilt, w>, plus a quadratic, over the set of a problem with the objective F_S.

    With tilt = grad F(u) - grad F_S(u) its gradient at u is that of F. If S is a large sample of all data, its
    curvature is nearly that of F too, and its minimiser is much closer to that of F than u is. The error of the
    curvature on k features is about sqrt(k / |S|) of it. The ``bowl`` corrects it on features for which the second
    derivatives of F at u are known.
    """

    def __init__(self, part: BaseProblem, tilt: np.ndarray, bowl: Bowl | None = None) -> None:
        self.on_sample, self.tilt, self.bowl = part, tilt, bowl
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
        r, value = seen.gradient + self.tilt, seen.objective + float(inner(self.tilt, w))
        if self.bowl is not None:
            more, slopes = self.bowl.at(w)
            value += more
            r[self.bowl.features] += slopes
        s = self.lmo(r)
        gap = max(0.0, gap_at(r, w, s))
        return TiltedLook(Evaluation(value, r, gap, s, seen.intercept, offset=seen.evaluation.offset), seen, self.bowl)


class TiltedLook(Look):
    """A pass over the subsample; a linear term has no curvature, and that of the bowl is the same everywhere."""

    def __init__(self, evaluation: Evaluation, seen: Look, bowl: Bowl | None) -> None:
        super().__init__(evaluation)
        self.seen, self.bowl = seen, bowl

    def curvature(
        self, atoms: Stack | list[Vertex], known: np.ndarray | None = None, n_rows: float = np.inf
    ) -> np.ndarray:
        """Return the curvature on the atoms: of the subsample, and of the bowl."""
        if self.bowl is None:
            return self.seen.curvature(atoms, known, n_rows)
        atoms = as_stack(atoms)
        H: np.ndarray = self.seen.curvature(atoms, None, n_rows) + self.bowl.curvature(atoms)
        if known is not None:
            H[: known.shape[0], : known.shape[0]] = known
        return H
