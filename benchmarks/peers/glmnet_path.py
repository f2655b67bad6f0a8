"""R's glmnet, called through Rscript: problems and answers go through files of raw arrays (glmnet_path.R)."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import tempfile

import numpy as np
import scipy.sparse


def is_installed() -> bool:
    """Tell whether Rscript and R's packages glmnet and Matrix are there."""
    if shutil.which("Rscript") is None:
        return False
    asked = subprocess.run(["Rscript", "-e", "library(Matrix); library(glmnet)"], capture_output=True, check=False)
    return asked.returncode == 0


def l1_path(X, y, alphas, tol, family):
    """Return the coefficients, a CSC matrix with the ``seconds`` and ``cpu_seconds`` of the call of glmnet itself.

    ``family`` is "gaussian", or "binomial" with targets of 0 and 1.
    """
    script = pathlib.Path(__file__).with_suffix(".R")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        arrays = {"shape": np.array(X.shape, np.int32), "y": y, "alphas": alphas}
        if scipy.sparse.issparse(X):
            arrays |= {"data": X.data, "indices": X.indices.astype(np.int32), "indptr": X.indptr.astype(np.int32)}
        else:
            arrays["data"] = X.T  # by columns
        for key, array in arrays.items():
            np.ascontiguousarray(array).tofile(folder / f"{key}.bin")
        subprocess.run(["Rscript", str(script), name, family, repr(tol)], check=True, capture_output=True)
        found = {key: np.fromfile(folder / f"beta_{key}.bin", np.int32) for key in ("indices", "indptr")}
        data = np.fromfile(folder / "beta_data.bin")
        coefs = scipy.sparse.csc_matrix((data, found["indices"], found["indptr"]), shape=(X.shape[1], alphas.size))
        coefs.seconds, coefs.cpu_seconds = np.fromfile(folder / "seconds.bin").tolist()
        return coefs
