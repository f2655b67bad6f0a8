"""check_terms: checks the terms of a general problem: derivatives, means, constants, their compiled form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from condgrad.compiled import is_compiled, kernel
from condgrad.problems import terms as passes
from condgrad.problems.terms import Terms

_TOL = 1e-6  # relative tolerance of a difference quotient
_ROUNDING = 1e-9  # relative tolerance for rounding errors


def check_terms(
    terms: Any,
    *,
    n_samples: int | None = None,
    n_features: int | None = None,
    radius: float = 1.0,
    random_state: int = 0,
) -> None:
    """Check terms; raise AssertionError, with one sentence that says why, if they are wrong.

    For some samples i, at random points w, it is checked that

    * ``value``, ``gradient`` and ``hessian_product`` are finite, of the right shape, and leave w as it was;
    * ``gradient`` is the slope of ``value``, and ``hessian_product`` that of ``gradient``, by differences;
    * ``hessian_product`` is linear and symmetric, and ``add_hessian`` adds the same Hessian;
    * ``mean_value``, ``mean_gradient`` and ``mean_hessian``, if they exist, are the means over all samples;
    * with ``is_convex``, the mean has a monotone gradient and no negative curvature; ``smoothness`` is a Lipschitz
      constant of every gradient;
    * compiled code gives the same numbers.

    Parameters
    ----------
    terms : object
        As :class:`condgrad.GeneralProblem` takes it.
    n_samples, n_features : int, optional
        n and d, if ``terms`` has no attributes of these names.
    radius : float
        The points are drawn from a normal distribution and scaled to this l2 norm; give the size of the set.
    random_state : int
        The seed of samples, points and directions.

    Examples
    --------
    >>> class Distances:
    ...     centres = np.eye(3)
    ...     def value(self, i, w):
    ...         return 0.5 * np.sum((w - self.centres[i]) ** 2)
    ...     def gradient(self, i, w):
    ...         return w - self.centres[i]
    >>> check_terms(Distances(), n_samples=3, n_features=3)
    """
    given, terms = terms, passes.as_terms(terms)
    n = n_samples if n_samples is not None else given.n_samples
    d = n_features if n_features is not None else given.n_features
    rng = np.random.default_rng(random_state)
    points = [radius * u / np.linalg.norm(u) for u in rng.standard_normal((3, d))] + [np.zeros(d)]
    for i in sorted({0, n - 1, *rng.integers(0, n, 4).tolist()}):
        for w in points:
            _check_answers(terms, i, w)
            _check_gradient(terms, i, w, rng.standard_normal((3, d)), radius)
            if hasattr(terms, "hessian_product"):
                _check_hessian(terms, i, w, rng.standard_normal((3, d)), radius)
        _check_smoothness(terms, i, points)
        if is_compiled(terms):
            _check_compiled(terms, i, points[0], points[1])
    _check_means(terms, n, points[:2])
    _check_convex(terms, n, points)


def _require(condition: object, sentence: str) -> None:
    if not condition:
        raise AssertionError(sentence)


def _check_answers(terms: Terms, i: int, w: np.ndarray) -> None:
    """Check that results are finite, of the right shape, and that w is not changed."""
    before = w.copy()
    answers: dict[str, Any] = {}
    for method, args, shape in (
        ("value", (), ()),
        ("gradient", (), w.shape),
        ("hessian_product", (np.ones(w.size),), w.shape),
    ):
        if not hasattr(terms, method):
            continue
        answers[method] = answer = getattr(terms, method)(i, w, *args)
        _require(
            np.shape(answer) == shape,
            f"{method} of {terms!r} for sample {i} must return shape {shape}; got {np.shape(answer)}.",
        )
        _require(np.isfinite(answer).all(), f"{method} of {terms!r} for sample {i} is not finite at w = {w}.")
        _require((w == before).all(), f"{method} of {terms!r} for sample {i} must not change w.")
    kept = answers["gradient"].copy()
    terms.gradient(i, w + 1.0)
    _require(
        (answers["gradient"] == kept).all(),
        f"gradient of {terms!r} must return an array of its own; the next call changed the array of the last one.",
    )


def _slope(function: Callable[[float], Any], h: float) -> tuple[Any, Any]:
    """Return the slope of a function at 0 by central differences, extrapolated, and an estimate of its error."""
    wide = (function(h) - function(-h)) / (2.0 * h)
    narrow = (function(0.5 * h) - function(-0.5 * h)) / h
    return (4.0 * narrow - wide) / 3.0, np.abs(narrow - wide).max()


def _check_gradient(terms: Terms, i: int, w: np.ndarray, directions: np.ndarray, radius: float) -> None:
    for v in directions:
        found, doubt = _slope(lambda h, v=v: terms.value(i, w + h * v), 1e-4 * radius)
        got = terms.gradient(i, w) @ v
        size = abs(got) + 1e-6 * abs(terms.value(i, w)) / radius
        _require(
            abs(got - found) <= _TOL * size + 0.1 * doubt + 1e-10 * (1.0 + abs(terms.value(i, w))) / radius,
            f"gradient of {terms!r} for sample {i} is not the slope of value: along {v} at w = {w} it says {got:.9g}, "
            f"differences say {found:.9g}.",
        )


def _check_hessian(terms: Terms, i: int, w: np.ndarray, directions: np.ndarray, radius: float) -> None:
    H = np.zeros((w.size, w.size))
    terms.add_hessian(i, w, 1.0, H)
    u = directions[0]
    Hu = terms.hessian_product(i, w, u)
    for v in directions:
        found, doubt = _slope(lambda h, v=v: terms.gradient(i, w + h * v), 1e-4 * radius)
        got = terms.hessian_product(i, w, v)
        size = np.abs(got).max() + 1e-4 * np.abs(terms.gradient(i, w)).max() / radius
        _require(
            np.abs(got - found).max() <= _TOL * size + 0.1 * doubt + 1e-10,
            f"hessian_product of {terms!r} for sample {i} is not the slope of gradient: along {v} at w = {w} it says "
            f"{got}, differences say {found}.",
        )
        scale = _ROUNDING * (np.abs(got).max() + np.abs(Hu).max() + np.abs(H).max()) * np.abs(directions).sum() + 1e-14
        _require(
            np.abs(H @ v - got).max() <= scale,
            f"add_hessian and hessian_product of {terms!r} for sample {i} must agree: times {v} they give {H @ v} and "
            f"{got}.",
        )
        _require(
            np.abs(terms.hessian_product(i, w, 2.0 * u - v) - (2.0 * Hu - got)).max() <= scale,
            f"hessian_product of {terms!r} for sample {i} must be linear in v; it is not at w = {w}.",
        )
        _require(
            abs(got @ u - Hu @ v) <= scale * np.abs(directions).sum(),
            f"hessian_product of {terms!r} for sample {i} must be symmetric; it is not at w = {w}.",
        )


def _check_smoothness(terms: Terms, i: int, points: list[np.ndarray]) -> None:
    L = terms.smoothness()
    for a in points:
        for b in points:
            change, distance = np.linalg.norm(terms.gradient(i, a) - terms.gradient(i, b)), np.linalg.norm(a - b)
            _require(
                change <= L * distance * (1.0 + _ROUNDING) + 1e-14 if distance > 0.0 else True,
                f"smoothness of {terms!r} is {L:g}, but the gradient of sample {i} changes by {change:.3g} over a "
                f"distance of {distance:.3g}.",
            )


def _check_compiled(terms: Any, i: int, w: np.ndarray, v: np.ndarray) -> None:
    pairs = [("value", _value(terms, i, w), terms.value(i, w))]
    pairs.append(("gradient", _gradient(terms, i, w), terms.gradient(i, w)))
    if hasattr(terms, "hessian_product"):
        pairs.append(("hessian_product", _hessian_product(terms, i, w, v), terms.hessian_product(i, w, v)))
    for method, compiled, interpreted in pairs:
        _require(
            np.allclose(compiled, interpreted, rtol=_ROUNDING, atol=1e-14),
            f"{method} of {terms!r} for sample {i} must be the same compiled and interpreted; got {compiled} and "
            f"{interpreted}.",
        )


def _check_means(terms: Terms, n: int, points: list[np.ndarray]) -> None:
    each = {
        "mean_value": lambda w: sum(terms.value(i, w) for i in range(n)) / n,
        "mean_gradient": lambda w: sum(terms.gradient(i, w) for i in range(n)) / n,
        "mean_hessian": lambda w: _hessian_sum(terms, n, w) / n,
    }
    for method, mean in each.items():
        if not hasattr(terms, method):
            continue
        for w in points:
            got, true = np.asarray(getattr(terms, method)(w)), np.asarray(mean(w))
            _require(
                got.shape == true.shape and np.allclose(got, true, rtol=1e-7, atol=_ROUNDING * np.abs(true).max()),
                f"{method} of {terms!r} must be the mean over all {n} samples, at w = {w} {true}; got {got}.",
            )


def _hessian_sum(terms: Terms, n: int, w: np.ndarray) -> np.ndarray:
    H = np.zeros((w.size, w.size))
    for i in range(n):
        terms.add_hessian(i, w, 1.0, H)
    return H


def _check_convex(terms: Terms, n: int, points: list[np.ndarray]) -> None:
    if not terms.is_convex:
        return
    if hasattr(terms, "hessian_product"):
        for w in points:
            least, largest = np.linalg.eigvalsh(passes.mean_hessian(terms, n, w))[[0, -1]]
            _require(
                least >= -_ROUNDING * abs(largest),
                f"{terms!r} says is_convex, but the mean Hessian at w = {w} has the eigenvalue {least:.3g}.",
            )
    gradients = [passes.mean_gradient(terms, n, w) for w in points]
    for a, r in zip(points, gradients, strict=True):
        for b, other in zip(points, gradients, strict=True):
            rise = (r - other) @ (a - b)
            _require(
                rise >= -_ROUNDING * (np.abs(r) + np.abs(other)) @ np.abs(a - b),
                f"{terms!r} says is_convex, but from {b} to {a} the slope of the mean falls by {-rise:.3g}.",
            )


@kernel
def _value(terms, i, w):
    return terms.value(i, w)


@kernel
def _gradient(terms, i, w):
    return terms.gradient(i, w)


@kernel
def _hessian_product(terms, i, w, v):
    return terms.hessian_product(i, w, v)
