"""Tables 3 and 4 of Xiong & Freund: time to a Frank-Wolfe gap, for TUFW and its rivals, and for `corrective`.

    python benchmarks/xiong2023/tables.py            # quick: small limits, a few data sets, under ten minutes
    python benchmarks/xiong2023/tables.py --full     # all data sets, longer limits, three trials
    python benchmarks/xiong2023/tables.py --hours 8  # all data sets in that time; another call goes on where it ended
    options: --table 3|4, --only NAME, --wide (100 times the cross-validated radius), --plot FILE.png, --json FILE

Table 3: l1-constrained logistic regression, the radius chosen by 5-fold cross-validation; seconds of solver time
until the exact gap is at most 1e-1 ... 1e-7. Table 4: the non-convex sigmoid loss; seconds until the gap averaged over
the steps is at most the target, each method run with K = 10 * 4^j steps fixed in advance. Blank: not within the limit.
The last columns: the speed-up of the better TUFW over the best of the paper's rivals, here and as printed in
the paper, and that of corrective over DBD. Evaluations of the gap are not on the clock.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import time

import numpy as np

import condgrad as cg
from condgrad import rules, solvers, step_sizes
from condgrad.datasets import load

sys.path.append(str(pathlib.Path(__file__).parents[1]))
from night import add_option

QUICK = ("svmguide3", "a1a", "w1a", "phishing")
ALL = ("a1a", "a2a", "a8a", "a9a", "w1a", "w8a", "svmguide3", "phishing", "ijcnn1", "covtype-subset")
CONVEX_TARGETS = (1e-1, 1e-3, 1e-5, 1e-7)
NON_CONVEX_TARGETS = (1e-1, 1e-2, 1e-3)
RANDOM = ("SBD", "SPIDER-FW", "CSFW")
RIVALS = ("FW", "FW-ada", "SPIDER-FW", "CSFW", "CASPIDERG")
# The speed-up column as printed: (data set, target) -> best rival / better TUFW.
PAPER_3 = {
    ("a1a", 1e-1): 3.20, ("a1a", 1e-3): 27.02, ("a1a", 1e-5): 2.86, ("a2a", 1e-1): 2.97, ("a2a", 1e-3): 20.54,
    ("a8a", 1e-1): 2.75, ("a8a", 1e-3): 52.72, ("a9a", 1e-1): 2.91, ("a9a", 1e-3): 53.17, ("w1a", 1e-1): 3.07,
    ("w1a", 1e-3): 14.93, ("w8a", 1e-1): 1.86, ("svmguide3", 1e-1): 13.43, ("svmguide3", 1e-3): 18.53,
    ("svmguide3", 1e-5): 1.53, ("phishing", 1e-1): 0.02, ("phishing", 1e-3): 0.26, ("phishing", 1e-5): 2.71,
    ("phishing", 1e-7): 4.15, ("ijcnn1", 1e-1): 0.91, ("ijcnn1", 1e-3): 63.40, ("ijcnn1", 1e-5): 1402.31,
    ("ijcnn1", 1e-7): 1688.65,
}  # fmt: skip
PAPER_4 = {
    ("a1a", 1e-2): 2.03, ("a1a", 1e-3): 3.65, ("a2a", 1e-2): 2.14, ("a2a", 1e-3): 4.30, ("a8a", 1e-2): 0.85,
    ("a8a", 1e-3): 5.49, ("a9a", 1e-2): 0.58, ("w1a", 1e-2): 0.06, ("w8a", 1e-2): 0.03, ("svmguide3", 1e-1): 13.39,
    ("svmguide3", 1e-2): 30.98, ("svmguide3", 1e-3): 87.49, ("phishing", 1e-1): 0.99, ("phishing", 1e-2): 13.01,
    ("ijcnn1", 1e-1): 1.64, ("ijcnn1", 1e-2): 72.85,
}  # fmt: skip


def main() -> int:
    """Measure and print."""
    sys.stdout.reconfigure(line_buffering=True)
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--table", type=int, choices=(3, 4))
    parser.add_argument("--only", choices=ALL)
    parser.add_argument("--wide", action="store_true", help="100 times the cross-validated radius")
    parser.add_argument("--limit", type=float, help="seconds a run")
    parser.add_argument("--plot", help="draw the gaps of table 3 against time into this file")
    add_option(parser, pathlib.Path(__file__).parent / "outputs" / "night.json")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="with --hours: write the tables as JSON, too")
    options = parser.parse_args()
    if options.hours is not None:
        import night_table

        night_table.run(options.hours, options.found, options.json)
        return 0
    limit = options.limit or (60.0 if options.full else 3.0)
    trials = 3 if options.full else 1
    curves = {}
    if options.wide:  # the paper prints no table for these
        PAPER_3.clear()
        PAPER_4.clear()
    for name in [options.only] if options.only else (ALL if options.full else QUICK):
        try:
            X, y, *_ = load(name)
        except (OSError, ValueError) as error:
            print(f"{name}: skipped ({error})")
            continue
        radius = cross_validated_radius(X, y) * (100 if options.wide else 1)
        if options.table in (None, 3):
            curves[name] = table_3(name, X, y, radius, limit, trials)
        if options.table in (None, 4):
            table_4(name, X, y, radius, limit, trials)
    if options.plot:
        draw(curves, options.plot)
    return 0


def cross_validated_radius(X, y) -> float:
    """Return the radius, of a ladder of doublings, with the smallest logistic loss over five folds."""
    folds = np.random.default_rng(0).permutation(len(y)) % 5
    X = X.tocsr() if hasattr(X, "tocsr") else X
    radii, errors = 2.0 ** np.arange(0, 10), np.zeros(10)
    for fold in range(5):
        inside = folds != fold
        w = None
        for k, radius in enumerate(radii):
            problem = cg.Problem(X[inside], y[inside], cg.losses.Logistic(), cg.constraints.L1Ball(radius))
            w = cg.minimize(problem, "corrective", w0=w, tol=1e-4, max_steps=100).w
            errors[k] += np.logaddexp(0.0, -y[~inside] * (X[~inside] @ w)).mean()
    return float(radii[errors.argmin()])


def convex_methods(n: int) -> dict:
    """Return the methods of table 3."""
    return {
        "SBD": solvers.TUFW(rule=rules.SBD(), adaptive=True),
        "DBD": solvers.TUFW(rule=rules.DBD(), adaptive=True),
        "FW": solvers.FrankWolfe(step_sizes.OpenLoop()),
        "FW-ada": solvers.FrankWolfe(step_sizes.ShortStep("lipschitz")),
        "SPIDER-FW": solvers.Spider(),
        "CSFW": solvers.SFW(batch_size=max(1, n // 100)),
        "corrective": solvers.Corrective(),
    }


def non_convex_methods(K: int) -> dict:
    """Return the methods of table 4 for K steps."""
    step = step_sizes.NonConvex(K)
    return {
        "SBD": solvers.TUFW(rule=rules.SBD(K), step_size=step, adaptive=True),
        "DBD": solvers.TUFW(rule=rules.DBD(K), step_size=step, adaptive=True),
        "FW": solvers.FrankWolfe(step),
        "FW-ada": solvers.FrankWolfe(step_sizes.ShortStep("lipschitz")),
        "SPIDER-FW": solvers.Spider(step_size=step),
        "CASPIDERG": solvers.CurvatureAided(n_steps=K),
    }


def table_3(name, X, y, radius, limit, trials):
    """Print the rows of one data set; return the gaps against time."""
    problem = cg.Problem(X, y, cg.losses.Logistic(), cg.constraints.L1Ball(radius))
    times, curves = {}, {}
    for label, solver in convex_methods(problem.n_samples).items():
        cg.minimize(problem, solver, max_steps=30)  # compile
        runs = [run(problem, solver, limit, seed) for seed in range(trials if label in RANDOM else 1)]
        times[label] = {t: np.mean([first_time(trace, t) for trace in runs]) for t in CONVEX_TARGETS}
        curves[label] = runs[0]
    show(
        f"{name}: n = {problem.n_samples}, d = {problem.n_features}, radius {radius:g}",
        times,
        CONVEX_TARGETS,
        PAPER_3,
        name,
    )
    return curves


def run(problem, solver, limit, seed):
    """Return the trace of a run to a gap of 1e-7, within a limit of solver and evaluation time."""
    result = cg.minimize(
        problem, solver, tol=1e-7, max_epochs=1e9, max_time=limit, random_state=seed, evaluate_every=None
    )
    return result.trace


def first_time(trace, target):
    """Return the solver's seconds at the first record with a gap of at most ``target``; nan if there is none."""
    reached = np.flatnonzero(trace.gap <= target)
    return trace.seconds[reached[0]] if reached.size else np.nan


def table_4(name, X, y, radius, limit, trials):
    """Print the rows of one data set for the non-convex loss."""
    problem = cg.Problem(X, (y + 1) / 2, cg.losses.SigmoidSquared(), cg.constraints.L1Ball(radius))
    times = {label: non_convex_times(problem, label, limit, trials) for label in non_convex_methods(1)}
    result = cg.minimize(problem, "corrective", tol=1e-8, max_time=limit, max_steps=1000)
    times["corrective"] = {t: first_time(result.trace, t) for t in NON_CONVEX_TARGETS}
    show(f"{name}, non-convex: radius {radius:g}", times, NON_CONVEX_TARGETS, PAPER_4, name)


def non_convex_times(problem, label, limit, trials):
    """Return the seconds to each target, from runs of K = 10, 40, 160, ... steps; one above the limit is the last."""
    times = dict.fromkeys(NON_CONVEX_TARGETS, np.nan)
    cg.minimize(problem, non_convex_methods(10)[label], max_steps=30)  # compile
    for K in 10 * 4 ** np.arange(0, 9):
        solver = non_convex_methods(int(K))[label]
        start = time.perf_counter()
        traces = [
            cg.minimize(
                problem, solver, tol=0, max_steps=int(K), max_epochs=1e9, max_time=limit, random_state=seed
            ).trace
            for seed in range(trials)
        ]
        if any(trace.step[-1] < K for trace in traces):  # cut off: an average over fewer steps is that of another run
            break
        for target in NON_CONVEX_TARGETS:
            if np.isnan(times[target]) and np.mean([average_gap(trace) for trace in traces]) <= target:
                times[target] = np.mean([trace.seconds[-1] for trace in traces])
        if time.perf_counter() - start > limit * trials or not np.isnan(list(times.values())).any():
            break
    return times


def average_gap(trace):
    """Return the gap averaged over the steps, by the trapezoidal rule between records."""
    return np.trapezoid(trace.gap, trace.step) / max(1, trace.step[-1])


def show(head, times, targets, paper, name):
    """Print seconds by target, and the two speed-up columns."""
    print(
        f"\n{head}\n{'gap':>8}"
        + "".join(f"{label:>12}" for label in times)
        + f"{'speed-up':>12}{'paper':>10}{'DBD/corr.':>11}"
    )
    for target in targets:
        ours = np.nanmin([times[m][target] for m in ("SBD", "DBD")] + [np.inf])
        rivals = np.nanmin([times[m][target] for m in RIVALS if m in times] + [np.inf])
        cells = "".join(
            f"{times[m][target]:12.4f}" if times[m][target] == times[m][target] else f"{'':12}" for m in times
        )
        speed = f"{rivals / ours:12.2f}" if np.isfinite(ours) and np.isfinite(rivals) else f"{'':12}"
        printed = f"{paper[name, target]:10.2f}" if (name, target) in paper else f"{'':10}"
        ratio = times["DBD"][target] / times["corrective"][target]
        over_dbd = f"{ratio:11.1f}" if np.isfinite(ratio) else f"{'':11}"
        print(f"{target:8.0e}{cells}{speed}{printed}{over_dbd}")


def draw(curves, path):
    """Draw the gaps of table 3 against solver time."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(curves), figsize=(4.2 * len(curves), 3.6), squeeze=False, layout="constrained")
    for ax, (name, methods) in zip(axes[0], curves.items(), strict=True):
        for label, trace in methods.items():
            ax.loglog(np.maximum(trace.seconds, 1e-5), np.maximum(trace.gap, 1e-12), label=label, lw=1.6)
        ax.set(title=name, xlabel="seconds of solver time", ylim=(1e-8, None))
        ax.grid(True, which="major", alpha=0.3)
    axes[0, 0].set_ylabel("Frank-Wolfe gap")
    axes[0, -1].legend(fontsize=8)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    sys.exit(main())
