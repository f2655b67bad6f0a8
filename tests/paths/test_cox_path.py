"""cox_path: certified points for radii and for penalties."""

import numpy as np
import pytest

import condgrad as cg

RNG = np.random.default_rng(4)
N, D = 120, 8
X = RNG.standard_normal((N, D))
TIME = np.ceil(6.0 * RNG.exponential(np.exp(-X[:, :3] @ np.array([0.9, -0.6, 0.4]))))
Y = np.column_stack([TIME, RNG.random(N) < 0.7])
STRATA = RNG.integers(0, 2, N)


@pytest.mark.parametrize("ties", ["breslow", "efron"])
def test_every_point_is_certified(ties):
    radii, coefs, info = cg.cox_path(X, Y, ties=ties, strata=STRATA, n_radii=8, tol=1e-7)
    assert info.status is cg.Status.CONVERGED
    assert (np.diff(info.objective) < 0.0).all()
    assert (np.diff(info.alpha) < 0.0).all()
    for radius, w, gap, rounding in zip(radii, coefs.toarray().T, info.gap, info.rounding, strict=True):
        problem = cg.CoxProblem(X, Y, cg.constraints.L1Ball(radius), ties=ties, strata=STRATA)
        assert np.abs(w).sum() <= radius * (1.0 + 1e-12)
        best = cg.minimize(problem, tol=1e-10)
        assert problem.objective(w) - best.objective <= gap + rounding


def test_penalties_have_the_solutions_of_their_radii():
    radii, coefs, info = cg.cox_path(X, Y, radii=[0.3, 0.8], tol=1e-8)
    again, others, penalised = cg.cox_path(X, Y, alphas=info.alpha, tol=1e-8)
    assert penalised.status is cg.Status.CONVERGED
    np.testing.assert_allclose(again, radii, rtol=1e-3)
    np.testing.assert_allclose(others.toarray(), coefs.toarray(), atol=1e-3)
    zero = cg.cox_path(X, Y, alphas=[100.0])
    assert zero[0][0] == 0.0


def test_other_sets_and_free_features():
    radii, coefs, info = cg.cox_path(X, Y, radii=[0.1, 0.5], constraint="l2")
    assert info.status is cg.Status.CONVERGED
    assert (np.linalg.norm(coefs.toarray(), axis=0) <= radii + 1e-12).all()
    _, coefs, info = cg.cox_path(X, Y, radii=[0.0, 0.2], feature_weight={0: 0.0}, tol=1e-8)
    assert info.status is cg.Status.CONVERGED
    free = coefs.toarray()
    assert np.flatnonzero(free[:, 0]).tolist() == [0]
    assert np.abs(free[1:, 1]).sum() <= 0.2 + 1e-12
    r = cg.CoxProblem(X, Y, cg.constraints.L1Ball(1.0)).gradient(free[:, 1])
    assert abs(r[0]) <= 1e-3


def test_wrong_wishes_get_a_sentence():
    with pytest.raises(ValueError, match="alphas are penalties of an l1 norm"):
        cg.cox_path(X, Y, alphas=[0.1], constraint="l2")
    with pytest.raises(ValueError, match="give radii or alphas, not both"):
        cg.cox_path(X, Y, alphas=[0.1], radii=[1.0])
    with pytest.raises(ValueError, match="does not contain zero"):
        cg.cox_path(X, Y, constraint="simplex")
    with pytest.raises(ValueError, match="cox_path needs limits and rows that w = 0 satisfies"):
        cg.cox_path(X, Y, lower=0.1)


def test_a_callback_ends_the_path():
    seen = []
    radii, _, info = cg.cox_path(X, Y, radii=[0.1, 0.2, 0.3], callback=lambda progress: seen.append(progress) or True)
    assert radii.size == 1
    assert len(seen) == 1
    assert info.status is cg.Status.STOPPED
