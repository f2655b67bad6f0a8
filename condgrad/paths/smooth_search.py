"""Search: the steps by which points of a smooth loss are minimised over the working set, one target after the other.

The Taylor model at x is F(x) + g'(z - x) + (z - x)'G(z - x)/2, with the curvature G = Z' diag(h) Z of the atoms (less
the part of an intercept). :func:`~condgrad.linalg.gram_model.solve_model` finds its minimiser exactly. The gradient g
is that of x, always; the curvatures h may be those of an earlier point, and are asked for again where a step did not
make the gap much smaller.

:func:`turn` searches on until it needs something that is not here: the loss at other predictions, columns that the
working set lacks, a curvature. It returns what, and goes on from there when it is called again: between two evaluations
of the loss no Python runs. Where the data are large, passes over the columns are among the things that it asks for,
because they run on several threads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.compiled import kernel
from condgrad.linalg.gram_model import GramModel, recentre, solve_model
from condgrad.paths.columns import Columns
from condgrad.paths.oracle import LazyBounds, move_and_scan
from condgrad.paths.smooth_course import (
    ABOVE,
    AFTER_BACK,
    AFTER_MODEL,
    AFTER_SCAN,
    ALL,
    ASK,
    BACK,
    BEFORE,
    BEGIN,
    BEGUN,
    DONE,
    ENLARGED,
    EVALUATION,
    GAP,
    GUESS,
    GUESSED,
    IS_FRESH,
    LOOKED,
    MODEL,
    MODEL_TOL,
    NEXT,
    POSE,
    PRUNING,
    QUALITY,
    SCAN,
    SCANNED,
    SCANNING,
    SHORTEN,
    SHORTER,
    SOLVED,
    SPENT,
    STAGE,
    STEP,
    STEPPED,
    STEPS,
    TARGETS,
    THRESHOLD,
    TOL,
    WEIGH,
    Course,
)
from condgrad.paths.smooth_history import History
from condgrad.paths.smooth_point import (
    GOOD,
    IS_TOTAL,
    LEVEL,
    MU,
    NORM,
    B,
    blend,
    compare,
    copy,
    foresee,
    take_residual,
)
from condgrad.paths.working_set import correlate_atoms, predict_atoms

_FIRST_MODEL = 0.1  # share of the tolerance to which the first model of a point is minimised
_INNER = 0.05  # share of the gap to which a later model is minimised

NORM_FOUND, B_FOUND, ALPHA_FOUND, GAP_FOUND = range(4)  # columns of Task.found; the totals follow
N_FOUND = 4  # how many columns there are before the totals


class Search(NamedTuple):
    """The arrays of a point, of its model and of the bounds of all columns, and how far the search is (``course``).

    With ``is_small`` passes over the columns are a part of the search.
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
    saved_p: np.ndarray
    totals: np.ndarray
    numbers: np.ndarray
    course: np.ndarray
    is_small: bool
    work: float  # that of a step, in multiply-adds


class Solutions(NamedTuple):
    """Coefficients of the solutions, one row for each target, and what is known about them."""

    x: np.ndarray
    found: np.ndarray


@kernel
def turn(search, task, solutions):
    """Search on until something is needed; return what."""
    columns, features, bounds, model = search.columns, search.features, search.bounds, search.model
    x, saved, correlation, p, a, R = search.x, search.saved, search.correlation, search.p, search.a, search.R
    course, numbers, totals, n, needs = search.course, search.numbers, search.totals, features.shape[0], -1
    decide = Course(course, numbers, totals, task)
    if search.is_small:
        if course[STAGE] == GUESSED or course[STAGE] == STEPPED:
            take_residual(columns.weight, p, x, a, R, numbers, n)
            numbers[IS_TOTAL] = 1.0
        numbers[LEVEL] = correlate_atoms(columns, features, a, numbers[MU], x, 0.0, correlation, 0, n)
    while needs < 0:
        stage, target, beyond = course[STAGE], decide.target(), bounds.largest()
        largest = max(numbers[LEVEL], beyond)
        own, whole = decide.gap(numbers[LEVEL]), decide.gap(largest)
        if stage == NEXT:
            needs = decide.choose_target(beyond, whole)
        elif stage == BEGIN:  # the gradient of the last model foresees how the curvature changes
            course[STEPS], course[BEGUN] = 0.0, bounds.n_scanned()
            place = task.place(target)
            weight = search.history.weight(place)
            search.history.append(place)
            foresee(model.G, x, correlation, search.before, search.correlation_before, weight, saved, n)
            decide.leave_to_model(_FIRST_MODEL * task.limit(), GUESS)
        elif stage == MODEL:  # one with a penalty has no gap, and is solved exactly
            recentre(model, x, saved)
            tol = -np.inf if task.is_penalised else course[MODEL_TOL]
            solve_model(model, 0.0, task.is_penalised, target, tol, 1000 + 20 * n)
            if not model.is_symmetric:
                raise_to_zero(model.x, n)
            course[STAGE] = course[AFTER_MODEL]
        elif stage == GUESS:  # go to the minimiser of the last model for the new target
            course[GAP], course[IS_FRESH], course[QUALITY] = np.inf, 0.0, GOOD
            course[BEFORE], course[STAGE] = own, GUESSED  # inf: x is outside of a smaller ball
            copy(saved, x, 1.0 if own < np.inf else target / numbers[NORM], n)
            copy(x, model.x, 1.0, n)
            needs = EVALUATION
        elif stage == GUESSED:
            needs = decide.judge_guess(own)
        elif stage == ENLARGED:
            needs = decide.start_again()
        elif stage == WEIGH:
            needs = decide.weigh(own)
        elif stage == POSE:
            course[SPENT] += search.work
            copy(saved, correlation, 1.0, n)
            decide.leave_to_model(max(course[TOL], _INNER * course[GAP]), STEP)
        elif stage == STEP:
            slope, farther = compare(x, model.x, correlation, n)
            needs = decide.begin_step(slope, farther)
            if needs == EVALUATION:
                copy(saved, x, 1.0, n)
                copy(search.saved_p, p, 1.0, p.shape[0])
                copy(x, model.x, 1.0, n)
        elif stage == STEPPED:
            needs = decide.judge_step(own)
        elif stage == SHORTEN:
            blend(x, saved, SHORTER, n)
            course[STAGE], needs = STEPPED, EVALUATION
        elif stage == BACK:
            copy(x, saved, 1.0, n)
            course[STAGE], needs = course[AFTER_BACK], EVALUATION
        elif stage == ALL:  # every correlation, but none is to be admitted
            course[THRESHOLD], course[ABOVE] = -1.0, np.inf
            course[AFTER_SCAN], course[STAGE] = LOOKED, SCANNING
        elif stage == LOOKED:
            needs = TARGETS
        elif stage == ASK:
            course[THRESHOLD] = course[ABOVE] = decide.threshold()
            course[AFTER_SCAN], course[STAGE] = SCANNED, SCANNING
        elif stage == SCANNING:
            course[STAGE], needs = course[AFTER_SCAN], SCAN
            if search.is_small:
                threshold, above, needs = course[THRESHOLD], course[ABOVE], -1
                move_and_scan(bounds, columns.weight, R, columns, a, numbers[MU], threshold, above)
        elif stage == SCANNED:
            needs = decide.judge_scan(beyond, whole)
        elif stage == SOLVED:
            needs = decide.end(largest)
        else:
            record(solutions, course, x, numbers, totals, largest, whole, n)
            if not whole <= task.limit():  # more may have to be done for it
                needs = TARGETS
            elif has_many_idle(model, x, task.n_idle):
                needs = PRUNING
    if needs == EVALUATION and search.is_small:
        predict_atoms(columns, features, x, p, 0, n)
    return needs


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
def has_many_idle(model, x, n_idle):
    """Tell whether many atoms have no coefficient."""
    n, n_kept = model.n_atoms(), 0
    for k in range(n):
        n_kept += x[k] != 0.0 or model.is_in[k]
    return n > n_idle and n > 2 * n_kept + n_idle
