"""Optima of small problems with budgets, limits, free features and rows, by sequential programming of scipy."""

import numpy as np
import scipy.optimize


def optimum(X, y, loss, *, radius, weights=None, lower=None, upper=None, intercept=True, l2=0.0, A_ub=None, b_ub=None,
            A_eq=None, b_eq=None, sample_weight=None, offset=0.0):  # fmt: skip
    """Return the least mean loss, and its coefficients; w = u - v with u, v >= 0, and a free intercept."""
    d = X.shape[1]
    weights = np.ones(d) if weights is None else np.asarray(weights, dtype=float)
    lower = np.full(d, -np.inf) if lower is None else np.broadcast_to(lower, d)
    upper = np.full(d, np.inf) if upper is None else np.broadcast_to(upper, d)
    share = np.full(y.size, 1.0 / y.size) if sample_weight is None else sample_weight / np.sum(sample_weight)

    def split(z):
        return z[:d] - z[d : 2 * d], (z[-1] if intercept else 0.0)

    def value(z):
        w, b = split(z)
        return share @ loss.value(X @ w + b + offset, y) + 0.5 * l2 * w @ w

    def slope(z):
        w, b = split(z)
        alpha = share * loss.derivative(X @ w + b + offset, y)
        g = X.T @ alpha + l2 * w
        return np.concatenate([g, -g, [alpha.sum()]])

    budget = np.concatenate([weights, weights, [0.0]])
    rows = [{"type": "ineq", "fun": lambda z: radius - budget @ z, "jac": lambda z: -budget}]
    for kind, A, b in (("ineq", A_ub, b_ub), ("eq", A_eq, b_eq)):
        if A is not None:
            wide = np.hstack([A, -np.asarray(A), np.zeros((len(A), 1))])
            rows.append(
                {"type": kind, "fun": lambda z, wide=wide, b=b: b - wide @ z, "jac": lambda z, wide=wide: -wide}
            )
    low, high = np.maximum(lower, -1e3), np.minimum(upper, 1e3)
    bounds = [*zip(np.maximum(low, 0.0), np.maximum(high, 0.0)), *zip(np.maximum(-high, 0.0), np.maximum(-low, 0.0)),
              (None, None) if intercept else (0.0, 0.0)]  # fmt: skip
    start = np.array([np.clip(0.0, *pair) if pair[0] is not None else 0.0 for pair in bounds])
    settings = {"bounds": bounds, "constraints": rows, "method": "SLSQP", "options": {"maxiter": 3000, "ftol": 1e-15}}
    found = scipy.optimize.minimize(value, start, jac=slope, **settings)
    return found.fun, split(found.x)[0]


def as_row(kind, A, b):
    """Return b - A z >= 0, or = 0, as SLSQP takes it."""
    return {"type": kind, "fun": lambda z: b - A @ z, "jac": lambda z: -A}
