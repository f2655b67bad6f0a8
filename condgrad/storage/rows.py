"""Samples on disk, by rows, for data that are larger than memory.

:func:`convert` writes a folder once, from files of several formats, arrays, or batches that you make. :func:`open`
returns its samples, to be passed in place of X.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from condgrad.linalg.convert import as_vector
from condgrad.linalg.settings import RandomState, as_flag, as_generator
from condgrad.storage.array_files import Buffer
from condgrad.storage.arrow_rows import SUFFIXES, arrow_columns
from condgrad.storage.cluster_rows import ClusterRows, of_dask
from condgrad.storage.conversions import as_dtype, prepared, reporter
from condgrad.storage.row_writer import ConversionProgress, Report, Settings, write_rows
from condgrad.storage.sources.categories import Encoder
from condgrad.storage.sources.choice import Options, source_of
from condgrad.storage.sources.npy_file import load_npy
from condgrad.storage.stored_rows import StoredRows

__all__ = ["ClusterRows", "ConversionProgress", "StoredRows", "convert", "from_dask", "open"]


def convert(
    source: Any,
    folder: str | os.PathLike[str],
    *,
    target: Any = None,
    weight: Any = None,
    offset: Any = None,
    categories: Sequence[str] | str | None = None,
    header: str | None = None,
    n_features: int | None = None,
    like: StoredRows | str | os.PathLike[str] | None = None,
    chunk_bytes: int = 2**27,
    shuffle: bool = True,
    dtype: Any = None,
    overwrite: bool = False,
    random_state: RandomState = 0,
    callback: Report | None = None,
    verbose: bool = False,
) -> StoredRows:
    """Write samples to a folder in chunks of rows, and return them opened.

    Memory holds a few chunks, and all categories, whatever the size of the source. Every batch is checked before any of
    it is written. A chunk is written under a temporary name and renamed, and the manifest comes last: the folder is
    complete, or it is not valid. If the conversion of a path is interrupted, the same call continues after the last
    complete chunk, and gives the same files; other sources begin again.

    Parameters
    ----------
    source : path, X, (X, y), (X, y, weight), (X, y, weight, offset), or an iterable of these
        A path has the suffix .csv or .tsv (also compressed), .parquet, .arrow, .feather, .npy, .npz (X and y, or a file
        of ``scipy.sparse.save_npz`` and y), .zarr; any other suffix is LIBSVM text. X is an array, a sparse matrix, a
        data frame, an array of zarr or Dask. An iterable, such as a generator or a list, gives batches: it is the way
        for any other source.
    folder : path
        It is created, or it is empty, or it has an unfinished conversion.
    target : str or False, optional
        The target column of CSV, Parquet and Arrow: by default the last one, unless it is a feature of ``like``; False
        for none. For .npy and .zarr an .npy file with y, or an array.
    weight, offset : str, optional
        The columns of CSV, Parquet and Arrow with weights and with offsets of samples, which are added to their
        predictions; for .npy and .zarr an .npy file, or an array.
    categories : list of str or "all", optional
        The columns that are categories: by default those of CSV and Parquet that have words. For arrays only "all".
        Categories are counted in a first pass, and then numbered by falling frequency.
    header : {"auto", "yes", "no"}, optional
        Whether the first line of CSV names the columns; "auto": if none of its fields is a number.
    n_features : int, optional
        The number of features of LIBSVM text: by default its largest index.
    like : StoredRows or path, optional
        Converted data whose columns and categories this source shall have, such as the training data of a test set.
    chunk_bytes : int
        About how many bytes a chunk has; all chunks have about the same size.
    shuffle : bool
        Whether the samples are written in random order, so that the first samples of every chunk are a random sample of
        all: every order is equally likely. It needs twice the space on the disk until the end.
    dtype : {"float32", "float64"}, optional
        The dtype of X: by default float32 stays float32, and all else is float64.
    overwrite : bool
        Whether converted data in the folder are replaced. Files that are not from a conversion are never touched.
    random_state : int, Generator or None
        The seed of the order. The same seed gives the same files.
    callback : callable, optional
        Called with a :class:`ConversionProgress` after each batch and chunk.
    verbose : bool
        Whether progress is printed to standard error.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import condgrad as cg
    >>> batches = ((np.ones((4, 3)), np.arange(4)) for _ in range(5))
    >>> rows = cg.rows.convert(batches, tempfile.mkdtemp())
    >>> rows.shape, float(rows.y.sum())
    ((20, 3), 30.0)
    """
    folder = Path(folder)
    settings = Settings(_as_bytes(chunk_bytes), _seed(shuffle, random_state), as_dtype(dtype))
    report = reporter(callback, as_flag(verbose, "verbose"))
    options = Options(target, weight, offset, categories, header, n_features, _encoder_of(like))
    samples = source_of(source, options)
    with prepared(folder, as_flag(overwrite, "overwrite")):
        write_rows(folder, samples, settings, report)
    return StoredRows.of_folder(folder)


def open(
    path: str | os.PathLike[str], y: Any = None, weight: Any = None, offset: Any = None, *, chunk_bytes: int = 2**27
) -> StoredRows:
    """Return the samples of a folder that :func:`convert` has written, or of a file, to be passed in place of X.

    An .npy file with rows of float32 or float64 in C order, and an Arrow file (.arrow, .feather) of numbers that is not
    compressed, are read where they lie: their order is kept, there are no checksums, and the statistics of the columns
    are not known in advance.

    Parameters
    ----------
    path : path
        A folder, or an .npy or Arrow file. All columns of an Arrow file are features, except those with targets,
        weights and offsets.
    y, weight, offset : array, path of an .npy file or name of a column, optional
        Targets, weights and offsets of the samples of a file; a folder has its own. Names are those of columns of an
        Arrow file.
    chunk_bytes : int
        How many bytes of a file are read at a time.
    """
    path, given = Path(path), {"y": y, "weight": weight, "offset": offset}
    if path.suffix not in (".npy", *SUFFIXES) or path.is_dir():
        for name, part in given.items():
            if part is not None:
                raise ValueError(f"{name} is for .npy and Arrow files; a folder of converted data has its own.")
        return StoredRows.of_folder(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file {str(path)!r}.")
    if path.suffix in SUFFIXES:
        return _open_arrow(path, given, _as_bytes(chunk_bytes))
    n_samples = StoredRows.of_file(path, {}, _as_bytes(chunk_bytes)).shape[0]
    return StoredRows.of_file(path, _vectors(given, n_samples), _as_bytes(chunk_bytes))


def _open_arrow(path: Path, given: dict[str, Any], chunk_bytes: int) -> StoredRows:
    """Return the rows of an Arrow file, some of whose columns are targets, weights and offsets."""
    table = arrow_columns(path)
    own = {role: part for role, part in given.items() if isinstance(part, str) and part in table.names}
    features = [name for name in table.names if name not in own.values()]
    if not features:
        raise ValueError(f"{str(path)!r} has no features beside targets, weights and offsets.")
    whole = {role: table.only([name]).whole() for role, name in own.items()}
    vectors = {role: file.read(Buffer(), 0, file.shape[0])[:, 0] for role, file in whole.items()}
    n_samples = sum(part.n_rows for part in table.batches)
    return StoredRows.of_arrow(table.only(features), _vectors(given | vectors, n_samples), chunk_bytes)


def _vectors(given: dict[str, Any], n_samples: int) -> dict[str, np.ndarray]:
    """Return the numbers of all samples that are given as arrays, or as paths of .npy files."""
    return {
        name: as_vector(load_npy(Path(part)) if isinstance(part, str | os.PathLike) else part, name, n_samples)
        for name, part in given.items()
        if part is not None
    }


def from_dask(X: Any, y: Any = None, weight: Any = None, offset: Any = None, *, client: Any = None) -> ClusterRows:
    """Return samples that stay with the workers of a Dask cluster.

    Every worker keeps its partitions in memory. A pass sends the nonzero entries of w to the workers and receives sums,
    which are added in a fixed order. Partitions that are lost with a worker are made again by others; a pass for which
    that fails raises an error. This process keeps 16 bytes for each sample, its target and its weight, and 8 more for
    its offset.

    Parameters
    ----------
    X : Dask array or data frame, list of delayed objects, or StoredRows
        The rows of partitions: one partition of 0.25 to 1 GB for each thread of a worker is best. Chunks of rows on
        disk are read by the workers, which must see the same folder.
    y, weight, offset : Dask array, series or array with the partitions of X, optional
        Targets, weights and offsets; by default those of rows on disk.
    client : dask.distributed.Client, optional
        The cluster; by default the current one.

    Returns
    -------
    ClusterRows
        To be passed in place of X to :class:`condgrad.Problem` and to the estimators.
    """
    return of_dask(X, y, weight, offset, client)


def _encoder_of(like: StoredRows | str | os.PathLike[str] | None) -> Encoder | None:
    if like is None:
        return None
    rows = like if isinstance(like, StoredRows) else StoredRows.of_folder(Path(like))
    encoder = Encoder.read(rows.folder, rows.manifest)
    if encoder is None:
        raise ValueError(f"like must be data from a table, or with categories; {str(rows.folder)!r} has neither.")
    return encoder


def _seed(shuffle: bool, random_state: RandomState) -> int | None:
    """Return the seed of the random order, None if the order is kept."""
    return int(as_generator(random_state).integers(2**62)) if as_flag(shuffle, "shuffle") else None


def _as_bytes(chunk_bytes: object) -> int:
    if not isinstance(chunk_bytes, int | np.integer) or isinstance(chunk_bytes, bool) or chunk_bytes < 1:
        raise ValueError(f"chunk_bytes must be a positive integer; got {chunk_bytes!r}.")
    return int(chunk_bytes)
