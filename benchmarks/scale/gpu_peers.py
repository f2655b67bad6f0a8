"""Other solvers of the l1 ball of logistic regression, for gpu.py: scikit-learn, PyTorch and cuML."""

from __future__ import annotations

import time
import warnings
from typing import Any, NamedTuple

import numpy as np

import condgrad as cg


class Solved(NamedTuple):
    """A problem on the device, its solution, and the time that it took."""

    X: Any
    y: Any
    problem: cg.Problem
    result: cg.Result
    seconds: float

    @property
    def alpha(self):
        """The penalty that has the same solution as the ball."""
        return float(np.abs(self.result.gradient).max())

    def penalised_line(self, name, seconds, w):
        """Return a line about a peer that minimises F + alpha ||w||_1."""
        best = self.result.objective + self.alpha * np.abs(self.result.w).sum()
        excess = self.problem.objective(w) + self.alpha * np.abs(w).sum() - best
        times = seconds / self.seconds
        return name, seconds, f"{times:.0f} times as long, F + penalty {excess:.1e} above"


def scikit_learn(solved):
    """Yield lines about scikit-learn's saga on the processor."""
    from sklearn.linear_model import LogisticRegression

    data = solved.X.get(), solved.y.get()
    for max_iter in (5, 20):
        C = 1.0 / (data[1].size * solved.alpha)
        model = LogisticRegression(l1_ratio=1.0, C=C, solver="saga", fit_intercept=False, max_iter=max_iter, tol=0.0)
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(*data)
        seconds = time.perf_counter() - began
        w = model.coef_.ravel().astype(float)
        yield solved.penalised_line(f"scikit-learn's saga, {max_iter} epochs", seconds, w)


def fista(solved):
    """Yield a line about accelerated projected gradients over the same ball, written with PyTorch's functions."""
    try:
        import torch
    except ImportError:
        yield "PyTorch", None, "is not installed"
        return
    X, y = torch.from_dlpack(solved.X), torch.from_dlpack(solved.y).to(torch.float32)
    target = solved.result.objective + solved.result.gap
    n, d = X.shape
    v = torch.ones(d, device=X.device)
    for _ in range(50):  # the power method, for the step size
        v = X.T @ (X @ v) / n
        L = float(v.norm())
        v = v / L
    seconds, w, z, t = 0.0, torch.zeros(d, device=X.device), torch.zeros(d, device=X.device), 1.0
    n_steps = 0
    while n_steps < 2000:
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(10):
            r = X.T @ (-y * torch.sigmoid(-y * (X @ z))) / n
            after = projected(torch, z - 4.0 / L * r, 15.0)
            t, last = (1.0 + (1.0 + 4.0 * t * t) ** 0.5) / 2.0, t
            w, z = after, after + (last - 1.0) / t * (after - w)
        torch.cuda.synchronize()
        seconds += time.perf_counter() - began
        n_steps += 10
        F = solved.problem.objective(w.double().cpu().numpy())
        if target >= F:
            break
    yield (
        "FISTA with PyTorch over the same ball, float32",
        seconds,
        f"{seconds / solved.seconds:.1f} times as long, {n_steps} steps,"
        f" F {F - solved.result.objective:.1e} above, no certificate",
    )


def lbfgs(solved):
    """Yield a line about PyTorch's L-BFGS on w = u v, with the penalty alpha (|u|^2 + |v|^2) / 2.

    The least such penalty of a given w is alpha ||w||_1, so the minimisers are the same and the objective is smooth.
    """
    try:
        import torch
    except ImportError:
        return
    X, y = torch.from_dlpack(solved.X), torch.from_dlpack(solved.y).to(torch.float32)
    d = X.shape[1]
    u, v = (torch.full((d,), value, device=X.device, requires_grad=True) for value in (0.1, 0.0))
    settings = {"max_iter": 20, "history_size": 20, "line_search_fn": "strong_wolfe", "tolerance_grad": 0.0}
    solver = torch.optim.LBFGS([u, v], tolerance_change=0.0, **settings)

    def closure():
        solver.zero_grad()
        F = torch.nn.functional.softplus(-y * (X @ (u * v))).mean() + solved.alpha / 2.0 * (u @ u + v @ v)
        F.backward()
        return F

    began, last, value = time.perf_counter(), np.inf, float(closure())
    n_steps = 0
    while n_steps < 2000 and value < (1.0 - 1e-6) * last:  # float32 does not see smaller changes
        solver.step(closure)
        n_steps, last, value = n_steps + 20, value, float(closure())
    w = (u * v).detach().double().cpu().numpy()
    yield solved.penalised_line(f"PyTorch's L-BFGS, {n_steps} steps in float32", time.perf_counter() - began, w)


def projected(torch, w, radius):
    """Return the closest point of the l1 ball."""
    size = w.abs()
    if float(size.sum()) <= radius:
        return w
    ordered = size.sort(descending=True).values
    excess = (ordered.cumsum(0) - radius) / torch.arange(1, w.numel() + 1, device=w.device)
    level = excess[int((ordered > excess).sum()) - 1]
    return w.sign() * (size - level).clamp(min=0.0)


def cuml_qn(solved):
    """Yield a line about cuML's logistic regression."""
    try:
        from cuml.linear_model import LogisticRegression
    except ImportError:
        yield "cuML", None, "is not installed"
        return
    settings = {"penalty": "l1", "fit_intercept": False, "tol": 1e-6, "max_iter": 1000}
    model = LogisticRegression(C=1.0 / (solved.y.size * solved.alpha), **settings)
    model.fit(solved.X[:1000], solved.y[:1000])
    began = time.perf_counter()
    model.fit(solved.X, solved.y)
    seconds = time.perf_counter() - began
    coef = model.coef_.get() if type(model.coef_).__module__.startswith("cupy") else np.asarray(model.coef_)
    yield solved.penalised_line("cuML's qn", seconds, coef.ravel().astype(float))
