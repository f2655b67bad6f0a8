"""CorrectiveState: where `corrective` stands, what it knows there, and how much of the samples it uses."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any, TypeAlias, cast

import numpy as np

from condgrad.compiled import Stopwatch
from condgrad.constraints import Atom
from condgrad.linalg.saved import take_column, take_floats, take_indices, take_square
from condgrad.problems.active_set import AtomStack, Stack, stack_from
from condgrad.problems.base import BaseProblem
from condgrad.problems.evaluation import Evaluation
from condgrad.problems.look import Look
from condgrad.solvers.base import State
from condgrad.solvers.full_pass.curvature_rows import cheapest_count
from condgrad.solvers.full_pass.descent import Descent, Limits
from condgrad.solvers.full_pass.feature_model import FeatureModel
from condgrad.solvers.full_pass.linear_rows_model import LinearRowsModel
from condgrad.solvers.full_pass.taylor_model import ROWS_PER_ATOM, HullModel, model_for

_SAVED = ("gradient_evaluations", "lmo_calls", "is_still", "first_objective", "rows_per_atom")  # saved besides n_rows
_SMALL, _WIDENING = 4000, 8  # samples of the first subsample and factor of the next, in files of older versions
_PASS = 30.0  # a pass costs as much as the curvature on k atoms from this share of the samples, times 1 / k
_PARTS = 4  # how many times the first part all samples must be, so that an exact model begins with it
_FEW_SAMPLES = 3000  # from so many the curvature takes less time than to draw some of them
_CURVED = 0.1  # share of the gap on a subsample at which it has served
_MANY_ATOMS = 200  # of a quadratic F from which on single precision saves more than the pass that it may cost
_FAST = 0.1  # reuse the curvature while a pass shrinks the gap below this fraction of the last one
ACCURACY = 0.01  # gap on a part in memory relative to that of all samples
_MOST_BENDS = 1000  # largest number of features for such second derivatives
_ROUNDING = 1e-13  # share of F that rounding may add to it
_MOST_IDLE = 30  # most steps in a row without progress, after which rounding has won
_FEW_CANDIDATES, _CANDIDATES = 50, 0.3  # features that may enter, among them: at least, and as a share of the support

SolvePart: TypeAlias = "Callable[[BaseProblem, np.ndarray, float, float], CorrectiveState]"


class CorrectiveState(State):
    """w as a combination of atoms with weights x, the last look at w, and the known entries of the curvature there.

    Parameters
    ----------
    problem : BaseProblem
    w0 : array or None
    solve_part : callable
        Minimises F on a part in memory, from a w to a gap, before a deadline, and returns the state there.
    """

    def __init__(self, problem: BaseProblem, w0: np.ndarray | None, solve_part: SolvePart) -> None:
        self.problem, self._solve_part = problem, solve_part
        self.model = model_for(problem)
        self.gradient_evaluations = 0
        self.lmo_calls = 0
        self.is_still = False
        self.rows_per_atom = ROWS_PER_ATOM
        self.stretch = 1.0  # length of the next step, in units of the way to the minimiser of its model
        self.n_drawn = np.inf  # number of samples from which the known curvature comes; inf: all, in double precision
        self._seconds_per_product = 0.0  # measured at the last curvature; 0: not known yet
        self.features: np.ndarray | None = None  # features for whose second derivatives the last pass was asked
        self.ahead: np.ndarray | None = None  # the minimiser on the largest part in memory, if the next step goes there
        self.is_rough = True  # whether single precision is enough for the curvature: until a step with it fails
        self.n_new, self.is_growing = 0, False  # how many atoms are new; whether most of the last new ones were taken
        self.is_guided = True  # whether steps may use the largest part in memory: until such a step fails
        self.n_idle, self.least_objective, self.least_gap = 0, np.inf, np.inf  # steps without progress, and since where
        self.subsample(self._first_part() if w0 is None else problem.n_samples)
        self.atoms, self.x = self.model.start(w0)
        self.count_pass()
        self.arrive(self.atoms, self.x, self.part.look(self.atoms.combination(self.x, problem.n_features)))
        self.first_objective = self.look.objective

    @property
    def w(self) -> np.ndarray:
        """The iterate."""
        return self._w

    def _first_part(self) -> int:
        """Return the number of samples of the first passes.

        The minimiser of an exact model is the solution for a quadratic F, and else Newton steps need few passes: then
        only a small part saves time.
        """
        n, first = self.problem.n_samples, self.problem.first_part
        is_whole = self.model.is_exact and (self.problem.is_quadratic or n < _PARTS * first)
        return n if is_whole else first

    def subsample(self, n_rows: int) -> None:
        """Make passes over a subsample of about ``n_rows`` samples from now on, or over all if there is none."""
        self._use(self._part(n_rows), n_rows)

    def _part(self, n_rows: int) -> BaseProblem | None:
        """Return the problem on about ``n_rows`` samples; one of all samples, which may be a copy, is the whole one."""
        part = self.problem.part(n_rows)
        is_whole = part is not None and part.n_samples >= self.problem.n_samples
        return self.problem if is_whole else part

    def widen(self) -> None:
        """Make passes over more samples; for data that are not in memory, the largest part comes before all.

        Newton steps on all samples in memory need not be prepared on more than one part.
        """
        is_last = self.model.is_exact and self.guide is None
        n_rows = self.problem.n_samples if is_last else self.problem.part_growth * self.n_rows
        part = self._part(n_rows)
        if part is self.problem and self.guide is not None and self.part is not self.guide:
            part = self.guide
        self._use(part, n_rows)

    @functools.cached_property
    def guide(self) -> BaseProblem | None:
        """The largest part in memory, for data that are not; steps over all samples are first made on it."""
        return self.problem.largest_part()

    def _use(self, part: BaseProblem | None, n_rows: int) -> None:
        self.part = self.problem if part is None else part
        self.n_rows = self.problem.n_samples if self.part is self.problem else n_rows
        self.n_passes, self.gaps = 0, list[float]()  # passes over these samples, and the gaps of the steps
        self.last_gap = np.inf  # gap of the last pass over these samples
        self.known: np.ndarray | None = None  # the curvature on the first atoms, if known

    @property
    def uses_all(self) -> bool:
        """Whether passes use all samples."""
        return self.part is self.problem

    def look_at(self, atoms: Stack, x: np.ndarray, near: Look | None = None) -> Look:
        """Make a pass at w = sum_k x_k v_k; ``near`` is a look at a point close to w, by default the last one."""
        self.count_pass()
        w = atoms.combination(x, self.problem.n_features)
        self.features = self._features_at(w, self.look if near is None else near)
        return self.part.look_with(w, self.part.guess_offset(w, self.look), self.features)

    def _features_at(self, w: np.ndarray, near: Look) -> np.ndarray | None:
        """Return the features for which a pass at w should find second derivatives; None: the next step needs none."""
        is_guided = self.uses_all and self.is_guided and self.guide is not None
        return _leading_features(w, near.leading) if is_guided else None

    def evaluate_start(self) -> Evaluation | None:
        """Make a pass over all samples at the start, if that is expensive, and let the next step use its results.

        The minimiser on the largest part in memory shows which features matter. If the pass finds the second
        derivatives by these, the next step begins at the start, with the gradient and the curvature of all samples.
        Otherwise it goes to that minimiser.
        """
        if self.guide is None or self.uses_all:
            return None
        solved = self._solve_part(self.guide, self._w, ACCURACY * self.guide.gap(self._w), self.deadline)
        features = _leading_features(solved.w, solved.look.gradient)
        # The best intercept of w = 0 needs no pass.
        offset = self.problem.guess_offset(self._w, self.look) if self._w.any() else self.problem.best_offset(self._w)
        look = self.problem.look_with(self._w, offset, features)
        self.gradient_evaluations += solved.gradient_evaluations + self.problem.n_samples
        self.lmo_calls += solved.lmo_calls + 1
        if look.bends is None:
            self.ahead = solved.w
        else:
            self._use(self.problem, self.problem.n_samples)
            self.features = features
            self.arrive(*self.model.start(self._w), look)
        return look.evaluation

    def go_ahead(self, guide: BaseProblem, w: np.ndarray) -> None:
        """Go to the minimiser w on the largest part in memory."""
        self.ahead = None
        self._use(guide, guide.n_samples)
        self.count_pass()
        self.arrive(*self.model.start(w), guide.look(w))

    def count_pass(self) -> None:
        """Count one pass over the samples that are used now."""
        self.gradient_evaluations += self.part.n_samples
        self.lmo_calls += 1
        self.n_passes += 1

    def arrive(self, atoms: Stack, x: np.ndarray, look: Look) -> None:
        """Go to w = sum_k x_k v_k, for a look made there."""
        self._w = atoms.combination(x, self.problem.n_features)
        self.gaps.append(look.gap)
        self._n_taken = int(np.count_nonzero(x[-self.n_new :])) if self.n_new > 0 and atoms is self.atoms else None
        self.is_growing = self._n_taken is not None and self._n_taken > 0.5 * self.n_new
        self._is_fast = look.gap <= _FAST * self.last_gap
        self.atoms, self.x, self.look, self.last_gap, self.is_gathered = atoms, x, look, look.gap, False

    def measure_progress(self) -> None:
        """Say that the state is still where many steps have neither made F clearly smaller nor halved the gap."""
        objective, gap = self.look.objective, self.look.gap
        if objective < self.least_objective - _ROUNDING * abs(objective) or gap <= 0.5 * self.least_gap:
            self.n_idle, self.least_objective, self.least_gap = 0, objective, gap
        else:
            self.n_idle += 1
        self.is_still = self.is_still or self.n_idle > _MOST_IDLE

    def gather(self) -> None:
        """Keep the atoms that have weight, and add the vertices with the steepest slopes: where a step begins."""
        if self.is_gathered:
            return
        atoms, x = self.atoms, self.x
        following = self.model.successor(self.n_passes, self.gaps)
        if following is not None:
            self.model, self.known = following, None
            atoms, x = following.start(self._w)
        kept = self.model.kept(atoms, x)
        self.atoms, n_kept = atoms.select(kept), int(np.count_nonzero(kept))
        self.model.add_candidates(self.atoms, x[kept], self.look.leading, self.look.gap, self._n_taken)
        self.n_new = len(self.atoms) - n_kept
        self.x = np.append(x[kept], np.zeros(self.n_new))
        # A quadratic F has one Hessian, computed a few columns at a time. Otherwise the curvature is reused as long as
        # the gap shrinks fast and no atom is new.
        if self.known is not None and (self.problem.is_quadratic or (self.n_new == 0 and self._is_fast)):
            kept = kept[: self.known.shape[0]]  # sweeps over later atoms have computed none
            self.known = self.known if kept.all() else self.known[kept][:, kept]
        else:
            self.known = None
        self.is_gathered = True

    def descent(self) -> Descent | None:
        """Return what minimises F itself over the atoms, where that costs less than a model on them."""
        return next((each for each in self.model.descents if each.suit(self.atoms)), None)

    def descend(self, descent: Descent) -> np.ndarray:
        """Return weights of the atoms close to the minimum of F over them; other atoms may have joined them."""
        left = (
            self.most_evaluations - self.gradient_evaluations
        ) / self.part.n_samples - 1.0  # after the step's own pass
        limits = Limits(self.goal, self.deadline, max(0.0, left))
        found = descent.minimise(self.look, cast("AtomStack", self.atoms), self.x, limits)
        for _ in range(found.n_looks):
            self.count_pass()
        kept, x = int(np.count_nonzero(self.x)), np.zeros(found.z.size)
        x[:kept] = self.x[:kept]  # the others are new: they have no weight
        self.atoms, self.x, self.n_new = found.atoms, x, x.size - kept
        return found.z

    def curvature(self) -> np.ndarray:
        """Return the curvature of F at w on the atoms."""
        if self.known is None or self.known.shape[0] < len(self.atoms):
            n_rows = min(self.rows_needed, self._rows_in_time())
            with Stopwatch() as watch:  # without compilation time
                self.known = self.look.curvature(self.atoms, self.known, n_rows)
            self.n_drawn, seen = n_rows, min(n_rows, self.part.n_samples)
            self._seconds_per_product = watch.seconds / (seen * max(1, len(self.atoms)) ** 2)
        return self.known

    def sharpen(self, was_estimate: bool) -> None:
        """Take the next curvature from more samples if the last one was an estimate; else in double precision.

        New atoms that were taken are a reason, too, for which a gap shrinks slowly.
        """
        if was_estimate:
            self.rows_per_atom, self.known = 4 * self.rows_per_atom, None
        elif self.is_rough and (self.is_still or not self.is_growing):
            self.is_rough, self.known = False, None

    def _rows_in_time(self) -> float:
        """Return the number of samples for which the curvature can be computed before the deadline.

        It is estimated from the time of the last curvature.
        """
        if self.problem.is_quadratic or self.deadline == np.inf or self._seconds_per_product == 0.0:
            return np.inf
        left = max(0.0, self.deadline - time.perf_counter())
        return max(ROWS_PER_ATOM, left / (self._seconds_per_product * max(1, len(self.atoms)) ** 2))

    @property
    def rows_needed(self) -> float:
        """The number of samples from which to estimate the curvature; inf: all, in double precision."""
        n, k = self.part.n_samples, max(20, len(self.atoms))
        if self.model.is_exact and self.problem.has_dense_columns:
            reduction = self.goal / self.look.gap if self.uses_all and self.look.gap > 0.0 else _CURVED
            fewest = ROWS_PER_ATOM * k
            needed = cheapest_count(n, k, fewest, reduction, self.problem.is_quadratic)
            needed = min(n, needed * (self.rows_per_atom / ROWS_PER_ATOM)) if needed < n else needed
        elif self.problem.is_quadratic:
            return n if self.is_rough and self.known is None and k >= _MANY_ATOMS else np.inf
        else:
            as_cheap = _PASS * n / k if self.model.is_exact else 0.0  # about as expensive as a pass
            needed = max(self.rows_per_atom * k, as_cheap, n if n <= _FEW_SAMPLES else 0.0)
        return needed if self.is_rough or needed < n else np.inf

    @property
    def is_estimate(self) -> bool:
        """Whether the known curvature is estimated from only a part of the samples of a pass."""
        return self.n_drawn < self.part.n_samples

    @property
    def noise(self) -> float:
        """An estimate of F(w) - F* on all samples, for the minimiser w on the subsample.

        For m samples and k nonzero weights it is about k / m, in units of a typical loss.
        """
        scale = max(abs(self.look.objective), self.first_objective - self.look.objective)
        return scale * np.count_nonzero(self.x) / self.part.n_samples

    def snapshot(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return all values that determine the rest of the run, as numbers and as arrays."""
        self.gather()
        arrays = {f"atoms.{name}": part for name, part in self.atoms.to_arrays().items()} | {"x": self.x}
        arrays |= self.model.snapshot() | {"gaps": np.array(self.gaps)}
        known = {} if self.known is None else {"curvature": self.known}
        known |= {} if self.features is None else {"features": self.features}
        known |= {} if self.ahead is None else {"ahead": self.ahead}
        return {name: getattr(self, name) for name in _SAVED} | {
            "n_rows": self.n_rows,
            "n_passes": self.n_passes,
            "offset": self.look.evaluation.offset,
            "uses_guide": self.guide is not None and self.part is self.guide,
            "is_guided": self.is_guided,
            "is_rough": self.is_rough,
            "n_new": self.n_new,
            "n_drawn": self.n_drawn,
            "stretch": self.stretch,
            "progress": [self.n_idle, self.least_objective, self.least_gap],
        } | {f"{each.name}_n_slow": each.n_slow for each in self.model.descents}, arrays | known

    def restore(self, numbers: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Restore a snapshot; a pass recomputes the values that it does not contain."""
        n_rows, d = _rows_used(numbers, self.problem.n_samples), self.problem.n_features
        self._use(self.guide if numbers.get("uses_guide") else self._part(n_rows), n_rows)
        self.is_guided, self.is_rough = bool(numbers.get("is_guided", True)), bool(numbers.get("is_rough", True))
        for name in _SAVED:
            setattr(self, name, numbers[name])
        self.n_passes = int(numbers.get("n_passes", 0))
        self.gaps = list(take_column(arrays, "gaps")) if "gaps" in arrays else []
        self.n_new, self.n_drawn = int(numbers.get("n_new", 0)), float(numbers.get("n_drawn", np.inf))
        self.stretch = float(numbers.get("stretch", 1.0))
        n_idle, *least = numbers.get("progress", (0, np.inf, np.inf))
        self.n_idle, (self.least_objective, self.least_gap) = int(n_idle), map(float, least)
        self.atoms = stack_from(arrays, d)
        self.x = take_floats(arrays, "x", len(self.atoms))
        self.known = take_square(arrays, "curvature", len(self.atoms))
        self._w = self.atoms.combination(self.x, d)
        if isinstance(self.model, LinearRowsModel):
            if not self.model.can_hold(self.atoms):  # a file of an older version, whose model used other atoms
                self.atoms, self.x = self.model.start(self._w)
                self.known = None
        elif self.problem.constraint.vertex is not Atom:  # which model the run had reached
            self.model = FeatureModel(self.problem) if "atoms.index" in arrays else HullModel(self.problem)
        if not self.model.can_hold(self.atoms) or self.n_new > len(self.atoms):
            raise ValueError("its atoms do not suit the set")
        self.model.restore(arrays)
        for each in self.model.descents:
            each.n_slow = int(numbers.get(f"{each.name}_n_slow", 0))
        is_known = "offset" in numbers  # files of older versions have none
        self.features = take_indices(arrays, "features", d, distinct=True) if "features" in arrays else None
        self.ahead = take_floats(arrays, "ahead", d) if "ahead" in arrays else None
        self.look = (
            self.part.look_with(self._w, numbers["offset"], self.features) if is_known else self.part.look(self._w)
        )
        self.last_gap, self.is_gathered = self.look.gap, True

    @property
    def known_gap(self) -> float:
        """The exact gap at w, once passes use all samples; inf before."""
        return self.look.gap if self.uses_all else np.inf


def _leading_features(w: np.ndarray, r: np.ndarray) -> np.ndarray | None:
    """Return the features of w, and others with large derivatives, which may enter; None if they are too many."""
    support = np.flatnonzero(w)
    count = min(w.size, support.size + max(_FEW_CANDIDATES, int(_CANDIDATES * support.size)))
    if count > _MOST_BENDS:
        return None
    size = np.abs(r)
    size[support] = np.inf
    return np.sort(np.argpartition(-size, count - 1)[:count])


def _rows_used(numbers: dict[str, Any], n_samples: int) -> int:
    """Return the number of samples that the passes of a saved run used."""
    if "n_rows" in numbers:
        return int(numbers["n_rows"])
    n_rows = _SMALL  # older files store the stride of the subsample as "thinning"
    while n_samples // n_rows > max(1, int(numbers["thinning"])):
        n_rows *= _WIDENING
    return n_rows
