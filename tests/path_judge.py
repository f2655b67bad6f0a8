"""Paths judged in extended precision: what is false about their points, found without any code of the engines."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from certificates import LONG, Truth

import condgrad as cg


class Asked(NamedTuple):
    """A path as it was asked for; ``weights`` scale the norm, which is that of standardised features if wanted."""

    X: np.ndarray  # as it is stored, dense
    y: np.ndarray
    weight: np.ndarray
    loss: Any = None
    has_intercept: bool = False
    standardize: bool = False
    l2: float = 0.0
    weights: np.ndarray | None = None
    is_symmetric: bool = True
    is_penalised: bool = False
    tol: float = 1e-6


def judged(asked: Asked, radii: np.ndarray, coefs: Any, info: Any) -> list[str]:
    """Return what is false about a path, in sentences."""
    X, found = asked.X.astype(LONG), []
    truth = Truth(X, asked.y, asked.weight, asked.loss or cg.losses.Squared(), asked.has_intercept)
    prices = np.ones(X.shape[1], LONG) if asked.weights is None else asked.weights.astype(LONG)
    if asked.standardize:
        prices = prices * np.sqrt(truth.weight @ (truth.X * truth.X))
    of_l2 = asked.l2 * (prices**2 if asked.standardize else np.ones_like(prices))
    W = coefs.toarray().T.astype(LONG)
    values = np.array([truth.objective(w) + (of_l2 @ (w * w)) / 2 for w in W])
    norms = np.abs(W) @ prices
    for k, w in enumerate(W):
        r = truth.gradient(w) + of_l2 * w
        promised = LONG(info.gap[k]) + LONG(info.rounding[k])
        radius, alpha = LONG(info.radius[k]), LONG(info.alpha[k])
        pull = np.divide(-r, prices, out=np.zeros_like(r), where=prices > 0)
        largest = np.max(np.abs(pull) if asked.is_symmetric else np.maximum(pull, 0.0), initial=LONG(0))
        slack = LONG(1e-17) * (np.abs(r * w).sum() + abs(values[k])) + LONG(1e-300)
        who = f"point {k}: "
        if not (np.isfinite(float(promised)) and info.gap[k] >= 0.0 and info.rounding[k] >= 0.0):
            found.append(f"{who}gap {info.gap[k]} and rounding {info.rounding[k]} are no bounds")
            continue
        if not asked.is_symmetric and w.min(initial=LONG(0)) < 0.0:
            found.append(f"{who}a coefficient is {float(w.min())}")
        if asked.is_penalised:
            totals = values + alpha * norms
            if totals[k] - totals.min() > promised + slack:
                found.append(
                    f"{who}another is better by {float(totals[k] - totals.min()):.3g}, promised {promised:.3g}"
                )
            better = _descended(truth, of_l2, prices, asked.is_symmetric, w, alpha)
            there = truth.objective(better) + (of_l2 @ (better * better)) / 2 + alpha * (prices @ np.abs(better))
            if totals[k] - there > promised + slack:
                found.append(f"{who}F is {float(totals[k] - there):.3g} above another value, promised {promised:.3g}")
        else:
            if norms[k] > radius * (1 + LONG(1e-12)):  # what engines allow, and standard deviations are rounded
                found.append(f"{who}the norm is {norms[k]:.17g}, outside the radius {radius:.17g}")
            gap = radius * largest + r @ w
            if min(gap, values[k]) > promised + slack:  # F is not negative, which bounds it, too
                found.append(f"{who}the gap is {gap:.6g}, promised {promised:.6g}")
        if info.status is cg.Status.CONVERGED and promised > asked.tol * _scale(truth) * (1 + 1e-9):
            found.append(f"{who}CONVERGED with {promised:.3g}, tol {asked.tol:g} of {_scale(truth):.3g}")
    return found


def _scale(truth: Truth) -> Any:
    return truth.objective(np.zeros(truth.X.shape[1]))


def _descended(
    truth: Truth, of_l2: np.ndarray, prices: np.ndarray, is_symmetric: bool, w: np.ndarray, alpha: Any
) -> np.ndarray:
    """Return a point with a smaller penalised squared loss than w, if three sweeps of coordinate descent find one."""
    w, v, X = w.copy(), truth.weight, truth.X
    R = truth.y - (v @ truth.y if truth.has_intercept else LONG(0)) - X @ w
    for _ in range(3):
        for j in range(w.size):
            bend = v @ (X[:, j] * X[:, j]) + of_l2[j]
            if not bend > 0:
                continue
            pull = v @ (X[:, j] * R) + (bend - of_l2[j]) * w[j]
            new = np.sign(pull) * max(abs(pull) - alpha * prices[j], LONG(0)) / bend
            new = new if is_symmetric else max(new, LONG(0))
            R -= X[:, j] * (new - w[j])
            w[j] = new
    return w


def draw_tall(rng: np.random.Generator) -> tuple[Any, dict[str, Any], Asked]:
    """Return more samples than features, most of them badly scaled, settings of a path, and what they ask for."""
    d = int(rng.integers(1, 12))
    n = int(rng.integers(d + 1, 40 * d))
    X = rng.standard_normal((n, d)) @ (np.eye(d) + rng.uniform(0, 2) * rng.standard_normal((d, d)))
    if rng.random() < 0.4:
        X[rng.random((n, d)) < rng.uniform(0.3, 0.95)] = 0.0
    if rng.random() < 0.3 and d > 1:
        X[:, -1] = X[:, 0] + 10.0 ** rng.uniform(-14, -2) * rng.standard_normal(n)
    if rng.random() < 0.2:
        X[:, 0] = rng.choice([0.0, 3.0])
    if rng.random() < 0.4:
        X *= 10.0 ** rng.uniform(-6, 6, d)
    if rng.random() < 0.4:
        X += np.abs(X).max(axis=0) * 10.0 ** rng.uniform(0, 7, d)
    if rng.random() < 0.2:
        X = X.astype(np.float32)
    y = X @ rng.standard_normal(d) + rng.uniform(0, 2) * rng.standard_normal(n) * np.abs(X).max()
    weight = 10.0 ** rng.uniform(-4, 4, n) if rng.random() < 0.3 else np.ones(n)
    weights = 10.0 ** rng.uniform(-2, 2, d) if rng.random() < 0.3 else None
    has_intercept, is_symmetric = bool(rng.random() < 0.5), bool(rng.random() < 0.8)
    standardize = bool(rng.random() < 0.3) and is_symmetric
    l2 = float(10.0 ** rng.uniform(-3, 0) * (X.astype(np.float64) ** 2).mean()) if rng.random() < 0.3 else 0.0
    if standardize or weights is not None:
        l2 = 0.0
    tol = float(10.0 ** rng.uniform(-9, -2))
    settings: dict[str, Any] = {
        "sample_weight": weight, "fit_intercept": has_intercept, "standardize": standardize, "l2": l2, "tol": tol,
        "feature_weight": weights, "positive": not is_symmetric,
    }  # fmt: skip
    asked = Asked(
        np.asarray(X, np.float64), y, weight, None, has_intercept, standardize, l2, weights, is_symmetric, False, tol
    )
    if rng.random() < 0.5 and (is_symmetric or l2 == 0.0):
        centred = asked.X - (weight @ asked.X / weight.sum() if has_intercept else 0.0)
        slopes = (weight * (y - (weight @ y / weight.sum() if has_intercept else 0.0))) @ centred / weight.sum()
        if (largest := float(np.abs(slopes).max())) > 0.0 and not standardize:
            settings["alphas"] = largest * np.logspace(0.1, -3, int(rng.integers(1, 12)))
            asked = asked._replace(is_penalised=True)
    if not asked.is_penalised:
        settings |= {"n_radii": int(rng.integers(1, 15)), "eps": float(10.0 ** rng.uniform(-4, -1))}
    kinds = (np.ascontiguousarray, np.asfortranarray, scipy.sparse.csr_array, scipy.sparse.csc_array)
    return kinds[int(rng.integers(4))](X), settings, asked


def judge_tall(seed: int) -> tuple[Any, list[str]]:
    """Return the status of the path that a seed draws, and what is false about it."""
    X, settings, asked = draw_tall(np.random.default_rng(seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cg.ScaleWarning)
        radii, coefs, info = cg.lasso_path(X, asked.y, **settings)
    return info.status, judged(asked, radii, coefs, info)
