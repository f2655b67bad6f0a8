"""Subsamples of data with a rhythm: where one sample in ten is of another kind, one in ten of a subsample is, too."""

import numpy as np
import pytest
import scipy.sparse
from stand_in_device import devices

import condgrad as cg
from condgrad.problems.rows.choice import rows_on_device
from condgrad.problems.rows.chunked import ChunkedRows
from condgrad.storage.device_data import DeviceData

N, EVERY = 20_000, 10
BALL = cg.constraints.L1Ball(2.0)
PERIODS = [2, 5, EVERY, 2 * EVERY]


def with_rhythm(period):
    """Return X, whose column 1 is not zero in one sample of each period, and which samples these are."""
    is_special = np.arange(N) % period == 0
    noise = np.random.default_rng(0).standard_normal(N)
    return np.stack([np.ones(N), 3.0 * is_special, noise], axis=1), is_special


def linear(X, is_special):
    return cg.Problem(X, np.where(is_special, -1.0, 1.0), cg.losses.Logistic(), BALL)


def sparse(X, is_special):
    return linear(scipy.sparse.csc_matrix(X), is_special)


def multi_output(X, is_special):
    return cg.MultiOutputProblem(X, np.stack([is_special, ~is_special], axis=1) * 2.0 - 1.0, cg.losses.Logistic(), BALL)


def softmax(X, is_special):
    return cg.SoftmaxProblem(X, np.where(is_special, 1, 2 * (np.arange(N) % 3 == 0)), BALL)


def cox(X, is_special):
    time = 1.0 + np.random.default_rng(1).random(N)
    return cg.CoxProblem(X, np.stack([time, is_special], axis=1), BALL)


def on_device(X, is_special, device):
    rows = rows_on_device(X, np.where(is_special, -1.0, 1.0), cg.losses.Logistic(), None, False, device)
    return cg.Problem.of_rows(rows, BALL)


def sparse_on_device(X, is_special, device):
    return on_device(scipy.sparse.csr_matrix(X), is_special, device)


def streamed(X, is_special, device):
    device.most_bytes = 0
    return on_device(X, is_special, device)


def softmax_on_device(X, is_special, device):
    return cg.SoftmaxProblem(DeviceData.of(X, device), np.where(is_special, 1, 2 * (np.arange(N) % 3 == 0)), BALL)


HERE = [linear, sparse, multi_output, softmax, cox]
THERE = [on_device, sparse_on_device, streamed, softmax_on_device]


def check(problem):
    """Compare a subsample with all samples, at a point where samples of both kinds have very different losses."""
    w = np.zeros(problem.n_features)
    w[0] = 2.0
    assert problem.part(N // EVERY).objective(w) == pytest.approx(problem.objective(w), rel=0.3)
    atoms = [cg.constraints.Atom(0, 1.0), cg.constraints.Atom(1, 1.0)]
    look = problem.look(np.zeros(problem.n_features))  # where all samples have the same curvature
    H, estimate = look.curvature(atoms), look.curvature(atoms, n_rows=N / EVERY)
    assert estimate[1, 1] == pytest.approx(H[1, 1], rel=0.3)


@pytest.mark.parametrize("make", HERE)
@pytest.mark.parametrize("period", PERIODS)
def test_a_subsample_is_not_of_one_kind(make, period):
    check(make(*with_rhythm(period)))


@pytest.mark.parametrize("device", devices())
@pytest.mark.parametrize("make", THERE)
def test_a_subsample_on_a_device_is_not_of_one_kind(make, device):
    check(make(*with_rhythm(EVERY), device()))


def test_second_derivatives_from_some_samples_on_disk_are_not_of_one_kind(tmp_path, monkeypatch):
    X, is_special = with_rhythm(EVERY)
    rows = cg.rows.convert((X, np.where(is_special, -1.0, 1.0)), tmp_path / "rows", shuffle=False)
    problem, features = cg.Problem(rows, loss=cg.losses.Logistic(), constraint=BALL), np.array([0, 1])
    monkeypatch.setattr(ChunkedRows, "_every", lambda self, features: EVERY)
    H = problem.look_with(np.zeros(3), 0.0, features).bends.H
    assert H[1, 1] == pytest.approx(0.25 * np.mean(X[:, 1] ** 2), rel=0.3)
