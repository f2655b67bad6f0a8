"""Rows with the workers of a Dask cluster: passes, seconds and bytes of logistic regression over an l1 ball.

    python benchmarks/scale/cluster.py [--rows N] [--workers K ...] [--partitions P ...] [--kind KIND ...] [--peers]

A cluster of K processes with one thread each runs on this machine, so scheduler, workers and this process share its
cores. Seconds are therefore counted by the clocks of the processes: those of this one, which is also the scheduler,
plus the mean of the workers'. On machines of their own this is the time of a run. The simulated rows (those of disk.py)
are made by the workers. For each number of workers and partitions it shows

* passes to relative gaps of 1e-4 and 1e-6 and seconds, beside what the model of docs/clusters.md predicts: its
  constants are measured before, on a tenth of the rows and on partitions of ten rows;
* the bytes that a pass sends down and receives in this process;
* with ``--peers``, dask-ml's LogisticRegression on the same partitions, with the penalty whose solution is that of the
  ball. One function computes F + penalty at both results;
* what the model predicts for 10^9 rows on 1, 10 and 100 machines of 16 cores.

The file is not called dask.py because a script of that name hides the package.
"""

from __future__ import annotations

import argparse
import contextlib
import pickle
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import cloudpickle
import disk
import numpy as np
from disk import RADIUS, dense_batch, one_hot_batch, true_coefficients

import condgrad as cg
from condgrad.problems.rows.cluster import PartitionedRows

cloudpickle.register_pickle_by_value(disk)  # workers cannot import it

FULL = 1_000_000_000  # rows of the predictions
NETWORK = 1.25e9  # bytes a second of a network of 10 Gbit/s
ENTRIES_OF_W = {"dense": 31, "one-hot": 350}  # nonzero entries of the solutions, measured
BYTES = {"dense": 4 * disk.N_DENSE + 8, "one-hot": 39 * 12 + 16}  # of a row with its target at a worker
PASSES = {1e-4: 4, 1e-6: 6}  # of n = 10^9 rows, measured at 10^6 to 4 * 10^7


def partition(kind: str, seed: int, n_rows: int) -> tuple[Any, np.ndarray]:
    """Return the rows and targets of one partition, a pure function of its number."""
    rng = np.random.default_rng(seed)
    X, p = (dense_batch if kind == "dense" else one_hot_batch)(rng, n_rows, true_coefficients(kind))
    y = np.where(rng.random(n_rows) < 1.0 / (1.0 + np.exp(-p)), 1.0, -1.0)
    return (X if isinstance(X, np.ndarray) else X.chosen(slice(None)).X), y


def rows_on(client: Any, kind: str, n_rows: int, n_partitions: int) -> cg.rows.ClusterRows:
    """Return simulated rows that the workers make themselves."""
    made = [client.submit(partition, kind, k, n_rows // n_partitions, pure=False) for k in range(n_partitions)]
    X, y = ([client.submit(lambda part, at=at: part[at], part, pure=False) for part in made] for at in (0, 1))
    return cg.rows.from_dask(X, y, client=client)


def problem_of(X: Any, y: Any, kind: str) -> cg.Problem:
    return cg.Problem(X, y, cg.losses.Logistic(), cg.constraints.L1Ball(RADIUS[kind]))


class Traffic:
    """Counts the bytes of questions and answers between this process and the workers, and the seconds of passes."""

    def __init__(self, rows: PartitionedRows) -> None:
        self.up, self.down, self.tasks = 0, 0, 0
        self.here = 0.0  # seconds of this process while the workers answer
        self._client = rows.rows.client
        self._began = self._clocks()
        submit, total = rows.rows._submit, rows.rows.total

        def counted_submit(task: Any, *args: Any) -> Any:
            self.tasks += 1
            self.down += sum(len(cloudpickle.dumps(each)) for each in args if not hasattr(each, "key"))
            return submit(task, *args)

        def counted_total(futures: Any) -> Any:
            began = time.process_time()
            found = total(futures)
            self.here += time.process_time() - began
            self.up += len(pickle.dumps(found))
            return found

        def restore() -> None:
            rows.rows._submit, rows.rows.total = submit, total  # type: ignore[method-assign]

        self._restore = restore
        rows.rows._submit, rows.rows.total = counted_submit, counted_total  # type: ignore[method-assign]

    def _clocks(self) -> np.ndarray:
        """Return the seconds of this process, and the mean of the workers'."""
        return np.array([time.process_time(), np.mean(list(self._client.run(time.process_time).values()))])

    def stop(self) -> tuple[float, float]:
        """Stop counting; return the seconds of the passes, and those of all."""
        here, there = self._clocks() - self._began
        self._restore()
        return self.here + there, here + there


class Model(NamedTuple):
    """The seconds of a run: a pass costs rows, tasks and bytes; the steps between two passes cost sampled rows.

    T = passes * (n row / cores + tasks(P) (task + answer / workers) + bytes / network + sample inner), P partitions.
    """

    kind: str
    row: float  # seconds of a row on one core
    task: float  # seconds of the scheduler for a task
    answer: float  # seconds of a worker for a task
    inner: float  # seconds of the steps between two passes for a byte of the sample in memory

    @property
    def n_features(self) -> int:
        return true_coefficients(self.kind).size

    def n_tasks(self, n_partitions: int) -> float:
        """Each partition makes the pass and answers one question, or three about a gradient that stays there."""
        questions = 1 if self.n_features < 2**17 else 3
        return n_partitions + questions * (n_partitions + (n_partitions - 1) / 7)

    def up(self) -> float:
        """Bytes that come to the driver in a pass: the gradient, or its leading entries (a few for each of w)."""
        return 8.0 * self.n_features if self.n_features < 2**17 else 80.0 * ENTRIES_OF_W[self.kind]

    def down(self, n_partitions: int) -> float:
        """Bytes that leave the driver in a pass: w, and the features of the questions, for each partition."""
        entries = ENTRIES_OF_W[self.kind]
        return n_partitions * (1000.0 + (16.0 if self.n_features < 2**17 else 32.0) * entries)

    def sample(self, n_rows: int) -> float:
        """Bytes of the sample in memory, as in problems/rows/chunked.py."""
        return min(0.5 * n_rows * BYTES[self.kind], max(2.0**24, min(2.0**29, BYTES[self.kind] * n_rows / 32)))

    def of_pass(
        self, n_rows: int, n_workers: int, n_partitions: int, cores_of_worker: int = 1, network: float = np.inf
    ) -> float:
        """Seconds of a pass; a worker uses all its cores for one partition after the other."""
        wire = (self.down(n_partitions) + 8 * self.up()) / network  # a worker that adds eight results receives seven
        of_tasks = self.n_tasks(n_partitions) * (self.task + self.answer / n_workers)
        return n_rows * self.row / (n_workers * cores_of_worker) + of_tasks + wire

    def of_run(self, passes: float, n_rows: int, of_pass: float) -> float:
        """Seconds of a run with so many passes."""
        return passes * (of_pass + self.sample(n_rows) * self.inner)


@contextlib.contextmanager
def cluster_of(n_workers: int) -> Iterator[Any]:
    """Start processes of one thread each."""
    from distributed import Client, LocalCluster

    settings = {"threads_per_worker": 1, "dashboard_address": None, "env": {"NUMBA_NUM_THREADS": "1"}}
    with LocalCluster(n_workers=n_workers, **settings) as cluster, Client(cluster) as client:
        yield client


def measured(client: Any, kind: str, n_rows: int, n_workers: int) -> Model:
    """Return the model with constants that are measured on this cluster."""
    w, n_partitions = 0.1 * true_coefficients(kind), 8 * n_workers
    tiny = problem_of(rows_on(client, kind, 10 * n_partitions, n_partitions), None, kind)
    few = problem_of(rows_on(client, kind, n_rows // 10, n_workers), None, kind)
    cg.minimize(few, tol=0.0, relative_tol=1e-4)  # compiles
    of_tasks, n_tasks = _of_look(tiny, w)
    of_rows, n_other = _of_look(few, w)
    task, answer = of_tasks[0] / n_tasks, of_tasks[1] * n_workers / n_tasks
    row = max(0.0, of_rows[1] * n_workers - n_other * answer) / few.n_samples
    traffic, before = Traffic(few.rows), few.n_reads
    cg.minimize(few, tol=0.0, relative_tol=1e-4)
    of_passes, of_all = traffic.stop()
    model = Model(kind, row, task, answer, 0.0)
    return model._replace(inner=(of_all - of_passes) / (few.n_reads - before) / model.sample(few.n_samples))


def _of_look(problem: cg.Problem, w: np.ndarray) -> tuple[tuple[float, float], float]:
    """Return the seconds of a look, here and in the mean of the workers, and its tasks."""
    problem.look(w)
    traffic = Traffic(problem.rows)
    for _ in range(5):
        problem.look(w)
    there = traffic.stop()[0] - traffic.here
    return (traffic.here / 5, there / 5), traffic.tasks / 5


def compare(kind: str, n_rows: int, n_workers: int, n_partitions: int, with_peers: bool) -> Model:
    """Print the lines for one cluster."""
    with cluster_of(n_workers) as client:
        model = measured(client, kind, n_rows, n_workers)
        rows = rows_on(client, kind, n_rows, n_partitions)
        problem = problem_of(rows, None, kind)
        cg.minimize(problem, tol=0.0, relative_tol=0.1)  # compiles
        print(
            f"\n{kind}, {rows.shape[0]:,} x {rows.shape[1]:,}, {n_workers} workers, {n_partitions} partitions of "
            f"{rows.n_bytes / n_partitions / 1e6:.0f} MB\n  constants: {1e9 * model.row:.0f} ns a row, a task "
            f"{1e3 * model.task:.2f} ms of the scheduler and {1e3 * model.answer:.2f} ms of a worker, "
            f"{1e9 * model.inner:.1f} s for the steps on a GB of the sample",
            flush=True,
        )
        for relative_tol in (1e-4, 1e-6):
            traffic = Traffic(problem.rows)
            began = time.perf_counter()
            result = cg.minimize(problem, tol=0.0, relative_tol=relative_tol)
            wall, n, (of_passes, seconds) = time.perf_counter() - began, result.n_reads, traffic.stop()
            of_pass = model.of_pass(n_rows, n_workers, n_partitions)
            of_run = model.of_run(n, n_rows, of_pass)
            print(
                f"  gap {relative_tol:g}: {n:g} passes, {result.status.name}, F {result.objective:.8f}, "
                f"{np.count_nonzero(result.w)} nonzero\n"
                f"    a pass: {of_passes / n:.3f} s, predicted {of_pass:.3f}, ratio {of_passes / n / of_pass:.2f}\n"
                f"    the run: {seconds:.2f} s, predicted {of_run:.2f}, ratio {seconds / of_run:.2f}; "
                f"{wall:.2f} s by the clock on the wall\n"
                f"    a pass: {traffic.up / n / 1e3:.1f} kB up, predicted {model.up() / 1e3:.1f}; "
                f"{traffic.down / n / 1e3:.1f} kB down, predicted {model.down(n_partitions) / 1e3:.1f}; "
                f"{traffic.tasks / n:.0f} tasks, predicted {model.n_tasks(n_partitions):.0f}",
                flush=True,
            )
        if with_peers:
            beside_dask_ml(kind, n_rows, n_partitions, problem, result, wall)
    return model


def beside_dask_ml(
    kind: str, n_rows: int, n_partitions: int, problem: cg.Problem, result: cg.Result, seconds: float
) -> None:
    """Print what dask-ml finds on the same partitions, for the penalty that has the solution of the ball."""
    import dask.array
    import dask.delayed
    from dask_ml.linear_model import LogisticRegression

    alpha = float(np.abs(result.gradient).max())  # the multiplier of the ball
    size = n_rows // n_partitions
    parts = [dask.delayed(partition)(kind, k, size) for k in range(n_partitions)]
    dtype = np.float32 if kind == "dense" else np.float64
    X = dask.array.concatenate(
        [dask.array.from_delayed(part[0], (size, problem.n_features), dtype=dtype) for part in parts]
    ).persist()
    y = dask.array.concatenate(
        [dask.array.from_delayed(dask.delayed(np.greater)(part[1], 0.0), (size,), dtype=bool) for part in parts]
    ).persist()

    def judge(w: np.ndarray) -> float:
        return problem.over(cg.constraints.L1Ball(1e9)).objective(w) + alpha * float(np.abs(w).sum())

    ours = judge(result.w)
    print(f"  F + {alpha:.3g} |w|_1: condgrad {ours:.8f} in {seconds:.2f} s, certified")
    for solver, max_iter in (("proximal_grad", 10), ("admm", 2)):
        model = LogisticRegression(
            penalty="l1", C=1.0 / (alpha * n_rows), solver=solver, max_iter=max_iter, fit_intercept=False
        )
        began = time.perf_counter()
        try:
            w = np.asarray(model.fit(X, y).coef_, dtype=float).ravel()
        except Exception as error:
            print(f"    dask-ml, {solver}: {type(error).__name__}: {str(error)[:100]!r}")
            continue
        theirs, taken = judge(w), time.perf_counter() - began
        print(
            f"    dask-ml, {solver}, {max_iter} iterations: {taken:.2f} s ({taken / seconds:.1f} times ours), "
            f"{theirs - ours:+.2e} from ours, {np.count_nonzero(w)} nonzero",
            flush=True,
        )


def in_memory(kind: str, n_rows: int, n_partitions: int) -> None:
    """Print the line of the same data in the memory of this process."""
    import scipy.sparse

    parts = [partition(kind, k, n_rows // n_partitions) for k in range(n_partitions)]
    join = np.concatenate if kind == "dense" else scipy.sparse.vstack
    problem = problem_of(join([X for X, _ in parts]), np.concatenate([y for _, y in parts]), kind)
    cg.minimize(problem, tol=0.0, relative_tol=0.1)
    for relative_tol in (1e-4, 1e-6):
        began = time.perf_counter()
        result = cg.minimize(problem, tol=0.0, relative_tol=relative_tol)
        print(
            f"  in memory, gap {relative_tol:g}: {time.perf_counter() - began:.2f} s, {result.n_epochs:.1f} epochs, "
            f"F {result.objective:.8f}",
            flush=True,
        )


def predict(model: Model) -> None:
    """Print what the model says about 10^9 rows, with one worker and one partition for each machine."""
    print(f"\n{model.kind}, {FULL:,} rows, {BYTES[model.kind] * FULL / 1e9:.0f} GB at the workers, predicted:")
    for n in (1, 10, 100):
        of_pass = model.of_pass(FULL, n, n, 16, NETWORK)
        runs = (f"{model.of_run(passes, FULL, of_pass):.1f} s to {tol:g}" for tol, passes in PASSES.items())
        print(
            f"  {n:3d} machines of 16 cores, {BYTES[model.kind] * FULL / n / 1e9:.1f} GB on each: a pass "
            f"{of_pass:.2f} s, {model.n_tasks(n):.0f} tasks, {model.up() / 1e3:.0f} kB up, "
            f"{model.down(n) / 1e3:.0f} kB down; {', '.join(runs)}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--partitions", type=int, nargs="+", default=[2, 8])
    parser.add_argument("--kind", nargs="+", choices=("dense", "one-hot"), default=["one-hot"])
    parser.add_argument("--peers", action="store_true")
    args = parser.parse_args()
    for kind in args.kind:
        for n_partitions in args.partitions:
            for n_workers in args.workers:
                model = compare(kind, args.rows, n_workers, n_partitions, args.peers)
            in_memory(kind, args.rows, n_partitions)
        predict(model)


if __name__ == "__main__":
    main()
