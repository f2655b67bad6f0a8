"""OutsideRows: samples that stay where they are, on a disk or with the workers of a cluster."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from condgrad.linalg.matrix import Matrix


class OutsideRows(abc.ABC):
    """Samples outside the memory of this process; estimators, models and problems take them in place of X.

    Attributes
    ----------
    shape : (int, int)
        Samples and features.
    n_chunks : int
        The number of chunks of consecutive samples.
    """

    shape: tuple[int, int]
    n_chunks: int

    @property
    @abc.abstractmethod
    def y(self) -> np.ndarray | None:
        """The targets in float64, or None if there are none."""

    @property
    @abc.abstractmethod
    def weight(self) -> np.ndarray | None:
        """The weights of the samples as they were given, or None."""

    @property
    @abc.abstractmethod
    def offset(self) -> np.ndarray | None:
        """The offsets of the samples, which are added to their predictions, or None."""

    @property
    @abc.abstractmethod
    def feature_names(self) -> list[str] | None:
        """The names of the features, if the source had names."""

    @property
    @abc.abstractmethod
    def n_reads(self) -> float:
        """How often all rows have been read so far; the heads of chunks, which are small, do not count."""

    @abc.abstractmethod
    def sample(self, share: float) -> tuple[Matrix, np.ndarray]:
        """Return this share of the rows in memory, the first ones of every chunk, and their places among all."""

    @abc.abstractmethod
    def dot_each(self, W: np.ndarray) -> np.ndarray:
        """Return X w_c for every row w_c of W, in one read: an array of shape (k, n_samples)."""

    def __getitem__(self, key: object) -> NoReturn:
        """Raise TypeError: scikit-learn's splitters index X, and single rows cannot be fetched from here."""
        raise TypeError(
            f"{self!r} cannot be indexed: scikit-learn's splits and cross-validation need X in memory. Use a CV "
            "estimator of condgrad, which takes such rows, or a sample in memory: rows.head(n_rows)."
        )

    def check_names(self, names: Sequence[str] | None) -> None:
        """Raise ValueError if the features have other names, or another order, than those of a model."""
        own = self.feature_names
        if names is None or own is None or list(map(str, names)) == own:
            return
        where = next((j for j, pair in enumerate(zip(names, own, strict=False)) if pair[0] != pair[1]), len(own))
        expected, found = (repr(str(part[where])) if where < len(part) else "nothing" for part in (names, own))
        raise ValueError(
            f"the features must be those of the model, in the same order: feature {where} is {found} instead of "
            f"{expected}. Convert the data with the columns of the training data (like=...)."
        )

    def sample_within(self, n_bytes: float) -> tuple[Matrix, np.ndarray]:
        """Return as many rows as fit into ``n_bytes`` of memory, the first ones of every chunk, and their places."""
        few = self.sample(self.n_chunks / self.shape[0])[0]  # about one row of each chunk, which tells their size
        return self.sample(min(1.0, n_bytes / max(8 * few.shape[0], few.n_bytes) * few.shape[0] / self.shape[0]))

    def head(self, n_rows: int) -> tuple[Any, ...]:
        """Return about ``n_rows`` samples in memory, the first ones of every chunk: X, y and the weights.

        If the samples have offsets, these come fourth. Of shuffled rows this is a random sample, on which models can be
        tried.
        """
        matrix, at = self.sample(min(1.0, n_rows / self.shape[0]))
        y, weight, offset = (None if values is None else values[at] for values in (self.y, self.weight, self.offset))
        return (matrix.X, y, weight) if offset is None else (matrix.X, y, weight, offset)


def refuse_outside(X: object, who: str) -> None:
    """Raise TypeError if X is not in memory."""
    if isinstance(X, OutsideRows):
        raise TypeError(
            f"{who} needs X in memory; got {X!r}. Fit single radii with condgrad.minimize or an estimator, or use a "
            "sample: X, y, weight = rows.head(n_rows)."
        )
