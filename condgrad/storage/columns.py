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
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from condgrad.linalg.convert import as_data, as_targets
from condgrad.linalg.settings import as_flag
from condgrad.storage.column_files import ColumnFile
from condgrad.storage.column_writer import ArrayBands, write_bands, write_samples
from condgrad.storage.conversions import as_dtype, prepared, reporter
from condgrad.storage.row_writer import Report
from condgrad.storage.sources.choice import Options, source_of
from condgrad.storage.sources.dask_array import is_dask
from condgrad.storage.sources.text import file_identity
from condgrad.storage.stored_columns import StoredColumns

__all__ = ["StoredColumns", "convert", "open"]


def open(source: str | os.PathLike[str] | np.memmap, y: ArrayLike | None = None) -> StoredColumns:
    """Return columns on disk, for :func:`condgrad.lasso_path` and :func:`condgrad.radius_path` in place of X.

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
    source: Any,
    folder: str | os.PathLike[str],
    *,
    y: ArrayLike | None = None,
    target: Any = None,
    categories: Sequence[str] | str | None = None,
    header: str | None = None,
    n_features: int | None = None,
    dtype: Any = None,
    overwrite: bool = False,
    callback: Report | None = None,
    verbose: bool = False,
) -> StoredColumns:
    """Write data into a folder column by column, with checksums, and return its columns.

    Memory holds some 256 MB of the data at a time. The folder holds data once its manifest is there, which is written
    last. If the conversion of a path is interrupted, the same call continues where it stopped; other sources begin
    again. Sparse data stay sparse; categories become columns of zeros and ones, stored as sparse ones.

    Parameters
    ----------
    source : array, sparse matrix, or any source of :func:`condgrad.rows.convert`
        X of shape (n_samples, n_features) in any order or format; an .npy file; or a path of another format, (X, y), or
        batches of samples: these are first written in pieces, which takes twice the space on the disk until the end.
        The samples keep their order.
    folder : path
        It is created, or it is empty, or it has an unfinished conversion.
    y : array of shape (n_samples,), optional
        The targets; by default those of the source, if it has any.
    target, categories, header, n_features
        As those of :func:`condgrad.rows.convert`.
    dtype : {"float32", "float64"}, optional
        The dtype of X: by default float32 stays float32, and all else is float64.
    overwrite : bool
        Whether converted data in the folder are replaced. Files that are not from a conversion are never touched.
    callback : callable, optional
        Called with a :class:`condgrad.rows.ConversionProgress` now and then.
    verbose : bool
        Whether progress is printed to standard error.
    """
    options = Options(target=target, categories=categories, header=header, n_features=n_features)
    report, number_type = reporter(callback, as_flag(verbose, "verbose")), as_dtype(dtype)
    bands = _bands_of(source, options, number_type)
    samples = source_of(source, options) if bands is None else None
    targets = None if y is None or bands is None else as_targets(y, bands.shape[0])
    folder = Path(folder)
    with prepared(folder, as_flag(overwrite, "overwrite")):
        if bands is not None:
            write_bands(folder, bands, _identity_of(source), targets, report)
        elif samples is not None:
            write_samples(folder, samples, number_type, y, report)
    return open(folder)


def _bands_of(source: Any, options: Options, dtype: np.dtype | None) -> ArrayBands | None:
    """Return data that can be cut by columns, None for samples that come in batches."""
    is_path = isinstance(source, str | os.PathLike)
    if is_path and (Path(source).suffix != ".npy" or not Path(source).exists() or options.target is not None):
        return None
    X = np.load(source, mmap_mode="r", allow_pickle=False) if is_path else source
    if _is_batches(X) or is_dask(X) or (is_path and X.flags.c_contiguous and X.ndim == 2):
        return None
    options.check("arrays")
    if scipy.sparse.issparse(X):
        return ArrayBands(as_data(X).tocsc(), dtype)
    X = np.asarray(X)
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"X must have two dimensions (samples, features), and both; got shape {X.shape}.")
    if X.dtype.kind not in "fiub":
        raise ValueError(f"X must be an array of numbers; got dtype {X.dtype}.")
    return ArrayBands(X, dtype)


def _is_batches(X: Any) -> bool:
    """Return whether X is a batch with targets, or several batches: a list of them is no list of rows of numbers."""
    if isinstance(X, list) and X:
        return isinstance(X[0], tuple) or scipy.sparse.issparse(X[0]) or np.ndim(X[0]) == 2
    return isinstance(X, tuple | Iterator)


def _identity_of(source: Any) -> dict[str, Any] | None:
    """Return what tells a file from others, None for objects in memory."""
    return file_identity(Path(source)) if isinstance(source, str | os.PathLike) else None
