"""Combination: updates of the weights of w = sum_k weight_k v_k after each step of w, for Python and for kernels."""

from __future__ import annotations

from typing import Any

import numpy as np


class Combination:
    """Positive weights of atoms that sum to one; an atom whose weight reaches zero is removed.

    :class:`~condgrad.problems.active_set.ActiveSet` stores vertices of any kind and grows when one is added;
    :class:`~condgrad.problems.active_atoms.ActiveAtoms` stores single features, in arrays with room for all of them, as
    kernels need it. They store their atoms differently but share these updates of the weights.
    """

    weights: np.ndarray

    def place_of(self, s: Any) -> int:
        """Return the place of the vertex ``s``, or -1 if it is not stored."""
        raise NotImplementedError

    def scale(self, factor: float) -> None:
        """Multiply all weights by ``factor``."""
        raise NotImplementedError

    def add(self, s: Any, weight: float) -> None:
        """Add ``weight`` to the weight of the vertex ``s``, which may be new."""
        raise NotImplementedError

    def drop(self, k: int) -> None:
        """Remove the atom at place ``k``; the last atom moves to its place."""
        raise NotImplementedError

    def reset(self, s: Any) -> None:
        """Make ``s`` the only atom."""
        raise NotImplementedError

    def step_towards(self, s: Any, gamma: float) -> None:
        """Update the weights for w <- (1 - gamma) w + gamma s; after a full step s is the only atom."""
        if gamma >= 1.0:
            self.reset(s)
        else:
            self.scale(1.0 - gamma)
            self.add(s, gamma)

    def step_away(self, k: int, gamma: float, max_step: float) -> None:
        """Update the weights for w <- w + gamma (w - v_k); a step of length ``max_step`` drops the atom."""
        self.scale(1.0 + gamma)
        self.weights[k] -= gamma
        if gamma >= max_step:
            self.drop(k)

    def step_between(self, k: int, s: Any, gamma: float, max_step: float) -> None:
        """Update the weights for w <- w + gamma (s - v_k); a step of length ``max_step`` drops the atom."""
        if self.place_of(s) == k:  # from an atom to itself: w does not change
            return
        self.weights[k] -= gamma
        self.add(s, gamma)
        if gamma >= max_step:
            self.drop(k)
