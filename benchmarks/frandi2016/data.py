"""The data of Frandi et al. (2016), with columns of unit length and centred targets."""

from __future__ import annotations

import io
import os
import pathlib
import re
import tarfile
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from condgrad.datasets import load


class Regression(NamedTuple):
    """A regression problem: X by columns, and test data where there are some."""

    name: str
    X: Any
    y: np.ndarray
    X_test: Any = None
    y_test: Any = None


def synthetic(n_features: int, n_relevant: int) -> Regression:
    """Return scikit-learn's make_regression with 200 samples to learn from and 200 to test on."""
    from sklearn.datasets import make_regression

    X, y = make_regression(400, n_features, n_informative=n_relevant, noise=1.0, random_state=0)
    mean, scale, centre = X[:200].mean(axis=0), lengths(X[:200] - X[:200].mean(axis=0)), y[:200].mean()
    X = np.asfortranarray((X - mean) / scale)
    y = (y - centre) / np.sqrt(200)
    return Regression(f"Synthetic-{n_features} ({n_relevant} relevant)", *halves(X, y))


def expanded(name: str, degree: int) -> Regression:
    """Return Pyrim or Triazines, scaled to [-1, 1], with all products of up to ``degree`` features."""
    from sklearn.preprocessing import PolynomialFeatures, minmax_scale

    data = load(name)
    X = PolynomialFeatures(degree, order="F").fit_transform(minmax_scale(data.X, (-1.0, 1.0)).astype(np.float32))
    X -= X.mean(axis=0)
    X /= lengths(X)
    return Regression(f"{name} (degree {degree})", np.asfortranarray(X), centred(data.y))


def imdb(limit: int | None = None) -> Regression:
    """Return log(1 + count) of the words and pairs of words of film reviews, and their stars; for E2006."""
    from sklearn.feature_extraction.text import CountVectorizer

    texts, stars = reviews(limit)
    counts = {half: np.array(stars[half], dtype=float) for half in stars}
    vectorizer = CountVectorizer(ngram_range=(1, 2), dtype=np.float64)
    X = scipy.sparse.csc_matrix(vectorizer.fit_transform(texts["train"]).log1p())
    scale = np.sqrt(np.asarray(X.multiply(X).sum(axis=0)).ravel())
    scale = scipy.sparse.diags_array(1.0 / np.where(scale > 0.0, scale, 1.0))
    X_test = scipy.sparse.csc_matrix(vectorizer.transform(texts["test"]).log1p() @ scale)
    n, centre = counts["train"].size, counts["train"].mean()
    y, y_test = ((counts[half] - centre) / np.sqrt(n) for half in ("train", "test"))
    return Regression("IMDB (1-2-grams, log1p)", scipy.sparse.csc_matrix(X @ scale), y, X_test, y_test)


def reviews(limit: int | None) -> tuple[dict[str, list[str]], dict[str, list[int]]]:
    """Return the texts and the stars, 1 to 10, of the two halves of the archive, at most ``limit`` of each."""
    folder = os.environ.get("CONDGRAD_DATA", "")
    found = sorted(pathlib.Path(folder).rglob("aclImdb*.tar.*")) if folder else []
    if not found:
        raise FileNotFoundError("IMDB is read from aclImdb_labelled.tar.xz in the folder that CONDGRAD_DATA names.")
    texts: dict[str, list[str]] = {"train": [], "test": []}
    stars: dict[str, list[int]] = {"train": [], "test": []}
    with tarfile.open(found[0]) as archive:
        for member in archive:
            match = re.fullmatch(r"aclImdb/(train|test)/(?:pos|neg)/\d+_(\d+)\.txt", member.name)
            if match is None or (limit is not None and len(texts[match[1]]) >= limit):
                continue
            content = archive.extractfile(member)
            assert content is not None
            texts[match[1]].append(io.TextIOWrapper(content, encoding="utf-8").read())
            stars[match[1]].append(int(match[2]))
    return texts, stars


def centred(y: np.ndarray) -> np.ndarray:
    """Return the targets less their mean, over the root of their number: the scale that eps refers to."""
    return (y - y.mean()) / np.sqrt(y.size)


def lengths(X: np.ndarray) -> np.ndarray:
    """Return the lengths of the columns, 1 for those that vanish up to rounding (a constant, centred)."""
    found = np.sqrt(np.einsum("ij,ij->j", X, X, dtype=np.float64)).astype(X.dtype)
    return np.where(found > 100 * np.finfo(X.dtype).eps, found, 1.0).astype(X.dtype)


def halves(X: np.ndarray, y: np.ndarray) -> tuple[Any, ...]:
    """Return the first and the last half of the samples."""
    n = y.size // 2
    return np.asfortranarray(X[:n]), y[:n], np.asfortranarray(X[n:]), y[n:]
