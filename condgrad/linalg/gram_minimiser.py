"""How a GramModel is minimised exactly, for a fixed radius or a fixed penalty.

On the support S, with signs s, its minimiser under s'x = radius (or with the penalty alpha s'x) solves the KKT system
G_SS x = c_S - alpha s: each change of the support is one solve with an up- or downdated Cholesky factor. A step ends
early where a coefficient reaches zero, which leaves; at the minimiser the atom with the largest correlation
c_j - (Gx)_j above alpha enters.

An atom that depends linearly on the support has no pivot. Then a direction z with Gz = 0 leads from the support to it,
along which the objective is constant and the norm falls by |correlation| / alpha - 1 a unit: the step goes on until a
coefficient of the support reaches zero, and that one makes room.

Where coefficients are at least 0, all signs are positive, and only a positive correlation lets an atom enter.
"""

from __future__ import annotations

import numpy as np

from condgrad.compiled import borrowed, kernel
from condgrad.linalg.gram_model import enter, enter_those, leave

_ENTERS = 1e-11  # least share by which the correlation of an atom that enters exceeds alpha

SOLVED, GAVE_UP = 0, 1


@kernel
def first_zero(model, sign, direction, limit):
    """Return the longest step up to ``limit`` that keeps the signs, and the place in S that stops it (-1: none)."""
    step, blocker = limit, -1
    for q in range(model.n_support()):
        if sign[q] * direction[q] < 0.0:
            reach = -model.x[model.support[q]] / direction[q]
            if reach < step:
                step, blocker = reach, q
    return max(step, 0.0), blocker


@kernel
def solve_model(model, squared_y, is_penalised, target, tol, max_changes, caution=0.0):
    """Minimise the model to a gap of at most ``tol``; return status, number of changes, alpha and the gap.

    Of several atoms with a correlation above alpha, only those enter together that exceed it by this share of the
    most (``caution``): all at first, then one by one, if it is 0.
    """
    model = borrowed(model)
    banned = np.zeros(model.n_atoms(), np.bool_)
    has_more, alpha, gap = True, target, np.inf
    for change in range(max_changes):
        alpha, blocker = _go_to_minimiser(model, is_penalised, target)
        if blocker >= 0:
            model.x[model.support[blocker]] = 0.0
            leave(model, blocker)
            continue
        # x is the minimiser on its support: is there an atom outside of it that would improve the objective?
        gap, entering = _ask_atoms(model, squared_y, is_penalised, target, alpha, banned)
        if gap <= tol or entering < 0:
            if model.is_fresh():
                return SOLVED, change, alpha, gap
            model.correlate()  # rounding has piled up in the correlations: ask once more with fresh ones
            continue
        if has_more:
            has_more = _enter_together(model, alpha, caution)
        elif not enter(model, entering):
            banned[entering] = True
            _exchange(model, entering)
    return GAVE_UP, max_changes, alpha, gap


@kernel
def _go_to_minimiser(model, is_penalised, target):
    """Go towards the minimiser on the support; return alpha there and the place in S that stops the step (-1: none)."""
    size = model.n_support()
    if size == 0:
        return (target if is_penalised else 0.0), -1
    vectors = np.empty((4, size))  # at once: for a small support, asking for memory takes as long as what follows
    sign, direction, slope, fall = vectors[0], vectors[1], vectors[2], vectors[3]
    for q in range(size):
        k = model.support[q]
        ahead = model.x[k] if model.x[k] != 0.0 else model.correlation[k]
        sign[q] = model.sign(ahead)
        direction[q] = model.correlation[k]
        slope[q] = sign[q]
    model.forward_both(direction, slope)
    alpha = target
    if not is_penalised:
        # G d = correlation - alpha s with s'd = radius - norm; alpha < 0: the minimiser is inside the ball.
        norm, along, curvature = 0.0, 0.0, 0.0
        for q in range(size):
            norm += abs(model.x[model.support[q]])
            along += slope[q] * direction[q]
            curvature += slope[q] * slope[q]
        alpha = max(0.0, (along - (target - norm)) / curvature)
    for q in range(size):
        direction[q] -= alpha * slope[q]
        fall[q] = model.correlation[model.support[q]] - alpha * sign[q]
    model.backward(direction)
    step, blocker = first_zero(model, sign, direction, 1.0)
    model.approach(direction, step, fall)
    return alpha, blocker


@kernel
def _ask_atoms(model, squared_y, is_penalised, target, alpha, banned):
    """Return the gap at x, and the atom outside the support with the largest correlation above alpha (-1: none)."""
    along, fit, norm = 0.0, 0.0, 0.0
    for q in range(model.n_support()):
        k = model.support[q]
        along += model.x[k] * model.correlation[k]
        fit += model.x[k] * model.c[k]
        norm += abs(model.x[k])
    largest, best, entering = 0.0, alpha * (1.0 + _ENTERS) + 1e-300, -1
    for j in range(model.n_atoms()):
        value = model.size(j)
        largest = max(largest, value)
        if value > best and not model.is_in[j] and not banned[j]:
            best, entering = value, j
    if is_penalised:
        return duality_gap(squared_y, fit, along, alpha * norm, alpha, largest), entering
    return target * largest - along, entering


@kernel
def _enter_together(model, alpha, caution):
    """Append atoms with a correlation above alpha to the support, but those that depend linearly on it.

    Where most of the atoms that have just been admitted stay there, it is best to append all: for one atom after the
    other, each would cost a way to the minimiser on the support. But an atom that does not belong there leaves on such
    a way, which costs as much. Return whether this should be done again.
    """
    before, is_above, largest = model.n_support(), np.empty(model.n_atoms(), np.bool_), alpha
    for k in range(model.n_atoms()):
        if not model.is_in[k]:
            largest = max(largest, model.size(k))
    least = max(alpha * (1.0 + _ENTERS), alpha + caution * (largest - alpha))
    for k in range(model.n_atoms()):
        is_above[k] = model.size(k) > least
    enter_those(model, is_above)
    return caution > 0.0 and model.n_support() > before


@kernel
def _exchange(model, entering):
    """Let an atom that depends on the support take the place of the one that reaches zero first on the way to it."""
    size = model.n_support()
    onto = model.sign(model.correlation[entering])
    null, sign = np.empty(size), np.empty(size)
    for q in range(size):
        k = model.support[q]
        null[q] = -onto * model.G[entering, k]
        sign[q] = model.sign(model.x[k])
    model.forward(null)
    model.backward(null)
    step, blocker = first_zero(model, sign, null, np.inf)
    if blocker < 0:
        return
    model.move(null, step)
    model.x[entering] += step * onto
    model.x[model.support[blocker]] = 0.0
    leave(model, blocker)
    if not enter(model, entering):
        model.x[entering] = 0.0  # it depends on the rest too: go on without it
    model.correlate()


@kernel
def duality_gap(squared_y, fit, along, penalty, alpha, largest):
    """Return P(x) - D(theta) for P(x) = ||R||^2/2 + alpha ||x||_1 and the best multiple theta of R that is feasible.

    ``fit`` is <y, Xx>, ``along`` <R, Xx>, ``penalty`` alpha ||x||_1 and ``largest`` the largest |<z_j, R>|, or a bound
    of it. D(theta) = (||y||^2 - ||y - theta||^2)/2 over theta with |<z_j, theta>| <= alpha.
    """
    squared_r = max(squared_y - fit - along, 0.0)
    y_r = squared_y - fit
    if squared_r == 0.0:
        return penalty
    share = y_r / squared_r
    if largest * abs(share) > alpha:
        share = np.sign(share) * alpha / largest
    return 0.5 * squared_r + penalty - share * (y_r - 0.5 * share * squared_r)
