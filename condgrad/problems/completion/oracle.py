"""What the oracle of a nuclear-norm ball answers: a vertex, and the Krylov space in which it was found."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.linalg.factored import Factored
from condgrad.linalg.lanczos import Lanczos


class RankOne(NamedTuple):
    """The vertex -radius u v' of the ball, and by how much a better one could be better for the gradient it answers.

    ``u`` and ``v`` are unit vectors in the coordinates of the plain ball.
    """

    u: np.ndarray
    v: np.ndarray
    radius: float
    error: float

    def as_factored(self) -> Factored:
        """Return the vertex as a matrix."""
        return Factored(-self.u[:, None], np.array([self.radius]), self.v[:, None])


class Answer(NamedTuple):
    """What the oracle found: its Krylov space, the best vertex, and the gap, the oracle's own error included."""

    lanczos: Lanczos
    vertex: RankOne
    gap: float
