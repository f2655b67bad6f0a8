"""Run the solver files in small suites with the interface of benchopt's own, on simulated data.

    python benchmarks/benchopt/try_solvers.py

For each file a suite is made in a temporary folder: an objective that computes value and duality gap by itself, one
simulated data set, and the file. `benchopt run` then must end with a duality gap near rounding.
"""

from __future__ import annotations

import importlib.util
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
DATASET = """
import numpy as np
from benchopt import BaseDataset

class Dataset(BaseDataset):
    name = "simulated"

    def get_data(self):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((100, 300))
        y = X[:, :5] @ rng.standard_normal(5) + 0.5 * rng.standard_normal(100)
        return {"X": X, "y": TARGETS}
"""
OBJECTIVE = """
import numpy as np
from benchopt import BaseObjective
from scipy.special import xlogy

class Objective(BaseObjective):
    name = "penalised"
    min_benchopt_version = "1.10"
    parameters = {"reg": [0.1, 0.01]}

    def set_data(self, X, y):
        self.X, self.y = X, y
        self.lmbd = self.reg * abs(X.T @ y).max() * STEEPEST

    def get_objective(self):
        return {"X": self.X, "y": self.y, "lmbd": self.lmbd}

    def get_one_result(self):
        return {"beta": np.zeros(self.X.shape[1])}

    def evaluate_result(self, beta):
        p = self.X @ beta
        LOSS
        dual = residual * min(1.0, self.lmbd / abs(self.X.T @ residual).max())
        primal = value + self.lmbd * abs(beta).sum()
        return {"value": primal, "gap": primal - CONJUGATE}
"""
# By suite: targets, the slope of the loss at zero, loss and residual at predictions p, and the dual objective.
LASSO = {
    "TARGETS": "y",
    "STEEPEST": "1.0",
    "LOSS": "residual = self.y - p; value = 0.5 * residual @ residual",
    "CONJUGATE": "(self.y @ self.y - (self.y - dual) @ (self.y - dual)) / 2",
}
LOGISTIC = {
    "TARGETS": "np.where(y > 0, 1.0, -1.0)",
    "STEEPEST": "0.5",
    "LOSS": "m = self.y * p; residual = self.y / (1 + np.exp(m)); value = np.log1p(np.exp(-m)).sum()",
    "CONJUGATE": "-(xlogy(abs(dual), abs(dual)) + xlogy(1 - abs(dual), 1 - abs(dual))).sum()",
}
SUITES = {"lasso": LASSO, "logreg_l1": LOGISTIC}


def filled(template: str, words: dict[str, str]) -> str:
    """Return a template with the words of a suite in it."""
    for word, code in words.items():
        template = template.replace(word, code)
    return template


def largest_gap(suite: str, folder: pathlib.Path) -> float:
    """Run a suite and return the larger of the last duality gaps of its two penalties, relative to the value."""
    import pandas

    for part in ("solvers", "datasets"):
        (folder / part).mkdir()
    (folder / "objective.py").write_text(filled(OBJECTIVE, SUITES[suite]))
    (folder / "datasets" / "simulated.py").write_text(filled(DATASET, SUITES[suite]))
    (folder / "solvers" / "condgrad.py").write_text((HERE / suite / "condgrad.py").read_text())
    command = [sys.executable, "-m", "benchopt", "run", folder, "-n", "40", "-r", "1", "--no-plot", "--no-html"]
    subprocess.run([*command, "--output", "result"], check=True, capture_output=True, text=True)
    runs = pandas.read_parquet(next((folder / "outputs").glob("*.parquet")))
    last = runs.sort_values("stop_val", ascending=False).groupby("objective_name").last()
    return float((last["objective_gap"] / last["objective_value"]).abs().max())


def main() -> int:
    """Try both files."""
    if importlib.util.find_spec("benchopt") is None:
        raise SystemExit("benchopt is not installed: pip install benchopt.")
    for suite in SUITES:
        with tempfile.TemporaryDirectory() as name:
            gap = largest_gap(suite, pathlib.Path(name))
        print(f"{suite}: relative duality gap {gap:.1e}")
        if gap > 1e-8:
            print(f"{suite}: the gap should be near rounding.", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
