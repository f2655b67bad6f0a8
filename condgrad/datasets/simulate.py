"""Simulated data with known sparse coefficients."""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse

from condgrad.datasets._drawing import as_count, as_positive, coefficients, labels
from condgrad.datasets.dataset import Dataset
from condgrad.linalg.convert import as_number
from condgrad.linalg.settings import RandomState, as_generator


def simulate_regression(
    n_samples: int,
    n_features: int,
    *,
    n_informative: int = 10,
    noise: float = 0.1,
    correlation: float = 0.0,
    random_state: RandomState = None,
) -> Dataset:
    """Return dense Gaussian data with y = Xw + noise, where w has ``n_informative`` nonzeros.

    Parameters
    ----------
    n_samples, n_features : int
    n_informative : int
        Nonzeros of w, each of size 1 to 2 and of either sign.
    noise : float
        Standard deviation of the noise, as a fraction of that of Xw.
    correlation : float
        Correlation of neighbouring features, in [0, 1); features j and k have correlation**|j - k|.
    random_state : int, numpy Generator or None

    Examples
    --------
    >>> simulate_regression(50, 20, random_state=0)
    Dataset(simulated regression: 50 samples, 20 features, dense)
    """
    noise = as_number(noise, "noise", low=0.0, what="a number of at least 0")
    X, w, rng = _dense(n_samples, n_features, n_informative, correlation, random_state)
    signal = X @ w
    y = signal + noise * signal.std() * rng.standard_normal(signal.size)
    return Dataset(X, y, "simulated regression", w)


def simulate_classification(
    n_samples: int,
    n_features: int,
    *,
    n_informative: int = 10,
    margin: float = 3.0,
    correlation: float = 0.0,
    random_state: RandomState = None,
) -> Dataset:
    """Return dense Gaussian data with labels -1 and 1 drawn from a logistic model with sparse coefficients w.

    Parameters
    ----------
    n_samples, n_features : int
    n_informative : int
        Nonzeros of w.
    margin : float
        Standard deviation of x'w: the larger, the fewer labels differ from the sign of x'w.
    correlation : float
        Correlation of neighbouring features, in [0, 1).
    random_state : int, numpy Generator or None

    Examples
    --------
    >>> data = simulate_classification(50, 20, random_state=0)
    >>> sorted(set(data.y.tolist()))
    [-1.0, 1.0]
    """
    margin = as_positive(margin, "margin")
    X, w, rng = _dense(n_samples, n_features, n_informative, correlation, random_state)
    spread = float((X @ w).std())
    w *= margin / spread if spread > 0.0 else 1.0
    return Dataset(X, labels(X @ w, rng), "simulated classification", w)


def simulate_sparse(
    n_samples: int,
    n_features: int,
    per_row: int,
    *,
    n_informative: int = 50,
    margin: float = 3.0,
    skew: float = 1.0,
    random_state: RandomState = None,
) -> Dataset:
    """Return CSR data like that of text, with labels -1 and 1 from a logistic model with sparse coefficients w.

    Feature j appears with a probability proportional to (j + 1)**-skew, as words do; entries are positive, rows have
    unit length, and the model has the intercept that makes its mean prediction zero.

    Parameters
    ----------
    n_samples, n_features : int
    per_row : int
        Features drawn for each row; a row has fewer nonzeros if a feature was drawn twice.
    n_informative : int
        Nonzeros of w, among the 10 n_informative most frequent features.
    margin : float
        Standard deviation of x'w.
    skew : float
        How unequal the frequencies of features are; 0 makes them equal.
    random_state : int, numpy Generator or None

    Examples
    --------
    >>> simulate_sparse(100, 1000, per_row=10, random_state=0)
    Dataset(simulated sparse: 100 samples, 1000 features, csr)
    """
    rng = as_generator(random_state)
    n_samples, n_features = as_count(n_samples, "n_samples"), as_count(n_features, "n_features")
    per_row = as_count(per_row, "per_row", n_features)
    n_informative = min(as_count(n_informative, "n_informative"), n_features)
    margin = as_positive(margin, "margin")
    skew = as_number(skew, "skew", low=0.0, what="a number of at least 0")
    frequency = np.cumsum(np.arange(1.0, n_features + 1.0) ** -skew)
    drawn = np.searchsorted(frequency, frequency[-1] * rng.random(n_samples * per_row), side="right")
    values = np.exp(0.5 * rng.standard_normal(drawn.size))
    indptr = np.arange(n_samples + 1) * per_row
    X = scipy.sparse.csr_matrix((values, drawn.astype(np.int32), indptr), shape=(n_samples, n_features))
    X.sum_duplicates()
    lengths = np.sqrt(X.multiply(X).sum(axis=1).A1)
    X.data /= np.repeat(lengths, np.diff(X.indptr))
    candidates = min(n_features, 10 * n_informative)
    w = np.zeros(n_features)
    w[rng.choice(candidates, n_informative, replace=False)] = coefficients(n_informative, rng)
    spread = float((X @ w).std())
    w *= margin / spread if spread > 0.0 else 1.0
    p = X @ w
    return Dataset(X, labels(p - p.mean(), rng), "simulated sparse", w)  # entries are positive: balance the classes


def _dense(
    n_samples: int, n_features: int, n_informative: int, correlation: float, random_state: RandomState
) -> tuple[np.ndarray, np.ndarray, np.random.Generator]:
    rng = as_generator(random_state)
    n_samples, n_features = as_count(n_samples, "n_samples"), as_count(n_features, "n_features")
    n_informative = min(as_count(n_informative, "n_informative"), n_features)
    correlation = as_number(correlation, "correlation", low=0.0, what="a number in [0, 1)")
    if correlation >= 1.0:
        raise ValueError(f"correlation must be a number in [0, 1); got {correlation!r}.")
    X = rng.standard_normal((n_samples, n_features))
    fresh = math.sqrt(1.0 - correlation**2)
    for j in range(1, n_features if correlation > 0.0 else 1):
        X[:, j] = correlation * X[:, j - 1] + fresh * X[:, j]
    w = np.zeros(n_features)
    w[rng.choice(n_features, n_informative, replace=False)] = coefficients(n_informative, rng)
    return X, w, rng
