"""Models from the headers and arrays of files: every field is checked, for anybody may have written them."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Hashable
from typing import Any

import numpy as np

from condgrad import losses
from condgrad.linalg.saved import take_column, take_floats, take_indices, take_like
from condgrad.models.completion import CompletionModel
from condgrad.models.ids import Ids
from condgrad.models.linear import Model
from condgrad.models.multi import MULTINOMIAL, OUTPUTS, REST, MultiModel
from condgrad.run.result import Status

_MOST = 2**53  # counts are below it, as floats hold them exactly
_OF_A_PROBLEM = ("constraint", "radius", "objective", "gap", "rounding", "lower_bound", "status", "n_steps")


def linear_model(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Model:
    """Return a linear model."""
    n_features, of_all = _count(header["n_features"], "n_features"), _of_all(header)
    return Model(
        w=_coefficients(arrays, (n_features,)),
        intercept=_number(header["intercept"], "intercept"),
        classes=_classes(header["classes"], None if of_all["loss"].classes is None else 2),
        feature_names=_feature_names(header["feature_names"], n_features),
        has_offset=_of_kind(header.get("has_offset", False), bool, "has_offset"),  # older files do not say
        **of_all,
        **_of_a_problem({"rounding": None} | header),  # older files have no rounding
    )


def multi_model(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> MultiModel:
    """Return several linear models that belong together."""
    n_rows, n_features = (_count(size, "shape") for size in _of_kind(header["shape"], list, "shape"))
    kind = header["kind"]
    columns = [_of_kind(header[name], list, name) for name in _OF_A_PROBLEM]
    problems = [_of_a_problem(dict(zip(_OF_A_PROBLEM, row, strict=True))) for row in zip(*columns, strict=True)]
    if len(problems) not in {OUTPUTS: {1, n_rows}, REST: {n_rows}, MULTINOMIAL: {1}}.get(kind, ()):
        raise ValueError(f"it has {len(problems)} certificates for {n_rows} rows of the kind {reprlib.repr(kind)}")
    fields = _of_all(header) | {name: tuple(problem[name] for problem in problems) for name in _OF_A_PROBLEM}
    return MultiModel(
        coef=_coefficients(arrays, (n_rows, n_features)),
        intercept=take_floats(arrays, "intercepts", n_rows),
        kind=kind,
        classes=_classes(header["classes"], None if kind == OUTPUTS else n_rows),
        feature_names=_feature_names(header["feature_names"], n_features),
        **fields,
    )


def completion_model(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> CompletionModel:
    """Return a completed matrix."""
    m, n = (take_column(arrays, f"{side}_bias").size for side in ("row", "column"))
    A = take_floats(arrays, "A", m, None)
    own = _of_a_problem({"rounding": None} | header)  # older files have no rounding
    if own["radius"] is None:
        raise ValueError("its radius is missing")
    return CompletionModel(
        factors=(A, take_floats(arrays, "B", n, A.shape[1])),
        intercept=_number(header["intercept"], "intercept"),
        row_bias=take_floats(arrays, "row_bias", m),
        column_bias=take_floats(arrays, "column_bias", n),
        is_row_seen=take_like(arrays, "is_row_seen", np.zeros(m, dtype=bool)),
        is_column_seen=take_like(arrays, "is_column_seen", np.zeros(n, dtype=bool)),
        row_labels=_ids(header["row_labels"], m, "row_labels"),
        column_labels=_ids(header["column_labels"], n, "column_labels"),
        value_range=_range(header.get("value_range")),  # older files have none
        **_of_all(header),
        **own,
    )


def _of_all(header: dict[str, Any]) -> dict[str, Any]:
    """Return the loss, and where the model comes from."""
    name, parameters = _word(header["loss"]["name"], "loss"), _of_kind(header["loss"]["parameters"], dict, "loss")
    loss = losses.by_name(name, **{key: _number(value, f"loss: {key}") for key, value in parameters.items()})
    words = {name: _word(header[name], name) for name in ("solver", "version")}
    return {"loss": loss, "n_samples": _count(header["n_samples"], "n_samples")} | words


def _of_a_problem(header: dict[str, Any]) -> dict[str, Any]:
    """Return the set of a problem and its certificate; JSON has no infinities, for which None stands."""
    radius, rounding, bound = header["radius"], header["rounding"], header["lower_bound"]
    gap = _number(header["gap"], "gap", low=0.0, is_finite=False)
    is_known = gap < math.inf  # a run that was interrupted before its first pass knows no objective either
    is_unknown = rounding is None or rounding != rounding
    return {
        "constraint": _word(header["constraint"], "constraint"),
        "radius": None if radius is None else _number(radius, "radius", low=0.0, is_finite=False),
        "objective": _number(header["objective"], "objective") if is_known else float(header["objective"]),
        "gap": gap,
        "rounding": math.nan if is_unknown else _number(rounding, "rounding", low=0.0, is_finite=False),
        "lower_bound": -math.inf if bound is None else _number(bound, "lower_bound"),
        "status": Status[_word(header["status"], "status")],
        "n_steps": _count(header["n_steps"], "n_steps"),
    }


def _coefficients(arrays: dict[str, np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    """Return an array of this shape from its nonzero entries."""
    coef = np.zeros(shape)
    places = take_indices(arrays, "indices", coef.size, distinct=True)
    coef.ravel()[places] = take_floats(arrays, "values", places.size)
    return coef


def _of_kind(value: Any, kind: type, name: str) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"its {name} cannot be {reprlib.repr(value)}")
    return value


def _word(value: Any, name: str) -> str:
    word: str = _of_kind(value, str, name)
    return word


def _count(value: Any, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _MOST:
        raise ValueError(f"its {name} cannot be {reprlib.repr(value)}")
    return int(value)


def _number(value: Any, name: str, *, low: float = -math.inf, is_finite: bool = True) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and value >= low
    if not is_number or not (math.isfinite(value) or not is_finite):
        raise ValueError(f"its {name} cannot be {reprlib.repr(value)}")
    return float(value)


def _classes(given: Any, count: int | None) -> tuple[Any, ...] | None:
    """Return so many different labels, or None."""
    if (given is None) != (count is None):
        raise ValueError(f"its classes cannot be {reprlib.repr(given)}")
    if given is None:
        return None
    labels = tuple(_of_kind(given, list, "classes"))
    if len(labels) != count or not all(map(_is_plain, labels)) or len(set(labels)) != count:
        raise ValueError(f"its classes must be {count} different labels, but they are {reprlib.repr(given)}")
    return labels


def _feature_names(given: Any, n_features: int) -> tuple[str, ...] | None:
    if given is None:
        return None
    names = tuple(_word(name, "feature_names") for name in _of_kind(given, list, "feature_names"))
    if len(names) != n_features:
        raise ValueError(f"it has {len(names)} feature_names for {n_features} features")
    return names


def _ids(given: Any, size: int, name: str) -> Ids:
    """Return ids as they were before JSON turned tuples into lists."""
    if given is None:
        return None
    ids = tuple(map(_id, _of_kind(given, list, name)))
    if len(ids) != size or len(set(ids)) != size:
        raise ValueError(f"its {name} must be {size} different ids, but there are {len(set(ids))}")
    return ids


def _id(given: Any) -> Hashable:
    if isinstance(given, list):
        return tuple(map(_id, given))
    if given is not None and not _is_plain(given):
        raise ValueError(f"an id cannot be {reprlib.repr(given)}")
    plain: Hashable = given
    return plain


def _is_plain(label: Any) -> bool:
    """Return whether a label is a word, or a number that arrays can hold."""
    return isinstance(label, str) or (isinstance(label, int | float) and -(2**63) <= label < 2**63)


def _range(given: Any) -> tuple[float, float] | None:
    if given is None:
        return None
    low, high = (_number(end, "value_range", is_finite=False) for end in given)
    if not low < high:
        raise ValueError(f"its value_range cannot be {low:g} to {high:g}")
    return low, high
