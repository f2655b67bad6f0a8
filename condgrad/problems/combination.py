"""Combination: how the weights of w = sum_k weight_k v_k follow the steps of w, for Python and for kernels."""

from __future__ import annotations

from typing import Any

import numpy as np


class Combination:
    """Weights of atoms, positive and of sum one; an atom whose weight reaches zero leaves for good.

    :class:`~condgrad.problems.active_set.ActiveSet` holds vertices of any kind and grows as they come;
    :class:`~condgrad.problems.active_atoms.ActiveAtoms` holds single features, in arrays with room for all of them, as
    kernels need it. How they hold their atoms differs; the updates of the weights are these.
    """

    weights: np.ndarray

    def place_of(self, s: Any) -> int:
        """Return where the vertex ``s`` is, -1 where it is not held."""
        raise NotImplementedError

    def scale(self, factor: float) -> None:
        """Multiply all weights by ``factor``."""
        raise NotImplementedError

    def add(self, s: Any, weight: float) -> None:
        """Give ``weight`` to the vertex ``s``, which may be new."""
        raise NotImplementedError

    def drop(self, k: int) -> None:
        """Remove the atom at place ``k``; the last one takes its place."""
        raise NotImplementedError

    def reset(self, s: Any) -> None:
        """Make ``s`` the only atom."""
        raise NotImplementedError

    def step_towards(self, s: Any, gamma: float) -> None:
        """Follow w <- (1 - gamma) w + gamma s; a full step leaves s alone."""
        if gamma >= 1.0:
            self.reset(s)
        else:
            self.scale(1.0 - gamma)
            self.add(s, gamma)

    def step_away(self, k: int, gamma: float, max_step: float) -> None:
        """Follow w <- w + gamma (w - v_k); the longest step drops the atom."""
        self.scale(1.0 + gamma)
        self.weights[k] -= gamma
        if gamma >= max_step:
            self.drop(k)

    def step_between(self, k: int, s: Any, gamma: float, max_step: float) -> None:
        """Follow w <- w + gamma (s - v_k); the longest step drops the atom."""
        if self.place_of(s) == k:  # from an atom to itself: w stays
            return
        self.weights[k] -= gamma
        self.add(s, gamma)
        if gamma >= max_step:
            self.drop(k)
