"""OutsideGradient: a gradient that stays with the workers of a cluster; only the entries that matter come here."""

from __future__ import annotations

import abc
from typing import cast

import numpy as np

from condgrad.constraints import Atom, best_vertex
from condgrad.constraints._protocol import ConstraintSet

_MARGIN = 0.5  # entries are known if a vertex on them could be this share as good as the best one
_MOST_ROUNDS = 4  # thresholds that are tried before the whole gradient is asked for
_FIRST = 20  # entries that each worker proposes if w has none


class OutsideGradient(abc.ABC):
    """The gradient of F at w as a sum over parts of the data, with questions whose answers are a few numbers.

    For the l1 ball, and for any set with the origin whose vertices have a single entry, the oracle needs the largest
    entries alone. They are found without summing up the others: if every worker names the features on which its own
    part exceeds its share of a threshold tau, then all other features have sums below tau. The sums on the named
    features are then computed exactly. So the vertex is that of the whole gradient.

    Attributes
    ----------
    size : int
        The number of features.
    """

    size: int
    _seen: tuple[np.ndarray, np.ndarray] | None = None  # features and entries of the last call of ``leading``
    _rest = 0.0  # bound of the other entries

    @property
    @abc.abstractmethod
    def is_known(self) -> bool:
        """Whether all entries are known here."""

    @abc.abstractmethod
    def at(self, features: np.ndarray) -> np.ndarray:
        """Return the entries of these features."""

    @abc.abstractmethod
    def whole(self) -> np.ndarray:
        """Return all entries: 8 bytes for each, through every sum of the workers."""

    @abc.abstractmethod
    def proposals(self, count: int) -> np.ndarray:
        """Return the features of the ``count`` largest entries of each part, in ascending order."""

    @abc.abstractmethod
    def candidates(self, tau: float) -> np.ndarray | None:
        """Return features among which are all with |entry| >= tau, in ascending order; None if they are too many."""

    def leading(self, constraint: ConstraintSet, w: np.ndarray) -> np.ndarray:
        """Return an array with the entries that matter at w, and zeros in place of the others.

        The entries are those where w is not zero, and those of the best vertices. For sets that need others, it is the
        whole gradient.
        """
        features = np.flatnonzero(w)
        if self.is_known or not _needs_largest(constraint, self.size):
            return self.whole()
        if features.size == 0:
            features = self.proposals(_FIRST)
        size = _largest_size(constraint, self.size)
        r = np.zeros(self.size)
        r[features] = self.at(features)
        tau = _MARGIN * float(np.abs(r[features]).max(initial=0.0))
        for _ in range(_MOST_ROUNDS):
            found = self.candidates(tau) if tau > 0.0 else None
            if found is None:
                break
            features = np.union1d(features, found)
            r[features] = self.at(features)
            s = cast("Atom", best_vertex(constraint, r))
            gain = -s.value * r[s.index]
            if size * tau <= _MARGIN * gain:  # no vertex on another feature is half as good
                self._seen, self._rest = (features, r[features]), tau
                return r
            tau = min(_MARGIN * gain / size, 0.25 * tau)
        return self.whole()

    def near(self, estimate: np.ndarray) -> np.ndarray:
        """Return the entries that :meth:`leading` found, and elsewhere an estimate of them, cut to their bound."""
        if self._seen is None:
            return self.whole()
        features, entries = self._seen
        r: np.ndarray = np.clip(estimate, -self._rest, self._rest)
        r[features] = entries
        return r


def whole(gradient: np.ndarray | OutsideGradient) -> np.ndarray:
    """Return all entries of a gradient."""
    return gradient.whole() if isinstance(gradient, OutsideGradient) else gradient


def _needs_largest(constraint: ConstraintSet, n_features: int) -> bool:
    """Return whether the largest entries are enough for the oracle: the set is a hull of 0 and of single entries."""
    return constraint.vertex is Atom and constraint.violation(np.zeros(n_features)) <= 0.0


def _largest_size(constraint: ConstraintSet, n_features: int) -> float:
    """Return a bound of the entries of a set that contains 0."""
    width = constraint.diameter(np.inf, n_features)
    return 0.5 * width if constraint.is_symmetric else width
