"""Rows on disk that are used in wrong ways, or by several at once: one clear sentence, and numbers that are right."""

import os
import threading

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score, train_test_split

import condgrad as cg

RNG = np.random.default_rng(0)
X = RNG.standard_normal((2000, 5))
Y = np.where(X[:, 0] + RNG.logistic(size=2000) > 0.0, 1.0, -1.0)


def logistic(rows):
    return cg.Problem(rows, loss=cg.losses.Logistic(), constraint=cg.constraints.L1Ball(1.0))


@pytest.mark.skipif(os.name != "posix", reason="needs locks of files")
def test_two_conversions_into_one_folder(tmp_path):
    def batches():
        yield X, Y
        with pytest.raises(BlockingIOError, match=rf"is being converted by process {os.getpid()}; wait until it ends"):
            cg.rows.convert((X, Y), tmp_path / "rows", overwrite=True)
        yield X, Y

    rows = cg.rows.convert(batches(), tmp_path / "rows")
    assert rows.shape == (4000, 5) and not list((tmp_path / "rows").glob("*.lock"))
    (tmp_path / "rows" / "conversion.lock").write_text("1")  # a conversion that was killed
    assert cg.rows.convert((X, Y), tmp_path / "rows", overwrite=True).shape == (2000, 5)


def test_a_result_counts_its_own_reads(tmp_path):
    rows = cg.rows.convert((X, Y), tmp_path / "rows", chunk_bytes=2**13)
    alone = cg.minimize(logistic(rows), tol=1e-7).n_reads

    def read_meanwhile(_):
        thread = threading.Thread(target=lambda: rows.dot_each(np.ones((1, 5))))
        thread.start()
        thread.join()

    before = rows.n_reads
    result = cg.minimize(logistic(rows), tol=1e-7, callback=read_meanwhile)
    assert result.n_reads == alone < rows.n_reads - before


def test_scikit_learn_cannot_split_them(tmp_path):
    rows = cg.rows.convert((X, Y), tmp_path / "rows")
    with pytest.raises(TypeError, match=r"cannot be indexed: .* Use a CV estimator of condgrad"):
        train_test_split(rows)
    with pytest.raises(TypeError, match="cannot be indexed"):
        cross_val_score(cg.ConstrainedLogisticRegression(radius=1.0), rows, Y, error_score="raise")


@pytest.mark.parametrize("place", [3, 1000, 1999])
def test_nan_in_an_npy_file(tmp_path, place):
    bad = X.copy()
    bad[place, 2] = np.nan
    np.save(tmp_path / "bad.npy", bad)
    np.save(tmp_path / "good.npy", X)
    open_rows = lambda name: cg.rows.open(tmp_path / name, y=Y, chunk_bytes=2**13)  # noqa: E731
    says = rf"not finite, the first at position \({place}, 2\): nan. Remove or impute them"
    with pytest.raises(ValueError, match=says):
        cg.ConstrainedLogisticRegression(radius=1.0).fit(open_rows("bad.npy"))
    model = cg.ConstrainedLogisticRegression(radius=1.0).fit(open_rows("good.npy"))
    with pytest.raises(ValueError, match=says):
        model.predict(open_rows("bad.npy"))
