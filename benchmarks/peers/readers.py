"""Seconds and memory of reading files: LIBSVM text beside scikit-learn, tables and ratings beside pandas and polars.

    python benchmarks/peers/readers.py [--mb 100] [--repeats 3] [--json FILE]

The files are simulated, in a temporary folder. Every reading is a process of its own, which reads a tiny file of the
same format first (libraries and kernels are loaded then; the file is in the page cache), and tells the seconds, the CPU
seconds and the memory that the reading added at its peak, beside the memory of its result. Readers take turns, and the
best of several runs counts; memory is the largest.

Readers of tables return the numbers as one array and the labels as an array; readers of ratings return places from 0 on
and the names of rows and columns. All results are compared bit by bit.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from results import Report, add_option

COLUMNS = ["reader", "seconds", "CPU seconds", "peak MB", "result MB", "times as long", "times the CPU"]


def main() -> int:
    """Run all readers, or one of them in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=float, default=100.0, help="size of each file (default: 100)")
    parser.add_argument("--repeats", type=int, default=3, help="readings by each reader (default: 3)")
    parser.add_argument("--read", nargs=3, metavar=("READER", "TINY", "FILE"), help=argparse.SUPPRESS)
    add_option(parser)
    args = parser.parse_args()
    if args.read is not None:
        print(json.dumps(measure(READERS[args.read[0]], *args.read[1:])))
        return 0
    report = Report(__file__, "How fast, and in how much memory, are files read?", ("pandas", "polars", "pyarrow"))
    with tempfile.TemporaryDirectory() as folder:
        for task, (write, readers) in TASKS.items():
            tiny, path = (pathlib.Path(folder) / f"{size}.{task.split()[0].lower()}" for size in ("tiny", "whole"))
            write(tiny, 2e3)
            write(path, args.mb * 1e6)
            found = compare([name for name in readers if is_there(name)], tiny, path, args.repeats)
            caption = f"{task}, {path.stat().st_size / 1e6:.0f} MB"
            show(caption, found)
            report.table(caption, COLUMNS, found, note="best of several runs that took turns")
            for each in pathlib.Path(folder).iterdir():
                each.unlink()
    report.write(args.json)
    return 0


def is_there(reader: str) -> bool:
    """Return whether the packages of a reader are installed."""
    needed = {"pandas": "pandas", "polars": "polars", "condgrad with pyarrow": "pyarrow"}
    return importlib.util.find_spec(needed.get(reader.partition(":")[2], "numpy")) is not None


def compare(readers: list[str], tiny: pathlib.Path, path: pathlib.Path, repeats: int) -> list[list[str | float]]:
    """Return the rows of the table, the last reader is ours; all must read the same."""
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in readers}
    for _ in range(repeats):
        for name, own in runs.items():
            command = [sys.executable, __file__, "--read", name, str(tiny), str(path)]
            own.append(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
    sums = {run["sum"] for own in runs.values() for run in own}
    if len(sums) != 1:
        raise RuntimeError(f"the readers of {path.name} return different numbers.")
    ours, our_cpu = (min(run[key] for run in runs[readers[-1]]) for key in ("seconds", "cpu"))
    rows: list[list[str | float]] = []
    for name, own in runs.items():
        seconds, cpu = (min(run[key] for run in own) for key in ("seconds", "cpu"))
        peak, result = (max(run[key] for run in own) / 1e6 for key in ("peak", "result"))
        rows.append([name.partition(":")[2], seconds, cpu, peak, result, seconds / ours, cpu / our_cpu])
    return rows


def show(caption: str, rows: list[list[str | float]]) -> None:
    """Print a table."""
    print(f"\n{caption}\n{COLUMNS[0]:<26}" + "".join(f"{name:>15}" for name in COLUMNS[1:]))
    for name, *numbers in rows:
        print(f"{name:<26}" + "".join(f"{number:>15.3g}" for number in numbers), flush=True)


class Watch(threading.Thread):
    """Looks every few milliseconds how much memory this process has."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.first = self.peak = resident()
        self._is_over = threading.Event()

    def run(self) -> None:
        """Look until it is over."""
        while not self._is_over.wait(0.003):
            self.peak = max(self.peak, resident())

    def stop(self) -> int:
        """Return by how much the memory grew at its peak."""
        self._is_over.set()
        self.join()
        return max(self.peak, resident()) - self.first


def resident() -> int:
    """Return the bytes of memory of this process."""
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096


def measure(read: Callable[[str], tuple[np.ndarray, ...]], tiny: str, path: str) -> dict[str, float | str]:
    """Read a file and tell how; the first reading is of a tiny one."""
    read(tiny)
    if read is READERS["libsvm:condgrad, binary copy"]:
        read(path)  # the copy is made
    with open(path, "rb") as file:
        while file.read(2**24):
            pass
    watch = Watch()
    watch.start()
    cpu, began = time.process_time(), time.perf_counter()
    parts = read(path)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    peak = watch.stop()
    found = hashlib.sha256()
    for part in parts:
        plain = part.astype(np.int64) if part.dtype.kind in "iu" else part
        found.update(
            "\0".join(part.tolist()).encode() if part.dtype.kind in "OTU" else np.ascontiguousarray(plain).data
        )
    result = sum(part.nbytes for part in parts)
    return {"seconds": seconds, "cpu": cpu, "peak": peak, "result": result, "sum": found.hexdigest()}


# Files ----------------------------------------------------------------------------------------------------------------


def write_libsvm(form: str) -> Callable[[pathlib.Path, float], None]:
    """Return a function that writes rows of some 40 entries with numbers in a format, until the file has its size."""

    def write(path: pathlib.Path, n_bytes: float) -> None:
        rng = np.random.default_rng(0)
        block = "".join(
            f"{rng.choice([-1, 1])} " + " ".join(f"{j}:{value:{form}}" for j, value in zip(
                np.unique(rng.integers(1, 50_000, 40)), rng.standard_normal(40), strict=False)) + "\n"
            for _ in range(min(5000, int(n_bytes // 200)))
        ).encode()  # fmt: skip
        path.write_bytes(block * max(1, round(n_bytes / len(block))))

    return write


def write_table(path: pathlib.Path, n_bytes: float) -> None:
    """Write 30 columns of numbers, and one of words."""
    rng = np.random.default_rng(0)
    names = ",".join([*(f"x{j}" for j in range(30)), "y"]) + "\n"
    block = "".join(
        ",".join([*(f"{value:.6g}" for value in rng.standard_normal(30)), str(rng.choice(["red", "green"]))]) + "\n"
        for _ in range(min(3000, int(n_bytes // 250)))
    )
    path.write_text(names + block * max(1, round(n_bytes / len(block))))


def write_ratings(path: pathlib.Path, n_bytes: float) -> None:
    """Write ratings as MovieLens 25M has them: user, film, stars, time; every place once."""
    rng = np.random.default_rng(0)
    with open(path, "w") as file:
        n_written, user = file.write("userId,movieId,rating,timestamp\n"), 0
        while n_written < n_bytes:
            user += 1
            films = np.unique((rng.random(150) ** 3 * 60_000).astype(int))
            stars = rng.integers(1, 11, films.size) / 2
            n_written += file.write("".join(
                f"{user},{film},{star},{1_000_000_000 + film}\n" for film, star in zip(films, stars, strict=True)
            ))  # fmt: skip


# Readers --------------------------------------------------------------------------------------------------------------


def sparse_parts(X, y: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the arrays of a CSR matrix and its targets."""
    return X.data, X.indices, X.indptr, y


def libsvm_by_sklearn(path: str) -> tuple[np.ndarray, ...]:
    """LIBSVM text by scikit-learn."""
    from sklearn.datasets import load_svmlight_file

    return sparse_parts(*load_svmlight_file(path, zero_based=False))


def libsvm_by_condgrad(path: str) -> tuple[np.ndarray, ...]:
    """LIBSVM text by condgrad; a tiny file is read by the kernels, too, so that they are loaded."""
    from condgrad.datasets import read_libsvm
    from condgrad.storage.sources.libsvm_scan import scan_lines

    scan_lines(b"1 1:1\n", "tiny", 1, 100)
    return sparse_parts(*read_libsvm(path))


def libsvm_by_copy(path: str) -> tuple[np.ndarray, ...]:
    """LIBSVM text by its binary copy."""
    from condgrad.datasets import read_libsvm

    return sparse_parts(*read_libsvm(path, cache=True))


def table_by_pandas(path: str) -> tuple[np.ndarray, ...]:
    """A table by pandas; its fast parser rounds numbers wrongly, so the exact one is asked for."""
    import pandas

    frame = pandas.read_csv(path, float_precision="round_trip")
    return frame.iloc[:, :-1].to_numpy(), frame["y"].to_numpy(str)


def table_by_polars(path: str) -> tuple[np.ndarray, ...]:
    """A table by polars."""
    import polars

    frame = polars.read_csv(path)
    return np.ascontiguousarray(frame[:, :-1].to_numpy()), frame["y"].to_numpy().astype(str)


def table_by_condgrad(path: str, *, has_arrow: bool = True) -> tuple[np.ndarray, ...]:
    """A table by the reader of the command line."""
    from condgrad.cli._columns import Wanted
    from condgrad.cli._csv import read_csv
    from condgrad.storage.sources import csv_file
    from condgrad.storage.sources.text import TextFile

    if not has_arrow:
        csv_file._arrow_csv = lambda: None
    data = read_csv(TextFile(pathlib.Path(path)), Wanted(None, "auto", True, None), lambda n, share: None)
    return data.X, data.y


def ratings_by_pandas(path: str) -> tuple[np.ndarray, ...]:
    """Ratings by pandas, names as words."""
    import pandas

    frame = pandas.read_csv(path, usecols=[0, 1, 2], dtype={"userId": str, "movieId": str})
    parts = [pandas.factorize(frame[name]) for name in ("userId", "movieId")]
    return (*(codes for codes, _ in parts), frame["rating"].to_numpy(), *(np.array(names, str) for _, names in parts))


def ratings_by_polars(path: str) -> tuple[np.ndarray, ...]:
    """Ratings by polars, names as words."""
    import polars

    kinds = {"userId": polars.String, "movieId": polars.String}
    frame = polars.read_csv(path, columns=[0, 1, 2], schema_overrides=kinds)
    found = []
    for name in ("userId", "movieId"):
        labels = frame[name].unique(maintain_order=True)
        codes = frame[name].replace_strict(labels, range(labels.len()), return_dtype=polars.Int64)
        found.append((codes.to_numpy(), labels.to_numpy().astype(str)))
    (rows, users), (columns, films) = found
    return rows, columns, frame["rating"].to_numpy(), users, films


def ratings_by_condgrad(path: str, *, has_arrow: bool = True) -> tuple[np.ndarray, ...]:
    """Ratings by condgrad, which also checks that every place occurs once."""
    from condgrad.datasets import read_ratings
    from condgrad.storage.sources import csv_file

    if not has_arrow:
        csv_file._arrow_csv = lambda: None
    found = read_ratings(path)
    return found.rows, found.cols, found.values, np.array(found.row_labels), np.array(found.col_labels)


READERS: dict[str, Callable[[str], tuple[np.ndarray, ...]]] = {
    "libsvm:scikit-learn": libsvm_by_sklearn,
    "libsvm:condgrad, binary copy": libsvm_by_copy,
    "libsvm:condgrad": libsvm_by_condgrad,
    "table:pandas": table_by_pandas,
    "table:polars": table_by_polars,
    "table:condgrad without pyarrow": lambda path: table_by_condgrad(path, has_arrow=False),
    "table:condgrad with pyarrow": table_by_condgrad,
    "ratings:pandas": ratings_by_pandas,
    "ratings:polars": ratings_by_polars,
    "ratings:condgrad without pyarrow": lambda path: ratings_by_condgrad(path, has_arrow=False),
    "ratings:condgrad with pyarrow": ratings_by_condgrad,
}


def readers_of(kind: str) -> list[str]:
    """Return the readers of a kind of file."""
    return [name for name in READERS if name.startswith(f"{kind}:")]


TASKS = {
    "LIBSVM text, 6 digits": (write_libsvm(".6g"), readers_of("libsvm")),
    "LIBSVM text, 17 digits": (write_libsvm(".17g"), readers_of("libsvm")),
    "CSV of 30 columns and a label": (write_table, readers_of("table")),
    "CSV of ratings": (write_ratings, readers_of("ratings")),
}

if __name__ == "__main__":
    sys.exit(main())
