"""Conversions: what is written is what was given; they are random, resumable, and never leave half of anything."""

import collections
import errno
import os
import threading
import tracemalloc

import numpy as np
import pytest
import scipy.sparse
from stored import content, files_of

import condgrad as cg
from condgrad.storage import array_files, row_writer

N, D = 300, 5


def flip_a_bit(path):
    harmed = bytearray(path.read_bytes())
    harmed[-1] ^= 1
    path.write_bytes(harmed)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    """Files need not survive a power cut here."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    return rng.standard_normal((N, D)), np.arange(N) + 0.5, rng.random(N)


def kinds():
    X = np.random.default_rng(0).standard_normal((N, D))
    entries = scipy.sparse.random(N, 40, 0.2, random_state=0).toarray()
    entries[17:60] = 0.0  # rows without entries
    sparse = scipy.sparse.csr_matrix(entries)
    return {
        "float64": X,
        "float32": X.astype(np.float32),
        "integers": (10 * X).astype(int),
        "sparse": sparse,
        "sparse float32": sparse.astype(np.float32),
    }


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("name", kinds())
def test_samples_come_back(name, shuffle, tmp_path):
    X = kinds()[name]
    y, weight = np.arange(N, dtype=float), np.linspace(0.0, 1.0, N)
    rows = cg.rows.convert((X, y, weight), tmp_path / "rows", chunk_bytes=3000, shuffle=shuffle)
    array = X.toarray() if scipy.sparse.issparse(X) else X
    found, targets, weights = content(rows)
    order = targets.astype(int)  # y numbers the samples
    assert sorted(order) == list(range(N)) and rows.is_shuffled == shuffle
    assert (order == np.arange(N)).all() == (not shuffle)
    np.testing.assert_array_equal(found, array[order])
    np.testing.assert_array_equal(weights, weight[order])
    assert found.dtype == (np.float32 if "float32" in name else np.float64)
    sizes = [chunk.size for chunk in rows.manifest.chunks]
    assert len(sizes) > 3 and max(sizes) <= 4 * min(sizes)
    sums = [array.sum(axis=0, dtype=float), (array.astype(float) ** 2).sum(axis=0), np.abs(array).max(axis=0)]
    np.testing.assert_allclose(rows.columns, sums, rtol=1e-12, atol=1e-12)
    facts = rows.manifest.facts
    assert facts["y"] == {"min": 0.0, "max": N - 1.0, "mean": (N - 1) / 2, "classes": None}
    assert facts["total_weight"] == pytest.approx(weight.sum(), rel=1e-12)
    assert not [path for path in (tmp_path / "rows").iterdir() if path.name[:5] not in ("chunk", "manif", "share")]


def test_targets_are_small_where_that_is_exact(tmp_path):
    X = np.ones((6, 1))
    for y, dtype in (([-1, 1] * 3, "|i1"), ([0.5, 1.0] * 3, "<f4"), ([0.1, 1.0] * 3, "<f8"), ([200, 1] * 3, "<f4")):
        rows = cg.rows.convert((X, y), tmp_path / "rows", shuffle=False, overwrite=True)
        assert rows.manifest.chunks[0].files["y"].dtype == dtype
        np.testing.assert_array_equal(rows.y, y)
    classes = rows.manifest.facts["y"]["classes"]
    assert classes == [{"value": 1.0, "count": 3}, {"value": 200.0, "count": 3}]


def test_every_order_is_equally_likely(tmp_path):
    """Three samples in two pieces and chunks: all six orders occur, each about equally often."""
    counts, n_runs = collections.Counter(), 120
    for seed in range(n_runs):
        batches = [(np.eye(3), np.arange(3.0))]
        rows = cg.rows.convert(batches, tmp_path / "rows", chunk_bytes=45, random_state=seed, overwrite=True)
        assert rows.shape == (3, 3)
        counts[tuple(rows.y)] += 1
    expected = n_runs / 6
    assert len(counts) == 6
    assert sum((count - expected) ** 2 / expected for count in counts.values()) < 20.5  # 0.999 quantile of chi-squared


def test_same_seed_same_files_whatever_the_batches(data, tmp_path):
    X, y, weight = data
    cg.rows.convert(data, tmp_path / "a", chunk_bytes=2000, random_state=3)
    batches = [(X[k : k + 7], y[k : k + 7], weight[k : k + 7]) for k in range(0, N, 7)]
    cg.rows.convert(iter(batches), tmp_path / "b", chunk_bytes=2000, random_state=3)
    cg.rows.convert(data, tmp_path / "c", chunk_bytes=2000, random_state=4)
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b") != files_of(tmp_path / "c")


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("is_sparse", [True, False])
def test_memory_holds_a_few_chunks(is_sparse, shuffle, tmp_path):
    def batches():
        for _ in range(80):
            X = np.ones((1000, 25))
            yield scipy.sparse.csr_matrix(X) if is_sparse else X

    chunk_bytes = 1_000_000  # 16 to 24 chunks
    tracemalloc.start()
    try:
        cg.rows.convert(batches(), tmp_path / "rows", chunk_bytes=chunk_bytes, shuffle=shuffle)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * chunk_bytes


def test_a_large_batch_is_cut(tmp_path):
    X = scipy.sparse.random(3000, 50, 0.3, "csr", random_state=0)
    rows = cg.rows.convert([X], tmp_path / "rows", chunk_bytes=20_000, shuffle=False)
    np.testing.assert_array_equal(content(rows)[0], X.toarray())
    assert rows.n_chunks > 20


def test_batches_may_share_their_memory(tmp_path):
    """A generator that fills the same array again gives what it had when it was read."""

    def batches():
        X = np.empty((10, 2))
        for k in range(20):
            X[:] = k
            yield X, X[:, 0]

    X, y, _ = content(cg.rows.convert(batches(), tmp_path / "rows", shuffle=False))
    np.testing.assert_array_equal(X[:, 1], np.repeat(np.arange(20), 10))
    np.testing.assert_array_equal(y, X[:, 0])


# Folders --------------------------------------------------------------------------------------------------------------


def test_data_are_not_overwritten_by_accident(data, tmp_path):
    cg.rows.convert(data, tmp_path / "rows")
    before = files_of(tmp_path / "rows")
    with pytest.raises(FileExistsError, match="has data already; use overwrite=True"):
        cg.rows.convert(data, tmp_path / "rows", random_state=1)
    assert files_of(tmp_path / "rows") == before
    rows = cg.rows.convert((data[0][:9], data[1][:9]), tmp_path / "rows", overwrite=True)
    assert rows.shape == (9, D) and len(files_of(tmp_path / "rows")) == 4
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("precious")
    with pytest.raises(FileExistsError, match=r"such as 'thesis.txt'; give a new folder"):
        cg.rows.convert(data, tmp_path / "mine", overwrite=True)
    with pytest.raises(ValueError, match="is a file; give the name of a folder"):
        cg.rows.convert(data, tmp_path / "mine" / "thesis.txt")
    with pytest.raises(FileNotFoundError, match=r"has no manifest.json"):
        cg.rows.open(tmp_path / "mine")


# Interruptions --------------------------------------------------------------------------------------------------------


@pytest.fixture
def path(data, tmp_path):
    lines = (f"{y!r} " + " ".join(f"{j + 1}:{value!r}" for j, value in enumerate(row))
             for row, y in zip(data[0].tolist(), data[1].tolist(), strict=True))  # fmt: skip
    (tmp_path / "data.svm").write_text("\n".join(lines))
    return tmp_path / "data.svm"


def interrupted_at_once(writer, source):
    raise KeyboardInterrupt


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("n_files", [*(pytest.param(k, marks=pytest.mark.campaign) for k in (1, 5, 60)), 9, 33])
def test_an_interrupted_conversion_continues(n_files, shuffle, path, tmp_path, monkeypatch):
    monkeypatch.setattr("condgrad.storage.sources.libsvm._BLOCK_BYTES", 1000)
    options = {"chunk_bytes": 2500, "shuffle": shuffle}
    cg.rows.convert(path, tmp_path / "whole", **options)
    written, write_array = [], array_files.write_array

    def interrupted(folder, name, array):
        if len(written) == n_files:
            raise KeyboardInterrupt
        written.append(name)
        return write_array(folder, name, array)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(row_writer, "write_array", interrupted)
        cg.rows.convert(path, tmp_path / "rows", **options)
        raise KeyboardInterrupt  # it was complete before
    for left in ("chunk-00099.data.npy.0f1e2d3c4b5a6978.part", "conversion.json.0f1e2d3c4b5a6978.part"):
        (tmp_path / "rows" / left).write_text("half of a file")  # a killed process leaves it
    if "manifest.json" not in files_of(tmp_path / "rows"):
        with pytest.raises(FileNotFoundError, match="conversion was not finished; run the conversion again"):
            cg.rows.open(tmp_path / "rows")
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):  # and once more, before anything is done
            patch.setattr(row_writer.RowWriter, "read", interrupted_at_once)
            cg.rows.convert(path, tmp_path / "rows", **options)
        again = []

        def recorded(folder, name, array):
            again.append(name)
            return write_array(folder, name, array)

        monkeypatch.setattr(row_writer, "write_array", recorded)
        cg.rows.convert(path, tmp_path / "rows", **options)
        assert files_of(tmp_path / "rows") == files_of(tmp_path / "whole")
        complete = 4 * (len(written) // 4)  # four files a chunk
        assert not set(again) & set(written[:complete]), "complete chunks are not written again"


def test_another_conversion_begins_anew(path, tmp_path, monkeypatch):
    def full(folder, name, array):
        if "00002" in name:
            raise KeyboardInterrupt
        return array_files.write_array(folder, name, array)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(row_writer, "write_array", full)
        cg.rows.convert(path, tmp_path / "rows", chunk_bytes=2500)
    assert "piece-00001.y.npy" in files_of(tmp_path / "rows")
    flip_a_bit(tmp_path / "rows" / "piece-00001.data.npy")
    cg.rows.convert(path, tmp_path / "rows", chunk_bytes=2500)
    cg.rows.convert(path, tmp_path / "whole", chunk_bytes=2500)
    assert files_of(tmp_path / "rows") == files_of(tmp_path / "whole")


@pytest.mark.parametrize("name", ["piece-00001.indices.npy", "chunk-00001.data.npy", "shared-columns.npy"])
def test_a_full_disk_is_one_sentence_and_no_half_chunk(name, path, tmp_path, monkeypatch):
    def full(folder, file, array):
        if file == name:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return array_files.write_array(folder, file, array)

    options = {"chunk_bytes": 2500}
    with (
        monkeypatch.context() as patch,
        pytest.raises(OSError, match=r"is full: a chunk takes about 0.0 MB, and .* free"),
    ):
        patch.setattr(row_writer, "write_array", full)
        cg.rows.convert(path, tmp_path / "rows", **options)
    left = files_of(tmp_path / "rows")
    assert not [file for file in left if file.startswith(name[:11])]
    assert any(file.startswith("piece") for file in left) == (not name.startswith("shared"))
    cg.rows.convert(path, tmp_path / "rows", **options)
    cg.rows.convert(path, tmp_path / "whole", **options)
    assert files_of(tmp_path / "rows") == files_of(tmp_path / "whole")


def test_free_space_is_checked_first(data, tmp_path, monkeypatch):
    usage = type("Usage", (), {"free": 1000})
    monkeypatch.setattr(row_writer.shutil, "disk_usage", lambda folder: usage)
    with pytest.raises(OSError, match=r"needs 0.0 MB \(shuffle=False needs half of that\) in .* 0.0 MB are free"):
        cg.rows.convert(data, tmp_path / "rows")


# Reading --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def rows(data, tmp_path):
    return cg.rows.convert(data, tmp_path / "rows", chunk_bytes=2500)


def read_again(rows):
    return content(cg.rows.open(rows.folder))


@pytest.mark.parametrize(
    ("harm", "sentence"),
    [
        (lambda path: path.unlink(), "chunk-00001.X.npy' could not be read \\(No such file"),
        (lambda path: path.write_bytes(path.read_bytes()[:-8]), "chunk-00001.X.npy' has .* bytes instead of"),
        (lambda path: flip_a_bit(path), "chunk-00001.X.npy' is damaged: its checksum"),
        (lambda path: path.replace(path.with_name("chunk-00002.X.npy")), "chunk-0000[12].X.npy'"),
        (lambda path: path.write_bytes(b"?" + path.read_bytes()[1:]), "chunk-00001.X.npy' holds another array"),
    ],
)
def test_damaged_files_are_named(harm, sentence, rows):
    harm(rows.folder / "chunk-00001.X.npy")
    with pytest.raises(OSError, match=sentence + ".*convert the data again"):
        read_again(rows)


def test_damaged_targets_are_named(rows):
    path = rows.folder / "chunk-00002.y.npy"
    flip_a_bit(path)
    with pytest.raises(OSError, match=r"chunk-00002.y.npy' is damaged"):
        read_again(rows)


def test_nothing_stays_open(rows, path, tmp_path):
    threads, files = threading.active_count(), len(os.listdir("/proc/self/fd")) if os.path.exists("/proc") else 0
    read_again(rows)
    for _ in cg.rows.open(rows.folder).chunks():
        break
    cg.rows.convert(path, tmp_path / "again")
    with pytest.raises(ValueError, match="index 5 is beyond the 4 features"):
        cg.rows.convert(path, tmp_path / "wrong", n_features=4)
    assert threading.active_count() == threads
    if files:
        assert len(os.listdir("/proc/self/fd")) == files


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_npy_file_is_read_where_it_lies(dtype, data, tmp_path):
    X, y, weight = data
    np.save(tmp_path / "X.npy", X.astype(dtype))
    np.save(tmp_path / "y.npy", y)
    rows = cg.rows.open(tmp_path / "X.npy", tmp_path / "y.npy", weight, chunk_bytes=999)
    for found, expected in zip(content(rows), (X.astype(dtype), y, weight), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert rows.n_chunks > 3 and rows.columns is None and not rows.is_shuffled
    head = next(rows.chunks(0.5)).matrix
    np.testing.assert_array_equal(head.X, X[: head.shape[0]].astype(dtype))


def test_npy_files_that_must_be_converted(data, tmp_path):
    X, y, _ = data
    np.save(tmp_path / "F.npy", np.asfortranarray(X))
    np.save(tmp_path / "i.npy", X.astype(int))
    np.save(tmp_path / "y.npy", y)
    for name, sentence in (("F", "stored by columns"), ("i", "not float32 or float64"), ("y", "samples and features")):
        with pytest.raises(ValueError, match=sentence):
            cg.rows.open(tmp_path / f"{name}.npy")
    np.save(tmp_path / "X.npy", X)
    with pytest.raises(ValueError, match="X has 300 rows, y has 3"):
        cg.rows.open(tmp_path / "X.npy", [1, 2, 3])
    with pytest.raises(FileNotFoundError, match="there is no file"):
        cg.rows.open(tmp_path / "none.npy")
    cg.rows.convert(data, tmp_path / "rows")
    with pytest.raises(ValueError, match=r"y is for .npy and Arrow files"):
        cg.rows.open(tmp_path / "rows", y)
