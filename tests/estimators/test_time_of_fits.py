"""max_time and max_iter of estimators with a penalty, and max_time of those with cross-validation."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import condgrad as cg
from condgrad.estimators import lasso_cv
from condgrad.linalg.interrupts import time_left

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 12))
Y = X[:, 0] - 2.0 * X[:, 1] + 0.3 * RNG.standard_normal(60)
CLASSES = np.where(Y > 0.0, "yes", "no")
TIMES = np.column_stack([np.exp(-Y) * RNG.exponential(size=60), np.ones(60)])

PENALISED = [
    (cg.ConstrainedLasso, {"alpha": 1e-3}, Y),
    (cg.ConstrainedElasticNet, {"alpha": 1e-3, "l2": 0.1}, Y),
    (cg.ConstrainedLogisticRegression, {"C": 10.0}, CLASSES),
    (cg.ConstrainedCoxRegression, {"alpha": 1e-3}, TIMES),
    (cg.SquareRootLasso, {}, Y),
]


@pytest.mark.parametrize(("estimator", "settings", "y"), PENALISED, ids=lambda each: getattr(each, "__name__", None))
def test_a_penalised_fit_ends_with_its_time_and_says_so(estimator, settings, y):
    with pytest.warns(ConvergenceWarning, match="gap of the penalised problem .* raise max_time"):
        model = estimator(**settings, max_time=0.0).fit(X, y)
    assert model.result_.status is cg.Status.MAX_TIME
    assert np.isfinite(model.coef_).all() and model.coef_.dtype == np.float64
    assert np.abs(model.coef_).sum() <= model.radius_ * (1.0 + 1e-12)


def test_a_penalised_fit_ends_with_its_iterations_and_says_so():
    wide = RNG.standard_normal((600, 700))
    y = wide[:, :20].sum(axis=1) + RNG.standard_normal(600)
    with pytest.warns(ConvergenceWarning, match=r"gap of the penalised problem .* raise max_iter \(now 1\)"):
        model = cg.ConstrainedLasso(alpha=1e-3, max_iter=1).fit(wide, y)
    assert model.result_.status is cg.Status.MAX_EPOCHS
    assert cg.ConstrainedLasso(alpha=1e-3).fit(wide, y).result_.status is cg.Status.CONVERGED


def test_zero_is_the_solution_of_a_large_penalty():
    model = cg.ConstrainedLasso(alpha=100.0).fit(X, Y)
    assert model.coef_.dtype == np.float64 and not model.coef_.any()
    assert model.radius_ == 0.0 and 0.0 < model.alpha_ <= 100.0
    model.coef_ *= 0.5
    problem = cg.Problem(X, Y, cg.losses.Squared(), cg.constraints.L1Ball(1e-12))
    assert cg.minimize(problem, tol=1.0).w.dtype == np.float64


VALIDATED = [
    (cg.ConstrainedRegressorCV, {"loss": "huber"}, Y),
    (cg.ConstrainedRegressorCV, {"constraint": "l2"}, Y),
    (cg.ConstrainedLassoCV, {}, Y),
    (cg.ConstrainedElasticNetCV, {"l2": [0.1, 1.0]}, Y),
    (cg.ConstrainedMultiTaskLassoCV, {}, np.column_stack([Y, -Y])),
    (cg.ConstrainedGroupLassoCV, {"feature_groups": np.arange(12) // 3}, Y),
    (cg.ConstrainedClassifierCV, {}, CLASSES),
    (cg.ConstrainedLogisticRegressionCV, {"n_jobs": 2}, np.digitize(Y, [-1.0, 1.0])),
    (cg.ConstrainedGroupLogisticRegressionCV, {"feature_groups": np.arange(12) // 3}, CLASSES),
    (cg.ConstrainedCoxRegressionCV, {}, TIMES),
]


@pytest.mark.parametrize(("estimator", "settings", "y"), VALIDATED, ids=lambda each: getattr(each, "__name__", None))
@pytest.mark.parametrize("radii", [None, [0.1, 0.5, 1.0]], ids=["grid", "radii"])
def test_cross_validation_ends_with_its_time_and_says_so(estimator, settings, y, radii):
    with pytest.warns(ConvergenceWarning) as said:
        model = estimator(**settings, radii=radii, cv=3, max_time=0.0).fit(X, y)
    assert any("max_time (now 0 s) ended the cross-validation" in str(each.message) for each in said)
    assert model.radii_.size == 1 and model.score_path_.shape == (1, 3)
    assert model.radius_ == model.radii_[0] and np.isfinite(model.coef_).all()


@pytest.mark.parametrize(
    ("estimator", "settings", "y"), VALIDATED[:4], ids=lambda each: getattr(each, "__name__", None)
)
def test_cross_validation_within_its_time_is_the_same(estimator, settings, y):
    in_time, free = (estimator(**settings, cv=3, max_time=t).fit(X, y) for t in (1e6, None))
    np.testing.assert_array_equal(in_time.radii_, free.radii_)
    np.testing.assert_array_equal(in_time.coef_, free.coef_)


@pytest.mark.parametrize("is_late", [False, True])
def test_moments_of_all_penalties_have_the_time_of_all(is_late, monkeypatch):
    left = []

    def take(moments):
        left.append(time_left())
        return None if is_late else moments()

    monkeypatch.setattr(lasso_cv, "unless_late", take)
    cg.ConstrainedElasticNetCV(l2=[0.01, 0.1, 1.0, 10.0], n_radii=3, cv=3, max_time=1e4).fit(X, Y)
    assert len(left) == 1 and left[0] > 6000.0


@pytest.mark.parametrize("n_in_time", [0, 2])
def test_folds_on_moments_end_with_their_time(n_in_time, monkeypatch):
    asked = []
    monkeypatch.setattr(lasso_cv, "time_is_over", lambda: asked.append(0) or len(asked) > n_in_time)
    with pytest.warns(ConvergenceWarning, match="ended the cross-validation"):
        model = cg.ConstrainedLassoCV(radii=[0.1, 0.5, 1.0], cv=3, max_time=1e4).fit(X, Y)
    n_known = max(1, n_in_time)  # the first one is asked for the path of all samples
    assert model.radii_.size == n_known and model.score_path_.shape == (n_known, 3)
    assert model.radius_ == model.radii_[-1] and model.coef_path_.shape == (12, n_known)
