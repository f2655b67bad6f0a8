"""Lasso paths and cross-validations of tables with more samples than features, beside scikit-learn's and the limit.

    python benchmarks/peers/tall_tables.py [--quick] [--only NAME ...] [--limit SECONDS] [--repeats N]

Two tables, in processor seconds of this process (set OMP_NUM_THREADS=1 and NUMBA_NUM_THREADS=1 for one thread):

* a path of 100 penalties from the largest to a hundredth of it, to relative gaps of 1e-6: `lasso_path` of condgrad, and
  scikit-learn's with ``precompute=True``, its fastest form here, at ``tol=1e-6`` (of ||y||^2, twice as much as ours);
* 5 folds of 100 radii, or penalties, with an intercept: `ConstrainedLassoCV` (to 1e-6) and `LassoCV` as they come.

The limit is X'X by BLAS: whoever uses the products of all features pays it once. All run in turns, condgrad once before
to compile its kernels; the best of the repeats counts. A peer that takes longer than the limit is not repeated.
"""

from __future__ import annotations

import argparse
import bz2
import os
import pathlib
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LassoCV
from sklearn.linear_model import lasso_path as sklearn_path

import condgrad as cg

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from results import Report, add_option

COLUMNS = ("data", "X'X", "condgrad", "scikit-learn", "times faster", "times X'X")


def main() -> int:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small data only")
    parser.add_argument("--only", nargs="+", help="data whose name contains one of these")
    parser.add_argument("--limit", type=float, default=20.0, help="seconds from which on a peer is not repeated")
    parser.add_argument("--repeats", type=int, default=5)
    add_option(parser)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # scikit-learn's, where it does not converge
    report = Report(__file__, "What do Lasso paths and cross-validations of tall tables cost?")
    paths, folds = [], []
    for name, X, y in tables(options.quick):
        if options.only and not any(word in name for word in options.only):
            continue
        alphas = np.abs(X.T @ (y - y.mean())).max() / y.size * np.logspace(0.0, -2.0, 100)
        paths.append(
            row(
                name,
                options,
                X,
                lambda X=X, y=y, a=alphas: own_path(X, y, a),
                lambda X=X, y=y, a=alphas: peer_path(X, y, a),
            )
        )
        folds.append(
            row(
                name,
                options,
                X,
                lambda X=X, y=y: cg.ConstrainedLassoCV(cv=5).fit(X, y),
                lambda X=X, y=y: LassoCV(cv=5).fit(X, y),
            )
        )
    show(report, "paths of 100 penalties to 1e-6, processor seconds", paths)
    show(report, "5 folds of 100 radii, processor seconds", folds)
    report.write(options.json)
    return 0


def tables(quick: bool) -> Iterator[tuple[str, Any, np.ndarray]]:
    """Yield names, X and y: simulated, and of CONDGRAD_DATA where it is."""
    rng = np.random.default_rng(0)
    sizes = [(200, 50), (5_000, 100)] if quick else [(200, 50), (50_000, 300), (500_000, 100), (2_000, 1_500)]
    for n, d in sizes:
        X = rng.standard_normal((n, d))
        X[:, 1:] += 0.5 * X[:, :-1]
        w = np.where(rng.random(d) < 0.2, rng.standard_normal(d), 0.0)
        signal = X @ w
        yield f"{n:,} x {d:,}", X, signal + signal.std() * rng.standard_normal(n)
    if quick:
        return
    X = rng.standard_normal((1_000_000, 100)).astype(np.float32)
    yield "1,000,000 x 100, float32", X, X[:, :20] @ rng.standard_normal(20) + rng.standard_normal(1_000_000)
    X = (rng.random((20_000, 200)) < 0.1).astype(np.float64)
    yield "20,000 x 200, zeros and ones", X, X[:, :40] @ rng.standard_normal(40) + rng.standard_normal(20_000)
    folder = os.environ.get("CONDGRAD_DATA")
    for name, file in (("cal_housing", "cadata"), ("covtype", "covtype.binary.scale.subset92962"), ("a9a", "a9a")):
        found = sorted(pathlib.Path(folder or "/nowhere").rglob(f"{file}.bz2"))
        if not found:
            print(f"{name} was skipped: there is no {file}.bz2 below CONDGRAD_DATA.")
            continue
        with bz2.open(found[0]) as text:
            X, y = load_svmlight_file(text)
        X = X.toarray()
        yield f"{name}, {X.shape[0]:,} x {X.shape[1]:,}", X / np.maximum(X.std(axis=0), 1e-12), y


def own_path(X: Any, y: np.ndarray, alphas: np.ndarray) -> None:
    """Solve the path with condgrad, and see that it is certified."""
    _, _, info = cg.lasso_path(X, y, alphas=alphas, fit_intercept=True)
    assert info.status is cg.Status.CONVERGED


def peer_path(X: Any, y: np.ndarray, alphas: np.ndarray) -> None:
    """Solve the path with scikit-learn, which has no intercept here: X and y are centred for it."""
    X = X.astype(np.float64) - X.mean(axis=0, dtype=np.float64)
    sklearn_path(X, y - y.mean(), alphas=alphas, precompute=True, tol=1e-6, max_iter=100_000, copy_X=False)


def row(name: str, options: argparse.Namespace, X: Any, own: Callable[[], Any], peer: Callable[[], Any]) -> list[Any]:
    """Return a row of a table: the best times of both, in turns."""
    best = {"limit": np.inf, "own": np.inf, "peer": np.inf}
    calls = {"limit": lambda: X.T @ X, "own": own, "peer": peer}
    own()  # compiles kernels
    for k in range(options.repeats):
        for who, call in calls.items():
            if k > 0 and best[who] > options.limit:
                continue
            start = time.process_time()
            call()
            best[who] = min(best[who], time.process_time() - start)
    limit, ours, theirs = best.values()
    print(f"{name}: X'X {limit:.4f}, condgrad {ours:.4f}, scikit-learn {theirs:.4f}", flush=True)
    return [name, limit, ours, theirs, theirs / ours, ours / limit]


def show(report: Report, caption: str, rows: list[list[Any]]) -> None:
    """Print a table and add it to the report."""
    print(f"\n{caption}\n" + "".join(f"{column:>16}" for column in COLUMNS))
    for name, *numbers in rows:
        print(f"{name:>32}" + "".join(f"{number:16.4g}" for number in numbers))
    report.table(caption, COLUMNS, rows)


if __name__ == "__main__":
    sys.exit(main())
