"""SquareRootLasso against scipy, and its penalty that needs no noise level."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse

import condgrad as cg

RNG = np.random.default_rng(0)
N, D = 70, 8
X = RNG.standard_normal((N, D)) + 0.5
Y = 3.0 + X[:, :3] @ [2.0, -1.0, 0.5] + RNG.standard_normal(N)
WEIGHT = RNG.uniform(0.2, 2.0, N)


def objective(w, b, penalty, weight=None):
    return np.sqrt(np.average((Y - X @ w - b) ** 2, weights=weight)) + penalty * np.abs(w).sum()


def optimum(penalty, weight=None):
    """Return the least value, by L-BFGS-B in (u, v, b), w = u - v."""

    def value(z):
        w, share = z[:D] - z[D:-1], np.full(N, 1.0 / N) if weight is None else weight / weight.sum()
        r = Y - X @ w - z[-1]
        size = np.sqrt(share @ r**2)
        slope = -(share * r) @ X / size
        gradient = np.concatenate([slope + penalty, penalty - slope, [-(share @ r) / size]])
        return size + penalty * z[:-1].sum(), gradient

    bounds = [(0.0, None)] * (2 * D) + [(None, None)]
    settings = {"ftol": 1e-15, "gtol": 1e-12, "maxiter": 10_000}
    return scipy.optimize.minimize(value, np.ones(2 * D + 1), jac=True, bounds=bounds, options=settings).fun


@pytest.mark.parametrize("penalty", [0.05, 0.3, None])
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
def test_it_is_optimal_and_the_gap_holds(penalty, weight):
    model = cg.SquareRootLasso(penalty).fit(X, Y, weight)
    best = optimum(model.penalty_, weight)
    found = objective(model.coef_, model.intercept_, model.penalty_, weight)
    assert found == pytest.approx(best, rel=1e-6)
    assert found - best <= model.duality_gap_ + 1e-9 and model.duality_gap_ <= 2e-6 * Y.std()
    assert model.alpha_ == pytest.approx(model.penalty_ * model.noise_, rel=1e-3)


def test_the_default_penalty_does_not_depend_on_units():
    one, other = (cg.SquareRootLasso(tol=1e-8).fit(X, scale * Y) for scale in (1.0, 1e4))
    np.testing.assert_allclose(other.coef_, 1e4 * one.coef_, rtol=1e-3, atol=1.0)
    assert other.noise_ == pytest.approx(1e4 * one.noise_, rel=1e-4)


def test_forms_and_offsets():
    dense = cg.SquareRootLasso().fit(X, Y)
    np.testing.assert_allclose(cg.SquareRootLasso().fit(scipy.sparse.csr_array(X), Y).coef_, dense.coef_, atol=1e-4)
    offset = RNG.standard_normal(N)
    np.testing.assert_allclose(cg.SquareRootLasso().fit(X, Y + offset, offset=offset).coef_, dense.coef_, atol=1e-4)


def test_what_it_refuses():
    with pytest.raises(ValueError, match="1d array"):
        cg.SquareRootLasso().fit(X, np.column_stack([Y, Y]))
    with pytest.raises(ValueError, match="penalty must be a positive, finite number"):
        cg.SquareRootLasso(0.0).fit(X, Y)
    with pytest.raises(ValueError, match="the fit is perfect"):
        cg.SquareRootLasso(1e-9).fit(X[:6], Y[:6])
