"""What the oracle of a nuclear-norm ball answers: a vertex, and the Krylov space in which it was found."""

from __future__ import annotations

from typing import NamedTuple

from condgrad.linalg.factored import RankOne
from condgrad.linalg.lanczos import Lanczos


class Answer(NamedTuple):
    """What the oracle found: its Krylov space, the best vertex, and the gap, the oracle's own error included."""

    lanczos: Lanczos
    vertex: RankOne
    gap: float
