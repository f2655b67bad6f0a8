"""relaxed: a model fitted again on the features that it has chosen, without the constraint."""

from __future__ import annotations

import copy
import warnings
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from condgrad.constraints._allowance import as_allowance
from condgrad.estimators._linear_model import ConstrainedLinearModel
from condgrad.estimators._observations import Observations
from condgrad.estimators.classifier import ConstrainedClassifier
from condgrad.estimators.radius import RadiusWarning
from condgrad.estimators.regressor import ConstrainedRegressor
from condgrad.linalg import convert
from condgrad.linalg.convert import Data
from condgrad.run.result import Result
from condgrad.storage.outside_rows import OutsideRows

M = TypeVar("M", bound=ConstrainedLinearModel)


def relaxed(
    model: M,
    X: Data,
    y: ArrayLike,
    *,
    blend: float = 0.0,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
) -> M:
    """Return a copy of a fitted model whose nonzero coefficients were fitted again, without the constraint.

    The l1 ball selects features and shrinks their coefficients; the relaxed fit takes back the shrinkage. Its minimum
    on the chosen features is certified by ``gap_`` like any other.

    Parameters
    ----------
    model : a fitted linear estimator
        With one problem per class or output, and without ``lower``, ``upper`` and ``rows``. Coefficients that must not
        be negative (``positive``, ``constraint="nonnegative-l1"``) stay so.
    X, y, sample_weight, offset : the data of the fit
    blend : float
        The coefficients are ``blend`` times those of the model plus 1 - ``blend`` times those of the new fit, as with
        glmnet's gamma; ``gap_`` then bounds how far the blend is from the minimum of the new fit.

    References
    ----------
    Meinshausen (2007). Hastie, Tibshirani & Tibshirani (2020).

    Examples
    --------
    >>> import condgrad as cg
    >>> X, y = [[1.0, 0.0], [0.0, 1.0]], [3.0, 1.0]
    >>> model = cg.ConstrainedLasso(radius=1.0, fit_intercept=False).fit(X, y)
    >>> model.coef_, cg.relaxed(model, X, y).coef_.round(9)
    (array([1., 0.]), array([3., 0.]))
    """
    blend = convert.as_number(blend, "blend", low=0.0, what="a number between 0 and 1")
    if blend > 1.0:
        raise ValueError(f"blend must be a number between 0 and 1; got {blend:g}.")
    if not isinstance(model, ConstrainedClassifier | ConstrainedRegressor) or isinstance(X, OutsideRows):
        raise TypeError("relaxed takes a fitted linear estimator of condgrad and data in memory.")
    if model.lower is not None or model.upper is not None or model.rows is not None:
        raise ValueError("relaxed fits the chosen features freely; it takes no model with lower, upper or rows.")
    check_is_fitted(model)
    coef = model._coefficients()
    if model._is_joint:
        raise ValueError("relaxed needs one problem per class or output; this model is one joint problem.")
    data = model._validated(X, y, sample_weight, offset, **_settings_of(model), reset=False)
    if isinstance(model, ConstrainedClassifier):
        index = np.searchsorted(model.classes_, data.y)
        data, targets = model._with_class_weight(index, data), model._targets(index)
    else:
        targets = model._targets(data.y)
    before = model.result_ if isinstance(model.result_, list) else [model.result_]
    intercepts = np.atleast_1d(model.intercept_)
    results = [
        _blended(model, data, target, w, float(b), old, blend)
        for target, w, b, old in zip(targets, coef, intercepts, before, strict=True)
    ]
    other = copy.copy(model)
    other._fitted_to = ["all coefficients of the chosen features"] * len(results), data.X.shape[0]
    other._set_fitted(results, [None] * len(results))
    other._conclude(data, targets, results)
    if hasattr(other, "radius_"):
        del other.radius_  # the new fit has none
    if np.ndim(model.intercept_) == 0:
        other.coef_, other.intercept_ = other.coef_[0], float(other.intercept_[0])
    return other


def _settings_of(model: Any) -> dict[str, Any]:
    """Return what the checks of X and y need to know."""
    return {} if isinstance(model, ConstrainedClassifier) else {"multi_output": True, "y_numeric": True}


def _blended(
    model: Any, data: Observations, target: np.ndarray, w: np.ndarray, b: float, old: Result, blend: float
) -> Result:
    """Return the new fit of one problem, blended with the old one."""
    support = np.flatnonzero(w)
    found = _refit(model, data, target, support)
    full = np.zeros(w.size)
    full[support] = found.w[: support.size]
    full, intercept = blend * w + (1.0 - blend) * full, blend * b + (1.0 - blend) * float(found.intercept)
    p = data.X @ full + intercept + (0.0 if data.offset is None else data.offset)
    return found._replace(
        w=full,
        intercept=intercept,
        objective=float(np.average(model._loss().value(p, target), weights=data.weight)),
        # F is convex, so its excess at the blend is at most the blend of the excesses.
        gap=blend * max(old.objective - found.lower_bound, 0.0) + (1.0 - blend) * found.gap,
    )


def _refit(model: Any, data: Observations, target: np.ndarray, support: np.ndarray) -> Result:
    """Return the fit of one problem on some features, which are free, or on a column of zeros where there are none."""
    positive = True if model.constraint == "nonnegative-l1" else model.positive
    lower = as_allowance(None, positive, None, None, *model._columns).lower  # 0 where it is positive, else -inf
    lower = None if lower is None or support.size == 0 else lower[support]
    alone = ConstrainedRegressor(
        model._loss(), feature_weight=0.0, lower=lower, radius=1.0, fit_intercept=model.fit_intercept,
        tol=model.tol, max_iter=model.max_iter,
    )  # fmt: skip
    X = data.X[:, support] if support.size else np.zeros((target.size, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RadiusWarning)  # nothing binds, and that is the purpose
        alone.fit(X, target, data.weight, data.offset)
    assert isinstance(alone.result_, Result)
    return alone.result_
