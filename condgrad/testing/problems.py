"""check_problem: checks that a problem fulfils the contract that solvers rely on."""

from __future__ import annotations

import copy
from typing import cast

import numpy as np

from condgrad import solvers
from condgrad.problems.base import BaseProblem, Feature
from condgrad.problems.segment import towards
from condgrad.run.minimize import minimize
from condgrad.solvers.base import missing

_CLOSE = 1e-5  # relative accuracy of difference quotients of objectives and gradients
_SAME = 1e-9  # relative difference of one number computed in two ways
_N_POINTS = 3


def check_problem(problem: BaseProblem, *, random_state: int = 0) -> None:
    """Check a problem; raise AssertionError, in a sentence, if it breaks the contract of :class:`BaseProblem`.

    At random points of the set it is checked that

    * two calls of ``look`` at one point return the same, and leave the point as it was;
    * the gradient is that of the objective, and the gap that of the gradient, never negative;
    * for a convex F, no point of the set has an objective below the lower bound;
    * the curvature on vertices, if offered, is that of the gradient, and known entries are left unchanged;
    * after a move along a line, the objective and gap of a point are those of ``look``;
    * ``part`` of few samples is a smaller problem over the same set, and of all samples the problem itself;
    * ``fingerprint`` is the same for a copy;
    * every solver whose requirements are met makes feasible steps and ends with an exact certificate, and every other
      solver is rejected.

    Parameters
    ----------
    problem : a problem whose iterates are arrays
    random_state : int

    Examples
    --------
    >>> import condgrad as cg
    >>> check_problem(cg.Problem([[1.0, 2.0], [0.5, 1.0]], [1.0, 0.0], cg.losses.Squared(), cg.constraints.L1Ball(1.0)))
    """
    _require(isinstance(problem, BaseProblem), f"a problem must be a BaseProblem; got {type(problem).__name__}.")
    _require(
        {Feature.LOOK, Feature.VERTICES} <= problem.offers,
        f"check_problem is for problems that offer LOOK and VERTICES; {type(problem).__name__} offers "
        f"{sorted(feature.name for feature in problem.offers)}.",
    )
    rng = np.random.default_rng(random_state)
    points = [_random_point(problem, rng) for _ in range(_N_POINTS)]
    for w in points:
        _check_look(problem, w, points)
        if Feature.CURVATURE in problem.offers:
            _check_curvature(problem, w, rng)
        if Feature.POINT in problem.offers:
            _check_point(problem, w)
    _check_part(problem, points[0])
    _require(
        problem.fingerprint() == copy.deepcopy(problem).fingerprint(),
        "fingerprint() differs for a copy of the problem.",
    )
    for name, solver in solvers.REGISTERED.items():
        if missing(solver, problem):
            _check_refusal(problem, name)
        else:
            _check_run(problem, name, random_state)


def _random_point(problem: BaseProblem, rng: np.random.Generator) -> np.ndarray:
    """Return a point inside the set: a mean of vertices."""
    d = problem.n_features
    vertices = [problem.lmo(rng.standard_normal(d)).to_dense(d) for _ in range(4)]
    return np.asarray(rng.dirichlet(np.ones(4)) @ np.array(vertices))


def _check_look(problem: BaseProblem, w: np.ndarray, points: list[np.ndarray]) -> None:
    given = w.copy()
    look, again = problem.look(w), problem.look(w)
    _require(np.array_equal(w, given), "look(w) has changed w.")
    _require(
        look.objective == again.objective and np.array_equal(look.gradient, again.gradient),
        "two calls of look(w) at one point return different numbers.",
    )
    found, r = look.evaluation, look.gradient
    _require(r.shape == w.shape, f"the gradient must have the shape {w.shape}; got {r.shape}.")
    _require(found.is_certified, "a look must bound its rounding: its evaluation has rounding=inf.")
    _close(problem.objective(w), look.objective, "objective(w) and the objective of look(w) differ")
    gap = float(r @ w) - float(r @ problem.lmo(r).to_dense(w.size))
    scale = 1e-12 * (float(np.abs(r) @ np.abs(w)) + abs(look.objective))
    _require(look.gap >= 0.0, f"a gap is never negative; got {look.gap!r}.")
    _require(
        abs(look.gap - gap) <= found.rounding + _SAME * abs(gap) + scale,
        f"the gap should be <gradient, w - s> = {gap!r}; got {look.gap!r}.",
    )
    for other in points:
        direction, h = other - w, 1e-4
        slope = (problem.objective(w + h * direction) - problem.objective(w - h * direction)) / (2.0 * h)
        size = float(np.abs(r) @ np.abs(direction)) + abs(look.objective)
        _require(
            abs(slope - float(r @ direction)) <= _CLOSE * size,
            f"the gradient is not that of the objective: a difference gives the slope {slope!r}, the gradient "
            f"{float(r @ direction)!r}.",
        )
        _require(
            not problem.is_convex or found.lower_bound <= problem.objective(other),
            f"with is_convex, {found.lower_bound!r} must bound F from below, but a point of the set has "
            f"{problem.objective(other)!r}.",
        )


def _check_curvature(problem: BaseProblem, w: np.ndarray, rng: np.random.Generator) -> None:
    d, h = w.size, 1e-5
    vertices = list({v.key(): v for v in (problem.lmo(rng.standard_normal(d)) for _ in range(3))}.values())
    H = problem.look(w).curvature(vertices)
    _require(H.shape == (len(vertices), len(vertices)), f"a curvature on {len(vertices)} vertices has shape {H.shape}.")
    dense = np.array([v.to_dense(d) for v in vertices])
    step = h * max(1.0, float(np.abs(w).max())) / max(float(np.abs(dense).max()), 1e-300)
    bends = np.array([problem.gradient(w + step * v) - problem.gradient(w - step * v) for v in dense]) @ dense.T
    expected = bends / (2.0 * step)
    size = float(np.abs(expected).max()) + float(np.abs(H).max())
    if problem.is_convex:
        _require(
            np.abs(H - expected).max(initial=0.0) <= 1e-3 * size,
            "the curvature on vertices is not that of the gradient: it differs by "
            f"{np.abs(H - expected).max():g} of {size:g}.",
        )
        _require(np.linalg.eigvalsh(H).min() >= -1e-9 * size, "the curvature of a convex F must not be negative.")
    known = H[:1, :1] + 1.0
    _require(
        problem.look(w).curvature(vertices, known)[0, 0] == known[0, 0],
        "curvature(atoms, known) must leave known entries unchanged.",
    )


def _check_point(problem: BaseProblem, w: np.ndarray) -> None:
    point = problem.point(w)
    line = towards(point, point.s, point.gap)
    point.move(line, 0.25 * line.max_step)
    found, look = point.evaluate(), problem.look(point.w)
    size = abs(look.objective) + float(np.abs(look.gradient) @ np.abs(cast("np.ndarray", point.w)))
    for name, value, true in (("objective", found.objective, look.objective), ("gap", found.gap, look.gap)):
        _require(
            abs(value - true) <= 1e-8 * size,
            f"after a move the {name} of the point should be {true!r}, as look(w) returns; got {value!r}.",
        )


def _check_part(problem: BaseProblem, w: np.ndarray) -> None:
    n = problem.n_samples
    _require(problem.part(n) is problem, "part(n_samples) must be the problem itself.")
    part = problem.part(max(1, n // 3)) if n >= 6 else None
    if part is None:
        return
    _require(
        part.n_samples < n and part.n_features == problem.n_features,
        f"a part of {n // 3} of {n} samples should be smaller; it has {part.n_samples} samples and "
        f"{part.n_features} features.",
    )
    look = part.look(w)
    _require(
        np.isfinite(look.objective) and look.gradient.shape == w.shape,
        "look(w) of a part must have a finite objective and a gradient of the shape of w.",
    )
    _require(
        repr(part.constraint) == repr(problem.constraint),
        f"a part must be over the same set, {problem.constraint!r}; got {part.constraint!r}.",
    )


def _check_run(problem: BaseProblem, name: str, random_state: int) -> None:
    try:
        result = minimize(problem, name, tol=0.0, max_steps=5, random_state=random_state)
    except Exception as error:
        # A solver may refuse, in a sentence, what no Feature expresses, such as vertices of more than one feature.
        is_sentence = isinstance(error, TypeError | ValueError) and str(error).endswith(".")
        _require(is_sentence, f"{name} fails on this problem, which offers what it requires: {error!r}.")
        return
    violation = problem.constraint.violation(result.w)
    _require(violation <= 1e-9 * (1.0 + np.abs(result.w).sum()), f"{name} leaves the set by {violation:g}.")
    look = problem.look(result.w)
    _close(result.objective, look.objective, f"the objective that {name} returns is not that of its w")
    _close(result.gap, look.gap, f"the gap that {name} returns is not that of its w", look.evaluation.rounding)


def _check_refusal(problem: BaseProblem, name: str) -> None:
    try:
        minimize(problem, name, max_steps=0)
    except TypeError as error:
        _require("requires" in str(error) and "use one of" in str(error), f"{name} is refused by {error!r}.")
    else:
        raise AssertionError(f"{name} requires what this {type(problem).__name__} does not offer, and was not refused.")


def _close(a: float, b: float, sentence: str, slack: float = 0.0) -> None:
    _require(abs(a - b) <= slack + _SAME * (abs(a) + abs(b)), f"{sentence}: {a!r} and {b!r}.")


def _require(condition: object, sentence: str) -> None:
    if not condition:
        raise AssertionError(sentence)
