"""Points of a sphere over a few features."""

from __future__ import annotations

import numpy as np

from condgrad.compiled import kernel
from condgrad.linalg.vectors import inner


@kernel
def stretch(values, length):
    """Scale ``values`` to the Euclidean norm |length|, with opposite signs if ``length`` is negative.

    Zeros become |length| e_0: all directions are equally good then.
    """
    largest = 0.0
    for k in range(values.shape[0]):
        largest = max(largest, abs(values[k]))
    if largest == 0.0:
        values[0] = abs(length)
        return
    for k in range(values.shape[0]):
        values[k] /= largest  # squares of these neither overflow nor vanish
    factor = length / np.sqrt(inner(values, values))
    for k in range(values.shape[0]):
        values[k] *= factor
