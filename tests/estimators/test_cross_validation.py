"""Cross-validation of any loss, set and score: against single fits, and where grids end."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone, is_classifier
from sklearn.linear_model import ElasticNet, ElasticNetCV
from sklearn.metrics import get_scorer
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

import condgrad as cg
from condgrad import datasets
from condgrad.paths import grids

R = datasets.simulate_regression(60, 12, n_informative=4, noise=0.3, random_state=0)
C = datasets.simulate_classification(80, 10, n_informative=4, random_state=0)
THREE = np.argmax(C.X[:, :3] + 0.5 * np.random.default_rng(1).standard_normal((80, 3)), axis=1)
WEIGHT = np.random.default_rng(0).uniform(0.5, 2.0, 80)
COUNTS = np.random.default_rng(3).poisson(np.exp(0.4 * R.X[:, 0]))
OFFSET = np.random.default_rng(4).uniform(-0.5, 0.5, 80)
RADII = [0.3, 1.0, 3.0]
PAIRS = np.arange(12) // 2


@pytest.mark.parametrize(
    ("make", "one", "X", "y"),
    [
        (cg.ConstrainedRegressorCV, cg.ConstrainedRegressor, R.X, R.y),
        (cg.ConstrainedElasticNetCV, cg.ConstrainedElasticNet, scipy.sparse.csr_array(R.X), R.y),
        (cg.ConstrainedClassifierCV, cg.ConstrainedClassifier, C.X, THREE),
    ],
)
@pytest.mark.parametrize("has_metrics", [False, True])
def test_scores_are_those_of_single_fits(make, one, X, y, has_metrics):
    is_of_classes = is_classifier(make())
    metrics = ["accuracy", "neg_log_loss"] if is_of_classes else ["r2", "neg_mean_absolute_error"]
    metrics = metrics if has_metrics else None
    weight, cv = WEIGHT[: len(y)], StratifiedKFold(3) if is_of_classes else KFold(3)
    settings = {} if metrics is None else {"scoring": metrics, "refit": metrics[1]}
    model = make(radii=RADII, cv=cv, tol=1e-9, **settings).fit(X, y, sample_weight=weight)
    for f, (train, test) in enumerate(cv.split(np.zeros((len(y), 1)), y)):
        for k, radius in enumerate(RADII):
            fitted = one(radius=radius, tol=1e-9)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", cg.RadiusWarning)
                fitted.fit(X[train], y[train], sample_weight=weight[train])
            for name in metrics or []:
                own = get_scorer(name)(fitted, X[test], y[test], sample_weight=weight[test])
                assert model.score_paths_[name][k, f] == pytest.approx(own, rel=1e-3, abs=1e-9)
            if metrics is None and is_of_classes:
                logs = fitted.predict_log_proba(X[test])[np.arange(test.size), y[test]]
                assert model.score_path_[k, f] == pytest.approx(np.average(logs, weights=weight[test]), rel=1e-3)
            elif metrics is None:
                errors = np.average((y[test] - fitted.predict(X[test])) ** 2, weights=weight[test])
                share = 0.5 if make is cg.ConstrainedRegressorCV else 1.0
                assert model.score_path_[k, f] == pytest.approx(-share * errors, rel=1e-3)
    if metrics is not None:
        np.testing.assert_array_equal(model.score_path_, model.score_paths_[metrics[1]])
    assert model.radius_ == RADII[int(model.score_path_.mean(axis=1).argmax())]


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (cg.ConstrainedRegressorCV("poisson", constraint="l2", n_radii=5, cv=3), COUNTS),
        (cg.ConstrainedRegressorCV("huber", constraint=cg.constraints.GroupBall(PAIRS, 1.0), n_radii=5, cv=3), R.y),
        (cg.ConstrainedRegressorCV(constraint=lambda r: cg.constraints.L1Ball(2.0 * r), radii=[0.2, 0.5], cv=3), R.y),
        (cg.ConstrainedRegressorCV(constraint="simplex", radii=[0.5, 1.0, 2.0], cv=3, fit_intercept=False), R.y),
        (cg.ConstrainedRegressorCV(constraint=cg.constraints.L1Ball, n_radii=5, cv=3), R.y),
    ],
)
def test_any_loss_and_set_with_a_radius(model, y):
    model.fit(R.X, y)
    assert model.result_.status is cg.Status.CONVERGED and model.radius_ in model.radii_
    assert model.result_.constraint.contains(model.coef_, 1e-9)
    step = 1e-4 * model.radius_  # alpha_ is the slope of the optimal value
    near = [
        cg.ConstrainedRegressor(
            model.loss, constraint=model._budget(None).make(radius), tol=1e-11, fit_intercept=model.fit_intercept
        )
        .fit(R.X, y)
        .result_.objective
        for radius in (model.radius_ - step, model.radius_ + step)
    ]
    assert model.alpha_ == pytest.approx((near[0] - near[1]) / (2 * step), rel=2e-2, abs=1e-5)


@pytest.mark.parametrize("make", [cg.ConstrainedLassoCV, cg.ConstrainedRegressorCV])
@pytest.mark.parametrize(
    "terms",
    [
        {"feature_weight": {"x0": 0.0, "x3": 2.0}},
        {"positive": ["x1", "x2"]},
        {"upper": 0.3},
        {"rows": "x1 = x2"},
    ],
)
def test_weights_limits_and_rows_of_features(make, terms):
    frame = pd.DataFrame(R.X, columns=[f"x{k}" for k in range(12)])
    model = make(radii=[0.5, 1.5], cv=KFold(3), tol=1e-8, **terms).fit(frame, R.y)
    for k, radius in enumerate([0.5, 1.5]):
        one = cg.ConstrainedLasso(radius, tol=1e-8, **terms).fit(frame[20:], R.y[20:])
        error = np.mean((R.y[:20] - one.predict(frame[:20])) ** 2) * (1.0 if make is cg.ConstrainedLassoCV else 0.5)
        assert -model.score_path_[k, 0] == pytest.approx(error, rel=1e-3)
    whole = cg.ConstrainedLasso(model.radius_, tol=1e-8, **terms).fit(frame, R.y)
    np.testing.assert_allclose(model.coef_, whole.coef_, atol=1e-3)


def test_several_outputs_share_a_radius():
    Y = np.column_stack([R.y, R.X[:, 0]])
    for settings in ({}, {"multi_output": "joint", "constraint": "group"}):
        model = cg.ConstrainedRegressorCV(n_radii=4, cv=2, **settings).fit(R.X, Y)
        assert model.coef_.shape == (2, 12) and model.predict(R.X).shape == Y.shape and np.ndim(model.radius_) == 0
        fitted = cg.ConstrainedRegressorCV(n_radii=4, cv=2, scoring="r2", **settings).fit(R.X, Y)
        assert fitted.score(R.X, Y) > 0.5


def test_folds_keep_groups_together_and_offsets_reach_the_scores():
    groups = np.arange(80) % 7
    model = cg.ConstrainedClassifierCV(radii=RADII, cv=GroupKFold(3)).fit(C.X, C.y, groups=groups, offset=OFFSET)
    same = clone(model).set_params(cv=list(GroupKFold(3).split(C.X, C.y, groups))).fit(C.X, C.y, offset=OFFSET)
    np.testing.assert_array_equal(model.score_path_, same.score_path_)
    scored = clone(same).set_params(scoring="neg_log_loss").fit(C.X, C.y, offset=OFFSET)
    np.testing.assert_allclose(scored.score_path_, same.score_path_, rtol=1e-9)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        clone(model).fit(C.X, C.y, groups=groups[:-1])


def test_the_elastic_net_of_scikit_learn_and_its_l2():
    l2 = [0.01, 0.3]
    model = cg.ConstrainedElasticNetCV(l2=l2, cv=3, tol=1e-9).fit(R.X, R.y)
    theirs = ElasticNetCV(l1_ratio=[0.5, 0.9], cv=3).fit(R.X, R.y)
    assert model.l2_ == l2[int(model.l2_scores_.argmax())]
    assert model.mse_path_.mean(axis=1).min() < 1.01 * theirs.mse_path_.mean(axis=-1).min()
    own = ElasticNet(
        alpha=model.alpha_ + model.l2_, l1_ratio=model.alpha_ / (model.alpha_ + model.l2_), tol=1e-12, max_iter=100_000
    ).fit(R.X, R.y)
    np.testing.assert_allclose(model.coef_, own.coef_, atol=1e-4)
    assert model.coef_path_.shape == (12, model.radii_.size)


def test_a_default_grid_does_not_end_at_the_best_radius():
    X, y = C.X[:, :4], C.X[:, :4] @ [1.0, 2.0, 3.0, 4.0] + 0.1 * OFFSET  # the best model is next to unconstrained
    for make in (cg.ConstrainedLassoCV, cg.ConstrainedRegressorCV):
        model = make(eps=0.3, n_radii=20, cv=3).fit(X, y)
        assert model.radii_.size > 20 and model.score_path_.shape == (model.radii_.size, 3)
        assert np.all(np.diff(model.radii_) > 0) and model.radius_ == pytest.approx(10.0, rel=0.2)
        ratios = model.radii_[1:] / model.radii_[:-1]
        np.testing.assert_allclose(ratios, ratios[0])
        given = make(radii=model.radii_[:5], cv=3).fit(X, y)  # a grid of the user's own stays as it is
        np.testing.assert_array_equal(given.radii_, model.radii_[:5])


def test_a_grid_that_cannot_end_is_said(monkeypatch):
    model = cg.ConstrainedLassoCV(eps=0.3, n_radii=5, cv=3)
    monkeypatch.setattr("condgrad.estimators._cross_validation.is_still_rising", lambda means: True)
    with pytest.warns(cg.RadiusWarning, match="has the best score, although the grid was extended to 10000 times"):
        model.fit(R.X, R.y)
    assert model.radii_[-1] == pytest.approx(1e6 * model.radii_[0])
    assert model.coef_path_.shape[1] == model.radii_.size


def test_extensions_of_grids():
    assert grids.further_radii(np.array([2.0]), 1, 2.0).tolist() == [200.0]
    assert grids.further_radii(np.array([2.0, 20000.0]), 1, 2.0).size == 0
    assert not grids.is_still_rising(np.array([1.0]))
    assert not grids.is_still_rising(np.array([1.0, 3.0, 2.0])) and grids.is_still_rising(np.array([1.0, 2.0, 3.0]))
    assert not grids.is_still_rising(np.zeros(4))


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: cg.ConstrainedRegressorCV(scoring=["r2", "neg_median_absolute_error"]).fit(R.X, R.y),
            "refit must be the name of",
        ),
        (lambda: cg.ConstrainedRegressorCV(scoring={"a": "r2"}, refit="b").fit(R.X, R.y), r"one of \['a'\]; got 'b'"),
        (lambda: cg.ConstrainedRegressorCV(constraint="simplex").fit(R.X, R.y), "does not contain zero.*give radii="),
        (lambda: cg.ConstrainedRegressorCV(constraint=3.0).fit(R.X, R.y), "a set with a radius, or a function"),
        (lambda: cg.ConstrainedElasticNetCV(l2=[0.1, -1.0]).fit(R.X, R.y), "l2 must be finite and at least 0; got -1"),
        (lambda: cg.ConstrainedLasso(1.0, alpha=0.1).fit(R.X, R.y), "give radius or alpha, not both"),
        (lambda: cg.ConstrainedLasso(alpha=-0.1).fit(R.X, R.y), "alpha must be a positive, finite number"),
        (
            lambda: cg.ConstrainedLogisticRegression(C=1.0, constraint="l2").fit(C.X, C.y),
            "C is a penalty of the l1 norm.*got 'l2'",
        ),
        (
            lambda: cg.ConstrainedLogisticRegression(C=1.0, multi_class="multinomial").fit(C.X, THREE),
            "alpha and C need data in memory and one problem per class",
        ),
    ],
)
def test_refusals(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
