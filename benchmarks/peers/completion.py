"""Matrix completion: test error and certified gap against time, beside ALS and Frank-Wolfe on the dense matrix.

    CONDGRAD_DATA=<folder with the datasets> python benchmarks/peers/completion.py [PART ...] [--json FILE]

default  MatrixCompletion() as it comes beside cmfrec and LibMF (factorisers.py): seconds and test RMSE on MovieLens
         100K (split u1), MovieLens 1M (90/10) and simulated ratings of 25,000 x 100; one thread each
cv       MatrixCompletionCV() as it comes, beside MatrixCompletion(), on the first and the last of these
course   test RMSE against the solver's own time, for radii that the parts above have picked
u1, 1m   MovieLens 100K (split u1) and 1M (90/10, seed 0): alternating least squares, and condgrad with
         the plain and the weighted nuclear norm, the radius picked by held-out ratings of the training part
dense    time to the same objective on MovieLens 100K: low-rank against Frank-Wolfe on the dense m x n matrix in NumPy,
         as the examples of other packages have it
large    500,000 x 50,000 with 20 million entries of rank 10: time, peak memory, gap
top      MovieLens 100K (split u1): seconds, test RMSE, and how many of the ten films recommended to a user have at most
         three ratings; biases without and with shrinkage, beside cmfrec where it is installed
robust   5% of the training ratings replaced by the other end of the scale: Huber against squared loss on clean ratings
"""

from __future__ import annotations

import argparse
import pathlib
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

import condgrad as cg
from condgrad import datasets

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from factorisers import als, installed
from results import Report, add_option

ALS_RANKS = {"u1": (50,), "1m": (20, 50)}


REPORT = Report(__file__, "How well and how fast are ratings completed?", ("cmfrec", "libmf"))


def main() -> int:
    """Run the parts that are asked for."""
    parts = {
        "default": default,
        "cv": cv,
        "u1": ratings,
        "1m": ratings,
        "course": course,
        "dense": dense,
        "large": large,
        "top": top,
        "robust": robust,
    }
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help="parts to run (default: all)")
    add_option(parser)
    args = parser.parse_args()
    for name in args.parts or list(parts):
        if name not in parts:
            print(f"There is no part {name!r}; there are {', '.join(parts)}.", file=sys.stderr)
            return 2
        try:
            parts[name](name)
        except FileNotFoundError as error:
            print(f"Skipped {name}: {error}")
    REPORT.write(args.json)
    return 0


def split(name: str) -> tuple[Any, Any]:
    """Return training and test ratings."""
    if name == "u1":
        return datasets.load_movielens("100k/u1.base"), datasets.load_movielens("100k/u1.test")
    whole = tall_ratings() if name == "tall" else datasets.load_movielens("1m")
    order = np.random.default_rng(0).permutation(whole.values.size)
    test, train = order[: order.size // 10], order[order.size // 10 :]
    return tuple(
        whole._replace(rows=whole.rows[part], cols=whole.cols[part], values=whole.values[part])
        for part in (train, test)
    )  # type: ignore[return-value]


def tall_ratings(m: int = 25_000, n: int = 100) -> Any:
    """Return simulated ratings of many users for few items: biases, a spectrum that decays, and noise.

    Seven ratings of ten are observed, 1.8 million, and the scale is that of the films of the other parts.
    """
    rng = np.random.default_rng(1)
    spectrum = np.arange(1.0, n + 1.0) ** -0.8
    W = (rng.standard_normal((m, n)) * spectrum) @ np.linalg.qr(rng.standard_normal((n, n)))[0]
    W += 0.6 * W.std() * (rng.standard_normal((m, 1)) + rng.standard_normal((1, n)))
    values = 3.0 + 0.7 * W / W.std() + 0.7 * rng.standard_normal((m, n))
    rows, cols = np.nonzero(rng.random((m, n)) < 0.72)
    return datasets.Ratings(rows, cols, np.clip(values[rows, cols], 1.0, 5.0), (m, n), "simulated")


NAMES = {"u1": "MovieLens 100K, split u1", "1m": "MovieLens 1M, 90/10", "tall": "simulated, 25,000 x 100"}
COLUMNS = ["method", "CPU seconds", "seconds", "test RMSE", "condgrad's CPU time over it"]


def default(name: str) -> None:
    """Compare the default fit with those of other libraries; fits take turns, and the best of two runs counts."""
    peers = installed()
    if not peers:
        print("Skipped default: neither cmfrec nor libmf is installed (pip install cmfrec libmf).")
        return
    warm_up()
    for data, title in NAMES.items():
        try:
            train, test = split(data)
        except FileNotFoundError as error:
            print(f"Skipped {data}: {error}")
            continue
        shape = (max(train.shape[0], test.shape[0]), max(train.shape[1], test.shape[1]))

        def ours(train: Any = train, shape: Any = shape) -> Any:
            return cg.MatrixCompletion(random_state=0).fit(train.rows, train.cols, train.values, shape=shape)

        fits = {"condgrad, as it comes": ours}
        for peer, (fit, settings) in peers.items():
            fits[peer] = lambda fit=fit, settings=settings, train=train, shape=shape: fit(train, shape, **settings)
        best, models = take_turns(fits, repeats=2)
        model = models["condgrad, as it comes"]
        models["condgrad, as it comes"] = lambda i, j, model=model: model.model_.at(i, j)[0]
        own = best["condgrad, as it comes"][0]
        rows = [
            [peer, *best[peer], rmse(p(test.rows, test.cols), test), own / best[peer][0]] for peer, p in models.items()
        ]
        gap = model.gap_ / model.result_.objective
        note = f"condgrad: rank {model.rank_}, radius {model.radius_:.4g}, gap {gap:.1e} of F"
        caption = f"Fits as they come, {title}: {train.values.size} ratings, one thread"
        print(f"\n{caption}\n{note}\n{'':34} {'CPU':>7} {'seconds':>7} {'RMSE':>7} {'x':>5}")
        for peer, cpu, seconds, error, ratio in rows:
            print(f"{peer:34} {cpu:7.2f} {seconds:7.2f} {error:7.4f} {ratio:5.1f}", flush=True)
        REPORT.table(caption, COLUMNS, rows, note)


def take_turns(
    fits: dict[str, Callable[[], Any]], repeats: int
) -> tuple[dict[str, tuple[float, float]], dict[str, Any]]:
    """Return the least CPU time and the least time of each fit, and what it returned; fits take turns."""
    best, found = dict.fromkeys(fits, (np.inf, np.inf)), {}
    for _ in range(repeats):
        for name, fit in fits.items():
            cpu, start = time.process_time(), time.perf_counter()
            found[name] = fit()
            spent = time.process_time() - cpu, time.perf_counter() - start
            best[name] = min(best[name][0], spent[0]), min(best[name][1], spent[1])
    return best, found


def top(name: str) -> None:
    """Compare recommendations: how many of the first ten are films that hardly anybody has rated."""
    train, test = split("u1")
    shape = (max(train.shape[0], test.shape[0]), max(train.shape[1], test.shape[1]))
    counts = np.bincount(train.cols, minlength=shape[1])
    users, every = np.unique(train.rows)[:200], np.flatnonzero(counts)
    seen = scipy.sparse.csr_array((np.ones(train.rows.size), (train.rows, train.cols)), shape=shape).toarray() > 0.0
    warm_up()
    print("\ntop: CPU seconds, test RMSE, mean number of films with at most three ratings among the first ten")

    def show(how: str, seconds: float, predict: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> None:
        few = 0.0
        for user in users:
            new = every[~seen[user, every]]
            best = new[np.argsort(-predict(np.full(new.size, user), new), kind="stable")[:10]]
            few += float((counts[best] <= 3).mean() * 10.0 / users.size)
        p = np.clip(predict(test.rows, test.cols), 1.0, 5.0)
        print(f"{how:34} {seconds:8.2f} {rmse(p, test):7.4f} {few:6.2f}", flush=True)

    for shrinkage in (0.0, 5.0):
        ours = cg.MatrixCompletion(bias_shrinkage=shrinkage, random_state=0)
        seconds, model = timed(lambda: ours.fit(train.rows, train.cols, train.values, shape=shape))  # noqa: B023
        show(f"condgrad, bias_shrinkage={shrinkage:g}", seconds, lambda i, j: model.model_.at(i, j)[0])  # noqa: B023
    peers = installed()
    for name in ("cmfrec, rank 20", "LibMF, as it comes"):
        if name in peers:
            fit, settings = peers[name]
            seconds, predict = timed(lambda: fit(train, shape, **settings))  # noqa: B023
            show(name, seconds, predict)


def cv(name: str) -> None:
    """Compare cross-validation over five folds with the choice of the radius by one held-out part."""
    warm_up()
    print("\ncv: CPU seconds, test RMSE, rank, radius, gap / F")
    for data in ("u1", "tall"):
        try:
            train, test = split(data)
        except FileNotFoundError as error:
            print(f"Skipped {data}: {error}")
            continue
        shape = (max(train.shape[0], test.shape[0]), max(train.shape[1], test.shape[1]))
        for estimator in (cg.MatrixCompletion(random_state=0), cg.MatrixCompletionCV(random_state=0)):
            seconds, model = timed(lambda: estimator.fit(train.rows, train.cols, train.values, shape=shape))  # noqa: B023
            print(f"{data:6} {type(model).__name__:20} {seconds:8.2f} {line(model, test)}", flush=True)


def warm_up() -> None:
    """Compile what the fits need."""
    data = datasets.simulate_low_rank(400, 300, 3, 4000, noise=0.3, random_state=0)
    cg.MatrixCompletion(random_state=0).fit(data.rows, data.cols, data.values)
    narrow = datasets.simulate_low_rank(400, 20, 3, 4000, noise=0.3, random_state=0)
    cg.MatrixCompletion(random_state=0).fit(narrow.rows, narrow.cols, narrow.values)


def timed(fit: Callable[[], Any], repeats: int = 1) -> tuple[float, Any]:
    """Return the CPU seconds of the fastest repetition, and what the last one returned."""
    spent = []
    for _ in range(repeats):
        start = time.process_time()
        model = fit()
        spent.append(time.process_time() - start)
    return min(spent), model


def rmse(p: np.ndarray, test: Any) -> float:
    """Return the root mean squared error of predictions, clipped to the scale of ratings."""
    return float(np.sqrt(np.mean((np.clip(p, 1.0, 5.0) - test.values) ** 2)))


def ratings(name: str) -> None:
    """Compare test errors and times."""
    train, test = split(name)
    shape = (max(train.shape[0], test.shape[0]), max(train.shape[1], test.shape[1]))
    print(f"\n{name}: {train.values.size} ratings, {shape[0]} x {shape[1]}; test RMSE")
    print(f"{'method':34} {'seconds':>8} {'RMSE':>7} {'rank':>5} {'radius':>8} {'gap / F':>8}")
    for rank in ALS_RANKS[name]:
        for penalty in (0.06, 0.1, 0.15):
            start = time.perf_counter()
            p = als(train, test, shape, rank, penalty)
            seconds = time.perf_counter() - start
            print(
                f"{f'biases + ALS, ridge {penalty} n_i':34} {seconds:8.2f} {rmse(p, test):7.4f} {rank:5d}", flush=True
            )
    cg.MatrixCompletion(1.0, "squared").fit(train.rows[:1000], train.cols[:1000], train.values[:1000])  # compiles
    for weighted in (False, True):
        label = "condgrad, " + ("weighted" if weighted else "plain") + " nuclear norm"
        start = time.perf_counter()
        chosen = cg.MatrixCompletion(loss="squared", weighted=weighted, tol=5e-3, random_state=0)
        chosen.fit(train.rows, train.cols, train.values, shape=shape)
        print(
            f"{f'{label}, radius=None, tol 5e-3':34} {time.perf_counter() - start:8.2f}", line(chosen, test), flush=True
        )
        start = time.perf_counter()
        model = cg.MatrixCompletion(chosen.radius_, "squared", weighted=weighted, tol=5e-4)
        model.fit(train.rows, train.cols, train.values, shape=shape)
        print(f"{f'{label}, that radius':34} {time.perf_counter() - start:8.2f}", line(model, test), flush=True)


def course(name: str) -> None:
    """Tell how soon the test error falls, on the way to the certified optimum."""
    for data, radius, weighted, levels in (
        ("u1", 647.0, False, (0.95, 0.935, 0.93)),
        ("1m", 3500.0, False, (0.9, 0.868, 0.856)),
        ("1m", 5000.0, True, (0.9, 0.868, 0.848)),
    ):
        train, test = split(data)
        shape = (max(train.shape[0], test.shape[0]), max(train.shape[1], test.shape[1]))
        ball = cg.constraints.NuclearBall(radius)
        if weighted:
            ball = cg.constraints.WeightedNuclearBall.of_entries(radius, train.rows, train.cols, shape)
        problem = cg.CompletionProblem(
            train.rows, train.cols, train.values, cg.losses.Squared(), ball, shape=shape, biases=True
        )
        seen = []

        def look(progress: Any, problem: Any = problem, test: Any = test, seen: list = seen) -> None:
            biases = problem.best_biases(problem.in_coordinates(progress.w))
            p = progress.w.at(test.rows, test.cols) + biases.rows[test.rows] + biases.columns[test.cols]
            seen.append((progress.seconds, rmse(p, test)))

        cg.minimize(problem, max_steps=8, tol=1e-5, evaluate_every=1e-9, callback=look)
        first = {level: next((f"{s:.1f} s" for s, error in seen if error <= level), "not reached") for level in levels}
        said = ", ".join(f"RMSE {level}: {when}" for level, when in first.items())
        print(f"\ncourse: {data}, radius {radius:g}{' weighted' if weighted else ''}: {said};")
        print(f"  {seen[-1][1]:.4f} after {seen[-1][0]:.1f} s", flush=True)


def line(model: Any, test: Any) -> str:
    """Return the rest of a line of the table."""
    error = rmse(model.predict(test.rows, test.cols), test)
    return f"{error:7.4f} {model.rank_:5d} {model.radius_:8.4g} {model.gap_ / model.result_.objective:8.1e}"


def dense(name: str) -> None:
    """Compare the time to an objective with Frank-Wolfe on the dense matrix."""
    train, _ = split("u1")
    radius, loss = 540.0, cg.losses.Huber(1.0)
    values = train.values - train.values.mean()
    problem = cg.CompletionProblem(
        train.rows, train.cols, values, loss, cg.constraints.NuclearBall(radius), shape=train.shape
    )
    cg.minimize(problem, max_steps=2)  # compiles
    best = cg.minimize(problem, tol=1e-7, max_steps=60)
    print(
        f"\ndense: MovieLens 100K, Huber, radius {radius:g}; seconds to F <= (1 + eps) F*, F* = {best.lower_bound:.6f}"
    )
    course = cg.minimize(problem, "low-rank", tol=1e-7, max_steps=60, evaluate_every=1e-9).trace
    seconds, objectives = dense_frank_wolfe(train, values, radius, 120.0)
    for eps in (1e-1, 3e-2, 1e-2, 3e-3, 1e-3):
        level = (1 + eps) * best.objective
        ours = course.seconds[np.flatnonzero(course.objective <= level)[0]]
        theirs = seconds[np.flatnonzero(objectives <= level)[:1]]
        said = (
            f"{theirs[0]:8.2f}  ratio {theirs[0] / ours:6.0f}"
            if theirs.size
            else f"> {seconds[-1]:.0f} (ratio > {seconds[-1] / ours:.0f})"
        )
        print(f"  eps {eps:7.0e}   low-rank {ours:7.3f}   dense Frank-Wolfe {said}")


def dense_frank_wolfe(train: Any, values: np.ndarray, radius: float, limit: float) -> tuple[np.ndarray, np.ndarray]:
    """Return times and objectives of Frank-Wolfe with steps 2 / (t + 2) on the dense matrix."""
    W, n = np.zeros(train.shape), values.size
    seconds, objectives = [], []
    spent, t = 0.0, 0
    while spent < limit:
        start = time.perf_counter()
        error = np.clip(W[train.rows, train.cols] - values, -1.0, 1.0)
        G = scipy.sparse.csr_matrix((error / n, (train.rows, train.cols)), shape=train.shape)
        u, _, vt = scipy.sparse.linalg.svds(G, 1, tol=1e-4)
        gamma = 2.0 / (t + 2.0)
        W = (1.0 - gamma) * W - gamma * radius * (u @ vt)
        spent += time.perf_counter() - start
        t += 1
        e = W[train.rows, train.cols] - values
        c = np.clip(e, -1.0, 1.0)
        seconds.append(spent)
        objectives.append(float(np.mean(c * (e - 0.5 * c))))
    return np.array(seconds), np.array(objectives)


def large(name: str) -> None:
    """Complete a large simulated matrix and tell time, memory and gap."""
    data = datasets.simulate_low_rank(500_000, 50_000, 10, 20_000_000, noise=0.3, random_state=0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    start = time.perf_counter()
    # Less than the norm of the truth: noise would fill the rest, with a high rank.
    radius = 0.7 * float(np.linalg.norm(np.linalg.qr(data.U)[1] @ np.linalg.qr(data.V)[1].T, "nuc"))
    problem = cg.CompletionProblem(
        data.rows, data.cols, data.values, cg.losses.Squared(), cg.constraints.NuclearBall(radius), shape=data.shape
    )
    built = time.perf_counter() - start
    F0 = problem.objective(cg.CompletionProblem.start(problem)[0])
    result = cg.minimize(problem, tol=1e-4 * F0, max_time=180.0)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    rng = np.random.default_rng(1)
    i, j = rng.integers(0, 500_000, 100_000), rng.integers(0, 50_000, 100_000)
    truth = np.einsum("ij,ij->i", data.U[i], data.V[j])
    print(f"\nlarge: 500,000 x 50,000, 20 million entries, radius {radius:.4g}; built in {built:.1f} s")
    print(
        f"  {result.n_steps} steps, {result.seconds:.1f} s, F {result.objective:.5f} of {F0:.5f}, gap {result.gap:.2e} "
        f"({result.gap / result.objective:.1e} of F), rank {result.w.rank}, {result.status.name}"
    )
    print(f"  error at unobserved places {np.sqrt(np.mean((result.w.at(i, j) - truth) ** 2)):.4f} (noise 0.3)")
    print(f"  peak memory {peak:.2f} GiB, the data alone {before:.2f} GiB")


def robust(name: str) -> None:
    """Compare Huber with the squared loss where ratings are corrupted."""
    train, test = split("u1")
    rng = np.random.default_rng(0)
    values = train.values.copy()
    wrong = rng.random(values.size) < 0.05
    values[wrong] = np.where(values[wrong] >= 3.0, 1.0, 5.0)
    print("\nrobust: u1 with 5% of the training ratings at the other end of the scale; RMSE on clean test ratings")
    for loss in (cg.losses.Squared(), cg.losses.Huber(1.0), cg.losses.Huber(0.5)):
        for weighted in (False, True):
            model = cg.MatrixCompletion(loss=loss, weighted=weighted, random_state=0)
            model.fit(train.rows, train.cols, values, shape=train.shape)
            label = f"{loss!r}{', weighted' if weighted else ''}"
            print(
                f"  {label:28} {rmse(model.predict(test.rows, test.cols), test):.4f}  radius {model.radius_:.4g}",
                flush=True,
            )


if __name__ == "__main__":
    raise SystemExit(main())
