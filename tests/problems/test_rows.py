"""Rows: what a pass finds is the same wherever the samples lie, and however they are cut into blocks."""

import functools

import numba
import numpy as np
import pytest
import scipy.sparse
from tables import FOUR_FORMS

import condgrad as cg
from condgrad.linalg.matrix import Matrix
from condgrad.linalg.spread import spread_rows
from condgrad.problems.base import BaseProblem, Feature
from condgrad.problems.rows import memory
from condgrad.problems.rows.base import Expand, Measure, Predict, Rows
from condgrad.problems.rows.memory import MemoryRows
from condgrad.problems.samples import Samples

LOSS = cg.losses.Logistic()


def simulated(n=203, d=11, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.6)
    y = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    weight = rng.random(n) * (rng.random(n) < 0.9)
    return X, y, weight / weight.sum(), 0.5 * rng.standard_normal(d)


class ChunkedRows(Rows):
    """Samples in several matrices: what rows on disk or on other machines are, without disk and machines."""

    offers = BaseProblem.offers | {Feature.CURVATURE}

    def __init__(self, chunks):
        self.chunks = chunks
        loss = chunks[0].samples.loss
        y, weight = (np.concatenate([getattr(one.samples, name) for one in chunks]) for name in ("y", "weight"))
        self.samples = Samples(loss, y, weight)
        self.n_samples, self.n_features = y.size, chunks[0].n_features
        self.sweeps = 0

    def sweep(self, task, w):
        self.sweeps += 1
        if isinstance(task, Expand) and task.p is not None:
            task = Expand(task.b)  # the chunks number their samples from 0 on: they predict again
        return functools.reduce(lambda total, part: total + part, (one.sweep(task, w) for one in self.chunks))

    def head(self, n_rows):
        return self if n_rows >= self.n_samples else self.chunks[0].with_targets(self.chunks[0].samples.y)

    def curvature(self, found, atoms, n_rows, n_known, has_intercept):
        X = np.concatenate([one.matrix.X for one in self.chunks])
        V = np.array([atoms.vertex(k).to_dense(self.n_features) for k in range(len(atoms))])
        Q, d = X @ V.T, found.d.array
        mixed = Q.T @ d
        return Q.T @ (d[:, None] * Q) - (np.outer(mixed, mixed) / d.sum() if has_intercept else 0.0)

    def with_targets(self, y):
        raise NotImplementedError

    def definition(self):
        return tuple(part for one in self.chunks for part in one.definition())

    @property
    def cost_of_pass(self):
        return sum(one.cost_of_pass for one in self.chunks)

    def along_shift(self, w):
        return 0.0


def chunked(X, y, weight, sizes=(50, 3, 150)):
    chunks, start = [], 0
    for size in sizes:
        own = slice(start, start + size)
        chunks.append(MemoryRows(Matrix(X[own].copy()), Samples(LOSS, y[own].copy(), weight[own].copy())))
        start += size
    return ChunkedRows(chunks)


def by_hand(X, y, weight, w, b):
    p = X @ w
    alpha = weight * LOSS.derivative(p + b, y)
    return p, weight @ LOSS.value(p + b, y), X.T @ alpha, weight * LOSS.second_derivative(p + b, y), alpha.sum()


@pytest.fixture
def threads_of_three(monkeypatch):
    """Three threads, each with work enough, whatever the machine has."""
    monkeypatch.setattr(memory.threads, "n_threads", lambda: 3)
    monkeypatch.setattr(memory.threads, "_MIN_WORK", 10)


@pytest.mark.parametrize("cached", [1, 2**10, 2**18])
@pytest.mark.parametrize("form", FOUR_FORMS)
def test_a_sweep_finds_what_sums_by_hand_find(form, cached, threads_of_three, monkeypatch):
    monkeypatch.setattr(memory, "_CACHED", cached)
    monkeypatch.setattr(memory, "_LARGE", 0 if cached < 2**18 else np.inf)
    X, y, weight, w = simulated()
    X[-1, 0] = -7.0  # the largest entry, in the last block
    rows = MemoryRows(Matrix(FOUR_FORMS[form](X)), Samples(LOSS, y, weight))
    p, value, r, d, balance = by_hand(X, y, weight, w, 0.3)
    np.testing.assert_allclose(rows.sweep(Predict(), w).array, p, atol=1e-13)
    for known in (None, p):
        found = rows.sweep(Expand(0.3, known), w)
        assert found.totals.value == pytest.approx(value, rel=1e-13)
        assert found.totals.balance == pytest.approx(balance, rel=1e-10)
        first, second = LOSS.derivative(p + 0.3, y), LOSS.second_derivative(p + 0.3, y)
        squares = {
            "slope": first,
            "prediction": p + 0.3,
            "target": y,
            "inputs": second * (np.abs(p + 0.3) + 1.0),
            "curvature": second,
        }
        for name, numbers in squares.items():
            assert getattr(found.totals, name) == pytest.approx(weight @ numbers**2, rel=1e-12), name
        assert found.totals.size == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(found.r, r, atol=1e-14)
        np.testing.assert_allclose(found.d.array, d, atol=1e-15)
    measures = rows.sweep(Measure(), w)
    np.testing.assert_allclose(measures.squares, weight @ X**2, rtol=1e-12)
    assert measures.largest_entry == np.abs(X).max()


def test_as_many_threads_as_the_user_allows(monkeypatch):
    monkeypatch.setattr(memory.threads, "_MIN_WORK", 10)
    X, y, weight, w = simulated()
    rows = MemoryRows(Matrix(X), Samples(LOSS, y, weight))
    before = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        assert len(rows.sweep(Predict(), w).blocks) == 1
    finally:
        numba.set_num_threads(before)


def test_nothing_is_multiplied_at_zero():
    X, y, weight, _ = simulated()
    rows = MemoryRows(Matrix(X), Samples(LOSS, y, weight))
    found = rows.sweep(Expand(), np.zeros(X.shape[1]))
    np.testing.assert_allclose(found.r, by_hand(X, y, weight, np.zeros(X.shape[1]), 0.0)[2], atol=1e-15)


def test_a_head_is_a_problem_of_its_own():
    X, y, weight, _ = simulated()
    rows = MemoryRows(Matrix(X), Samples(LOSS, y, weight))
    assert rows.head(203) is rows and rows.head(1000) is rows
    part = rows.head(50)
    assert 50 <= part.n_samples <= 100 and part.samples.weight.sum() == pytest.approx(1.0)
    chosen = spread_rows(203, 4)
    np.testing.assert_array_equal(part.matrix.X, X[chosen])
    np.testing.assert_array_equal(part.samples.y, y[chosen])
    nothing = MemoryRows(Matrix(X), Samples(LOSS, y, np.where(np.isin(np.arange(203), chosen), 0.0, weight)))
    assert nothing.head(50) is None


@pytest.mark.parametrize("every", [2, 5, 12, 40])
def test_spread_rows_do_not_meet_a_period_of_the_data(every):
    n = 100 * every**2
    rows = spread_rows(n, every)
    assert rows[-1] < n and rows.size == n // every
    np.testing.assert_array_equal(rows // every, np.arange(rows.size))  # one in each range of that length
    assert spread_rows(n - 1, every).max() < n - 1
    for period in (2, 3, 5, 10, every, 2 * every):
        counts = np.bincount(rows % period, minlength=period)
        assert counts.min() >= 0.5 * rows.size / period and counts.max() <= 2.0 * rows.size / period


def test_a_part_measures_its_own_columns():
    X, y, weight, w = simulated()
    chosen = spread_rows(203, 4)
    X[np.setdiff1d(np.arange(203), chosen)[0]] = 100.0  # not in the part
    problem = cg.Problem(X, y, LOSS, cg.constraints.L1Ball(2.0), sample_weight=weight)
    assert problem.look(w).evaluation.rounding > 0.0  # which measures the columns of all samples
    part = problem.part(50)
    alone = cg.Problem(X[chosen], y[chosen], LOSS, cg.constraints.L1Ball(2.0), sample_weight=weight[chosen])
    np.testing.assert_allclose(part.column_sizes, alone.column_sizes, rtol=1e-13)
    assert part.reach == pytest.approx(alone.reach, rel=1e-13)
    assert part.look(w).evaluation.rounding == pytest.approx(alone.look(w).evaluation.rounding, rel=1e-6, abs=0.0)


def test_negative_curvatures_count_as_zero():
    X, y, weight, w = simulated()
    loss, w = cg.losses.Welsch(1.0), 3.0 * w
    problem = cg.Problem(X, y, loss, cg.constraints.L1Ball(20.0), sample_weight=weight)
    d = weight * np.asarray(loss.second_derivative(X @ w, y))
    assert (d < 0.0).sum() > 10
    atoms = [cg.constraints.Atom(2, 2.0), cg.constraints.Atom(5, -2.0)]
    Q = X[:, [2, 5]] * np.array([2.0, -2.0])
    np.testing.assert_allclose(problem.look(w).curvature(atoms), Q.T @ (np.maximum(d, 0.0)[:, None] * Q), rtol=1e-12)


@pytest.mark.parametrize("intercept", [False, True])
def test_samples_that_lie_elsewhere_need_no_change_above_rows(intercept):
    X, y, weight, w = simulated()
    rows = chunked(X, y, weight)
    there = cg.Problem.of_rows(rows, cg.constraints.L1Ball(2.0), intercept=intercept)
    here = cg.Problem(X, y, LOSS, cg.constraints.L1Ball(2.0), sample_weight=weight, intercept=intercept)
    ours, theirs = here.look(w), there.look(w)
    assert theirs.objective == pytest.approx(ours.objective, rel=1e-13)
    assert theirs.intercept == pytest.approx(ours.intercept, abs=1e-12)
    np.testing.assert_allclose(theirs.gradient, ours.gradient, atol=1e-14)
    assert theirs.gap == pytest.approx(ours.gap, rel=1e-11)
    atoms = [cg.constraints.Atom(2, 2.0), cg.constraints.Atom(5, -2.0)]
    np.testing.assert_allclose(theirs.curvature(atoms), ours.curvature(atoms), atol=1e-13)
    rows.sweeps = 0
    result = cg.minimize(there, "corrective", tol=1e-9)
    assert result.status is cg.Status.CONVERGED and result.objective == pytest.approx(
        cg.minimize(here, tol=1e-9).objective, abs=2e-9
    )
    assert rows.sweeps <= 40  # passes are what such data cost
    assert cg.minimize(there, "pairwise", tol=1e-4).status is cg.Status.CONVERGED
    assert there.fingerprint() != here.fingerprint()


def test_a_solver_of_single_samples_is_refused_where_rows_do_not_offer_them():
    X, y, weight, _ = simulated()
    problem = cg.Problem.of_rows(chunked(X, y, weight), cg.constraints.L1Ball(2.0))
    with pytest.raises(TypeError, match="single samples"):
        cg.minimize(problem, "sfw")


def test_the_vertices_of_a_curved_set_are_multiplied_once():
    X, y, weight, w = simulated()
    problem = cg.Problem(scipy.sparse.csr_array(X), y, LOSS, cg.constraints.L2Ball(2.0), sample_weight=weight)
    look = problem.look(w)
    atoms = [cg.constraints.DenseVertex(w), cg.constraints.DenseVertex(-2.0 * w)]
    p, _, _, d, _ = by_hand(X, y, weight, w, 0.0)
    expected = (p * d) @ p * np.array([[1.0, -2.0], [-2.0, 4.0]])
    for _ in range(2):
        np.testing.assert_allclose(look.curvature(atoms), expected, rtol=1e-12)
