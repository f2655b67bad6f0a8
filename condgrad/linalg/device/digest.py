"""A digest of arrays on a device, computed there: data need not come to the host to be recognised."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from condgrad.linalg.device.base import Device, DeviceArray

_PIECE = 2**24  # numbers that are mixed at a time
_STEP = 0x9E3779B97F4A7C15  # the places of the numbers are spread by this step, and mixed by the next two factors
_FIRST, _SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def digest(device: Device, arrays: Sequence[DeviceArray]) -> tuple[int, ...]:
    """Return one number for each array: the sum of a mixture of every entry's bits and its place, modulo 2^64.

    Sums of integers do not depend on their order, so equal arrays have equal digests on every device.
    """
    return tuple(_digest(device, array) for array in arrays)


def _digest(device: Device, array: DeviceArray) -> int:
    xp, total = device.xp, 0
    bits = array.ravel().view({2: np.uint16, 4: np.uint32, 8: np.uint64}[array.dtype.itemsize])
    for top in range(0, bits.size, _PIECE):
        x = bits[top : top + _PIECE].astype(np.uint64)
        x += (xp.arange(top, top + x.size, dtype=np.uint64) + np.uint64(1)) * np.uint64(_STEP)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(_FIRST)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(_SECOND)
        total += int((x ^ (x >> np.uint64(31))).sum(dtype=np.uint64))
    return total % 2**64
