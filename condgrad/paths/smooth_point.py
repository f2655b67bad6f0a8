"""SmoothPoint: a smooth loss on a working set, and the steps by which a kernel minimises it there.

F(x) = sum_i v_i f(p_i + b, y_i) for the predictions p of the coefficients x and the best intercept b. The residual is
R_i = -f'(p_i + b, y_i), so that a correlation <z_j, R> is minus the derivative of F by x_j, as it is for least squares.

The Taylor model at x is F(x) + g'(z - x) + (z - x)'G(z - x)/2, with the curvature G = Z' diag(h) Z of the atoms (less
the part of an intercept). :func:`~condgrad.paths.gram_model.solve_model` finds its minimiser exactly. The gradient g is
that of x, always; the curvatures h may be those of an earlier point, and are asked for again where a step did not make
the gap much smaller.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.compiled import compiled, kernel
from condgrad.linalg.vectors import DenseVector
from condgrad.paths.columns import Columns
from condgrad.paths.gram_model import GramModel, empty_model, part_of
from condgrad.problems.samples import Samples, Totals, derive_block, total_block, value_of_range

_FAST = 0.1  # share of the gap above which a step that leaves so much of it asks for fresh curvatures
_INNER = 0.05  # share of the gap to which a model is minimised
_ROUNDING = 1e-14  # share of F that rounding may add to it
_SUFFICIENT = 1e-3  # share of the model's slope by which F must fall, where a step has not halved the gap
_SHORTER = 0.3  # factor by which a step is shortened as long as F does not fall
_SHORTEST = 1e-3  # length of a step below which it is given up
_OUTSIDE = 1e-12  # relative slack: rounding may push a norm this far beyond the radius
_AHEAD = 0.1  # share of the last gap that the working set's own gap may have while atoms are missing
_MOST_IDLE = 5  # rounds without a new atom, each ten times as accurate as the last, after which rounding has won

ZERO, START, SOLVED, ATOMS, MODEL, FRESH_MODEL = range(6)  # how a search begins, and why it stops

# Places in SmoothPoint.numbers; the passes of a point know those without an underscore.
B, MU, LEVEL, IS_TOTAL, _ALONG, _NORM, _GAP, _IS_FRESH, _TOL, _IDLE, _FIRST, _SECOND = range(12)
_N_NUMBERS = 12  # length of SmoothPoint.numbers


@compiled
class SmoothPoint(NamedTuple):
    """A point on its working set; arrays over the atoms have room for more, ``model.n_atoms()`` tells their number.

    ``x``, ``correlation`` (of the atoms with the residual), ``p``, ``a`` (the weighted residual), ``R``, ``d`` (the
    curvatures of the samples) and the sums always belong to each other: :meth:`arrive` computes them.
    """

    samples: Samples
    columns: Columns
    has_intercept: bool
    features: np.ndarray
    x: np.ndarray
    before: np.ndarray  # the coefficients of the last solution but one
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

    # What costs a pass over the atoms or over the samples. ThreadedPoint does the same on all cores.

    def arrive(self, wants_totals):
        """Compute everything that belongs to x; the totals only where they are wanted."""
        _arrive(self, wants_totals)

    def add_up(self):
        """Compute the totals, unless they are there: most points on the way to a solution need none."""
        _add_up(self)

    def value_before(self, b):
        """Return F at ``saved_p`` with the intercept b."""
        return value_of_range(self.samples, self.saved_p, b, 0, self.p.shape[0])

    def correlate(self):
        """Compute the correlations of the atoms."""
        _correlate(self)

    def ask(self, bounds, level):
        """Let ``bounds`` find the features whose correlations exceed a level."""
        _ask(self, bounds, level)

    # The search. These methods read ``numbers`` themselves: every call of a method takes time to compile.

    def pursue(self, bounds, is_penalised, target, limit, finest, event):
        """Search for the minimiser over all features until something is needed; return what.

        That is the minimiser of a Taylor model (MODEL, or FRESH_MODEL with the curvature of x), features that the
        working set lacks (ATOMS), or nothing (SOLVED). ``event`` is ZERO for the point x = 0, START for the next one,
        or what was needed last. The working set is minimised to the gap ``finest``, roughly while atoms are missing;
        ``limit`` is what the gap over all features shall be.
        """
        numbers = self.numbers
        if event == ZERO:
            self.arrive(True)
            self.ask(bounds, -1.0)  # about every column
            return ATOMS
        if event in (START, ATOMS):
            self.correlate()  # there may be new atoms
            numbers[_GAP], numbers[_IS_FRESH] = np.inf, 0.0
        if event == START:
            self.guess(is_penalised, target)
            gap = gap_at(is_penalised, target, numbers, self.totals, numbers[LEVEL])
            numbers[_TOL], numbers[_IDLE] = max(finest, _AHEAD * gap) if gap < np.inf else finest, 0.0
        has_moved = True
        if event in (MODEL, FRESH_MODEL):
            has_moved = self.step(is_penalised, target)
            numbers[_IS_FRESH] = 1.0 if event == FRESH_MODEL else 0.0
        while True:
            gap, last = gap_at(is_penalised, target, numbers, self.totals, numbers[LEVEL]), numbers[_GAP]
            is_stuck = numbers[_IS_FRESH] > 0.0 and (gap >= last or not has_moved)  # rounding has won
            if gap > numbers[_TOL] and not is_stuck:
                numbers[_GAP] = gap
                return MODEL if has_moved and gap <= _FAST * last else FRESH_MODEL
            self.ask(bounds, numbers[LEVEL])
            gap = gap_at(is_penalised, target, numbers, self.totals, max(numbers[LEVEL], bounds.largest()))
            if gap <= limit:
                return SOLVED
            if bounds.n_found() > 0:
                numbers[_TOL], numbers[_IDLE] = max(finest, min(numbers[_TOL], _AHEAD * gap)), 0.0
                return ATOMS
            is_rough = numbers[_TOL] > finest
            numbers[_TOL] = finest if is_rough else 0.1 * numbers[_TOL]
            numbers[_IDLE] += 0.0 if is_rough else 1.0
            if numbers[_IDLE] > _MOST_IDLE:
                return SOLVED
            numbers[_GAP], numbers[_IS_FRESH], has_moved = np.inf, 0.0, True

    def guess(self, is_penalised, target):
        """Continue the line from the last solution but one to the last, unless that makes the gap larger."""
        numbers, n = self.numbers, self.model.n_atoms()
        theta = way_ahead(is_penalised, numbers[_FIRST], numbers[_SECOND], target)
        numbers[_FIRST], numbers[_SECOND] = numbers[_SECOND], target
        gap = gap_at(is_penalised, target, numbers, self.totals, numbers[LEVEL])  # inf: x is outside of a smaller ball
        copy(self.saved, self.x, 1.0 if gap < np.inf else target / numbers[_NORM], n)
        norm = go_ahead(self.x, self.before, theta, n)
        copy(self.before, self.saved, 1.0, n)
        if theta == 0.0 or norm == 0.0:
            copy(self.x, self.saved, 1.0, n)
            if gap < np.inf:
                return
        elif not is_penalised:
            copy(self.x, self.x, target / norm, n)
        for _ in range(2):
            self.arrive(is_penalised)
            if gap_at(is_penalised, target, numbers, self.totals, numbers[LEVEL]) <= gap:
                return
            copy(self.x, self.saved, 1.0, n)
            gap = np.inf

    def step(self, is_penalised, target):
        """Go to the minimiser of the model if that halves the gap, or as far towards it as F falls.

        Return whether it helped.
        """
        model, numbers, n = self.model, self.numbers, self.model.n_atoms()
        b, penalty, norm = numbers[B], target if is_penalised else 0.0, numbers[_NORM]
        slope, farther = compare(self.x, model.x, self.correlation, n)
        if farther == np.inf:
            return False
        copy(self.saved, self.x, 1.0, n)
        copy(self.saved_p, self.p, 1.0, self.p.shape[0])
        copy(self.x, model.x, 1.0, n)
        before, length = 0.0, 1.0
        while True:
            self.arrive(is_penalised)
            if length == 0.0:
                return False
            if length == 1.0:
                if gap_at(is_penalised, target, numbers, self.totals, numbers[LEVEL]) <= 0.5 * numbers[_GAP]:
                    return True
                before = self.value_before(b) + penalty * norm
                slope += penalty * farther
            self.add_up()
            slack = _ROUNDING * abs(before)  # close to the optimum a step changes the gap, and F by less than rounding
            needed = _SUFFICIENT * length * min(slope, 0.0)
            if slope <= slack and self.totals[0] + penalty * numbers[_NORM] <= before + needed + slack:
                return True
            shorter = _SHORTER if slope <= slack and length > _SHORTEST else 0.0
            blend(self.x, self.saved, shorter, n)
            length *= shorter


def point_at_zero(samples: Samples, columns: Columns, has_intercept: bool, b: float, room: int) -> SmoothPoint:
    """Return the point x = 0 with the intercept b and an empty working set that has room for some atoms."""
    n = samples.y.size
    numbers = np.zeros(_N_NUMBERS)
    numbers[B] = b
    return SmoothPoint(
        samples=samples,
        columns=columns,
        has_intercept=has_intercept,
        features=np.zeros(room, np.int64),
        x=np.zeros(room),
        before=np.zeros(room),
        saved=np.zeros(room),
        correlation=np.zeros(room),
        p=np.zeros(n),
        a=np.zeros(n),
        R=np.zeros(n),
        d=np.zeros(n),
        saved_p=np.zeros(n),
        totals=np.zeros(len(Totals._fields)),
        numbers=numbers,
        model=empty_model(room),
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
    return Facts(Totals(*point.totals.tolist()), numbers[_ALONG], numbers[_NORM], numbers[B], numbers[LEVEL])


def model_tolerance(point: SmoothPoint) -> float:
    """Return the gap to which the next model is minimised."""
    return float(max(point.numbers[_TOL], _INNER * point.numbers[_GAP]))


def was_fresh(point: SmoothPoint) -> bool:
    """Return whether the last step had the curvature of the point where it began."""
    return bool(point.numbers[_IS_FRESH] > 0.0)


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
        saved=part(point.saved),
        correlation=part(point.correlation),
        model=part_of(point.model, kept, room),
    )


@kernel
def _ask(point, bounds, level):
    bounds.move(point.columns.weight, point.R)
    bounds.scan(point.columns, point.a, point.numbers[MU], level)


@kernel
def _correlate(point):
    for k in range(point.model.n_atoms()):
        point.correlation[k] = point.columns.correlation(point.features[k], point.a, point.numbers[MU])
    largest = 0.0
    for k in range(point.model.n_atoms()):
        largest = max(largest, abs(point.correlation[k]))
    point.numbers[LEVEL] = largest


@kernel
def pursue(point, bounds, is_penalised, target, limit, finest, event):
    """Search for a point, from Python."""
    found = point.pursue(bounds, is_penalised, target, limit, finest, event)
    _add_up(point)
    return found


@kernel
def gap_at(is_penalised, target, numbers, totals, largest):
    """Return the gap if no correlation exceeds ``largest``; inf where x is outside the ball.

    With a penalty alpha the best x has a norm of at most (F + alpha ||x||) / alpha if the loss is never negative. This
    bounds what the correlations above alpha can gain. For other losses it is an estimate with |F|.
    """
    if is_penalised:
        excess = max(0.0, largest - target)
        return target * numbers[_NORM] - numbers[_ALONG] + excess * (abs(totals[0]) / target + numbers[_NORM])
    return target * largest - numbers[_ALONG] if numbers[_NORM] <= target * (1.0 + _OUTSIDE) else np.inf


@kernel
def way_ahead(is_penalised, first, second, target):
    """Return how far ahead the target is, in units of the way from the first to the second one; 0 where it is not."""
    if is_penalised:
        return np.log(target / second) / np.log(second / first) if first > second > target > 0.0 else 0.0
    return (target - second) / (second - first) if 0.0 < first < second < target else 0.0


@kernel
def _arrive(point, wants_totals):
    vector = DenseVector(point.p)
    for i in range(point.p.shape[0]):
        point.p[i] = 0.0
    for k in range(point.model.n_atoms()):
        if point.x[k] != 0.0:
            point.columns.add(point.features[k], point.x[k], vector)
    if point.has_intercept:
        point.numbers[B] = point.samples.best_intercept(point.p, point.numbers[B])
    derive_block(point.samples, 0, point.p, point.numbers[B], point.a, point.d)
    take_residual(point.columns.weight, point.p, point.x, point.a, point.R, point.numbers, point.model.n_atoms())
    _correlate(point)
    if wants_totals:
        _add_up(point)


@kernel
def _add_up(point):
    if point.numbers[IS_TOTAL] == 0.0:
        point.numbers[IS_TOTAL] = 1.0
        for k in range(point.totals.shape[0]):
            point.totals[k] = 0.0
        total_block(point.samples, 0, point.p, point.numbers[B], point.a, point.d, point.totals)


@kernel
def take_residual(weight, p, x, a, R, numbers, n_atoms):
    """Make weighted residuals of the derivatives in ``a``, and the sums."""
    for i in range(a.shape[0]):
        a[i] = -a[i]
    for i in range(a.shape[0]):
        R[i] = a[i] / weight[i] if weight[i] > 0.0 else 0.0
    along, mu, norm = 0.0, 0.0, 0.0
    for i in range(a.shape[0]):
        along += a[i] * p[i]
        mu += a[i]
    for k in range(n_atoms):
        norm += abs(x[k])
    numbers[_ALONG], numbers[_NORM], numbers[MU], numbers[IS_TOTAL] = along, norm, mu, 0.0


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
def go_ahead(x, before, theta, n_atoms):
    """Overwrite x by x + theta (x - before), with zeros where the sign would change; return its norm."""
    for k in range(n_atoms):
        ahead = x[k] + theta * (x[k] - before[k])
        x[k] = ahead if ahead * x[k] > 0.0 else 0.0
    norm = 0.0
    for k in range(n_atoms):
        norm += abs(x[k])
    return norm


@kernel
def compare(x, z, correlation, n_atoms):
    """Return the slope of F along z - x and how much larger the norm of z is: inf where z is x."""
    slope, farther, has_moved = 0.0, 0.0, False
    for k in range(n_atoms):
        slope -= correlation[k] * (z[k] - x[k])
        farther += abs(z[k]) - abs(x[k])
        has_moved |= z[k] != x[k]
    return slope, farther if has_moved else np.inf


@kernel
def recentre(model, x, correlation):
    """Put the model at x, where these are the correlations: c = correlation + G x. The support follows."""
    n_atoms = np.uint64(model.n_atoms())
    for k in range(n_atoms):
        model.c[k] = correlation[k]
        model.correlation[k] = correlation[k]
    for q in range(n_atoms):
        model.x[q] = x[q]
        if x[q] != 0.0:
            value = x[q]
            for k in range(n_atoms):
                model.c[k] += value * model.G[q, k]
    q = 0
    while q < model.n_support():
        if x[model.support[q]] == 0.0:
            model.leave(q)
        else:
            q += 1
    for k in range(model.n_atoms()):
        if x[k] != 0.0 and not model.is_in[k] and not model.enter(k):
            model.x[k] = 0.0
    model.correlate()
