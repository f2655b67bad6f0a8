"""The results of tasks on blocks of samples; the results of two blocks can be added."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from condgrad.problems.samples import Totals


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
class Pass:
    """The results of a pass at w: sums over the samples, the gradient ``r``, the curvatures ``d`` of the samples."""

    totals: Totals
    r: np.ndarray
    d: Joined

    def __add__(self, other: Pass) -> Pass:
        return Pass(self.totals + other.totals, self.r + other.r, self.d + other.d)


@dataclasses.dataclass(frozen=True)
class Measures:
    """The sizes of columns: ``squares`` = sum_i weight_i x_ij^2 for each, and the largest absolute entry of X."""

    squares: np.ndarray
    largest_entry: float

    def __add__(self, other: Measures) -> Measures:
        return Measures(self.squares + other.squares, max(self.largest_entry, other.largest_entry))
