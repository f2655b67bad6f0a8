"""Taylor models: a quadratic over some atoms of the set, minimised to a given gap without reading the data."""

from __future__ import annotations

import time
from typing import Protocol, cast

import numpy as np

from condgrad.compiled import is_compiled
from condgrad.constraints import Atom
from condgrad.constraints._protocol import has_origin
from condgrad.constraints.linear_rows import LinearRows
from condgrad.constraints.vertices import Vertex
from condgrad.linalg.vectors import inner, symmetric_product
from condgrad.problems.active_set import AtomStack, Stack, VertexStack, stack
from condgrad.problems.base import BaseProblem
from condgrad.solvers.full_pass.descent import Descent
from condgrad.solvers.full_pass.face import minimise_on_face
from condgrad.solvers.full_pass.feature_model import FeatureModel, has_few_features
from condgrad.solvers.full_pass.hull_steps import minimise_in_ball, pairwise_steps
from condgrad.solvers.full_pass.linear_rows_model import LinearRowsModel
from condgrad.solvers.full_pass.newton_rounds import NewtonRounds
from condgrad.solvers.full_pass.sweeps import Sweeps

_MARGIN = 0.1  # relative margin: a new vertex is added even if its slope is this much worse than the mean of the atoms
_FEWEST_NEW, _FEW_NEW = 20, 50  # number of new vertices: at least, and up to which they may double the number of atoms
_SWEPT_MARGIN = 0.3  # the margin where sweeps minimise F over the atoms
_GROWTH = 1.5  # number of new vertices, over those that were taken the last time
_RIDGE = 1e-8  # ridge added to the diagonal of H, relative to the diagonal
_EXACT = 1e-10  # gap relative to the first gap at which the model counts as minimised exactly
_INSIDE = 1e-6  # distance to the boundary of a ball, over its radius: closer points may be outside, by rounding
_ROUNDING = 1e-14  # gap relative to the largest slope below which it is rounding
_SUMS = 0.1  # and relative to the largest curvature, as a share of that
_MOST_STEPS, _STEPS = 50_000, 1000  # number of pairwise steps in a hull, in all and between two checks of the deadline
_MOST_ROUNDS = 30
_MANY = 150  # number of atoms from which on pairwise steps are made before the exact solver over l1 balls
_IN_BALL = 0.02  # gap relative to the first gap to which models over l1 balls are minimised, if H is no estimate
_FIRST_STEPS = 3  # number of these steps per atom
_FALLBACK = 0.3  # gap relative to the first gap that is enough if that solver fails
_MOST_WORK = 20_000  # multiplications per atom, that is about 7,000 steps
ROWS_PER_ATOM = 30  # samples per atom for the first estimate of the curvature
_FEW_PASSES = 6  # cost of the curvature on all features, in passes, up to which it is used from the start
_TRIAL, _CONTRACTION = 3, 0.2  # so many steps with vertices should reduce the gap by this factor
_TRIAL_SHARE = 0.25  # number of passes after which they are judged, as a share of the cost of the curvature
_DENSE_SPEED, _SPARSE_SPEED = 28.0, 3.0  # multiply-adds of the curvature in the time of one of a pass, measured
_MOST_FEATURES = 2000  # largest number of features of a FeatureModel that uses all: H is a matrix of all pairs
_MOST_IN_PROGRAM, _MOST_ROWS = 1000, 5000  # largest numbers of features and linear rows of quadratic programs
_MOST_IF_SPARSE = 150  # features if few of them are enough: with more, models on these few are faster
_FEW_ROWS = 10  # the same if the set has a fast oracle: with more rows, calls of the oracle are faster
_LARGE_PROGRAM = 250.0  # and then a quadratic program in d features, about d^3, may cost so many passes


class TaylorModel(Protocol):
    """The coordinates of w in which the Taylor model is written, and the minimisation of the model in them."""

    is_exact: bool  # whether the model is minimised up to rounding, so that one model of a quadratic F is enough

    @property
    def descents(self) -> tuple[Descent, ...]:
        """What minimises F itself over some atoms, where that suits them; the first one that does is used."""

    def start(self, w0: np.ndarray | None) -> tuple[Stack, np.ndarray]:
        """Return the atoms v_k and weights x_k of w = sum_k x_k v_k at the start, by default or at ``w0``."""

    def kept(self, atoms: Stack, x: np.ndarray) -> np.ndarray:
        """Return a mask of the atoms that stay after a pass."""

    def add_candidates(self, atoms: Stack, x: np.ndarray, r: np.ndarray, gap: float, n_taken: int | None) -> None:
        """Add the atoms that the gradient ``r`` makes promising.

        ``n_taken`` of those that were added the last time have a weight now; None: this is not known.
        """

    def minimise(
        self,
        atoms: Stack,
        g: np.ndarray,
        H: np.ndarray,
        x: np.ndarray,
        tol: float,
        *,
        is_estimate: bool = False,
        deadline: float = np.inf,
    ) -> np.ndarray:
        """Return the minimiser z of <g, z - x> + (z - x)'H(z - x)/2, with a gap at most ``tol`` times that of x."""

    def can_hold(self, atoms: Stack) -> bool:
        """Return whether the atoms, of a saved run, can be those of the model."""

    def holds(self, x: np.ndarray) -> bool:
        """Return whether the weights ``x`` of a point beyond the minimiser of a model are allowed; False: unknown."""

    def successor(self, n_passes: int, gaps: list[float]) -> TaylorModel | None:
        """Return the model to continue with after so many passes and the ``gaps`` of steps; None: this one."""

    def snapshot(self) -> dict[str, np.ndarray]:
        """Return what the model keeps from one pass to the next, as named arrays."""

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Restore a snapshot."""


def model_for(problem: BaseProblem) -> TaylorModel:
    """Return the kind of model that suits the constraint set, at first.

    Vertices with a single entry are atoms of their own. Over sets of few linear rows the model is a quadratic program
    in all features. For other sets the model uses features: some of them, or all if their curvature costs no more than
    a few passes. Otherwise it begins with vertices, and uses the features later if passes with vertices do not lead to
    the minimum soon.
    """
    constraint = problem.constraint
    if constraint.vertex is Atom:
        return HullModel(problem)
    rows = _few_rows(problem)
    if rows is not None:
        return LinearRowsModel(problem, rows)
    return FeatureModel(problem) if _uses_features(problem) else HullModel(problem)


def begins_with_vertices(problem: BaseProblem) -> bool:
    """Return whether the atoms of the first model are vertices with several entries."""
    has_other_atoms = problem.constraint.vertex is Atom or _uses_features(problem)
    return not has_other_atoms and _few_rows(problem) is None


def _uses_features(problem: BaseProblem) -> bool:
    return has_few_features(problem.constraint, problem.n_features) or curvature_in_passes(problem) <= _FEW_PASSES


def _few_rows(problem: BaseProblem) -> LinearRows | None:
    """Return the linear rows of the constraint set, or None if quadratic programs over them do not pay."""
    constraint, d = problem.constraint, problem.n_features
    has_fast_oracle = is_compiled(constraint)
    is_large = d**3 > problem.cost_of_pass * _LARGE_PROGRAM or d > problem.n_samples
    most = _MOST_IF_SPARSE if has_few_features(constraint, d) else _MOST_IN_PROGRAM
    if d > most or (has_fast_oracle and is_large):
        return None
    rows = constraint.linear_rows(d)
    return rows if rows is not None and rows.n_rows <= (_FEW_ROWS if has_fast_oracle else _MOST_ROWS) else None


def curvature_in_passes(problem: BaseProblem) -> float:
    """Return an estimate of the cost of the curvature on all features, in passes over the data; inf: too expensive.

    The curvature is a matrix product of samples and pairs of features, at a much higher speed than that of a pass.
    """
    n, d = problem.n_samples, problem.n_features
    if d > _MOST_FEATURES:
        return np.inf
    entries = problem.cost_of_pass / (2.0 * n)  # of a sample
    one = d / _DENSE_SPEED if entries > d / 2 else entries / _SPARSE_SPEED
    return one if problem.is_quadratic else 2.0 * one * min(1.0, ROWS_PER_ATOM * d / n)


def takes_few_passes(problem: BaseProblem) -> bool:
    """Return whether a model on atoms or features is possible, with which a run takes about ten passes."""
    is_atomic = problem.constraint.vertex is Atom
    return (
        is_atomic or has_few_features(problem.constraint, problem.n_features) or curvature_in_passes(problem) < np.inf
    )


class HullModel:
    """w = sum_k x_k v_k over vertices v_k of the set.

    If the set is symmetric (with v it contains -v), w is in the set if sum_k |x_k| <= 1. Otherwise x >= 0, with sum 1,
    or sum at most 1 if the set contains the origin.
    """

    is_exact = False  # pairwise steps end at a tolerance

    def __init__(self, problem: BaseProblem) -> None:
        self.problem, self.constraint = problem, problem.constraint
        self.is_symmetric = bool(self.constraint.is_symmetric)
        self.has_origin = has_origin(self.constraint, problem.n_features)
        is_ball = self.is_symmetric and self.has_origin and self.constraint.vertex is Atom
        self.sweeps = Sweeps.suited_to(problem) if is_ball else None
        rounds = NewtonRounds.suited_to(problem) if is_ball else None
        self.descents: tuple[Descent, ...] = tuple(each for each in (self.sweeps, rounds) if each is not None)

    def start(self, w0: np.ndarray | None) -> tuple[Stack, np.ndarray]:
        """Return atoms and weights of ``w0``; by default of the origin if the set has it, else of the set's start."""
        if w0 is not None:
            parts = [(x, v) for x, v in self.constraint.decompose(w0) if x > 0.0]
            parts = _one_per_feature(parts) if self.constraint.vertex is Atom and self.has_origin else parts
        else:
            parts = [] if self.has_origin else [(1.0, self.constraint.start(self.problem.n_features))]
        atoms: Stack = AtomStack() if self.constraint.vertex is Atom else VertexStack()
        if parts:
            atoms.extend([v for _, v in parts])
        return atoms, np.array([x for x, _ in parts])

    def kept(self, atoms: Stack, x: np.ndarray) -> np.ndarray:
        """Return a mask of the atoms that stay: those with nonzero weight."""
        has_weight: np.ndarray = x != 0.0
        return has_weight

    def add_candidates(self, atoms: Stack, x: np.ndarray, r: np.ndarray, gap: float, n_taken: int | None) -> None:
        """Add the best new vertices for the gradient ``r`` at w = sum_k x_k v_k.

        The curvature costs the square of their number, so it follows how many were taken the last time.
        """
        wanted = len(atoms) if n_taken is None else max(min(len(atoms), _FEW_NEW), int(_GROWTH * n_taken))
        count, margin = max(_FEWEST_NEW, wanted), _MARGIN
        if self.sweeps is not None and self.sweeps.expect_many(atoms):  # they cost what the columns store
            count, margin = max(self.sweeps.terms.new, len(atoms)), _SWEPT_MARGIN
        new = atoms.without(self._candidates(r, count + len(atoms)), self.is_symmetric)
        # The best vertex s has <r, s> <= <r, w>. A vertex is added if its slope is at most <r, w> plus a margin that
        # shrinks with the gap: the gradient will not change by more.
        along = float(atoms.inner_products(r) @ x)
        margin = min(margin * abs(along), 5.0 * max(gap, 0.0))
        promising = new.inner_products(r) <= along + margin
        promising[count:] = False
        atoms.join(new.select(promising))

    def _candidates(self, r: np.ndarray, count: int) -> Stack:
        if self.constraint.vertex is Atom:
            return AtomStack(*self.constraint.best_atoms(r, count))
        return stack(self.constraint.best_vertices(r, count))

    def minimise(
        self,
        atoms: Stack,
        g: np.ndarray,
        H: np.ndarray,
        x: np.ndarray,
        tol: float,
        *,
        is_estimate: bool = False,
        deadline: float = np.inf,
    ) -> np.ndarray:
        """Return the minimiser z of <g, z - x> + (z - x)'H(z - x)/2, with a gap at most ``tol`` times that of x.

        Over the l1 ball of a symmetric set the minimiser is found exactly (:mod:`condgrad.linalg.gram_minimiser`). Over
        other hulls it is found by pairwise steps and on faces. What is missing, if that did not lead to ``tol``, is
        left to pairwise steps alone. Everything ends at ``deadline`` (in the time of ``time.perf_counter``).
        """
        first_gap = self._gap(g, x)
        largest = float(np.abs(g).max(initial=0.0)) + _SUMS * float(H.diagonal().max(initial=0.0))  # H z cancels g
        exact = max(_EXACT * first_gap, _ROUNDING * largest)
        goal = max(tol * first_gap, exact)
        if self.is_symmetric and self.has_origin:
            rough = exact if self.problem.is_quadratic else goal
            fine = rough if is_estimate else max(min(rough, _IN_BALL * first_gap), exact)
            z = self._minimise_in_ball(x, g, H, (fine, rough), is_estimate=is_estimate, deadline=deadline)
            goal = max(goal, _FALLBACK * first_gap)
        elif is_estimate:  # from few samples: then pairwise steps are enough
            z = x.copy()
        else:
            z = self._minimise_on_faces(x, g, H, exact, deadline)
        slopes = g + symmetric_product(H, z - x)
        growth = inner(g + slopes, z - x)  # twice that of the model: a smaller gap alone does not mean that it fell
        if self._gap(slopes, z) > goal or growth > exact:
            if growth > 0.0:  # it is worse than x, from where pairwise steps descend
                z, slopes = x.copy(), g.copy()
            for _ in range(_MOST_STEPS // _STEPS):
                is_done = pairwise_steps(slopes, H, z, self.is_symmetric, self.has_origin, goal, _STEPS)
                if is_done or time.perf_counter() >= deadline:
                    break
        return z

    def _minimise_in_ball(
        self,
        x: np.ndarray,
        g: np.ndarray,
        H: np.ndarray,
        goals: tuple[float, float],
        *,
        is_estimate: bool,
        deadline: float,
    ) -> np.ndarray:
        """Return the minimiser of the model over an l1 ball, up to a gap in ``goals`` or what an H with a ridge allows.

        The goals are a fine and a rough one. If H ``is_estimate`` or atoms are many, pairwise steps come first: they
        often reach the fine goal, and else they find most of the support in less time than the exact solver would. The
        rough goal is for the exact solver with many atoms.
        """
        fine, rough = goals
        start, slopes, has_many = x, g, x.size > _MANY
        if has_many or is_estimate:
            start, slopes = x.copy(), g.copy()
            if pairwise_steps(slopes, H, start, True, True, fine, _FIRST_STEPS * x.size):
                return start
        goal = rough if has_many else fine
        z = minimise_in_ball(start, slopes, H, goal, deadline)
        slopes = g + symmetric_product(H, z - x)
        if self._gap(slopes, z) <= goal and inner(g + slopes, z - x) <= 0.0:  # it is no worse than x
            return z
        return minimise_in_ball(x, g, _with_ridge(H), goal, deadline)  # H is almost singular

    def _minimise_on_faces(
        self, x: np.ndarray, g: np.ndarray, H: np.ndarray, exact: float, deadline: float
    ) -> np.ndarray:
        """Return the minimiser of the model, up to the gap ``exact``, unless that takes too long.

        Pairwise steps cost O(k) each for k atoms. Their result depends on the rounding of the data, because each line
        search makes the slopes of two atoms equal. So they only find the face of the minimiser, and a Cholesky factor
        of H gives the minimiser on it, up to rounding. A small ridge is added to H, so that the minimiser is unique if
        atoms depend on each other.
        """
        z, slopes, work, most_work = x.copy(), g.copy(), 0, _MOST_WORK * x.size
        H = _with_ridge(H)
        for _ in range(_MOST_ROUNDS):
            if self._gap(slopes, z) <= exact or work > most_work or time.perf_counter() >= deadline:
                break
            pairwise_steps(slopes, H, z, self.is_symmetric, self.has_origin, exact, 2 * x.size)
            work += minimise_on_face(slopes, H, z, self.has_origin, most_work - work) + 6 * x.size * x.size
            slopes = g + symmetric_product(H, z - x)
        return z

    def can_hold(self, atoms: Stack) -> bool:
        """Return whether the atoms are different vertices, with single features one for each feature."""
        if self.constraint.vertex is not Atom:
            keys = {atoms.vertex(k).key() for k in range(len(atoms))}
            return len(keys) == len(atoms)
        return isinstance(atoms, AtomStack) and np.unique(atoms.index).size == len(atoms)

    def holds(self, x: np.ndarray) -> bool:
        """Return whether w is inside the set, by more than rounding: for sets that are l1 balls of their atoms."""
        return self.is_symmetric and self.has_origin and float(np.abs(x).sum()) <= 1.0 - _INSIDE

    def successor(self, n_passes: int, gaps: list[float]) -> FeatureModel | None:
        """Return a model on all features if the passes cost more than its curvature, or if they do not lead far.

        With fewer samples than features the curvature is worth less: its rank is at most the number of samples.
        """
        if self.constraint.vertex is Atom:
            return None
        worth = curvature_in_passes(self.problem) * max(1.0, self.problem.n_features / self.problem.n_samples)
        is_judged = len(gaps) > _TRIAL and n_passes >= _TRIAL_SHARE * worth
        is_slow = is_judged and gaps[-1] > _CONTRACTION * gaps[-1 - _TRIAL]
        return FeatureModel(self.problem, self.has_origin) if n_passes > worth or is_slow else None

    def snapshot(self) -> dict[str, np.ndarray]:
        """Return nothing: atoms and weights are those of the solver."""
        return {}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Do nothing."""

    def _gap(self, g: np.ndarray, x: np.ndarray) -> float:
        """Return <g, x> minus the smallest <g, z> over the hull."""
        best = -np.abs(g).max() if self.is_symmetric else g.min()
        return inner(g, x) - float(min(best, 0.0) if self.has_origin else best)


def _with_ridge(H: np.ndarray) -> np.ndarray:
    """Return H with a small ridge, so that no atom depends on the others."""
    return H + np.diag(_RIDGE * np.diag(H))


def _one_per_feature(parts: list[tuple[float, Vertex]]) -> list[tuple[float, Vertex]]:
    """Return the same sum with one atom per feature, as the curvature has one row per feature.

    If w lies inside a set with the origin, its decomposition contains atoms that cancel, or are zero, to make the
    weights sum to one.
    """
    atoms = [(x, cast("Atom", v)) for x, v in parts]
    total: dict[int, float] = {}
    for x, v in atoms:
        total[v.index] = total.get(v.index, 0.0) + x * v.value
    return [(total.pop(v.index) / v.value, v) for _, v in atoms if total.get(v.index, 0.0) * v.value > 0.0]
