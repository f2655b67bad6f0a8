"""`condgrad convert` writes what condgrad.rows.convert writes, and says how to continue."""

import json

import numpy as np
import pytest
from stored import files_of

import condgrad as cg
from condgrad.cli import main

TABLE = "a,b,clicked\n" + "".join(f"{k},{k * k % 7},{k % 2}\n" for k in range(50))


@pytest.fixture(autouse=True)
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "clicks.csv").write_text(TABLE)


def test_it_is_rows_convert(tmp_path, capsys):
    options = ["--target", "b", "--chunk-bytes", "300", "--dtype", "float32", "--seed", "3"]
    assert main(["convert", "clicks.csv", "clicks", *options, "--json", "--quiet"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert err == "" and (found["n_samples"], found["n_features"], found["kind"]) == (50, 2, "dense")
    cg.rows.convert("clicks.csv", "other", target="b", chunk_bytes=300, dtype="float32", random_state=3)
    assert files_of(tmp_path / "clicks") == files_of(tmp_path / "other")

    assert main(["convert", "clicks.csv", "clicks"]) == 2
    assert "use --force to replace them" in capsys.readouterr().err
    assert main(["convert", "clicks.csv", "clicks", "--force", "--no-shuffle", "--no-target"]) == 0
    out, err = capsys.readouterr()
    assert "50 x 3 features, dense" in out and "order as it was" in out and "target   none" in out
    np.testing.assert_array_equal(next(cg.rows.open("clicks").chunks()).matrix.X[:, 0], np.arange(50))


def test_categories_and_like(capsys):
    assert main(["convert", "clicks.csv", "train", "--categories", "a,b", "--quiet"]) == 0
    assert main(["convert", "clicks.csv", "test", "--like", "train", "--quiet"]) == 0
    assert cg.rows.open("test").shape == cg.rows.open("train").shape == (50, 51 + 5)
    assert "one-hot" in capsys.readouterr().out


def test_bad_input_is_one_sentence(capsys):
    assert main(["convert", "clicks.csv", "new", "--n-features", "3"]) == 2
    assert capsys.readouterr().err.startswith("condgrad convert: n_features is not an option of the format csv")
    assert main(["convert", "none.csv", "new"]) == 2
    assert capsys.readouterr().err == "condgrad convert: there is no file 'none.csv'.\n"


def test_ctrl_c_says_how_to_continue(capsys, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("condgrad.storage.row_writer.RowWriter.mix", interrupted)
        assert main(["convert", "clicks.csv", "clicks", "--quiet"]) == 130
    assert capsys.readouterr().err == "condgrad convert: interrupted; the same command continues.\n"
    assert main(["convert", "clicks.csv", "clicks", "--quiet"]) == 0


def test_columns_are_converted_and_a_path_reads_them(capsys):
    assert main(["convert", "--columns", "clicks.csv", "columns", "--quiet"]) == 0
    assert "50 x 2 features, dense columns on disk" in capsys.readouterr().out
    assert main(["convert", "--columns", "clicks.csv", "other", "--json", "--quiet", "--dtype", "float32"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["n_samples"], found["n_features"], found["kind"]) == (50, 2, "dense")
    options = ["--loss", "logistic", "--alphas", "0.2,0.1", "--intercept", "--json", "--quiet"]
    assert main(["path", "clicks.csv", *options]) == 0
    in_memory = json.loads(capsys.readouterr().out)
    assert main(["path", "columns", *options]) == 0
    on_disk = json.loads(capsys.readouterr().out)
    assert on_disk["n_reads"] > 0.0 == in_memory["n_reads"]
    np.testing.assert_allclose(on_disk["objective"], in_memory["objective"], rtol=1e-6)
    assert main(["path", "columns", "--n-radii", "3", "--out", "path.npz"]) == 0
    assert "reads of X from disk" in capsys.readouterr().out


def test_what_columns_do_not_have_is_said(capsys):
    assert main(["convert", "--columns", "clicks.csv", "new", "--seed", "3"]) == 2
    assert "--seed is for rows" in capsys.readouterr().err
    assert main(["convert", "clicks.csv", "rows", "--quiet"]) == 0
    assert main(["path", "rows"]) == 2
    assert "holds data by rows, not by columns" in capsys.readouterr().err
    assert main(["convert", "--columns", "clicks.csv", "bare", "--no-target", "--quiet"]) == 0
    assert main(["path", "bare"]) == 2
    assert "converted without targets" in capsys.readouterr().err
