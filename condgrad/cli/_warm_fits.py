"""Common fits on tiny data: `condgrad warmup` and the build step of a wheel run them to compile their kernels."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

_STOCHASTIC = ("sfw", "saga")
_DETERMINISTIC = ("auto", "fw", "away", "pairwise", "bpcg", "corrective")


def common_fits() -> dict[str, Callable[[], None]]:
    """Return the fits by name; each compiles the kernels that it needs.

    >>> list(common_fits())[:2]
    ['logistic-regression', 'logistic-regression-cv']
    """
    return {
        "logistic-regression": _logistic_regression,
        "logistic-regression-cv": _logistic_regression_cv,
        "lasso": _lasso,
        "lasso-cv": _lasso_cv,
        "lasso-path": _lasso_path,
        "elastic-net": _elastic_net,
        "regressor": _regressor,
        "classifier": _classifier,
        "cross-validation": _cross_validation,
        "groups": _groups,
        "words": _words,
        "tasks": _tasks,
        "quantiles": _quantiles,
        "times": _times,
        "selection": _selection,
        "deterministic-solvers": functools.partial(_solvers, _DETERMINISTIC),
        "many-sparse-features": _many_sparse_features,
        "many-dense-features": _many_dense_features,
        "many-samples": _many_samples,
        "ones": _ones,
        "fallback": _fallback,
        "stochastic-solvers": functools.partial(_solvers, _STOCHASTIC),
        "matrix-completion": _matrix_completion,
        "matrix-completion-cv": _matrix_completion_cv,
        "libsvm-text": _libsvm_text,
    }


def _tables(n: int = 40, d: int = 6) -> list[Any]:
    """Return data by rows and by columns, dense and sparse: kernels are compiled for each."""
    X = np.random.default_rng(0).standard_normal((n, d))
    thin = np.where(abs(X) > 0.5, X, 0.0)
    return [X, np.asfortranarray(X), scipy.sparse.csr_array(thin), scipy.sparse.csc_array(thin)]


def _frames() -> list[Any]:
    """Return the same tables, and two read-only ones as from data frames, by columns and by rows."""
    tables = _tables()
    frames = [tables[0].copy(order=order) for order in "FC"]
    for frame in frames:
        frame.flags.writeable = False
    return [*tables, *frames]


def _targets(X: Any) -> np.ndarray:
    return np.asarray(X @ np.linspace(1.0, -1.0, X.shape[1])) + 0.1 * np.random.default_rng(1).standard_normal(
        X.shape[0]
    )


def _classes(X: Any, k: int = 2) -> np.ndarray:
    y = _targets(X)
    return np.searchsorted(np.quantile(y, np.arange(1, k) / k), y)


def _fit(estimator: Any, X: Any, y: np.ndarray) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tiny data may not converge, or end at the largest radius
        return estimator.fit(X, y)


def _many_sparse_features() -> None:
    """Fit texts, more or less: sparse data with many features are solved through their columns."""
    from condgrad.estimators import ConstrainedLasso, ConstrainedLogisticRegression

    X = scipy.sparse.random_array((300, 1200), density=0.01, rng=np.random.default_rng(0))
    for table in (X.tocsr(), X.tocsc()):
        _fit(ConstrainedLogisticRegression(radius=30.0), table, _classes(table))
        _fit(ConstrainedLasso(radius=30.0), table, _targets(table))


def _many_dense_features() -> None:
    """Fit hundreds of dense features at once: these are solved through their columns, too."""
    from condgrad.estimators import ConstrainedLogisticRegression

    for X in _tables(250, 220)[:2]:
        _fit(ConstrainedLogisticRegression(radius=300.0), X, _classes(X))


def _many_samples() -> None:
    """Fit more samples than are few: first some of them are used, and their curvature comes from models."""
    from condgrad.estimators import ConstrainedLogisticRegression

    for X in _tables(20_000, 30):
        _fit(ConstrainedLogisticRegression(radius=3.0), X, _classes(X))


def _ones() -> None:
    """Fit sparse rows that store nothing but ones, which passes do not read."""
    from condgrad.estimators import ConstrainedLasso, ConstrainedLogisticRegression

    for lengths in (np.full(400, 5), np.arange(400) % 20):  # short rows of different lengths are read in another order
        parts = [np.random.default_rng(k).choice(30, size, replace=False) for k, size in enumerate(lengths)]
        stored = np.ones(lengths.sum()), np.concatenate(parts), np.append(0, np.cumsum(lengths))
        X = scipy.sparse.csr_array(stored, shape=(400, 30))
        _fit(ConstrainedLogisticRegression(radius=3.0), X, _classes(X))
        _fit(ConstrainedLasso(radius=1.0), X, _targets(X))


def _fallback() -> None:
    """Minimise a model over a hull: whether fits of small data fall back on that depends on their rounding."""
    from condgrad.solvers.full_pass.hull_steps import minimise_in_ball, pairwise_steps

    x, g = np.zeros(2), np.array([1.0, -1.0])
    for H in (np.eye(2), np.array([[1.0, 0.5], [0.5, 1.0]], order="F")):  # curvatures are computed in either order
        minimise_in_ball(x, g, H, 0.0, np.inf)
        pairwise_steps(g.copy(), H, x.copy(), True, True, 0.0, 1)


def _logistic_regression() -> None:
    from condgrad.estimators import ConstrainedLogisticRegression

    for X in _frames():
        _fit(ConstrainedLogisticRegression(radius=3.0), X, _classes(X)).predict_proba(X)
        _fit(ConstrainedLogisticRegression(), X, _classes(X, 3))


def _logistic_regression_cv() -> None:
    from condgrad.estimators import ConstrainedLogisticRegressionCV

    for X in _tables():
        _fit(ConstrainedLogisticRegressionCV(n_radii=3, cv=2), X, _classes(X))
        _fit(ConstrainedLogisticRegressionCV(n_radii=3, cv=2, multi_class="multinomial"), X, _classes(X, 3))


def _lasso() -> None:
    from condgrad.estimators import ConstrainedLasso

    for X in _frames():
        _fit(ConstrainedLasso(), X, _targets(X))
        _fit(ConstrainedLasso(radius=1.0), X, _targets(X))


def _lasso_cv() -> None:
    from condgrad.estimators import ConstrainedLassoCV

    for X in (*_tables(), *_tables(20, 60)):
        _fit(ConstrainedLassoCV(cv=2), X, _targets(X))


def _lasso_path() -> None:
    from condgrad.paths import lasso_path

    for X in _tables():  # on their moments, and by the engine of wide data, which certifies lines
        lasso_path(X, _targets(X))
        lasso_path(X, _targets(X), n_radii=None, eps=0.1, tol=1e-3)
    for X in _tables(20, 60):
        lasso_path(X, _targets(X))
        lasso_path(X, _targets(X), l2=0.1)
        for fit_intercept in (False, True):  # by the engine of large data, which these are not
            lasso_path(X, _targets(X), standardize=True, fit_intercept=fit_intercept)


def _elastic_net() -> None:
    from condgrad.estimators import ConstrainedElasticNet

    for X in _frames():
        _fit(ConstrainedElasticNet(radius=1.0, l2=0.1), X, _targets(X))
        _fit(ConstrainedElasticNet(), X, _targets(X))


def _regressor() -> None:
    from condgrad.estimators import ConstrainedRegressor

    for X in _frames():
        _fit(ConstrainedRegressor(), X, _targets(X))
        _fit(ConstrainedRegressor(loss="huber", constraint="simplex"), X, _targets(X))
        _fit(ConstrainedRegressor(loss="huber"), X, _targets(X))


def _classifier() -> None:
    from condgrad.estimators import ConstrainedClassifier

    for X in _frames():
        _fit(ConstrainedClassifier(), X, _classes(X))
        for has_intercept in (False, True):
            model = ConstrainedClassifier(
                "squared-hinge", radius=1.0, solver="sfw", fit_intercept=has_intercept, random_state=0
            )
            for _ in range(2):
                model.partial_fit(X, _classes(X), classes=[0, 1])


def _dense() -> list[Any]:
    """Return the tables that are not sparse: the forms in which structured data come most often."""
    return [X for X in _frames() if not scipy.sparse.issparse(X)]


def _cross_validation() -> None:
    from condgrad import constraints
    from condgrad.estimators import ConstrainedClassifierCV, ConstrainedElasticNetCV, ConstrainedRegressorCV

    groups = constraints.by_name("group")([0, 0, 1, 1, 2, 2], radius=1.0)
    for X in _dense():
        _fit(ConstrainedRegressorCV("poisson", constraint=groups, n_radii=3, cv=2), X, _classes(X, 4))
        _fit(ConstrainedElasticNetCV(l2=[0.1, 1.0], n_radii=3, cv=2), X, _targets(X))
        _fit(ConstrainedRegressorCV("poisson", n_radii=3, cv=2), X, _classes(X, 4))
        _fit(ConstrainedClassifierCV("squared-hinge", n_radii=3, cv=2), X, _classes(X))


def _groups() -> None:
    from sklearn.datasets import load_breast_cancer

    from condgrad.estimators import (
        ConstrainedGroupLasso,
        ConstrainedGroupLassoCV,
        ConstrainedGroupLogisticRegression,
        ConstrainedGroupLogisticRegressionCV,
    )

    groups = [0, 0, 1, 1, 2, 2]
    for X in _tables()[2:]:  # sparse
        _fit(ConstrainedGroupLasso(1.0, feature_groups=groups), X, _targets(X))
        _fit(ConstrainedGroupLassoCV(feature_groups=groups, n_radii=3, cv=2), X, _targets(X))
    for X in _dense():
        for is_positive in (False, True):
            _fit(ConstrainedGroupLasso(1.0, feature_groups=groups, positive=is_positive), X, _targets(X))
            model = ConstrainedGroupLassoCV(feature_groups=groups, positive=is_positive, n_radii=3, cv=2)
            _fit(model, X, _targets(X))
        _fit(ConstrainedGroupLogisticRegression(1.0, feature_groups=groups), X, _classes(X))
        _fit(ConstrainedGroupLogisticRegressionCV(feature_groups=groups, n_radii=3, cv=2), X, _classes(X))
    # Large radii on nearly separable classes end on a hull of vertices.
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    for given in (X, np.asfortranarray(X)):
        _fit(ConstrainedGroupLogisticRegressionCV(feature_groups=[*range(10)] * 3, n_radii=6, cv=3), given, y)


def _words() -> None:
    from condgrad.estimators import (
        ConstrainedGroupLasso,
        ConstrainedGroupLassoCV,
        ConstrainedGroupLogisticRegression,
        ConstrainedGroupLogisticRegressionCV,
        ConstrainedLasso,
        ConstrainedLassoCV,
        ConstrainedLogisticRegression,
        ConstrainedLogisticRegressionCV,
    )
    from condgrad.linalg.coded_data import CodedData

    rng = np.random.default_rng(0)
    X = CodedData.from_codes(rng.integers(0, 4, (40, 2)), rng.standard_normal((40, 2)))
    y, labels = rng.standard_normal(40), rng.integers(0, 2, 40)
    groups = np.repeat(np.arange(4), [1, 1, 4, 4])
    grid: dict[str, Any] = {"n_radii": 3, "cv": 2}
    for model in (ConstrainedLasso(1.0), ConstrainedLasso(), ConstrainedLassoCV(**grid)):
        _fit(model, X, y)
    for model in (
        ConstrainedGroupLasso(1.0, feature_groups=groups),
        ConstrainedGroupLassoCV(feature_groups=groups, **grid),
    ):
        _fit(model, X, y)
    for classifier in (
        ConstrainedLogisticRegression(1.0),
        ConstrainedLogisticRegression(),
        ConstrainedLogisticRegressionCV(**grid),
        ConstrainedGroupLogisticRegression(1.0, feature_groups=groups),
        ConstrainedGroupLogisticRegressionCV(feature_groups=groups, **grid),
    ):
        _fit(classifier, X, labels)


def _tasks() -> None:
    from condgrad.estimators import ConstrainedMultiTaskLasso, ConstrainedMultiTaskLassoCV

    for X in _dense():
        Y = np.column_stack([_targets(X), -_targets(X)])
        _fit(ConstrainedMultiTaskLasso(1.0), X, Y)
        _fit(ConstrainedMultiTaskLassoCV(n_radii=3, cv=2), X, Y)


def _times() -> None:
    from condgrad.estimators import ConstrainedCoxRegression, ConstrainedCoxRegressionCV

    for X in _frames():
        y = np.column_stack([np.exp(-_targets(X)), np.arange(X.shape[0]) % 3 > 0])
        _fit(ConstrainedCoxRegression(1.0), X, y).score(X, y)
        _fit(ConstrainedCoxRegressionCV(n_radii=3, cv=2), X, y)


def _quantiles() -> None:
    from condgrad.estimators import ConstrainedQuantileRegressor

    for X in _dense():
        for quantile in (0.1, 0.9):
            _fit(ConstrainedQuantileRegressor(quantile, radius=1.0), X, _targets(X))


def _selection() -> None:
    from condgrad.estimators import SquareRootLasso, StabilitySelection

    for X in _frames():
        _fit(SquareRootLasso(), X, _targets(X))
    for X in _tables():
        _fit(StabilitySelection(n_subsamples=2, random_state=0), X, _targets(X))


def _solvers(names: tuple[str, ...]) -> None:
    """Run solvers with logistic and squared losses over the l1 ball, as in the examples and in `condgrad fit`."""
    from condgrad import constraints, losses
    from condgrad.problems.linear import Problem
    from condgrad.run.minimize import minimize

    for X in _tables():
        for loss, y in (("logistic", 2.0 * _classes(X) - 1.0), ("squared", _targets(X))):
            for intercept in (False, True):
                ball = constraints.by_name("l1")(2.0)
                problem = Problem(X, y, losses.by_name(loss), ball, intercept=intercept)
                if intercept and names is _STOCHASTIC:
                    continue  # stochastic solvers have no intercept
                for name in names:
                    minimize(problem, name, max_epochs=5, random_state=0)


def _matrix_completion() -> None:
    from condgrad.estimators import MatrixCompletion

    for loss in ("squared", "huber"):
        _complete(MatrixCompletion(radius=10.0, loss=loss))


def _matrix_completion_cv() -> None:
    from condgrad.estimators import MatrixCompletionCV

    _complete(MatrixCompletionCV(radii=[2.0, 10.0], cv=2, random_state=0))


def _libsvm_text() -> None:
    from condgrad.storage.sources.libsvm_scan import scan_lines

    scan_lines(b"1 1:0.5\n", "text", 1, 1)


def _complete(estimator: Any) -> None:
    from condgrad.datasets import simulate_low_rank

    data = simulate_low_rank(20, 15, 2, 150, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(data.rows, data.cols, data.values).predict(data.rows, data.cols)
