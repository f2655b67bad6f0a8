"""The data sets of the papers by name: from the folder that CONDGRAD_DATA names, from the cache, or downloaded."""

from __future__ import annotations

import difflib
import hashlib
import os
import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from condgrad.datasets import cache
from condgrad.datasets.dataset import Dataset
from condgrad.datasets.libsvm import read_libsvm

_VARIABLE = "CONDGRAD_DATA"
_SUFFIXES = (".bz2", "", ".xz", ".gz")


def load(name: str, *, download: bool = False) -> Dataset:
    """Return a benchmark data set; labels of two classes become -1 and 1, the larger label 1.

    The file is looked for in the folder that the environment variable CONDGRAD_DATA names, under its LIBSVM name,
    plain or compressed, directly or in a subfolder; then in the cache of downloads, ``~/.cache/condgrad`` or the folder
    that CONDGRAD_CACHE names. Its shape is checked, so that an incomplete file is detected. A download is checked
    twice: its SHA-256 is saved, and compared whenever it is read; and its numbers, however they are written, are
    compared with a known fingerprint, if there is one (see :func:`origin`).

    Parameters
    ----------
    name : str
        One of :func:`names`. ``"california-housing"`` has scikit-learn's features (averages per household) and prices
        in units of 100,000; ``"news20-binary"`` separates the first ten of the twenty groups from the last ten and
        is tf-idf weighted, with rows of unit length.
    download : bool
        Whether a file that is not found may be downloaded from the site of its publication. That needs the package
        pooch (``pip install "condgrad[data]"``).
    """
    entry = _entry(name)
    path, is_ours = _find(entry), False
    if path is None and entry.url is not None:
        path = cache.find(entry.url.rsplit("/", 1)[1])
        if path is None and download:
            path = cache.fetch(entry.url, entry.url.rsplit("/", 1)[1])
        is_ours = path is not None
    if path is None:
        raise FileNotFoundError(_missing(name, entry))
    X, y = read_libsvm(path, entry.n_features)
    if y.size != entry.n_samples:
        raise ValueError(f"{entry.file} should hold {entry.n_samples} samples and holds {y.size}: it is incomplete.")
    if is_ours and entry.fingerprint is not None and fingerprint(X, y) != entry.fingerprint:
        raise ValueError(
            f"{str(path)!r}, downloaded from {entry.url}, does not hold the numbers that are known for {name}. To use "
            f"it nevertheless, move it into the folder that {_VARIABLE} names."
        )
    X, y = entry.convert(X, y)
    return Dataset(X.toarray() if entry.is_dense and not isinstance(X, np.ndarray) else X, y, name)


def names() -> tuple[str, ...]:
    """Return the names that :func:`load` knows.

    >>> "a9a" in names()
    True
    """
    return tuple(_CATALOGUE)


def origin(name: str) -> tuple[str | None, str | None]:
    """Return the URL of a data set and the fingerprint of its numbers; None for one that is unknown.

    >>> origin("a9a")[1]
    'efb8...'
    """
    entry = _entry(name)
    return entry.url, entry.fingerprint


def fingerprint(X: Any, y: np.ndarray) -> str:
    """Return the SHA-256 of the numbers of a CSR matrix and its targets, however a file writes them.

    >>> import scipy.sparse
    >>> fingerprint(scipy.sparse.csr_matrix([[0.0, 1.0]]), np.ones(1))[:8]
    '5f0c346f'
    """
    found = hashlib.sha256(repr(tuple(int(size) for size in X.shape)).encode())
    for part, dtype in ((X.indptr, "<i8"), (X.indices, "<i8"), (X.data, "<f8"), (y, "<f8")):
        found.update(np.ascontiguousarray(part, dtype=dtype).data)
    return found.hexdigest()


def _entry(name: str) -> _Entry:
    if name not in _CATALOGUE:
        close = difflib.get_close_matches(str(name).lower(), _CATALOGUE, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"there is no data set named {name!r}; known: {', '.join(_CATALOGUE)}.{hint}")
    return _CATALOGUE[name]


def data_folder() -> pathlib.Path | None:
    """Return the folder that the environment variable CONDGRAD_DATA names, or None if it is not set."""
    named = os.environ.get(_VARIABLE)
    if not named:
        return None
    if not pathlib.Path(named).is_dir():
        raise FileNotFoundError(f"{_VARIABLE} names the folder {named!r}, which does not exist.")
    return pathlib.Path(named)


def _find(entry: _Entry) -> pathlib.Path | None:
    """Return the file in the folder that CONDGRAD_DATA names, or None."""
    root = data_folder()
    if root is None:
        return None
    for parent in (root, *sorted(path for path in root.iterdir() if path.is_dir())):
        for suffix in _SUFFIXES:
            path = parent / (entry.file + suffix)
            if path.is_file():
                return path
    return None


def _missing(name: str, entry: _Entry) -> str:
    """Return the error message for a file that was not found."""
    named = os.environ.get(_VARIABLE)
    where = (
        f"{name} needs the file {entry.file}.bz2 in the folder {named!r} that {_VARIABLE} names"
        if named
        else f"{name} is read from a file {entry.file}.bz2: set the environment variable {_VARIABLE} to the folder of "
        "your LIBSVM files"
    )
    return f"{where}, or use load({name!r}, download=True)." if entry.url else f"{where}."


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
    url: str | None = None
    fingerprint: str | None = None


_SITE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"

# Fingerprints are known only for files that were available when this table was written.
_CATALOGUE = {
    "a1a": _Entry(
        "a1a",
        1605,
        123,
        url=f"{_SITE}/binary/a1a",
        fingerprint="81a14dfcd6e4bc1e7d7ab3617e26c7cec1c4b2e22d461ad4938d0c225c494b8a",
    ),
    "a1a.t": _Entry(
        "a1a.t",
        30956,
        123,
        url=f"{_SITE}/binary/a1a.t",
        fingerprint="483396aa94d3e8e03de97ed9f66c2c79ed26a8a89148c844d3b3bb5eb4f3e06a",
    ),
    "a2a": _Entry("a2a", 2265, 123, url=f"{_SITE}/binary/a2a"),
    "a8a": _Entry(
        "a8a",
        22696,
        123,
        url=f"{_SITE}/binary/a8a",
        fingerprint="8bf062af93fe244d716d414f7891fb9732ffbd529775899a4bd3360f2c2a4a0b",
    ),
    "a9a": _Entry(
        "a9a",
        32561,
        123,
        url=f"{_SITE}/binary/a9a",
        fingerprint="efb8254a21ca4d2ec824e2eaeb28ab8d2311f1bff28f872317e2a08045e5b86e",
    ),
    "a9a.t": _Entry(
        "a9a.t",
        16281,
        123,
        url=f"{_SITE}/binary/a9a.t",
        fingerprint="a2b6a0c8f98739f3d3633a3b5ffcb5fc840358f45411d5cc059b13433e54b997",
    ),
    "w1a": _Entry(
        "w1a",
        2477,
        300,
        url=f"{_SITE}/binary/w1a",
        fingerprint="b26111e37d1f0762cc101f3f9e448bd5be41029194f4f2b47021f9c92787d466",
    ),
    "w2a": _Entry("w2a", 3470, 300, url=f"{_SITE}/binary/w2a"),
    "w7a": _Entry("w7a", 24692, 300, url=f"{_SITE}/binary/w7a"),
    "w8a": _Entry(
        "w8a",
        49749,
        300,
        url=f"{_SITE}/binary/w8a",
        fingerprint="a87e7fc525c3a03a4aaf3754bc7364c97ee11dffc5a8c095a01ba96e1712bfe3",
    ),
    "ijcnn1": _Entry("ijcnn1", 49990, 22, url=f"{_SITE}/binary/ijcnn1.bz2"),
    "phishing": _Entry(
        "phishing",
        11055,
        68,
        url=f"{_SITE}/binary/phishing",
        fingerprint="e77d07ccafe95466a8b38447fd379fbfa46e9dc149b7156efc309b171e74912e",
    ),
    "svmguide3": _Entry(
        "svmguide3",
        1243,
        22,
        True,
        url=f"{_SITE}/binary/svmguide3",
        fingerprint="ecc55d2ce8b6f87e1fd8d65b0e424156feccc3a0c7f55d8191fe4ab7eb382f5e",
    ),
    "covtype": _Entry(
        "covtype.libsvm.binary.scale", 581_012, 54, url=f"{_SITE}/binary/covtype.libsvm.binary.scale.bz2"
    ),
    "covtype-subset": _Entry("covtype.binary.scale.subset92962", 92962, 54),
    "rcv1": _Entry("rcv1_train.binary", 20242, 47236, url=f"{_SITE}/binary/rcv1_train.binary.bz2"),
    "breast-cancer": _Entry(
        "breast-cancer_scale",
        683,
        10,
        True,
        url=f"{_SITE}/binary/breast-cancer_scale",
        fingerprint="af65f01f1d0a3d51b849153eb221aa6c4d11665f67a6709e2e84fb8b6032fb5a",
    ),
    "california-housing": _Entry(
        "cadata",
        20640,
        8,
        True,
        _per_household,
        url=f"{_SITE}/regression/cadata",
        fingerprint="9e6095da2eecf492c9b0a9b14ab0785c8a72a47e3c66376580144d8cbb5fcd48",
    ),
    "news20-binary": _Entry(
        "news20",
        15935,
        62061,
        False,
        _last_groups,
        url=f"{_SITE}/multiclass/news20.bz2",
        fingerprint="45d11236887bad61b72e9db51146c251c857e6cc6973e998dca9edcd3803bcc4",
    ),
    "dorothea": _Entry("dorothea_train.svm", 800, 100_000),
    "duke": _Entry(
        "duke",
        44,
        7129,
        True,
        url=f"{_SITE}/binary/duke.bz2",
        fingerprint="4088235fc9c3352ae443c23ca45953832ed3b82f02e5d72861e2eaac662e1a04",
    ),
    "pyrim": _Entry(
        "pyrim",
        74,
        27,
        True,
        _as_it_is,
        url=f"{_SITE}/regression/pyrim",
        fingerprint="f474bc6de699707c151ae3707efa1f8fe755b6365e242aa58cf9986fd52b0d01",
    ),
    "triazines": _Entry(
        "triazines",
        186,
        60,
        True,
        _as_it_is,
        url=f"{_SITE}/regression/triazines",
        fingerprint="e26b7bf69d955809aebeffd9ba57bf14a0dbf349546f5160fe61e468db84d2d1",
    ),
    "e2006-tfidf": _Entry("E2006.train", 16087, 150_360, False, _as_it_is, url=f"{_SITE}/regression/E2006.train.bz2"),
    "e2006-log1p": _Entry(
        "log1p.E2006.train", 16087, 4_272_227, False, _as_it_is, url=f"{_SITE}/regression/log1p.E2006.train.bz2"
    ),
    "e2006-tfidf.t": _Entry("E2006.test", 3308, 150_360, False, _as_it_is, url=f"{_SITE}/regression/E2006.test.bz2"),
    "e2006-log1p.t": _Entry(
        "log1p.E2006.test", 3308, 4_272_227, False, _as_it_is, url=f"{_SITE}/regression/log1p.E2006.test.bz2"
    ),
}
