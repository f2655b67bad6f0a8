"""The benchmark data sets by name, read from the folder that CONDGRAD_DATA names."""

from __future__ import annotations

import difflib
import os
import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from condgrad.datasets.dataset import Dataset
from condgrad.datasets.libsvm import read_libsvm

_VARIABLE = "CONDGRAD_DATA"
_SUFFIXES = (".bz2", "", ".xz", ".gz")


def load(name: str) -> Dataset:
    """Return a benchmark data set; labels of two classes become -1 and 1, the larger label 1.

    The file is looked for in the folder that the environment variable CONDGRAD_DATA names, under its LIBSVM name,
    plain or compressed, directly or in a subfolder. Its shape is checked, so that an incomplete file is noticed.

    Parameters
    ----------
    name : str
        One of :func:`names`. ``"california-housing"`` has scikit-learn's features (averages per household) and prices
        in units of 100,000; ``"news20-binary"`` separates the first ten of the twenty groups from the last ten and
        is tf-idf weighted, with rows of unit length.
    """
    if name not in _CATALOGUE:
        close = difflib.get_close_matches(str(name).lower(), _CATALOGUE, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"there is no data set named {name!r}; known: {', '.join(_CATALOGUE)}.{hint}")
    entry = _CATALOGUE[name]
    X, y = read_libsvm(_find(name, entry), entry.n_features)
    if y.size != entry.n_samples:
        raise ValueError(f"{entry.file} should hold {entry.n_samples} samples and holds {y.size}: it is incomplete.")
    X, y = entry.convert(X, y)
    return Dataset(X.toarray() if entry.is_dense and not isinstance(X, np.ndarray) else X, y, name)


def names() -> tuple[str, ...]:
    """Return the names that :func:`load` knows.

    >>> "a9a" in names()
    True
    """
    return tuple(_CATALOGUE)


def _find(name: str, entry: _Entry) -> pathlib.Path:
    folder = os.environ.get(_VARIABLE)
    if not folder:
        raise FileNotFoundError(
            f"{name} is read from a file {entry.file}.bz2: set the environment variable {_VARIABLE} to the folder of "
            "your LIBSVM files."
        )
    root = pathlib.Path(folder)
    if not root.is_dir():
        raise FileNotFoundError(f"{_VARIABLE} names the folder {folder!r}, which does not exist.")
    for parent in (root, *sorted(path for path in root.iterdir() if path.is_dir())):
        for suffix in _SUFFIXES:
            path = parent / (entry.file + suffix)
            if path.is_file():
                return path
    raise FileNotFoundError(f"{name} needs the file {entry.file}.bz2 in the folder {folder!r} that {_VARIABLE} names.")


def _as_it_is(X: Any, y: np.ndarray) -> tuple[Any, np.ndarray]:
    return X, y


def _two_classes(X: Any, y: np.ndarray) -> tuple[Any, np.ndarray]:
    found = np.unique(y)
    if found.size != 2:
        raise ValueError(f"the targets should be two labels; got {found.size} different values.")
    return X, np.where(y == found[1], 1.0, -1.0)


def _per_household(X: Any, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    income, age, rooms, bedrooms, population, households, latitude, longitude = X.toarray().T
    features = (income, age, rooms / households, bedrooms / households, population, population / households, latitude)
    return np.column_stack((*features, longitude)), y / 100_000.0


def _last_groups(X: Any, y: np.ndarray) -> tuple[Any, np.ndarray]:
    from sklearn.feature_extraction.text import TfidfTransformer

    return TfidfTransformer().fit_transform(X).tocsr(), np.where(y > 10.0, 1.0, -1.0)


class _Entry(NamedTuple):
    file: str
    n_samples: int
    n_features: int
    is_dense: bool = False
    convert: Callable[[Any, np.ndarray], tuple[Any, np.ndarray]] = _two_classes


_CATALOGUE = {
    "a1a": _Entry("a1a", 1605, 123),
    "a1a.t": _Entry("a1a.t", 30956, 123),
    "a2a": _Entry("a2a", 2265, 123),
    "a8a": _Entry("a8a", 22696, 123),
    "a9a": _Entry("a9a", 32561, 123),
    "a9a.t": _Entry("a9a.t", 16281, 123),
    "w1a": _Entry("w1a", 2477, 300),
    "w8a": _Entry("w8a", 49749, 300),
    "ijcnn1": _Entry("ijcnn1", 49990, 22),
    "phishing": _Entry("phishing", 11055, 68),
    "svmguide3": _Entry("svmguide3", 1243, 22, is_dense=True),
    "covtype-subset": _Entry("covtype.binary.scale.subset92962", 92962, 54),
    "breast-cancer": _Entry("breast-cancer_scale", 683, 10, is_dense=True),
    "california-housing": _Entry("cadata", 20640, 8, is_dense=True, convert=_per_household),
    "news20-binary": _Entry("news20", 15935, 62061, convert=_last_groups),
    "dorothea": _Entry("dorothea_train.svm", 800, 100_000),
    "duke": _Entry("duke", 44, 7129, is_dense=True),
    "pyrim": _Entry("pyrim", 74, 27, is_dense=True, convert=_as_it_is),
    "triazines": _Entry("triazines", 186, 60, is_dense=True, convert=_as_it_is),
}
