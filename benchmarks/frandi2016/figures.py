"""Figures 1, 2 and 3 of Frandi et al. (2016): coefficients and test error along the path, CD and randomized FW.

    python benchmarks/frandi2016/figures.py              # the four problems, into outputs/
    python benchmarks/frandi2016/figures.py --quick      # Synthetic-10000 with 32 relevant features, 30 parameters
    options: --grid N, --no-plot

The sample size follows (13) with the average number of features on the precise path (`lasso_path`) and a confidence
of 99%. Printed for each problem: that number and the sample size, beside the paper's; how far the ten most relevant
coefficients of CD and of FW are from the precise ones, each at its own l1 norm, relative to the largest; and the
smallest test errors.
"""

from __future__ import annotations

import argparse
import math
import pathlib
import sys

import numpy as np
import paths
import scipy.sparse
from baselines import CoordinateDescent
from data import synthetic

from condgrad import sample_sizes

PROBLEMS = {(10_000, 32): 372, (10_000, 100): 324, (50_000, 158): 1616, (50_000, 500): 1572}  # the paper's sample sizes
OUTPUTS = pathlib.Path(__file__).parent / "outputs"


def main() -> int:
    """Measure, print and draw."""
    sys.stdout.reconfigure(line_buffering=True)
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--grid", type=int, help="parameters on the path")
    parser.add_argument("--no-plot", action="store_true")
    options = parser.parse_args()
    problems = list(PROBLEMS)[:1] if options.quick else list(PROBLEMS)
    panels = [measure(*problem, options.grid or (30 if options.quick else 100)) for problem in problems]
    if not options.no_plot:
        draw(panels)
    return 0


def measure(n_features: int, n_relevant: int, count: int) -> dict:
    """Return the paths of one problem, after printing what they show."""
    data = synthetic(n_features, n_relevant)
    parameters, precise = paths.grids(data, count)
    n_active = math.ceil(precise.nnz / precise.shape[1])
    rule = sample_sizes.HitRelevant(n_active, confidence=0.99, approximate=True)
    size = rule.size(n_features, 0)
    print(
        f"\n{data.name}: {n_active} features on average, samples of {size}; paper: {PROBLEMS[n_features, n_relevant]}"
    )
    descent = CoordinateDescent(data.X, data.y)
    runs = {
        "CD": paths.follow(descent.solve, parameters.penalties, n_features),
        "FW": paths.randomized(data, parameters.radii, rule),
    }
    top = np.argsort(-np.asarray(np.abs(precise).mean(axis=1)).ravel())[:10]
    curves = {"precise": curve(precise, top)} | {name: curve(run.models, top) for name, run in runs.items()}
    norms, truth = curves["precise"]
    for name, run in runs.items():
        sizes, values = curves[name]
        at = np.column_stack([np.interp(sizes, norms, truth[:, k]) for k in range(10)])
        error = np.abs(values - at).max() / np.abs(truth).max()
        test = paths.errors(run.models, data.X_test, data.y_test)
        print(
            f"{name}: {run.iterations} iterations, {run.products:.2e} products, {run.active:.1f} features; the top ten "
            f"are within {error:.1%} of the precise path; smallest test error {test.min():.4g} "
            f"at ||w||_1 = {sizes[test.argmin()]:.3g}"
        )
        curves[f"{name} test"] = (sizes, test)
    return {"name": data.name, "n_features": n_features, "curves": curves}


def curve(models: scipy.sparse.csc_matrix, top: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the l1 norms of the models and their coefficients at the features ``top``."""
    return np.asarray(np.abs(models).sum(axis=0)).ravel(), models[top].toarray().T


def draw(panels: list[dict]) -> None:
    """Draw one picture per figure into outputs/."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    OUTPUTS.mkdir(exist_ok=True)
    styles = {"CD": {"color": "tab:red", "linestyle": "--"}, "FW": {"color": "tab:blue"}}
    pictures = {
        "figure1": ([panel for panel in panels if panel["n_features"] == 10_000], "", "coefficient"),
        "figure2": ([panel for panel in panels if panel["n_features"] == 50_000], "", "coefficient"),
        "figure3": (panels[1:3] if len(panels) > 1 else panels, " test", "mean squared error on test data"),
    }
    for name, (shown, suffix, label) in pictures.items():
        if not shown:
            continue
        figure, axes = plt.subplots(1, len(shown), figsize=(5.5 * len(shown), 4), squeeze=False, layout="constrained")
        for ax, panel in zip(axes[0], shown, strict=True):
            for method, style in styles.items():
                sizes, values = panel["curves"][method + suffix]
                lines = ax.plot(sizes, values, linewidth=1.0, **style)
                lines[0].set_label(method)
            ax.set(title=panel["name"], xlabel="l1 norm", ylabel=label)
            ax.legend()
        figure.savefig(OUTPUTS / f"{name}.png", dpi=120)
        print(f"wrote {OUTPUTS.name}/{name}.png")


if __name__ == "__main__":
    sys.exit(main())
