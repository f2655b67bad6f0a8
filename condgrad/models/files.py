"""Model files: sealed ``.npz`` files with a JSON header and the numbers of a model beside it.

The file of a linear model holds its nonzero coefficients, ``indices`` and ``values``; that of a MultiModel those of all
rows, one row after the other, and ``intercepts``; that of a completed matrix its factors ``A`` and ``B``, ``row_bias``,
``column_bias``, ``is_row_seen`` and ``is_column_seen``.
"""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from condgrad import losses
from condgrad.linalg.saved import refusing
from condgrad.losses import Loss
from condgrad.models.completion import CompletionModel
from condgrad.models.linear import Model
from condgrad.models.multi import MultiModel
from condgrad.models.reading import completion_model, linear_model, multi_model
from condgrad.run.sealed_file import pack, unpack, write_file
from condgrad.storage.whole_files import remedy

# Kinds of files, and the versions of their formats.
_LINEAR, _MULTI, _COMPLETION = ("model", 1), ("multi model", 1), ("completion model", 1)
_READERS: dict[str, Callable[[dict[str, Any], dict[str, np.ndarray]], Model | MultiModel | CompletionModel]] = {
    "model": linear_model, "multi model": multi_model, "completion model": completion_model,
}  # fmt: skip
_OF_BOTH = ("intercept", "constraint", "radius", "objective", "gap", "rounding", "lower_bound", "solver", "n_steps",
            "n_samples", "version")  # fmt: skip
_OF_MULTI = ("kind", "classes", "constraint", "radius", "objective", "gap", "rounding", "lower_bound", "n_steps",
             "solver", "n_samples", "feature_names", "version")  # fmt: skip
_OF_LINEAR = ("classes", "feature_names")
_OF_COMPLETION = ("row_labels", "column_labels")
_RANGE = "value_range"  # of a completed matrix
_ARRAYS = ("row_bias", "column_bias", "is_row_seen", "is_column_seen")


def save_model(path: str | os.PathLike[str], model: object) -> None:
    """Write a model to a file, in one step; an existing file is replaced.

    Parameters
    ----------
    path : str or path
    model : Model, MultiModel, CompletionModel or a fitted estimator, whose ``model_`` is written
        Its loss must be one of :mod:`condgrad.losses`: the file stores its name.

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
    content = pack_model(model)
    try:
        write_file(path, content)
    except OSError as error:
        raise type(error)(
            f"{str(path)!r} could not be written ({error.strerror}): {remedy(error)}, and save the model again; it is "
            "still in memory."
        ) from error


def pack_model(model: object) -> bytes:
    """Return the bytes of the file of a model, or of a fitted estimator."""
    model = _model_of(model)
    if isinstance(model, CompletionModel):
        header = _header(model, _OF_COMPLETION)
        for name in _OF_COMPLETION:
            _check_ids(header[name])
        header[_RANGE] = model.value_range
        arrays = dict(zip("AB", model.factors)) | {name: getattr(model, name) for name in _ARRAYS}
        return pack(*_COMPLETION, header, arrays)
    if isinstance(model, MultiModel):
        header = {name: getattr(model, name) for name in _OF_MULTI} | {"shape": model.coef.shape}
        header["lower_bound"] = [bound if math.isfinite(bound) else None for bound in model.lower_bound]
        header |= {"status": [status.name for status in model.status], "loss": _describe(model.loss)}
        indices = np.flatnonzero(model.coef)
        arrays = {"indices": indices, "values": model.coef.ravel()[indices], "intercepts": model.intercept}
        return pack(*_MULTI, header, arrays)
    header = _header(model, _OF_LINEAR) | {"n_features": model.w.size}
    header |= {"has_offset": True} if model.has_offset else {}
    indices = np.flatnonzero(model.w)
    return pack(*_LINEAR, header, {"indices": indices, "values": model.w[indices]})


def load_model(path: str | os.PathLike[str]) -> Any:
    """Return the Model, MultiModel or CompletionModel in a file; raise for a foreign, damaged or newer file."""
    header, arrays = unpack(path, _LINEAR, _MULTI, _COMPLETION)
    with refusing(path, "model"):
        return _READERS[header["format"].removeprefix("condgrad ")](header, arrays)


def _model_of(model: Any) -> Model | MultiModel | CompletionModel:
    """Return the model of an estimator, or the model itself."""
    if isinstance(model, Model | MultiModel | CompletionModel):
        return model
    if not (hasattr(model, "get_params") and hasattr(type(model), "save")):
        raise TypeError(f"model must be a model of condgrad or one of its estimators; got {type(model).__name__}.")
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    return model.model_


def _check_ids(ids: Any) -> None:
    """Raise if JSON cannot hold an id."""
    for label in ids or ():
        if isinstance(label, tuple):
            _check_ids(label)
        elif not isinstance(label, str | int | float | None):
            raise ValueError(
                f"a model file holds ids that are words, numbers or tuples of these; got {label!r}. Save it with "
                "row_labels and column_labels that are words."
            )


def _header(model: Model | CompletionModel, own: tuple[str, ...]) -> dict[str, Any]:
    """Return the words and single numbers of a model; ``own`` names the fields that only its kind has."""
    header = {name: getattr(model, name) for name in _OF_BOTH + own}
    for name in ("rounding", "lower_bound"):  # JSON has no infinities and no nan
        header[name] = header[name] if math.isfinite(header[name]) else None
    return header | {"status": model.status.name, "loss": _describe(model.loss)}


def _describe(loss: Loss) -> dict[str, Any]:
    for name, kind in losses.REGISTERED.items():
        if type(loss) is kind:
            # _fields would include the placeholder of a loss without parameters.
            parameters = inspect.get_annotations(kind)
            return {"name": name, "parameters": {key: getattr(loss, key) for key in parameters}}
    raise ValueError(f"a model file can name the losses of condgrad.losses only; got {type(loss).__name__}.")
