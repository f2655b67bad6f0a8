"""Gamma, Tweedie, negative binomial and binomial models: optima, certificates, scores and exposures."""

import numpy as np
import pytest
from certificates import LONG, Truth
from constrained_optima import optimum
from sklearn.linear_model import GammaRegressor, LogisticRegression, PoissonRegressor, TweedieRegressor
from sklearn.metrics import d2_tweedie_score

import condgrad as cg

RNG = np.random.default_rng(0)
N, D = 120, 4
X = RNG.standard_normal((N, D))
MEAN = np.exp(X @ [0.5, -0.3, 0.2, 0.0] + 0.3)
COUNTS = RNG.poisson(MEAN * RNG.gamma(2.0, 0.5, N)).astype(float)
AMOUNTS = MEAN * RNG.gamma(2.0, 0.5, N)
CLAIMS = np.where(COUNTS > 0.0, AMOUNTS, 0.0)
TRIALS = RNG.integers(1, 20, N).astype(float)
SHARES = RNG.binomial(TRIALS.astype(int), MEAN / (1.0 + MEAN)) / TRIALS
FAMILIES = {
    "poisson": (cg.losses.Poisson(), COUNTS, PoissonRegressor, 1.0),
    "gamma": (cg.losses.Gamma(), AMOUNTS, GammaRegressor, 2.0),
    "tweedie": (cg.losses.Tweedie(1.6), CLAIMS, TweedieRegressor, 1.6),
    "negative-binomial": (cg.losses.NegativeBinomial(0.7), COUNTS, None, None),
    "binomial": (cg.losses.Binomial(), SHARES, None, None),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_the_optimum_over_the_l1_ball_and_its_certificate(name):
    loss, y, _, _ = FAMILIES[name]
    weight = TRIALS if name == "binomial" else None
    offset = np.log(RNG.uniform(0.5, 2.0, N))
    model = cg.ConstrainedRegressor(loss, radius=0.6, tol=1e-9).fit(X, y, weight, offset)
    best, w = optimum(X, y, loss, radius=0.6, sample_weight=weight, offset=offset)
    assert model.result_.objective == pytest.approx(best, rel=1e-6, abs=1e-9)
    truth = Truth(X.astype(LONG), y, np.ones(N) if weight is None else weight, loss, True, offset=offset)
    excess = truth.objective(model.coef_) - truth.objective(w)
    assert excess <= model.gap_ + model.rounding_ + 1e-12
    assert abs(float(truth.objective(model.coef_)) - model.result_.objective) <= 1e-10


@pytest.mark.parametrize("name", ["poisson", "gamma", "tweedie"])
def test_without_a_budget_it_is_the_model_of_scikit_learn(name):
    loss, y, other, power = FAMILIES[name]
    settings = {"power": power, "link": "log"} if name == "tweedie" else {}
    known = other(alpha=0.0, tol=1e-9, max_iter=10_000, **settings).fit(X, y)
    with pytest.warns(cg.RadiusWarning, match="does not bind"):
        model = cg.ConstrainedRegressor(loss, radius=1.0, feature_weight=0.0, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(model.coef_, known.coef_, atol=1e-4)
    assert model.score(X, y) == pytest.approx(known.score(X, y), abs=1e-6)
    assert model.score(X, y, TRIALS) == pytest.approx(
        d2_tweedie_score(y, model.predict(X), sample_weight=TRIALS, power=power), abs=1e-9
    )


def test_binomial_shares_are_trials_one_by_one():
    """A share of some trials is that many samples of two classes."""
    successes = np.round(SHARES * TRIALS)
    model = cg.ConstrainedRegressor("binomial", radius=0.8, tol=1e-9).fit(X, SHARES, TRIALS)
    both, labels = np.vstack([X, X]), np.repeat([1, 0], N)
    weight = np.concatenate([successes, TRIALS - successes])
    classes = cg.ConstrainedLogisticRegression(radius=0.8, tol=1e-9).fit(both, labels, weight)
    np.testing.assert_allclose(model.coef_, classes.coef_[0], atol=1e-4)
    np.testing.assert_allclose(model.predict(X), classes.predict_proba(X)[:, 1], atol=1e-4)
    assert 0.0 < model.score(X, SHARES, TRIALS) < 1.0
    free = LogisticRegression(C=np.inf, tol=1e-8).fit(both, labels, weight)
    with pytest.warns(cg.RadiusWarning):
        wide = cg.ConstrainedRegressor("binomial", radius=50.0, tol=1e-9).fit(X, SHARES, TRIALS)
    np.testing.assert_allclose(wide.coef_, free.coef_[0], atol=1e-3)


def test_a_small_dispersion_is_poisson():
    poisson = cg.ConstrainedRegressor("poisson", radius=0.6, tol=1e-9).fit(X, COUNTS)
    almost = cg.ConstrainedRegressor(cg.losses.NegativeBinomial(1e-7), radius=0.6, tol=1e-9).fit(X, COUNTS)
    np.testing.assert_allclose(almost.coef_, poisson.coef_, atol=1e-4)


def test_exposure_is_an_offset():
    exposure = RNG.uniform(0.2, 3.0, N)
    counts = RNG.poisson(MEAN * exposure).astype(float)
    with_offset = cg.ConstrainedRegressor("poisson", radius=0.6, tol=1e-9).fit(X, counts, offset=np.log(exposure))
    as_rates = cg.ConstrainedRegressor("poisson", radius=0.6, tol=1e-9).fit(X, counts / exposure, exposure)
    np.testing.assert_allclose(with_offset.coef_, as_rates.coef_, atol=1e-4)


@pytest.mark.parametrize(
    ("loss", "y", "message"),
    [
        ("gamma", COUNTS, "finite and positive for Gamma; got the value 0"),
        ("tweedie", -AMOUNTS, "non-negative for Tweedie"),
        ("negative-binomial", -AMOUNTS, "non-negative for NegativeBinomial"),
        ("binomial", COUNTS, "a share between 0 and 1"),
        ("binomial", np.ones(N), "needs shares other than 1"),
        ("tweedie", np.zeros(N), "needs a positive target"),
    ],
)
def test_targets_that_no_family_has(loss, y, message):
    with pytest.raises(ValueError, match=message):
        cg.ConstrainedRegressor(loss, radius=1.0).fit(X, y)


@pytest.mark.parametrize("power", [1.0, 2.0, 3.0, 0.5])
def test_powers_that_are_not_convex_are_refused(power):
    with pytest.raises(ValueError, match="between 1 and 2"):
        cg.losses.Tweedie(power)


def test_a_score_of_constant_targets():
    model = cg.ConstrainedRegressor("poisson", radius=0.6).fit(X, COUNTS)
    assert model.score(X, np.zeros(N)) == 0.0


def test_families_have_paths():
    for name in ("gamma", "tweedie", "negative-binomial", "binomial"):
        _, y, _, _ = FAMILIES[name]
        _, _, info = cg.radius_path(X, y, loss=name, n_radii=4, eps=0.1, fit_intercept=True, tol=1e-7)
        assert info.status is cg.Status.CONVERGED
    assert cg.ConstrainedRegressorCV("gamma", n_radii=3, cv=2).fit(X, AMOUNTS).score(X, AMOUNTS) > 0.0
