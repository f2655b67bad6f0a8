"""Which source a user means: by the type of an object, by the suffix of a path."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from condgrad.storage.sources.arrays import Arrays, Batches, Sliceable, parts_of
from condgrad.storage.sources.arrow import ArrowFile
from condgrad.storage.sources.base import Source
from condgrad.storage.sources.categories import EncodedArrays, Encoder
from condgrad.storage.sources.csv_file import CsvFile
from condgrad.storage.sources.dask_array import DaskArray, is_dask
from condgrad.storage.sources.libsvm import LibsvmFile
from condgrad.storage.sources.npy_file import npy_source
from condgrad.storage.sources.npz_file import npz_source
from condgrad.storage.sources.parquet_file import ParquetFile
from condgrad.storage.sources.tables import ALL, Table, TableReader
from condgrad.storage.sources.text import PACKED, TextFile
from condgrad.storage.sources.zarr_array import zarr_source

_FORMATS = {".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".pq": "parquet", ".npy": "npy", ".npz": "npz",
            ".zarr": "zarr", ".arrow": "arrow", ".feather": "arrow"}  # fmt: skip
_OPTIONS = {  # format -> the options that it knows
    "csv": {"target", "weight", "offset", "categories", "header", "like"},
    "parquet": {"target", "weight", "offset", "categories", "like"},
    "arrow": {"target", "weight", "offset", "categories", "like"},
    "npy": {"target", "weight", "offset", "categories", "like"},
    "zarr": {"target", "weight", "offset", "categories", "like"},
    "npz": set(),
    "libsvm": {"n_features"},
    "arrays": {"categories", "like"},
}


@dataclasses.dataclass(frozen=True)
class Options:
    """How a source is read; None where the user has said nothing."""

    target: Any = None
    weight: Any = None
    offset: Any = None
    categories: Sequence[str] | str | None = None
    header: str | None = None
    n_features: int | None = None
    like: Encoder | None = None

    def check(self, form: str) -> None:
        """Raise if an option does not belong to a format."""
        for field in dataclasses.fields(self):
            if getattr(self, field.name) is not None and field.name not in _OPTIONS[form]:
                known = ", ".join(sorted(_OPTIONS[form])) or "no options"
                where = "arrays and batches" if form == "arrays" else f"the format {form}"
                raise ValueError(f"{field.name} is not an option of {where}, which has {known}.")


def source_of(source: Any, options: Options) -> Source:
    """Return the source for what a user passes to :func:`condgrad.rows.convert`."""
    if isinstance(source, str | os.PathLike):
        return _of_path(Path(source), options)
    options.check("arrays")
    return _encoded(_of_object(source), options)


def _of_object(source: Any) -> Source:
    X, *numbers = parts_of(source)
    if is_dask(X):
        return DaskArray(X, *numbers)
    if isinstance(source, tuple | Sliceable):
        return Arrays(X, *numbers)
    if isinstance(source, Iterable):
        return Batches(source)
    raise TypeError(
        "source must be a path, X, (X, y), (X, y, weight), (X, y, weight, offset), or batches of these; "
        f"got {source!r}."
    )


def _of_path(path: Path, options: Options) -> Source:
    form = _format(path)
    options.check(form)
    if form in ("csv", "parquet", "arrow"):
        columns = options.target, options.weight, options.offset, options.categories
        return Table(_reader_of(path, form, options), *columns, options.like)
    if form == "libsvm":
        return LibsvmFile(path, options.n_features)
    if form == "npz":
        return npz_source(path)
    make = npy_source if form == "npy" else zarr_source
    return _encoded(make(path, options.target, options.weight, options.offset), options)


def _reader_of(path: Path, form: str, options: Options) -> TableReader:
    if form == "csv":
        advice = " If the column has words, name it in categories."
        return CsvFile(TextFile(path), options.header or "auto", advice=advice)
    return ParquetFile(path) if form == "parquet" else ArrowFile(path)


def _encoded(source: Source, options: Options) -> Source:
    """Return the source with all columns as categories, if that is asked for."""
    if options.categories is None and options.like is None:
        return source
    if options.categories not in (None, ALL):
        raise ValueError(f"categories of arrays must be 'all' or None; got {options.categories!r}.")
    if options.like is not None and (options.like.numbers or not options.like.fields):
        raise ValueError("for arrays, like must be data all of whose columns are categories.")
    if isinstance(source, Batches) and source.is_read_once and options.like is None:
        raise ValueError(
            "categories are counted in a first pass, and a generator can be read only once; give a list of batches, or "
            "an object whose __iter__ begins again."
        )
    return EncodedArrays(source, options.like)


def _format(path: Path) -> str:
    suffix = path.with_suffix("").suffix if path.suffix in PACKED else path.suffix
    is_zarr = path.is_dir() and any((path / name).exists() for name in ("zarr.json", ".zarray", ".zgroup"))
    form = "zarr" if is_zarr else _FORMATS.get(suffix.lower(), "libsvm")
    if not path.exists():
        raise FileNotFoundError(f"there is no file {str(path)!r}.")
    if path.is_dir() and form != "zarr":
        raise ValueError(f"{str(path)!r} is a folder; give a file, or a folder of zarr.")
    return form
