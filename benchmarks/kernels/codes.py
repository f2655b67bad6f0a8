"""Fits and paths on tables with columns of words: codes beside the sparse indicators that they stand for.

    python benchmarks/kernels/codes.py [--rows 100000] [--wide] [--repeats 3] [--json FILE]

The table is simulated after the census data of "adult": six numbers, and fields of 9, 16, 7, 15, 6, 5, 2 and 42
categories, with a field of 5,000 for "--wide". Both forms are fitted in turns, by the same calls to the same tolerance,
and the two must find the same objective. Times are CPU seconds of the process, best of several; bytes are those of the
arrays of the data and of the views that the fit has built (nbytes), and the peak of the fit beyond the data
(tracemalloc).
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import condgrad as cg
from condgrad.linalg.coded_matrix import matrix_of

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from results import Report, add_option

SIZES = (9, 16, 7, 15, 6, 5, 2, 42)
N_NUMBERS = 6
MEMORY = ("form", "by rows", "by columns", "MiB with numbers")
TIMES = ("fit", "sparse indicators", "codes", "ratio", "peak MiB, indicators", "peak MiB, codes")


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
    """Return the bytes of the data by rows, and of the view by columns that a fit adds."""
    is_coded = isinstance(X, cg.CodedData)
    own = X.nbytes if is_coded else X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    shared = [X.numbers] if is_coded else []
    arrays = [each for each in matrix_of(X).columns if not any(each is other for other in shared)]
    return own, sum(each.nbytes for each in arrays)


def memory(forms: dict[str, Any], n: int, n_fields: int) -> list[list[str | float]]:
    """Return bytes for each row and field without those of the numbers, and all MiB."""
    found: list[list[str | float]] = []
    for name, X in forms.items():
        rows, columns = n_bytes(X)
        of_rows, of_columns = (8, 0) if isinstance(X, cg.CodedData) else (12, 12)  # bytes of a number
        per, numbers = n * n_fields, n * N_NUMBERS
        each = (rows - of_rows * numbers) / per, (columns - of_columns * numbers) / per
        found.append([name, round(each[0], 1), round(each[1], 1), round((rows + columns) / 2**20, 1)])
    return found


def race(call: Callable[[Any], float], forms: dict[str, Any], repeats: int) -> list[float]:
    """Return the best times of both forms, their ratio and their peaks in MiB."""
    found = {form: [seconds(call, X)] for form, X in forms.items()}  # compiles what is missing
    for _ in range(repeats):
        for form, X in forms.items():
            found[form].append(seconds(call, X))
    values = [each[0][1] for each in found.values()]
    if abs(values[0] - values[1]) > 1e-4 * abs(values[0]):
        raise AssertionError(f"the two forms have found different objectives: {values}.")
    best = [min(each)[0] for each in found.values()]
    peaks = [round(peak(call, X) / 2**20, 1) for X in forms.values()]
    return [round(best[0], 3), round(best[1], 3), round(best[0] / best[1], 2), *peaks]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000, help="number of rows (default 100000)")
    parser.add_argument("--repeats", type=int, default=3, help="how often each fit is measured (default 3)")
    parser.add_argument("--wide", action="store_true", help="one more field, of 5,000 categories")
    parser.add_argument("--only", nargs="*", help="names of fits")
    add_option(parser)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    sizes = (*SIZES, 5000) if options.wide else SIZES
    table = simulated(options.rows, sizes)
    forms = {"sparse indicators": table.sparse, "codes": table.codes}
    report = Report(__file__, "What do columns of words cost, as codes and as sparse indicators?")
    taken = memory(forms, options.rows, len(sizes))
    print(f"{table.codes!r}; bytes for each row and field")
    for form, rows, columns, whole in taken:
        print(f"  {form:20} by rows {rows:5}   by columns {columns:5}   with numbers {whole:7} MiB")
    report.table(f"bytes for each row and field, {options.rows:,} rows", MEMORY, taken)
    print(f"\n{'':22}{'sparse':>9}{'codes':>9}{'ratio':>7}   peak beyond the data, MiB")
    times: list[list[str | float]] = []
    for name, call in tasks(table).items():
        if not options.only or name in options.only:
            found = race(call, forms, options.repeats)
            times.append([name, *found])
            print(f"{name:22}{found[0]:9.3f}{found[1]:9.3f}{found[2]:7.2f}   {found[3]:7.1f} {found[4]:7.1f}")
    report.table(f"CPU seconds, {options.rows:,} rows", TIMES, times, note="best of several fits that took turns")
    report.write(options.json)


if __name__ == "__main__":
    main()
