"""Counts as users have them: successes beside failures, and exposures; fits, folds, scores, routing, refusals."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from constrained_optima import optimum
from sklearn import config_context
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

import condgrad as cg

RNG = np.random.default_rng(1)
N = 150
X = RNG.standard_normal((N, 4))
SCORE = X @ [0.6, -0.4, 0.0, 0.2]
TRIALS = RNG.integers(0, 12, N)  # some samples have none
SUCCESSES = RNG.binomial(TRIALS, 1.0 / (1.0 + np.exp(-SCORE)))
TWO = np.column_stack([SUCCESSES, TRIALS - SUCCESSES])
SHARES = SUCCESSES / np.maximum(TRIALS, 1)
EXPOSURE = RNG.uniform(0.2, 4.0, N)
CLAIMS = RNG.poisson(EXPOSURE * np.exp(0.7 * SCORE - 0.3)).astype(float)
LOG_LINKS = {
    "poisson": (cg.losses.Poisson(), CLAIMS),
    "negative-binomial": (cg.losses.NegativeBinomial(0.5), CLAIMS),
    "gamma": (cg.losses.Gamma(), CLAIMS + 0.5),
    "tweedie": (cg.losses.Tweedie(1.4), CLAIMS),
}


@pytest.mark.parametrize("loss", ["binomial", cg.losses.Binomial()], ids=["name", "object"])
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix, pd.DataFrame], ids=["dense", "csr", "frame"])
def test_successes_and_failures_have_the_optimum_of_their_likelihood(form, loss):
    weight = RNG.uniform(0.5, 2.0, N)
    counts = pd.DataFrame(TWO) if form is pd.DataFrame else TWO
    model = cg.ConstrainedRegressor(loss, radius=0.7, tol=1e-9).fit(form(X), counts, weight)
    best, _ = optimum(X, SHARES, cg.losses.Binomial(), radius=0.7, sample_weight=TRIALS * weight)
    assert model.result_.objective == pytest.approx(best, rel=1e-7)
    assert model.coef_.shape == (4,) and isinstance(model.intercept_, float)
    mean = model.predict(form(X))
    likelihood = -np.average(SUCCESSES * np.log(mean) + (TRIALS - SUCCESSES) * np.log1p(-mean), weights=weight)
    assert likelihood * weight.sum() / (TRIALS @ weight) == pytest.approx(best, rel=1e-7)
    assert model.score(form(X), counts, weight) == pytest.approx(model.score(form(X), SHARES, weight * TRIALS))


def test_folds_batches_and_refits_take_two_columns():
    own = cg.ConstrainedRegressorCV("binomial", radii=[0.1, 0.4, 0.8], cv=KFold(3)).fit(X, TWO)
    plain = cg.ConstrainedRegressorCV("binomial", radii=[0.1, 0.4, 0.8], cv=KFold(3)).fit(X, SHARES, TRIALS)
    np.testing.assert_allclose(own.score_path_, plain.score_path_, rtol=1e-9)
    np.testing.assert_allclose(own.coef_, plain.coef_)
    assert own.score(X, TWO) == pytest.approx(plain.score(X, SHARES, TRIALS))
    scored = cg.ConstrainedRegressorCV("binomial", radii=[0.4], cv=3, scoring="neg_mean_squared_error").fit(X, TWO)
    assert scored.score(X, TWO) == pytest.approx(-np.average((scored.predict(X) - SHARES) ** 2, weights=TRIALS))
    settings = {"radius": 0.7, "solver": "sfw", "random_state": 0}
    own, plain = (cg.ConstrainedRegressor("binomial", **settings) for _ in range(2))
    own.partial_fit(X, TWO)
    np.testing.assert_array_equal(own.coef_, plain.partial_fit(X, SHARES, TRIALS).coef_)
    model = cg.ConstrainedRegressor("binomial", radius=0.3).fit(X, TWO)
    again = cg.relaxed(model, X, SHARES, sample_weight=TRIALS)
    np.testing.assert_allclose(cg.relaxed(model, X, TWO).coef_, again.coef_, atol=1e-6)
    with config_context(enable_metadata_routing=True):
        scores = cross_val_score(cg.ConstrainedRegressor("binomial", radius=0.5), X, TWO, cv=3)
    assert scores.mean() > 0.1


def test_what_two_columns_cannot_be():
    model = cg.ConstrainedRegressor("binomial", radius=0.5)
    for counts, sentence in (
        (TWO - 3, "must not be negative"),
        (np.column_stack([SHARES, 1.0 - SHARES]), "these are shares; fit one column at a time"),
        (np.zeros((N, 2)), "y has no trials"),
    ):
        with pytest.raises(ValueError, match=sentence):
            model.fit(X, counts)
    with pytest.raises(ValueError, match="use ConstrainedRegressor"):
        cg.ConstrainedClassifier("binomial").fit(X, TWO)
    with pytest.raises(ValueError, match="use ConstrainedRegressor"):
        cg.ConstrainedLogisticRegressionCV().fit(X, TWO)
    outputs = np.column_stack([SHARES] * 3)  # three columns are three outputs
    assert model.fit(X, outputs, TRIALS).coef_.shape == (3, 4)


@pytest.mark.parametrize("name", LOG_LINKS)
def test_the_mean_is_exposure_times_that_of_the_model(name):
    loss, y = LOG_LINKS[name]
    model = cg.ConstrainedRegressor(loss, radius=0.5, tol=1e-9).fit(X, y, exposure=EXPOSURE)
    best, w = optimum(X, y, loss, radius=0.5, offset=np.log(EXPOSURE))
    assert model.result_.objective == pytest.approx(best, rel=1e-6, abs=1e-9)
    np.testing.assert_allclose(model.coef_, w, atol=1e-3)
    mean = model.predict(X, exposure=EXPOSURE)
    np.testing.assert_allclose(mean, EXPOSURE * model.predict(X, exposure=np.ones(N)))
    np.testing.assert_allclose(mean, model.predict(X, np.log(EXPOSURE)))
    assert model.score(X, y, exposure=EXPOSURE) == model.score(X, y, offset=np.log(EXPOSURE))
    with pytest.raises(ValueError, match="pass offset=, or exposure="):
        model.predict(X)


def test_exposure_and_offset_together():
    shift = RNG.uniform(-0.5, 0.5, N)
    model = cg.ConstrainedRegressor("poisson", radius=0.5).fit(X, CLAIMS, None, shift, exposure=EXPOSURE)
    other = cg.ConstrainedRegressor("poisson", radius=0.5).fit(X, CLAIMS, offset=shift + np.log(EXPOSURE))
    np.testing.assert_array_equal(model.coef_, other.coef_)
    np.testing.assert_allclose(model.predict(X, shift, exposure=EXPOSURE), EXPOSURE * np.exp(shift) * np.exp(
        X @ model.coef_ + model.intercept_
    ))  # fmt: skip


def test_folds_batches_and_rows_on_disk_have_exposures(tmp_path):
    own = cg.ConstrainedRegressorCV("poisson", radii=[0.2, 0.5], cv=KFold(3)).fit(X, CLAIMS, exposure=EXPOSURE)
    plain = cg.ConstrainedRegressorCV("poisson", radii=[0.2, 0.5], cv=KFold(3)).fit(X, CLAIMS, offset=np.log(EXPOSURE))
    np.testing.assert_array_equal(own.score_path_, plain.score_path_)
    assert own.score(X, CLAIMS, exposure=EXPOSURE) == plain.score(X, CLAIMS, offset=np.log(EXPOSURE))
    settings = {"radius": 0.5, "solver": "sfw", "random_state": 0}
    batches = [cg.ConstrainedRegressor("poisson", **settings) for _ in range(2)]
    batches[0].partial_fit(X, CLAIMS, exposure=EXPOSURE)
    np.testing.assert_array_equal(
        batches[0].coef_, batches[1].partial_fit(X, CLAIMS, offset=np.log(EXPOSURE)).coef_
    )  # fmt: skip
    rows = cg.rows.convert((X, CLAIMS), tmp_path / "rows", shuffle=False)
    on_disk = cg.ConstrainedRegressor("poisson", radius=0.5).fit(rows, exposure=EXPOSURE)
    memory = cg.ConstrainedRegressor("poisson", radius=0.5).fit(X, CLAIMS, exposure=EXPOSURE)
    np.testing.assert_allclose(on_disk.coef_, memory.coef_, atol=2e-3)
    np.testing.assert_allclose(on_disk.predict(rows, exposure=EXPOSURE), on_disk.predict(X, exposure=EXPOSURE))


def test_exposures_can_be_routed_and_searched_with():
    with config_context(enable_metadata_routing=True):
        model = cg.ConstrainedRegressor("poisson", radius=0.5)
        model = model.set_fit_request(exposure=True).set_score_request(exposure=True)
        routed = cross_val_score(model, X, CLAIMS, params={"exposure": EXPOSURE}, cv=3)
        search = GridSearchCV(model, {"radius": [0.2, 0.5]}, cv=3).fit(X, CLAIMS, exposure=EXPOSURE)
    assert routed.mean() > 0.1
    assert search.best_estimator_.has_offset_


def test_what_exposures_cannot_be():
    model = cg.ConstrainedRegressor("poisson", radius=0.5)
    for exposure, sentence in (
        (np.zeros(N), "exposure must be positive; got 0"),
        (EXPOSURE[:5], "exposure must have one entry per sample"),
        (np.full(N, np.nan), "exposure"),
    ):
        with pytest.raises(ValueError, match=sentence):
            model.fit(X, CLAIMS, exposure=exposure)
    for other in (
        cg.ConstrainedRegressor("binomial", radius=0.5),
        cg.ConstrainedLasso(0.5),
        cg.ConstrainedQuantileRegressor(radius=0.5),
        cg.ConstrainedRegressorCV("huber"),
    ):
        with pytest.raises(ValueError, match="exposure multiplies the mean, for losses with a log link"):
            other.fit(X, CLAIMS, exposure=EXPOSURE)
    with pytest.raises(ValueError, match="an offset is one number per sample"):
        model.fit(X, np.column_stack([CLAIMS, CLAIMS]), exposure=EXPOSURE)
