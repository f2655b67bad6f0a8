"""Every source gives the same samples on disk; bad input is one sentence that says where it is."""

import bz2
import collections
import os
import sys

import numpy as np
import pytest
import scipy.sparse
from stored import content, files_of

import condgrad as cg
from condgrad.storage import array_files, row_writer

N, D = 120, 6


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    """Files need not survive a power cut here."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((N, D)) < 0.6, rng.standard_normal((N, D)), 0.0)
    X[0] = 1.0  # every feature is there: LIBSVM text knows its width
    return X, rng.integers(0, 3, N).astype(float), rng.random(N)


@pytest.fixture
def small_batches(monkeypatch):
    """Batches of a few rows, so that small data have several."""
    for module in ("arrays", "npz_file", "parquet_file", "text"):
        monkeypatch.setattr(f"condgrad.storage.sources.{module}.BATCH_BYTES", 2000)
    monkeypatch.setattr("condgrad.storage.sources.libsvm._BLOCK_BYTES", 2000)


def as_libsvm(X, y):
    return "".join(
        " ".join([repr(label), *(f"{j + 1}:{value!r}" for j, value in enumerate(row) if value)]) + "\n"
        for label, row in zip(y.tolist(), X.tolist(), strict=True)
    )


def as_csv(X, y, weight):
    head = ",".join([*(f"x{j}" for j in range(X.shape[1])), "weight", "y"])
    table = np.column_stack([X, weight, y]).tolist()
    return "\n".join([head, *(",".join(map(repr, row)) for row in table)]) + "\n"


def write_parquet(path, X, y, weight):
    parquet = pytest.importorskip("pyarrow.parquet", reason="Parquet needs pyarrow")
    import pyarrow

    columns = {**{f"x{j}": X[:, j] for j in range(X.shape[1])}, "weight": weight, "y": y}
    parquet.write_table(pyarrow.table(columns), path, row_group_size=50)


def write_zarr(path, X, y, weight):
    zarr = pytest.importorskip("zarr", reason="arrays of zarr need zarr")
    group = zarr.open_group(path, mode="w")
    for name, part, chunks in (("X", X, (32, 4)), ("y", y, (50,)), ("weight", weight, (50,))):
        group.create_array(name, shape=part.shape, chunks=chunks, dtype=part.dtype)[:] = part


def make(kind, folder, X, y, weight):
    """A source of the data, the options to read it, and whether it has weights."""
    if kind == "arrays":
        return (X, y, weight), {}
    if kind == "frame":
        pandas = pytest.importorskip("pandas", reason="data frames need pandas")
        return (pandas.DataFrame(X), pandas.Series(y), weight), {}
    if kind == "csc":
        return (scipy.sparse.csc_matrix(X), y, weight), {}
    if kind == "generator":
        return ((X[k : k + 17], y[k : k + 17], weight[k : k + 17]) for k in range(0, N, 17)), {}
    if kind == "dask":
        dask = pytest.importorskip("dask.array", reason="arrays of Dask need Dask")
        return (dask.from_array(X, (33, 4)), dask.from_array(y, 50), weight), {}
    path = folder / f"data.{kind}"
    if kind == "npy" or kind == "fortran.npy":
        np.save(path, np.asfortranarray(X) if kind == "fortran.npy" else X)
        np.save(folder / "y.npy", y)
        return path, {"target": folder / "y.npy", "weight": weight}
    if kind in ("npz", "fortran.npz"):
        np.savez_compressed(path, X=np.asfortranarray(X) if kind == "fortran.npz" else X, y=y, weight=weight)
    elif kind == "csr.npz" or kind == "csc.npz":
        matrix = scipy.sparse.csr_matrix(X) if kind == "csr.npz" else scipy.sparse.csc_matrix(X)
        members = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr, "shape": matrix.shape}
        np.savez(path, format=kind[:3].encode(), y=y, weight=weight, **members)
    elif kind == "csv":
        path.write_text(as_csv(X, y, weight))
    elif kind == "csv.bz2":
        path.write_bytes(bz2.compress(as_csv(X, y, weight).encode()))
    elif kind == "parquet":
        write_parquet(path, X, y, weight)
    elif kind == "zarr":
        write_zarr(path, X, y, weight)
    return path, {"weight": "weight"} if kind[:3] in ("csv", "par") else {}


KINDS = ["arrays", "frame", "csc", "generator", "dask", "npy", "fortran.npy", "npz", "fortran.npz", "csr.npz",
         "csc.npz", "csv", "csv.bz2", "parquet", "zarr"]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_source_gives_the_same_samples(kind, data, tmp_path, small_batches):
    source, options = make(kind, tmp_path, *data)
    rows = cg.rows.convert(source, tmp_path / "rows", shuffle=False, chunk_bytes=3000, **options)
    for found, expected in zip(content(rows), data, strict=True):
        np.testing.assert_array_equal(found, expected)
    assert rows.n_chunks > 1
    assert rows.kind == ("sparse" if kind[:2] == "cs" and kind[:3] != "csv" else "dense")
    if kind[:3] in ("csv", "par"):
        assert rows.feature_names == [f"x{j}" for j in range(D)]


@pytest.mark.parametrize("kind", ["npy", "npz", "csr.npz", "csv", "csv.bz2", "parquet", "zarr"])
def test_every_path_continues_where_it_stopped(kind, data, tmp_path, small_batches, monkeypatch):
    source, options = make(kind, tmp_path, *data)
    if kind == "npy":
        options = {"target": tmp_path / "y.npy"}  # an array of the user is not a path
    options |= {"shuffle": False, "chunk_bytes": 700}
    cg.rows.convert(source, tmp_path / "whole", **options)
    write_array = array_files.write_array
    for k in range(1, 9, 2):  # four interruptions

        def interrupted(folder, name, array, last=f"chunk-{k:05}"):
            if name.startswith(last):
                raise KeyboardInterrupt
            return write_array(folder, name, array)

        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(row_writer, "write_array", interrupted)
            cg.rows.convert(source, tmp_path / "rows", **options)
        assert f"chunk-{k - 1:05}.y.npy" in files_of(tmp_path / "rows")
    cg.rows.convert(source, tmp_path / "rows", **options)
    assert files_of(tmp_path / "rows") == files_of(tmp_path / "whole")


def test_libsvm_text_has_the_width_of_its_largest_index(data, tmp_path, small_batches, monkeypatch):
    X, y, _ = data
    X = X[::-1]  # the widest row is in the last block
    (tmp_path / "data.svm").write_text("# a comment\n\n" + as_libsvm(X, y))
    rows = cg.rows.convert(tmp_path / "data.svm", tmp_path / "rows", shuffle=False, chunk_bytes=3000)
    found, targets, weight = content(rows)
    np.testing.assert_array_equal(found, X)
    np.testing.assert_array_equal(targets, y)
    assert weight is None and rows.kind == "sparse"
    monkeypatch.setattr("condgrad.storage.sources.libsvm._SHORT", 0)
    cg.rows.convert(tmp_path / "data.svm", tmp_path / "fast", shuffle=False, chunk_bytes=3000)
    assert files_of(tmp_path / "fast") == files_of(tmp_path / "rows")
    wide = cg.rows.convert(tmp_path / "data.svm", tmp_path / "wide", n_features=10, dtype="float32")
    assert wide.shape == (N, 10) and next(wide.chunks()).matrix.X.dtype == np.float32


def test_csv_with_quotes_and_without_a_header(tmp_path, small_batches):
    (tmp_path / "a.csv").write_text('"a\nlong name","b",y\n' + '1,"2",3\n\n' * 200)
    rows = cg.rows.convert(tmp_path / "a.csv", tmp_path / "a", shuffle=False)
    assert rows.feature_names == ["a\nlong name", "b"]
    np.testing.assert_array_equal(content(rows)[0], np.tile([1.0, 2.0], (200, 1)))
    (tmp_path / "b.tsv").write_text("1\t2\t3\n")
    rows = cg.rows.convert(tmp_path / "b.tsv", tmp_path / "b", target="1")
    np.testing.assert_array_equal(content(rows)[0], [[2.0, 3.0]])
    rows = cg.rows.convert(tmp_path / "b.tsv", tmp_path / "c", target=False)
    assert rows.shape == (1, 3) and rows.y is None and rows.feature_names is None


@pytest.mark.parametrize("X", [np.eye(3), np.asfortranarray(np.eye(3))])
def test_an_npz_names_all_its_features(X, tmp_path):
    np.savez(tmp_path / "a.npz", X=X, y=np.arange(3), feature_names=["u", "v", "w"])
    assert cg.rows.convert(tmp_path / "a.npz", tmp_path / "a").feature_names == ["u", "v", "w"]
    np.savez(tmp_path / "b.npz", X=X, y=np.arange(3), feature_names=["u", "v"])
    with pytest.raises(ValueError, match=r"b.npz must name its 3 features; feature_names has shape \(2,\)"):
        cg.rows.convert(tmp_path / "b.npz", tmp_path / "b")


@pytest.mark.parametrize("name", ["numbers", "words"])
def test_csv_is_the_same_without_pyarrow(name, data, tmp_path, small_batches, monkeypatch):
    pytest.importorskip("pyarrow", reason="it is compared with pyarrow")
    if name == "numbers":
        (tmp_path / "a.csv").write_text(as_csv(*data))
    else:
        write_words(tmp_path / "a.csv", WORDS)
    cg.rows.convert(tmp_path / "a.csv", tmp_path / "with")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.csv", None)
    cg.rows.convert(tmp_path / "a.csv", tmp_path / "without")
    assert files_of(tmp_path / "with") == files_of(tmp_path / "without")


# Categories -----------------------------------------------------------------------------------------------------------

WORDS = [("red", "x", 1), ("blue", "y", 0), ("red", "", 1), ("red", "x", 1), ("green, or so", "y", 0)] * 40


def one_hot(columns, fields):
    """The one-hot rows of words, with the categories of each column and one feature for others."""
    parts = []
    for words, known in zip(columns, fields, strict=True):
        codes = [known.index(word) if word in known else len(known) for word in words]
        parts.append(np.eye(len(known) + 1)[codes])
    return np.hstack(parts)


def write_words(path, table):
    names = ["colour", "letter", "y"]
    if path.suffix == ".csv":
        lines = [",".join(names), *(f'"{colour}",{letter},{y}' for colour, letter, y in table)]
        path.write_text("\n".join(lines))
        return
    parquet = pytest.importorskip("pyarrow.parquet", reason="Parquet needs pyarrow")
    import pyarrow

    columns = dict(zip(names, zip(*table, strict=True), strict=True))
    columns["letter"] = [letter or None for letter in columns["letter"]]
    columns["colour"] = pyarrow.array(columns["colour"]).dictionary_encode()
    parquet.write_table(pyarrow.table(columns), path)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_words_become_codes_by_falling_frequency(suffix, tmp_path, small_batches):
    write_words(tmp_path / f"train.{suffix}", WORDS)
    rows = cg.rows.convert(tmp_path / f"train.{suffix}", tmp_path / "train", shuffle=False, chunk_bytes=200)
    fields = [["red", "blue", "green, or so"], ["x", "y", ""]]
    X, y, _ = content(rows)
    assert rows.kind == "one-hot" and list(rows.categories.values()) == fields
    np.testing.assert_array_equal(X, one_hot(list(zip(*WORDS, strict=True))[:2], fields))
    np.testing.assert_array_equal(y, [row[2] for row in WORDS])
    assert rows.feature_names[:4] == ["colour=red", "colour=blue", "colour=green, or so", "colour=?"]
    np.testing.assert_array_equal(rows.columns[0], X.sum(axis=0))
    np.testing.assert_array_equal(rows.columns[2], X.max(axis=0))

    new = [("red", "z", 1), ("pink", "x", 0)]  # two words that the training data do not have
    write_words(tmp_path / f"test.{suffix}", new)
    test = cg.rows.convert(tmp_path / f"test.{suffix}", tmp_path / "test", shuffle=False, like=rows)
    np.testing.assert_array_equal(content(test)[0], one_hot([["red", "pink"], ["z", "x"]], fields))
    if suffix == "csv":  # other columns, in another order, and no target
        (tmp_path / "new.csv").write_text("n,letter,colour\n1,z,red\n2,x,pink\n")
        new = cg.rows.convert(tmp_path / "new.csv", tmp_path / "new", shuffle=False, like=tmp_path / "train")
        np.testing.assert_array_equal(content(new)[0], content(test)[0])
        assert new.y is None


def test_numbers_beside_words_become_sparse_rows(tmp_path):
    lines = [f"{k % 3},{'ab'[k % 2]},{k / 4},{('no', 'yes')[k % 2]}" for k in range(12)]
    (tmp_path / "mixed.csv").write_text("\n".join(["u,v,w,y", *lines]))
    rows = cg.rows.convert(tmp_path / "mixed.csv", tmp_path / "rows", shuffle=False)
    X, y, _ = content(rows)
    k = np.arange(12)
    np.testing.assert_array_equal(X, np.column_stack([k % 3, k / 4, k % 2 == 0, k % 2 == 1, 0 * k]))
    np.testing.assert_array_equal(y, k % 2)
    assert rows.kind == "sparse" and rows.manifest.facts["labels"] == ["no", "yes"]
    assert rows.feature_names == ["u", "w", "v=a", "v=b", "v=?"]
    rows = cg.rows.convert(tmp_path / "mixed.csv", tmp_path / "all", shuffle=False, categories=["u", "v", "w"])
    assert rows.kind == "one-hot" and rows.categories["u"] == ["0", "1", "2"]


def test_codes_take_as_few_bytes_as_they_can(tmp_path):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 3, 70_000), rng.permutation(70_000), rng.integers(0, 300, 70_000)])
    rows = cg.rows.convert((X, X[:, 0]), tmp_path / "rows", categories="all", chunk_bytes=10**6, shuffle=False)
    fields = rows.manifest.facts["fields"]
    assert {role: len(firsts) for role, firsts in fields.items()} == {"codes1": 1, "codes2": 1, "codes4": 1}
    chunk = next(rows.chunks()).matrix
    found = chunk.chosen(slice(0, 50)).X.indices.reshape(50, 3)
    frequent = [word for word, _ in sorted(collections.Counter(map(str, X[:, 2])).items(), key=lambda e: (-e[1], e[0]))]
    assert rows.categories["3"] == frequent
    first = {"0": 0, "1": 4, "2": 4 + 70_001}
    for k in range(3):
        places = [rows.categories[str(k + 1)].index(str(value)) + first[str(k)] for value in X[:50, k]]
        np.testing.assert_array_equal(found[:, k], places)


# Errors ---------------------------------------------------------------------------------------------------------------


def bad_batches(*batches):
    good = (np.ones((3, 2)), np.ones(3))
    return [good, good, *batches]


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        (bad_batches((np.array([[1.0, np.nan]]), [1.0])), "batch 2, which begins with sample 6: X has 1 entry that is "
         "not finite, the first at position \\(0, 1\\)"),
        (bad_batches((np.ones((3, 3)), np.ones(3))), "batch 2, .* X has 3 features, and the first batch had 2"),
        (bad_batches((np.ones((3, 2)), np.ones(2))), "batch 2, .* X has 3 rows, y has 2"),
        (bad_batches((np.ones((3, 2)), [1.0, np.inf, 1.0])), "y has 1 entry that is not finite"),
        (bad_batches(np.ones((3, 2))), "y is missing, and it was given with the first batch"),
        ([(np.ones((3, 2)), np.ones(3), -np.ones(3))], "batch 0, .* weight must not be negative; got -1"),
        (bad_batches((np.ones((3, 2)), np.ones(3), np.ones(3))), "weight is given, and it was missing"),
        (bad_batches((scipy.sparse.eye(2), np.ones(2))), "X is sparse, and it was dense in the first batch"),
        (bad_batches((np.ones(2), 1.0)), "X must have two dimensions"),
        (
            bad_batches((1, 2, 3, 4, 5)),
            "a batch must be X, \\(X, y\\), \\(X, y, weight\\) or \\(X, y, weight, offset\\); got a tuple of 5",
        ),
        ([(np.ones((3, 2), np.float32), np.ones(3)), *bad_batches()], "X is float64, and it was float32"),
        ([], "holds no samples"),
        ((np.ones((3, 2)), np.ones(4)), "X has 3 rows, y has 4"),
        ((np.ones(3), np.ones(3)), "X must have two dimensions"),
        ((np.array([["a", "b"]]), [1.0]), "X must be an array of numbers"),
    ],
)  # fmt: skip
def test_bad_batches_are_named(source, sentence, tmp_path):
    with pytest.raises(ValueError, match=sentence):
        cg.rows.convert(source, tmp_path / "rows")
    assert not list((tmp_path / "rows").glob("*")), "nothing can be continued, so nothing stays"


@pytest.mark.parametrize(
    ("name", "text", "options", "sentence"),
    [
        ("a.csv", "a,y\n1,2\n1,n/a\n", {}, "a.csv, line 3: column 'y' must hold a finite number; got 'n/a'"),
        ("a.csv", "a,y\n" + "1,2\n" * 1500 + "b,2\n", {}, "a.csv, line 1502: column 'a' must hold a finite number; got "
         "'b'.*name it in categories"),
        ("a.csv", "a,y\n1,2\n,2\n", {}, "a.csv, line 3: column 'a' has no value"),
        ("a.csv", "a,y\n1,yes\n2,\n3,no\n", {}, "a.csv: column 'y' has no target for some samples"),
        ("a.csv", "a,y\n1,2\n1\n", {}, "a.csv, line 3: there must be 2 fields; got 1"),
        ("a.csv", "a,y\n", {}, "a.csv holds no samples"),
        ("a.csv", "", {}, "a.csv holds no samples"),
        ("a.csv", "a,a,y\n1,2,3\n", {}, "two columns named 'a'"),
        ("a.csv", "a,y\n1,2\n", {"target": "z"}, "a.csv has no column 'z'"),
        ("a.csv", "a,y\n1,2\n", {"n_features": 3}, "n_features is not an option of the format csv"),
        ("a.csv", "a,y\n1,2\n", {"header": "maybe"}, "header must be 'auto', 'yes' or 'no'; got 'maybe'"),
        ("a.csv", "a,y\n1,2\n", {"categories": "some"}, "categories must be a list of names"),
        ("a.csv", "y\n1\n", {}, "no features beside the target"),
        ("a.svm", "1 1:2\n1 0:2\n", {}, "a.svm, line 2: indices start at 1; got 0"),
        ("a.svm", "1 1:2\n1 3:2\n", {"n_features": 2}, "a.svm, line 2: index 3 is beyond the 2 features"),
        ("a.svm", "1 1:2\n", {"target": "y"}, "target is not an option of the format libsvm, which has n_features"),
        ("a.npy", "text", {}, "a.npy could not be read as an .npy file"),
        ("a.npz", "text", {}, "a.npz could not be read as an .npz file"),
        ("a.parquet", "text", {}, "a.parquet could not be read as a Parquet file"),
    ],
)  # fmt: skip
def test_bad_files_are_named_with_their_line(name, text, options, sentence, tmp_path):
    (tmp_path / name).write_text(text)
    if name == "a.parquet":
        pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    with pytest.raises(ValueError, match=sentence):
        cg.rows.convert(tmp_path / name, tmp_path / "rows", **options)


def test_bad_arguments(tmp_path):
    X = np.ones((4, 2))
    for options, sentence in (
        ({"chunk_bytes": 0}, "chunk_bytes must be a positive integer; got 0"),
        ({"dtype": "int8"}, "dtype must be 'float32', 'float64' or None; got 'int8'"),
        ({"shuffle": 1}, "shuffle must be True or False"),
        ({"categories": ["a"]}, "categories of arrays must be 'all' or None"),
        ({"target": "y"}, "target is not an option of arrays and batches"),
        ({"callback": 3}, "callback must be callable"),
        ({"like": tmp_path / "plain"}, "like must be data from a table, or with categories"),
    ):
        cg.rows.convert(X, tmp_path / "plain", overwrite=True)
        with pytest.raises((ValueError, TypeError), match=sentence):
            cg.rows.convert(X, tmp_path / "rows", **options)
    with pytest.raises(ValueError, match="a generator can be read only once"):
        cg.rows.convert(iter([X]), tmp_path / "rows", categories="all")
    with pytest.raises(TypeError, match="source must be a path"):
        cg.rows.convert(3, tmp_path / "rows")
    with pytest.raises(ValueError, match="too large for float32"):
        cg.rows.convert(X * 1e50, tmp_path / "rows", dtype="float32")
    with pytest.raises(FileNotFoundError, match="there is no file"):
        cg.rows.convert(tmp_path / "none.csv", tmp_path / "rows")


def test_progress_is_reported(data, tmp_path, small_batches, capsys):
    X, y, _ = data
    seen = []
    cg.rows.convert((X, y), tmp_path / "rows", chunk_bytes=3000, callback=seen.append, verbose=True)
    assert {progress.step for progress in seen} == {"reading", "shuffling"}
    assert seen[-1] == cg.rows.ConversionProgress("shuffling", N, 1.0)
    assert "reading" in capsys.readouterr().err
