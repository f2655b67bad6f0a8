"""partial_fit with an intercept: batches lead to the model of all data, and its intercept is not that of a batch."""

import pickle

import numpy as np
import pytest
import scipy.sparse

import condgrad as cg

N = 900
RNG = np.random.default_rng(3)
X = RNG.standard_normal((N, 8)) + 2.0  # means that an intercept must make up for
SCORE = X[:, 0] - 0.8 * X[:, 3] - 1.0
Y = {
    "squared": SCORE + 7.0 + 0.5 * RNG.standard_normal(N),
    "huber": SCORE - 30.0 + 0.5 * RNG.standard_normal(N),
    "poisson": RNG.poisson(np.exp(0.5 * SCORE)).astype(float),
    "logistic": np.where(RNG.random(N) < 1.0 / (1.0 + np.exp(-SCORE)), 1.0, -1.0),
}
RADIUS = {"squared": 1.2, "huber": 1.2, "poisson": 0.6, "logistic": 0.8}


def made(loss, **settings):
    make = cg.ConstrainedClassifier if loss == "logistic" else cg.ConstrainedRegressor
    return make(loss, radius=RADIUS[loss], random_state=0, **settings)


def passes(model, data, y, n_passes, size=60, **of_samples):
    known = {"classes": np.unique(y)} if isinstance(model, cg.ConstrainedClassifier) else {}
    for _ in range(n_passes):
        for k in range(0, N, size):
            part = slice(k, k + size)
            own = {name: values[part] for name, values in of_samples.items()}
            model.partial_fit(data[part], y[part], **known, **own)
    return model


def excess(model, loss, data, y, offset=0.0, weight=None):
    """Return the mean loss above the minimum, as a share of what there was to gain."""
    problem = cg.Problem(
        data, y, cg.losses.by_name(loss), cg.constraints.L1Ball(RADIUS[loss]), intercept=True, sample_weight=weight,
        offset=np.broadcast_to(offset, y.shape),
    )  # fmt: skip
    best = cg.minimize(problem, tol=1e-9).objective
    p = data @ np.ravel(model.coef_) + np.ravel(model.intercept_)[0] + offset
    value = np.average(problem.loss.value(p, y), weights=weight)
    return (value - best) / (problem.null_objective() - best)


@pytest.mark.parametrize("loss", list(Y))
def test_repeated_passes_converge_to_the_model_of_all_data(loss):
    y = Y[loss]
    model = passes(made(loss, solver="sfw"), X, y, 1)
    early = excess(model, loss, X, y)
    passes(model, X, y, 15)
    late = excess(model, loss, X, y)
    assert early < 0.2
    assert late < 0.01
    full = made(loss, tol=1e-8).fit(X, y)
    assert np.ravel(model.intercept_)[0] == pytest.approx(np.ravel(full.intercept_)[0], abs=0.25)
    assert np.abs(np.ravel(model.coef_) - np.ravel(full.coef_)).max() < 0.15


@pytest.mark.parametrize("solver", ["saga", "mokhtari", "lu-freund", "one-sample"])
def test_all_solvers_of_batches(solver):
    model = passes(made("squared", solver=solver), X, Y["squared"], 8)
    assert excess(model, "squared", X, Y["squared"]) < (0.1 if solver == "mokhtari" else 0.01)


@pytest.mark.parametrize("convert", [scipy.sparse.csr_matrix, lambda data: data.astype(np.float32)], ids=["csr", "32"])
def test_other_data_lead_to_the_same_model(convert):
    """Columns that store every entry are centred in sparse data, too."""
    y = Y["squared"]
    model, other = (passes(made("squared", solver="sfw"), data, y, 2) for data in (X, convert(X)))
    np.testing.assert_allclose(other.coef_, model.coef_, atol=1e-4)
    assert other.intercept_ == pytest.approx(model.intercept_, abs=1e-3)


def test_sparse_columns_stay_as_they_are():
    data = scipy.sparse.csr_matrix(np.where(RNG.random(X.shape) < 0.3, X, 0.0))
    y = data @ np.array([1.0, 0, 0, -0.8, 0, 0, 0, 0]) + 4.0 + 0.3 * RNG.standard_normal(N)
    model = passes(made("squared", solver="sfw"), data, y, 15)
    assert excess(model, "squared", data, y) < 0.01


def test_offsets_and_weights():
    offset, weight = np.linspace(-1.0, 1.0, N)[RNG.permutation(N)], RNG.uniform(0.5, 2.0, N)
    y = RNG.poisson(np.exp(0.5 * SCORE + offset)).astype(float)
    model = passes(made("poisson", solver="sfw"), X, y, 12, offset=offset, sample_weight=weight)
    assert excess(model, "poisson", X, y, offset, weight) < 0.02
    assert model.has_offset_


def test_the_gap_is_that_of_the_batch_with_this_intercept():
    model = passes(made("logistic", solver="sfw"), X, Y["logistic"], 1)
    rows = slice(N - 60, N)
    known = np.full(60, model.intercept_[0])
    part = cg.Problem(X[rows], Y["logistic"][rows], cg.losses.Logistic(), cg.constraints.L1Ball(0.8), offset=known)
    w = model.coef_[0]
    assert np.abs(w).sum() <= 0.8 + 1e-9
    assert model.gap_ + model.rounding_ == pytest.approx(part.gap(w), abs=1e-9)
    assert model.result_.objective == pytest.approx(part.objective(w), rel=1e-9)


def test_a_first_batch_of_one_class_and_of_zeros():
    order = np.argsort(Y["logistic"], kind="stable")
    model = made("logistic", solver="sfw")
    for k in range(0, N, 60):
        part = order[k : k + 60]
        model.partial_fit(X[part], Y["logistic"][part], classes=[-1.0, 1.0])
        assert np.isfinite(model.intercept_).all()
    assert excess(passes(model, X, Y["logistic"], 12), "logistic", X, Y["logistic"]) < 0.05
    counts = made("poisson", solver="sfw").partial_fit(X[:50], np.zeros(50))
    assert np.isfinite(counts.intercept_)
    assert excess(passes(counts, X, Y["poisson"], 12), "poisson", X, Y["poisson"]) < 0.05


def test_fit_then_batches_then_fit():
    y = Y["squared"]
    model = made("squared", solver="sfw", tol=1e-3).fit(X, y)
    near, intercept = model.coef_.copy(), model.intercept_
    model.partial_fit(X[:60], y[:60])
    assert np.abs(model.coef_ - near).max() < 0.3
    assert model.intercept_ == pytest.approx(intercept, abs=0.7)
    assert excess(model, "squared", X, y) < 0.05
    again = model.fit(X, y)
    np.testing.assert_array_equal(again.coef_, near)


def test_outputs_and_classes_have_their_own_intercepts():
    outputs = np.column_stack([Y["squared"], 10.0 - Y["squared"]])
    model = cg.ConstrainedRegressor(radius=1.2, solver="sfw", random_state=0)
    passes(model, X, outputs, 6)
    full = cg.ConstrainedRegressor(radius=1.2).fit(X, outputs)
    np.testing.assert_allclose(model.intercept_, full.intercept_, atol=0.3)
    labels = np.array(["a", "b", "c"])[np.digitize(SCORE, [-0.5, 0.8])]
    rest = passes(cg.ConstrainedClassifier(radius=1.0, solver="sfw", random_state=0), X, labels, 6)
    whole = cg.ConstrainedClassifier(radius=1.0).fit(X, labels)
    assert (rest.predict(X) == whole.predict(X)).mean() > 0.9


def test_a_model_goes_on_after_pickling():
    y = Y["squared"]
    model = made("squared", solver="sfw").partial_fit(X[:300], y[:300])
    other = pickle.loads(pickle.dumps(model))
    for each in (model, other):
        each.partial_fit(X[300:], y[300:])
    np.testing.assert_array_equal(model.coef_, other.coef_)
    assert model.intercept_ == other.intercept_


def test_what_it_refuses(tmp_path):
    cg.rows.convert((X, Y["squared"]), tmp_path / "rows")
    with pytest.raises(ValueError, match="takes batches in memory"):
        made("squared", solver="sfw").partial_fit(cg.rows.open(tmp_path / "rows"), None)
    with pytest.raises(ValueError, match="one output at a time"):
        made("squared", solver="sfw", multi_output="joint").partial_fit(X, np.column_stack([Y["squared"]] * 2))
    with pytest.raises(ValueError, match="not convex"):
        cg.ConstrainedRegressor("welsch", radius=1.0, solver="sfw").partial_fit(X, Y["squared"])
