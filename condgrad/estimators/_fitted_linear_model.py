"""A fitted linear model: coefficients, certificates, multipliers, scores, and its file."""

from __future__ import annotations

import abc
import math
import os
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from condgrad import __version__
from condgrad.constraints import LimitedL1Ball, LinearlyConstrained
from condgrad.constraints.linear_rows import Multipliers
from condgrad.estimators._report import ShownWithItsGap
from condgrad.estimators._words import TakesWords
from condgrad.linalg import convert
from condgrad.linalg.coded_data import CodedData
from condgrad.linalg.convert import Data
from condgrad.linalg.device.arrays import is_on_device, on_host
from condgrad.losses import Loss
from condgrad.models.files import save_model
from condgrad.models.linear import Model
from condgrad.models.multi import OUTPUTS, MultiModel
from condgrad.paths.radius_search import multiplier_over
from condgrad.run.result import Result
from condgrad.storage.cluster_rows import is_dask, of_dask
from condgrad.storage.device_data import DeviceData
from condgrad.storage.outside_rows import OutsideRows

# Fields of each run's result that a model stores:
_OF_A_RUN = ("objective", "gap", "rounding", "lower_bound", "status", "n_steps")


class FittedLinearModel(TakesWords, ShownWithItsGap):
    """What a linear estimator offers after ``fit``; ``_set_fitted`` is where a fit leaves its results."""

    constraint: object
    has_offset_ = False  # whether the model was fitted with offsets: then predictions need them too
    coef_: Any
    intercept_: Any
    n_features_in_: int
    _fitted_to: tuple[list[str], int]  # the sets, one for each problem, and the number of samples

    @abc.abstractmethod
    def _loss(self) -> Loss:
        """Return the loss."""

    def sparsify(self) -> Self:
        """Turn ``coef_`` into a CSR matrix, which saves memory and time where most coefficients are zero."""
        check_is_fitted(self)
        self.coef_ = scipy.sparse.csr_matrix(self.coef_)
        return self

    def densify(self) -> Self:
        """Turn ``coef_`` back into an array."""
        check_is_fitted(self)
        if scipy.sparse.issparse(self.coef_):
            dense = self.coef_.toarray()
            self.coef_ = dense[0] if np.ndim(self.intercept_) == 0 else dense
        return self

    @property
    def model_(self) -> Model | MultiModel:
        """The fitted model for predicting, as :meth:`save` writes it: a Model, or a MultiModel of several rows."""
        check_is_fitted(self)
        results = self.result_ if isinstance(self.result_, list) else [self.result_]
        radii: list[Any] = np.atleast_1d(np.asarray(getattr(self, "radius_", None))).tolist()
        radii = radii if len(radii) == len(results) else radii * len(results)
        classes, names = getattr(self, "classes_", None), getattr(self, "feature_names_in_", None)
        constraints, n_samples = self._fitted_to
        of_all: dict[str, Any] = {
            "loss": self._loss(),
            "solver": results[0].solver,
            "n_samples": n_samples,
            "classes": None if classes is None else tuple(classes.tolist()),
            "feature_names": None if names is None else tuple(map(str, names)),
            "version": __version__,
        }
        coef, is_single = self._coefficients(), classes is None and np.ndim(self.intercept_) == 0
        if is_single or (classes is not None and coef.shape[0] == 1):
            w, intercept = coef[0], float(np.atleast_1d(self.intercept_)[0])
            own: dict[str, Any] = {name: getattr(results[0], name) for name in _OF_A_RUN}
            own |= {"constraint": constraints[0], "radius": radii[0], "has_offset": self.has_offset_}
            return Model(w=w, intercept=intercept, **of_all, **own)
        own = {name: tuple(getattr(result, name) for result in results) for name in _OF_A_RUN}
        own |= {"constraint": tuple(constraints), "radius": tuple(radii)}
        return MultiModel(coef=coef, intercept=np.asarray(self.intercept_), kind=self._kind, **of_all, **own)

    @property
    def multipliers_(self) -> Multipliers | list[Multipliers]:
        """The Lagrange multipliers of rows and limits: one object, or a list of one per class or output."""
        check_is_fitted(self)
        results = self.result_ if isinstance(self.result_, list) else [self.result_]
        found = [result.multipliers for result in results if result.multipliers is not None]
        if not found:
            raise AttributeError(f"multipliers_ needs a set with linear rows; {self._fitted_to[0][0]} has none.")
        return found if isinstance(self.result_, list) else found[0]

    @property
    def alpha_(self) -> Any:
        """The multiplier of the radius: a float, or an array with one entry per class or output fitted separately.

        It is the rate at which the objective would fall if the radius grew; for a norm ball the penalty alpha of the
        norm whose solution this is, in the scale of the mean loss.
        """
        check_is_fitted(self)
        if not hasattr(self, "radius_"):
            raise AttributeError(f"alpha_ needs a set with a radius of its own; {self.constraint!r} was given whole.")
        results = self.result_ if isinstance(self.result_, list) else [self.result_]
        radii = np.broadcast_to(self.radius_, len(results))
        alphas = np.array([_multiplier_of(result, radius) for result, radius in zip(results, radii, strict=True)])
        return alphas if isinstance(self.result_, list) else float(alphas[0])

    @property
    def _kind(self) -> str:
        """The meaning of the rows of ``coef_`` where there are several."""
        return OUTPUTS

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write ``model_`` to a file, without pickle; :func:`condgrad.load_model` reads it back."""
        save_model(path, self)

    def _set_fitted(self, results: list[Result], radii: list[float | None]) -> None:
        """Set the fitted attributes."""
        is_single = len(results) == 1
        self.coef_ = np.array([result.w for result in results]).reshape(-1, self.n_features_in_)
        self.intercept_ = np.concatenate([np.atleast_1d(result.intercept) for result in results])
        self.n_iter_ = max(1, *(math.ceil(result.n_epochs) for result in results))
        self.result_ = results[0] if is_single else results
        self.trace_ = results[0].trace if is_single else [result.trace for result in results]
        self.gap_ = results[0].gap if is_single else np.array([result.gap for result in results])
        self.rounding_ = results[0].rounding if is_single else np.array([result.rounding for result in results])
        if radii[0] is not None:
            self.radius_ = radii[0] if is_single else np.array(radii)

    def _coefficients(self) -> np.ndarray:
        """Return ``coef_`` as an array with two dimensions."""
        return self.coef_.toarray() if scipy.sparse.issparse(self.coef_) else np.atleast_2d(self.coef_)

    def _scores(self, X: Data | OutsideRows, offset: ArrayLike | None = None) -> np.ndarray:
        """Return X coef' + intercept + offset, of shape (n_samples, n_problems)."""
        scores = self._scores_without_offset(X)
        if offset is None and self.has_offset_ and isinstance(X, OutsideRows):
            offset = X.offset
        if offset is None:
            if self.has_offset_:
                raise ValueError(
                    "this model was fitted with offsets, so predictions need them too; pass offset=, "
                    "or exposure= to losses with a log link (zeros, or ones: without)."
                )
            return scores
        if scores.shape[1] > 1:
            raise ValueError("an offset is one number per sample, so it needs one output or two classes; got more.")
        return scores + convert.as_vector(on_host(offset), "offset", scores.shape[0])[:, None]

    def _scores_without_offset(self, X: Data | OutsideRows) -> np.ndarray:
        check_is_fitted(self)
        if is_dask(X):
            X = of_dask(X, None, None, None, None)
        X = DeviceData.of(X) if is_on_device(X) else on_host(X)
        if isinstance(X, OutsideRows):
            self._check_width(X)
            X.check_names(getattr(self, "feature_names_in_", None))
            return X.dot_each(self._coefficients()).T + self.intercept_
        X = self._encoded(X)
        if isinstance(X, CodedData):
            self._check_width(X)
            return X @ self._coefficients().T + self.intercept_
        if self.indicators_ is None:
            X = validate_data(self, X, accept_sparse="csr", reset=False)
        coef = self.coef_ if scipy.sparse.issparse(self.coef_) else np.atleast_2d(self.coef_)
        return safe_sparse_dot(X, coef.T, dense_output=True) + self.intercept_


def _multiplier_of(result: Result, radius: float) -> float:
    """Return the rate at which the objective of a run falls as the radius of its set grows."""
    has_limits = isinstance(result.constraint, LimitedL1Ball | LinearlyConstrained)
    over = multiplier_over(result.constraint, result.constraint, result.gradient, radius)
    own: Any = result.constraint
    return over if has_limits else over / (radius or own.radius)  # zero is the solution over a tiny ball
