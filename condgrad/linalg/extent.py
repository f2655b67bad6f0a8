"""Extent: the largest absolute value of many numbers, and whether all of them are 1, in one look at them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.compiled import kernel

_MANY = 50_000  # numbers from which on a second look at them costs more than the call of a kernel


class Extent(NamedTuple):
    """What the checks of data find out about their entries.

    Attributes
    ----------
    largest : float
        The largest absolute value, 0 of no numbers; it is not finite if one of them is not.
    is_one : bool
        Whether every number is 1.

    Examples
    --------
    >>> Extent.of(np.array([1.0, -2.0]))
    Extent(largest=2.0, is_one=False)
    """

    largest: float
    is_one: bool

    @classmethod
    def of(cls, values: np.ndarray) -> Extent:
        """Return the extent of an array of float32 or float64."""
        if values.size < _MANY:
            low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 0.0)
            return cls(max(-low, high, 0.0), low == high == 1.0)
        # Without its sign bit a float has the order of its bits, and nan comes last.
        kind = np.uint64 if values.dtype == np.float64 else np.uint32
        bits = values.ravel(order="K").view(kind)
        largest, others = _scan(bits, kind(np.iinfo(kind).max >> 1))
        size = float(np.array(largest, kind).view(values.dtype))
        return cls(size, bool(others == 0) and float(values.flat[0]) == 1.0)


@kernel
def _scan(bits, mask):
    """Return the largest number of the bits in the mask, and the bits that are not alike in all numbers."""
    largest = others = mask ^ mask
    for i in range(bits.shape[0]):
        largest = max(largest, bits[i] & mask)
        others |= bits[i] ^ bits[0]
    return largest, others
