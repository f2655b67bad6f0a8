"""``.npz`` files: arrays X and y, or a file of scipy.sparse.save_npz with an array y added."""

from __future__ import annotations

import io

import numpy as np

from condgrad.cli._columns import Wanted
from condgrad.cli._samples import Data

_SPARSE = {"format", "shape", "data"}  # members of every file of scipy.sparse


def parse_npz(content: bytes, name: str, wanted: Wanted) -> Data:
    """Return what the bytes of an ``.npz`` file hold; the weights are an array of the name that is asked for."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            members = {key: file[key] for key in file.files if key not in _SPARSE}
            is_sparse = set(file.files) >= _SPARSE
        if is_sparse:
            import scipy.sparse

            members["X"] = scipy.sparse.load_npz(io.BytesIO(content)).tocsr()
    except Exception as error:  # zip, numpy and scipy raise errors of a dozen kinds on damaged files
        raise ValueError(f"{name} could not be read as an .npz file: {str(error).rstrip('.')}.") from None
    if "X" not in members:
        found = ", ".join(sorted(members)) or "nothing"
        raise ValueError(f"{name} must hold an array X, or a matrix of scipy.sparse.save_npz; it holds {found}.")
    X, y, names = members["X"], members.get("y"), members.get("feature_names")
    if y is None and wanted.model is None:
        raise ValueError(f"{name} has no array y of targets.")
    if y is not None and (y.ndim != 1 or y.size != X.shape[0]):
        raise ValueError(f"y of {name} must have one entry per row of X, shape ({X.shape[0]},); got {y.shape}.")
    if y is not None and y.dtype.kind not in ("biufU" if wanted.labels else "biuf"):
        raise ValueError(f"y of {name} must be an array of numbers; got dtype {y.dtype}.")
    y = y if y is None or y.dtype.kind == "U" else y.astype(np.float64)
    if names is not None and names.shape != (X.shape[1],):
        raise ValueError(f"feature_names of {name} must have one entry per column of X; got shape {names.shape}.")
    weight = None if wanted.weights is None else members.get(wanted.weights)
    if wanted.weights is not None and (
        weight is None or weight.shape != (X.shape[0],) or weight.dtype.kind not in "biuf"
    ):
        raise ValueError(f"{name} must hold an array {wanted.weights!r} with one number per row of X, for --weights.")
    names = None if names is None else tuple(map(str, names.tolist()))
    return Data(X, y, names, name, None if weight is None else weight.astype(np.float64))
