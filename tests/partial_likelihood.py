"""Cox's partial likelihood as its definition says, sum by sum: in floats for solvers, in decimals to judge rounding."""

from __future__ import annotations

import decimal
from decimal import Decimal

import numpy as np


def negative_log_likelihood(w, X, time, event, ties="breslow", strata=None, weight=None, offset=0.0):
    """Return F(w) in floats."""
    p, total = X @ w + offset, 0.0
    for risk, dead, v in risk_sets(time, event, strata, weight):
        terms = v * np.exp(p - p.max())
        everybody, own, d = terms[risk].sum(), terms[dead].sum(), int(dead.sum())
        sums = [everybody] * d if ties == "breslow" else [everybody - k / d * own for k in range(d)]
        total += v[dead].mean() * sum(np.log(a) + p.max() for a in sums) - v[dead] @ p[dead]
    return total / (len(time) if weight is None else np.sum(weight))


def risk_sets(time, event, strata=None, weight=None):
    """Yield masks of the samples at risk and of the events, and the weights, for each time of an event."""
    v = np.ones(len(time)) if weight is None else np.asarray(weight, dtype=float)
    strata = np.zeros(len(time)) if strata is None else np.asarray(strata)
    for label in np.unique(strata):
        for t in np.unique(time[event & (strata == label) & (v > 0.0)]):
            of_stratum = (strata == label) & (v > 0.0)
            yield of_stratum & (time >= t), of_stratum & (time == t) & event, v


def exact(w, X, time, event, ties="breslow", strata=None, weight=None, offset=None, digits=50):
    """Return F(w) and its gradient in decimals, for numbers that are exactly the given floats."""
    decimal.getcontext().prec = digits
    n, d = X.shape
    rows = [[(j, Decimal(float(X[i, j]))) for j in range(d) if X[i, j] != 0.0] for i in range(n)]
    at = [Decimal(float(each)) for each in w]
    shift = [Decimal(0)] * n if offset is None else [Decimal(float(o)) for o in offset]
    p = [sum((x * at[j] for j, x in row), Decimal(0)) + o for row, o in zip(rows, shift, strict=True)]
    v = [Decimal(1)] * n if weight is None else [Decimal(float(each)) for each in weight]
    total, alpha = Decimal(0), [Decimal(0)] * n
    exps = [v[i] * p[i].exp() for i in range(n)]
    for risk, dead, _ in risk_sets(time, event, strata, weight):
        risk, dead = np.flatnonzero(risk).tolist(), np.flatnonzero(dead).tolist()
        count = len(dead)
        mean, own = sum(v[i] for i in dead) / count, sum(exps[i] for i in dead)
        others = sum((exps[i] for i in risk if i not in dead), Decimal(0))
        for k in range(count):
            part = Decimal(0) if ties == "breslow" else Decimal(k) / count
            a = others + (1 - part) * own  # a difference of sums would lose digits
            total += mean * a.ln()
            for i in risk:
                alpha[i] += mean * exps[i] * (1 - part if i in dead else 1) / a
        for i in dead:
            total -= v[i] * p[i]
            alpha[i] -= v[i]
    size, r = sum(v), [Decimal(0)] * d
    for a, row in zip(alpha, rows, strict=True):
        for j, x in row:
            r[j] += a * x / size
    return total / size, r
