"""What happens to files of strangers: each is refused with one sentence, or used, with answers that are checked.

A worker process tries one mutation after the other (``python foreign_files.py FOLDER kind:seed ...``) and says what
became of each; :func:`attempt` starts workers, another one whenever one dies or hangs, and returns what went wrong.
"""

import contextlib
import io
import json
import os
import pathlib
import queue
import shutil
import subprocess
import sys
import threading
import traceback
import warnings
import zlib

import numpy as np
import scipy.sparse
from mutations import mutated_archive, mutated_array, mutated_json

import condgrad as cg
from condgrad import datasets
from condgrad.cli.program import main
from condgrad.storage import manifest as manifests
from condgrad.storage.array_files import write_array
from condgrad.storage.sealed_json import sealed

PATIENCE, FIRST_PATIENCE = 60.0, 600.0  # seconds for a mutation, and for the first use of a kind, which may compile
N, D = 60, 8
REFUSALS = (ValueError, OSError)


def data(n=N, d=D):
    """Return dense data with two classes."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return X, np.where(X[:, 0] + 0.5 * rng.standard_normal(n) > 0.0, 1.0, -1.0)


class SealedFile:
    """A kind of sealed file: how one is made, how it is used, and what becomes of one that nobody changed."""

    name, end = "file.npz", "used"

    def mutate(self, rng, path):
        path.write_bytes(mutated_archive(rng, path.read_bytes()))


class LinearModel(SealedFile):
    def __init__(self, estimator, y=None):
        self.estimator, self.y = estimator, y

    def make(self, path):
        X, y = data()
        cg.save_model(path, self.estimator.fit(X, y if self.y is None else self.y))

    def use(self, path):
        model, (X, _) = cg.load_model(path), data()
        repr(model)
        coef = model.w if hasattr(model, "w") else model.coef
        assert np.isfinite(coef).all()
        if model.n_features == D and np.abs(coef).max() < 1e100:  # predictions cannot overflow
            assert np.isfinite(model.decide(X)).all()
            prediction = model.predict(X)
            assert len(prediction) == N and (prediction.dtype.kind not in "f" or np.isfinite(prediction).all())
            chances = model.probabilities(X)
            assert chances is None or np.isfinite(chances).all()
        assert (np.atleast_1d(model.gap) >= 0.0).all()
        cg.save_model(path.with_name("again.npz"), model)


class Completed(SealedFile):
    def make(self, path):
        rows, columns = np.divmod(np.arange(0, 120, 2), 10)
        values = np.sin(rows) * np.cos(columns)
        words = np.array([f"row {k}" for k in range(12)])[rows]
        estimator = cg.MatrixCompletion(radius=5.0, random_state=0)
        cg.save_model(path, estimator.fit(words, columns, values))

    def use(self, path):
        model = cg.load_model(path)
        repr(model)
        m, n = model.shape
        if m and n:
            assert np.isfinite(model.at(np.arange(m), np.zeros(m, np.int64))[0]).all()
            if model.is_row_seen[0] and model.is_column_seen.any():
                model.recommend_at(0, 3, np.empty(0, np.int64))
        assert model.gap >= 0.0
        cg.save_model(path.with_name("again.npz"), model)


class Path(SealedFile):
    """The file of a path: numbers for other programs, which condgrad itself never takes for a model."""

    end = "refused"

    def make(self, path):
        X, y = data()
        np.savez(path.with_name("data.npz"), X=X, y=y)
        with contextlib.redirect_stdout(io.StringIO()):
            main(["path", str(path.with_name("data.npz")), "--n-radii", "5", "--out", str(path), "--quiet", "--force"])

    def use(self, path):
        cg.load_model(path)
        raise AssertionError("a path was taken for a model")


class Checkpoint(SealedFile):
    def __init__(self, solver, loss=None, constraint=None, *, is_sparse=False, intercept=False, steps=7, kind="linear"):
        self.solver, self.loss, self.constraint, self.steps = solver, loss, constraint, steps
        self.is_sparse, self.intercept, self.kind = is_sparse, intercept, kind

    def problem(self, path):
        X, y = data()
        constraint = cg.constraints.L1Ball(3.0) if self.constraint is None else self.constraint
        loss = cg.losses.Logistic() if self.loss is None else self.loss
        if self.kind == "completion":
            rows, columns = np.divmod(np.arange(0, 200, 2), 20)
            return cg.CompletionProblem(rows, columns, np.sin(rows) + np.cos(columns), loss, constraint)
        if self.kind == "softmax":
            return cg.SoftmaxProblem(X, np.arange(N) % 3, constraint, intercept=self.intercept)
        if self.kind == "chunks":
            folder = path.with_name("chunks")
            if not folder.exists():
                cg.rows.convert((X, y), folder, chunk_bytes=N * 16, random_state=0)
            return cg.Problem(cg.rows.open(folder), loss=loss, constraint=constraint)
        if self.kind == "wide":  # where a tree finds the best vertex
            rng = np.random.default_rng(1)
            X = scipy.sparse.random(40, 3000, 0.001, format="csr", random_state=rng)
            return cg.Problem(X, y[:40], loss, constraint)
        return cg.Problem(
            scipy.sparse.csr_matrix(X) if self.is_sparse else X, y, loss, constraint, intercept=self.intercept
        )

    def run(self, path, max_steps):
        problem, settings = self.problem(path), {"tol": 1e-7, "random_state": 0, "max_time": 5.0}
        return problem, cg.minimize(problem, self.solver, max_steps=max_steps, checkpoint=path, **settings)

    def make(self, path):
        self.run(path, self.steps)

    def use(self, path):
        problem, result = self.run(path, self.steps + 30)
        w = result.w if isinstance(result.w, np.ndarray) else result.w.to_dense()
        assert np.isfinite(w).all()
        if result.status is cg.Status.OUTSIDE:
            return
        known = problem.evaluate(result.w)
        assert np.isfinite(result.objective) and result.gap >= 0.0
        assert abs(known.objective - result.objective) <= 1e-9 * max(1.0, abs(known.objective))
        assert abs(known.gap - result.gap) <= 1e-6 * max(1.0, abs(known.gap)) + 10.0 * known.rounding
        assert result.status is not cg.Status.CONVERGED or result.gap <= 1e-6 or self.kind == "completion"


class Libsvm:
    name, end = "a.svm", "used"

    def make(self, path):
        X, y = data()
        X[np.abs(X) < 0.5] = 0.0
        lines = [
            f"{t:g} " + " ".join(f"{j + 1}:{v:.6g}" for j, v in enumerate(x) if v) for t, x in zip(y, X, strict=True)
        ]
        path.write_text("\n".join(lines) + "\n")
        self.read(path)

    def read(self, path):
        return datasets.read_libsvm(path, cache=True)

    def mutate(self, rng, path):
        beside = path.with_name(path.name + ".condgrad")
        head, _, body = beside.read_bytes().partition(b"\n")
        head, arrays, start = json.loads(head), {}, 0
        for name, (dtype, size) in head["arrays"].items():
            stop = start + size * np.dtype(dtype).itemsize
            arrays[name], start = np.frombuffer(body[start:stop], dtype), stop
        for name in rng.permutation(list(arrays))[: rng.integers(0, 3)]:
            arrays[name] = mutated_array(rng, arrays[name])
        crc, kinds = 0, {}
        for name, array in arrays.items():
            crc, kinds[name] = zlib.crc32(array.tobytes(), crc), [array.dtype.str, array.size]
        head |= {"arrays": kinds, "crc32": crc}
        head = mutated_json(rng, head) if rng.integers(2) else head
        beside.write_bytes(json.dumps(head).encode() + b"\n" + b"".join(array.tobytes() for array in arrays.values()))

    def use(self, path):
        X, y = self.read(path)[:2]
        constraint = cg.constraints.L1Ball(1.0)
        result = cg.minimize(cg.Problem(X, y, cg.losses.Squared(), constraint), "fw", max_steps=5)
        assert np.isfinite(result.w).all() and result.gap >= 0.0


class Folder:
    """A folder of rows or columns: its manifest, or one of its arrays under a right checksum."""

    name, end = "folder", "used"

    def __init__(self, layout, X):
        self.layout, self.X = layout, X

    def make(self, path):
        if self.layout == "rows":
            cg.rows.convert((self.X, data()[1]), path, chunk_bytes=2000, random_state=0)
        else:
            cg.columns.convert(self.X, path, y=data()[1])

    def mutate(self, rng, path):
        file = path / manifests.NAME
        content = json.loads(file.read_text())
        content.pop("crc32", None)
        if rng.integers(2):
            groups = [chunk["files"] for chunk in content["chunks"]] + [content["shared"]]
            entries = [(files, role) for files in groups for role in files]
            files, role = entries[rng.integers(len(entries))]
            array = np.load(path / files[role]["name"])
            entry = vars(write_array(path, files[role]["name"], mutated_array(rng, array)))
            files[role] = {name: list(part) if isinstance(part, tuple) else part for name, part in entry.items()}
        for _ in range(rng.integers(0, 3)):
            content = mutated_json(rng, content)
        file.write_text(sealed(content))

    def use(self, path):
        if self.layout == "columns":
            _, coefs, info = cg.lasso_path(cg.columns.open(path), data()[1], n_radii=5, tol=1e-2)
            assert np.isfinite(coefs.data).all() and (info.gap >= 0.0).all()
            return
        problem = cg.Problem(cg.rows.open(path), loss=cg.losses.Squared(), constraint=cg.constraints.L1Ball(1.0))
        result = cg.minimize(problem, max_steps=20, max_time=5.0)
        assert np.isfinite(result.w).all() and result.gap >= 0.0


def tables():
    """Return samples as arrays that are stored dense, sparse, and as codes of categories."""
    X = data()[0]
    sparse = scipy.sparse.csr_matrix(np.where(np.abs(X) < 0.7, 0.0, X))
    places = (7 * np.arange(2 * N)) % 4 + 4 * (np.arange(2 * N) % 2)
    codes = scipy.sparse.csr_matrix((np.ones(2 * N), (np.repeat(np.arange(N), 2), places)), shape=(N, D))
    return {"dense": X, "sparse": sparse, "codes": codes}


def kinds():
    """Return the kinds of files by name."""
    losses, sets = cg.losses, cg.constraints
    three = np.array(["low", "mid", "top"])[np.arange(N) % 3]
    groups = sets.GroupBall([0, 0, 1, 1, 2, 2, 3, 3], 2.0)
    draws, column = cg.solvers.Randomized(sample_size=3), {"sample_size": 3, "gradient": "covariates"}
    found = {
        "model": LinearModel(cg.ConstrainedLogisticRegression(radius=2.0, tol=1e-3)),
        "multi model": LinearModel(cg.ConstrainedLogisticRegression(radius=2.0, tol=1e-3), three),
        "completion model": Completed(),
        "path": Path(),
        "libsvm": Libsvm(),
        "fw": Checkpoint("fw", intercept=True),
        "fw with backtracking": Checkpoint(cg.solvers.FrankWolfe(cg.step_sizes.Backtracking())),
        "fw with an estimate": Checkpoint(cg.solvers.FrankWolfe(cg.step_sizes.AutoConditioned())),
        "lazy": Checkpoint("lazy", is_sparse=True),
        "away": Checkpoint("away", constraint=sets.Box(-1.0, 1.0)),
        "pairwise": Checkpoint("pairwise", steps=12),
        "bpcg": Checkpoint("bpcg", constraint=groups),
        "boosted": Checkpoint("boosted"),
        "corrective": Checkpoint("corrective", is_sparse=True, steps=2),
        "corrective groups": Checkpoint("corrective", constraint=groups, steps=2),
        "corrective variation": Checkpoint("corrective", constraint=sets.TotalVariationBall(1.0, 0.5), steps=2),
        "corrective rows": Checkpoint("corrective", constraint=sets.IsotonicBox(-1.0, 1.0), steps=1),
        "quadratic-correction": Checkpoint("quadratic-correction", losses.Squared(), steps=3),
        "polyatomic": Checkpoint("polyatomic", losses.Squared(), steps=3),
        "softmax": Checkpoint("pairwise", kind="softmax", intercept=True),
        "low-rank": Checkpoint("low-rank", losses.Squared(), sets.NuclearBall(5.0), kind="completion", steps=2),
        "fw in factors": Checkpoint("fw", losses.Squared(), sets.NuclearBall(5.0), kind="completion"),
        "sfw in factors": Checkpoint("sfw", losses.Squared(), sets.NuclearBall(5.0), kind="completion"),
        "randomized": Checkpoint(draws, losses.Squared(), is_sparse=True),
        "randomized covariates": Checkpoint(cg.solvers.Randomized(**column), losses.Squared()),
        "randomized smooth": Checkpoint(draws, is_sparse=True),
        "sfw of chunks": Checkpoint("sfw", kind="chunks"),
        "saga of chunks": Checkpoint("saga", kind="chunks"),
        "sfw with a tree": Checkpoint("sfw", kind="wide"),
        "sfw by epochs": Checkpoint(cg.solvers.SFW(sampling="epoch")),
    }  # fmt: skip
    quadratic = {"one-sample"}
    for name in STOCHASTIC:
        found[name] = Checkpoint(name, losses.Squared() if name in quadratic else None)
    for name, X in tables().items():
        found[f"{name} rows"] = Folder("rows", X)
        found[f"{name} columns"] = Folder("columns", X)
    return found


def is_stochastic(solver):
    return hasattr(solver, "_fields") and solver.__name__ != "Randomized"


STOCHASTIC = [name for name, solver in cg.solvers.REGISTERED.items() if is_stochastic(solver)]


def work(folder, tasks):
    """Try mutations, and print what became of each."""
    warnings.simplefilter("ignore")
    known, made = kinds(), set()
    for task in tasks:
        name, seed = task.rsplit(":", 1)
        kind, pristine, place = known[name], folder / "whole" / name, folder / "work"
        if name not in made:
            shutil.rmtree(pristine, ignore_errors=True)
            pristine.mkdir(parents=True)
            kind.make(pristine / kind.name)
            made.add(name)
            _copy(pristine, place)
            assert (end := outcome(kind, place / kind.name)).startswith(kind.end), f"{name}, as it was made: {end}"
        _copy(pristine, place)
        kind.mutate(np.random.default_rng(int(seed)), place / kind.name)
        print(f"began {task}", flush=True)
        print(f"ended {task}\t{outcome(kind, place / kind.name)}", flush=True)


def _copy(source, target):
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)


def outcome(kind, path):
    """Return "used", "refused: " and the sentence, or "wrong: " and why."""
    try:
        with np.errstate(all="ignore"):
            kind.use(path)
        return "used"
    except Exception as error:
        frame, words = traceback.extract_tb(error.__traceback__)[-1], " ".join(str(error).split())
        is_ours = "condgrad" in pathlib.Path(frame.filename).parts and isinstance(error, REFUSALS)
        if is_ours and not isinstance(error, UnicodeError) and "\n" not in str(error) and words.endswith((".", "?")):
            return f"refused: {words}"
        place = f"{pathlib.Path(frame.filename).name}, line {frame.lineno}"
        return f"wrong: {type(error).__name__}: {words[:300]} ({place})"


def attempt(folder, tasks):
    """Try all tasks, written kind:seed, in workers; return what became of each."""
    left, found = list(tasks), {}
    environment = os.environ | {"PYTHONPATH": str(pathlib.Path(cg.__file__).parents[1])}
    while left:
        command = [sys.executable, "-X", "faulthandler", __file__, str(folder), *left]
        worker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, encoding="utf-8", env=environment)
        lines = queue.Queue()
        reader = threading.Thread(target=_read, args=(worker.stdout, lines))
        reader.start()
        current, patience = left[0], FIRST_PATIENCE
        try:
            while (line := lines.get(timeout=patience)) is not None:
                what, _, rest = line.rstrip("\n").partition(" ")
                task, _, words = rest.partition("\t")
                patience = PATIENCE if what == "began" else FIRST_PATIENCE
                current = task
                if what == "ended":
                    found[task] = words
                    left.remove(task)
                    current = left[0] if left else None
            worker.wait()
            if current is not None:
                found[current] = f"wrong: the process ended with {worker.returncode}"
                left.remove(current)
        except queue.Empty:
            found[current] = f"wrong: no end within {patience:g} s"
            left.remove(current)
        finally:
            worker.kill()
            worker.wait()
            reader.join()
            worker.stdout.close()
    return found


def _read(stream, lines):
    for line in stream:
        if line.startswith(("began ", "ended ")):
            lines.put(line)
    lines.put(None)


if __name__ == "__main__":
    work(pathlib.Path(sys.argv[1]), sys.argv[2:])
