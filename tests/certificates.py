"""Certificates judged in extended precision: random problems, badly scaled on purpose, and what is true about them.

``np.longdouble`` has eleven more bits than a float on x86; where it has none there is nothing to judge by.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

import condgrad as cg

LONG = np.longdouble
HAS_LONG = np.finfo(LONG).eps < 1e-18
REGRESSION = (cg.losses.Squared(), cg.losses.Huber(0.7), cg.losses.PseudoHuber(0.5), cg.losses.Pinball(0.3, 0.5))
CLASSIFICATION = (cg.losses.Logistic(), cg.losses.SquaredHinge(), cg.losses.SmoothedHinge())
SOLVERS = ("auto", "fw", "away", "pairwise", "bpcg", "sfw")


class Drawn(NamedTuple):
    """A problem with the data it was made from."""

    problem: Any
    X: np.ndarray  # dense, in extended precision
    y: np.ndarray
    weight: np.ndarray
    solver: str
    tol: float
    description: str
    offset: np.ndarray | float = 0.0


def measured(problem: Any) -> Any:
    """Return the problem, which measures its columns from now on even where rounding is far below the gap."""
    problem._certificates._bounded = None
    return problem


class Truth:
    """F, its gradient and its gap for a drawn problem, in extended precision."""

    def __init__(
        self,
        X: np.ndarray,
        y: np.ndarray,
        weight: np.ndarray,
        loss: Any,
        has_intercept: bool,
        l2: float = 0.0,
        offset: np.ndarray | float = 0.0,
    ) -> None:
        self.l2 = LONG(l2)
        self.offset = np.asarray(offset, dtype=LONG)
        self.X, self.y, self.loss, self.has_intercept = X, y.astype(LONG), loss, has_intercept
        self.weight = weight.astype(LONG) / weight.astype(LONG).sum()
        self.centre = self.weight @ X if has_intercept else np.zeros(X.shape[1], dtype=LONG)
        self.X = X - self.centre

    def predictions(self, w: np.ndarray) -> np.ndarray:
        """Return the predictions with the best intercept."""
        p = self.X @ w.astype(LONG) + self.offset
        return p + self._intercept(p) if self.has_intercept else p

    def objective(self, w: np.ndarray) -> Any:
        """Return F(w)."""
        w = w.astype(LONG)
        return self.weight @ self.loss.value(self.predictions(w), self.y) + self.l2 * (w @ w) / 2

    def gradient(self, w: np.ndarray) -> np.ndarray:
        """Return the gradient of F at w."""
        return (self.weight * self.loss.derivative(self.predictions(w), self.y)) @ self.X + self.l2 * w.astype(LONG)

    def _intercept(self, p: np.ndarray) -> Any:
        slope = lambda b: self.weight @ self.loss.derivative(p + b, self.y)  # noqa: E731
        low, high, step = LONG(0), LONG(0), LONG(1)
        while slope(low) > 0:
            low, step = low - step, 4 * step
        step = LONG(1)
        while slope(high) < 0:
            high, step = high + step, 4 * step
        for _ in range(200):
            middle = (low + high) / 2
            if middle in (low, high):
                break
            if slope(middle) < 0:
                low = middle
            else:
                high = middle
        return (low + high) / 2


def best_vertex(constraint: Any, r: np.ndarray) -> np.ndarray:
    """Return the best vertex of one of the sets below, in extended precision."""
    s = np.zeros(r.size, dtype=LONG)
    if isinstance(constraint, cg.constraints.L1Ball):
        j = int(np.abs(r).argmax())
        s[j] = -np.sign(r[j]) * LONG(constraint.radius)
    elif isinstance(constraint, cg.constraints.Simplex):
        s[int(r.argmin())] = LONG(constraint.radius)
    elif isinstance(constraint, cg.constraints.LinfBall):
        s[:] = -np.sign(r) * LONG(constraint.radius)
    elif isinstance(constraint, cg.constraints.L2Ball):
        norm = np.sqrt((r * r).sum())
        s[:] = -LONG(constraint.radius) * r / norm if norm > 0 else 0
    else:
        raise TypeError(constraint)
    return s


def improved(truth: Truth, constraint: Any, w: np.ndarray, steps: int = 60) -> np.ndarray:
    """Return a point of the set with F at most that at w, by Frank-Wolfe and pairwise steps in extended precision."""
    w = w.astype(LONG)
    value = truth.objective(w)
    for _ in range(steps):
        r = truth.gradient(w)
        s = best_vertex(constraint, r)
        directions = [s - w]
        if isinstance(constraint, (cg.constraints.L1Ball, cg.constraints.Simplex)):
            used = np.flatnonzero(w)
            if used.size:
                k = int(used[np.argmax(r[used] * np.sign(w[used]))])
                away = np.zeros(w.size, dtype=LONG)
                away[k] = np.sign(w[k]) * np.abs(s).sum()
                directions.append((s - away) * (np.abs(w[k]) / np.abs(s).sum()))
        best, best_value = None, value
        for d in directions:
            gamma = LONG(1)
            for _ in range(30):
                trial = truth.objective(w + gamma * d)
                if trial < best_value:
                    best, best_value = w + gamma * d, trial
                gamma /= 2
        if best is None:
            break
        w, value = best, best_value
    return w


def check(drawn: Drawn, result: Any) -> list[str]:
    """Return what is false about a result, in sentences."""
    problem, of_samples = drawn.problem, (drawn.X, drawn.y, drawn.weight)
    truth = Truth(*of_samples, problem.loss, problem.has_intercept, problem.l2, drawn.offset)
    found = []
    w = result.w.astype(LONG)
    here = truth.objective(w)
    r = truth.gradient(w)
    gap = r @ w - r @ best_vertex(problem.constraint, r)
    better = improved(truth, problem.constraint, w)
    there = truth.objective(better)
    promised = result.gap + result.rounding
    slack = LONG(1e-17) * (abs(here) + abs(there))  # of the extended precision itself
    if result.gap < 0.0 or result.rounding < 0.0 or not np.isfinite(promised):
        found.append(f"gap {result.gap} and rounding {result.rounding} are no bounds")
    if here - there > promised + slack:
        found.append(f"F(w) - F(w') is {here - there:.6g}, promised was {promised:.6g}")
    if gap > promised * (1 + 1e-9) + LONG(1e-18) * np.abs(r * w).sum():
        found.append(f"the gap is {gap:.6g}, promised was {promised:.6g} ({result.gap:.6g} + {result.rounding:.6g})")
    if result.lower_bound > there + slack:
        found.append(f"the lower bound {result.lower_bound:.17g} is above F(w') = {there:.17g}")
    if result.status is cg.Status.CONVERGED and promised > drawn.tol:
        found.append(f"CONVERGED with gap + rounding = {promised:.6g} and tol = {drawn.tol:.6g}")
    return found


def draw(rng: np.random.Generator) -> Drawn:
    """Return a random problem; most of them are badly scaled in one way or another."""
    n, d = int(rng.integers(1, 60)), int(rng.integers(1, 8))
    X, words = rng.standard_normal((n, d)), []
    if rng.random() < 0.3:
        X[rng.random((n, d)) < 0.6] = 0.0
        words.append("zeros")
    if rng.random() < 0.3 and d > 1:
        X[:, -1] = X[:, 0] + 10.0 ** rng.uniform(-14, -4) * rng.standard_normal(n)
        words.append("collinear")
    if rng.random() < 0.5:
        X *= 10.0 ** rng.uniform(-12, 12, d) if rng.random() < 0.5 else 10.0 ** rng.uniform(-3, 3, d)
        words.append("scales")
    if rng.random() < 0.5:
        X += np.abs(X).max(axis=0) * 10.0 ** rng.uniform(0, 9, d)
        words.append("means")
    if rng.random() < 0.2:
        X = X.astype(np.float32)
        words.append("float32")
    has_intercept = bool(rng.random() < 0.5)
    loss = (REGRESSION + CLASSIFICATION)[int(rng.integers(len(REGRESSION + CLASSIFICATION)))]
    if loss in CLASSIFICATION:
        y = rng.choice([-1.0, 1.0], n)
        y[0], y[-1] = -1.0, 1.0
        has_intercept = has_intercept and n > 1
    else:
        y = rng.standard_normal(n) * 10.0 ** rng.uniform(-6, 6)
    weight = np.ones(n)
    if rng.random() < 0.3:
        weight = 10.0 ** rng.uniform(-12, 12, n)
        words.append("weights")
    size = np.abs(X.astype(np.float64) - (X.mean(axis=0) if has_intercept else 0.0)).max()
    radius = float(10.0 ** rng.uniform(-2, 2) * max(np.abs(y).max(), 1e-6) / max(size, 1e-30))
    sets = (cg.constraints.L1Ball, cg.constraints.Simplex, cg.constraints.LinfBall, cg.constraints.L2Ball)
    constraint = sets[int(rng.integers(len(sets)))](radius)
    data: Any = X
    form = ("C", "F", "csr", "csc")[int(rng.integers(4))]
    if form in ("C", "F"):
        data = np.asarray(X, order=form)
    else:
        data = scipy.sparse.csr_matrix(X) if form == "csr" else scipy.sparse.csc_matrix(X)
    solver = SOLVERS[int(rng.integers(len(SOLVERS)))]
    scale = float(np.mean(np.abs(loss.value(np.zeros(n), y))))
    tol = scale * 10.0 ** rng.uniform(-13, -3)
    l2 = 0.0
    if rng.random() < 0.2 and solver != "sfw":
        l2 = float(10.0 ** rng.uniform(-6, 6) * scale / radius**2)
        words.append(f"l2={l2:.3g}")
    offset = np.zeros(n)
    if rng.random() < 0.3:
        offset = 10.0 ** rng.uniform(-3, 6) * max(np.abs(y).max(), 1e-6) * rng.standard_normal(n)
        words.append("offset")
    problem = cg.Problem(data, y, loss, constraint, sample_weight=weight, offset=offset, intercept=has_intercept, l2=l2)
    words += [form, f"n={n}", f"d={d}", repr(loss), repr(constraint), solver, f"intercept={has_intercept}"]
    return Drawn(problem, X.astype(LONG), y, weight, solver, tol, ", ".join(words), offset)


def judge(seed: int) -> tuple[Drawn, Any, list[str]]:
    """Solve the problem of a seed and return it with its result and what is false about it."""
    drawn = draw(np.random.default_rng(seed))
    result = cg.minimize(drawn.problem, drawn.solver, tol=drawn.tol, max_epochs=60, random_state=seed)
    return drawn, result, check(drawn, result)
