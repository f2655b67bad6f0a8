"""Search: the steps by which points of a smooth loss are minimised over the working set, one target after the other.

The Taylor model at x is F(x) + g'(z - x) + (z - x)'G(z - x)/2, with the curvature G = Z' diag(h) Z of the atoms (less
the part of an intercept). :func:`~condgrad.linalg.gram_minimiser.solve_model` finds its minimiser exactly. The gradient
g is that of x, always; the curvatures h may be those of an earlier point, and are asked for again where a step did not
make the gap much smaller.

:func:`turn` searches on until it needs something that is not here: the loss at other predictions, columns that the
working set lacks, a curvature. It returns what, and goes on from there when it is called again. Where one thread is
enough, the loss is an errand (:mod:`condgrad.compiled.errands`), and no Python runs between points whose working set
and curvature are the same. Where the data are large, passes over samples and columns are among the things that it asks
for, because they run on several threads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.compiled import Errand, borrowed, compiled, kernel
from condgrad.linalg.gram_minimiser import solve_model
from condgrad.linalg.gram_model import GramModel, recentre
from condgrad.paths.columns import Columns
from condgrad.paths.oracle import LazyBounds, move_and_scan
from condgrad.paths.smooth_course import (
    ABOVE,
    AFTER_BACK,
    AFTER_MODEL,
    BACK,
    BEGIN,
    CURVATURE,
    CURVED,
    DONE,
    ENLARGED,
    EVALUATED,
    EVALUATION,
    EXPANSION,
    FACTOR,
    GAP,
    GUESS,
    GUESSED,
    MODEL,
    MODEL_TOL,
    NEXT,
    PAUSE,
    POSE,
    PRUNING,
    SCAN,
    SERVES,
    SHORTEN,
    SHORTER,
    SPENT,
    STAGE,
    STEP,
    STEPPED,
    TARGETS,
    THRESHOLD,
    TOL,
    TOTALS,
    WEIGH,
    Course,
)
from condgrad.paths.smooth_curvature import multiply_atoms, take_out_intercept
from condgrad.paths.smooth_history import History
from condgrad.paths.smooth_point import (
    LEVEL,
    MU,
    NORM,
    B,
    blend,
    bounded_factor,
    compare,
    copy,
    foresee,
    settle,
)
from condgrad.paths.working_set import predict_atoms

_FIRST_MODEL = 0.1  # share of the tolerance to which the first model of a point is minimised
_INNER = 0.05  # share of the gap to which a later model is minimised

NORM_FOUND, B_FOUND, ALPHA_FOUND, GAP_FOUND = range(4)  # columns of Task.found; the totals follow
N_FOUND = 4  # how many columns there are before the totals


@compiled
class Search(NamedTuple):
    """The arrays of a point, of its model and of the bounds of all columns, and how far the search is (``course``).

    With ``is_alone`` one thread is enough for the passes over samples and columns, and they are a part of the search:
    ``errand`` computes the loss.
    """

    columns: Columns
    features: np.ndarray  # the places of the atoms among the columns
    bounds: LazyBounds
    history: History
    model: GramModel
    x: np.ndarray
    before: np.ndarray
    correlation_before: np.ndarray
    saved: np.ndarray
    correlation: np.ndarray
    p: np.ndarray
    a: np.ndarray
    R: np.ndarray
    d: np.ndarray
    h: np.ndarray  # the curvatures of the samples in the model
    saved_p: np.ndarray
    totals: np.ndarray
    numbers: np.ndarray
    course: np.ndarray
    is_alone: bool
    errand: Errand
    curves_alone: bool  # whether it computes other curvatures itself, too
    has_intercept: bool
    work: float  # that of a step, in multiply-adds
    most_work: float  # after which it returns to hear Ctrl-C

    def go_on(self, task, solutions):
        """Do what the present stage asks for, and choose the next one; return what is needed for that (-1: nothing)."""
        course, numbers, n = self.course, self.numbers, self.features.shape[0]
        decide = Course(course, numbers, self.totals, task)
        stage, target, beyond = course[STAGE], decide.target(), self.bounds.largest()
        largest = max(numbers[LEVEL], beyond)
        own, whole, needs = decide.gap(numbers[LEVEL]), decide.gap(largest), -1
        if stage == NEXT:
            needs = decide.choose_target(beyond, whole)
        elif stage == BEGIN:  # the gradient of the last model foresees how the curvature changes on the way
            decide.begin(self.bounds.n_scanned())
            place = task.place(target)
            weight, growth = self.history.weight(place), self.history.growth(place)
            self.history.append(place)
            course[FACTOR] = foresee(
                self.model.G, self.x, self.correlation, self.before, self.correlation_before, weight, growth,
                self.saved, n,
            )  # fmt: skip
            decide.leave_to_model(_FIRST_MODEL * task.limit(), GUESS)
        elif stage == MODEL:
            minimise_model(self.model, self.x, self.saved, task.is_penalised, target, course[MODEL_TOL], course[FACTOR])
            course[STAGE] = course[AFTER_MODEL]
        elif stage == GUESS:  # go to the minimiser of the last model for the new target
            needs = decide.begin_guess(own)
            scale = 1.0 if own < np.inf else target / numbers[NORM]
            copy(self.saved, self.x, scale, n)
            copy(self.x, self.model.x, 1.0, n)
        elif stage == GUESSED:
            needs = decide.judge_guess(own)
        elif stage == ENLARGED:
            needs = decide.start_again()
        elif stage == WEIGH:
            needs = decide.weigh(own, self.work)
        elif stage == POSE:
            course[SPENT] += self.work
            course[FACTOR] = bounded_factor(sum_of(self.d) / course[CURVED])  # the mean over all directions, about
            copy(self.saved, self.correlation, 1.0, n)
            decide.leave_to_model(max(course[TOL], _INNER * course[GAP]), STEP)
        elif stage == STEP:  # go to the minimiser of the model, unless it is x
            slope, farther = compare(self.x, self.model.x, self.correlation, n)
            needs = decide.begin_step(slope, farther)
            if needs == EVALUATION:
                copy(self.saved, self.x, 1.0, n)
                copy(self.saved_p, self.p, 1.0, self.p.shape[0])
                copy(self.x, self.model.x, 1.0, n)
        elif stage == STEPPED:
            needs = decide.judge_step(own)
        elif stage == SHORTEN:
            blend(self.x, self.saved, SHORTER, n)
            course[STAGE], needs = STEPPED, EVALUATION
        elif stage == BACK:
            copy(self.x, self.saved, 1.0, n)
            course[STAGE], needs = course[AFTER_BACK], EVALUATION
        elif stage == SERVES:
            record(solutions, course, self.x, numbers, self.totals, largest, whole, n)
            if not whole <= task.limit():  # more may have to be done for it
                needs = TARGETS
            elif has_many_idle(self.model, self.x, task.n_idle):
                needs = PRUNING
        else:
            needs = decide.look(beyond, largest, whole)
        course[EVALUATED] += needs == EVALUATION
        return needs


class Solutions(NamedTuple):
    """Coefficients of the solutions, one row for each target, and what is known about them."""

    x: np.ndarray
    found: np.ndarray


@kernel
def turn(search, task, solutions):
    """Search on until something is needed that is not here; return what."""
    search, task, solutions = borrowed(search), borrowed(task), borrowed(solutions)
    columns, features, numbers, n = search.columns, search.features, search.numbers, search.features.shape[0]
    decide = Course(search.course, numbers, search.totals, task)
    needs, work = -1, 0.0
    while needs < 0:
        needs = search.go_on(task, solutions)
        if search.curves_alone and needs == CURVATURE:
            renew_curvature(columns, features, search.d, search.h, search.has_intercept, search.model, search.course)
            search.history.renew(task.place(decide.target()))
            needs = -1
        elif search.is_alone and needs in (EVALUATION, SCAN, TOTALS):
            if needs == EVALUATION:
                wants_totals = decide.wants_totals()
                predict_atoms(columns, features, search.x, search.p, 0, n)
                search.errand.run(EXPANSION if wants_totals else EVALUATION)
                settle(
                    columns, features, columns.weight, search.p, search.x, search.a, search.R, search.correlation,
                    numbers, n,
                )  # fmt: skip
                decide.note(wants_totals)
            elif needs == SCAN:
                look(search.bounds, columns, search.R, search.a, numbers[MU], search.course, n)
            else:
                search.errand.run(TOTALS)
            work += search.work
            needs = PAUSE if work > search.most_work else -1
    return needs


@kernel
def minimise_model(model, x, correlation, is_penalised, target, tol, factor):
    """Find the minimiser of the model at x over the working set: exactly where there is a penalty, as it has no gap.

    Its curvature counts ``factor`` times: so everything else is divided by that.
    """
    n = model.n_atoms()
    for k in range(n):
        correlation[k] /= factor
    recentre(model, x, correlation)
    goal = target / factor if is_penalised else target
    solve_model(model, 0.0, is_penalised, goal, -np.inf if is_penalised else tol / factor, 1000 + 20 * n)
    if not model.is_symmetric:
        raise_to_zero(model.x, n)


@kernel
def sum_of(d):
    """Return the sum of the curvatures of the samples."""
    total = 0.0
    for i in range(d.shape[0]):
        total += d[i]
    return total


@kernel
def renew_curvature(columns, features, d, h, has_intercept, model, course):
    """Make the model of the curvatures d of the present point."""
    copy(h, d, 1.0, d.shape[0])
    multiply_atoms(columns, features, h, model.G, 0, features.shape[0])
    if has_intercept:
        take_out_intercept(columns, features, 0, h, model.G)
    model.forget_support(features.shape[0])
    course[SPENT] = 0.0
    course[CURVED] = sum_of(d)


@kernel
def look(bounds, columns, R, a, mu, course, n_atoms):
    """Scan the columns, unless all of them are in the working set."""
    if n_atoms < bounds.key.shape[0]:
        move_and_scan(bounds, columns.weight, R, columns, a, mu, course[THRESHOLD], course[ABOVE])
    else:
        bounds.record(0.0, 0, 0)


@kernel
def raise_to_zero(x, n_atoms):
    """Raise negative coefficients to zero: rounding may leave them just below it."""
    for k in range(n_atoms):
        x[k] = max(x[k], 0.0)


@kernel
def record(solutions, course, x, numbers, totals, alpha, gap, n_atoms):
    """Note the solution of the present target, with its multiplier and its gap; the next target is the present one."""
    k = np.int64(course[DONE])
    for j in range(n_atoms):
        solutions.x[k, j] = x[j]
    found = solutions.found
    found[k, NORM_FOUND], found[k, B_FOUND], found[k, ALPHA_FOUND] = numbers[NORM], numbers[B], alpha
    found[k, GAP_FOUND] = max(gap, 0.0)
    for j in range(totals.shape[0]):
        found[k, N_FOUND + j] = totals[j]
    course[DONE] += 1.0
    course[STAGE] = NEXT


@kernel
def gather(x, order, features, scale):
    """Return how many coefficients each row of x has, their features and themselves in an order, row by row.

    And the largest sum of their sizes in a row, each times the scale of its feature.
    """
    sizes, largest, n_found = np.zeros(x.shape[0], np.int64), 0.0, 0
    for k in range(x.shape[0]):
        total, count = 0.0, 0
        for j in order:
            total += abs(x[k, j]) * scale[features[j]]
            count += x[k, j] != 0.0
        sizes[k] = count
        largest = max(largest, total)
        n_found += sizes[k]
    places, found, n_found = np.empty(n_found, np.int64), np.empty(n_found), 0
    for k in range(x.shape[0]):
        for j in order:
            if x[k, j] != 0.0:
                places[n_found], found[n_found] = features[j], x[k, j]
                n_found += 1
    return sizes, places, found, largest


@kernel
def has_many_idle(model, x, n_idle):
    """Tell whether many atoms have no coefficient."""
    n, n_kept = model.n_atoms(), 0
    for k in range(n):
        n_kept += x[k] != 0.0 or model.is_in[k]
    return n > n_idle and n > 2 * n_kept + n_idle
