"""simulate_texts: a problem of the size and shape of E2006-log1p, whose file cannot be had everywhere."""

from __future__ import annotations

import numpy as np
import scipy.sparse

_BATCH = 20_000  # words made at a time


def simulate_texts(n_texts: int, n_words: int, n_entries: int, n_relevant: int = 500, seed: int = 0):
    """Return log1p counts in columns of unit length, with Zipf's frequencies, and centred targets of a sparse model.

    Word j stands in a share of the texts that falls as 1 / (j + c), at least in one and at most in nine of ten; counts
    are geometric. A word's texts are spread evenly, one in each of as many equal ranges of texts, at random within it.
    Nothing of the size of X is held beside X.
    """
    rng = np.random.default_rng(seed)
    lengths = _lengths(n_texts, n_words, n_entries)
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    indices, data = np.empty(offsets[-1], np.int32), np.empty(offsets[-1])
    for start in range(0, n_words, _BATCH):
        words = np.arange(start, min(start + _BATCH, n_words))
        stored = slice(offsets[start], offsets[words[-1] + 1])
        length = np.repeat(lengths[words], lengths[words])
        place = np.arange(stored.start, stored.stop) - np.repeat(offsets[words], lengths[words])
        low, high = place * n_texts // length, (place + 1) * n_texts // length  # one entry in each: distinct and sorted
        indices[stored] = low + (rng.random(low.size) * (high - low)).astype(np.int64)
        data[stored] = np.log1p(rng.geometric(1.0 / (1.0 + 2.0 * rng.random(low.size))))
    squares = np.add.reduceat(np.square(data), offsets[:-1])
    for part in np.array_split(np.arange(n_words), 50):
        stored = slice(offsets[part[0]], offsets[part[-1] + 1])
        data[stored] /= np.repeat(np.sqrt(squares[part]), lengths[part])
    X = scipy.sparse.csc_matrix((data, indices, offsets.astype(np.int32)), shape=(n_texts, n_words))
    # Relevant words are drawn among all lengths alike, most of them not too rare.
    chosen = np.unique((rng.random(n_relevant) ** 3 * n_words * 0.2).astype(int))
    y = np.zeros(n_texts)
    for j, c in zip(chosen, rng.standard_normal(chosen.size), strict=True):
        part = slice(offsets[j], offsets[j + 1])
        y[indices[part]] += c * data[part]
    y += 0.5 * y.std() * rng.standard_normal(n_texts)
    return X, y - y.mean()


def _lengths(n_texts: int, n_words: int, n_entries: int) -> np.ndarray:
    """Return column lengths c / (j + 10), clipped, that add up to about ``n_entries``."""
    rank = np.arange(n_words) + 10.0
    low, high = 1.0, 1e3 * n_entries
    for _ in range(100):
        c = np.sqrt(low * high)
        lengths = np.clip(c / rank, 1.0, 0.9 * n_texts)
        low, high = (c, high) if lengths.sum() < n_entries else (low, c)
    return lengths.astype(np.int64)
