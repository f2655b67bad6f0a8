"""The least weighted l1 norm that limits and rows allow: below it, no radius has a set."""

from __future__ import annotations

import numpy as np

from condgrad.constraints._allowance import Allowance
from condgrad.constraints._linear_program import LinearProgram, Outcome
from condgrad.constraints._row_sentences import CoefficientRows
from condgrad.constraints._rows import as_rows
from condgrad.constraints.linear_rows import LinearRows, with_opposite

_OWNER = "rows"


def least_norm(allowance: Allowance, rows: CoefficientRows | None) -> float:
    """Return the least sum of weights_j |w_j| over the w within limits and rows, by one linear program.

    >>> least_norm(Allowance(None, np.array([0.5, -np.inf]), np.array([np.inf, -2.0])), None)
    2.5
    """
    if rows is None:
        lower, upper = allowance.limits()
        sizes = np.maximum(np.maximum(lower, -upper), 0.0)
        return float(sizes.sum() if allowance.weights is None else allowance.weights @ sizes)
    A_ub, b_ub, _ = as_rows(_OWNER, "A_ub", rows.A_ub, "b_ub", rows.b_ub)
    A_eq, b_eq, _ = as_rows(_OWNER, "A_eq", rows.A_eq, "b_eq", rows.b_eq)
    d = next(A.shape[1] for A in (A_ub, A_eq) if A is not None)
    lower, upper = np.array([[-np.inf] * d, [np.inf] * d]) if allowance.is_plain else allowance.limits()
    # w = u - v, with u, v >= 0
    low = np.append(np.maximum(lower, 0.0), np.maximum(-upper, 0.0))
    high = np.append(np.maximum(upper, 0.0), np.maximum(-lower, 0.0))
    weights = np.ones(d) if allowance.weights is None else allowance.weights
    known = np.concatenate([low, high, *(np.abs(b) for b in (b_ub, b_eq) if b is not None)])
    size = float(known[np.isfinite(known)].max(initial=0.0)) or 1.0
    program = LinearRows(low, high, with_opposite(A_ub), b_ub, with_opposite(A_eq), b_eq, is_split=True)
    found = LinearProgram(program.scaled(1.0 / size)).minimise(np.tile(weights, 2))
    if found.outcome is Outcome.INFEASIBLE:
        raise ValueError("limits and rows contradict each other: no coefficients satisfy all of them. Relax some.")
    if found.outcome is not Outcome.OPTIMAL:
        raise RuntimeError(f"HiGHS found no least norm: {found.message}")
    return size * float(np.tile(weights, 2) @ found.x)
