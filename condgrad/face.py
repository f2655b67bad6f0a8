"""The minimiser of a quadratic on a face of a hull: where steps of first order come close, a factor leads there."""

from __future__ import annotations

import math

import numpy as np

from condgrad.compiled import kernel

_NO_WEIGHT = 1e-15  # of the origin, which takes what the atoms leave of one: their sum is known no better
_FLAT = 1e-10  # of the curvature of an atom: what the others leave of it is rounding, and it depends on them
_NOISE = 1e-13  # of the largest curvature: what centring may leave of none


@kernel
def minimise_on_face(g, H, x, has_origin, max_work):
    """Go from x to the minimiser of <g, z - x> + (z - x)'H(z - x)/2 over the atoms with weight, their signs kept.

    The sum of |z| stays at one, or below where the set has the origin and x lies inside. An atom that would change its
    sign leaves, as in Wolfe's algorithm for the nearest point, and the rest is solved again. ``g`` is that of x, and
    stays so; x is overwritten. Returns the multiplications that were made, not many more than ``max_work``.
    """
    d = x.shape[0]
    change, moved = np.zeros(d), np.zeros(d)
    active, sign = np.empty(d, np.int64), np.empty(d)
    work = 0
    while work < max_work:
        m, slack, o = 0, 1.0, 0
        for k in range(d):
            slack -= abs(x[k])
        for k in range(d):
            if x[k] != 0.0:
                active[m], sign[m] = k, 1.0 if x[k] > 0.0 else -1.0
                if abs(x[k]) > abs(x[active[o]]):
                    o = m
                m += 1
        is_inside = has_origin and slack > _NO_WEIGHT
        if is_inside:
            o = -1  # the origin takes what the others give
        elif m > 0:  # the heaviest atom does: it goes last
            active[o], active[m - 1] = active[m - 1], active[o]
            sign[o], sign[m - 1] = sign[m - 1], sign[o]
            m -= 1
            o = m
        if m == 0:
            return work
        # The curvature and the slopes of moves from the atom o to the others.
        M, b = np.empty((m, m)), np.empty(m)
        largest = 0.0
        for p in range(m):
            k = active[p]
            b[p] = -sign[p] * (g[k] + moved[k])
            for q in range(p + 1):
                M[p, q] = sign[p] * sign[q] * H[k, active[q]]
            if o >= 0:
                last = active[o]
                b[p] += sign[o] * (g[last] + moved[last])
                for q in range(p + 1):
                    M[p, q] += H[last, last] - sign[o] * (sign[p] * H[k, last] + sign[q] * H[active[q], last])
            largest = max(largest, M[p, p])
        if not largest > 0.0:
            return work
        _factor(M, _NOISE * largest)
        _solve(M, b)
        work += m * m * m // 6 + d * m
        # As far as the weights allow; the one that ends first leaves.
        gamma, leaves, total = 1.0, -1, 0.0
        for p in range(m):
            total += b[p]
            weight = abs(x[active[p]])
            if weight + gamma * b[p] < 0.0:
                gamma, leaves = -weight / b[p], p
        left = slack if o < 0 else abs(x[active[o]])
        if left - gamma * total < 0.0:
            gamma, leaves = left / total, m
        for p in range(m):
            k = active[p]
            change[k] = sign[p] * gamma * b[p]
            x[k] = 0.0 if p == leaves else x[k] + change[k]
        if o >= 0:
            k = active[o]
            change[k] = -sign[o] * gamma * total
            x[k] = 0.0 if leaves == m else x[k] + change[k]
        for k in range(d):
            for p in range(m + (o >= 0)):
                moved[k] += H[k, active[p]] * change[active[p]]
        if leaves < 0:
            return work
        if leaves == m and o < 0:
            has_origin = False  # the weights sum to one now, and rounding must not bring it back
    return work


@kernel
def _factor(M, noise):
    """Overwrite the lower half of M by its Cholesky factor; what depends on earlier rows gets no share in solutions."""
    for p in range(M.shape[0]):
        for q in range(p + 1):
            total = 0.0
            for j in range(q):
                total += M[p, j] * M[q, j]
            if p > q:
                M[p, q] = (M[p, q] - total) / M[q, q]
            else:
                left = M[p, p] - total
                M[p, p] = math.sqrt(left) if left > max(_FLAT * M[p, p], noise) else np.inf


@kernel
def _solve(M, b):
    """Overwrite b by the solution of L L' z = b for the factor L in the lower half of M."""
    for p in range(b.shape[0]):
        total = 0.0
        for j in range(p):
            total += M[p, j] * b[j]
        b[p] = (b[p] - total) / M[p, p]
    for p in range(b.shape[0] - 1, -1, -1):
        b[p] /= M[p, p]
        for j in range(p):
            b[j] -= M[p, j] * b[p]
