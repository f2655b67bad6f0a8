"""Rows with the workers of a Dask cluster: passes, seconds and bytes of logistic regression over an l1 ball.

    python benchmarks/scale/cluster.py [--rows N] [--workers K ...] [--partitions P ...] [--kind dense one-hot]

A cluster of K processes with one thread each runs on this machine, so scheduler, workers and this process share its
cores: the seconds of a pass are an upper bound for a cluster of K machines with the same data, the bytes are the same.
The simulated rows (those of disk.py) are made by the workers. A line shows, for each number of workers and partitions,

* passes to relative gaps of 1e-4 and 1e-6, and seconds, beside the same data in memory of one process;
* the bytes that a pass sends to each partition (w, as its nonzero entries) and receives in the end (the gradient and
  the rows kept for the curvature);
* the time of a pass over partitions of ten rows: the cost of scheduling, for each partition.

The file is not called dask.py because a script of that name hides the package.
"""

from __future__ import annotations

import argparse
import pickle
import time
from typing import Any

import cloudpickle
import disk
import numpy as np
from disk import RADIUS, dense_batch, one_hot_batch, true_coefficients

import condgrad as cg

cloudpickle.register_pickle_by_value(disk)  # workers cannot import it


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


def counted(rows: cg.rows.ClusterRows) -> list[int]:
    """Let ``add_up`` note the bytes of what comes to this process, and return the list of them."""
    received: list[int] = []
    plain = rows.add_up

    def add_up(task_at: Any) -> Any:
        total = plain(task_at)
        received.append(len(pickle.dumps(total)))
        return total

    rows.add_up = add_up  # type: ignore[method-assign]
    return received


def problem_of(X: Any, y: Any, kind: str) -> cg.Problem:
    return cg.Problem(X, y, cg.losses.Logistic(), cg.constraints.L1Ball(RADIUS[kind]))


def compare(kind: str, n_rows: int, n_workers: int, n_partitions: int) -> None:
    """Print the lines for one cluster."""
    from distributed import Client, LocalCluster

    local = LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=None)
    with local as cluster, Client(cluster) as client:
        rows = rows_on(client, kind, n_rows, n_partitions)
        received = counted(rows)
        problem = problem_of(rows, None, kind)
        cg.minimize(problem, tol=0.0, relative_tol=0.1)  # compiles
        print(
            f"\n{kind}, {rows.shape[0]:,} x {rows.shape[1]:,}, {n_workers} workers, {n_partitions} partitions of "
            f"{rows.n_bytes / n_partitions / 1e6:.0f} MB",
            flush=True,
        )
        for relative_tol in (1e-4, 1e-6):
            received.clear()
            began = time.perf_counter()
            result = cg.minimize(problem, tol=0.0, relative_tol=relative_tol)
            seconds = time.perf_counter() - began
            sent = 16 * np.count_nonzero(result.w)
            print(
                f"  gap {relative_tol:g}: {result.n_reads:g} passes, {seconds:.2f} s, {result.status.name}, "
                f"{sent / 1e3:.1f} kB down to each partition, {np.mean(received) / 1e6:.2f} MB up in a pass, "
                f"F {result.objective:.8f}",
                flush=True,
            )
        tiny = problem_of(rows_on(client, kind, 10 * n_partitions, n_partitions), None, kind)
        w = np.zeros(tiny.n_features)
        tiny.look(w)
        began = time.perf_counter()
        for _ in range(5):
            tiny.look(w)
        cost = (time.perf_counter() - began) / 5
        print(f"  scheduling: {1e3 * cost:.0f} ms a pass, {1e3 * cost / n_partitions:.1f} ms a partition")


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--partitions", type=int, nargs="+", default=[2, 8])
    parser.add_argument("--kind", nargs="+", choices=("dense", "one-hot"), default=["one-hot"])
    args = parser.parse_args()
    for kind in args.kind:
        for n_partitions in args.partitions:
            for n_workers in args.workers:
                compare(kind, args.rows, n_workers, n_partitions)
            in_memory(kind, args.rows, n_partitions)


if __name__ == "__main__":
    main()
