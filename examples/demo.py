"""Which measurements of a tumour tell that it is malignant? Sparse logistic regression, certified, from fit to picture.

Run it with `make demo`. It uses the breast cancer data that scikit-learn ships, takes less than a minute, most of it
for compiling the first time, and leaves `condgrad-demo.png` in the current folder.
"""

import math
import sys
import time

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import condgrad as cg
from condgrad.compiled import Stopwatch
from condgrad.plotting import plot_coefficient_path, plot_convergence, plot_path_scores

RADIUS = 10.0
RADII = np.geomspace(0.1, 30.0, 25)
PICTURE = "condgrad-demo.png"


def main() -> None:
    """Fit and certify, follow the budget, choose it by cross-validation, race the solvers, draw."""
    sys.stdout.reconfigure(line_buffering=True)  # in step with the progress lines, also in a log file
    X, y, names = load_data()
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=0, stratify=y)
    n, d = X_train.shape
    print(f"1. Logistic regression on {n} tumours with {d} measurements, over the l1 ball of radius {RADIUS:g}.\n")
    problem = cg.Problem(X_train, y_train, cg.losses.Logistic(), cg.constraints.L1Ball(RADIUS), intercept=True)
    result = cg.minimize(problem, "pairwise", tol=1e-8, evaluate_every=40, verbose=True)
    show_certificate(result)
    show_model(result, names)
    is_right = np.sign(X_test @ result.w + result.intercept) == y_test
    print(f"\nIt classifies {is_right.sum()} of {y_test.size} tumours right that it has not seen.")

    coefs = follow(problem)
    search = choose(X_train, y_train, X_test, y_test)
    results = race(problem)
    draw(results, coefs, search)
    print(f"\nAll of it is drawn in {PICTURE}.")


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


def follow(problem: cg.Problem) -> np.ndarray:
    """Solve the problem for all radii, each from the last solution, and return the coefficients, a column each."""
    began, w, gap, columns = time.perf_counter(), None, 0.0, []
    with Stopwatch() as watch:
        for radius in RADII:
            result = cg.minimize(problem.over(cg.constraints.L1Ball(radius)), w0=w, tol=1e-7)
            w, gap = result.w, max(gap, result.gap)
            columns.append(w)
    coefs = np.column_stack(columns)
    print(
        f"\n2. The path: {RADII.size} budgets from {RADII[0]:g} to {RADII[-1]:g}, each certified to {gap:.0e},", end=" "
    )
    print(f"in {spent(watch, began)}.")
    n_used = np.count_nonzero(coefs, axis=0)
    print("   " + ", ".join(f"radius {RADII[k]:.2g}: {n_used[k]} measurements" for k in (0, 12, 24)))
    return coefs


def spent(watch: Stopwatch, began: float) -> str:
    """Return the time on the watch, which stands still while kernels are compiled, and that for compiling beside it."""
    compiling = time.perf_counter() - began - watch.seconds
    return f"{watch.seconds:.2f} s" + (
        f" (and {compiling:.0f} s of compiling, the first time)" if compiling > 0.5 else ""
    )


def choose(
    X_train: np.ndarray, y_train: np.ndarray, X_test: np.ndarray, y_test: np.ndarray
) -> cg.ConstrainedLogisticRegressionCV:
    """Choose the radius by cross-validation."""
    began = time.perf_counter()
    search = cg.ConstrainedLogisticRegressionCV(radii=RADII, cv=5, selection="one-standard-error")
    with Stopwatch() as watch:
        search.fit(X_train, y_train)
    print(f"\n3. Cross-validation, {5 * RADII.size} certified fits in {spent(watch, began)}, takes the radius", end=" ")
    print(f"{search.radius_:.2g}: {np.count_nonzero(search.coef_)} measurements,", end=" ")
    print(f"{100 * search.score(X_test, y_test):.1f}% right on unseen tumours.")
    return search


def race(problem: cg.Problem) -> dict[str, cg.Result]:
    """Run each solver on the same problem, with a record every epoch."""
    print("\n4. Solvers on the problem of the first part, to a gap of 1e-10:")
    results = {}
    for name in ("fw", "away", "pairwise", "bpcg", "corrective"):
        cg.minimize(problem, name, max_steps=3)  # loads the compiled kernels, so that the clock sees the solver alone
        run = results[name] = cg.minimize(problem, name, tol=1e-10, max_epochs=3000, evaluate_every=1)
        print(f"   {name:<10} gap {run.gap:.0e} after {run.n_epochs:5.0f} passes and {run.seconds:.3f} s")
    return results


def draw(results: dict[str, cg.Result], coefs: np.ndarray, search: cg.ConstrainedLogisticRegressionCV) -> None:
    """Draw the gap of each run against time and passes, the path, and the scores of cross-validation."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(11.0, 7.6), layout="constrained")
    plot_convergence(results, x="seconds", ax=axes[0, 0])
    plot_convergence(results, x="epoch", ax=axes[0, 1], log_x=False)
    longest = max(run.n_epochs for name, run in results.items() if name != "fw")
    axes[0, 1].set_xlim(0.0, 1.08 * longest)  # plain Frank-Wolfe goes on
    axes[0, 1].get_legend().remove()
    plot_coefficient_path(RADII, coefs, ax=axes[1, 0])
    loss = -search.score_path_
    place = int(np.flatnonzero(search.radii_ == search.radius_)[0])
    error = loss.std(axis=1, ddof=1) / math.sqrt(loss.shape[1])
    n_used = np.count_nonzero(coefs, axis=0)
    plot_path_scores(search.radii_, loss.mean(axis=1), error, n_nonzero=n_used, best=place, ax=axes[1, 1])
    axes[1, 1].set_ylabel("log loss of held-out samples")
    figure.suptitle(f"Breast cancer: solvers over the l1 ball of radius {RADIUS:g}; the path; cross-validation")
    figure.savefig(PICTURE, dpi=130)
    plt.close(figure)


if __name__ == "__main__":
    main()
