"""radius_path: any loss over sets of many radii."""

import signal

import numpy as np
import pytest
import scipy.sparse
import sklearn
from covering import every_choice
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.utils.fixes import parse_version

import condgrad as cg
from condgrad import constraints, losses

# Older versions of scikit-learn name the penalty, newer ones the share of its l1 part.
L1 = {"l1_ratio": 1.0} if parse_version(sklearn.__version__) >= parse_version("1.8") else {"penalty": "l1"}


@pytest.fixture(scope="module")
def tumours():
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return np.where(np.abs(X) > 0.3, X, 0.0), np.where(y == 1, 1.0, -1.0)


@pytest.mark.slow
@every_choice(("kind", "fit_intercept"), [np.asarray, scipy.sparse.csr_matrix, scipy.sparse.csc_matrix], [False, True])
def test_logistic_points_are_those_of_scikit_learn(tumours, kind, fit_intercept):
    """The multiplier of a point is the penalty with the same solution."""
    X, y = tumours
    radii, coefs, info = cg.radius_path(kind(X), y, radii=[0.5, 3.0, 8.0], tol=1e-9, fit_intercept=fit_intercept)
    assert info.status is cg.Status.CONVERGED
    assert coefs.format == "csc"
    for k, alpha in enumerate(info.alpha):
        model = LogisticRegression(
            C=1.0 / (alpha * y.size),
            solver="saga",
            **L1,
            tol=1e-9,
            max_iter=100_000,
            fit_intercept=fit_intercept,
        ).fit(X, y)
        np.testing.assert_allclose(coefs[:, k].toarray().ravel(), model.coef_[0], atol=2e-3)
        assert np.abs(coefs[:, k]).sum() == pytest.approx(radii[k], rel=1e-6)
        p = y * (X @ coefs[:, k].toarray().ravel() + info.intercept[k])
        assert info.objective[k] == pytest.approx(np.log1p(np.exp(-p)).mean())


@pytest.mark.parametrize(
    ("loss", "constraint"),
    [
        ("huber", "l1"),
        (losses.Huber(0.5), "l2"),
        ("squared", "linf"),
        ("squared", lambda radius: constraints.GroupBall(np.arange(30) // 5, radius)),
        ("logistic", "simplex"),
    ],
)
def test_points_are_certified(tumours, loss, constraint):
    X, y = tumours
    radii, coefs, info = cg.radius_path(X, y, loss=loss, constraint=constraint, radii=[2.0, 0.5, 1.0], tol=1e-5)
    assert radii.tolist() == [2.0, 0.5, 1.0]
    assert info.relative_gap.max() <= 1e-5
    make = constraints.by_name(constraint) if isinstance(constraint, str) else constraint
    loss = losses.by_name(loss) if isinstance(loss, str) else loss
    for k, radius in enumerate(radii):
        problem, w = cg.Problem(X, y, loss, make(radius)), coefs[:, k].toarray().ravel()
        assert make(radius).contains(w)
        assert problem.gap(w) == pytest.approx(info.gap[k], abs=1e-9)
        assert problem.objective(w) == pytest.approx(info.objective[k])
        unit, r = make(1.0), problem.gradient(w)
        assert info.alpha[k] == pytest.approx(-constraints.best_vertex(unit, r).to_dense(30) @ r)


def test_the_default_grid_ends_where_the_multiplier_is_small(tumours):
    X, y = tumours
    radii, _, info = cg.radius_path(X, y, n_radii=6, eps=0.05, tol=1e-6)
    assert radii[-1] / radii[0] == pytest.approx(100.0)
    first = np.abs(X.T @ y).max() / 2.0 / y.size
    assert info.alpha[-1] == pytest.approx(0.05 * first, rel=0.05)
    assert (np.diff(info.objective) < 0.0).all()
    assert (np.diff(info.alpha) < 0.0).all()
    assert cg.radius_path(X, y, n_radii=1, eps=0.05)[0] == pytest.approx(radii[-1:])


def test_radius_zero_and_targets_that_say_nothing(tumours):
    X, y = tumours
    _, coefs, info = cg.radius_path(X, y, radii=[0.0, 1.0], fit_intercept=True)
    assert coefs[:, 0].nnz == 0
    share = (y > 0).mean()
    assert info.intercept[0] == pytest.approx(np.log(share / (1 - share)))
    assert info.alpha[0] == pytest.approx(np.abs(X.T @ (share - (y > 0))).max() / y.size)
    radii, coefs, _ = cg.radius_path(X, np.full(y.size, 3.0), loss="huber", n_radii=3, fit_intercept=True)
    assert radii.tolist() == [0.0, 0.0, 0.0]
    assert coefs.nnz == 0


def test_tol_is_relative_to_the_loss_at_zero(tumours):
    X, y = tumours
    _, _, info = cg.radius_path(X, 1e-3 * y, loss="squared", radii=[1e-4, 3e-4], tol=1e-3)
    assert info.relative_gap.max() <= 1e-3
    np.testing.assert_allclose(info.relative_gap, info.gap / 5e-7)


def test_each_point_starts_from_the_last(tumours, monkeypatch):
    X, y = tumours
    starts = []

    def spied(problem, *args, w0, **kwargs):
        starts.append(w0)
        return cg.minimize(problem, *args, w0=w0, **kwargs)

    monkeypatch.setattr("condgrad.paths.allowed_sets.minimize", spied)
    _, coefs, _ = cg.radius_path(X, y, radii=[1.0, 0.5], tol=1e-3, solver="corrective")
    assert not starts[0].any()
    np.testing.assert_array_equal(starts[1], coefs[:, 1].toarray().ravel())


def test_a_point_that_falls_short_says_why(tumours):
    X, y = tumours
    _, _, info = cg.radius_path(X, y, radii=[5.0], solver="fw", max_epochs=3, tol=1e-9)
    assert info.status is cg.Status.MAX_EPOCHS
    assert info.relative_gap[0] > 1e-9


def test_callback_and_ctrl_c(tumours):
    X, y = tumours
    seen = []
    _, _, info = cg.radius_path(X, y, n_radii=5, tol=1e-3, callback=lambda p: seen.append(p.n_nonzero) or p.step == 3)
    assert info.status is cg.Status.STOPPED
    assert seen == info.n_nonzero.tolist()

    def press(progress):
        if progress.step == 2:
            signal.raise_signal(signal.SIGINT)

    radii, coefs, info = cg.radius_path(X, y, n_radii=5, tol=1e-3, callback=press)
    assert info.status is cg.Status.INTERRUPTED
    assert 2 <= radii.size == coefs.shape[1] < 5  # points of one line come together


def test_ctrl_c_during_the_search_for_the_grid(tumours, monkeypatch):
    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("condgrad.paths.minimized.radius_at", interrupt)
    radii, coefs, info = cg.radius_path(*tumours, solver="corrective")
    assert info.status is cg.Status.INTERRUPTED
    assert radii.size == coefs.shape[1] == 0

    monkeypatch.setattr("condgrad.paths.smooth.SmoothPath.largest_radius", interrupt)
    radii, coefs, info = cg.radius_path(*tumours)
    assert info.status is cg.Status.INTERRUPTED
    assert radii.size == coefs.shape[1] == 0


def test_same_seed_same_path(tumours):
    X, y = tumours
    runs = [
        cg.radius_path(X, y, radii=[1.0, 2.0], solver="sfw", tol=0.02, random_state=7)[1].toarray() for _ in range(2)
    ]
    np.testing.assert_array_equal(*runs)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"n_radii": 0}, "n_radii must be a whole number of at least 1; got 0."),
        ({"n_radii": 1.5}, "n_radii must be a whole number of at least 1; got 1.5."),
        ({"eps": 0.0}, "eps must be a number between 0 and 1; got 0.0."),
        ({"tol": -1.0}, "tol must be a number of at least 0; got -1.0."),
        ({"radii": [-1.0]}, "radii must be finite and at least 0; got -1."),
        ({"constraint": 3}, "constraint must be the name of a set or a function of a radius; got 3."),
        ({"constraint": "lp"}, "constraint='lp' takes more than a radius; give a function of the radius, lambda "),
        ({"constraint": lambda radius: 3}, "constraint must"),
        ({"n_radii": np.inf}, "n_radii must be a whole number of at least 1; got inf."),
        ({"fit_intercept": "no"}, "fit_intercept must be True or False; got 'no'."),
        ({"max_epochs": -1.0}, "max_epochs must be a number of at least 0; got -1.0."),
        ({"solver": "fww"}, "there is no solver named 'fww'; known: "),
        ({"constraint": "simplex"}, "Simplex does not contain zero, so it has no default grid and no radius 0; "),
        ({"constraint": "simplex", "radii": [0.0]}, "Simplex does not contain zero, so it has no default grid and "),
        ({"loss": "logistik"}, "there is no loss named 'logistik'; known: binomial, expectile, "),
        ({"callback": 3}, "callback must be callable with one argument, a Progress; got 3."),
    ],
)
def test_bad_input_gets_one_sentence(kwargs, message):
    with pytest.raises((ValueError, TypeError)) as error:
        cg.radius_path([[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0], **kwargs)
    assert str(error.value).startswith(message)
