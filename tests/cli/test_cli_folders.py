"""fit, cv and predict on folders that `condgrad convert` wrote; other commands say that they need a file."""

import csv
import json

import numpy as np
import pytest

import condgrad as cg
from condgrad.cli import main


@pytest.fixture
def clicks(tmp_path, monkeypatch):
    """A CSV of numbers with a target of words, and the folder that was converted from it."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((900, 4)).round(3)
    y = np.where(X[:, 0] - X[:, 1] + 0.5 * rng.standard_normal(900) > 0.0, 1, 0)
    with open(tmp_path / "clicks.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "b", "c", "d", "clicked"])
        writer.writerows([*row, target] for row, target in zip(X.tolist(), y.tolist(), strict=True))
    monkeypatch.chdir(tmp_path)
    assert main(["convert", "clicks.csv", "rows", "--target", "clicked", "--chunk-bytes", "9000", "--quiet"]) == 0
    return X, y


def numbers(capsys, *args):
    capsys.readouterr()
    assert main([*args, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_fit_and_predict(clicks, capsys, tmp_path):
    options = ["--loss", "logistic", "--set", "l1", "--radius", "2", "--intercept", "--quiet"]
    of_file = numbers(capsys, "fit", "clicks.csv", "--target", "clicked", *options)
    of_folder = numbers(capsys, "fit", "rows", *options, "--out", "model.npz")
    assert of_folder["objective"] == pytest.approx(of_file["objective"], abs=2e-6)
    assert of_folder["n_reads"] >= 1.0
    assert of_file["n_reads"] == 0.0
    model = cg.load_model("model.npz")
    assert model.feature_names == ("a", "b", "c", "d")
    assert numbers(capsys, "predict", "model.npz", "rows", "--out", "p.csv", "--quiet")["n_samples"] == 900
    with open("p.csv", encoding="utf-8") as file:
        found = [float(row["score"]) for row in csv.DictReader(file)]
    assert found == pytest.approx(model.decide(cg.rows.open("rows")), abs=1e-12)
    assert not list(tmp_path.glob("*.part"))


def test_cv_chooses_on_a_sample_and_fits_all(clicks, capsys):
    found = numbers(capsys, "cv", "rows", "--loss", "logistic", "--set", "l1", "--intercept", "--folds", "3",
                    "--radii", "0.01,1", "--out", "model.npz", "--quiet")  # fmt: skip
    assert found["best_radius"] == 1.0
    assert cg.load_model("model.npz").n_samples == 900


def test_commands_that_need_a_file(clicks, capsys):
    assert main(["path", "rows", "--loss", "logistic", "--set", "l1"]) == 2
    assert "holds data by rows, not by columns" in capsys.readouterr().err
    assert main(["fit", "rows", "--loss", "logistic", "--set", "l1", "--radius", "1", "--target", "clicked"]) == 2
    assert "--target is for files" in capsys.readouterr().err
