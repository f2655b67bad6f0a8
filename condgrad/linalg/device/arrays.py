"""The arrays of users on a device: CuPy's, PyTorch's, and those of the host that are sent there."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse

from condgrad.linalg.convert import as_data, as_vector
from condgrad.linalg.device.base import Device, DeviceArray
from condgrad.linalg.device.dense import DenseOnDevice
from condgrad.linalg.device.matrices import DeviceMatrix
from condgrad.linalg.device.sparse import OneHotOnDevice, SparseOnDevice
from condgrad.linalg.matrix import ByRows, Matrix
from condgrad.linalg.one_hot import OneHotMatrix

NAMES = ("cuda",)
_FLOATS = ("float32", "float64")
_ROOM = 0.9  # share of the free memory of a device that data may take


def device_by_name(name: object) -> Device:
    """Return the device with that name, or raise with one sentence if there is none."""
    if not isinstance(name, str) or name not in NAMES:
        raise ValueError(f"device must be 'cuda' or None (the processor); got {name!r}.")
    return _current_gpu()


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


def _is_torch(X: object) -> bool:
    return type(X).__module__.partition(".")[0] == "torch"


def on_host(array: Any) -> Any:
    """Return an array of a device in the memory of the host, anything else as it is."""
    if not is_on_device(array):
        return array
    return array.detach().cpu().numpy() if _is_torch(array) else array.get()


def matrix_on_device(device: Device, X: Any) -> DeviceMatrix:
    """Return X on the device; arrays that are there already are not copied if they are contiguous floats."""
    is_bfloat16 = _is_torch(X) and X.is_cuda and str(X.dtype) == "torch.bfloat16"
    X = _of_torch(device, X) if _is_torch(X) else X
    if not is_on_device(X):
        return _sent(device, as_data(X))
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
    y = _of_torch(device, y) if _is_torch(y) else y
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


def chunks_on_device(device: Device, chunks: Iterable[ByRows], n_samples: int, n_features: int) -> DeviceMatrix:
    """Return chunks of rows, dense, sparse or codes of categories, as one matrix on the device."""
    first, parts = 0, []
    whole: DeviceArray | None = None
    for chunk in chunks:
        if isinstance(chunk, OneHotMatrix):
            codes = device.to_device(np.ascontiguousarray(chunk.features(slice(None)).T.astype(np.int32)))
            whole = device.xp.empty((codes.shape[0], n_samples), dtype=np.int32) if whole is None else whole
            whole[:, first : first + codes.shape[1]] = codes
        else:
            assert isinstance(chunk, Matrix)
            X = chunk.X
            if scipy.sparse.issparse(X):
                parts.append(device.sparse.csr_matrix(X, copy=True))
            else:
                whole = device.xp.empty((n_samples, n_features), dtype=X.dtype) if whole is None else whole
                whole[first : first + X.shape[0]] = device.to_device(X)
        first += chunk.shape[0]
    if parts:
        return SparseOnDevice(device, device.sparse.vstack(parts, format="csr"))
    assert whole is not None
    is_one_hot = whole.dtype == np.int32
    return OneHotOnDevice(device, whole, n_features) if is_one_hot else DenseOnDevice(device, whole)


def check_room(device: Device, n_bytes: int) -> None:
    """Raise MemoryError, with one sentence, if data of this size do not fit into the memory of the device."""
    free = device.free_bytes()
    if n_bytes > _ROOM * free:
        raise MemoryError(
            f"X takes {n_bytes / 1e9:.1f} GB, but {free / 1e9:.1f} GB are free on {device.name}; "
            "leave device out, use float32, or divide the rows among several devices with Dask."
        )


def _of_torch(device: Device, tensor: Any) -> DeviceArray:
    if not tensor.is_cuda:
        tensor = tensor.detach()
        return (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()
    if str(tensor.layout) == "torch.sparse_csr":
        parts = (tensor.values(), tensor.col_indices(), tensor.crow_indices())
        data, indices, indptr = (device.xp.from_dlpack(part.contiguous()) for part in parts)
        return device.sparse.csr_matrix((data, indices.astype(np.int32), indptr.astype(np.int32)), shape=tensor.shape)
    if str(tensor.dtype) == "torch.bfloat16":
        import torch

        tensor = tensor.view(torch.uint16)
    return device.xp.from_dlpack(tensor.detach().contiguous())


def _sent(device: Device, X: Any) -> DeviceMatrix:
    """Send checked data of the host to the device."""
    if scipy.sparse.issparse(X):
        X = X.tocsr()
        check_room(device, 2 * (X.data.nbytes + X.indices.nbytes) + X.indptr.nbytes)
        return SparseOnDevice(device, device.sparse.csr_matrix(X))
    check_room(device, X.nbytes)
    return DenseOnDevice(device, device.to_device(np.ascontiguousarray(X)))
