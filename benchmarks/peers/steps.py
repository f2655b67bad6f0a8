"""Microseconds a step of stochastic Frank-Wolfe: condgrad side by side with C-OPT 0.9.2.

Logistic regression over the l1 ball, algorithm 1 of Negiar et al. (2020) in both: condgrad's ``sfw``, C-OPT's
``minimize_sfw`` with variant="SAG". The data has 20,000 rows of 50 stored entries in random columns.

    python benchmarks/peers/steps.py [--quick]

How the comparison is kept fair:

* C-OPT gets CSR data, its own compiled loss (fetched once) and its l1 ball; tol=0; numba is installed, without which
  it would run as plain Python. Its loop is stopped by a callback after a fixed number of steps, in whole epochs for
  batches, and its clock starts when the loop does. It runs with one thread and with two; the faster counts.
* condgrad runs through ``minimize`` with tol=0 and no evaluation inside the run. Its clock, ``Result.seconds``,
  includes drawing the samples.
* Both are warmed up before, take turns, and count with the best of several repeats. C-OPT draws a batch in O(n): the
  column "drawing excluded" leaves out what either library spends on drawing samples.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib.util
import pathlib
import sys
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numba
import numpy as np

import condgrad as cg
from condgrad import datasets
from condgrad.solvers.stochastic import sampling

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from results import Report, add_option

RADIUS = 50.0
N, PER_ROW = 20_000, 50
WIDTHS = (10_000, 47_236, 1_000_000)
LENGTHS = (10_000, 100_000, 1_000_000)
TARGETS = {47_236: 150.0, 1_000_000: 1500.0}  # times faster than C-OPT at b = 1
TARGET_NEWS20, TARGET_WIDTH, TARGET_LENGTH = 8.0, 3.0, 1.5


class Time(NamedTuple):
    """Seconds a step, with and without drawing samples."""

    total: float
    without_draws: float

    def better(self, other: Time | None) -> Time:
        """Return the smaller of each."""
        return self if other is None else Time(*map(min, self, other))


def main() -> int:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer repeats, and no data of a million rows")
    parser.add_argument("--repeats", type=int, help="how often each is measured (default 5; 2 with --quick)")
    parser.add_argument("--skew", type=float, default=0.0, help="of the column frequencies; 1 is like text (default 0)")
    parser.add_argument("--only", choices=("widths", "news20", "lengths"), help="one table instead of all")
    add_option(parser)
    options = parser.parse_args()
    report = Report(__file__, "How long does a step of stochastic Frank-Wolfe take, beside C-OPT?", ["copt"])
    repeats = options.repeats or (2 if options.quick else 5)
    has_peer = importlib.util.find_spec("copt") is not None
    if not has_peer:
        print("C-OPT is not installed (pip install 'condgrad[bench]'): only condgrad is measured.\n")
    if options.only in (None, "widths"):
        compare_widths(repeats, options.skew, has_peer, report)
    if options.only in (None, "news20"):
        compare_news20(repeats, has_peer, report)
    if options.only in (None, "lengths"):
        compare_lengths(repeats, options.skew, LENGTHS[:-1] if options.quick else LENGTHS)
    report.write(options.json)
    return 0


def compare_widths(repeats: int, skew: float, has_peer: bool, report: Report) -> None:
    """Print microseconds a step for three numbers of features and two batch sizes."""
    cases = {}
    for d in WIDTHS:
        data = datasets.simulate_sparse(N, d, PER_ROW, skew=skew, random_state=0)
        for b in (1, N // 100):
            cases[d, b] = Case(data.X, data.y, b, has_peer)
    measured = take_turns(cases, repeats)
    for b in (1, N // 100):
        print(f"b = {b}: n = {N:,}, {PER_ROW} stored entries a row; microseconds a step")
        print(HEADER.format("d"))
        for d in WIDTHS:
            target = TARGETS.get(d) if b == 1 else None
            print_line(f"{d:,}", *measured[d, b], target)
        report.table(f"b = {b}, n = {N:,}", FIELDS, [in_microseconds(f"d = {d:,}", *measured[d, b]) for d in WIDTHS])
        growth = measured[WIDTHS[-1], b][0].total / measured[WIDTHS[0], b][0].total
        target = f" (target: at most {TARGET_WIDTH:g}: {verdict(growth <= TARGET_WIDTH)})" if b == 1 else ""
        print(f"  from d = {WIDTHS[0]:,} to {WIDTHS[-1]:,} a step of condgrad grows {growth:.2f} times{target}.\n")


def compare_news20(repeats: int, has_peer: bool, report: Report) -> None:
    """Print microseconds a step on news20 with b = n / 100."""
    try:
        data = datasets.load("news20-binary")
    except FileNotFoundError as error:
        print(f"news20: skipped, because {error}\n")
        return
    n, d = data.X.shape
    b = n // 100
    measured = take_turns({"news20": Case(data.X, data.y, b, has_peer)}, repeats)
    print(f"news20: n = {n:,}, d = {d:,}, {data.X.nnz / n:.0f} stored entries a row, b = {b}; microseconds a step")
    print(HEADER.format(""))
    print_line("news20", *measured["news20"], TARGET_NEWS20)
    report.table(f"news20, {n:,} x {d:,}, b = {b}", FIELDS, [in_microseconds("news20", *measured["news20"])])
    print()


def compare_lengths(repeats: int, skew: float, lengths: tuple[int, ...]) -> None:
    """Print microseconds a step of condgrad for growing numbers of samples, at b = 1."""
    d = 47_236
    print(f"b = 1, d = {d:,}, {PER_ROW} stored entries a row: microseconds a step of condgrad as n grows")
    print(f"  {'n':>12}{'step':>10}{'drawing excluded':>20}{'reading the rows alone':>26}{'rest':>10}")
    rests = []
    for n in lengths:
        data = datasets.simulate_sparse(n, d, PER_ROW, skew=skew, random_state=0)
        case = Case(data.X, data.y, 1, has_peer=False)
        del data
        best, reading = take_turns({n: case}, repeats)[n][0], min(case.time_reading() for _ in range(repeats))
        rests.append(best.without_draws - reading)
        shown = "".join(f"{1e6 * t:>{width}.2f}" for t, width in [(best.total, 10), (best.without_draws, 20)])
        print(f"  {n:>12,}{shown}{1e6 * reading:>26.2f}{1e6 * rests[-1]:>10.2f}")
        del case
        gc.collect()
    growth = rests[-1] / rests[0]
    print(
        "  Reading the rows alone: a loop that only sums the rows and looks up y_i, weight_i and alpha_i, at random i."
    )
    print("  It is all cache misses once the data has outgrown the caches; the rest is what the algorithm costs.")
    print(f"  From n = {lengths[0]:,} to {lengths[-1]:,} the rest grows {growth:.2f} times ", end="")
    print(f"(target: at most {TARGET_LENGTH:g}: {verdict(growth <= TARGET_LENGTH)}).")


COLUMNS = f"{'condgrad':>12}{'copt':>12}{'ratio':>10}"
HEADER = f"  {{:>12}}{COLUMNS}{'drawing excluded:':>20}{COLUMNS}"


FIELDS = ["data", "condgrad, microseconds a step", "copt", "ratio"]


def in_microseconds(name: str, ours: Time, peer: Time | None) -> list[str | float | None]:
    """Return a line of the table for the site."""
    theirs = [None, None] if peer is None else [1e6 * peer.total, peer.total / ours.total]
    return [name, 1e6 * ours.total, *theirs]


def print_line(name: str, ours: Time, peer: Time | None, target: float | None) -> None:
    """Print one line of a table."""
    line = f"  {name:>12}{1e6 * ours.total:>12.2f}"
    if peer is None:
        print(f"{line}{'-':>12}{'-':>10}{'':>20}{1e6 * ours.without_draws:>12.2f}")
        return
    ratio, without = peer.total / ours.total, peer.without_draws / ours.without_draws
    line += f"{1e6 * peer.total:>12.1f}{ratio:>10.1f}"
    line += f"{'':>20}{1e6 * ours.without_draws:>12.2f}{1e6 * peer.without_draws:>12.1f}{without:>10.1f}"
    print(line + (f"   target {target:g}: {verdict(ratio >= target)}" if target else ""))


def verdict(holds: bool) -> str:
    """Return how a target stands."""
    return "met" if holds else "MISSED"


def take_turns(cases: dict[Any, Case], repeats: int) -> dict[Any, tuple[Time, Time | None]]:
    """Return the best times of both libraries on every case, measured in turns."""
    best: dict[Any, list[Time | None]] = {key: [None, None] for key in cases}
    for case in cases.values():
        case.warm_up()
    for _ in range(repeats):
        for key, case in cases.items():
            best[key][0] = case.time_condgrad().better(best[key][0])
            for threads in case.peer_threads:
                best[key][1] = case.time_copt(threads).better(best[key][1])
    return {key: (ours, peer) for key, (ours, peer) in best.items() if ours is not None}


class Case:
    """One problem with one batch size, run by both libraries."""

    def __init__(self, X: Any, y: np.ndarray, b: int, has_peer: bool) -> None:
        self.problem = cg.Problem(X, y, cg.losses.Logistic(), cg.constraints.L1Ball(RADIUS))
        self.X, self.y, self.b, self.n = X, y, b, X.shape[0]
        self.peer_threads = sorted({1, min(2, numba.config.NUMBA_NUM_THREADS)}) if has_peer else []
        self.steps = 100_000 if b == 1 else 1000
        if has_peer:
            from copt.constraint import L1Ball
            from copt.loss import LogLoss

            self.lmo, self.deriv = L1Ball(RADIUS).lmo, LogLoss(X, (y + 1.0) / 2.0).partial_deriv

    def warm_up(self) -> None:
        """Compile everything, and let the first pages and caches fill."""
        self.time_condgrad()
        for threads in self.peer_threads:
            self.time_copt(threads, max_steps=50)

    def time_condgrad(self) -> Time:
        """Return the time of a step of sfw."""
        with clocked(sampling.Sampler, "draw") as draws:
            result = cg.minimize(
                self.problem,
                cg.solvers.SFW(batch_size=self.b),
                max_steps=self.steps,
                max_epochs=np.inf,
                tol=0.0,
                evaluate_every=1e12,
                random_state=0,
            )
        return Time(result.seconds / result.n_steps, (result.seconds - draws[0]) / result.n_steps)

    def time_copt(self, threads: int, max_steps: int | None = None) -> Time:
        """Return the time of a step of C-OPT: some seconds' worth at b = 1, one epoch for batches."""
        from copt import randomized

        per_epoch = self.n // self.b
        wanted = max_steps or max(20, min(per_epoch, int(1e8 / self.X.shape[1])))
        counter = _Counter(wanted if self.b == 1 or max_steps else per_epoch)
        numba.set_num_threads(threads)
        try:
            with clocked(randomized.utils, "sample_batches") as draws, contextlib.suppress(_EnoughError):
                randomized.minimize_sfw(
                    self.deriv,
                    self.X,
                    (self.y + 1.0) / 2.0,
                    np.zeros(self.X.shape[1]),
                    self.lmo,
                    batch_size=self.b,
                    max_iter=2,
                    tol=0,
                    variant="SAG",
                    callback=counter,
                )
        finally:
            numba.set_num_threads(numba.config.NUMBA_NUM_THREADS)
        return Time(counter.seconds / counter.limit, (counter.seconds - draws[0]) / counter.limit)

    def time_reading(self) -> float:
        """Return the time that reading the rows of a step takes, and nothing else."""
        rows = np.random.default_rng(0).integers(self.n, size=self.steps)
        samples, X = self.problem.samples, self.problem.matrix.rows
        alpha = np.zeros(self.n)
        start = time.perf_counter()
        read_rows(X.data, X.indices, X.indptr, samples.y, samples.weight, alpha, rows)
        return (time.perf_counter() - start) / self.steps


class _EnoughError(Exception):
    """Ends a run of C-OPT, which stops at epochs only."""


class _Counter:
    """Counts the steps of C-OPT: it calls back once before the loop and once after each step."""

    def __init__(self, limit: int) -> None:
        self.limit, self.count, self.seconds = limit, -1, np.inf

    def __call__(self, _: dict) -> None:
        self.count += 1
        if self.count == 0:
            self.start = time.perf_counter()
        elif self.count == self.limit:
            self.seconds = time.perf_counter() - self.start
            raise _EnoughError


@contextlib.contextmanager
def clocked(owner: Any, name: str) -> Iterator[list[float]]:
    """Add up the seconds spent in a function while the block runs."""
    function, spent = getattr(owner, name), [0.0]

    def timed(*args: Any, **kwargs: Any) -> Any:
        start = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            spent[0] += time.perf_counter() - start

    setattr(owner, name, timed)
    try:
        yield spent
    finally:
        setattr(owner, name, function)


@numba.njit
def read_rows(data, indices, indptr, y, weight, alpha, rows):
    """Sum everything that the steps on these rows would look at."""
    total = 0.0
    for i in rows:
        for k in range(indptr[i], indptr[i + 1]):
            total += data[k] * indices[k]
        total += y[i] + weight[i] + alpha[i]
        alpha[i] = total
    return total


if __name__ == "__main__":
    raise SystemExit(main())
