"""Columns on disk: what is read is what was written, paths are those of data in memory, errors name the file."""

import copy
import os
import pickle
import signal
import threading

import joblib
import numpy as np
import pytest

import condgrad as cg
from condgrad.paths import disk_columns
from condgrad.paths.disk_columns import DiskColumns, Question
from condgrad.paths.disk_oracle import Choice, DiskOracle, Span
from condgrad.paths.gram_solver import GramSolver
from condgrad.storage import kept_columns, stored_columns


def regression(n, d, seed, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * rng.uniform(0.3, 3.0, d)
    w = np.where(rng.random(d) < 0.05, rng.standard_normal(d), 0.0)
    return np.asfortranarray(X, dtype=dtype), X @ w + 0.3 * rng.standard_normal(n) + 2.0


def stored(X, folder, kind):
    """The same X on disk, in one of the forms that can be opened."""
    if kind == "npy":
        np.save(folder / "X.npy", np.asfortranarray(X))
        return cg.columns.open(folder / "X.npy")
    if kind == "folder":
        return cg.columns.convert(X, folder / "columns")
    if kind == "memmap":
        X.T.tofile(folder / "X.bin")
        return cg.columns.open(np.memmap(folder / "X.bin", X.dtype, "r", shape=X.shape, order="F"))
    wide = np.full((X.shape[0], X.shape[1] + 9), np.nan, X.dtype)
    wide[:, 5:-4] = X
    with open(folder / "wide.bin", "wb") as file:
        file.write(b"some header")
        wide.T.tofile(file)
    mapped = np.memmap(folder / "wide.bin", X.dtype, "r", offset=11, shape=wide.shape, order="F")
    return cg.columns.open(mapped[:, 5:-4])


KINDS = ["npy", "folder", "memmap", "part of a memmap"]


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """Small data show what large data do: several files, ranges and single columns, several readers."""
    monkeypatch.setattr(stored_columns, "_RANGE", 4_000)
    monkeypatch.setattr(stored_columns, "_SCATTERED", 2_000)
    monkeypatch.setattr("condgrad.storage.column_writer._CHUNK", 20_000)
    monkeypatch.setattr("condgrad.storage.column_writer._BAND", 50_000)


@pytest.fixture(autouse=True)
def no_thread_stays():
    before = set(threading.enumerate())
    yield
    assert not [thread for thread in set(threading.enumerate()) - before if "reader" in thread.name]


# Reads.


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_chosen_columns_are_those_of_the_array(kind, dtype, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 230)).astype(dtype)
    columns = stored(X, tmp_path, kind)
    assert columns.shape == X.shape
    assert columns.dtype == X.dtype
    assert columns.n_bytes == X.nbytes
    crowd = np.sort(rng.permutation(np.arange(60, 140))[:50])  # ranges with others between them
    for chosen in ([], [229, 0, 3, 3], [7], range(230), [*crowd, 150, 151, 190], rng.permutation(230)[:20]):
        chosen = np.array(chosen, dtype=np.int64)
        np.testing.assert_array_equal(columns.read_chosen(chosen), X[:, chosen])


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_hold_every_column_once_and_few_columns_cost_few_bytes(kind, tmp_path):
    X = np.random.default_rng(1).standard_normal((40, 230))
    columns = stored(X, tmp_path, kind)
    seen = []
    for block in columns.blocks():
        np.testing.assert_array_equal(block.matrix.chosen_columns(block.places), X[:, block.columns])
        seen.extend(block.columns.tolist())
    assert seen == list(range(230))
    assert columns.bytes_read == X.nbytes
    assert columns.n_reads == 1.0
    columns.read_chosen(np.arange(0, 230, 23))
    assert columns.bytes_read == X.nbytes + 10 * 40 * 8


def test_an_iteration_that_is_left_early_leaves_nothing_behind(tmp_path):
    columns = stored(np.ones((40, 230)), tmp_path, "npy")
    next(iter(columns.blocks()))


def test_a_folder_keeps_the_targets_and_other_dtypes_become_float64(tmp_path):
    X = np.arange(12).reshape(3, 4)
    columns = cg.columns.convert(X, tmp_path / "new" / "folder", y=[1, 2, 3])
    assert columns.dtype == np.float64
    np.testing.assert_array_equal(columns.read_chosen(np.arange(4)), X)
    np.testing.assert_array_equal(cg.columns.open(tmp_path / "new" / "folder").y, [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(cg.columns.open(tmp_path / "new" / "folder", y=[0, 0, 1]).y, [0.0, 0.0, 1.0])
    np.save(tmp_path / "rows.npy", X * 0.5)
    again = cg.columns.convert(tmp_path / "rows.npy", tmp_path / "other")
    np.testing.assert_array_equal(again.read_chosen([3, 1]), X[:, [3, 1]] * 0.5)
    assert repr(again).startswith("<3 x 4 float64 columns in ")


def chosen_sums(columns, chosen):
    return columns.read_chosen(chosen).sum(axis=0)


@pytest.mark.parametrize("kind", ["npy", "folder"])
def test_columns_go_to_other_processes(kind, tmp_path):
    X = np.random.default_rng(2).standard_normal((40, 230))
    columns = stored(X, tmp_path, kind)
    list(columns.blocks())
    for other in (pickle.loads(pickle.dumps(columns)), copy.copy(columns), copy.deepcopy(columns)):
        assert repr(other) == repr(columns) and other.bytes_read == columns.bytes_read
        np.testing.assert_array_equal(other.read_chosen([7, 3]), X[:, [7, 3]])
        assert other.bytes_read == columns.bytes_read + 2 * 40 * 8
    parts = np.array_split(np.arange(230), 3)
    found = joblib.Parallel(n_jobs=2)(joblib.delayed(chosen_sums)(columns, part) for part in parts)
    np.testing.assert_allclose(np.concatenate(found), X.sum(axis=0), atol=1e-12)


# Errors.


def raises(columns, error, *words):
    with pytest.raises(error) as caught:
        for _ in columns.blocks():
            pass
    text = str(caught.value)
    assert all(word in text for word in words), text
    assert text.count("\n") == 0


def test_a_file_that_is_short_missing_or_changed_is_named(tmp_path):
    X = np.random.default_rng(2).standard_normal((40, 230))
    for kind in ("npy", "folder", "memmap"):
        folder = tmp_path / kind
        folder.mkdir()
        columns = stored(X, folder, kind)
        path = columns.file_of(200)
        content = path.read_bytes()
        path.write_bytes(content[:-100])
        word = "instead of" if kind == "folder" else "changed after it was opened"
        raises(columns, OSError, str(path), word)
        path.unlink()
        raises(columns, OSError, str(path), "could not be read")
    np.save(tmp_path / "short.npy", np.asfortranarray(X))
    os.truncate(tmp_path / "short.npy", 5000)
    with pytest.raises(OSError, match="has 5,000 bytes instead of"):
        cg.columns.open(tmp_path / "short.npy")


def test_a_flipped_bit_is_found_at_the_first_full_read(tmp_path):
    columns = stored(np.random.default_rng(3).standard_normal((40, 230)), tmp_path, "folder")
    path = columns.file_of(100)
    content = bytearray(path.read_bytes())
    content[-1000] ^= 1
    path.write_bytes(bytes(content))
    raises(cg.columns.open(tmp_path / "columns"), OSError, str(path), "damaged", "convert the data again")


def test_sources_that_do_not_fit_are_refused_in_one_sentence(tmp_path):
    np.save(tmp_path / "rows.npy", np.ones((3, 4)))
    np.save(tmp_path / "int.npy", np.asfortranarray(np.ones((3, 4), int)))
    np.save(tmp_path / "cube.npy", np.ones((3, 4, 5)))
    (tmp_path / "text.npy").write_text("no array")
    for name, words in (
        ("rows", "stored by rows"), ("int", "holds int64"), ("cube", "two dimensions"), ("text", "not an .npy file"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            cg.columns.open(tmp_path / f"{name}.npy")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        cg.columns.open(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="Fortran order"):
        cg.columns.open(np.memmap(tmp_path / "rows.npy", np.uint8, "r", shape=(4, 8)))
    cg.columns.convert(np.ones((2, 2)), tmp_path / "there")
    with pytest.raises(FileExistsError, match="already"):
        cg.columns.convert(np.ones((2, 2)), tmp_path / "there")
    with pytest.raises(ValueError, match=r"column 2 of the source .* row 1: nan"):
        cg.columns.convert([[1.0, 2.0, 3.0], [4.0, 5.0, np.nan]], tmp_path / "nan")
    with pytest.raises(IndexError, match="between 0 and 1"):
        cg.columns.open(tmp_path / "there").read_chosen([2])


@pytest.mark.parametrize("value", [np.nan, np.inf, -1e90])
@pytest.mark.parametrize("weights", ["equal", "one is zero"])
def test_the_first_read_names_a_column_with_a_bad_entry(value, weights, tmp_path):
    X, y = regression(40, 230, seed=4)
    X[7, 111] = value
    weight = np.ones(40)
    weight[7] = weights == "equal"
    columns = stored(X, tmp_path, "npy")
    with pytest.raises(ValueError, match=r"X\.npy") as caught:
        cg.lasso_path(columns, y, sample_weight=weight, n_radii=3)
    words = "up to 1.0e+90" if np.isfinite(value) else f"in row 7: {value}"
    assert words in str(caught.value)
    assert np.isfinite(value) or "column 111" in str(caught.value)


# Paths.

OPTIONS = {
    "default grid": {},
    "alphas": {"alphas": [0.05, 1.0, 0.2]},
    "radii": {"radii": [1.0, 0.0, 4.0], "fit_intercept": True},
    "weights": {"fit_intercept": True, "standardize": True, "sample_weight": np.linspace(0.0, 1.0, 60), "l2": 0.1},
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("options", OPTIONS)
def test_a_path_is_that_of_the_data_in_memory(dtype, options, tmp_path):
    X, y = regression(60, 250, seed=5, dtype=dtype)
    X[:, 3], X[:, 8] = 0.0, 7.0
    if "fit_intercept" in OPTIONS[options]:
        X[:, 20:40] += 100.0  # far from zero: they are centred by formula
    settings = {"n_radii": 12, "tol": 1e-9, **OPTIONS[options]}
    radii, coefs, info = cg.lasso_path(X, y, **settings)
    columns = stored(X, tmp_path, "folder")
    found, found_coefs, found_info = cg.lasso_path(columns, y, **settings)
    np.testing.assert_allclose(found, radii, rtol=1e-9)
    np.testing.assert_allclose(found_coefs.toarray(), coefs.toarray(), atol=1e-7)
    np.testing.assert_allclose(found_info.intercept, info.intercept, atol=1e-6)
    np.testing.assert_allclose(found_info.alpha, info.alpha, rtol=1e-7)
    assert found_info.status is info.status is cg.Status.CONVERGED
    assert found_info.n_reads == columns.n_reads > 0.0
    assert info.n_reads == 0.0


def test_every_radius_is_certified_on_disk_too(tmp_path):
    X, y = regression(60, 250, seed=5)
    radii, coefs, info = cg.lasso_path(stored(X, tmp_path, "npy"), y, n_radii=None, tol=1e-3)
    assert info.status is cg.Status.CONVERGED
    for k in range(1, radii.size):  # in the middle between two radii
        w = 0.5 * (coefs[:, k - 1] + coefs[:, k]).toarray().ravel()
        r = X.T @ (X @ w - y) / 60
        assert r @ w + 0.5 * (radii[k - 1] + radii[k]) * np.abs(r).max() <= 1e-3 * 0.5 * np.mean(y**2) * (1.0 + 1e-9)


def test_points_are_certified_by_the_whole_data(tmp_path):
    X, y = regression(60, 400, seed=6)
    largest = np.abs(X.T @ y).max() / 60
    alphas = largest * np.geomspace(0.9, 0.02, 10)
    _, coefs, info = cg.lasso_path(stored(X, tmp_path, "npy"), y, alphas=alphas, tol=1e-8)
    for k, alpha in enumerate(alphas):
        R = y - X @ coefs[:, k].toarray().ravel()
        dual = R * min(1.0, alpha * 60 / np.abs(X.T @ R).max())
        primal = 0.5 * np.mean(R**2) + alpha * np.abs(coefs[:, k]).sum()
        gap = primal - (0.5 * np.mean(y**2) - 0.5 * np.mean((y - dual) ** 2))
        assert gap <= 3.0 * (info.gap[k] + info.rounding[k]) + 1e-12  # theirs has the best multiple of R
    assert info.relative_gap.max() <= 1e-8


def test_few_reads_serve_a_whole_path_and_the_first_one_serves_the_next_path_too(tmp_path):
    rng = np.random.default_rng(7)
    X = rng.standard_normal((300, 2000))
    y = X[:, :8] @ rng.uniform(0.5, 1.0, 8) + 0.05 * rng.standard_normal(300)
    columns = stored(X, tmp_path, "npy")
    _, _, start = cg.lasso_path(columns, y, radii=[0.0])
    assert start.n_reads == columns.n_reads == 1.0
    assert start.alpha[0] == pytest.approx(np.abs(X.T @ y).max() / 300)
    _, _, info = cg.lasso_path(columns, y, alphas=start.alpha[0] * np.linspace(1.0, 0.1, 50))
    assert info.status is cg.Status.CONVERGED
    assert info.n_reads == columns.n_reads - 1.0 < 2.5
    cg.lasso_path(columns, 2.0 * y, radii=[0.0])
    assert columns.n_reads == pytest.approx(2.0 + info.n_reads)


def test_large_working_sets_and_little_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(GramSolver, "_is_outgrown", lambda self, tol: True)  # sweeps from the start
    monkeypatch.setattr(kept_columns, "_KEPT", 0)  # so that columns have to make room for others
    X, y = regression(120, 400, seed=8)
    settings = {"alphas": np.abs(X.T @ y).max() / 120 * np.geomspace(0.9, 0.01, 6), "tol": 1e-6}
    info = cg.lasso_path(X, y, **settings)[2]
    found_info = cg.lasso_path(stored(X, tmp_path, "npy"), y, **settings)[2]
    assert info.n_nonzero.max() > 64
    assert found_info.status is cg.Status.CONVERGED
    np.testing.assert_allclose(found_info.objective, info.objective, atol=1e-4 * np.mean(y**2))
    np.testing.assert_allclose(found_info.radius, info.radius, rtol=1e-2)


def test_ctrl_c_is_heard_between_two_blocks_of_a_read(tmp_path, monkeypatch):
    X, y = regression(60, 400, seed=9)
    columns = stored(X, tmp_path, "npy")
    cg.lasso_path(columns, y, radii=[0.0])
    take, calls = Span.take, []

    def press(self, *args):
        calls.append(1)
        if len(calls) == 3:
            signal.raise_signal(signal.SIGINT)
        take(self, *args)

    monkeypatch.setattr(Span, "take", press)
    radii, coefs, info = cg.lasso_path(columns, y, n_radii=10)
    assert info.status is cg.Status.INTERRUPTED
    assert radii.size == coefs.shape[1] < 10
    assert len(calls) == 3


def test_ctrl_c_in_the_first_read_ends_the_call(tmp_path, monkeypatch):
    X, y = regression(60, 400, seed=9)
    columns = stored(X, tmp_path, "npy")
    monkeypatch.setattr(disk_columns, "_look", lambda *args: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        cg.lasso_path(columns, y)
    assert columns.n_reads < 1.0


def test_what_cannot_work_on_disk_says_so(tmp_path):
    X, y = regression(30, 50, seed=10)
    columns = stored(X, tmp_path, "npy")
    with pytest.raises(ValueError, match="needs X in memory"):
        cg.lasso_path(columns, y, engine="randomized")
    with pytest.raises(ValueError, match=r"pass them to condgrad\.lasso_path"):
        cg.Problem(columns, y, cg.losses.Squared(), cg.constraints.L1Ball(1.0))
    assert columns.n_reads == 0.0


def test_a_map_that_is_larger_than_memory_is_read_column_by_column(tmp_path, monkeypatch):
    X, y = regression(30, 50, seed=11)
    X.T.tofile(tmp_path / "X.bin")
    mapped = np.memmap(tmp_path / "X.bin", np.float64, "r", shape=X.shape, order="F")
    assert cg.lasso_path(mapped, y, radii=[1.0])[2].n_reads == 0.0
    monkeypatch.setattr("os.sysconf", lambda name: 100)
    assert cg.lasso_path(mapped, y, radii=[1.0])[2].n_reads >= 1.0


# The bounds of a span.


@pytest.mark.parametrize("size", [1e-40, 1.0, 1e40])
@pytest.mark.parametrize("has_intercept", [False, True])
def test_a_span_bounds_every_correlation(size, has_intercept, tmp_path):
    X, y = regression(60, 150, seed=12, dtype=np.float32)
    X[:, 4], X[:, 30:40] = 5.0, X[:, 30:40] + 1e4
    y, weight = size * y, np.full(60, 1 / 60)
    y -= has_intercept * y.mean()
    columns = DiskColumns(stored(X, tmp_path, "npy"), Question(weight, y, has_intercept, False))
    Z = X - X.astype(np.float64).mean(axis=0) if has_intercept else X.astype(np.float64)
    span = Span(columns, y)
    rng = np.random.default_rng(13)
    for _ in range(4):
        atoms = rng.choice(150, 5, replace=False)
        for R in (y, y - size * Z[:, atoms] @ rng.standard_normal(5), size * rng.standard_normal(60)):
            R = R - has_intercept * R.mean()
            upper, exact = span.upper(R), np.abs(Z.T @ (weight * R))
            assert (upper * (1.0 + 1e-12) >= exact).all()
        new = np.concatenate([R[None], columns.vectors(atoms)])
        span.renew(Choice(np.arange(1), new, np.append(-1, atoms)))
        for block, _ in columns.blocks():
            span.take(block.columns, block.matrix)
        within = y - size * Z[:, atoms] @ rng.standard_normal(5)
        exact = np.abs(Z.T @ (weight * within))
        assert (span.upper(within) * (1.0 + 1e-12) >= exact).all()
        assert span.upper(within).max() <= 1.01 * exact.max()  # and there it is sharp


def test_the_oracle_of_the_disk_scans_what_the_bounds_leave(tmp_path, monkeypatch):
    X, y = regression(60, 300, seed=14)
    scan, missed = DiskOracle.scan, []

    def checked(self, a, mu, threshold, level):
        found = scan(self, a, mu, threshold, level)
        exact = np.abs(X.T @ a)
        left_out = np.setdiff1d(np.flatnonzero(exact > threshold * (1.0 + 1e-9)), found.features)
        missed.extend(left_out)
        return found

    monkeypatch.setattr(DiskOracle, "scan", checked)
    cg.lasso_path(stored(X, tmp_path, "npy"), y, n_radii=20, eps=1e-3)
    assert missed == []
