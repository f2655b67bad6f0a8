"""Estimators with offsets: fit, predictions and scores, folds, files, rows on disk, and what is refused."""

import inspect

import numpy as np
import pytest
import scipy.sparse

import condgrad as cg


def counts(n=200, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X, exposure = rng.standard_normal((n, d)), rng.uniform(0.2, 5.0, n)
    y = rng.poisson(exposure * np.exp(0.6 * X[:, 0] - 0.4 * X[:, 1] - 0.5)).astype(float)
    return X, y, np.log(exposure)


def test_poisson_with_exposure():
    X, y, offset = counts()
    model = cg.ConstrainedRegressor("poisson", radius=0.8).fit(X, y, offset=offset)
    problem = cg.Problem(X, y, cg.losses.Poisson(), cg.constraints.L1Ball(0.8), offset=offset, intercept=True)
    best = cg.minimize(problem, tol=1e-9)
    np.testing.assert_allclose(model.coef_, best.w, atol=1e-3)
    assert model.result_.objective == pytest.approx(best.objective, abs=1e-5)
    means = model.predict(X, offset)
    np.testing.assert_allclose(means, np.exp(X @ model.coef_ + model.intercept_ + offset))
    assert means.mean() == pytest.approx(y.mean(), rel=1e-6)  # at the best intercept
    np.testing.assert_allclose(model.predict(X, offset=np.zeros(200)), means / np.exp(offset))
    assert model.score(X, y, offset=offset) > model.score(X, y, offset=np.zeros(200))


def test_predictions_of_a_model_with_offsets_need_them(tmp_path):
    X, y, offset = counts()
    model = cg.ConstrainedRegressor("poisson", radius=0.8).fit(X, y, offset=offset)
    model.save(tmp_path / "model.npz")
    stored = cg.load_model(tmp_path / "model.npz")
    assert stored.has_offset
    for predict in (model.predict, stored.predict):
        with pytest.raises(ValueError, match="fitted with offsets, so predictions need them too"):
            predict(X)
        with pytest.raises(ValueError, match="offset must have one entry per sample"):
            predict(X, [1.0])
    np.testing.assert_allclose(stored.predict(X, offset), model.predict(X, offset))
    again = model.fit(X, y)  # a model without offsets needs none, and adds those that are given
    assert not again.model_.has_offset
    np.testing.assert_allclose(again.predict(X, offset), again.predict(X) * np.exp(offset))


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix])
def test_classes(form):
    X, y, offset = counts()
    y = np.where(y > 1.0, "many", "few")
    X = form(X)
    model = cg.ConstrainedLogisticRegression(radius=1.0).fit(X, y, offset=offset)
    scores = model.decision_function(X, offset)
    np.testing.assert_allclose(scores, X @ model.coef_[0] + model.intercept_ + offset)
    np.testing.assert_array_equal(model.predict(X, offset), np.where(scores > 0.0, "many", "few"))
    np.testing.assert_allclose(model.predict_proba(X, offset)[:, 1], 1.0 / (1.0 + np.exp(-scores)))
    np.testing.assert_allclose(model.predict_log_proba(X, offset), np.log(model.predict_proba(X, offset)))
    assert model.score(X, y, offset=offset) == np.mean(model.predict(X, offset) == y)
    np.testing.assert_allclose(model.model_.probabilities(X, offset), model.predict_proba(X, offset)[:, 1])


def test_samples_without_weight_are_left_out_with_their_offsets():
    X, y, offset = counts()
    weight = np.repeat([1.0, 0.0], 100)
    own = cg.ConstrainedRegressor("poisson", radius=0.8).fit(X, y, weight, offset)
    alone = cg.ConstrainedRegressor("poisson", radius=0.8).fit(X[:100], y[:100], offset=offset[:100])
    np.testing.assert_allclose(own.coef_, alone.coef_)


def test_folds_have_their_offsets():
    X, y, offset = counts()
    y = y + offset
    settings = {"radii": [0.1, 0.5, 1.0], "cv": 3}
    own = cg.ConstrainedLassoCV(**settings).fit(X, y, offset=offset)
    plain = cg.ConstrainedLassoCV(**settings).fit(X, y - offset)
    np.testing.assert_allclose(own.mse_path_, plain.mse_path_, rtol=1e-5)
    np.testing.assert_allclose(own.coef_, plain.coef_, atol=1e-4)
    np.testing.assert_allclose(own.predict(X, offset), plain.predict(X) + offset, atol=1e-3)


@pytest.mark.parametrize("scoring", [None, "roc_auc"])
def test_folds_of_classes_have_their_offsets(scoring):
    X, y, offset = counts()
    y, offset = np.where(y > 1.0, 1, 0), 3.0 * offset
    settings = {"radii": [0.1, 1.0], "cv": 3, "scoring": scoring}
    model = cg.ConstrainedLogisticRegressionCV(**settings).fit(X, y, offset=offset)
    without = cg.ConstrainedLogisticRegressionCV(**settings).fit(X, y)
    assert not np.allclose(model.score_path_, without.score_path_)
    if scoring == "roc_auc":
        from sklearn.metrics import roc_auc_score

        expected = roc_auc_score(y, model.decision_function(X, offset))
        assert model.score(X, y, offset=offset) == pytest.approx(expected)
        return
    from sklearn.model_selection import StratifiedKFold

    train, test = next(iter(StratifiedKFold(3).split(X, y)))
    fold = cg.ConstrainedLogisticRegression(radius=1.0).fit(X[train], y[train], offset=offset[train])
    chances = fold.predict_proba(X[test], offset[test])[np.arange(test.size), y[test]]
    assert model.score_path_[1, 0] == pytest.approx(np.log(chances).mean(), rel=1e-3)


def test_batches():
    X, y, offset = counts()
    settings = {"loss": "squared", "radius": 0.8, "solver": "sfw", "fit_intercept": False, "random_state": 0}
    own = cg.ConstrainedRegressor(**settings).partial_fit(X, y, offset=offset)
    plain = cg.ConstrainedRegressor(**settings).partial_fit(X, y - offset)
    np.testing.assert_allclose(own.coef_, plain.coef_, rtol=1e-9)
    assert own.partial_fit(X, y - offset).has_offset_  # it has learnt from a batch with offsets


def test_rows_on_disk_bring_their_offsets(tmp_path):
    X, y, offset = counts()
    rows = cg.rows.convert((X, y, None, offset), tmp_path / "rows", shuffle=False, chunk_bytes=4000)
    own = cg.ConstrainedRegressor("poisson", radius=0.8).fit(rows)
    memory = cg.ConstrainedRegressor("poisson", radius=0.8).fit(X, y, offset=offset)
    np.testing.assert_allclose(own.coef_, memory.coef_, atol=2e-3)
    np.testing.assert_allclose(own.predict(rows), own.predict(X, offset), rtol=1e-12)
    np.testing.assert_allclose(own.model_.predict(rows), own.predict(X, offset), rtol=1e-12)
    chosen = cg.ConstrainedLassoCV(radii=[0.5, 1.0], cv=2).fit(rows)
    assert chosen.has_offset_


def test_one_offset_cannot_belong_to_several_scores():
    X, y, offset = counts()
    message = "an offset is one number per sample, so it needs one output or two classes"
    three = np.digitize(y, [1.0, 3.0])
    for model in (
        cg.ConstrainedClassifier(radius=1.0),
        cg.ConstrainedClassifier(radius=1.0, multi_class="multinomial"),
        cg.ConstrainedLogisticRegressionCV(radii=[1.0], cv=2),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(X, three, offset=offset)
    for how in ("separate", "joint"):
        with pytest.raises(ValueError, match=message):
            cg.ConstrainedRegressor(radius=1.0, multi_output=how).fit(X, np.c_[y, y], offset=offset)
    with pytest.raises(ValueError, match=message):
        cg.ConstrainedClassifier(radius=0.3).fit(X, three).predict(X, offset)


def test_offsets_can_be_routed():
    from sklearn import config_context
    from sklearn.model_selection import cross_val_score

    X, y, offset = counts()
    with config_context(enable_metadata_routing=True):
        model = cg.ConstrainedRegressor("poisson", radius=0.8)
        model = model.set_fit_request(offset=True).set_score_request(offset=True)
        scores = cross_val_score(model, X, y, params={"offset": offset}, cv=3)
    assert scores.mean() > 0.3


def test_offset_comes_after_the_weights_in_fit_and_last_in_predictions():
    for name in cg.__all__:
        estimator = getattr(cg, name)
        if inspect.isclass(estimator) and hasattr(estimator, "fit") and name.startswith("Constrained"):
            of_folds = ["groups"] if name.endswith("CV") else []
            of_times = ["strata"] if "Cox" in name else []
            of_counts = [] if hasattr(estimator, "decision_function") or of_times else ["exposure"]
            wanted = ["self", "X", "y", "sample_weight", "offset", *of_folds, *of_times, *of_counts]
            assert list(inspect.signature(estimator.fit).parameters) == wanted
            assert list(inspect.signature(estimator.predict).parameters) == ["self", "X", "offset", *of_counts]
