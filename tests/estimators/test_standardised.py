"""standardize=True is a fit of standardised features, and a warning comes where scales are far apart without it."""

import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import condgrad as cg

N, SCALES = 120, np.array([1.0, 300.0, 0.02, 1.0, 5.0])


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = SCALES * (rng.standard_normal((N, 5)) + 0.5) * (rng.random((N, 5)) < 0.8)
    score = (X / SCALES) @ [1.0, -1.0, 0.8, 0.0, 0.3]
    return X, score, rng.uniform(0.5, 2.0, N), rng


def deviation(X, weight=None):
    mean = np.average(X, axis=0, weights=weight)
    return np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))


def targets(model, score):
    noisy = score + 0.3 * np.random.default_rng(1).standard_normal(N)
    if "Class" in type(model).__name__:
        return np.digitize(noisy, [-0.5, 0.7])
    if "Logistic" in type(model).__name__:
        return noisy > 0.0
    return np.exp(noisy) if getattr(model, "loss", None) == "poisson" else noisy


MODELS = [
    cg.ConstrainedLasso(1.0),
    cg.ConstrainedLasso(alpha=0.1),
    cg.ConstrainedLasso(1.0, feature_weight=[1.0, 2.0, 0.0, 1.0, 0.5]),
    cg.ConstrainedElasticNet(1.0, l2=0.2),
    cg.ConstrainedElasticNet(alpha=0.1, l2=0.2),
    cg.ConstrainedRegressor("poisson", radius=1.0),
    cg.ConstrainedRegressor("huber", radius=0.5, constraint="nonnegative-l1"),
    cg.ConstrainedLogisticRegression(1.0),
    cg.ConstrainedLogisticRegression(C=0.2),
    cg.ConstrainedClassifier("squared-hinge", radius=0.5),
]


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_matrix, scipy.sparse.csc_matrix])
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_a_standardised_fit_is_one_of_scaled_features(data, model, kind):
    X, score, weight, _ = data
    y, scales = targets(model, score), deviation(X, weight)
    ours = model.set_params(standardize=True, tol=1e-8).fit(kind(X), y, sample_weight=weight)
    known = model.__class__(**model.get_params() | {"standardize": False}).fit(X / scales, y, sample_weight=weight)
    np.testing.assert_allclose(ours.coef_ * scales, known.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, known.intercept_, atol=1e-4)
    np.testing.assert_allclose(ours.radius_, known.radius_, rtol=1e-4)
    np.testing.assert_allclose(ours.alpha_, known.alpha_, rtol=1e-3)


def test_without_an_intercept_scales_are_root_mean_squares(data):
    X, score, _, _ = data
    model = cg.ConstrainedLasso(1.0, fit_intercept=False, standardize=True, tol=1e-10).fit(X, score)
    scales = np.sqrt(np.mean(X**2, axis=0))
    known = cg.ConstrainedLasso(1.0, fit_intercept=False, tol=1e-10).fit(X / scales, score)
    np.testing.assert_allclose(model.coef_ * scales, known.coef_, atol=1e-5)


@pytest.mark.parametrize(
    "model",
    [
        cg.ConstrainedLassoCV(radii=[0.3, 1.0, 2.0]),
        cg.ConstrainedElasticNetCV(l2=[0.1, 0.3], radii=[0.3, 1.0]),
        cg.ConstrainedRegressorCV("huber", radii=[0.3, 1.0]),
        cg.ConstrainedLogisticRegressionCV(radii=[0.3, 1.0]),
        cg.ConstrainedClassifierCV("squared-hinge", radii=[0.3, 1.0]),
    ],
    ids=repr,
)
def test_every_fold_has_its_own_deviations(data, model):
    """As in a pipeline with StandardScaler, whose folds are those of the cross-validation."""
    X, score, _, _ = data
    y = targets(model, score)
    model.set_params(standardize=True, cv=KFold(3), tol=1e-9).fit(X, y)
    plain = model.__class__(**model.get_params() | {"standardize": False, "cv": [(np.arange(N), np.arange(N))]})
    for fold, (train, test) in enumerate(KFold(3).split(X)):
        scales = deviation(X[train])
        once = plain.set_params(cv=[(train, test)]).fit(X / scales, y)
        if isinstance(model, cg.ConstrainedElasticNetCV):
            once = plain.set_params(l2=model.l2_).fit(X / scales, y)
        np.testing.assert_allclose(model.score_path_[:, fold], once.score_path_[:, 0], rtol=1e-3, atol=1e-5)
    whole = make_pipeline(StandardScaler(), plain.set_params(radii=[model.radius_])).fit(X, y)[-1]
    np.testing.assert_allclose(model.coef_ * deviation(X), whole.coef_, atol=1e-4)
    assert model.radius_ in model.radii


def test_the_paths(data):
    X, score, weight, _ = data
    scales, settings = deviation(X, weight), {"sample_weight": weight, "fit_intercept": True, "tol": 1e-10}
    for path, y, own in ((cg.lasso_path, score, {}), (cg.radius_path, np.sign(score), {"loss": "logistic"})):
        for targets_ in ({"radii": [0.2, 1.0]}, {"alphas": [0.2, 0.05]}):
            _, coefs, info = path(X, y, standardize=True, **targets_, **settings, **own)
            _, known, expected = path(X / scales, y, **targets_, **settings, **own)
            np.testing.assert_allclose(coefs.toarray() * scales[:, None], known.toarray(), atol=1e-4)
            np.testing.assert_allclose(info.alpha, expected.alpha, rtol=1e-3)


def test_constant_features_take_no_part(data):
    X, score, _, _ = data
    X = np.hstack([X, np.full((N, 1), 7.0), np.zeros((N, 1))])
    for model in (cg.ConstrainedLasso(1.0, standardize=True), cg.ConstrainedElasticNet(1.0, standardize=True)):
        assert np.array_equal(model.fit(X, score).coef_[-2:], [0.0, 0.0])


def test_words_are_standardised_too():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(2)
    frame = pandas.DataFrame({"income": 1e4 * rng.standard_normal(N), "town": rng.choice(["a", "b", "c"], N)})
    y = frame["income"] / 1e4 + (frame["town"] == "a")
    model = cg.ConstrainedLasso(1.0, standardize=True).fit(frame, y)
    assert abs(model.coef_[0] * deviation(frame["income"].to_numpy())) > 0.5
    with pytest.raises(ValueError, match="needs columns of numbers"):
        cg.ConstrainedElasticNet(1.0, standardize=True).fit(frame, y)
    with pytest.warns(cg.ScaleWarning, match="standardize=True"):
        cg.ConstrainedLasso(1.0).fit(frame, y)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda X, y: cg.ConstrainedRegressor(constraint="l2", standardize=True).fit(X, y), "got constraint='l2'"),
        (
            lambda X, y: cg.ConstrainedRegressor(radius=1.0, multi_output="joint", standardize=True).fit(
                X, np.stack([y, y]).T
            ),
            "got a joint problem. Use StandardScaler",
        ),
        (lambda X, y: cg.ConstrainedElasticNet(standardize=True, lower=0.0).fit(X, y), "goes without lower"),
        (
            lambda X, y: cg.ConstrainedLasso(1.0, solver="sfw", standardize=True).partial_fit(X, y),
            "partial_fit sees a batch",
        ),
        (lambda X, y: cg.radius_path(X, y, loss="squared", standardize=True, l2=0.1), "in memory and l2=0"),
        (lambda X, y: cg.radius_path(X, y, loss="squared", standardize=True, constraint="l2"), "got 'l2'"),
    ],
)
def test_refusals(data, call, sentence):
    X, score, _, _ = data
    with pytest.raises(ValueError, match=sentence):
        call(X, score)


def test_rows_on_disk_are_refused(data, tmp_path):
    X, score, _, _ = data
    rows = cg.rows.convert((X, score), tmp_path / "rows")
    with pytest.raises(ValueError, match="standardize=True needs X in memory"):
        cg.ConstrainedLasso(1.0, standardize=True).fit(rows)


# The warning ------------------------------------------------------------------------------------------------------


def far_apart():
    return np.random.default_rng(0).standard_normal((60, 3)) * [1.0, 1e4, 1.0]


DOORS = [
    lambda X, y: cg.ConstrainedLasso(1.0).fit(X, y),
    lambda X, y: cg.ConstrainedLasso(alpha=0.1).fit(X, y),
    lambda X, y: cg.ConstrainedLassoCV(cv=3, n_radii=5).fit(X, y),
    lambda X, y: cg.ConstrainedLogisticRegression(1.0).fit(X, y > 0.0),
    lambda X, y: cg.ConstrainedClassifierCV("logistic", cv=3, radii=[0.1, 1.0]).fit(X, y > 0.0),
    lambda X, y: cg.ConstrainedCoxRegression(1.0).fit(X, np.stack([np.exp(y), np.ones(y.size)], axis=1)),
    lambda X, y: cg.ConstrainedGroupLasso(1.0, feature_groups=[0, 0, 1]).fit(X, y),
    lambda X, y: cg.lasso_path(X, y, radii=[1.0]),
    lambda X, y: cg.radius_path(X, np.sign(y), radii=[1.0]),
    lambda X, y: cg.cox_path(X, np.stack([np.exp(y), np.ones(y.size)], axis=1), radii=[1.0]),
]


@pytest.mark.parametrize("door", DOORS)
def test_scales_far_apart_are_told_once(door):
    X = far_apart()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        door(X, X[:, 0])
    found = [warning for warning in said if warning.category is cg.ScaleWarning]
    assert len(found) == 1 and found[0].filename == __file__
    assert "ranges that differ by a factor of" in str(found[0].message)


@pytest.mark.parametrize(
    "fit",
    [
        lambda X, y: cg.ConstrainedLasso(1.0, standardize=True).fit(X, y),
        lambda X, y: cg.ConstrainedLasso(1.0, feature_weight=[1.0, 1e4, 1.0]).fit(X, y),
        lambda X, y: cg.ConstrainedLassoCV(cv=3, n_radii=5, standardize=True).fit(X, y),
        lambda X, y: cg.ConstrainedRegressor(constraint=cg.constraints.Box(-1.0, 1.0)).fit(X, y),
        lambda X, y: cg.ConstrainedLasso(1e-3).fit(scipy.sparse.csr_matrix(X), y),
        lambda X, y: make_pipeline(StandardScaler(), cg.ConstrainedLasso(1.0)).fit(X, y),
        lambda X, y: cg.lasso_path(X, y, radii=[1.0], standardize=True),
        lambda X, y: cg.radius_path(X, np.sign(y), radii=[1.0], standardize=True),
        lambda X, y: cg.ConstrainedLasso(1.0).fit(np.hstack([X[:, :1], np.full((60, 1), 1e9)]), y),  # constant
    ],
)
def test_nothing_is_told_where_scales_are_taken_care_of(fit):
    X = far_apart()
    with warnings.catch_warnings():
        warnings.simplefilter("error", cg.ScaleWarning)
        fit(X, X[:, 0])


def test_zeros_and_ones_are_of_one_scale_however_rare():
    X = np.zeros((5000, 3))
    X[::2, 0], X[7, 1], X[:, 2] = 1.0, 1.0, np.random.default_rng(0).uniform(0.0, 90.0, 5000)
    with warnings.catch_warnings():
        warnings.simplefilter("error", cg.ScaleWarning)
        cg.ConstrainedLasso(1.0).fit(X, X[:, 2])


def test_standardising_helps_where_the_warning_comes():
    X, y = load_breast_cancer(return_X_y=True)
    with pytest.warns(cg.ScaleWarning):
        plain = cg.ConstrainedLogisticRegression().fit(X, y)
    assert cg.ConstrainedLogisticRegression(standardize=True).fit(X, y).score(X, y) > plain.score(X, y)


@pytest.mark.parametrize("name", ["ConstrainedLasso", "ConstrainedElasticNetCV", "ConstrainedLogisticRegression"])
def test_standardize_is_a_flag(name):
    with pytest.raises(TypeError, match="standardize must be True or False; got 'yes'"):
        getattr(cg, name)(standardize="yes").fit(np.eye(4), [0, 1, 0, 1])
