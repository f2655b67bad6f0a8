"""RowBatch: checked samples in memory, as the arrays that the files of a chunk hold."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse

from condgrad.storage.array_files import ArrayFile, Buffer

SPARSE = ("data", "indices", "indptr")  # roles of the files of sparse rows


@dataclasses.dataclass(frozen=True)
class RowBatch:
    """Samples in memory.

    Attributes
    ----------
    of_samples : dict of arrays
        The arrays that have one entry or row for each sample, by role.
    X : CSR matrix or None
        The rows of sparse data.
    """

    of_samples: dict[str, np.ndarray]
    X: Any = None

    @classmethod
    def joined(cls, batches: Sequence[RowBatch]) -> RowBatch:
        """Return the samples of all batches, one after the other."""
        arrays = {role: np.concatenate([b.of_samples[role] for b in batches]) for role in batches[0].of_samples}
        return cls(arrays, None if batches[0].X is None else _stacked([batch.X for batch in batches]))

    @classmethod
    def read(cls, files: dict[str, ArrayFile], start: int, stop: int, *, check: bool = False) -> RowBatch:
        """Return the samples from ``start`` to ``stop`` of a chunk; ``check`` compares checksums of whole files."""

        def read(role: str, begin: int, end: int) -> np.ndarray:
            return files[role].read(Buffer(), begin, end, check=check)

        arrays = {role: read(role, start, stop) for role in files if role not in SPARSE}
        if "indptr" not in files:
            return cls(arrays)
        indptr = read("indptr", start, stop + 1)
        data, indices = (read(role, int(indptr[0]), int(indptr[-1])) for role in SPARSE[:2])
        return cls(arrays, _csr(data, indices, indptr - indptr[0]))

    def __len__(self) -> int:
        arrays = [*self.of_samples.values(), self.X]
        return int(arrays[0].shape[0])

    @property
    def n_bytes(self) -> int:
        """The number of bytes of all arrays; those of two batches add up."""
        return int(self._bytes_until(len(self)))

    def rows_of_bytes(self, n_bytes: int) -> int:
        """Return how many samples from the first one on have at least ``n_bytes``."""
        if self.X is None:
            return min(len(self), -(-n_bytes // self.n_bytes_of_row))
        return min(len(self), 1 + int(np.searchsorted(self._bytes_until(np.arange(1, len(self) + 1)), n_bytes)))

    @property
    def n_bytes_of_row(self) -> int:
        """The number of bytes of a sample, without the entries of sparse rows."""
        dense = sum(part.itemsize * int(np.prod(part.shape[1:])) for part in self.of_samples.values())
        return dense if self.X is None else dense + 8

    def _bytes_until(self, rows: Any) -> Any:
        """Return the number of bytes of the first samples."""
        entries = 0 if self.X is None else self.X.indptr[rows].astype(np.int64) * (self.X.data.itemsize + 4)
        return rows * self.n_bytes_of_row + entries

    def part(self, rows: slice) -> RowBatch:
        """Return some of the samples, without a copy of their entries."""
        arrays = {role: part[rows] for role, part in self.of_samples.items()}
        return RowBatch(arrays, None if self.X is None else _cut(self.X, rows))

    def shuffled(self, random: np.random.Generator) -> RowBatch:
        """Return the samples in random order."""
        order = random.permutation(len(self))
        arrays = {role: part.take(order, axis=0) for role, part in self.of_samples.items()}
        return RowBatch(arrays, None if self.X is None else self.X[order])

    def files(self) -> dict[str, np.ndarray]:
        """Return the arrays of the files of a chunk, by role."""
        if self.X is None:
            return self.of_samples
        indices = self.X.indices.astype(np.int32 if self.X.shape[1] <= 2**31 else np.int64, copy=False)
        return {"data": self.X.data, "indices": indices, "indptr": self.X.indptr.astype(np.int64), **self.of_samples}


def _stacked(matrices: Sequence[Any]) -> Any:
    """Return the rows of all matrices, which may differ in width."""
    ends = np.cumsum([0, *(matrix.nnz for matrix in matrices)])
    indptr = [matrix.indptr[1:].astype(np.int64) + end for matrix, end in zip(matrices, ends)]
    data, indices = (np.concatenate([getattr(matrix, name) for matrix in matrices]) for name in SPARSE[:2])
    return _csr(data, indices, np.concatenate([[0], *indptr]))


def _cut(X: Any, rows: slice) -> Any:
    """Return some rows of a CSR matrix, which share its memory."""
    start, stop, _ = rows.indices(X.shape[0])
    first, last = X.indptr[start], X.indptr[stop]
    parts = (X.data[first:last], X.indices[first:last], X.indptr[start : stop + 1] - first)
    return scipy.sparse.csr_matrix(parts, shape=(stop - start, X.shape[1]))


def _csr(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray) -> Any:
    width = int(indices.max(initial=0)) + 1
    return scipy.sparse.csr_matrix((data, indices, indptr), shape=(indptr.size - 1, width))
