"""Second derivatives of all samples by some features, from the pass of a look, and steps that use them."""

import itertools

import numpy as np
import pytest
import scipy.sparse

import condgrad as cg
from condgrad.linalg.matrix import Matrix
from condgrad.linalg.one_hot import OneHotMatrix
from condgrad.problems.active_set import AtomStack, VertexStack
from condgrad.problems.rows import chunked
from condgrad.problems.tilted import Bowl, TiltedProblem
from condgrad.storage.stored_rows import StoredRows

FIELDS = [40, 7, 300, 25]


@pytest.fixture
def stored(tmp_path):
    numbers = itertools.count()
    return lambda batch: cg.rows.convert(iter([batch]), tmp_path / str(next(numbers)), chunk_bytes=2**14, shuffle=False)


def one_hot(n, rng):
    """Codes of four fields, of one and two bytes, in an order in which widths alternate."""
    codes = [np.exp(rng.random(n) * np.log(size)).astype(int) - 1 for size in FIELDS]
    firsts = np.concatenate(([0], np.cumsum(FIELDS)[:-1]))
    of_width = {1: [0, 1, 3], 2: [2], 4: []}
    return OneHotMatrix(
        tuple(np.array([codes[q] for q in of_width[b]], f"u{b}").reshape(-1, n).T.copy() for b in (1, 2, 4)),
        tuple(firsts[of_width[b]].astype(np.uint64) for b in (1, 2, 4)),
        sum(FIELDS),
    )


@pytest.fixture
def clicks(stored):
    """Logistic one-hot data on disk and in memory."""
    rng = np.random.default_rng(0)
    X = one_hot(12_000, rng)
    truth = np.zeros(sum(FIELDS))
    truth[[0, 1, 2, 40, 41, 47, 48, 50, 347, 349]] = rng.standard_normal(10)
    y = np.where(X.dot_each(truth[None])[0] + rng.logistic(size=12_000) > 0.0, 1.0, -1.0)
    return stored((X, y)), X.chosen(slice(None)).X, y


def logistic(X, y=None, constraint=None, **settings):
    return cg.Problem(X, y, cg.losses.Logistic(), constraint or cg.constraints.L1Ball(8.0), **settings)


@pytest.mark.parametrize("kind", ["dense", "csr", "one-hot"])
@pytest.mark.parametrize("every", [1, 3])
def test_gram_matrices_of_rows(kind, every):
    rng = np.random.default_rng(1)
    matrix = one_hot(500, rng)
    X = matrix.chosen(slice(None)).X.toarray()
    if kind != "one-hot":
        matrix = Matrix(X if kind == "dense" else scipy.sparse.csr_matrix(X))
    features, d = np.array([300, 0, 48, 3, 41, 49, 1]), rng.random(-(-500 // every))
    rows = None if every == 1 else np.arange(0, 500, every)
    used = X[::every][:, features].astype(float)
    np.testing.assert_allclose(matrix.gram_of_rows(features, d, rows), used.T @ (d[:, None] * used), atol=1e-12)


@pytest.mark.parametrize("settings", [{}, {"intercept": True}, {"l2": 0.3}])
def test_a_look_finds_the_second_derivatives(clicks, settings):
    rows, X, y = clicks
    w, features = np.zeros(sum(FIELDS)), np.array([0, 2, 47, 49, 100])
    w[[0, 47, 48]] = [0.5, -1.0, 0.3]
    known = logistic(X, y, **settings)
    expected = known.look(w)
    look = logistic(rows, **settings).look_with(w, expected.evaluation.offset, features)
    H = expected.curvature(AtomStack(features, np.ones(features.size)))
    np.testing.assert_allclose(look.bends.H, H, atol=1e-12)
    assert look.gap == pytest.approx(expected.gap, abs=1e-7)
    assert logistic(rows).look_with(w, 0.0).bends is None and known.look_with(w, 0.0, features).bends is None


def test_some_samples_are_enough(clicks, monkeypatch):
    rows, X, y = clicks
    features = np.arange(10)
    monkeypatch.setattr(chunked, "_ROWS_PER_FEATURE", 400)  # one of three samples
    monkeypatch.setattr(chunked, "_LEAST_HEAD", 0)
    H = logistic(rows).look_with(np.zeros(sum(FIELDS)), 0.0, features).bends.H
    exact = logistic(X, y).look(np.zeros(sum(FIELDS))).curvature(AtomStack(features, np.ones(10)))
    assert 0.0 < np.abs(H - exact).max() < 0.1 * exact.max()
    monkeypatch.setattr(chunked, "_LEAST_HEAD", 2**24)  # the sample in memory has as many
    assert logistic(rows).look_with(np.zeros(sum(FIELDS)), 0.0, features).bends is None


def test_a_bowl_gives_a_sample_the_curvature_of_all(clicks):
    rows, X, y = clicks
    problem, w = logistic(rows), np.zeros(sum(FIELDS))
    w[[0, 47]] = [1.0, -0.5]
    features, part = np.array([0, 1, 47, 200]), problem.largest_part()
    before, own = problem.look_with(w, 0.0, features), part.look(w)
    tilted = TiltedProblem(part, before.gradient - own.gradient, Bowl.between(before.bends, own, w))
    look, atoms = tilted.look(w), AtomStack(np.array([47, 5, 0]), np.array([8.0, -8.0, 1.0]))
    assert look.gradient == pytest.approx(before.gradient, abs=1e-15) and look.gap == pytest.approx(before.gap)
    H, of_all = look.curvature(atoms), logistic(X, y).look(w).curvature(atoms)
    np.testing.assert_allclose(H[::2, ::2], of_all[::2, ::2], atol=1e-12)
    np.testing.assert_allclose(H[1], own.curvature(atoms)[1], atol=1e-12)  # feature 5 has the curvature of the sample
    vertices = VertexStack()
    vertices.extend([atoms.vertex(k) for k in range(3)])
    np.testing.assert_allclose(tilted.look(w).curvature(vertices), H, atol=1e-12)
    step = np.zeros(w.size)
    step[[0, 200, 7]] = 1e-5 * np.array([1.0, -2.0, 3.0])
    slope = (tilted.look(w + step).objective - tilted.look(w - step).objective) / 2e-5
    assert slope == pytest.approx(look.gradient @ step / 1e-5, abs=1e-8)


@pytest.mark.parametrize("intercept", [False, True])
def test_reads_are_few(clicks, intercept):
    rows, X, y = clicks
    result = cg.minimize(logistic(rows, intercept=intercept), tol=0.0, relative_tol=1e-6)
    best = cg.minimize(logistic(X, y, intercept=intercept), tol=1e-12)
    assert result.status.name == "CONVERGED" and result.n_reads <= 4 + intercept
    assert result.objective - best.objective <= result.gap + result.rounding
    assert result.trace.gap[0] == pytest.approx(logistic(X, y, intercept=intercept).gap(np.zeros(sum(FIELDS))))
    assert cg.minimize(logistic(rows, intercept=intercept), tol=1e-7).n_reads <= 4 + intercept


@pytest.mark.parametrize("has_bends", [True, False])
def test_a_run_with_a_relative_tolerance_resumes(clicks, tmp_path, monkeypatch, has_bends):
    rows, _, _ = clicks
    if not has_bends:
        monkeypatch.setattr(chunked.ChunkedRows, "_every", lambda self, features: 0)
    problem, settings = logistic(rows, intercept=True), {"tol": 0.0, "relative_tol": 1e-7}
    whole = cg.minimize(problem, **settings)
    assert whole.trace.n_nonzero[0] == 0 and whole.trace.step[0] == 0  # the record of the start is that of the start
    for max_steps in range(whole.n_steps):
        path = tmp_path / f"{max_steps}.ckpt"
        cg.minimize(problem, **settings, max_steps=max_steps, checkpoint=path)
        again = cg.minimize(logistic(StoredRows.of_folder(rows.folder), intercept=True), **settings, checkpoint=path)
        assert np.array_equal(again.w, whole.w) and again.gap == whole.gap
