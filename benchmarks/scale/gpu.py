"""Passes and fits on a GPU: bytes per second beside a copy, seconds beside the processor and beside peers.

    python benchmarks/scale/gpu.py [--quick] [--parts copy dense one-hot softmax ...] [--json FILE]

It needs CuPy and an NVIDIA GPU. Every part prints its times, the best of several, and the data of one part are freed
before the next one; a part that fails says so, and the others run. The full size needs 40 GB of memory on the device
and 40 GB on the host, --quick a tenth. The peers are scikit-learn on the processor and, where they are installed,
PyTorch and cuML on the GPU.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import sys
import time
import traceback
from pathlib import Path

import numpy as np
from gpu_peers import Solved, cuml_qn, fista, lbfgs, scikit_learn

import condgrad as cg
from condgrad.paths.batched import BatchedPaths

sys.path.insert(0, str(Path(__file__).parents[1]))
from results import Report, add_option


def best_of(run, repeats, synchronize):
    """Return the least time of several runs, after one that warms up."""
    run()
    times = []
    for _ in range(repeats):
        synchronize()
        began = time.perf_counter()
        run()
        synchronize()
        times.append(time.perf_counter() - began)
    return min(times)


class Bench:
    """The parts of the benchmark, on the current GPU."""

    def __init__(self, cupy, quick):
        self.cp, self.quick = cupy, quick
        self.synchronize = cupy.cuda.Device().synchronize
        self.bandwidth = np.nan  # bytes per second that a copy reads and writes
        self.lines = []  # the table of a part: what was done, seconds, and a remark

    def free(self):
        """Give the memory of the last part back."""
        self.cp.get_default_memory_pool().free_all_blocks()

    def say(self, work, seconds, remark=""):
        """Print a line at once, and keep it for the table of this part."""
        print(f"{work}: {'' if seconds is None else f'{seconds:.4g} s'}{', ' * bool(remark)}{remark}", flush=True)
        self.lines.append([work, seconds, remark])

    def run(self, part, report):
        """Run one part, write its table, and tell whether it came to its end."""
        self.lines, began, is_whole = [], time.perf_counter(), True
        try:
            PARTS[part](self)
        except Exception as error:
            traceback.print_exc()
            self.say("this part failed", None, f"{type(error).__name__}: {error}")
            is_whole = False
        report.table(PARTS[part].__doc__.strip(), ["work", "s", "remark"], self.lines)
        self.free()
        print(f"-- {part}: {time.perf_counter() - began:.0f} s in all", flush=True)
        return is_whole

    def copy(self):
        """Measure a copy on the device, and a read."""
        cp = self.cp
        a = cp.zeros(2**31 // 4 if self.quick else 2**33 // 4, dtype=cp.float32)
        b = cp.empty_like(a)
        seconds = best_of(lambda: cp.copyto(b, a), 10, self.synchronize)
        self.bandwidth = 2 * a.nbytes / seconds
        self.say(f"copy of {a.nbytes / 1e9:.1f} GB", seconds, f"{self.bandwidth / 1e12:.2f} TB/s read and written")

    def sweep_line(self, name, seconds, n_bytes):
        """Print the time of a pass and the share of the copy's bandwidth."""
        speed = n_bytes / seconds
        self.say(name, seconds, f"{speed / 1e12:.2f} TB/s, {speed / self.bandwidth:.0%} of the copy")

    def dense_data(self, n, d):
        """Return correlated features, and classes that 30 of them decide."""
        cp = self.cp
        random = cp.random.default_rng(0)
        X = cp.empty((n, d), dtype=cp.float32)
        for top in range(0, n, 2**20):
            part = X[top : top + 2**20]
            part[:] = random.standard_normal(part.shape, dtype=cp.float32)
            part[:, 1:] += 0.5 * part[:, :-1].copy()
        w = cp.zeros(d, dtype=cp.float32)
        w[cp.asarray(np.random.default_rng(0).permutation(d)[:30])] = random.standard_normal(30, dtype=cp.float32)
        y = cp.where(random.random(n, dtype=cp.float32) < 1 / (1 + cp.exp(-(X @ w))), 1.0, -1.0)
        return X, y

    def dense(self):
        """Dense rows: the sweep, and fits with and without an intercept."""
        n, d = (1_000_000, 300) if self.quick else (10_000_000, 300)
        X, y = self.dense_data(n, d)
        problem = cg.Problem(X, y, cg.losses.Logistic(), cg.constraints.L1Ball(15.0))
        self.sweep(X, y)
        w = np.random.default_rng(0).standard_normal(d) / d
        seconds = best_of(lambda: problem.look(w), 10, self.synchronize)
        self.sweep_line("a certified look, with all that the host does", seconds, X.nbytes)
        make = functools.partial(cg.Problem, loss=cg.losses.Logistic(), constraint=cg.constraints.L1Ball(15.0))
        self.fit(make, X, y)
        self.beside_cpu(make, X, y, 1_000_000)

    def sweep(self, X, y):
        """Print the time of one pass over a dense array on the device; whole numbers are the bits of bfloat16."""
        from condgrad.linalg.device.arrays import device_by_name
        from condgrad.linalg.device.dense import DenseOnDevice
        from condgrad.problems.rows.device_samples import DeviceSamples

        device, (n, d) = device_by_name("cuda"), X.shape
        matrix = DenseOnDevice(device, X)
        losses = DeviceSamples.of(device, cg.losses.Logistic(), y.astype(np.float64), None).losses
        w, name = np.random.default_rng(0).standard_normal(d) / d, str(X.dtype).replace("uint16", "bfloat16")
        seconds = best_of(lambda: matrix.expand(w, 0.0, None, losses), 10, self.synchronize)
        self.sweep_line(f"sweep {n:,} x {d} {name}", seconds, X.nbytes)

    def shapes(self):
        """Passes over dense rows of other lengths and types."""
        cp, tenth = self.cp, 10 if self.quick else 1
        for n, d, dtype in (
            (30_000_000, 100, "float32"), (6_000_000, 512, "float32"), (3_000_000, 1000, "float32"),
            (5_000_000, 300, "float64"), (20_000_000, 300, "bfloat16"),
        ):  # fmt: skip
            X, y = self.dense_data(n // tenth, d)
            if dtype == "bfloat16":
                X = cp.concatenate([(part.view(cp.uint32) >> 16).astype(cp.uint16) for part in cp.array_split(X, 50)])
            elif dtype == "float64":
                X = X.astype(cp.float64)
            self.sweep(X, y)
            del X, y
            self.free()

    def fit(self, make, X, y, tolerances=(1e-4, 1e-6), intercepts=(False, True)):
        """Print times and passes of corrective."""
        for intercept, tol in itertools.product(intercepts, tolerances):
            problem = make(X, y, intercept=intercept)
            fit = functools.partial(cg.minimize, problem, "corrective", tol=0.0, relative_tol=tol)
            seconds, result = best_of(fit, 5, self.synchronize), fit()
            self.say(
                f"corrective to {tol:g}{' with intercept' if intercept else ''}",
                seconds,
                f"{result.n_epochs:.1f} epochs, gap {result.gap:.2e}, {result.status.name}",
            )

    def beside_cpu(self, make, X, y, n):
        """Compare with the processor of the same machine, on some of the rows."""
        X, y = X[:n].copy(), y[:n].copy()
        there, here = make(X, y), make(self.cp.asnumpy(X), self.cp.asnumpy(y))
        times = {}
        for name, problem in (("GPU", there), ("CPU", here)):
            fit = functools.partial(cg.minimize, problem, "corrective", tol=0.0, relative_tol=1e-6)
            times[name] = best_of(fit, 3, self.synchronize)
        w = cg.minimize(there, "corrective", tol=0.0, relative_tol=1e-6).w
        a, b = there.look(w), here.look(w)
        difference = abs(a.gap - b.gap) / abs(b.objective)
        self.say(f"{n:,} rows to 1e-6", times["GPU"])
        self.say("the same on the processor", times["CPU"], f"{times['CPU'] / times['GPU']:.1f} times as long")
        self.say("gaps of GPU and processor", None, f"{a.gap:.12e}, {b.gap:.12e}: they differ by {difference:.1e} of F")

    def peers(self):
        """Compare with solvers of the same problem, or of the penalty that has the same solution as the ball."""
        n, d = (20_000, 300) if self.quick else (200_000, 300)
        X, y = self.dense_data(n, d)
        problem = cg.Problem(X, y, cg.losses.Logistic(), cg.constraints.L1Ball(15.0))
        fit = functools.partial(cg.minimize, problem, "corrective", tol=0.0, relative_tol=1e-6)
        seconds, result = best_of(fit, 5, self.synchronize), fit()
        self.say(f"condgrad on the GPU, {n:,} x {d} to 1e-6", seconds)
        solved = Solved(X, y, problem, result, seconds)
        for peer in (scikit_learn, fista, cuml_qn, lbfgs):
            for line in peer(solved):
                self.say(*line)

    def stream(self):
        """Data of the host that the device may not hold: bytes per second beside a pinned copy, and a fit."""
        from condgrad.linalg.device.arrays import device_by_name
        from condgrad.linalg.device.cuda_device import copy_on_all_cores

        n, d = (2_000_000, 300) if self.quick else (20_000_000, 300)
        X, y = map(self.cp.asnumpy, self.dense_data(n, d))
        self.free()
        device = device_by_name("cuda")
        pinned, there = device.empty_pinned(2**30), self.cp.empty(2**30, dtype=np.uint8)
        seconds = best_of(lambda: there.set(pinned), 5, self.synchronize)
        self.say("pinned copy of 1 GiB alone", seconds, f"{2**30 / seconds / 1e9:.1f} GB/s")
        speed = 2**30 / seconds
        own = X.view(np.uint8).reshape(-1)[: 2**30]
        seconds = best_of(lambda: copy_on_all_cores(own, pinned), 5, self.synchronize)
        self.say("copy of the host to pinned memory, on all cores", seconds, f"{2**30 / seconds / 1e9:.1f} GB/s")
        pinned = there = None
        device.most_bytes = X.nbytes // 4
        began = time.perf_counter()
        problem = cg.Problem(X, y, cg.losses.Logistic(), cg.constraints.L1Ball(15.0), device="cuda")
        self.say(f"streamed {n:,} x {d} float32, {X.nbytes / 1e9:.1f} GB: to begin", time.perf_counter() - began)
        w, rows = np.random.default_rng(0).standard_normal(d) / d, problem.rows
        seconds = best_of(lambda: rows.matrix.expand(w, 0.0, None, rows.samples.losses), 3, self.synchronize)
        rate = X.nbytes / seconds
        self.say("a pass", seconds, f"{rate / 1e9:.1f} GB/s, {rate / speed:.0%} of the pinned copy")
        found = problem.look(w)
        for intercept in (False, True):
            for tol in (1e-4, 1e-6):
                ball = cg.constraints.L1Ball(15.0)
                streamed = cg.Problem(X, y, cg.losses.Logistic(), ball, intercept=intercept, device="cuda")
                began = time.perf_counter()
                result = cg.minimize(streamed, "corrective", tol=0.0, relative_tol=tol)
                self.say(
                    f"corrective to {tol:g}{' with intercept' if intercept else ''}",
                    time.perf_counter() - began,
                    f"{result.n_reads:.0f} reads, {result.status.name}",
                )
        device.most_bytes = np.inf
        began = time.perf_counter()
        known = cg.Problem(X, y, cg.losses.Logistic(), cg.constraints.L1Ball(15.0), device="cuda")
        self.say("sent once instead", time.perf_counter() - began)
        there = known.look(w)
        self.say("gaps of both", None, f"they differ by {abs(found.gap - there.gap) / abs(there.objective):.1e} of F")

    def classes(self):
        """Ten classes, each against the rest, in common passes and one after the other."""
        X, y = self.class_data()
        (n, d), k = X.shape, 10
        y = self.cp.asnumpy(y)
        model = cg.ConstrainedLogisticRegression(radius=5.0, tol=1e-6)
        seconds = best_of(lambda: model.fit(X, y), 3, self.synchronize)
        steps = sum(result.n_steps for result in model.result_)
        self.say(f"{k} classes on {n:,} x {d} to 1e-6, together", seconds, f"{steps} steps were left to do alone")
        began = time.perf_counter()
        for c in range(k):
            cg.ConstrainedLogisticRegression(radius=5.0, tol=1e-6).fit(X, y == c)
        self.say("one after the other", time.perf_counter() - began)

    def class_data(self):
        """Return features, and one of ten classes for each sample, which 30 features decide."""
        cp, n = self.cp, 100_000 if self.quick else 1_000_000
        X, _ = self.dense_data(n, 300)
        host = np.random.default_rng(0)
        W = cp.asarray(host.standard_normal((300, 10)) * (host.permutation(300) < 30)[:, None], dtype=cp.float32)
        return X, (X @ W + cp.random.default_rng(1).standard_normal((X.shape[0], 10))).argmax(axis=1)

    def softmax(self):
        """Ten classes as one problem: a look, fits with and without intercepts, and the processor."""
        X, y = self.class_data()
        make = functools.partial(cg.SoftmaxProblem, constraint=cg.constraints.L1Ball(50.0), n_classes=10)
        problem, w = make(X, y), np.random.default_rng(0).standard_normal(3000) / 300
        seconds = best_of(lambda: problem.look(w), 5, self.synchronize)
        self.sweep_line(f"a certified look at {X.shape[0]:,} x 300, 10 classes", seconds, X.nbytes)
        self.fit(make, X, y)
        self.beside_cpu(make, X, y, 100_000)

    def lasso(self):
        """A hundred radii, and penalties, of the Lasso."""
        n, d = (100_000, 300) if self.quick else (1_000_000, 300)
        X, _ = self.dense_data(n, d)
        y = X[:, :20].sum(axis=1) + self.cp.random.default_rng(1).standard_normal(n, dtype=self.cp.float32)
        for intercept in (False, True):
            path = functools.partial(cg.lasso_path, X, y, n_radii=100, fit_intercept=intercept)
            seconds, (_, _, info) = best_of(path, 3, self.synchronize), path()
            self.say(f"lasso_path on {n:,} x {d}, intercept {intercept}", seconds, str(info))
            penalties = functools.partial(cg.lasso_path, X, y, alphas=info.alpha, fit_intercept=intercept)
            seconds, (_, _, info) = best_of(penalties, 3, self.synchronize), penalties()
            self.say("the same penalties", seconds, str(info))
        began = time.perf_counter()
        cg.lasso_path(self.cp.asnumpy(X), self.cp.asnumpy(y), n_radii=100)
        self.say("on the processor", time.perf_counter() - began)

    def one_hot(self):
        """Codes of 39 fields with a million categories, by their shares."""
        from condgrad.linalg.device.arrays import device_by_name
        from condgrad.linalg.device.sparse import OneHotOnDevice
        from condgrad.problems.rows.device import DeviceRows
        from condgrad.problems.rows.device_samples import DeviceSamples

        cp, device = self.cp, device_by_name("cuda")
        n, d = (4_000_000, 100_000) if self.quick else (40_000_000, 1_000_000)
        codes, y = self.one_hot_data(n, d)
        rows = DeviceRows(
            OneHotOnDevice(device, codes, d), DeviceSamples.of(device, cg.losses.Logistic(), y, None), False
        )
        del codes
        w = np.zeros(d)
        w[np.random.default_rng(0).permutation(d)[:300]] = 0.1
        seconds = best_of(lambda: rows.matrix.expand(w, 0.0, None, rows.samples.losses), 10, self.synchronize)
        self.sweep_line(f"one-hot sweep {n:,} x {d:,}, 39 a row", seconds, rows.matrix.n_bytes)
        self.say("the same by its entries", None, f"{rows.matrix.n_stored / seconds / 1e9:.0f} G entries/s")
        problem = cg.Problem.of_rows(rows, cg.constraints.L1Ball(60.0))
        for tol in (1e-4, 1e-6):
            fit = functools.partial(cg.minimize, problem, "corrective", tol=0.0, relative_tol=tol)
            seconds, result = best_of(fit, 3, self.synchronize), fit()
            self.say(f"corrective to {tol:g}", seconds, f"{result.n_epochs:.1f} epochs, {result.status.name}")
        cp.get_default_memory_pool().free_all_blocks()

    def path(self):
        """A hundred radii in five folds, all at once and one after the other."""
        n, d, n_folds = (100_000, 300, 5) if self.quick else (1_000_000, 300, 5)
        X, y = self.dense_data(n, d)
        fold = self.cp.arange(n) % n_folds
        radii = np.geomspace(0.15, 15.0, 100)
        for intercept in (False, True):
            problems = [
                cg.Problem(
                    X, y, cg.losses.Logistic(), cg.constraints.L1Ball(1.0), intercept=intercept,
                    sample_weight=(fold != k).astype(float),
                )
                for k in range(n_folds)
            ]  # fmt: skip
            paths = BatchedPaths(problems, cg.constraints.L1Ball, tol=1e-4)
            seconds = best_of(lambda: paths.solve(radii), 3, self.synchronize)  # noqa: B023
            paths.n_passes = paths.n_points = 0
            found = paths.solve(radii)
            worst = max(p.certified_gap / s for path, s in zip(found, paths.scales, strict=True) for p in path)
            self.say(
                f"{radii.size} radii x {n_folds} folds on {n:,} x {d}{' with intercept' if intercept else ''}",
                seconds,
                f"{paths.n_passes} passes at {paths.n_points} points, relative gaps up to {worst:.1e}",
            )
        walk = cg.Problem(X, y, cg.losses.Logistic(), cg.constraints.L1Ball(1.0))
        began, w, tol = time.perf_counter(), None, 1e-4 * walk.loss_scale()
        for radius in radii.tolist():
            w = cg.minimize(walk.over(cg.constraints.L1Ball(radius)), "corrective", w0=w, tol=tol).w
        self.say("one path by corrective, radius after radius", time.perf_counter() - began)

    def one_hot_data(self, n, d):
        """Return codes whose frequencies fall like 1 / rank within each field."""
        cp = self.cp
        small, large = np.full(13, 50), np.exp(np.linspace(np.log(10), np.log(d / 4), 26))
        sizes = np.concatenate((small, (large * (d - small.sum()) / large.sum()).astype(int).clip(4)))
        sizes[-1] += d - sizes.sum()
        firsts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
        random, host = cp.random.default_rng(0), np.random.default_rng(0)
        codes, p = cp.empty((39, n), dtype=cp.int32), cp.zeros(n, dtype=cp.float32)
        for q, (first, size) in enumerate(zip(firsts.tolist(), sizes.tolist(), strict=True)):
            rank = cp.minimum(cp.exp(random.random(n, dtype=cp.float32) * np.log(size)) - 1.0, size - 1)
            codes[q] = first + rank.astype(cp.int32)
            w = np.zeros(size, dtype=np.float32)
            w[: min(8, size)] = 0.5 * host.standard_normal(min(8, size))
            p += cp.asarray(w)[rank.astype(cp.int32)]
        y = cp.where(random.random(n, dtype=cp.float32) < 1 / (1 + cp.exp(-p)), 1.0, -1.0)
        return codes, y


PARTS = {
    "copy": Bench.copy,
    "dense": Bench.dense,
    "shapes": Bench.shapes,
    "one-hot": Bench.one_hot,
    "path": Bench.path,
    "softmax": Bench.softmax,
    "classes": Bench.classes,
    "peers": Bench.peers,
    "lasso": Bench.lasso,
    "stream": Bench.stream,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the size")
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    add_option(parser)
    options = parser.parse_args()
    try:
        import cupy
    except ImportError:
        sys.exit("gpu.py needs CuPy and an NVIDIA GPU; nothing was measured.")
    bench = Bench(cupy, options.quick)
    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(f"{name}; CuPy {cupy.__version__}; {'quick' if options.quick else 'full size'}", flush=True)
    report = Report(__file__, f"How long do passes and fits take on one {name}?", ["cupy", "torch", "cuml"])
    failed = []
    for part in ["copy", *(part for part in options.parts if part != "copy")]:  # the others compare with the copy
        if not bench.run(part, report):
            failed.append(part)
        report.write(options.json)
    if failed:
        sys.exit(f"these parts failed: {', '.join(failed)}.")


if __name__ == "__main__":
    main()
