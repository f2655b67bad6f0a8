r"""Bounds of the rounding errors of the sums that a certificate consists of.

A sum of m products in floating point, in any order, is wrong by at most gamma(m) times the sum of their sizes. The
sizes are bounded a posteriori, from norms that are cheap to compute. With weights v_i that sum to one, ||a||^2 = sum_i
v_i a_i^2 defines the norm of a vector with one entry per sample. For F(w) = sum_i v_i f(x_i'w + b, y_i) the norms are

* ``slope`` = ||f'||, ``prediction`` = ||Xw + b||, ``target`` = ||y||, ``value`` = sum_i v_i |f_i|;
* ``spread`` = sum_j |w_j| ||x_j||, which bounds the sizes of the sums Xw;
* ``reach``, the farthest that predictions can move: the largest sum_j ||x_j|| |w_j - s_j| over points w, s of the set.

Let p be the predictions as computed, off by at most ``delta`` in this norm. A convex loss lies above its tangents at p,
so for every w' of the set and every intercept b', with alpha_i = v_i f'(p_i),

    F(w) - F(w') <= <X'alpha, w - w'> + (b - b') sum_i alpha_i + 2 (slope + L delta) delta,

and the computed gap differs from the first term by the rounding errors of alpha (a few units of each derivative, times
``reach``), of the sums X'alpha (gamma(n) slope reach), of the gap's own two sums, and of the oracle. L delta ``reach``
is added as well, as a part of the errors of alpha: so the exact gap at w itself, not only F(w) - F*, is at most
gap + rounding.
"""

from __future__ import annotations

import math
from typing import NamedTuple

UNIT = 2.0**-53  # the relative error of one operation
FORMULA = 16.0  # error of the formulas of a loss, in units of rounding, relative to their terms
_SLACK = 1.01  # factor that covers the rounding of the bounds themselves


def gamma(m: float) -> float:
    """Return the relative error that a sum of ``m`` products can have, relative to the sum of their sizes.

    >>> gamma(1) > 2.0**-53
    True
    """
    return m * UNIT / (1.0 - m * UNIT) if m * UNIT < 0.5 else math.inf


class Sizes(NamedTuple):
    """Norms over the samples at one point; see the formulas above. ``balance`` is |sum_i alpha_i| as computed."""

    slope: float
    prediction: float
    target: float
    value: float
    balance: float


class Bounds(NamedTuple):
    """Bounds of the rounding errors of the gap, as a bound of F(w) - F*, and of the objective."""

    gap: float
    objective: float

    def with_oracle(self, rounding: float) -> Bounds:
        """Return the bounds with the error of the oracle and of the gap's own sums added."""
        return Bounds(self.gap + rounding, self.objective)


def prediction_error(sizes: Sizes, n_terms: int, spread: float) -> float:
    """Return ``delta`` for predictions that sum up at most ``n_terms`` nonzero products."""
    return gamma(n_terms + 4) * spread + 2.0 * UNIT * sizes.prediction


def bounds(
    sizes: Sizes,
    *,
    n_samples: int,
    reach: float,
    free_reach: float,
    delta: float,
    slope_error: float,
    total_weight: float = 1.0,
) -> Bounds:
    """Return the bounds for losses of linear predictions, without the gap's own sums and the oracle.

    Parameters
    ----------
    sizes : Sizes
    n_samples : int
    reach : float
        See above; it includes what an intercept can add.
    free_reach : float
        How far from the present intercept the best one can be (0 without an intercept).
    delta, slope_error : float
        Bounds for the norms of the errors of predictions and of derivatives. ``slope_error`` includes the effect of
        ``delta``.
    total_weight : float
        The sum of the weights v_i: one, or the number of outputs where each of them has weights that sum to one.
    """
    sums = gamma(n_samples + 4)
    of_slopes = slope_error + sums * sizes.slope
    gap = 2.0 * (sizes.slope + slope_error) * delta + of_slopes * reach + sizes.balance * free_reach
    one = math.sqrt(total_weight)  # the norm of ones
    parts = sizes.value + (sizes.slope + sizes.target) * (one + sizes.prediction) + sizes.slope * sizes.target
    return Bounds(_SLACK * gap, _SLACK * ((FORMULA * UNIT + sums) * parts + sizes.slope * delta))
