"""The command line: good input gives the library's own answers, bad input one sentence, and nothing is ever lost."""

import bz2
import gzip
import importlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from covering import counted

import condgrad as cg
from condgrad.cli import main
from condgrad.cli.program import make_parser
from condgrad.run.sealed_file import pack, unpack

ROOT = Path(__file__).parents[2]
N, D = 60, 8


def as_libsvm(X, y):
    lines = [
        " ".join([f"{label!r}", *(f"{j + 1}:{float(value)!r}" for j, value in enumerate(row) if value)])
        for label, row in zip(y.tolist(), X, strict=True)
    ]
    return "\n".join(lines) + "\n"


def as_csv(X, y, names=True):
    lines = [",".join([*(f"x{j}" for j in range(X.shape[1])), "y"])] if names else []
    lines += [",".join([*map(repr, row.tolist()), str(label)]) for row, label in zip(X, y.tolist(), strict=True)]
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((N, D)) < 0.6, rng.standard_normal((N, D)), 0.0)
    X[0] = 1.0  # every feature is there: LIBSVM text knows its width
    y = np.where(X[:, 0] - X[:, 1] + 0.5 * rng.standard_normal(N) > 0.0, 1.0, -1.0)
    return X, y


@pytest.fixture
def train(data, tmp_path):
    path = tmp_path / "train.svm"
    path.write_text(as_libsvm(*data))
    return path


def run(capsys, *command):
    """Return exit code, standard output and standard error of a command."""
    try:
        code = main([str(part) for part in command])
    except SystemExit as end:  # argparse
        code = end.code
    out, err = capsys.readouterr()
    return code, out, err


def complaint(capsys, *command):
    """Return the one sentence that a command with bad input ends with."""
    code, out, err = run(capsys, *command)
    assert (code, out) == (2, ""), err
    assert err.count("\n") == 1 and err.startswith(f"condgrad {command[0]}: ") and err.endswith((".\n", "?\n")), err
    return err.removeprefix(f"condgrad {command[0]}: ").removesuffix("\n")


def answer(capsys, *command):
    """Return what a command prints as JSON, and its exit code."""
    code, out, err = run(capsys, *command, "--json", "--quiet")
    assert err == ""
    return json.loads(out), code


# Help -----------------------------------------------------------------------------------------------------------------


def test_help_tells_the_commands_and_exit_codes(capsys):
    commands = ["fit", "path", "cv", "complete", "predict", "convert", "theory", "solvers", "losses", "sets", "warmup",
                "bench"]  # fmt: skip
    code, out, _ = run(capsys, "--help")
    assert code == 0
    for word in (*commands, "130  interrupted"):
        assert word in out
    for command in commands:
        code, out, _ = run(capsys, command, "--help")
        assert code == 0 and "example" in out and max(map(len, out.splitlines())) <= 100
    assert run(capsys, "--version") == (0, f"condgrad {cg.__version__}\n", "")


def test_help_imports_nothing_heavy_beside_condgrad():
    code = (
        "import sys; from condgrad.cli.program import make_parser; make_parser().format_help();"
        "print(*({'sklearn', 'matplotlib', 'rich', 'pandas', 'pyarrow'} & set(sys.modules)))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert ended.stdout.split() == []


def test_the_package_installs_the_command():
    assert 'condgrad = "condgrad.cli:main"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert make_parser().prog == "condgrad"


# fit and predict ------------------------------------------------------------------------------------------------------


def test_fit_is_minimize_and_predict_is_its_model(capsys, data, train, tmp_path):
    X, y = data
    out, plot, predictions = tmp_path / "model.npz", tmp_path / "run.png", tmp_path / "predictions.csv"
    found, code = answer(capsys, "fit", train, "--radius", 3, "--tol", 1e-8, "--out", out, "--plot", plot)
    problem = cg.Problem(scipy.sparse.csr_matrix(X), y, cg.losses.Logistic(), cg.constraints.L1Ball(3.0))
    result = cg.minimize(problem, tol=1e-8, random_state=0)
    model = cg.load_model(out)
    np.testing.assert_array_equal(model.w, result.w)
    assert code == 0 and found["status"] == "CONVERGED" and found["gap"] == model.gap == result.gap <= 1e-8
    assert (model.classes, model.radius, model.constraint) == ((-1, 1), 3.0, "L1Ball(radius=3.0)")
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.npz", "run.png", "train.svm"]

    scores, code = answer(capsys, "predict", out, train, "--out", predictions)
    p = X @ result.w
    assert code == 0
    assert scores["error_rate"] == np.mean(np.where(p > 0.0, 1.0, -1.0) != y)
    assert scores["mean_loss"] == pytest.approx(result.objective, rel=1e-12)
    header, *lines = predictions.read_text().splitlines()
    assert header == "prediction,score,probability"
    table = np.array([list(map(float, line.split(","))) for line in lines])
    np.testing.assert_array_equal(table[:, 0], np.where(p > 0.0, 1, -1))
    np.testing.assert_allclose(table[:, 1], p, rtol=1e-12)
    np.testing.assert_allclose(table[:, 2], 1.0 / (1.0 + np.exp(-p)), rtol=1e-12)


def test_people_read_words(capsys, train):
    code, out, err = run(capsys, "fit", train, "--radius", 3)
    assert code == 0 and "CONVERGED: The Frank-Wolfe gap fell below tol." in out and "so F(w) - F* <=" in out
    assert err.startswith("train.svm: 60 samples, 8 features, csr\nstep ") and "steps/s" in err
    code, out, err = run(capsys, "fit", train, "--radius", 3, "--quiet")
    assert (code, err) == (0, "")


def write_all_formats(folder, X, y):
    """Write one data set in every format, and return the options that read each."""
    (folder / "a.svm").write_text(as_libsvm(X, y))
    (folder / "b.svm.gz").write_bytes(gzip.compress(as_libsvm(X, y).encode()))
    (folder / "c.bz2").write_bytes(bz2.compress(as_libsvm(X, y).encode()))
    (folder / "d.csv").write_text(as_csv(X, y))
    (folder / "e.csv").write_text(as_csv(X, y, names=False))
    (folder / "f.csv.gz").write_bytes(gzip.compress(("\ufeff" + as_csv(X, y)).encode()))
    (folder / "g.tsv").write_text(as_csv(X, y).replace(",", "\t"))
    np.savez(folder / "h.npz", X=X, y=y)
    sparse = scipy.sparse.csc_matrix(X)
    members = {"data": sparse.data, "indices": sparse.indices, "indptr": sparse.indptr, "shape": sparse.shape}
    np.savez(folder / "i.npz", format=np.bytes_("csc"), y=y, **members)
    first = np.column_stack((y, X))
    (folder / "j.csv").write_text("\n".join(["y,a,b,c,d,e,f,g,h", *(",".join(map(repr, r.tolist())) for r in first)]))
    return [[path] for path in sorted(folder.glob("?.[!j]*"))][:-1] + [[folder / "j.csv", "--target", "y"]]


def test_every_format_gives_the_same_model(capsys, data, tmp_path, monkeypatch):
    X, y = data
    objectives = []
    for source in write_all_formats(tmp_path, X, y):
        found, code = answer(capsys, "fit", *source, "--radius", 2, "--tol", 1e-10, "--solver", "pairwise")
        assert code == 0 and (found["n_samples"], found["n_features"]) == (N, D)
        objectives.append(found["objective"])
    for name, form in (("a.svm", []), ("d.csv", ["--format", "csv"]), ("h.npz", ["--format", "npz"])):
        stdin = io.TextIOWrapper(io.BytesIO((tmp_path / name).read_bytes()))
        monkeypatch.setattr(sys, "stdin", stdin)
        found, _ = answer(capsys, "fit", "-", *form, "--radius", 2, "--tol", 1e-10, "--solver", "pairwise")
        objectives.append(found["objective"])
    assert len(objectives) == 13
    np.testing.assert_allclose(objectives, objectives[0], atol=1e-10)


def test_labels_may_be_words_and_columns_are_found_by_name(capsys, data, tmp_path):
    X, y = data
    words = np.where(y > 0, "spam", "ham, or eggs")
    lines = ["a,b,class,c"] + [f'{x[0]!r},{x[1]!r},"{word}",{x[2]!r}' for x, word in zip(X.tolist(), words)]
    (tmp_path / "train.csv").write_text("\n".join(lines))
    lines = ["c,id,b,a"] + [f"{x[2]!r},sample {k},{x[1]!r},{x[0]!r}" for k, x in enumerate(X.tolist())]
    (tmp_path / "test.csv").write_text("\n".join(lines))
    out = tmp_path / "model.npz"
    found, code = answer(capsys, "fit", tmp_path / "train.csv", "--target", "class", "--radius", 2, "--out", out)
    assert code == 0 and found["classes"] == ["ham, or eggs", "spam"]
    model = cg.load_model(out)
    assert model.feature_names == ("a", "b", "c")
    code, printed, _ = run(capsys, "predict", out, tmp_path / "test.csv")
    assert code == 0
    expected = ["spam" if p > 0.0 else '"ham, or eggs"' for p in X[:, :3] @ model.w]
    assert [line.rsplit(",", 2)[0] for line in printed.splitlines()[1:]] == expected
    code, printed, _ = run(capsys, "predict", out, tmp_path / "train.csv", "--target", "class")
    assert code == 0
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    assert complaint(capsys, "predict", out, tmp_path / "other.csv") == (
        "other.csv lacks the column 'c', which the model needs."
    )


def test_a_header_of_numbers_must_be_announced(capsys, data, tmp_path):
    X, y = data
    path = tmp_path / "train.csv"
    path.write_text("2020,2021,price\n" + as_csv(X[:, :2], y, names=False))
    fault = complaint(capsys, "fit", path, "--radius", 1, "--loss", "squared")
    assert fault == "train.csv, line 1: column 3 must hold a finite number; got 'price'."
    options = ["--radius", 1, "--loss", "squared", "--header", "yes", "--out", tmp_path / "m.npz"]
    assert answer(capsys, "fit", path, *options)[1] == 0
    assert cg.load_model(tmp_path / "m.npz").feature_names == ("2020", "2021")
    no_header = ["--header", "no", "--target", "1", "--radius", 1, "--loss", "squared"]
    path.write_text(as_csv(X, y, names=False))
    assert answer(capsys, "fit", path, *no_header)[0]["n_features"] == D
    assert "must be a number from 1 to 9" in complaint(capsys, "fit", path, "--target", "y", "--radius", 1)


def test_losses_sets_and_solvers_take_parameters(capsys, data, tmp_path):
    X, y = data
    (tmp_path / "train.csv").write_text(as_csv(X, y))
    groups = tmp_path / "groups.txt"
    np.savetxt(groups, np.arange(D) // 2)
    for options, loss, constraint in (
        (["--loss", "huber:delta=0.5", "--set", "lp:p=1.5", "--radius", 2], "Huber(delta=0.5)", "LpBall(p=1.5, "),
        (["--loss", "squared", "--set", f"group:groups=@{groups}", "--radius", 1], "Squared()", "GroupBall"),
        (["--loss", "squared", "--set", "box:lower=0,upper=1", "--intercept"], "Squared()", "Box"),
        (["--loss", "sigmoid-squared", "--set", "l2", "--radius", 2, "--tol", 1e-3], "SigmoidSquared()", "L2Ball"),
    ):  # fmt: skip
        found, code = answer(capsys, "fit", tmp_path / "train.csv", *options)
        assert code == 0 and found["loss"] == loss and found["set"].startswith(constraint)
    options = ["--loss", "squared", "--radius", 2, "--solver", "sfw:batch_size=4", "--max-steps", 10]
    found, code = answer(capsys, "fit", tmp_path / "train.csv", *options)
    assert (code, found["status"], found["n_steps"]) == (1, "MAX_STEPS", 10)
    assert found["solver"].startswith("SFW(batch_size=4")


def test_models_of_regression_predict_means(capsys, data, tmp_path):
    X, _ = data
    y = np.random.default_rng(1).poisson(2.0, N).astype(float)
    (tmp_path / "train.csv").write_text(as_csv(X, y))
    out = tmp_path / "model.npz"
    options = ["--loss", "poisson", "--radius", 1, "--intercept"]
    _, code = answer(capsys, "fit", tmp_path / "train.csv", *options, "--out", out)
    model = cg.load_model(out)
    scores, _ = answer(capsys, "predict", out, tmp_path / "train.csv", "--out", tmp_path / "p.csv")
    mean = np.exp(X @ model.w + model.intercept)
    assert code == 0 and scores["rmse"] == pytest.approx(np.sqrt(np.mean((mean - y) ** 2)), rel=1e-12)
    np.testing.assert_allclose(np.loadtxt(tmp_path / "p.csv", skiprows=1), mean, rtol=1e-12)


# Outputs --------------------------------------------------------------------------------------------------------------


def test_outputs_are_checked_before_any_work(capsys, tmp_path):
    out = tmp_path / "there.npz"
    out.write_bytes(b"precious")
    nothing = tmp_path / "nothing.svm"  # would be the complaint if it were read first
    for command in (["fit", nothing, "--radius", 1], ["path", nothing], ["cv", nothing], ["predict", nothing, nothing]):
        assert complaint(capsys, *command, "--out", out) == f"{str(out)!r} exists; use --force to overwrite it."
        assert "does not exist; create it first." in complaint(capsys, *command, "--out", tmp_path / "no" / "out.npz")
        assert "is a folder" in complaint(capsys, *command, "--out", tmp_path)
    assert "give the name of a file" in complaint(capsys, "fit", nothing, "--out", "-")
    assert "--plot writes .png, .pdf, .svg" in complaint(capsys, "fit", nothing, "--plot", tmp_path / "run.gif")
    same = tmp_path / "same.png"
    assert "asked for twice" in complaint(capsys, "fit", nothing, "--out", same, "--plot", same)
    assert out.read_bytes() == b"precious"


def test_force_overwrites(capsys, train, tmp_path):
    out = tmp_path / "there.npz"
    out.write_bytes(b"old")
    assert answer(capsys, "fit", train, "--radius", 1, "--out", out, "--force")[1] == 0
    assert cg.load_model(out).radius == 1.0


LONG = ["--radius", "3", "--solver", "sfw", "--tol", "0", "--max-epochs", "20000", "--quiet"]


def start_and_wait_for_checkpoint(train, out):
    command = [
        sys.executable,
        "-m",
        "condgrad.cli",
        "fit",
        str(train),
        *LONG,
        "--out",
        str(out),
        "--checkpoint-every",
        "0",
    ]
    child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 120
    while not Path(f"{out}.checkpoint").exists() and child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    return child


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="sends SIGKILL")
def test_a_killed_run_resumes_to_the_same_bits(capsys, train, tmp_path):
    whole, out = tmp_path / "whole.npz", tmp_path / "model.npz"
    assert answer(capsys, "fit", train, *LONG, "--out", whole)[1] == 1  # tol is 0
    child = start_and_wait_for_checkpoint(train, out)
    child.kill()
    child.communicate()
    assert child.returncode == -signal.SIGKILL and not out.exists()
    assert "holds an unfinished run; use --resume" in complaint(capsys, "fit", train, *LONG, "--out", out)
    found, code = answer(capsys, "fit", train, *LONG, "--out", out, "--resume")
    assert (code, found["status"]) == (1, "MAX_EPOCHS")
    assert out.read_bytes() == whole.read_bytes()
    code, _, err = run(capsys, "fit", train, *LONG[:-1], "--out", out, "--resume", "--max-epochs", 20010)
    assert code == 1 and "continuing from" in err
    other = complaint(capsys, "fit", train, *LONG, "--radius", 4, "--out", out, "--resume")
    assert "belongs to another problem" in other


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_ctrl_c_writes_what_is_certified(data, train, tmp_path):
    out = tmp_path / "model.npz"
    child = start_and_wait_for_checkpoint(train, out)
    child.send_signal(signal.SIGINT)
    printed, err = child.communicate(timeout=60)
    assert child.returncode == 130, err
    assert b"INTERRUPTED" in printed and err == b""
    model = cg.load_model(out)
    X, y = data
    problem = cg.Problem(scipy.sparse.csr_matrix(X), y, cg.losses.Logistic(), cg.constraints.L1Ball(3.0))
    assert model.status is cg.Status.INTERRUPTED
    assert model.gap == pytest.approx(problem.gap(model.w), rel=1e-9)


def test_resume_needs_a_place_and_starts_afresh_where_there_is_nothing(capsys, train, tmp_path):
    assert "--resume needs --out or --checkpoint" in complaint(capsys, "fit", train, "--radius", 1, "--resume")
    code, _, err = run(capsys, "fit", train, "--radius", 1, "--resume", "--out", tmp_path / "m.npz")
    assert code == 0 and "there is no checkpoint: starting a new run." in err
    assert not (tmp_path / "m.npz.checkpoint").exists()


# The other commands ---------------------------------------------------------------------------------------------------


def test_path_is_lasso_path(capsys, data, train, tmp_path):
    X, y = data
    out, plot = tmp_path / "path.npz", tmp_path / "path.svg"
    found, code = answer(capsys, "path", train, "--n-radii", 12, "--out", out, "--plot", plot)
    radii, coefs, info = cg.lasso_path(scipy.sparse.csr_matrix(X), y, n_radii=12)
    assert code == 0
    np.testing.assert_array_equal(found["radius"], radii)
    np.testing.assert_array_equal(scipy.sparse.load_npz(out).toarray(), coefs.toarray())
    with np.load(out) as members:
        np.testing.assert_array_equal(members["alpha"], info.alpha)
    assert b"<svg" in plot.read_bytes()
    code, printed, err = run(capsys, "path", train, "--radii", "0.5,1", "--intercept")
    assert code == 0 and "point 2 of 2" in err and printed.count("\n") >= 5
    assert "must be numbers of at least 0" in complaint(capsys, "path", train, "--radii", "1,x")
    assert "is not a model of condgrad, but a condgrad path." in complaint(capsys, "predict", out, train)


def test_path_of_another_loss_or_set(capsys, data, train):
    X, y = data
    X = scipy.sparse.csr_matrix(X)
    found, code = answer(capsys, "path", train, "--loss", "logistic", "--radii", "0.5,2", "--intercept", "--tol", 1e-5)
    radii, _, info = cg.radius_path(X, y, radii=[0.5, 2.0], fit_intercept=True, tol=1e-5, random_state=0)
    assert code == 0 and found["radius"] == radii.tolist()
    np.testing.assert_allclose(found["objective"], info.objective, atol=1e-5)
    found, code = answer(capsys, "path", train, "--loss", "huber:delta=0.5", "--set", "l2", "--n-radii", 3)
    assert code == 0 and len(found["alpha"]) == 3
    found, code = answer(capsys, "path", train, "--l2", 0.1, "--radii", 1)
    assert code == 0 and found["objective"] == cg.lasso_path(X, y, l2=0.1, radii=[1.0])[2].objective.tolist()
    found, code = answer(capsys, "path", train, "--loss", "logistic", "--set", "nonnegative-l1", "--alphas", "0.1,0.01")
    radii, _, info = cg.radius_path(X, y, constraint="nonnegative-l1", alphas=[0.1, 0.01])
    assert code == 0 and found["alpha"] == [0.1, 0.01] and found["radius"] == radii.tolist()
    said = complaint(capsys, "path", train, "--loss", "logistic", "--set", "l2", "--alphas", "0.1", "--quiet")
    assert "alphas are penalties of a norm" in said and "got L2Ball" in said
    said = complaint(capsys, "path", train, "--loss", "logistic", "--l2", "0.1")
    assert "--l2 is for the Lasso (--loss squared --set l1); got --loss logistic --set l1." in said
    assert "no radius to vary" in complaint(capsys, "path", train, "--set", "box:lower=0,upper=1")


def test_cross_validation_tells_the_loss_of_held_out_samples(capsys, data, train, tmp_path):
    from condgrad.paths.validation import deal_folds

    X, y = data
    out, plot = tmp_path / "model.npz", tmp_path / "cv.png"
    options = ["--radii", "4,0.5,1", "--folds", 4, "--tol", 1e-9]
    found, code = answer(capsys, "cv", train, *options, "--out", out, "--plot", plot)
    fold_of = deal_folds(np.random.default_rng(0).permutation(N), 4, y)
    assert code == 0 and np.bincount(fold_of).tolist() == [15] * 4
    for fold in range(4):  # as many of each class as can be
        assert abs(np.sum(y[fold_of == fold] > 0) - np.sum(y > 0) / 4) < 1.0
    for k, radius in enumerate((0.5, 1.0, 4.0)):
        losses = []
        for fold in range(4):
            kept = fold_of != fold
            problem = cg.Problem(X[kept], y[kept], cg.losses.Logistic(), cg.constraints.L1Ball(radius))
            w = cg.minimize(problem, "pairwise", tol=1e-9).w
            losses.append(np.mean(np.log1p(np.exp(-y[~kept] * (X[~kept] @ w)))))
        assert found["radii"][k] == radius
        assert found["mean_loss"][k] == pytest.approx(np.mean(losses), abs=1e-4)
        assert found["standard_error"][k] == pytest.approx(np.std(losses, ddof=1) / 2.0, abs=1e-4)
    assert found["best_radius"] == found["radii"][int(np.argmin(found["mean_loss"]))]
    assert cg.load_model(out).radius == found["best_radius"] and plot.exists()
    code, printed, err = run(capsys, "cv", train, "--n-radii", 5, "--folds", 3, "--one-se", "--intercept")
    assert code == 0 and printed.count("<- chosen") == 1 and err.count("fold ") == 3
    assert "--folds must lie between 2 and the 60 samples" in complaint(capsys, "cv", train, "--folds", 1, "--quiet")
    assert "no radius to choose" in complaint(capsys, "cv", train, "--set", "box:lower=0,upper=1")
    assert "does not contain 0; use --radii" in complaint(capsys, "cv", train, "--set", "simplex", "--quiet")


@pytest.mark.parametrize("n_solved", [2, 4])
def test_an_interrupted_cross_validation_tells_the_folds_that_are_done(capsys, train, tmp_path, monkeypatch, n_solved):
    module, solved = importlib.import_module("condgrad.paths.allowed_sets"), []
    real = module.minimize

    def minimize(*arguments, **settings):
        solved.append(1)
        result = real(*arguments, **settings)
        return result if len(solved) <= n_solved else result._replace(status=cg.Status.INTERRUPTED)

    monkeypatch.setattr(module, "minimize", minimize)
    out = tmp_path / "m.npz"
    options = ["--radii", "1,2,3", "--folds", 3, "--solver", "corrective", "--out", out, "--json"]
    code, printed, err = run(capsys, "cv", train, *options)
    assert code == 130 and not out.exists()
    if n_solved == 2:
        assert printed == "" and "interrupted before the end of the first fold" in err
    else:
        assert json.loads(printed)["folds"] == 1 and json.loads(printed)["status"] == "INTERRUPTED"


@pytest.mark.parametrize("n_folds", [0, 2])
def test_ctrl_c_in_a_walk_of_smooth_losses(capsys, train, monkeypatch, n_folds):
    """On small data a fold is one search."""
    module, solved = importlib.import_module("condgrad.paths.smooth"), []
    real = module.SmoothPath.advance

    def advance(self, targets):
        solved.append(1)
        if len(solved) > n_folds:
            signal.raise_signal(signal.SIGINT)
        return real(self, targets)

    monkeypatch.setattr(module.SmoothPath, "advance", advance)
    code, printed, err = run(capsys, "cv", train, "--radii", "1,2,3", "--folds", 3, "--json")
    assert code == 130
    if n_folds == 0:
        assert printed == "" and "interrupted before the end of the first fold" in err
    else:
        assert json.loads(printed)["folds"] == n_folds and json.loads(printed)["status"] == "INTERRUPTED"


@pytest.mark.parametrize("options", [["--set", "l1"], ["--set", "nonnegative-l1", "--intercept"]])
def test_cross_validation_by_the_path_chooses_what_minimize_chooses(capsys, train, options):
    options = ["--n-radii", 6, "--folds", 3, "--tol", 1e-8, *options]
    found, code = answer(capsys, "cv", train, *options)
    expected, _ = answer(
        capsys, "cv", train, *options, "--max-steps", 10**6
    )  # a limit of runs: minimize solves all radii
    assert code == 0 and found.keys() == expected.keys()
    assert found["best_radius"] == expected["best_radius"]
    np.testing.assert_allclose(found["mean_loss"], expected["mean_loss"], atol=1e-4)
    np.testing.assert_allclose(found["error_rate"], expected["error_rate"], atol=0.04)


def test_the_default_grid_ends_where_the_multiplier_is_small(data):
    from condgrad.cli.cv import radius_grid

    X, _ = data
    y = X @ np.r_[3.0, -2.0, np.zeros(D - 2)] + np.random.default_rng(0).standard_normal(N)
    for make in (cg.constraints.L1Ball, cg.constraints.L2Ball):
        problem = cg.Problem(X, y, cg.losses.Squared(), make(1.0))
        radii = radius_grid(problem, make, 7, 1e-2)
        norm = {cg.constraints.L1Ball: np.inf, cg.constraints.L2Ball: 2}[make]
        first = np.linalg.norm(problem.gradient(np.zeros(D)), norm)

        def multiplier(radius, make=make, norm=norm, problem=problem):
            w = cg.minimize(problem.over(make(radius)), tol=1e-9).w
            return np.linalg.norm(problem.gradient(w), norm)

        assert radii.size == 7 and radii[-1] / radii[0] == pytest.approx(100.0)
        assert multiplier(radii[-1]) <= 0.02 * first < multiplier(radii[-1] / 4.0)


def test_theory_tells_the_constants(capsys, data, train):
    X, y = data
    found, code = answer(capsys, "theory", train, "--set", "l1", "--radius", 5, "--tol", 0.1)
    constraint = cg.constraints.L1Ball(5.0)
    problem = cg.Problem(X, y, cg.losses.Logistic(), constraint)
    assert code == 0 and found["kappa"] == pytest.approx(cg.theory.kappa(X, constraint))
    t = found["fw_iterations"]
    bound = cg.theory.frank_wolfe_bound(problem, np.array([t - 1, t]), unit="iterations")
    assert bound[0] > 0.1 >= bound[1]
    bound = cg.theory.sfw_bound(problem, np.array([-1, 0]) + found["sfw_iterations"])
    assert bound[0] > 0.1 >= bound[1]
    _, printed, _ = run(capsys, "theory", train, "--loss", "sigmoid-squared", "--radius", 5, "--quiet")
    assert "kappa" in printed and "not convex" in printed


@pytest.mark.parametrize(
    ("command", "module"), [("solvers", cg.solvers), ("losses", cg.losses), ("sets", cg.constraints)]
)
def test_listings_come_from_the_registries(capsys, command, module):
    _, printed, _ = run(capsys, command)
    _, names, _ = run(capsys, command, "--names")
    assert names.split() == list(module.REGISTERED)
    for name, kind in module.REGISTERED.items():
        assert any(line.startswith(f"{name} ") for line in printed.splitlines())
        assert kind.__doc__.split("\n")[0].split()[0] in printed
    _, printed, _ = run(capsys, command, "--json")
    assert set(json.loads(printed)) == set(module.REGISTERED)
    name = next(iter(module.REGISTERED))
    assert module.REGISTERED[name].__name__ in run(capsys, command, name)[1]
    assert "nonsense" in complaint(capsys, command, "nonsense")


def test_warmup_makes_the_fits_it_is_told(capsys, monkeypatch):
    from condgrad.cli import _warm_fits as warmup

    _, printed, _ = run(capsys, "warmup", "--list")
    assert printed.split() == list(warmup.common_fits())
    done = []
    fits = {name: lambda name=name: done.append(name) for name in ("one", "two")}
    monkeypatch.setattr(warmup, "common_fits", lambda: fits)
    code, printed, told = run(capsys, "warmup", "--only", "two")
    assert (code, done) == (0, ["two"])
    assert "two  (1 of 1" in told and "The kernels of 1 fit are compiled" in printed
    assert run(capsys, "warmup", "--quiet") == (0, "", "")
    assert done == ["two", "one", "two"]
    assert "there is no fit named 'on'; there are one, two. Did you mean 'one'?" in complaint(
        capsys, "warmup", "--only", "on"
    )


def test_a_common_fit_runs_as_it_is(capsys):
    """The others are run by the build step of the wheel."""
    assert run(capsys, "warmup", "--only", "elastic-net", "--quiet") == (0, "", "")


def test_bench_lists_and_runs_scripts(capsys, monkeypatch):
    from condgrad.cli import bench

    _, printed, _ = run(capsys, "bench")
    assert "peers/logistic" in printed and "cold_start" in printed
    commands = []

    class Ended:
        returncode = 7

    monkeypatch.setattr(bench.subprocess, "run", lambda command: commands.append(command) or Ended)
    assert run(capsys, "bench", "peers/logistic", "--quick")[0] == 7
    assert commands[0][1:] == [str(ROOT / "benchmarks" / "peers" / "logistic.py"), "--quick"]
    assert "there is no benchmark 'nope'" in complaint(capsys, "bench", "nope")
    monkeypatch.setattr(cg, "__file__", str(ROOT / "nowhere" / "condgrad" / "__init__.py"))
    assert "run this in a checkout of the repository" in complaint(capsys, "bench")


# Bad input ------------------------------------------------------------------------------------------------------------

CSV = "a,b,y\n1,2,1\n3,4,-1\n"


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        (
            "d.svm",
            "1 1:1\n-1 2:abc\n",
            "d.svm, line 2: an entry must be index:value with a finite number; got '2:abc'.",
        ),
        ("d.svm", "1 1:1\nx 2:1\n", "d.svm, line 2: the target must be a finite number; got 'x'."),
        ("d.svm", "1\n-1\n", "d.svm holds no entries, so its number of features is unknown; give n_features."),
        ("d.svm", "1 999999999:1\n", "d.svm, line 1: index 999999999 is beyond the 100000000 features."),
        ("d.svm", "", "d.svm is empty."),
        ("d.svm", "1 1:1\n2 1:1\n3 1:1\n", "Logistic needs targets of two classes; got 3: 1.0, 2.0, 3.0."),
        ("d.csv", CSV + "5,x,1\n", "d.csv, line 4: column 'b' must hold a finite number; got 'x'."),
        ("d.csv", CSV + "5,,1\n", "d.csv, line 4: column 'b' has no value."),
        ("d.csv", CSV + "5,nan,1\n", "d.csv, line 4: column 'b' must hold a finite number; got 'nan'."),
        ("d.csv", CSV + "5,1_0,1\n", "d.csv, line 4: column 'b' must hold a finite number; got '1_0'."),
        ("d.csv", CSV + "5,6\n", "d.csv, line 4: there must be 3 fields; got 2."),
        ("d.csv", CSV + '5,"6,1\n', "d.csv, line 4: unexpected end of data."),
        ("d.csv", CSV + "5,6,\n", "d.csv, line 4: the target in column 'y' is missing."),
        ("d.csv", CSV + "5,6,\0\n", "d.csv, line 4: there is a zero byte, which text does not have."),
        ("d.csv", CSV.encode() + b"5,\xff,1\n", "d.csv, line 4: the byte 0xff is not UTF-8 text."),
        ("d.csv", "1,2,1\n3,x,-1\n", "d.csv, line 2: column 2 must hold a finite number; got 'x'."),
        ("d.csv", "a,a,y\n1,2,1\n", "d.csv has two columns named 'a'; give each its own name."),
        ("d.csv", "a,b,y\n", "d.csv holds no samples."),
        ("d.csv", "y\n1\n", "d.csv has 1 column, but needs features and a target."),
        ("d.csv", "\n\n", "d.csv holds no samples."),
    ],
)
def test_what_is_wrong_with_a_file_is_told_with_its_line(capsys, tmp_path, name, content, sentence):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert complaint(capsys, "fit", path, "--radius", 1) == sentence


def test_arrays_that_do_not_fit_are_refused(capsys, tmp_path):
    path = tmp_path / "d.npz"
    for members, words in (
        ({"x": np.ones(3)}, "must hold an array X"),
        ({"X": np.ones((3, 2))}, "has no array y of targets"),
        ({"X": np.ones((3, 2)), "y": np.ones(2)}, "must have one entry per row of X, shape (3,)"),
        ({"X": np.ones((3, 2)), "y": np.array([b"a", b"b", b"c"])}, "must be an array of numbers"),
        ({"X": np.array([[1.0, np.nan]]), "y": np.ones(1)}, "nan"),
        ({"X": np.array([[1.0], [{}]]), "y": np.ones(2)}, "could not be read as an .npz file"),
    ):
        np.savez(path, **members)
        assert words in complaint(capsys, "fit", path, "--radius", 1, "--loss", "squared", "--quiet")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--radius", "-1"], "radius of L1Ball must be positive and finite; got -1.0."),
        (["--radius", "1", "--loss", "logistc"], "Did you mean 'logistic'?"),
        (["--radius", "1", "--loss", "huber:width=1"], "huber has no parameter 'width'; it has delta."),
        (["--radius", "1", "--loss", "logistic:a"], "--loss must look like NAME[:KEY=VALUE,...]; got 'logistic:a'."),
        (["--radius", "1", "--set", "lp"], "the set lp needs p; use --set lp:p=VALUE."),
        (["--radius", "1", "--set", "box:lower=0,upper=1"], "the set box has no radius; leave out --radius."),
        (["--radius", "1", "--set", "group:groups=@no.txt"], "does not hold plain numbers"),
        (["--radius", "1", "--solver", "sfx"], "there is no solver named 'sfx'"),
        (["--radius", "1", "--solver", "auto:x=1"], "auto has no parameter 'x'; it has none."),
        (["--radius", "1", "--solver", "sfw:batch_size=none"], "batch_size"),
        (["--radius", "1", "--tol", "-1"], "tol must be a number of at least 0"),
        (["--radius", "1", "--target", "y"], "--target is for CSV and Parquet"),
        (["--radius", "1", "--n-features", "3"], "is beyond the 3 features"),
    ],
)
def test_wrong_options_get_a_sentence(capsys, train, options, words):
    assert words in complaint(capsys, "fit", train, *options, "--quiet")


def test_parquet(capsys, data, tmp_path):
    X, y = data
    path = tmp_path / "d.parquet"
    path.write_bytes(b"PAR1 and no more")
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        assert complaint(capsys, "fit", path, "--radius", 1) == (
            "Parquet files need pyarrow: pip install condgrad[parquet]."
        )
        return
    assert "could not be read as a Parquet file" in complaint(capsys, "fit", path, "--radius", 1)
    columns = {"y": np.where(y > 0, "yes", "no"), **{f"x{j}": X[:, j] for j in range(D)}}
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    found, code = answer(capsys, "fit", path, "--target", "y", "--radius", 1)
    assert code == 0 and found["classes"] == ["no", "yes"] and found["n_features"] == D
    pyarrow.parquet.write_table(pyarrow.table({"a": [1.0, None], "y": [1, 2]}), path)
    assert complaint(capsys, "fit", path, "--radius", 1) == "d.parquet, row 2: column 'a' has no value."


def test_a_reader_that_goes_away_is_no_error():
    code = "import sys; from condgrad.cli import main; sys.exit(main(['sets', 'l1']))"
    child = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    child.stdout.close()
    _, err = child.communicate(timeout=60)
    assert err == b"" and child.returncode == 1


# Corrupted files ------------------------------------------------------------------------------------------------------


def corrupted(content, rng):
    """Return bytes that differ from ``content``: flipped, cut, doubled, filled or inserted."""
    content = bytearray(content)
    at = int(rng.integers(len(content)))
    kind = rng.integers(5)
    if kind == 0:
        content[at] ^= 1 << int(rng.integers(8))
    elif kind == 1:
        del content[at:]
    elif kind == 2:
        content[at:at] = rng.bytes(int(rng.integers(1, 9)))
    elif kind == 3:
        del content[at : at + int(rng.integers(1, 9))]
    else:
        content[at : at + 4] = bytes(255 - byte for byte in content[at : at + 4])
    return bytes(content)


@counted(40, 200)
def test_corrupted_model_files_are_refused(count, capsys, data, train, tmp_path):
    out, bad = tmp_path / "model.npz", tmp_path / "bad.npz"
    answer(capsys, "fit", train, "--radius", 3, "--out", out)
    good, rng = out.read_bytes(), np.random.default_rng(0)
    for _ in range(count):
        bad.write_bytes(corrupted(good, rng))
        assert "is not a model of condgrad, or it is damaged: its checksum is wrong." in complaint(
            capsys, "predict", bad, train
        )


@counted(40, 200)
def test_corrupted_checkpoints_are_refused(count, capsys, train, tmp_path):
    out, saved = tmp_path / "model.npz", tmp_path / "model.npz.checkpoint"
    options = ["--radius", 3, "--solver", "pairwise", "--tol", 0, "--max-steps", 3, "--quiet", "--out", out]
    assert run(capsys, "fit", train, *options)[0] == 1
    good, rng = saved.read_bytes(), np.random.default_rng(3)
    for _ in range(count):
        saved.write_bytes(corrupted(good, rng))
        assert "is not a checkpoint of condgrad" in complaint(capsys, "fit", train, *options, "--resume")


TOKENS = [
    "abc",
    "1:nan",
    "0:1",
    "3:1 3:1",
    "2:",
    ":2",
    "1:1_0",
    "4:0x1",
    "-1:2",
    "5:1e999",
    "2:1:1",
    "qid:1",
    "\x00",
    "é",
]
CELLS = ["abc", "", "nan", "1e999", "1_0", "0x10", "1 2", "--1", "1,1", '"', "é", "\x00"]


def broken_text(good, rng, separator, wrong):
    """Return a text with one field, not a target, that is no number."""
    lines = good.splitlines()
    k = int(rng.integers(1, len(lines)))
    fields = lines[k].split(separator)
    places = range(1, len(fields)) if separator == " " else range(len(fields) - 1)
    fields[int(rng.choice(list(places)))] = wrong[int(rng.integers(len(wrong)))]
    lines[k] = separator.join(fields)
    return "\n".join(lines).encode()


@counted(40, 200)
def test_corrupted_data_files_are_refused(count, capsys, data, tmp_path):
    X, y = data
    X = np.where(X == 0.0, 0.5, X)  # a row without entries has no field to break
    svm, table = as_libsvm(X, y), as_csv(X, y)
    buffer = io.BytesIO()
    np.savez(buffer, X=X, y=y)
    npz, packed, rng = buffer.getvalue(), gzip.compress(svm.encode()), np.random.default_rng(1)
    for k in range(count):
        kind = k % 4
        if kind == 0:
            name, content = "d.svm", broken_text(svm, rng, " ", TOKENS)
        elif kind == 1:
            name, content = "d.csv", broken_text(table, rng, ",", CELLS)
        elif kind == 2:  # numbers themselves, which the checksums of the formats watch over
            at = int(rng.integers(300, len(npz) - 1500))
            name, content = "d.npz", npz[:at] + bytes([npz[at] ^ 255]) + npz[at + 1 :]
        else:
            at = int(rng.integers(20, len(packed) - 20))
            name, content = "d.svm.gz", packed[:at] + bytes([packed[at] ^ 255]) + packed[at + 1 :]
        path = tmp_path / name
        path.write_bytes(content)
        sentence = complaint(capsys, "fit", path, "--radius", 1, "--max-steps", 1, "--quiet")
        assert sentence.startswith(f"{name}, line " if kind < 2 else name), sentence


@counted(40, 200)
def test_any_bytes_give_an_answer_or_a_sentence(count, capsys, data, tmp_path):
    X, y = data
    buffer = io.BytesIO()
    np.savez(buffer, X=X[:6], y=y[:6])
    files = {
        "d.svm": as_libsvm(X[:6], y[:6]).encode(),
        "d.csv": as_csv(X[:6], y[:6]).encode(),
        "d.npz": buffer.getvalue(),
    }
    files["d.svm.bz2"] = bz2.compress(files["d.svm"])
    rng = np.random.default_rng(2)
    for k in range(count):
        name = sorted(files)[k % 4]
        path = tmp_path / name
        content = files[name]
        for _ in range(int(rng.integers(1, 4))):
            content = corrupted(content, rng) if content else b"\0"
        path.write_bytes(content)
        code, _, err = run(capsys, "fit", path, "--loss", "squared", "--radius", 1, "--max-steps", 1, "--quiet")
        assert code in (0, 1) or (code == 2 and err.count("\n") == 1), (content, err)


# Model files ----------------------------------------------------------------------------------------------------------


def make_model(loss=None):
    loss = cg.losses.Huber(delta=0.7) if loss is None else loss
    y = loss.classes or (0.25, 1.0)
    problem = cg.Problem([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], y, loss, cg.constraints.L1Ball(1.0))
    return cg.Model.of(problem, cg.minimize(problem), feature_names="abc")


@pytest.mark.parametrize("name", sorted(cg.losses.REGISTERED))
def test_a_model_survives_its_file(name, tmp_path):
    model = make_model(cg.losses.by_name(name))
    cg.save_model(tmp_path / "m.npz", model)
    loaded = cg.load_model(tmp_path / "m.npz")
    np.testing.assert_array_equal(loaded.w, model.w)
    assert loaded._replace(w=None) == model._replace(w=None)
    X = np.eye(3)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(scipy.sparse.csr_matrix(X)))
    with np.load(tmp_path / "m.npz", allow_pickle=False) as members:  # anyone can look into it
        assert json.loads(members["header"].tobytes())["format"] == "condgrad model"
        assert members["indices"].size == np.count_nonzero(model.w)


def test_a_file_that_does_not_know_its_rounding_is_read(tmp_path):
    model = make_model(cg.losses.Squared())
    cg.save_model(tmp_path / "m.npz", model)
    header, arrays = unpack(tmp_path / "m.npz", ("model", 1))
    del header["rounding"]
    (tmp_path / "old.npz").write_bytes(pack("model", 1, header, arrays))
    loaded = cg.load_model(tmp_path / "old.npz")
    assert np.isnan(loaded.rounding)
    cg.save_model(tmp_path / "again.npz", loaded)
    assert np.isnan(cg.load_model(tmp_path / "again.npz").rounding)


def test_foreign_and_newer_files_are_refused(tmp_path):
    path = tmp_path / "m.npz"
    np.savez(path, w=np.ones(3))
    with pytest.raises(ValueError, match="is not a model of condgrad"):
        cg.load_model(path)
    path.write_bytes(pack("model", 2, {}, {}))
    with pytest.raises(ValueError, match="is a model in version 2 of its format, and this condgrad reads version 1"):
        cg.load_model(path)
    path.write_bytes(pack("path", 1, {}, {}))
    with pytest.raises(ValueError, match="is not a model of condgrad, but a condgrad path"):
        cg.load_model(path)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        cg.load_model(tmp_path / "nothing.npz")
    with pytest.raises(ValueError, match="could not be read"):
        cg.load_model(tmp_path)


def test_what_a_model_cannot_be_is_told(tmp_path):
    model = make_model()
    with pytest.raises(ValueError, match="X has 2 features, but the model has 3"):
        model.predict([[1.0, 2.0]])
    problem = cg.Problem([[1.0], [2.0]], [1.0, 2.0], cg.losses.Squared(), cg.constraints.L1Ball(1.0))
    result = cg.minimize(problem)
    with pytest.raises(ValueError, match="not a loss of two classes"):
        cg.Model.of(problem, result, classes=(0, 1))
    with pytest.raises(ValueError, match="1 feature names"):
        cg.Model.of(problem, result, feature_names=("a", "b"))
    logistic = cg.Problem([[1.0], [2.0]], [1.0, -1.0], cg.losses.Logistic(), cg.constraints.L1Ball(1.0))
    with pytest.raises(ValueError, match="two different labels"):
        cg.Model.of(logistic, cg.minimize(logistic), classes=("a", "a"))
    with pytest.raises(ValueError, match=r"losses of condgrad\.losses only"):
        cg.save_model(tmp_path / "m.npz", model._replace(loss="mine"))


# Progress -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", [lambda t: 1.0 / t, lambda t: np.exp(-t)])
def test_time_left_is_extrapolated_from_the_gaps(law, monkeypatch):
    from condgrad.run import progress as module

    clock = [100.0]
    monkeypatch.setattr(module.time, "perf_counter", lambda: clock[0])

    class Limits:
        tol, relative_tol, max_time, max_steps, max_epochs = 1e-3, 0.0, np.inf, np.inf, np.inf

    pace = module.Pace(Limits)
    for t in np.arange(0.0, 5.01, 0.25):
        clock[0] = 100.0 + t
        record = cg.Progress(*[0] * len(cg.Progress._fields))._replace(
            step=int(4 * t), gap=float(law(t)) if t else 10.0
        )
        pace.add(record)
    assert pace.steps_per_second(record) == pytest.approx(4.0)
    end = 1000.0 if law(2.0) == 0.5 else np.log(1000.0)
    left = pace.seconds_left(record)
    assert 0.0 < left <= 1.1 * (end - 5.0)
    Limits.max_time = 5.5
    assert pace.seconds_left(record) == pytest.approx(0.5)
    assert pace.seconds_left(record._replace(gap=1e-4)) == 0.0


@pytest.mark.parametrize("options", [[], ["--loss", "logistic"]], ids=["lasso", "logistic"])
def test_a_path_ends_with_its_time(capsys, train, options):
    found, code = answer(capsys, "path", train, *options, "--max-time", 0)
    assert code == 1 and found["status"] == "MAX_TIME" and len(found["radius"]) == 1
    found, code = answer(capsys, "path", train, *options, "--n-radii", 4, "--max-time", 1e6)
    assert code == 0 and len(found["radius"]) == 4


def test_cross_validation_ends_with_its_time(capsys, train, tmp_path):
    options = ["--set", "l1", "--folds", 3, "--n-radii", 4, "--out", tmp_path / "model.npz"]
    found, code = answer(capsys, "cv", train, *options, "--max-time", 0)
    assert code == 1 and found["status"] == "MAX_TIME"
    assert found["folds"] == 3 and len(found["radii"]) == 1 and (tmp_path / "model.npz").exists()


def test_the_choice_of_a_radius_is_part_of_the_time_of_a_fit(capsys, train, monkeypatch):
    import condgrad.estimators.radius as radius
    import condgrad.paths.allowed_sets as allowed_sets

    shares, run = [], allowed_sets.minimize_over

    def choice(problem, make, max_time):
        shares.append(max_time)
        time.sleep(0.1)
        return 1.0

    def fit(*args, max_time, **settings):
        shares.append(max_time)
        return run(*args, max_time=max_time, **settings)

    monkeypatch.setattr(radius, "default_radius", choice)
    monkeypatch.setattr(allowed_sets, "minimize_over", fit)
    answer(capsys, "fit", train, "--max-time", 50)
    assert shares[0] == 25.0 and shares[1] <= 49.9
    answer(capsys, "fit", train)
    assert shares[2:] == [np.inf, np.inf]


@pytest.mark.parametrize("command", ["fit", "cv", "path"])
def test_a_time_that_is_none(capsys, train, command):
    assert main([command, str(train), "--max-time", "-1"]) == 2
    assert "max_time must be a number of at least 0, or None; got -1.0." in capsys.readouterr().err
