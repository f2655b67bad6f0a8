"""FeatureModel: a Taylor model over the set itself, on all features or on some of them."""

from __future__ import annotations

import functools
import math
import time
from typing import cast

import numpy as np

from condgrad.constraints import SparseVertex, best_vertex
from condgrad.constraints._group_form import GroupForm, group_form
from condgrad.constraints._groups import features_of
from condgrad.constraints._protocol import ConstraintSet, has_origin
from condgrad.linalg.group_model import GroupModel, minimise_over_ball
from condgrad.linalg.saved import take_floats
from condgrad.linalg.vectors import inner, symmetric_product
from condgrad.problems.active_set import AtomStack, Stack
from condgrad.problems.base import BaseProblem
from condgrad.problems.evaluation import gap_at
from condgrad.solvers.full_pass.descent import Descent
from condgrad.solvers.full_pass.vertex_hull import VertexHull

_EXACT = 1e-10  # gap relative to the first gap at which the model counts as minimised exactly
_ENOUGH = 1e-3  # ratio of two gaps in sequence that is enough where more digits of the model take many vertices
_FINER = 1e-3  # gap relative to the first gap to which Newton steps minimise: one more of them squares the error
_MARGIN = 0.1  # relative margin: features are added even if the slope of their vertex is this much worse than <r, w>
_ROUNDING = 1e-15  # a gap that is rounding, relative to the sizes of the terms of its sums
_LONGEST = 1e6  # longest step of a projected gradient, in diameters of the set
_FAR = 10.0  # length of a step, in diameters, from whose end a projection rounds by more than some units
_MOST_CALLS = 1000  # calls of the oracle for one model, if the set has no projection: Ctrl-C is heard after them
# Projections and calls of the oracle that take turns, if the set has both: which of them is faster depends on the shape
# of the set near the minimiser and on the condition of H. Projections are first, because they move w only as far as
# needed if the minimiser is not unique.
_PORTIONS = ((300, 50), (1200, 200), (4800, 800))


class FeatureModel:
    """w itself, on all features, or on some that grow in number if the set says what it is on them.

    The curvature is a matrix of features, so the model is minimised over the set without reading the data: on the hull
    of vertices that the oracle finds for the gradients of the model. If the set has a projection, projected gradient
    steps with momentum take turns with them. Over balls of groups Newton steps come first, and nearly always suffice.
    """

    is_exact = False  # the oracle is called until a tolerance is reached
    descents: tuple[Descent, ...] = ()

    def __init__(self, problem: BaseProblem, holds_origin: bool | None = None) -> None:
        self.problem, self.constraint = problem, problem.constraint
        d = problem.n_features
        self.can_grow = has_few_features(problem.constraint, d)
        self.has_groups = group_form(problem.constraint) is not None
        if holds_origin is None:
            holds_origin = has_origin(self.constraint, d)
        self.hull = VertexHull(d, bool(self.constraint.is_symmetric), holds_origin)

    def start(self, w0: np.ndarray | None) -> tuple[Stack, np.ndarray]:
        """Return the features and values of ``w0``; by default of the origin if the set has it, else of its start."""
        d = self.problem.n_features
        if w0 is None:
            w0 = np.zeros(d) if self.hull.has_origin else self.constraint.start(d).to_dense(d)
        features = np.flatnonzero(w0) if self.can_grow else np.arange(d)
        return AtomStack(features, np.ones(features.size)), w0[features]

    def kept(self, atoms: Stack, x: np.ndarray) -> np.ndarray:
        """Return a mask of the features that stay: all, or those related to nonzero ones if more can be added later."""
        return self.constraint.related(_features(atoms), x != 0.0) if self.can_grow else np.ones(x.size, dtype=bool)

    def add_candidates(self, atoms: Stack, x: np.ndarray, r: np.ndarray, gap: float, n_taken: int | None) -> None:
        """Add the features of the best vertices for the gradient ``r``, if more can be added."""
        if not self.can_grow:
            return
        along = float(atoms.inner_products(r) @ x)
        most = along + min(_MARGIN * abs(along), 5.0 * max(gap, 0.0))  # the gradient will not change by more
        # Some are among the present ones. Groups are large: half as many again would more than double the curvature.
        count = max(50, len(atoms) // 4 if self.has_groups else len(atoms)) + len(atoms)
        new = np.setdiff1d(self.constraint.best_features(r, count, most), _features(atoms))
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

        Where that takes long, a ratio of 1e-3 is enough. Unless H ``is_estimate``, from few samples, some more calls of
        the oracle follow, so that the result depends less on rounding. The search ends at ``deadline`` (in the time of
        ``time.perf_counter``).
        """
        features = _features(atoms)
        inside, c = self._on(features), g - symmetric_product(H, x)
        v = best_vertex(inside, g).to_dense(x.size)
        rounding = _ROUNDING * inner(np.abs(c), np.abs(x) + np.abs(v))
        first_gap = inner(g, x - v)
        target, enough = max(tol * first_gap, rounding), max(max(tol, _ENOUGH) * first_gap, rounding)
        goal = target if is_estimate else max(_EXACT * first_gap, rounding)
        search = functools.partial(self.hull.minimise, inside, features, c, H, enough=enough, deadline=deadline)
        form = group_form(inside)
        if form is not None:
            rough = max(min(target, _FINER * first_gap), goal) if self.problem.is_quadratic else target
            x, gap = _by_newton(form, c, H, x, rough, deadline)
            if gap <= enough or time.perf_counter() >= deadline:
                return x
        if not inside.has_projection:
            return search(x, goal, most_calls=_MOST_CALLS)[0]
        z, last_gap = x, np.inf
        for n_projections, n_calls in _PORTIONS:
            z, gap = _by_projections(inside, c, H, z, target, n_projections, deadline)
            if gap > target:
                z, gap = search(z, goal, most_calls=n_calls)
            if gap <= enough or gap > 0.5 * last_gap or time.perf_counter() >= deadline:
                break
            last_gap = gap
        return z

    def _on(self, features: np.ndarray) -> ConstraintSet:
        """Return the set of vectors on these features."""
        inside = self.constraint.restricted(features) if self.can_grow else self.constraint
        assert inside is not None  # __init__ has checked it
        return inside

    def can_hold(self, atoms: Stack) -> bool:
        """Return whether the atoms are different features: all in their order, unless more can be added."""
        if not isinstance(atoms, AtomStack) or not (atoms.value == 1.0).all():
            return False
        return _differ(atoms) if self.can_grow else np.array_equal(atoms.index, np.arange(self.problem.n_features))

    def holds(self, x: np.ndarray) -> bool:
        """Return False: no step leads beyond the minimiser of a model."""
        return False

    def successor(self, n_passes: int, gaps: list[float]) -> None:
        """Return None: the model suits any number of passes."""

    def snapshot(self) -> dict[str, np.ndarray]:
        """Return what the next model starts from."""
        return {f"hull.{name}": part for name, part in self.hull.to_arrays().items()}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Restore a snapshot; older files have none, and the next model then starts from w alone."""
        if "hull.points" in arrays:
            self.hull.points = take_floats(arrays, "hull.points", None, self.hull.points.shape[1])
            self.hull.weights = take_floats(arrays, "hull.weights", len(self.hull.points))


def has_few_features(constraint: ConstraintSet, n_features: int) -> bool:
    """Return whether the set is known on some features alone and its vertices are sparse, so that few are enough."""
    return constraint.vertex is SparseVertex and constraint.restricted(np.arange(n_features)) is not None


def _differ(atoms: AtomStack) -> bool:
    return np.unique(atoms.index).size == len(atoms)


def _features(atoms: Stack) -> np.ndarray:
    """Return the features of atoms of a FeatureModel."""
    return cast("AtomStack", atoms).index


def _by_newton(
    form: GroupForm, c: np.ndarray, H: np.ndarray, z: np.ndarray, goal: float, deadline: float
) -> tuple[np.ndarray, float]:
    """Minimise <c, z> + z'Hz/2 over a ball of groups from z, by Newton steps; return the minimiser and its gap."""
    # Groups were appended whole, so in the order of their first features they need no copy of H.
    by_place = np.argsort(form.members[form.offsets[:-1]])
    order = features_of(by_place, form.members, form.offsets)
    offsets, price = np.concatenate([[0], np.cumsum(np.diff(form.offsets)[by_place])]), form.price[order]
    sorted_H = H if np.array_equal(order, np.arange(order.size)) else H[np.ix_(order, order)]
    scaled_H = sorted_H if (price == 1.0).all() else sorted_H / np.outer(price, price)
    model = GroupModel(form.norm, offsets, scaled_H, -c[order] / price)
    found = minimise_over_ball(model, price * z[order], form.radius, goal, deadline=deadline)
    out = np.empty_like(z)
    out[order] = found.x / price
    return out, found.gap


def _by_projections(
    inside: ConstraintSet, c: np.ndarray, H: np.ndarray, z: np.ndarray, goal: float, most_steps: int, deadline: float
) -> tuple[np.ndarray, float]:
    """Minimise <c, z> + z'Hz/2 from z; return the minimiser and the last gap, at most ``goal`` or after ``most_steps``.

    The steps are those of the accelerated projected gradient method. H times the point follows its moves, so that a
    step costs one product with H.
    """
    # With almost no curvature, a longer step leads to the same vertex, and its square may overflow.
    Hz = symmetric_product(H, z)
    steepest, diameter = math.sqrt(inner(c + Hz, c + Hz)), inside.diameter(2, z.size)
    L = max(_largest_eigenvalue(H), steepest / (_LONGEST * diameter), 1e-300)
    is_far = steepest > _FAR * L * diameter
    ahead, H_ahead, momentum, gap = z, Hz, 1.0, np.inf
    for step in range(most_steps):
        if step % 10 == 0:
            r = c + Hz
            gap = gap_at(r, z, best_vertex(inside, r))
            if gap <= goal or time.perf_counter() >= deadline:
                break
        new = inside.project(ahead - (c + H_ahead) / L)
        new = inside.project(new) if is_far else new  # a projection rounds by the distance, the second one by nothing
        if inner(ahead - new, new - z) > 0.0:  # momentum points uphill: restart it
            momentum, ahead, H_ahead = 1.0, z, Hz
            continue
        H_new = symmetric_product(H, new)
        move = new - ahead
        curvature = inner(move, H_new - H_ahead)
        if curvature > L * inner(move, move):  # L was estimated, and is too small
            L = 1.1 * curvature / inner(move, move)
            momentum, ahead, H_ahead = 1.0, z, Hz
            continue
        following = 0.5 + math.sqrt(0.25 + momentum * momentum)
        beta = (momentum - 1.0) / following
        ahead, H_ahead = new + beta * (new - z), H_new + beta * (H_new - Hz)
        z, Hz, momentum = new, H_new, following
    return z, gap


def _largest_eigenvalue(H: np.ndarray) -> float:
    """Return an estimate of the largest eigenvalue of H, by 20 power iterations; at most the largest row sum."""
    v = np.ones(H.shape[0])
    size = 0.0
    for _ in range(20):
        v = symmetric_product(H, v)
        size = math.sqrt(inner(v, v))
        if size == 0.0:
            break
        v /= size
    return min(1.05 * size, float(np.abs(H).sum(axis=1).max()))
