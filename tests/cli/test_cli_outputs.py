"""A finished result is never lost: what cannot be written is kept elsewhere, and the report comes in any case."""

import errno
import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

import condgrad as cg
from condgrad.cli import main

ROOT = Path(__file__).parents[2]
FIT = ["--radius", "1", "--tol", "1e-3"]
# The command, its data, its options, and what its report must have.
COMMANDS = {
    "fit": (["fit", "train.csv", *FIT, "--checkpoint", "saved/run"], "objective"),
    "path": (["path", "train.csv", "--radii", "0.5,1"], "objective"),
    "cv": (["cv", "train.csv", "--radii", "0.5,1", "--folds", "2", "--tol", "1e-3"], "best_radius"),
    "complete": (["complete", "ratings.csv", "--radius", "5", "--checkpoint", "saved/run"], "objective"),
    "predict": (["predict", "model.npz", "train.csv"], "error_rate"),
    "predict rows": (["predict", "model.npz", "rows"], "error_rate"),
    "predict entries": (["predict", "completed.npz", "ratings.csv"], "rmse"),
}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A folder with data of every kind and models, made once."""
    folder, rng = tmp_path_factory.mktemp("prepared"), np.random.default_rng(0)
    X = rng.standard_normal((40, 3)).round(2)
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(40) > 0.0, 1, -1)
    lines = [",".join(map(str, (*row, label))) for row, label in zip(X.tolist(), y.tolist(), strict=True)]
    (folder / "train.csv").write_text("\n".join(["a,b,c,y", *lines]))
    entries = [f"u{k % 8},v{k % 5},{value:.2f}" for k, value in enumerate(rng.standard_normal(40))]
    (folder / "ratings.csv").write_text("\n".join(entries))
    cg.rows.convert(folder / "train.csv", folder / "rows", target="y")
    problem = cg.Problem(X, y, cg.losses.Logistic(), cg.constraints.L1Ball(1.0))
    cg.save_model(folder / "model.npz", cg.Model.of(problem, cg.minimize(problem), feature_names=("a", "b", "c")))
    ratings, completed = str(folder / "ratings.csv"), str(folder / "completed.npz")
    assert main(["complete", ratings, "--radius", "5", "--out", completed, "--quiet"]) == 0
    return folder


@pytest.fixture
def place(prepared, tmp_path, monkeypatch):
    """The working folder, with the folders ``full`` for outputs, ``saved`` for checkpoints and ``temporary``."""
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    for name in ("full", "saved", "temporary"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return tmp_path


def while_writing(monkeypatch, folder, action):
    """Call ``action`` when a file of ``folder`` is flushed to the disk."""
    real = os.fsync

    def fsync(handle):
        if os.fstat(handle).st_ino in [path.stat().st_ino for path in folder.iterdir()]:
            action()
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)


def no_space():
    raise OSError(errno.ENOSPC, "No space left on device")


def run(capsys, *command):
    capsys.readouterr()
    code = main([*command, "--json", "--quiet"])
    out, err = capsys.readouterr()
    return code, json.loads(out), err


def is_whole(name, path):
    """Tell whether a file holds all that the command finds."""
    if name.startswith("predict"):
        return len(Path(path).read_text().splitlines()) == 41
    if name == "path":
        return scipy.sparse.load_npz(path).shape == (3, 2)
    return cg.load_model(path).gap >= 0.0


@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk_costs_no_result(name, place, capsys, monkeypatch):
    (command, number), full = COMMANDS[name], place / "full"
    while_writing(monkeypatch, full, no_space)
    code, found, err = run(capsys, *command, "--out", "full/out.npz")
    kept = Path(found["out"])
    assert code == 2 and number in found and not list(full.iterdir())
    assert kept.parent == place / ("saved" if "--checkpoint" in command else "temporary")
    assert is_whole(name, kept) and kept.name.startswith("out-") and kept.suffix == ".npz"
    assert err == (
        f"condgrad {command[0]}: 'full/out.npz' could not be written (No space left on device): the result is in "
        f"{str(kept)!r}; free some space, and move it.\n"
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_a_file_that_was_made_meanwhile_is_not_overwritten(name, place, capsys, monkeypatch):
    (command, number), out = COMMANDS[name], place / "full" / "out.npz"

    def other_program():
        if not out.exists():
            out.write_bytes(b"precious")

    while_writing(monkeypatch, place / "full", other_program)
    code, found, err = run(capsys, *command, "--out", "full/out.npz")
    assert code == 2 and number in found and is_whole(name, found["out"])
    assert out.read_bytes() == b"precious"
    assert "was made by another program meanwhile, and is not overwritten without --force" in err
    assert repr(found["out"]) in err and err.endswith("; move it to a name of its own.\n")
    out.unlink()
    code, found, err = run(capsys, *command, "--out", "full/out.npz", "--force")
    assert code == 0 and err == "" and is_whole(name, out)


def test_a_file_system_without_links(place, capsys, monkeypatch):
    def link(*given):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    code, found, _ = run(capsys, *COMMANDS["fit"][0], "--out", "full/out.npz")
    assert code == 0 and [path.name for path in (place / "full").iterdir()] == ["out.npz"]
    assert cg.load_model("full/out.npz").gap == found["gap"]
    while_writing(monkeypatch, place / "full", lambda: (place / "full" / "other.npz").write_bytes(b"precious"))
    code, found, err = run(capsys, *COMMANDS["fit"][0], "--out", "full/other.npz")
    assert code == 2 and "was made by another program meanwhile" in err and cg.load_model(found["out"]).gap >= 0.0
    assert (place / "full" / "other.npz").read_bytes() == b"precious"


def test_a_folder_that_is_gone(place, capsys, monkeypatch):
    module = importlib.import_module("condgrad.paths.allowed_sets")
    real = module.minimize_over

    def minimize_over(*given, **settings):
        found = real(*given, **settings)
        shutil.rmtree("full")
        return found

    monkeypatch.setattr(module, "minimize_over", minimize_over)
    outputs = ["--out", "full/m.npz", "--plot", "full/run.svg"]
    code, found, err = run(
        capsys, "fit", "train.csv", *FIT, "--solver", "fw", "--set", "l2", "--max-steps", "20", *outputs
    )
    assert code == 2 and cg.load_model(found["out"]).gap == found["gap"]
    assert b"<svg" in Path(found["plot"]).read_bytes()
    first, second = err.splitlines()  # one sentence for each file
    assert "'full/m.npz' could not be written" in first and first.endswith("; make its folder, and move it.")
    assert "'full/run.svg' could not be written" in second


def test_a_picture_that_cannot_be_drawn(place, capsys, monkeypatch):
    def draw_run(result):
        raise MemoryError("the picture is too large.")

    monkeypatch.setattr(importlib.import_module("condgrad.cli.fit"), "draw_run", draw_run)
    code, found, err = run(capsys, "fit", "train.csv", *FIT, "--out", "m.npz", "--plot", "run.svg")
    assert code == 2 and found["out"] == "m.npz" and found["plot"] is None and cg.load_model("m.npz").gap <= 1e-3
    assert err == "condgrad fit: 'run.svg' could not be made: the picture is too large.\n"


def test_where_nothing_can_be_written_the_report_is_left(place, capsys, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: no_space())
    code, found, err = run(capsys, *COMMANDS["path"][0], "--out", "full/p.npz")
    assert code == 2 and len(found["objective"]) == 2 and found["out"] is None
    assert err == (
        "condgrad path: 'full/p.npz' could not be written (No space left on device), nor could a file in another "
        "folder: free some space, and run the command again.\n"
    )
    assert not [*(place / "full").iterdir(), *(place / "temporary").iterdir()]


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_standard_output_on_a_full_disk(place):
    command = [sys.executable, "-m", "condgrad.cli", "fit", "train.csv", *FIT, "--out", "m.npz", "--quiet"]
    with open("/dev/full", "w") as full:
        settings = {"stderr": subprocess.PIPE, "text": True, "env": os.environ | {"PYTHONPATH": str(ROOT)}}
        ended = subprocess.run(command, stdout=full, check=False, **settings)
    assert ended.returncode == 2 and cg.load_model("m.npz").gap <= 1e-3
    assert ended.stderr == (
        "condgrad fit: standard output could not be written (No space left on device): free some space.\n"
    )


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a folder that nobody can write to")
def test_a_folder_that_cannot_be_written_is_refused_before_any_work(place, capsys):
    assert main(["fit", "nothing.csv", "--out", "/proc/m.npz"]) == 2
    assert "'/proc/m.npz' cannot be written (" in capsys.readouterr().err


def test_save_model_says_what_to_do(place, monkeypatch):
    model = cg.load_model("model.npz")
    monkeypatch.setattr(os, "fsync", lambda handle: no_space())
    with pytest.raises(OSError, match=r"^'m.npz' could not be written \(No space left on device\): free ") as caught:
        cg.save_model("m.npz", model)
    assert str(caught.value).endswith("free some space, and save the model again; it is still in memory.")
