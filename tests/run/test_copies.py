"""Results travel: what pickle and deepcopy make of them is a result as good as the first."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse
from tables import QUADRATIC_ONLY

import condgrad as cg

WAYS = {"pickle": lambda result: pickle.loads(pickle.dumps(result)), "deepcopy": copy.deepcopy}


def problem_for(name):
    rng = np.random.default_rng(0)
    if name == "low-rank":
        rows, columns = np.divmod(rng.permutation(30)[:24], 5)
        return cg.CompletionProblem(
            rows, columns, rng.standard_normal(24), cg.losses.Squared(), cg.constraints.NuclearBall(2.0)
        )
    X = scipy.sparse.random(30, 8, 0.5, random_state=0, format="csr")
    y = np.where(rng.random(30) < 0.5, -1.0, 1.0)
    loss = cg.losses.Squared() if name in QUADRATIC_ONLY else cg.losses.Logistic()
    return cg.Problem(X, y, loss, cg.constraints.L1Ball(3.0))


def as_array(w):
    return w if isinstance(w, np.ndarray) else w.to_dense()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", sorted(cg.solvers.REGISTERED))
def test_a_copy_of_a_result_is_as_good(name, way):
    problem = problem_for(name)
    solver = cg.solvers.by_name(name)()
    result = cg.minimize(problem, solver, max_steps=12, tol=0.0, random_state=0)
    twin = WAYS[way](result)
    assert repr(twin) == repr(result) and twin.status is result.status
    np.testing.assert_array_equal(as_array(twin.w), as_array(result.w))
    np.testing.assert_array_equal(twin.trace.gap, result.trace.gap)
    assert cg.minimize(problem, solver, w0=twin, max_steps=0, random_state=0).n_steps == 0
    before = as_array(result.state.w).copy()
    for state in (result.state, twin.state):  # both go on in the same way, and neither with the other's arrays
        np.testing.assert_array_equal(as_array(state.w), before)
        solver.advance(problem, state, result.n_steps, 1, 1.0)
    np.testing.assert_array_equal(as_array(twin.state.w), as_array(result.state.w))
