"""The arrays of users on a device: CuPy's, PyTorch's, and those of the host that are sent there."""

from __future__ import annotations

import contextlib
import functools
from typing import Any, Protocol, runtime_checkable

import numpy as np

from condgrad.linalg.convert import as_data, as_vector
from condgrad.linalg.device.base import Device, DeviceArray
from condgrad.linalg.device.dense import DenseOnDevice
from condgrad.linalg.device.matrices import DeviceMatrix
from condgrad.linalg.device.sparse import OneHotOnDevice, SparseOnDevice
from condgrad.linalg.device.streamed import HostRows, MatrixRows, StreamedMatrix, sent_ahead
from condgrad.linalg.matrix import Matrix

NAMES = ("cuda",)
_FLOATS = ("float32", "float64")
_SPACE = {"dense": 1, "sparse": 3, "one-hot": 4}  # memory that rows take there while they are arranged, in their size


def device_by_name(name: object) -> Device:
    """Return the device with that name, or raise with one sentence if there is none."""
    check_name(name)
    return _current_gpu()


def check_name(name: object) -> None:
    """Raise ValueError if no device has this name."""
    if not isinstance(name, str) or name not in NAMES:
        raise ValueError(f"device must be 'cuda' or None (the processor); got {name!r}.")


@functools.cache
def _current_gpu() -> Device:
    try:
        from condgrad.linalg.device.cuda_device import CudaDevice

        return CudaDevice()
    except ImportError as error:
        raise ImportError(
            "device='cuda' needs CuPy, which is not installed; install condgrad[cuda], or leave device out."
        ) from error
    except Exception as error:  # CuPy raises its own errors where there is no driver or no GPU
        raise RuntimeError(f"device='cuda' was asked for, but no GPU can be used here: {error}") from error


def is_on_device(X: object) -> bool:
    """Return whether X is an array of CuPy, or a tensor of PyTorch on a GPU."""
    package = type(X).__module__.partition(".")[0]
    return package in ("cupy", "cupyx") or (package == "torch" and bool(X.is_cuda))  # type: ignore[attr-defined]


def is_torch(X: object) -> bool:
    """Return whether X is a tensor of PyTorch."""
    return type(X).__module__.partition(".")[0] == "torch"


@runtime_checkable
class _OfNamespace(Protocol):
    """An array of a library that follows the standard of arrays."""

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """Return the functions of its library."""


def is_foreign(array: object) -> bool:
    """Return whether this is an array of another library than NumPy: CuPy, PyTorch, or one of the array API."""
    is_numpy = isinstance(array, np.ndarray | np.generic)
    return not is_numpy and (is_on_device(array) or is_torch(array) or isinstance(array, _OfNamespace))


def on_host(array: Any) -> Any:
    """Return an array of another library as an array of NumPy in the memory of the host, anything else as it is."""
    if not is_foreign(array):
        return array
    if is_torch(array):
        array = array.detach().cpu()
        return (array.float() if str(array.dtype) == "torch.bfloat16" else array).numpy()
    return array.get() if is_on_device(array) else np.from_dlpack(array)


def beside(array: np.ndarray, other: Any) -> Any:
    """Return an array of the host where another array lies: as it is, or as a copy on a GPU."""
    return np.asarray(array, like=other)


def refuse_on_device(X: object, who: str) -> None:
    """Raise TypeError, with one sentence, if X is on a GPU."""
    if is_on_device(X):
        raise TypeError(f"{who} needs X in the memory of the host; pass X.get() of CuPy, or X.cpu() of PyTorch.")


def matrix_on_device(device: Device, X: Any) -> DeviceMatrix | StreamedMatrix:
    """Return X on the device; arrays that are there already are not copied if they are contiguous floats.

    Data of the host that the device cannot hold are streamed in every pass.
    """
    is_bfloat16 = is_torch(X) and X.is_cuda and str(X.dtype) == "torch.bfloat16"
    X = _of_torch(device, X) if is_torch(X) else X
    if not is_on_device(X):
        return rows_for(device, MatrixRows(Matrix(as_data(X))))
    if device.sparse.issparse(X):
        X = X.tocsr() if X.tocsr().has_canonical_format else X.tocsr(copy=True)
        X.sum_duplicates()
        return SparseOnDevice(device, X if str(X.dtype) in _FLOATS else X.astype(np.float64))
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"X must have two dimensions (samples, features), none of them 0; got shape {X.shape}.")
    if is_bfloat16:  # its bits, as whole numbers
        return DenseOnDevice(device, device.xp.ascontiguousarray(X))
    if str(X.dtype) not in _FLOATS:
        raise TypeError(f"X on a device must be float32, float64 or bfloat16; got {X.dtype}. Convert it first.")
    return DenseOnDevice(device, device.xp.ascontiguousarray(X))


def vector_on_device(device: Device, y: Any, name: str, n_samples: int) -> DeviceArray:
    """Return one number for each sample in float64, on the device; ``name`` is its name in errors."""
    y = _of_torch(device, y) if is_torch(y) else y
    if not is_on_device(y):
        return device.to_device(as_vector(y, name, n_samples))
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    if y.shape != (n_samples,):
        raise ValueError(f"{name} must have one entry per sample, shape ({n_samples},); got shape {y.shape}.")
    y = device.xp.ascontiguousarray(y.astype(np.float64))
    if not bool(device.xp.isfinite(y).all()):
        raise ValueError(f"{name} has entries that are not finite; remove these samples.")
    return y


def weights_on_device(device: Device, weight: Any, n_samples: int) -> DeviceArray | None:
    """Return the weights of the samples on the device, None where all are equal."""
    if weight is None:
        return None
    v = vector_on_device(device, weight, "sample_weight", n_samples)
    if float(v.min()) < 0.0:
        raise ValueError(f"sample_weight must not be negative; got {float(v.min()):g}.")
    if float(v.max()) == 0.0:
        raise ValueError("sample_weight is zero for every sample; at least one must be positive.")
    return v


def rows_for(device: Device, source: HostRows) -> DeviceMatrix | StreamedMatrix:
    """Return rows of the host on the device if it can hold them, else rows that are streamed to it in every pass."""
    can_hold = device.holds(_SPACE[source.kind] * source.n_bytes)
    return rows_sent(device, source) if can_hold else StreamedMatrix(device, source)


def rows_sent(device: Device, source: HostRows) -> DeviceMatrix:
    """Return rows of the host as one matrix on the device."""
    (n_samples, n_features), parts = source.shape, []
    whole: DeviceArray | None = None
    with contextlib.closing(sent_ahead(device, source.chunks())) as pieces:
        for place, arrays in pieces:
            if source.kind == "sparse":
                shape = (place.stop - place.start, n_features)
                parts.append(device.sparse.csr_matrix(tuple(each.copy() for each in arrays), shape=shape))
                continue
            (array,), is_dense = arrays, source.kind == "dense"
            if whole is None:
                shape = (n_samples, n_features) if is_dense else (array.shape[0], n_samples)
                whole = device.xp.empty(shape, dtype=array.dtype)
            whole[place if is_dense else (slice(None), place)] = array
    if source.kind == "sparse":
        return SparseOnDevice(device, device.sparse.vstack(parts, format="csr") if len(parts) > 1 else parts[0])
    return DenseOnDevice(device, whole) if source.kind == "dense" else OneHotOnDevice(device, whole, n_features)


def _of_torch(device: Device, tensor: Any) -> DeviceArray:
    if not tensor.is_cuda:
        return on_host(tensor)
    if str(tensor.layout) == "torch.sparse_csr":
        parts = (tensor.values(), tensor.col_indices(), tensor.crow_indices())
        data, indices, indptr = (device.xp.from_dlpack(part.contiguous()) for part in parts)
        return device.sparse.csr_matrix((data, indices.astype(np.int32), indptr.astype(np.int32)), shape=tensor.shape)
    if str(tensor.dtype) == "torch.bfloat16":
        import torch

        tensor = tensor.view(torch.uint16)
    return device.xp.from_dlpack(tensor.detach().contiguous())
