"""MovieLens: ratings of films by users, from the published files."""

from __future__ import annotations

import pathlib
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse

from condgrad.datasets.catalogue import data_folder, fingerprint
from condgrad.datasets.ratings import Ratings, read_ratings
from condgrad.linalg.names import suggestion

_SUFFIXES = ("", ".bz2", ".gz", ".xz")


class _Entry(NamedTuple):
    folders: tuple[str, ...]
    files: tuple[str, ...]  # alternatives: each of them holds all ratings
    shape: tuple[int, int]
    n_entries: int
    fingerprint: str | None = None


def load_movielens(name: str) -> Ratings:
    """Return ratings of MovieLens; row i is user i + 1 and column j film j + 1, as the files number them.

    The files are looked for in the folder that the environment variable CONDGRAD_DATA names, directly or in its
    subfolder ``movielens-100k`` or ``ml-100k`` (``movielens-1m`` or ``ml-1m``), plain or compressed. Their
    licence forbids redistribution, so nothing is downloaded: get them from the GroupLens project. Number and shape are
    checked, and the numbers too if their fingerprint is known; :func:`read_ratings` reads any file.

    Parameters
    ----------
    name : str
        "100k", all of u.data; "100k/u1.base" and "100k/u1.test", its first split into 80,000 and 20,000, likewise u2 to
        u5, ua and ub; "1m", from ratings.dat, or from movielens_1m.mat with a sparse matrix X.
    """
    if name not in _FILES:
        raise ValueError(f"there are no ratings named {name!r}; known: {', '.join(_FILES)}.{suggestion(name, _FILES)}")
    entry = _FILES[name]
    path = _find(name, entry)
    rows, cols, values = _read_mat(path) if path.suffix == ".mat" else _read_text(path)
    shape = entry.shape
    if values.size != entry.n_entries:
        raise ValueError(
            f"{path.name} should hold {entry.n_entries} ratings and holds {values.size}: it is incomplete."
        )
    if min(rows.min(), cols.min()) < 0 or rows.max() >= shape[0] or cols.max() >= shape[1]:
        raise ValueError(f"{path.name} should number users from 1 to {shape[0]} and films from 1 to {shape[1]}.")
    X = scipy.sparse.csr_matrix((values, (rows, cols)), shape=shape)  # sorts: row by row
    if entry.fingerprint not in (None, fingerprint(X, np.empty(0))):
        raise ValueError(
            f"{str(path)!r} does not hold the numbers that are known for {name}: get it anew, or use read_ratings."
        )
    entries = X.tocoo()
    return Ratings(entries.row.astype(np.int64), entries.col.astype(np.int64), entries.data, shape, f"MovieLens {name}")


def _find(name: str, entry: _Entry) -> pathlib.Path:
    root = data_folder()
    wanted = " or ".join(entry.files)
    if root is None:
        raise FileNotFoundError(
            f"MovieLens {name} is read from a file {wanted}: set the environment variable CONDGRAD_DATA to a folder "
            f"with it, or with the subfolder {entry.folders[0]}."
        )
    for parent in (*(root / folder for folder in entry.folders), root):
        for file in entry.files:
            for suffix in _SUFFIXES:
                if (parent / (file + suffix)).is_file():
                    return parent / (file + suffix)
    raise FileNotFoundError(
        f"MovieLens {name} needs the file {wanted} in the folder {str(root)!r} that CONDGRAD_DATA names, or in its "
        f"subfolder {entry.folders[0]}."
    )


def _read_text(path: pathlib.Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    ratings = read_ratings(path, header="no")
    assert ratings.values is not None
    users, films = (_numbers(labels or (), path.name) for labels in (ratings.row_labels, ratings.col_labels))
    return users[ratings.rows] - 1, films[ratings.cols] - 1, ratings.values


def _numbers(labels: Sequence[str], name: str) -> np.ndarray:
    strange = [label for label in labels if not (label.isascii() and label.isdigit() and len(label) < 10)]
    if strange:
        raise ValueError(f"{name} should number users and films; got {strange[0]!r}.")
    return np.array(labels, dtype=np.int64)


def _read_mat(path: pathlib.Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    import scipy.io

    try:
        with warnings.catch_warnings():  # newer scipy warns of a change to sparse arrays, which this code takes too
            warnings.simplefilter("ignore", DeprecationWarning)
            warnings.simplefilter("ignore", FutureWarning)
            X = scipy.io.loadmat(path, variable_names=["X"]).get("X")
    except Exception as error:  # the reader raises errors of many kinds on damaged files
        raise ValueError(f"{path.name} could not be read as a MATLAB file: {error}.") from None
    if not scipy.sparse.issparse(X):
        raise ValueError(f"{path.name} should hold a sparse matrix X.")
    entries = scipy.sparse.coo_array(X)
    return entries.row, entries.col, entries.data.astype(np.float64)


_SMALL, _MEDIUM = ("movielens-100k", "ml-100k"), ("movielens-1m", "ml-1m")
_SIZES = {"base": 80_000, "test": 20_000}
_LEAVING_TEN = {"base": 90_570, "test": 9_430}  # ua and ub leave ten ratings of every user for the test

# Fingerprints of the files that were available when this table was written.
_FINGERPRINTS = {
    "u1.base": "61a4f32e5989ca3f2a2be5b690116a8fc9cd5e5df2bea73bc354e85788724c06",
    "u1.test": "6c976978e0eac9f7269b4f3a40126961a08f49e719cde1d0b23f97c3e86bb0f0",
}
_FILES = {
    "100k": _Entry(
        _SMALL,
        ("u.data",),
        (943, 1682),
        100_000,
        "00eed7d36b7e25517dfff471564e58e6060cdedc92b57b46b67ba9e0cedc143c",
    ),
    **{
        f"100k/{split}.{part}": _Entry(
            _SMALL, (f"{split}.{part}",), (943, 1682), size, _FINGERPRINTS.get(f"{split}.{part}")
        )
        for split in ("u1", "u2", "u3", "u4", "u5", "ua", "ub")
        for part, size in (_LEAVING_TEN if split in ("ua", "ub") else _SIZES).items()
    },
    "1m": _Entry(
        _MEDIUM,
        ("ratings.dat", "movielens_1m.mat"),
        (6040, 3952),
        1_000_209,
        "b0a82dd72a7fc1600ea13332d5d99256d2faf365ca4a431776b016e27ae000df",
    ),
}
