"""The minimiser of a quadratic on a face of a hull, by a Cholesky factor: first-order steps only come close to it."""

from __future__ import annotations

import math

import numpy as np

from condgrad.compiled import kernel

_NO_WEIGHT = 1e-15  # smallest weight of the origin, 1 minus the sum of the weights: rounding of that sum
_FLAT = 1e-10  # relative tolerance: an atom whose pivot is below this fraction of its curvature depends on the others
_RIDGE = (
    1e-13  # ridge added to the curvature along scaled differences, relative to the largest: some may depend on others
)
_NOISE = 1e-13  # relative to the largest curvature: centring may leave this much where the exact value is 0


def minimise_on_face(g: np.ndarray, H: np.ndarray, x: np.ndarray, has_origin: bool, max_work: float) -> int:
    """Overwrite x by the minimiser of <g, z - x> + (z - x)'H(z - x)/2 over its nonzero atoms, without sign changes.

    The sum of |z| stays one, or below one if the set contains the origin and x lies inside. An atom that would change
    its sign is removed, as in Wolfe's algorithm for the nearest point, and the rest is solved again. ``g`` is the
    gradient at the given x and is not changed. Return the number of multiplications, not many more than ``max_work``.
    """
    active = np.flatnonzero(x)
    sign, weight = np.sign(x[active]), np.abs(x[active])
    H = (sign[:, None] * sign) * H[active[:, None], active]
    room = np.empty_like(H), np.empty_like(weight)
    work = _descend(sign * g[active], H, weight, has_origin, max_work, *room)
    x[active] = sign * weight
    return int(work)


def minimise_in_span(
    c: np.ndarray, H: np.ndarray, points: np.ndarray, weight: np.ndarray, has_origin: bool
) -> np.ndarray:
    """Return the positive weights, or some zeros, that minimise <c, z> + z'Hz/2 for the sum z of weighted ``points``.

    It is the same algorithm as :func:`minimise_on_face`, for given points instead of their products: the curvature is
    computed from differences of points, scaled to length one, so that points may be very close together.
    """
    weight = weight.copy()
    for _ in range(weight.size):
        r = c + H @ (weight @ points)
        slack = 1.0 - weight.sum()
        is_in, o = weight > 0.0, -1
        if not (has_origin and slack > _NO_WEIGHT):
            o = int(weight.argmax())
            is_in[o] = False
        D = points[is_in] - (points[o] if o >= 0 else 0.0)
        lengths = np.sqrt(np.square(D).sum(axis=1))
        lengths[lengths == 0.0] = np.inf
        D /= lengths[:, None]
        M = D @ H @ D.T
        largest = float(np.diag(M).max(initial=0.0))
        if not 0.0 < largest < np.inf:
            break
        M[np.diag_indices_from(M)] += _RIDGE * largest
        move = np.zeros_like(weight)
        move[is_in] = np.linalg.solve(M, -(D @ r)) / lengths
        if not np.isfinite(move).all():
            break
        total = move.sum()
        if o >= 0:
            move[o] = -total
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = np.where(move < 0.0, -weight / move, np.inf)
        leaves = int(steps.argmin())
        gamma = min(1.0, float(steps[leaves]), slack / total if o < 0 and total > 0.0 else np.inf)
        weight = np.maximum(weight + gamma * move, 0.0)
        if gamma == 1.0:
            break
        if gamma == steps[leaves]:
            weight[leaves] = 0.0
        else:
            has_origin = False
    return weight


@kernel
def _descend(s, H, weight, has_origin, max_work, M, b):
    """Do the work of ``minimise_on_face`` for atoms with positive weights and slopes ``s``.

    ``M`` and ``b`` are work arrays. The origin, or else the heaviest atom o, receives the weight that the others lose.
    """
    n, work = weight.shape[0], 0
    while work < max_work:
        o, slack = -1, 1.0  # the weight of the origin
        for p in range(n):
            slack -= weight[p]
        if not (has_origin and slack > _NO_WEIGHT):
            for p in range(n):
                if o < 0 or weight[p] > weight[o]:
                    o = p
        # The slopes and the curvature of moves from the origin, or from o, to the others. The rows of o and of removed
        # atoms are zero, so that the solution is zero there.
        largest = 0.0
        for p in range(n):
            is_in = p != o and weight[p] > 0.0
            b[p] = 0.0
            if is_in:
                b[p] = s[o] - s[p] if o >= 0 else -s[p]
            for q in range(p + 1):
                M[p, q] = 0.0
                if is_in and q != o and weight[q] > 0.0:
                    M[p, q] = H[p, q] - H[o, p] - H[o, q] + H[o, o] if o >= 0 else H[p, q]
            if M[p, p] > largest:
                largest = M[p, p]
        if not largest > 0.0:
            return work
        _solve(M, b, _NOISE * largest)
        work += n * n * n // 6 + n * n
        # Go as far as the weights stay nonnegative; the atom that reaches 0 first is removed.
        gamma, leaves, total = 1.0, -1, 0.0
        for p in range(n):
            total += b[p]
        if o >= 0:
            b[o] = -total
        for p in range(n):
            if weight[p] + gamma * b[p] < 0.0:
                gamma, leaves = -weight[p] / b[p], p
        if o < 0 and slack - gamma * total < 0.0:
            gamma, leaves = slack / total, n
        for p in range(n):
            # Others that reach 0 at the same time may be below it by rounding: from there no step would lead back.
            weight[p] = 0.0 if p == leaves else max(0.0, weight[p] + gamma * b[p])
            change = 0.0
            for q in range(n):
                change += H[p, q] * b[q]
            s[p] += gamma * change
        if leaves < 0:
            return work
        if leaves == n:
            has_origin = False  # the weights sum to one now; rounding must not give the origin weight again
    return work


@kernel
def _solve(M, b, noise):
    """Overwrite b by the solution z of M z = b, and the lower half of M by its Cholesky factor.

    A row that depends linearly on earlier rows, up to ``noise``, gets the solution 0.
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
