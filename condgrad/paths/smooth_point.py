"""SmoothPoint: a smooth loss at a point of its path, on a working set, and kernels of its arrays.

F(x) = sum_i v_i f(p_i + b, y_i) for the predictions p of the coefficients x and the best intercept b. The residual is
R_i = -f'(p_i + b, y_i), so that a correlation <z_j, R> is minus the derivative of F by x_j, as it is for least squares.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.compiled import kernel
from condgrad.linalg.gram_model import GramModel, empty_model, part_of
from condgrad.paths.columns import Features
from condgrad.paths.working_set import correlate_atoms
from condgrad.problems.samples import Samples
from condgrad.problems.totals import Totals

_MOST_FACTOR = 3.0  # how many times as large as the model says curvature along a way may be, or as small
_OUTSIDE = 1e-12  # relative slack: rounding may push a norm this far beyond the radius


# Places in SmoothPoint.numbers.
B, MU, LEVEL, IS_TOTAL, ALONG, NORM, FLOOR = range(7)
_N_NUMBERS = 7  # length of SmoothPoint.numbers
FAILED, ACCEPTED, GOOD = -1.0, 0.0, 1.0  # how good a step was: x stayed, F fell, F fell about as the model promised


class SmoothPoint(NamedTuple):
    """A point on its working set; arrays over the atoms have room for more, ``model.n_atoms()`` tells their number.

    ``x``, ``correlation`` (of the atoms with the residual), ``p``, ``a`` (the weighted residual), ``R``, ``d`` (the
    curvatures of the samples) and the sums always belong to each other, but while a search sets them.
    """

    samples: Samples
    columns: Features
    has_intercept: bool
    features: np.ndarray
    x: np.ndarray
    before: np.ndarray  # the coefficients of the last solution but one
    correlation_before: np.ndarray  # the correlations there; nan: not known, because the atom is new
    saved: np.ndarray  # those to which a step can return
    correlation: np.ndarray
    p: np.ndarray
    a: np.ndarray
    R: np.ndarray
    d: np.ndarray
    saved_p: np.ndarray
    totals: np.ndarray  # those of the samples: the fields of Totals
    numbers: np.ndarray  # numbers that change while the point stays
    model: GramModel


def point_at_zero(
    samples: Samples, columns: Features, has_intercept: bool, b: float, floor: float, room: int
) -> SmoothPoint:
    """Return the point x = 0 with the intercept b and an empty working set that has room for some atoms.

    ``floor`` is a lower bound of the loss over all predictions.
    """
    n = samples.y.size
    numbers = np.zeros(_N_NUMBERS)
    numbers[B], numbers[FLOOR] = b, floor
    return SmoothPoint(
        samples=samples,
        columns=columns,
        has_intercept=has_intercept,
        features=np.zeros(room, np.int64),
        x=np.zeros(room),
        before=np.zeros(room),
        correlation_before=np.full(room, np.nan),
        saved=np.zeros(room),
        correlation=np.zeros(room),
        p=np.zeros(n),
        a=np.zeros(n),
        R=np.zeros(n),
        d=np.zeros(n),
        saved_p=np.zeros(n),
        totals=np.zeros(len(Totals._fields)),
        numbers=numbers,
        model=empty_model(room, columns.is_symmetric),
    )


class Facts(NamedTuple):
    """What is known about a point: F and its sums, <R, Zx>, ||x||_1, the intercept and the largest correlation."""

    totals: Totals
    along: float
    norm: float
    b: float
    level: float


def facts_of(point: SmoothPoint) -> Facts:
    """Return what is known about the point."""
    numbers = point.numbers.tolist()
    return Facts(Totals(*point.totals.tolist()), numbers[ALONG], numbers[NORM], numbers[B], numbers[LEVEL])


def part_of_point(point: SmoothPoint, kept: np.ndarray, room: int) -> SmoothPoint:
    """Return the same point with the ``kept`` atoms, all that have a coefficient among them, and room for more."""

    def part(of: np.ndarray) -> np.ndarray:
        out = np.zeros(room, of.dtype)
        out[: kept.size] = of[kept]
        return out

    return point._replace(
        features=part(point.features),
        x=part(point.x),
        before=part(point.before),
        correlation_before=part(point.correlation_before),
        saved=part(point.saved),
        correlation=part(point.correlation),
        model=part_of(point.model, kept, room),
    )


@kernel
def penalised_gap(alpha, value, along, norm, largest, floor):
    """Return a bound of F(x) + alpha ||x|| - (F(z) + alpha ||z||) over all z, and of the gap over the ball of ||x||.

    For s between 0 and 1 the loss is at least s times its tangent at x plus (1 - s) times its lower bound ``floor``.
    The largest correlation of this affine function is s times ``largest``, so for s = alpha / largest it does not fall
    faster than the penalty grows: then F(z) + alpha ||z|| is at least s (F(x) + <R, Zx>) + (1 - s) floor.
    """
    share = alpha / largest if largest > alpha else 1.0
    room = abs(value - floor)  # a loss below its own lower bound has no certificate, but a rough solution of it is used
    bound = alpha * norm - along + (1.0 - share) * (room + along) if room + along > 0.0 else room + alpha * norm
    return max(bound, largest * norm - along)


@kernel
def gap_at(is_penalised, target, numbers, totals, largest):
    """Return the gap if no correlation exceeds ``largest``; inf where x is outside the ball."""
    if is_penalised:
        return penalised_gap(target, totals[0], numbers[ALONG], numbers[NORM], largest, numbers[FLOOR])
    return target * largest - numbers[ALONG] if numbers[NORM] <= target * (1.0 + _OUTSIDE) else np.inf


@kernel
def take_residual(weight, p, x, a, R, numbers, n_atoms):
    """Make weighted residuals of the derivatives in ``a``, and the sums."""
    for i in range(a.shape[0]):
        a[i] = -a[i]
        R[i] = a[i] / weight[i] if weight[i] > 0.0 else 0.0
    along, mu, norm = 0.0, 0.0, 0.0
    for i in range(a.shape[0]):
        along += a[i] * p[i]
        mu += a[i]
    for k in range(n_atoms):
        norm += abs(x[k])
    numbers[ALONG], numbers[NORM], numbers[MU], numbers[IS_TOTAL] = along, norm, mu, 0.0


@kernel
def settle(columns, features, weight, p, x, a, R, correlation, numbers, n_atoms):
    """Do the same, and compute the correlations of the atoms, whose columns these are, and the largest size of one."""
    take_residual(weight, p, x, a, R, numbers, n_atoms)
    numbers[LEVEL] = correlate_atoms(columns, features, a, numbers[MU], x, 0.0, correlation, 0, n_atoms)


@kernel
def copy(to, source, factor, size):
    """Overwrite the first entries of ``to`` by those of ``source`` times a factor."""
    for k in range(size):
        to[k] = factor * source[k]


@kernel
def blend(x, origin, gamma, size):
    """Overwrite x by origin + gamma (x - origin)."""
    for k in range(size):
        x[k] = origin[k] + gamma * (x[k] - origin[k])


@kernel
def foresee(G, x, correlation, before, correlation_before, weight, growth, out, n_atoms):
    """Fill in the correlations at x, plus ``weight`` times what the model missed on the way from ``before`` to x.

    The model's correlations change by -c G (x - before) on that way, for the c that fits best along it. ``weight`` says
    how much more it will miss on the next one, ``growth`` how much farther from 1 the best c will be there: it is
    returned (1 if ``growth`` is 0). Where the correlation before is not known, that at x stays. Then x is the point
    before the next one.
    """
    for j in range(n_atoms):
        out[j] = 0.0
    if weight != 0.0:
        for k in range(n_atoms):
            change = x[k] - before[k]
            if change != 0.0:
                for j in range(n_atoms):
                    out[j] += change * G[k, j]
    expected, found = 0.0, 0.0
    for j in range(n_atoms):
        if abs(correlation_before[j]) < np.inf:
            expected += (x[j] - before[j]) * out[j]
            found += (x[j] - before[j]) * (correlation_before[j] - correlation[j])
    factor = bounded_factor(found / expected) if growth != 0.0 and expected > 0.0 else 1.0
    for j in range(n_atoms):
        out[j] = correlation[j] + weight * (correlation[j] - correlation_before[j] + factor * out[j])
        if not abs(out[j]) < np.inf:
            out[j] = correlation[j]
        before[j], correlation_before[j] = x[j], correlation[j]
    return bounded_factor(1.0 + growth * (factor - 1.0))


@kernel
def bounded_factor(factor):
    """Return a factor of the curvature that is neither absurd nor nan."""
    return min(max(factor, 1.0 / _MOST_FACTOR), _MOST_FACTOR) if factor > 0.0 else 1.0


@kernel
def compare(x, z, correlation, n_atoms):
    """Return the slope of F along z - x and how much larger the norm of z is: inf where z is x."""
    slope, farther, has_moved = 0.0, 0.0, False
    for k in range(n_atoms):
        slope -= correlation[k] * (z[k] - x[k])
        farther += abs(z[k]) - abs(x[k])
        has_moved |= z[k] != x[k]
    return slope, farther if has_moved else np.inf
