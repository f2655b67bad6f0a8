"""Descent: what minimises F itself over some atoms between two passes, where that costs less than a model for each."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from condgrad.problems.active_set import AtomStack, Stack
from condgrad.problems.look import Look


class Limits(NamedTuple):
    """When a descent ends.

    Attributes
    ----------
    goal : float
        The gap at which the run can end.
    deadline : float
        When everything ends, in the time of ``time.perf_counter``.
    most_looks : float
        How many passes over all columns it may make.
    """

    goal: float
    deadline: float
    most_looks: float


class Descended(NamedTuple):
    """Where a descent has led.

    Attributes
    ----------
    atoms : AtomStack
        The first ones are those that had weight before.
    z : array of shape (n_atoms,)
        Their weights, with sum |z| <= 1, close to the minimum of F over them.
    n_looks : int
        Passes over all columns that it took.
    """

    atoms: AtomStack
    z: np.ndarray
    n_looks: int


class Descent(Protocol):
    """Steps on the columns of some atoms alone, as long as they lead far enough."""

    name: str  # in the snapshots of a run
    n_slow: int  # how many steps in sequence did not lead far enough; after some, Taylor models take over

    def suit(self, atoms: Stack) -> bool:
        """Return whether steps over these atoms cost less than a model on them."""

    def minimise(self, look: Look, atoms: AtomStack, x: np.ndarray, limits: Limits) -> Descended:
        """Go from the weights x of the atoms close to the minimum of F over them; others may join."""

    def judge(self, before: float, gap: float, is_still: bool) -> None:
        """Find out, after a step with these gaps, whether such steps should go on."""
