"""Callbacks of scikit-learn 1.9 in the estimators."""

import numpy as np
import pytest
from sklearn.base import clone

import condgrad as cg
from condgrad import datasets

callback = pytest.importorskip("sklearn.callback")

R = datasets.simulate_regression(60, 12, n_informative=4, noise=0.3, random_state=0)
C = datasets.simulate_classification(80, 10, n_informative=4, random_state=0)


class Recorder:
    """Notes what it is told, and stops after so many records."""

    def __init__(self, most=np.inf):
        self.most, self.begun, self.ended, self.fitted, self.is_down = most, 0, [], [], False

    def setup(self, estimator, context):
        self.is_up = True

    def teardown(self, estimator, context):
        self.is_down = True

    def on_fit_task_begin(self, estimator, context):
        self.begun += 1

    def on_fit_task_end(self, estimator, context, *, X, y, fitted_estimator):
        self.ended.append(context.task_name)
        self.fitted.append(None if fitted_estimator is None else fitted_estimator.score(X, y))
        return len(self.ended) >= self.most


@pytest.mark.parametrize(
    ("model", "data"),
    [
        (cg.ConstrainedLasso(1.0, solver="fw", tol=1e-3), R),
        (cg.ConstrainedLogisticRegression(1.0, solver="fw", tol=1e-3), C),
        (cg.ConstrainedLassoCV(radii=[0.5, 1.0], cv=2), R),
    ],
)
def test_callbacks_see_every_record_as_a_fitted_model(model, data):
    seen = Recorder()
    plain = clone(model).fit(data.X, data.y)
    watched = clone(model).set_callbacks(seen).fit(data.X, data.y)
    np.testing.assert_array_equal(watched.coef_, plain.coef_)
    assert seen.is_up and seen.is_down and seen.begun == len(seen.ended)
    assert set(seen.ended[:-1]) == {"record"} and seen.ended[-1] == "fit"
    assert len(seen.ended) > len(watched.trace_)  # a last record may replace one of the same step
    assert seen.fitted[-2] == pytest.approx(plain.score(data.X, data.y), abs=0.02)


def test_a_callback_can_end_a_fit():
    model = cg.ConstrainedLasso(1.0, solver="fw", tol=1e-12).set_callbacks(Recorder(most=2))
    with pytest.warns(UserWarning, match="asked to stop"):
        model.fit(R.X, R.y)
    assert model.result_.status is cg.Status.STOPPED


def test_scores_are_monitored():
    monitor = callback.ScoringMonitor(scoring="r2")
    cg.ConstrainedLasso(1.0, solver="fw", tol=1e-3).set_callbacks(monitor).fit(R.X, R.y)
    assert len(monitor.get_logs().data) > 0
