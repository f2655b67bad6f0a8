"""Taylor models: a quadratic over some atoms of the set, minimised to a given gap without reading the data."""

from __future__ import annotations

import math
import time
from typing import cast

import numpy as np

from condgrad.compiled import is_compiled, kernel
from condgrad.constraints import Atom, best_vertex
from condgrad.constraints.linear_rows import LinearRows
from condgrad.constraints.vertices import Vertex
from condgrad.linalg.vectors import inner, product
from condgrad.problems.active_set import AtomStack, Stack, VertexStack, stack
from condgrad.problems.base import BaseProblem
from condgrad.problems.evaluation import gap_at
from condgrad.solvers.full_pass.face import minimise_on_face
from condgrad.solvers.full_pass.linear_rows_model import LinearRowsModel

_MARGIN = 0.1  # relative margin: a new vertex is added even if its slope is this much worse than the mean of the atoms
_LONGEST = 1e6  # longest step of a projected gradient, in diameters of the set
_RIDGE = 1e-8  # ridge added to the diagonal of H, relative to the diagonal
_EXACT = 1e-10  # gap relative to the first gap at which the model counts as minimised exactly
_ROUNDING = 1e-14  # gap relative to the largest slope below which it is rounding
_MOST_STEPS, _STEPS = 50_000, 1000  # number of pairwise steps in a hull, in all and between two checks of the deadline
_MOST_ROUNDS = 30
_MOST_WORK = 20_000  # multiplications per atom, that is about 7,000 steps
_MOST_FEATURES = 1000  # largest number of features of a FeatureModel for a set without blocks, and of linear rows
_MOST_ROWS = 5000  # largest number of linear rows of quadratic programs
# A quadratic program in d features costs about d^3. It is small, or may be too large for sets with a fast oracle, if it
# costs more than so many passes:
_SMALL_PROGRAM, _LARGE_PROGRAM = 10.0, 250.0


def model_for(problem: BaseProblem) -> HullModel | FeatureModel | LinearRowsModel:
    """Return the kind of model that suits the constraint set."""
    rows = _few_rows(problem)
    if rows is not None:
        return LinearRowsModel(problem, rows)
    return FeatureModel(problem) if _is_restricted(problem) else HullModel(problem)


def needs_few_features(problem: BaseProblem) -> bool:
    """Return whether the model uses few features at a time: those of some atoms, of some groups, or few in all."""
    constraint = problem.constraint
    if _few_rows(problem) is not None:
        is_small = problem.n_features**3 <= problem.cost_of_pass * _SMALL_PROGRAM
        return is_small or not is_compiled(constraint)  # linear programs in every step would be slow
    return constraint.vertex is Atom or (_is_restricted(problem) and _has_blocks(problem))


def _few_rows(problem: BaseProblem) -> LinearRows | None:
    """Return the linear rows of the constraint set, or None if quadratic programs over them do not pay."""
    constraint, d = problem.constraint, problem.n_features
    pays = d**3 <= problem.cost_of_pass * _LARGE_PROGRAM or not is_compiled(constraint)
    if constraint.vertex is Atom or d > _MOST_FEATURES or not pays:
        return None
    rows = constraint.linear_rows(d)
    return rows if rows is not None and rows.n_rows <= _MOST_ROWS else None


def _is_restricted(problem: BaseProblem) -> bool:
    constraint, d = problem.constraint, problem.n_features
    is_narrow = d <= _MOST_FEATURES or _has_blocks(problem)
    return constraint.vertex is not Atom and is_narrow and constraint.restricted(np.arange(d)) is not None


def _has_blocks(problem: BaseProblem) -> bool:
    return problem.constraint.blocks(problem.n_features) is not None


class HullModel:
    """w = sum_k x_k v_k over vertices v_k of the set.

    If the set is symmetric (with v it contains -v), w is in the set if sum_k |x_k| <= 1. Otherwise x >= 0, with sum 1,
    or sum at most 1 if the set contains the origin.
    """

    is_exact = False  # pairwise steps end at a tolerance

    def __init__(self, problem: BaseProblem) -> None:
        self.problem, self.constraint = problem, problem.constraint
        self.is_symmetric = bool(self.constraint.is_symmetric)
        self.has_origin = bool(self.constraint.violation(np.zeros(problem.n_features)) <= 0.0)

    def start(self, w0: np.ndarray | None) -> tuple[Stack, np.ndarray]:
        """Return atoms and weights of ``w0``; by default of the origin if the set has it, else of the set's start."""
        if w0 is not None:
            parts = [(x, v) for x, v in self.constraint.decompose(w0) if x > 0.0]
            parts = _one_per_feature(parts) if self.constraint.vertex is Atom and self.has_origin else parts
        else:
            parts = [] if self.has_origin else [(1.0, self.constraint.start(self.problem.n_features))]
        atoms: Stack = AtomStack() if self.constraint.vertex is Atom else VertexStack()
        atoms.extend([v for _, v in parts])
        return atoms, np.array([x for x, _ in parts])

    def can_hold(self, atoms: Stack) -> bool:
        """Return whether the atoms are of the kind that the model uses."""
        return isinstance(atoms, AtomStack) == (self.constraint.vertex is Atom)

    def kept(self, atoms: Stack, x: np.ndarray) -> np.ndarray:
        """Return a mask of the atoms that stay: those with nonzero weight."""
        has_weight: np.ndarray = x != 0.0
        return has_weight

    def add_candidates(self, atoms: Stack, x: np.ndarray, r: np.ndarray, gap: float) -> None:
        """Add the best new vertices for the gradient ``r`` at w = sum_k x_k v_k."""
        count = max(20, len(atoms))
        new = atoms.without(self._candidates(r, count + len(atoms)), self.is_symmetric)
        # The best vertex s has <r, s> <= <r, w>. A vertex is added if its slope is at most <r, w> plus a margin that
        # shrinks with the gap: the gradient will not change by more.
        along = float(atoms.inner_products(r) @ x)
        margin = min(_MARGIN * abs(along), 5.0 * max(gap, 0.0))
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

        Pairwise steps cost O(k) each for k atoms. Their result depends on the rounding of the data, within ``tol``,
        because each line search makes the slopes of two atoms equal. So they only find the face of the minimiser, and a
        Cholesky factor of H gives the minimiser on it, up to rounding, unless that would take too long. A small ridge
        is added to H, so that the minimiser is unique if atoms depend on each other. If H ``is_estimate``, from few
        samples, pairwise steps are enough. Everything ends at ``deadline`` (in the time of ``time.perf_counter``).
        """
        z, slopes, work = x.copy(), g.copy(), 0
        first_gap = last_gap = self._gap(g, x)
        goal = tol * first_gap
        if not is_estimate:
            H = H + np.diag(_RIDGE * np.diag(H))
            exact = max(_EXACT * first_gap, _ROUNDING * float(np.abs(g).max()))
            most_work = _MOST_WORK * x.size
            for _ in range(_MOST_ROUNDS):
                if last_gap <= exact or work > most_work or time.perf_counter() >= deadline:
                    break
                _minimise(slopes, H, z, self.is_symmetric, self.has_origin, exact, 2 * x.size)
                work += minimise_on_face(slopes, H, z, self.has_origin, most_work - work) + 6 * x.size * x.size
                slopes = g + product(H, z - x)
                last_gap = self._gap(slopes, z)
        if last_gap > goal:
            for _ in range(_MOST_STEPS // _STEPS):
                is_done = _minimise(slopes, H, z, self.is_symmetric, self.has_origin, goal, _STEPS)
                if is_done or time.perf_counter() >= deadline:
                    break
        return z

    def _gap(self, g: np.ndarray, x: np.ndarray) -> float:
        """Return <g, x> minus the smallest <g, z> over the hull."""
        best = -np.abs(g).max() if self.is_symmetric else g.min()
        return inner(g, x) - float(min(best, 0.0) if self.has_origin else best)


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


class FeatureModel:
    """w itself, on some features: for sets with curved boundaries, which no hull of few vertices approximates.

    The restriction of the set to these features and the projection onto it must be known: the model is minimised by
    projected gradient steps with momentum. Projections are used only in the model, not in passes over the data.
    """

    is_exact = False  # projected gradient steps end at a tolerance

    def __init__(self, problem: BaseProblem) -> None:
        self.problem, self.constraint = problem, problem.constraint

    def start(self, w0: np.ndarray | None) -> tuple[Stack, np.ndarray]:
        """Return the features and values of ``w0``; by default of the origin if the set has it, else of its start."""
        d = self.problem.n_features
        if w0 is None:
            w0 = np.zeros(d)
            w0 = w0 if self.constraint.contains(w0, 0.0) else self.constraint.start(d).to_dense(d)
        features = np.flatnonzero(w0)
        return AtomStack(features, np.ones(features.size)), w0[features]

    def can_hold(self, atoms: Stack) -> bool:
        """Return whether the atoms are features."""
        return isinstance(atoms, AtomStack)

    def kept(self, atoms: Stack, x: np.ndarray) -> np.ndarray:
        """Return a mask of the features that stay: those of nonzero groups."""
        return self.constraint.related(_features(atoms), x != 0.0)

    def add_candidates(self, atoms: Stack, x: np.ndarray, r: np.ndarray, gap: float) -> None:
        """Add the features of the best vertices for the gradient ``r``."""
        count = max(10, len(atoms) // 2)
        found = [v.support()[0] for v in self.constraint.best_vertices(r, count)]
        sparse = [indices for indices in found if indices is not None]
        features = np.arange(r.size) if len(sparse) < len(found) else np.concatenate(sparse)
        new = np.setdiff1d(features, _features(atoms))
        atoms.join(AtomStack(new, np.ones(new.size)))

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

        The steps depend continuously on the data, so rounding changes the result little: ``is_estimate`` is ignored.
        They end at ``deadline`` at the latest (in the time of ``time.perf_counter``).
        """
        inside = self.constraint.restricted(_features(atoms))
        assert inside is not None  # model_for has checked it
        # With almost no curvature, a longer step leads to the same vertex, and its square may overflow.
        longest = _LONGEST * inside.diameter(2, x.size)
        L = max(_largest_eigenvalue(H), math.sqrt(inner(g, g)) / longest, 1e-300)
        z = ahead = x
        momentum, first_gap = 1.0, np.inf
        for step in range(20_000):
            if step % 10 == 0:
                slope = g + product(H, z - x)
                gap = gap_at(slope, z, best_vertex(inside, slope))
                first_gap = gap if step == 0 else first_gap
                if gap <= tol * first_gap or time.perf_counter() >= deadline:
                    break
            new = inside.project(ahead - (g + product(H, ahead - x)) / L)
            if inner(ahead - new, new - z) > 0.0:  # momentum points uphill: restart it
                momentum, ahead = 1.0, z
                continue
            following = 0.5 + math.sqrt(0.25 + momentum * momentum)
            ahead = new + (momentum - 1.0) / following * (new - z)
            z, momentum = new, following
        return z


def _features(atoms: Stack) -> np.ndarray:
    """Return the features of atoms of a FeatureModel."""
    return cast("AtomStack", atoms).index


def _largest_eigenvalue(H: np.ndarray) -> float:
    """Return an upper estimate of the largest eigenvalue of H, by 100 power iterations; at most the largest row sum."""
    v = np.ones(H.shape[0])
    size = 0.0
    for _ in range(100):
        v = product(H, v)
        size = math.sqrt(inner(v, v))
        if size == 0.0:
            break
        v /= size
    return min(1.1 * size, float(np.abs(H).sum(axis=1).max()))


@kernel
def _minimise(g, H, x, is_symmetric, has_origin, goal, max_steps):
    """Make pairwise steps until the gap is at most ``goal``; return whether it was reached."""
    slack = 1.0  # computed anew in each call: a running sum of weights would accumulate rounding errors
    for k in range(x.shape[0]):
        slack -= abs(x[k])
    for _ in range(max_steps):
        # The best atom s gains weight, and the worst atom v loses it; -1 stands for the origin.
        best, s, worst, v, along = np.inf, -1, -np.inf, -1, 0.0
        for k in range(x.shape[0]):
            along += g[k] * x[k]
            value = -abs(g[k]) if is_symmetric else g[k]
            if value < best:
                best, s = value, k
            if x[k] != 0.0:
                value = g[k] if x[k] > 0.0 else -g[k]
                if value > worst:
                    worst, v = value, k
        if has_origin and best > 0.0:
            best, s = 0.0, -1
        if has_origin and slack > 1e-15 and worst < 0.0:
            worst, v = 0.0, -1
        gap = along - best
        # d moves weight from v to s, each with its sign (for example from v to -v); the origin has no entries.
        sign_s = 1.0 if s < 0 or g[s] <= 0.0 or not is_symmetric else -1.0
        sign_v = 1.0 if v < 0 or x[v] > 0.0 else -1.0
        if gap <= goal or (s == v and sign_s == sign_v):
            return True
        curvature, limit = 0.0, slack
        if s >= 0:
            curvature += H[s, s]
        if v >= 0:
            curvature += H[v, v]
            limit = abs(x[v])
        if s >= 0 and v >= 0:
            curvature -= 2.0 * sign_s * sign_v * H[s, v]
        descent = worst - best
        gamma = limit if curvature * limit <= descent else descent / curvature
        if v >= 0:
            x[v] = 0.0 if gamma == limit else x[v] - gamma * sign_v
            for k in range(x.shape[0]):
                g[k] -= gamma * sign_v * H[v, k]
        else:
            slack -= gamma
        if s >= 0:
            if x[s] * sign_s < 0.0:  # weights on v_s and on -v_s cancel: both go back to the origin
                slack += 2.0 * min(abs(x[s]), gamma)
            x[s] += gamma * sign_s
            for k in range(x.shape[0]):
                g[k] += gamma * sign_s * H[s, k]
        else:
            slack += gamma
    return False
