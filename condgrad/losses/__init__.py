"""Losses f(p, y) of a linear prediction p = x'w, one file each."""

import difflib
import re

from condgrad.losses._protocol import Loss, loss
from condgrad.losses.huber import Huber
from condgrad.losses.logistic import Logistic
from condgrad.losses.pinball import Pinball
from condgrad.losses.poisson import Poisson
from condgrad.losses.pseudo_huber import PseudoHuber
from condgrad.losses.sigmoid_squared import SigmoidSquared
from condgrad.losses.smoothed_hinge import SmoothedHinge
from condgrad.losses.squared import Squared
from condgrad.losses.squared_hinge import SquaredHinge
from condgrad.losses.welsch import Welsch

__all__ = [
    "Huber",
    "Logistic",
    "Loss",
    "Pinball",
    "Poisson",
    "PseudoHuber",
    "SigmoidSquared",
    "SmoothedHinge",
    "Squared",
    "SquaredHinge",
    "Welsch",
    "by_name",
    "loss",
]


def by_name(name: str, **parameters: float) -> Loss:
    """Return the loss that a name such as "squared-hinge" stands for.

    Parameters
    ----------
    name : str
        Name of the class in lower case, its words joined by hyphens.
    **parameters
        Those of the class; what is left out has its default.

    Examples
    --------
    >>> by_name("huber", delta=2)
    Huber(delta=2.0)
    """
    if isinstance(name, str) and name in REGISTERED:
        return REGISTERED[name](**parameters)
    close = difflib.get_close_matches(str(name).lower(), REGISTERED, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    known = ", ".join(map(repr, REGISTERED))
    raise ValueError(f"loss must be one of {known}; got {name!r}.{hint}")


def _kebab_case(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()


REGISTERED = {_kebab_case(name): globals()[name] for name in __all__ if name not in ("Loss", "by_name", "loss")}
