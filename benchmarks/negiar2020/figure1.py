"""Figure 1 of Negiar et al. (2020): relative suboptimality against gradient evaluations, for three stochastic methods.

    CONDGRAD_DATA=<folder with the datasets> python benchmarks/negiar2020/figure1.py [--save]

follows sfw, mokhtari and lu-freund with condgrad itself. With --benchopt the curves are read from the result of

    benchopt run benchmarks/negiar2020 -d breast-cancer -d rcv1 -d california-housing -n 100 --timeout 3600 --no-plot

instead, and seed 0 is followed here too: the two must agree. With --hours H all runs together take
about H hours, go on where an earlier call ended, and are shown as a table (--json FILE stores it). README.md, in this
folder, says what is found and why.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import time
from typing import Any, NamedTuple

import numpy as np
from benchmark_utils import METHODS, SEEDS, TASKS, course, recorded_steps

import condgrad as cg

HERE = pathlib.Path(__file__).parent
sys.path.append(str(HERE.parent))
from night import add_option  # noqa: E402 (it is in the folder above)

PICTURE = HERE.parents[1] / "docs" / "images" / "negiar2020.png"
MIN_POINTS = 40  # per curve: a stopping rule that ends runs early must not go unnoticed
COLOURS = {"sfw": "#0072b2", "mokhtari": "#d55e00", "lu-freund": "#009e73"}
LABELS = {"sfw": "SFW (Negiar et al.)", "mokhtari": "Mokhtari et al.", "lu-freund": "Lu & Freund"}


class Curves(NamedTuple):
    """One panel: gradient evaluations, and for every method an array (seed, record) of objectives."""

    evaluations: np.ndarray
    objectives: dict[str, np.ndarray]
    n_samples: int


class Panel(NamedTuple):
    """Relative suboptimalities, without the starting point, and the numbers that they are relative to."""

    title: str
    evaluations: np.ndarray
    relative: dict[str, np.ndarray]
    n_samples: int
    floor: float


def main() -> int:
    """Run, draw and say what is seen."""
    options = parse()
    if options.hours is not None:
        import night_table

        night_table.run(options.hours, options.found, options.json)
        return 0
    panels = []
    for task in TASKS.values():
        start = time.perf_counter()
        try:
            problem = task.problem()
        except FileNotFoundError as error:
            print(f"Skipped {task.name}: {error}")
            continue
        steps = recorded_steps(problem, task.epochs * options.length)
        if options.benchopt:
            curves = read(options.benchopt, task.name, problem)
            agree(curves, follow(problem, steps, SEEDS[:1]))
        else:
            curves = follow(problem, steps, SEEDS[: options.seeds])
        panel = relate(task.title(), problem, curves, options.f_min)
        panels.append(panel)
        report(panel, curves, time.perf_counter() - start)
    if not panels:
        return 0
    path = options.save or HERE / "outputs" / "figure1.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    draw(panels, path, options.f_min)
    print(f"The figure is in {path}.")
    return 0


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=len(SEEDS), help=f"runs per curve, at most {len(SEEDS)}")
    parser.add_argument("--length", type=float, default=1.0, help="run this fraction of the epochs (default 1)")
    parser.add_argument(
        "--f-min",
        choices=("certified", "smallest"),
        default="certified",
        help="certified: a lower bound of F* from the pairwise solver, exact to 1e-12; "
        "smallest: the paper's, the smallest value that any method met",
    )
    parser.add_argument("--save", type=pathlib.Path, nargs="?", const=PICTURE, help=f"default: {PICTURE.name} in docs")
    parser.add_argument(
        "--benchopt", type=pathlib.Path, nargs="?", const=HERE / "outputs", help="a parquet file, or a folder of them"
    )
    add_option(parser, HERE / "outputs" / "night.json")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="with --hours: write the tables as JSON, too")
    return parser.parse_args()


def follow(problem: cg.Problem, steps: list[int], seeds: tuple[int, ...]) -> Curves:
    """Return the curves of all methods, run here and now."""
    objectives = {}
    for method in METHODS:
        runs = []
        for seed in seeds:
            points = [(k, problem.objective(w)) for k, w in course(problem, method, seed, steps)]
            runs.append([value for _, value in points])
        objectives[method] = np.array(runs)
    return Curves(np.array([k for k, _ in points]), objectives, problem.n_samples)


def read(source: pathlib.Path, name: str, problem: cg.Problem) -> Curves:
    """Return the curves that benchopt recorded, from a file or from the newest file of a folder."""
    import pandas as pd

    if source.is_dir():
        files = sorted(source.glob("*.parquet"), key=lambda path: path.stat().st_mtime)
        if not files:
            raise SystemExit(f"There is no result of benchopt in {source}: see the top of this file for the command.")
        source = files[-1]
    table = pd.read_parquet(source)
    table = table[table["dataset_name"] == name]
    if table.empty:
        raise SystemExit(f"{source.name} holds no run on {name}.")
    objectives: dict[str, Any] = {}
    evaluations = np.empty(0)
    for method in METHODS:
        runs = []
        for seed in SEEDS:
            run = table[table["solver_name"] == f"{method}[seed={seed}]"].sort_values("stop_val")
            evaluations = run["objective_gradient_evaluations"].to_numpy()
            runs.append(run["objective_value"].to_numpy())
        objectives[method] = np.array(runs)
    return Curves(evaluations, objectives, problem.n_samples)


def agree(recorded: Curves, followed: Curves) -> None:
    """Raise unless benchopt recorded what a run here gives."""
    worst = 0.0
    for method, runs in followed.objectives.items():
        if recorded.objectives[method].shape[1] != runs.shape[1]:
            raise SystemExit(f"benchopt recorded {recorded.objectives[method].shape[1]} points, not {runs.shape[1]}.")
        worst = max(worst, float(np.abs(recorded.objectives[method][:1] / runs - 1.0).max()))
    if worst > 1e-9:
        raise SystemExit(f"benchopt's record and a run here differ by a factor of 1 + {worst:.1e}.")
    print(f"benchopt's record and a run here agree to {worst:.1e}.")


def relate(title: str, problem: cg.Problem, curves: Curves, f_min: str) -> Panel:
    """Return (F - f_min) / (f_max - f_min) for every curve."""
    every = np.concatenate(list(curves.objectives.values()))
    if curves.evaluations.size < MIN_POINTS:
        raise SystemExit(f"A curve has {curves.evaluations.size} points; at least {MIN_POINTS} were expected.")
    if f_min == "smallest":
        low, floor = every.min(), 0.0
    else:
        optimum = cg.minimize(problem, "pairwise", tol=1e-12, max_time=300.0)
        low, floor = optimum.lower_bound, optimum.objective - optimum.lower_bound
    width = every.max() - low
    relative = {method: (runs[:, 1:] - low) / width for method, runs in curves.objectives.items()}
    return Panel(title, curves.evaluations[1:], relative, curves.n_samples, floor / width)


def report(panel: Panel, curves: Curves, seconds: float) -> None:
    """Print where the curves end, and from when on sfw is the lowest."""
    print(f"{panel.title}: {panel.evaluations.size} records up to {panel.evaluations[-1]:,} gradient evaluations")
    means = {method: runs.mean(axis=0) for method, runs in panel.relative.items()}
    for method, mean in means.items():
        ends = panel.relative[method][:, -1]
        print(f"  {method:<10} at one epoch {at_epoch(panel, mean):.2e}, at the end {mean[-1]:.2e} ", end="")
        print(f"(all seeds: {ends.min():.2e} to {ends.max():.2e})")
    rivals = np.minimum(means["mokhtari"], means["lu-freund"])
    above = np.flatnonzero(means["sfw"] >= rivals)
    if above.size and above[-1] == rivals.size - 1:
        print("  sfw is NOT below the other two at the end; a longer run may change that.")
    else:
        first = panel.evaluations[above[-1] + 1] if above.size else panel.evaluations[0]
        lead = rivals[-1] / means["sfw"][-1]
        print(
            f"  sfw is below the other two from {first:,} evaluations on ({first / panel.n_samples:.3g} epochs), ",
            end="",
        )
        print(f"at the end by {lead:.3g} times. {seconds:.0f} s")


def at_epoch(panel: Panel, mean: np.ndarray) -> float:
    """Return a curve's value after one epoch."""
    return float(mean[min(np.searchsorted(panel.evaluations, panel.n_samples), mean.size - 1)])


def draw(panels: list[Panel], path: pathlib.Path, f_min: str) -> None:
    """Draw the panels side by side: the mean over seeds, and the range of all of them."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    mpl.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False})
    figure, axes = plt.subplots(1, len(panels), figsize=(4.2 * len(panels), 3.8), squeeze=False, layout="constrained")
    for axis, panel in zip(axes[0], panels, strict=True):
        for method, runs in panel.relative.items():
            shown = np.maximum(runs, max(panel.floor, 1e-16))
            colour, low, high = COLOURS[method], shown.min(axis=0), shown.max(axis=0)
            axis.fill_between(panel.evaluations, low, high, color=colour, alpha=0.2, lw=0)
            axis.plot(panel.evaluations, shown.mean(axis=0), color=colour, lw=1.8, label=LABELS[method])
        axis.axvline(panel.n_samples, color="0.6", lw=0.8, ls=":")
        axis.annotate(
            "one epoch",
            (panel.n_samples, 0.02),
            xycoords=("data", "axes fraction"),
            xytext=(3, 0),
            textcoords="offset points",
            color="0.4",
            fontsize=8,
        )
        axis.set(xscale="log", yscale="log", title=panel.title, xlabel="gradient evaluations")
        axis.grid(which="major", color="0.9", lw=0.6)
        axis.title.set_fontsize(10)
    lowest = "F^*" if f_min == "certified" else r"f_{\min}"
    axes[0, 0].set_ylabel(rf"relative suboptimality  $(F(w_t) - {lowest}) / (f_{{\max}} - {lowest})$", fontsize=9)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    figure.savefig(path, dpi=160)


if __name__ == "__main__":
    raise SystemExit(main())
