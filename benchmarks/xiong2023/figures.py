"""Figures 1 and 2 of Xiong & Freund: TUFW and Frank-Wolfe on a9a, with and without the adaptive step.

    python benchmarks/xiong2023/figures.py [--only NAME] [--limit SECONDS] [--out PREFIX]

Figure 1: l1-constrained logistic regression, the Frank-Wolfe gap against LMO calls, gradient evaluations and time.
Figure 2: the non-convex sigmoid loss; each dot is a run of K steps fixed in advance, K = 10, 20, 40, ..., with the gap
averaged over its steps. It writes PREFIX-1.png and PREFIX-2.png, and prints the last gap of each curve.
"""

from __future__ import annotations

import argparse
import sys

import matplotlib
import numpy as np
import tables

import condgrad as cg
from condgrad import rules, solvers, step_sizes
from condgrad.datasets import load

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def main() -> int:
    """Run and draw."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="a9a", choices=tables.ALL, help="the data set (default: a9a, the paper's)")
    parser.add_argument("--limit", type=float, default=10.0, help="seconds a curve")
    parser.add_argument("--out", default="xiong2023", help="prefix of the two files")
    options = parser.parse_args()
    X, y, *_ = load(options.only)
    radius = tables.cross_validated_radius(X, y)
    convex = cg.Problem(X, y, cg.losses.Logistic(), cg.constraints.L1Ball(radius))
    draw(figure_1(convex, options.limit), f"{options.out}-1.png", f"{options.only}, logistic loss, radius {radius:g}")
    sigmoid = cg.Problem(X, (y + 1) / 2, cg.losses.SigmoidSquared(), cg.constraints.L1Ball(radius))
    draw(figure_2(sigmoid, options.limit), f"{options.out}-2.png", f"{options.only}, sigmoid loss, radius {radius:g}")
    return 0


def figure_1(problem, limit):
    """Return LMO calls, gradient evaluations a sample, seconds and gaps of each method."""
    methods = {
        "SBD": solvers.TUFW(rule=rules.SBD()),
        "SBD, adaptive": solvers.TUFW(rule=rules.SBD(), adaptive=True),
        "DBD": solvers.TUFW(rule=rules.DBD()),
        "DBD, adaptive": solvers.TUFW(rule=rules.DBD(), adaptive=True),
        "FW": solvers.FrankWolfe(step_sizes.OpenLoop()),
        "FW, adaptive": solvers.FrankWolfe(step_sizes.ShortStep("lipschitz")),
    }
    curves = {}
    for label, solver in methods.items():
        cg.minimize(problem, solver, max_steps=30)  # compile
        trace = tables.run(problem, solver, limit, 0)
        best = np.minimum.accumulate(trace.gap)
        curves[label] = trace.step, trace.epoch, trace.seconds, best
    return curves


def figure_2(problem, limit):
    """Return the same with one dot per K, and the gap averaged over the steps."""
    curves = {}
    for label in ("SBD", "SBD, adaptive", "DBD", "DBD, adaptive", "FW", "FW, adaptive"):
        dots = []
        for K in 10 * 2 ** np.arange(0, 21):
            solver = non_convex_method(label, int(K))
            if not dots:
                cg.minimize(problem, solver, max_steps=30)  # compile
            trace = cg.minimize(problem, solver, tol=0.0, max_steps=int(K), max_epochs=1e9, random_state=0).trace
            dots.append((trace.step[-1], trace.epoch[-1], trace.seconds[-1], tables.average_gap(trace)))
            if trace.seconds[-1] > limit / 4:  # the next, twice as long, would end a geometric series at the limit
                break
        curves[label] = tuple(np.array(column) for column in zip(*dots, strict=True))
    return curves


def non_convex_method(label, K):
    """Return the method for K steps."""
    step, adaptive = step_sizes.NonConvex(K), "adaptive" in label
    if label.startswith("FW"):
        return solvers.FrankWolfe(step_sizes.ShortStep("lipschitz") if adaptive else step)
    rule = rules.SBD(K) if label.startswith("SBD") else rules.DBD(K)
    return solvers.TUFW(rule=rule, step_size=step, adaptive=adaptive)


def draw(curves, path, title):
    """Draw three panels, and print where each curve ends."""
    figure, axes = plt.subplots(1, 3, figsize=(13, 3.8), sharey=True, layout="constrained")
    for label, (steps, epochs, seconds, gaps) in curves.items():
        colour = {"S": "C0", "D": "C1", "F": "C2"}[label[0]]
        style = {"color": colour, "ls": "-" if "adaptive" in label else "--", "marker": "." if len(gaps) < 40 else None}
        for ax, x in zip(axes, (steps, epochs, seconds), strict=True):
            ax.loglog(x[1:], gaps[1:], label=label, lw=1.5, **style)
        print(f"{path}: {label:15} gap {gaps[-1]:.1e} after {int(steps[-1])} steps, {seconds[-1]:.2f} s")
    for ax, name in zip(axes, ("LMO calls", "gradient evaluations / n", "seconds of solver time"), strict=True):
        ax.set_xlabel(name)
        ax.grid(True, which="major", alpha=0.3)
    axes[0].set_ylabel("Frank-Wolfe gap")
    axes[-1].legend(fontsize=8)
    figure.suptitle(title)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    sys.exit(main())
