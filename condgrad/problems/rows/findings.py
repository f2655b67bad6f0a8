"""The results of tasks on blocks of samples; the results of two blocks can be added."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from condgrad.linalg.matrix import Matrix, stacked
from condgrad.problems.totals import Totals


@dataclasses.dataclass(frozen=True)
class Joined:
    """One number for each sample: an array for each block, in the order of the blocks."""

    blocks: tuple[np.ndarray, ...]

    def __add__(self, other: Joined) -> Joined:
        return Joined((*self.blocks, *other.blocks))

    @functools.cached_property
    def array(self) -> np.ndarray:
        """The numbers of all samples in one array."""
        return self.blocks[0] if len(self.blocks) == 1 else np.concatenate(self.blocks)


@dataclasses.dataclass(frozen=True)
class Kept:
    """Some rows of each block, drawn by their curvature, with the weights that make them stand for all.

    sum_i c_i x_i x_i' over the kept rows approximates sum_i d_i x_i x_i' over all samples.
    """

    blocks: tuple[Matrix, ...]
    weights: tuple[np.ndarray, ...]

    def __add__(self, other: Kept) -> Kept:
        return Kept((*self.blocks, *other.blocks), (*self.weights, *other.weights))

    @functools.cached_property
    def matrix(self) -> Matrix:
        """The kept rows."""
        return stacked(self.blocks)

    @functools.cached_property
    def c(self) -> np.ndarray:
        """The weights of the kept rows."""
        return np.concatenate(self.weights)


@dataclasses.dataclass(frozen=True)
class At:
    """The point of a pass that keeps no curvatures: those of a sample at this point stand for all."""

    w: np.ndarray
    b: float


@dataclasses.dataclass(frozen=True)
class InterceptSlope:
    """The derivatives by the intercept: ``u`` = sum_i d_i x_i of the gradient, ``total`` = sum_i d_i of the balance."""

    u: np.ndarray
    total: float

    def __add__(self, other: InterceptSlope) -> InterceptSlope:
        return InterceptSlope(self.u + other.u, self.total + other.total)


class GradientSums:
    """The sums of a gradient over chunks: block k of every chunk adds to array k, in the order of the chunks.

    A pass then has one array for each thread. An array for each chunk would take more time than the chunk itself where
    there are millions of features.
    """

    def __init__(self, n_features: int) -> None:
        self.n_features = n_features
        self._arrays: dict[int, np.ndarray] = {}

    def of_block(self, number: int) -> np.ndarray:
        """Return the array to which block ``number`` of a chunk adds its terms."""
        if number not in self._arrays:
            self._arrays[number] = np.zeros(self.n_features)
        return self._arrays[number]

    def are_finite(self) -> bool:
        """Return whether no entry is infinite or nan."""
        return all(map(is_finite, self._arrays.values()))

    def total(self) -> np.ndarray:
        """Return the gradient; the sums cannot be used after this."""
        first, *others = (self._arrays[number] for number in sorted(self._arrays))
        return functools.reduce(np.ndarray.__iadd__, others, first)


def is_finite(r: np.ndarray) -> bool:
    """Return whether no entry is infinite or nan; mostly their sum can answer, and it needs no second array."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(r.sum()) or np.isfinite(r).all())


@dataclasses.dataclass(frozen=True)
class FeatureCurvature:
    """The second derivatives of F by some features: sum_i d_i x_ij x_ik over some samples of every chunk, or over all.

    ``used`` is the sum of d_i over these samples, and ``total`` over all.
    """

    features: np.ndarray
    of_used: np.ndarray
    used: float
    total: float

    def __add__(self, other: FeatureCurvature) -> FeatureCurvature:
        of_used = self.of_used + other.of_used
        return FeatureCurvature(self.features, of_used, self.used + other.used, self.total + other.total)

    @property
    def H(self) -> np.ndarray:
        """The sum over all samples, or its estimate."""
        return self.of_used * (self.total / self.used) if self.used > 0.0 else self.of_used


@dataclasses.dataclass(frozen=True)
class Pass:
    """The results of a pass at w: sums over the samples, the gradient ``r``, and the curvatures of the samples.

    The curvatures are one number ``d_i`` for each sample in memory, or rows that were drawn by them, or the point at
    which those of a sample are to be computed. ``slope`` is there
    if the intercept of the pass was a guess, ``bends`` if second derivatives by some features were asked for. The
    gradient of a block that adds to :class:`GradientSums` is zero here.
    """

    totals: Totals
    r: np.ndarray
    d: Joined | Kept | At
    slope: InterceptSlope | None = None
    bends: FeatureCurvature | None = None

    @property
    def slope_total(self) -> float | None:
        """The derivative of the balance by the intercept, if the intercept of the pass was a guess."""
        return None if self.slope is None else self.slope.total

    def intercept_after(self, b: float, step: np.ndarray) -> float | None:
        """Return the best intercept after a step of w, by Newton's formula; None if the slopes by b are not known.

        At (w, b) the derivative by b is the balance; a step changes it by sum_i d_i x_i'step.
        """
        if self.slope is None or self.slope.total <= 0.0:
            return None
        return b - (self.totals.balance + float(self.slope.u @ step)) / self.slope.total

    def gradient(self, step: float, penalty: np.ndarray | None = None) -> np.ndarray:
        """Return the gradient after a step of the intercept, to first order, plus that of a penalty."""
        r = self.r if step == 0.0 or self.slope is None else self.r + step * self.slope.u
        return r if penalty is None else r + penalty

    def __add__(self, other: Pass) -> Pass:
        slope = None if self.slope is None or other.slope is None else self.slope + other.slope
        bends = None if self.bends is None or other.bends is None else self.bends + other.bends
        d = self.d + other.d  # type: ignore[operator]
        return Pass(self.totals + other.totals, self.r + other.r, d, slope, bends)


@dataclasses.dataclass(frozen=True)
class Measures:
    """The sizes of columns: ``squares`` = sum_i weight_i x_ij^2 for each, and the largest absolute entry of X."""

    squares: np.ndarray
    largest_entry: float

    def __add__(self, other: Measures) -> Measures:
        return Measures(self.squares + other.squares, max(self.largest_entry, other.largest_entry))
