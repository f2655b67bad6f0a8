"""Offsets of samples on disk and on clusters: written beside y and weight, read back, and used in every pass."""

import json

import numpy as np
import pytest
import scipy.sparse
from stored import content

import condgrad as cg
from condgrad.cli import main


def data(n=300, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X, offset = rng.standard_normal((n, d)), rng.uniform(-1.0, 2.0, n)
    y = rng.poisson(np.exp(0.5 * X[:, 0] + offset)).astype(float)
    return X, y, rng.uniform(0.5, 2.0, n), offset


def poisson(X, *args, **settings):
    return cg.Problem(X, *args, cg.losses.Poisson(), cg.constraints.L1Ball(1.0), **settings)


def written(how, folder, X, y, weight, offset):
    """The rows of a folder that was converted from one kind of source, with all four parts."""
    names = ["a", "b", "c", "d", "e", "y", "v", "o"]
    if how == "arrays":
        source = {"source": (X, y, weight, offset)}
    elif how == "sparse batches":
        parts = [slice(0, 100), slice(100, 300)]
        source = {"source": [(scipy.sparse.csr_matrix(X[p]), y[p], weight[p], offset[p]) for p in parts]}
    elif how == "npy":
        np.save(folder / "X.npy", X)
        np.save(folder / "o.npy", offset)
        source = {"source": folder / "X.npy", "target": y, "weight": weight, "offset": folder / "o.npy"}
    elif how == "npz":
        np.savez(folder / "all.npz", X=X, y=y, weight=weight, offset=offset)
        source = {"source": folder / "all.npz"}
    else:
        table = np.c_[X, y, weight, offset]
        source = {"source": folder / f"table.{how}", "target": "y", "weight": "v", "offset": "o"}
        if how == "csv":
            np.savetxt(source["source"], table, delimiter=",", header=",".join(names), comments="", fmt="%.17g")
        else:
            pandas = pytest.importorskip("pandas")
            pytest.importorskip("pyarrow")
            pandas.DataFrame(table, columns=names).to_parquet(source["source"])
    return cg.rows.convert(folder=folder / "rows", chunk_bytes=4000, **source)


@pytest.mark.parametrize("how", ["arrays", "sparse batches", "npy", "npz", "csv", "parquet"])
def test_sources_with_offsets(how, tmp_path):
    X, y, weight, offset = data()
    rows = written(how, tmp_path, X, y, weight, offset)
    assert rows.n_chunks > 1 and rows.shape == X.shape
    found, *_ = content(rows)
    order = [int(np.flatnonzero((row == X).all(axis=1))[0]) for row in found]  # the samples are in random order
    np.testing.assert_array_equal(rows.offset, offset[order])
    np.testing.assert_array_equal(rows.y, y[order])
    problem, memory = poisson(rows, None), poisson(X, y, sample_weight=weight, offset=offset)
    w = np.linspace(-0.3, 0.3, 5)
    assert problem.objective(w) == pytest.approx(memory.objective(w), rel=1e-13)
    np.testing.assert_allclose(problem.gradient(w), memory.gradient(w), rtol=1e-12, atol=1e-13)
    head = rows.head(50)
    assert len(head) == 4 and head[3].shape == head[1].shape


def test_runs_on_disk_reach_the_optimum_of_memory(tmp_path):
    X, y, weight, offset = data()
    rows = cg.rows.convert((X, y, weight, offset), tmp_path / "rows", chunk_bytes=4000)
    for intercept in (False, True):
        best = cg.minimize(poisson(X, y, sample_weight=weight, offset=offset, intercept=intercept), tol=1e-10)
        found = cg.minimize(poisson(rows, None, intercept=intercept), tol=1e-7)
        assert found.status is cg.Status.CONVERGED
        assert abs(found.objective - best.objective) <= found.gap + found.rounding + 1e-9
    by_steps = cg.minimize(poisson(rows, None), "sfw", max_epochs=200, random_state=0)
    assert by_steps.objective == pytest.approx(cg.minimize(poisson(rows, None), tol=1e-7).objective, abs=1e-2)
    # Offsets that are given replace those of the folder.
    assert poisson(rows, None, offset=np.zeros(300)).objective(np.zeros(5)) == pytest.approx(1.0)


def test_versions_of_the_format(tmp_path):
    X, y, weight, offset = data()
    cg.rows.convert((X, y, weight), tmp_path / "plain")
    cg.rows.convert((X, y, weight, offset), tmp_path / "own")
    read = {name: json.loads((tmp_path / name / "manifest.json").read_text()) for name in ("plain", "own")}
    assert read["plain"]["format_version"] == 1  # as versions without offsets wrote it, and can read it
    assert read["own"]["format_version"] == 2
    assert cg.rows.open(tmp_path / "plain").offset is None
    assert len(cg.rows.open(tmp_path / "plain").head(10)) == 3
    assert cg.rows.open(tmp_path / "own").offset.shape == (300,)


def test_checkpoints_recognise_the_offsets(tmp_path):
    X, y, weight, offset = data()
    prints = [
        poisson(cg.rows.convert(parts, tmp_path / str(k)), None).fingerprint()
        for k, parts in enumerate([(X, y, weight), (X, y, weight, offset), (X, y, weight, -offset)])
    ]
    assert len(set(prints)) == 3


def test_files_of_rows_take_offsets(tmp_path):
    X, y, _, offset = data()
    np.save(tmp_path / "X.npy", X)
    rows = cg.rows.open(tmp_path / "X.npy", y, offset=offset)
    w = np.full(5, 0.1)
    assert poisson(rows, None).objective(w) == pytest.approx(poisson(X, y, offset=offset).objective(w), rel=1e-13)


def test_wrong_offsets(tmp_path):
    X, y, weight, offset = data()
    with pytest.raises(ValueError, match="offset is missing, and it was given with the first batch"):
        cg.rows.convert([(X, y, weight, offset), (X, y, weight)], tmp_path / "rows")
    with pytest.raises(ValueError, match="offset must have one entry per sample"):
        cg.rows.convert((X, y, weight, offset[1:]), tmp_path / "rows")
    with pytest.raises(
        ValueError, match=r"offset is for \.npy and Arrow files; a folder of converted data has its own"
    ):
        cg.rows.open(tmp_path, offset=offset)
    with pytest.raises(ValueError, match="a tuple of 5"):
        cg.rows.convert((X, y, weight, offset, offset), tmp_path / "rows")


def test_the_command_line_converts_offsets(tmp_path, capsys):
    X, y, _, offset = data()
    table = tmp_path / "table.csv"
    np.savetxt(table, np.c_[X, offset, y], delimiter=",", header="a,b,c,d,e,o,y", comments="", fmt="%.17g")
    arguments = ["convert", str(table), str(tmp_path / "rows"), "--offset", "o", "--no-shuffle", "--quiet"]
    assert main(arguments) == 0
    rows = cg.rows.open(tmp_path / "rows")
    assert rows.feature_names == ["a", "b", "c", "d", "e"]
    np.testing.assert_array_equal(rows.offset, offset)


def test_the_command_line_fits_and_predicts_with_offsets(tmp_path, capsys):
    X, y, _, offset = data()
    rows = cg.rows.convert((X, y, None, offset), tmp_path / "rows", shuffle=False, chunk_bytes=4000)
    problem = ["--loss", "poisson", "--intercept", "--quiet"]
    model, out = str(tmp_path / "model.npz"), tmp_path / "out.csv"
    assert main(["fit", str(tmp_path / "rows"), *problem, "--radius", "0.4", "--out", model]) == 0
    stored = cg.load_model(model)
    assert stored.has_offset
    assert main(["predict", model, str(tmp_path / "rows"), "--out", str(out)]) == 0
    written = np.loadtxt(out, skiprows=1)
    np.testing.assert_allclose(written, np.exp(X @ stored.w + stored.intercept + offset), rtol=1e-9)
    assert stored.predict(rows) == pytest.approx(written)
    capsys.readouterr()
    assert main(["cv", str(tmp_path / "rows"), *problem, "--radii", "0.1,0.4", "--folds", "3", "--json"]) == 0
    losses = json.loads(capsys.readouterr().out)["mean_loss"]
    null = np.mean(cg.losses.Poisson().value(np.zeros(300) + np.log(y.mean()), y))
    assert max(losses) < null - 0.5  # the offsets explain most of the counts


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Dask warns about many things of its own
def test_rows_of_a_cluster_have_offsets(tmp_path):
    distributed = pytest.importorskip("distributed", reason="needs dask.distributed")
    dask_array = pytest.importorskip("dask.array", reason="needs dask")
    X, y, weight, offset = data()
    w, given = np.full(5, 0.1), {"sample_weight": weight, "offset": offset}
    expected = poisson(X, y, **given)
    stored = cg.rows.convert((X, y, weight, offset), tmp_path / "rows", chunk_bytes=4000)
    made = cg.rows.convert(
        tuple(dask_array.from_array(part, chunks=(100, *part.shape[1:])) for part in (X, y, weight, offset)),
        tmp_path / "of dask",
    )
    assert poisson(made, None).objective(w) == pytest.approx(expected.objective(w), rel=1e-13)
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        parts = [dask_array.from_array(part, chunks=(100, *part.shape[1:])) for part in (X, y, weight, offset)]
        rows = cg.rows.from_dask(*parts, client=client)
        problems = [
            poisson(rows, None),
            poisson(cg.rows.from_dask(stored, client=client), None),
            poisson(cg.rows.from_dask(*parts[:3], client=client), None, offset=offset),
        ]
        for problem in problems:
            assert problem.objective(w) == pytest.approx(expected.objective(w), rel=1e-13)
            np.testing.assert_allclose(problem.gradient(w), expected.gradient(w), rtol=1e-12, atol=1e-13)
        np.testing.assert_array_equal(rows.offset, offset)
        result = cg.minimize(problems[0], tol=1e-7)
        assert result.objective == pytest.approx(cg.minimize(expected, tol=1e-9).objective, abs=1e-6)
