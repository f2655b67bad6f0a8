"""max_time of paths: what is solved so far comes back, at least the first point of data in memory, with honest gaps."""

import numpy as np
import pytest

import condgrad as cg
from condgrad.linalg import interrupts
from condgrad.problems.cox.problem import CoxProblem
from condgrad.run.result import Status

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 12))
Y = X[:, 0] - 2.0 * X[:, 1] + 0.3 * RNG.standard_normal(60)
SIGNS = np.where(Y > 0.0, 1.0, -1.0)
TIMES = np.column_stack([RNG.exponential(size=60), RNG.random(60) < 0.7])


def groups(radius):
    return cg.constraints.GroupBall(np.arange(12) // 3, radius)


LASSO = cg.losses.Squared(), cg.constraints.L1Ball
PATHS = {
    "lasso": (cg.lasso_path, (X, Y), {}, LASSO),
    "lasso, exact engine": (cg.lasso_path, (X, Y), {"n_radii": 5, "l2": 1e-9}, LASSO),
    "lasso, everywhere": (cg.lasso_path, (X, Y), {"n_radii": None}, LASSO),
    "lasso, randomized": (cg.lasso_path, (X, Y), {"radii": [0.5, 1.0], "engine": "randomized"}, LASSO),
    "logistic": (cg.radius_path, (X, SIGNS), {}, (cg.losses.Logistic(), cg.constraints.L1Ball)),
    "groups": (
        cg.radius_path, (X, Y), {"loss": "huber", "constraint": groups}, (cg.losses.Huber(), groups),
    ),
    "by minimize": (
        cg.radius_path, (X, SIGNS), {"constraint": "l2", "radii": [1.0, 0.5]},
        (cg.losses.Logistic(), cg.constraints.L2Ball),
    ),
    "without zero": (
        cg.radius_path, (X, SIGNS), {"constraint": "simplex", "radii": [1.0, 0.5]},
        (cg.losses.Logistic(), cg.constraints.Simplex),
    ),
}  # fmt: skip


class Clock:
    """A clock that can be put forward."""

    def __init__(self):
        self.ahead = 0.0

    def perf_counter(self):
        return interrupts_time.perf_counter() + self.ahead


interrupts_time = interrupts.time


@pytest.mark.parametrize("name", PATHS)
def test_without_any_time_the_first_point_comes_as_it_is(name):
    path, data, settings, (loss, make) = PATHS[name]
    radii, coefs, info = path(*data, **settings, max_time=0.0)
    assert info.status is Status.MAX_TIME and radii.size <= 1
    for k, radius in enumerate(radii):
        if radius == 0.0:
            continue
        w = coefs[:, [k]].toarray()[:, 0]
        at = cg.Problem(*data, loss, make(radius)).evaluate(w)
        assert at.gap <= info.gap[k] + info.rounding[k] + at.rounding + 1e-8
        assert make(radius).violation(w) <= 1e-12
    assert radii.size == 1


@pytest.mark.parametrize("path", ["lasso", "exact", "logistic", "groups", "cox"])
def test_without_any_time_a_penalty_has_an_honest_gap(path):
    alphas = [1e-3]
    if path == "cox":
        problem = CoxProblem(X, TIMES, cg.constraints.L1Ball(1.0))
        found = cg.cox_path(X, TIMES, alphas=alphas, max_time=0.0)
        best = cg.cox_path(X, TIMES, alphas=alphas)
    else:
        settings = {
            "lasso": {"loss": "squared"}, "logistic": {}, "exact": {},
            "groups": {"loss": "squared", "constraint": groups},
        }[path]  # fmt: skip
        y, run = (SIGNS if path == "logistic" else Y), cg.lasso_path if path == "exact" else cg.radius_path
        settings |= {"standardize": True} if path == "exact" else {}
        found, best = (run(X, y, alphas=alphas, **settings, max_time=t) for t in (0.0, None))
        assert best[2].status is Status.CONVERGED
        problem = None
    (radius,), coefs, info = found
    assert info.status is Status.MAX_TIME and coefs.shape[1] == 1
    scale = 1.0 if problem is None else problem.loss_scale()
    excess = info.objective[0] + alphas[0] * radius - best[2].objective[0] - alphas[0] * best[0][0]
    assert excess <= info.gap[0] + info.rounding[0] + 1e-6 * scale


@pytest.mark.parametrize("name", ["lasso", "lasso, exact engine", "logistic", "groups", "by minimize"])
def test_points_that_are_solved_before_the_time_is_over_come_back(name, monkeypatch):
    clock = Clock()
    monkeypatch.setattr(interrupts, "time", clock)
    path, data, settings, _ = PATHS[name]
    settings = settings | {"radii": np.linspace(0.2, 2.0, 8), "n_radii": 8}
    whole = path(*data, **settings)

    def report(progress):
        clock.ahead += 1e7 if progress.step == 3 else 0.0

    radii, coefs, info = path(*data, **settings, max_time=1e6, callback=report)
    assert info.status is Status.MAX_TIME
    np.testing.assert_array_equal(radii, np.sort(whole[0])[:3])
    np.testing.assert_allclose(coefs.toarray(), whole[1][:, :3].toarray(), atol=1e-2)
    assert (info.gap + info.rounding <= 1e-6 * max(1.0, 0.5 * Y @ Y)).all()


def test_a_path_within_its_time_is_the_same():
    radii, coefs, _ = cg.radius_path(X, SIGNS, n_radii=5)
    again = cg.radius_path(X, SIGNS, n_radii=5, max_time=1e6)
    assert again[2].status is Status.CONVERGED
    np.testing.assert_array_equal(again[0], radii)
    np.testing.assert_array_equal(again[1].toarray(), coefs.toarray())


def test_rounds_of_a_lasso_path_are_limited():
    wide = np.random.default_rng(1).standard_normal((50, 300))
    y = wide[:, :10].sum(axis=1)
    settings = {"alphas": [1e-3], "standardize": True}
    assert cg.lasso_path(wide, y, **settings)[2].status is Status.CONVERGED
    _, _, info = cg.lasso_path(wide, y, **settings, max_epochs=1)
    assert info.status is Status.MAX_EPOCHS and info.gap[0] > 1e-6


@pytest.mark.parametrize("path", [cg.lasso_path, cg.radius_path])
def test_max_time_is_checked(path):
    with pytest.raises(ValueError, match="max_time must be a number of at least 0, or None; got -1"):
        path(X, SIGNS, max_time=-1)
