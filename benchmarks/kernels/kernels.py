"""Nanoseconds per stored entry of a step of sfw beside a hand-written C loop, and full passes beside the memory.

    python benchmarks/kernels/kernels.py [--repeats 40]

Steps: condgrad's kernel and the loops of loops.c run the same algorithm on the same batches and arrays (logistic loss,
l1 ball, open loop; scaled iterate; a tree or a scan over r, whichever condgrad chose), in turns, best of several.
Drawing the samples is outside both, and the clock is the thread's own, which stands still while others use the core.
The C code is compiled with gcc -O3 -march=native, once as it stands and once with -ffast-math; the faster counts. The
two must reach the same iterate. Passes: X w and X'a beside scipy and numpy, and beside what the memory gives a plain
loop.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import ctypes
import pathlib
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numba
import numpy as np
from threadpoolctl import threadpool_limits

import condgrad as cg
from condgrad import datasets
from condgrad.linalg.matrix import Matrix
from condgrad.solvers.stochastic._state import run_block

TARGET = 1.3
SOURCE = pathlib.Path(__file__).with_name("loops.c")
FLAGS = (["-O3", "-march=native"], ["-O3", "-march=native", "-ffast-math"])
RADIUS = 50.0

LIMIT_OF_STEPS = """\
  The limits: an entry is read twice, for its prediction and for its share of r; 12 bytes in CSR, from cache the second
  time, at a random place of w and of r. A tree adds a look at the entry's leaf and the changes counted above, one after
  another: latency, not arithmetic. A scan adds d comparisons a step. At b = 1 the exponential, the oracle and the move
  are shared by the entries of one row only.
"""
LIMIT_OF_PASSES = """\
  The limit: a pass does two floating-point operations per 8 to 12 bytes, so memory sets the pace once X is larger than
  the caches. X'a of CSR also scatters into d numbers: entries that fall on the same ones wait for each other."""


def main() -> int:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=40, help="how often each is measured (default 40)")
    options = parser.parse_args()
    compiler = shutil.which("gcc")
    if compiler is None:
        print("Skipped: the comparison needs the compiler gcc, which is not installed.")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        libraries = [build(compiler, flags, pathlib.Path(folder) / f"loops{k}.so") for k, flags in enumerate(FLAGS)]
        compare_steps(libraries, options.repeats)
        compare_passes(libraries[0], options.repeats)
    return 0


def build(compiler: str, flags: list[str], path: pathlib.Path) -> ctypes.CDLL:
    """Compile the C loops and load them."""
    subprocess.run([compiler, *flags, "-shared", "-fPIC", str(SOURCE), "-o", str(path), "-lm"], check=True)
    library = ctypes.CDLL(str(path))
    for name in ("steps_tree", "steps_scan", "steps_dense"):
        getattr(library, name).restype = ctypes.c_int64
    library.sum.restype = ctypes.c_double
    return library


class CRun(ctypes.Structure):
    """The struct ``run`` of loops.c."""

    _fields_ = [
        ("d", ctypes.c_int64),
        ("half", ctypes.c_int64),
        ("shift", ctypes.c_int64),
        *[(name, ctypes.c_void_p) for name in ("data", "y", "weight", "indices", "indptr")],
        *[(name, ctypes.c_void_p) for name in ("alpha", "r", "tree", "z", "scale", "scalars")],
        ("radius", ctypes.c_double),
        ("smoothing", ctypes.c_double),
    ]


class Case(NamedTuple):
    """A problem, a batch size, and how many steps to time."""

    name: str
    problem: cg.Problem
    b: int
    steps: int


def cases() -> Iterator[Case]:
    """Yield sparse and dense problems."""
    loss, ball = cg.losses.Logistic(), cg.constraints.L1Ball(RADIUS)
    for skew, kind in ((0.0, "even columns"), (1.0, "columns as in text")):
        data = datasets.simulate_sparse(20_000, 47_236, 50, skew=skew, random_state=0)
        problem = cg.Problem(data.X, data.y, loss, ball)
        yield Case(f"CSR, {kind}, b = 1", problem, 1, 4000)
        yield Case(f"CSR, {kind}, b = 100", problem, 100, 40)
    data = datasets.simulate_sparse(20_000, 1_000_000, 50, skew=1.0, random_state=0)
    problem = cg.Problem(data.X, data.y, loss, ball)
    yield Case("CSR, d = 10^6, b = 1", problem, 1, 4000)
    yield Case("CSR, d = 10^6, b = 100", problem, 100, 40)
    for n, d in ((100_000, 30), (20_000, 500)):
        data = datasets.simulate_classification(n, d, random_state=0)
        problem = cg.Problem(data.X, data.y, loss, ball)
        yield Case(f"dense, d = {d}, b = 1", problem, 1, 200_000 // d)
        yield Case(f"dense, d = {d}, b = 100", problem, 100, max(4, 4_000 // d))


def compare_steps(libraries: list[ctypes.CDLL], repeats: int) -> None:
    """Print nanoseconds per stored entry of a step, and how they compare with C."""
    print("A step of sfw: nanoseconds per stored entry of the batch")
    print(f"  {'':<34}{'oracle':>8}{'condgrad':>10}{'C':>8}{'ratio':>8}   nodes changed an entry")
    worst = 0.0
    for case in cases():
        ours, theirs, oracle, renewed = time_steps(case, libraries, repeats)
        ratio = ours / theirs
        worst = max(worst, ratio)
        nodes = f"{renewed:>8.2f}" if oracle == "tree" else ""
        print(f"  {case.name:<34}{oracle:>8}{ours:>10.2f}{theirs:>8.2f}{ratio:>8.2f}   {nodes}")
    outcome = "met" if worst <= TARGET else f"MISSED, worst {worst:.2f}"
    print(f"  Target: at most {TARGET} times C everywhere: {outcome}.")
    print(LIMIT_OF_STEPS)


def time_steps(case: Case, libraries: list[ctypes.CDLL], repeats: int) -> tuple[float, float, str, float]:
    """Return nanoseconds an entry of condgrad and of C, the oracle, and the tree nodes changed per entry.

    Each run makes a first block of steps, which is not counted: it touches the memory, and the first steps are not
    typical.
    """
    ours, theirs = [], []
    for _ in range(repeats):
        run = fresh(case)
        blocks = [run.sampler.draw(np.full(case.steps, case.b)) for _ in range(2)]
        for k, batches in enumerate(blocks):
            start = time.thread_time()
            run_block(run.in_kernel, run.space.view, run.arrays, batches, k * case.steps)
            elapsed = time.thread_time() - start
        ours.append(elapsed)
        for library in libraries:
            c_run = fresh(case)
            loop, struct, oracle = c_loop(case, c_run, library)
            for k, batches in enumerate(blocks):
                rows = batches.indices.ctypes.data_as(ctypes.c_void_p)
                numbers = [ctypes.c_int64(number) for number in (case.b, case.steps, 1 + k * case.steps)]
                start = time.thread_time()
                renewed = loop(ctypes.byref(struct), rows, *numbers)
                elapsed = time.thread_time() - start
            theirs.append(elapsed)
            difference = np.abs(c_run.w - run.w).max()
            if difference > 1e-6 * RADIUS:
                raise SystemExit(f"{case.name}: condgrad and C disagree by {difference:.1e}.")
    n_entries = entries(case, blocks[1].indices)
    return 1e9 * min(ours) / n_entries, 1e9 * min(theirs) / n_entries, oracle, renewed / n_entries


def fresh(case: Case) -> Any:
    """Return a run of sfw at its start."""
    return cg.solvers.SFW(batch_size=case.b).init(case.problem, np.zeros(case.problem.n_features), 0)


def entries(case: Case, rows: np.ndarray) -> int:
    """Return how many stored entries the rows have."""
    X = case.problem.matrix
    return X.count_stored(rows) if X.is_sparse else rows.size * case.problem.n_features


def c_loop(case: Case, run: Any, library: ctypes.CDLL) -> tuple[Any, CRun, str]:
    """Return the C loop that does what condgrad does, and its view of the arrays."""
    X, r, w = case.problem.matrix, run.arrays.r, run.arrays.w
    has_tree = hasattr(r.vector, "tree")
    arrays = {
        "data": X.rows.data if X.is_sparse else X.X,
        "y": case.problem.samples.y,
        "weight": case.problem.samples.weight,
        "indices": X.rows.indices if X.is_sparse else None,
        "indptr": X.rows.indptr if X.is_sparse else None,
        "alpha": run.arrays.alpha.values,
        "r": r.vector.values,
        "tree": r.vector.tree if has_tree else None,
        "z": w.vector.values,
        "scale": w.scale,
        "scalars": r.scalars,
    }
    pointers = {name: None if array is None else array.ctypes.data for name, array in arrays.items()}
    d, half, shift = case.problem.n_features, r.vector.tree.size // 2 if has_tree else 0, 0
    while has_tree and -(-d >> shift) > half:  # a leaf of the tree may stand for several entries
        shift += 1
    struct = CRun(d=d, half=half, shift=shift, radius=RADIUS, smoothing=r.smoothing, **pointers)
    if not X.is_sparse:
        return library.steps_dense, struct, "scan"
    return (library.steps_tree, struct, "tree") if has_tree else (library.steps_scan, struct, "scan")


def compare_passes(library: ctypes.CDLL, repeats: int) -> None:
    """Print the speed of full passes, in gigabytes a second, beside that of the memory."""
    most = numba.config.NUMBA_NUM_THREADS
    counts = sorted({1, most})
    print("Full passes: GB/s of the bytes that X holds and the vectors read and written (milliseconds in brackets)")
    print(f"  {'':<34}" + "".join(f"{f'{k} thread' + 's' * (k > 1):>22}" for k in counts))
    plain = {"memory: triad": 3, "memory: read only": 1}
    for name, arrays in plain.items():
        print_speeds(name, [(8e6 * 5 * arrays, memory(library, arrays, k, repeats)) for k in counts])
    sparse = datasets.simulate_sparse(200_000, 47_236, 50, skew=1.0, random_state=0).X
    dense = np.random.default_rng(0).standard_normal((100_000, 200))
    for name, X in (("CSR 200,000 x 47,236", sparse), ("dense 100,000 x 200", dense)):
        n, d = X.shape
        stored = 12 * X.nnz + 4 * (n + 1) if name.startswith("CSR") else X.nbytes
        matrix, w, a = Matrix(X), np.ones(d), np.ones(n)
        moved = stored + 8 * (n + d)
        peer = "scipy" if name.startswith("CSR") else "numpy"
        passes: dict[str, Callable] = {
            f"{name}, X w": lambda matrix=matrix, w=w: matrix.dot(w),
            f"  {peer}": lambda X=X, w=w: X @ w,
            f"{name}, X'a": lambda matrix=matrix, a=a: matrix.transpose_dot(a),
            f"  {peer} ": lambda X=X, a=a: X.T @ a,
        }
        for label, task in passes.items():
            speeds = []
            for k in counts:
                with using_threads(k):
                    speeds.append((moved, best(task, repeats)))
            print_speeds(label, speeds)
    print(LIMIT_OF_PASSES)


def print_speeds(label: str, speeds: list[tuple[float, float]]) -> None:
    """Print one line of the table of passes."""
    cells = [f"{bytes_ / seconds / 1e9:.1f} ({1e3 * seconds:.2f})" for bytes_, seconds in speeds]
    print(f"  {label:<34}" + "".join(f"{cell:>22}" for cell in cells))


def memory(library: ctypes.CDLL, n_arrays: int, threads: int, repeats: int) -> float:
    """Return the time of a plain loop over arrays of 5 million numbers (40 MB) each."""
    n = 5_000_000
    arrays = [np.ones(n) for _ in range(n_arrays)]
    cuts = np.linspace(0, n, threads + 1).astype(int)

    def part(start: int, stop: int) -> None:
        pointers = [ctypes.c_void_p(array[start:].ctypes.data) for array in arrays]
        (library.triad if n_arrays == 3 else library.sum)(*pointers, ctypes.c_int64(stop - start))

    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        return best(lambda: list(pool.map(part, cuts[:-1], cuts[1:])), repeats)


@contextlib.contextmanager
def using_threads(count: int) -> Iterator[None]:
    """Let condgrad and BLAS use so many threads."""
    before = numba.config.NUMBA_NUM_THREADS
    numba.config.NUMBA_NUM_THREADS = count
    try:
        with threadpool_limits(count):
            yield
    finally:
        numba.config.NUMBA_NUM_THREADS = before


def best(task: Callable, repeats: int) -> float:
    """Return the shortest time of several, after one that is not counted."""
    task()
    return min(clock(task) for _ in range(repeats))


def clock(task: Callable) -> float:
    """Return how long a call takes."""
    start = time.perf_counter()
    task()
    return time.perf_counter() - start


if __name__ == "__main__":
    raise SystemExit(main())
