"""Losses f(p, y) of a linear prediction p = x'w, one file each."""

import re
from typing import Any

from condgrad.linalg.names import Registry
from condgrad.losses._protocol import Loss as Loss
from condgrad.losses._protocol import loss as loss
from condgrad.losses.binomial import Binomial as Binomial
from condgrad.losses.expectile import Expectile as Expectile
from condgrad.losses.gamma import Gamma as Gamma
from condgrad.losses.huber import Huber as Huber
from condgrad.losses.logistic import Logistic as Logistic
from condgrad.losses.negative_binomial import NegativeBinomial as NegativeBinomial
from condgrad.losses.pinball import Pinball as Pinball
from condgrad.losses.poisson import Poisson as Poisson
from condgrad.losses.pseudo_huber import PseudoHuber as PseudoHuber
from condgrad.losses.sigmoid_squared import SigmoidSquared as SigmoidSquared
from condgrad.losses.smoothed_hinge import SmoothedHinge as SmoothedHinge
from condgrad.losses.squared import Squared as Squared
from condgrad.losses.squared_hinge import SquaredHinge as SquaredHinge
from condgrad.losses.tweedie import Tweedie as Tweedie
from condgrad.losses.welsch import Welsch as Welsch

CLASSES: tuple[Any, ...] = (
    Binomial,
    Expectile,
    Gamma,
    Huber,
    Logistic,
    NegativeBinomial,
    Pinball,
    Poisson,
    PseudoHuber,
    SigmoidSquared,
    SmoothedHinge,
    Squared,
    SquaredHinge,
    Tweedie,
    Welsch,
)
# The name of SquaredHinge is "squared-hinge".
REGISTERED = Registry("loss", {re.sub(r"(?<!^)(?=[A-Z])", "-", cls.__name__).lower(): cls for cls in CLASSES})
__all__ = ["Loss", "by_name", "loss"]
__all__ += [cls.__name__ for cls in CLASSES]
__all__.sort()


def by_name(name: str, **parameters: float) -> Loss:
    """Return the loss that a name such as "squared-hinge" stands for.

    Parameters
    ----------
    name : str
        Name of the class in lower case, its words joined by hyphens.
    **parameters
        The parameters of the class; those left out have their defaults.

    Examples
    --------
    >>> by_name("huber", delta=2)
    Huber(delta=2.0)
    """
    return REGISTERED.find(name)(**parameters)
