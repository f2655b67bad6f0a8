"""The scripts of the gallery run without a warning, find what they say, and leave nothing behind."""

import contextlib
import io
import runpy
from pathlib import Path

import numba
import pytest

pytest.importorskip("matplotlib")

FOLDER = Path(__file__).parents[2] / "examples"
GALLERY = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "demo")
SAYS = {  # what a script must have found
    "compositional_regression": "the same predictions in other units: True",
    "cross_validated_radius": "test accuracy 0.9",
    "fair_classifier": "price 0.0000",
    "genes_beside_clinical_covariates": "5 of 5 that matter, 0 that only follow",
    "group_sparsity": "uses bmi s5",
    "hello_l1_ball": "l1 norm      60.000000",
    "linear_constraints": "CONVERGED: gap",
    "model_averaging": "mixture: test RMSE 5",
    "pricing_with_monotone_factors": "pooled with the next class: [5, 6]",
    "regularisation_path": "8 of 8 true features",
    "robust_completion": "0 of them wrongly",
    "sparse_text": "microseconds a step",
    "style_analysis": "85 windows",
    "synthetic_control": "0 of 30 placebos are as large",
    "times_of_events": "the five largest are [0, 1, 2, 3, 4]",
    "which_solver": "corrective: gap",
    "your_own_loss": "Corrective()",
    "your_own_set": "Hypersimplex: objective",
}


@pytest.mark.campaign
@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="the examples take minutes when interpreted")
@pytest.mark.parametrize("name", [name for name in GALLERY if name != "softmax"])  # that one: test_general.py
def test_runs(name, tmp_path, monkeypatch):
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    monkeypatch.setattr(plt, "show", lambda: None)  # which warns that this backend cannot
    monkeypatch.chdir(tmp_path)
    try:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
    finally:
        plt.close("all")
    assert SAYS.get(name, "") in printed.getvalue()
    assert not list(tmp_path.iterdir())
