"""Model files: an ``.npz`` of arrays with a JSON header, sealed by a checksum; nothing in it is ever executed.

The members are ``header`` (JSON in UTF-8), ``indices`` and ``values`` (the nonzero coefficients). The comment of the
zip archive, its last 64 bytes, is the SHA-256 of all bytes before it, so that a damaged file is refused before anything
in it is looked at; ``numpy.load`` reads the file all the same.
"""

from __future__ import annotations

import hashlib
import inspect
import io
import json
import math
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from condgrad import losses
from condgrad.atomic_file import write_file
from condgrad.model import Model
from condgrad.result import Status

FORMAT = "condgrad model"
VERSION = 1
_SEAL = 64  # bytes of a SHA-256 in hexadecimal digits
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
    write_file(path, encode(model))


def load_model(path: str | os.PathLike) -> Model:
    """Return the model in a file; what is foreign, damaged or of a newer condgrad is refused with a sentence."""
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {str(path)!r}.") from None
    except OSError as error:
        raise ValueError(f"{str(path)!r} could not be read: {error.strerror}.") from None
    return decode(content, str(path))


def encode(model: Model) -> bytes:
    """Return the bytes of a model file."""
    header = {"format": FORMAT, "format_version": VERSION} | {name: getattr(model, name) for name in _PLAIN}
    header |= {"n_features": model.w.size, "status": model.status.name, "loss": _describe(model.loss)}
    indices = np.flatnonzero(model.w)
    return pack(header, {"indices": indices, "values": model.w[indices]})


def decode(content: bytes, name: str) -> Model:
    """Return the model of the bytes of a file called ``name``."""
    header, arrays = unpack(content, name, FORMAT, VERSION)
    w = np.zeros(header["n_features"])
    w[arrays["indices"]] = arrays["values"]
    plain = {key: header[key] for key in _PLAIN}
    for key in ("classes", "feature_names"):
        plain[key] = None if plain[key] is None else tuple(plain[key])
    plain["lower_bound"] = -math.inf if plain["lower_bound"] is None else plain["lower_bound"]
    loss = losses.by_name(header["loss"]["name"], **header["loss"]["parameters"])
    return Model(w=w, loss=loss, status=Status[header["status"]], **plain)


def pack(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> bytes:
    """Return the bytes of a sealed ``.npz`` file; a number that JSON does not have (-inf) becomes null."""
    header = {key: None if isinstance(value, float) and not math.isfinite(value) else value
              for key, value in header.items()}  # fmt: skip
    text = json.dumps(header, allow_nan=False).encode()
    buffer = io.BytesIO()
    np.savez(buffer, **{"header": np.frombuffer(text, dtype=np.uint8)}, **arrays)  # type: ignore[arg-type]
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.comment = b"0" * _SEAL
    body = buffer.getvalue()[:-_SEAL]
    return body + hashlib.sha256(body).hexdigest().encode()


def unpack(content: bytes, name: str, kind: str, newest: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return header and arrays of a sealed file of a ``kind``, or raise ValueError in a sentence."""
    if hashlib.sha256(content[:-_SEAL]).hexdigest().encode() != content[-_SEAL:]:
        raise ValueError(f"{name!r} is not a {kind} file, or it is damaged: its checksum is wrong.")
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as members:
            arrays = {key: members[key] for key in members.files}
        header = json.loads(arrays.pop("header").tobytes())
        found, version = header["format"], header["format_version"]
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{name!r} is not a {kind} file ({error}).") from None
    if found != kind:
        raise ValueError(f"{name!r} is a {found} file, not a {kind} file.")
    if version > newest:
        raise ValueError(
            f"{name!r} has version {version} of the {kind} format, and this condgrad knows versions up to {newest}; "
            "upgrade condgrad."
        )
    return header, arrays


def _describe(loss: Any) -> dict[str, Any]:
    for name, kind in losses.REGISTERED.items():
        if type(loss) is kind:
            parameters = inspect.get_annotations(kind)  # a loss without any has a field that is none
            return {"name": name, "parameters": {key: getattr(loss, key) for key in parameters}}
    raise ValueError(f"a model file can name the losses of condgrad.losses only; got {type(loss).__name__}.")
