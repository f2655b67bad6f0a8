"""Features on disk, column by column, for paths on data that are larger than memory.

:func:`open` reads an .npy file in Fortran order where it lies, and folders that :func:`convert` wrote:

>>> import numpy as np, tempfile
>>> import condgrad as cg
>>> X, y = np.array([[1.0, 0.0], [0.0, 1.0]]), [3.0, 1.0]
>>> with tempfile.TemporaryDirectory() as folder:
...     columns = cg.columns.convert(X, folder, y=y)
...     radii, coefs, info = cg.lasso_path(columns, columns.y, radii=[1.0, 3.0])
>>> coefs.toarray()
array([[1. , 2.5],
       [0. , 0.5]])
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TypeGuard

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from condgrad.linalg.convert import as_targets
from condgrad.linalg.matrix import Matrix
from condgrad.storage import manifest as manifests
from condgrad.storage.array_files import write_array
from condgrad.storage.column_files import ColumnFile
from condgrad.storage.manifest import Chunk, FileEntry, Manifest
from condgrad.storage.stored_columns import StoredColumns, extremes_of
from condgrad.storage.whole_files import sync_folder, write_whole

__all__ = ["StoredColumns", "convert", "open"]

_CHUNK = 2**25  # bytes of a file of columns
_BAND = 2**28  # bytes of the columns that are taken from the source at once


def open(source: str | os.PathLike[str] | np.memmap, y: ArrayLike | None = None) -> StoredColumns:
    """Return columns on disk, to be passed to :func:`condgrad.lasso_path` in place of X.

    No column is read yet.

    Parameters
    ----------
    source : path or numpy memmap
        A folder that :func:`convert` wrote; an .npy file of a float32 or float64 array in Fortran order (as
        ``np.save(path, np.asfortranarray(X))`` writes it); or a memory map in Fortran order, of any file: then the file
        is read, not the map.
    y : array of shape (n_samples,), optional
        The targets, kept as ``columns.y``; a folder may have its own.
    """
    if isinstance(source, np.memmap):
        columns = StoredColumns.of_file(ColumnFile.of_memmap(source))
    else:
        path = Path(source)
        columns = StoredColumns.of_file(ColumnFile.of_npy(path)) if path.is_file() else StoredColumns.of_folder(path)
    if 0 in columns.shape:
        raise ValueError(f"{str(columns.path)!r} must have samples and features; it has the shape {columns.shape}.")
    if y is not None:
        columns.y = as_targets(y, columns.shape[0])
    return columns


def takes_more_than_memory(X: object) -> TypeGuard[np.memmap]:
    """Tell whether X is a memory map of columns that memory cannot hold beside other data."""
    if not (isinstance(X, np.memmap) and X.flags.f_contiguous and X.ndim == 2 and X.dtype in (np.float32, np.float64)):
        return False
    if os.name != "posix" or X.filename is None or X.mode == "c" or not X.dtype.isnative:
        return False
    return X.nbytes > os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def convert(
    source: ArrayLike | str | os.PathLike[str], folder: str | os.PathLike[str], *, y: ArrayLike | None = None
) -> StoredColumns:
    """Write a dense array into a folder column by column, with checksums, and return its columns.

    Parameters
    ----------
    source : array, memory map, or path of an .npy file
        X of shape (n_samples, n_features), in any order; it is read in bands of columns, 256 MB at a time.
    folder : path
        Is made if it does not exist. It holds data once its manifest is there, which is written last.
    y : array of shape (n_samples,), optional
    """
    X = _as_array(source)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / manifests.NAME).exists():
        raise FileExistsError(f"{str(folder)!r} holds converted data already; give another folder, or delete it first.")
    n_samples, n_features = X.shape
    shared = {} if y is None else {"y": write_array(folder, "y.npy", as_targets(y, n_samples))}
    chunks = tuple(Chunk(entry.shape[0], {"X": entry}) for entry in _write_chunks(X, folder))
    sync_folder(folder)
    content = Manifest("columns", "dense", (n_samples, n_features), chunks, shared)
    write_whole(folder / manifests.NAME, [content.to_json().encode()])
    return open(folder)


def _as_array(source: ArrayLike | str | os.PathLike[str]) -> np.ndarray:
    if isinstance(source, (str, os.PathLike)):
        source = np.load(source, mmap_mode="r")
    if scipy.sparse.issparse(source):
        raise ValueError(
            "columns on disk must be dense; got a sparse matrix. Pass it to lasso_path as it is, in memory."
        )
    X = np.asarray(source)
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"X must have two dimensions (samples, features), and both; got shape {X.shape}.")
    if X.dtype.kind not in "fiub":
        raise ValueError(f"X must be an array of numbers; got dtype {X.dtype}.")
    return X


def _write_chunks(X: np.ndarray, folder: Path) -> Iterator[FileEntry]:
    """Write all columns, some to a file, and yield the entries of the files."""
    dtype = X.dtype.newbyteorder("=") if X.dtype in (np.float32, np.float64) else np.dtype(np.float64)
    column_bytes = X.shape[0] * dtype.itemsize
    height = max(1, _CHUNK // column_bytes)
    width = max(1, _BAND // (column_bytes * height)) * height
    for begin in range(0, X.shape[1], width):
        band = np.array(X[:, begin : begin + width].T, dtype=dtype, order="C")
        extremes_of(Matrix(band.T), begin, "the source")
        for first in range(0, band.shape[0], height):
            yield write_array(folder, f"columns-{begin + first:09d}.npy", band[first : first + height])
