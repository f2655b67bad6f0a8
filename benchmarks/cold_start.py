"""The first minute: import, first fit and second fit, from an empty kernel cache and from a filled one, beside others.

    python benchmarks/cold_start.py [--only NAME ...] [--python PATH] [--repeats N]

Every line is measured in new processes: with an empty folder for compiled kernels (numba's and ours), then with the one
that the first has filled. "import" is what a script imports before it can fit, "first" and "second" are the same fit
twice. Of several repeats the quickest is shown. --python names the interpreter of an environment in which condgrad is
installed, such as one with the wheel; without it this checkout is measured. celer, skglm and glum are measured where
they are installed; what is not is said below the table.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).parents[1]
DATA = """
import numpy as np, scipy.sparse
rng = np.random.default_rng(0)
X = rng.standard_normal((500, 100))
S = scipy.sparse.random(2000, 1000, 0.01, "csr", random_state=0)
y, t = X[:, :5].sum(1) + 0.1 * rng.standard_normal(500), S[:, :50] @ np.ones(50) + 0.01 * rng.standard_normal(2000)
c, k = np.where(y > 0, 1, -1), np.where(t > np.median(t), 1, -1)
rows, cols = np.divmod(rng.choice(8000, 3000, replace=False), 80)
low = (rng.standard_normal((100, 2)) @ rng.standard_normal((2, 80)))[rows, cols]
"""
L1_LOGISTIC = 'penalty="l1", solver="liblinear", C=1.0'
# name: (import, first statement that needs a compiler)
CASES = {
    "condgrad: ConstrainedLogisticRegression": (
        "from condgrad import ConstrainedLogisticRegression as E", "E(radius=5.0).fit(X, c)"),
    "condgrad: ConstrainedLogisticRegression, CSR": (
        "from condgrad import ConstrainedLogisticRegression as E", "E(radius=5.0).fit(S, k)"),
    "condgrad: ConstrainedLogisticRegressionCV": (
        "from condgrad import ConstrainedLogisticRegressionCV as E", "E(cv=3, n_radii=8).fit(X, c)"),
    "condgrad: ConstrainedLasso": ("from condgrad import ConstrainedLasso as E", "E().fit(X, y)"),
    "condgrad: ConstrainedLassoCV": ("from condgrad import ConstrainedLassoCV as E", "E(cv=5).fit(X, y)"),
    "condgrad: ConstrainedElasticNet": ("from condgrad import ConstrainedElasticNet as E", "E(radius=2.0).fit(X, y)"),
    "condgrad: ConstrainedRegressor": ("from condgrad import ConstrainedRegressor as E", "E().fit(X, y)"),
    "condgrad: ConstrainedClassifier": ("from condgrad import ConstrainedClassifier as E", "E().fit(X, c)"),
    "condgrad: lasso_path": ("from condgrad import lasso_path", "lasso_path(X, y)"),
    "condgrad: lasso_path, CSC": ("from condgrad import lasso_path", "lasso_path(S.tocsc(), t)"),
    "condgrad: lasso_path, CSR": ("from condgrad import lasso_path", "lasso_path(S, t)"),
    "condgrad: sfw, CSR": (
        "import condgrad as cg; cg.minimize; cg.Problem",
        'cg.minimize(cg.Problem(S, k, cg.losses.Logistic(), cg.constraints.L1Ball(5.0)), "sfw", max_epochs=5, '
        "random_state=0)"),
    "condgrad: MatrixCompletion": (
        "from condgrad import MatrixCompletion as E", "E(radius=100.0).fit(rows, cols, low)"),
    "condgrad: MatrixCompletionCV": (
        "from condgrad import MatrixCompletionCV as E", "E(radii=[10, 100], cv=2).fit(rows, cols, low)"),
    "condgrad: condgrad fit": (
        "from condgrad.cli import main; import condgrad.run.minimize, condgrad.problems.linear, contextlib, io",
        'names = ",".join([*(f"x{j}" for j in range(100)), "c"]);'
        'np.savetxt("t.csv", np.c_[X, c], delimiter=",", header=names, comments="");'
        "contextlib.redirect_stdout(io.StringIO()).__enter__();"
        'assert main(["fit", "t.csv", "--target", "c", "--loss", "logistic", "--radius", "5", "--quiet"]) == 0'),
    "scikit-learn: LogisticRegression": (
        "from sklearn.linear_model import LogisticRegression as E", f"E({L1_LOGISTIC}).fit(X, c)"),
    "scikit-learn: LogisticRegression, CSR": (
        "from sklearn.linear_model import LogisticRegression as E", f"E({L1_LOGISTIC}).fit(S, k)"),
    "scikit-learn: LassoCV": ("from sklearn.linear_model import LassoCV as E", "E(cv=5).fit(X, y)"),
    "scikit-learn: lasso_path": ("from sklearn.linear_model import lasso_path", "lasso_path(X, y)"),
    "scikit-learn: lasso_path, CSC": ("from sklearn.linear_model import lasso_path", "lasso_path(S.tocsc(), t)"),
    "celer: LogisticRegression": ("from celer import LogisticRegression as E", "E().fit(X, c)"),
    "celer: LassoCV": ("from celer import LassoCV as E", "E(cv=5).fit(X, y)"),
    "celer: Lasso": ("from celer import Lasso as E", "E(alpha=0.01).fit(X, y)"),
    "celer: celer_path, CSC": ("from celer import celer_path", 'celer_path(S.tocsc(), t, pb="lasso")'),
    "skglm: SparseLogisticRegression": ("from skglm import SparseLogisticRegression as E", "E(alpha=0.01).fit(X, c)"),
    "skglm: Lasso": ("from skglm import Lasso as E", "E(alpha=0.01).fit(X, y)"),
    "glum: GeneralizedLinearRegressor, binomial": (
        "from glum import GeneralizedLinearRegressor as E",
        'E(family="binomial", alpha=0.01, l1_ratio=1.0).fit(X, (c + 1) / 2)'),
    "glum: GeneralizedLinearRegressorCV, normal": (
        "from glum import GeneralizedLinearRegressorCV as E", 'E(family="normal", l1_ratio=1.0, cv=5).fit(X, y)'),
}  # fmt: skip
TIMED = """
import json, time, warnings
warnings.simplefilter("ignore")
{data}
a = time.perf_counter()
{imports}
b = time.perf_counter()
exec({fit!r})
c_ = time.perf_counter()
exec({fit!r})
d = time.perf_counter()
import sys
print(json.dumps([b - a, c_ - b, d - c_]), file=sys.__stdout__)
"""


def main() -> int:
    """Measure and print the table."""
    sys.stdout.reconfigure(line_buffering=True)
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="+", default=[""], metavar="NAME", help="cases that contain one of these")
    parser.add_argument("--python", default=None, metavar="PATH", help="interpreter with an installed condgrad")
    parser.add_argument("--repeats", type=int, default=1, metavar="N")
    options = parser.parse_args()
    print(f"{'seconds':<46} {'from an empty cache':^26} {'from a filled one':^26}")
    print(f"{'':<46}" + f" {'import':>8} {'first':>8} {'second':>8}" * 2)
    missing = set()
    for name, (imports, fit) in CASES.items():
        if not any(word in name for word in options.only):
            continue
        rows = [_measure(options.python, imports, fit) for _ in range(options.repeats)]
        if any(row is None for row in rows):
            missing.add(name)
            continue
        best = [min(column) for column in zip(*rows, strict=True)]
        print(f"{name:<46}" + "".join(f" {value:8.2f}" for value in best))
    if missing:
        print(f"Skipped, as they are not installed or do not run here: {', '.join(sorted(missing))}.")
    return 0


def _measure(python: str | None, imports: str, fit: str) -> list[float] | None:
    """Return import, first and second fit from an empty cache, and the same from the one that this filled."""
    environment = dict(os.environ) if python else {**os.environ, "PYTHONPATH": str(ROOT)}
    code = TIMED.format(data=DATA, imports=imports, fit=fit)
    found: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        environment["NUMBA_CACHE_DIR"] = os.path.join(folder, "cache")
        for _ in range(2):
            done = subprocess.run(
                [python or sys.executable, "-c", code],
                cwd=folder, env=environment, capture_output=True, text=True, check=False,
            )  # fmt: skip
            if done.returncode != 0:
                print(done.stderr.strip().rpartition("\n")[2], file=sys.stderr)
                return None
            found += json.loads(done.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    sys.exit(main())
