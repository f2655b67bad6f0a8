"""Every estimator saves without pickle, and what is loaded predicts as it did."""

import json

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError

import condgrad as cg
from condgrad.run.sealed_file import unpack

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 4))
Y = X @ [1.0, -2.0, 0.0, 0.5] + 0.1 * RNG.standard_normal(40)
THREE = np.array(["low", "mid", "top"])[np.digitize(Y, [-1.0, 1.0])]
SOFT = {"radius": 3.0, "tol": 1e-4}

FITS = {
    "regressor": (cg.ConstrainedRegressor("huber", radius=2.0), Y),
    "poisson": (cg.ConstrainedRegressor("poisson", radius=0.5), np.round(np.exp(0.3 * Y))),
    "two outputs": (cg.ConstrainedRegressor(radius=2.0), np.column_stack([Y, -Y])),
    "one output of a table": (cg.ConstrainedRegressor(radius=2.0), Y[:, None]),
    "lasso": (cg.ConstrainedLasso(radius=2.0), Y),
    "lasso cv": (cg.ConstrainedLassoCV(n_radii=5, cv=3), Y),
    "elastic net": (cg.ConstrainedElasticNet(radius=2.0, l2=0.1), Y),
    "classifier": (cg.ConstrainedClassifier("squared-hinge", radius=2.0), Y > 0.0),
    "three against the rest": (cg.ConstrainedClassifier("sigmoid-squared", fit_intercept=False, radius=0.5), THREE),
    "logistic": (cg.ConstrainedLogisticRegression(radius=2.0), np.where(Y > 0.0, "yes", "no")),
    "three logistic": (cg.ConstrainedLogisticRegression(), THREE),
    "multinomial": (cg.ConstrainedLogisticRegression(multi_class="multinomial", **SOFT), THREE),
    "logistic cv": (cg.ConstrainedLogisticRegressionCV(radii=[1.0, 2.0], cv=2), THREE),
    "a set of its own": (cg.ConstrainedClassifier(constraint=cg.constraints.L1Ball(2.0)), Y > 0.0),
}


@pytest.mark.filterwarnings("ignore:.*Frank-Wolfe gap.*")
@pytest.mark.parametrize("name", FITS)
def test_linear_estimators(name, tmp_path):
    model, y = FITS[name]
    model.fit(X, y)
    cg.save_model(tmp_path / "m.npz", model)
    loaded = cg.load_model(tmp_path / "m.npz")
    assert type(loaded) is type(model.model_) and repr(loaded) == repr(model.model_)
    for given in (X, scipy.sparse.csr_matrix(X)):
        theirs, mine = model.predict(given), loaded.predict(given)
        np.testing.assert_array_equal(mine, theirs) if theirs.dtype.kind in "Ub" else np.testing.assert_allclose(
            mine, theirs, rtol=1e-12
        )
    if hasattr(model, "predict_proba"):
        chances = loaded.probabilities(X)
        wanted = model.predict_proba(X)
        np.testing.assert_allclose(chances, wanted if chances.ndim == 2 else wanted[:, 1], rtol=1e-9)
    np.testing.assert_array_equal(loaded.gap, model.gap_)
    if hasattr(model, "radius_"):
        np.testing.assert_array_equal(np.unique(loaded.radius), np.unique(model.radius_))
    assert loaded.n_samples == 40
    model.save(tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "m.npz").read_bytes()
    with np.load(tmp_path / "m.npz", allow_pickle=False) as members:
        assert all(members[key].dtype.kind in "fiu" for key in members.files)


def test_names_of_features_and_coefficients_made_sparse(tmp_path):
    import pandas as pd

    frame = pd.DataFrame(X, columns=list("abcd"))
    model = cg.ConstrainedLasso(radius=2.0).fit(frame, Y).sparsify()
    cg.save_model(tmp_path / "m.npz", model)
    loaded = cg.load_model(tmp_path / "m.npz")
    assert loaded.feature_names == ("a", "b", "c", "d") and loaded.constraint == "L1Ball(radius=2.0)"
    np.testing.assert_allclose(loaded.predict(X), model.predict(frame), rtol=1e-12)


def test_what_learns_in_batches(tmp_path):
    model = cg.ConstrainedRegressor(radius=2.0, solver="sfw", fit_intercept=False, random_state=0)
    model.partial_fit(X[:20], Y[:20]).partial_fit(X[20:], Y[20:])
    cg.save_model(tmp_path / "m.npz", model)
    np.testing.assert_allclose(cg.load_model(tmp_path / "m.npz").predict(X), model.predict(X), rtol=1e-12)


@pytest.mark.parametrize("estimator", [cg.ConstrainedLasso(), cg.MatrixCompletion()])
def test_what_is_not_fitted_says_so(estimator, tmp_path):
    with pytest.raises(NotFittedError, match="not fitted"):
        cg.save_model(tmp_path / "m.npz", estimator)
    with pytest.raises(TypeError, match="must be a model of condgrad or one of its estimators; got dict"):
        cg.save_model(tmp_path / "m.npz", {})
    assert not list(tmp_path.iterdir())


def test_completion(tmp_path):
    rows, columns = np.divmod(np.random.default_rng(0).permutation(60)[:40], 6)
    model = cg.MatrixCompletion(radius=2.0).fit(rows, columns, np.sin(rows * columns))
    cg.save_model(tmp_path / "m.npz", model)
    np.testing.assert_array_equal(
        cg.load_model(tmp_path / "m.npz").predict(rows, columns), model.predict(rows, columns)
    )


def test_the_format_of_linear_models_is_the_one_of_old(tmp_path):
    problem = cg.Problem(X, Y, cg.losses.Squared(), cg.constraints.L1Ball(1.0))
    cg.save_model(tmp_path / "m.npz", cg.Model.of(problem, cg.minimize(problem)))
    header, arrays = unpack(tmp_path / "m.npz", ("model", 1))
    assert header["format_version"] == 1 and set(arrays) == {"indices", "values"}


def test_the_command_line_predicts_with_several_classes(tmp_path, capsys):
    from condgrad.cli.program import main

    model = FITS["multinomial"][0].fit(X, THREE)
    model.save(tmp_path / "m.npz")
    lines = [",".join(["label", *"abcd"]), *(",".join([t, *map(repr, x)]) for t, x in zip(THREE, X.tolist()))]
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    given = [str(tmp_path / "m.npz"), str(tmp_path / "data.csv"), "--target", "label"]
    assert main(["predict", *given, "--out", str(tmp_path / "p.csv"), "--json"]) == 0
    rate = json.loads(capsys.readouterr().out)["error_rate"]
    assert rate == pytest.approx(np.mean(model.predict(X) != THREE))
    header, *rows = (tmp_path / "p.csv").read_text().splitlines()
    assert header.split(",")[:4] == ["prediction", "score low", "score mid", "score top"]
    assert [row.split(",")[0] for row in rows] == model.predict(X).tolist()
