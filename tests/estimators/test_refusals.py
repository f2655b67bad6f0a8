"""What estimators refuse, in one sentence each: settings without end, grids of words, frames without columns."""

import numpy as np
import pandas as pd
import pytest

import condgrad as cg

RNG = np.random.default_rng(0)
X = RNG.standard_normal((30, 3))
Y = X[:, 0] + RNG.standard_normal(30)


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (cg.SquareRootLasso(penalty=np.inf), "penalty must be a positive, finite number, or None; got inf."),
        (cg.ConstrainedLasso(alpha=np.inf), "alpha must be a positive, finite number, or None; got inf."),
        (cg.ConstrainedElasticNet(1.0, l2=np.inf), "l2 must be a finite number of at least 0; got inf."),
        (cg.ConstrainedLassoCV(radii=["a"]), r"radii must be a sequence of numbers; got \['a'\]."),
        (cg.ConstrainedRegressorCV(radii=[1j]), r"radii must be a sequence of numbers; got \[1j\]."),
        (cg.ConstrainedGroupLassoCV(radii=[[1.0, 2.0]]), "radii must be a sequence of numbers; got shape"),
        (cg.ConstrainedElasticNetCV(radii=[1.0, -1.0]), "radii must be finite and positive; got -1."),
        (cg.ConstrainedLasso(1.0, lower={"age": 0.0}), "but X has no names; its features are x0 to x2."),
        (cg.ConstrainedLasso(1.0, lower={"x3": 0.0}), "but X has no names; its features are x0 to x2."),
        (cg.ConstrainedLasso(1.0, max_time=-1), "max_time must be a number of at least 0, or None; got -1."),
        (cg.ConstrainedLasso(max_time=-1), "max_time must be a number of at least 0, or None; got -1."),
        (cg.ConstrainedLassoCV(max_time=-1), "max_time must be a number of at least 0, or None; got -1."),
        (cg.ConstrainedRegressorCV(max_time="1 s"), "max_time must be a number of at least 0, or None; got '1 s'."),
    ],
)
def test_settings(model, sentence):
    with pytest.raises(ValueError, match=sentence):
        model.fit(X, Y)


@pytest.mark.parametrize(
    "make",
    [cg.ConstrainedLasso, cg.ConstrainedLassoCV, cg.ConstrainedGroupLasso, cg.SquareRootLasso, cg.StabilitySelection],
)
def test_a_frame_without_columns(make):
    with pytest.raises(ValueError, match=r"X must have at least one feature; got a frame of shape \(30, 0\)."):
        make().fit(pd.DataFrame(index=range(30)), Y)


def test_an_intercept_that_no_data_support_is_left_out_by_its_name_in_estimators():
    with pytest.raises(ValueError, match=r"Leave the intercept out: .*in estimators and paths fit_intercept=False"):
        cg.ConstrainedRegressor("poisson", radius=1.0).fit(X, np.zeros(30))


def test_features_without_names_go_by_x0():
    by_name = cg.ConstrainedLasso(0.5, feature_weight={"x1": 3.0}, lower={"x0": -0.1, 2: 0.0}).fit(X, Y)
    by_place = cg.ConstrainedLasso(0.5, feature_weight=[1.0, 3.0, 1.0], lower={0: -0.1, 2: 0.0}).fit(X, Y)
    np.testing.assert_array_equal(by_name.coef_, by_place.coef_)
