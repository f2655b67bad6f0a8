"""Tables of numbers and codes: everything as with the sparse indicators that they stand for."""

import pickle

import numpy as np
import pytest
import scipy.sparse

import condgrad as cg
from condgrad.linalg.coded_data import CodedData, Field
from condgrad.linalg.coded_matrix import CodedMatrix, matrix_of
from condgrad.linalg.matrix import Matrix
from condgrad.linalg.vectors import DenseVector
from condgrad.paths.least_squares import Goal
from condgrad.paths.smooth_engine import SmoothEngine

N = 60


def table(dtype=np.float64, far=0.0, n=N):
    """Return numbers and fields of 3, 300 and 4 categories, one of which occurs nowhere, in mixed order."""
    rng = np.random.default_rng(4)
    return CodedData.of_columns(
        [
            Field(rng.integers(0, 3, n), 3),
            (rng.standard_normal(n) + far).astype(dtype),
            Field(rng.integers(0, 300, n), 300),
            rng.standard_normal(n).astype(dtype),
            Field(rng.integers(0, 3, n), 4),
        ]
    )


def codes_alone():
    return CodedData.from_codes(np.random.default_rng(5).integers(0, 4, (N, 3)))


TABLES = [table, lambda: table(np.float32), codes_alone]


@pytest.fixture(params=TABLES, ids=["float64", "float32", "codes"])
def pair(request):
    X = request.param()
    return CodedMatrix(X), Matrix(X.tocsr())


def test_the_table_as_indicators():
    X = CodedData.from_codes([[0, 1], [2, 0], [1, 1]], numbers=[[0.5], [1.5], [2.5]], n_categories=[3, 3])
    expected = [[0.5, 1, 0, 0, 0, 1, 0], [1.5, 0, 0, 1, 1, 0, 0], [2.5, 0, 1, 0, 0, 1, 0]]
    np.testing.assert_array_equal(X.tocsr().toarray(), expected)
    np.testing.assert_array_equal(X.toarray(), expected)


@pytest.mark.parametrize("make", TABLES)
def test_parts_and_products_of_a_table(make):
    X = make()
    S, rng = X.tocsr().toarray(), np.random.default_rng(0)
    rows, features = rng.permutation(N)[:20], np.append(rng.permutation(X.shape[1])[:9], [2, 2, 1])
    np.testing.assert_array_equal(X[rows].toarray(), S[rows])
    np.testing.assert_array_equal(X[::7].toarray(), S[::7])
    np.testing.assert_array_equal(X[-1].toarray(), S[-1:])
    np.testing.assert_array_equal(X[S[:, 0] > 0].toarray(), S[S[:, 0] > 0])
    np.testing.assert_array_equal(X[:, features].toarray(), S[:, features])
    np.testing.assert_array_equal(X[rows, features].toarray(), S[np.ix_(rows, features)])
    w, W = rng.standard_normal(X.shape[1]), rng.standard_normal((X.shape[1], 2))
    np.testing.assert_allclose(X @ w, S @ w, rtol=1e-6)
    np.testing.assert_allclose(X @ W, S @ W, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(X.with_column(w[:N] if w.size >= N else np.ones(N)).toarray()[:, :-1], S)
    again = pickle.loads(pickle.dumps(X))
    np.testing.assert_array_equal(again.toarray(), S)
    assert repr(again) == repr(X) and again.dtype == X.dtype


def test_codes_take_few_bytes():
    X = table(n=1000)
    assert X.nbytes == 1000 * (2 * 8 + 1 + 2 + 1)  # two numbers, and codes of one, two and one byte
    assert CodedMatrix(X).columns.order.nbytes == 1000 * 3 * 4


def test_products_of_the_matrix(pair):
    coded, sparse = pair
    rng, (n, d) = np.random.default_rng(1), pair[0].shape
    w, a, weight = rng.standard_normal(d), rng.standard_normal(n), rng.random(n)
    W, A = rng.standard_normal((3, d)), rng.standard_normal((3, n))
    for call in (
        lambda M: M.dot(w),
        lambda M: M.dot(np.zeros(d)),
        lambda M: M.transpose_dot(a),
        lambda M: M.dot_each(W),
        lambda M: M.transpose_dot_each(A),
        lambda M: M.column_squares(weight),
        lambda M: M.column_norms(weight),
        lambda M: M.row_norms(),
        lambda M: M.column_products(np.array([4, 1, 2]), a),
        lambda M: M.block(np.array([5, 2]), np.array([3, 0, 8])),
        lambda M: M.chosen(np.array([4, 1])).dot(w),
        lambda M: M.thinned(7).transpose_dot(np.ones(-(-n // 7))),
        lambda M: M.chosen_columns(np.array([5, 3])).toarray(),
        lambda M: M.as_centred()[0].toarray(),
        lambda M: M.explicit().toarray(),
        lambda M: np.array([M.largest_entry(), M.largest_entry(3, 9)]),
        lambda M: np.array([M.count_stored(np.array([1, 5])), M.n_stored]),
        lambda M: added(lambda out: M.add_rows(np.array([3, 3, 0]), a[:3], out), d),
        lambda M: added(lambda out: M.add_squares_of_rows(2, 50, weight, out), d),
    ):
        np.testing.assert_allclose(call(coded), call(sparse), rtol=1e-6, atol=1e-6)


def added(call, d):
    out = np.zeros(d)
    call(out)
    return out


def test_long_passes_go_through_all_blocks():
    rng = np.random.default_rng(2)
    X = CodedData.from_codes(rng.integers(0, 9, (5000, 2)), rng.standard_normal((5000, 2)))
    coded, sparse = CodedMatrix(X), Matrix(X.tocsr())
    w, a = rng.standard_normal(coded.shape[1]), rng.standard_normal(5000)
    np.testing.assert_allclose(coded.dot(w), sparse.dot(w), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(coded.transpose_dot(a), sparse.transpose_dot(a), rtol=1e-9, atol=1e-10)
    part = np.empty(3000)
    coded.dot_range(1500, w, part)
    np.testing.assert_allclose(part, sparse.dot(w)[1500:4500], rtol=1e-10, atol=1e-12)


def test_single_rows_and_columns(pair):
    coded, sparse = pair
    rng, (n, d) = np.random.default_rng(3), pair[0].shape
    for ours, theirs, count, length in ((coded.rows, sparse.rows, n, d), (coded.columns, sparse.columns, d, n)):
        v, weights = rng.standard_normal(length), rng.random(length)
        other = coded.columns if length == d else coded.rows
        for k in range(0, count, 1 if length == n else 13):
            results = []
            for slices in (ours, theirs):
                plain, squares, mixed, H = (
                    np.zeros(length),
                    np.zeros(length),
                    np.zeros(count),
                    np.zeros((length, length)),
                )
                slices.add_slice(k, 0.7, DenseVector(plain))
                slices.add_squares(k, 0.7, DenseVector(squares))
                slices.add_weighted(k, weights, 0.3, other, DenseVector(mixed))
                entries = [slices.entry(k, j) for j in range(length)]
                numbers = [slices.dot_slice(k, v), slices.sum_squares(k, weights), float(slices.n_stored(k))]
                if k % 5 == 0:
                    slices.add_outer(k, 0.7, H)
                results.append([plain, squares, mixed, entries, numbers, H])
            for one, two in zip(*results, strict=True):
                np.testing.assert_allclose(one, two, rtol=1e-6, atol=1e-6)
    share = np.full(n, 1.0 / n)
    for j in range(d):
        np.testing.assert_allclose(coded.columns.moments(j, share), sparse.columns.moments(j, share), atol=1e-7)
        (rows, entries), (_, theirs) = coded.column(j), sparse.column(j)
        np.testing.assert_allclose(entries[np.flatnonzero(entries)], theirs[np.flatnonzero(theirs)], rtol=1e-6)
        assert rows is None or (np.diff(rows.astype(int)) > 0).all()


@pytest.mark.parametrize("has_columns", [False, True])
@pytest.mark.parametrize("rows", [None, np.arange(3, N, 2)], ids=["all", "some"])
@pytest.mark.parametrize("first", [0, 2, 4])
def test_gram(pair, has_columns, rows, first):
    coded, sparse = pair
    rng, d = np.random.default_rng(6), pair[0].shape[1]
    c = rng.random(N if rows is None else rows.size)
    if has_columns:
        assert coded.columns is not None
    codes = np.flatnonzero(~np.isin(np.arange(d), coded.X.places.astype(int)))
    for features in (np.arange(d), rng.permutation(d)[:8], rng.permutation(codes)[:6], np.array([3, 2, 0, 3, 2, 7])):
        values = rng.standard_normal(features.size)
        ours, theirs = (M.gram(features, values, c, rows, first) for M in (coded, sparse))
        ours[:first, :first] = theirs[:first, :first] = 0.0
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)
    assert coded.gram(np.empty(0, int), np.empty(0), c, rows).shape == (0, 0)
    weights, some = rng.random(N), np.arange(0, N, 2)
    ours, theirs = (M.gram_of_rows(np.arange(6), weights[some], some) for M in (coded, sparse))
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_far_means_are_subtracted_from_numbers():
    X = table(far=1e6)
    centred = CodedMatrix(X).centred(np.full(N, 1.0 / N))
    assert np.flatnonzero(centred.shift).tolist() == [3] and abs(centred.shift[3] - 1e6) < 1.0
    w = np.random.default_rng(7).standard_normal(X.shape[1])
    np.testing.assert_allclose(centred.dot(w) + centred.along_shift(w), X @ w, rtol=1e-9)
    assert CodedMatrix(table()).centred(np.full(N, 1.0 / N)).shift is None
    assert CodedMatrix(codes_alone()).centred(np.full(N, 1.0 / N)).shift is None


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: CodedData.from_codes([0, 1]), "must be whole numbers of shape"),
        (lambda: CodedData.from_codes([[0.5]]), "must be whole numbers of shape"),
        (lambda: CodedData.from_codes([[0], [-1]]), "at least 0; got -1"),
        (lambda: CodedData.from_codes([[0], [4]], n_categories=[3]), r"at least \[5\]"),
        (lambda: CodedData.from_codes([[0], [1]], numbers=[[1.0]]), r"of shape \(2, columns\)"),
        (lambda: matrix_of(CodedData.from_codes([[0], [1]], [[1.0], [np.nan]])), r"not finite, .*\(1, 0\)"),
        (lambda: matrix_of(broken()), "codes of more features"),
    ],
)
def test_errors(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


def broken():
    X = CodedData.from_codes([[0, 1], [1, 0]])
    X.codes[0][1, 1] = 9
    return X


SOLVERS = [
    "corrective",
    "fw",
    "pairwise",
    "away",
    "bpcg",
    "lazy",
    "boosted",
    "sfw",
    "saga",
    "svrf",
    "tufw",
    "randomized",
]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("intercept", [False, True])
def test_solvers_find_the_same_as_on_indicators(solver, intercept):
    X = CodedData.from_codes(np.random.default_rng(8).integers(0, 3, (80, 3)), np.random.default_rng(9).random((80, 2)))
    if intercept and solver == "tufw":
        pytest.skip("tufw has no intercept")
    y = np.where(X.toarray()[:, 3] + X.toarray()[:, 0] > 0.6, 1.0, -1.0)
    found = []
    for data in (X, X.tocsr()):
        problem = cg.Problem(data, y, cg.losses.Logistic(), cg.constraints.L1Ball(2.0), intercept=intercept)
        found.append(cg.minimize(problem, solver, max_epochs=60, random_state=0, tol=1e-9))
    assert found[0].objective == pytest.approx(found[1].objective, abs=found[0].gap + found[1].gap + 1e-9)
    w = found[0].w
    exact = cg.Problem(X.tocsr(), y, cg.losses.Logistic(), cg.constraints.L1Ball(2.0), intercept=intercept).evaluate(w)
    assert exact.objective == pytest.approx(found[0].objective, rel=1e-9)


def test_paths_are_those_of_indicators():
    rng = np.random.default_rng(10)
    X = table(n=120)
    y = X @ np.where(rng.random(X.shape[1]) < 0.1, 1.0, 0.0) + 0.1 * rng.standard_normal(120)
    for call in (
        lambda data: cg.lasso_path(data, y, n_radii=8, tol=1e-9),
        lambda data: cg.lasso_path(data, y, n_radii=None, eps=0.2, tol=1e-9),
        lambda data: cg.lasso_path(data, y, n_radii=5, tol=1e-9, standardize=True, l2=0.1),
        lambda data: cg.lasso_path(data, y, n_radii=5, tol=1e-9, feature_weight=np.linspace(0.5, 2, data.shape[1])),
        lambda data: cg.radius_path(data, np.sign(y - y.mean()), loss="logistic", n_radii=5, tol=1e-9),
        lambda data: cg.radius_path(data, y, loss="huber", constraint="nonnegative-l1", n_radii=5, tol=1e-9),
    ):
        (radii, coefs, info), (theirs, sparse, known) = call(X), call(X.tocsr())
        np.testing.assert_allclose(radii, theirs, rtol=1e-6)
        np.testing.assert_allclose(info.objective, known.objective, rtol=1e-6)
        np.testing.assert_allclose(coefs.toarray(), sparse.toarray(), atol=2e-3)


def test_a_table_becomes_a_sparse_matrix_where_its_entries_are_read():
    X, ball = table(), cg.constraints.L1Ball(1.0)
    assert cg.theory.diameters(X, ball).D_inf == cg.theory.diameters(X.tocsr(), ball).D_inf
    assert scipy.sparse.issparse(cg.Problem(X, np.ones(N), cg.losses.Squared(), ball).matrix.explicit())


@pytest.mark.parametrize("form", ["tocsr", "toarray"])
def test_models_of_losses_with_kinks_find_ways_along_which_they_have_no_curvature(form):
    """All samples with an entry may lie where the loss is linear: then the model of that feature sees no minimum."""
    rng = np.random.default_rng(10)
    X = table(n=120)
    y = X @ np.where(rng.random(X.shape[1]) < 0.1, 1.0, 0.0) + 0.1 * rng.standard_normal(120)
    ball = cg.constraints.NonnegativeL1Ball(1.0)
    engine = SmoothEngine(cg.Problem(getattr(X, form)(), y, cg.losses.Huber(), ball))
    for k in range(1, 9):
        tol = 1e-2 if k < 8 else 1e-9
        point = engine.solve(Goal(engine.largest * 0.01 ** (k / 8), is_penalised=True), tol)
        assert point.certified_gap <= tol * engine.scale
    assert engine.n_evaluated <= 60
