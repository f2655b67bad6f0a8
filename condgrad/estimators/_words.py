"""TakesWords: estimators that take frames with columns of words, and tables of numbers and codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_X_y

from condgrad.estimators.indicators import IndicatorColumns
from condgrad.linalg import convert
from condgrad.linalg.coded_data import CodedData
from condgrad.storage.outside_rows import OutsideRows


class TakesWords:
    """Encodes and checks such data; ``indicators_`` is what the frame of the fit looked like, where it had words."""

    indicators_: IndicatorColumns | None = None
    feature_names_in_: np.ndarray
    n_features_in_: int

    def _encoded(self, X: Any, *, reset: bool = False) -> Any:
        """Return a frame with columns of words as codes, and other data as they are; a fit resets the categories."""
        if reset:
            self.indicators_ = IndicatorColumns.of(X)
        return X if self.indicators_ is None or isinstance(X, CodedData) else self.indicators_.encode(X)

    def _checked_features(self, X: Any, y: ArrayLike | None, settings: Mapping[str, Any]) -> tuple[Any, np.ndarray]:
        """Return the features of a frame with words, or a table of numbers and codes, with targets; both checked."""
        checked = X
        if isinstance(X, CodedData):
            convert.check_codes(X)
            checked = scipy.sparse.csr_matrix(X.shape)  # an empty matrix of this shape, for the checks of y
        of_targets = {name: value for name, value in settings.items() if name != "reset"}
        sparse, y = check_X_y(checked, y, accept_sparse="csr", estimator=self, **of_targets)
        if settings.get("reset", True):
            self.n_features_in_ = X.shape[1]
            if self.indicators_ is not None:
                self.feature_names_in_ = np.array(self.indicators_.feature_names, dtype=object)
            elif hasattr(self, "feature_names_in_"):  # of an earlier fit
                del self.feature_names_in_
        self._check_width(X)
        return (X if isinstance(X, CodedData) else sparse), y

    def _check_width(self, X: OutsideRows | CodedData) -> None:
        """Raise where X has another number of features than the fit."""
        if X.shape[1] != self.n_features_in_:
            name, wanted = type(self).__name__, self.n_features_in_
            raise ValueError(f"X has {X.shape[1]} features, but {name} is expecting {wanted} features.")
