"""Renewal rules: the number of Taylor points that each iteration of TUFW renews, with the names of Xiong & Freund.

A rule has a method ``sizes(k, n)``, which returns the expected number of samples for iterations k = 1, 2, ... (an
array), and an attribute ``sampling``, the method of choosing them. A fractional size is rounded at random, so that its
expectation does not change. Your own rule is any object with these two; if its sizes are only 0 and n,
``renews_all = True`` saves memory on general problems.
"""

from __future__ import annotations

import numpy as np

from condgrad.linalg.convert import as_number


class Rule:
    """The protocol of rules: subclass it, or pass any object with ``sizes`` and ``sampling``."""

    sampling = "batch"
    renews_all = False  # whether an iteration renews all Taylor points or none: then samples can share one point

    def sizes(self, k: np.ndarray, n: int) -> np.ndarray:
        """Return the expected number of samples for each of the iterations ``k``."""
        raise NotImplementedError

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({settings})"


class SBD(Rule):
    """Stochastic batches that decrease: n / sqrt(k) samples (definition 3.1), or n / K^(1/4) (definition 4.1).

    Parameters
    ----------
    n_steps : int, optional
        K, for the second form, meant for non-convex losses.

    Examples
    --------
    >>> SBD().sizes(np.array([1, 4, 100]), 1000)
    array([1000.,  500.,  100.])
    """

    def __init__(self, n_steps: int | None = None) -> None:
        self.n_steps = _checked(n_steps, "SBD")

    def sizes(self, k: np.ndarray, n: int) -> np.ndarray:
        """Return n / sqrt(k), or n / K^(1/4)."""
        return n / np.sqrt(k) if self.n_steps is None else np.full(k.shape, n / self.n_steps**0.25)


class DBD(Rule):
    """All samples, ever less often: if sqrt(k) is an integer (definition 3.6), or every floor(K^(1/4)) (4.6).

    The text after definition 3.6 lists k = 1, 4, 9, 25, ...; the definition itself includes 16, and so does this rule.

    Parameters
    ----------
    n_steps : int, optional
        K, for the second form, meant for non-convex losses.

    Examples
    --------
    >>> DBD().sizes(np.arange(1, 10), 50)
    array([50.,  0.,  0., 50.,  0.,  0.,  0.,  0., 50.])
    """

    sampling = "cyclic"
    renews_all = True

    def __init__(self, n_steps: int | None = None) -> None:
        self.n_steps = _checked(n_steps, "DBD")

    def sizes(self, k: np.ndarray, n: int) -> np.ndarray:
        """Return n or 0."""
        if self.n_steps is None:
            is_due = np.rint(np.sqrt(k)) ** 2 == k
        else:
            is_due = k % int(self.n_steps**0.25) == 0
        return np.where(is_due, float(n), 0.0)


class Empty(Rule):
    """No Taylor point is ever renewed: exact for quadratic losses, a Taylor model at w0 for others.

    Examples
    --------
    >>> Empty().sizes(np.arange(1, 4), 50)
    array([0., 0., 0.])
    """

    renews_all = True

    def sizes(self, k: np.ndarray, n: int) -> np.ndarray:
        """Return 0."""
        return np.zeros(k.shape)


class Full(Rule):
    """Every Taylor point in every iteration: Frank-Wolfe with exact gradients.

    Examples
    --------
    >>> Full().sizes(np.arange(1, 4), 50)
    array([50., 50., 50.])
    """

    sampling = "cyclic"
    renews_all = True

    def sizes(self, k: np.ndarray, n: int) -> np.ndarray:
        """Return n."""
        return np.full(k.shape, float(n))


class RandomBatch(Rule):
    """A fixed number of samples, drawn anew in every iteration.

    Examples
    --------
    >>> RandomBatch(5).sizes(np.arange(1, 4), 50)
    array([5., 5., 5.])
    """

    def __init__(self, batch_size: int) -> None:
        self.batch_size = int(as_number(batch_size, "batch_size of a rule", low=1, what="a number of at least 1"))

    def sizes(self, k: np.ndarray, n: int) -> np.ndarray:
        """Return the batch size, at most n."""
        return np.full(k.shape, float(min(self.batch_size, n)))


class Cyclic(RandomBatch):
    """A fixed number of samples, one batch after the other in their order.

    Examples
    --------
    >>> Cyclic(5).sampling
    'cyclic'
    """

    sampling = "cyclic"


def check_rule(rule: object) -> None:
    """Raise if ``rule`` is not a rule."""
    if isinstance(rule, type) or not (hasattr(rule, "sizes") and hasattr(rule, "sampling")):
        raise TypeError(f"rule must be a rule of condgrad.rules such as DBD(); got {rule!r}.")


def _checked(n_steps: int | None, owner: str) -> int | None:
    if n_steps is None:
        return None
    return int(as_number(n_steps, f"n_steps of {owner}", low=1, what="a whole number of at least 1, or None"))
