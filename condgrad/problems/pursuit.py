"""Pursuit: a direction from w into the set that is nearly parallel to the steepest descent."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from condgrad.compiled import compiled, is_compiled, kernel
from condgrad.constraints._protocol import ConstraintSet
from condgrad.constraints.vertices import Vertex
from condgrad.linalg.arrays import ArrayVector
from condgrad.linalg.vectors import DenseVector, Vector, inner


@compiled
class Pursuit(NamedTuple):
    """The gradient pursuit of Combettes & Pokutta (2020): d = sum_k lam_k (v_k - w), close to the direction of -r.

    With total = sum_k lam_k the end w + d / total = sum_k lam_k v_k / total is a convex combination of vertices, so
    that every step gamma <= 1 towards it stays in the set. A round costs one call of the oracle and O(d).
    """

    end: np.ndarray  # the sum of lam_k v_k so far; after ``aim``, the end of the direction
    d: np.ndarray
    u: Vector
    missing: Vector  # r + d: the argument of the oracle
    n_rounds: int
    delta: float

    def aim(self, constraint, r, w, s):
        """Set ``end`` for the arrays ``r`` and ``w``, where s = LMO(r); return the number of further oracle calls."""
        _clear(self.end, self.d)
        total, cosine, n_calls, v = 0.0, -1.0, 0, s
        for k in range(self.n_rounds):
            if k > 0:
                _set_sum(self.missing.values, r, self.d)
                v = constraint.lmo(self.missing)  # v = LMO(-rest) with rest = -r - d
                n_calls = n_calls + 1
            v.blend_into(self.u, 1.0)
            _subtract(self.u.values, w)  # u = v - w
            lam = self.length(r)
            reached = self.cosine(r, lam)
            if lam == 0.0 or reached - cosine < self.delta:
                break
            _advance(self.d, self.end, lam, self.u.values, w)  # d <- d + lam u, end <- end + lam v
            total, cosine = total + lam, reached
        if total > 0.0:
            _divide(self.end, total)
        else:
            s.blend_into(self.u, 1.0)
            _set_sum(self.end, self.u.values, self.d)  # d = 0: no round was made
        return n_calls

    def length(self, r):
        """Return lam = <rest, u> / ||u||^2, or 0 where the pursuit ends.

        It ends where -d / ||d|| fits the rest better than u: a step in that direction would not change the angle.
        """
        u, d = self.u.values, self.d
        fit, square, length = -inner(r, u) - inner(d, u), inner(u, u), math.sqrt(inner(d, d))
        if square == 0.0 or fit <= 0.0 or fit * length < inner(r, d) + inner(d, d):
            return 0.0
        return fit / square

    def cosine(self, r, lam):
        """Return the cosine of the angle between -r and d + lam u."""
        u, d = self.u.values, self.d
        along = -inner(r, d) - lam * inner(r, u)
        length = inner(d, d) + 2.0 * lam * inner(d, u) + lam * lam * inner(u, u)
        sizes = math.sqrt(inner(r, r)) * math.sqrt(max(length, 0.0))
        return along / sizes if sizes > 0.0 else -1.0


def pursuit(constraint: ConstraintSet, n_features: int, n_rounds: int, delta: float) -> Pursuit:
    """Return a pursuit of at most ``n_rounds`` rounds, each of which must gain ``delta`` in the cosine."""
    vector = DenseVector if is_compiled(constraint) else ArrayVector
    end, d, u, missing = np.zeros((4, n_features))
    return Pursuit(end, d, vector(u), vector(missing), n_rounds, delta)


def aim(chase: Pursuit, constraint: ConstraintSet, r: np.ndarray, w: np.ndarray, s: Vertex) -> int:
    """Let the pursuit aim from w, compiled where the set can be; return the number of oracle calls after s = LMO(r)."""
    if is_compiled(constraint):
        return int(_aim(chase, constraint, r, w, s))
    return int(chase.aim(constraint, r, w, s))


# Loops over arrays, each a kernel of its own: array expressions would multiply the time of compilation, and loops in
# Python would be slow where the set's oracle, and so the pursuit, is ordinary Python.


@kernel
def _clear(a, b):
    for j in range(a.shape[0]):
        a[j], b[j] = 0.0, 0.0


@kernel
def _set_sum(out, a, b):
    for j in range(out.shape[0]):
        out[j] = a[j] + b[j]


@kernel
def _subtract(out, a):
    for j in range(out.shape[0]):
        out[j] -= a[j]


@kernel
def _advance(d, end, lam, u, w):
    for j in range(d.shape[0]):
        d[j] += lam * u[j]
        end[j] += lam * (u[j] + w[j])


@kernel
def _divide(out, number):
    for j in range(out.shape[0]):
        out[j] /= number


@kernel
def _aim(chase, constraint, r, w, s):
    return chase.aim(constraint, r, w, s)
