"""Coins: one random number for each iteration, known before the iteration is made."""

from __future__ import annotations

import numpy as np

_BLOCK = 1024  # coins made at a time


class Coins:
    """Independent uniform numbers u_0, u_1, ... that follow from ``key`` alone: the state of a run stores only the key.

    A solver that makes full passes at random must know the next one before its kernel starts a block of steps.

    Parameters
    ----------
    key : array of one integer

    Examples
    --------
    >>> coins = Coins(np.array([5]))
    >>> coins.next_below(0.5, 0) == coins.next_below(0.5, 0)
    True
    """

    def __init__(self, key: np.ndarray) -> None:
        self.key = key

    def next_below(self, chance: float, t: int) -> int:
        """Return the first iteration from ``t`` on with u < chance, or the last one whose coin is in the same block."""
        block, place = divmod(t, _BLOCK)
        bits = np.random.Philox(key=int(self.key[0]), counter=[0, block, 0, 0])
        is_below = np.random.Generator(bits).random(_BLOCK)[place:] < chance
        return t + int(is_below.argmax()) if is_below.any() else (block + 1) * _BLOCK

    def is_below(self, chance: float, t: int) -> bool:
        """Return whether u_t < chance."""
        return chance >= 1.0 or (self.next_below(chance, t) == t)
