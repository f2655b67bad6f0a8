"""corrective where models are hard: supports as large as n, balls that hardly bind, classes that can be separated."""

import numpy as np
import pytest

import condgrad as cg
from condgrad import constraints, losses
from condgrad.problems.base import BaseProblem, Feature
from condgrad.problems.look import Look
from condgrad.solvers.full_pass import taylor_model
from condgrad.solvers.full_pass.corrective import _LONGEST, _next_stretch, _shortened


def wide(n=40, d=300):
    """More features than samples: with a large radius the support has almost n features."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d)) + rng.standard_normal((n, 1))
    return X, np.where(X[:, :5].sum(axis=1) + rng.standard_normal(n) > 0.0, 1.0, -1.0)


def indicators(n=600, n_columns=8):
    """Columns of indicators that depend on each other; some are so rare that they have samples of one class only."""
    rng = np.random.default_rng(1)
    levels = [np.minimum(rng.geometric(0.3, n) - 1, 15) for _ in range(n_columns)]
    X = np.hstack([np.eye(16)[level] for level in levels])
    return X, np.where(X @ rng.standard_normal(X.shape[1]) + rng.logistic(size=n) > 0.0, 1.0, -1.0)


def separable(n=200, d=20):
    """Classes that a plane separates: the losses of all samples go to zero as the radius grows."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((n, d))
    return X, np.where(X @ rng.standard_normal(d) > 0.0, 1.0, -1.0)


def equal_columns():
    """Every feature three times, once with the opposite sign."""
    X, y = separable(150, 10)
    flipped = np.where(np.random.default_rng(3).random(150) < 0.1, -y, y)
    return np.hstack([X, X, -X]), flipped


def problem_of(make, radius, **settings):
    X, y = make()
    return cg.Problem(X, y, losses.Logistic(), constraints.L1Ball(radius), **settings)


# The number of passes is about one and a half times what each of these runs takes.
REGIMES = [
    pytest.param(wide, 20.0, 1e-9, 25, id="support-of-n"),
    pytest.param(wide, 1e3, 1e-9, 16, id="tiny-penalty"),
    pytest.param(indicators, 30.0, 1e-9, 15, id="indicators"),
    pytest.param(indicators, 1e3, 1e-8, 33, id="hardly-binding"),
    pytest.param(indicators, 1e5, 1e-5, 33, id="not-binding"),
    pytest.param(separable, 1e3, 1e-9, 33, id="separable"),
    pytest.param(separable, 1e5, 1e-7, 25, id="separable-far"),
    pytest.param(equal_columns, 1e3, 1e-9, 14, id="equal-columns"),
]


@pytest.mark.parametrize(("make", "radius", "tol", "most"), REGIMES)
@pytest.mark.parametrize("intercept", [False, True])
def test_a_hard_regime_takes_few_passes(make, radius, tol, most, intercept):
    problem = problem_of(make, radius, intercept=intercept)
    result = cg.minimize(problem, "corrective", tol=tol, max_epochs=100)
    assert result.status is cg.Status.CONVERGED
    assert result.gap + result.rounding <= tol
    assert problem.constraint.violation(result.w) <= 1e-12 * radius
    assert problem.gap(result.w) <= tol  # from a fresh pass
    assert result.n_epochs <= most


@pytest.mark.parametrize("make", [wide, indicators, separable, equal_columns])
def test_a_hard_regime_has_the_certified_optimum_of_the_path(make):
    X, y = make()
    problem = problem_of(make, 30.0)
    result = cg.minimize(problem, "corrective", tol=1e-10)
    _, coefs, info = cg.radius_path(X, y, radii=[1.0, 30.0], tol=1e-9)
    assert info.status is cg.Status.CONVERGED
    assert problem.objective(coefs.toarray()[:, -1]) == pytest.approx(result.objective, abs=1e-9)


@pytest.mark.parametrize("make", [wide, indicators, separable])
def test_a_run_survives_a_solver_of_models_that_fails(make, monkeypatch):
    def fail(x, g, H, goal, deadline):
        return np.zeros_like(x)

    monkeypatch.setattr(taylor_model, "minimise_in_ball", fail)
    problem = problem_of(make, 20.0)
    assert cg.minimize(problem, "corrective", tol=1e-5, max_steps=200).status is cg.Status.CONVERGED


def test_a_model_ends_at_its_deadline():
    problem = problem_of(wide, 20.0)
    model = taylor_model.HullModel(problem)
    rng = np.random.default_rng(0)
    A = rng.standard_normal((30, 200))
    z = model.minimise(None, rng.standard_normal(200), A.T @ A, np.zeros(200), 1e-9, deadline=0.0)
    assert np.abs(z).sum() <= 1.0 + 1e-14


def test_a_model_falls_although_it_is_straight_along_an_atom():
    """The exact solver gives up there, at a point with a smaller gap and a larger value than the start."""
    H = np.zeros((5, 5))
    order = [0, 1, 3, 4]  # the samples of the atom between them have no curvature
    H[np.ix_(order, order)] = [
        [9.06e4, -4.50e4, 1.20e3, -1.13e2],
        [-4.50e4, 6.98e4, -8.09e2, 5.63e1],
        [1.20e3, -8.09e2, 6.31e1, -2.59e0],
        [-1.13e2, 5.63e1, -2.59e0, 2.07e-1],
    ]
    g, x = np.array([9.53, 0.0, -1.66, 0.0, -0.0198]), np.array([4e-4, 4e-4, 8.3e-3, 9.3e-3, 0.0])
    step = taylor_model.HullModel(problem_of(wide, 20.0)).minimise(None, g, H, x, 0.1) - x
    assert g @ step < 0.0 and g @ step + 0.5 * step @ H @ step < 0.0 and np.abs(x + step).sum() <= 1.0 + 1e-12


def test_data_of_all_sizes_with_a_loss_that_is_straight_almost_everywhere():
    """Where models ended at points that are worse, runs stalled far from the minimum."""
    for seed in (0, 3, 7, 17, 22):
        rng = np.random.default_rng(seed)
        X = np.round(rng.standard_normal((27, 20)) > 0.5) * 10.0 ** rng.uniform(-4, 4, 20)
        y = np.clip(rng.standard_normal(27), -1.0, 1.0) * 3.0
        radius = 700.0 / X.max()
        problem = cg.Problem(X, y, losses.Huber(0.2), constraints.L1Ball(radius))
        found = cg.minimize(problem, "corrective", tol=1e-6 * problem.loss_scale())
        assert found.status is cg.Status.CONVERGED, seed


def test_a_run_with_long_steps_goes_on_from_a_checkpoint(tmp_path):
    problem = problem_of(wide, 1e3)
    whole = cg.minimize(problem, "corrective", tol=1e-9)
    for n_steps in range(1, whole.n_steps, 2):
        path = tmp_path / f"{n_steps}.npz"
        cg.minimize(problem, "corrective", tol=1e-9, max_steps=n_steps, checkpoint=path)
        resumed = cg.minimize(problem, "corrective", tol=1e-9, checkpoint=path)
        np.testing.assert_array_equal(resumed.w, whole.w)
        assert resumed.n_steps == whole.n_steps


def test_steps_become_longer_on_tails_only():
    assert _next_stretch(1.0, -1.0, -np.exp(-1.0)) > 1.0  # the slope of exp(-gamma)
    assert _next_stretch(3.0, -1.0, -np.exp(-3.0)) == _LONGEST
    assert _next_stretch(1.0, -1.0, -0.01) == _next_stretch(1.0, -1.0, 0.5) == 1.0  # of a quadratic, or beyond it
    assert _next_stretch(0.3, -1.0, -0.7) == 1.0  # a step that had to be shortened


def test_a_step_is_shortened_to_the_minimum_of_the_cubic():
    def f(gamma):
        return gamma**3 + gamma**2 - 0.7 * gamma

    def slope(gamma):
        return 3.0 * gamma**2 + 2.0 * gamma - 0.7

    best = (-2.0 + np.sqrt(4.0 + 12.0 * 0.7)) / 6.0
    assert _shortened(1.0, f(0.0) - f(1.0), slope(0.0), slope(1.0)) == pytest.approx(best)
    assert _shortened(2.0, -f(2.0), slope(0.0), slope(2.0)) == pytest.approx(best)
    assert _shortened(1.0, -1.0, -1.0, -0.5) == 0.5  # a loss that is not convex
    assert _shortened(1.0, -np.inf, -1.0, np.inf) == 0.1


class Flat(BaseProblem):
    """F is 1 as far as doubles can tell; the gradient says that it falls, the curvature that steps must be tiny."""

    is_convex = True
    offers = BaseProblem.offers | {Feature.CURVATURE}

    def __init__(self):
        self.n_samples, self.n_features, self.constraint = 1, 4, constraints.L2Ball(1.0)

    def look(self, w):
        look = Look(self.certified(w, 1.0, np.linspace(1.0, 2.0, 4), sizes=(1.0, np.ones(4))))
        look.curvature = lambda atoms, known=None, n_rows=np.inf: 1e20 * np.eye(len(atoms))
        return look


def test_a_run_without_progress_says_so():
    """Steps that change F by less than its rounding are allowed, but not for ever."""
    result = cg.minimize(Flat(), "corrective", tol=1e-9)
    assert result.status is cg.Status.STALLED
    assert result.n_steps < 100


class Copies(cg.Problem):
    """A problem whose part on all samples is another object."""

    def part(self, n_rows):
        found = super().part(n_rows)
        return cg.Problem(*self.data, losses.Logistic(), self.constraint) if found is self else found


@pytest.mark.parametrize("n", [200, 9000])
def test_a_part_of_all_samples_is_the_problem_itself(n):
    """A problem may return a copy; more samples than all there are must not be asked for again and again."""
    X, y = separable(n, 5)
    y = np.where(np.random.default_rng(0).random(n) < 0.2, -y, y)
    problem = Copies(X, y, losses.Logistic(), constraints.L2Ball(1.0))
    problem.data = X, y
    result = cg.minimize(problem, "corrective", tol=1e-8, max_steps=100)
    assert result.status is cg.Status.CONVERGED
