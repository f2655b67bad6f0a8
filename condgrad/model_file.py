"""Model files: sealed ``.npz`` files with a JSON header and the nonzero coefficients, ``indices`` and ``values``."""

from __future__ import annotations

import inspect
import math
import os
from typing import Any

import numpy as np

from condgrad import losses
from condgrad.model import Model
from condgrad.result import Status
from condgrad.sealed_file import pack, unpack, write_file

_VERSION = 1
_PLAIN = ("intercept", "constraint", "radius", "objective", "gap", "lower_bound", "solver", "n_steps", "n_samples",
          "classes", "feature_names", "version")  # fmt: skip


def save_model(path: str | os.PathLike, model: Model) -> None:
    """Write a model to a file, in one step; an existing file is replaced.

    Parameters
    ----------
    path : str or path
    model : Model
        Its loss must be one of :mod:`condgrad.losses`, which a file can name.

    Examples
    --------
    >>> import tempfile
    >>> import condgrad as cg
    >>> problem = cg.Problem([[1.0], [2.0]], [1.0, 2.0], cg.losses.Squared(), cg.constraints.L1Ball(1.0))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cg.save_model(f"{folder}/model.npz", cg.Model.of(problem, cg.minimize(problem)))
    ...     cg.load_model(f"{folder}/model.npz").w
    array([1.])
    """
    header = {name: getattr(model, name) for name in _PLAIN}
    header |= {"n_features": model.w.size, "status": model.status.name, "loss": _describe(model.loss)}
    if not math.isfinite(model.lower_bound):  # JSON has no infinities
        header["lower_bound"] = None
    indices = np.flatnonzero(model.w)
    write_file(path, pack("model", _VERSION, header, {"indices": indices, "values": model.w[indices]}))


def load_model(path: str | os.PathLike) -> Model:
    """Return the model in a file; what is foreign, damaged or of another version is refused with a sentence."""
    header, arrays = unpack(path, "model", _VERSION)
    w = np.zeros(header["n_features"])
    w[arrays["indices"]] = arrays["values"]
    plain = {key: header[key] for key in _PLAIN}
    for key in ("classes", "feature_names"):
        plain[key] = None if plain[key] is None else tuple(plain[key])
    plain["lower_bound"] = -math.inf if plain["lower_bound"] is None else plain["lower_bound"]
    loss = losses.by_name(header["loss"]["name"], **header["loss"]["parameters"])
    return Model(w=w, loss=loss, status=Status[header["status"]], **plain)


def _describe(loss: Any) -> dict[str, Any]:
    for name, kind in losses.REGISTERED.items():
        if type(loss) is kind:
            parameters = inspect.get_annotations(kind)  # a loss without any has a field that is none
            return {"name": name, "parameters": {key: getattr(loss, key) for key in parameters}}
    raise ValueError(f"a model file can name the losses of condgrad.losses only; got {type(loss).__name__}.")
