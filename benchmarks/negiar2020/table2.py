"""Table 2 of Negiar et al. (2020): kappa / n of the three datasets of the paper, measured and as printed.

    CONDGRAD_DATA=<folder with the datasets> python benchmarks/negiar2020/table2.py

The files are LIBSVM text under the paths in ``DATASETS``; what is not found is named and left out.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_svmlight_file

import condgrad as cg


def as_stored(X: Any) -> Any:
    """Return X as the file holds it."""
    return X


def california_features(X: Any) -> np.ndarray:
    """Return scikit-learn's features, three of which are means per household, from the raw columns."""
    income, age, rooms, bedrooms, population, households, latitude, longitude = X.toarray().T
    means = [rooms / households, bedrooms / households, population, population / households]
    return np.column_stack([income, age, *means, latitude, longitude])


class Dataset(NamedTuple):
    """A line of Table 2."""

    name: str
    file: str
    n_features: int
    radius: float
    printed: float
    prepare: Callable[[Any], Any] = as_stored


DATASETS = [
    Dataset("breast cancer", "breast-cancer/breast-cancer_scale.bz2", 10, 5.0, 0.929),
    Dataset("RCV1", "rcv1/rcv1_train.binary.bz2", 47_236, 100.0, 0.021),
    Dataset("california housing", "cal_housing/cadata.bz2", 8, 0.1, 0.040, california_features),
]


def main() -> None:
    """Print the table."""
    folder = os.environ.get("CONDGRAD_DATA")
    if folder is None:
        raise SystemExit("Set CONDGRAD_DATA to the folder with the datasets.")
    print(f"{'dataset':<20}{'n':>8}{'d':>8}{'kappa/n':>10}{'paper':>8}")
    skipped = []
    for dataset in DATASETS:
        path = Path(folder) / dataset.file
        if not path.exists():
            skipped.append(dataset)
            continue
        X = dataset.prepare(load_svmlight_file(str(path), n_features=dataset.n_features)[0])
        n, d = X.shape
        ratio = cg.theory.kappa(X, cg.constraints.L1Ball(dataset.radius)) / n
        print(f"{dataset.name:<20}{n:>8}{d:>8}{ratio:>10.4f}{dataset.printed:>8.3f}")
    for dataset in skipped:
        print(f"skipped {dataset.name}: {dataset.file} is not in CONDGRAD_DATA.")


if __name__ == "__main__":
    main()
