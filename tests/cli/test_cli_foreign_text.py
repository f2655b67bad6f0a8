"""Names in files of strangers are shown and written so that neither a terminal nor a spreadsheet obeys them."""

import csv
import re

import numpy as np
import pytest

import condgrad as cg
from condgrad.cli import main
from condgrad.models.files import pack_model
from condgrad.run.sealed_file import pack, unpack, write_file

TITLE = "\x1b]0;owned\x07"  # sets the title of the terminal
FORMULA = "=cmd|' /C calc'!A0"
STEERING = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\ud800-\udfff]")


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 2))
    problem = cg.Problem(X, np.where(X[:, 0] > 0.0, 1.0, -1.0), cg.losses.Logistic(), cg.constraints.L1Ball(1.0))
    model = cg.Model.of(problem, cg.minimize(problem, tol=1e-3))
    return model._replace(classes=(TITLE, FORMULA), feature_names=("a", TITLE), constraint=f"L1Ball({TITLE}\u202e)")


def predicted(path):
    with open(path, encoding="utf-8", newline="") as file:
        return {row["prediction"] for row in csv.DictReader(file)}


def test_class_names(model, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    cg.save_model("m.npz", model)
    (tmp_path / "rows.csv").write_text("1,0\n-1,0\n")
    assert main(["predict", "m.npz", "rows.csv"]) == 0
    shown = capsys.readouterr().out
    assert not STEERING.search(shown) and r"\x1b]0;owned\x07" in shown and f"'{FORMULA}" in shown
    assert main(["predict", "m.npz", "rows.csv", "--out", "p.csv"]) == 0
    assert predicted("p.csv") == {TITLE, f"'{FORMULA}"}  # a file keeps names, for others to join by
    (tmp_path / "labelled.csv").write_text("1,0,x\x1b[2J\n-1,0,y\n")
    assert main(["predict", "m.npz", "labelled.csv", "--out", "q.csv"]) == 2
    (tmp_path / "named.csv").write_text("b,a\n1,2\n")
    assert main(["predict", "m.npz", "named.csv"]) == 2
    assert not STEERING.search(capsys.readouterr().err)


def test_what_looks_like_a_number_stays_one(model, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("1,0\n-1,0\n")
    for classes, expected in (
        ((-1, 1), {"-1", "1"}),
        (("-1.5", "+2"), {"-1.5", "+2"}),
        (("-inf", "+1-1"), {"'-inf", "'+1-1"}),
        (("@a", "\ta"), {"'@a", "'\ta"}),
        (("\ra", "a=b"), {"'\ra", "a=b"}),
    ):
        cg.save_model("m.npz", model._replace(classes=classes))
        assert main(["predict", "m.npz", "rows.csv", "--out", "p.csv", "--force"]) == 0
        assert predicted("p.csv") == expected


def test_ids_of_a_completed_matrix(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    row = [FORMULA, f"a{TITLE}", "-7", "c"]
    lines = [f"{row[k % 4]},{k % 3},{value:.2f}" for k, value in enumerate(rng.standard_normal(12))]
    (tmp_path / "r.csv").write_text("\n".join(lines) + "\n")
    assert main(["complete", "r.csv", "--radius", "3", "--out", "m.npz", "--quiet"]) == 0
    assert main(["predict", "m.npz", "r.csv", "--out", "p.csv"]) == 0
    with open("p.csv", encoding="utf-8", newline="") as file:
        assert {line["row"] for line in csv.DictReader(file)} == {f"'{FORMULA}", *row[1:]}
    capsys.readouterr()
    (tmp_path / "new.csv").write_text(f"b{TITLE},0\n{row[1]},1\n")
    assert main(["predict", "m.npz", "new.csv", "--header", "no"]) == 0
    out, err = capsys.readouterr()
    assert r"a\x1b]0;owned\x07,1," in out and r"b\x1b]0;owned\x07" in err and not STEERING.search(out + err)


def test_what_is_loaded_is_shown_without_control_characters(model, tmp_path):
    path = tmp_path / "m.npz"
    cg.save_model(path, model)
    assert r"L1Ball(\x1b]0;owned\x07\u202e)" in repr(cg.load_model(path))
    X, y = np.eye(6), np.repeat([0, 1, 2], 2)
    multi = cg.ConstrainedClassifier(loss="logistic", constraint="l1", radius=1.0).fit(X, y).model_
    cg.save_model(path, multi._replace(constraint=(TITLE,) * len(multi.constraint)))
    assert not STEERING.search(repr(cg.load_model(path)))
    entries = cg.MatrixCompletion(radius=1.0).fit([0, 1, 2], [0, 1, 0], [1.0, 2.0, 3.0]).model_
    cg.save_model(path, entries._replace(constraint=TITLE))
    assert not STEERING.search(repr(cg.load_model(path)))
    write_file(path, pack_model(model))
    header, arrays = unpack(path, ("model", 1))
    for changes in ({"format": TITLE}, {"format_version": TITLE}):
        write_file(path, pack("model", 1, header | changes, arrays))
        with pytest.raises(ValueError, match="is") as caught:
            cg.load_model(path)
        assert not STEERING.search(str(caught.value))


def test_a_saved_run_names_its_solver(tmp_path):
    path = tmp_path / "run.npz"
    problem = cg.Problem(np.eye(3), np.ones(3), cg.losses.Squared(), cg.constraints.L2Ball(1.0))
    cg.minimize(problem, "fw", max_steps=1, tol=0.0, checkpoint=cg.Checkpoint(path, every=0.0))
    header, arrays = unpack(path, ("checkpoint", 3))
    write_file(path, pack("checkpoint", 3, header | {"solver": TITLE}, arrays))
    with pytest.raises(ValueError, match=r"was made by \\x1b\]0;owned\\x07, not by") as caught:
        cg.minimize(problem, "fw", max_steps=2, tol=0.0, checkpoint=cg.Checkpoint(path))
    assert not STEERING.search(str(caught.value))
