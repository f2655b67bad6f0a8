"""The least value of a loss bounds F from below: the certificate of runs and paths where the gap says little."""

from typing import NamedTuple

import numpy as np
import pytest

import condgrad as cg
from condgrad import losses

RNG = np.random.default_rng(0)
X = RNG.standard_normal((20, 40))
EXACT = X[:, :3] @ [1.0, 2.0, -1.0]
CLASSES = np.where(EXACT > 0.0, 1.0, -1.0)
COUNTS = RNG.poisson(3.0, 20).astype(float)


@losses.loss
class MinusLog(NamedTuple):
    """-log p, continued as a line to the left of 0.1: it falls below zero, and does not say how far."""

    def value(self, p, y):
        return -np.log(np.maximum(p, 0.1)) - 10.0 * np.minimum(p - 0.1, 0.0) + 0.0 * y

    def derivative(self, p, y):
        return -1.0 / np.maximum(p, 0.1) + 0.0 * y

    def second_derivative(self, p, y):
        return np.where(p > 0.1, 1.0 / np.maximum(p, 0.1) ** 2, 0.0) + 0.0 * y

    def smoothness(self):
        return 100.0


@losses.loss
class Rough(NamedTuple):
    """A loss that forgot its smoothness."""

    def value(self, p, y):
        return -np.log(p)

    def derivative(self, p, y):
        return -1.0 / p

    def second_derivative(self, p, y):
        return 1.0 / (p * p)


@pytest.mark.parametrize(
    ("loss", "y", "radius"),
    [
        (losses.Squared(), EXACT, 1e6),
        (losses.Huber(), EXACT, 1e6),
        (losses.Logistic(), CLASSES, 1e3),
        (losses.SquaredHinge(), CLASSES, 1e4),
        (losses.Poisson(), COUNTS, 50.0),
    ],
    ids=repr,
)
def test_the_lower_bound_is_at_least_the_least_value(loss, y, radius):
    problem = cg.Problem(X, y, loss, cg.constraints.L1Ball(radius))
    rough = cg.minimize(problem, "fw", max_steps=3)
    least = float(np.mean(loss.least_value(y)))
    assert rough.objective - rough.gap < least - 1.0  # the gap says nothing
    assert least - 1e-9 <= rough.lower_bound <= rough.objective
    assert rough.lower_bound <= cg.minimize(problem, tol=1e-9).objective + 1e-12
    fresh = problem.evaluate(rough.w)
    assert rough.gap == fresh.gap  # which remains that of Frank-Wolfe


def test_a_loss_without_a_least_value_has_no_such_bound():
    points = 1.0 + RNG.random((30, 3))
    problem = cg.Problem(points, np.ones(30), MinusLog(), cg.constraints.L1Ball(5.0))
    result = cg.minimize(problem, tol=1e-9)
    assert result.objective < -1.0 and result.lower_bound <= result.objective
    with pytest.raises(ValueError, match="MinusLog is not, as far as its method least_value tells"):
        cg.radius_path(points, np.ones(30), loss=MinusLog(), alphas=[0.1])


def test_a_loss_without_smoothness_is_refused_when_the_problem_is_made():
    sentence = r"Rough needs a method smoothness\(\); return math.inf if f'' is unbounded\."
    with pytest.raises(TypeError, match=sentence):
        cg.Problem(X, EXACT, Rough(), cg.constraints.L1Ball(1.0))


@pytest.mark.parametrize("settings", [{}, {"l2": 1e-30}], ids=["small data", "exact engine"])
def test_gaps_of_lasso_paths_are_at_most_the_objective(settings):
    """Where Xw = y up to rounding the gap over a huge ball can be anything, but F cannot be below 0."""
    radii, coefs, info = cg.lasso_path(1e3 * X, EXACT, radii=[1e-3, 1.0, 1e9], tol=1e-14, **settings)
    assert (info.gap <= info.objective * (1.0 + 1e-9) + info.rounding + 1e-12 * info.objective).all()
    for k, radius in enumerate(radii):
        residual = EXACT.astype(np.longdouble) - 1e3 * X.astype(np.longdouble) @ coefs[:, [k]].toarray()[:, 0]
        value = float(0.5 * np.mean(residual**2))
        best = cg.minimize(cg.Problem(1e3 * X, EXACT, losses.Squared(), cg.constraints.L1Ball(radius)), tol=1e-12)
        assert value - best.objective <= info.gap[k] + info.rounding[k] + 1e-12


def test_gaps_of_rough_points_are_at_most_what_is_left_to_gain():
    """First steps over a huge ball have huge gaps; the loss cannot fall by more than it is above its least value."""
    _, _, info = cg.radius_path(X, CLASSES, radii=[1e4], constraint="l2", max_epochs=2, tol=1e-12)
    at_zero = np.log(2.0)
    assert info.gap[0] <= info.objective[0] + info.rounding[0] + 1e-12 and info.objective[0] <= at_zero
