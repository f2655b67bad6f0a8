"""Taylor models: a quadratic over some atoms of the set, minimised to a given gap without touching the data."""

from __future__ import annotations

import math
import time
from typing import cast

import numpy as np

from condgrad.compiled import kernel
from condgrad.constraints import Atom, best_vertex
from condgrad.constraints.vertices import Vertex
from condgrad.linalg.vectors import inner, product
from condgrad.problems.active_set import AtomStack, Stack, VertexStack, stack
from condgrad.problems.base import BaseProblem
from condgrad.problems.evaluation import gap_at
from condgrad.solvers.full_pass.face import minimise_on_face

_MARGIN = 0.1  # by how much, relative to the mean of the atoms, a new vertex may be worse and enter all the same
_LONGEST = 1e6  # step of a projected gradient, in diameters of the set
_RIDGE = 1e-8  # of the curvature of an atom itself
_EXACT = 1e-10  # of the gap at the start: a hull is as good as minimised
_ROUNDING = 1e-14  # of the largest slope: a smaller gap is none
_MOST_STEPS, _STEPS = 50_000, 1000  # of pairwise steps in a hull, and between two looks at the clock
_MOST_ROUNDS = 30
_MOST_WORK = 20_000  # multiplications an atom, that is about 7,000 steps
_MOST_FEATURES = 1000  # a set that is restricted to features rather than atoms may have this many in play


def model_for(problem: BaseProblem) -> HullModel | FeatureModel:
    """Return the kind of model that suits the constraint set."""
    return FeatureModel(problem) if _is_restricted(problem) else HullModel(problem)


def needs_few_features(problem: BaseProblem) -> bool:
    """Tell whether few features are in play at a time: those of some atoms, or of some groups."""
    return problem.constraint.vertex is Atom or (_is_restricted(problem) and _has_blocks(problem))


def _is_restricted(problem: BaseProblem) -> bool:
    constraint, d = problem.constraint, problem.n_features
    is_narrow = d <= _MOST_FEATURES or _has_blocks(problem)
    return constraint.vertex is not Atom and is_narrow and constraint.restricted(np.arange(d)) is not None


def _has_blocks(problem: BaseProblem) -> bool:
    return problem.constraint.blocks(problem.n_features) is not None


class HullModel:
    """w = sum_k x_k v_k over vertices v_k of the set.

    Where with v also -v is in the set, sum_k |x_k| <= 1 keeps w in it; otherwise x >= 0, with sum 1, or at most
    1 where the set has the origin.
    """

    def __init__(self, problem: BaseProblem) -> None:
        self.problem, self.constraint = problem, problem.constraint
        self.is_symmetric = bool(self.constraint.is_symmetric)
        self.has_origin = bool(self.constraint.violation(np.zeros(problem.n_features)) <= 0.0)

    def start(self, w0: np.ndarray | None) -> tuple[Stack, np.ndarray]:
        """Return atoms and weights of ``w0``, of the origin where the set has it, or of the set's own start."""
        if w0 is not None:
            parts = [(x, v) for x, v in self.constraint.decompose(w0) if x > 0.0]
            parts = _one_per_feature(parts) if self.constraint.vertex is Atom and self.has_origin else parts
        else:
            parts = [] if self.has_origin else [(1.0, self.constraint.start(self.problem.n_features))]
        atoms: Stack = AtomStack() if self.constraint.vertex is Atom else VertexStack()
        atoms.extend([v for _, v in parts])
        return atoms, np.array([x for x, _ in parts])

    def kept(self, atoms: Stack, x: np.ndarray) -> np.ndarray:
        """Tell which atoms stay: those with weight."""
        has_weight: np.ndarray = x != 0.0
        return has_weight

    def enter(self, atoms: Stack, x: np.ndarray, r: np.ndarray, gap: float) -> None:
        """Add the best several vertices for the gradient ``r`` at w = sum_k x_k v_k, new ones only."""
        count = max(20, len(atoms))
        new = atoms.without(self._candidates(r, count + len(atoms)), self.is_symmetric)
        # The best vertex of all promises at least <r, w>. Others enter where they promise about as much, within a
        # margin that shrinks with the gap: the gradient will not change by more.
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
        """Return the minimiser of <g, z - x> + (z - x)'H(z - x)/2, its gap at most ``tol`` times that of x.

        Pairwise steps take O(k) each for k atoms. Where they end depends on how the data round, by as much as ``tol``
        allows, because each line search ties two atoms. So they only find the face that the minimiser lies on, and a
        factor of H leads there: up to rounding, unless that would take too long. A little is added to H, so that there
        is one minimiser where atoms depend on each other. Where H ``is_estimate``, from few samples, steps are enough.
        ``deadline``, by ``time.perf_counter``, ends all of it.
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
        """Return <g, x> less the smallest <g, z> over the hull."""
        best = -np.abs(g).max() if self.is_symmetric else g.min()
        return inner(g, x) - float(min(best, 0.0) if self.has_origin else best)


def _one_per_feature(parts: list[tuple[float, Vertex]]) -> list[tuple[float, Vertex]]:
    """Return the same sum of atoms without those that cancel, or are zero: the curvature has a row per feature.

    A decomposition has them where w lies inside a set with the origin, to make the weights sum to one.
    """
    atoms = [(x, cast("Atom", v)) for x, v in parts]
    total: dict[int, float] = {}
    for x, v in atoms:
        total[v.index] = total.get(v.index, 0.0) + x * v.value
    return [(total.pop(v.index) / v.value, v) for _, v in atoms if total.get(v.index, 0.0) * v.value > 0.0]


class FeatureModel:
    """w itself, on some features: for sets with curved faces, which no hull of few vertices fits.

    The set restricted to these features must be known, with its projection: the model is minimised by projected
    gradient steps with momentum. The data never see a projection.
    """

    def __init__(self, problem: BaseProblem) -> None:
        self.problem, self.constraint = problem, problem.constraint

    def start(self, w0: np.ndarray | None) -> tuple[Stack, np.ndarray]:
        """Return the features and values of ``w0``, of the origin, or of the set's own start."""
        d = self.problem.n_features
        if w0 is None:
            w0 = np.zeros(d)
            w0 = w0 if self.constraint.contains(w0, 0.0) else self.constraint.start(d).to_dense(d)
        features = np.flatnonzero(w0)
        return AtomStack(features, np.ones(features.size)), w0[features]

    def kept(self, atoms: Stack, x: np.ndarray) -> np.ndarray:
        """Tell which features stay: those of groups that are not zero."""
        return self.constraint.related(_features(atoms), x != 0.0)

    def enter(self, atoms: Stack, x: np.ndarray, r: np.ndarray, gap: float) -> None:
        """Add the features of the best several vertices for the gradient ``r``."""
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
        """Return the minimiser of <g, z - x> + (z - x)'H(z - x)/2, its gap at most ``tol`` times that of x.

        Its steps follow the data continuously, so that rounding has no say: ``is_estimate`` changes nothing.
        It ends at ``deadline`` by ``time.perf_counter`` at the latest.
        """
        inside = self.constraint.restricted(_features(atoms))
        assert inside is not None  # as model_for has found
        # Where there is next to no curvature, a longer step leads to the same vertex, and its square may overflow.
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
            if inner(ahead - new, new - z) > 0.0:  # momentum points uphill: start it again
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
    """Return a little more than the largest eigenvalue of H: 100 powers of H, and never above its largest row sum."""
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
    """Make pairwise steps down to a gap of ``goal``; return whether they have led there."""
    slack = 1.0  # anew for each call: the running sum of weights gathers rounding errors
    for k in range(x.shape[0]):
        slack -= abs(x[k])
    for _ in range(max_steps):
        # The best atom s to gain weight, and the worst one v to lose it; -1 stands for the origin.
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
        # d moves weight from v to s, each with its sign (from v to -v, say); the origin has no entries.
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
            if x[s] * sign_s < 0.0:  # weight on v_s and on -v_s cancels: both return to the origin
                slack += 2.0 * min(abs(x[s]), gamma)
            x[s] += gamma * sign_s
            for k in range(x.shape[0]):
                g[k] += gamma * sign_s * H[s, k]
        else:
            slack += gamma
    return False
