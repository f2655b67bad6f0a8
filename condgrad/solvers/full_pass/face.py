"""The minimiser of a quadratic on a face of a hull: where steps of first order come close, a factor leads there."""

from __future__ import annotations

import math

import numpy as np

from condgrad.compiled import kernel
from condgrad.linalg.vectors import product

_NO_WEIGHT = 1e-15  # of the origin, which takes what the atoms leave of one: their sum is known no better
_FLAT = 1e-10  # of the curvature of an atom: what the others leave of it is rounding, and it depends on them
_NOISE = 1e-13  # of the largest curvature: what centring may leave of none


def minimise_on_face(g: np.ndarray, H: np.ndarray, x: np.ndarray, has_origin: bool, max_work: float) -> int:
    """Go from x to the minimiser of <g, z - x> + (z - x)'H(z - x)/2 over the atoms with weight, their signs kept.

    The sum of |z| stays at one, or below where the set has the origin and x lies inside. An atom that would change its
    sign leaves, as in Wolfe's algorithm for the nearest point, and the rest is solved again. ``g`` is that of x, and
    stays so; x is overwritten. Returns the multiplications that were made, not many more than ``max_work``.
    """
    start, work = x.copy(), 0
    while work < max_work:
        active = np.flatnonzero(x)
        sign, weight = np.sign(x[active]), np.abs(x[active])
        slack = 1.0 - weight.sum()
        is_inside = has_origin and slack > _NO_WEIGHT
        # The slopes of the atoms with their signs, and the curvature, of moves from the origin to them ...
        b = -sign * (g + product(H, x - start))[active]
        M = (sign[:, None] * sign) * H[active[:, None], active]
        if not is_inside and active.size > 0:  # ... or from the heaviest atom, which takes what the others give
            o = int(weight.argmax())
            b, M = b - b[o], M - M[o] - M[o][:, None] + M[o, o]
        largest = M.diagonal().max(initial=0.0)
        if not largest > 0.0:
            return work
        _solve(M, b, _NOISE * largest)  # what has no curvature, as the heaviest atom here, gets no share
        if not is_inside:
            b[o] = -b.sum()
        work += active.size**3 // 6 + x.size**2
        # As far as the weights allow; the one that ends first leaves.
        left, rates = (np.append(weight, slack), np.append(b, -b.sum())) if is_inside else (weight, b)
        ends = np.flatnonzero(left + rates < 0.0)
        if ends.size == 0:
            x[active] += sign * b
            return work
        steps = -left[ends] / rates[ends]
        leaves = ends[steps.argmin()]
        x[active] += steps.min() * sign * b
        if leaves < active.size:
            x[active[leaves]] = 0.0
        else:
            has_origin = False  # the weights sum to one now, and rounding must not bring it back
    return work


@kernel
def _solve(M, b, noise):
    """Overwrite b by the solution z of M z = b, and the lower half of M by its Cholesky factor.

    What depends on earlier rows, up to ``noise``, gets no share in the solution.
    """
    n = b.shape[0]
    for p in range(n):
        for q in range(p + 1):
            total = 0.0
            for j in range(q):
                total += M[p, j] * M[q, j]
            if p > q:
                M[p, q] = (M[p, q] - total) / M[q, q]
            else:
                left = M[p, p] - total
                is_new = left > _FLAT * M[p, p] and left > noise
                M[p, p] = math.sqrt(left) if is_new else np.inf
        total = 0.0
        for j in range(p):
            total += M[p, j] * b[j]
        b[p] = (b[p] - total) / M[p, p]
    for k in range(n):
        p = n - 1 - k
        b[p] /= M[p, p]
        for j in range(p):
            b[j] -= M[p, j] * b[p]
