"""to_sklearn: a plain model of scikit-learn with the coefficients of one of condgrad's."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import LabelBinarizer
from sklearn.svm import LinearSVC
from sklearn.utils.validation import check_is_fitted

from condgrad.estimators._linear_model import ConstrainedLinearModel
from condgrad.estimators.classifier import ConstrainedClassifier
from condgrad.models.multi import MULTINOMIAL


def to_sklearn(model: ConstrainedLinearModel) -> Any:
    """Return a fitted model of scikit-learn that predicts the same, for tools that know only these (ONNX, skops, PMML).

    Parameters
    ----------
    model : a fitted linear estimator of condgrad

    Returns
    -------
    estimator
        A LinearRegression, PoissonRegressor (loss "poisson"), LogisticRegression (losses of logits), LinearSVC (other
        losses of classes), or a OneVsRestClassifier of LogisticRegression for several classes, one against the rest.

    Examples
    --------
    >>> import condgrad as cg
    >>> X, y = [[0.0, 1.0], [1.0, 0.0], [2.0, 1.0]], [0.0, 1.0, 2.5]
    >>> plain = cg.to_sklearn(cg.ConstrainedLasso(radius=1.0).fit(X, y))
    >>> type(plain).__name__, plain.coef_.round(6)
    ('LinearRegression', array([1., 0.]))
    """
    if not isinstance(model, ConstrainedLinearModel):
        raise TypeError(f"model must be a fitted linear estimator of condgrad; got {type(model).__name__}.")
    check_is_fitted(model)
    if model.has_offset_:
        raise ValueError("the model was fitted with offsets, which models of scikit-learn do not take.")
    if model.indicators_ is not None:
        raise ValueError(
            "the model was fitted to columns of words; for a plain model encode them with OneHotEncoder first."
        )
    if isinstance(model, ConstrainedClassifier):
        return _classifier(model)
    link = model._link()
    if link not in ("identity", "log"):
        raise ValueError(f"scikit-learn has no linear model with the mean of loss={model.loss!r}.")
    plain = PoissonRegressor() if link == "log" else LinearRegression()
    if link == "log":
        if np.ndim(model.intercept_) > 0:
            raise ValueError("scikit-learn's PoissonRegressor has one output; the model has several.")
        plain._base_loss = plain._get_loss()  # which its predictions read
    coef = model.densify().coef_ if hasattr(model.coef_, "toarray") else model.coef_
    return _with(plain, model, coef, model.intercept_)


def _classifier(model: ConstrainedClassifier) -> Any:
    coef, intercept, classes = model._coefficients(), np.asarray(model.intercept_), model.classes_
    if model._link() != "logit":
        return _with(LinearSVC(), model, coef, intercept, classes_=classes)
    if classes.size == 2 or model._kind == MULTINOMIAL:
        return _with(LogisticRegression(), model, coef, intercept, classes_=classes)
    each = [
        _with(LogisticRegression(), model, coef[[k]], intercept[[k]], classes_=np.array([0, 1]))
        for k in range(classes.size)
    ]
    whole = OneVsRestClassifier(LogisticRegression())
    whole.estimators_, whole.label_binarizer_ = each, LabelBinarizer(sparse_output=True).fit(classes)
    whole.classes_ = whole.label_binarizer_.classes_
    whole.n_features_in_ = model.n_features_in_
    if hasattr(model, "feature_names_in_"):
        whole.feature_names_in_ = model.feature_names_in_
    return whole


def _with(plain: Any, model: Any, coef: np.ndarray, intercept: Any, **more: Any) -> Any:
    """Return the model of scikit-learn with fitted attributes."""
    plain.coef_, plain.intercept_ = np.array(coef), np.array(intercept) if np.ndim(intercept) else float(intercept)
    plain.n_features_in_, plain.n_iter_ = model.n_features_in_, np.array([model.n_iter_])
    if hasattr(model, "feature_names_in_"):
        plain.feature_names_in_ = model.feature_names_in_
    for name, value in more.items():
        setattr(plain, name, value)
    return plain
