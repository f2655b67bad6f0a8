"""How well the estimators predict as they come: cross-validation beside scikit-learn's, and plain defaults.

    python benchmarks/peers/default_quality.py [--quick]

Two tables, both over the same outer folds, whose samples no estimator has seen:

* cross-validation inside of every outer fold: ConstrainedLogisticRegressionCV beside LogisticRegressionCV of
  scikit-learn with the l1 norm (liblinear, chosen by the log loss, as here), and ConstrainedLassoCV beside LassoCV;
* plain defaults: ConstrainedLogisticRegression() beside LogisticRegression(), and ConstrainedLasso() beside Ridge().

The data are those that scikit-learn ships, simulated ones, and files of CONDGRAD_DATA where they are; the larger ones
are a random part of them. Features are standardised, sparse ones as they are. For classes the numbers are accuracy and
log loss, for regression R2. Every row is the mean of the outer folds. A line at the end tells the largest deficits.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.linear_model import LassoCV, LogisticRegression, LogisticRegressionCV, Ridge
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import condgrad as cg
from condgrad import datasets

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from results import Report, add_option

N_FOLDS = 5
MOST = 3000  # samples of a data set that are used
FILES = ("a1a", "breast-cancer", "ijcnn1", "phishing", "svmguide3", "w1a")
CLASSES = "data", "n", "d", "accuracy", "scikit-learn", "log loss", "scikit-learn", "seconds", "scikit-learn"
NUMBERS = "data", "n", "d", "R2", "scikit-learn", "seconds", "scikit-learn"
Data = tuple[str, Any, np.ndarray]


def main() -> int:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small bundled and simulated data only")
    add_option(parser)
    options = parser.parse_args()
    report = Report(__file__, "How well do the estimators predict as they come?")
    warnings.simplefilter("ignore")
    l1_path = LogisticRegressionCV(
        l1_ratios=(1.0,), solver="liblinear", intercept_scaling=10.0, scoring="neg_log_loss", max_iter=1000
    )
    tables: list[tuple[str, Callable[[bool], Iterator[Data]], Any, Any]] = [
        ("nested cross-validation, classes", of_classes, cg.ConstrainedLogisticRegressionCV(), l1_path),
        ("nested cross-validation, regression", of_numbers, cg.ConstrainedLassoCV(), LassoCV()),
        ("plain defaults, classes", of_classes, cg.ConstrainedLogisticRegression(), LogisticRegression()),
        ("plain defaults, regression", of_numbers, cg.ConstrainedLasso(), Ridge()),
    ]
    for caption, data, own, other in tables:
        has_classes = data is of_classes
        columns = CLASSES if has_classes else NUMBERS
        print(caption, " ".join(f"{name:>12}" for name in columns), sep="\n", flush=True)
        rows = []
        for name, X, y in data(options.quick):
            scores = [held_out_scores(model, X, y, has_classes) for model in (own, other)]
            numbers = [score for pair in zip(*scores, strict=True) for score in pair]
            rows.append([name, X.shape[0], X.shape[1], *numbers])
            print(
                " ".join(f"{cell:12.4f}" if isinstance(cell, float) else f"{cell:>12}" for cell in rows[-1]), flush=True
            )
        behind = max(row[4] - row[3] for row in rows)
        print(f"at most {behind:.4f} of {columns[3]} behind", end="")
        print(f", {max(row[5] - row[6] for row in rows):.4f} of log loss\n" if has_classes else "\n", flush=True)
        report.table(caption, columns, rows)
    report.write(options.json)
    return 0


def held_out_scores(model: Any, X: Any, y: np.ndarray, has_classes: bool) -> list[float]:
    """Return the mean scores of the outer folds, and the seconds of all fits."""
    cv = (StratifiedKFold if has_classes else KFold)(N_FOLDS, shuffle=True, random_state=0)
    scores, seconds = [], 0.0
    for train, test in cv.split(np.zeros(y.size), y):
        scaled = make_pipeline(StandardScaler(with_mean=False, with_std=not scipy.sparse.issparse(X)), model)
        start = time.perf_counter()
        scaled.fit(X[train], y[train])
        seconds += time.perf_counter() - start
        if has_classes:
            chances = scaled.predict_proba(X[test])
            scores.append([accuracy_score(y[test], scaled.predict(X[test])), log_loss(y[test], chances)])
        else:
            scores.append([scaled.score(X[test], y[test])])
    return [*map(float, np.mean(scores, axis=0)), seconds]


def of_classes(quick: bool) -> Iterator[Data]:
    """Yield names and data with two classes."""
    yield "breast", *load_breast_cancer(return_X_y=True)
    X, y = load_digits(return_X_y=True)
    yield "odd digits", X, y % 2
    X, y = load_wine(return_X_y=True)
    yield "wine", X, (y == 1).astype(int)
    for n, d in ((200, 20), (200, 200), (1000, 50)):
        data = datasets.simulate_classification(n, d, n_informative=8, random_state=0)
        yield f"{n} x {d}", data.X, data.y
    for name in () if quick else FILES:
        try:
            data = datasets.load(name)
        except FileNotFoundError as error:
            print(f"{name}: skipped, because {error}")
            continue
        rows = np.random.default_rng(0).permutation(data.y.size)[:MOST]
        yield name, data.X[rows], (data.y[rows] > 0).astype(int)


def of_numbers(quick: bool) -> Iterator[Data]:
    """Yield names and data of regression."""
    X, y = load_diabetes(return_X_y=True)
    yield "diabetes", X, y
    yield "its products", np.hstack([X, *(X[:, j:] * X[:, [j]] for j in range(10))]), y
    for n, d, noise in ((100, 20, 1.0), (200, 100, 0.5), (100, 500, 1.0), (1000, 50, 2.0)):
        data = datasets.simulate_regression(n, d, n_informative=8, noise=noise, random_state=0)
        yield f"{n} x {d}", data.X, data.y
    if not quick:
        X, y = load_digits(return_X_y=True)
        yield "digits", X, y.astype(float)


if __name__ == "__main__":
    sys.exit(main())
