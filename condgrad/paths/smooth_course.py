"""Course: what the search for points of a smooth loss decides, from gaps alone.

A search goes through stages. Each decision sets the next stage, or says what is needed before it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.compiled import compiled
from condgrad.paths.smooth_point import ACCEPTED, FAILED, GOOD, IS_TOTAL, LEVEL, NORM, B, gap_at

_PATIENCE = 3.0  # work of steps with an old curvature after which it is renewed, over the work of renewing it
_FAST = 0.3  # share of the gap above which a step that leaves so much of it asks for fresh curvatures
_SLOW = 0.7  # the same, where fresh curvatures are more work than the steps that are left
_OWN = 0.6  # share of the tolerance that the working set's own gap may use up
_ROUNDING = 1e-14  # share of F that rounding may add to it
_SUFFICIENT = 1e-3  # share of the model's slope by which F must fall, where a step has not halved the gap
_GOOD = 0.1  # share of the model's slope by which F falls in a good step
_STILL = 0.9  # share of the gap above which a step that does not make F smaller has led nowhere
SHORTER = 0.3  # factor by which a step is shortened as long as F does not fall
_SHORTEST = 1e-3  # length of a step below which it is given up
_AHEAD = 0.01  # share of the last gap that the working set's own gap may have while atoms are missing
_STEPS_AHEAD = 2  # number of points ahead at which a feature would enter that is admitted now
_LEAST_FALL = 0.9  # least ratio of the multipliers of two neighbouring points that is expected
_MOST_IDLE = 5  # rounds without a new atom, each ten times as accurate as the last, after which rounding has won

# What a search asks for: the loss at p, the totals there, the columns that matter, new atoms, a fresh curvature;
# atoms that are not needed any more to be dropped, the next targets, and a moment to hear Ctrl-C.
EVALUATION, TOTALS, SCAN, ATOMS, CURVATURE, PRUNING, TARGETS, PAUSE = range(8)
EXPANSION = 8  # the loss at p and the totals there, together: one errand where both will be needed

# Where a search stands, the first place of Search.course: before a target (NEXT, BEGIN), at a model (POSE, MODEL), at
# the guess for a target (GUESS, GUESSED), at a step (WEIGH, STEP, STEPPED, SHORTEN, BACK), looking for features (ASK,
# SCANNED, ENLARGED), at the end (SOLVED, SERVES).
(
    NEXT, BEGIN, POSE, MODEL, GUESS, GUESSED, WEIGH, STEP, STEPPED, SHORTEN, BACK, ASK, SCANNED, ENLARGED, SOLVED,
    SERVES,
) = map(float, range(16))  # fmt: skip
STAGE, DONE = 0, 1  # places in Search.course: where it stands, how many targets are solved; for the present one,
GAP, TOL, NEEDED = 2, 3, 4  # the gap at the last model, to which the working set is minimised, and at which it is left
IDLE, STEPS, BEGUN = 5, 6, 7  # rounds without a new atom, steps, and the columns that were scanned before;
HAS_MOVED, FELL, QUALITY = 8, 9, 10  # whether the last step moved x, whether F fell there, how good it was,
IS_FRESH, NEXT_FRESH = 11, 12  # whether it had the curvature of the point where it began; whether the next one will,
LENGTH, SLOPE = 13, 14  # how much of the way to the minimiser of the model it went, and the slope of F along it;
BEFORE, B_BEFORE, NORM_BEFORE = 15, 16, 17  # F (of a guess: the gap), intercept and norm before it;
SPENT, RENEWAL = 18, 19  # the work of steps since the curvature was computed, and that of computing it anew;
FALLING, LAST_ALPHA = 20, 21  # the ratio of the last two multipliers, and the last one;
MODEL_TOL, AFTER_MODEL, AFTER_BACK = 22, 23, 24  # the gap of the next model, the stage after it, and after a way back;
THRESHOLD, ABOVE = 25, 26  # from which size on the next scan computes correlations, and lists features
EVALUATED = 27  # how often the loss was evaluated, in all
FACTOR, CURVED = 28, 29  # how much more curvature than the model's there is, about; the samples' sum in the model
IS_STEADY = 30  # whether the guess for the last target was its solution
LEAST = 31  # the smallest gap over this working set at which a step has begun
N_COURSE = 32  # the number of these places


@compiled
class Task(NamedTuple):
    """What a search is to do: targets, and up to which gap."""

    targets: np.ndarray
    is_penalised: bool
    allowed: float  # the gap that a point may have, rounding included
    rounding: float  # what rounding may add to it
    most_steps: int
    n_idle: int  # how many atoms without a coefficient may stay, beside as many as have one

    def limit(self):
        """Return the gap to reach; where rounding is more than half of the tolerance, that much is the best."""
        return max(self.allowed - self.rounding, self.rounding)

    def finest(self):
        """Return the smallest gap to which the working set is minimised."""
        return _OWN * self.limit()

    def place(self, target):
        """Return the place of a target on the path."""
        return -np.log(target) if self.is_penalised else target


@compiled
class Course(NamedTuple):
    """The decisions of a search. Each returns what it needs, or -1 for nothing.

    ``own`` is the gap over the working set, ``whole`` that over all features, ``beyond`` the largest correlation of a
    feature that is not in the working set.
    """

    course: np.ndarray
    numbers: np.ndarray  # those of the point
    totals: np.ndarray
    task: Task

    def target(self):
        """Return the present target; after the last one, that one."""
        targets = self.task.targets
        return targets[min(np.int64(self.course[DONE]), targets.shape[0] - 1)]

    def gap(self, largest):
        """Return the gap if no correlation exceeds ``largest``."""
        return gap_at(self.task.is_penalised, self.target(), self.numbers, self.totals, largest)

    def choose_target(self, beyond, whole):
        """Begin with the next target, unless the last solution serves for it as well."""
        course = self.course
        if course[DONE] == self.task.targets.shape[0]:
            return TARGETS
        course[STAGE] = SERVES if whole + self.task.rounding <= self.task.allowed else BEGIN
        is_near = beyond > course[FALLING] * self.numbers[LEVEL]  # a feature that would enter now
        return ATOMS if course[STAGE] == BEGIN and is_near else -1

    def begin(self, n_scanned):
        """Begin with a target."""
        course = self.course
        course[IS_STEADY] = 1.0 if course[STEPS] == 0.0 else 0.0
        course[STEPS], course[BEGUN] = 0.0, n_scanned

    def wants_totals(self):
        """Tell whether the point that is to be evaluated is likely to be a solution, whose totals are needed."""
        return self.task.is_penalised or (self.course[STAGE] == GUESSED and self.course[IS_STEADY] > 0.0)

    def note(self, has_totals):
        """Note whether the totals belong to the point that has just been evaluated."""
        self.numbers[IS_TOTAL] = 1.0 if has_totals else 0.0

    def leave_to_model(self, tol, after):
        """Let the model be minimised to a gap."""
        self.course[MODEL_TOL], self.course[AFTER_MODEL], self.course[STAGE] = tol, after, MODEL

    def begin_guess(self, own):
        """Go to the minimiser of the last model; a gap of inf means that x is outside of a smaller ball."""
        course = self.course
        course[GAP], course[LEAST], course[IS_FRESH], course[QUALITY] = np.inf, np.inf, 0.0, GOOD
        course[BEFORE], course[STAGE] = own, GUESSED
        return EVALUATION

    def judge_guess(self, own):
        """Stay at the guess, unless it has made the gap larger."""
        course, task = self.course, self.task
        if not own <= course[BEFORE]:
            course[BEFORE], course[AFTER_BACK], course[STAGE] = np.inf, GUESSED, BACK
            return -1
        course[TOL], course[IDLE] = (max(task.finest(), _AHEAD * own) if own < np.inf else task.finest()), 0.0
        course[NEEDED], course[HAS_MOVED] = max(task.limit(), course[TOL]), 1.0
        course[STAGE] = WEIGH
        return -1

    def start_again(self):
        """Minimise over a larger working set, or to a smaller gap."""
        course = self.course
        course[GAP], course[LEAST] = np.inf, np.inf
        course[IS_FRESH], course[HAS_MOVED], course[NEEDED] = 0.0, 1.0, course[TOL]
        course[STAGE] = WEIGH
        return -1

    def weigh(self, own, work):
        """Decide whether the gap of the working set is small enough to look at other features; a step is ``work``."""
        course = self.course
        last, has_moved = course[GAP], course[HAS_MOVED] > 0.0
        has_gained = has_moved and (own < last or course[FELL] > 0.0)
        is_stuck = course[IS_FRESH] > 0.0 and not has_gained  # rounding has won
        if own <= course[NEEDED] or is_stuck or course[STEPS] >= self.task.most_steps:
            course[STAGE] = ASK
            return -1
        course[GAP], course[STEPS], course[STAGE] = own, course[STEPS] + 1.0, POSE
        course[LEAST] = min(course[LEAST], own)
        is_fast = has_moved and (own <= _FAST * last or self.is_worth_steps(own, last, work))
        course[NEXT_FRESH] = 0.0 if is_fast else 1.0
        return CURVATURE if course[NEXT_FRESH] > 0.0 or course[SPENT] >= _PATIENCE * course[RENEWAL] else -1

    def is_worth_steps(self, own, last, work):
        """Tell whether steps that go on as the last one are less work than a fresh curvature."""
        course = self.course
        if course[IS_FRESH] > 0.0 or not own <= _SLOW * last:
            return False
        n_steps = np.log(own / course[NEEDED]) / np.log(last / own)
        return n_steps * work <= course[RENEWAL]

    def begin_step(self, slope, farther):
        """Go to the minimiser of the model at x, along which F has this slope; its norm is so much larger."""
        course, numbers = self.course, self.numbers
        course[NEEDED], course[IS_FRESH] = course[TOL], course[NEXT_FRESH]
        if not abs(slope) < np.inf or farther == np.inf:  # x minimises the model: it may lack curvature
            course[HAS_MOVED], course[QUALITY], course[STAGE] = 0.0, FAILED, WEIGH
            return -1
        course[QUALITY], course[LENGTH], course[STAGE] = FAILED, 1.0, STEPPED
        course[SLOPE] = slope + (self.target() * farther if self.task.is_penalised else 0.0)
        course[B_BEFORE], course[NORM_BEFORE] = numbers[B], numbers[NORM]
        course[BEFORE] = self.totals[0] if numbers[IS_TOTAL] > 0.0 else np.nan
        return EVALUATION

    def judge_step(self, own):
        """Stay where the least gap so far is halved, or go as far towards the minimiser of the model as F falls.

        Half of the last gap would not do: F could rise there, and the next step raise the gap and lower F, and so on.
        """
        course, numbers = self.course, self.numbers
        course[HAS_MOVED] = 1.0 if course[LENGTH] > 0.0 else 0.0
        if course[LENGTH] == 0.0:  # x is where it was
            course[STAGE] = WEIGH
            return -1
        if course[LENGTH] == 1.0 and own <= 0.5 * course[LEAST]:
            course[FELL], course[QUALITY], course[STAGE] = 1.0, GOOD, WEIGH
            return -1
        if numbers[IS_TOTAL] == 0.0:
            return TOTALS
        penalty, slope = (self.target() if self.task.is_penalised else 0.0), course[SLOPE]
        before = course[BEFORE] + penalty * course[NORM_BEFORE]
        slack = _ROUNDING * abs(before)  # close to the optimum a step changes the gap, and F by less than rounding
        needed = _SUFFICIENT * course[LENGTH] * min(slope, 0.0)
        gain = before - (self.totals[0] + penalty * numbers[NORM])
        if slope <= slack and gain + needed + slack >= 0.0:
            course[FELL] = 1.0 if gain > slack else 0.0
            course[QUALITY] = GOOD if course[LENGTH] == 1.0 and gain + _GOOD * slope >= 0.0 else ACCEPTED
            if gain <= slack and own > _STILL * course[GAP]:  # the model sees no way, where there is one
                course[QUALITY] = FAILED
            course[STAGE] = WEIGH
        elif slope <= slack and course[LENGTH] > _SHORTEST:
            course[LENGTH] *= SHORTER
            course[STAGE] = SHORTEN
        else:
            course[LENGTH], course[AFTER_BACK], course[STAGE] = 0.0, STEPPED, BACK
        return -1

    def look(self, beyond, largest, whole):
        """Look for features that the working set lacks."""
        course, needs = self.course, -1
        if course[STAGE] == ASK:
            course[THRESHOLD] = course[ABOVE] = self.threshold()
            course[STAGE], needs = SCANNED, SCAN
        elif course[STAGE] == SCANNED:
            needs = self.judge_scan(beyond, whole)
        else:
            needs = self.end(largest)
        return needs

    def threshold(self):
        """Return from which size on correlations are computed: that of the atoms, or what may enter soon."""
        is_last = self.course[STEPS] >= self.task.most_steps  # no more steps: only the certificate
        return self.numbers[LEVEL] * (1.0 if is_last else self.course[FALLING] ** _STEPS_AHEAD)

    def judge_scan(self, beyond, whole):
        """End the search where the gap is small enough; otherwise enlarge the working set, if it can be enlarged."""
        course, task = self.course, self.task
        if whole <= task.limit() or course[STEPS] >= task.most_steps:
            course[STAGE] = SOLVED
            return -1
        if beyond > self.numbers[LEVEL]:
            course[TOL], course[IDLE] = max(task.finest(), min(course[TOL], _AHEAD * whole)), 0.0
            course[STAGE] = ENLARGED
            return ATOMS
        is_rough = course[TOL] > task.finest()
        course[TOL] = task.finest() if is_rough else 0.1 * course[TOL]
        course[IDLE] += 0.0 if is_rough else 1.0
        course[STAGE] = SOLVED if course[IDLE] > _MOST_IDLE else ENLARGED
        return -1

    def end(self, alpha):
        """Note how fast the multiplier falls along the path."""
        if self.numbers[IS_TOTAL] == 0.0:
            return TOTALS
        last = self.course[LAST_ALPHA]
        self.course[FALLING] = min(1.0, max(_LEAST_FALL, alpha / last)) if last > 0.0 else self.course[FALLING]
        self.course[LAST_ALPHA], self.course[STAGE] = alpha, SERVES
        return -1
