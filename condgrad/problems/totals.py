"""Totals: sums over samples at their predictions, wherever the samples are, and the rounding errors they tell of."""

from __future__ import annotations

import math
from typing import NamedTuple

from condgrad.linalg.rounding import FORMULA, UNIT, Sizes, gamma, prediction_error
from condgrad.losses import Loss
from condgrad.problems.offset import Offsets

_STEEP = 0.05  # fraction of L: if the norm of the derivatives is larger, curvatures are about L
_SMALLEST_SCALE = 1e-9  # smallest loss_scale, as a fraction of the loss of predicting 0: for constant targets


class Totals(NamedTuple):
    """Sums over samples at their predictions p_i + b. The sums of two blocks of samples can be added.

    Attributes
    ----------
    value, size : float
        The sums of weight_i f_i and of weight_i |f_i|.
    slope, prediction, target : float
        The sums of weight_i f_i'^2, weight_i (p_i + b)^2 and weight_i y_i^2.
    balance : float
        The sum of the derivatives weight_i f_i', which is 0 at the best intercept.
    inputs, curvature : float
        The sums of weight_i f_i''^2 (|p_i + b| + |y_i|)^2 and of weight_i f_i''^2.
    """

    value: float
    size: float
    slope: float
    prediction: float
    target: float
    balance: float
    inputs: float
    curvature: float

    def __add__(self, other: Totals) -> Totals:  # type: ignore[override]
        return Totals(*(mine + its for mine, its in zip(self, other, strict=True)))

    @property
    def sizes(self) -> Sizes:
        """The norms from which rounding bounds are computed."""
        slope, prediction, target = map(math.sqrt, (self.slope, self.prediction, self.target))
        return Sizes(slope, prediction, target, self.size, abs(self.balance))

    def slope_error(self, loss: Loss, delta: float, largest: float) -> float:
        """Return a bound of the norm of the errors of the derivatives.

        The errors of the predictions are at most ``delta`` in the norm and ``largest`` in each entry; times f'' they
        are errors of f'. Unless the loss has a small relative rounding error, its formula is treated as if its inputs
        were wrong in their last digit, which adds f'' (|p| + |y|) units. If f'' is smooth, the f'' of each sample is
        used; otherwise L bounds f'' (a kink may be near). If there is no L, the derivative is assumed to be a
        difference of an exponential and y, and the sizes of both parts count.
        """
        found = self.sizes
        L, unit = float(loss.smoothness()), FORMULA * UNIT
        has_kinks = not math.isfinite(loss.curvature_smoothness()) and math.isfinite(L)
        is_curved = loss.rounds_relatively and found.slope > _STEEP * L  # f'' of the samples is not better than L
        if has_kinks or loss.is_quadratic or is_curved:
            inputs = 0.0 if loss.rounds_relatively else L * (found.prediction + found.target)
            return unit * (found.slope + inputs) + L * delta
        inputs = 0.0 if loss.rounds_relatively else math.sqrt(self.inputs)
        if not (loss.rounds_relatively or math.isfinite(L)):
            inputs += 2.0 * found.target
        # The factor 2 is there because f'' may grow between the exact and the rounded prediction.
        return unit * (found.slope + inputs) + 2.0 * min(math.sqrt(self.curvature) * largest, L * delta)


def errors_of_predictions(
    offset: Offsets, sizes: Sizes, n_terms: int, spread: float, size: float
) -> tuple[float, float]:
    """Return what ``Samples.prediction_errors`` describes; of the offsets only their size counts."""
    in_norm = prediction_error(sizes, n_terms, spread) + offset.rounding(sizes.prediction)
    return in_norm, gamma(n_terms + 4) * size + 2.0 * UNIT * size + offset.rounding(size)


def scale_of_losses(size: float, size_at_zero: float) -> float:
    """Return the mean absolute loss, with a lower limit relative to that of predicting 0."""
    return max(size, _SMALLEST_SCALE * size_at_zero)
