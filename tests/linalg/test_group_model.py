"""Quadratics over balls of group norms: against projected gradients, and against their own optimality conditions."""

import numpy as np
import pytest

import condgrad as cg
from condgrad.constraints._group_form import group_form
from condgrad.linalg.group_model import GroupModel, minimise_over_ball, minimise_penalised
from condgrad.linalg.group_norm import GroupNorm, dual_norms, norm_of

NORMS = [GroupNorm(0.0, False), GroupNorm(0.4, False), GroupNorm(0.0, True)]


def quadratic(n, sizes, common, seed):
    """Return offsets of the groups, and H and c of least squares with correlated columns."""
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    k = int(offsets[-1])
    Z = np.sqrt(1.0 - common) * rng.standard_normal((n, k)) + np.sqrt(common) * rng.standard_normal((n, 1))
    y = Z[:, : offsets[3]].sum(axis=1) + rng.standard_normal(n)
    return offsets, Z.T @ Z / n, Z.T @ y / n


def ball_of(norm, offsets, radius):
    labels = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
    if norm.l1_weight > 0.0:
        return cg.constraints.SparseGroupBall(labels, radius, norm.l1_weight)
    return cg.constraints.WeightedGroupBall(labels, radius, np.ones(offsets.size - 1), norm.is_nonnegative)


def by_projections(ball, H, c, x):
    """Minimise x'Hx/2 - c'x over the ball by many projected gradient steps."""
    L, ahead, momentum = np.linalg.eigvalsh(H)[-1], x, 1.0
    for _ in range(20_000):
        new = ball.project(ahead - (H @ ahead - c) / L)
        following = 0.5 + np.sqrt(0.25 + momentum**2)
        ahead, x, momentum = new + (momentum - 1.0) / following * (new - x), new, following
    return x


@pytest.mark.parametrize("norm", NORMS, ids=["groups", "sparse groups", "non-negative"])
@pytest.mark.parametrize("share", [0.05, 0.5, 0.95, 3.0])
def test_the_minimiser_over_a_ball_is_that_of_projected_gradients(norm, share):
    offsets, H, c = quadratic(60, [3, 1, 4, 2, 5, 3, 3, 1], common=0.3, seed=0)
    radius = share * norm_of(norm, offsets, np.maximum(np.linalg.solve(H, c), -np.inf))
    found = minimise_over_ball(GroupModel(norm, offsets, H, c), np.zeros(c.size), radius, 1e-12)
    ball = ball_of(norm, offsets, radius)
    assert ball.contains(found.x, 1e-12 * radius)
    x = by_projections(ball, H, c, np.zeros(c.size))
    np.testing.assert_allclose(found.x, x, atol=1e-5 * max(1.0, np.abs(x).max()))
    correlation = c - H @ found.x
    gap = radius * dual_norms(norm, offsets, correlation).max() - correlation @ found.x
    assert gap == pytest.approx(found.gap, abs=1e-12)
    assert found.gap <= 1e-11


@pytest.mark.parametrize("norm", NORMS, ids=["groups", "sparse groups", "non-negative"])
@pytest.mark.parametrize("common", [0.0, 0.9])
@pytest.mark.parametrize("n", [30, 300])
def test_more_columns_than_samples_and_correlated_ones(norm, common, n):
    offsets, H, c = quadratic(n, [4] * 25, common, seed=1)
    for radius in (0.5, 5.0, 20.0):
        found = minimise_over_ball(GroupModel(norm, offsets, H, c), np.zeros(c.size), radius, 1e-7)
        first_gap = radius * dual_norms(norm, offsets, c).max()
        assert found.gap <= max(1e-7, 1e-4 * first_gap)
        assert norm_of(norm, offsets, found.x) <= radius * (1.0 + 1e-14)


def test_a_warm_start_leads_to_the_same_point():
    offsets, H, c = quadratic(100, [5] * 10, 0.2, seed=2)
    model = GroupModel(GroupNorm(), offsets, H, c)
    first = minimise_over_ball(model, np.zeros(c.size), 2.0, 1e-12)
    cold = minimise_over_ball(model, np.zeros(c.size), 2.2, 1e-12)
    warm = minimise_over_ball(model, first.x, 2.2, 1e-12, first.alpha)
    np.testing.assert_allclose(warm.x, cold.x, atol=1e-6)


@pytest.mark.parametrize("start", ["origin", "elsewhere"])
def test_an_origin_leads_to_the_same_point(start):
    offsets, H, c = quadratic(100, [5] * 10, 0.2, seed=2)
    origin = np.where(np.arange(c.size) < 20, 0.1, 0.0)
    first = origin if start == "origin" else 0.5 * origin
    plain, moved = GroupModel(GroupNorm(), offsets, H, c), GroupModel(GroupNorm(), offsets, H, c - H @ origin, origin)
    constant = 0.5 * origin @ H @ origin - c @ origin
    for minimise, target in ((minimise_over_ball, 2.0), (minimise_penalised, 0.2)):
        found, wanted = minimise(moved, first, target, 1e-12), minimise(plain, first, target, 1e-12)
        np.testing.assert_allclose(found.x, wanted.x, atol=1e-6)
        assert found.value + constant == pytest.approx(wanted.value, abs=1e-9)


@pytest.mark.parametrize("norm", NORMS, ids=["groups", "sparse groups", "non-negative"])
def test_the_penalty_of_a_ball_has_the_same_minimiser(norm):
    offsets, H, c = quadratic(100, [5] * 10, 0.2, seed=3)
    model = GroupModel(norm, offsets, H, c)
    over_ball = minimise_over_ball(model, np.zeros(c.size), 2.0, 1e-13)
    penalised = minimise_penalised(model, np.zeros(c.size), over_ball.alpha, 1e-13)
    np.testing.assert_allclose(penalised.x, over_ball.x, atol=1e-6)


def test_zero_is_the_minimiser_where_no_slope_exceeds_the_penalty():
    offsets, H, c = quadratic(100, [5] * 10, 0.2, seed=3)
    model = GroupModel(GroupNorm(), offsets, H, c)
    assert not minimise_penalised(model, np.zeros(c.size), 1.01 * dual_norms(model.norm, offsets, c).max(), 0.0).x.any()
    nothing = GroupModel(GroupNorm(), offsets, H, np.zeros(c.size))
    assert not minimise_over_ball(nothing, np.zeros(c.size), 1.0, 0.0).x.any()


def test_shrinking_and_dual_norms_are_those_of_the_set():
    rng = np.random.default_rng(4)
    offsets = np.array([0, 3, 4, 9])
    r = rng.standard_normal(9)
    for norm in NORMS:
        ball = ball_of(norm, offsets, 1.0)
        assert dual_norms(norm, offsets, r).max() == pytest.approx(r @ cg.constraints.best_vertex(ball, -r).to_dense(9))
    ball = ball_of(NORMS[1], offsets, 1.0)
    x = r.copy()
    NORMS[1].shrink(x, 0, 3, 0.2)
    np.testing.assert_allclose(x[:3], ball.shrunk(r, 0.2)[:3], atol=1e-14)


def test_a_form_knows_the_prices_of_features():
    ball = cg.Problem(
        np.eye(3), np.ones(3), cg.losses.Squared(), cg.constraints.WeightedGroupBall([7, 5, 7], 2.0, [3.0, 4.0])
    ).constraint
    form = group_form(ball)
    np.testing.assert_array_equal(form.price, [4.0, 3.0, 4.0])
    other = group_form(ball._replace(radius=3.0))
    assert form.is_same_but_radius(other)
    assert not form.is_same_but_radius(group_form(ball._replace(weights=np.array([1.0, 4.0]))))
    assert group_form(cg.constraints.L1Ball(1.0)) is None


@pytest.mark.parametrize("share", [0.5, 1.0, 1.5, 10.0])
@pytest.mark.parametrize("norm", NORMS)
def test_a_guess_of_the_multiplier_may_be_too_large(norm, share):
    offsets, H, c = quadratic(100, [3] * 20, 0.2, 0)
    largest = dual_norms(norm, offsets, c).max()
    for origin in (np.zeros(60), np.where(np.arange(60) < 9, 0.15, 0.0)):
        model = GroupModel(norm, offsets, H, c - H @ origin, origin)
        found = minimise_over_ball(model, origin, 2.0, 1e-6 * largest, share * largest)
        assert found.gap <= 1e-6 * largest and found.alpha < largest
