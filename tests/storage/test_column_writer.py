"""Conversions to columns: every source gives the same columns, dense or sparse, and an interrupted one continues."""

import numpy as np
import pytest
import scipy.sparse

import condgrad as cg
from condgrad.storage import column_writer, stored_columns


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """Small data show what large data do: several pieces, chunks, ranges and single columns."""
    monkeypatch.setattr(stored_columns, "_RANGE", 400)
    monkeypatch.setattr(stored_columns, "_SCATTERED", 200)
    for name, n_bytes in (("_CHUNK", 1_000), ("_BAND", 3_000), ("_PIECE", 2_000)):
        monkeypatch.setattr(column_writer, name, n_bytes)
    monkeypatch.setattr("condgrad.storage.sources.arrays.BATCH_BYTES", 1_000)


def sparse(n=50, d=40, dtype=np.float64):
    X = scipy.sparse.random(n, d, 0.2, random_state=0).toarray()
    X[:, 3] = np.arange(1.0, n + 1.0)
    return scipy.sparse.csr_matrix(X.astype(dtype)), np.arange(n) - 20.0


def check(columns, X, y=None):
    X = X.toarray() if scipy.sparse.issparse(X) else X
    assert columns.shape == X.shape
    read = columns.read_chosen(np.arange(X.shape[1])[::-1])
    np.testing.assert_array_equal(read.toarray() if columns.is_sparse else read, X[:, ::-1])
    assert (columns.y is None) == (y is None)
    if y is not None:
        np.testing.assert_array_equal(columns.y, y)


@pytest.mark.parametrize("form", ["csr", "csc"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_sparse_matrix_stays_sparse(form, dtype, tmp_path):
    X, y = sparse(dtype=dtype)
    columns = cg.columns.convert(X.asformat(form), tmp_path, y=y)
    assert columns.is_sparse
    assert columns.dtype == dtype
    assert columns.n_stored == X.nnz
    assert columns.n_bytes == X.nnz * (np.dtype(dtype).itemsize + 4)
    assert repr(columns).startswith(f"<50 x 40 sparse {np.dtype(dtype)} columns in ")
    check(columns, X, y)
    columns = cg.columns.open(tmp_path)
    for chosen in ([], [7], [3, 3, 39, 0], [5, 6, 7, 30]):
        np.testing.assert_array_equal(columns.read_chosen(chosen).toarray(), X.toarray()[:, chosen])
    seen = [column for block in columns.blocks() for column in block.columns.tolist()]
    assert seen == list(range(40))


def write_libsvm(path, X, y):
    with open(path, "w") as file:
        for k, row in enumerate(X.tocsr()):
            pairs = zip(row.indices, row.data, strict=True)
            file.write(f"{float(y[k])!r} " + " ".join(f"{j + 1}:{float(v)!r}" for j, v in pairs) + "\n")


def test_other_sources_are_written_in_pieces_first(tmp_path):
    X, y = sparse()
    write_libsvm(tmp_path / "data.svm", X, y)
    scipy.sparse.save_npz(tmp_path / "X.npz", X)
    dense = X.toarray()
    np.save(tmp_path / "rows.npy", dense)
    np.save(tmp_path / "y.npy", y)
    np.savetxt(tmp_path / "data.csv", np.column_stack([dense, y]), delimiter=",", fmt="%.17g")
    batches = ((X[k : k + 7], y[k : k + 7]) for k in range(0, 50, 7))
    check(cg.columns.convert(batches, tmp_path / "batches"), X, y)
    check(cg.columns.convert((dense, y), tmp_path / "pair"), X, y)
    check(cg.columns.convert(tmp_path / "data.svm", tmp_path / "svm"), X, y)
    check(cg.columns.convert(tmp_path / "X.npz", tmp_path / "npz", y=y), X, y)
    check(cg.columns.convert(tmp_path / "rows.npy", tmp_path / "npy", target=str(tmp_path / "y.npy")), X, y)
    check(cg.columns.convert(tmp_path / "rows.npy", tmp_path / "npy32", dtype="float32"), dense.astype(np.float32))
    check(cg.columns.convert(tmp_path / "data.csv", tmp_path / "csv"), X, y)
    assert not list(tmp_path.glob("*/piece-*"))


def test_features_that_come_late_and_categories(tmp_path):
    batches = [(scipy.sparse.csr_matrix((3, 2)), [1, 2, 3]), (scipy.sparse.csr_matrix(np.eye(2)), [4, 5])]
    check(cg.columns.convert(iter(batches), tmp_path / "few"), np.vstack([np.zeros((3, 2)), np.eye(2)]), range(1, 6))
    (tmp_path / "late.svm").write_text("1 1:2\n" * 60 + "2 5:1\n")
    late = cg.columns.convert(tmp_path / "late.svm", tmp_path / "late")
    assert late.shape == (61, 5)
    assert late.read_chosen([4]).toarray().sum() == 1.0
    (tmp_path / "words.csv").write_text("colour,y\nred,1\nblue,0\nred,1\n")
    words = cg.columns.convert(tmp_path / "words.csv", tmp_path / "words")
    assert words.feature_names == ["colour=red", "colour=blue", "colour=?"]
    check(words, np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]), [1.0, 0.0, 1.0])


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize("kind", ["libsvm", "npy by columns"])
@pytest.mark.parametrize("n_calls", [1, 3, 5])
def test_an_interrupted_conversion_continues_and_gives_the_same_files(kind, n_calls, tmp_path):
    X, y = sparse()
    path = tmp_path / ("data.svm" if kind == "libsvm" else "X.npy")
    if kind == "libsvm":
        write_libsvm(path, X, y)
    else:
        np.save(path, np.asfortranarray(X.toarray()))
    whole = content(cg.columns.convert(path, tmp_path / "whole").path)
    calls = []

    def stop(progress):
        calls.append(str(progress))
        if len(calls) == n_calls:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cg.columns.convert(path, tmp_path / "parts", callback=stop)
    with pytest.raises(FileNotFoundError, match="not finished"):
        cg.columns.open(tmp_path / "parts")
    assert content(cg.columns.convert(path, tmp_path / "parts").path) == whole


def test_a_source_that_cannot_be_found_again_leaves_nothing_behind(tmp_path):
    def batches():
        yield np.ones((30, 40))
        yield np.full((30, 40), np.nan)

    with pytest.raises(ValueError, match="not finite"):
        cg.columns.convert(batches(), tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("role", ["data", "indices", "indptr"])
def test_a_damaged_file_of_sparse_columns_is_named(role, tmp_path):
    X, _ = sparse()
    cg.columns.convert(X, tmp_path)
    path = sorted(tmp_path.glob(f"chunk-*.{role}.npy"))[-1]
    whole = bytearray(path.read_bytes())
    whole[-3] ^= 4
    path.write_bytes(bytes(whole))
    with pytest.raises(OSError, match=f"{role}.npy.* is damaged"):
        list(cg.columns.open(tmp_path).blocks())
    path.write_bytes(bytes(whole[:-8]))
    with pytest.raises(OSError, match=f"{role}.npy.* bytes instead of"):
        list(cg.columns.open(tmp_path).blocks())


def test_a_sample_that_does_not_exist_is_refused(tmp_path):
    X, _ = sparse()
    columns = cg.columns.convert(X, tmp_path)
    list(columns.blocks())
    columns._chunks[0].n_samples = 20  # as if the file named samples beyond the last one
    with pytest.raises(OSError, match=r"names sample \d+, which does not exist"):
        columns.read_chosen(np.arange(3))


SETTINGS = {
    "lasso": {"n_radii": 8, "tol": 1e-9},
    "lasso with intercept": {"fit_intercept": True, "standardize": True, "alphas": [0.5, 0.1, 0.02]},
    "huber": {"loss": "huber", "n_radii": 5, "tol": 1e-8, "fit_intercept": True, "eps": 0.05},
}


@pytest.mark.parametrize("case", SETTINGS)
def test_paths_on_sparse_columns_are_those_of_the_matrix_in_memory(case, tmp_path):
    rng = np.random.default_rng(0)
    X = scipy.sparse.random(80, 300, 0.1, random_state=1).toarray()
    X[:, 5] = 100.0 + rng.standard_normal(80)  # full and far from zero: it is centred
    X = scipy.sparse.csc_matrix(X)
    y = X[:, 10:20] @ rng.uniform(1.0, 2.0, 10) + 0.1 * rng.standard_normal(80)
    settings = SETTINGS[case]
    path = cg.radius_path if "loss" in settings else cg.lasso_path
    radii, coefs, info = path(X, y, **settings)
    columns = cg.columns.convert(X, tmp_path)
    found, found_coefs, found_info = path(columns, y, **settings)
    np.testing.assert_allclose(found, radii, rtol=1e-6)
    np.testing.assert_allclose(found_coefs.toarray(), coefs.toarray(), atol=1e-5)
    np.testing.assert_allclose(found_info.intercept, info.intercept, atol=1e-3)
    assert found_info.status is info.status is cg.Status.CONVERGED
    assert found_info.n_reads == columns.n_reads > 0.0


def test_weights_and_offsets_are_refused_not_dropped(tmp_path):
    X = np.random.default_rng(0).standard_normal((30, 4))
    with pytest.raises(ValueError, match="has weights, which columns on disk do not store"):
        cg.columns.convert((X, X[:, 0], np.ones(30)), tmp_path / "weights")


def test_a_list_of_batches_is_taken(tmp_path):
    X = np.random.default_rng(0).standard_normal((30, 4))
    assert cg.columns.convert([(X, X[:, 0]), (X, X[:, 0])], tmp_path / "batches").shape == (60, 4)
