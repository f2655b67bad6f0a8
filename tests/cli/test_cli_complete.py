"""condgrad complete: ratings of every format give the estimator's own answers, bad input one sentence."""

import bz2
import gzip
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
from covering import counted
from test_cli import ROOT, answer, complaint, corrupted, run

import condgrad as cg
from condgrad import datasets
from condgrad.cli._entries import predict_entries
from condgrad.paths import factor_walk

RADIUS = ["--radius", 30, "--loss", "squared"]


@pytest.fixture(scope="module")
def entries():
    return datasets.simulate_low_rank(30, 20, 2, 350, noise=0.3, random_state=0)


def lines_of(entries, separator=",", header="userId,movieId,rating,timestamp"):
    lines = [] if header is None else [header]
    lines += [
        separator.join((f"u{i}", f"film {j}", repr(value), "874965758"))
        for i, j, value in zip(entries.rows.tolist(), entries.cols.tolist(), entries.values.tolist(), strict=True)
    ]
    return "\n".join(lines) + "\n"


@pytest.fixture
def ratings(entries, tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text(lines_of(entries))
    return path


def fitted(entries, radius=30.0, loss="squared", **settings):
    """The estimator on the same entries, in the order of the file's first mentions, as the command numbers them."""
    rows, columns = (list(dict.fromkeys(part.tolist())) for part in (entries.rows, entries.cols))
    i, j = np.array([rows.index(k) for k in entries.rows]), np.array([columns.index(k) for k in entries.cols])
    return cg.MatrixCompletion(radius, loss, **settings).fit(i, j, entries.values), i, j


# Good input -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_complete_is_the_estimator_and_predict_its_model(capsys, entries, ratings, tmp_path):
    out, plot, predictions = tmp_path / "model.npz", tmp_path / "run.png", tmp_path / "predictions.csv"
    found, code = answer(capsys, "complete", ratings, *RADIUS, "--out", out, "--plot", plot, "--test", ratings)
    own, i, j = fitted(entries)
    model = cg.load_model(out)
    assert code == 0 and found["status"] == "CONVERGED" and found["gap"] == model.gap == own.gap_
    assert (found["rank"], found["shape"], found["n_samples"]) == (own.rank_, [30, 20], 350)
    np.testing.assert_array_equal(model.factors[0], own.factors_[0])
    assert set(model.row_labels) == {f"u{k}" for k in range(30)} and model.column_labels[0].startswith("film ")
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.npz", "ratings.csv", "run.png"]

    p = own.predict(i, j)
    error = p - entries.values
    assert found["test"]["rmse"] == pytest.approx(np.sqrt(np.mean(error**2)), rel=1e-12)
    assert found["test"]["mae"] == pytest.approx(np.mean(np.abs(error)), rel=1e-12)
    scores, code = answer(capsys, "predict", out, ratings, "--out", predictions)
    assert code == 0 and scores == found["test"] | {"out": str(predictions)} and scores["n_unseen"] == 0
    header, *lines = predictions.read_text().splitlines()
    assert header == "row,column,prediction"
    assert [line.rsplit(",", 1)[0] for line in lines] == [f"u{i},film {j}" for i, j in zip(entries.rows, entries.cols)]
    np.testing.assert_allclose([float(line.rsplit(",", 1)[1]) for line in lines], p, rtol=1e-12)


def test_people_read_words(capsys, ratings):
    code, out, err = run(capsys, "complete", ratings, "--radius", 30, "--test", ratings)
    assert code == 0 and err.startswith("ratings.csv: 350 entries of a 30 x 20 matrix\nstep ")
    for words in (
        "Huber(delta=1.0) over WeightedNuclearBall(radius=30.0, ",
        "CONVERGED",
        "so F(W) - F* <=",
        "30 x 20 of rank",
    ):
        assert words in out
    assert "on 350 entries\n" in out and "RMSE" in out


def test_every_format_gives_the_same_model(capsys, entries, tmp_path, monkeypatch):
    swapped = "\n".join(",".join(np.array(line.split(","))[[3, 1, 2, 0]]) for line in lines_of(entries).splitlines())
    files = {
        "a.csv": lines_of(entries),
        "b.csv": lines_of(entries, header=None),
        "c.dat": lines_of(entries, "::", None),
        "d.data": lines_of(entries, "\t", None),
        "e.tsv": lines_of(entries, "\t", "user\titem\trating\ttime"),
        "f.csv": "\ufeff" + lines_of(entries).replace("\n", "\r\n"),
        "g.txt": lines_of(entries, ";", "a;b;c;d"),
        "h.csv": swapped,
    }
    objectives = []
    for name, text in files.items():
        (tmp_path / name).write_bytes(text.encode())
        options = ["--columns", "userId,movieId,rating"] if name in ("a.csv", "h.csv") else []
        found, code = answer(capsys, "complete", tmp_path / name, *RADIUS, *options)
        assert code == 0 and found["shape"] == [30, 20], name
        objectives.append(found["objective"])
    text = files["a.csv"].encode()
    (tmp_path / "j.csv.gz").write_bytes(gzip.compress(text))
    (tmp_path / "k.bz2").write_bytes(bz2.compress(text))
    for name in ("j.csv.gz", "k.bz2"):
        objectives.append(answer(capsys, "complete", tmp_path / name, *RADIUS)[0]["objective"])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    objectives.append(answer(capsys, "complete", "-", *RADIUS)[0]["objective"])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(files["b.csv"].encode())))
    objectives.append(answer(capsys, "complete", "-", *RADIUS, "--columns", "1,2,3")[0]["objective"])
    assert len(objectives) == 12
    np.testing.assert_allclose(objectives, objectives[0], rtol=1e-12)


def test_quoted_ids_and_spaces(capsys, tmp_path):
    path, out = tmp_path / "r.csv", tmp_path / "m.npz"
    path.write_text('who,what,stars\nann,"tea, green",4\nann,"the ""ale""",3\n bob ,"tea, green",5\n\n')
    assert answer(capsys, "complete", path, "--radius", 1, "--loss", "squared", "--out", out)[1] == 0
    model = cg.load_model(out)
    assert (model.row_labels, model.column_labels) == (("ann", "bob"), ("tea, green", 'the "ale"'))
    (tmp_path / "pairs.csv").write_text('ann,"tea, green"\nbob,"the ""ale"""\n')
    code, printed, err = run(capsys, "predict", out, tmp_path / "pairs.csv")
    assert code == 0 and err == "" and printed.splitlines()[2].startswith('bob,"the ""ale""",')
    (tmp_path / "spaces.txt").write_text("1 2  3.5\n1   3 4\n2 2 1\n")
    assert answer(capsys, "complete", tmp_path / "spaces.txt", "--radius", 1)[0]["shape"] == [2, 2]


@pytest.mark.slow
def test_options_reach_the_estimator(capsys, entries, ratings):
    for options, settings in (
        (["--no-biases"], {"biases": False}),
        (["--bias-shrinkage", 5, "--range=-1,1"], {"bias_shrinkage": 5.0, "value_range": (-1.0, 1.0)}),
        (["--no-weighted"], {"weighted": False}),
        (["--tol", 1e-6], {"tol": 1e-6}),
        (["--loss", "huber:delta=0.2"], {"loss": cg.losses.Huber(0.2)}),
    ):
        found, code = answer(capsys, "complete", ratings, *RADIUS, *options)
        own, _, _ = fitted(entries, **settings)
        assert code == 0 and found["objective"] == own.result_.objective and found["loss"] == repr(own.model_.loss)
    found, code = answer(capsys, "complete", ratings, *RADIUS, "--tol", 1e-12, "--max-steps", 2)
    assert (code, found["status"], found["n_steps"]) == (1, "MAX_STEPS", 2)
    found, code = answer(capsys, "complete", ratings, *RADIUS, "--tol", 1e-14, "--max-time", 0)
    assert (code, found["status"]) == (1, "MAX_TIME")


def test_the_radius_is_chosen(capsys, entries, ratings):
    found, code = answer(capsys, "complete", ratings, "--seed", 3, "--loss", "squared")
    own, _, _ = fitted(entries, radius=None, random_state=3)
    assert code == 0 and found["radius"] == own.radius_
    code, printed, err = run(capsys, "complete", ratings, "--cv", 3, "--radii", "5,20,40", "--quiet")
    assert (code, err) == (0, "") and printed.count("<- chosen") == 1 and "(chosen by 3 folds)" in printed
    code, printed, _ = run(capsys, "complete", ratings, "--quiet", "--tol", 0.1)
    assert "(chosen by held-out entries)" in printed


def test_unseen_places_are_counted(capsys, entries, ratings, tmp_path):
    out, pairs = tmp_path / "m.npz", tmp_path / "pairs.csv"
    answer(capsys, "complete", ratings, *RADIUS, "--out", out)
    own, i, j = fitted(entries)
    pairs.write_text("user,film\nu0,film 1\nnobody,film 1\nu0,nothing\nu0,film 1\n")
    scores, code = answer(capsys, "predict", out, pairs, "--out", tmp_path / "p.csv")
    assert code == 0 and scores == {"n_samples": 4, "n_unseen": 2, "out": str(tmp_path / "p.csv")}
    p = [float(line.rsplit(",", 1)[1]) for line in (tmp_path / "p.csv").read_text().splitlines()[1:]]
    row = i[entries.rows == 0][0]
    column = j[entries.cols == 1][0]
    expected = [own.predict([row], [column])[0], own.intercept_ + own.column_bias_[column]]
    expected += [own.intercept_ + own.row_bias_[row], expected[0]]
    np.testing.assert_allclose(p, expected)
    pairs.write_text("u0,film 1\nu1,film 2\n")  # places that the model knows are no header
    assert answer(capsys, "predict", out, pairs, "--out", tmp_path / "p.csv", "--force")[0]["n_samples"] == 2
    code, printed, err = run(capsys, "predict", out, ratings)
    assert code == 0 and err.startswith("rmse ") and printed.count("\n") == 351
    swapped = tmp_path / "swapped.csv"
    swapped.write_text("film,user\nfilm 1,u0\n")
    assert answer(capsys, "predict", out, swapped, "--columns", "user,film", "--out", tmp_path / "q.csv")[0][
        "n_unseen"
    ] == 0  # fmt: skip


def test_models_of_estimators_are_predicted_by_numbers(capsys, entries, tmp_path):
    out, pairs = tmp_path / "m.npz", tmp_path / "pairs.csv"
    model = cg.MatrixCompletion(30.0, "squared").fit(entries.rows, entries.cols, entries.values)
    model.save(out)
    pairs.write_text("3,4\n29,19\n")
    code, printed, _ = run(capsys, "predict", out, pairs)
    assert code == 0
    expected = model.predict([3, 29], [4, 19])
    np.testing.assert_allclose([float(line.split(",")[2]) for line in printed.splitlines()[1:]], expected)
    pairs.write_text("3,4\n29,ale\n")
    assert complaint(capsys, "predict", out, pairs) == (
        "the model has no column labels, so that a column must be a whole number from 0 on; got 'ale'."
    )


# Nothing is lost ------------------------------------------------------------------------------------------------------

LONG = ["--radius", "30", "--solver", "fw", "--tol", "0", "--quiet"]


def start_and_wait_for_checkpoint(ratings, out, *options):
    command = [sys.executable, "-m", "condgrad.cli", "complete", str(ratings), *LONG, "--out", str(out)]
    child = subprocess.Popen(
        [*command, "--checkpoint-every", "0", *options], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    deadline = time.monotonic() + 120
    while not Path(f"{out}.checkpoint").exists() and child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    return child


@pytest.mark.campaign
@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="sends SIGKILL")
def test_a_killed_run_resumes_to_the_same_bits(capsys, ratings, tmp_path):
    whole, out, most = tmp_path / "whole.npz", tmp_path / "model.npz", ["--max-steps", "200"]
    assert answer(capsys, "complete", ratings, *LONG, *most, "--out", whole)[1] == 1  # tol is 0
    child = start_and_wait_for_checkpoint(ratings, out, *most)
    child.kill()
    child.communicate()
    assert child.returncode == -signal.SIGKILL and not out.exists()
    assert "holds an unfinished run; use --resume" in complaint(capsys, "complete", ratings, *LONG, "--out", out)
    found, code = answer(capsys, "complete", ratings, *LONG, *most, "--out", out, "--resume")
    assert (code, found["status"]) == (1, "MAX_STEPS")
    assert out.read_bytes() == whole.read_bytes()
    other = complaint(capsys, "complete", ratings, *LONG, "--radius", 4, "--out", out, "--resume")
    assert "belongs to another problem" in other


@pytest.mark.campaign
@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_ctrl_c_writes_what_is_certified(entries, ratings, tmp_path):
    out = tmp_path / "model.npz"
    child = start_and_wait_for_checkpoint(ratings, out, "--no-weighted", "--max-steps", "1000000")
    child.send_signal(signal.SIGINT)
    printed, err = child.communicate(timeout=60)
    assert child.returncode == 130, err
    assert b"INTERRUPTED" in printed and err == b""
    model = cg.load_model(out)
    _, i, j = fitted(entries)
    problem = cg.CompletionProblem(
        i, j, entries.values, cg.losses.Huber(), cg.constraints.NuclearBall(30.0), biases=True
    )
    A, B = model.factors
    assert model.status is cg.Status.INTERRUPTED
    assert model.gap == pytest.approx(problem.gap(A @ B.T), rel=1e-3)  # each with the bound of its own Lanczos run


def test_ctrl_c_while_a_radius_is_chosen_writes_nothing(capsys, ratings, tmp_path, monkeypatch):
    monkeypatch.setattr(factor_walk, "refit", lambda *given: signal.raise_signal(signal.SIGINT))
    code, printed, err = run(capsys, "complete", ratings, "--cv", 3, "--quiet", "--out", tmp_path / "m.npz")
    assert (code, printed, err) == (130, "", "condgrad complete: interrupted; nothing was written.\n")
    assert not (tmp_path / "m.npz").exists()


def test_outputs_are_checked_before_any_work(capsys, tmp_path):
    out, nothing = tmp_path / "there.npz", tmp_path / "nothing.csv"
    out.write_bytes(b"precious")
    assert complaint(capsys, "complete", nothing, "--out", out) == f"{str(out)!r} exists; use --force to overwrite it."
    assert "--plot writes .png, .pdf, .svg" in complaint(capsys, "complete", nothing, "--plot", tmp_path / "run.gif")
    assert "--resume needs --out or --checkpoint" in complaint(capsys, "complete", nothing, "--resume")
    assert out.read_bytes() == b"precious"


# Bad input ------------------------------------------------------------------------------------------------------------

CSV = "user,film,stars\n1,7,4\n2,7,3\n"


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("r.csv", CSV + "1,8,x\n", "r.csv, line 4: column 'stars' must hold a finite number; got 'x'."),
        ("r.csv", CSV + "1,8,nan\n", "r.csv, line 4: column 'stars' must hold a finite number; got 'nan'."),
        ("r.csv", CSV + "1,8,1_0\n", "r.csv, line 4: column 'stars' must hold a finite number; got '1_0'."),
        ("r.csv", CSV + "1,8\n", "r.csv, line 4: there must be 3 fields; got 2."),
        ("r.csv", CSV + "1,8,3,9\n", "r.csv, line 4: there must be 3 fields; got 4."),
        ("r.csv", CSV + ",8,3\n", "r.csv, line 4: the name of the row is missing."),
        ("r.csv", CSV + "1, ,3\n", "r.csv, line 4: the name of the column is missing."),
        (
            "r.csv",
            CSV + "\n3,7,1\n1,7,5\n",
            "r.csv, lines 2 and 6: both are for row '1' and column '7'; give each place once.",
        ),
        ("r.csv", CSV + '1,"8,3\n', "r.csv, line 4: unexpected end of data."),
        ("r.csv", CSV.encode() + b"1,\xff,1\n", "r.csv, line 4: the byte 0xff is not UTF-8 text."),
        ("r.csv", CSV + "1,\0,1\n", "r.csv, line 4: there is a zero byte, which text does not have."),
        ("r.csv", "1,7,x\n", "r.csv, line 1: column 3 must hold a finite number; got 'x'."),
        ("r.csv", "1,7\n2,8\n", "r.csv, line 1: there must be 3 fields, row, column and value; got 2."),
        ("r.dat", "1::7::4::9\n1::8::x::9\n", "r.dat, line 2: column 3 must hold a finite number; got 'x'."),
        ("r.dat", "1::7::4::9\n1::8::3\n", "r.dat, line 2: there must be 4 fields; got 3."),
        ("u.data", "1\t7\t4\n1\t7\t4\n", "u.data, lines 1 and 2: both are for row '1' and column '7'; give each place "
         "once."),
        ("r.csv", "a,b,c\n", "r.csv holds no entries."),
        ("r.csv", "\n \n", "r.csv holds no entries."),
        ("r.csv", "", "r.csv is empty."),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_file_is_told_with_its_line(capsys, tmp_path, name, content, sentence):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert complaint(capsys, "complete", path, "--radius", 1) == sentence


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--radius", "-1"], "radius must be a positive number"),
        (["--radius", "1", "--cv", "3"], "--radius gives the radius and --cv chooses one"),
        (["--radii", "1,2"], "use --radius, or add --cv K."),
        (["--cv", "1"], "cv must be a number of folds, at least 2; got 1."),
        (["--loss", "hubr"], "Did you mean 'huber'?"),
        (["--loss", "logistic"], "complete predicts the entries themselves, and Logistic does not; use huber"),
        (["--loss", "poisson"], "Poisson does not"),
        (["--loss", "welsch"], "is not convex"),
        (["--solver", "pairwise", "--radius", "1"], "requires iterates that are arrays"),
        (["--tol", "-1"], "tol must be a number of at least 0"),
        (["--columns", "userId,movieId"], "columns must be three columns: row, column and value"),
        (["--columns", "userId,movieId,stars"], "has no column 'stars'; it has 'userId', 'movieId', 'rating'"),
        (["--columns", "userId,userId,rating"], "columns must be different columns"),
        (["--header", "no"], "line 1: column 3 must hold a finite number; got 'rating'"),
        (["--test", "nowhere.csv"], "there is no file 'nowhere.csv'"),
    ],
)
def test_wrong_options_get_a_sentence(capsys, ratings, options, words):
    assert words in complaint(capsys, "complete", ratings, *options, "--quiet")


def test_options_of_the_other_kind_of_model_are_refused(capsys, ratings, tmp_path):
    out, linear, svm = tmp_path / "m.npz", tmp_path / "linear.npz", tmp_path / "d.svm"
    answer(capsys, "complete", ratings, *RADIUS, "--out", out)
    svm.write_text("1 1:1\n-1 1:2\n")
    answer(capsys, "fit", svm, "--radius", 1, "--out", linear)
    assert "--columns is for completed matrices" in complaint(capsys, "predict", linear, svm, "--columns", "1,2")
    assert "--target is for linear models" in complaint(capsys, "predict", out, ratings, "--target", "rating")
    assert "--n-features is for linear models" in complaint(capsys, "predict", out, ratings, "--n-features", 3)
    assert "leave out --format npz" in complaint(capsys, "predict", out, ratings, "--format", "npz")
    assert "two columns, or three with the value" in complaint(capsys, "predict", out, ratings, "--columns", "userId")
    assert "must hold a finite number" in complaint(capsys, "predict", out, ratings, "--header", "no")
    (tmp_path / "one.csv").write_text("u1\nu2\n")
    assert complaint(capsys, "predict", out, tmp_path / "one.csv") == (
        "one.csv, line 1: there must be 2 fields, row and column; got 1."
    )


@counted(40, 200)
def test_corrupted_model_files_are_refused(count, capsys, ratings, tmp_path):
    out, bad = tmp_path / "model.npz", tmp_path / "bad.npz"
    answer(capsys, "complete", ratings, *RADIUS, "--out", out)
    good, rng = out.read_bytes(), np.random.default_rng(0)
    for _ in range(count):
        bad.write_bytes(corrupted(good, rng))
        sentence = complaint(capsys, "predict", bad, ratings)
        assert "is not a model of condgrad, or it is damaged: its checksum is wrong." in sentence


@counted(40, 200)
def test_corrupted_data_files_are_refused(count, capsys, entries, tmp_path):
    rng = np.random.default_rng(1)
    cells = ["abc", "", "nan", "1e999", "1_0", "0x10", "1 2", "--1", "1,1", '"', "\x00", "inf"]
    text = lines_of(entries)
    packed = gzip.compress(text.encode())
    for k in range(count):
        lines = text.splitlines()
        at = int(rng.integers(1, len(lines)))
        fields = lines[at].split(",")
        if k % 3 == 0:
            fields[2] = cells[int(rng.integers(len(cells)))]
            lines[at] = ",".join(fields)
        elif k % 3 == 1:  # a field lost, an id lost, a line twice
            kind = int(rng.integers(3))
            lines[at : at + 1] = [[",".join(fields[1:])], [",".join(["", *fields[1:]])], [lines[at]] * 2][kind]
        name, content = "r.csv", "\n".join(lines).encode()
        if k % 3 == 2:
            at = int(rng.integers(20, len(packed) - 20))
            name, content = "r.csv.gz", packed[:at] + bytes([packed[at] ^ 255]) + packed[at + 1 :]
        path = tmp_path / name
        path.write_bytes(content)
        sentence = complaint(capsys, "complete", path, "--radius", 1, "--max-steps", 1, "--quiet")
        assert sentence.startswith(f"{name}, line" if k % 3 < 2 else name), sentence


@counted(40, 200)
def test_any_bytes_give_an_answer_or_a_sentence(count, capsys, entries, tmp_path):
    text = "\n".join(lines_of(entries, "::", None).splitlines()[:12]).encode()
    path, rng = tmp_path / "r.dat", np.random.default_rng(2)
    for _ in range(count):
        content = text
        for _ in range(int(rng.integers(1, 4))):
            content = corrupted(content, rng) if content else b"\0"
        path.write_bytes(content)
        code, _, err = run(capsys, "complete", path, *RADIUS, "--max-steps", 1, "--quiet")
        assert code in (0, 1) or (code == 2 and err.count("\n") == 1), (content, err)


@pytest.mark.campaign
@pytest.mark.slow
def test_the_program_runs_as_a_process(ratings):
    command = [sys.executable, "-m", "condgrad.cli", "complete", str(ratings), "--radius", "30", "--json", "--quiet"]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert ended.returncode == 0 and json.loads(ended.stdout)["status"] == "CONVERGED" and ended.stderr == ""
    ratings.write_text(CSV + "1,7,x\n")
    ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert (ended.returncode, ended.stdout) == (2, "") and "line 4" in ended.stderr


def test_places_of_a_file_are_never_taken_for_ids():
    """An id of a row may be a number: then its place is another one."""
    rows, columns = np.array(["ann", 3, "ann", 3], dtype=object), np.array(["x", "x", "y", "y"], dtype=object)
    model = cg.MatrixCompletion(radius=50.0, tol=1e-8).fit(rows, columns, [1.0, 5.0, 2.0, 4.0]).model_
    entries = datasets.Ratings(np.array([0, 1]), np.array([0, 0]), None, (2, 1), "file", ("ann", "3"), ("x",))
    p, numbers = predict_entries(model, entries)
    assert numbers["n_unseen"] == 0
    np.testing.assert_allclose(p, model.predict(np.array(["ann", 3], dtype=object), np.array(["x", "x"], dtype=object)))
