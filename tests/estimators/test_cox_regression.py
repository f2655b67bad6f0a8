"""Cox's model as an estimator: its penalty, hazards, concordance, folds, and scikit-learn's machinery.

``check_estimator`` cannot run: its targets are one column, and times without events make no model. What it checks and
does not depend on targets is checked here.
"""

import itertools
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from partial_likelihood import negative_log_likelihood, risk_sets
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks

import condgrad as cg

RNG = np.random.default_rng(3)
N, D = 150, 6
X = RNG.standard_normal((N, D))
TIME = np.ceil(6.0 * RNG.exponential(np.exp(-X @ np.array([0.9, -0.6, 0.4, 0.0, 0.0, 0.0]))))
EVENT = RNG.random(N) < 0.7
Y = np.column_stack([TIME, EVENT])
STRATA = RNG.choice(["Bern", "Lyon", "Turin"], N)
WEIGHT = RNG.uniform(0.3, 2.0, N)
OFFSET = 0.3 * RNG.standard_normal(N)
MODELS = [cg.ConstrainedCoxRegression(radius=1.0), cg.ConstrainedCoxRegressionCV(radii=[0.5, 1.0], cv=3)]
every_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)


def test_it_solves_its_problem_and_reports_the_certificate():
    model = cg.ConstrainedCoxRegression(1.0, ties="efron", tol=1e-9).fit(X, Y, WEIGHT, OFFSET, STRATA)
    problem = cg.CoxProblem(
        X, Y, cg.constraints.L1Ball(1.0), ties="efron", strata=STRATA, sample_weight=WEIGHT, offset=OFFSET
    )
    assert problem.objective(model.coef_) == pytest.approx(model.result_.objective, rel=1e-12)
    assert model.gap_ + model.rounding_ <= 1e-9 * problem.loss_scale()
    assert model.intercept_ == 0.0
    assert model.radius_ == 1.0
    assert model.alpha_ == pytest.approx(np.abs(problem.gradient(model.coef_)).max())
    np.testing.assert_allclose(model.predict(X, OFFSET), X @ model.coef_ + OFFSET)


@pytest.mark.parametrize("given", [{}, {"strata": STRATA, "sample_weight": WEIGHT}])
def test_a_penalty_has_the_solution_of_its_radius(given):
    by_penalty = cg.ConstrainedCoxRegression(alpha=0.05, tol=1e-9).fit(X, Y, **given)
    assert by_penalty.alpha_ == pytest.approx(0.05, rel=1e-4)
    by_radius = cg.ConstrainedCoxRegression(by_penalty.radius_, tol=1e-9).fit(X, Y, **given)
    np.testing.assert_allclose(by_radius.coef_, by_penalty.coef_, atol=1e-3)
    # The subgradient condition of F + alpha ||w||_1:
    r = cg.CoxProblem(X, Y, cg.constraints.L1Ball(1.0), **given).gradient(by_penalty.coef_)
    used = by_penalty.coef_ != 0.0
    np.testing.assert_allclose(r[used], -0.05 * np.sign(by_penalty.coef_[used]), atol=1e-4)
    assert np.abs(r).max() <= 0.05 * 1.001


def test_a_large_penalty_leaves_nothing():
    model = cg.ConstrainedCoxRegression(alpha=10.0).fit(X, Y)
    assert np.abs(model.coef_).max() <= 1e-6


def test_free_features_weights_signs_and_limits():
    model = cg.ConstrainedCoxRegression(
        0.2, feature_weight=[0.0, 1.0, 1.0, 1.0, 1.0, 1.0], lower=-0.1, upper={2: 0.05}, tol=1e-9
    ).fit(X, Y)
    assert np.abs(model.coef_[1:]).sum() <= 0.2 + 1e-12
    assert model.coef_[2] <= 0.05 + 1e-12
    assert model.coef_[1] >= -0.1 - 1e-12
    r = cg.CoxProblem(X, Y, cg.constraints.L1Ball(1.0)).gradient(model.coef_)
    assert abs(r[0]) <= 1e-4  # the free one is at its best
    positive = cg.ConstrainedCoxRegression(1.0, positive=True).fit(X, Y)
    assert positive.coef_.min() >= 0.0
    ordered = cg.ConstrainedCoxRegression(1.0, rows=["x0 <= x2"]).fit(X, Y)
    assert ordered.coef_[0] <= ordered.coef_[2] + 1e-9


@pytest.mark.parametrize("ties", ["breslow", "efron"])
def test_the_baseline_hazard_is_that_of_its_definition(ties):
    model = cg.ConstrainedCoxRegression(1.0, ties=ties, tol=1e-9).fit(X + 3.0, Y, WEIGHT, OFFSET, STRATA)
    risk = WEIGHT * np.exp((X + 3.0) @ model.coef_ + OFFSET)
    for label in np.unique(STRATA):
        own = label == STRATA
        total, expected = 0.0, []
        for at_risk, dead, v in risk_sets(TIME[own], EVENT[own], weight=WEIGHT[own]):
            d, everybody, dying = int(dead.sum()), risk[own][at_risk].sum(), risk[own][dead].sum()
            parts = [0.0 if ties == "breslow" else k / d for k in range(d)]
            total += v[dead].mean() * sum(1.0 / (everybody - part * dying) for part in parts)
            expected.append(total)
        np.testing.assert_allclose(model.baseline_[label].cumulative_hazard, expected, rtol=1e-10)
        np.testing.assert_array_equal(model.baseline_[label].times, np.unique(TIME[own & EVENT]))


def test_survival_functions():
    model = cg.ConstrainedCoxRegression(1.0).fit(X, Y)
    survival = model.predict_survival_function(X[:4])
    assert survival.shape == (4, model.event_times_.size)
    assert ((survival > 0.0) & (survival <= 1.0)).all()
    assert (np.diff(survival, axis=1) <= 0.0).all()
    hazard = model.predict_cumulative_hazard_function(X[:4])
    np.testing.assert_allclose(hazard, np.exp(model.predict(X[:4]))[:, None] * model.baseline_.cumulative_hazard)
    np.testing.assert_allclose(survival, np.exp(-hazard))
    first = model.event_times_[0]
    np.testing.assert_array_equal(model.predict_survival_function(X[:2], first - 1.0), np.ones((2, 1)))
    at = model.predict_survival_function(X[:2], [first, first + 1e-9])
    np.testing.assert_array_equal(at[:, 0], at[:, 1])
    with pytest.raises(ValueError, match="fitted without strata"):
        model.predict_survival_function(X[:2], strata=["Bern", "Bern"])
    stratified = cg.ConstrainedCoxRegression(1.0).fit(X, Y, strata=STRATA)
    assert stratified.predict_survival_function(X, strata=STRATA).shape == (N, stratified.event_times_.size)
    with pytest.raises(ValueError, match="each has its own hazard; pass strata"):
        stratified.predict_survival_function(X)
    with pytest.raises(ValueError, match="the label 'Rome', which was not there in the fit"):
        stratified.predict_survival_function(X[:1], strata=["Rome"])


def concordance_by_pairs(time, event, risk, strata, weight):
    """Return Harrell's index, pair by pair."""
    right = total = 0.0
    for i, j in itertools.permutations(range(len(time)), 2):
        is_first = time[i] < time[j] or (time[i] == time[j] and not event[j])
        if event[i] and is_first and strata[i] == strata[j]:
            total += weight[i] * weight[j]
            right += weight[i] * weight[j] * (1.0 if risk[i] > risk[j] else 0.5 if risk[i] == risk[j] else 0.0)
    return right / total


@pytest.mark.parametrize("given", [{}, {"strata": STRATA}, {"sample_weight": WEIGHT}])
def test_the_score_is_harrells_index(given):
    model = cg.ConstrainedCoxRegression(1.0).fit(X, Y)
    model.coef_ = np.round(model.coef_, 1)
    Z = np.round(X, 1)  # many risks are equal
    strata, weight = given.get("strata", np.zeros(N)), given.get("sample_weight", np.ones(N))
    expected = concordance_by_pairs(TIME, EVENT, model.predict(Z), strata, weight)
    assert model.score(Z, Y, **given) == pytest.approx(expected, rel=1e-12)
    model.coef_ = np.zeros(D)
    assert model.score(X, Y, **given) == 0.5
    with pytest.raises(ValueError, match="no two samples can be compared"):
        model.score(X[:2], [[1.0, 0], [2.0, 1]])


def test_folds_are_judged_by_what_they_add_to_the_likelihood():
    radii, cuts = [0.2, 0.6, 1.2], [(np.arange(0, N, 2), np.arange(1, N, 2)), (np.arange(1, N, 2), np.arange(0, N, 2))]
    model = cg.ConstrainedCoxRegressionCV(radii=radii, cv=cuts, ties="efron", tol=1e-8)
    model.fit(X, Y, WEIGHT, OFFSET, strata=STRATA)

    def log_likelihood(w, rows):
        given = {"strata": STRATA[rows], "weight": WEIGHT[rows], "offset": OFFSET[rows]}
        value = negative_log_likelihood(w, X[rows], TIME[rows], EVENT[rows], "efron", **given)
        return -value * WEIGHT[rows].sum()

    for (train, test), scores in zip(cuts, model.score_path_.T, strict=True):
        for radius, score in zip(radii, scores, strict=True):
            alone = cg.ConstrainedCoxRegression(radius, ties="efron", tol=1e-8)
            w = alone.fit(X[train], Y[train], WEIGHT[train], OFFSET[train], STRATA[train]).coef_
            expected = (log_likelihood(w, np.arange(N)) - log_likelihood(w, train)) / WEIGHT[test].sum()
            assert score == pytest.approx(expected, abs=1e-4)
    assert model.radius_ == radii[model.score_path_.mean(axis=1).argmax()]


def test_several_scorings_and_both_rules():
    both = ["partial-likelihood", "concordance"]
    model = cg.ConstrainedCoxRegressionCV(n_radii=6, cv=3, scoring=both, refit="concordance").fit(X, Y)
    assert set(model.score_paths_) == set(both)
    assert model.score_path_ is model.score_paths_["concordance"]
    assert 0.6 < model.score_path_.mean(axis=1).max() < 1.0
    careful = cg.ConstrainedCoxRegressionCV(n_radii=6, cv=3, selection="one-standard-error").fit(X, Y)
    best = cg.ConstrainedCoxRegressionCV(n_radii=6, cv=3).fit(X, Y)
    assert careful.radius_ <= best.radius_
    np.testing.assert_array_equal(best.baseline_.times, np.unique(TIME[EVENT]))
    with pytest.raises(ValueError, match="refit must be the name of the metric"):
        cg.ConstrainedCoxRegressionCV(scoring=both).fit(X, Y)
    with pytest.raises(ValueError, match="scoring must be 'partial-likelihood', 'concordance' or a list of both"):
        cg.ConstrainedCoxRegressionCV(scoring="r2").fit(X, Y)


@every_model
def test_dense_and_sparse_data_make_one_model(model):
    thin = np.where(np.abs(X) > 0.5, X, 0.0)
    plain = clone(model).fit(thin, Y)
    for form in (np.asfortranarray, scipy.sparse.csr_matrix, scipy.sparse.csc_array, scipy.sparse.coo_array):
        other = clone(model).fit(form(thin), Y)
        np.testing.assert_allclose(other.coef_, plain.coef_, atol=1e-3)
        assert other.result_.objective == pytest.approx(plain.result_.objective, abs=2e-5)
    single = clone(model).fit(thin.astype(np.float32), Y)
    np.testing.assert_allclose(single.coef_, plain.coef_, atol=1e-3)


@every_model
def test_structured_targets_frames_pipelines_and_searches(model):
    records = np.array(list(zip(EVENT, TIME, strict=True)), dtype=[("event", bool), ("time", float)])
    frame = pd.DataFrame(X, columns=[f"gene {j}" for j in range(D)])
    times = pd.DataFrame({"time": TIME, "event": EVENT})
    plain = clone(model).fit(X, Y)
    for data, target in ((frame, times), (frame, records), (X.tolist(), Y.tolist())):
        np.testing.assert_allclose(clone(model).fit(data, target).coef_, plain.coef_, atol=1e-3)
    assert list(clone(model).fit(frame, times).feature_names_in_) == list(frame.columns)
    line = make_pipeline(StandardScaler(), clone(model)).fit(frame, records)
    assert line.score(frame, records) > 0.6
    assert cross_val_score(model, X, records, cv=3).mean() > 0.6
    search = GridSearchCV(clone(model), {"ties": ["breslow", "efron"]}, cv=2).fit(X, records)
    assert search.best_score_ > 0.6


@every_model
def test_what_check_estimator_asks_besides_targets(model):
    name = type(model).__name__
    for check in (
        estimator_checks.check_no_attributes_set_in_init,
        estimator_checks.check_get_params_invariance,
        estimator_checks.check_set_params,
        estimator_checks.check_parameters_default_constructible,
        estimator_checks.check_estimator_repr,
    ):
        check(name, clone(model))
    before = X.copy(), Y.copy()
    fitted = clone(model).fit(X, Y)
    np.testing.assert_array_equal(before[0], X)
    np.testing.assert_array_equal(before[1], Y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    np.testing.assert_array_equal(clone(model).fit(X, Y).coef_, fitted.coef_)
    with pytest.raises(ValueError, match="X has 5 features, but"):
        fitted.predict(X[:, :5])
    assert f"gap {fitted.gap_:.2g}" in fitted._repr_html_()


def test_samples_without_weight_are_left_out():
    weight = np.where(np.arange(N) < 100, WEIGHT, 0.0)
    alone = cg.ConstrainedCoxRegression(0.7).fit(X[:100], Y[:100], WEIGHT[:100], strata=STRATA[:100])
    model = cg.ConstrainedCoxRegression(0.7).fit(X, Y, weight, strata=STRATA)
    np.testing.assert_array_equal(model.coef_, alone.coef_)
    first = np.unique(STRATA)[0]
    np.testing.assert_array_equal(model.baseline_[first].times, alone.baseline_[first].times)


def test_a_warm_start_begins_at_the_last_solution():
    model = cg.ConstrainedCoxRegression(1.0, warm_start=True).fit(X, Y)
    coef = model.coef_
    model.fit(X, Y)
    assert model.n_iter_ <= 2
    np.testing.assert_allclose(model.coef_, coef, atol=1e-3)


@every_model
@pytest.mark.parametrize(
    ("y", "given", "sentence"),
    [
        (TIME, {}, r"y must tell times and events: two columns .* got shape \(150,\)"),
        (None, {}, r"y must tell times and events: .* got shape \(\)"),
        (np.column_stack([TIME, np.zeros(N)]), {}, "y has no event"),
        (Y, {"strata": STRATA[:4]}, "strata must have one label per sample"),
        (Y, {"sample_weight": -WEIGHT}, "sample_weight must not be negative"),
        (Y[:7], {}, "inconsistent numbers of samples"),
    ],
)
def test_wrong_input_gets_a_sentence(model, y, given, sentence):
    with pytest.raises(ValueError, match=sentence):
        clone(model).fit(X, y, **given)


def test_what_it_is_not_for_gets_a_sentence(tmp_path):
    model = cg.ConstrainedCoxRegression(1.0).fit(X, Y, offset=OFFSET)
    with pytest.raises(AttributeError, match="model files have no place for the hazards"):
        model.save(tmp_path / "model.npz")
    with pytest.raises(ValueError, match="fitted with offsets, so predictions need them too"):
        model.predict(X)
    plain = cg.ConstrainedCoxRegression(1.0).fit(X, Y)
    with pytest.raises(ValueError, match="scikit-learn has no linear model"):
        cg.to_sklearn(plain)
    with pytest.raises(TypeError, match="relaxed takes"):
        cg.relaxed(plain, X, Y)
    rows = cg.rows.convert((X, TIME), tmp_path / "rows")
    with pytest.raises(TypeError, match="ConstrainedCoxRegression needs X in memory"):
        cg.ConstrainedCoxRegression(1.0).fit(rows, Y)
    with pytest.raises(ValueError, match="give radius or alpha, not both"):
        cg.ConstrainedCoxRegression(1.0, alpha=0.1).fit(X, Y)
    with pytest.raises(ValueError, match="ties must be 'breslow' or 'efron'"):
        cg.ConstrainedCoxRegression(1.0, ties="exact").fit(X, Y)
    with pytest.raises(TypeError, match="no term of its own"):
        cg.ConstrainedCoxRegression(1.0, solver="saga").fit(X, Y)


def test_strata_can_be_routed():
    from sklearn import config_context

    with config_context(enable_metadata_routing=True):
        model = cg.ConstrainedCoxRegression(radius=1.0).set_fit_request(strata=True).set_score_request(strata=True)
        scores = cross_val_score(model, X, Y, params={"strata": STRATA}, cv=3)
    assert scores.mean() > 0.6
