"""Problem: exact answers about any w, for every form of data, without copies of what is in the right form."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
import references
import scipy.sparse
from covering import product_by_pairs
from tables import FORMS, targets
from tables import TWO_LOSSES as LOSSES

import condgrad as cg
from condgrad.linalg import threads
from condgrad.linalg.support import support_of
from condgrad.linalg.vectors import DenseVector

RADIUS = 2.0


def data(loss="Squared", n=18, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.6)).astype(np.float32).astype(float)
    y = rng.choice([-1.0, 1.0], n) if loss == "Logistic" else rng.standard_normal(n)
    return X, y, rng.random(n) + 0.1, rng.uniform(-0.3, 0.3, d)


@product_by_pairs(("form", "loss", "weighted", "intercept"), FORMS, LOSSES, [False, True], [False, True])
def test_answers_against_numpy(form, loss, weighted, intercept):
    X, y, weight, w = data(loss)
    weight = weight if weighted else None
    ball = cg.constraints.L1Ball(RADIUS)
    problem = cg.Problem(FORMS[form](X), y, LOSSES[loss], ball, sample_weight=weight, intercept=intercept)
    exact = references.Reference(X, y, loss, references.l1_vertices(5, RADIUS), weight, intercept)
    evaluation = problem.evaluate(w)
    assert problem.objective(w) == pytest.approx(exact.objective(w), rel=1e-14)
    assert evaluation.objective == pytest.approx(exact.objective(w), rel=1e-14)
    np.testing.assert_allclose(problem.gradient(w), exact.gradient(w), rtol=1e-9, atol=1e-14)
    np.testing.assert_array_equal(problem.gradient(w), evaluation.gradient)
    assert problem.gap(w) == evaluation.gap == pytest.approx(exact.gap(w), rel=1e-12)
    assert problem.best_intercept(w) == evaluation.intercept == pytest.approx(exact.best_intercept(w), abs=1e-10)
    np.testing.assert_allclose(
        evaluation.vertex.to_dense(5), exact.vertices[(exact.vertices @ exact.gradient(w)).argmin()]
    )


@pytest.mark.parametrize("form", ["C", "csr"])
@pytest.mark.parametrize(("loss", "intercept"), list(itertools.product(LOSSES, (False, True))))
def test_curvature_on_atoms_is_the_second_difference(form, loss, intercept):
    X, y, weight, w = data(loss)
    ball = cg.constraints.L1Ball(RADIUS)
    problem = cg.Problem(FORMS[form](X), y, LOSSES[loss], ball, sample_weight=weight, intercept=intercept)
    dense = cg.constraints.DenseVertex(np.array([0.1, -0.2, 0.3, 0.0, 0.5]))
    atoms = [cg.constraints.Atom(1, RADIUS), cg.constraints.Atom(3, -RADIUS), dense]
    H = problem.look(w).curvature(atoms)
    assert H.shape == (3, 3)
    h = 1e-4
    for k, a in enumerate(atoms):
        for j, b in enumerate(atoms):
            a_dense, b_dense = a.to_dense(5), b.to_dense(5)
            slope = (problem.gradient(w + h * b_dense) - problem.gradient(w - h * b_dense)) / (2 * h)
            assert H[k, j] == pytest.approx(a_dense @ slope, rel=1e-5, abs=1e-8)


@pytest.mark.parametrize("loss", [cg.losses.Logistic(), cg.losses.PseudoHuber(1.0)], ids=repr)
def test_the_minimiser_on_a_line_is_a_root_of_the_slope_up_to_rounding(loss):
    X, y, weight, w = data("Logistic")
    problem = cg.Problem(X, y, loss, cg.constraints.L1Ball(RADIUS), sample_weight=weight)
    samples, everywhere, p = problem.samples, support_of(None, y.size), X @ w
    for k in range(5):
        q = X[:, k] * -np.sign(problem.gradient(w)[k])
        gamma = samples.minimise_on_line(everywhere, p, q, 0.0, False, 1e6, False)
        here, curvature, _ = samples.line_slopes(everywhere, p, q, gamma, 0.0, False)
        assert abs(here) <= 1e-15 * (1.0 + curvature * gamma), k


@pytest.mark.parametrize("form", ["csr", "csc"])
def test_curvature_where_a_feature_has_atoms_on_both_sides_of_zero(form):
    X, y, _, w = data()
    ball = cg.constraints.L1Ball(RADIUS)
    atoms = [cg.constraints.Atom(j, value) for j, value in ((1, RADIUS), (1, -RADIUS), (3, RADIUS), (1, RADIUS))]
    H, same = (
        cg.Problem(FORMS[name](X), y, cg.losses.Squared(), ball, intercept=True).look(w).curvature(atoms)
        for name in (form, "C")
    )
    np.testing.assert_allclose(H, same, rtol=1e-10)


def test_problems_that_share_data_are_as_if_made_anew():
    X, y, weight, w = data()
    ball = cg.constraints.L1Ball(RADIUS)
    problem = cg.Problem(X, y, cg.losses.Squared(), ball, sample_weight=weight, intercept=True)
    larger = cg.constraints.L1Ball(2.0 * RADIUS)
    other = problem.with_targets(2.0 * y).over(larger)
    anew = cg.Problem(X, 2.0 * y, cg.losses.Squared(), larger, sample_weight=weight, intercept=True)
    assert other.gap(w) == anew.gap(w) != problem.gap(w)
    assert other.matrix is problem.matrix
    with pytest.raises(ValueError, match="one entry per sample"):
        problem.with_targets(y[1:])
    with pytest.raises(ValueError, match="length 7"):
        problem.over(cg.constraints.WeightedL1Ball(1.0, np.ones(7)))


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix], ids=["dense", "csr"])
def test_smoothness_of_the_loss_holds_for_every_prediction_of_the_set(form):
    """Over a set away from the origin, with negative entries as the largest: Poisson has no L but for bounded p."""
    X = form(np.array([[0.5, -3.0], [0.1, 0.2]]))
    ball = cg.constraints.Shift(cg.constraints.L1Ball(0.25), offset=[1.0, -2.0])
    problem = cg.Problem(X, [1.0, 2.0], cg.losses.Poisson(), ball)
    vertices = [ball.lmo(DenseVector(np.array(r))).values for r in ([1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0])]
    largest = max(np.abs(X @ v).max() for v in vertices)
    assert np.exp(largest) <= problem.loss_smoothness() <= np.exp(largest + 2 * 3.0 * 0.5)
    assert problem.over(cg.constraints.L1Ball(1e-9)).loss_smoothness() == pytest.approx(1.0, rel=1e-7)
    logistic = cg.Problem(X, [1.0, -1.0], cg.losses.Logistic(), ball)
    assert logistic.loss_smoothness() == 0.25


def test_gradient_is_the_derivative_of_every_loss():
    X, y, weight, w = data()
    h = 1e-6
    for name in cg.losses.__all__:
        loss = getattr(cg.losses, name)
        if not isinstance(loss, type) or loss is cg.losses.Loss:
            continue
        problem = cg.Problem(X, targets(loss(), y), loss(), cg.constraints.L1Ball(RADIUS), sample_weight=weight)
        numeric = [(problem.objective(w + h * e) - problem.objective(w - h * e)) / (2 * h) for e in np.eye(5)]
        np.testing.assert_allclose(problem.gradient(w), numeric, rtol=1e-5, atol=1e-7, err_msg=name)


# No copies -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["C", "F", "C-float32", "F-float32"])
def test_dense_data_is_not_copied(form):
    X, y, _weight, _ = data()
    X = FORMS[form](X)
    problem = cg.Problem(X, y, cg.losses.Squared(), cg.constraints.L1Ball(1.0))
    cg.minimize(problem, "pairwise", max_steps=3)
    assert np.shares_memory(problem.matrix.X, X)
    assert np.shares_memory(problem.matrix.rows.values, X)
    assert np.shares_memory(problem.matrix.columns.values, X)
    assert np.shares_memory(problem.y, y)


@pytest.mark.parametrize("form", ["csr", "csc", "csr-float32", "csc-float32", "csr-int64", "csc-int64"])
def test_sparse_data_is_not_copied(form):
    X, y, _, _ = data()
    X = FORMS[form](X)
    problem = cg.Problem(X, y, cg.losses.Squared(), cg.constraints.L1Ball(1.0))
    cg.minimize(problem, "pairwise", max_steps=3)
    view = problem.matrix.rows if X.format == "csr" else problem.matrix.columns
    for ours, theirs in zip(view, (X.data, X.indices, X.indptr)):
        assert np.shares_memory(ours, theirs)


def test_input_is_left_as_it_was():
    X, y, weight, _ = data()
    unsorted = scipy.sparse.csr_matrix(X)
    unsorted.indices = np.concatenate(
        [unsorted.indices[a:b][::-1] for a, b in zip(unsorted.indptr[:-1], unsorted.indptr[1:])]
    )
    unsorted.has_sorted_indices = False
    before = unsorted.indices.copy()
    problem = cg.Problem(unsorted, y, cg.losses.Squared(), cg.constraints.L1Ball(1.0), sample_weight=weight)
    cg.minimize(problem, "pairwise", max_steps=5)
    np.testing.assert_array_equal(unsorted.indices, before)


def test_read_only_and_memory_mapped(tmp_path):
    X, y, _weight, _ = data()
    expected = cg.minimize(cg.Problem(X, y, cg.losses.Squared(), cg.constraints.L1Ball(1.0)), tol=1e-9).w
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    frozen, frozen_y, sparse = X.copy(), y.copy(), scipy.sparse.csr_matrix(X)
    for array in (frozen, frozen_y, sparse.data, sparse.indices, sparse.indptr):
        array.flags.writeable = False
    for data_form in (mapped, frozen, sparse):
        problem = cg.Problem(data_form, frozen_y, cg.losses.Squared(), cg.constraints.L1Ball(1.0))
        if data_form is not sparse:
            assert np.shares_memory(problem.matrix.X, data_form)
        np.testing.assert_allclose(cg.minimize(problem, tol=1e-9).w, expected, atol=1e-6)


# Other forms -----------------------------------------------------------------------------------------------------

OTHERS = {
    "list": lambda X: X.tolist(),
    "float16": lambda X: X.astype(np.float16),
    "big-endian": lambda X: X.astype(">f8"),
    "big-endian-32": lambda X: X.astype(">f4"),
    "object": lambda X: X.astype(object),
    "longdouble": lambda X: X.astype(np.longdouble),
    "strided": lambda X: np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2],
    "reversed": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "pandas": pd.DataFrame,
    "polars": lambda X: pytest.importorskip("polars").DataFrame(X),
    "pandas-sparse": lambda X: pd.DataFrame(X).astype(pd.SparseDtype(np.float64, 0.0)),
    **{name: getattr(scipy.sparse, name) for name in (
        "coo_matrix", "lil_matrix", "dok_matrix", "dia_matrix", "bsr_matrix",
        "coo_array", "lil_array", "dok_array", "dia_array", "bsr_array", "csr_array", "csc_array",
    )},
}  # fmt: skip


@pytest.mark.parametrize("form", OTHERS)
def test_other_forms_are_converted(form):
    X, y, _, w = data()
    X = np.round(4 * X) / 4  # exact in float16
    plain = cg.Problem(X, y, cg.losses.Squared(), cg.constraints.L1Ball(1.0))
    problem = cg.Problem(OTHERS[form](X), y, cg.losses.Squared(), cg.constraints.L1Ball(1.0))
    assert problem.objective(w) == pytest.approx(plain.objective(w), rel=1e-14)
    np.testing.assert_allclose(problem.gradient(w), plain.gradient(w), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int32, np.uint64])
def test_integers(dtype):
    X = (data()[0] > 0.3).astype(dtype)
    y = np.arange(len(X)) % 3
    ball = cg.constraints.L1Ball(1.0)
    plain = cg.Problem(X.astype(float), y.astype(float), cg.losses.Squared(), ball)
    w = np.full(5, 0.1)
    for form in (X, scipy.sparse.csr_matrix(X), pd.DataFrame(X)):
        problem = cg.Problem(form, y.astype(dtype) if dtype is not bool else y, cg.losses.Squared(), ball)
        assert problem.objective(w) == plain.objective(w)


@pytest.mark.parametrize(
    "make",
    [
        pd.Series,
        lambda y: pytest.importorskip("polars").Series(y),
        list,
        lambda y: y.reshape(-1, 1),
        lambda y: y.astype(">f4"),
    ],
)
def test_targets_and_weights_in_other_forms(make):
    X, y, weight, w = data()
    y, weight = y.astype(np.float32).astype(float), weight.astype(np.float32).astype(float)
    plain = cg.Problem(X, y, cg.losses.Squared(), cg.constraints.L1Ball(1.0), sample_weight=weight)
    problem = cg.Problem(X, make(y), cg.losses.Squared(), cg.constraints.L1Ball(1.0), sample_weight=make(weight))
    assert problem.objective(w) == plain.objective(w)


def test_duplicates_add_up_and_order_does_not_matter():
    messy = scipy.sparse.csr_matrix(
        (np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([2, 0, 2, 1, 1]), np.array([0, 3, 5])), shape=(2, 3)
    )
    tidy = np.array([[2.0, 0.0, 4.0], [0.0, 9.0, 0.0]])
    w = np.array([0.3, -0.2, 0.1])
    for X in (messy, messy.copy().T.tocsc().T, scipy.sparse.csr_array(messy)):
        problem = cg.Problem(X, [1.0, 2.0], cg.losses.Squared(), cg.constraints.L1Ball(1.0))
        plain = cg.Problem(tidy, [1.0, 2.0], cg.losses.Squared(), cg.constraints.L1Ball(1.0))
        assert problem.objective(w) == pytest.approx(plain.objective(w), rel=1e-15)
        np.testing.assert_allclose(problem.gradient(w), plain.gradient(w), rtol=1e-15)
    assert messy.nnz == 5


def test_weights_are_relative():
    X, y, weight, w = data()
    values = []
    for factor in (1.0, 1e-300, 1e50, 7.0):
        problem = cg.Problem(X, y, cg.losses.Squared(), cg.constraints.L1Ball(1.0), sample_weight=factor * weight)
        assert math.fsum(problem.samples.weight) == pytest.approx(1.0, abs=1e-15)
        values.append(problem.objective(w))
    np.testing.assert_allclose(values, values[0], rtol=1e-13)


@pytest.mark.parametrize("form", ["C", "F", "csr", "csc"])
def test_long_data_on_several_threads(form, monkeypatch):
    """More threads than one, and borders that do not fall evenly."""
    monkeypatch.setattr(threads, "_MIN_WORK", 50)
    monkeypatch.setattr(threads, "n_threads", lambda: 3)
    monkeypatch.setattr(threads, "_pool", None)
    X, y, weight, w = data(n=101)
    exact = references.Reference(X, y, "Squared", references.l1_vertices(5, 1.0), weight)
    problem = cg.Problem(FORMS[form](X), y, cg.losses.Squared(), cg.constraints.L1Ball(1.0), sample_weight=weight)
    assert len(threads.cut(101, 10_000)) == 4
    assert problem.objective(w) == pytest.approx(exact.objective(w), rel=1e-13)
    np.testing.assert_allclose(problem.gradient(w), exact.gradient(w), rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize(
    "offsets", [np.array([0, 0, 0, 100, 100]), np.array([0, 25, 50, 75, 100]), np.array([0, 97, 98, 99, 100])]
)
def test_cut_covers_everything_once(offsets, monkeypatch):
    monkeypatch.setattr(threads, "_MIN_WORK", 1)
    monkeypatch.setattr(threads, "n_threads", lambda: 3)
    borders = threads.cut(4, 100, offsets)
    assert borders[0] == 0
    assert borders[-1] == 4
    assert (np.diff(borders) >= 0).all()


# Refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "kind", "sentence"),
    [
        ({"X": np.ones(3)}, ValueError, "X must have two dimensions (samples, features); got shape (3,)."),
        ({"X": np.ones((2, 3, 4))}, ValueError, "got shape (2, 3, 4)."),
        ({"X": np.empty((0, 3))}, ValueError, "X must have at least one sample and one feature; got shape (0, 3)."),
        ({"X": np.ones((2, 2), complex)}, ValueError, "X must be real; got dtype complex128."),
        ({"X": [["a", "b"], ["c", "d"]]}, ValueError, "X must be an array of numbers; got dtype <U1."),
        ({"X": [[1.0, 2.0], [1.0]]}, ValueError, "X must be an array of numbers; it could not be converted"),
        ({"X": [[1.0, math.nan], [1.0, 2.0]]}, ValueError,
         "X has 1 entry that is not finite, the first at position (0, 1): nan."),
        ({"X": scipy.sparse.csc_matrix([[0.0, 1.0], [math.inf, math.inf]])}, ValueError,
         "X has 2 entries that are not finite, the first at position (1, 0): inf."),
        ({"X": [[10**400, 1], [1, 1]]}, ValueError, "X must be an array of numbers; it could not be converted"),
        ({"X": np.full((2, 2), 1e61)}, ValueError, "X has entries up to 1.0e+61; scale it below 1e+60."),
        ({"X": np.ma.masked_array(np.eye(2), mask=np.eye(2))}, ValueError,
         "X has masked entries. Remove or impute them."),
        ({"y": [1.0]}, ValueError, "y must have one entry per sample: X has 2 rows, y has 1."),
        ({"y": np.eye(2)}, ValueError, "y must have one dimension; got shape (2, 2)."),
        ({"y": scipy.sparse.eye(2)}, ValueError, "y must be a dense vector; got a sparse matrix."),
        ({"y": [0.0, 1.0], "loss": cg.losses.Logistic()}, ValueError,
         "y must be -1 or 1 for Logistic; got values {0, 1}. Use 2 * y - 1."),
        ({"y": [1.0, 1.0], "loss": cg.losses.Logistic(), "intercept": True}, ValueError, "needs both classes"),
        ({"y": [0.0, 1.0], "loss": cg.losses.SigmoidSquared(), "intercept": True}, ValueError, "is not convex"),
        ({"sample_weight": [1.0, -1.0]}, ValueError, "sample_weight must not be negative; got -1."),
        ({"sample_weight": [0.0, 0.0]}, ValueError, "sample_weight is zero for every sample"),
        ({"sample_weight": [1.0]}, ValueError, "sample_weight must have one entry per sample"),
        ({"loss": "squared"}, TypeError, "loss must be a loss of condgrad.losses"),
        ({"loss": cg.losses.Squared}, TypeError, "loss must be an object, not a class; use Squared(...)."),
        ({"constraint": cg.constraints.L1Ball}, TypeError, "constraint must be an object"),
        ({"constraint": 3}, TypeError, "constraint must be a set of condgrad.constraints or have a method lmo"),
        ({"constraint": cg.constraints.Box([0.0], [1.0])}, ValueError, "the data have 2 features"),
        ({"constraint": cg.constraints.L1Ball(1e155)}, ValueError, "constraint has entries up to 1.0e+155"),
        ({"constraint": cg.constraints.ConvexHull([[1e300, -1e300], [0.0, 0.0], [1.0, 1.0]])}, ValueError,
         "constraint has entries up to 1.0e+300"),
        ({"intercept": "no"}, TypeError, "intercept must be True or False; got 'no'."),
    ],
)  # fmt: skip
def test_refusals(changes, kind, sentence):
    arguments = {
        "X": np.eye(2),
        "y": [1.0, -1.0],
        "loss": cg.losses.Squared(),
        "constraint": cg.constraints.L1Ball(1.0),
    }
    with pytest.raises(kind) as caught:
        cg.Problem(**{**arguments, **changes})
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("part", ["indices", "indptr", "short"])
def test_a_broken_sparse_matrix_is_refused(part):
    """Kernels do not check indices: a matrix that points out of itself must not reach them."""
    for make in (scipy.sparse.csr_matrix, scipy.sparse.csc_matrix):
        X = make(np.eye(3))
        if part == "indices":
            X.indices = np.array([0, 1, 7], dtype=np.int32)
        elif part == "indptr":
            X.indptr = np.array([0, 3, 1, 3], dtype=np.int32)
        else:
            X.indptr = np.array([0, 1, 2, 9], dtype=np.int32)
        with pytest.raises(ValueError, match=r"^X is not a valid sparse matrix"):
            cg.Problem(X, np.ones(3), cg.losses.Squared(), cg.constraints.L1Ball(1.0))


@pytest.mark.parametrize("dtype", [">i4", np.int16, np.uint32])
def test_indices_of_other_types(dtype):
    X = scipy.sparse.csr_matrix(np.diag([1.0, 2.0, 3.0]))
    X.indices = X.indices.astype(dtype)
    problem = cg.Problem(X, np.ones(3), cg.losses.Squared(), cg.constraints.L1Ball(1.0))
    np.testing.assert_allclose(problem.gradient(np.ones(3)), [0.0, 2.0 / 3.0, 2.0])


def test_spare_room_is_not_data():
    """scipy allows data and indices to be longer than indptr says."""
    X = scipy.sparse.csr_matrix(np.eye(2))
    X.data, X.indices = np.array([1.0, 1.0, math.nan]), np.array([0, 1, 9], dtype=np.int32)
    problem = cg.Problem(X, np.ones(2), cg.losses.Squared(), cg.constraints.L1Ball(1.0))
    assert problem.objective(np.zeros(2)) == 0.5


@pytest.mark.parametrize("method", ["objective", "gradient", "gap", "evaluate", "best_intercept"])
def test_wrong_points(method):
    problem = cg.Problem(np.eye(2), [1.0, 2.0], cg.losses.Squared(), cg.constraints.L1Ball(1.0))
    for w in ([1.0], np.eye(2), ["a", "b"], [math.nan, 0.0], [1e300, 0.0]):
        with pytest.raises(ValueError, match=r"^w (must|has) .*\.$"):
            getattr(problem, method)(w)
    assert problem.objective([0, 1]) == problem.objective(np.array([0.0, 1.0], np.float32)) == 0.5


@pytest.mark.parametrize("kind", ["predictions", "softmax"])
def test_no_intercept_costs_no_pass(kind, monkeypatch):
    X, ball = np.eye(3), cg.constraints.L1Ball(1.0)
    if kind == "softmax":
        problem, expected = cg.SoftmaxProblem(X, [0, 1, 2], ball), [0.0, 0.0, 0.0]
        monkeypatch.setattr(cg.SoftmaxProblem, "scores", None)
    else:
        problem, expected = cg.Problem(X, [1.0, 2.0, 3.0], cg.losses.Squared(), ball), 0.0
        monkeypatch.setattr(type(problem.matrix), "dot", None)
    w = np.zeros(problem.n_features)
    np.testing.assert_array_equal(problem.best_intercept(w), expected)
    with pytest.raises(ValueError, match="w must"):
        problem.best_intercept(w[1:])
