"""rows= of the estimators and paths: linear relations between coefficients, in sentences or arrays."""

import json

import numpy as np
import pytest
from certificates import LONG, Truth
from constrained_optima import optimum
from sklearn.base import clone

import condgrad as cg
from condgrad.cli import main
from condgrad.constraints._row_sentences import as_rows_of

RNG = np.random.default_rng(1)
N, D = 80, 5
X = RNG.standard_normal((N, D))
Y = X @ np.array([1.0, 0.2, -1.0, 0.5, -0.5]) + 0.5 * RNG.standard_normal(N)
LABELS = np.where(0.5 * RNG.standard_normal(N) < Y, 1.0, -1.0)
NAMES = list("abcde")
ROWS = {
    "sum to zero": "sum = 0",
    "order": ["x0 <= x1 <= x3"],
    "mixed": ["2 x0 - x1 >= 0.3", "sum(x2, x4) = -0.6"],
    "arrays": {"A_ub": [[1.0, -1.0, 0.0, 0.0, 0.0]], "b_ub": [0.1], "A_eq": [[0.0, 0.0, 1.0, 0.0, 1.0]], "b_eq": [0.0]},
}


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("terms", [{}, {"feature_weight": {0: 0.0, 2: 0.0}, "upper": 1.5}], ids=["l1", "free"])
def test_estimators_reach_the_optimum_under_rows(rows, terms):
    arrays = as_rows_of(rows, D, None)._asdict()
    weights = [0.0, 1.0, 0.0, 1.0, 1.0] if terms else None
    for model, y in ((cg.ConstrainedLasso(1.2), Y), (cg.ConstrainedLogisticRegression(1.2), LABELS)):
        fitted = clone(model).set_params(rows=rows, tol=1e-8, **terms).fit(X, y)
        limits = {"weights": weights, "upper": terms.get("upper")}
        best, w = optimum(X, y, fitted._loss(), radius=1.2, **limits, **arrays)
        assert fitted.result_.objective == pytest.approx(best, rel=1e-6)
        truth = Truth(X.astype(LONG), y, np.ones(N), fitted._loss(), True)
        found = fitted.coef_.ravel()
        assert truth.objective(found) - truth.objective(w) <= fitted.gap_ + fitted.rounding_ + 1e-9
        cut = fitted.result_.constraint
        assert cut.violation(found) <= 1e-8
        m = fitted.multipliers_
        rest = fitted.result_.gradient + m.normal - m.lower + m.upper
        for A, y_ in ((arrays["A_ub"], m.ub), (arrays["A_eq"], m.eq)):
            rest = rest if A is None else rest + np.asarray(A).T @ y_
        assert np.abs(rest).max() < 1e-8 and (m.ub >= 0.0).all()


def test_names_of_a_frame_are_the_words_of_sentences():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b", "c c", "d", "e"])
    named = cg.ConstrainedLasso(1.0, rows=["a <= b", "`c c` = e"]).fit(frame, Y)
    plain = cg.ConstrainedLasso(1.0, rows=["x0 <= x1", "x2 = x4"]).fit(X, Y)
    np.testing.assert_allclose(named.coef_, plain.coef_, atol=1e-8)
    assert named.coef_[0] <= named.coef_[1] + 1e-9


def test_rows_cut_other_sets_too():
    shares = cg.ConstrainedRegressor(constraint="simplex", rows="x0 <= 0.3").fit(X, Y)
    assert shares.coef_[0] == pytest.approx(0.3, abs=1e-6) and shares.coef_.sum() == pytest.approx(1.0)
    boxed = cg.ConstrainedRegressor(constraint=cg.constraints.Box(-1.0, [1.0] * D), rows="sum = 0").fit(X, Y)
    assert abs(boxed.coef_.sum()) < 1e-8
    free = cg.ConstrainedRegressor(constraint=cg.constraints.Box(-1.0, [1.0] * D)).fit(X, Y)
    assert free.result_.objective < boxed.result_.objective


def test_a_path_under_equations():
    radii, coefs, info = cg.lasso_path(X, Y, n_radii=4, eps=0.1, fit_intercept=True, rows="sum = 0", tol=1e-7)
    assert info.status is cg.Status.CONVERGED and np.abs(coefs.sum(axis=0)).max() < 1e-8
    for k, radius in enumerate(radii):
        arrays = as_rows_of("sum = 0", D, None)._asdict()
        best, _ = optimum(X, Y, cg.losses.Squared(), radius=radius, **arrays)
        assert info.objective[k] == pytest.approx(best, rel=1e-6)
    near = [0.99 * radii[2], radii[2], 1.01 * radii[2]]
    _, _, close = cg.lasso_path(X, Y, radii=near, fit_intercept=True, rows="sum = 0", tol=1e-9)
    rate = (close.objective[0] - close.objective[2]) / (0.02 * radii[2])
    assert close.alpha[1] == pytest.approx(rate, rel=2e-2)
    fitted = cg.ConstrainedLasso(radii[2], rows="sum = 0", tol=1e-9).fit(X, Y)
    assert fitted.alpha_ == pytest.approx(close.alpha[1], rel=1e-3)


def test_the_command_line_takes_rows(capsys, tmp_path):
    path = tmp_path / "data.csv"
    np.savetxt(path, np.column_stack([X, Y]), delimiter=",", header="a,b,c,d,e,y", comments="", fmt="%.17g")
    common = [str(path), "--loss", "squared", "--quiet", "--json"]
    assert main(["fit", *common, "--radius", "1.2", "--row", "a <= b", "--row", "sum = 0", "--lower", "c=-0.1"]) == 0
    found = json.loads(capsys.readouterr().out)
    rows = ["x0 <= x1", "sum = 0"]
    wanted = cg.ConstrainedLasso(1.2, rows=rows, lower={2: -0.1}, fit_intercept=False).fit(X, Y)
    assert found["objective"] == pytest.approx(wanted.result_.objective, rel=1e-5)
    assert main(["path", *common, "--radii", "0.5,1", "--row", "sum = 0"]) == 0
    _, _, info = cg.lasso_path(X, Y, radii=[0.5, 1.0], rows="sum = 0")
    np.testing.assert_allclose(json.loads(capsys.readouterr().out)["objective"], info.objective, rtol=1e-5)
    assert main(["cv", *common, "--radii", "0.5,1", "--folds", "2", "--set", "linf", "--row", "a <= b"]) == 0


@pytest.mark.parametrize(
    ("sentence", "message"),
    [
        ("a", "compares nothing"),
        ("a <", "is unknown here"),
        ("a <= ", "its end is missing"),
        ("a + <= b", "is no feature"),
        ("a <= f", "'f', which X does not have"),
        ("a = a", "says nothing about a coefficient"),
        ("sum(a b) = 0", "is missing"),
        ("a 2 <= b", "is not <=, >= or ="),
        ("9" * 5000 + " a <= b", r"in '9{120}\.\.\.' a number is larger than 1e\+100\.$"),
        ("1e308 a + 1e308 a <= b", "a number is larger than"),
    ],
)
def test_sentences_that_make_no_sense(sentence, message):
    with pytest.raises(ValueError, match=message):
        as_rows_of(sentence, D, NAMES)


def test_sentences_are_sums():
    rows = as_rows_of(["-a + 2*b - 1.5 c <= 3 - d", "a >= b = c", "1 = sum"], D, NAMES)
    np.testing.assert_array_equal(rows.A_ub, [[-1, 2, -1.5, 1, 0], [-1, 1, 0, 0, 0]])
    np.testing.assert_array_equal(rows.b_ub, [3, 0])
    np.testing.assert_array_equal(rows.A_eq, [[0, 1, -1, 0, 0], [-1] * 5])
    np.testing.assert_array_equal(rows.b_eq, [0, -1])


def test_rows_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="keys among A_ub"):
        cg.ConstrainedLasso(1.0, rows={"A": 1}).fit(X, Y)
    with pytest.raises(ValueError, match="belong together"):
        cg.ConstrainedLasso(1.0, rows={"A_ub": np.ones((1, D))}).fit(X, Y)
    with pytest.raises(ValueError, match="empty"):
        cg.ConstrainedLasso(1.0, rows="x0 >= 2").fit(X, Y)
    with pytest.raises(ValueError, match=r"below the radius 0\.4; got 0\.1"):
        cg.lasso_path(X, Y, radii=[0.1], rows=["x0 >= 0.2", "x0 + x1 = 0"])
    with pytest.raises(ValueError, match="no coefficients satisfy all of them"):
        cg.ConstrainedLassoCV(rows=["x0 >= 0.2", "x0 <= 0.1"]).fit(X, Y)
    with pytest.raises(TypeError, match="must be an L1Ball"):
        cg.ConstrainedRegressor(constraint="l2", radius=1.0, rows="sum = 0").fit(X, Y)
    with pytest.raises(TypeError, match="sentences such as"):
        cg.ConstrainedLasso(1.0, rows=[3]).fit(X, Y)
    with pytest.raises(AttributeError, match="linear rows"):
        print(cg.ConstrainedRegressor(constraint="l2", radius=1.0).fit(X, Y).multipliers_)
