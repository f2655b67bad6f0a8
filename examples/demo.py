"""Which measurements of a tumour tell that it is malignant? An l1-constrained logistic regression, certified.

Run it with `make demo`. It uses the breast cancer data that scikit-learn ships, takes a few seconds, and leaves
`condgrad-demo.png` in the current folder.
"""

import math
import sys

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import condgrad as cg
from condgrad.plotting import plot_convergence

RADIUS = 10.0
PICTURE = "condgrad-demo.png"


def main() -> None:
    """Fit, certify, show the model, race the solvers."""
    sys.stdout.reconfigure(line_buffering=True)  # in step with the progress lines, also in a log file
    X, y, names = load_data()
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=0, stratify=y)
    n, d = X_train.shape
    print(f"Logistic regression on {n} tumours with {d} measurements, over the l1 ball of radius {RADIUS:g}.\n")

    problem = cg.Problem(X_train, y_train, cg.losses.Logistic(), cg.constraints.L1Ball(RADIUS), intercept=True)
    result = cg.minimize(problem, "pairwise", tol=1e-8, evaluate_every=20, verbose=True)

    show_certificate(result)
    show_model(result, names)
    is_right = np.sign(X_test @ result.w + result.intercept) == y_test
    print(f"\nIt classifies {is_right.sum()} of {y_test.size} tumours right that it has not seen.")
    draw(race(problem))
    print(f"The convergence of four solvers is drawn in {PICTURE}.")


def load_data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return standardised measurements, 1 for malignant and -1 for benign, and the names of the measurements."""
    data = load_breast_cancer()
    X = (data.data - data.data.mean(axis=0)) / data.data.std(axis=0)
    return X, np.where(data.target == 0, 1.0, -1.0), data.feature_names


def show_certificate(result: cg.Result) -> None:
    """Print what is known about the answer, and how."""
    print(f"\n{result.status}")
    bound = math.floor(result.lower_bound * 1e10) / 1e10  # rounded down: it must stay a lower bound
    print(f"  objective    {result.objective:.10f}")
    print(f"  lower bound  {bound:.10f}   no model in the ball has a lower objective")
    print(f"  exact gap    {result.gap:.1e}")


def show_model(result: cg.Result, names: np.ndarray) -> None:
    """Print the selected features, the largest coefficients first."""
    chosen = [j for j in np.argsort(-np.abs(result.w)) if result.w[j] != 0.0]
    print(f"\n{len(chosen)} of {result.w.size} measurements are selected:")
    widest = np.abs(result.w).max()
    for j in chosen:
        bar = "#" * max(1, round(24 * abs(result.w[j]) / widest))
        print(f"  {names[j]:<24} {result.w[j]:+7.3f}  {bar}")


def race(problem: cg.Problem) -> dict[str, cg.Result]:
    """Run each solver on the same problem, with a record every epoch."""
    results = {}
    for name in ("fw", "away", "pairwise", "bpcg"):
        cg.minimize(problem, name, max_steps=3)  # loads the compiled kernels, so that the clock sees the solver alone
        results[name] = cg.minimize(problem, name, tol=1e-10, max_epochs=3000, evaluate_every=1)
    return results


def draw(results: dict[str, cg.Result]) -> None:
    """Draw the gap of each run against time and against epochs."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.8), sharey=True, layout="constrained")
    plot_convergence(results, x="seconds", ax=left)
    plot_convergence(results, x="epoch", ax=right, log_x=False)
    longest = max(run.n_epochs for name, run in results.items() if name != "fw")
    right.set_xlim(0.0, 1.08 * longest)  # plain Frank-Wolfe goes on
    right.set_ylabel("")
    right.get_legend().remove()
    figure.suptitle(f"Breast cancer, logistic loss over the l1 ball of radius {RADIUS:g}")
    figure.savefig(PICTURE, dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    main()
