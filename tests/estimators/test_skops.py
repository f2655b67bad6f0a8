"""Every fitted estimator survives skops, and so MLflow's default, with the types that condgrad tells to trust."""

import copy
import inspect
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import condgrad as cg

skops_io = pytest.importorskip("skops.io")

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 4))
Y = X @ [1.0, -2.0, 0.0, 0.5] + 0.1 * RNG.standard_normal(40)
TWO, THREE = np.where(Y > 0.0, "yes", "no"), np.digitize(Y, [-1.0, 1.0])
OUTPUTS = np.column_stack([Y, -Y])
TIMES = np.column_stack([np.exp(Y), RNG.random(40) < 0.8])
WORDS = pd.DataFrame({"size": X[:, 0], "kind": np.where(X[:, 1] > 0.0, "old", "new")})
PLACES, VALUES = np.divmod(RNG.permutation(80)[:60], 8), RNG.standard_normal(60)
PAIRS = {"feature_groups": [0, 0, 1, 1]}
CV = {"n_radii": 3, "cv": 2}

FITS = {
    cg.ConstrainedClassifier: [({"loss": "squared-hinge", "radius": 2.0}, X, TWO), ({"radius": 1.0}, WORDS, TWO)],
    cg.ConstrainedClassifierCV: [(CV, X, TWO)],
    cg.ConstrainedCoxRegression: [({"radius": 1.0}, X, TIMES)],
    cg.ConstrainedCoxRegressionCV: [(CV, X, TIMES)],
    cg.ConstrainedElasticNet: [({"radius": 1.0}, X, Y)],
    cg.ConstrainedElasticNetCV: [(CV, X, Y)],
    cg.ConstrainedGroupLasso: [(PAIRS, X, Y)],
    cg.ConstrainedGroupLassoCV: [(PAIRS | CV, X, Y)],
    cg.ConstrainedGroupLogisticRegression: [(PAIRS, X, TWO)],
    cg.ConstrainedGroupLogisticRegressionCV: [(PAIRS | CV, X, TWO)],
    cg.ConstrainedLasso: [({"rows": ["x0 <= x1"], "radius": 1.0}, X, Y), ({"feature_weight": {1: 0.0}}, X, Y)],
    cg.ConstrainedLassoCV: [(CV, X, Y)],
    cg.ConstrainedLogisticRegression: [({}, X, THREE), ({"radius": 1.0, "multi_class": "multinomial"}, X, THREE)],
    cg.ConstrainedLogisticRegressionCV: [(CV, X, TWO)],
    cg.ConstrainedMultiTaskLasso: [({}, X, OUTPUTS)],
    cg.ConstrainedMultiTaskLassoCV: [(CV, X, OUTPUTS)],
    cg.ConstrainedQuantileRegressor: [({"radius": 1.0}, X, Y)],
    cg.ConstrainedRegressor: [
        ({"loss": cg.losses.Huber(2.0), "constraint": cg.constraints.L2Ball(1.0), "solver": "pairwise"}, X, Y),
        ({"radius": 1.0, "solver": cg.solvers.FrankWolfe(cg.step_sizes.OpenLoop())}, scipy.sparse.csr_matrix(X), Y),
    ],
    cg.ConstrainedRegressorCV: [(CV, X, OUTPUTS)],
    cg.MatrixCompletion: [({"random_state": 0}, *PLACES, VALUES)],
    cg.MatrixCompletionCV: [({"random_state": 0, "cv": 2}, *PLACES, VALUES)],
    cg.SquareRootLasso: [({}, X, Y)],
    cg.StabilitySelection: [({"n_subsamples": 4, "random_state": 0}, X, Y)],
}


def test_all_estimators_are_tried():
    public = (getattr(cg.estimators, name) for name in cg.estimators.__all__)
    assert {each for each in public if inspect.isclass(each) and hasattr(each, "fit")} == set(FITS)


@pytest.mark.parametrize(
    ("make", "settings", "data"),
    [pytest.param(make, given, data, id=make.__name__) for make, all_of in FITS.items() for given, *data in all_of],
)
def test_a_round_trip(make, settings, data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of accuracy and radii: not the subject
        model = make(**settings).fit(*data)
    loaded = skops_io.loads(skops_io.dumps(model), trusted=cg.skops_trusted_types())
    if hasattr(model, "predict"):
        given = data[:-1]
        np.testing.assert_array_equal(loaded.predict(*given), model.predict(*given))
    else:
        np.testing.assert_array_equal(loaded.transform(X), model.transform(X))
    if hasattr(model, "result_"):
        assert repr(loaded.result_) == repr(model.result_)
        assert loaded.gap_ == pytest.approx(model.gap_, rel=0.0)


@pytest.mark.parametrize("status", cg.Status)
def test_a_status_is_copied_and_pickled_by_its_name(status):
    for other in (copy.copy(status), copy.deepcopy(status), pickle.loads(pickle.dumps(status))):
        assert other is status
    assert status.value.encode() not in pickle.dumps(status)  # the sentence may change
    with pytest.raises(ValueError, match="nothing"):
        cg.Status("nothing")
