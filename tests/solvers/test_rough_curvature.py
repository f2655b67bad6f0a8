"""Single precision in the curvature of dense data: it costs few steps and no digit of the answer."""

import numpy as np
import pytest
import scipy.sparse

import condgrad as cg
from condgrad.problems.active_set import AtomStack
from condgrad.run.result import Status
from condgrad.solvers import Corrective
from condgrad.solvers.full_pass.taylor_model import HullModel


def make(spread=1.0, n=600, d=160, dtype=np.float64):
    """Return features that differ by ``spread`` from their common part, and targets that only the differences tell."""
    rng = np.random.default_rng(0)
    own = rng.standard_normal((n, d))
    X = (rng.standard_normal((n, 1)) + spread * own).astype(dtype)
    return X, np.where(own @ rng.standard_normal(d) + 4.0 * rng.logistic(size=n) > 0.0, 1.0, -1.0)


def solve(X, y, radius, **settings):
    problem = cg.Problem(X, y, cg.losses.Logistic(), cg.constraints.L1Ball(radius), intercept=True)
    return problem, cg.minimize(problem, Corrective(), **settings)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dense_and_sparse_data_have_the_same_certified_answer(dtype):
    X, y = make(dtype=dtype)
    problem, dense = solve(X, y, 6.0, tol=1e-9, max_steps=30)
    _, sparse = solve(scipy.sparse.csr_array(X), y, 6.0, tol=1e-9, max_steps=30)
    assert dense.status is sparse.status is Status.CONVERGED
    assert np.count_nonzero(dense.w) > 50
    assert abs(dense.objective - sparse.objective) <= 2e-9
    np.testing.assert_allclose(dense.w, sparse.w, atol=1e-3)
    assert abs(problem.gap(dense.w) - dense.gap) <= 1e-12


def test_features_that_hardly_differ_need_double_precision():
    X, y = make(spread=1e-3)
    _, result = solve(X, y, 6000.0, tol=1e-5, max_steps=60)
    assert result.status is Status.CONVERGED


def test_a_step_that_fails_in_single_precision_is_made_again_in_double():
    X, y = make()
    problem = cg.Problem(X, y, cg.losses.Logistic(), cg.constraints.L1Ball(6.0))
    state = Corrective().init(problem, None)
    state.gather()
    state.curvature()
    state.is_still = True
    state.sharpen(was_estimate=False)
    assert not state.is_rough and state.known is None and state.rows_needed == np.inf


def test_a_gap_that_shrinks_slowly_while_atoms_are_taken_is_no_reason():
    X, y = make()
    problem = cg.Problem(X, y, cg.losses.Logistic(), cg.constraints.L1Ball(6.0))
    state = Corrective().init(problem, None)
    state.is_growing = True
    state.sharpen(was_estimate=False)
    assert state.is_rough
    state.is_growing = False
    state.sharpen(was_estimate=True)  # of an estimate the number of samples is the reason
    assert state.is_rough and state.rows_per_atom > 30
    state.sharpen(was_estimate=False)
    assert not state.is_rough


def test_new_atoms_follow_how_many_were_taken():
    rng = np.random.default_rng(1)
    constraint = cg.constraints.L1Ball(1.0)
    model = HullModel(cg.Problem(rng.standard_normal((10, 900)), np.ones(10), cg.losses.Squared(), constraint))
    for n_atoms, n_taken, expected in (
        (0, None, 20),
        (100, None, 100),
        (10, 0, 20),
        (40, 0, 40),
        (100, 20, 50),
        (100, 80, 120),
    ):
        atoms = AtomStack(np.arange(n_atoms), np.ones(n_atoms))
        r = np.where(np.arange(900) < n_atoms, 0.5, rng.uniform(1.0, 2.0, 900))
        model.add_candidates(atoms, np.zeros(n_atoms), r, 1.0, n_taken)
        assert len(atoms) - n_atoms == expected
        assert np.unique(atoms.index).size == len(atoms)


def test_a_run_goes_on_from_a_checkpoint_bit_for_bit(tmp_path):
    X, y = make(spread=0.01)
    _, whole = solve(X, y, 600.0, tol=1e-7, max_steps=40)
    for n_steps in (2, 5):
        path = tmp_path / f"run{n_steps}"
        solve(X, y, 600.0, tol=1e-7, max_steps=n_steps, checkpoint=path)
        _, resumed = solve(X, y, 600.0, tol=1e-7, max_steps=40, checkpoint=path)
        np.testing.assert_array_equal(resumed.w, whole.w)
        assert resumed.n_steps == whole.n_steps
