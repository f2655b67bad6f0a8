"""Options of tables and of the problem: weights, scales, radii that a rule picks, radius 0, progress of reading."""

import io
import json

import numpy as np
import pytest
import scipy.sparse
from test_cli import answer, as_csv, as_libsvm, complaint, run

import condgrad as cg
from condgrad.cli import _reading, main

N, D = 60, 6


def results(capsys, *command):
    """Return what a command prints as JSON."""
    return answer(capsys, *command)[0]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((N, D)) * [1.0, 10.0, 0.1, 1.0, 1.0, 0.0] + [0, 3, 0, 0, 1, 2]
    y = np.where(X[:, 0] + 0.3 * X[:, 1] - 0.9 + 0.5 * rng.standard_normal(N) > 0.0, 1.0, -1.0)
    return X, y, rng.integers(0, 4, N).astype(float)


@pytest.fixture
def table(data, tmp_path):
    X, y, weight = data
    lines = [",".join([*(f"x{j}" for j in range(D)), "weight", "y"])]
    words = {1.0: "yes", -1.0: "no"}
    lines += [",".join([*map(repr, row), repr(w), words[label]])
              for row, w, label in zip(X.tolist(), weight.tolist(), y.tolist(), strict=True)]  # fmt: skip
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    return tmp_path / "t.csv"


def test_weights_of_a_column_are_weights_of_the_problem(capsys, data, table, tmp_path):
    X, y, weight = data
    found = results(
        capsys, "fit", table, "--weights", "weight", "--radius", 2, "--intercept", "--out", tmp_path / "m.npz"
    )
    problem = cg.Problem(X, y, cg.losses.Logistic(), cg.constraints.L1Ball(2.0), intercept=True, sample_weight=weight)
    assert found["objective"] == pytest.approx(cg.minimize(problem, tol=1e-6).objective, abs=2e-6)
    assert found["n_features"] == D and found["classes"] == ["no", "yes"]
    np.savez(tmp_path / "t.npz", X=X, y=y, w=weight)
    again = results(capsys, "fit", tmp_path / "t.npz", "--weights", "w", "--radius", 2, "--intercept")
    assert again["objective"] == pytest.approx(found["objective"], abs=2e-6)
    kept = weight > 0.0
    grid = ("--radii", "0.5,2", "--folds", 3, "--intercept")
    scores = results(capsys, "cv", table, "--weights", "weight", *grid)
    assert len(scores["mean_loss"]) == 2 and kept.sum() < N
    path = results(capsys, "path", table, "--loss", "logistic", "--weights", "weight", "--radii", "2", "--intercept")
    assert path["objective"][0] == pytest.approx(found["objective"], abs=1e-5)


def test_weights_that_are_none_are_refused(capsys, data, table, tmp_path):
    X, y, _ = data
    assert "has no column 'wight'" in complaint(capsys, "fit", table, "--weights", "wight", "--quiet")
    assert "are both the column" in complaint(capsys, "fit", table, "--weights", "y", "--target", "y", "--quiet")
    text = complaint(capsys, "fit", table, "--weights", "x0", "--quiet")
    assert text.startswith("weights of t.csv must be numbers of at least 0, not all 0; sample ")
    (tmp_path / "t.svm").write_text(as_libsvm(X, y))
    assert "--weights is for CSV and Parquet" in complaint(
        capsys, "fit", tmp_path / "t.svm", "--weights", "1", "--quiet"
    )
    np.savez(tmp_path / "t.npz", X=X, y=y, w=np.ones(3))
    assert "must hold an array 'w' with one number" in complaint(capsys, "fit", tmp_path / "t.npz", "--weights", "w")
    (tmp_path / "two.csv").write_text("w,y\n1,2\n")
    assert "has 1 column beside the weights" in complaint(capsys, "fit", tmp_path / "two.csv", "--weights", "w")


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kind", ["csv", "svm"])
def test_standardized_fits_are_fits_of_scaled_features(capsys, data, tmp_path, kind, intercept):
    X, y, _ = data
    path, out = tmp_path / f"t.{kind}", tmp_path / "m.npz"
    path.write_text(as_csv(X, y) if kind == "csv" else as_libsvm(X, y))
    flags = ["--intercept"] if intercept else []
    found = results(capsys, "fit", path, "--standardize", "--radius", 2, "--tol", 1e-8, "--out", out, *flags)
    scale = X.std(axis=0) if intercept else np.sqrt((X**2).mean(axis=0))
    scale[scale < 1e-12] = np.inf
    problem = cg.Problem(X / scale, y, cg.losses.Logistic(), cg.constraints.L1Ball(2.0), intercept=intercept)
    expected = cg.minimize(problem, tol=1e-8)
    assert found["objective"] == pytest.approx(expected.objective, abs=2e-8)
    model = cg.load_model(out)
    own = scipy.sparse.csr_array(X) if kind == "svm" else X
    np.testing.assert_allclose(model.decide(own), X / scale @ expected.w + expected.intercept, atol=2e-3)
    path_found = results(capsys, "path", path, "--loss", "logistic", "--standardize", "--radii", "2", *flags)
    assert path_found["objective"][0] == pytest.approx(expected.objective, abs=1e-5)
    lasso = results(capsys, "path", path, "--standardize", "--radii", "0,0.5", *flags)
    assert lasso["radius"] == [0.0, 0.5] and lasso["n_nonzero"][0] == 0
    scores = results(capsys, "cv", path, "--standardize", "--radii", "0,1", "--folds", 2, *flags)
    assert scores["n_nonzero"][0] == 0.0 and scores["mean_loss"][1] < scores["mean_loss"][0]


def test_standardize_is_for_data_in_memory(capsys, data, tmp_path):
    cg.rows.convert(data[:2], tmp_path / "rows")
    assert "--standardize is for data in memory" in complaint(
        capsys, "fit", tmp_path / "rows", "--standardize", "--quiet"
    )


def test_a_rule_picks_the_radius(capsys, data, table):
    X, y, _ = data
    options = ["--weights", "weight", "--intercept"]
    found = results(capsys, "fit", table, *options)
    model = cg.ConstrainedLogisticRegression().fit(X, y, sample_weight=data[2])
    assert found["radius"] == model.radius_
    printed = run(capsys, "fit", table, *options, "--quiet")[1]
    assert f"{found['radius']:g} (chosen on held-out samples, as radius=None does)" in printed
    assert results(capsys, "fit", table, *options, "--set", "simplex")["radius"] == 1.0
    assert results(capsys, "fit", table, *options, "--set", "l1:radius=3")["radius"] == 3.0


@pytest.mark.parametrize("name", ["l1", "l2", "nonnegative-l1", "linf"])
def test_radius_0_leaves_the_intercept_alone(capsys, data, table, tmp_path, name):
    _, y, weight = data
    out = tmp_path / "m.npz"
    found = results(
        capsys, "fit", table, "--weights", "weight", "--set", name, "--radius", 0, "--intercept", "--out", out
    )
    share = weight @ (y > 0.0) / weight.sum()
    assert found["status"] == "CONVERGED" and found["n_nonzero"] == 0 and found["radius"] == 0.0
    assert found["intercept"] == pytest.approx(np.log(share / (1.0 - share)), rel=1e-6)
    assert cg.load_model(out).radius == 0.0


def test_radius_0_needs_a_set_that_contains_zero(capsys, table):
    assert "positive" in complaint(capsys, "fit", table, "--set", "simplex", "--radius", 0, "--quiet")
    assert "--radii must be numbers of at least 0" in complaint(capsys, "cv", table, "--radii", "1,-2", "--quiet")


def test_the_copy_of_a_text_is_read_the_next_time(capsys, data, tmp_path, monkeypatch):
    X, y, _ = data
    path = tmp_path / "t.svm"
    path.write_text(as_libsvm(X, y))
    found = results(capsys, "fit", path, "--radius", 1, "--cache")
    assert (tmp_path / "t.svm.condgrad").exists()
    monkeypatch.setattr("condgrad.storage.sources.libsvm_copy.read_samples", None)
    assert results(capsys, "fit", path, "--radius", 1, "--cache")["objective"] == found["objective"]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"1 1:2\n-1 1:3\n")))
    assert "standard input is none" in complaint(capsys, "fit", "-", "--radius", 1, "--cache", "--quiet")
    (tmp_path / "t.csv").write_text(as_csv(X, y))
    assert "--cache is for LIBSVM text" in complaint(capsys, "fit", tmp_path / "t.csv", "--cache", "--quiet")


@pytest.mark.parametrize("has_arrow", [True, False])
def test_tables_are_the_same_without_pyarrow(capsys, table, monkeypatch, has_arrow):
    pytest.importorskip("pyarrow")
    if not has_arrow:
        monkeypatch.setattr("condgrad.storage.sources.csv_file._arrow_csv", lambda: None)
    monkeypatch.setattr("condgrad.storage.sources.text.BATCH_BYTES", 500)
    found = results(capsys, "fit", table, "--radius", 1, "--weights", "weight")
    assert found["n_samples"] == N and found["classes"] == ["no", "yes"]
    with open(table, "a") as file:
        file.write("1,2,3,4,5,,1,yes\n")
    assert complaint(capsys, "fit", table, "--quiet") == f"t.csv, line {N + 2}: column 'x5' has no value."


def test_labels_that_are_partly_numbers_are_words(capsys, tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n1,1\n2,b\n3,1\n")
    assert results(capsys, "fit", tmp_path / "t.csv", "--radius", 1)["classes"] == ["1", "b"]
    (tmp_path / "t.csv").write_text("x,y\n1,1\n2,2.0\n3,01\n")
    assert results(capsys, "fit", tmp_path / "t.csv", "--radius", 1)["classes"] == [1, 2]


def test_long_reading_is_shown(capsys, data, tmp_path, monkeypatch):
    X, y, _ = data
    monkeypatch.setattr(_reading, "_PATIENCE", 0.0)
    monkeypatch.setattr(_reading, "_LOG_SECONDS", 0.0)
    for name, content in (("t.svm", as_libsvm(X, y)), ("t.csv", as_csv(X, y))):
        (tmp_path / name).write_text(content)
        err = run(capsys, "fit", tmp_path / name, "--radius", 1)[2]
        assert f"reading {name}  {N} samples  100%" in err
        assert "reading" not in run(capsys, "fit", tmp_path / name, "--radius", 1, "--quiet")[2]


def test_unknown_ids_are_told(capsys, tmp_path):
    ratings, pairs, out = tmp_path / "r.csv", tmp_path / "p.csv", tmp_path / "m.npz"
    ratings.write_text("user,film,stars\n" + "".join(f"u{i},f{j},{(i * j) % 5}\n" for i in range(6) for j in range(5)))
    assert main(["complete", str(ratings), "--radius", "5", "--out", str(out), "--quiet"]) in (0, 1)
    pairs.write_text("user,film\nu1,f1\nnew,f1\nu1,strange\n")
    capsys.readouterr()
    code, printed, err = run(capsys, "predict", out, pairs)
    assert code == 0 and printed.count("\n") == 4
    assert "2 of 3 entries are in rows or columns that were not in the fit (row 'new', column 'strange')" in err
    code, printed, err = run(capsys, "predict", out, pairs, "--out", tmp_path / "p.out", "--json")
    assert json.loads(printed)["n_unseen"] == 2 and "not in the fit" in err
