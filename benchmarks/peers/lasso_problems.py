"""The problems of `lasso_path.py`: real data from the folder that CONDGRAD_DATA names, and simulated texts."""

from __future__ import annotations

import io
import os
import pathlib
import re
import tarfile

import numpy as np
import scipy.sparse


def duke():
    """Gene expressions."""
    from condgrad import datasets

    data = datasets.load("duke")
    return unit_length(data.X), data.y - data.y.mean()


def dorothea():
    """Molecules as sets of 100,000 properties."""
    from condgrad import datasets

    data = datasets.load("dorothea")
    return unit_length(data.X), data.y - data.y.mean()


def pyrim():
    """All products of up to five of 27 features."""
    from condgrad import datasets

    data = datasets.load("pyrim")
    return unit_length(products(data.X, 5)), data.y - data.y.mean()


def triazines():
    """All products of up to four of 60 features."""
    from condgrad import datasets

    data = datasets.load("triazines")
    return unit_length(products(data.X, 4)), data.y - data.y.mean()


def news20():
    """Texts of one news group against nineteen others, tf-idf."""
    from sklearn.feature_extraction.text import TfidfTransformer

    from condgrad.datasets import read_libsvm

    X, labels = read_libsvm(find("news20.bz2"), 62_061)
    y = np.where(labels == 1, 1.0, -1.0)
    return unit_length(TfidfTransformer().fit_transform(X)), y - y.mean()


def imdb():
    """Stars of film reviews from the words and pairs of words that at least three reviews have, tf-idf."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts, stars = [], []
    with tarfile.open(find("aclImdb_labelled.tar.xz")) as archive:
        for member in archive:
            found = re.search(r"train/.*_(\d+)\.txt$", member.name)
            if found and member.isfile():
                texts.append(io.TextIOWrapper(archive.extractfile(member), encoding="utf-8").read())
                stars.append(float(found[1]))
    y = np.array(stars)
    return unit_length(TfidfVectorizer(ngram_range=(1, 2), min_df=3).fit_transform(texts)), y - y.mean()


def texts():
    """Simulated texts of E2006-log1p's size."""
    from texts import simulate_texts

    return simulate_texts(16_087, 4_272_227, 97_000_000)


def products(X, degree: int):
    """Return all products of at most ``degree`` features, the features scaled to [-1, 1] first."""
    spread = np.ptp(X, axis=0)
    X = 2.0 * (X - X.min(axis=0)) / np.where(spread > 0.0, spread, 1.0) - 1.0
    level, last = np.ones((1, X.shape[0])), np.zeros(1, dtype=int)
    levels = [level]
    for _ in range(degree):
        # A product is made once: its factors come in ascending order.
        parts = [(level[last <= j] * X[:, j], np.count_nonzero(last <= j)) for j in range(X.shape[1])]
        level = np.vstack([part for part, _ in parts])
        last = np.repeat(np.arange(X.shape[1]), [count for _, count in parts])
        levels.append(level)
    return np.vstack(levels).T


def unit_length(X):
    """Return X in column order, its columns divided by their length."""
    if scipy.sparse.issparse(X):
        X = scipy.sparse.csc_matrix(X, dtype=np.float64)
        length = np.sqrt(np.asarray(X.multiply(X).sum(axis=0)).ravel())
        X.data /= np.repeat(np.where(length > 0.0, length, 1.0), np.diff(X.indptr))
        return X
    length = np.sqrt((X * X).sum(axis=0))
    return np.asfortranarray(X / np.where(length > 0.0, length, 1.0))


def find(file: str) -> pathlib.Path:
    """Return the path of a file below the folder that CONDGRAD_DATA names."""
    folder = os.environ.get("CONDGRAD_DATA")
    for path in sorted(pathlib.Path(folder).rglob(file)) if folder else ():
        return path
    raise FileNotFoundError(f"{file} is not in the folder that CONDGRAD_DATA names.")


PROBLEMS = {
    "duke": duke,
    "pyrim": pyrim,
    "dorothea": dorothea,
    "triazines": triazines,
    "news20": news20,
    "imdb": imdb,
    "texts": texts,
}
