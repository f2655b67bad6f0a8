"""The oracle of a nuclear-norm ball: singular directions of a sparse gradient, the best vertex and the gap."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.linalg.entries import Entries
from condgrad.linalg.entry_gram import EntryGram
from condgrad.linalg.factored import RankOne
from condgrad.linalg.lanczos import Lanczos

ACCURACY = 0.1  # largest error of the oracle, as a fraction of the gap
_ROUGH = 0.5  # the same if the gap is surely above the goal of a run
_STEPS = 10  # Lanczos steps between two checks of the bound
_MOST_STEPS = 300


class Search:
    """A search for the singular directions of the gradient G with the given values at the entries.

    Parameters
    ----------
    entries, values : the places and the values of G, in the coordinates of the plain ball
    rng : numpy Generator
    guess : array, optional
        What :meth:`guess_from` returned for a vertex that is close to the best one.
    """

    def __init__(
        self, entries: Entries, values: np.ndarray, rng: np.random.Generator, guess: np.ndarray | None = None
    ) -> None:
        self.gram = EntryGram(entries, values)
        self.lanczos = Lanczos(self.gram.dot, self.gram.shape, rng, guess)

    def triplets(self, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return U, s, V for the ``count`` largest Ritz values, largest first."""
        return self.gram.triplets(*self.lanczos.pairs(count))

    def best_vertex(self, radius: float, error: float) -> RankOne:
        """Return the best vertex found; ``error`` bounds by how much it misses the best one."""
        U, _, V = self.triplets(1)
        return RankOne(U[:, 0], V[:, 0], radius, error)

    def guess_from(self, s: RankOne) -> np.ndarray:
        """Return what a later search needs of a vertex to start close to it."""
        return s.u if self.gram.is_wide else s.v


class Answer(NamedTuple):
    """The result of the oracle: its search, the best vertex, and the gap including the oracle's own error."""

    search: Search
    vertex: RankOne
    gap: float


def ask(search: Search, along: float, radius: float, accuracy: float, goal: float) -> Answer:
    """Return the best vertex and the gap, along + radius ||G||, for ``along`` = <G, W>.

    Steps are made until the error of the oracle is at most the fraction ``accuracy`` of the gap; or until the gap is at
    most ``goal``, so that its exact value does not matter; or until it is surely above and known within a factor of 2.
    """
    lanczos = search.lanczos
    while True:
        lanczos.extend(_STEPS)
        bound, largest = lanczos.bound(), lanczos.largest()
        gap, error = along + radius * bound, radius * (bound - largest)
        is_far = 0.0 < goal < gap - error
        is_good = gap <= goal or error <= max((_ROUGH if is_far else accuracy) * gap, 1e-12 * abs(along))
        if is_good or lanczos.is_exhausted or lanczos.n_steps >= _MOST_STEPS:  # 1e-12 of |along|: rounding
            return Answer(search, search.best_vertex(radius, error), gap)
