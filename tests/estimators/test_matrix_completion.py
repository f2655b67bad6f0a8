"""MatrixCompletion: scikit-learn's manners, biases, unseen rows, the choice of a radius, robustness."""

import contextlib
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import condgrad as cg
from condgrad import datasets
from condgrad.estimators import _radius_choice
from condgrad.paths import factor_walk


def data(seed=0, **options):
    options = {"noise": 0.1} | options
    return datasets.simulate_low_rank(50, 40, 2, 1200, random_state=seed, **options)


def fitted(seed=0, **options):
    entries = data(seed)
    options = {"radius": 60.0, "loss": "squared", "tol": 1e-6} | options
    return cg.MatrixCompletion(**options).fit(entries.rows, entries.cols, entries.values), entries


@pytest.mark.parametrize("biases", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_predictions_are_those_of_the_problem(biases, weighted):
    model, entries = fitted(biases=biases, weighted=weighted)
    A, B = model.factors_
    W = A @ B.T
    expected = W + model.intercept_ + model.row_bias_[:, None] + model.column_bias_
    np.testing.assert_allclose(model.predict(entries.rows, entries.cols), expected[entries.rows, entries.cols])
    error = model.predict(entries.rows, entries.cols) - entries.values
    np.testing.assert_allclose(0.5 * np.mean(error**2), model.result_.objective, rtol=1e-9)
    assert model.rank_ == A.shape[1] == np.linalg.matrix_rank(W)
    assert model.gap_ <= 1e-6
    rows, columns = np.bincount(entries.rows, minlength=50), np.bincount(entries.cols, minlength=40)
    p, q = (0.5 + 0.5 * counts / counts.mean() if weighted else np.ones(counts.size) for counts in (rows, columns))
    assert np.linalg.norm(np.sqrt(p)[:, None] * W * np.sqrt(q), "nuc") <= 60.0 * (1 + 1e-9)
    if not biases:
        assert model.intercept_ == 0.0


@pytest.mark.slow
def test_a_sparse_matrix_is_its_stored_entries():
    model, entries = fitted()
    X = scipy.sparse.csr_matrix((entries.values, (entries.rows, entries.cols)), shape=entries.shape)
    other = cg.MatrixCompletion(60.0, "squared", tol=1e-6).fit(X)
    np.testing.assert_array_equal(other.factors_[0], model.factors_[0])


@pytest.mark.slow
def test_params_clone_and_pickle():
    model, entries = fitted()
    again = clone(model)
    assert again.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        again.predict([0], [0])
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(loaded.predict(entries.rows, entries.cols), model.predict(entries.rows, entries.cols))
    assert len(pickle.dumps(model)) < 200_000  # without the data


def test_unseen_rows_and_columns_get_the_biases_and_one_warning():
    entries = data()
    kept = (entries.rows != 3) & (entries.cols != 5)
    values = entries.values + 2.0 * (entries.rows > 25) + 4.0
    model = cg.MatrixCompletion(20.0, "squared").fit(
        entries.rows[kept], entries.cols[kept], values[kept], shape=entries.shape
    )
    with pytest.warns(UserWarning, match="4 of 5 places lie in rows or columns without entries") as caught:
        p = model.predict([3, 0, 3, 10_000, 0], [0, 5, 5, 0, 0])
    assert len(caught) == 1
    np.testing.assert_allclose(p[0], model.intercept_ + model.column_bias_[0])
    np.testing.assert_allclose(p[1], model.intercept_ + model.row_bias_[0])
    np.testing.assert_allclose(p[2:4], [model.intercept_, p[0]])
    np.testing.assert_allclose(model.intercept_, values[kept].mean(), atol=0.5)


# ---- models in files ----


@pytest.mark.parametrize("biases", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_saved_model_is_the_same_model(tmp_path, biases, weighted):
    model, entries = fitted(biases=biases, weighted=weighted, radius=30.0, loss="huber")
    model.save(tmp_path / "m.npz", row_labels=[f"row {i}" for i in range(50)])
    loaded = cg.load_model(tmp_path / "m.npz")
    assert isinstance(loaded, cg.CompletionModel)
    for name, mine, theirs in zip(loaded._fields, loaded, model.model_):
        if name == "row_labels":
            assert mine == tuple(f"row {i}" for i in range(50))
        elif isinstance(mine, np.ndarray | tuple):
            for one, other in zip(mine, theirs):
                np.testing.assert_array_equal(one, other)
        else:
            assert mine == theirs, name
    expected = model.predict(entries.rows, entries.cols)
    np.testing.assert_array_equal(loaded.predict(entries.rows, entries.cols), expected)
    np.testing.assert_array_equal(loaded.predict([f"row {i}" for i in entries.rows], entries.cols), expected)
    with pytest.raises(ValueError, match="no column labels, so that a column must be a whole number from 0 on; got '"):
        loaded.predict(entries.rows, entries.cols.astype(str))  # words are no places
    assert (loaded.gap, loaded.rank, loaded.shape) == (model.gap_, model.rank_, model.shape_)
    assert repr(loaded).startswith("CompletionModel(Huber(delta=1.0) over ") and "50 x 40 of rank" in repr(loaded)
    with np.load(tmp_path / "m.npz", allow_pickle=False) as members:  # anyone can look into it
        assert set(members.files) == {"header", "A", "B", *loaded._fields[2:6]}


def test_names_that_a_model_does_not_know_are_unseen(tmp_path):
    model, _ = fitted()
    named = model.model_.labelled([f"r{i}" for i in range(50)], [f"c{j}" for j in range(40)])
    with pytest.warns(UserWarning, match="2 of 3 places lie in rows or columns without entries"):
        p = named.predict(["r1", "nobody", "r2"], ["c0", "c1", "nothing"])
    expected = model.intercept_ + model.column_bias_[1], model.intercept_ + model.row_bias_[2]
    np.testing.assert_allclose(p, [model.predict([1], [0])[0], *expected])
    with pytest.raises(ValueError, match="no row labels, so that a row must be a whole number from 0 on; got 'nobody'"):
        model.model_.predict(["nobody"], [0])
    with pytest.raises(ValueError, match="50 row labels, one per row; got 2"):
        model.save(tmp_path / "m.npz", row_labels="ab")
    with pytest.raises(ValueError, match="column labels must differ from each other; got 39 repeats"):
        model.save(tmp_path / "m.npz", column_labels=["x"] * 40)
    with pytest.raises(NotFittedError):
        cg.MatrixCompletion().save(tmp_path / "m.npz")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_fit_goes_on_from_its_checkpoint(tmp_path):
    whole, entries = fitted(tol=1e-7)
    for steps in (1, 1000):
        part = cg.MatrixCompletion(60.0, "squared", tol=1e-7, max_iter=steps)
        with contextlib.nullcontext() if steps > 1 else pytest.warns(ConvergenceWarning):
            part.fit(entries.rows, entries.cols, entries.values, checkpoint=tmp_path / "run.npz")
    np.testing.assert_array_equal(part.factors_[0], whole.factors_[0])
    assert part.gap_ == whole.gap_


# ---- the radius ----


def test_radius_none_holds_entries_out():
    entries = data()
    model = cg.MatrixCompletion(loss="squared", random_state=0).fit(entries.rows, entries.cols, entries.values)
    truth = (entries.U @ entries.V.T).ravel()
    everywhere = np.divmod(np.arange(truth.size), 40)
    assert np.sqrt(np.mean((model.predict(*everywhere) - truth) ** 2)) < 0.35
    assert 20.0 < model.radius_ < 200.0
    again = cg.MatrixCompletion(loss="squared", random_state=0).fit(entries.rows, entries.cols, entries.values)
    assert again.radius_ == model.radius_


@pytest.mark.parametrize("weighted", [False, pytest.param(True, marks=pytest.mark.campaign)])
def test_the_chosen_radius_is_that_of_a_fine_search(weighted):
    """A search with every radius solved accurately on the same held-out entries; neighbours differ by sqrt(2)."""
    entries = datasets.simulate_low_rank(200, 190, 2, 3700, noise=0.5, random_state=3)
    chosen = cg.MatrixCompletion(loss="squared", weighted=weighted, random_state=0)
    chosen.fit(entries.rows, entries.cols, entries.values)
    problem, _ = chosen._problem(entries.rows, entries.cols, entries.values, None, None)
    held = _radius_choice.held_out(problem.n_samples, 10, 0)[0]
    part, losses = problem.of_entries(held, cg.constraints.NuclearBall(1.0)), {}
    for radius in chosen.radius_ * 2.0 ** np.arange(-1.5, 1.75, 0.5):
        train = problem.of_entries(~held, cg.constraints.NuclearBall(1.0))
        train = train.over(chosen._ball(train, radius))
        result = cg.minimize(train, tol=1e-3 * train.loss_scale())
        losses[radius] = part.losses_at(result.w, result.intercept).mean()
    best = min(losses, key=losses.get)
    assert 0.45 < chosen.radius_ / best < 2.2  # at most two neighbours apart
    assert losses[chosen.radius_] < 1.05 * losses[best]


@pytest.mark.parametrize(
    ("changes", "n_tried", "chosen"),
    [
        ([-1.0, -1.0, 1.0, 1.0], 3, 2),  # clearly worse: the search ends at once
        ([-1.0, 0.0, 0.0, -5.0], 3, 1),  # no better twice
        ([-1.0, 0.0, -1.0, 0.0, 0.0], 5, 3),  # better after all
    ],
)
def test_the_search_ends_when_larger_radii_do_not_predict_better(monkeypatch, changes, n_tried, chosen):
    noise = np.random.default_rng(0).standard_normal(120)

    class Fake:
        def __init__(self, *given):
            self.level, self.n_fits = 10.0 + 0.0 * noise, 0
            self.w, self.biases = None, None

        def to(self, radius, deadline):
            if self.n_fits:
                self.level = self.level + changes[self.n_fits - 1] + 0.5 * noise * self.n_fits
            self.n_fits += 1

    walk = Fake()
    monkeypatch.setattr(_radius_choice, "FactorWalk", lambda *given: walk)
    monkeypatch.setattr(cg.CompletionProblem, "losses_at", lambda *given: walk.level)
    entries = data()
    ball = cg.constraints.NuclearBall(1.0)
    problem = cg.CompletionProblem(entries.rows, entries.cols, entries.values, cg.losses.Squared(), ball)
    choice = _radius_choice.RadiusChoice(problem, lambda *given: ball, _radius_choice.held_out(1200, 10, 0)[:1])
    choice.try_growing(10.0)
    assert len(choice.radii) == n_tried + 1
    assert choice.best_radius == choice.radii[chosen]
    np.testing.assert_allclose(np.diff(np.log2(choice.radii)), 0.5)


def test_a_walk_goes_through_radii_between_distant_ones(monkeypatch):
    entries, refits, real = data(), [], factor_walk.refit
    problem = cg.CompletionProblem(
        entries.rows, entries.cols, entries.values, cg.losses.Squared(), cg.constraints.NuclearBall(1.0), biases=True
    )

    def refit(problem, *given):
        refits.append(problem.constraint.radius)
        return real(problem, *given)

    monkeypatch.setattr(factor_walk, "refit", refit)
    walk = factor_walk.FactorWalk(problem, cg.constraints.NuclearBall)
    for radius in (5.0, 5.5, 20.0):
        walk.to(radius)
        assert walk.problem.constraint.violation(walk.w) <= 1e-9 * radius
    np.testing.assert_allclose(refits[:2], [5.0, 5.5])
    assert refits[-1] == 20.0 and (np.diff(np.log2(refits)) <= 0.5 + 1e-9).all()
    best = cg.minimize(problem.over(cg.constraints.NuclearBall(20.0)), tol=1e-6)
    assert walk.problem.objective_at(walk.Z, walk.biases) < best.objective + 0.02 * problem.loss_scale()


def test_the_chosen_fit_is_certified_and_repeats_itself():
    entries = datasets.simulate_low_rank(120, 110, 2, 1300, noise=0.3, random_state=4)
    first, second = (
        cg.MatrixCompletion(random_state=0).fit(entries.rows, entries.cols, entries.values) for _ in range(2)
    )
    assert first.result_.status is cg.Status.CONVERGED and first.radius_ == second.radius_
    np.testing.assert_array_equal(first.factors_[0], second.factors_[0])
    cold = cg.MatrixCompletion(first.radius_, tol=1e-4).fit(entries.rows, entries.cols, entries.values)
    assert first.result_.objective <= cold.result_.objective + first.gap_
    assert cold.result_.lower_bound <= first.result_.objective


def test_a_random_state_of_scikit_learn_draws_the_folds():
    entries = data()
    options = {"radii": [20.0, 40.0], "loss": "squared", "cv": 2, "tol": 1e-2}
    first, again = (
        cg.MatrixCompletionCV(random_state=np.random.RandomState(3), **options).fit(
            entries.rows, entries.cols, entries.values
        )
        for _ in range(2)
    )
    np.testing.assert_array_equal(first.scores_, again.scores_)


def test_a_fold_without_weight_is_refused():
    entries = data()
    weight = np.zeros(1200)
    weight[0] = 1.0
    with pytest.raises(ValueError, match="a fold has no entries with a positive sample_weight"):
        cg.MatrixCompletion().fit(entries.rows, entries.cols, entries.values, sample_weight=weight)


def test_cross_validation_picks_the_radius_with_the_best_scores():
    entries = data(noise=0.6)
    radii = [5.0, 30.0, 45.0, 300.0]
    model = cg.MatrixCompletionCV(radii, "squared", cv=3, tol=1e-3, random_state=0)
    model.fit(entries.rows, entries.cols, entries.values)
    assert model.scores_.shape == (4, 3)
    assert model.radius_ == radii[model.scores_.mean(axis=1).argmax()]
    assert model.radius_ in (30.0, 45.0)
    held = np.random.default_rng(0).permutation(1200) % 3 == 0
    order = np.lexsort((entries.cols, entries.rows))
    rows, cols, values = (part[order] for part in (entries.rows, entries.cols, entries.values))
    part = cg.MatrixCompletion(model.radius_, "squared", tol=1e-5)
    part.fit(rows[~held], cols[~held], values[~held], shape=entries.shape)
    loss = 0.5 * np.mean((part.predict(rows[held], cols[held]) - values[held]) ** 2)
    np.testing.assert_allclose(-model.scores_[radii.index(model.radius_), 0], loss, rtol=0.05)
    thrifty = cg.MatrixCompletionCV(radii, "squared", cv=3, selection="one-standard-error", random_state=0)
    assert thrifty.fit(entries.rows, entries.cols, entries.values).radius_ <= model.radius_


def test_gross_errors_lead_the_squared_loss_astray_and_not_huber():
    entries = data(outliers=0.05, outlier_size=10.0)
    truth = (entries.U @ entries.V.T).ravel()
    everywhere = np.divmod(np.arange(truth.size), 40)
    error = {}
    for loss in ("squared", cg.losses.Huber(0.3)):
        model = cg.MatrixCompletion(60.0, loss).fit(entries.rows, entries.cols, entries.values)
        error[str(loss)] = np.sqrt(np.mean((model.predict(*everywhere) - truth) ** 2))
    assert error["Huber(delta=0.3)"] < 0.5 * error["squared"]


@pytest.mark.slow
def test_warm_start_and_weights():
    model, entries = fitted(warm_start=True)
    first = model.n_iter_
    model.set_params(radius=61.0).fit(entries.rows, entries.cols, entries.values)
    assert model.n_iter_ < first
    weight = np.where(np.arange(1200) < 600, 1.0, 0.0)
    half = cg.MatrixCompletion(40.0, "squared", tol=1e-7).fit(
        entries.rows, entries.cols, entries.values, sample_weight=weight
    )
    alone = cg.MatrixCompletion(40.0, "squared", tol=1e-7).fit(
        entries.rows[:600], entries.cols[:600], entries.values[:600], shape=entries.shape
    )
    np.testing.assert_allclose(half.result_.objective, alone.result_.objective, rtol=1e-4)


def test_a_short_run_warns():
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        fitted(max_iter=1, tol=1e-9)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda m, e: m.fit(e.rows), "fit takes rows, columns and values, or a scipy sparse matrix"),
        (lambda m, e: m.fit(scipy.sparse.eye(3), [0], [1.0]), "got both"),
        (lambda m, e: m.set_params(radius=-1.0).fit(e.rows, e.cols, e.values), "radius must be a positive number"),
        (lambda m, e: m.set_params(loss="hubber").fit(e.rows, e.cols, e.values), "huber"),
        (lambda m, e: m.fit(e.rows, e.cols, e.values).predict([-1], [0]), "rows must be whole numbers from 0 on"),
        (lambda m, e: m.fit(e.rows, e.cols, e.values).predict([1, 2], [0]), "must have one length; got 2 and 1"),
        (lambda m, e: cg.MatrixCompletionCV(cv=1).fit(e.rows, e.cols, e.values), "cv must be a number of folds"),
        (lambda m, e: cg.MatrixCompletionCV([-1.0]).fit(e.rows, e.cols, e.values), "radii must be finite and positive"),
        (lambda m, e: cg.MatrixCompletion().fit([0], [0], [1.0]), "too few for 10 folds; give a radius"),
    ],
)
def test_bad_input_gets_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call(cg.MatrixCompletion(10.0), data())


KINDS = {
    "words": lambda k: f"id {k}",
    "digits": lambda k: str(2 * k + 7),
    "tuples": lambda k: ("a", k),
    "dates": lambda k: np.datetime64("2020-01-01") + np.timedelta64(k, "D"),
    "several kinds": lambda k: k if k % 2 else str(k),
    "floats": lambda k: k + 0.5,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", [list, pd.Series])
def test_ids_of_any_kind_are_learned(kind, form, tmp_path):
    rng = np.random.default_rng(0)
    rows, columns = np.divmod(rng.permutation(120)[:80], 10)
    values = np.sin(rows) * columns + 0.0
    places = cg.MatrixCompletion(radius=5.0).fit(rows, columns, values)
    name = KINDS[kind]
    ids = form([name(k) for k in rows.tolist()])
    model = cg.MatrixCompletion(radius=5.0).fit(ids, columns, values)  # one side alone, the other by places
    assert model.shape_ == places.shape_ and len(model.ids_[0]) == 12 and model.ids_[1] is None
    np.testing.assert_allclose(model.predict(ids, columns), places.predict(rows, columns), atol=0.05)
    with pytest.warns(UserWarning, match="1 of 2 places"):
        p = model.predict([name(3), name(99)], [2, 2])
    assert p[1] == pytest.approx(model.intercept_ + model.column_bias_[2])
    if kind == "dates":
        with pytest.raises(ValueError, match="holds ids that are words, numbers or tuples of these"):
            model.save(tmp_path / "m.npz")
    else:
        model.save(tmp_path / "m.npz")
        loaded = cg.load_model(tmp_path / "m.npz")
        assert loaded.row_labels == model.ids_[0]
        np.testing.assert_array_equal(loaded.predict(ids, columns), model.predict(ids, columns))


def test_words_are_no_places_and_places_no_words():
    rows, columns = np.divmod(np.random.default_rng(0).permutation(80)[:60], 8)
    values = np.sin(rows * columns)
    numbered = cg.MatrixCompletion(radius=2.0).fit(rows, columns, values)
    with pytest.raises(ValueError, match="a row must be a whole number from 0 on; got '3'"):
        numbered.predict(["3"], [4])
    named = cg.MatrixCompletion(radius=2.0).fit(rows.astype(str), columns.astype(str), values)
    assert named.ids_[1] == tuple("01234567")
    with pytest.warns(UserWarning, match="1 of 1 places"):  # 3 is not "3"
        named.predict([3], ["4"])
    np.testing.assert_allclose(named.predict(["3"], ["4"]), numbered.predict([3], [4]), atol=0.05)


def test_ids_that_do_not_serve_get_a_sentence():
    model = cg.MatrixCompletion(radius=1.0)
    for ids, sentence in [
        ([[1], [2]], "ids that can be hashed"),
        (["a", float("nan")], "rows must not hold nan"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            model.fit(ids, [0, 1], [1.0, 2.0])
    with pytest.raises(ValueError, match="shape asks for 3 rows, but there are 2 row ids"):
        model.fit(["a", "b"], [0, 1], [1.0, 2.0], shape=(3, 2))


def test_a_warm_start_needs_the_same_ids():
    rows, columns = np.divmod(np.random.default_rng(0).permutation(80)[:60], 8)
    values = np.sin(rows * columns + 1.0)
    model = cg.MatrixCompletion(radius=10.0, tol=1e-5, warm_start=True).fit(rows.astype(str), columns, values)
    cold = model.n_iter_
    assert model.fit(rows.astype(str), columns, values).n_iter_ == 1 < cold
    assert model.fit([f"new {k}" for k in rows], columns, values).n_iter_ > 1


@pytest.mark.parametrize("shape", [(9, 1), (1, 9), (1, 1)])
@pytest.mark.parametrize("biases", [True, False])
def test_one_column_or_one_row(shape, biases):
    rows, columns = np.divmod(np.arange(shape[0] * shape[1]), shape[1])
    for seed in range(4):
        values = np.random.default_rng(seed).standard_normal(rows.size)
        problem = cg.CompletionProblem(
            rows, columns, values, cg.losses.Huber(0.5), cg.constraints.NuclearBall(0.7), biases=biases
        )
        result = cg.minimize(problem, tol=1e-9)
        assert result.gap <= 1e-9 or result.status is cg.Status.STALLED
        if not biases:  # the ball of vectors
            X = np.eye(rows.size)
            same = cg.Problem(X, values, cg.losses.Huber(0.5), cg.constraints.L2Ball(0.7))
            assert result.objective == pytest.approx(cg.minimize(same, tol=1e-10).objective, abs=1e-8)
