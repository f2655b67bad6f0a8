"""The share of the deviance that a model explains: the score of losses of a family of distributions."""

from __future__ import annotations

import numpy as np
from scipy.special import logit

from condgrad.losses import Loss


def explained_deviance(loss: Loss, y: np.ndarray, p: np.ndarray, weight: np.ndarray | None) -> float:
    """Return D2 = 1 - deviance / deviance of the mean of y, averaged over the columns of y and p.

    Half the deviance is f(p, y) less its least value over all p.
    """
    y, p = (np.asarray(part, dtype=np.float64).reshape(len(part), -1) for part in (y, p))
    loss.check_targets(y.ravel())
    mean = np.average(y, axis=0, weights=weight)
    with np.errstate(divide="ignore"):
        null = np.log(mean) if loss.link == "log" else logit(mean)
    shares = []
    for column, scores, constant in zip(y.T, p.T, null, strict=True):
        least = loss.least_value(column)
        of_model = float(np.average(loss.value(scores, column) - least, weights=weight))
        of_null = 0.0
        if np.isfinite(constant):  # else all targets are 0, or 1
            losses = loss.value(np.full(column.size, constant), column)
            of_null = float(np.average(losses - least, weights=weight))
        shares.append(1.0 - of_model / of_null if of_null > 0.0 else float(of_model <= 0.0))
    return float(np.mean(shares))
