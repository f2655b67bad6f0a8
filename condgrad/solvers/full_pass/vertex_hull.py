"""VertexHull: a quadratic over a set known by its oracle, minimised on the hull of the vertices found so far."""

from __future__ import annotations

import time

import numpy as np

from condgrad.compiled import kernel
from condgrad.constraints import best_vertex
from condgrad.constraints._protocol import ConstraintSet
from condgrad.linalg.vectors import inner, symmetric_product
from condgrad.solvers.full_pass.face import minimise_in_span, minimise_on_face
from condgrad.solvers.full_pass.hull_steps import pairwise_steps

_SHARE = 0.1  # the gap on the hull before the next call of the oracle, relative to the gap on the set
_ROUNDING = 1e-14  # difference of two slopes, relative to them, that is rounding
_ROOM = 32  # places for vertices at first
_SPARE = 50  # vertices without weight that are kept besides those with weight
_MOST_STALLS = 3  # calls of the oracle in a row without a new vertex after which the search ends
_MOST_EXTRA = 20  # calls after the gap is small enough
_MOST_ROUNDS = 5  # accurate corrections after such a call


class VertexHull:
    """Points v_k of the set with weights x_k, whose sum is the last minimiser: the next one is often on the same face.

    If the set is symmetric, weights may be negative, and the absolute values sum to at most one. Otherwise they are
    nonnegative, with sum one, or at most one if the set contains the origin.
    """

    def __init__(self, n_features: int, is_symmetric: bool, has_origin: bool) -> None:
        self.is_symmetric, self.has_origin = is_symmetric, has_origin
        self.points, self.weights = np.empty((0, n_features)), np.empty(0)

    def minimise(
        self,
        inside: ConstraintSet,
        features: np.ndarray,
        c: np.ndarray,
        H: np.ndarray,
        z: np.ndarray,
        goal: float,
        *,
        enough: float = 0.0,
        most_calls: int,
        deadline: float = np.inf,
    ) -> tuple[np.ndarray, float]:
        """Minimise <c, z> + z'Hz/2 over the set ``inside`` of vectors on some ``features``, from z.

        A call of the oracle adds a vertex. Pairwise steps on all weights, and a Newton step on the face if they are
        slow, then reduce the gap on the hull to a fraction of the gap on the set. Return z and the last gap, which is
        at most ``goal`` unless rounding, ``most_calls`` or the deadline prevent that. Once it is at most ``enough``,
        only some more calls are made.
        """
        quadratic = self._at(features, c, H, z)
        n_stalls, n_extra, gap = 0, 0, np.inf
        for _ in range(most_calls):
            r = quadratic.gradient()
            try:
                v = best_vertex(inside, r).to_dense(c.size)
            except RuntimeError:  # a linear program that fails for one r only: the next pass will use another one
                break
            slope = inner(r, v)
            gap = quadratic.along() - slope
            n_extra += gap <= enough
            if gap <= goal or n_stalls == _MOST_STALLS or n_extra > _MOST_EXTRA or time.perf_counter() >= deadline:
                break
            is_new = slope < quadratic.best_slope() - _ROUNDING * abs(slope)
            n_stalls = 0 if is_new else n_stalls + 1
            if is_new:
                quadratic.append(v, 0.0)
                quadratic.correct(max(0.5 * goal, _SHARE * gap))
            else:
                quadratic.correct_accurately(0.5 * goal)
            quadratic.drop_idle()
        return self._leave(features, quadratic), gap

    def _at(self, features: np.ndarray, c: np.ndarray, H: np.ndarray, z: np.ndarray) -> _HullQuadratic:
        """Return the quadratic on the points of the last minimiser, or with z as a point where z is not this one."""
        quadratic = _HullQuadratic(c, H, self.points[:, features], self.weights, self)
        is_hull = self.has_origin or self.weights.size > 0
        if not (is_hull and np.array_equal(quadratic.point(), z)):
            quadratic.weights[: quadratic.size] = 0.0
            if z.any() or not self.has_origin:
                quadratic.append(z, 1.0)
            quadratic.renew_slopes()
        return quadratic

    def _leave(self, features: np.ndarray, quadratic: _HullQuadratic) -> np.ndarray:
        """Store the points of the minimiser, and return it."""
        quadratic.select(quadratic.weights[: quadratic.size] != 0.0)
        quadratic.normalise()
        self.points = np.zeros((quadratic.size, self.points.shape[1]))
        self.points[:, features] = quadratic.V[: quadratic.size]
        self.weights = quadratic.weights[: quadratic.size].copy()
        return quadratic.point()

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return points and weights as named arrays."""
        return {"points": self.points, "weights": self.weights}


class _HullQuadratic:
    """<c, z> + z'Hz/2 for z = sum_k x_k v_k, with all that depends on the points: H v_k, <v_k, H v_l>, the slopes.

    Both H v_k and its transpose are stored, so that sums run along contiguous memory in a fixed order.
    """

    def __init__(self, c: np.ndarray, H: np.ndarray, points: np.ndarray, weights: np.ndarray, hull: VertexHull) -> None:
        self.c, self.H, self.hull = c, H, hull
        self.size, d = points.shape
        room = _ROOM + 2 * self.size
        self.V, self.HV, self.HV_transposed = np.empty((room, d)), np.empty((room, d)), np.empty((d, room))
        self.G, self.base, self.slopes, self.weights = np.empty((room, room)), *np.zeros((3, room))
        k = self.size
        self.V[:k], self.weights[:k], self.base[:k] = points, weights, points @ c
        self.HV[:k] = points @ H
        self.HV_transposed[:, :k] = self.HV[:k].T
        self.G[:k, :k] = self.HV[:k] @ points.T
        self.renew_slopes()

    def append(self, v: np.ndarray, weight: float) -> None:
        """Add a point."""
        if self.size == self.V.shape[0]:
            self._grow()
        k = self.size
        self.V[k], self.base[k], self.weights[k] = v, inner(self.c, v), weight
        _append(k, v, self.H, self.HV, self.HV_transposed, self.G)
        self.slopes[k] = self.base[k] + inner(self.G[k, : k + 1].copy(), self.weights[: k + 1].copy())
        self.size += 1

    def _grow(self) -> None:
        k, d = self.V.shape
        self.V, self.HV = (np.vstack([rows, np.empty((k, d))]) for rows in (self.V, self.HV))
        self.HV_transposed = np.hstack([self.HV_transposed, np.empty((d, k))])
        self.G = np.block([[self.G, np.empty((k, k))], [np.empty((k, 2 * k))]])
        self.base, self.slopes, self.weights = (
            np.append(each, np.zeros(k)) for each in (self.base, self.slopes, self.weights)
        )

    def select(self, kept: np.ndarray) -> None:
        """Remove the points outside the mask ``kept``."""
        at, k = np.flatnonzero(kept), int(np.count_nonzero(kept))
        if k == self.size:
            return
        self.V[:k], self.HV[:k], self.HV_transposed[:, :k] = self.V[at], self.HV[at], self.HV_transposed[:, at]
        self.G[:k, :k] = self.G[at[:, None], at]
        for each in (self.base, self.slopes, self.weights):
            each[:k] = each[at]
        self.size = k

    def drop_idle(self) -> None:
        """Remove the points without weight, once they are many; until then they may become useful again."""
        has_weight = self.weights[: self.size] != 0.0
        if self.size > 2 * np.count_nonzero(has_weight) + _SPARE:
            self.select(has_weight)

    def gradient(self) -> np.ndarray:
        """Return c + H z."""
        r: np.ndarray = _combine(self.c, self.weights, self.HV, self.size)
        return r

    def point(self) -> np.ndarray:
        """Return z."""
        z: np.ndarray = _combine(np.zeros(self.c.size), self.weights, self.V, self.size)
        return z

    def along(self) -> float:
        """Return <c + H z, z>."""
        return inner(self.slopes[: self.size], self.weights[: self.size])

    def best_slope(self) -> float:
        """Return the smallest slope of a point of the hull."""
        slopes = self.slopes[: self.size]
        least = float(-np.abs(slopes).max(initial=0.0) if self.hull.is_symmetric else slopes.min(initial=np.inf))
        return min(least, 0.0) if self.hull.has_origin else least

    def renew_slopes(self) -> None:
        """Compute the slopes anew."""
        k = self.size
        self.slopes[:k] = self.base[:k] + symmetric_product(self.G[:k, :k].copy(), self.weights[:k])

    def gap(self) -> float:
        """Return the gap on the hull."""
        return self.along() - self.best_slope()

    def correct(self, goal: float) -> None:
        """Reduce the gap on the hull to ``goal`` by pairwise steps, and by one Newton step on the face if needed."""
        k, hull = self.size, self.hull
        slopes, x, G = self.slopes[:k].copy(), self.weights[:k].copy(), self.G[:k, :k].copy()
        is_done = pairwise_steps(slopes, G, x, hull.is_symmetric, hull.has_origin, goal, 2 * k)
        self.slopes[:k], self.weights[:k] = slopes, x
        if is_done:
            return
        minimise_on_face(slopes, G, x, hull.has_origin, np.inf)
        new = self.base[:k] + symmetric_product(G, x)
        if inner(self.slopes[:k] + new, x - self.weights[:k]) < 0.0:  # twice the change of the quadratic
            self.slopes[:k], self.weights[:k] = new, x

    def correct_accurately(self, goal: float) -> None:
        """Do the same where points are close together, as on a curved boundary: rounding is relative to distances."""
        for _ in range(_MOST_ROUNDS):
            self.correct(goal)
            if self.gap() <= goal:
                break
            self._solve_in_span()

    def _solve_in_span(self) -> None:
        """Go to the minimiser on the face, computed from the points themselves, if that is lower."""
        k = self.size
        active, before, r = np.flatnonzero(self.weights[:k]), self.weights[:k].copy(), self.gradient()
        sign = np.sign(before[active])
        points = sign[:, None] * self.V[active]
        weights = minimise_in_span(self.c, self.H, points, np.abs(before[active]), self.hull.has_origin)
        self.weights[active] = sign * weights
        new = self.gradient()
        move = (weights - np.abs(before[active])) @ points
        if inner(r + new, move) < 0.0:  # twice the change of the quadratic
            self.slopes[:k] = self.V[:k] @ new
        else:
            self.weights[:k] = before

    def normalise(self) -> None:
        """Remove the rounding errors of the sum of the weights."""
        total = float(np.abs(self.weights[: self.size]).sum())
        if total > 1.0 or not self.hull.has_origin:
            self.weights[: self.size] /= total


@kernel
def _append(k, v, H, HV, HV_transposed, G):
    """Set row ``k`` of HV to H v, and row and column ``k`` of G to the products of v with it and with earlier rows."""
    d = v.shape[0]
    for j in range(d):
        HV[k, j] = 0.0
    for i in range(d):
        if v[i] != 0.0:
            for j in range(d):
                HV[k, j] += v[i] * H[i, j]
    for j in range(d):
        HV_transposed[j, k] = HV[k, j]
    for m in range(k + 1):
        G[k, m] = 0.0
    for j in range(d):
        if v[j] != 0.0:
            for m in range(k + 1):
                G[k, m] += v[j] * HV_transposed[j, m]
    for m in range(k):
        G[m, k] = G[k, m]


@kernel
def _combine(c, weights, rows, count):
    """Return c plus the sum of the first ``count`` rows with their weights."""
    out = c.copy()
    for k in range(count):
        if weights[k] != 0.0:
            for j in range(out.shape[0]):
                out[j] += weights[k] * rows[k, j]
    return out
