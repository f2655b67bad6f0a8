"""Archives of NumPy and SciPy: X and y, or a matrix of scipy.sparse.save_npz and y, unpacked a few rows at a time."""

from __future__ import annotations

import contextlib
import pathlib
import zipfile
import zlib
from collections.abc import Generator, Iterator
from typing import Any

import numpy as np
import scipy.sparse

from condgrad.linalg.convert import as_vector
from condgrad.storage.array_files import read_header
from condgrad.storage.sources.arrays import Arrays
from condgrad.storage.sources.base import BATCH_BYTES, Batch, Place, Source
from condgrad.storage.sources.text import file_identity

_OF_SPARSE = {"format", "shape", "data"}  # members of every file of scipy.sparse


def npz_source(path: pathlib.Path) -> Source:
    """Return the samples of an archive; X in Fortran order, or in another format than CSR, is read as a whole."""
    identity = {**file_identity(path), "format": "npz"}
    with _explained(path), np.load(path, allow_pickle=False) as file:
        of_samples: dict[str, Any] = {
            role: file[role] if role in file.files else None for role in ("y", "weight", "offset")
        }
        names = file["feature_names"].tolist() if "feature_names" in file.files else None
        is_sparse = set(file.files) >= _OF_SPARSE
        if not is_sparse and "X" not in file.files:
            found = ", ".join(sorted(file.files)) or "nothing"
            raise ValueError(f"it must hold an array X, or a matrix of scipy.sparse.save_npz; it holds {found}")
        if is_sparse and file["format"].item() in (b"csr", "csr"):
            source: NpzRows | Arrays = NpzRows(path, file["indptr"], int(file["shape"][1]), of_samples, identity)
        elif is_sparse:
            source = Arrays(scipy.sparse.load_npz(path), **of_samples, name=path.name, identity=identity)
        elif _is_by_rows(path):
            source = NpzRows(path, None, 0, of_samples, identity)
        else:
            source = Arrays(file["X"], **of_samples, name=path.name, identity=identity)
    if names is not None:
        width = source.width if isinstance(source, NpzRows) else source.X.shape[1]
        if np.shape(names) != (width,):
            raise ValueError(f"{path.name} must name its {width} features; feature_names has shape {np.shape(names)}.")
        source.feature_names = list(map(str, names))
    return source


class NpzRows(Source):
    """The rows of an array in C order, or of a CSR matrix, in an archive; ``indptr`` is None for an array."""

    def __init__(
        self, path: pathlib.Path, indptr: np.ndarray | None, width: int, of_samples: dict[str, Any],
        identity: dict[str, Any],
    ) -> None:  # fmt: skip
        self._path, self._indptr, self.name, self.identity = path, indptr, path.name, identity
        if indptr is None:
            with _members(path, "X") as (X,):
                self._n, self.width = X.shape
                row_bytes = X.row_bytes
        else:
            self._n, self.width = indptr.size - 1, width
            row_bytes = 12 * int(indptr[-1]) // max(1, self._n)
        self._step = max(1, BATCH_BYTES // max(1, row_bytes))
        self._numbers = [None if part is None else as_vector(part, role, self._n) for role, part in of_samples.items()]

    def batches(self, place: Place | None = None) -> Generator[Batch, None, None]:
        """Yield some rows at a time."""
        first = 0 if place is None else place[0]
        with _explained(self._path):
            for start, X in self._rows(first):
                rows = slice(start, start + X.shape[0])
                y, weight, offset = (None if part is None else part[rows] for part in self._numbers)
                yield Batch(X, y, weight, (start,), offset)

    def _rows(self, first: int) -> Iterator[tuple[int, Any]]:
        starts = range(first, self._n, self._step)
        if self._indptr is None:
            with _members(self._path, "X") as (X,):
                X.skip(first)
                for start in starts:
                    yield start, X.next(min(self._step, self._n - start))
            return
        with _members(self._path, "data", "indices") as (data, indices):
            for member in (data, indices):
                member.skip(int(self._indptr[first]))
            for start in starts:
                ends = self._indptr[start : start + self._step + 1].astype(np.int64)
                n_stored = int(ends[-1] - ends[0])
                parts = (data.next(n_stored), indices.next(n_stored), ends - ends[0])
                yield start, scipy.sparse.csr_matrix(parts, shape=(ends.size - 1, self.width))

    def share(self, place: Place) -> float:
        """Return which share of the rows lies before a place."""
        return place[0] / self._n


class _Member:
    """An array of an archive, read from its first entry on."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.shape, _, self.dtype = read_header(file)
        self.row_bytes = self.dtype.itemsize * int(np.prod(self.shape[1:], dtype=np.int64))

    def skip(self, n: int) -> None:
        """Leave out the next n entries along the first axis."""
        self._file.seek(n * self.row_bytes, 1)

    def next(self, n: int) -> np.ndarray:
        """Return the next n entries along the first axis."""
        content = self._file.read(n * self.row_bytes)
        if len(content) < n * self.row_bytes:
            raise ValueError("an array is incomplete")
        return np.frombuffer(content, self.dtype).reshape(n, *self.shape[1:])


@contextlib.contextmanager
def _members(path: pathlib.Path, *names: str) -> Iterator[list[_Member]]:
    with contextlib.ExitStack() as stack:
        archive = stack.enter_context(zipfile.ZipFile(path))
        yield [_Member(stack.enter_context(archive.open(f"{name}.npy"))) for name in names]


def _is_by_rows(path: pathlib.Path) -> bool:
    with zipfile.ZipFile(path) as archive, archive.open("X.npy") as member:
        shape, is_fortran, _ = read_header(member)
    return len(shape) == 2 and not is_fortran


@contextlib.contextmanager
def _explained(path: pathlib.Path) -> Iterator[None]:
    """Turn the errors of damaged archives into one sentence that names the file."""
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{path.name} could not be read as an .npz file: {str(error).rstrip('.')}.") from None
