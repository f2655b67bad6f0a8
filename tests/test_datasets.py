"""Simulators keep their promises; files are read strictly, or refused with the line that is wrong."""

import bz2
import gzip

import numpy as np
import pytest
import scipy.sparse

from condgrad import datasets

SIMULATORS = {
    "regression": lambda seed: datasets.simulate_regression(60, 30, n_informative=4, random_state=seed),
    "classification": lambda seed: datasets.simulate_classification(60, 30, n_informative=4, random_state=seed),
    "sparse": lambda seed: datasets.simulate_sparse(60, 300, 10, n_informative=4, random_state=seed),
}


def as_dense(X):
    return X.toarray() if scipy.sparse.issparse(X) else X


@pytest.mark.parametrize("kind", SIMULATORS)
def test_simulators_depend_on_the_seed_alone(kind):
    first, second, other = (SIMULATORS[kind](seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(as_dense(first.X), as_dense(second.X))
    np.testing.assert_array_equal(first.y, second.y)
    assert not np.array_equal(as_dense(first.X), as_dense(other.X))
    generator = SIMULATORS[kind](np.random.default_rng(1))
    np.testing.assert_array_equal(first.y, generator.y)


@pytest.mark.parametrize("kind", SIMULATORS)
def test_the_truth_is_sparse_and_explains_the_targets(kind):
    data = SIMULATORS[kind](0)
    assert np.count_nonzero(data.w) == 4
    p = data.X @ data.w
    if kind == "regression":
        assert np.std(data.y - p) < 0.2 * np.std(p)
    else:
        assert set(data.y.tolist()) == {-1.0, 1.0}
        assert np.mean(np.sign(p - p.mean()) == data.y) > 0.65


def test_noise_free_regression_is_exact():
    data = datasets.simulate_regression(20, 5, noise=0.0, random_state=0)
    np.testing.assert_allclose(data.y, data.X @ data.w)


def test_correlation_is_as_asked():
    X = datasets.simulate_regression(20_000, 3, correlation=0.7, random_state=0).X
    np.testing.assert_allclose(np.corrcoef(X.T), [[1, 0.7, 0.49], [0.7, 1, 0.7], [0.49, 0.7, 1]], atol=0.03)


def test_sparse_rows_are_short_and_of_unit_length():
    X = datasets.simulate_sparse(200, 1000, 20, random_state=0).X
    assert X.format == "csr" and X.has_canonical_format
    assert np.diff(X.indptr).max() <= 20
    np.testing.assert_allclose(X.multiply(X).sum(axis=1).A1, 1.0)
    frequent, rare = X[:, :100].nnz, X[:, -100:].nnz
    assert frequent > 5 * rare
    assert datasets.simulate_sparse(1, 1, 1, random_state=0).X.shape == (1, 1)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"n_samples": 0}, "n_samples must be an integer of at least 1; got 0."),
        ({"n_features": 2.5}, "n_features must be an integer of at least 1; got 2.5."),
        ({"n_informative": True}, "n_informative must be an integer of at least 1; got True."),
        ({"correlation": 1.0}, "correlation must be a number in [0, 1); got 1.0."),
        ({"noise": -1.0}, "noise must be a number of at least 0; got -1.0."),
        ({"random_state": "x"}, "random_state must be an integer, a numpy Generator or None; got 'x'."),
    ],
)
def test_wrong_settings_are_named(wrong, sentence):
    with pytest.raises(ValueError) as error:
        datasets.simulate_regression(**{"n_samples": 10, "n_features": 5, **wrong})
    assert str(error.value) == sentence


def test_wrong_settings_of_the_others_are_named():
    with pytest.raises(ValueError, match="per_row must be at most n_features=5; got 6"):
        datasets.simulate_sparse(10, 5, 6)
    with pytest.raises(ValueError, match="margin must be a positive, finite number"):
        datasets.simulate_classification(10, 5, margin=float("inf"))


GOOD = "1 1:0.5 3:-2e-1\n-1 2:1 # a comment with 1_0\n\n+1\n"


@pytest.mark.parametrize(("suffix", "opener"), [("", open), (".bz2", bz2.open), (".gz", gzip.open)])
def test_reads_plain_and_compressed_files(tmp_path, suffix, opener):
    path = tmp_path / f"data{suffix}"
    with opener(path, "wb") as file:
        file.write(GOOD.encode())
    X, y = datasets.read_libsvm(path, n_features=4)
    np.testing.assert_array_equal(X.toarray(), [[0.5, 0, -0.2, 0], [0, 1, 0, 0], [0, 0, 0, 0]])
    np.testing.assert_array_equal(y, [1, -1, 1])


def test_a_file_that_never_uses_the_first_index_is_not_shifted(tmp_path):
    path = tmp_path / "data"
    path.write_text("1 2:5\n")
    assert datasets.read_libsvm(path, n_features=3)[0].toarray().tolist() == [[0.0, 5.0, 0.0]]


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("1 1:nan", "an entry must be index:value with a finite number; got '1:nan'"),
        ("1 1:inf", "an entry must be index:value with a finite number; got '1:inf'"),
        ("1 1:1e999", "an entry must be index:value with a finite number; got '1:1e999'"),
        ("nan 1:1", "the target must be a finite number; got 'nan'"),
        ("1e999 1:1", "the target must be a finite number; got '1e999'"),
        ("abc 1:1", "the target must be a finite number; got 'abc'"),
        ("1 1:1_0", "an entry must be index:value with a finite number; got '1:1_0'"),
        ("1 1_0:1", "an entry must be index:value with a finite number; got '1_0:1'"),
        ("1 qid:3 1:1", "an entry must be index:value with a finite number; got 'qid:3'"),
        ("1 1", "an entry must be index:value with a finite number; got '1'"),
        ("1 1:", "an entry must be index:value with a finite number; got '1:'"),
        ("1 :1", "an entry must be index:value with a finite number; got ':1'"),
        ("1 -1:1", "an entry must be index:value with a finite number; got '-1:1'"),
        ("1 0:1", "indices start at 1; got 0"),
        ("1 2:1 1:1", "indices must increase; got 1 after 2"),
        ("1 2:1 2:1", "indices must increase; got 2 after 2"),
        ("1 9:1", "index 9 is beyond the 4 features"),
        ("1,2 1:1", "the target must be a finite number; got '1,2'"),
    ],
)
def test_faulty_lines_are_named(tmp_path, line, fault):
    path = tmp_path / "data"
    path.write_text(f"1 1:1\n{line}\n")
    with pytest.raises(ValueError) as error:
        datasets.read_libsvm(path, n_features=4)
    assert str(error.value) == f"data, line 2: {fault}."


def test_files_without_data_are_refused(tmp_path):
    path = tmp_path / "data"
    for nothing in ("", "\n\n", "# only a comment\n"):
        path.write_text(nothing)
        with pytest.raises(ValueError, match="data holds no samples"):
            datasets.read_libsvm(path, n_features=4)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        datasets.read_libsvm(tmp_path / "other", n_features=4)
    with pytest.raises(ValueError, match="n_features must be an integer of at least 1; got 0"):
        datasets.read_libsvm(path, n_features=0)


def test_a_truncated_file_is_noticed(tmp_path):
    path = tmp_path / "data.bz2"
    path.write_bytes(bz2.compress(GOOD.encode())[:-10])
    with pytest.raises(ValueError, match=r"data\.bz2 could not be read, it may be incomplete"):
        datasets.read_libsvm(path, n_features=4)


def write_libsvm(path, X, y):
    lines = [
        f"{label:g} " + " ".join(f"{j + 1}:{value:.6g}" for j, value in enumerate(row) if value)
        for label, row in zip(y, X, strict=True)
    ]
    path.write_bytes(bz2.compress("\n".join(lines).encode()))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("CONDGRAD_DATA", str(tmp_path))
    return tmp_path


def test_load_finds_a_file_in_a_subfolder_and_makes_labels_of_two_classes(folder):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((683, 10)).round(3), rng.choice([2.0, 4.0], 683)
    (folder / "breast").mkdir()
    write_libsvm(folder / "breast" / "breast-cancer_scale.bz2", X, y)
    data = datasets.load("breast-cancer")
    assert data.name == "breast-cancer" and data.w is None
    np.testing.assert_allclose(data.X, X)
    np.testing.assert_array_equal(data.y, np.where(y == 4.0, 1.0, -1.0))


def test_california_housing_has_averages_per_household(folder):
    rng = np.random.default_rng(0)
    raw = rng.integers(1, 100, (20640, 8)).astype(float)
    price = rng.integers(1, 6, 20640) * 100_000.0
    write_libsvm(folder / "cadata.bz2", raw, price)
    data = datasets.load("california-housing")
    np.testing.assert_allclose(data.X[:, 2], raw[:, 2] / raw[:, 5])
    np.testing.assert_allclose(data.X[:, 5], raw[:, 4] / raw[:, 5])
    np.testing.assert_allclose(data.y, price / 100_000.0)


def test_an_incomplete_file_is_noticed(folder):
    (folder / "duke.bz2").write_bytes(bz2.compress(b"1 1:1\n-1 2:1\n"))
    with pytest.raises(ValueError, match=r"duke should hold 44 samples and holds 2: it is incomplete\."):
        datasets.load("duke")


def test_load_says_what_is_missing(folder, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"a9a needs the file a9a\.bz2 in the folder .*CONDGRAD_DATA"):
        datasets.load("a9a")
    monkeypatch.setenv("CONDGRAD_DATA", str(folder / "nowhere"))
    with pytest.raises(FileNotFoundError, match="which does not exist"):
        datasets.load("a9a")
    monkeypatch.delenv("CONDGRAD_DATA")
    with pytest.raises(FileNotFoundError, match="set the environment variable CONDGRAD_DATA to the folder"):
        datasets.load("a9a")
    with pytest.raises(ValueError, match=r"there is no data set named 'A9A'.*Did you mean 'a9a'"):
        datasets.load("A9A")
