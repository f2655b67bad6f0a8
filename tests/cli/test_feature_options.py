"""--feature-weight, --positive, --lower and --upper of fit, path and cv."""

import json

import numpy as np
import pytest

import condgrad as cg
from condgrad.cli import main

RNG = np.random.default_rng(0)
X = RNG.standard_normal((50, 4))
Y = X @ [3.0, 1.0, -1.0, 0.0] + 0.5 * RNG.standard_normal(50)


@pytest.fixture
def named(tmp_path):
    path = tmp_path / "data.csv"
    np.savetxt(path, np.column_stack([X, Y]), delimiter=",", header="a,b,c,d,y", comments="", fmt="%.17g")
    return path


def run(capsys, *arguments):
    code = main([*map(str, arguments), "--quiet", "--json"])
    out, err = capsys.readouterr()
    return code, json.loads(out) if out else err


TERMS = ["--feature-weight", "a=0,b=2", "--lower", "c=-0.5"]
SAME = {"feature_weight": [0.0, 2.0, 1.0, 1.0], "lower": {2: -0.5}}


def test_fit(capsys, named, tmp_path):
    out = tmp_path / "m.npz"
    loss = ["--loss", "squared", "--intercept", "--tol", "1e-10"]
    code, found = run(capsys, "fit", named, *loss, "--radius", 1, *TERMS, "--out", out)
    wanted = cg.ConstrainedLasso(1.0, tol=1e-10, **SAME).fit(X, Y)
    assert code == 0 and found["objective"] == pytest.approx(wanted.result_.objective, rel=1e-8)
    np.testing.assert_allclose(cg.load_model(out).w, wanted.coef_, atol=1e-4)


def test_path(capsys, named):
    code, found = run(capsys, "path", named, "--radii", "0.5,1", "--intercept", *TERMS)
    _, _, info = cg.lasso_path(X, Y, radii=[0.5, 1.0], fit_intercept=True, **SAME)
    assert code == 0
    np.testing.assert_allclose(found["objective"], info.objective, rtol=1e-5)
    code, found = run(capsys, "path", named, "--loss", "huber", "--radii", "1", "--positive", "--upper", "0.5")
    _, _, info = cg.radius_path(X, Y, loss="huber", radii=[1.0], positive=True, upper=0.5)
    np.testing.assert_allclose(found["objective"], info.objective, rtol=1e-5)


def test_rows_name_the_columns_of_the_file(capsys, named):
    for command in (["path", "--radii", "2"], ["fit", "--loss", "squared", "--radius", 2]):
        code, found = run(capsys, command[0], named, *command[1:], "--row", "a <= b", "--row", "sum(c, d) = 0")
        assert code == 0
        best = cg.lasso_path(X, Y, radii=[2.0], rows=["x0 <= x1", "x2 + x3 = 0"])[2].objective[0]
        assert np.ravel(found["objective"])[0] == pytest.approx(best, rel=1e-5)


def test_cv(capsys, named, tmp_path):
    out = tmp_path / "m.npz"
    code, found = run(capsys, "cv", named, "--loss", "squared", "--n-radii", 3, "--folds", 2, *TERMS, "--out", out)
    model = cg.load_model(out)
    assert code == 0 and abs(model.w[0]) > found["best_radius"] and model.w[2] >= -0.5 - 1e-12


def test_features_without_names_are_called_as_in_rows(capsys, tmp_path):
    path, weights = tmp_path / "data.svm", tmp_path / "weights.txt"
    path.write_text("\n".join(f"{y} " + " ".join(f"{j + 1}:{x}" for j, x in enumerate(row)) for row, y in zip(X, Y)))
    np.savetxt(weights, SAME["feature_weight"])
    lasso = ["fit", path, "--loss", "squared", "--radius", 1, "--tol", "1e-10"]
    _, one = run(capsys, *lasso, "--feature-weight", "x0=0,x1=2", "--lower", "x2=-0.5")
    _, two = run(capsys, *lasso, "--feature-weight", f"@{weights}", "--row", "x2 >= -0.5")
    assert one["objective"] == pytest.approx(two["objective"], rel=1e-9)
    code, said = run(capsys, *lasso, "--feature-weight", "1=0")
    assert code == 2 and "names the feature '1', but X has no names; its features are x0 to x3." in said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--feature-weight", "aa=0"], "names the feature 'aa', which X does not have"),
        (["--feature-weight", "a=x"], "--feature-weight must be"),
        (["--lower", "@nowhere.txt"], "does not hold plain numbers"),
        (["--positive", "--set", "l2"], "--positive is for --set l1"),
    ],
)
def test_bad_options(capsys, named, options, message):
    code, said = run(capsys, "fit", named, "--loss", "squared", "--radius", 1, *options)
    assert code == 2 and message in said


def test_cross_validation_may_choose_the_radius_zero(capsys, tmp_path):
    path, out = tmp_path / "noise.csv", tmp_path / "m.npz"
    noise = np.random.default_rng(1).standard_normal((50, 5))
    np.savetxt(path, noise, delimiter=",", header="a,b,c,d,y", comments="")
    cv = ["cv", path, "--loss", "squared", "--radii", "0,9", "--folds", 2, "--intercept"]
    code, found = run(capsys, *cv, "--out", out)
    model = cg.load_model(out)
    assert code == 0 and found["best_radius"] == 0.0 and model.radius == 0.0 and model.gap == 0.0
    assert not model.w.any() and model.intercept == pytest.approx(noise[:, 4].mean(), rel=1e-5)
    code, said = run(capsys, *cv, "--row", "a >= 0.1")
    assert code == 2 and "no coefficients satisfy them below the radius 0.1; got 0" in said
