"""Simulators keep their promises; files are read strictly, or refused with the line that is wrong."""

import bz2
import gzip
import importlib
import sys
import types

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from condgrad import datasets
from condgrad.datasets import catalogue, movielens

SIMULATORS = {
    "regression": lambda seed: datasets.simulate_regression(60, 30, n_informative=4, random_state=seed),
    "classification": lambda seed: datasets.simulate_classification(60, 30, n_informative=4, random_state=seed),
    "sparse": lambda seed: datasets.simulate_sparse(60, 300, 10, n_informative=4, random_state=seed),
    "text": lambda seed: datasets.simulate_text(60, 300, 10, n_informative=4, random_state=seed),
}


def as_dense(X):
    return X.toarray() if scipy.sparse.issparse(X) else X


@pytest.mark.slow
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
        ({"random_state": "x"}, "random_state must be a non-negative integer, a numpy Generator or None; got 'x'."),
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
        ("1 qid:3 1:1", "an entry must be index:value with a finite number; got 'qid:3'; query ids are not supported"),
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


@pytest.fixture
def cached(tmp_path, monkeypatch):
    """A cache, and a stand-in for pooch that copies from a folder instead of the network; returns both folders."""
    monkeypatch.delenv("CONDGRAD_DATA", raising=False)
    monkeypatch.setenv("CONDGRAD_CACHE", str(tmp_path / "cache"))
    site = tmp_path / "site"
    site.mkdir()

    def retrieve(url, known_hash, fname, path):
        assert url.startswith("https://") and known_hash is None
        path.mkdir(exist_ok=True)
        (path / fname).write_bytes((site / url.rsplit("/", 1)[1]).read_bytes())
        return str(path / fname)

    monkeypatch.setitem(sys.modules, "pooch", types.SimpleNamespace(retrieve=retrieve))
    return site, tmp_path / "cache"


def write_duke(site, monkeypatch, *, is_known=True):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((44, 7129)).round(2), rng.choice([-1.0, 1.0], 44)
    write_libsvm(site / "duke.bz2", X, y)
    read = datasets.read_libsvm(site / "duke.bz2", 7129)
    known = datasets.fingerprint(*read) if is_known else "0" * 64
    monkeypatch.setitem(catalogue._CATALOGUE, "duke", catalogue._CATALOGUE["duke"]._replace(fingerprint=known))
    return X, y


@pytest.mark.slow
def test_a_download_is_kept_and_checked(cached, monkeypatch):
    site, cache = cached
    X, y = write_duke(site, monkeypatch)
    with pytest.raises(FileNotFoundError, match=r"set the environment variable .*or use load\('duke', download=True\)"):
        datasets.load("duke")
    np.testing.assert_allclose(datasets.load("duke", download=True).X, X)
    (site / "duke.bz2").unlink()
    np.testing.assert_array_equal(datasets.load("duke").y, y)  # from the cache, without pooch and without asking
    with open(cache / "duke.bz2", "ab") as file:
        file.write(b"x")
    with pytest.raises(ValueError, match=r"has changed since it was downloaded.*Delete it"):
        datasets.load("duke")


def test_a_second_download_must_be_the_first_one_again(cached):
    site, cache = cached
    for numbers in ("1", "2"):
        (site / "w2a").write_text(f"1 1:{numbers}\n")
        if numbers == "2":
            (cache / "w2a").unlink()
        with pytest.raises(ValueError) as error:
            datasets.load("w2a", download=True)
        said = "should hold 3470 samples and holds 1" if numbers == "1" else "is not the file that it was at the first"
        assert said in str(error.value)
    assert not (cache / "w2a").exists()
    (cache / "w2a.sha256").unlink()  # as the error says
    with pytest.raises(ValueError, match="should hold 3470 samples"):
        datasets.load("w2a", download=True)


@pytest.mark.campaign
@pytest.mark.slow
def test_an_unfinished_download_is_not_used(cached, monkeypatch):
    site, cache = cached
    write_duke(site, monkeypatch)
    cache.mkdir()
    (cache / "duke.bz2").write_bytes(b"half")  # without the note that is written last
    with pytest.raises(FileNotFoundError):
        datasets.load("duke")
    assert datasets.load("duke", download=True).X.shape == (44, 7129)


@pytest.mark.campaign
@pytest.mark.slow
def test_a_download_with_other_numbers_is_refused(cached, monkeypatch):
    site, cache = cached
    write_duke(site, monkeypatch, is_known=False)
    with pytest.raises(ValueError, match=r"does not hold the numbers that are known for duke.*CONDGRAD_DATA"):
        datasets.load("duke", download=True)
    monkeypatch.setenv("CONDGRAD_DATA", str(cache))  # the user's own file is the user's business
    assert datasets.load("duke").X.shape == (44, 7129)


@pytest.mark.slow
def test_the_users_folder_comes_first(cached, monkeypatch, tmp_path):
    write_duke(cached[0], monkeypatch)
    datasets.load("duke", download=True)
    own = tmp_path / "own"
    own.mkdir()
    write_libsvm(own / "duke.bz2", np.ones((44, 7129)), np.repeat([-1.0, 1.0], 22))
    monkeypatch.setenv("CONDGRAD_DATA", str(own))
    np.testing.assert_array_equal(datasets.load("duke").X, np.ones((44, 7129)))


def test_downloads_without_pooch_are_refused_in_a_sentence(cached, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r'downloads need pooch: pip install "condgrad\[data\]"; or put'):
        datasets.load("a9a", download=True)


def test_the_catalogue_tells_where_data_come_from(monkeypatch):
    monkeypatch.delenv("CONDGRAD_CACHE", raising=False)
    for name in datasets.names():
        url, known = datasets.origin(name)
        assert url is None or url.startswith("https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/")
        assert known is None or (url is not None and len(known) == 64)
    assert {"rcv1", "covtype", "e2006-log1p", "w2a"} <= set(datasets.names())
    with pytest.raises(FileNotFoundError, match=r"dorothea is read from a file .*LIBSVM files\.$"):
        monkeypatch.delenv("CONDGRAD_DATA", raising=False)
        datasets.load("dorothea", download=True)  # which has no address
    with pytest.raises(ValueError, match="there is no data set named"):
        datasets.origin("nothing")


def test_a_fingerprint_is_that_of_the_numbers():
    X = scipy.sparse.random_array((20, 10), density=0.3, random_state=0, format="csr")
    y = np.arange(20.0)
    wide = X.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    assert datasets.fingerprint(X, y) == datasets.fingerprint(wide, y.astype(np.float32))
    assert datasets.fingerprint(X, y) != datasets.fingerprint(X, y[::-1])
    assert datasets.fingerprint(X, y) != datasets.fingerprint(2.0 * X, y)


def test_text_has_the_words_it_should_have():
    data = datasets.simulate_text(400, 3000, 40, random_state=0)
    X, lengths = data.X, np.diff(data.X.indptr)
    assert X.format == "csr" and X.has_canonical_format and X.indices.min() >= 0 and X.indices.max() < 3000
    assert lengths.mean() == pytest.approx(40.0, rel=0.02) and lengths.std() > 10.0
    counts = np.expm1(X.data)
    np.testing.assert_allclose(counts, counts.round(), atol=1e-9)
    assert counts.min() >= 1.0 and counts.max() > 5.0
    # Zipf: of all words that were drawn, those of ranks 1 to 10 and 101 to 1000 have the share of their logarithms.
    total = np.asarray(X.expm1().sum(axis=0)).ravel()
    assert total[100:1000].sum() / total[:10].sum() == pytest.approx(np.log(1001 / 101) / np.log(11), rel=0.1)
    assert np.mean(np.sign(X @ data.w - (X @ data.w).mean()) == data.y) > 0.7


def test_text_of_every_kind():
    numbers = datasets.simulate_text(300, 500, 30, task="regression", noise=0.1, dtype=np.float32, random_state=1)
    assert numbers.X.dtype == np.float32
    p = numbers.X @ numbers.w
    assert np.corrcoef(p, numbers.y)[0, 1] > 0.95
    assert datasets.simulate_text(1, 1, 1, random_state=0).X.toarray()[0, 0] == pytest.approx(np.log(2.0), abs=5.0)
    steep = datasets.simulate_text(
        5, 40, 20, skew=4.0, random_state=0
    ).X  # most words are never drawn: the rest is even
    assert np.diff(steep.indptr).max() <= 40 and steep.has_canonical_format
    even = datasets.simulate_text(300, 100, 20, skew=0.0, random_state=0).X
    share = np.bincount(even.indices, minlength=100) / even.nnz
    assert share.max() < 0.02


def test_text_does_not_depend_on_how_numbers_are_drawn(monkeypatch):
    module = importlib.import_module("condgrad.datasets.text")
    first = datasets.simulate_text(50, 400, 20, random_state=3)
    again = datasets.simulate_text(50, 400, 20, random_state=np.random.default_rng(3))
    np.testing.assert_array_equal(first.X.toarray(), again.X.toarray())
    monkeypatch.setattr(module, "_NUMBERS", 1000)  # documents are begun again where numbers end
    short = datasets.simulate_text(50, 400, 20, random_state=3).X
    assert short.has_canonical_format and np.diff(short.indptr).tolist() == np.diff(first.X.indptr).tolist()


def test_low_rank_entries_are_those_of_the_factors():
    data = datasets.simulate_low_rank(60, 40, 3, 1500, noise=0.0, outliers=0.1, outlier_size=7.0, random_state=0)
    places = data.rows * 40 + data.cols
    assert (np.diff(places) > 0).all() and places.size == 1500 and places.max() < 2400
    truth = (data.U @ data.V.T)[data.rows, data.cols]
    np.testing.assert_allclose(data.values[~data.is_outlier], truth[~data.is_outlier], rtol=1e-12)
    assert data.is_outlier.sum() == 150 and set(data.values[data.is_outlier]) == {-7.0, 7.0}
    assert np.linalg.matrix_rank(data.U @ data.V.T) == 3
    few = datasets.simulate_low_rank(300, 200, 2, 4000, noise=0.5, random_state=0)  # thinly: by another way
    assert np.unique(few.rows * 200 + few.cols).size == 4000
    assert np.std(few.values - (few.U @ few.V.T)[few.rows, few.cols]) == pytest.approx(0.5, rel=0.1)
    np.testing.assert_array_equal(
        few.values, datasets.simulate_low_rank(300, 200, 2, 4000, noise=0.5, random_state=0).values
    )
    assert datasets.simulate_low_rank(3, 2, 1, 6, random_state=0).values.size == 6


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: datasets.simulate_low_rank(3, 2, 1, 7), "n_entries must be at most n_rows n_cols = 6; got 7"),
        (lambda: datasets.simulate_low_rank(3, 2, 3, 6), "rank must be at most 2, the smaller side; got 3"),
        (lambda: datasets.simulate_low_rank(3, 2, 1, 6, outliers=1.5), r"outliers must be a number in \[0, 1\]"),
        (lambda: datasets.simulate_text(3, 10, 6), "words_per_document must be at most n_features / 2 = 5; got 6"),
        (lambda: datasets.simulate_text(3, 10, 2, task="ranking"), "task must be 'classification' or 'regression'"),
        (lambda: datasets.simulate_text(3, 10, 2, dtype=int), "dtype must be float64 or float32"),
    ],
)
def test_wrong_settings_of_simulators_are_named(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


@pytest.mark.parametrize(("name", "file"), [("e2006-tfidf", "E2006.train"), ("e2006-log1p.t", "log1p.E2006.test")])
def test_e2006_is_read_as_regression_and_checked(name, file, tmp_path, monkeypatch):
    monkeypatch.setenv("CONDGRAD_DATA", str(tmp_path))
    entry = catalogue._CATALOGUE[name]
    (tmp_path / file).write_text("-3.6 1:0.5 150360:1\n-4.25 7:2\n")
    with pytest.raises(ValueError, match=rf"{file} should hold {entry.n_samples} samples and holds 2"):
        datasets.load(name)
    monkeypatch.setitem(catalogue._CATALOGUE, name, entry._replace(n_samples=2))
    data = datasets.load(name)
    assert data.X.shape == (2, entry.n_features)
    np.testing.assert_array_equal(data.y, [-3.6, -4.25])


# Ratings --------------------------------------------------------------------------------------------------------------


def small_movielens(monkeypatch, rows, cols, values, *, is_known=True):
    """Make the catalogue of MovieLens one of these few ratings, and return its names."""
    X = scipy.sparse.csr_matrix((values, (rows, cols)), shape=(4, 5))
    known = datasets.fingerprint(X, np.empty(0)) if is_known else "0" * 64
    for name, entry in movielens._FILES.items():
        entry = entry._replace(shape=(4, 5), n_entries=len(values), fingerprint=known)
        monkeypatch.setitem(movielens._FILES, name, entry)


ROWS, COLS, VALUES = [3, 0, 0, 2], [1, 4, 0, 1], [4.0, 5.0, 1.0, 2.0]


def write_movielens(folder, kind):
    lines = [f"{i + 1}\t{j + 1}\t{v:g}\t874965758" for i, j, v in zip(ROWS, COLS, VALUES, strict=True)]
    text = "\n".join(lines) + "\n"
    folder.mkdir(exist_ok=True)
    if kind == "mat":
        X = scipy.sparse.csc_matrix((VALUES, (ROWS, COLS)), shape=(4, 5))
        scipy.io.savemat(folder / "movielens_1m.mat", {"X": X})
    elif kind == "dat":
        (folder / "ratings.dat").write_text(text.replace("\t", "::"))
    else:
        (folder / f"{kind}.bz2").write_bytes(bz2.compress(text.encode()))


@pytest.mark.parametrize(
    ("name", "subfolder", "kind"),
    [
        ("100k", "movielens-100k", "u.data"),
        ("100k/u1.base", "movielens-100k", "u1.base"),
        ("100k/u1.test", "ml-100k", "u1.test"),
        ("100k", ".", "u.data"),
        ("1m", "movielens-1m", "mat"),
        ("1m", "ml-1m", "dat"),
    ],
)
def test_movielens_is_read_from_its_files(folder, monkeypatch, name, subfolder, kind):
    small_movielens(monkeypatch, ROWS, COLS, VALUES)
    write_movielens(folder / subfolder, kind)
    data = datasets.load_movielens(name)
    assert data.rows.tolist() == [0, 0, 2, 3] and data.cols.tolist() == [0, 4, 1, 1]  # row by row
    assert data.values.tolist() == [1.0, 5.0, 2.0, 4.0] and data.shape == (4, 5)
    assert repr(data) == f"Ratings(MovieLens {name}: 4 entries of a 4 x 5 matrix)"


def test_movielens_is_checked(folder, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"MovieLens 1m needs the file ratings\.dat or movielens_1m\.mat in"):
        datasets.load_movielens("1m")
    write_movielens(folder / "movielens-100k", "u.data")
    with pytest.raises(ValueError, match=r"u\.data\.bz2 should hold 100000 ratings and holds 4: it is incomplete"):
        datasets.load_movielens("100k")
    small_movielens(monkeypatch, ROWS, COLS, VALUES, is_known=False)
    with pytest.raises(ValueError, match="does not hold the numbers that are known for 100k: get it anew"):
        datasets.load_movielens("100k")
    small_movielens(monkeypatch, ROWS, COLS, VALUES)
    plain = folder / "movielens-100k" / "u.data"
    for text, words in (
        ("1\t9\t4\n1\t1\t5\n2\t1\t3\n2\t2\t3\n", "number users from 1 to 4 and films from 1 to 5"),
        ("0\t2\t4\n1\t1\t5\n2\t1\t3\n2\t2\t3\n", "number users from 1 to 4"),
        ("a\t2\t4\n1\t1\t5\n2\t1\t3\n2\t2\t3\n", "should number users and films; got 'a'"),
        ("1\t2\tx\n", "u.data, line 1: column 3 must hold a finite number; got 'x'"),
        ("1\t2\t3\n1\t2\t4\n", "u.data, lines 1 and 2: both are for row '1' and column '2'"),
    ):
        plain.write_text(text)
        with pytest.raises(ValueError, match=words):
            datasets.load_movielens("100k")
    (folder / "movielens_1m.mat").write_bytes(b"no matlab")
    with pytest.raises(ValueError, match=r"movielens_1m\.mat could not be read as a MATLAB file"):
        datasets.load_movielens("1m")
    scipy.io.savemat(folder / "movielens_1m.mat", {"Y": np.eye(2)})
    with pytest.raises(ValueError, match="should hold a sparse matrix X"):
        datasets.load_movielens("1m")
    with pytest.raises(ValueError, match=r"no ratings named '10k'; known: 100k, .*Did you mean '100k'"):
        datasets.load_movielens("10k")
    monkeypatch.delenv("CONDGRAD_DATA")
    with pytest.raises(FileNotFoundError, match=r"MovieLens 100k is read from a file u\.data: set the environment"):
        datasets.load_movielens("100k")


def test_fingerprints_do_not_depend_on_the_format(tmp_path, monkeypatch):
    """What is known of 1m was taken from one of its two formats; both must read the same."""
    small_movielens(monkeypatch, ROWS, COLS, VALUES)
    found = []
    for kind in ("mat", "dat"):
        write_movielens(tmp_path / kind, kind)
        monkeypatch.setenv("CONDGRAD_DATA", str(tmp_path / kind))
        found.append(datasets.load_movielens("1m"))
    np.testing.assert_array_equal(found[0].values, found[1].values)
    np.testing.assert_array_equal(found[0].cols, found[1].cols)
    assert all(entry.fingerprint is None or len(entry.fingerprint) == 64 for entry in movielens._FILES.values())


def test_ratings_keep_their_names(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text("film,stars,who\nale,4,bob\ntea,3.5,ann\nale,1,ann\n")
    data = datasets.read_ratings(path, columns="who,film,stars")
    assert (data.row_labels, data.col_labels) == (("bob", "ann"), ("ale", "tea"))
    assert (data.rows.tolist(), data.cols.tolist(), data.values.tolist()) == ([0, 1, 1], [0, 1, 0], [4.0, 3.5, 1.0])
    with pytest.raises(ValueError, match=r"r\.csv has no column 'films'; it has 'film', 'stars', 'who'\. Did you mean"):
        datasets.read_ratings(path, columns="who,films,stars")
    with pytest.raises(FileNotFoundError, match="there is no file"):
        datasets.read_ratings(tmp_path / "nothing.csv")
    path.write_text("who,who,stars\nbob,ale,4\n")
    with pytest.raises(ValueError, match="has two columns named 'who'"):
        datasets.read_ratings(path, columns="who,who,stars")
