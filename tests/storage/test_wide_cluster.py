"""Gradients that stay with the workers: the oracle's answer is that of the whole gradient, and few bytes travel."""

import functools
import itertools
import operator

import numpy as np
import pytest
import scipy.sparse
from simulated import SimulatedRows

import condgrad as cg
from condgrad.constraints import best_vertex
from condgrad.problems.active_set import AtomStack
from condgrad.problems.rows import choice, cluster
from condgrad.problems.rows.cluster import PartitionedRows
from condgrad.problems.rows.findings import Kept
from condgrad.problems.rows.parts import Compact, OutsidePass, PartOfPass
from condgrad.problems.rows.worker_samples import WorkerSamples
from condgrad.problems.totals import Totals
from condgrad.testing import check_rows


@pytest.fixture
def wide(monkeypatch):
    """All gradients stay with the workers, also small ones."""
    monkeypatch.setattr(cluster, "_WIDE", 1)


def split(X, y, n_parts, *weights):
    borders = np.linspace(0, X.shape[0], n_parts + 1).astype(int)
    return [tuple(each[a:b] for each in (X, y, *weights)) for a, b in itertools.pairwise(borders)]


def one_hot(n, d, n_fields, rng):
    """Rows with one category of each field, of which a few are frequent and most are rare."""
    width = d // n_fields
    codes = (width ** rng.random((n, n_fields))).astype(int) - 1 + width * np.arange(n_fields)
    return scipy.sparse.csr_matrix(
        (np.ones(codes.size), codes.ravel(), np.arange(0, codes.size + 1, n_fields)), shape=(n, d)
    )


def clicks(n, d, rng):
    X = one_hot(n, d, 10, rng)
    beta = np.where(np.arange(d) % (d // 10) < 5, rng.standard_normal(d), 0.0)
    return X, np.where(X @ beta + rng.logistic(size=n) > 0.0, 1.0, -1.0)


def logistic(rows, y=None, constraint=None, **settings):
    ball = cg.constraints.L1Ball(4.0) if constraint is None else constraint
    return cg.Problem(rows, y, cg.losses.Logistic(), ball, **settings)


def test_the_contract_of_rows(wide):
    def make(X, samples, has_intercept):
        rows = SimulatedRows(split(X, samples.y, 3), 2)
        return PartitionedRows(rows, samples, has_intercept)

    check_rows(make)


def test_the_contract_of_rows_with_targets_at_the_workers():
    def make(X, samples, has_intercept):
        offset = samples.offset.to_array()
        numbers = (7.0 * samples.weight,) if offset is None else (7.0 * samples.weight, offset)
        rows = SimulatedRows(split(X, samples.y, 3, *numbers), 2)
        return PartitionedRows(rows, WorkerSamples(rows, samples.loss), has_intercept)

    check_rows(make)


@pytest.mark.parametrize("has_weights", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_targets_and_weights_stay_with_the_workers(monkeypatch, intercept, has_weights):
    monkeypatch.setattr(choice, "_MANY", 1)
    X, y = clicks(4000, 2000, np.random.default_rng(1))
    weight = (np.random.default_rng(2).uniform(0.0, 2.0, y.size),) if has_weights else ()
    rows = SimulatedRows(split(X, y, 5, *weight), 2)
    problem = logistic(rows, intercept=intercept)
    result = cg.minimize(problem, tol=1e-7)
    problem.look(result.w), problem.objective(result.w), problem.null_objective(), problem.fingerprint()
    known = logistic(X, y, intercept=intercept, sample_weight=weight[0] if has_weights else None)
    assert result.gap == pytest.approx(known.gap(result.w), abs=1e-7)
    assert problem.loss_scale() == pytest.approx(known.loss_scale(), rel=1e-12)
    assert problem.derivative_size() == pytest.approx(known.derivative_size(), rel=1e-12)
    assert problem.samples.least_value() == pytest.approx(known.samples.least_value(), abs=1e-12)
    assert problem.best_intercept(result.w) == pytest.approx(known.best_intercept(result.w), abs=1e-9)
    assert "y" not in vars(problem.samples)
    assert "_of_samples" not in vars(rows)
    assert np.array_equal(problem.y, y)  # they come when they are asked for


def test_offsets_stay_with_the_workers(monkeypatch):
    monkeypatch.setattr(choice, "_MANY", 1)
    X, y = clicks(2000, 200, np.random.default_rng(1))
    weight, offset = np.random.default_rng(2).uniform(0.1, 2.0, (2, y.size))
    rows = SimulatedRows(split(X, y, 5, weight, offset), 2)
    result = cg.minimize(logistic(rows, intercept=True), tol=1e-7)
    known = logistic(X, y, intercept=True, sample_weight=weight, offset=offset)
    assert result.gap == pytest.approx(known.gap(result.w), abs=1e-7)
    assert result.intercept == pytest.approx(known.best_intercept(result.w), abs=1e-3)
    assert "_of_samples" not in vars(rows)


def test_sentences_about_targets_at_the_workers(monkeypatch):
    monkeypatch.setattr(choice, "_MANY", 1)
    X, y = clicks(40, 20, np.random.default_rng(1))
    with pytest.raises(ValueError, match="y must be -1 or 1"):
        logistic(SimulatedRows(split(X, y + 3.0, 2), 2))
    with pytest.raises(ValueError, match="class"):
        logistic(SimulatedRows(split(X, np.ones(40), 2), 2), intercept=True)
    with pytest.raises(ValueError, match="sample_weight must not be negative"):
        logistic(SimulatedRows(split(X, y, 2, np.linspace(-1.0, 1.0, 40)), 2))
    with pytest.raises(ValueError, match="has no targets; pass y"):
        logistic(SimulatedRows([(X, None)], 1))


def parts_with(vectors, slopes, sizes):
    """Return a pass with these parts of the gradient and of its slope, on partitions of these sizes."""
    nothing = Kept((), ())
    parts = [
        PartOfPass(size, Totals(*np.zeros(8)), Compact.of(r), nothing, Compact.of(u), 1.0)
        for r, u, size in zip(vectors, slopes, sizes, strict=True)
    ]

    def ask(question, *args):
        return functools.reduce(operator.add, [question(part, *args) for part in parts])

    return functools.partial(OutsidePass, ask, sum(sizes), vectors[0].size)


SETS = {
    "l1": lambda d: cg.constraints.L1Ball(3.0),
    "weighted": lambda d: cg.constraints.WeightedL1Ball(2.0, 1.0 + np.arange(d) % 7),
    "nonnegative": lambda d: cg.constraints.NonnegativeL1Ball(2.0),
    "simplex": lambda d: cg.constraints.Simplex(1.0),
    "l2": lambda d: cg.constraints.L2Ball(1.0),
}


@pytest.mark.parametrize("name", SETS)
def test_the_leading_entries_give_the_vertex_of_the_whole_gradient(name):
    rng = np.random.default_rng(0)
    for case in range(60):
        d, n_parts = int(rng.integers(1, 300)), int(rng.integers(1, 9))
        vectors = rng.standard_normal((n_parts, d)) * (rng.random((n_parts, d)) < rng.choice([0.02, 0.2, 1.0]))
        if case % 3 == 0:  # large entries that cancel, up to a little
            vectors[-1] = 1e-3 * rng.standard_normal(d) - vectors[:-1].sum(axis=0)
        if case % 4 == 0:  # ties
            vectors = np.round(vectors)
        if case % 5 == 0:  # no entry at all may be negative: then the best vertex can be the origin
            vectors = np.abs(vectors)
        slopes, sizes = rng.standard_normal((n_parts, d)), rng.integers(1, 1000, n_parts).tolist()
        w = np.where(rng.random(d) < 0.1, rng.standard_normal(d), 0.0)
        step, penalty = float(rng.choice([0.0, 0.3])), 0.1 * w if case % 2 else None
        gradient = parts_with(vectors, slopes, sizes)(np.flatnonzero(w), True).gradient(step, penalty)
        whole = gradient.whole()
        expected = functools.reduce(operator.add, vectors) + step * functools.reduce(operator.add, slopes)
        assert whole == pytest.approx(expected + (0.0 if penalty is None else penalty), abs=1e-12)
        constraint = SETS[name](d)
        r = gradient.leading(constraint, w)
        assert np.array_equal(r[w != 0.0], whole[w != 0.0])
        assert best_vertex(constraint, r).key() == best_vertex(constraint, whole).key()
        near = gradient.near(whole)
        assert np.array_equal(near, whole)  # the bound of the other entries holds
        assert np.array_equal(gradient.at(np.arange(d)), whole)


def test_too_many_candidates_bring_the_whole_gradient(monkeypatch):
    monkeypatch.setattr("condgrad.problems.rows.parts._FEWEST", 10)
    vectors = np.ones((2, 400))
    gradient = parts_with(vectors, vectors, [5, 5])(np.arange(1), False).gradient(0.0)
    assert gradient.candidates(0.5) is None
    assert np.array_equal(gradient.leading(cg.constraints.L1Ball(1.0), np.eye(400)[0]), np.full(400, 2.0))


@pytest.mark.parametrize("settings", [{}, {"intercept": True}, {"intercept": True, "l2": 0.01}])
def test_runs_are_certified_and_stay_the_same_from_a_checkpoint(wide, settings, tmp_path):
    X, y = clicks(4000, 2000, np.random.default_rng(1))
    whole = cg.minimize(logistic(SimulatedRows(split(X, y, 5), 2), **settings), tol=1e-7)
    assert whole.status.name == "CONVERGED"
    at = logistic(X, y, **settings).evaluate(whole.w)
    assert whole.gap == pytest.approx(at.gap, abs=1e-7)
    assert whole.gradient == pytest.approx(at.gradient, abs=1e-6)
    best = cg.minimize(logistic(X, y, **settings), tol=1e-10).objective
    assert whole.objective - best <= whole.gap + whole.rounding + 1e-10
    path = tmp_path / "run.ckpt"
    cg.minimize(logistic(SimulatedRows(split(X, y, 5), 2), **settings), tol=1e-7, max_steps=6, checkpoint=path)
    again = cg.minimize(logistic(SimulatedRows(split(X, y, 5), 3), **settings), tol=1e-7, checkpoint=path)
    assert np.array_equal(again.w, whole.w)
    assert again.gap == whole.gap


def test_sets_that_need_the_whole_gradient_get_it(wide):
    X, y = clicks(600, 60, np.random.default_rng(2))
    for constraint in (cg.constraints.Simplex(1.0), cg.constraints.L2Ball(1.0)):
        result = cg.minimize(logistic(SimulatedRows(split(X, y, 3), 2), None, constraint), tol=1e-6)
        assert result.status.name == "CONVERGED"
        assert result.gap == pytest.approx(logistic(X, y, constraint).gap(result.w), abs=1e-9)


def test_other_solvers_run_on_it(wide):
    X, y = clicks(600, 60, np.random.default_rng(2))
    with pytest.warns(UserWarning, match="reads all"):
        result = cg.minimize(logistic(SimulatedRows(split(X, y, 3), 2)), "pairwise", tol=1e-2)
    assert result.gap == pytest.approx(logistic(X, y).gap(result.w), abs=1e-9)


@pytest.mark.parametrize("intercept", [False, True])
def test_the_curvature_of_drawn_rows_is_summed_by_the_workers(wide, intercept):
    X, y = clicks(600, 60, np.random.default_rng(3))
    rows = SimulatedRows(split(X, y, 3), 2)
    atoms, w = AtomStack(np.array([0, 6, 12]), np.array([4.0, -4.0, 4.0])), np.zeros(60)
    H = logistic(rows, intercept=intercept).look_with(w, 0.1).curvature(atoms)
    expected = logistic(X, y, intercept=intercept).look(w).curvature(atoms)
    assert pytest.approx(expected, abs=0.1 * np.abs(expected).max()) == H


def test_few_bytes_travel():
    """With 400,000 features no worker receives a tenth of a gradient in a pass, and this process much less."""
    d, n_workers = 400_000, 4
    X, y = clicks(40_000, d, np.random.default_rng(4))
    rows = SimulatedRows(split(X, y, 8), n_workers)
    problem = logistic(rows, intercept=True)
    problem.reach, problem.largest_part()
    w = cg.minimize(problem, tol=0.0, relative_tol=1e-2).w
    rows.forget()
    look = problem.look_with(w, 0.05)
    assert max(rows.received) < 0.1 * 8 * d
    assert max(rows.sent) < 0.1 * 8 * d
    assert rows.up < 0.01 * 8 * d
    assert rows.down < 0.1 * 8 * d
    up = rows.up
    assert look.vertex.key() == best_vertex(problem.constraint, look.gradient).key()
    assert rows.up - up > 10 * up  # the whole gradient comes when it is asked for
    assert look.gradient == pytest.approx(logistic(X, y, intercept=True).look(w).gradient, abs=1e-3)
