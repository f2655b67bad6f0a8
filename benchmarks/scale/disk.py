"""Rows on disk: reads, seconds, memory and certificates of logistic regression over an l1 ball, by size of the data.

    python benchmarks/scale/disk.py [small|middle|full ...] [--kind dense one-hot] [--folder DIR] [--keep]

The data are simulated, written to a folder below DIR (default: the folder for temporary files; free space is checked
first) and removed afterwards. Dense: 300 features in float32. One-hot: 39 fields of 10 to 300,000 categories whose
frequencies fall as in logs of clicks, a million features in all. For each size and each relative gap of 1e-4 and 1e-6 a
new process fits the model once. A line shows

* the reads of all rows, gigabytes read, and seconds; data that fit into the page cache of the system stay there after
  the first read;
* the same bytes at the speed of the disk, measured before by reading all files with two threads, and the fraction of
  that speed which the fit reached;
* the largest memory of the process, the certified gap relative to the first one, and the growth of the seconds from
  the size before, divided by the growth of the data: 1 is linear.

Beside it scikit-learn's SGDClassifier makes one epoch by ``partial_fit`` over the same chunks. It has no certificate,
and a penalty and an intercept instead of the ball, so its loss F is only a rough comparison. At the small size cyanure,
where it is installed, solves the same problem with all data in memory, to a relative duality gap of 1e-4.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import importlib.util
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import condgrad as cg
from condgrad.linalg.one_hot import OneHotMatrix, empty_codes

SIZES = {
    "dense": {"small": 500_000, "middle": 3_000_000, "full": 25_000_000},
    "one-hot": {"small": 1_000_000, "middle": 8_000_000, "full": 40_000_000},
}
BYTES_OF_A_ROW = {"dense": 1200, "one-hot": 67}
N_DENSE = 300
FIELDS = {1: [200] * 20, 2: [10_000] * 12, 4: [125_143] * 7}  # categories of the fields, by bytes of a code
RADIUS = {"dense": 15.0, "one-hot": 60.0}
BATCH = 100_000


def batches(kind: str, n_samples: int) -> Iterator[tuple[object, np.ndarray]]:
    """Yield samples with targets of a sparse logistic model."""
    rng = np.random.default_rng(0)
    make = dense_batch if kind == "dense" else one_hot_batch
    truth = true_coefficients(kind)
    for start in range(0, n_samples, BATCH):
        X, p = make(rng, min(BATCH, n_samples - start), truth)
        yield X, np.where(rng.random(p.size) < 1.0 / (1.0 + np.exp(-p)), 1.0, -1.0)


def true_coefficients(kind: str) -> np.ndarray:
    """Return coefficients of which few are not zero."""
    rng = np.random.default_rng(1)
    d = N_DENSE if kind == "dense" else sum(map(sum, FIELDS.values()))
    w = np.zeros(d)
    if kind == "dense":
        w[rng.choice(d, 30, replace=False)] = rng.standard_normal(30)
        return w
    first = 0
    for sizes in FIELDS.values():
        for size in sizes:
            hot = first + rng.integers(0, min(size, 50), 8)
            w[hot] = 0.7 * rng.standard_normal(8)
            first += size
    return w


def dense_batch(rng: np.random.Generator, n: int, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return correlated features and their predictions."""
    X = rng.standard_normal((n, N_DENSE), dtype=np.float32)
    X[:, 1:] += 0.5 * X[:, :-1]
    return X, X @ w


def one_hot_batch(rng: np.random.Generator, n: int, w: np.ndarray) -> tuple[OneHotMatrix, np.ndarray]:
    """Return codes whose logarithms are uniform, and their predictions."""
    codes, firsts, p, first = [], [], np.full(n, -1.0), 0
    for width in (1, 2, 4):
        sizes = FIELDS[width]
        drawn = np.column_stack([np.exp(rng.random(n) * np.log(size)).astype(np.int64) for size in sizes]) - 1
        starts = first + np.concatenate(([0], np.cumsum(sizes)[:-1]))
        p += w[drawn + starts].sum(axis=1)
        codes.append(drawn.astype(f"u{width}") if sizes else empty_codes(n, width))
        firsts.append(starts.astype(np.uint64))
        first += sum(sizes)
    return OneHotMatrix(tuple(codes), tuple(firsts), first), p


def disk_speed(folder: Path) -> float:
    """Return the bytes per second of two threads that read all files of the folder, which are not in the cache."""
    files = [path for path in folder.iterdir() if path.suffix == ".npy"]
    forget(folder)

    def read(path: Path) -> int:
        buffer, total = bytearray(2**24), 0
        with open(path, "rb", buffering=0) as file:
            while count := file.readinto(buffer):
                total += count
        return total

    began = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        total = sum(pool.map(read, files))
    return total / (time.perf_counter() - began)


def forget(folder: Path) -> None:
    """Ask the system to drop the files from its cache."""
    if hasattr(os, "posix_fadvise"):
        for path in folder.iterdir():
            with open(path, "rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def fit(folder: Path, kind: str, relative_tol: float) -> dict[str, float]:
    """Fit in this process and return the figures."""
    rows = cg.rows.open(folder)
    began = time.perf_counter()
    problem = cg.Problem(rows, loss=cg.losses.Logistic(), constraint=cg.constraints.L1Ball(RADIUS[kind]))
    result = cg.minimize(problem, tol=0.0, relative_tol=relative_tol)
    first = float(result.trace.gap[0])
    return {
        "seconds": time.perf_counter() - began,
        "reads": result.n_reads,
        "bytes": rows.bytes_read,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "gap": result.gap / first,
        "objective": result.objective,
        "nonzero": int(np.count_nonzero(result.w)),
    }


def sgd(folder: Path) -> dict[str, float]:
    """Make one epoch of scikit-learn's SGD over the chunks."""
    from sklearn.linear_model import SGDClassifier

    rows = cg.rows.open(folder)
    assert rows.y is not None
    model = SGDClassifier(loss="log_loss", penalty="l1", random_state=0)
    began = time.perf_counter()
    for chunk in rows.chunks():
        X = chunk.matrix.chosen(slice(None)).X
        model.partial_fit(X, rows.y[chunk.place], classes=[-1.0, 1.0])
    seconds = time.perf_counter() - began
    p = rows.dot_each(model.coef_.astype(float))[0] + float(model.intercept_[0])
    objective = float(np.mean(np.logaddexp(0.0, -rows.y * p)))
    return {"seconds": seconds, "objective": objective, "nonzero": int(np.count_nonzero(model.coef_))}


def cyanure(folder: Path, kind: str) -> dict[str, float]:
    """Solve the same problem in memory with cyanure."""
    import scipy.sparse
    from cyanure.estimators import Classifier

    rows = cg.rows.open(folder)
    assert rows.y is not None
    parts = [chunk.matrix.chosen(slice(None)).X.copy() for chunk in rows.chunks()]
    X = np.vstack(parts) if kind == "dense" else scipy.sparse.vstack(parts, format="csr")
    model = Classifier(
        loss="logistic", penalty="l1-ball", lambda_1=RADIUS[kind], fit_intercept=False, tol=1e-4, verbose=False,
        max_iter=1000,
    )  # fmt: skip
    began = time.perf_counter()
    model.fit(X, rows.y)
    seconds = time.perf_counter() - began
    w = np.asarray(model.coef_, dtype=float).reshape(1, -1)
    p = rows.dot_each(w)[0]
    return {
        "seconds": seconds,
        "objective": float(np.mean(np.logaddexp(0.0, -rows.y * p))),
        "nonzero": int(np.count_nonzero(w)),
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def in_new_process(*args: str) -> dict[str, float]:
    """Run this file with the arguments and return what it prints."""
    done = subprocess.run([sys.executable, __file__, *args], check=True, capture_output=True, text=True)
    numbers: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return numbers


def compare(kind: str, sizes: list[str], parent: Path, keep: bool) -> None:
    """Print a line for each size and tolerance."""
    before: dict[float, tuple[int, float]] = {}
    for size in sizes:
        n = SIZES[kind][size]
        wanted = n * BYTES_OF_A_ROW[kind]
        if shutil.disk_usage(parent).free < 1.2 * wanted:
            print(f"{kind} {size}: skipped, {wanted / 1e9:.3g} GB and some more are needed on {parent}")
            continue
        folder = Path(tempfile.mkdtemp(prefix="condgrad-", dir=parent)) / "rows"
        try:
            began = time.perf_counter()
            rows = cg.rows.convert(batches(kind, n), folder, chunk_bytes=2**26, shuffle=False)
            written = time.perf_counter() - began
            speed = disk_speed(folder)
            print(
                f"\n{kind} {size}: {n:,} x {rows.shape[1]:,}, {rows.n_bytes / 1e9:.2f} GB, simulated and written in "
                f"{written:.0f} s; the disk reads {speed / 1e9:.2f} GB/s",
                flush=True,
            )
            fit(folder, kind, 1e-1)  # compiles
            for relative_tol in (1e-4, 1e-6):
                forget(folder)
                told = in_new_process("--fit", str(folder), kind, str(relative_tol))
                line = (
                    f"  gap {relative_tol:g}: {told['reads']:g} reads, {told['bytes'] / 1e9:.2f} GB, "
                    f"{told['seconds']:.1f} s, {told['bytes'] / speed / told['seconds']:.0%} of the disk's speed, "
                    f"{told['memory'] / 1e9:.2f} GB of memory, gap {told['gap']:.1e}, F {told['objective']:.8f}, "
                    f"{told['nonzero']} nonzero"
                )
                if relative_tol in before:
                    n_before, seconds = before[relative_tol]
                    line += f", growth {told['seconds'] / seconds / (n / n_before):.2f}"
                before[relative_tol] = n, told["seconds"]
                print(line, flush=True)
            told = in_new_process("--sgd", str(folder))
            print(
                f"  SGDClassifier, one epoch: {told['seconds']:.1f} s, F {told['objective']:.8f}, "
                f"{told['nonzero']} nonzero",
                flush=True,
            )
            if size == "small" and importlib.util.find_spec("cyanure") is not None:
                told = in_new_process("--cyanure", str(folder), kind)
                print(
                    f"  cyanure, in memory: {told['seconds']:.1f} s, F {told['objective']:.8f}, "
                    f"{told['nonzero']} nonzero, {told['memory'] / 1e9:.2f} GB of memory",
                    flush=True,
                )
        finally:
            if not keep:
                shutil.rmtree(folder.parent)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", nargs="*", default=["small"], metavar="SIZE", help="small, middle or full")
    parser.add_argument("--kind", nargs="+", choices=list(SIZES), default=list(SIZES))
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--keep", action="store_true", help="leave the data there")
    args = parser.parse_args()
    for kind in args.kind:
        compare(kind, args.sizes, args.folder, args.keep)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--fit"]:
        print(json.dumps(fit(Path(sys.argv[2]), sys.argv[3], float(sys.argv[4]))))
    elif sys.argv[1:2] == ["--cyanure"]:
        print(json.dumps(cyanure(Path(sys.argv[2]), sys.argv[3])))
    elif sys.argv[1:2] == ["--sgd"]:
        print(json.dumps(sgd(Path(sys.argv[2]))))
    else:
        main()
