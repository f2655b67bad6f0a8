"""Fits and paths on tables with columns of words: codes beside the sparse indicators that they stand for.

    python benchmarks/kernels/codes.py [--rows 100000] [--repeats 3]

The table is simulated after the census data of "adult": six numbers, and fields of 9, 16, 7, 15, 6, 5, 2 and 42
categories, with a field of 5,000 for "--wide". Both forms are fitted in turns, by the same calls to the same tolerance,
and the two must find the same objective. Times are CPU seconds of the process, best of several; bytes are those of the
arrays of the data and of the views that the fit has built (nbytes), and the peak of the fit beyond the data
(tracemalloc).
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import condgrad as cg
from condgrad.linalg.coded_matrix import matrix_of

SIZES = (9, 16, 7, 15, 6, 5, 2, 42)
N_NUMBERS = 6


class Table(NamedTuple):
    """The same data in both forms, targets and classes."""

    codes: cg.CodedData
    sparse: Any
    groups: np.ndarray
    y: np.ndarray
    labels: np.ndarray


def simulated(n: int, sizes: tuple[int, ...]) -> Table:
    """Return a table whose frequent categories are far more frequent than the others."""
    rng = np.random.default_rng(0)
    codes = np.column_stack(
        [rng.permutation(size)[np.minimum(rng.geometric(min(0.7, 3.0 / size), n), size) - 1] for size in sizes]
    )
    X = cg.CodedData.from_codes(codes, rng.standard_normal((n, N_NUMBERS)), sizes)
    w = np.where(rng.random(X.shape[1]) < 0.3, rng.standard_normal(X.shape[1]), 0.0)
    score = X @ w
    y = score + rng.standard_normal(n)
    labels = np.where(score - np.median(score) + rng.logistic(size=n) > 0.0, 1, 0)
    groups = np.repeat(np.arange(N_NUMBERS + len(sizes)), [1] * N_NUMBERS + list(sizes))
    return Table(X, X.tocsr(), groups, y, labels)


def tasks(table: Table) -> dict[str, Callable[[Any], float]]:
    """Return the fits by name; each returns the objective that it reached."""
    grouped = {"feature_groups": table.groups, "group_weight": "sqrt-size"}
    return {
        "lasso": lambda X: cg.ConstrainedLasso(5.0).fit(X, table.y).result_.objective,
        "logistic regression": lambda X: cg.ConstrainedLogisticRegression(5.0).fit(X, table.labels).result_.objective,
        "group lasso": lambda X: cg.ConstrainedGroupLasso(3.0, **grouped).fit(X, table.y).result_.objective,
        "group logistic": lambda X: (
            cg.ConstrainedGroupLogisticRegression(3.0, **grouped).fit(X, table.labels).result_.objective
        ),
        "sparse group lasso": lambda X: (
            cg.ConstrainedGroupLasso(3.0, feature_groups=table.groups, l1_weight=0.5).fit(X, table.y).result_.objective
        ),
        "lasso path": lambda X: float(cg.lasso_path(X, table.y, n_radii=50)[2].objective.sum()),
        "logistic path": lambda X: float(
            cg.radius_path(X, 2.0 * table.labels - 1.0, loss="logistic", n_radii=20)[2].objective.sum()
        ),
        "lasso CV": lambda X: cg.ConstrainedLassoCV(n_radii=20, cv=3).fit(X, table.y).result_.objective,
    }


def seconds(call: Callable[[Any], float], X: Any) -> tuple[float, float]:
    """Return the CPU time of a call and its objective."""
    began = time.process_time()
    objective = call(X)
    return time.process_time() - began, objective


def peak(call: Callable[[Any], float], X: Any) -> int:
    """Return the largest number of bytes that a call held beyond its data."""
    tracemalloc.start()
    call(X)
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found


def n_bytes(X: Any) -> tuple[int, int]:
    """Return the bytes of the data, and of the view by columns that a fit adds."""
    matrix = matrix_of(X)
    new = matrix.columns
    own = X.nbytes if isinstance(X, cg.CodedData) else X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    arrays = [each for each in new if isinstance(each, np.ndarray)]
    known = [X.numbers] if isinstance(X, cg.CodedData) else []
    return own, sum(each.nbytes for each in arrays if not any(each is other for other in known))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000, help="number of rows (default 100000)")
    parser.add_argument("--repeats", type=int, default=3, help="how often each fit is measured (default 3)")
    parser.add_argument("--wide", action="store_true", help="one more field, of 5,000 categories")
    parser.add_argument("--only", nargs="*", help="names of fits")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    sizes = (*SIZES, 5000) if options.wide else SIZES
    table = simulated(options.rows, sizes)
    forms = {"sparse": table.sparse, "codes": table.codes}
    print(f"{table.codes!r}; bytes a row and field, numbers left out")
    for name, X in forms.items():
        own, columns = n_bytes(X)
        left_out = 8 * N_NUMBERS * options.rows if name == "codes" else 12 * N_NUMBERS * options.rows
        of_columns = 0 if name == "codes" else left_out
        per = options.rows * len(sizes)
        print(f"  {name:8} rows {(own - left_out) / per:5.1f}   columns {(columns - of_columns) / per:5.1f}"
              f"   all {(own + columns) / 2**20:7.1f} MiB")  # fmt: skip
    print(f"\n{'':22}{'sparse':>9}{'codes':>9}{'ratio':>7}   peak beyond the data, MiB")
    for name, call in tasks(table).items():
        if options.only and name not in options.only:
            continue
        found = {form: [seconds(call, X) for _ in range(1)] for form, X in forms.items()}  # compiles what is missing
        for _ in range(options.repeats):
            for form, X in forms.items():
                found[form].append(seconds(call, X))
        best = {form: min(each)[0] for form, each in found.items()}
        values = [found[form][0][1] for form in forms]
        assert abs(values[0] - values[1]) <= 1e-4 * abs(values[0]), f"{name}: {values}"
        peaks = [peak(call, X) / 2**20 for X in forms.values()]
        print(f"{name:22}{best['sparse']:9.3f}{best['codes']:9.3f}{best['sparse'] / best['codes']:7.2f}"
              f"   {peaks[0]:7.1f} {peaks[1]:7.1f}")  # fmt: skip


if __name__ == "__main__":
    main()
