"""F itself over an l1 ball of some atoms, minimised through their columns, where Gram matrices would cost more.

Newton's method in rounds. A round makes the Taylor model of F at the present coefficients, which costs a product with
the columns and one with their transpose, and minimises it roughly: by sweeps of coordinate descent, which find the
support fast and then converge slowly, or, once sweeps hardly change the support, by conjugate gradients on it. So
several models, not one, follow on a pass over all columns.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from condgrad.problems.active_set import AtomStack, Stack
from condgrad.problems.base import BaseProblem
from condgrad.problems.column_part import ColumnPart
from condgrad.problems.look import Look
from condgrad.solvers.full_pass.descent import Descended, Limits

_MANY_FEATURES = 1000  # number of features of sparse data from which on sweeps are considered
_MOST_DENSE = 4_000_000  # entries of dense data up to which a cache holds the columns in use
_ACCURACY = 0.1  # gap over the atoms, relative to that of the last pass, at which a pass comes next
_MOST_ROUNDS = 500  # between two passes
_FACTOR, _SWEEP = 30.0, 3.0  # atoms for one more multiply-add for a pair of them in a model; for an entry, in a sweep
_PRODUCTS = 8  # products with the second derivatives of a round of conjugate gradients
_SETTLED = 0.01  # share of the coefficients in use that may have come or gone in a round before these
_NEWTON = 0.5  # share of the least gap so far below which that after conjugate gradients must fall to go on with them
_HARM, _PAUSE = 8.0, 8  # gap, over the least one, with which they are taken back; rounds of sweeps that follow
_PATIENCE, _PATIENT = 5, 0.1  # rounds in sequence without progress that are made at least, and as a share of the most
_FALL = 0.001  # share of F by which it must fall to be progress while the gap does not fall
_INSIDE = 0.9  # norm below which coefficients are not scaled up to the boundary of the ball
_FAR = 0.5  # norm up to which the ball does not bind, as far as is known
_FIRST = 0.3  # multiplier of the ball at w = 0, as a share of the steepest slope


class Terms(NamedTuple):
    """When sweeps are made, and how many, on data of one kind.

    Attributes
    ----------
    many : int
        Number of atoms from which on sweeps cost less than a model.
    some : int
        Number of atoms in use from which on many are likely to follow.
    at_once : bool
        Whether many are likely to follow on w = 0.
    new : int
        Number of new atoms, at least, where many are likely to follow.
    sweeps : int
        Sweeps of a round.
    fewest : int
        Rounds between two passes that are always allowed.
    pair : float
        Multiply-adds of a model for a pair of atoms, besides its factors.
    slow : float
        Share of the last gap below which that of a pass must fall, if a step has not reached its own goal.
    forgiven : int
        Slow steps in sequence after which sweeps go on: where classes can almost be separated, some steps find atoms
        that later ones use.
    """

    many: int
    some: int
    at_once: bool
    new: int
    sweeps: int
    fewest: int
    pair: float
    slow: float
    forgiven: int


_SPARSE = Terms(many=300, some=50, at_once=True, new=200, sweeps=2, fewest=30, pair=4.0, slow=0.5, forgiven=2)
# A sample adds a third of a multiply-add to a pair, as matrix products are fast: models on a few atoms cost little, and
# show whether many will follow.
_DENSE = Terms(many=150, some=35, at_once=False, new=400, sweeps=6, fewest=4, pair=1.0 / 3.0, slow=0.0, forgiven=0)


class Sweeps:
    """Rounds over the columns of some atoms of an l1 ball, as long as they lead far enough.

    Parameters
    ----------
    terms : Terms

    Attributes
    ----------
    n_slow : int
        How many steps in sequence did not lead far enough.
    """

    name = "sweeps"

    def __init__(self, terms: Terms) -> None:
        self.terms, self.n_slow = terms, 0
        self._has_reached = False

    @classmethod
    def suited_to(cls, problem: BaseProblem) -> Sweeps | None:
        """Return sweeps for a problem over an l1 ball; None if models are better."""
        n, d = problem.n_samples, problem.n_features
        if problem.has_sparse_columns and d >= _MANY_FEATURES:
            return cls(_SPARSE)
        # Seldom are there more atoms in use than samples. The curvature of a quadratic F is computed once.
        may_have_many = min(n, d) >= _DENSE.many and n * d <= _MOST_DENSE
        if problem.has_dense_columns and may_have_many and not problem.is_quadratic:
            return cls(_DENSE._replace(pair=_DENSE.pair * n))
        return None

    @property
    def are_slow(self) -> bool:
        """Whether Taylor models on all pairs of atoms take over."""
        return self.n_slow > self.terms.forgiven

    def expect_many(self, atoms: Stack) -> bool:
        """Return whether there may soon be many atoms, as far as those in use tell; at w = 0 there are none."""
        are_likely = self.terms.at_once if len(atoms) == 0 else len(atoms) >= self.terms.some
        return are_likely and not self.are_slow

    def suit(self, atoms: Stack) -> bool:
        """Return whether sweeps over these atoms cost less than a model on them."""
        return not self.are_slow and len(atoms) >= self.terms.many

    def minimise(self, look: Look, atoms: AtomStack, x: np.ndarray, limits: Limits) -> Descended:
        """Go from the weights x of the atoms close to the minimum of F over them.

        Only the gap of the last pass decides how close, as others may be missing to the goal of the run. There are no
        looks at all columns.
        """
        part, price = look.column_part(atoms.index), 1.0 / np.abs(atoms.value)
        descent = _Descent(part, self.terms, price, x * atoms.value, look.evaluation.offset)
        part.lean(look.slopes(atoms) / atoms.value)  # columns may be rounded
        self._has_reached = descent.to_gap(_ACCURACY * look.gap, limits.deadline)
        z = descent.feasible() / atoms.value
        total = float(np.abs(z).sum())
        return Descended(atoms, z if total <= 1.0 else z / total, 0)

    def judge(self, before: float, gap: float, is_still: bool) -> None:
        """Find out, after a step with these gaps, whether sweeps should go on: not if it led nowhere.

        If the minimum over the atoms was reached, but the gap is still large, other atoms are the reason. A step that
        has led nowhere would not do so the next time.
        """
        if is_still:
            self.n_slow = self.terms.forgiven + 1
        else:
            is_slow = not self._has_reached and gap > self.terms.slow * before
            self.n_slow = self.n_slow + 1 if is_slow else 0


class _Place(NamedTuple):
    """Coefficients and their intercept, F there, and how far outside of the ball they are."""

    w: np.ndarray
    b: float
    value: float
    outside: float


class _Descent:
    """Coefficients w with an intercept b on the way to the minimum of F over sum_j price_j |w_j| <= 1."""

    def __init__(self, part: ColumnPart, terms: Terms, price: np.ndarray, w: np.ndarray, b: float) -> None:
        self.part, self.terms, self.price = part, terms, price
        self.multiplier = -1.0  # of the ball; unknown at first
        self.is_settled = self.was_newton = False
        self.pause = 0  # number of rounds that must be sweeps
        self._go_to(w, b)

    def to_gap(self, goal: float, deadline: float) -> bool:
        """Make rounds until the gap is about ``goal``; return whether it was reached. Else go back to the best point.

        Points get better if the gap falls or F does: on the way to the boundary of the ball the gap can grow.
        """
        least, best, n_worse, most = np.inf, self._place(), 0, self._most_rounds()
        for _ in range(most):
            gap, falls = self._gap(), self._falls_from(best)
            if self.was_newton and gap > _NEWTON * least:  # the support has not settled
                self.pause = 1
            if self.was_newton and gap > _HARM * least and not falls:
                self._go_to(best.w, best.b)
                self.pause, gap = _PAUSE, self._gap()
            if gap <= goal:
                return True
            n_worse = 0 if gap < least or falls else n_worse + 1
            if n_worse > max(_PATIENCE, _PATIENT * most) or time.perf_counter() >= deadline:
                break
            if gap < least or falls:
                least, best = gap, self._place()
            if not self._round():
                break
        self._go_to(best.w, best.b)
        return False

    def _place(self) -> _Place:
        return _Place(self.part.w, self.part.b, self.part.value, max(0.0, self.norm - 1.0))

    def _falls_from(self, best: _Place) -> bool:
        """Return whether F is lower than there, where the multiplier counts what lies outside of the ball."""
        here = self._place()
        outside = max(0.0, self.multiplier) * (here.outside - best.outside)
        return here.value + outside < best.value - _FALL * abs(best.value)

    def _go_to(self, w: np.ndarray, b: float) -> None:
        self.part.go_to(w, b)
        self.part.measure()
        self.norm = float(self.price @ np.abs(w))

    def _most_rounds(self) -> int:
        """Return how many rounds take about as long as the curvature of all pairs of atoms, and its factors."""
        k, terms = self.price.size, self.terms
        model, one = k * k * (terms.pair + k / _FACTOR), _SWEEP * terms.sweeps * max(1, self.part.n_stored)
        return int(min(max(terms.fewest, model / one), _MOST_ROUNDS))

    def feasible(self) -> np.ndarray:
        """Return the coefficients, scaled into the ball, or to its boundary if they are close to that."""
        is_bound = self.multiplier > 0.0 and self.norm > _INSIDE
        return self.part.w / self.norm if self.norm > 1.0 or is_bound else self.part.w

    def _gap(self) -> float:
        """Return about what the gap would be after the coefficients have been scaled."""
        part = self.part
        steepest = float((np.abs(part.slopes) / self.price).max(initial=0.0))
        along = -float(part.slopes @ part.w)
        if self.multiplier < 0.0:
            self.multiplier = _first_multiplier(steepest, along, self.norm)
        return steepest - along + abs(self.norm - 1.0) * self.multiplier

    def _round(self) -> bool:
        """Make a round; return whether it leads anywhere."""
        part, before, way = self.part, self.part.w, None
        self.was_newton = self.is_settled and self.pause <= 0
        self.pause -= 1
        if self.was_newton:
            normal = self.price * np.sign(before) if self.multiplier > 0.0 else np.zeros(before.size)
            w, b = part.newton(normal, 1.0 - self.norm, _PRODUCTS)
            w[w * before < 0.0] = 0.0
        else:
            w, b, self.multiplier, way = part.sweep(self.price, self.multiplier, self._stiffness(), self.terms.sweeps)
        n_changed = np.count_nonzero((w != 0.0) != (before != 0.0))
        leads_on = part.approach(w, b, way)
        part.measure()
        self.norm = float(self.price @ np.abs(part.w))
        self.is_settled = leads_on and bool(n_changed <= _SETTLED * np.count_nonzero(w))
        return leads_on or self.was_newton  # sweeps may lead on where conjugate gradients do not

    def _stiffness(self) -> float:
        """Return how fast the multiplier of the ball falls as its radius grows, if columns were orthogonal."""
        part = self.part
        used = part.w != 0.0
        if not used.any():
            used = np.abs(part.slopes) > self.multiplier * self.price
        bends = part.bends[used] + part.l2
        ease = float((self.price[used][bends > 0.0] ** 2 / bends[bends > 0.0]).sum())
        return 1.0 / ease if ease > 0.0 else 0.0


def _first_multiplier(steepest: float, along: float, norm: float) -> float:
    """Return a first guess of the multiplier of the ball: the slope from the coefficients to zero, if it binds."""
    if norm == 0.0:
        return _FIRST * steepest
    return max(0.0, along / norm) if norm > _FAR else 0.0
