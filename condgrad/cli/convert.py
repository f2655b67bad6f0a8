"""Convert data to a folder of chunks of rows, for data that are larger than memory.

With --columns the folder has chunks of columns, for `condgrad path`. Memory holds a few chunks,
whatever the size of the data. If it is interrupted, the same command continues after the last
complete chunk.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from condgrad.cli._outputs import show

if TYPE_CHECKING:
    from condgrad.storage.columns import StoredColumns
    from condgrad.storage.rows import ConversionProgress, StoredRows

EPILOG = """\
examples:
  condgrad convert clicks.parquet clicks --target clicked --dtype float32
  condgrad convert train.svm train --n-features 47236
  condgrad convert test.csv test --like train
  condgrad convert --columns genes.npz genes

exit codes: 0 done, 2 bad input, 130 interrupted
"""
_LOG_SECONDS = 10.0  # between two lines of progress in a log


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="file: .csv, .tsv, .parquet, .arrow, .feather, .npy, .npz, .zarr, or LIBSVM text",
    )
    parser.add_argument("folder", metavar="FOLDER", help="folder to write, new or empty")
    parser.add_argument("--columns", action="store_true", help="write columns, for paths, instead of rows")
    data = parser.add_argument_group("data")
    target = data.add_mutually_exclusive_group()
    target.add_argument("--target", metavar="COLUMN", help="name of the target column of CSV or Parquet, or its number "
                        "from 1 where columns have no names (default: the last one); for .npy and .zarr an .npy "
                        "file")  # fmt: skip
    target.add_argument("--no-target", action="store_true", help="CSV or Parquet has no target")
    data.add_argument(
        "--weight",
        "--weights",
        metavar="COLUMN",
        help="column with weights of samples; for .npy and .zarr a file",
    )
    data.add_argument(
        "--offset", metavar="COLUMN", help="column with offsets of samples, which are added to their predictions; for "
        ".npy and .zarr an .npy file"
    )  # fmt: skip
    data.add_argument("--categories", metavar="COLUMN,...", help="columns of CSV or Parquet that are categories, or "
                      "all (default: columns of words)")  # fmt: skip
    data.add_argument("--header", choices=("auto", "yes", "no"), help="whether the first line of CSV names the columns "
                      "(default: auto, yes if none of its fields is a number)")  # fmt: skip
    data.add_argument("--n-features", type=int, metavar="N", help="number of features of LIBSVM text (default: its "
                      "largest index)")  # fmt: skip
    data.add_argument("--like", metavar="FOLDER", help="converted data whose columns and categories to use")
    output = parser.add_argument_group("output")
    output.add_argument("--chunk-bytes", type=int, metavar="N", help="bytes of a chunk of rows, about (default: "
                        "134217728)")  # fmt: skip
    output.add_argument("--dtype", choices=("float32", "float64"), help="type of the numbers (default: float32 if the "
                        "data are, else float64)")  # fmt: skip
    output.add_argument("--no-shuffle", action="store_true", help="keep the order of the samples")
    output.add_argument("--seed", type=int, help="seed of the random order (default: 0)")
    output.add_argument("--force", action="store_true", help="replace converted data that exist")
    output.add_argument("--quiet", action="store_true", help="show no progress")
    output.add_argument("--json", action="store_true", help="print the results as JSON")


def run(args: argparse.Namespace) -> int:
    """Convert the data, and report what was written."""
    from condgrad.run.progress import line_writer
    from condgrad.storage import manifest
    from condgrad.storage.columns import StoredColumns

    if (Path(args.folder) / manifest.NAME).exists() and not args.force:
        raise ValueError(f"{args.folder!r} has data already; use --force to replace them.")
    try:
        make = _convert_to_columns if args.columns else _convert
        if args.quiet:
            found = make(args, None)
        else:
            with line_writer() as (write, is_live):
                found = make(args, _Lines(write, is_live))
    except KeyboardInterrupt:
        print("condgrad convert: interrupted; the same command continues.", file=sys.stderr)
        return 130
    lines, numbers = _of_columns(found) if isinstance(found, StoredColumns) else _of_rows(found)
    show(args, {**lines, "folder": args.folder}, {"folder": args.folder, **numbers})
    return 0


def _convert(args: argparse.Namespace, callback: Any) -> StoredRows:
    from condgrad.storage import rows

    return rows.convert(
        args.source, args.folder, target=False if args.no_target else args.target, weight=args.weight,
        offset=args.offset, categories=_categories(args), header=args.header, n_features=args.n_features,
        like=args.like, chunk_bytes=args.chunk_bytes or 2**27, shuffle=not args.no_shuffle, dtype=args.dtype,
        overwrite=args.force, random_state=args.seed or 0, callback=callback,
    )  # fmt: skip


def _convert_to_columns(args: argparse.Namespace, callback: Any) -> StoredColumns:
    from condgrad.storage import columns

    of_rows = {"--weight": args.weight, "--offset": args.offset, "--like": args.like, "--seed": args.seed,
               "--chunk-bytes": args.chunk_bytes, "--no-shuffle": args.no_shuffle or None}  # fmt: skip
    for option, value in of_rows.items():
        if value is not None:
            raise ValueError(
                f"{option} is for rows; columns keep the order of the samples and have neither weights nor offsets."
            )
    return columns.convert(
        args.source, args.folder, target=False if args.no_target else args.target, categories=_categories(args),
        header=args.header, n_features=args.n_features, dtype=args.dtype, overwrite=args.force, callback=callback,
    )  # fmt: skip


def _categories(args: argparse.Namespace) -> Any:
    return args.categories if args.categories in (None, "all") else args.categories.split(",")


class _Lines:
    """Shows progress as a line that is updated, or as a line every ten seconds."""

    def __init__(self, write: Any, is_live: bool) -> None:
        self._write, self._pause = write, 0.0 if is_live else _LOG_SECONDS
        self._began = self._last = time.perf_counter()

    def __call__(self, progress: ConversionProgress) -> None:
        now = time.perf_counter()
        if now - self._last >= self._pause:
            self._last = now
            self._write(f"{progress}  {now - self._began:.0f} s")


def _of_rows(rows: StoredRows) -> tuple[dict[str, str], dict[str, object]]:
    """Return what is reported about rows, as lines of text and as numbers."""
    (n, d), order = rows.shape, "random" if rows.is_shuffled else "as it was"
    y = rows.manifest.facts["y"]
    numbers: dict[str, object] = {
        "n_samples": n, "n_features": d, "kind": rows.kind, "n_chunks": rows.n_chunks, "n_bytes": rows.n_bytes,
        "is_shuffled": rows.is_shuffled, "y": y,
    }  # fmt: skip
    lines = {
        "samples": f"{n:,} x {d:,} features, {rows.kind}",
        "target": "none" if y is None else f"{y['min']:g} to {y['max']:g}, mean {y['mean']:.6g}",
        "chunks": f"{rows.n_chunks}, {rows.n_bytes / 1e6:,.1f} MB, order {order}",
    }
    return lines, numbers


def _of_columns(columns: StoredColumns) -> tuple[dict[str, str], dict[str, object]]:
    """Return what is reported about columns."""
    (n, d), y = columns.shape, columns.y
    numbers: dict[str, object] = {
        "n_samples": n, "n_features": d, "kind": "sparse" if columns.is_sparse else "dense",
        "n_chunks": columns.n_chunks, "n_bytes": columns.n_bytes, "n_stored": columns.n_stored,
    }  # fmt: skip
    lines = {
        "samples": f"{n:,} x {d:,} features, {columns.format}",
        "target": "none" if y is None else f"{y.min():g} to {y.max():g}, mean {y.mean():.6g}",
        "chunks": f"{columns.n_chunks}, {columns.n_bytes / 1e6:,.1f} MB",
    }
    return lines, numbers
