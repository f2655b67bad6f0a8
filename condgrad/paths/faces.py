"""Least squares over l1 balls with limits and rows, on the Gram matrix: faces that are guessed and corrected.

The minimiser of w'Gw/2 - c'w with the budget sum_j prices_j |w_j| <= radius, limits and linear rows solves one linear
system once its face is known: which coefficients are 0 or at a limit, the signs of the others, and the rows that hold
as equations. So a face is guessed, and all that is wrong at its minimiser enters or leaves it at once, as in
:mod:`condgrad.linalg.quadratic_program`; but |w_j| needs no second variable here. The face of the last radius is a good
guess for the next one: a point of a path needs a few systems of its active features. Where corrections do not end, a
radius between the last one and the next is solved first.

Nothing is certified here: each point is a start for :func:`condgrad.minimize`, whose first pass certifies it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

_ZERO, _INSIDE, _LOW, _HIGH = 0, 1, 2, 3  # where a coefficient is: at zero, between its limits, at a limit
_RIDGE = 1e-13  # ridge of a coefficient, relative to its curvature: repeated features have a minimiser, too
_OUTSIDE = 1e-11  # violation, relative to the size of w, that counts as rounding
_WRONG = 1e-10  # multiplier of the wrong sign, relative to the largest slope, that counts as rounding
_FEASIBLE = 1e-10  # violation, relative to the size of the set, at which a point is of no use
_DEPENDENT = 1e-11  # pivot, relative, below which a row of the face depends on the others
_MOST_FACES = 60  # faces that are tried after one guess
_PATIENCE = 8  # faces in sequence that may have as many wrong parts as an earlier one
_WALK = 8  # penalties on the way to the last one
_MOST_HALVINGS = 6  # of the way between two radii


class Terms(NamedTuple):
    """What coefficients cost and obey: prices, limits, and the rows A w <= high and A w >= low, equal for equations."""

    prices: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    A: np.ndarray
    row_low: np.ndarray
    row_high: np.ndarray

    def inside(self, w: np.ndarray, radius: float) -> np.ndarray | None:
        """Return w without the rounding by which it is outside, None where it is outside by more than that."""
        slack = _FEASIBLE * max(radius, float(np.abs(w).max(initial=0.0)))
        near = np.clip(w, self.lower, self.upper)
        cost, products = float(self.prices @ np.abs(near)), self.A @ near
        is_met = (products >= self.row_low - slack).all() and (products <= self.row_high + slack).all()
        if not is_met or cost > radius + slack or np.abs(near - w).max(initial=0.0) > slack:
            return None
        if cost > radius and products.size == 0:  # rows would not bear another factor
            near = np.where(self.prices > 0.0, near * (radius / cost), near)
        return near


class Face(NamedTuple):
    """Places and signs of coefficients, sides of rows (-1, 0 or 1), and whether the budget is spent."""

    places: np.ndarray
    signs: np.ndarray
    rows: np.ndarray
    is_spent: bool


class OnFace(NamedTuple):
    """A minimiser on a face, its budget's multiplier, and the face with all that was wrong there corrected."""

    w: np.ndarray
    alpha: float
    corrected: Face
    n_wrong: int


class FacePath:
    """The minimisers of w'Gw/2 - c'w over balls of growing radii, each from the face of the last one.

    Parameters
    ----------
    G, c : arrays of shapes (d, d) and (d,)
        G is positive semidefinite.
    terms : Terms

    Examples
    --------
    >>> none = np.zeros((0, 2)), np.zeros(0), np.zeros(0)
    >>> terms = Terms(np.ones(2), np.full(2, -np.inf), np.array([0.5, np.inf]), *none)
    >>> FacePath(np.eye(2), np.array([3.0, 1.0]), terms).at_radius(1.0)
    array([0.5, 0.5])
    """

    def __init__(self, G: np.ndarray, c: np.ndarray, terms: Terms) -> None:
        self.G = G + np.diag(_RIDGE * np.diag(G) + 1e-300)
        self.c, self.terms = c, terms
        self.slope = float(np.abs(c).max(initial=0.0)) or 1.0
        self.radius, self.face = 0.0, self._first()

    def _first(self) -> Face:
        """Return the face of the point nearest to zero; features that cost nothing are free."""
        return self.face_of(np.clip(np.zeros(self.c.size), self.terms.lower, self.terms.upper))

    def largest_penalty(self) -> float:
        """Return the penalty of the norm from which on the budget is worth nothing: the rate of F at the radius 0."""
        w, slopes, _ = self._solved(self._first()._replace(is_spent=False), np.inf, None)
        return float(self._gains(w, slopes).max(initial=0.0))

    def largest_radius(self, eps: float) -> float | None:
        """Return the norm of the minimiser with the penalty eps times the largest one; None where it is not found."""
        largest, w = self.largest_penalty(), None
        for k in range(1, _WALK + 1):
            w = self.at_penalty(largest * eps ** (k / _WALK))
        self.radius, self.face = 0.0, self._first()
        return None if w is None else float(self.terms.prices @ np.abs(w))

    def at_radius(self, radius: float) -> np.ndarray | None:
        """Return the minimiser over the ball of a radius; None where its face is not found."""
        found = self._towards(radius, _MOST_HALVINGS)
        return None if found is None else found.w

    def at_penalty(self, alpha: float) -> np.ndarray | None:
        """Return the minimiser with a penalty of the norm in place of a budget; None where its face is not found."""
        found = self._from(self.face._replace(is_spent=False), np.inf, alpha)
        if found is None:
            return None
        self.face, self.radius = found.corrected, float(self.terms.prices @ np.abs(found.w))
        return found.w

    def restart(self, w: np.ndarray, radius: float) -> None:
        """Go on from a point that was found elsewhere."""
        self.radius, self.face = radius, self.face_of(w, radius)

    def face_of(self, w: np.ndarray, radius: float = np.inf) -> Face:
        """Return the face of a point."""
        prices, lower, upper, A, row_low, row_high = self.terms
        slack = _OUTSIDE * max(1.0, float(np.abs(w).max(initial=0.0)))
        places = np.where((np.abs(w) <= slack) & (prices > 0.0), _ZERO, _INSIDE)
        places[w <= lower + slack], places[w >= upper - slack] = _LOW, _HIGH
        places[(np.abs(w) <= slack) & (lower <= 0.0) & (upper >= 0.0) & (prices > 0.0)] = _ZERO
        products = A @ w
        rows = np.where(products <= row_low + slack, -1, np.where(products >= row_high - slack, 1, 0))
        is_spent = bool(prices @ np.abs(w) >= radius * (1.0 - _OUTSIDE))
        return Face(places, np.sign(w), np.where(row_low == row_high, 1, rows), is_spent)

    def _towards(self, radius: float, n_halvings: int) -> OnFace | None:
        """Solve for a radius, by way of radii between the last one and it where corrections do not end."""
        found = self._from(self._begun(), radius, None)
        if found is None and n_halvings > 0:
            half = 0.5 * (self.radius + radius)
            if self._towards(half, n_halvings - 1) is None:
                return None
            found = self._from(self.face, radius, None)
            if found is None:
                return self._towards(radius, n_halvings - 1)
        if found is not None:
            self.radius, self.face = radius, found.corrected
        return found

    def _begun(self) -> Face:
        """Return the face, with the feature of the steepest slope in it where all that cost something are at zero."""
        face, prices = self.face, self.terms.prices
        if ((face.places == _INSIDE) & (prices > 0.0)).any():
            return face._replace(is_spent=True)
        w, slopes, _ = self._solved(face._replace(is_spent=False), np.inf, None)
        gains = self._gains(w, slopes)
        j = int(gains.argmax())
        places, signs = face.places.copy(), face.signs.copy()
        if gains[j] > 0.0:
            places[j], signs[j] = _INSIDE, -np.sign(slopes[j])
        return Face(places, signs, face.rows, True)

    def _gains(self, w: np.ndarray, slopes: np.ndarray) -> np.ndarray:
        """Return what a unit of the budget is worth for each feature that can move along its slope."""
        gains = np.zeros(w.size)
        can_move = np.where(slopes < 0.0, w < self.terms.upper, w > self.terms.lower) & (self.terms.prices > 0.0)
        np.divide(np.abs(slopes), self.terms.prices, out=gains, where=can_move)
        return gains

    def _from(self, face: Face, radius: float, alpha: float | None) -> OnFace | None:
        """Correct a face until nothing is wrong at its minimiser; None where that does not end."""
        fewest, patience = np.inf, _PATIENCE
        for _ in range(_MOST_FACES):
            found = self._on(face, radius, alpha)
            if found is None or found.n_wrong == 0:
                return found
            fewest, patience = (found.n_wrong, _PATIENCE) if found.n_wrong < fewest else (fewest, patience - 1)
            if patience < 0:
                return None
            face = found.corrected
        return None

    def _on(self, face: Face, radius: float, alpha: float | None) -> OnFace | None:
        """Return the minimiser on a face, and what is wrong there."""
        prices, lower, upper, A, row_low, _ = self.terms
        w, slopes, multipliers = self._solved(face, radius, alpha)
        if not np.isfinite(w).all():
            return None
        price = float(multipliers[-1]) if alpha is None else alpha
        slack, wrong = _OUTSIDE * max(1.0, float(np.abs(w).max(initial=0.0))), _WRONG * self.slope
        places, signs = face.places.copy(), face.signs.copy()
        costs = price * prices
        # At zero: a slope that is worth its price.
        for sign, has_room in ((1.0, upper > 0.0), (-1.0, lower < 0.0)):
            leaves = (face.places == _ZERO) & has_room & (-sign * slopes > costs + wrong)
            places[leaves], signs[leaves] = _INSIDE, sign
        # At a limit: a slope that leads inside.
        inward = slopes + costs * face.signs
        places[(face.places == _LOW) & (inward < -wrong) & (lower < upper)] = _INSIDE
        places[(face.places == _HIGH) & (inward > wrong) & (lower < upper)] = _INSIDE
        # Between limits: a sign that is wrong, or a limit that is passed.
        is_inside = face.places == _INSIDE
        places[is_inside & (w < lower - slack)], places[is_inside & (w > upper + slack)] = _LOW, _HIGH
        can_be_zero = (lower <= 0.0) & (upper >= 0.0) & (prices > 0.0)
        places[is_inside & can_be_zero & (w * face.signs < -slack)] = _ZERO
        signs = np.where(places == _LOW, np.sign(lower), np.where(places == _HIGH, np.sign(upper), signs))
        rows, n_rows = self._corrected_rows(face.rows, A @ w, multipliers[: row_low.size], slack, wrong)
        spent = float(prices @ np.abs(w))
        is_spent = price >= -wrong if face.is_spent else spent > radius + slack
        n_rows += self._let_in_for_rows(face, w, slopes, slack, places, signs)
        n_wrong = int(np.count_nonzero(places != face.places)) + n_rows + int(is_spent != face.is_spent)
        return OnFace(w, max(price, 0.0), Face(places, signs, rows, is_spent), n_wrong)

    def _let_in_for_rows(
        self, face: Face, w: np.ndarray, slopes: np.ndarray, slack: float, places: np.ndarray, signs: np.ndarray
    ) -> int:
        """Let in the steepest features where too few of them are inside to meet all rows; return whether they are."""
        tight = np.flatnonzero(face.rows)
        sides = np.where(face.rows[tight] < 0, self.terms.row_low[tight], self.terms.row_high[tight])
        if tight.size == 0 or np.abs(self.terms.A[tight] @ w - sides).max() <= slack:
            return 0
        gains = np.where(places == _ZERO, self._gains(w, slopes), 0.0)
        more = np.argsort(-gains, kind="stable")[: tight.size + 1]
        more = more[gains[more] > 0.0]
        places[more], signs[more] = _INSIDE, -np.sign(slopes[more])
        return 1

    def _corrected_rows(
        self, sides: np.ndarray, products: np.ndarray, y: np.ndarray, slack: float, wrong: float
    ) -> tuple[np.ndarray, int]:
        """Return the sides of rows that are violated or held by their multipliers, and how many have changed."""
        low, high = self.terms.row_low, self.terms.row_high
        violated = np.where(products < low - slack, -1, np.where(products > high + slack, 1, 0))
        held = np.where((low < high) & (sides * y < -wrong), 0, sides)
        new = np.where(sides == 0, violated, held)
        return new, int(np.count_nonzero(new != sides))

    def _solved(self, face: Face, radius: float, alpha: float | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return w on the face, the slopes of what the rows leave of F, and the multipliers: of rows, and the budget.

        Without a spent budget its multiplier is 0, and ``alpha`` is the price of the norm.
        """
        prices, lower, upper, A, row_low, row_high = self.terms
        w = np.select([face.places == _LOW, face.places == _HIGH], [lower, upper], 0.0)
        inside, tight = np.flatnonzero(face.places == _INSIDE), np.flatnonzero(face.rows)
        sides = np.where(face.rows[tight] < 0, row_low[tight], row_high[tight])
        K, rest = A[np.ix_(tight, inside)], sides - A[tight] @ w
        signed = (prices * face.signs)[inside]
        is_spent = face.is_spent and alpha is None and bool(signed.any())
        if is_spent:
            K, rest = np.vstack([K, signed]), np.append(rest, radius - float(prices @ np.abs(w)))
        target = (self.c - self.G @ w)[inside] - (0.0 if alpha is None else alpha * signed)
        w[inside], y = self._system(inside, K, target, rest)
        multipliers = np.zeros(row_low.size + 1)
        multipliers[tight] = y[: tight.size]
        multipliers[-1] = y[-1] if is_spent else 0.0
        return w, self.G @ w - self.c + A.T @ multipliers[:-1], multipliers

    def _system(
        self, inside: np.ndarray, K: np.ndarray, target: np.ndarray, rest: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return x and y with G x + K'y = target and K x = rest; a row that depends on others gets y = 0."""
        if inside.size == 0:
            return np.zeros(0), np.zeros(rest.size)
        L, info = lapack.dpotrf(self.G[np.ix_(inside, inside)], lower=1)
        if info != 0:
            return np.full(inside.size, np.nan), np.zeros(rest.size)
        t, y = lapack.dtrtrs(L, target, lower=1)[0], np.zeros(rest.size)
        if rest.size:
            Y = lapack.dtrtrs(L, K.T, lower=1)[0]
            scale = 1.0 / np.sqrt(np.maximum((Y * Y).sum(axis=0), 1e-300))
            S, order, rank, _ = lapack.dpstrf((Y * scale).T @ (Y * scale), tol=_DEPENDENT, lower=1)
            chosen = order[:rank] - 1
            if rank > 0:
                right = (scale * (Y.T @ t - rest))[chosen]
                y[chosen] = lapack.dpotrs(S[:rank, :rank], right, lower=1)[0] * scale[chosen]
            t = t - Y @ y
        return lapack.dtrtrs(L, t, lower=1, trans=1)[0], y
