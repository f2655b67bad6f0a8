"""Paths of the Lasso and of logistic regression on columns that lie on disk: reads, bytes, seconds and memory.

    python benchmarks/scale/columns.py [small] [middle] [full] [--folder FOLDER] [--threads N]

The problem is the one that the paper on biglasso (Zeng & Breheny 2021) solves out of core: 3,000 samples, up to
1,340,000 features in float64 (32 GB), 20 of them with coefficients, and 100 penalties from lambda_max to a tenth of it.
Every point is solved to a relative duality gap of 1e-6, certified. The published time of biglasso at full size is
1,063 s, on another machine. The logistic path has the same X and penalties, and classes drawn with the log-odds y.

The data are made in FOLDER (by default, the folder for temporary files), where half more than their size must be free,
and are removed at the end. Each size runs in a process of its own, so that its peak memory is its own, after the file
was dropped from the cache of the system. "sequential" is what the same readers do with the whole file and no work in
between, in the same run; "share" is the time that this speed needs for the bytes that the path read, over the time of
the path. biglasso itself runs on the same file where R has it; else the line says that it was skipped.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import condgrad as cg

N_SAMPLES = 3_000
N_FEATURES = {"small": 13_400, "middle": 134_000, "full": 1_340_000}
N_INFORMATIVE = 20
AT_ONCE = 670  # columns that are made at once: 16 MB
PENALTIES = np.linspace(1.0, 0.1, 100)
TOL = 1e-6
FAMILIES = {"lasso": "gaussian", "logistic": "binomial"}
BIGLASSO = """
suppressMessages(library(biglasso)); suppressMessages(library(bigmemory)); a <- commandArgs(TRUE)
X <- attach.big.matrix(a[1]); y <- scan(a[2], quiet = TRUE)
time <- system.time(biglasso(X, y, family = a[3], nlambda = 100, lambda.min = 0.1, eps = 1e-8))
cat(time[["elapsed"]])
"""


def main() -> None:
    """Run the sizes one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", nargs="*", metavar="SIZE", help="small, middle or full")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--paths", nargs="+", choices=tuple(FAMILIES), default=list(FAMILIES))
    parser.add_argument("--run", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run is not None:
        run(options.run, options.paths[0])
        return
    for size in options.sizes or ["small", "middle"]:
        measure(size, options.folder, options.threads, options.paths)


def measure(size: str, parent: Path, n_threads: int, paths: list[str]) -> None:
    """Make the data of one size, run each path on them in a new process, and remove them."""
    n_bytes, free = 8 * N_SAMPLES * N_FEATURES[size], shutil.disk_usage(parent).free
    if free < 1.5 * n_bytes:
        print(f"{size}: skipped, because {parent} has {free / 1e9:.0f} GB free, not {1.5 * n_bytes / 1e9:.0f} GB.")
        return
    with tempfile.TemporaryDirectory(prefix="condgrad-columns-", dir=parent) as name:
        folder = Path(name)
        began = time.perf_counter()
        generate(folder, N_FEATURES[size])
        print(f"{size}: {N_SAMPLES:,} x {N_FEATURES[size]:,}, {n_bytes / 1e9:.2f} GB, made in "
              f"{time.perf_counter() - began:.0f} s", flush=True)  # fmt: skip
        limits = {name: str(n_threads) for name in ("NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")}
        for path in paths:
            command = [sys.executable, __file__, "--paths", path, "--run", name]
            subprocess.run(command, check=True, env=os.environ | limits)
            print(f"    biglasso: {biglasso(folder, path)}", flush=True)


def generate(folder: Path, d: int) -> None:
    """Write X in Fortran order, without a header, and y."""
    rng = np.random.default_rng(0)
    w = np.zeros(d)
    w[rng.choice(d, N_INFORMATIVE, replace=False)] = rng.uniform(-1.0, 1.0, N_INFORMATIVE)
    with open(folder / "X.bin", "wb") as file:
        file.truncate(8 * N_SAMPLES * d)

    def make(first: int) -> np.ndarray:
        count = min(AT_ONCE, d - first)
        numbers = np.random.default_rng([1, first]).integers(-32768, 32767, (count, N_SAMPLES), dtype=np.int16)
        values = numbers.astype(np.float64)
        values /= 18918.0  # so that their variance is one
        with open(folder / "X.bin", "r+b") as file:
            file.seek(8 * N_SAMPLES * first)
            file.write(values.data)
            file.flush()
            os.fdatasync(file.fileno())
        return w[first : first + count] @ values

    y = 0.1 * rng.standard_normal(N_SAMPLES)
    with ThreadPoolExecutor(2) as pool:
        for part in pool.map(make, range(0, d, AT_ONCE)):
            y += part
    np.save(folder / "y_lasso.npy", y)
    np.save(folder / "y_logistic.npy", np.where(rng.random(N_SAMPLES) < 1.0 / (1.0 + np.exp(-y)), 1.0, -1.0))


def forget(path: Path) -> None:
    """Drop a file from the cache of the system."""
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def from_disk() -> float:
    """Return the bytes that this process has read from the disk itself, not from the cache."""
    lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
    return float(next(line for line in lines if line.startswith("read_bytes")).split()[1])


def solve(columns: cg.columns.StoredColumns, y: np.ndarray, path: str, **settings: object) -> cg.PathInfo:
    """Return what is known about the points of a path."""
    if path == "lasso":
        return cg.lasso_path(columns, y, **settings)[2]
    return cg.radius_path(columns, y, loss=path, **settings)[2]


def run(folder: Path, kind: str) -> None:
    """Measure the sequential speed, then a path."""
    path, y = folder / "X.bin", np.load(folder / f"y_{kind}.npy")
    X = np.memmap(path, np.float64, "r", shape=(N_SAMPLES, path.stat().st_size // (8 * N_SAMPLES)), order="F")
    warm_up(folder, kind)
    forget(path)
    columns = cg.columns.open(X)
    began = time.perf_counter()
    for _ in columns.blocks():
        pass
    speed = columns.n_bytes / (time.perf_counter() - began)
    forget(path)
    columns, disk = cg.columns.open(X), from_disk()
    began = time.perf_counter()
    largest = solve(columns, y, kind, radii=[0.0]).alpha[0]
    first = time.perf_counter() - began
    info = solve(columns, y, kind, alphas=largest * PENALTIES, tol=TOL)
    seconds = time.perf_counter() - began
    print(
        f"  {kind}: {seconds:.1f} s, of which the first read {first:.1f} s; {columns.n_reads:.2f} reads, "
        f"{columns.bytes_read / 1e9:.2f} GB ({(from_disk() - disk) / 1e9:.2f} GB from the disk itself), "
        f"{info.n_looks} looks, {info.passes:.2f} passes worth of columns\n"
        f"    sequential {speed / 1e9:.2f} GB/s, share {columns.bytes_read / speed / seconds:.0%}; peak memory "
        f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB; {info.status.name}, largest relative gap "
        f"{info.relative_gap.max():.1e}, {info.n_nonzero[-1]} nonzero",
        flush=True,
    )


def warm_up(folder: Path, kind: str) -> None:
    """Compile the kernels on a small problem, so that no clock counts it."""
    rng = np.random.default_rng(0)
    small, y = rng.standard_normal((50, 200)), rng.standard_normal(50)
    np.save(folder / "small.npy", np.asfortranarray(small))
    solve(cg.columns.open(folder / "small.npy"), y if kind == "lasso" else np.sign(y), kind, n_radii=5)


def biglasso(folder: Path, kind: str) -> str:
    """Return the seconds of a path of biglasso on the same file, or why it was skipped."""
    rscript = shutil.which("Rscript")
    if rscript is None or subprocess.run([rscript, "-e", "library(biglasso)"], capture_output=True).returncode != 0:
        return "skipped, because R or its package biglasso is not there"
    y = np.load(folder / f"y_{kind}.npy")
    np.savetxt(folder / "y.txt", y if kind == "lasso" else (y + 1.0) / 2.0)
    describe(folder)
    program = folder / "path.R"
    program.write_text(BIGLASSO, encoding="ascii")
    command = [rscript, program, folder / "X.desc", folder / "y.txt", FAMILIES[kind]]
    done = subprocess.run(command, capture_output=True, text=True)
    return f"{done.stdout} s" if done.returncode == 0 else f"failed: {done.stderr.strip()[-300:]}"


def describe(folder: Path) -> None:
    """Write the description with which bigmemory reads X where it lies."""
    d = (folder / "X.bin").stat().st_size // (8 * N_SAMPLES)
    (folder / "X.desc").write_text(
        'new("big.matrix.descriptor", description = list(sharedType = "FileBacked", filename = "X.bin", '
        f'dirname = "{folder}/", totalRows = {N_SAMPLES}L, totalCols = {d}L, rowOffset = c(0, {N_SAMPLES}), '
        f'colOffset = c(0, {d}), nrow = {N_SAMPLES}, ncol = {d}, rowNames = NULL, colNames = NULL, type = "double", '
        "separated = FALSE))",
        encoding="ascii",
    )


if __name__ == "__main__":
    main()
