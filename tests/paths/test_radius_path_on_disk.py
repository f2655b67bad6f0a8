"""radius_path on columns on disk: the points are those of data in memory, reads are few, what cannot work says so."""

import signal

import numpy as np
import pytest

import condgrad as cg
from condgrad.paths import smooth_engine
from condgrad.paths.disk_oracle import DiskOracle, Span
from condgrad.storage import stored_columns


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """Small data show what large data do: several files, ranges and single columns, several readers."""
    monkeypatch.setattr(stored_columns, "_RANGE", 4_000)
    monkeypatch.setattr(stored_columns, "_SCATTERED", 2_000)
    monkeypatch.setattr("condgrad.storage.column_writer._CHUNK", 20_000)
    monkeypatch.setattr("condgrad.storage.column_writer._BAND", 50_000)


def samples(loss, n=60, d=250):
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.standard_normal((n, d)) * rng.uniform(0.3, 2.0, d))
    s = X[:, :6] @ rng.uniform(0.5, 1.0, 6)
    if loss == "poisson":
        return X, rng.poisson(np.exp(np.clip(0.3 * s, -2.0, 2.0))).astype(float)
    return X, np.sign(s + 0.3 * rng.standard_normal(n)) if loss in ("logistic", "squared-hinge") else s


def weighted(radius):
    return cg.constraints.WeightedL1Ball(radius, np.linspace(0.5, 2.0, 250))


CASES = {
    "logistic": {"fit_intercept": True, "sample_weight": np.linspace(0.0, 1.0, 60)},
    "huber": {"alphas": [0.3, 0.05, 0.1]},
    "poisson": {"constraint": "nonnegative-l1", "eps": 0.1},
    "squared-hinge": {"constraint": weighted, "radii": [0.5, 0.0, 2.0]},
}


@pytest.mark.parametrize("loss", CASES)
def test_a_path_is_that_of_the_data_in_memory(loss, tmp_path):
    X, y = samples(loss)
    X[:, 3], X[:, 8] = 0.0, 7.0
    if "fit_intercept" in CASES[loss]:
        X[:, 20:40] += 100.0  # far from zero: they are centred by formula
    settings = {"loss": loss, "n_radii": 8, "tol": 1e-9, **CASES[loss]}
    radii, coefs, info = cg.radius_path(X, y, **settings)
    columns = cg.columns.convert(X, tmp_path / "columns")
    found, found_coefs, found_info = cg.radius_path(columns, y, **settings)
    np.testing.assert_allclose(found, radii, rtol=1e-7)
    np.testing.assert_allclose(found_coefs.toarray(), coefs.toarray(), atol=1e-6)
    np.testing.assert_allclose(found_info.objective, info.objective, rtol=1e-8)
    np.testing.assert_allclose(found_info.intercept, info.intercept, atol=1e-4)
    np.testing.assert_allclose(found_info.alpha, info.alpha, rtol=1e-5)
    assert found_info.status is info.status is cg.Status.CONVERGED
    assert found_info.n_reads == columns.n_reads > 0.0
    assert info.n_reads == 0.0


def test_few_reads_serve_a_whole_path_and_the_first_one_serves_the_next_path_too(tmp_path):
    rng = np.random.default_rng(7)
    X = rng.standard_normal((300, 2000))
    y = np.sign(X[:, :8] @ rng.uniform(0.5, 1.0, 8) + 0.5 * rng.standard_normal(300))
    columns = cg.columns.convert(X, tmp_path / "columns")
    start = cg.radius_path(columns, y, radii=[0.0])[2]
    assert start.n_reads == columns.n_reads == 1.0
    assert start.alpha[0] == pytest.approx(np.abs(X.T @ y).max() / 600)
    info = cg.radius_path(columns, y, alphas=start.alpha[0] * np.linspace(1.0, 0.3, 40))[2]
    assert info.status is cg.Status.CONVERGED
    assert info.n_reads == columns.n_reads - 1.0 < 4.0


def test_points_that_the_engine_leaves_to_minimize_are_certified_too(tmp_path, monkeypatch):
    monkeypatch.setattr(smooth_engine, "_MOST_ATOMS", 8)
    X, y = samples("logistic")
    settings = {"radii": [0.5, 3.0], "tol": 1e-5, "fit_intercept": True}
    info = cg.radius_path(X, y, **settings)[2]
    found = cg.radius_path(cg.columns.convert(X, tmp_path / "columns"), y, **settings)[2]
    assert found.n_nonzero.max() > 8
    assert found.status is cg.Status.CONVERGED
    np.testing.assert_allclose(found.objective, info.objective, atol=1e-4)


def test_the_oracle_of_the_disk_leaves_out_no_feature(tmp_path, monkeypatch):
    X, y = samples("logistic")
    scan, missed, calls = DiskOracle.scan, [], []

    def checked(self, a, mu, threshold, level):
        is_atom = self.bounds.key == -np.inf
        found = scan(self, a, mu, threshold, level)
        exact = np.where(is_atom, 0.0, np.abs(X.T @ a))
        missed.extend(np.setdiff1d(np.flatnonzero(exact > threshold * (1.0 + 1e-9)), found.features))
        calls.append(1)
        return found

    monkeypatch.setattr(DiskOracle, "scan", checked)
    cg.radius_path(cg.columns.convert(X, tmp_path / "columns"), y, n_radii=10)
    assert missed == []
    assert calls


def test_ctrl_c_is_heard_between_two_blocks_of_a_read(tmp_path, monkeypatch):
    X, y = samples("logistic")
    columns = cg.columns.convert(X, tmp_path / "columns")
    cg.radius_path(columns, y, radii=[0.0])
    take, calls = Span.take, []

    def press(self, *args):
        calls.append(1)
        if len(calls) == 3:
            signal.raise_signal(signal.SIGINT)
        take(self, *args)

    monkeypatch.setattr(Span, "take", press)
    radii, coefs, info = cg.radius_path(columns, y, n_radii=10)
    assert info.status is cg.Status.INTERRUPTED
    assert radii.size == coefs.shape[1] < 10
    assert len(calls) == 3


@pytest.mark.parametrize("value", [np.nan, np.inf, -1e90])
def test_the_first_read_names_a_column_with_a_bad_entry(value, tmp_path):
    X, y = samples("logistic")
    X[7, 111] = value
    np.save(tmp_path / "X.npy", X)
    with pytest.raises(ValueError, match=r"X\.npy"):
        cg.radius_path(cg.columns.open(tmp_path / "X.npy"), y, n_radii=3)


def test_what_cannot_work_on_disk_says_so(tmp_path):
    X, y = samples("logistic")
    columns = cg.columns.convert(X, tmp_path / "columns")
    with pytest.raises(ValueError, match="need an l1 ball, a weighted or a non-negative one; got L2Ball"):
        cg.radius_path(columns, y, constraint="l2")
    with pytest.raises(ValueError, match="need solver='auto'"):
        cg.radius_path(columns, y, solver="pairwise")
    with pytest.raises(ValueError, match="need a convex loss"):
        cg.radius_path(columns, (y + 1.0) / 2.0, loss="sigmoid-squared")
    with pytest.raises(ValueError, match="y must be -1 or 1"):
        cg.radius_path(columns, np.arange(60))
    assert columns.n_reads == 0.0
