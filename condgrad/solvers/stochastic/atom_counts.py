"""Sample sizes: the number of atoms that a step of the randomized solver draws, section 4.5 of Frandi et al. (2016).

A rule has a method ``size(n_atoms, n_active)``, for a set with ``n_atoms`` atoms (features, or groups of features) and
an iterate with ``n_active`` of them.
"""

from __future__ import annotations

import dataclasses
import math

from condgrad.linalg.convert import as_number

__all__ = ["HitRelevant", "Shrinking", "TopShare", "relevant_sample_size", "resolve", "top_sample_size"]


def top_sample_size(share: float, confidence: float) -> int:
    """Return the sample size that contains one of the best ``share`` of all atoms with probability ``confidence``.

    It does not depend on the number of atoms: by theorem 1 none of kappa random atoms is in the best share with
    probability at most (1 - share)^kappa.

    Examples
    --------
    >>> top_sample_size(0.02, 0.98)
    194
    """
    share, confidence = _chance(share, "share"), _chance(confidence, "confidence")
    return math.ceil(math.log1p(-confidence) / math.log1p(-share))


def relevant_sample_size(n_atoms: int, n_relevant: float, confidence: float, *, approximate: bool = False) -> int:
    """Return the sample size that contains one of ``n_relevant`` of ``n_atoms`` atoms with probability ``confidence``.

    This is equation (12), ln(1 - confidence) / ln(1 - n_relevant / n_atoms), or with ``approximate`` its limit (13) for
    few relevant atoms, -ln(1 - confidence) n_atoms / n_relevant, which is larger; never more than all atoms.

    Examples
    --------
    >>> relevant_sample_size(10_000, 124, 0.99), relevant_sample_size(10_000, 124, 0.99, approximate=True)
    (370, 372)
    """
    n_atoms = int(as_number(n_atoms, "n_atoms", low=1, what="a number of at least 1"))
    n_relevant = as_number(n_relevant, "n_relevant", low=1, what="a number of at least 1")
    share, miss = n_relevant / n_atoms, math.log1p(-_chance(confidence, "confidence"))
    if share >= 1.0:
        return 1
    return min(n_atoms, math.ceil(miss / (-share if approximate else math.log1p(-share))))


@dataclasses.dataclass(frozen=True)
class TopShare:
    """Theorem 1: enough atoms to contain one of the best ``share`` with probability ``confidence``, for any set size.

    Examples
    --------
    >>> TopShare().size(4_272_227, 0), TopShare(share=0.01).size(100, 0)
    (194, 100)
    """

    share: float = 0.02
    confidence: float = 0.98

    def __post_init__(self) -> None:
        top_sample_size(self.share, self.confidence)

    def size(self, n_atoms: int, n_active: int) -> int:
        """Return the sample size, at most all atoms."""
        return min(n_atoms, top_sample_size(self.share, self.confidence))


@dataclasses.dataclass(frozen=True)
class HitRelevant:
    """Equation (12), or with ``approximate`` (13): enough atoms to contain one of ``n_relevant`` with ``confidence``.

    Examples
    --------
    >>> HitRelevant(n_relevant=124, approximate=True).size(10_000, 0)
    372
    """

    n_relevant: float
    confidence: float = 0.99
    approximate: bool = False

    def __post_init__(self) -> None:
        relevant_sample_size(1, self.n_relevant, self.confidence)

    def size(self, n_atoms: int, n_active: int) -> int:
        """Return the sample size."""
        return relevant_sample_size(n_atoms, self.n_relevant, self.confidence, approximate=self.approximate)


@dataclasses.dataclass(frozen=True)
class Shrinking:
    """Equation (12) with the atoms of the iterate as the relevant ones: large samples at first, small ones later.

    The paper describes it in words (end of section 4.5). ``largest``, a share of all atoms, bounds the first samples.

    Examples
    --------
    >>> [Shrinking().size(10_000, n_active) for n_active in (0, 20, 200)]
    [10000, 1955, 194]
    """

    confidence: float = 0.98
    largest: float = 1.0

    def __post_init__(self) -> None:
        _chance(self.confidence, "confidence")
        if not 0.0 < as_number(self.largest, "largest", low=0.0, what="a share in (0, 1]") <= 1.0:
            raise ValueError(f"largest must be a share in (0, 1]; got {self.largest!r}.")

    def size(self, n_atoms: int, n_active: int) -> int:
        """Return the sample size."""
        most = max(1, int(self.largest * n_atoms + 1e-9))
        return min(most, relevant_sample_size(n_atoms, max(1, n_active), self.confidence))


def resolve(sample_size: object, n_atoms: int, n_active: int = 0) -> int:
    """Return the sample size for a number of atoms, a share of them in (0, 1), or a rule of this module."""
    if hasattr(sample_size, "size") and callable(sample_size.size):
        return int(sample_size.size(n_atoms, n_active))
    what = "a whole number of at least 1, a share in (0, 1) or a rule of condgrad.sample_sizes"
    number = as_number(sample_size, "sample_size", low=math.nextafter(0.0, 1.0), what=what)
    if number < 1.0:
        return max(1, math.ceil(number * n_atoms - 1e-9))
    if number != int(number):
        raise ValueError(f"sample_size must be {what}; got {sample_size!r}.")
    if number > n_atoms:
        raise ValueError(f"sample_size is {sample_size}, but there are only {n_atoms} atoms; use at most {n_atoms}.")
    return int(number)


def _chance(value: float, name: str) -> float:
    if not 0.0 < as_number(value, name, low=0.0, what="a number in (0, 1)") < 1.0:
        raise ValueError(f"{name} must be a number in (0, 1); got {value!r}.")
    return float(value)
