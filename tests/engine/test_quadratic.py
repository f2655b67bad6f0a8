"""Tall tables on their moments: sums to the last digit, certificates that hold in extended precision, and folds."""

import itertools
import signal
import warnings

import numpy as np
import pytest
import scipy.sparse
from certificates import HAS_LONG, LONG
from path_judge import judge_tall
from simulated import SimulatedRows
from sklearn.linear_model import ElasticNet
from sklearn.model_selection import KFold, ShuffleSplit, TimeSeriesSplit

import condgrad as cg
from condgrad.engine.cluster_table import ClusterTable
from condgrad.engine.moments import Table
from condgrad.engine.quadratic import Quadratic
from condgrad.engine.stored_table import StoredTable
from condgrad.linalg.interrupts import Interrupts
from condgrad.linalg.rounding import gamma
from condgrad.paths import tall

KINDS = {
    "C": np.ascontiguousarray, "F": np.asfortranarray, "csr": scipy.sparse.csr_array, "csc": scipy.sparse.csc_array,
}  # fmt: skip


def table_of(n=500, d=7, seed=0, density=1.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + rng.uniform(-3.0, 3.0, d)
    X[rng.random((n, d)) > density] = 0.0
    return X, X @ rng.standard_normal(d) + rng.standard_normal(n)


def partitions_of(X, y, weight=None, offset=None):
    """Return the samples in eleven partitions of a cluster of two workers."""
    borders, columns = np.linspace(0, X.shape[0], 12).astype(int), (X, y, weight, offset)
    parts = [[None if each is None else each[a:b] for each in columns] for a, b in itertools.pairwise(borders)]
    return SimulatedRows(parts, 2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("density", [0.1, 1.0])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.skipif(not HAS_LONG, reason="np.longdouble has no more digits than a float here")
def test_moments_are_those_of_extended_precision_up_to_their_rounding(kind, density, weighted, dtype):
    X, y = table_of(density=density)
    X = X.astype(dtype)
    weight = np.random.default_rng(1).uniform(0.0, 2.0, y.size) if weighted else np.full(y.size, 1.0 / y.size)
    table = Table(KINDS[kind](X), y, weight, is_centred=True)
    samples = np.random.default_rng(2).permutation(y.size)[:333]
    for places in (None, np.arange(50, 450), samples):
        found = table.moments(places)
        at = slice(None) if places is None else places
        U = np.column_stack([X.astype(LONG) - table.shift, y.astype(LONG) - table.y_shift, np.ones(y.size)])[at]
        v = (weight.astype(LONG) if weighted else np.ones(y.size, LONG))[at]
        wanted = U.T @ (v[:, None] * U)
        norms = np.sqrt(wanted.diagonal())
        assert (np.abs(found.M - wanted) <= gamma(found.length) * np.outer(norms, norms)).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("l2", [0.0, 0.3])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("positive", [False, True])
def test_equals_scikit_learn(kind, l2, intercept, positive):
    X, y = table_of(seed=3, density=0.7)
    alphas = np.array([1.0, 0.1, 0.01])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn's own
        for alpha in alphas:
            table = Table(KINDS[kind](X), y, np.ones(y.size), is_centred=intercept)
            problem = Quadratic(table, table.moments(), has_intercept=intercept, l2=l2, is_symmetric=not positive)
            points = problem.solve(np.array([alpha]), is_penalised=True, tol=1e-10)
            peer = ElasticNet(
                alpha=alpha + l2, l1_ratio=alpha / (alpha + l2), fit_intercept=intercept, positive=positive,
                tol=1e-14, max_iter=100_000,
            ).fit(X, y)  # fmt: skip
            np.testing.assert_allclose(points.W[0], peer.coef_, atol=1e-7)
            np.testing.assert_allclose(points.intercept[0], peer.intercept_, atol=1e-7)
            assert points.gap[0] + points.rounding[0] <= 1e-10 * problem.scale


@pytest.mark.skipif(not HAS_LONG, reason="np.longdouble has no more digits than a float here")
@pytest.mark.parametrize("first", [0, pytest.param(200, marks=pytest.mark.campaign)])
def test_certificates_of_badly_scaled_tables_hold_in_extended_precision(first):
    statuses = []
    for seed in range(first, 10 * first or 100):
        status, wrong = judge_tall(seed)
        assert not wrong, f"seed {seed}: {wrong[0]}"
        statuses.append(status)
    assert statuses.count(cg.Status.CONVERGED) > 0.9 * len(statuses)


def test_rounding_above_the_tolerance_leaves_the_path_to_the_columns(monkeypatch):
    X, y = table_of()
    certified = []
    is_certified = tall.TallPath.is_certified.fget

    def seen(path):
        certified.append(is_certified(path))
        return certified[-1]

    monkeypatch.setattr(tall.TallPath, "is_certified", property(seen))
    cg.lasso_path(X, y, n_radii=5, tol=1e-9)
    assert certified == [True]
    _, _, info = cg.lasso_path(X, y, n_radii=5, tol=1e-16)
    assert not any(certified[1:]) and info.status is cg.Status.ROUNDING


def test_tiny_squares_are_left_to_the_columns():
    X, y = table_of()
    X[:, 2] *= 1e-160  # whose squares have lost their digits
    table = Table(X, y, np.ones(y.size), is_centred=False)
    assert not table.moments().are_exact_enough
    X[:, 2] = 0.0
    table = Table(X, y, np.ones(y.size), is_centred=False)
    assert table.moments().are_exact_enough


@pytest.mark.parametrize("density", [0.1, 1.0])
def test_features_on_disk_that_are_zero_or_nearly(density, tmp_path):
    X, y = table_of(n=300, seed=8, density=density)
    for scale, is_exact in ((0.0, True), (1e-170, False)):
        X[:, 2] *= scale
        given = scipy.sparse.csr_array(X) if density < 1.0 else X
        stored = cg.rows.convert((given, y), tmp_path / str(scale), chunk_bytes=2048)
        (moments,) = StoredTable(stored, stored.y, np.ones(y.size), is_centred=False).moments_of([None])
        assert moments.are_exact_enough == is_exact
        if is_exact:
            assert cg.lasso_path(stored, None, n_radii=4)[2].status is cg.Status.CONVERGED
        X[:, 2] = y


def true_gaps(X, y, radii, coefs):
    """Return the gaps of points with an intercept in extended precision."""
    X, y, W = X - X.mean(axis=0), y - y.mean(), coefs.toarray().astype(LONG)
    pulls = X.T @ (y[:, None] - X @ W) / y.size
    return radii * np.abs(pulls).max(axis=0) - (pulls * W).sum(axis=0)


@pytest.mark.skipif(not HAS_LONG, reason="np.longdouble has no more digits than a float here")
def test_certificates_count_the_rounding_of_an_offset():
    X, y = table_of(n=200)
    y, offset = y + 1e8, np.random.default_rng(1).standard_normal(y.size)
    radii, coefs, info = cg.lasso_path(X, y, offset=offset, n_radii=5, fit_intercept=True)
    gaps = true_gaps(X.astype(LONG), y.astype(LONG) - offset, radii, coefs)
    assert info.passes == 1.0  # on moments
    assert (gaps <= info.gap + info.rounding).all()


@pytest.mark.skipif(not HAS_LONG, reason="np.longdouble has no more digits than a float here")
@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("kind", ["C", "csr"])
def test_features_that_hardly_vary_are_no_constants(standardize, kind):
    rng = np.random.default_rng(0)
    X = np.zeros((400, 8))
    X[:, 0] = 1e6 + 1e-7 * rng.standard_normal(400)
    radii = np.array([0.1, 1.0]) if standardize else np.array([1e5, 1e6])
    y = rng.standard_normal(400) + 1e7 * (X[:, 0] - 1e6)
    _, coefs, info = cg.lasso_path(
        KINDS[kind](X), y, radii=radii, fit_intercept=True, tol=1e-3, standardize=standardize
    )
    exact = X.astype(LONG)
    unit = exact[:, 0].std() if standardize else LONG(1)
    gaps = true_gaps(exact / unit, y.astype(LONG), radii, coefs * float(unit))
    assert (gaps <= info.gap + info.rounding).all()


@pytest.mark.parametrize("weight", [1e-200, 1e200])
def test_extreme_weights_of_features_are_left_to_other_engines(weight):
    X, y = table_of(n=50, d=4)
    weights = np.array([1.0, 1.0, 1.0, weight])
    if weight < 1.0:
        with pytest.raises(ValueError, match="scale it below"):
            cg.lasso_path(X, y, feature_weight=weights)
        return
    _, coefs, info = cg.lasso_path(X, y, feature_weight=weights, n_radii=3)
    _, others, _ = cg.lasso_path(X[:, :3], y, n_radii=3)
    assert info.status is cg.Status.CONVERGED and coefs[3].nnz == 0
    np.testing.assert_allclose(coefs[:3].toarray(), others.toarray(), atol=1e-3)


def test_small_tables_that_moments_do_not_serve_are_solved_as_before():
    X, y = table_of(n=400)
    radii, coefs, _ = cg.lasso_path(1e-150 * X, 1e50 * y, n_radii=3, fit_intercept=True)
    np.testing.assert_allclose(1e-200 * radii, cg.lasso_path(X, y, n_radii=3, fit_intercept=True)[0], rtol=1e-2)
    assert np.isfinite(coefs.data).all()


def test_settings_of_other_engines_are_checked():
    X, y = table_of(n=50)
    with pytest.raises(ValueError, match="random_state must be"):
        cg.radius_path(X, y, loss="squared", random_state="no")


@pytest.mark.parametrize(
    "model", [cg.ConstrainedRegressorCV(loss="squared", radii=[1.0, 2.0]), cg.ConstrainedLassoCV()]
)
def test_ctrl_c_in_the_pass_ends_a_cross_validation(model, monkeypatch):
    X, y = table_of()
    moments = Table.moments

    def interrupted(table, samples=None):
        signal.raise_signal(signal.SIGINT)
        return moments(table, samples)

    monkeypatch.setattr(Table, "moments", interrupted)
    for data in ((X, y), (partitions_of(X, y),)):
        with Interrupts(), pytest.raises(KeyboardInterrupt):  # as in a longer run, which hears Ctrl-C too
            model.fit(*data)


SPLITTERS = {
    "dealt": KFold(4, shuffle=True, random_state=0), "in a row": KFold(5), "twice": ShuffleSplit(4, random_state=0),
    "growing": TimeSeriesSplit(3),
}  # fmt: skip


@pytest.mark.parametrize("splitter", SPLITTERS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["C", "csc"])
@pytest.mark.parametrize("standardize", [False, True])
def test_cross_validation_on_moments_is_that_of_paths_of_the_folds(splitter, weighted, kind, standardize, monkeypatch):
    X, y = table_of(n=240, seed=5)
    weight = np.random.default_rng(1).integers(0, 3, y.size).astype(float) if weighted else None
    offset = 0.1 * np.arange(y.size) if weighted else None
    given = {"sample_weight": weight, "offset": offset}

    def fitted():
        settings = {"n_radii": 8, "cv": SPLITTERS[splitter], "tol": 1e-9, "standardize": standardize}
        return cg.ConstrainedElasticNetCV(l2=[0.0, 0.1], **settings).fit(KINDS[kind](X), y, **given)

    model = fitted()
    with monkeypatch.context() as patch:
        patch.setattr("condgrad.estimators.lasso_cv.is_tall", lambda X, n_targets: False)
        patch.setattr("condgrad.paths.lasso.is_tall", lambda X, n_targets: False)
        other = fitted()
    np.testing.assert_allclose(model.mse_path_, other.mse_path_, rtol=1e-6)
    np.testing.assert_allclose(model.radii_, other.radii_, rtol=1e-6)
    np.testing.assert_allclose(model.coef_path_.toarray(), other.coef_path_.toarray(), atol=1e-6)
    assert model.radius_ == pytest.approx(other.radius_, rel=1e-6) and model.l2_ == other.l2_
    assert model._folds is None  # the data are not kept


FORMS = {
    "lists": lambda places, n: places.tolist(), "masks": lambda places, n: np.isin(np.arange(n), places),
    "from the end": lambda places, n: places - n, "int32": lambda places, n: places.astype(np.int32),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("stored", [False, True])
def test_folds_may_name_their_samples_in_many_ways(form, stored, tmp_path):
    X, y = table_of(n=90, seed=9)
    parts = list(KFold(3).split(X))
    if stored:
        cg.rows.convert((X, y), tmp_path / "rows", chunk_bytes=500)
        X, y = cg.rows.open(tmp_path / "rows"), None
    given = [tuple(FORMS[form](places, 90) for places in part) for part in parts]
    found = cg.ConstrainedLassoCV(radii=[1.0, 2.0], cv=given).fit(X, y)
    wanted = cg.ConstrainedLassoCV(radii=[1.0, 2.0], cv=parts).fit(X, y)
    np.testing.assert_allclose(found.mse_path_, wanted.mse_path_)


def test_a_fold_without_samples_is_refused():
    X, y = table_of(n=90)
    with pytest.raises(ValueError, match="holds no samples; use fewer folds"):
        cg.ConstrainedLassoCV(cv=[(np.arange(90), np.arange(0))]).fit(X, y)


def test_scorers_see_the_models_of_the_folds():
    X, y = table_of(n=200, seed=6)
    settings = {"n_radii": 6, "cv": 4}
    own = cg.ConstrainedLassoCV(**settings).fit(X, y)
    scored = cg.ConstrainedLassoCV(scoring="neg_mean_squared_error", **settings).fit(X, y)
    np.testing.assert_allclose(own.mse_path_, -scored.score_path_, rtol=1e-9)


@pytest.mark.parametrize("constraint", ["l1", "nonnegative-l1"])
def test_other_doors_lead_to_the_same_points(constraint, monkeypatch):
    X, y = table_of(seed=7)
    answers = []
    for is_used in (True, False):
        if not is_used:
            monkeypatch.setattr(tall, "is_tall", lambda X, n_targets: False)
        settings = {"loss": "squared", "constraint": constraint}
        path = cg.radius_path(X, y, n_radii=7, fit_intercept=True, tol=1e-9, **settings)
        model = cg.ConstrainedRegressorCV(n_radii=7, tol=1e-9, **settings).fit(X, y)
        answers.append((path[1].toarray(), path[2].alpha, model.score_path_, model.coef_))
    for one, other in zip(*answers, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("splitter", ["dealt", "twice"])
@pytest.mark.parametrize("density", [0.1, 1.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_on_disk_are_read_once_for_all_folds(splitter, density, weighted, tmp_path):
    X, y = table_of(n=600, seed=8, density=density)
    weight = np.random.default_rng(1).uniform(0.1, 2.0, y.size) if weighted else None
    given = scipy.sparse.csr_array(X) if density < 1.0 else X
    cg.rows.convert((given, y, weight), tmp_path / "rows", chunk_bytes=4096)
    stored = cg.rows.open(tmp_path / "rows")
    assert stored.n_chunks > 3
    table = StoredTable(stored, stored.y, np.ones(y.size), is_centred=True)
    reads = stored.n_reads
    table.moments_of([None, np.arange(100), np.arange(100, 600)])
    assert stored.n_reads == reads + 1.0
    settings = {"n_radii": 9, "cv": SPLITTERS[splitter], "tol": 1e-9}
    model = cg.ConstrainedLassoCV(**settings).fit(stored, None)
    whole = [chunk.matrix.X.toarray() if density < 1.0 else chunk.matrix.X.copy() for chunk in stored.chunks()]
    peer = cg.ConstrainedLassoCV(**settings).fit(np.vstack(whole), stored.y, sample_weight=stored.weight)
    np.testing.assert_allclose(model.mse_path_, peer.mse_path_, rtol=1e-7)
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-6)
    assert model.gap_ + model.rounding_ <= 1e-9 * np.var(y)
    radii, coefs, info = cg.lasso_path(stored, None, n_radii=9, fit_intercept=True, tol=1e-9)
    again = cg.lasso_path(
        np.vstack(whole), stored.y, sample_weight=stored.weight, radii=radii, fit_intercept=True, tol=1e-9
    )
    np.testing.assert_allclose(coefs.toarray(), again[1].toarray(), atol=1e-6)
    assert info.n_reads == 1.0 and info.status is cg.Status.CONVERGED


@pytest.mark.parametrize("splitter", ["dealt", "twice"])
@pytest.mark.parametrize("density", [0.1, 1.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_of_a_cluster_are_read_once_for_all_folds(splitter, density, weighted, monkeypatch):
    monkeypatch.setattr("condgrad.estimators._cross_validation._SAMPLE_BYTES", 1000)  # a sample would tell otherwise
    X, y = table_of(n=600, seed=8, density=density)
    X[:, 1] = 0.0
    weight = np.random.default_rng(1).integers(0, 3, y.size).astype(float) if weighted else None
    offset = 1e3 + 0.1 * np.arange(y.size) if weighted else None
    rows = partitions_of(scipy.sparse.csr_array(X) if density < 1.0 else X, y, weight, offset)
    table = ClusterTable(rows, None, None, None, is_centred=True)
    reads = rows.n_reads
    table.moments_of([None, np.arange(100), np.arange(100, 600)])
    assert rows.n_reads == reads + 1.0
    settings = {"n_radii": 9, "cv": SPLITTERS[splitter], "tol": 1e-8}
    model = cg.ConstrainedLassoCV(**settings).fit(rows)
    peer = cg.ConstrainedLassoCV(**settings).fit(X, y, weight, offset)
    np.testing.assert_allclose(model.mse_path_, peer.mse_path_, rtol=1e-6)
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-5)
    radii, coefs, info = cg.lasso_path(rows, None, n_radii=9, fit_intercept=True, tol=1e-8)
    of_samples = {"sample_weight": weight, "offset": offset}
    again = cg.lasso_path(X, y, **of_samples, radii=radii, fit_intercept=True, tol=1e-8)
    np.testing.assert_allclose(coefs.toarray(), again[1].toarray(), atol=1e-5)
    assert info.n_reads == 1.0 and info.status is cg.Status.CONVERGED


def test_numbers_of_samples_stay_with_the_workers_unless_others_are_given():
    X, y = table_of(n=600, seed=8)
    rows, bare = partitions_of(X, y, np.full(600, 2.0)), partitions_of(X, None)
    wanted = cg.lasso_path(rows, None, n_radii=4)
    assert "_of_samples" not in vars(rows)  # no target came here
    found = cg.lasso_path(bare, y, radii=wanted[0])
    np.testing.assert_allclose(found[1].toarray(), wanted[1].toarray(), atol=1e-8)
    with pytest.raises(ValueError, match="has no targets; pass y"):
        cg.lasso_path(bare, None)
    with pytest.raises(ValueError, match="sample_weight must not be negative"):
        cg.lasso_path(partitions_of(X, y, -np.ones(600)), None)
    with pytest.raises(ValueError, match="y must have one entry per sample"):
        cg.lasso_path(bare, y[1:])


def test_rows_on_disk_take_all_norms_and_end_with_their_time(tmp_path):
    X, y = table_of(n=90)
    cg.rows.convert((X, y), tmp_path / "rows", shuffle=False)
    stored = cg.rows.open(tmp_path / "rows")
    terms = {"feature_weight": np.linspace(0.5, 2.0, X.shape[1]), "positive": True}
    _, coefs, info = cg.lasso_path(stored, None, radii=[0.5, 1.0], **terms)
    wanted = cg.lasso_path(X, y, radii=[0.5, 1.0], **terms)[1]
    np.testing.assert_allclose(coefs.toarray(), wanted.toarray(), atol=1e-6)
    assert info.n_reads == 1.0
    radii, coefs, info = cg.lasso_path(stored, None, max_time=0.0)
    assert info.status is cg.Status.MAX_TIME and radii.size == info.gap.size == 0 and coefs.shape == (X.shape[1], 0)
    with pytest.raises(TypeError, match="lasso_path needs X in memory"):
        cg.lasso_path(stored, None, lower=-0.1)


@pytest.mark.parametrize("is_penalised", [False, True])
def test_rounding_of_standardised_features_is_that_of_features_that_were_divided_before(is_penalised):
    X, y = table_of(seed=11)
    X = (X - X.mean(axis=0)) * 10.0 ** np.arange(-3, 4)
    found = []
    for given, standardize in ((X, True), (X / X.std(axis=0), False)):
        table = Table(given, y, np.ones(y.size), is_centred=True)
        problem = Quadratic(table, table.moments(), has_intercept=True, standardize=standardize)
        targets = problem.largest * np.array([0.5, 0.05]) if is_penalised else np.array([0.1, 1.0])
        found.append(problem.solve(targets, is_penalised=is_penalised, tol=1e-6))
    np.testing.assert_allclose(found[0].rounding, found[1].rounding, rtol=0.5)
    np.testing.assert_allclose(found[0].objective, found[1].objective, rtol=1e-9)
