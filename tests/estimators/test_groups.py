"""Group lasso, sparse group lasso, many tasks, columns of words: against other solvers, and their refusals."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.linear_model import MultiTaskLasso
from sklearn.utils.estimator_checks import estimator_checks_generator

import condgrad as cg

RNG = np.random.default_rng(0)
X = RNG.standard_normal((90, 12))
GROUPS = np.arange(12) // 3
W = np.array([1.0, -1.0, 0.5, 0.0, 0.0, 0.0, 0.8, 0.0, 0.0, 0.0, 0.0, 0.0])
Y = X @ W + 0.5 * RNG.standard_normal(90)
COLOURS = RNG.choice(["blue", "green", "red"], 90)
EACH = [
    cg.ConstrainedGroupLasso(),
    cg.ConstrainedGroupLogisticRegression(),
    cg.ConstrainedMultiTaskLasso(),
    cg.ConstrainedGroupLassoCV(n_radii=3),
    cg.ConstrainedGroupLogisticRegressionCV(n_radii=3),
    cg.ConstrainedMultiTaskLassoCV(n_radii=3),
]
OF_FITS = {  # checks for every run; the others are those of the base classes
    "check_estimators_dtypes", "check_estimators_nan_inf", "check_estimators_pickle", "check_fit2d_1sample",
    "check_methods_subset_invariance", "check_n_features_in", "check_parameters_default_constructible",
}  # fmt: skip


def name_of(check):
    return getattr(check, "func", check).__name__


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The least populated class in y:UserWarning")  # in data of scikit-learn's own
@pytest.mark.parametrize(
    ("estimator", "check"),
    [
        pytest.param(estimator, check, marks=[] if name_of(check) in OF_FITS else [pytest.mark.campaign])
        for one in EACH
        for estimator, check in estimator_checks_generator(one)
    ],
    ids=lambda part: name_of(part) if callable(part) else type(part).__name__,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array, lambda X: X.astype(np.float32)])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"group_weight": "sqrt-size"},
        {"group_weight": [0.5, 1.0, 2.0, 1.0]},
        {"positive": True},
        {"positive": True, "group_weight": [0.5, 1.0, 2.0, 1.0]},
        {"l1_weight": 0.7},
    ],
)
def test_the_group_lasso_against_an_interior_point_solver(settings, form):
    cp = pytest.importorskip("cvxpy")
    pytest.importorskip("clarabel")
    data = form(X)
    model = cg.ConstrainedGroupLasso(1.5, feature_groups=GROUPS, tol=1e-8, **settings).fit(data, Y)
    dense = np.asarray(data.todense() if scipy.sparse.issparse(data) else data, dtype=float)
    weights = {"sqrt-size": np.sqrt([3.0] * 4)}.get(str(settings.get("group_weight")), settings.get("group_weight"))
    weights = np.ones(4) if weights is None else np.asarray(weights)
    w, b = cp.Variable(12), cp.Variable()
    norm = sum(weights[g] * cp.norm(w[g == GROUPS]) for g in range(4)) + settings.get("l1_weight", 0.0) * cp.norm1(w)
    rules = [norm <= 1.5, *([w >= 0] if settings.get("positive") else [])]
    best = cp.Problem(cp.Minimize(cp.sum_squares(Y - dense @ w - b) / 180), rules).solve(solver="CLARABEL")
    assert model.result_.objective == pytest.approx(best, rel=1e-6)
    assert model.result_.objective - best <= model.gap_ + model.rounding_ + 1e-7
    assert model.gap_ <= 1e-8 * Y.var()


def test_groups_are_zero_together():
    model = cg.ConstrainedGroupLasso(0.8, feature_groups=GROUPS).fit(X, Y)
    used = [np.count_nonzero(model.coef_[g == GROUPS]) for g in range(4)]
    assert set(used) <= {0, 3} and 0 in used and 3 in used
    named = pd.DataFrame(X, columns=[f"x{k}" for k in range(12)])
    by_name = cg.ConstrainedGroupLasso(0.8, feature_groups={f"x{k}": k // 3 for k in range(9)}).fit(named, Y)
    assert by_name.feature_groups_.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 4, 5]
    sparse = cg.ConstrainedGroupLasso(0.8, feature_groups=GROUPS, l1_weight=2.0).fit(X, Y)
    assert np.count_nonzero(sparse.coef_) < np.count_nonzero(model.coef_)


@pytest.mark.parametrize("alpha", [0.1, 0.5])
def test_many_tasks_are_those_of_scikit_learn(alpha):
    outputs = np.column_stack([Y, X[:, 0] - 0.5 * X[:, 6], 2.0 * Y + X[:, 1]])
    theirs = MultiTaskLasso(alpha=alpha, tol=1e-10, max_iter=10_000).fit(X, outputs)
    radius = float(np.linalg.norm(theirs.coef_, axis=0).sum())
    ours = cg.ConstrainedMultiTaskLasso(radius, tol=1e-9).fit(X, outputs)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)
    assert ours.alpha_ == pytest.approx(alpha, rel=1e-3)
    chosen = cg.ConstrainedMultiTaskLassoCV(n_radii=6, cv=3).fit(X, outputs)
    assert chosen.coef_.shape == (3, 12) and chosen.score(X, outputs) > 0.5
    path = [cg.ConstrainedMultiTaskLasso(r, tol=1e-8).fit(X[30:], outputs[30:]) for r in chosen.radii_[:2]]
    for k, fold in enumerate(path):
        error = 0.5 * np.mean((outputs[:30] - fold.predict(X[:30])) ** 2)
        assert -chosen.score_path_[k, 0] == pytest.approx(error, rel=1e-3)


def frames(kind):
    columns = {"a": X[:, 0], "colour": COLOURS, "b": X[:, 1], "big": np.where(X[:, 2] > 0, "yes", "no")}
    if kind == "polars":
        return pytest.importorskip("polars").DataFrame(columns)
    frame = pd.DataFrame(columns)
    return frame.astype({"colour": "category"}) if kind == "pandas categories" else frame


@pytest.mark.parametrize("kind", ["pandas", "pandas categories", "polars"])
def test_columns_of_words_are_groups_of_indicators(kind):
    frame = frames(kind)
    effect = np.where(COLOURS == "red", 2.0, 0.0) + X[:, 0]
    model = cg.ConstrainedGroupLasso(3.0, group_weight="sqrt-size", tol=1e-8).fit(frame, effect)
    names = ["a", "colour=blue", "colour=green", "colour=red", "b", "big=no", "big=yes"]
    assert list(model.feature_names_in_) == names and model.feature_groups_.tolist() == [0, 1, 1, 1, 2, 3, 3]
    dense = np.column_stack(
        [X[:, 0], *(c == COLOURS for c in ("blue", "green", "red")), X[:, 1], X[:, 2] <= 0, X[:, 2] > 0]
    ).astype(float)
    plain = cg.ConstrainedGroupLasso(3.0, feature_groups=[0, 1, 1, 1, 2, 3, 3], group_weight="sqrt-size", tol=1e-8).fit(
        dense, effect
    )
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-4)
    np.testing.assert_allclose(model.predict(frame), plain.predict(dense), atol=1e-3)
    assert isinstance(cg.IndicatorColumns.of(frame).encode(frame), cg.CodedData)
    chosen = cg.ConstrainedGroupLogisticRegressionCV(n_radii=4, cv=3, scoring="roc_auc").fit(frame, effect > 0.5)
    assert chosen.predict_proba(frame).shape == (90, 2) and chosen.score(frame, effect > 0.5) > 0.8
    assert clone(model).fit(dense, effect).indicators_ is None


def test_rows_on_disk_have_groups_too(tmp_path):
    cg.rows.convert((X, Y), tmp_path / "rows")
    model = cg.ConstrainedGroupLasso(1.0, feature_groups=np.arange(12) // 3, tol=1e-8).fit(
        cg.rows.open(tmp_path / "rows")
    )
    near = cg.ConstrainedGroupLasso(1.0, feature_groups=np.arange(12) // 3, tol=1e-8).fit(X, Y)
    np.testing.assert_allclose(model.coef_, near.coef_, atol=1e-3)


def test_unknown_categories_count_as_none_and_are_said():
    model = cg.ConstrainedGroupLasso(2.0, tol=1e-8).fit(frames("pandas"), Y)
    other = frames("pandas").assign(colour="violet")
    with pytest.warns(UserWarning, match="has not seen, such as colour=violet"):
        found = model.predict(other)
    at = dict(zip(model.feature_names_in_, model.coef_, strict=True))
    big = np.where(X[:, 2] > 0, at["big=yes"], at["big=no"])
    np.testing.assert_allclose(found, X[:, 0] * at["a"] + X[:, 1] * at["b"] + big + model.intercept_)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: cg.ConstrainedGroupLasso(feature_groups=[0, 1]).fit(X, Y), "one label for each of the 12 columns"),
        (
            lambda: cg.ConstrainedGroupLasso(feature_groups={"a": 0}).fit(X, Y),
            "a dict of column names, but X has no names",
        ),
        (
            lambda: cg.ConstrainedGroupLasso(feature_groups={"z": 0}).fit(frames("pandas"), Y),
            "names the column 'z', which X does not have",
        ),
        (lambda: cg.ConstrainedGroupLasso(group_weight="size").fit(X, Y), "group_weight must be 'sqrt-size'"),
        (lambda: cg.ConstrainedGroupLasso(group_weight=[1.0, 2.0]).fit(X, Y), "must be 12 numbers, one per group"),
        (lambda: cg.ConstrainedGroupLasso(group_weight=[0.0] * 12).fit(X, Y), "group_weight must be positive; got 0"),
        (lambda: cg.ConstrainedGroupLasso(l1_weight=1.0, positive=True).fit(X, Y), "goes without positive and"),
        (
            lambda: cg.ConstrainedGroupLasso().fit(frames("pandas").assign(colour=None), Y),
            "column 'colour' has missing values",
        ),
        (
            lambda: cg.ConstrainedGroupLasso().fit(frames("pandas"), Y).predict(frames("pandas")[["a", "b"]]),
            "a frame with the columns of the fit; 'colour' is missing",
        ),
        (lambda: cg.constraints.WeightedGroupBall([0, 1], 1.0, [1.0]), "must be 2 numbers, one per group; got 1"),
        (lambda: cg.constraints.WeightedGroupBall([0, 1], 1.0, [1.0, 0.0]), "weights .* must be positive; got 0"),
    ],
)
def test_refusals(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::condgrad.ScaleWarning")
def test_columns_of_all_scales_take_few_steps():
    """A ridge in proportion to the largest curvature would hide all columns but the largest."""
    rng = np.random.default_rng(194)
    X = rng.standard_normal((80, 30)) * 10.0 ** rng.uniform(-9, 9, 30)
    y = rng.standard_normal(80) + X[:, 0] / np.abs(X[:, 0]).max()
    model = cg.ConstrainedGroupLasso(0.1, feature_groups=np.arange(30) // 2, tol=1e-9).fit(X, y)
    assert model.result_.status in (cg.Status.CONVERGED, cg.Status.ROUNDING, cg.Status.STALLED)
    assert model.n_iter_ < 50
