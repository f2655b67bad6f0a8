"""StabilitySelection: features that paths of many subsamples choose again and again."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from condgrad import losses
from condgrad.estimators._cross_validation import on_threads
from condgrad.estimators._words import TakesWords
from condgrad.linalg import convert
from condgrad.linalg.coded_data import CodedData
from condgrad.linalg.convert import Data
from condgrad.linalg.settings import RandomState, as_generator
from condgrad.losses import Loss, Squared
from condgrad.losses._protocol import as_loss
from condgrad.paths import lasso_path, radius_path
from condgrad.paths.grids import as_radii, check_grid
from condgrad.paths.radius_search import go_on_unless_interrupted


class StabilitySelection(TakesWords, SelectorMixin, BaseEstimator):
    r"""Select the features that l1 models of subsamples use again and again.

    Half of the samples is drawn, and the other half is used too (complementary pairs); on each the certified path of
    all radii is solved, as :func:`condgrad.lasso_path` or :func:`condgrad.radius_path` does. A feature is selected if
    at some radius at least the share ``threshold`` of the subsamples uses it.

    Parameters
    ----------
    loss : str or loss object
        "squared" for the Lasso; "logistic", for two classes, or any other convex loss.
    n_subsamples : int
        An even number.
    threshold : float
        Between 0.5 and 1.
    radii : array, optional
        By default ``n_radii`` of them, evenly spaced in their logarithm, up to the radius whose multiplier on all data
        is ``eps`` times that at zero. The more of the path, the more features are chosen by chance.
    n_radii, eps : int, float
        See ``radii``.
    fit_intercept, tol
        As in :func:`condgrad.radius_path`.
    n_jobs : int, optional
        Number of subsamples solved at a time, on threads.
    random_state : int, RandomState, Generator or None
        For the subsamples.

    Attributes
    ----------
    radii_ : array of shape (n_radii,)
    probabilities_ : array of shape (n_features, n_radii)
        The share of the subsamples that use a feature at a radius.
    scores_ : array of shape (n_features,)
        The largest of these over the radii.
    n_chosen_ : float
        The mean number q of features that a subsample uses somewhere on its path.
    expected_false_ : float
        The bound q^2 / ((2 threshold - 1) n_features) of the expected number of features that are selected in error, if
        those without effect are exchangeable (Meinshausen & Bühlmann, theorem 1).
    n_features_in_, feature_names_in_

    References
    ----------
    Meinshausen & Bühlmann (2010). Stability selection. Shah & Samworth (2013) for complementary pairs.

    Examples
    --------
    >>> import condgrad as cg
    >>> from condgrad import datasets
    >>> data = datasets.simulate_regression(100, 50, n_informative=3, noise=0.5, random_state=0)
    >>> selection = cg.StabilitySelection(n_subsamples=20, eps=0.3, random_state=0).fit(data.X, data.y)
    >>> bool((selection.get_support() == (data.w != 0)).all())
    True
    """

    def __init__(
        self,
        loss: object = "squared",
        *,
        n_subsamples: int = 100,
        threshold: float = 0.75,
        radii: ArrayLike | None = None,
        n_radii: int = 20,
        eps: float = 0.2,
        fit_intercept: bool = True,
        tol: float = 1e-4,
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.loss = loss
        self.n_subsamples = n_subsamples
        self.threshold = threshold
        self.radii = radii
        self.n_radii = n_radii
        self.eps = eps
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    def fit(self, X: Data, y: ArrayLike) -> Self:
        """Solve the paths of all subsamples.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Numbers, or the labels of two classes for a loss of classes.
        """
        self._check_settings()
        loss = as_loss(losses.by_name(self.loss) if isinstance(self.loss, str) else self.loss)
        has_classes = loss.classes is not None
        settings: dict[str, Any] = {"y_numeric": not has_classes, "ensure_min_samples": 4}
        convert.check_columns(X)
        X = self._encoded(X, reset=True)
        if isinstance(X, CodedData):
            X, y = self._checked_features(X, y, settings)
        else:
            kinds = np.float64, np.float32
            X, y = validate_data(self, X, y, accept_sparse=("csr", "csc"), dtype=kinds, **settings)
        y = _as_targets(y, loss) if has_classes else y.astype(np.float64)
        given: dict[str, Any] = {"n_radii": self.n_radii, "eps": self.eps}
        if self.radii is not None:
            given = {"radii": as_radii(self.radii)}
        self.radii_ = self._path(loss, X, y, **given)[0]
        rng, n = as_generator(self.random_state), y.size
        halves = []
        for _ in range(self.n_subsamples // 2):
            order = rng.permutation(n)
            halves += [order[: n // 2], order[n // 2 : 2 * (n // 2)]]
        tasks = [(self._used, loss, X, y, half) for half in halves]
        used = on_threads(tasks, self.n_jobs)
        self.probabilities_ = sum(each.astype(np.float64) for each in used) / len(used)
        self.scores_ = self.probabilities_.max(axis=1)
        self.n_chosen_ = float(np.mean([each.any(axis=1).sum() for each in used]))
        self.expected_false_ = self.n_chosen_**2 / ((2.0 * self.threshold - 1.0) * X.shape[1])
        return self

    def _used(self, loss: Loss, X: Any, y: np.ndarray, half: np.ndarray) -> np.ndarray:
        """Return which features a subsample uses at each radius."""
        if np.ptp(y[half]) == 0.0:  # one class alone, or constant numbers: no feature explains them
            return np.zeros((X.shape[1], self.radii_.size), bool)
        coefs = self._path(loss, X[half], y[half], radii=self.radii_)[1]
        found: np.ndarray = coefs.toarray() != 0.0
        return found

    def _path(self, loss: Loss, X: Any, y: np.ndarray, **grid: Any) -> tuple[np.ndarray, Any]:
        settings: dict[str, Any] = {"tol": self.tol, "fit_intercept": bool(self.fit_intercept), **grid}
        is_squared = isinstance(loss, Squared)
        radii, coefs, info = lasso_path(X, y, **settings) if is_squared else radius_path(X, y, loss=loss, **settings)
        go_on_unless_interrupted(info.status)
        return radii, coefs

    def _check_settings(self) -> None:
        check_grid(self.n_radii, self.eps)
        convert.as_number(self.tol, "tol", low=0.0, what="a number of at least 0")
        if not isinstance(self.n_subsamples, int | np.integer) or self.n_subsamples < 2 or self.n_subsamples % 2:
            raise ValueError(f"n_subsamples must be an even number of at least 2; got {self.n_subsamples!r}.")
        if not 0.5 < convert.as_number(self.threshold, "threshold", low=0.0, what="a number above 0.5") <= 1.0:
            raise ValueError(f"threshold must be above 0.5 and at most 1; got {self.threshold!r}.")

    def transform(self, X: Data) -> Any:
        """Return the selected features; those of a frame with words as a sparse matrix."""
        check_is_fitted(self)
        X = self._encoded(X)
        if self.indicators_ is None and not isinstance(X, CodedData):
            return super().transform(X)
        self._check_width(X)
        return X[:, np.flatnonzero(self.get_support())]

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self)
        return self.scores_ >= self.threshold


def _as_targets(y: np.ndarray, loss: Any) -> np.ndarray:
    """Return the labels of two classes as the loss wants them."""
    labels = np.unique(y)
    if labels.size != 2:
        raise ValueError(f"{type(loss).__name__} is a loss of two classes; y has {labels.size}.")
    return np.where(y == labels[1], *(float(value) for value in reversed(loss.classes)))
