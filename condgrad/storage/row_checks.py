"""Checker: every batch of a source is checked before any of its samples is stored; all batches have one form."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import scipy.sparse

from condgrad.linalg.convert import as_data, as_vector
from condgrad.linalg.one_hot import OneHotMatrix
from condgrad.linalg.one_hot_slices import WIDTHS
from condgrad.storage.file_entries import take
from condgrad.storage.layouts import check_fields
from condgrad.storage.row_batch import RowBatch
from condgrad.storage.sources.base import Batch


@dataclasses.dataclass(frozen=True)
class Form:
    """What all batches have in common: ``fields`` has the first features of the one-hot fields of each width."""

    kind: str
    dtype: str
    n_features: int
    has_y: bool
    has_weight: bool
    fields: dict[str, list[int]] | None = None
    has_offset: bool = False

    @classmethod
    def from_dict(cls, form: Any) -> Form:
        """Return the form as it stands in a journal."""
        fields = take(form, "fields", dict) if take(form, "kind", str) == "one-hot" else None
        found = cls(
            take(form, "kind", str),
            take(form, "dtype", str),
            take(form, "n_features", int),
            take(form, "has_y", bool),
            take(form, "has_weight", bool),
            fields,
            take(form, "has_offset", bool),
        )
        if found.dtype not in ("float32", "float64") or not 0 < found.n_features < 2**62:
            raise ValueError("the form of the batches is impossible")
        if fields is not None:
            check_fields(fields, found.n_features)
        return found


class Checker:
    """Returns the samples of batches as arrays; the first batch determines the form of all.

    Parameters
    ----------
    dtype : numpy dtype or None
        What X is converted to. With None, float32 stays float32, and anything else becomes float64.
    has_fixed_width : bool
        Whether batches must have the same number of features; otherwise the form has the largest one so far.
    form : Form or None
        The form of the batches before, where a conversion continues.
    """

    def __init__(self, dtype: np.dtype | None, has_fixed_width: bool, form: Form | None = None) -> None:
        self.dtype, self.has_fixed_width, self.form = dtype, has_fixed_width, form

    def check(self, batch: Batch) -> RowBatch:
        """Return the samples of a batch, copied; raise one sentence if they are not usable."""
        X = batch.X if isinstance(batch.X, OneHotMatrix) else as_data(batch.X)
        form = self._form_of(X, batch)
        self.form = form if self.form is None else self._agreed(self.form, form)
        arrays, sparse = _arrays_of(X, np.dtype(self.form.dtype))
        for name, part in (("y", batch.y), ("weight", batch.weight), ("offset", batch.offset)):
            if part is not None:
                arrays[name] = np.array(as_vector(part, name, X.shape[0]))
        if batch.weight is not None and arrays["weight"].min() < 0.0:
            raise ValueError(f"weight must not be negative; got {arrays['weight'].min():g}.")
        return RowBatch(arrays, sparse)

    def _form_of(self, X: Any, batch: Batch) -> Form:
        fields = None
        if isinstance(X, OneHotMatrix):
            kind, dtype = "one-hot", np.dtype(np.float32)
            fields = {f"codes{width}": first.tolist() for width, first in zip(WIDTHS, X.firsts) if first.size}
        else:
            kind, dtype = "sparse" if scipy.sparse.issparse(X) else "dense", self.dtype or X.dtype
        has_y, has_weight, has_offset = (part is not None for part in (batch.y, batch.weight, batch.offset))
        return Form(kind, dtype.name, X.shape[1], has_y, has_weight, fields, has_offset)

    def _agreed(self, first: Form, own: Form) -> Form:
        if own.kind != first.kind:
            raise ValueError(f"X is {own.kind}, and it was {first.kind} in the first batch; make all batches alike.")
        if own.n_features != first.n_features and self.has_fixed_width:
            raise ValueError(f"X has {own.n_features} features, and the first batch had {first.n_features}.")
        for name, has, had in (
            ("y", own.has_y, first.has_y),
            ("weight", own.has_weight, first.has_weight),
            ("offset", own.has_offset, first.has_offset),
        ):
            if has != had:
                raise ValueError(f"{name} is {_given(has)}, and it was {_given(had)} with the first batch.")
        if own.fields != first.fields:
            raise ValueError("the fields of X have other numbers of categories than those of the first batch.")
        if (own.dtype, first.dtype) == ("float64", "float32"):
            raise ValueError("X is float64, and it was float32 in the first batch; give dtype='float32' or 'float64'.")
        return dataclasses.replace(first, n_features=max(own.n_features, first.n_features))


def _given(is_there: bool) -> str:
    return "given" if is_there else "missing"


def _arrays_of(X: Any, dtype: np.dtype) -> tuple[dict[str, np.ndarray], Any]:
    """Return copies of the rows: arrays by role, and the matrix if X is sparse."""
    if isinstance(X, OneHotMatrix):
        return {f"codes{part.itemsize}": np.array(part) for part in X.codes if part.shape[1]}, None
    is_sparse = scipy.sparse.issparse(X)
    with np.errstate(over="ignore"):
        rows = X.tocsr().astype(dtype, copy=True) if is_sparse else np.array(X, dtype, order="C")
    values = rows.data if is_sparse else rows
    if X.dtype != dtype and not np.isfinite(values).all():
        raise ValueError(f"X has entries that are too large for {dtype.name}; give dtype='float64'.")
    return ({}, rows) if is_sparse else ({"X": rows}, None)
