"""Independent answers: objectives in plain NumPy, optima from SciPy polished by Newton's method and certified here.

Nothing in this file calls condgrad: formulas are written out, vertices are listed one by one.
"""

import itertools
import math
import warnings

import numpy as np
from scipy import linalg, optimize, special


def softplus(p):
    return np.logaddexp(0.0, p)


# name -> value, first and second derivative of f(p, y)
FORMULAS = {
    "Squared": (
        lambda p, y: 0.5 * (p - y) ** 2,
        lambda p, y: p - y,
        lambda p, y: np.ones_like(p),
    ),
    "Logistic": (
        lambda p, y: softplus(-y * p),
        lambda p, y: -y * special.expit(-y * p),
        lambda p, y: special.expit(p) * special.expit(-p),
    ),
}


class Reference:
    """F, its gradient and its optimum over the convex hull of ``vertices``, for small dense problems."""

    def __init__(self, X, y, loss, vertices, weight=None, intercept=False):
        self.X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=float)
        self.y = np.asarray(y, dtype=float)
        self.value, self.first, self.second = FORMULAS[loss]
        self.vertices = vertices
        self.weight = np.full(len(y), 1.0) if weight is None else np.asarray(weight, dtype=float)
        self.weight = self.weight / math.fsum(self.weight)
        self.intercept = intercept

    def best_intercept(self, w):
        """The root of the derivative in b, by bisection: slow and safe."""
        if not self.intercept:
            return 0.0
        p = self.X @ w
        slope = lambda b: math.fsum(self.weight * self.first(p + b, self.y))  # noqa: E731
        reach = 1.0
        while slope(-reach) > 0 or slope(reach) < 0:
            reach *= 2.0
        return optimize.brentq(slope, -reach, reach, xtol=1e-16, rtol=1e-15, maxiter=500)

    def objective(self, w):
        p = self.X @ w + self.best_intercept(w)
        return math.fsum(self.weight * self.value(p, self.y))

    def gradient(self, w):
        p = self.X @ w + self.best_intercept(w)
        return self.X.T @ (self.weight * self.first(p, self.y))

    def gap(self, w):
        r = self.gradient(w)
        return r @ w - (self.vertices @ r).min()

    def optimum(self):
        """Return w* and F*, certified to 1e-13 by the gap over all vertices.

        SLSQP over the weights of the vertices, then Newton's method on the face that it has found.
        """
        m = len(self.vertices)
        found = optimize.minimize(
            lambda c: self.objective(self.vertices.T @ c),
            np.full(m, 1.0 / m),
            jac=lambda c: self.vertices @ self.gradient(self.vertices.T @ c),
            bounds=[(0.0, 1.0)] * m,
            constraints={"type": "eq", "fun": lambda c: c.sum() - 1.0, "jac": lambda c: np.ones(m)},
            method="SLSQP",
            options={"ftol": 1e-15, "maxiter": 1000},
        )
        rough = self.vertices.T @ np.clip(found.x, 0.0, None) / np.clip(found.x, 0.0, None).sum()
        candidates = [rough]
        for cut in (1e-3, 1e-4, 1e-5, 1e-6):
            for is_inside in (False, True):
                polished = self._polish(rough, cut, is_inside)
                if polished is not None:
                    candidates.append(polished)
        best = min(candidates, key=self.gap)
        assert self.gap(best) <= 1e-13 * max(1.0, self.objective(best)), "the reference is not certified"
        return best, self.objective(best)

    def _polish(self, w, cut, is_inside):
        """Newton's method on the coordinates larger than ``cut``, on the plane sign'w = const or without it."""
        used = np.ones(w.size, bool) if is_inside else abs(w) > cut
        if not used.any():
            return None
        sign, radius = np.sign(w[used]), abs(self.vertices).sum(1).max()
        w = np.where(used, w, 0.0)
        if not is_inside:
            w *= radius / abs(w).sum()
        for _ in range(30):
            p = self.X @ w + self.best_intercept(w)
            d = self.weight * self.second(p, self.y)
            A = self.X[:, used]
            H = A.T @ (d[:, None] * A)
            if self.intercept:
                H -= np.outer(A.T @ d, A.T @ d) / d.sum()
            system, right = H, -self.gradient(w)[used]
            if not is_inside:
                system = np.block([[H, sign[:, None]], [sign[None, :], np.zeros((1, 1))]])
                right = np.append(right, radius - sign @ w[used])
            step = np.linalg.lstsq(system, right, rcond=None)[0][: used.sum()]
            w[used] += step
            if abs(step).max() <= 1e-15 * max(1.0, abs(w).max()):
                break
        if np.any(sign * w[used] < 0.0) and not is_inside:
            return None
        if self.is_feasible(w):
            return w
        return None

    def is_feasible(self, w, tol=1e-9):
        """Tell whether w is a convex combination of the vertices, by least squares with weights >= 0."""
        A = np.vstack([self.vertices.T, np.ones(len(self.vertices))])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", linalg.LinAlgWarning)  # vertices that depend on each other
            return optimize.nnls(A, np.append(w, 1.0))[1] <= tol * max(1.0, abs(w).sum())


def l1_vertices(d, radius):
    return radius * np.vstack([np.eye(d), -np.eye(d)])


def simplex_vertices(d, radius):
    return radius * np.eye(d)


def box_vertices(lower, upper):
    return np.array(list(itertools.product(*zip(lower, upper))))
