"""Rows that a device cannot hold, and that are sent to it in every pass: the same answers and certificates."""

import functools

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose
from stand_in_device import devices

import condgrad as cg
from condgrad.linalg.device import streamed
from condgrad.linalg.device.streamed import MatrixRows, StreamedMatrix, sent_ahead
from condgrad.linalg.interrupts import Interrupts, PassInterruptedError
from condgrad.linalg.matrix import Matrix
from condgrad.linalg.one_hot import OneHotMatrix
from condgrad.linalg.one_hot_slices import empty_codes
from condgrad.problems.active_set import AtomStack
from condgrad.problems.rows.choice import rows_on_device
from condgrad.problems.rows.streamed import StreamedRows
from condgrad.storage.device_data import DeviceData
from condgrad.testing import check_rows

BALL = cg.constraints.L1Ball(2.0)


@pytest.fixture(params=devices())
def device(request, monkeypatch):
    monkeypatch.setattr(streamed, "_PIECE", 2**14)  # bytes: some hundred rows, so that there are several pieces
    monkeypatch.setattr(streamed, "_PER_FEATURE", 1)
    small = request.param()
    small.most_bytes = 0
    return small


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 12))
    y = np.where(X[:, 0] - X[:, 1] + rng.logistic(size=400) > 0.0, 1.0, -1.0)
    return X, y, rng.uniform(0.5, 2.0, 400)


def problem_on(device, X, y, *, weight=None, intercept=False, constraint=BALL):
    rows = rows_on_device(X, y, cg.losses.Logistic(), weight, intercept, device)
    assert isinstance(rows, StreamedRows)
    return cg.Problem.of_rows(rows, constraint, intercept=intercept)


@pytest.mark.parametrize(
    ("kind", "intercept"), [(np.asarray, True), (np.asfortranarray, False), (scipy.sparse.csr_matrix, True)]
)
def test_a_fit_is_that_of_memory_and_certified(data, device, kind, intercept):
    X, y, weight = data
    there = problem_on(device, kind(X), y, weight=weight, intercept=intercept)
    here = cg.Problem(X, y, cg.losses.Logistic(), BALL, sample_weight=weight, intercept=intercept)
    result = cg.minimize(there, tol=1e-7)
    assert result.status == cg.Status.CONVERGED
    assert result.n_reads >= 2.0
    assert there.bytes_of_pass > 0
    best = cg.minimize(here, tol=1e-10)
    assert abs(result.objective - best.objective) <= 1e-7
    look, known = there.look(result.w), here.look(result.w)
    assert abs(look.gap - known.gap) <= 1e-13 * known.objective


def test_other_sets_use_the_curvature_of_a_sample(data, device):
    X, y, _ = data
    ball = cg.constraints.L2Ball(1.0)
    result = cg.minimize(problem_on(device, X, y, constraint=ball), tol=1e-6)
    assert result.status == cg.Status.CONVERGED
    assert abs(result.objective - cg.minimize(cg.Problem(X, y, cg.losses.Logistic(), ball), tol=1e-9).objective) <= 1e-6


def test_large_means_cost_no_digits(data, device):
    X, y, _ = data
    far = X + 1e6
    there = problem_on(device, far, y, intercept=True)
    here = cg.Problem(far, y, cg.losses.Logistic(), BALL, intercept=True)
    w = cg.minimize(here, tol=1e-8).w
    assert there.look(w).gap == pytest.approx(here.look(w).gap, abs=1e-12)
    assert there.best_intercept(w) == pytest.approx(here.best_intercept(w), rel=1e-9)
    atoms = AtomStack(np.arange(4), np.ones(4))
    assert_allclose(there.look(w).curvature(atoms), here.look(w).curvature(atoms), rtol=0.5, atol=0.02)


def codes(n, rng):
    """Codes of two fields with 5 and 7 categories."""
    fields = np.array([rng.integers(0, 5, n), rng.integers(0, 7, n)], dtype=np.uint8).T.copy()
    rest = empty_codes(n, 2), empty_codes(n, 4)
    none = np.empty(0, np.uint64)
    return OneHotMatrix((fields, *rest), (np.array([0, 5], np.uint64), none, none), 12)


def test_rows_on_disk_are_streamed(data, device, tmp_path):
    X, y, _ = data
    sparse, sizes = scipy.sparse.csr_matrix(X * (np.abs(X) > 1.0)), {"dense": 16384, "sparse": 4096, "one-hot": 300}
    for kind, source in {"dense": X, "sparse": sparse, "one-hot": codes(400, np.random.default_rng(0))}.items():
        stored = cg.rows.convert(iter([(source, y)]), tmp_path / kind, chunk_bytes=sizes[kind])
        assert stored.n_chunks > 1
        assert stored.kind == kind
        there, here = problem_on(device, stored, None), cg.Problem(stored, None, cg.losses.Logistic(), BALL)
        w = np.full(stored.shape[1], 0.1)
        look, known = there.look(w), here.look(w)
        assert look.objective == pytest.approx(known.objective, rel=1e-12)
        assert_allclose(look.gradient, known.gradient, atol=1e-12)
        assert there.rows.head(100).n_samples < 200
        assert there.fingerprint() != there.with_targets(-there.y).fingerprint()


def test_estimators_stream_what_does_not_fit(data, device, monkeypatch, tmp_path):
    X, y, _ = data
    monkeypatch.setattr("condgrad.estimators._linear_model.device_by_name", lambda name: device)
    here = cg.ConstrainedLogisticRegression(radius=0.5).fit(X, y)
    for given in ((X, y), (cg.rows.convert((X, y), tmp_path / "rows", chunk_bytes=16384),)):
        there = cg.ConstrainedLogisticRegression(radius=0.5, device="cuda").fit(*given)
        assert there.gap_ <= 1e-6
        assert_allclose(there.coef_, here.coef_, atol=1e-3)
    on_device = DeviceData.of(X, device)
    assert "streamed to" in repr(on_device)
    assert_allclose(on_device.dot_each(here.coef_), X.dot(here.coef_.T).T, rtol=1e-12)
    part, places = on_device.sample(0.1)
    assert_allclose(part.X, X[places])


def test_a_pass_is_left_early_without_harm(data, device):
    lanes = []
    make = device.lane
    device.lane = lambda: lanes.append(make()) or lanes[-1]
    blocks = StreamedMatrix(device, MatrixRows(Matrix(data[0]))).blocks()
    next(blocks)
    blocks.close()
    assert len(lanes) == 3
    assert all(not lane.is_open for lane in lanes if hasattr(lane, "is_open"))


def test_the_end_of_the_time_is_heard_within_a_pass(data, device):
    X, y, _ = data
    problem = problem_on(device, X, y)
    result = cg.minimize(problem, tol=1e-12, max_time=0.0)
    assert result.status in (cg.Status.MAX_TIME, cg.Status.CONVERGED)
    assert BALL.violation(result.w) <= 1e-12
    with Interrupts() as interrupts:
        interrupts.end_passes_at(0.0)
        with pytest.raises(PassInterruptedError):
            list(problem.rows.matrix.blocks())


def test_an_error_of_the_source_reaches_the_caller(device):
    def pieces():
        yield streamed.RowsOfMatrix(0, Matrix(np.ones((4, 2))))
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        for _ in sent_ahead(device, pieces()):
            pass


def test_entries_that_are_not_finite_are_refused(data, device):
    X = data[0].copy()
    X[300, 3] = np.inf
    with pytest.raises(ValueError, match="X"):
        problem_on(device, scipy.sparse.csr_matrix(X), data[1])


def make_on(device, X, samples, has_intercept):
    offset = samples.offset.to_array()
    return rows_on_device(X, samples.y, samples.loss, samples.weight, has_intercept, device, offset)


@pytest.mark.campaign
def test_streamed_rows_fulfil_the_contract(device):
    """With the default number of samples: reads are few because half of the rows stay, and tell of the others."""
    check_rows(functools.partial(make_on, device))
