"""Simulated text: sparse counts of words that follow Zipf's law, of any size."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import DTypeLike

from condgrad.compiled import kernel
from condgrad.datasets._drawing import as_count, as_positive, coefficients, labels
from condgrad.datasets.dataset import Dataset
from condgrad.linalg.convert import as_number
from condgrad.linalg.settings import RandomState, as_generator

_NUMBERS = 4_000_000  # number of random numbers drawn at a time
_PATIENCE = 20  # draws per word of a document, after which its other words are drawn uniformly


def simulate_text(
    n_samples: int,
    n_features: int,
    words_per_document: float,
    *,
    task: str = "classification",
    n_informative: int = 100,
    margin: float = 3.0,
    noise: float = 0.5,
    skew: float = 1.0,
    dtype: DTypeLike = np.float64,
    random_state: RandomState = None,
) -> Dataset:
    """Return CSR data like the log-transformed counts of words, with targets from a sparse linear model.

    A document is drawn word by word, word j with a probability that falls like (j + 1)**-skew (Zipf's law), until it
    has its number of different words; that number varies from document to document by a factor of about two. Entries
    are log(1 + count). Memory is needed for the result only: 16,087 documents with 6,013 of 4,272,227
    words each, 97 million entries like those of the data set E2006-log1p, take 1.2 GB (0.8 GB in float32).

    Parameters
    ----------
    n_samples, n_features : int
        Documents and words of the vocabulary.
    words_per_document : float
        The mean number of different words, at most half of the vocabulary.
    task : {"classification", "regression"}
        Labels -1 and 1 from a logistic model, with the intercept that makes its mean prediction zero; or
        y = Xw + noise.
    n_informative : int
        Nonzeros of w, among the 10 n_informative most frequent words.
    margin : float
        Standard deviation of x'w.
    noise : float
        For regression: standard deviation of the noise, as a fraction of that of x'w.
    skew : float
        How unequal the frequencies of words are; 0 makes them equal.
    dtype : float64 or float32
        The type of the entries.
    random_state : int, numpy Generator or None

    Examples
    --------
    >>> data = simulate_text(100, 5000, 20, random_state=0)
    >>> data, bool(data.X.nnz > 1500)
    (Dataset(simulated text: 100 samples, 5000 features, csr), True)
    """
    rng = as_generator(random_state)
    n_samples, n_features = as_count(n_samples, "n_samples"), as_count(n_features, "n_features")
    n_informative = min(as_count(n_informative, "n_informative"), n_features)
    mean = as_number(words_per_document, "words_per_document", low=1.0, what="a number of at least 1")
    if mean > max(1.0, n_features / 2):
        raise ValueError(f"words_per_document must be at most n_features / 2 = {n_features / 2:g}; got {mean:g}.")
    margin, skew = as_positive(margin, "margin"), as_number(skew, "skew", low=0.0, what="a number of at least 0")
    noise = as_number(noise, "noise", low=0.0, what="a number of at least 0")
    if task not in ("classification", "regression"):
        raise ValueError(f"task must be 'classification' or 'regression'; got {task!r}.")
    if np.dtype(dtype) not in (np.float64, np.float32):
        raise ValueError(f"dtype must be float64 or float32; got {dtype!r}.")
    X = _documents(_lengths(n_samples, mean, n_features, rng), n_features, skew, np.dtype(dtype), rng)
    w = np.zeros(n_features)
    candidates = min(n_features, 10 * n_informative)
    w[rng.choice(candidates, n_informative, replace=False)] = coefficients(n_informative, rng)
    spread = float((X @ w).std())
    w *= margin / spread if spread > 0.0 else 1.0
    p = X @ w
    if task == "regression":
        return Dataset(X, p + noise * p.std() * rng.standard_normal(p.size), "simulated text", w)
    return Dataset(X, labels(p - p.mean(), rng), "simulated text", w)


def _lengths(n_samples: int, mean: float, most: int, rng: np.random.Generator) -> np.ndarray:
    """Return the numbers of different words of the documents: lognormal numbers with the given mean."""
    drawn = np.exp(0.5 * rng.standard_normal(n_samples))
    return np.clip(np.rint(mean * drawn / drawn.mean()), 1, most).astype(np.int64)


def _documents(lengths: np.ndarray, n_features: int, skew: float, dtype: np.dtype, rng: np.random.Generator) -> Any:
    """Return the CSR matrix of the documents, written in place, without a second copy."""
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    indices, data = np.empty(indptr[-1], dtype=np.int32), np.empty(indptr[-1], dtype=dtype)
    seen, done = np.full(n_features, -1, dtype=np.int64), 0
    counts = np.zeros(lengths.max(), dtype=np.int64)
    while done < lengths.size:  # a document that runs out of numbers starts again with the next ones
        numbers = rng.random(max(_NUMBERS, 40 * _PATIENCE * int(lengths[done])))
        done = _write(done, numbers, indptr, indices, data, seen, counts, n_features, skew)
    if indptr[-1] < 2**31:
        indptr = indptr.astype(np.int32)
    return scipy.sparse.csr_matrix((data, indices, indptr), shape=(lengths.size, n_features))


@kernel
def _write(done, numbers, indptr, indices, data, seen, counts, n_features, skew):
    """Write documents, from number ``done``, until the random numbers are used up; return the first one not written.

    ``seen[j]`` is the place of word j in ``indices`` if this document has it, else a place before this document.
    """
    used = 0
    while done < indptr.shape[0] - 1:
        first, last = indptr[done], indptr[done + 1]
        for j in range(last - first):
            counts[j] = 0
        at, draws = first, 0
        while at < last:
            if used == numbers.shape[0]:
                for k in range(first, at):  # discard this document
                    seen[indices[k]] = -1
                return done
            is_even = draws >= _PATIENCE * (last - first)
            word = _word(numbers[used], n_features, 0.0 if is_even else skew)
            used += 1
            draws += 1
            if seen[word] < first:
                seen[word] = at
                indices[at] = word
                at += 1
            counts[seen[word] - first] += 1
        indices[first:last] = np.sort(indices[first:last])
        for k in range(first, last):
            data[k] = np.log1p(float(counts[seen[indices[k]] - first]))
        done += 1
    return done


@kernel
def _word(u, n_features, skew):
    """Return floor(x) - 1 for x in [1, d + 1) with a density like x^-skew, by inverting its distribution function."""
    top = n_features + 1.0
    if skew == 1.0:
        x = np.exp(u * np.log(top))
    else:
        x = (1.0 + u * (top ** (1.0 - skew) - 1.0)) ** (1.0 / (1.0 - skew))
    return min(int(x) - 1, n_features - 1)
