"""Sweeps of coordinate descent over some columns of the data, for a quadratic over an l1 ball: no Gram matrix."""

from __future__ import annotations

from condgrad.compiled import kernel


@kernel
def measure(columns, chosen, alpha, d, slopes, bends):
    """Set ``slopes`` to <x_j, alpha> and ``bends`` to sum_i d_i x_ij^2, for every chosen column x_j."""
    for q in range(chosen.shape[0]):
        slopes[q], bends[q] = columns.dot_and_squares(chosen[q], alpha, d)


@kernel
def sweep(columns, chosen, d, a, balance, slopes, bends, l2, price, w, multiplier, stiffness, orders, has_intercept):
    """Minimise a quadratic of w over one coefficient after the other; return multiplier and change of the intercept.

    The first derivatives of the quadratic are ``slopes`` + X'a + ``l2`` w for the chosen columns X, and a_i, which is
    zero at first, grows by d_i x_ij with w_j; its second derivatives by single coefficients are ``bends`` + ``l2``. To
    keep the norm N = sum_j price_j |w_j| at 1 at most, an augmented Lagrangian is added: its derivative by N is
    max(0, multiplier + stiffness (N - 1)), and the multiplier follows after each sweep. The derivative by an intercept
    is ``balance`` + sum_i a_i.

    A sweep follows its row of ``orders``. The first is over all columns, the others are over those in use.
    """
    norm, shift = 0.0, 0.0
    for q in range(w.shape[0]):
        norm += price[q] * abs(w[q])
    for t in range(orders.shape[0]):
        if has_intercept:
            shift += _balance(d, a, balance)
        for k in range(w.shape[0]):
            q = orders[t, k]
            before = w[q]
            if (t > 0 and before == 0.0) or bends[q] + l2 <= 0.0:
                continue
            slope = slopes[q] + columns.dot_slice(chosen[q], a)
            rest, pull = norm - price[q] * abs(before), bends[q] * before - slope
            size, force = abs(pull) / (bends[q] + l2), multiplier + stiffness * (rest - 1.0)
            if force + stiffness * price[q] * size > 0.0:  # the ball binds
                size = max(0.0, abs(pull) - force * price[q]) / (bends[q] + l2 + stiffness * price[q] * price[q])
            after = size if pull > 0.0 else -size
            if after != before:
                w[q], norm = after, rest + price[q] * size
                columns.add_scaled(chosen[q], after - before, d, a)
        multiplier = max(0.0, multiplier + stiffness * (norm - 1.0))
    return multiplier, shift


@kernel
def _balance(d, a, balance):
    """Move the intercept to where ``balance`` + sum_i a_i is zero; return by how much."""
    total, bend = balance, 0.0
    for i in range(a.shape[0]):
        total += a[i]
        bend += d[i]
    if bend <= 0.0:
        return 0.0
    for i in range(a.shape[0]):
        a[i] -= d[i] * (total / bend)
    return -total / bend
