"""Stretch: several points of a path as arrays, which become single points only where somebody asks for one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar, overload

import numpy as np

P = TypeVar("P", bound=tuple[Any, ...])  # a point: a named tuple of features, their coefficients, and numbers alone


class Stretch(Sequence[P]):
    """Points as a sequence, without an object for every point.

    Parameters
    ----------
    kind : type
        What a point is: a named tuple of its features, their coefficients, and then numbers alone.
    sizes : array of shape (n_points,)
        How many features each point has.
    features, coefficients : arrays of shape (sizes.sum(),)
        Those of all points, one point after the other; the features of a point ascend.
    numbers : array of shape (number of other fields, n_points)
    """

    def __init__(
        self, kind: type[P], sizes: np.ndarray, features: np.ndarray, coefficients: np.ndarray, numbers: np.ndarray
    ) -> None:
        self.kind: Any = kind
        self.sizes, self.numbers = sizes, numbers
        self.features, self.coefficients = features, coefficients

    @classmethod
    def of(cls, kind: type[P], points: Sequence[P]) -> Stretch[P]:
        """Return some points, one at least, as arrays."""
        if isinstance(points, Stretch):
            return points
        parts, of_parts, *numbers = zip(*points, strict=True)
        sizes = np.array([part.size for part in parts], np.int64)
        features, coefficients = np.concatenate(parts), np.concatenate(of_parts)
        if features.size > 1:
            order = np.lexsort((features, np.repeat(np.arange(sizes.size), sizes)))
            features, coefficients = features[order], coefficients[order]
        return cls(kind, sizes, features, coefficients, np.array(numbers, np.float64))

    @classmethod
    def joined(cls, stretches: Sequence[Stretch[P]]) -> Stretch[P]:
        """Return the points of some stretches, one at least."""
        if len(stretches) == 1:
            return stretches[0]
        return cls(
            stretches[0].kind,
            np.concatenate([each.sizes for each in stretches]),
            np.concatenate([each.features for each in stretches]),
            np.concatenate([each.coefficients for each in stretches]),
            np.concatenate([each.numbers for each in stretches], axis=1),
        )

    def __len__(self) -> int:
        return int(self.sizes.size)

    @overload
    def __getitem__(self, k: int) -> P: ...

    @overload
    def __getitem__(self, k: slice) -> Stretch[P]: ...

    def __getitem__(self, k: int | slice) -> P | Stretch[P]:
        if isinstance(k, slice):
            return self.taken(np.arange(len(self))[k])
        size, end = int(self.sizes[k]), int(self.sizes[: k % len(self) + 1].sum())
        mine = slice(end - size, end)
        point: P = self.kind(self.features[mine], self.coefficients[mine], *self.numbers[:, k].tolist())
        return point

    def taken(self, places: np.ndarray) -> Stretch[P]:
        """Return the points at some places."""
        sizes = self.sizes[places]
        ahead = (np.cumsum(self.sizes) - self.sizes)[places] - (np.cumsum(sizes) - sizes)
        of_entries = np.arange(sizes.sum()) + np.repeat(ahead, sizes)
        return Stretch(
            self.kind, sizes, self.features[of_entries], self.coefficients[of_entries], self.numbers[:, places]
        )

    def column(self, name: str) -> np.ndarray:
        """Return one of the numbers of all points."""
        place: int = self.kind._fields.index(name) - 2
        return self.numbers[place]
