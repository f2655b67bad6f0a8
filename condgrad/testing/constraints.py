"""check_constraint_set: checks the properties of a constraint set that solvers rely on."""

from __future__ import annotations

from typing import cast

import numpy as np

from condgrad.compiled import is_compiled
from condgrad.constraints import SparseVertex, as_constraint_set, best_vertex
from condgrad.constraints._protocol import ConstraintSet
from condgrad.linalg.max_tree import max_tree
from condgrad.linalg.vectors import DenseVector

_TOL = 1e-9


def check_constraint_set(constraint: object, n_features: int, random_state: int = 0) -> None:
    """Check what solvers rely on in a constraint set; raise AssertionError, in one sentence, if something fails.

    In many directions r (random, with ties, sparse, zero, of size 1e300 and 1e-300): the oracle's vertex is finite,
    lies in the set and is at least as good as every other point found in the set; compiled and interpreted oracles
    agree; points beyond the boundary are outside; the diameters, ``oracle_rounding`` and ``reach`` are valid bounds;
    ``score``, ``decompose``, ``project``, ``restricted`` (if they exist) and ``start`` are correct.

    Parameters
    ----------
    constraint : a constraint set, or an object with a method ``lmo``
    n_features : int
        The dimension to check it in.
    random_state : int
        The seed of the random directions and points.

    Examples
    --------
    >>> from condgrad.constraints import L1Ball
    >>> check_constraint_set(L1Ball(radius=2.0), n_features=5)
    """
    constraint = as_constraint_set(constraint)
    constraint.check_features(n_features)
    rng = np.random.default_rng(random_state)
    directions = _directions(n_features, rng)
    vertices = np.array([_check_vertex(constraint, r) for r in directions])
    points = _points_between(vertices, rng)
    unit = _check_outside(constraint, directions, vertices)
    _check_inside(constraint, points, unit)
    _check_best(constraint, directions, vertices, points)
    _check_score(constraint, directions, vertices)
    _check_diameters(constraint, vertices)
    _check_rounding(constraint, directions, vertices)
    _check_reach(constraint, vertices, rng)
    _check_decompositions(constraint, points[:: max(len(points) // 10, 1)], unit)
    _check_projections(constraint, vertices, unit, rng)
    _check_restrictions(constraint, directions, unit)
    start = constraint.start(n_features).to_dense(n_features)
    assert _is_inside(constraint, start, unit), f"start of {constraint!r} must lie in the set; got {start}."


def _directions(n_features: int, rng: np.random.Generator) -> np.ndarray:
    random = rng.standard_normal((12, n_features))
    ties = rng.integers(-1, 2, (12, n_features)).astype(float)
    spikes = np.eye(n_features)[rng.permutation(n_features)[:6]]
    plain = np.vstack([random, ties, spikes, -spikes, np.ones(n_features), -np.ones(n_features)])
    return np.vstack([np.zeros(n_features), plain, 1e300 * plain[::3], 1e-300 * plain[::3]])


def _check_vertex(constraint: ConstraintSet, r: np.ndarray) -> np.ndarray:
    """Check the form of the vertex at ``r``, and return it as a dense array."""
    given = r.copy()
    s = best_vertex(constraint, r)
    about = f"lmo of {constraint!r} at r = {given}"
    assert (r == given).all(), f"{about} must not change r; it is now {r}."
    assert isinstance(s, constraint.vertex), (
        f"{about} must return a {constraint.vertex.__name__}, as the attribute vertex says; got {s!r}."
    )
    dense = s.to_dense(r.size)
    assert dense.shape == r.shape, f"{about} must return a vector of length {r.size}; got shape {dense.shape}."
    assert np.isfinite(dense).all(), f"{about} must return finite numbers; got {dense}."
    scaled = _normalised(r)
    assert np.isclose(s.inner(DenseVector(scaled)), scaled @ dense, rtol=_TOL, atol=_TOL * np.abs(dense).max()), (
        f"{about}: inner and to_dense of the vertex {s!r} must agree."
    )
    if is_compiled(constraint):
        interpreted = constraint.lmo(DenseVector(r)).to_dense(r.size)
        assert np.allclose(interpreted, dense, rtol=_TOL, atol=_TOL * np.abs(dense).max()), (
            f"{about} must be the same compiled and interpreted; got {dense} and {interpreted}."
        )
    return dense


def _points_between(vertices: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the vertices, their mean and random convex combinations of few and of all of them."""
    few = [rng.dirichlet(np.ones(3)) @ vertices[rng.integers(0, len(vertices), 3)] for _ in range(20)]
    all_of_them = rng.dirichlet(np.ones(len(vertices)), 10) @ vertices
    return np.vstack([vertices, few, all_of_them, vertices.mean(axis=0)])


def _check_outside(constraint: ConstraintSet, directions: np.ndarray, vertices: np.ndarray) -> float:
    """Check that points beyond the boundary are outside; return the largest violation, the unit of tolerances."""
    centre = vertices.mean(axis=0)
    spread = max(float(np.ptp(vertices, axis=0).max()), float(np.abs(vertices).max()), np.finfo(float).tiny)
    outside = []
    for r, s in zip(directions, vertices):
        if _normalised(r) @ (centre - s) > 1e-6 * spread:  # else the set is flat along r: s may be inside it
            outside.append(s + (s - centre))
    outside += [s + sign * 2.0 * spread * e for s in vertices[:3] for e in np.eye(s.size)[:5] for sign in (-1.0, 1.0)]
    violations = [constraint.violation(w) for w in outside]
    for w, violation in zip(outside, violations):
        assert violation > 0.0, f"violation of {constraint!r} must be positive at {w}, outside it; got {violation}."
        assert not constraint.contains(w, 0.0), f"contains of {constraint!r} must be False at {w}, outside it."
    return float(max(violations))


def _check_inside(constraint: ConstraintSet, points: np.ndarray, unit: float) -> None:
    for w in points:
        violation = constraint.violation(w)
        assert violation <= _TOL * unit, (
            f"violation of {constraint!r} must be at most 0 at {w}, which is a vertex that lmo returned or lies "
            f"between such vertices; got {violation}."
        )
        assert constraint.contains(w, _TOL * unit), f"contains of {constraint!r} must be True at {w}, inside it."


def _is_inside(constraint: ConstraintSet, w: np.ndarray, unit: float) -> bool:
    return bool(constraint.violation(w) <= _TOL * unit)


def _check_best(constraint: ConstraintSet, directions: np.ndarray, vertices: np.ndarray, points: np.ndarray) -> None:
    size = np.abs(points).max()
    for r, s in zip(directions, vertices):
        scaled = _normalised(r)
        values = points @ scaled
        best = int(values.argmin())
        assert scaled @ s <= values[best] + _TOL * size * max(np.abs(scaled).sum(), 1.0), (
            f"lmo of {constraint!r} at r = {r} must minimise <r, s>; it returned {s}, but {points[best]} of the set "
            "is better."
        )


def _check_score(constraint: ConstraintSet, directions: np.ndarray, vertices: np.ndarray) -> None:
    score = constraint.score()
    if score is None:
        return
    for r, s in zip(directions, vertices):
        if 1e-100 < np.abs(r).max() < 1e100:  # a tree may square the entries
            found = constraint.lmo(max_tree(r.copy(), score)).to_dense(r.size)
            assert np.isclose(r @ found, r @ s, rtol=_TOL), (
                f"lmo of {constraint!r} at r = {r} must be as good under a tree of its score; it returned {found}."
            )


def _check_diameters(constraint: ConstraintSet, vertices: np.ndarray) -> None:
    for order in (1, 2, np.inf):
        diameter = constraint.diameter(order, vertices.shape[1])
        found = max(np.linalg.norm(vertices - s, order, axis=1).max() for s in vertices)
        assert found <= diameter * (1.0 + _TOL) + _TOL * np.abs(vertices).max(), (
            f"diameter({order}) of {constraint!r} must bound the distance of all vertices; "
            f"got {diameter}, but two are {found} apart."
        )


def _check_rounding(constraint: ConstraintSet, directions: np.ndarray, vertices: np.ndarray) -> None:
    size = np.abs(vertices).max()
    for r in directions:
        rounding = constraint.oracle_rounding(r, best_vertex(constraint, r))
        about = f"oracle_rounding of {constraint!r} at r = {r}"
        assert rounding >= 0.0, f"{about} must be at least 0; got {rounding}."
        scale = np.abs(r).max() if r.any() else 1.0
        assert rounding / scale <= 1e-6 * size * r.size, (
            f"{about} must bound rounding errors of <r, s>, which are small; got {rounding}."
        )


def _check_reach(constraint: ConstraintSet, vertices: np.ndarray, rng: np.random.Generator) -> None:
    d = vertices.shape[1]
    for c in (np.ones(d), rng.uniform(0.0, 1.0, d), 10.0 ** rng.uniform(-6.0, 6.0, d), np.zeros(d)):
        reach = constraint.reach(np.asarray(c))
        found = max(float(np.max(np.abs(vertices - s) @ c)) for s in vertices)
        assert found <= reach * (1.0 + _TOL) + _TOL * np.abs(vertices).max() * np.max(c), (
            f"reach of {constraint!r} must bound sum_j c_j |w_j - v_j| for c = {c}; "
            f"got {reach}, but two vertices have {found}."
        )


def _check_decompositions(constraint: ConstraintSet, points: np.ndarray, unit: float) -> None:
    n_features = points.shape[1]
    for w in points:
        parts = constraint.decompose(w)
        about = f"decompose of {constraint!r} at {w}"
        weights = np.array([weight for weight, _ in parts])
        members = np.array([s.to_dense(n_features) for _, s in parts])
        assert (weights >= 0.0).all(), f"{about} must return weights of at least 0; got {weights.min()}."
        assert abs(weights.sum() - 1.0) <= _TOL, f"{about} must return weights that sum to 1; got {weights.sum()}."
        assert np.allclose(weights @ members, w, rtol=0.0, atol=_TOL * np.abs(members).max()), (
            f"{about} must sum to that point; got {weights @ members}."
        )
        for s in members:
            assert _is_inside(constraint, s, unit), f"{about} must use points of the set; got {s}."


def _check_projections(constraint: ConstraintSet, vertices: np.ndarray, unit: float, rng: np.random.Generator) -> None:
    size = np.abs(vertices).max()
    for scale in (0.1, 1.0, 10.0):
        w = scale * size * rng.standard_normal(vertices.shape[1])
        given = w.copy()
        try:
            x = constraint.project(w)
        except NotImplementedError:
            assert not constraint.has_projection, f"has_projection of {constraint!r} must be False without `project`."
            return
        about = f"project of {constraint!r} at {given}"
        assert (w == given).all(), f"{about} must not change its argument."
        assert _is_inside(constraint, x, unit), f"{about} must return a point of the set; got {x}."
        s = best_vertex(constraint, x - w).to_dense(w.size)
        # x is nearest if <w - x, s - x> <= 0 for all s of the set; the oracle returns the s with the largest value.
        slope = (w - x) @ (s - x)
        assert slope <= _TOL * size * (size + np.linalg.norm(w)), (
            f"{about} must return the nearest point; got {x}, but points from there towards {s} are nearer."
        )


def _normalised(r: np.ndarray) -> np.ndarray:
    largest = np.abs(r).max()
    return r / largest if largest > 0.0 else r


def _check_restrictions(constraint: ConstraintSet, directions: np.ndarray, unit: float) -> None:
    """Check the set on some features, if it is known and vertices are sparse."""
    n_features = directions.shape[1]
    if constraint.vertex is not SparseVertex or constraint.restricted(np.arange(n_features)) is None:
        return
    for direction in directions:
        r = direction / max(float(np.abs(direction).max()), 1e-300)
        s = best_vertex(constraint, r).to_dense(n_features)
        features = np.unique(constraint.best_features(r, n_features // 2, 0.0))
        about = f"best_features of {constraint!r} at {r}"
        assert np.isin(np.flatnonzero(s), features).all(), f"{about} must have all features of the best vertex."
        inside = cast("ConstraintSet", constraint.restricted(features))
        about = f"restricted of {constraint!r} to {features}"
        assert _is_inside(inside, s[features], unit), f"{about} must contain the vertex on these features, {s}."
        w = np.zeros(n_features)
        w[features] = best_vertex(inside, -r[features]).to_dense(features.size)
        assert _is_inside(constraint, w, unit), f"{about} must have only points of the set; got {w}."
