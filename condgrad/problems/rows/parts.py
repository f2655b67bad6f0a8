"""A pass over partitions whose results stay with their workers: parts of a sum that answer questions about it.

A worker keeps what a pass found on its partition (:class:`PartOfPass`). The functions below run there. Their answers
are small, and those of two partitions can be added.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from condgrad.problems.active_set import AtomStack
from condgrad.problems.gradient import OutsideGradient
from condgrad.problems.rows.findings import Kept, Pass
from condgrad.problems.totals import Totals

_PLACE, _NUMBER = 4, 8  # bytes of the place of an entry, and of the entry
_ROUNDING = 1e-9  # relative error that sums of few numbers do not have
_FEWEST, _MOST_SHARE = 2**16, 1 / 16  # a part names at most so many features, or this share of all


class Compact(NamedTuple):
    """A vector as its nonzero entries, in ascending order of their places, or as an array where that is smaller."""

    places: np.ndarray | None
    values: np.ndarray
    size: int

    @classmethod
    def of(cls, vector: np.ndarray) -> Compact:
        """Return the vector in the form that takes fewer bytes."""
        places = np.flatnonzero(vector)
        if places.size * (_PLACE + _NUMBER) >= vector.size * _NUMBER:
            return cls(None, vector, vector.size)
        return cls(places.astype(np.int32 if vector.size < 2**31 else np.int64), vector[places], vector.size)

    def to_array(self) -> np.ndarray:
        """Return the vector as an array."""
        if self.places is None:
            return self.values
        vector = np.zeros(self.size)
        vector[self.places] = self.values
        return vector

    def at(self, features: np.ndarray) -> np.ndarray:
        """Return some entries."""
        if self.places is None:
            chosen: np.ndarray = self.values[features]
            return chosen
        if self.places.size == 0:
            return np.zeros(features.size)
        where = np.minimum(np.searchsorted(self.places, features), self.places.size - 1)
        return np.where(self.places[where] == features, self.values[where], 0.0)

    def __add__(self, other: Compact) -> Compact:  # type: ignore[override]
        return Compact.of(self.to_array() + other.to_array())


class PartOfPass(NamedTuple):
    """What a pass found on one partition: sums, the gradient r, drawn rows, and the slopes by a guessed intercept."""

    n_samples: int
    totals: Totals
    r: Compact
    kept: Kept
    u: Compact | None
    total: float

    @classmethod
    def of(cls, n_samples: int, found: Pass) -> PartOfPass:
        """Return the results of a pass over one partition in the form in which they are kept."""
        assert isinstance(found.d, Kept)
        u, total = (None, 0.0) if found.slope is None else (Compact.of(found.slope.u), found.slope.total)
        return cls(n_samples, found.totals, Compact.of(found.r), found.d, u, total)

    def entries(self) -> Entries:
        """Return all entries of the vectors."""
        return Entries(self.r.to_array(), None if self.u is None else self.u.to_array())

    def along(self, step: float) -> Compact:
        """Return r + step u: the gradient after a step of the intercept, to first order."""
        if self.u is None or step == 0.0:
            return self.r
        return Compact.of(self.r.to_array() + step * self.u.to_array())


@dataclasses.dataclass(frozen=True)
class Entries:
    """Some entries of the sums r and u."""

    r: np.ndarray
    u: np.ndarray | None

    def __add__(self, other: Entries) -> Entries:
        u = None if self.u is None or other.u is None else self.u + other.u
        return Entries(self.r + other.r, u)

    def along(self, step: float) -> np.ndarray:
        """Return r + step u."""
        return self.r if self.u is None or step == 0.0 else self.r + step * self.u

    def joined(self, other: Entries, order: np.ndarray) -> Entries:
        """Return the entries of both, in the given order."""
        u = None if self.u is None or other.u is None else np.concatenate((self.u, other.u))[order]
        return Entries(np.concatenate((self.r, other.r))[order], u)

    def chosen(self, places: np.ndarray) -> Entries:
        """Return the entries at these places."""
        return Entries(self.r[places], None if self.u is None else self.u[places])


@dataclasses.dataclass(frozen=True)
class Vectors:
    """The sums r and u themselves."""

    r: Compact
    u: Compact | None

    def __add__(self, other: Vectors) -> Vectors:
        return Vectors(self.r + other.r, None if self.u is None or other.u is None else self.u + other.u)

    def along(self, step: float) -> np.ndarray:
        """Return r + step u."""
        return Entries(self.r.to_array(), None if self.u is None else self.u.to_array()).along(step)


@dataclasses.dataclass(frozen=True)
class Outline:
    """The sums of a pass that are single numbers, and the entries of its vectors on some features."""

    totals: Totals
    total: float
    entries: Entries

    def __add__(self, other: Outline) -> Outline:
        return Outline(self.totals + other.totals, self.total + other.total, self.entries + other.entries)


@dataclasses.dataclass(frozen=True)
class Named:
    """Features that parts have named, the sums of the entries there, and the shares of these parts among all samples.

    ``features`` is None if there were too many.
    """

    features: np.ndarray | None
    sums: np.ndarray
    shares: np.ndarray

    def __add__(self, other: Named) -> Named:
        if self.features is None or other.features is None:
            return TOO_MANY
        features, where = np.unique(np.concatenate((self.features, other.features)), return_inverse=True)
        sums, shares = (
            np.bincount(where, np.concatenate(pair), features.size)
            for pair in ((self.sums, other.sums), (self.shares, other.shares))
        )
        return Named(features, sums, shares)


TOO_MANY = Named(None, np.zeros(0), np.zeros(0))


@dataclasses.dataclass(frozen=True)
class Union:
    """A set of features, in ascending order."""

    features: np.ndarray

    def __add__(self, other: Union) -> Union:
        return Union(np.union1d(self.features, other.features))


@dataclasses.dataclass(frozen=True)
class CurvatureSums:
    """Sums over drawn rows with weights c: of c z_k z_l for pairs of atoms, of c z_k, and of c."""

    H: np.ndarray
    mixed: np.ndarray
    total: float

    def __add__(self, other: CurvatureSums) -> CurvatureSums:
        return CurvatureSums(self.H + other.H, self.mixed + other.mixed, self.total + other.total)

    def without_intercept(self) -> np.ndarray:
        """Return the curvature that is left after the minimum over the intercept: the Schur complement."""
        if self.total <= 0.0:
            return self.H
        left: np.ndarray = self.H - np.outer(self.mixed, self.mixed) / self.total
        return left


class Ask(Protocol):
    """A way to put a question to all parts of a pass."""

    def __call__(self, question: Callable[..., Any], *args: Any) -> Any:
        """Return the sum over all parts of ``question(part, *args)``."""


class OutsidePass:
    """A pass whose results are with the workers; see :class:`~condgrad.problems.rows.findings.Pass`.

    ``features`` are those whose entries of the gradient come with the first answer, in ascending order; None: all.

    Attributes
    ----------
    totals : Totals
    slope_total : float or None
        The derivative of the balance by the intercept, if the intercept of the pass was a guess.
    """

    def __init__(self, ask: Ask, n_samples: int, n_features: int, features: np.ndarray | None, is_guess: bool) -> None:
        self.ask, self.n_samples, self.n_features = ask, n_samples, n_features
        # where the entries of the sums are known
        self._features = np.arange(n_features) if features is None else features
        found: Outline = ask(outline, features)
        self.totals, self._entries = found.totals, found.entries
        self.slope_total = found.total if is_guess else None

    @property
    def knows_all(self) -> bool:
        """Whether all entries of the gradient are known here."""
        return self._features.size == self.n_features

    def vectors(self, step: float) -> np.ndarray:
        """Return r + step u."""
        if self.knows_all:
            return self._entries.along(step)
        found: Vectors = self.ask(vectors, step != 0.0)
        return found.along(step)

    def at(self, features: np.ndarray) -> Entries:
        """Return the entries of the sums on some features, by a question to the workers if they are not known."""
        new = np.setdiff1d(features, self._features)
        if new.size > 0:
            joined, asked = np.concatenate((self._features, new)), self.ask(entries_at, new)
            order = np.argsort(joined)
            self._features = joined[order]
            self._entries = self._entries.joined(asked, order)
        return self._entries.chosen(np.searchsorted(self._features, features))

    def slope_along(self, step: np.ndarray) -> tuple[float, float]:
        """Return how a step of w, and how a step of the intercept by one, change the balance.

        If the intercept of the pass was no guess, both are estimated from the drawn rows.
        """
        features = np.flatnonzero(step)
        if self.slope_total is None:
            sums: CurvatureSums = self.ask(curvature_sums, AtomStack(features, step[features]))
            return float(sums.mixed.sum()), sums.total
        u = self.at(features).u
        assert u is not None
        return float(u @ step[features]), self.slope_total

    def gradient(self, step: float, penalty: np.ndarray | None = None) -> GradientOfParts:
        """Return the gradient after a step of the intercept, to first order, plus that of a penalty."""
        return GradientOfParts(self, step, penalty)


class GradientOfParts(OutsideGradient):
    """The gradient r + step u + penalty for the sums r and u of a pass."""

    def __init__(self, found: OutsidePass, step: float, penalty: np.ndarray | None) -> None:
        self.found, self.step, self.penalty, self.size = found, step, penalty, found.n_features

    @property
    def is_known(self) -> bool:
        """Whether all entries are known here."""
        return self.found.knows_all

    def at(self, features: np.ndarray) -> np.ndarray:
        """Return the entries of these features."""
        r = self.found.at(features).along(self.step)
        return r if self.penalty is None else r + self.penalty[features]

    def whole(self) -> np.ndarray:
        """Return all entries."""
        r = self.found.vectors(self.step)
        return r if self.penalty is None else r + self.penalty

    def proposals(self, count: int) -> np.ndarray:
        """Return the features of the ``count`` largest entries of each part."""
        found: Union = self.found.ask(best_features, self.step, count)
        return found.features

    def candidates(self, tau: float) -> np.ndarray | None:
        """Return features among which are all with |entry| >= tau and without penalty; None if they are too many.

        A part that has not named a feature has less than its share of tau there.
        """
        named: Named = self.found.ask(named_above, self.step, tau, self.found.n_samples)
        if named.features is None:
            return None
        bounds = np.abs(named.sums) + tau * (1.0 - named.shares)
        features: np.ndarray = named.features[bounds >= (1.0 - _ROUNDING) * tau]
        return features


# Questions to a part --------------------------------------------------------------------------------------------------


def outline(part: PartOfPass, features: np.ndarray | None) -> Outline:
    """Return the sums of a part, and its entries on some features (None: on all)."""
    entries = part.entries() if features is None else entries_at(part, features)
    return Outline(part.totals, part.total, entries)


def entries_at(part: PartOfPass, features: np.ndarray) -> Entries:
    """Return the entries of a part on some features."""
    return Entries(part.r.at(features), None if part.u is None else part.u.at(features))


def named_above(part: PartOfPass, step: float, tau: float, n_samples: int) -> Named:
    """Return the features on which a part exceeds its share of the threshold, by its share of the samples."""
    share = part.n_samples / n_samples
    vector = part.along(step)
    chosen = np.flatnonzero(np.abs(vector.values) >= tau * share)
    if chosen.size > max(_FEWEST, _MOST_SHARE * vector.size):
        return TOO_MANY
    features = chosen if vector.places is None else vector.places[chosen].astype(np.int64)
    return Named(features, vector.values[chosen], np.full(chosen.size, share))


def best_features(part: PartOfPass, step: float, count: int) -> Union:
    """Return the features of the largest entries of a part."""
    vector = part.along(step)
    size = np.abs(vector.values)
    chosen = np.argpartition(-size, count)[:count] if count < size.size else np.arange(size.size)
    return Union(np.sort(chosen if vector.places is None else vector.places[chosen].astype(np.int64)))


def vectors(part: PartOfPass, has_step: bool) -> Vectors:
    """Return the gradient of a part, and with a step of the intercept its slope."""
    return Vectors(part.r, part.u if has_step else None)


def kept_rows(part: PartOfPass) -> Kept:
    """Return the rows that a part has drawn."""
    return part.kept


def curvature_sums(part: PartOfPass, atoms: AtomStack) -> CurvatureSums:
    """Return the sums over the rows that a part has drawn."""
    k, c = len(atoms), part.kept.c
    if c.size == 0:
        return CurvatureSums(np.zeros((k, k)), np.zeros(k), 0.0)
    matrix = part.kept.matrix
    H = matrix.gram(atoms.index, atoms.value, c)
    return CurvatureSums(H, atoms.inner_products(matrix.transpose_dot(c)), float(c.sum()))
