"""Logarithms of probabilities come from scores: both classes cost what their margins say, however large these are."""

import numpy as np
import pytest

import condgrad as cg

LINE = np.array([-800.0, -44.0, -0.5, 0.0, 0.5, 44.0, 800.0])[:, None]


def far_apart(**settings):
    """Return a model whose score is x for two classes, and rows of multiples of x for more."""
    X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), [0, 0, 1, 1]
    return cg.ConstrainedLogisticRegression(1.0, fit_intercept=False, **settings).fit(X, y)


def test_two_classes_are_alike():
    model = far_apart()
    z = model.decision_function(LINE)
    assert z[-1] == pytest.approx(800.0)
    logs = model.predict_log_proba(LINE)
    np.testing.assert_allclose(logs, np.column_stack([-np.logaddexp(0.0, z), -np.logaddexp(0.0, -z)]), rtol=1e-14)
    np.testing.assert_array_equal(logs, logs[::-1, ::-1])
    np.testing.assert_array_equal(model.predict_proba(LINE), np.exp(logs))
    np.testing.assert_allclose(model.predict_proba(LINE).sum(axis=1), 1.0, rtol=1e-14)


@pytest.mark.parametrize("multi_class", ["ovr", "multinomial"])
def test_many_classes(multi_class, tmp_path):
    X = np.vstack([np.eye(3), 2.0 * np.eye(3)])
    model = cg.ConstrainedLogisticRegression(3.0, multi_class=multi_class).fit(X, [0, 1, 2] * 2)
    Z = np.vstack([size * np.array([[1.0, 0.3, -0.2], [-1.0, -2.0, -3.0]]) for size in (1.0, 40.0, 900.0)])
    scores = model.decision_function(Z)
    own = scores if multi_class == "multinomial" else -np.logaddexp(0.0, -scores)
    wanted = own - np.logaddexp.reduce(own, axis=1, keepdims=True)
    logs = model.predict_log_proba(Z)
    np.testing.assert_allclose(logs, wanted, rtol=1e-12, atol=1e-14)
    model.save(tmp_path / "m.npz")
    for chances in (model.predict_proba(Z), cg.load_model(tmp_path / "m.npz").probabilities(Z)):
        np.testing.assert_allclose(chances, np.exp(logs), rtol=1e-12)
        np.testing.assert_allclose(chances.sum(axis=1), 1.0, rtol=1e-14)


@pytest.mark.parametrize("loss", ["logistic", "sigmoid-squared"])
def test_cross_validation_does_not_know_which_class_comes_first(loss):
    """An outlier far on the wrong side costs its margin, whichever its class is called."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    y = X[:, 0] + 0.5 * rng.standard_normal(60) > 0.0
    X[[3, 17, 40]] *= 400.0
    y[[3, 17, 40]] = ~(X[[3, 17, 40], 0] > 0.0)
    radii, cv = [0.05, 0.5, 5.0], [(np.arange(20, 60), np.arange(20)), (np.arange(40), np.arange(40, 60))]
    one, other = (
        cg.ConstrainedClassifierCV(loss, radii=radii, cv=cv, fit_intercept=False, max_iter=50, tol=1e-3).fit(X, labels)
        for labels in (y, ~y)
    )
    np.testing.assert_allclose(one.score_path_, other.score_path_, rtol=1e-6)
    if loss == "logistic":
        held_out = np.concatenate([part for _, part in cv])
        assert one.score_path_.min() > -np.abs(X[held_out]).max() * radii[-1]
