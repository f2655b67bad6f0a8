"""Conversion of user data to a float matrix, a target vector or weights; an error is one clear sentence."""

from __future__ import annotations

import math
import numbers
import reprlib
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from condgrad.linalg.coded_data import CodedData
from condgrad.linalg.extent import Extent
from condgrad.linalg.factored import IterateLike
from condgrad.linalg.vectors import inner

_LARGEST = 1e60  # largest size of an entry: squares of predictions, and sums of them, must not overflow


class SparseLike(Protocol):
    """A sparse matrix or array of scipy."""

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""

    def __getitem__(self, part: object) -> SparseLike:
        """Return a part of it."""

    def __matmul__(self, w: np.ndarray) -> np.ndarray:
        """Return the product with a vector or an array."""

    def tocsr(self) -> SparseLike:
        """Return it in CSR format."""


Data: TypeAlias = ArrayLike | SparseLike  # X as users pass it
Checked: TypeAlias = np.ndarray | SparseLike  # X after conversion and checks


def as_data(X: Data) -> Any:
    """Return ``X`` as a float C- or F-ordered array, CSR or CSC matrix; copied only if it has another form."""
    return as_measured_data(X)[0]


def as_measured_data(X: Data) -> tuple[Any, Extent]:
    """Return :func:`as_data` of X, and the extent of its stored entries, which its checks find anyway."""
    if isinstance(X, CodedData):
        X = X.tocsr()
    if scipy.sparse.issparse(X):
        return _as_sparse(X)
    X = _as_float_array(X, "X")
    if X.ndim != 2:
        hint = " Use X.reshape(-1, 1) for one feature, X.reshape(1, -1) for one sample." if X.ndim == 1 else ""
        raise ValueError(f"X must have two dimensions (samples, features); got shape {X.shape}.{hint}")
    _check_not_empty(X)
    if not (X.flags.c_contiguous or X.flags.f_contiguous):
        X = np.ascontiguousarray(X)
    return X, _check_entries(X, "X")


def check_codes(X: CodedData) -> None:
    """Raise ValueError if numbers are not finite, or codes lie outside of X: kernels would read other memory."""
    _check_not_empty(X)
    n, d = X.shape
    _check_entries(X.numbers.ravel(), "X", lambda k: (k % n, int(X.places[k // n])))
    for part, firsts in zip(X.codes, X.firsts, strict=True):
        if part.size and int((part.max(axis=0) + firsts).max()) >= d:
            raise ValueError(f"{X!r} has codes of more features than it has; build it with CodedData.from_codes.")


def as_targets(y: ArrayLike, n_samples: int) -> np.ndarray:
    """Return ``y`` as a float64 vector with one entry per sample."""
    return as_vector(y, "y", n_samples)


def as_vector(y: ArrayLike, name: str, n_samples: int) -> np.ndarray:
    """Return ``y`` as a float64 vector with one entry per sample; ``name`` is its name in errors."""
    if scipy.sparse.issparse(y):
        raise ValueError(f"{name} must be a dense vector; got a sparse matrix. Use {name}.toarray().ravel().")
    y = _as_float_array(y, name)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1:
        raise ValueError(f"{name} must have one dimension; got shape {y.shape}.")
    if y.shape[0] != n_samples:
        raise ValueError(f"{name} must have one entry per sample: X has {n_samples} rows, {name} has {y.shape[0]}.")
    _check_entries(y, name)
    # Require a writable array: those of a data frame may be read-only, and kernels would be compiled again for them.
    return np.require(y, np.float64, ["C", "W"])


def as_outputs(Y: ArrayLike, n_samples: int) -> np.ndarray:
    """Return ``Y`` as a float64 array of shape (n_outputs, n_samples): the targets of an output are contiguous."""
    if scipy.sparse.issparse(Y):
        raise ValueError("Y must be a dense array; got a sparse matrix. Use Y.toarray().")
    Y = _as_float_array(Y, "Y")
    if Y.ndim != 2 or Y.shape[1] == 0:
        hint = " Use Y.reshape(-1, 1) for one output." if Y.ndim == 1 else ""
        raise ValueError(f"Y must have two dimensions (samples, outputs); got shape {Y.shape}.{hint}")
    if Y.shape[0] != n_samples:
        raise ValueError(f"Y must have one row per sample: X has {n_samples} rows, Y has {Y.shape[0]}.")
    _check_entries(Y, "Y")
    return np.require(Y.T, np.float64, ["C", "W"])


def as_weights(sample_weight: ArrayLike | None, n_samples: int) -> np.ndarray:
    """Return weights that sum to one: 1/n each where the user gave none."""
    if sample_weight is None:
        return np.full(n_samples, 1.0 / n_samples)
    weight = as_vector(sample_weight, "sample_weight", n_samples)
    if weight.min() < 0.0:
        raise ValueError(f"sample_weight must not be negative; got {weight.min():g}.")
    if weight.max() == 0.0:
        raise ValueError("sample_weight is zero for every sample; at least one must be positive.")
    weight = weight / weight.max()  # the sum of huge or tiny weights could leave the range of floats
    return weight / weight.sum()


def as_point(w: IterateLike, n_features: int, name: str) -> np.ndarray:
    """Return ``w`` as a float64 vector with one entry per feature."""
    if isinstance(w, np.ndarray) and w.dtype == np.float64 and w.shape == (n_features,) and inner(w, w) <= _LARGEST:
        return w  # fast path for solvers: nan, inf and huge entries fail the test of the norm
    w = _as_float_array(w, name)
    if w.shape != (n_features,):
        raise ValueError(f"{name} must have one entry per feature, shape ({n_features},); got shape {w.shape}.")
    _check_entries(w, name)
    return w.astype(np.float64, copy=False)


def as_number(value: object, name: str, *, low: float, what: str, below: float | None = None) -> float:
    """Return a setting as a float of at least ``low``, and less than ``below``; ``what`` says in words what it is."""
    if isinstance(value, numbers.Real) and not isinstance(value, bool) and value >= low:  # type: ignore[operator]
        try:
            number = float(value)
        except OverflowError:  # an int too large for a float
            number = math.inf
        if below is None or number < below:
            return number
    raise ValueError(f"{name} must be {what}; got {' '.join(reprlib.repr(value).split())}.")


def check_columns(X: Any) -> None:
    """Raise if X is a data frame without columns, of which NumPy cannot even make an array."""
    if hasattr(X, "columns") and np.shape(X)[1:] == (0,):
        raise ValueError(f"X must have at least one feature; got a frame of shape {np.shape(X)}.")


def check_magnitude(values: np.ndarray, name: str) -> None:
    """Raise ValueError if entries are so large that squares of predictions, and sums of them, would overflow."""
    _check_largest(float(np.abs(values).max(initial=0.0)), name)


def _check_largest(largest: float, name: str) -> None:
    if largest > _LARGEST:
        raise ValueError(f"{name} has entries up to {largest:.1e}; scale it below {_LARGEST:g}.")


def _as_float_array(values: object, name: str) -> np.ndarray:
    try:
        array = np.asarray(values)
        if array.dtype == object:  # nullable columns of pandas, lists of mixed numbers
            array = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise ValueError(f"{name} must be an array of numbers; it could not be converted ({reason}).") from None
    kinds = getattr(values, "dtypes", None)  # polars converts dates to numbers of microseconds
    if isinstance(kinds, list) and any(getattr(kind, "is_temporal", bool)() for kind in kinds):
        raise ValueError(f"{name} must be an array of numbers; got a column of dates or times.")
    if np.ma.is_masked(values):
        raise ValueError(f"{name} has masked entries. Remove or impute them.")
    if array.dtype.kind == "c":
        raise ValueError(f"{name} must be real; got dtype {array.dtype}.")
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} must be an array of numbers; got dtype {array.dtype}.")
    if array.dtype not in (np.float32, np.float64):
        with np.errstate(over="ignore"):  # an overflow gives inf, which is reported later
            array = array.astype(np.float64)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _as_sparse(X: Any) -> tuple[Any, Extent]:
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions (samples, features); got shape {X.shape}.")
    _check_not_empty(X)
    X = X if X.format in ("csr", "csc") else X.tocsr()
    _check_structure(X)
    data = _as_float_array(X.data[: X.nnz], "X")
    extent = _check_entries(data, "X", lambda k: (X.tocoo().row[k], X.tocoo().col[k]))
    has_indices = all(array.dtype in (np.int32, np.int64) for array in (X.indices, X.indptr))  # in native byte order
    if data.dtype != X.data.dtype or data.size < X.data.size or not has_indices:
        X = type(X)((data, X.indices[: X.nnz].astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape)
    if not X.has_canonical_format:  # duplicates or unsorted indices: clean a copy, never the user's matrix
        X = X.copy()
        X.sum_duplicates()
        extent = Extent.of(X.data)
    return X, extent


def _check_structure(X: Any) -> None:
    """Raise ValueError if indices point outside the matrix: kernels do not check, and would read other memory."""
    n_slices, length = X.shape if X.format == "csr" else X.shape[::-1]
    indices, indptr = X.indices[: X.nnz], X.indptr
    is_valid = (
        indptr.shape == (n_slices + 1,)
        and indptr[0] == 0
        and bool(np.all(indptr[1:] >= indptr[:-1]))
        and min(X.indices.size, X.data.size) >= indptr[-1]
        and (indices.size == 0 or (indices.min() >= 0 and indices.max() < length))
    )
    if not is_valid:
        raise ValueError(
            "X is not a valid sparse matrix: its indices or indptr do not fit its shape. Build it with scipy.sparse."
        )


def _check_not_empty(X: Any) -> None:
    if 0 in X.shape:
        raise ValueError(f"X must have at least one sample and one feature; got shape {X.shape}.")


def _check_entries(values: np.ndarray, name: str, position: Callable[[int], tuple[int, ...]] | None = None) -> Extent:
    """Return the extent of the values; raise ValueError if an entry is not finite, or too large.

    ``position(k)`` is the place of value k in a matrix.
    """
    extent = Extent.of(values)
    if not math.isfinite(extent.largest):
        bad = np.argwhere(~np.isfinite(values))
        first = tuple(bad[0]) if position is None else position(int(bad[0, 0]))
        count = "1 entry that is" if len(bad) == 1 else f"{len(bad)} entries that are"
        raise ValueError(
            f"{name} has {count} not finite, the first at position ({', '.join(map(str, first))}): "
            f"{values[tuple(bad[0])]}. Remove or impute them."
        )
    _check_largest(extent.largest, name)
    return extent
