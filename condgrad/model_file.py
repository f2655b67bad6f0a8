"""Model files: sealed ``.npz`` files with a JSON header and the numbers of a model beside it.

A linear model keeps its nonzero coefficients, ``indices`` and ``values``; a completed matrix its factors ``A`` and
``B``, ``row_bias``, ``column_bias``, ``is_row_seen`` and ``is_column_seen``.
"""

from __future__ import annotations

import inspect
import math
import os
from typing import Any

import numpy as np

from condgrad import losses
from condgrad.completion_model import CompletionModel
from condgrad.model import Model
from condgrad.result import Status
from condgrad.sealed_file import pack, unpack, write_file

_LINEAR, _COMPLETION = ("model", 1), ("completion model", 1)  # kinds of files, and the versions of their formats
_OF_BOTH = ("intercept", "constraint", "radius", "objective", "gap", "lower_bound", "solver", "n_steps", "n_samples",
            "version")  # fmt: skip
_OF_LINEAR = ("classes", "feature_names")
_OF_COMPLETION = ("row_labels", "column_labels")
_ARRAYS = ("row_bias", "column_bias", "is_row_seen", "is_column_seen")


def save_model(path: str | os.PathLike, model: Model | CompletionModel) -> None:
    """Write a model to a file, in one step; an existing file is replaced.

    Parameters
    ----------
    path : str or path
    model : Model or CompletionModel
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
    if isinstance(model, CompletionModel):
        header = _header(model, _OF_COMPLETION)
        arrays = dict(zip("AB", model.factors)) | {name: getattr(model, name) for name in _ARRAYS}
        write_file(path, pack(*_COMPLETION, header, arrays))
    else:
        header = _header(model, _OF_LINEAR) | {"n_features": model.w.size}
        indices = np.flatnonzero(model.w)
        write_file(path, pack(*_LINEAR, header, {"indices": indices, "values": model.w[indices]}))


def load_model(path: str | os.PathLike) -> Any:
    """Return the Model or the CompletionModel in a file; what is foreign, damaged or of another version is refused."""
    header, arrays = unpack(path, _LINEAR, _COMPLETION)
    if header["format"] == f"condgrad {_COMPLETION[0]}":
        fields = _fields(header, _OF_COMPLETION) | {name: arrays[name] for name in _ARRAYS}
        return CompletionModel(factors=(arrays["A"], arrays["B"]), **fields)
    w = np.zeros(header["n_features"])
    w[arrays["indices"]] = arrays["values"]
    return Model(w=w, **_fields(header, _OF_LINEAR))


def _header(model: Model | CompletionModel, own: tuple[str, ...]) -> dict[str, Any]:
    """Return what a file says of a model in words and single numbers; ``own`` names what its kind alone has."""
    header = {name: getattr(model, name) for name in _OF_BOTH + own}
    if not math.isfinite(model.lower_bound):  # JSON has no infinities
        header["lower_bound"] = None
    return header | {"status": model.status.name, "loss": _describe(model.loss)}


def _fields(header: dict[str, Any], own: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields of a model that :func:`_header` has written."""
    fields = {name: header[name] for name in _OF_BOTH}
    fields |= {name: None if header[name] is None else tuple(header[name]) for name in own}
    fields["lower_bound"] = -math.inf if fields["lower_bound"] is None else fields["lower_bound"]
    loss = losses.by_name(header["loss"]["name"], **header["loss"]["parameters"])
    return fields | {"loss": loss, "status": Status[header["status"]]}


def _describe(loss: Any) -> dict[str, Any]:
    for name, kind in losses.REGISTERED.items():
        if type(loss) is kind:
            parameters = inspect.get_annotations(kind)  # a loss without any has a field that is none
            return {"name": name, "parameters": {key: getattr(loss, key) for key in parameters}}
    raise ValueError(f"a model file can name the losses of condgrad.losses only; got {type(loss).__name__}.")
