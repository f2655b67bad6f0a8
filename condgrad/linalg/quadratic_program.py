"""Convex quadratic programs over a polyhedron: an active set that is guessed and corrected, else interior points.

The minimiser of <c, x> + x'Hx/2 over a polyhedron is known once its face is: on the face it solves one linear system.
So a face is guessed, the system is solved, and all bounds and rows whose signs are wrong there enter or leave the face
at once (a primal-dual active set method). A handful of systems is usual, and one if the guess is right, as it is for
most of a sequence of similar programs. The method may fail to end. Then Mehrotra's interior-point method, which ends
after 10 to 20 systems, finds the face.

References
----------
Júdice & Pires (1994), A block principal pivoting algorithm for large-scale strictly monotone linear complementarity
problems, for single corrections.
Hintermüller, Ito & Kunisch (2003), The primal-dual active set strategy as a semismooth Newton method.
Nocedal & Wright (2006), Numerical Optimization, algorithm 16.4, for interior points.
"""

from __future__ import annotations

import math
import time
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from condgrad.linalg.face_system import Factor, System, dense
from condgrad.linalg.polyhedron import Polyhedron
from condgrad.linalg.ties import TiedSystem, Ties

_RIDGE = 1e-8  # ridge added to the diagonal of H, relative to the diagonal
_LEAST_RIDGE = 1e-16  # least ridge, relative to the largest diagonal entry: smaller ones are lost in rounding
_TINY = 1e-200  # ridge where there is neither curvature nor slope: squares of rows divided by its root do not overflow
_MOST_BINARY = 1000  # largest exponent of a power of two by which slopes and curvatures are multiplied
_LONGEST = 1e6  # where H is almost zero, a ridge ends steps along an entry at this many sizes of the polyhedron
_OUTSIDE = 1e-12  # violation, relative to the size of the polyhedron, that counts as rounding
_WRONG_SIGN = 1e-11  # multiplier of the wrong sign, relative to the largest slope, that counts as rounding
_MOST_FACES = 40  # faces that are tried after one guess
_MOST_SINGLE = 100  # further faces, after interior points, that differ by one bound or row each
_PATIENCE = 6  # faces in sequence that may have as many wrong signs as an earlier one
_MOST_CENTRAL = 60  # steps of the interior-point method
_CENTRAL = 1e-11  # relative complementarity and residual at which the interior-point method ends
_INSIDE = 1e-10  # violation, relative to the size of the polyhedron, that its answer may have
_SHORT = 1e-10  # length of a step that leads nowhere
_LOST = 1e-60  # slack, relative to the size of the polyhedron, that is 0 but for rounding: to divide by it overflows
_BACK = 0.995  # fraction of the way to the boundary
_FEW = 0.25  # share of nonzero entries up to which the product with a matrix uses their rows alone


class Face(NamedTuple):
    """Which bounds and rows hold as equations: -1 at the lower side, 1 at the upper one, 0 for none."""

    bounds: np.ndarray
    rows: np.ndarray


def face_at(polyhedron: Polyhedron, x: np.ndarray, slack: float) -> Face:
    """Return the bounds and rows that are tight at x, or violated, up to this slack."""
    low, high, A, row_low, row_high = polyhedron
    return Face(_tight(x, low, high, slack), _tight(A @ x, row_low, row_high, slack))


def _tight(values: np.ndarray, low: np.ndarray, high: np.ndarray, slack: float) -> np.ndarray:
    """Return -1 where a value is at its lower side, 1 where it is at its upper one, and else 0."""
    return np.where(values <= low + slack, -1, np.where(values >= high - slack, 1, 0))


class Minimiser(NamedTuple):
    """A point, its face, and whether it is the minimiser up to rounding; else it is close to it."""

    x: np.ndarray
    face: Face
    is_exact: bool


class QuadraticProgram:
    """Minimise <g, z - x> + (z - x)'H(z - x)/2 over a polyhedron, with a small ridge added to H.

    Parameters
    ----------
    g, H, x : arrays of shapes (d,), (d, d) and (d,)
        The slopes at x, the curvature, positive semidefinite, and the point itself.
    polyhedron : Polyhedron
        A bounded set that is not empty.
    is_split : bool
        Whether g, x and the polyhedron have 2 d entries, for u and v with the curvature H of u - v.
    ties : Ties or None
        Rows of the polyhedron that tie two entries each, where there are many.

    Examples
    --------
    >>> square = Polyhedron(np.zeros(2), np.ones(2), np.zeros((0, 2)), np.zeros(0), np.zeros(0))
    >>> QuadraticProgram(np.array([-3.0, 1.0]), np.eye(2), np.zeros(2), square).minimise().x
    array([1., 0.])
    """

    def __init__(
        self,
        g: np.ndarray,
        H: np.ndarray,
        x: np.ndarray,
        polyhedron: Polyhedron,
        *,
        is_split: bool = False,
        ties: Ties | None = None,
    ) -> None:
        self.polyhedron, self.ties = polyhedron, ties
        self.length = max(polyhedron.size, float(np.abs(x).max(initial=0.0))) or 1.0
        # The minimiser is the same for a multiple: with numbers of about one, nothing overflows or vanishes.
        scale = max(float(np.abs(g).max(initial=0.0)), float(np.diag(H).max(initial=0.0)) * self.length)
        factor = math.ldexp(1.0, max(-_MOST_BINARY, min(_MOST_BINARY, -math.frexp(scale)[1])))
        g, H = factor * g, factor * H
        self.slope = float(np.abs(g).max(initial=0.0)) or 1.0
        # The ridge of an entry is relative to its own curvature, because columns of data may have any units.
        diagonal = np.tile(np.diag(H), 2 if is_split else 1)
        self.ridge = _RIDGE * diagonal + np.abs(g) / (_LONGEST * self.length)
        largest = max(float(diagonal.max(initial=0.0)), float(self.ridge.max(initial=0.0)))
        self.ridge += max(_LEAST_RIDGE * largest, _TINY)
        self.H, self.is_split = H, is_split
        self.c = g - self._curvature_times(x)
        self.centre = x
        self._latest: tuple[np.ndarray, Factor] | None = None

    def minimise(self, guess: Face | None = None, deadline: float = np.inf) -> Minimiser | None:
        """Return the minimiser, or None where no point of the polyhedron was found before the deadline.

        ``guess`` is the face of a similar program. The deadline is in the time of ``time.perf_counter``.
        """
        exact = self._from(self._with_equations(guess), deadline)
        if exact is not None:
            return exact
        x, face = self._central(deadline)
        if self.polyhedron.violation(x) > _INSIDE * self.length:
            return None
        exact = self._from(face, deadline, _MOST_SINGLE)
        return exact or Minimiser(np.clip(x, *self.polyhedron[:2]), face, False)

    def refine(self, minimiser: Minimiser, deadline: float = np.inf) -> Minimiser:
        """Return the minimiser with a ridge around the given one instead of x: closer to that without a ridge."""
        self.c = self.c + self.ridge * (self.centre - minimiser.x)
        self.centre = minimiser.x
        return self._from(minimiser.face, deadline) or minimiser

    def _with_equations(self, guess: Face | None) -> Face:
        """Return the guess with all equations in it, or the face of the equations alone."""
        low, high, _, row_low, row_high = self.polyhedron
        bounds, rows = (np.zeros(low.size), np.zeros(row_low.size)) if guess is None else guess
        return Face(np.where(low == high, 1, bounds), np.where(row_low == row_high, 1, rows))

    def _from(self, face: Face, deadline: float, most_single: int = 0) -> Minimiser | None:
        """Correct the face until all signs are right there, and return its minimiser; None where that fails.

        Corrections of all signs at once may return to an earlier face. Then up to ``most_single`` single ones follow,
        each of the last wrong sign: with a positive definite H and bounds alone, these come to an end.
        """
        fewest, patience = np.inf, _PATIENCE
        for _ in range(_MOST_FACES + most_single):
            x, wrong = self._on(face)
            count = sum(np.count_nonzero(part) for part in wrong)
            if count == 0:
                is_inside = self.polyhedron.violation(x) <= 10.0 * _OUTSIDE * self.length
                return Minimiser(np.clip(x, *self.polyhedron[:2]), face, True) if is_inside else None
            fewest, patience = (count, _PATIENCE) if count < fewest else (fewest, patience - 1)
            if (patience < 0 and most_single == 0) or time.perf_counter() >= deadline:
                break
            wrong = wrong if patience >= 0 else _last(wrong)
            face = Face(*(np.where(new == 0, old, np.where(old == 0, new, 0)) for old, new in zip(face, wrong)))
        return None

    def _on(self, face: Face) -> tuple[np.ndarray, Face]:
        """Return the minimiser on the face, and what is wrong there: the sides that are violated.

        For bounds and rows of the face, any side but 0 says that the multiplier has the wrong sign.
        """
        low, high, A, row_low, row_high = self.polyhedron
        free, rows = np.flatnonzero(face.bounds == 0), np.flatnonzero(face.rows)
        tight = A[rows]
        side = np.where(face.rows[rows] < 0, row_low[rows], row_high[rows])
        x = np.where(face.bounds < 0, low, high)
        x[free] = 0.0
        y, slope = np.zeros(rows.size), self.c + self._curvature_times(x)
        system = self._system(free, rows)
        for _ in range(2):  # the second time refines
            step, change = system.solve(-slope[free], side - tight @ x)
            x[free] += step
            y += change
            slope = self.c + self._curvature_times(x) + tight.T @ y
        multipliers = np.zeros(row_low.size)
        multipliers[rows] = -y
        outside, wrong_sign = _OUTSIDE * self.length, _WRONG_SIGN * self.slope
        bounds = _wrong_sides(face.bounds, x, low, high, outside, slope, wrong_sign)
        return x, Face(bounds, _wrong_sides(face.rows, A @ x, row_low, row_high, outside, multipliers, wrong_sign))

    def _curvature_times(self, x: np.ndarray) -> np.ndarray:
        """Return the curvature with its ridge times x, from the rows of H at nonzero entries alone if these are few."""
        d = self.H.shape[0]
        w = x[:d] - x[d:] if self.is_split else x
        used = np.flatnonzero(w)
        product = w[used] @ self.H[used] if used.size <= _FEW * d else self.H @ w
        total: np.ndarray = (np.append(product, -product) if self.is_split else product) + self.ridge * x
        return total

    def _curvature_on(self, free: np.ndarray) -> np.ndarray:
        """Return a copy of the curvature with its ridge on some entries."""
        d = self.H.shape[0]
        at = free % d
        H = self.H.copy() if np.array_equal(at, np.arange(d)) else self.H[at][:, at]  # faster than both at once
        if self.is_split:
            sign = np.where(free < d, 1.0, -1.0)
            H *= sign
            H *= sign[:, None]
        np.einsum("ii->i", H)[...] += self.ridge[free]
        return H

    def _system(self, free: np.ndarray, rows: np.ndarray) -> System | TiedSystem:
        """Return the equations of a face, in groups of tied entries where these are much fewer."""
        if self.ties is not None and (chosen := self.ties.on(free, rows)) is not None:
            return TiedSystem(self._curvature_on(free), self._rows_on(free), rows, chosen)
        return System(self._factor_of(free), rows)

    def _rows_on(self, free: np.ndarray) -> Any:
        return self.polyhedron.A if free.size == self.c.size else self.polyhedron.A[:, free]

    def _factor_of(self, free: np.ndarray) -> Factor:
        """Return the curvature on the free entries as a factor, and the rows there; the last one is kept."""
        if self._latest is None or not np.array_equal(self._latest[0], free):
            self._latest = free, Factor(self._curvature_on(free), self._rows_on(free))
        return self._latest[1]

    def _central(self, deadline: float) -> tuple[np.ndarray, Face]:
        """Return the end of the central path and its face, or the point that it has reached."""
        small = self.polyhedron.scaled(1.0 / self.length)
        H = self._curvature_on(np.arange(self.c.size))
        path = _CentralPath(H * (self.length / self.slope), self.c / self.slope, small)
        for _ in range(_MOST_CENTRAL):
            if not path.advance() or time.perf_counter() >= deadline:
                break
        return path.x * self.length, path.face()


def _last(wrong: Face) -> Face:
    """Return the last wrong side alone: that of a row, or of a bound where no row is wrong."""
    bounds, rows = (np.zeros_like(part) for part in wrong)
    part, out = (wrong.rows, rows) if wrong.rows.any() else (wrong.bounds, bounds)
    k = np.flatnonzero(part)[-1]
    out[k] = part[k]
    return Face(bounds, rows)


def _wrong_sides(
    sides: np.ndarray,
    values: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    outside: float,
    slope: np.ndarray,
    wrong_sign: float,
) -> np.ndarray:
    """Return the side that is violated, -1 or 1; at sides of the face 1 if the slope leads inside; else 0."""
    violated = np.where(values < low - outside, -1, np.where(values > high + outside, 1, 0))
    return np.where(sides == 0, violated, (low < high) & (sides * slope > wrong_sign))


def _plus_diagonal(H: np.ndarray, entries: np.ndarray) -> np.ndarray:
    """Return H + diag(entries), without a second matrix."""
    total = H.copy()
    np.einsum("ii->i", total)[...] += entries
    return total


class _CentralPath:
    """Mehrotra's predictor-corrector method for min <c, x> + x'Hx/2 over a polyhedron of size one.

    All inequalities are G x + s = h with slacks s > 0 and multipliers y > 0, in the order: lower bounds, upper bounds,
    lower sides of rows, upper sides. The equations are E x = f, with multipliers v.
    """

    def __init__(self, H: np.ndarray, c: np.ndarray, polyhedron: Polyhedron) -> None:
        low, high, A, row_low, row_high = polyhedron
        self.H, self.c, self.A = H, c, A
        is_fixed, is_equation = low == high, row_low == row_high
        sides = (low, is_fixed), (high, is_fixed), (row_low, is_equation), (row_high, is_equation)
        self.places = [np.flatnonzero(np.isfinite(side) & ~is_equal) for side, is_equal in sides]
        signs = (-1.0, 1.0, -1.0, 1.0)
        self.h = np.concatenate([s * side[place] for s, (side, _), place in zip(signs, sides, self.places)])
        self.E = np.vstack([dense(A[is_equation]), np.eye(low.size)[is_fixed]])
        self.f = np.concatenate([row_low[is_equation], low[is_fixed]])
        self.x = np.clip(np.zeros(low.size), low, high)
        self.s, self.y = np.maximum(self.h - self._G(self.x), 1.0), np.ones(self.h.size)
        self.v = np.zeros(self.f.size)

    def _G(self, x: np.ndarray) -> np.ndarray:
        """Return G x."""
        products = self.A @ x
        lows, highs, row_lows, row_highs = self.places
        return np.concatenate([-x[lows], x[highs], -products[row_lows], products[row_highs]])

    def _parts(self, y: np.ndarray) -> list[np.ndarray]:
        """Return the parts of y: for all lower bounds, upper bounds, lower sides and upper sides; 0 without a side."""
        d, m = self.x.size, self.A.shape[0]
        parts = [np.zeros(size) for size in (d, d, m, m)]
        first = 0
        for part, place in zip(parts, self.places):
            part[place] = y[first : first + place.size]
            first += place.size
        return parts

    def _G_transposed(self, y: np.ndarray) -> np.ndarray:
        """Return G'y."""
        lower, upper, row_lower, row_upper = self._parts(y)
        product: np.ndarray = upper - lower + self.A.T @ (row_upper - row_lower)
        return product

    def _curvature(self, t: np.ndarray) -> np.ndarray:
        """Return H + G' diag(t) G."""
        lower, upper, row_lower, row_upper = self._parts(t)
        weighted = scipy.sparse.diags_array(row_lower + row_upper) @ self.A
        return _plus_diagonal(self.H + dense(self.A.T @ weighted), lower + upper)

    def advance(self) -> bool:
        """Make a step towards the minimiser; return False at its end, or where no step is possible."""
        s, y = self.s, self.y
        dual = self.H @ self.x + self.c + self._G_transposed(y) + self.E.T @ self.v
        primal, equations = self._G(self.x) + s - self.h, self.E @ self.x - self.f
        mu = float(s @ y) / max(1, s.size)
        error = max(mu, *(float(np.abs(each).max(initial=0.0)) for each in (dual, primal, equations)))
        if error <= _CENTRAL or s.min(initial=1.0) < _LOST:
            return False
        system = System(Factor(self._curvature(y / s), self.E), np.arange(self.f.size))

        def direction(target: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
            """Return the changes of x, v, s, y for which s y decreases by ``target``, to first order."""
            dx, dv = system.solve(-dual - self._G_transposed((y * primal - target) / s), -equations)
            ds = -primal - self._G(dx)
            return dx, dv, ds, (-target - y * ds) / s

        _, _, ds, dy = direction(s * y)
        step = min(1.0, _longest(s, ds), _longest(y, dy))
        after = float((s + step * ds) @ (y + step * dy)) / max(1, s.size)
        dx, dv, ds, dy = direction(s * y + ds * dy - mu * (after / mu) ** 3 if mu > 0.0 else s * y)
        step = min(1.0, _BACK * _longest(s, ds), _BACK * _longest(y, dy))
        if not (step >= _SHORT and np.isfinite(dx).all()):
            return False
        self.x, self.v = self.x + step * dx, self.v + step * dv
        self.s, self.y = s + step * ds, y + step * dy
        return True

    def face(self) -> Face:
        """Return the bounds and rows whose multipliers exceed their slacks."""
        lower, upper, row_lower, row_upper = self._parts(self.y > self.s)
        return Face(upper - lower, row_upper - row_lower)


def _longest(x: np.ndarray, step: np.ndarray) -> float:
    """Return the largest t for which x + t step is not negative."""
    down = step < 0.0
    with np.errstate(over="ignore"):  # a step that hardly moves an entry may be as long as it likes
        return float((-x[down] / step[down]).min(initial=np.inf))
