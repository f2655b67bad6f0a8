"""The regularisation paths of Frandi et al. (2016), section 5: 100 parameters on a logarithmic grid, warm starts."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from baselines import AcceleratedGradient, CoordinateDescent, Solution
from data import Regression

import condgrad as cg
from condgrad.solvers import Randomized

EPS = 1e-3  # on the largest change of a coefficient, for all methods
TINY = 1e-12  # coefficients below this share of the largest count as zero


class Grids(NamedTuple):
    """The penalties and the radii, from the sparsest problem on."""

    penalties: np.ndarray
    radii: np.ndarray


class Path(NamedTuple):
    """The models of a path, the columns of a sparse matrix, and what they took.

    ``seconds`` is the time of the methods themselves. For randomized Frank-Wolfe ``wall`` has besides the passes over
    the data that each call of ``minimize`` makes to start and to certify its answer.
    """

    models: scipy.sparse.csc_matrix
    seconds: float
    wall: float
    iterations: int
    products: int

    @property
    def active(self) -> float:
        """The average number of features."""
        return self.models.nnz / self.models.shape[1]


def grids(data: Regression, count: int, tol: float = 1e-10) -> tuple[Grids, scipy.sparse.csc_matrix]:
    """Return both grids, and the precise models of the penalties that the radii come from."""
    n = data.y.size
    largest = float(np.abs(data.X.T @ data.y).max())
    penalties = np.geomspace(largest, largest / 100.0, count)
    _, models, info = cg.lasso_path(data.X, data.y, alphas=penalties / n, tol=tol)
    radius = float(info.radius[-1])
    return Grids(penalties, np.geomspace(radius / 100.0, radius, count)), models


class Models:
    """Models one after the other, of which the nonzeros are kept: a hundred with all their zeros would be gigabytes."""

    def __init__(self) -> None:
        self.columns: list[scipy.sparse.csc_matrix] = []

    def append(self, w: np.ndarray) -> None:
        """Keep the coefficients that are not lost in rounding."""
        kept = np.where(np.abs(w) > TINY * np.abs(w).max(initial=0.0), w, 0.0)
        self.columns.append(scipy.sparse.csc_matrix(kept[:, None]))

    def stacked(self) -> scipy.sparse.csc_matrix:
        """Return them as the columns of a matrix."""
        return scipy.sparse.hstack(self.columns, format="csc")


def follow(solve: Callable[[float, np.ndarray, float], Solution], parameters: np.ndarray, p: int) -> Path:
    """Return the path of a method, each model the start of the next."""
    w, models, iterations, products, seconds = np.zeros(p), Models(), 0, 0, 0.0
    for parameter in parameters:
        start = time.perf_counter()
        w, steps, n_products = solve(float(parameter), w, EPS)
        seconds += time.perf_counter() - start
        models.append(w)
        iterations, products = iterations + steps, products + n_products
    return Path(models.stacked(), seconds, seconds, iterations, products)


BASELINES = ("CD", "SCD", "SLEP Reg.", "SLEP Const.")


def baselines(data: Regression, parameters: Grids, seed: int = 0) -> dict[str, Path]:
    """Return the paths of the methods that the paper compares with."""
    return {method: baseline(method, data, parameters, seed) for method in BASELINES}


def baseline(method: str, data: Regression, parameters: Grids, seed: int = 0) -> Path:
    """Return the path of one of them."""
    p = data.X.shape[1]
    if method.startswith("SLEP"):
        gradients = AcceleratedGradient(data.X, data.y)
        if method == "SLEP Reg.":
            return follow(gradients.penalised, parameters.penalties, p)
        return follow(gradients.constrained, parameters.radii, p)
    descent = CoordinateDescent(data.X, data.y, np.random.default_rng(seed) if method == "SCD" else None)
    descent.solve(float(parameters.penalties[0]), np.zeros(p), math.inf)  # compiles
    return follow(descent.solve, parameters.penalties, p)


def randomized(data: Regression, radii: np.ndarray, sample_size: Any, seed: int = 0, patience: float = 3.0) -> Path:
    """Return the path of randomized Frank-Wolfe, each model scaled to the border of the next ball to start there."""
    problem = cg.Problem(data.X, data.y, cg.losses.Squared(), cg.constraints.L1Ball(float(radii[0])))
    solver = Randomized(sample_size=sample_size, step_tol=EPS, patience=patience, gradient="residuals")
    rng = np.random.default_rng(seed)
    p = problem.n_features
    cg.minimize(problem, solver, max_steps=2, random_state=0)  # compiles
    start = time.perf_counter()
    problem.matrix.transpose_dot(data.y)  # X'y, which the paper computes once for the whole path
    seconds = time.perf_counter() - start
    w, models, iterations, drawn = np.zeros(p), Models(), 0, 0
    for radius in radii:
        problem = with_radius(problem, float(radius))
        size = np.abs(w).sum()
        w0 = w * (radius / size) if size > 0.0 else w
        result = cg.minimize(problem, solver, w0=w0, tol=0.0, max_epochs=1e6, max_steps=100_000, random_state=rng)
        w = result.state.w  # the last iterate, as the paper has it; result.w is the one with the smallest gap
        models.append(w)
        seconds += result.seconds
        iterations += result.n_steps
        drawn += round(result.n_epochs * p)
    return Path(models.stacked(), seconds, time.perf_counter() - start, iterations, drawn + p)


def with_radius(problem: cg.Problem, radius: float) -> cg.Problem:
    """Return the same problem over another ball, without looking at the data again."""
    other = copy.copy(problem)
    other.constraint = cg.constraints.L1Ball(radius)
    return other


def errors(models: scipy.sparse.csc_matrix, X: Any, y: np.ndarray) -> np.ndarray:
    """Return the mean squared error of each model."""
    predictions = X @ models
    predictions = predictions.toarray() if scipy.sparse.issparse(predictions) else predictions
    return np.mean((predictions - y[:, None]) ** 2, axis=0)
