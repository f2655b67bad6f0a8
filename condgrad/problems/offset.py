"""The offsets o_i of the samples: known numbers that are added to their predictions, so that losses are f(x_i'w + o_i).

The exposure of a count is the usual example: the mean is exposure_i exp(x_i'w), so o_i is its logarithm. Only
:class:`~condgrad.problems.samples.Samples` adds offsets. Everywhere else a prediction p is x_i'w + b, linear in w.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from condgrad.compiled import compiled
from condgrad.linalg import convert
from condgrad.linalg.rounding import UNIT

EVERY = slice(None)  # the places of all samples


@compiled
class NoOffset(NamedTuple):
    """No offsets: kernels that are compiled for this class add nothing."""

    def added_to(self, i, p):
        """Return p itself."""
        return p

    def chosen(self, places: Any) -> NoOffset:
        """Return the offsets of some samples: none."""
        return self

    def definition(self) -> tuple[object, ...]:
        """Return nothing, so that hashes are those of versions without offsets."""
        return ()

    def to_array(self) -> np.ndarray | None:
        """Return None."""
        return None

    def largest_size(self) -> float:
        """Return 0."""
        return 0.0

    def rounding(self, size: float) -> float:
        """Return 0: nothing is added."""
        return 0.0


@compiled
class Offset(NamedTuple):
    """One number for each sample, and a bound of their sizes."""

    values: np.ndarray
    largest: float

    def added_to(self, i, p):
        """Return p + o_i; outside of kernels ``i`` may be many places, and ``p`` an array."""
        return p + self.values[i]

    def chosen(self, places: Any) -> Offset:
        """Return the offsets of the samples at these places."""
        return Offset(np.ascontiguousarray(self.values[places]), self.largest)

    def definition(self) -> tuple[object, ...]:
        """Return what identifies the offsets."""
        return (self.values,)

    def to_array(self) -> np.ndarray | None:
        """Return the numbers."""
        return self.values

    def largest_size(self) -> float:
        """Return an upper bound of their sizes."""
        return self.largest

    def rounding(self, size: float) -> float:
        """Return a bound of the error of p + o_i in floating point, for a p or a sum of at most this size."""
        return 2.0 * UNIT * (size + self.largest)


Offsets: TypeAlias = NoOffset | Offset


def as_offset(offset: ArrayLike | None, n_samples: int) -> Offsets:
    """Return the offsets that a user gave, checked."""
    if offset is None:
        return NoOffset()
    values = convert.as_vector(offset, "offset", n_samples)
    return Offset(values, float(np.abs(values).max(initial=0.0)))
