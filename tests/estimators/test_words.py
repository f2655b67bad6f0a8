"""Frames with columns of words: every linear estimator fits codes, with the results of explicit indicators."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

import condgrad as cg

pd = pytest.importorskip("pandas")

N = 90
RNG = np.random.default_rng(11)
TOWN, SIZE = RNG.choice(["Bern", "Lyon", "Turin", "Ulm"], N), RNG.choice(["large", "small"], N)
AGE, RENT = RNG.standard_normal(N), 3.0 * RNG.random(N)
Y = AGE + 1.5 * (TOWN == "Lyon") - (SIZE == "small") + 0.1 * RNG.standard_normal(N)
CLASSES = np.where(np.median(Y) < Y, "up", "down")
THREE = np.array(["a", "b", "c"])[np.digitize(Y, np.quantile(Y, [0.3, 0.7]))]
NAMES = ["age", "town=Bern", "town=Lyon", "town=Turin", "town=Ulm", "rent", "size=large", "size=small"]
KINDS = ["pandas", "categories", "strings", "polars", "polars categories"]


def frame(kind="pandas", dtype=np.float64):
    columns = {"age": AGE.astype(dtype), "town": TOWN, "rent": RENT.astype(dtype), "size": SIZE}
    if kind.startswith("polars"):
        polars = pytest.importorskip("polars")
        made = polars.DataFrame(columns)
        return made.with_columns(made["town"].cast(polars.Categorical)) if kind == "polars categories" else made
    types = {"categories": {"town": "category"}, "strings": {"town": "string"}}
    return pd.DataFrame(columns).astype(types.get(kind, {}))


def indicators(dtype=np.float64):
    towns, sizes = ([values == word for word in np.unique(values)] for values in (TOWN, SIZE))
    return np.column_stack([AGE.astype(dtype), *towns, RENT.astype(dtype), *sizes]).astype(dtype)


REGRESSORS = [
    cg.ConstrainedLasso(1.5),
    cg.ConstrainedLasso(),
    cg.ConstrainedLasso(alpha=0.05),
    cg.ConstrainedLasso(1.5, feature_weight=[0.0, 1, 1, 1, 1, 1, 1, 1]),
    cg.ConstrainedLasso(1.5, positive=True),
    cg.ConstrainedLassoCV(n_radii=6, cv=3),
    cg.ConstrainedLassoCV(n_radii=6, cv=3, scoring="neg_mean_absolute_error"),
    cg.ConstrainedElasticNet(1.5, l2=0.1),
    cg.ConstrainedElasticNetCV(l2=[0.1, 1.0], n_radii=4, cv=3),
    cg.ConstrainedRegressor("huber", radius=1.5),
    cg.ConstrainedRegressor("huber", constraint="l2", radius=1.5),
    cg.ConstrainedRegressor(constraint="simplex", radius=1.5, fit_intercept=False),
    cg.ConstrainedRegressorCV("huber", n_radii=4, cv=3),
    cg.ConstrainedGroupLasso(1.5, feature_groups=None),
    cg.ConstrainedGroupLasso(1.5, group_weight="sqrt-size", positive=True),
    cg.ConstrainedGroupLasso(1.5, l1_weight=0.5),
    cg.ConstrainedGroupLassoCV(n_radii=4, cv=3),
    cg.ConstrainedQuantileRegressor(0.3, radius=1.5, tol=1e-4),
    cg.SquareRootLasso(penalty=0.1),
]
CLASSIFIERS = [
    cg.ConstrainedLogisticRegression(2.0),
    cg.ConstrainedLogisticRegression(C=0.5),
    cg.ConstrainedLogisticRegressionCV(n_radii=4, cv=3),
    cg.ConstrainedClassifier("squared-hinge", radius=2.0),
    cg.ConstrainedClassifierCV("squared-hinge", n_radii=4, cv=3, scoring="roc_auc"),
    cg.ConstrainedGroupLogisticRegression(2.0),
    cg.ConstrainedGroupLogisticRegressionCV(n_radii=4, cv=3),
]


def named(model):
    settings = [f"{name}={value}" for name, value in model.get_params().items() if name in ("radius", "alpha", "loss")]
    return f"{type(model).__name__}({', '.join(settings)})"


def with_groups(model):
    """Return the model for indicators: their groups are the columns of the frame."""
    if "feature_groups" in model.get_params():
        return clone(model).set_params(feature_groups=[0, 1, 1, 1, 1, 2, 3, 3])
    return clone(model)


def check_the_same(model, targets, given, plain, atol=2e-3):
    ours, theirs = clone(model).fit(given, targets), with_groups(model).fit(plain, targets)
    assert list(ours.feature_names_in_) == NAMES and ours.n_features_in_ == len(NAMES)
    one, two = ours.result_, theirs.result_
    assert one.objective == pytest.approx(two.objective, abs=one.gap + one.rounding + two.gap + two.rounding)
    np.testing.assert_allclose(ours._scores(given), theirs._scores(plain), atol=atol)
    assert ours.score(given, targets) == pytest.approx(theirs.score(plain, targets), abs=1e-2)
    return ours


@pytest.mark.parametrize("model", REGRESSORS, ids=named)
def test_regressors(model):
    tight = clone(model).set_params(tol=min(model.tol, 1e-8)) if model.tol <= 1e-6 else clone(model)
    check_the_same(tight, Y, frame(), indicators(), 2e-3 if model.tol <= 1e-6 else 0.1)


@pytest.mark.parametrize("model", CLASSIFIERS, ids=named)
def test_classifiers(model):
    check_the_same(clone(model).set_params(tol=1e-8), CLASSES, frame(), indicators())


@pytest.mark.parametrize("multi_class", ["ovr", "multinomial"])
def test_several_classes(multi_class):
    model = cg.ConstrainedLogisticRegression(2.0, multi_class=multi_class, tol=1e-8).fit(frame(), THREE)
    plain = clone(model).fit(indicators(), THREE)
    np.testing.assert_allclose(model.predict_proba(frame()), plain.predict_proba(indicators()), atol=1e-3)
    chosen = cg.ConstrainedLogisticRegressionCV(multi_class=multi_class, n_radii=3, cv=3).fit(frame(), THREE)
    assert chosen.score(frame(), THREE) > 0.6


def test_several_outputs():
    outputs = np.column_stack([Y, -Y + AGE])
    for model in (
        cg.ConstrainedMultiTaskLasso(2.0, tol=1e-8),
        cg.ConstrainedRegressor(radius=1.0, tol=1e-8),
        cg.ConstrainedMultiTaskLassoCV(n_radii=3, cv=3, tol=1e-8),
    ):
        ours, theirs = clone(model).fit(frame(), outputs), clone(model).fit(indicators(), outputs)
        np.testing.assert_allclose(ours.predict(frame()), theirs.predict(indicators()), atol=1e-2)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", KINDS)
def test_frames_of_all_kinds(kind, dtype):
    given = frame(kind, dtype)
    coded = cg.IndicatorColumns.of(given).encode(given)
    assert isinstance(coded, cg.CodedData) and coded.dtype == dtype
    np.testing.assert_array_equal(coded.toarray(), indicators(dtype))
    check_the_same(cg.ConstrainedLasso(1.5, tol=1e-8), Y, given, indicators(dtype))


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_weights_offsets_and_scikit_learn_work_as_with_numbers(kind):
    given, plain, weight = frame(kind), indicators(), RNG.random(N)
    weight[:5] = 0.0
    model = cg.ConstrainedLasso(1.5, tol=1e-9)
    ours = clone(model).fit(given, Y, sample_weight=weight, offset=0.3 * RENT)
    theirs = clone(model).fit(plain, Y, sample_weight=weight, offset=0.3 * RENT)
    np.testing.assert_allclose(
        ours.predict(given, offset=0.3 * RENT), theirs.predict(plain, offset=0.3 * RENT), atol=1e-3
    )
    again = pickle.loads(pickle.dumps(ours))
    np.testing.assert_array_equal(again.predict(given, offset=RENT), ours.predict(given, offset=RENT))
    np.testing.assert_allclose(
        cross_val_score(model, given, Y, cv=3), cross_val_score(model, plain, Y, cv=3), atol=1e-3
    )
    cv = cg.ConstrainedLassoCV(n_radii=4, cv=3, scoring="r2").fit(given, Y, offset=0.3 * RENT)
    assert cv.score(given, Y, offset=0.3 * RENT) > 0.8


def test_tables_of_codes_are_data_of_estimators():
    X = cg.IndicatorColumns.of(frame()).encode(frame())
    model = cg.ConstrainedLasso(1.5, tol=1e-8).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), cg.ConstrainedLasso(1.5, tol=1e-8).fit(frame(), Y).predict(frame()))
    assert model.indicators_ is None and not hasattr(model, "feature_names_in_")
    with pytest.raises(ValueError, match="X has 9 features, but ConstrainedLasso is expecting 8 features"):
        model.predict(X.with_column(AGE))
    groups = cg.IndicatorColumns.of(frame()).feature_groups
    scores = [cross_val_score(cg.ConstrainedLasso(1.5, tol=1e-8), data, Y, cv=3) for data in (X, indicators())]
    np.testing.assert_allclose(*scores, atol=1e-3)
    assert isinstance(X[np.arange(5), ...], cg.CodedData)  # as scikit-learn takes rows
    grouped = cg.ConstrainedGroupLasso(1.5, feature_groups=groups, tol=1e-8).fit(X, Y)
    same = cg.ConstrainedGroupLasso(1.5, tol=1e-8).fit(frame(), Y)
    np.testing.assert_allclose(grouped.predict(X), same.predict(frame()))


def test_a_fit_forgets_the_words_of_the_one_before(tmp_path):
    model = cg.ConstrainedLasso(1.5).fit(frame(), Y)
    assert model.fit(indicators(), Y).indicators_ is None and not hasattr(model, "feature_names_in_")
    model.fit(frame(), Y)
    cg.rows.convert((indicators(), Y), tmp_path / "rows")
    assert model.fit(cg.rows.open(tmp_path / "rows")).indicators_ is None


def test_batches_and_refits_know_the_categories_of_the_fit():
    model = cg.ConstrainedRegressor(radius=2.0, fit_intercept=False, solver="sfw", random_state=0)
    model.partial_fit(frame(), Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit(frame()[:40], Y[:40])
    strange = frame().assign(town=["Oslo", *TOWN[1:]])
    with pytest.warns(UserWarning, match="has not seen, such as town=Oslo"):
        model.partial_fit(strange, Y)
    assert model.coef_.shape == (8,)
    lasso, plain = (cg.ConstrainedLasso(0.8, tol=1e-9).fit(X, Y) for X in (frame(), indicators()))
    ours, theirs = cg.relaxed(lasso, frame(), Y), cg.relaxed(plain, indicators(), Y)
    np.testing.assert_allclose(ours.predict(frame()), theirs.predict(indicators()), atol=1e-3)


def test_unknown_and_missing_categories_when_predicting():
    model = cg.ConstrainedLasso(2.0, tol=1e-8).fit(frame(), Y)
    at = dict(zip(NAMES, model.coef_, strict=True))
    for word, said in (("Oslo", "Oslo"), (None, "(None|nan)"), (np.nan, "nan")):
        strange = frame().assign(town=[word, *TOWN[1:]])
        with pytest.warns(UserWarning, match=f"such as town={said}"):
            found = model.predict(strange)
        expected = model.predict(frame())
        expected[0] -= at[f"town={TOWN[0]}"]
        np.testing.assert_allclose(found, expected)


def test_numbers_are_no_words():
    objects = pd.DataFrame({"a": AGE.astype(object), "b": RENT})
    assert cg.IndicatorColumns.of(objects) is None
    nullable = pd.DataFrame({"a": pd.array([1, 2] * 45, dtype="Int64"), "town": TOWN, "b": RENT > 1.0})
    coded = cg.IndicatorColumns.of(nullable).encode(nullable)
    assert coded.shape == (N, 6) and len(coded.numbers) == 2
    years = pd.DataFrame({"year": pd.Categorical([2020, 2021] * 45)})
    assert cg.IndicatorColumns.of(years).feature_names == ["year=2020", "year=2021"]
    assert cg.IndicatorColumns.of(indicators()) is None and cg.IndicatorColumns.of(scipy.sparse.eye(3)) is None


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"town": [None, *TOWN[1:]]}, "column 'town' has missing values; give them a category"),
        ({"town": pd.array([pd.NA, *TOWN[1:]], dtype="string")}, "column 'town' has missing values"),
        ({"town": [1, *TOWN[1:]]}, "column 'town' mixes words and numbers"),
        ({"rent": [None] * N}, "column 'rent' has missing values; impute"),
        ({"rent": pd.array([None, *[1] * (N - 1)], dtype="Int64")}, "missing values; impute|not finite"),
        ({"rent": [np.nan, *RENT[1:]]}, "X has 1 entry that is not finite"),
        ({"rent": pd.Timestamp("2024-01-01")}, "column 'rent' must hold numbers or words"),
    ],
)
def test_refusals(columns, sentence):
    with pytest.raises(ValueError, match=sentence):
        cg.ConstrainedLasso(1.0).fit(frame().assign(**columns), Y)


def test_a_plain_model_of_scikit_learn_takes_no_words():
    with pytest.raises(ValueError, match="fitted to columns of words"):
        cg.to_sklearn(cg.ConstrainedLasso(1.0).fit(frame(), Y))


def test_stability_selection_takes_words():
    given = frame(), cg.IndicatorColumns.of(frame()).encode(frame())
    settings = {"n_subsamples": 6, "n_radii": 5, "random_state": 0}
    ours, coded = (cg.StabilitySelection(**settings).fit(X, Y) for X in given)
    np.testing.assert_allclose(ours.scores_, coded.scores_)
    chosen = ours.get_support()
    assert {"age", "town=Lyon"} <= set(ours.get_feature_names_out())
    assert list(ours.get_feature_names_out()) == list(np.array(NAMES)[chosen])
    np.testing.assert_array_equal(ours.transform(frame()).toarray(), indicators()[:, chosen])
    np.testing.assert_array_equal(coded.transform(given[1]).toarray(), indicators()[:, chosen])
    with pytest.warns(UserWarning, match="has not seen, such as town=Oslo"):
        ours.transform(frame().assign(town="Oslo"))
