"""Sets given only by a user's linear minimisation oracle."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import numpy as np

from condgrad.constraints._parameters import as_positive_integer, to_array
from condgrad.constraints._protocol import ConstraintSet, as_array
from condgrad.constraints.vertices import Atom, DenseVertex, SparseVertex, Vertex
from condgrad.linalg.convert import check_magnitude
from condgrad.linalg.vectors import Vector


class OracleSet(ConstraintSet):
    """A set given by a function that minimises linear functions over it.

    It is not compiled: for speed, write a NamedTuple class with :func:`condgrad.constraints.constraint_set`.

    Parameters
    ----------
    lmo : callable
        Takes an array r of shape (n_features,) and returns the point s of the set with the smallest <r, s>: an array
        of that shape, or an Atom, SparseVertex or DenseVertex.
    violation : callable, optional
        Takes w and returns by how much it breaks the constraint (at most 0: it does not). Without it, the distance is
        found by up to 300 calls of ``lmo``; that may miss points less than about 1e-5 outside a round set.
    n_features : int, optional
        The dimension, if the set has vectors of one length only.
    contains : callable, optional
        Takes w and returns whether it lies in the set; used if ``violation`` is not given.
    is_polytope : bool
        Whether the set has finitely many vertices.

    Examples
    --------
    >>> import numpy as np
    >>> disc = OracleSet(lambda r: -r / max(np.linalg.norm(r), 1e-300))
    >>> disc.contains([0.6, 0.8]), disc.contains([0.6, 0.9])
    (True, False)
    """

    def __init__(
        self,
        lmo: Callable[[np.ndarray], object],
        violation: Callable[[np.ndarray], float] | None = None,
        n_features: int | None = None,
        *,
        contains: Callable[[np.ndarray], bool] | None = None,
        is_polytope: bool = False,
    ) -> None:
        for name, function in {"lmo": lmo, "violation": violation, "contains": contains}.items():
            if not callable(function) and (name == "lmo" or function is not None):
                raise TypeError(f"{name} of OracleSet must be a function; got {function!r}.")
        self._lmo, self._violation, self._contains = lmo, violation, contains
        if n_features is not None:
            self.n_features = as_positive_integer("OracleSet", "n_features", n_features)
        self.is_polytope = bool(is_polytope)

    def __repr__(self) -> str:
        name = getattr(self._lmo, "__qualname__", None) or repr(self._lmo)
        return f"OracleSet({name})" if self.n_features is None else f"OracleSet({name}, n_features={self.n_features})"

    def lmo(self, r: Vector) -> Vertex:
        """Return the result of the user's function as a vertex, after checks."""
        return _as_vertex(self._lmo(as_array(r).copy()), r.size())

    def violation(self, w: np.ndarray) -> float:
        """Return the user's violation; or 0 where the user's ``contains`` returns True; or the distance."""
        if self._violation is not None:
            return float(self._violation(w))
        if self._contains is not None and self._contains(w):
            return 0.0
        distance = super().violation(w)
        return distance if self._contains is None else max(distance, np.finfo(float).tiny)

    @property
    def is_violation_searched(self) -> bool:
        """Whether the user gave none; ``contains`` does not tell rounding from more."""
        return self._violation is None

    def contains(self, w: np.ndarray, tol: float = 1e-9) -> bool:
        """Return whether ``w`` lies in the set, up to ``tol``; without ``violation``, by the user's ``contains``."""
        w = np.asarray(w, dtype=np.float64)
        if self._violation is None and self._contains is not None:
            return bool(self._contains(w))
        return super().contains(w, tol)


def as_constraint_set(obj: object) -> ConstraintSet:
    """Return ``obj`` if it is a constraint set, else wrap its method ``lmo``.

    An object of your own needs ``lmo(r)``, which takes and returns an array; ``violation(w)``, ``contains(w)``,
    ``n_features`` and ``is_polytope`` are used if it has them (see :class:`OracleSet`).

    >>> class Corner:
    ...     def lmo(self, r):
    ...         return (r < 0).astype(float)
    >>> as_constraint_set(Corner()).contains([0.5, 1.0])
    True
    """
    if inspect.isclass(obj):
        raise TypeError(f"constraint must be an object; got the class {obj.__name__}. Call it with its parameters.")
    if isinstance(obj, ConstraintSet):
        return obj
    lmo = getattr(obj, "lmo", None)
    if not callable(lmo):
        raise TypeError(
            f"constraint must be a set of condgrad.constraints or have a method lmo; got {type(obj).__name__}."
        )
    return OracleSet(
        lmo,
        getattr(obj, "violation", None),
        getattr(obj, "n_features", None),
        contains=getattr(obj, "contains", None),
        is_polytope=getattr(obj, "is_polytope", False),
    )


def as_set_for(obj: object, n_features: int) -> ConstraintSet:
    """Return ``obj`` as a set of vectors of length ``n_features``; raise if it does not fit, or is too large.

    The two ends of the set along a generic direction show whether predictions could overflow.
    """
    constraint = as_constraint_set(obj)
    constraint.check_features(n_features)
    for end in constraint.far_vertices(n_features):
        check_magnitude(end.support()[1], "constraint")
    return constraint


def _as_vertex(answer: object, n_features: int) -> Vertex:
    """Return the result of a user's oracle as a vertex, or raise an error that says what is wrong with it."""
    if isinstance(answer, Atom | SparseVertex):
        indices, values = answer.support()
        if np.min(indices) < 0 or np.max(indices) >= n_features:
            raise ValueError(f"lmo must return a vertex within {n_features} features; got index {np.max(indices)}.")
        s = answer
    else:
        values = to_array("your set", "the answer of lmo", answer.values if isinstance(answer, DenseVertex) else answer)
        if values.dtype.kind not in "fiu":
            raise TypeError(f"lmo must return an array of real numbers; got {type(answer).__name__}.")
        if values.shape != (n_features,):
            raise ValueError(f"lmo must return an array of shape ({n_features},); got shape {values.shape}.")
        s = DenseVertex(np.array(values, dtype=np.float64))
    if not np.isfinite(values).all():
        raise ValueError(f"lmo must return finite numbers; got {float(values[~np.isfinite(values)][0])!r}.")
    return s
