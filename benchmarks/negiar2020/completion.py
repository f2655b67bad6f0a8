"""The completion figure of the slides: trace-norm constrained robust completion of MovieLens, Huber loss.

    CONDGRAD_DATA=<folder with the datasets> python benchmarks/negiar2020/completion.py [--full] [--save FILE]

follows sfw, mokhtari and lu-freund over batches of ratings, Frank-Wolfe and low-rank, against time and gradient
evaluations: MovieLens 100K, or 1M with --full. README.md, in this folder, says what is found.
"""

from __future__ import annotations

import argparse
import pathlib

import numpy as np

import condgrad as cg
from condgrad import datasets

HERE = pathlib.Path(__file__).parent
BATCH = 0.01  # of the ratings
COLOURS = {"sfw": "#0072b2", "mokhtari": "#d55e00", "lu-freund": "#009e73", "fw": "#000000", "low-rank": "#cc79a7"}


def main() -> int:
    """Run, draw and say what is seen."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--full", action="store_true", help="MovieLens 1M instead of 100K")
    parser.add_argument("--seconds", type=float, default=30.0, help="for each method (default: 30)")
    parser.add_argument("--save", type=pathlib.Path, default=HERE / "outputs" / "completion.png", metavar="FILE")
    options = parser.parse_args()
    name, radius = ("1m", 3500.0) if options.full else ("100k", 540.0)
    try:
        data = datasets.load_movielens(name)
    except FileNotFoundError as error:
        print(f"Skipped MovieLens {name}: {error}")
        return 0
    values = data.values - data.values.mean()
    ball = cg.constraints.NuclearBall(radius)
    problem = cg.CompletionProblem(data.rows, data.cols, values, cg.losses.Huber(1.0), ball, shape=data.shape)
    runs = {}
    for method in COLOURS:
        kind = cg.solvers.by_name(method)
        solver = kind() if method in ("fw", "low-rank") else kind(batch_size=BATCH)
        cg.minimize(problem, solver, max_steps=2, random_state=0)  # compiles
        runs[method] = cg.minimize(problem, solver, tol=1e-5, max_time=options.seconds, max_epochs=1e9, random_state=0)
    bound = max(run.lower_bound for run in runs.values())
    best = min(run.objective for run in runs.values())
    print(f"MovieLens {name}: {values.size} ratings, radius {radius:g}; F* between {bound:.6f} and {best:.6f}")
    print(f"{'method':10} {'steps':>7} {'epochs':>8} {'seconds':>8} {'F - best':>9} {'gap':>9} {'rank':>5}")
    for method, run in runs.items():
        print(
            f"{method:10} {run.n_steps:7d} {run.n_epochs:8.1f} {run.seconds:8.1f} {run.objective - best:9.1e} "
            f"{run.gap:9.1e} {run.w.rank:5d}"
        )
    draw(runs, bound, options.save)
    print(f"The figure is in {options.save}.")
    return 0


def draw(runs: dict, bound: float, path: pathlib.Path) -> None:
    """Draw the suboptimality against time and against gradient evaluations."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(1, 2, figsize=(10.0, 4.0), layout="constrained", sharey=True)
    for ax, column, label in ((axes[0], "seconds", "seconds"), (axes[1], "gradient_evaluations", "ratings seen")):
        for method, run in runs.items():
            x, y = run.trace[column], run.trace.objective - bound
            ax.loglog(x[1:], np.maximum(y[1:], 1e-12), color=COLOURS[method], label=method)
        ax.set_xlabel(label)
    axes[0].set_ylabel("F(W) less the best lower bound of F*")
    axes[0].legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    axes[0].figure.savefig(path, dpi=120)


if __name__ == "__main__":
    raise SystemExit(main())
