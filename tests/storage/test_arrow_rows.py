"""Arrow files: uncompressed ones are read where they lie, and all of them are converted as other tables are."""

import os

import numpy as np
import pytest

import condgrad as cg

pyarrow = pytest.importorskip("pyarrow", reason="Arrow files need pyarrow, of condgrad[parquet]")
ipc, feather = pytest.importorskip("pyarrow.ipc"), pytest.importorskip("pyarrow.feather")


def table(dtype=np.float64, n=200):
    rng = np.random.default_rng(0)
    columns = {f"x{k}": rng.standard_normal(n).astype(dtype) for k in range(6)}
    label = np.where(columns["x0"] + columns["x1"] > 0.0, 1.0, -1.0).astype(dtype)
    return pyarrow.table({"v": np.linspace(0.5, 1.0, n).astype(dtype), **columns, "y": label})


def write(path, data, rows_of_batch=64, compression=None):
    options = ipc.IpcWriteOptions(compression=compression)
    with pyarrow.OSFile(str(path), "wb") as file, ipc.new_file(file, data.schema, options=options) as writer:
        for batch in data.to_batches(max_chunksize=rows_of_batch):
            writer.write_batch(batch)
    return path


def features(data):
    return np.column_stack([data[f"x{k}"].to_numpy() for k in range(6)])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("chunk_bytes", [500, 5_000, 2**27])
def test_rows_are_those_of_the_table(dtype, chunk_bytes, tmp_path):
    data = table(dtype)
    path = write(tmp_path / "t.arrow", data)
    rows = cg.rows.open(path, y="y", weight="v", chunk_bytes=chunk_bytes)
    assert rows.shape == (200, 6)
    assert rows.feature_names == [f"x{k}" for k in range(6)]
    chunks = [chunk.matrix.X.copy() for chunk in rows.chunks()]
    assert all(chunk.dtype == dtype and chunk.flags.c_contiguous for chunk in chunks)
    np.testing.assert_array_equal(np.concatenate(chunks), features(data))
    np.testing.assert_array_equal(rows.y, data["y"].to_numpy())
    np.testing.assert_array_equal(rows.weight, data["v"].to_numpy())
    X, y, weight = rows.head(20)
    assert len(X) == len(y) == len(weight) > 10


def test_columns_of_integers_become_floats_and_y_may_come_from_elsewhere(tmp_path):
    data = pyarrow.table({"a": np.arange(10, dtype=np.int16), "b": np.arange(10.0, dtype=np.float32)})
    feather.write_feather(data, tmp_path / "t.feather", compression="uncompressed")
    np.save(tmp_path / "y.npy", np.arange(10.0))
    rows = cg.rows.open(tmp_path / "t.feather", y=tmp_path / "y.npy", weight=np.ones(10))
    chunk = next(rows.chunks()).matrix.X
    assert chunk.dtype == np.float64
    np.testing.assert_array_equal(chunk, np.column_stack([np.arange(10.0), np.arange(10.0)]))
    np.testing.assert_array_equal(rows.y, np.arange(10.0))


def test_a_problem_on_it_is_that_of_the_data_in_memory(tmp_path):
    data = table()
    rows = cg.rows.open(write(tmp_path / "t.arrow", data), y="y", weight="v", chunk_bytes=4_000)
    settings = {"loss": cg.losses.Logistic(), "constraint": cg.constraints.L1Ball(2.0)}
    problem = cg.Problem(rows, **settings)
    same = cg.Problem(features(data), data["y"].to_numpy(), sample_weight=data["v"].to_numpy(), **settings)
    w = np.linspace(-0.3, 0.4, 6)
    assert problem.objective(w) == pytest.approx(same.objective(w), rel=1e-12)
    np.testing.assert_allclose(problem.gradient(w), same.gradient(w), rtol=1e-12)
    result = cg.minimize(problem, tol=1e-6)
    assert result.status is cg.Status.CONVERGED
    assert result.n_reads > 0.0


def test_files_that_cannot_be_read_in_place_say_what_to_do(tmp_path):
    data = table()
    write(tmp_path / "lz4.arrow", data, compression="lz4")
    write(tmp_path / "words.arrow", pyarrow.table({"a": ["red", "blue"], "b": [1.0, 2.0]}))
    write(tmp_path / "null.arrow", pyarrow.table({"a": [1.0, None], "b": [1.0, 2.0]}))
    (tmp_path / "text.arrow").write_text("no table")
    for name, words in (
        ("lz4", "is compressed.*condgrad convert"), ("words", "column 'a' of string.*condgrad convert"),
        ("null", "no value in some rows of the column 'a'"), ("text", "could not be read as an Arrow file"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            cg.rows.open(tmp_path / f"{name}.arrow")
    with pytest.raises(FileNotFoundError, match="there is no file"):
        cg.rows.open(tmp_path / "none.arrow")
    rows = cg.rows.open(write(tmp_path / "t.arrow", data), y="y")
    os.truncate(tmp_path / "t.arrow", 3_000)
    with pytest.raises(OSError, match="changed after it was opened"):
        list(rows.chunks())


@pytest.mark.parametrize("compression", [None, "lz4"])
def test_it_is_converted_as_other_tables_are(compression, tmp_path):
    data = table()
    path = write(tmp_path / "t.arrow", data, compression=compression)
    rows = cg.rows.convert(path, tmp_path / "rows", weight="v", shuffle=False)
    np.testing.assert_array_equal(np.concatenate([chunk.matrix.X for chunk in rows.chunks()]), features(data))
    np.testing.assert_array_equal(rows.y, data["y"].to_numpy())
    columns = cg.columns.convert(path, tmp_path / "columns", dtype="float64")
    assert columns.shape == (200, 7)
    np.testing.assert_array_equal(columns.read_chosen([1]).ravel(), data["x0"].to_numpy())
