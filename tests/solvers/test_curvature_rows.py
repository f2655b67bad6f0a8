"""How many rows give the curvature of an exact model, and that runs with few of them end where others do."""

import numpy as np
import pytest
import scipy.sparse

import condgrad as cg
from condgrad.constraints import Box, L1Ball, LatentGroupBall, LinearlyConstrained, Polytope
from condgrad.problems.active_set import AtomStack
from condgrad.solvers import Corrective
from condgrad.solvers.full_pass.curvature_rows import cheapest_count
from condgrad.solvers.full_pass.feature_model import FeatureModel
from condgrad.solvers.full_pass.taylor_model import ROWS_PER_ATOM

D = 40
SETS = {
    "sum to zero": LinearlyConstrained(Box(-10.0, 10.0), A_eq=np.ones((1, D)), b_eq=[0.0]),
    "log-contrast": LinearlyConstrained(L1Ball(1.5), A_eq=np.ones((1, D)), b_eq=[0.0]),
    "portfolio": Polytope(A_eq=np.ones((1, D)), b_eq=[1.5], bounds=(0.0, None)),
}


def make(n, d, loss, constraint, dtype=np.float64, spread=1.0):
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((n, 1)) + spread * rng.standard_normal((n, d))).astype(dtype)
    p = X[:, :10].sum(axis=1) / 4.0 + rng.standard_normal(n)
    return cg.Problem(X, p if loss.is_quadratic else np.sign(p), loss, constraint)


def test_more_rows_are_taken_for_smaller_gaps():
    def count(n, k, reduction, is_quadratic):
        return cheapest_count(n, k, ROWS_PER_ATOM * k, reduction, is_quadratic)

    counts = [count(100_000, 200, 10.0**-k, True) for k in range(16)]
    assert counts[0] < counts[4] < counts[8] == 100_000
    assert (
        count(100_000, 200, 0.0, False) < 100_000
    )  # the curvature changes, so that few rows and more passes are better
    assert count(1000, 20, 1e-8, True) == np.inf  # double precision saves a pass
    assert count(1000, 500, 1e-2, True) == 1000  # all, in single precision
    for n, k in ((1, 1), (10, 100), (10**9, 3)):
        for reduction in (0.0, 0.5, 2.0):
            for is_quadratic in (False, True):
                chosen = count(n, k, reduction, is_quadratic)
                assert chosen in (n, np.inf) or ROWS_PER_ATOM * k <= chosen <= n / 2


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("loss", [cg.losses.Logistic(), cg.losses.Squared()], ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_runs_with_few_rows_end_at_the_same_optimum(monkeypatch, name, loss, dtype):
    problem = make(40_000, D, loss, SETS[name], dtype)
    asked = []

    def few(n, k, fewest, reduction, is_quadratic):
        asked.append(n)
        return fewest

    expected = cg.minimize(problem, tol=1e-10)
    monkeypatch.setattr("condgrad.solvers.full_pass.corrective_state.cheapest_count", few)
    result = cg.minimize(problem, tol=1e-7)
    assert 40_000 in asked and result.status is cg.Status.CONVERGED
    assert result.n_epochs <= 20.0
    assert -1e-10 <= result.objective - expected.objective <= 1e-7


def test_features_that_hardly_differ_need_more_rows_and_double_precision():
    problem = make(20_000, D, cg.losses.Squared(), SETS["sum to zero"], spread=1e-4)
    result = cg.minimize(problem, tol=1e-6)
    assert result.status is cg.Status.CONVERGED and result.n_epochs <= 10.0


@pytest.mark.parametrize("is_sparse", [False, True])
def test_many_features_of_a_quadratic_loss_begin_in_single_precision(is_sparse):
    groups = [range(k, min(k + 6, 240)) for k in range(0, 240, 5)]
    problem = make(700, 240, cg.losses.Squared(), LatentGroupBall(groups, 3.0))
    if is_sparse:
        problem = cg.Problem(
            scipy.sparse.csr_array(problem.matrix.X), problem.samples.y, problem.loss, problem.constraint
        )
    state = Corrective().init(problem, None)
    state.model, state.atoms, state.x = FeatureModel(problem), AtomStack(np.arange(240), np.ones(240)), np.zeros(240)
    assert state.rows_needed == 700
    state.curvature()
    assert not state.is_estimate
    exact = problem.look(np.zeros(240)).curvature(state.atoms)
    np.testing.assert_allclose(state.known, exact, atol=1e-5 * exact.max())
    assert is_sparse or not np.array_equal(state.known, exact)
    assert state.rows_needed == np.inf  # what is added to a known curvature is in double precision
    state.sharpen(was_estimate=False)
    assert state.known is None and state.rows_needed == np.inf
    result = cg.minimize(problem, "corrective", tol=1e-9)
    assert result.status is cg.Status.CONVERGED


def test_a_run_goes_on_from_a_checkpoint_bit_for_bit(monkeypatch, tmp_path):
    monkeypatch.setattr("condgrad.solvers.full_pass.corrective_state.cheapest_count", lambda n, k, fewest, *_: fewest)
    problem = make(40_000, D, cg.losses.Squared(), SETS["sum to zero"])
    whole = cg.minimize(problem, tol=1e-6)
    assert whole.n_steps >= 5
    for n_steps in (1, 3):
        path = tmp_path / f"run{n_steps}"
        cg.minimize(problem, tol=1e-6, max_steps=n_steps, checkpoint=path)
        resumed = cg.minimize(problem, tol=1e-6, checkpoint=path)
        np.testing.assert_array_equal(resumed.w, whole.w)
        assert resumed.n_steps == whole.n_steps
