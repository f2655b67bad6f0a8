"""Frank-Wolfe on Taylor models with corrections."""

from __future__ import annotations

import functools
import math
import time
from typing import Any

import numpy as np

from condgrad.compiled import Stopwatch
from condgrad.constraints import Atom
from condgrad.linalg.settings import RandomState
from condgrad.problems.active_set import AtomStack, Stack, VertexStack
from condgrad.problems.base import BaseProblem, Feature
from condgrad.problems.evaluation import Evaluation
from condgrad.problems.look import Look
from condgrad.problems.tilted import Bowl, TiltedProblem
from condgrad.solvers.base import State
from condgrad.solvers.full_pass.base import FullPassSolver
from condgrad.solvers.full_pass.feature_model import FeatureModel
from condgrad.solvers.full_pass.linear_rows_model import LinearRowsModel
from condgrad.solvers.full_pass.taylor_model import ROWS_PER_ATOM, HullModel, model_for

_SAVED = ("gradient_evaluations", "lmo_calls", "is_still", "first_objective", "rows_per_atom")  # saved besides n_rows
_SUFFICIENT = 1e-4  # fraction of the linear decrease that a step must reach: Armijo's rule
_ROUNDING = 1e-13  # share of F that rounding may add to it
_SMALL, _WIDENING = 4000, 8  # samples of the first subsample and factor of the next, in files of older versions
_PASS = 30.0  # a pass costs as much as the curvature on k atoms from this share of the samples, times 1 / k
_PARTS = 4  # how many times the first part all samples must be, so that an exact model begins with it
_FEW_SAMPLES = 3000  # from so many the curvature takes less time than to draw some of them
_FAST = 0.1  # reuse the curvature while a pass shrinks the gap below this fraction of the last one
_MOST_INNER, _ACCURACY = 50, 0.01  # steps on a part in memory, and the gap there relative to that of all samples
_FINE = 1e-3  # this relative gap, if second derivatives of all samples are known
_MOST_BENDS = 1000  # largest number of features for such second derivatives
_FEW_CANDIDATES, _CANDIDATES = 50, 0.3  # features that may enter, among them: at least, and as a share of the support
_GUIDED = 0.5  # a step on a part must reduce the gap by this factor
_TAIL = 0.7  # share of the slope of a loss that falls like exp(-gamma), above which a step may be longer
_LONGER, _LONGEST = 1.5, 4.0  # length of the first longer step, which still leads closer in other directions; the most
_CLEAR = 2.0  # how many times the noise of a subsample a step on it must gain
_CONTRACTION = 0.3  # largest ratio of two gaps in sequence: above it, the curvature is estimated from more samples


class CorrectiveState(State):
    """w as a combination of atoms with weights x, the last look at w, and the known entries of the curvature there."""

    def __init__(self, problem: BaseProblem, w0: np.ndarray | None) -> None:
        self.problem = problem
        self.model = model_for(problem)
        self.gradient_evaluations = 0
        self.lmo_calls = 0
        self.is_still = False
        self.rows_per_atom = ROWS_PER_ATOM
        self.stretch = 1.0  # length of the next step, in units of the way to the minimiser of its model
        self._seconds_per_product = 0.0  # measured at the last curvature; 0: not known yet
        self.features: np.ndarray | None = None  # features for whose second derivatives the last pass was asked
        self.ahead: np.ndarray | None = None  # the minimiser on the largest part in memory, if the next step goes there
        self.is_rough = True  # whether single precision is enough for the curvature: until a step with it fails
        self.n_new, self.is_growing = 0, False  # how many atoms are new; whether most of the last new ones were taken
        self.is_guided = True  # whether steps may use the largest part in memory: until such a step fails
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
        self._use(self.problem.part(n_rows), n_rows)

    def widen(self) -> None:
        """Make passes over more samples; for data that are not in memory, the largest part comes before all.

        Newton steps on all samples in memory need not be prepared on more than one part.
        """
        is_last = self.model.is_exact and self.guide is None
        n_rows = self.problem.n_samples if is_last else self.problem.part_growth * self.n_rows
        part = self.problem.part(n_rows)
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
        self.known: np.ndarray | None = None  # the curvature on the first atoms, if known,
        self._kept_known: np.ndarray | None = None  # and on others before; which of them these are

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
        solved = _minimised(self.guide, self._w, _ACCURACY * self.guide.gap(self._w), self.deadline)
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
        """Go to w = sum_k x_k v_k, for a look made there, and add the vertices with the steepest slopes."""
        self._w = atoms.combination(x, self.problem.n_features)
        self.gaps.append(look.gap)
        n_taken = int(np.count_nonzero(x[-self.n_new :])) if self.n_new > 0 and atoms is self.atoms else None
        self.is_growing = n_taken is not None and n_taken > 0.5 * self.n_new
        following = self.model.successor(self.n_passes, self.gaps)
        if following is not None:
            self.model, self.known = following, None
            atoms, x = following.start(self._w)
        kept = self.model.kept(atoms, x)
        self.atoms, n_kept = atoms.select(kept), int(np.count_nonzero(kept))
        self.model.add_candidates(self.atoms, x[kept], look.leading, look.gap, n_taken)
        # A quadratic F has one Hessian, computed a few columns at a time. Otherwise the curvature is reused as long as
        # the gap shrinks fast and no atom is new.
        serves_on = len(self.atoms) == n_kept and look.gap <= _FAST * self.last_gap
        self._select_known()
        if self.known is not None:
            self.known = self.known if self.problem.is_quadratic or serves_on else None
            self._kept_known = None if kept.all() else kept
        self.look, self.last_gap, self.n_new = look, look.gap, len(self.atoms) - n_kept
        self.x = np.append(x[kept], np.zeros(self.n_new))

    def _select_known(self) -> None:
        """Take atoms that are gone out of the known curvature: a copy, which is made only if there is another step."""
        if self.known is not None and self._kept_known is not None:
            kept = self._kept_known[: self.known.shape[0]]  # sweeps over later atoms have computed none
            self.known = self.known[kept][:, kept]
        self._kept_known = None

    def curvature(self) -> np.ndarray:
        """Return the curvature of F at w on the atoms."""
        self._select_known()
        if self.known is None or self.known.shape[0] < len(self.atoms):
            n_rows = min(self.rows_needed, self._rows_in_time())
            with Stopwatch() as watch:  # without compilation time
                self.known = self.look.curvature(self.atoms, self.known, n_rows)
            seen = min(n_rows, self.part.n_samples)
            self._seconds_per_product = watch.seconds / (seen * max(1, len(self.atoms)) ** 2)
        return self.known

    def sharpen(self, was_estimate: bool) -> None:
        """Take the next curvature from more samples if the last one was an estimate; else in double precision.

        New atoms that were taken are a reason, too, for which a gap shrinks slowly.
        """
        if was_estimate:
            self.rows_per_atom *= 4
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
        """The number of samples from which to estimate the curvature."""
        if self.problem.is_quadratic:
            return np.inf
        k = max(20, len(self.atoms))
        as_cheap = _PASS * self.part.n_samples / k if self.model.is_exact else 0.0  # about as expensive as a pass
        few = self.part.n_samples if self.part.n_samples <= _FEW_SAMPLES else 0.0
        needed = max(self.rows_per_atom * k, as_cheap, few)
        return needed if self.is_rough or needed < self.part.n_samples else np.inf

    @property
    def is_estimate(self) -> bool:
        """Whether the curvature is estimated from only a part of the samples of a pass."""
        return self.rows_needed < self.part.n_samples

    @property
    def noise(self) -> float:
        """An estimate of F(w) - F* on all samples, for the minimiser w on the subsample.

        For m samples and k nonzero weights it is about k / m, in units of a typical loss.
        """
        scale = max(abs(self.look.objective), self.first_objective - self.look.objective)
        return scale * np.count_nonzero(self.x) / self.part.n_samples

    def snapshot(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return all values that determine the rest of the run, as numbers and as arrays."""
        self._select_known()
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
            "stretch": self.stretch,
            "sweeps_are_slow": self.model.sweeps is not None and self.model.sweeps.are_slow,
        }, arrays | known

    def restore(self, numbers: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Restore a snapshot; a pass recomputes the values that it does not contain."""
        n_rows = _rows_used(numbers, self.problem.n_samples)
        self._use(self.guide if numbers.get("uses_guide") else self.problem.part(n_rows), n_rows)
        self.is_guided, self.is_rough = bool(numbers.get("is_guided", True)), bool(numbers.get("is_rough", True))
        for name in _SAVED:
            setattr(self, name, numbers[name])
        self.n_passes, self.gaps = int(numbers.get("n_passes", 0)), list(arrays.get("gaps", ()))
        self.n_new = int(numbers.get("n_new", 0))
        self.stretch = float(numbers.get("stretch", 1.0))
        stack = AtomStack if "atoms.index" in arrays else VertexStack
        self.atoms, self.x, self.known = stack.from_arrays(arrays), arrays["x"], arrays.get("curvature")
        self._w = self.atoms.combination(self.x, self.problem.n_features)
        if isinstance(self.model, LinearRowsModel):
            if not self.model.can_hold(self.atoms):  # a file of an older version, whose model used other atoms
                self.atoms, self.x = self.model.start(self._w)
                self.known = None
        elif self.problem.constraint.vertex is not Atom:  # which model the run had reached
            self.model = FeatureModel(self.problem) if "atoms.index" in arrays else HullModel(self.problem)
        self.model.restore(arrays)
        if self.model.sweeps is not None:
            self.model.sweeps.are_slow = bool(numbers.get("sweeps_are_slow", False))
        is_known = "offset" in numbers  # files of older versions have none
        self.features, self.ahead = arrays.get("features"), arrays.get("ahead")
        self.look = (
            self.part.look_with(self._w, numbers["offset"], self.features) if is_known else self.part.look(self._w)
        )
        self.last_gap = self.look.gap

    @property
    def known_gap(self) -> float:
        """The exact gap at w, once passes use all samples; inf before."""
        return self.look.gap if self.uses_all else np.inf


class Corrective(FullPassSolver):
    r"""Frank-Wolfe on Taylor models: one pass over the data, then a correction of all weights at once.

    A pass at w gives F, its gradient r and its curvature H on the atoms of w and on several new vertices. Between
    passes the Taylor model <r, v - w> + (v - w)'H(v - w)/2 is minimised over the hull of these atoms without reading
    data, to a gap well below the present one: over l1 balls by an exact solver, over other hulls by pairwise steps. If
    vertices have several entries, H is the curvature on features instead, and the model is minimised over the set
    itself by calls of its oracle, or by a quadratic program if the set has few linear rows. The next pass is made at
    the minimiser of the model; the step is accepted if F decreased enough, otherwise shortened. It is made longer where
    F falls like an exponential, as for classes that can be separated. The first passes use few samples, until w is as
    good as these samples allow. H is estimated from samples drawn by their curvature, from more of them if the gap
    shrinks too slowly. For a quadratic loss H is exact, and each entry is computed once. Gaps of 1e-9 take 4 to 15 full
    passes.

    It works for any loss with second derivatives (negative curvature of a non-convex loss is replaced by zero) and any
    set with vertices. It reads the data only through ``problem.look(w)``, of the problem or of a subsample.

    References
    ----------
    Xiong & Freund (2024) for Taylor points; fully corrective Frank-Wolfe: Lacoste-Julien & Jaggi (2015), algorithm 4.

    Examples
    --------
    >>> import condgrad as cg
    >>> problem = cg.Problem([[1.0], [1.0]], [1.0, 3.0], cg.losses.Squared(), cg.constraints.L1Ball(5.0))
    >>> cg.minimize(problem, "corrective").w
    array([2.])
    """

    requires = frozenset({Feature.LOOK, Feature.CURVATURE, Feature.VERTICES})

    def init(self, problem: BaseProblem, w0: np.ndarray | None, random_state: RandomState = None) -> CorrectiveState:
        """Return the state at ``w0``; by default at the origin if the set contains it, else at the set's own start."""
        return CorrectiveState(problem, w0)

    def step(self, problem: BaseProblem, state: CorrectiveState, t: int) -> None:
        """Minimise the Taylor model over the hull of the atoms, and make a pass at its minimiser."""
        if state.ahead is not None and state.guide is not None:
            state.go_ahead(state.guide, state.ahead)
            return
        if state.uses_all and state.is_guided and state.guide is not None:
            self._step_on_part(state, state.guide)
            return
        before, atoms, x = state.look, state.atoms, state.x
        slopes = before.slopes(atoms)  # <r, v_k>
        sweeps, was_estimate = state.model.sweeps, False
        if sweeps is not None and sweeps.suit(atoms):
            z = sweeps.minimise(before, atoms, x, state.deadline)
            state.known = state.known if problem.is_quadratic else None  # that of the last model is too old
        else:
            sweeps = None
            H, was_estimate = state.curvature(), state.is_estimate  # <v_k, H v_l>
            z = state.model.minimise(
                atoms, slopes, H, x, min(0.1, 2.0 * before.gap), is_estimate=was_estimate, deadline=state.deadline
            )
        direction = z - x
        slope = min(0.0, float(slopes @ direction))  # close to the optimum it is rounding, but the gap is not
        if not state.uses_all and (state.is_still or -slope <= _CLEAR * state.noise):  # enlarge the subsample
            state.widen()
            state.arrive(atoms, z, state.look_at(atoms, z))
            state.is_still = False
            return
        self._go(state, direction, slope)
        if was_estimate:
            state.stretch = 1.0  # an estimate says too little about what lies beyond the minimiser
        if sweeps is not None:
            sweeps.judge(before.gap, state.look.gap, state.is_still)
            state.is_still = False
        elif state.uses_all and state.look.gap > _CONTRACTION * before.gap:
            state.sharpen(was_estimate)

    def _go(self, state: CorrectiveState, direction: np.ndarray, slope: float) -> None:
        """Go along the direction from x, where F has this slope, to the first point tried where F decreased enough."""
        before, atoms, x = state.look, state.atoms, state.x
        rounding = _ROUNDING * abs(before.objective)
        can_be_longer = state.stretch > 1.0 and state.model.holds(x + state.stretch * direction)
        gamma, state.is_still = state.stretch if can_be_longer else 1.0, time.perf_counter() < state.deadline
        state.stretch = 1.0
        if not direction.any():
            self._guess_again(state)
        while direction.any() and gamma > 1e-10 and time.perf_counter() < state.deadline:
            look = state.look_at(atoms, x + gamma * direction)
            slope_there = float(look.slopes(atoms) @ direction)
            if look.objective <= before.objective + _SUFFICIENT * gamma * slope + rounding:
                state.arrive(atoms, x + gamma * direction, look)
                state.stretch = _next_stretch(gamma, slope, slope_there) if look.gap < before.gap else 1.0
                state.is_still = False
                break
            gamma = _shortened(gamma, before.objective - look.objective, slope, slope_there)

    def _guess_again(self, state: CorrectiveState) -> None:
        """Make a pass at the same w with a better intercept, if the last pass had a guess of it.

        A vertex can be the solution from the first pass on. Then only the error of the guess is left in the gap.
        """
        before = state.look
        if state.part.guess_offset(state.w, before) == before.evaluation.offset:
            return
        look = state.look_at(state.atoms, state.x)
        if look.gap <= 0.5 * before.gap:
            state.arrive(state.atoms, state.x, look)
            state.is_still = False

    def _step_on_part(self, state: CorrectiveState, part: BaseProblem) -> None:
        """Minimise F_S(z) + <grad F(w) - grad F_S(w), z> over the set, and make a pass over all samples at z.

        Where the last pass found second derivatives of F, the difference from those of F_S is added, too. A pass over
        all samples is far more expensive than many over the samples S in memory. If a step does not lead far, S is not
        like the rest, and Taylor models take over.
        """
        before, own = state.look, part.look(state.w)
        bowl = None if before.bends is None else Bowl.between(before.bends, own, state.w)
        tilted = TiltedProblem(part, before.gradient_near(own.gradient) - own.gradient, bowl)
        accuracy = _ACCURACY if bowl is None else _FINE
        inner = _minimised(tilted, state.w, accuracy * before.gap, state.deadline)
        state.gradient_evaluations += inner.gradient_evaluations
        state.lmo_calls += inner.lmo_calls
        atoms, x = state.model.start(inner.w)
        look = state.look_at(atoms, x, inner.look)
        is_lower = look.objective <= before.objective + _ROUNDING * abs(before.objective)
        state.is_guided = is_lower and look.gap <= _GUIDED * before.gap
        if is_lower:
            state.arrive(atoms, x, look)

    def refresh(self, problem: BaseProblem, state: CorrectiveState) -> None:
        """Do nothing: every pass is a fresh one."""

    def evaluate(self, problem: BaseProblem, state: CorrectiveState) -> Evaluation | None:
        """Return the evaluation of the last pass; None while passes use a subsample."""
        return state.look.evaluation if state.uses_all else None


def _leading_features(w: np.ndarray, r: np.ndarray) -> np.ndarray | None:
    """Return the features of w, and others with large derivatives, which may enter; None if they are too many."""
    support = np.flatnonzero(w)
    count = min(w.size, support.size + max(_FEW_CANDIDATES, int(_CANDIDATES * support.size)))
    if count > _MOST_BENDS:
        return None
    size = np.abs(r)
    size[support] = np.inf
    return np.sort(np.argpartition(-size, count - 1)[:count])


def _minimised(part: BaseProblem, w0: np.ndarray, gap: float, deadline: float) -> CorrectiveState:
    """Return the state of a run on samples in memory, from w0 to this gap, unless that takes too long."""
    solver, state = Corrective(), CorrectiveState(part, w0)
    state.deadline = deadline
    for t in range(_MOST_INNER):
        if state.look.gap <= gap or state.is_still or time.perf_counter() >= deadline:
            break
        solver.step(part, state, t)
    return state


def _rows_used(numbers: dict[str, Any], n_samples: int) -> int:
    """Return the number of samples that the passes of a saved run used."""
    if "n_rows" in numbers:
        return int(numbers["n_rows"])
    n_rows = _SMALL  # older files store the stride of the subsample as "thinning"
    while n_samples // n_rows > numbers["thinning"]:
        n_rows *= _WIDENING
    return n_rows


def _next_stretch(gamma: float, slope: float, slope_there: float) -> float:
    """Return the length of the next step, in units of the way to the minimiser of its model.

    Where classes can be separated, the losses fall like exp(-gamma) along the step, and Newton steps divide the gap by
    e. A quadratic has no slope left at its minimiser.
    """
    is_tail = gamma >= 1.0 and slope_there <= _TAIL * math.exp(-gamma) * slope < 0.0
    return min(_LONGEST, 2.0 * gamma if gamma > 1.0 else _LONGER) if is_tail else 1.0


def _shortened(gamma: float, gain: float, slope: float, slope_there: float) -> float:
    """Return a shorter step: about the minimiser of the cubic with these slopes at both ends, and this gain."""
    if slope_there <= 0.0:
        return 0.5 * gamma
    bend = slope + slope_there + 3.0 * gain / gamma
    root = math.sqrt(bend * bend - slope * slope_there)
    ahead = 1.0 - (slope_there + root - bend) / (slope_there - slope + 2.0 * root)
    return gamma * min(0.7, max(0.1, ahead))
