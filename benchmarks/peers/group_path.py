"""Seconds for a path of the group lasso, squared or logistic, 100 points at relative gaps of 1e-3 and 1e-6: condgrad and its peers.

    python benchmarks/peers/group_path.py [--only NAME] [--loss NAME] [--peers NAME,NAME] [--limit SECONDS] [--cpu]

All solve the penalised problem with the sum of the norms of groups of five features, for 100 penalties from lambda_max
to a twentieth of it, without intercept. condgrad also solves the constrained problem for the norms of these solutions,
and the l1 paths on the same data show what groups cost.

How the comparison is kept fair:

* One function judges every solution, outside the clock, by the Frank-Wolfe gap on the ball of its own norm, relative to
  the loss of w = 0, and by its excess over the optimum: the largest difference of the penalised objective from that of
  condgrad at a gap of 1e-9. Each peer climbs a ladder of its own tolerances, and a target counts with the fastest run
  whose gaps and excess reached it. A peer climbs no further after a run that took longer than the limit.
* All get Fortran-ordered data, one thread and warm kernels; each counts with the best of several repeats, but a run of
  more than a second is not repeated. On a busy machine, ``--cpu`` counts processor time.
* The data marked "held out" played no part in the choice of constants.
"""  # noqa: E501

from __future__ import annotations

import argparse
import functools
import importlib.util
import math
import pathlib
import sys
import time
import warnings

from logistic_path import LADDER, TARGETS, Run, fastest  # sets the number of threads before anything else

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import numpy as np
import scipy.sparse
from results import Report, add_option

import condgrad as cg

SIZE = 5  # features of a group
SHAPES = {
    "tall": (2000, 500),
    "wide": (500, 5000),
    "square": (2000, 2000),
    "correlated": (500, 5000),
    "small": (100, 1000),
}
HELD_OUT = ("correlated",)
LOSSES = ("squared", "logistic")
EPS, N_POINTS = 0.05, 100
_LONG = 1.0  # seconds of a run of a peer that is not repeated


def main() -> None:
    """Measure and print one line per data set, target and method."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=SHAPES, action="append", help="a data set (may be repeated)")
    parser.add_argument("--loss", choices=LOSSES, action="append", help="a loss (may be repeated)")
    parser.add_argument("--peers", default=",".join(PEERS), help="the peers to run, separated by commas")
    parser.add_argument("--limit", type=float, default=20.0, help="seconds after which a peer climbs no further")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cpu", action="store_true", help="CPU time instead of wall-clock time")
    add_option(parser)
    options = parser.parse_args()
    report = Report(__file__, "How long does a path of the group lasso of 100 points take?", PEERS)
    peers = []
    for name in filter(None, options.peers.split(",")):
        if importlib.util.find_spec(name) is not None:
            peers.append(name)
        else:
            print(f"{name}: skipped, because it is not installed.")
    for name in options.only or SHAPES:
        for loss in options.loss or LOSSES:
            race(name, loss, peers, options, report)
            report.write(options.json)  # what is done stays


def load(name: str, loss: str) -> tuple[np.ndarray, np.ndarray]:
    """Return simulated data by columns: twenty groups have coefficients, and noise is half of the signal."""
    rng = np.random.default_rng(0)
    n, d = SHAPES[name]
    X = np.asfortranarray(rng.standard_normal((n, d)))
    if name == "correlated":
        for j in range(1, d):
            X[:, j] = 0.6 * X[:, j - 1] + 0.8 * X[:, j]
    w = np.zeros((d // SIZE, SIZE))
    w[rng.choice(d // SIZE, 20, replace=False)] = rng.standard_normal((20, SIZE))
    signal = X @ w.ravel()
    y = signal + 0.5 * signal.std() * rng.standard_normal(n)
    return X, np.where(y > 0.0, 1.0, -1.0) if loss == "logistic" else y


def norms_of(coefs: np.ndarray) -> np.ndarray:
    """Return the norms of all groups, of each column of coefficients."""
    return np.linalg.norm(coefs.reshape(-1, SIZE, coefs.shape[1]), axis=1)


def group_ball(d: int, radius: float) -> cg.constraints.GroupBall:
    """Return the ball of groups of consecutive features."""
    return cg.constraints.GroupBall(np.repeat(np.arange(d // SIZE), SIZE), radius)


def slopes_of(loss: str, y: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Return the derivatives of the losses by the predictions."""
    return p - y if loss == "squared" else -y * 0.5 * (1.0 - np.tanh(0.5 * y * p))


def value_of(loss: str, y: np.ndarray, p: np.ndarray) -> float:
    """Return the mean loss."""
    return float(np.mean(0.5 * (p - y) ** 2 if loss == "squared" else np.logaddexp(0.0, -y * p)))


def race(name: str, loss: str, peers: list[str], options: argparse.Namespace, report: Report) -> None:
    """Run all methods on one data set and print its table."""
    X, y = load(name, loss)
    make = functools.partial(group_ball, X.shape[1])
    slopes = X.T @ slopes_of(loss, y, np.zeros(y.size)) / y.size
    alphas = float(norms_of(slopes[:, None]).max()) * np.logspace(0.0, math.log10(EPS), N_POINTS)
    path = functools.partial(cg.radius_path, X, y, loss=loss, constraint=make)
    best = path(alphas=alphas, tol=1e-9)
    radii, optimum = best[0], best[2].objective + alphas * best[0]
    kind = f"{loss} loss{', held out' if name in HELD_OUT else ''}"
    print(f"{name} {X.shape[0]} x {X.shape[1]}, {kind}", flush=True)
    climbed = {peer: climb(peer, X, y, loss, alphas, optimum, options) for peer in peers}
    clock = time.process_time if options.cpu else time.perf_counter
    rows: list[list[str | float | None]] = []
    for target in TARGETS:
        ours = fastest(lambda tol=target: path(alphas=alphas, tol=0.5 * tol), options.repeats, clock)
        balls = fastest(lambda tol=target: path(radii=radii, tol=0.5 * tol), options.repeats, clock)
        l1 = fastest(lambda tol=target: cg.radius_path(X, y, loss=loss, n_radii=N_POINTS, eps=EPS, tol=tol), 2, clock)
        _, coefs, info = path(alphas=alphas, tol=0.5 * target)
        gap, excess = judge(X, y, loss, coefs, alphas, optimum)
        print(f"  gap {target:.0e}  condgrad {ours:8.3f} s  gap {gap:.0e}  excess {excess:.0e}"
              f"  {info.passes:.1f} passes  (over balls {balls:.3f} s, l1 path {l1:.3f} s)")  # fmt: skip
        rows.append([f"{target:.0e}", "condgrad", ours, gap, 1.0])
        rows.append([f"{target:.0e}", "condgrad over balls", balls, None, balls / ours])
        rows.append([f"{target:.0e}", "condgrad, l1 path", l1, None, l1 / ours])
        for peer, runs in climbed.items():
            rows.append([f"{target:.0e}", *shown(peer, runs, target, ours)])
    seconds = "CPU seconds" if options.cpu else "seconds"
    report.table(f"{name}, {X.shape[0]} x {X.shape[1]}, {kind}", ["target", "method", seconds, "gap", "ratio"], rows)


def shown(peer: str, runs: list[Run], target: float, ours: float) -> list[str | float | None]:
    """Print and return the line of a peer: its fastest run that reached the target, or how far it came."""
    reached = [run for run in runs if max(run.gap, run.excess) <= target]
    if reached:
        first = min(reached, key=lambda run: run.seconds)
        print(f"            {peer:9}{first.seconds:8.3f} s  gap {first.gap:.0e}  excess {first.excess:.0e}"
              f"  ratio {first.seconds / ours:.1f}", flush=True)  # fmt: skip
        return [peer, first.seconds, first.gap, first.seconds / ours]
    if not runs:
        print(f"            {peer:9}has no such loss", flush=True)
        return [peer, None, None, None]
    last = min(runs, key=lambda run: run.gap)
    print(f"            {peer:9}> {last.seconds:.3g} s  gap {last.gap:.0e}", flush=True)
    return [peer, f"> {last.seconds:.3g}", last.gap, None]


def climb(
    peer: str,
    X: np.ndarray,
    y: np.ndarray,
    loss: str,
    alphas: np.ndarray,
    best: np.ndarray,
    options: argparse.Namespace,
) -> list[Run]:
    """Return the runs of a peer, one for each tolerance of the ladder; none where it does not have the loss."""
    found: list[Run] = []
    clock = time.process_time if options.cpu else time.perf_counter
    if (peer, loss) in LACKS:
        return found
    for tol in LADDER:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if not found:
                PEERS[peer](X, y, loss, alphas[:3], tol)  # kernels compile
            seconds = math.inf
            for _ in range(options.repeats):
                began = clock()
                coefs = PEERS[peer](X, y, loss, alphas, tol)
                taken = clock() - began
                seconds = min(seconds, taken)
                if taken > _LONG:
                    break
        found.append(Run(seconds, *judge(X, y, loss, scipy.sparse.csc_matrix(coefs), alphas, best)))
        if seconds > options.limit or max(found[-1].gap, found[-1].excess) <= TARGETS[-1]:
            break
    return found


def judge(
    X: np.ndarray, y: np.ndarray, loss: str, coefs: scipy.sparse.csc_matrix, alphas: np.ndarray, best: np.ndarray
) -> tuple[float, float]:
    """Return the worst Frank-Wolfe gap on the balls of the solutions' own norms, and the worst excess."""
    W, scale = coefs.toarray(), value_of(loss, y, np.zeros(y.size))
    norms, gaps, excesses = norms_of(W).sum(axis=0), [], []
    for k, norm in enumerate(norms):
        p = X @ W[:, k]
        gradient = X.T @ slopes_of(loss, y, p) / y.size
        gaps.append(float(gradient @ W[:, k] + norm * norms_of(gradient[:, None]).max()))
        excesses.append(value_of(loss, y, p) + alphas[k] * norm - best[k])
    return max(gaps) / scale, max(0.0, *excesses) / scale


def run_celer(X, y, loss, alphas, tol):
    from celer import GroupLasso

    model = GroupLasso(groups=SIZE, fit_intercept=False, warm_start=True, tol=tol)
    return np.column_stack([model.set_params(alpha=alpha).fit(X, y).coef_.copy() for alpha in alphas])


def run_skglm(X, y, loss, alphas, tol):
    from skglm.datafits import LogisticGroup, QuadraticGroup
    from skglm.penalties import WeightedGroupL2
    from skglm.solvers import GroupBCD, GroupProxNewton
    from skglm.utils.data import grp_converter
    from skglm.utils.jit_compilation import compiled_clone

    indices, starts = grp_converter(SIZE, X.shape[1])
    solver = (GroupBCD if loss == "squared" else GroupProxNewton)(tol=tol, fit_intercept=False, warm_start=True)
    datafit = compiled_clone((QuadraticGroup if loss == "squared" else LogisticGroup)(starts, indices))
    datafit.initialize(X, y)
    w, p, out = np.zeros(X.shape[1]), np.zeros(y.size), []
    for alpha in alphas:
        penalty = compiled_clone(WeightedGroupL2(alpha, np.ones(X.shape[1] // SIZE), starts, indices))
        w = solver.solve(X, y, datafit, penalty, w, p)[0]
        p = X @ w
        out.append(w.copy())
    return np.column_stack(out)


def run_adelie(X, y, loss, alphas, tol):
    import adelie

    glm = adelie.glm.gaussian(y=y) if loss == "squared" else adelie.glm.binomial(y=np.where(y > 0.0, 1.0, 0.0))
    starts = np.arange(0, X.shape[1], SIZE)
    state = adelie.grpnet(
        X=adelie.matrix.dense(X, method="naive", n_threads=1), glm=glm, groups=starts, penalty=np.ones(starts.size),
        lmda_path=alphas, intercept=False, tol=tol, irls_tol=tol, early_exit=False, progress_bar=False, n_threads=1,
    )  # fmt: skip
    return scipy.sparse.csc_matrix(state.betas.T)


PEERS = {"celer": run_celer, "skglm": run_skglm, "adelie": run_adelie}
LACKS = {("celer", "logistic")}


if __name__ == "__main__":
    main()
