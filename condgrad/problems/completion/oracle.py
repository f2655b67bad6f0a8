"""Answer: the result of the oracle of a nuclear-norm ball, a vertex and the Krylov space in which it was found."""

from __future__ import annotations

from typing import NamedTuple

from condgrad.linalg.factored import RankOne
from condgrad.linalg.lanczos import Lanczos


class Answer(NamedTuple):
    """The result of the oracle: its Krylov space, the best vertex, and the gap including the oracle's own error."""

    lanczos: Lanczos
    vertex: RankOne
    gap: float
