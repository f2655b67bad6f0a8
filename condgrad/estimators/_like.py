"""like: predictions come back where X came from, as arrays of its library."""

from __future__ import annotations

from typing import Any

import numpy as np
import sklearn

from condgrad.linalg.device.arrays import is_foreign, is_on_device, is_torch


def like(X: Any, array: np.ndarray) -> Any:
    """Return numbers as an array of the library of X, on its device; words, which only NumPy has, as they are.

    For X in the memory of the host this is done where scikit-learn's estimators do it: with ``array_api_dispatch=True``
    in its configuration.
    """
    is_asked = is_on_device(X) or (is_foreign(X) and sklearn.get_config()["array_api_dispatch"])
    if not is_asked or array.dtype.kind not in "fiub":
        return array
    if is_torch(X):
        import torch

        return torch.as_tensor(array, device=X.device)
    if is_on_device(X):
        import cupy

        return cupy.asarray(array)
    return X.__array_namespace__().asarray(array, device=X.device)
