"""Offsets: F(w) = (1/n) sum_i f(x_i'w + b + o_i, y_i), against the same problems posed in other ways."""

from typing import NamedTuple

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from certificates import HAS_LONG, LONG, Drawn, check
from tables import QUADRATIC_ONLY, targets

import condgrad as cg
from condgrad.compiled.elementary import exp
from condgrad.linalg.fingerprint import fingerprint_of
from condgrad.linalg.spread import spread_rows
from condgrad.losses import CLASSES
from condgrad.problems.base import Feature
from condgrad.problems.samples import Samples

needs_long = pytest.mark.skipif(not HAS_LONG, reason="np.longdouble has no more digits than a float here")
SOLVERS = [
    name
    for name, cls in cg.solvers.REGISTERED.items()
    if Feature.FACTORS not in cls.requires and name not in QUADRATIC_ONLY
]
FAR = 16.0  # a power of two, larger than all offsets below


@cg.losses.loss
class CodedLogistic(NamedTuple):
    """The logistic loss of p + o for the class c, where the target is the code c (16 + o)."""

    def value(self, p, y):
        """Return log(1 + exp(-c (p + o)))."""
        return np.log1p(exp(-np.sign(y) * (p + np.abs(y) - FAR)))

    def derivative(self, p, y):
        """Return -c / (1 + exp(c (p + o)))."""
        return -np.sign(y) / (1.0 + exp(np.sign(y) * (p + np.abs(y) - FAR)))

    def second_derivative(self, p, y):
        """Return s (1 - s) for the probability s of the other class."""
        s = 1.0 / (1.0 + exp(np.sign(y) * (p + np.abs(y) - FAR)))
        return s * (1.0 - s)

    def smoothness(self):
        """Return 1/4."""
        return 0.25

    def curvature_smoothness(self):
        """Return the constant of the logistic loss."""
        return cg.losses.Logistic().curvature_smoothness()


def data(n=60, d=6, seed=0):
    """Return X, classes and offsets that matter."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.7)
    offset = np.round(rng.uniform(-3.0, 3.0, n), 2)
    classes = np.where(X @ rng.uniform(-2.0, 2.0, d) + offset + rng.standard_normal(n) > 0.0, 1.0, -1.0)
    return X, classes, offset


def coded(classes, offset):
    return classes * (FAR + offset)


@pytest.mark.parametrize("intercept", [False, pytest.param(True, marks=pytest.mark.campaign)])
@pytest.mark.parametrize("solver", SOLVERS)
def test_every_solver_makes_the_steps_of_a_loss_that_knows_the_offsets(solver, intercept):
    X, classes, offset = data()
    X = scipy.sparse.csr_matrix(X) if intercept else X
    given = {"intercept": intercept, "sample_weight": np.linspace(0.5, 2.0, len(classes))}
    ball = cg.constraints.L1Ball(2.0)
    problems = [
        cg.Problem(X, classes, cg.losses.Logistic(), ball, offset=offset, **given),
        cg.Problem(X, coded(classes, offset), CodedLogistic(), ball, **given),
    ]
    try:
        runs = [cg.minimize(problem, solver, tol=0.0, max_epochs=8, random_state=3) for problem in problems]
    except ValueError as refusal:
        assert intercept, refusal
        pytest.skip(str(refusal))
    if solver == "pairwise":  # after an exact line search two vertices are equally good, and rounding chooses
        assert runs[0].objective == pytest.approx(runs[1].objective, rel=1e-4)
    else:
        np.testing.assert_allclose(runs[0].w, runs[1].w, rtol=1e-7, atol=1e-9)
        assert runs[0].objective == pytest.approx(runs[1].objective, rel=1e-9)
        assert runs[0].gap == pytest.approx(runs[1].gap, rel=1e-6, abs=1e-9)
        assert runs[0].intercept == pytest.approx(runs[1].intercept, rel=1e-7, abs=1e-9)
    exact = problems[0].evaluate(runs[0].w)
    assert runs[0].objective == pytest.approx(exact.objective, rel=1e-12)
    assert runs[0].gap == pytest.approx(exact.gap, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    "form", ["C", "csr", *(pytest.param(form, marks=pytest.mark.campaign) for form in ("F", "csc"))]
)
@pytest.mark.parametrize("loss", [cls() for cls in CLASSES], ids=lambda loss: type(loss).__name__)
def test_a_look_is_that_of_a_column_with_the_coefficient_one(loss, form):
    X, _, offset = data(seed=1)
    y = targets(loss, X[:, 0])
    make = {"C": np.ascontiguousarray, "F": np.asfortranarray}.get(form) or getattr(scipy.sparse, f"{form}_matrix")
    w = np.array([0.5, -1.0, 0.0, 0.25, 0.0, 0.125])
    ball = cg.constraints.L2Ball(2.0)
    for intercept in (False, True)[: 1 + loss.is_convex]:
        problem = cg.Problem(make(X), y, loss, ball, offset=offset, intercept=intercept)
        # The same without X: all predictions are those of one column, the offset of which has the coefficient 1.
        alone = cg.Problem(np.c_[X @ w + offset], y, loss, cg.constraints.Box([1.0], [1.0]), intercept=intercept)
        here, there = problem.evaluate(w), alone.evaluate([1.0])
        assert here.objective == pytest.approx(there.objective, rel=1e-12)
        assert problem.objective(w) == pytest.approx(there.objective, rel=1e-12)
        p = X @ w + offset + here.intercept
        assert here.intercept == pytest.approx(there.intercept, rel=1e-7, abs=1e-7)
        gradient = X.T @ loss.derivative(p, y) / len(y)
        np.testing.assert_allclose(here.gradient, gradient, rtol=1e-9, atol=1e-9)
        assert problem.null_objective() == pytest.approx(problem.objective(np.zeros(6)), rel=1e-12)


@pytest.mark.parametrize("intercept", [False, True])
def test_exposures_are_weights_of_rates(intercept):
    """exp(p + o) - y (p + o) is exp(o) times the Poisson loss of the rate y exp(-o), up to a constant."""
    rng = np.random.default_rng(2)
    X, offset = rng.standard_normal((80, 5)), rng.uniform(-1.0, 2.0, 80)
    y = rng.poisson(np.exp(0.7 * X[:, 0] - 0.3 * X[:, 1] + offset)).astype(float)
    ball, exposure = cg.constraints.L1Ball(0.8), np.exp(offset)
    own = cg.minimize(cg.Problem(X, y, cg.losses.Poisson(), ball, offset=offset, intercept=intercept), tol=1e-11)
    rates = cg.Problem(X, y / exposure, cg.losses.Poisson(), ball, sample_weight=exposure, intercept=intercept)
    weighted = cg.minimize(rates, tol=1e-11)
    assert own.status is weighted.status is cg.Status.CONVERGED
    assert own.objective == pytest.approx(exposure.mean() * weighted.objective - np.mean(y * offset), rel=1e-9)
    np.testing.assert_allclose(own.w, weighted.w, atol=1e-4)


@pytest.mark.parametrize("loss", [cg.losses.Poisson(), cg.losses.Logistic(), cg.losses.Huber(0.7)])
def test_the_optimum_is_that_of_scipy(loss):
    X, classes, offset = data(n=80, d=4, seed=3)
    y = classes if loss.classes else np.abs(np.round(X[:, 0] + offset))
    problem = cg.Problem(X, y, loss, cg.constraints.L2Ball(0.9), offset=offset, intercept=True)
    found = cg.minimize(problem, tol=1e-10)

    def objective(v):
        return np.mean(loss.value(X @ v[:4] + offset + v[4], y))

    inside = {"type": "ineq", "fun": lambda v: 0.81 - v[:4] @ v[:4]}
    best = scipy.optimize.minimize(objective, np.zeros(5), method="SLSQP", constraints=inside, tol=1e-12)
    assert found.status is cg.Status.CONVERGED
    assert found.objective == pytest.approx(best.fun, abs=1e-6)
    assert found.objective <= best.fun + 1e-9


@needs_long
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("size", [1.0, 1e8])
@pytest.mark.parametrize("loss", [cg.losses.Squared(), cg.losses.Huber(0.7), cg.losses.PseudoHuber(0.5)])
def test_large_offsets_do_not_make_a_certificate_false(loss, size, intercept):
    X, _, offset = data(n=40, d=3, seed=4)
    offset, weight = size * offset, np.ones(40)
    y = offset + X[:, 0]  # what is left of y after the offset has few digits
    problem = cg.Problem(X, y, loss, cg.constraints.L1Ball(0.5), offset=offset, intercept=intercept)
    for solver in ("auto", "pairwise"):
        drawn = Drawn(problem, X.astype(LONG), y, weight, solver, 1e-12, "", offset)
        assert not check(drawn, cg.minimize(problem, solver, tol=1e-12, max_epochs=60))


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_paths(fit_intercept):
    X, classes, offset = data(seed=5)
    y, radii = 2.0 * X[:, 0] + 0.5 * classes + offset, [0.1, 0.5, 1.0]
    given = {"radii": radii, "fit_intercept": fit_intercept, "tol": 1e-9}
    _, coefs, info = cg.lasso_path(X, y, offset=offset, **given)
    _, expected, plain = cg.lasso_path(X, y - offset, **given)
    np.testing.assert_allclose(coefs.toarray(), expected.toarray(), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(info.objective, plain.objective, rtol=1e-9)
    assert (info.rounding >= plain.rounding).all()
    _, by_loss, of_loss = cg.radius_path(X, y, offset=offset, loss="squared", **given)
    np.testing.assert_allclose(by_loss.toarray(), expected.toarray(), atol=1e-4)
    np.testing.assert_allclose(of_loss.objective, plain.objective, atol=1e-8)
    drawn = {"engine": "randomized", "random_state": 0, "radii": radii, "fit_intercept": fit_intercept}
    _, _, by_steps = cg.lasso_path(X, y, offset=offset, **drawn)
    assert (by_steps.objective >= plain.objective - 1e-9).all()
    np.testing.assert_allclose(by_steps.objective, plain.objective, rtol=1e-2)
    _, coefs, info = cg.radius_path(X, classes, offset=offset, **given)
    for k, radius in enumerate(radii):
        ball = cg.constraints.L1Ball(radius)
        problem = cg.Problem(X, classes, cg.losses.Logistic(), ball, offset=offset, intercept=fit_intercept)
        assert info.objective[k] == pytest.approx(problem.objective(coefs[:, [k]].toarray().ravel()), rel=1e-12)
        assert info.objective[k] - info.gap[k] - info.rounding[k] <= cg.minimize(problem, tol=1e-10).objective


def test_offsets_belong_to_what_a_checkpoint_recognises():
    X, classes, offset = data()
    given = X, classes, cg.losses.Logistic(), cg.constraints.L1Ball(1.0)
    plain, own = cg.Problem(*given), cg.Problem(*given, offset=offset)
    assert own.fingerprint() == cg.Problem(*given, offset=offset).fingerprint()
    assert len({plain.fingerprint(), own.fingerprint(), cg.Problem(*given, offset=-offset).fingerprint()}) == 3

    class Samples(NamedTuple):
        loss: object
        y: np.ndarray
        weight: np.ndarray

    before = Samples(plain.loss, plain.samples.y, plain.samples.weight)
    definition = (X.shape, plain.matrix.X, before, plain.constraint, False)
    assert plain.fingerprint() == fingerprint_of(definition)


def test_parts_have_their_offsets():
    X, classes, offset = data(n=200)
    problem = cg.Problem(X, classes, cg.losses.Logistic(), cg.constraints.L1Ball(1.0), offset=offset)
    part, w, rows = problem.part(50), np.ones(6), spread_rows(200, 4)
    alone = cg.Problem(X[rows], classes[rows], cg.losses.Logistic(), cg.constraints.L1Ball(1.0), offset=offset[rows])
    assert part.objective(w) == pytest.approx(alone.objective(w), rel=1e-13)
    assert isinstance(problem.samples, Samples)
    other = problem.over(cg.constraints.L1Ball(3.0)).with_targets(-classes)
    assert other.objective(w) == pytest.approx(
        cg.Problem(X, -classes, cg.losses.Logistic(), cg.constraints.L1Ball(1.0), offset=offset).objective(w)
    )


def test_smoothness_counts_the_offsets():
    X, _, offset = data()
    y, loss = np.ones(len(X)), cg.losses.Poisson()
    plain, own = (cg.Problem(X, y, loss, cg.constraints.L1Ball(1.0), offset=o) for o in (None, offset))
    assert own.loss_smoothness() == pytest.approx(plain.loss_smoothness() * np.exp(np.abs(offset).max()))


@pytest.mark.parametrize(
    ("offset", "message"),
    [
        ([1.0], "offset must have one entry per sample: X has 60 rows, offset has 1"),
        (np.full(60, np.nan), "offset has 60 entries that are not finite"),
        (np.ones((60, 2)), "offset must have one dimension"),
    ],
)
def test_wrong_offsets(offset, message):
    X, classes, _ = data()
    with pytest.raises(ValueError, match=message):
        cg.Problem(X, classes, cg.losses.Logistic(), cg.constraints.L1Ball(1.0), offset=offset)
