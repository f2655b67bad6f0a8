"""Files that strangers wrote, under right checksums: refused with one sentence that names the file, or used safely."""

import json
import re
import zlib

import numpy as np
import pytest
import scipy.sparse
from foreign_files import Folder, attempt, kinds
from mutations import resealed
from tables import QUADRATIC_ONLY

import condgrad as cg
from condgrad import datasets
from condgrad.run.sealed_file import pack, unpack, write_file

MODELS = {"model": 12, "multi model": 8, "completion model": 8, "path": 2, "libsvm": 8}
CHECKPOINTS = {"sfw": 16, "sfw-pairwise": 16, "pairwise": 10, "corrective": 10, "randomized": 10}
FAR = (2**62, 2**40, -1)
ANY = {"coins", "oracle.calls"}  # whole numbers that are places nowhere


def test_mutated_files_are_refused_or_used(tmp_path):
    counts = MODELS | CHECKPOINTS
    counts |= {name: 4 for name, kind in kinds().items() if isinstance(kind, Folder)}
    found = attempt(tmp_path, [f"{name}:{seed}" for name, count in counts.items() for seed in range(count)])
    assert len(found) == sum(counts.values()) >= 100
    assert {task: words for task, words in found.items() if words.startswith("wrong")} == {}
    ends = [words.partition(":")[0] for words in found.values()]
    assert ends.count("used") >= 10 and ends.count("refused") >= 30


def make_problem(name="sfw"):
    rng = np.random.default_rng(0)
    X = scipy.sparse.random(60, 8, 0.5, random_state=0, format="csr")
    y = np.where(rng.random(60) < 0.5, -1.0, 1.0)
    if name == "low-rank":
        rows, columns = np.divmod(np.arange(0, 200, 2), 20)
        return cg.CompletionProblem(rows, columns, np.sin(rows), cg.losses.Squared(), cg.constraints.NuclearBall(5.0))
    loss = cg.losses.Squared() if name in QUADRATIC_ONLY else cg.losses.Logistic()
    return cg.Problem(X, y, loss, cg.constraints.L1Ball(3.0))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in ("sfw", "sfw-pairwise", "randomized", "pairwise") else pytest.mark.slow)
        for name in sorted(cg.solvers.REGISTERED)
    ],
)
def test_whole_numbers_of_a_checkpoint_stay_inside(name, tmp_path):
    """Whatever a solver keeps: kernels would read and write where such numbers point."""
    path, problem = tmp_path / "run.npz", make_problem(name)
    cg.minimize(problem, name, max_steps=4, tol=0.0, random_state=0, checkpoint=path)
    header, arrays = unpack(path, ("checkpoint", 3))
    whole = [key for key, array in arrays.items() if array.dtype.kind in "iu" and not key.startswith("trace.")]
    for key in whole:
        for value in (value for value in FAR if value < 0 or key not in ANY):
            for places in (slice(None), slice(0, 1)):
                wrong = arrays[key].copy()
                wrong[places] = value
                if wrong.size == 0 or (value == -1 and wrong[places].size == (arrays[key][places] == -1).sum()):
                    continue
                write_file(path, pack("checkpoint", 3, header, arrays | {key: wrong}))
                with pytest.raises(ValueError, match=rf"run\.npz' is no checkpoint.*{re.escape(sentence_on(key))}"):
                    cg.minimize(problem, name, max_steps=400, tol=0.0, random_state=0, checkpoint=path)
    write_file(path, pack("checkpoint", 3, header, arrays))
    cg.minimize(problem, name, max_steps=5, tol=0.0, random_state=0, checkpoint=path)


def sentence_on(key):
    return "contradict each other" if key.startswith("state.") else f"its array {key!r} holds"


@pytest.mark.parametrize("key", ["w", "p", "alpha", "weights", "atoms.value", "best_w", "trace.gap", "gap"])
def test_what_a_checkpoint_lacks_is_named(key, tmp_path):
    path, problem = tmp_path / "run.npz", make_problem()
    cg.minimize(problem, "pairwise", max_steps=4, tol=0.0, checkpoint=path)
    header, arrays = unpack(path, ("checkpoint", 3))
    arrays.pop(key, None)
    header["numbers"].pop(key, None)
    write_file(path, pack("checkpoint", 3, header, arrays))
    with pytest.raises(ValueError, match=rf"run\.npz' is no checkpoint .*'{re.escape(key)}'.*; delete it, or use"):
        cg.minimize(problem, "pairwise", max_steps=9, tol=0.0, checkpoint=path)


def test_a_checkpoint_lends_no_certificate(tmp_path):
    """The values that belong to a matrix, of which it is certified, are computed anew."""
    path, problem = tmp_path / "run.npz", make_problem("low-rank")
    cg.minimize(problem, "low-rank", max_steps=2, tol=0.0, checkpoint=path)
    header, arrays = unpack(path, ("checkpoint", 3))
    write_file(path, pack("checkpoint", 3, header, arrays | {"U": arrays["U"][::-1].copy()}))
    result = cg.minimize(problem, "low-rank", max_steps=2, tol=1e-7, checkpoint=path)
    known = problem.evaluate(result.w)
    assert result.objective == pytest.approx(known.objective, rel=1e-9)
    assert result.gap == pytest.approx(known.gap, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("key", ["w", "best_w", "promising_w"])
def test_iterates_of_a_checkpoint_lie_in_the_set(key, tmp_path):
    path, problem = tmp_path / "run.npz", make_problem()
    cg.minimize(problem, "pairwise", max_steps=4, tol=0.0, checkpoint=path)
    header, arrays = unpack(path, ("checkpoint", 3))
    write_file(path, pack("checkpoint", 3, header, arrays | {key: 10.0 * arrays[key]}))
    with pytest.raises(ValueError, match=r"run\.npz' is no checkpoint .* outside L1Ball\(radius=3\.0\); delete it"):
        cg.minimize(problem, "pairwise", max_steps=9, tol=0.0, checkpoint=path)


WRONG_HEADERS = {
    "no intercept": ({"intercept": ...}, "'intercept' is missing"),
    "an intercept in words": ({"intercept": "x"}, "its intercept cannot be 'x'"),
    "a negative gap": ({"gap": -1}, "its gap cannot be -1"),
    "no gap at all": ({"gap": float("nan")}, "its gap cannot be nan"),
    "an unknown status": ({"status": "FOO"}, "'FOO' is missing"),
    "one class": ({"classes": ["a"]}, "its classes must be 2 different labels"),
    "one class twice": ({"classes": ["a", "a"]}, "its classes must be 2 different labels"),
    "too few names": ({"feature_names": ["a"]}, "it has 1 feature_names for 5 features"),
    "names that are none": ({"feature_names": [1, 2, 3, 4, 5]}, "its feature_names cannot be 1"),
    "a huge number of features": ({"n_features": 2**52}, ""),
    "a negative number of features": ({"n_features": -1}, "its n_features cannot be -1"),
    "a loss without parameters": ({"loss": {"name": "huber"}}, "'parameters' is missing"),
    "a loss with a wrong one": ({"loss": {"name": "huber", "parameters": {"delta": -1.0}}}, "delta"),
    "a set that is no word": ({"constraint": ["\x1b[31mred"]}, "its constraint cannot be "),
}
WRONG_ARRAYS = {
    "nan": ({"values": np.array([np.nan])}, "its array 'values' holds nan"),
    "inf": ({"values": np.array([np.inf])}, "its array 'values' holds numbers that are too large"),
    "too many": ({"values": np.ones(2)}, r"its array 'values' has the shape \(2,\) instead of \(1,\)"),
    "an index too large": ({"indices": np.array([5])}, "its array 'indices' holds 5 to 5 instead of 0 to 4"),
    "a negative index": ({"indices": np.array([-1])}, "its array 'indices' holds -1 to -1 instead of 0 to 4"),
    "no whole numbers": ({"indices": np.array([1.0])}, "its array 'indices' is of float64 instead of int64"),
}


@pytest.mark.parametrize("name", [*WRONG_HEADERS, *WRONG_ARRAYS])
def test_wrong_models_are_refused(name, tmp_path):
    path, y = tmp_path / "m.npz", np.array([-1.0, -1.0, -1.0, 1.0, 1.0])
    problem = cg.Problem(np.eye(5), y, cg.losses.Logistic(), cg.constraints.L1Ball(1.0))
    cg.save_model(path, cg.Model.of(problem, cg.minimize(problem), classes=["no", "yes"]))
    header, arrays = unpack(path, ("model", 1))
    arrays = {"indices": np.array([0]), "values": np.ones(1)}
    change, words = (WRONG_HEADERS | WRONG_ARRAYS)[name]
    if name in WRONG_ARRAYS:
        arrays |= change
    else:
        header = {key: value for key, value in (header | change).items() if value is not ...}
    write_file(path, pack("model", 1, header, arrays))
    with pytest.raises(ValueError, match=rf"m\.npz' is no model that condgrad has written: .*{words}") as caught:
        cg.load_model(path)
    assert str(caught.value).isprintable()


def test_deep_and_compressed_contents_are_refused(tmp_path):
    path = tmp_path / "m.npz"
    problem = cg.Problem(np.eye(2), np.ones(2), cg.losses.Squared(), cg.constraints.L1Ball(1.0))
    cg.save_model(path, cg.Model.of(problem, cg.minimize(problem)))
    with np.load(path) as members:
        arrays = dict(members)
    deep = np.frombuffer(b"[" * 100_000 + b"]" * 100_000, np.uint8)
    for content in (resealed(arrays | {"header": deep}), resealed(arrays, is_compressed=True)):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"m\.npz' is not a model of condgrad \(.*\)\.$"):
            cg.load_model(path)


@pytest.mark.parametrize("name", ["indices", "indptr"])
def test_a_copy_with_places_outside_is_not_used(name, tmp_path):
    path, copy = tmp_path / "a.svm", tmp_path / "a.svm.condgrad"
    path.write_text("1 1:1 3:2\n-1 2:1\n")
    X, _ = datasets.read_libsvm(path, cache=True)
    head, _, body = copy.read_bytes().partition(b"\n")
    head = json.loads(head)
    kind = np.dtype(head["arrays"][name][0])
    own = getattr(X, name).astype(kind).tobytes()
    wrong = np.full(getattr(X, name).size, 2**30, kind).tobytes()
    assert own in body
    body = body.replace(own, wrong, 1)
    copy.write_bytes(json.dumps(head | {"crc32": zlib.crc32(body)}).encode() + b"\n" + body)
    again, _ = datasets.read_libsvm(path, cache=True)
    np.testing.assert_array_equal(again.toarray(), X.toarray())
