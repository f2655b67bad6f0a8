"""Rows on disk: looks, certificates and runs as in memory; few reads; Ctrl-C, checkpoints and damaged files."""

import itertools
import os
import signal
import threading

import numpy as np
import pytest
import scipy.sparse

import condgrad as cg
from condgrad.linalg.matrix import Matrix
from condgrad.problems.rows.disk import DiskRows
from condgrad.problems.rows.memory import MemoryRows
from condgrad.problems.tilted import TiltedProblem
from condgrad.storage.stored_rows import StoredRows
from condgrad.testing import check_problem, check_rows

CHUNK = 2**15  # small chunks, so that there are several


@pytest.fixture
def stored(tmp_path):
    """A function that writes samples to a new folder and opens it."""
    numbers = itertools.count()
    return lambda *data, **settings: cg.rows.convert(
        data, tmp_path / str(next(numbers)), **{"chunk_bytes": CHUNK, "shuffle": False} | settings
    )


@pytest.fixture
def clicks(stored):
    """Logistic data with an intercept, in memory and on disk."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6000, 20)).astype(np.float32)
    y = np.where(X @ np.r_[2.0, -1.0, 0.5, np.zeros(17)] + 0.7 + rng.logistic(size=6000) > 0.0, 1.0, -1.0)
    return X, y, stored(X, y)


def logistic(X, y=None, radius=3.0, **settings):
    return cg.Problem(X, y, cg.losses.Logistic(), cg.constraints.L1Ball(radius), **settings)


@pytest.mark.slow
def test_rows_on_disk_fulfil_the_contract(stored):
    check_rows(lambda X, samples, has_intercept: DiskRows(stored(X, samples.y, samples.weight), samples, has_intercept))


@pytest.mark.slow
def test_rows_in_memory_fulfil_the_contract():
    check_rows(lambda X, samples, has_intercept: MemoryRows(Matrix(X), samples))


def test_a_problem_on_disk_is_a_problem(stored):
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((400, 4)), rng.standard_normal(400)
    problem = cg.Problem(stored(X, y, chunk_bytes=2**12), loss=cg.losses.Squared(), constraint=cg.constraints.L1Ball(1))
    with pytest.warns(UserWarning, match="'corrective' needs 3 to 10 reads in all"):
        check_problem(problem)


@pytest.mark.parametrize("intercept", [False, True])
def test_certificates_and_solutions_are_those_in_memory(clicks, intercept):
    X, y, rows = clicks
    best = cg.minimize(logistic(X, y, intercept=intercept), tol=1e-10)
    result = cg.minimize(logistic(rows, intercept=intercept), tol=1e-8)
    assert result.status.name == "CONVERGED"
    assert result.objective - best.objective <= result.gap + result.rounding
    assert result.lower_bound <= best.objective
    assert result.intercept == pytest.approx(best.intercept, abs=1e-4)
    assert 1 <= result.n_reads <= 7


def test_reads_are_few_and_counted(clicks):
    rows = clicks[2]
    for relative_tol, most in ((1e-4, 4), (1e-6, 6)):
        before = rows.n_reads
        result = cg.minimize(logistic(rows), tol=0.0, relative_tol=relative_tol)
        assert result.n_reads == rows.n_reads - before <= most
    assert cg.minimize(logistic(*clicks[:2])).n_reads == 0.0


def test_guessed_intercepts_give_true_certificates(clicks):
    X, y, rows = clicks
    best = cg.minimize(logistic(X, y, intercept=True), tol=1e-11)
    problem = logistic(rows, intercept=True)
    for error in (0.0, 1e-6, 1e-3, 0.3, -2.0):
        look = problem.look_with(best.w, best.intercept + error)
        assert look.evaluation.lower_bound <= best.objective
        assert look.objective - best.objective <= look.gap + look.evaluation.rounding
        assert abs(error) > 1e-5 or look.gap <= 1e-8


def test_losses_without_smooth_curvature_guess_too(stored):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((3000, 8))
    y = X[:, 0] + rng.standard_t(2, 3000) + 5.0
    args = {"loss": cg.losses.Huber(), "constraint": cg.constraints.L1Ball(0.7), "intercept": True}
    best = cg.minimize(cg.Problem(X, y, **args), tol=1e-10)
    result = cg.minimize(cg.Problem(stored(X, y), **args), tol=1e-7)
    assert result.objective - best.objective <= result.gap + result.rounding
    assert result.status.name == "CONVERGED"


@pytest.mark.parametrize(
    "constraint",
    [
        cg.constraints.Simplex(2.0),
        cg.constraints.GroupBall(np.repeat(np.arange(5), 4), 1.0),
        cg.constraints.L2Ball(1.0),
        cg.constraints.Box(-0.2, 0.3),
        cg.constraints.KSparsePolytope(3, 0.5),
    ],
    ids=repr,
)
def test_other_sets_on_disk(clicks, constraint):
    X, y, rows = clicks
    loss = cg.losses.Logistic()
    best = cg.minimize(cg.Problem(X, y, loss, constraint), tol=1e-9)
    result = cg.minimize(cg.Problem(rows, loss=loss, constraint=constraint), tol=1e-7)
    assert result.status.name == "CONVERGED"
    assert abs(result.objective - best.objective) <= 1.1e-7


def test_l2_and_weights_on_disk(stored):
    rng = np.random.default_rng(3)
    X = scipy.sparse.random(3000, 50, density=0.2, format="csr", random_state=rng)
    y, weight = rng.standard_normal(3000), rng.uniform(0.0, 3.0, 3000)
    args = {"loss": cg.losses.Squared(), "constraint": cg.constraints.L1Ball(0.5), "l2": 0.1, "intercept": True}
    best = cg.minimize(cg.Problem(X, y, sample_weight=weight, **args), tol=1e-10)
    result = cg.minimize(cg.Problem(stored(X, y, weight), **args), tol=1e-7)
    assert abs(result.objective - best.objective) <= 1.1e-7


def test_large_means_cost_no_digits(stored):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((3000, 5)) + np.array([0.0, 1e7, 0.0, -3e6, 0.0])
    y = X[:, 1] - 1e7 + rng.standard_normal(3000)
    args = {"loss": cg.losses.Squared(), "constraint": cg.constraints.L1Ball(0.5), "intercept": True}
    best = cg.minimize(cg.Problem(X, y, **args), tol=1e-9)
    result = cg.minimize(cg.Problem(stored(X, y), **args), tol=1e-7)
    assert result.status.name == "CONVERGED"
    assert abs(result.objective - best.objective) <= 1.1e-7


def test_codes_of_categories_are_sparse_rows(stored):
    """One-hot data give the looks of the CSR matrix that they stand for."""
    rng = np.random.default_rng(5)
    codes = np.minimum(rng.exponential(20.0, (3000, 4)).astype(int), 99)
    firsts = np.arange(4) * 100
    ends = np.arange(0, 12001, 4)
    X = scipy.sparse.csr_matrix((np.ones(12000), (codes + firsts).ravel(), ends), shape=(3000, 400))
    y = np.where(codes[:, 0] + 10 * rng.standard_normal(3000) > 15, 1.0, -1.0)
    rows = stored(X, y)
    known, problem = logistic(X, y, 10.0, intercept=True), logistic(rows, radius=10.0, intercept=True)
    w = rng.standard_normal(400) / 100
    assert problem.look(w).gradient == pytest.approx(known.look(w).gradient, abs=1e-13)
    result = cg.minimize(problem, tol=1e-6)
    assert result.objective <= cg.minimize(known, tol=1e-9).objective + 1.1e-6


def test_unshuffled_rows_need_more_reads_but_are_right(stored):
    """The head of each chunk is unlike the rest: steps on the part in memory fail, and Taylor models take over."""
    rng = np.random.default_rng(6)
    X = rng.standard_normal((4000, 10))
    y = X[:, 0] + 0.1 * rng.standard_normal(4000)
    for chunk in range(4):
        X[1000 * chunk : 1000 * chunk + 120] *= 0.01
    args = {"loss": cg.losses.Squared(), "constraint": cg.constraints.L1Ball(0.5)}
    best = cg.minimize(cg.Problem(X, y, **args), tol=1e-10)
    rows = stored(X, y, chunk_bytes=80_000)
    result = cg.minimize(cg.Problem(rows, **args), tol=1e-7)
    assert result.status.name == "CONVERGED"
    assert result.objective - best.objective <= 1.1e-7


def test_a_tilted_problem_has_the_gradient_of_all_samples(clicks):
    rows = clicks[2]
    problem = logistic(rows)
    part = problem.largest_part()
    w = np.full(20, 0.05)
    tilted = TiltedProblem(part, problem.gradient(w) - part.gradient(w))
    assert tilted.look(w).gradient == pytest.approx(problem.gradient(w), abs=1e-15)
    assert tilted.look(w).gap == pytest.approx(problem.gap(w), abs=1e-14)


def test_a_run_resumes_from_its_checkpoint(clicks, tmp_path):
    rows, path = clicks[2], tmp_path / "run.ckpt"
    problem = logistic(rows, intercept=True)
    whole = cg.minimize(problem, tol=1e-7)
    for max_steps in (1, 3, whole.n_steps - 1):
        cg.minimize(problem, tol=1e-7, max_steps=max_steps, checkpoint=path)
        again = cg.minimize(logistic(StoredRows.of_folder(rows.folder), intercept=True), tol=1e-7, checkpoint=path)
        assert np.array_equal(again.w, whole.w)
        assert again.gap == whole.gap
        path.unlink()


def test_other_data_are_another_problem(clicks, stored):
    X, y, rows = clicks
    assert logistic(rows).fingerprint() == logistic(StoredRows.of_folder(rows.folder)).fingerprint()
    X = X.copy()
    X[0, 0] += 1.0
    assert logistic(rows).fingerprint() != logistic(stored(X, y)).fingerprint()


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
@pytest.mark.parametrize("at_read", [2, 4])
def test_ctrl_c_within_a_pass_returns_the_best_iterate(clicks, monkeypatch, at_read):
    """The pass is given up after a chunk; the result is that of the last pass, or has no certificate yet."""
    rows = clicks[2]
    chunks = StoredRows.chunks

    def interrupt(self, share=1.0, order=None):
        for chunk in chunks(self, share, order):
            if share == 1.0 and self.n_reads > at_read - 1 and chunk.first > 0:
                signal.raise_signal(signal.SIGINT)
            yield chunk

    problem = logistic(rows)
    monkeypatch.setattr(StoredRows, "chunks", interrupt)
    result = cg.minimize(problem, tol=0.0, relative_tol=1e-12)
    assert result.status.name == "INTERRUPTED"
    assert problem.constraint.violation(result.w) <= 1e-12
    assert result.n_reads < at_read
    assert np.isfinite(result.gap) == (at_read > 1)
    assert not [thread for thread in threading.enumerate() if "condgrad-reader" in thread.name]


def test_a_damaged_chunk_is_an_error_that_names_it(clicks):
    rows = clicks[2]
    path = next(rows.folder.glob("*00002*X.npy"))
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    with pytest.raises(OSError, match=r"00002.*damaged: its checksum .* convert the data again"):
        cg.minimize(logistic(StoredRows.of_folder(rows.folder)))
    assert not [thread for thread in threading.enumerate() if "condgrad-reader" in thread.name]


def test_stochastic_solvers_say_why_not(clicks):
    with pytest.raises(TypeError, match=r"SVRF requires .*its rows are not in memory.* 'corrective'"):
        cg.minimize(logistic(clicks[2]), "svrf")


def test_missing_targets_are_one_sentence(stored):
    rows = stored(np.ones((50, 2)) * np.arange(50)[:, None])
    with pytest.raises(ValueError, match="has no targets; pass y"):
        logistic(rows)
    y = np.where(np.arange(50) > 20, 1.0, -1.0)
    assert logistic(rows, y).objective(np.zeros(2)) == pytest.approx(np.log(2.0))
    with pytest.raises(TypeError, match="y is missing"):
        logistic(np.ones((3, 2)))
    with pytest.raises(TypeError, match="requires a loss"):
        cg.Problem(np.ones((3, 2)), np.ones(3))


def test_estimators_take_rows(clicks):
    X, y, rows = clicks
    known = cg.ConstrainedLogisticRegression(radius=3.0).fit(X, y)
    model = cg.ConstrainedLogisticRegression(radius=3.0).fit(rows)
    assert model.coef_ == pytest.approx(known.coef_, abs=2e-3)
    assert np.array_equal(model.predict(rows), model.predict(X))
    assert model.predict_proba(rows) == pytest.approx(model.predict_proba(X), abs=1e-6)
    assert model.model_.decide(rows) == pytest.approx(model.decision_function(X), abs=1e-5)
    assert cg.ConstrainedLogisticRegression().fit(rows).radius_ > 0.0
    with pytest.raises(ValueError, match="features"):
        known.predict(cg.rows.convert(X[:, :3], rows.folder.parent / "narrow"))


def test_cross_validation_chooses_on_a_sample(clicks):
    X, y, rows = clicks
    settings = {"radii": [0.1, 1.0, 3.0], "cv": 3}
    for estimator in (cg.ConstrainedLogisticRegressionCV(**settings), cg.ConstrainedLassoCV(**settings)):
        model = estimator.fit(rows)
        assert model.radius_ in settings["radii"]
        assert model.result_.n_reads >= 1.0
        assert model.score(X, y) > 0.2


def test_joint_problems_refuse_rows(clicks):
    X, _, _ = clicks
    rows = cg.rows.convert((X[:300], np.arange(300.0) % 3), clicks[2].folder.parent / "three", chunk_bytes=CHUNK)
    with pytest.raises(ValueError, match="multi_class='ovr'"):
        cg.ConstrainedLogisticRegression(radius=1.0, multi_class="multinomial").fit(rows)
    assert cg.ConstrainedLogisticRegression(radius=1.0).fit(rows).coef_.shape == (3, 20)


@pytest.mark.parametrize("loss", [cg.losses.Huber(), cg.losses.Pinball(0.5), cg.losses.Logistic(), cg.losses.Squared()])
def test_certificates_over_sets_without_zero(stored, loss):
    """The range of intercepts must not assume that the predictions 0 are allowed."""
    X = np.r_[np.full(51, 1000.0), np.zeros(49)][:, None]
    y = np.zeros(100) if loss.classes is None else np.where(np.arange(100) % 3 == 0, 1.0, -1.0)
    args = {"loss": loss, "constraint": cg.constraints.Box(1.0, 1.0 + 1e-9), "intercept": True}
    optimum = cg.Problem(X, y, **args).objective([1.0])
    problem = cg.Problem(stored(X, y), **args)
    for b in (-1.0, 0.0, -1000.0):
        assert problem.look_with(np.ones(1), b).evaluation.lower_bound <= optimum + 1e-9 * abs(optimum)


def test_certificates_with_a_penalty_from_a_warm_start(stored):
    """With l2 the loss of the optimum may be larger than that of the start."""
    X = np.r_[np.full(51, 1000.0), np.zeros(49)][:, None]
    args = {"loss": cg.losses.Huber(), "constraint": cg.constraints.Box(0.0, 1.0), "intercept": True, "l2": 1e4}
    optimum = cg.minimize(cg.Problem(X, X[:, 0], **args), tol=1e-9).objective
    problem = cg.Problem(stored(X, X[:, 0]), **args)
    problem.look(np.ones(1))
    for b in (2.0, -700.0, 900.0):
        assert problem.look_with(np.array([0.051]), b).evaluation.lower_bound <= optimum + 1e-6


def test_a_guided_step_that_raises_F_is_not_repeated(stored):
    """Its gap may be less than half of the gap before; then Taylor models take over instead of the same step for ever.

    The minimiser is -0.6. The first half of the samples, which guides the step, has 0.49 of the curvature of all. So
    the step leads from -1 to -0.185 instead: F rises from 0.080 to 0.086, but the gap falls from 0.8 to 0.34.
    """
    curvature = 0.4 / 0.815
    X = np.sqrt(np.repeat([curvature, 2.0 - curvature], 100))[:, None]
    rows = stored(X, -0.6 * X[:, 0])
    assert rows.n_chunks == 1
    problem = cg.Problem(rows, loss=cg.losses.Squared(), constraint=cg.constraints.L1Ball(1.0))
    assert problem.objective([-0.185]) > problem.objective([-1.0])
    assert problem.gap([-0.185]) < 0.5 * problem.gap([-1.0])
    result = cg.minimize(problem, "corrective", w0=[-1.0], tol=1e-9, max_steps=10)
    assert result.status.name == "CONVERGED" and result.w[0] == pytest.approx(-0.6)


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
def test_ctrl_c_within_a_pass_saves_the_step_before(clicks, monkeypatch, tmp_path):
    rows, path = clicks[2], tmp_path / "run.ckpt"
    problem = logistic(rows, intercept=True)
    whole = cg.minimize(problem, w0=np.full(20, 0.01), tol=1e-7)
    chunks, first = StoredRows.chunks, rows.n_reads

    def interrupt(self, share=1.0, order=None):
        for chunk in chunks(self, share, order):
            if share == 1.0 and self.n_reads > first + 2 and chunk.first > 0:
                signal.raise_signal(signal.SIGINT)
            yield chunk

    with monkeypatch.context() as patch:
        patch.setattr(StoredRows, "chunks", interrupt)
        result = cg.minimize(problem, w0=np.full(20, 0.01), tol=1e-7, checkpoint=path)
    assert result.status.name == "INTERRUPTED"
    again = cg.minimize(problem, tol=1e-7, checkpoint=path)
    assert again.n_steps == whole.n_steps
    assert again.gap == pytest.approx(
        whole.gap, abs=again.rounding + whole.rounding
    )  # passes made again may round differently
    np.testing.assert_allclose(again.w, whole.w, rtol=0.0, atol=1e-10)
    assert again.n_epochs == pytest.approx(whole.n_epochs)


def test_features_in_another_order_are_refused(tmp_path):
    pandas = pytest.importorskip("pandas", reason="needs names of features")
    rng = np.random.default_rng(7)
    frame = pandas.DataFrame(rng.standard_normal((60, 2)), columns=["a", "b"])
    y = np.where(frame["a"] > 0.0, 1.0, -1.0)
    model = cg.ConstrainedLogisticRegression(radius=1.0).fit(cg.rows.convert((frame, y), tmp_path / "one"))
    with pytest.raises(ValueError, match="feature 0 is 'b' instead of 'a'"):
        model.predict(cg.rows.convert((frame[["b", "a"]], y), tmp_path / "two"))


@pytest.mark.parametrize("loss", [cg.losses.Poisson(), cg.losses.Huber(0.5)])
def test_a_vertex_that_is_the_solution_gets_its_best_intercept(stored, loss):
    """Steps do not move w any more, and the guess of the intercept must still become better."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 5))
    y = rng.poisson(np.exp(0.8 * X[:, 0])).astype(float)
    problem = cg.Problem(stored(X, y), None, loss, cg.constraints.L1Ball(0.4), intercept=True)
    result = cg.minimize(problem, tol=1e-6)
    assert result.status is cg.Status.CONVERGED and np.count_nonzero(result.w) == 1
    assert result.n_reads <= 6


def test_rows_without_entries(stored):
    rows = stored(scipy.sparse.csr_matrix((200, 5)), np.arange(200.0))
    problem = cg.Problem(rows, loss=cg.losses.Squared(), constraint=cg.constraints.L1Ball(1.0))
    assert cg.minimize(problem).gap == 0.0


def test_a_class_without_weight_is_no_class(stored):
    rng = np.random.default_rng(8)
    X, y = rng.standard_normal((300, 3)), np.arange(300.0) % 3
    weight = np.where(y == 2.0, 0.0, 1.0)
    assert cg.ConstrainedLogisticRegression().fit(stored(X, y, weight)).classes_.tolist() == [0.0, 1.0]


def test_paths_need_memory(clicks):
    _, y, rows = clicks
    for path, settings in ((cg.radius_path, {}), (cg.lasso_path, {"n_radii": None})):
        with pytest.raises(TypeError, match=r"Fit single radii with .* or use a sample"):
            path(rows, y, **settings)
