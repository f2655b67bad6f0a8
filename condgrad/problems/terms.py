"""Terms: the functions f_1, ..., f_n of a general problem, one sample at a time, and full passes over them.

A user's terms are any object with the methods of :class:`Terms`; a NamedTuple class marked :func:`compiled_terms` runs
inside kernels.
"""

from __future__ import annotations

import abc
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from condgrad.compiled import compiled, fill_in, is_compiled, kernel
from condgrad.linalg import threads

_N_PROBED = 16  # number of terms from which the sizes of all terms are estimated
_WORK_PER_FEATURE = 5  # cost of a term in multiply-adds per feature


class Terms(abc.ABC):
    """The protocol: n functions f_i of w, with their gradients and, for second-order solvers, Hessian products.

    Besides ``value`` and ``gradient``, terms may have

    * ``hessian_product(i, w, v)``: the Hessian of f_i at w times v. Solvers that use second derivatives need it.
    * ``mean_value(w)``, ``mean_gradient(w)``, ``mean_hessian(w)``: the means over all samples, if one array
      expression computes them faster than n calls. Full passes then call these.

    The methods below are the defaults for classes with the decorator and for plain objects that do not define them.
    """

    n_samples: int | None = None
    n_features: int | None = None
    is_convex = False  # whether F, the mean of the terms, is convex over the set: then the gap bounds F(w) - F*

    def value(self, i: int, w: np.ndarray) -> float:
        """Return f_i(w)."""
        raise NotImplementedError

    def gradient(self, i: int, w: np.ndarray) -> np.ndarray:
        """Return the gradient of f_i at w, as a new array."""
        raise NotImplementedError

    def add_hessian(self, i, w, c, H):
        """Add c times the Hessian of f_i at w to the array ``H``; the default takes d products with unit vectors."""
        d = w.shape[0]
        unit = np.zeros(d)
        for j in range(d):
            unit[j] = 1.0
            column = self.hessian_product(i, w, unit)
            unit[j] = 0.0
            for k in range(d):
                H[k, j] += c * column[k]

    hessian_product: Callable[[int, np.ndarray, np.ndarray], np.ndarray]  # optional, as are the means

    def smoothness(self) -> float:
        """Return L, a Lipschitz constant over the set of the gradient of every f_i in the l2 norm; inf: not known."""
        return np.inf


def compiled_terms(cls: type) -> type:
    """Make a NamedTuple class of terms run in kernels; methods that it does not define come from :class:`Terms`.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> @compiled_terms
    ... class Distances(NamedTuple):
    ...     points: np.ndarray
    ...     def value(self, i, w):
    ...         return 0.5 * ((w - self.points[i]) ** 2).sum()
    ...     def gradient(self, i, w):
    ...         return w - self.points[i]
    >>> Distances(np.eye(2)).gradient(0, np.zeros(2))
    array([-1.,  0.])
    """
    cls = compiled(fill_in(cls, Terms))
    Terms.register(cls)
    return cls


class PlainTerms(Terms):
    """A user's object, called as ordinary Python; its results become floats, and missing methods get defaults."""

    def __init__(self, given: Any) -> None:
        self.given = given
        self.is_convex = bool(getattr(given, "is_convex", False))
        for name in ("hessian_product", "mean_value", "mean_gradient", "mean_hessian"):
            if hasattr(given, name):  # solvers test hasattr
                setattr(self, name, functools.partial(_as_floats, getattr(given, name)))

    def __repr__(self) -> str:
        return repr(self.given)

    def value(self, i: int, w: np.ndarray) -> float:
        """Return f_i(w)."""
        return float(self.given.value(i, w))

    def gradient(self, i: int, w: np.ndarray) -> np.ndarray:
        """Return the gradient of f_i at w."""
        return _as_floats(self.given.gradient, i, w)

    def add_hessian(self, i: int, w: np.ndarray, c: float, H: np.ndarray) -> None:
        """Add c times the Hessian of f_i at w to ``H``, by the object's own method if it has one."""
        if hasattr(self.given, "add_hessian"):
            self.given.add_hessian(i, w, c, H)
            return
        for j, unit in enumerate(np.eye(w.size)):
            H[:, j] += c * _as_floats(self.given.hessian_product, i, w, unit)

    def smoothness(self) -> float:
        """Return L, or inf if the object does not define it."""
        return float(self.given.smoothness()) if hasattr(self.given, "smoothness") else np.inf


def as_terms(given: object) -> Terms:
    """Return the user's terms in the form that solvers call: compiled terms unchanged, others as PlainTerms."""
    if isinstance(given, type):
        raise TypeError(f"terms must be an object, not a class; use {given.__name__}(...).")
    missing = [name for name in ("value", "gradient") if not callable(getattr(given, name, None))]
    if missing:
        raise TypeError(
            f"terms must have the methods value(i, w) and gradient(i, w); "
            f"{type(given).__name__} has no {' and no '.join(missing)}."
        )
    return given if isinstance(given, Terms) and is_compiled(given) else PlainTerms(given)


def mean_value(terms: Terms, n: int, w: np.ndarray) -> float:
    """Return (1/n) sum_i f_i(w), on all cores where the terms are compiled."""
    if hasattr(terms, "mean_value"):
        return float(terms.mean_value(w))
    if is_compiled(terms):
        return float(sum(threads.run(functools.partial(_sum_values, terms, w), _borders(n, w.size)))) / n
    return sum(terms.value(i, w) for i in range(n)) / n


def mean_gradient(terms: Terms, n: int, w: np.ndarray) -> np.ndarray:
    """Return (1/n) sum_i grad f_i(w), on all cores where the terms are compiled."""
    if hasattr(terms, "mean_gradient"):
        return np.array(terms.mean_gradient(w), dtype=np.float64)
    if is_compiled(terms):
        return np.asarray(sum(threads.run(functools.partial(_sum_gradients, terms, w), _borders(n, w.size)))) / n
    total = np.zeros(w.size)
    for i in range(n):
        total += terms.gradient(i, w)
    return total / n


def mean_hessian(terms: Terms, n: int, w: np.ndarray) -> np.ndarray:
    """Return (1/n) sum_i of the Hessians of f_i at w, on all cores where the terms are compiled."""
    if hasattr(terms, "mean_hessian"):
        return np.array(terms.mean_hessian(w), dtype=np.float64)
    if is_compiled(terms):
        return np.asarray(sum(threads.run(functools.partial(_sum_hessians, terms, w), _borders(n, w.size**2)))) / n
    total = np.zeros((w.size, w.size))
    for i in range(n):
        terms.add_hessian(i, w, 1.0, total)
    return total / n


def typical_sizes(terms: Terms, n: int, w: np.ndarray) -> tuple[float, np.ndarray]:
    """Return estimates of the means of |f_i(w)| and of the absolute gradients, from some of the terms."""
    probed = np.unique(np.linspace(0, n - 1, min(n, _N_PROBED)).astype(np.int64)).tolist()
    value = sum(abs(float(terms.value(i, w))) for i in probed) / len(probed)
    return value, sum(np.abs(terms.gradient(i, w)) for i in probed) / len(probed)


def _as_floats(method: Callable[..., ArrayLike], *args: object) -> np.ndarray:
    return np.asarray(method(*args), dtype=np.float64)


def _borders(n: int, entries: int) -> np.ndarray:
    return threads.cut(n, _WORK_PER_FEATURE * n * entries)


@kernel
def _sum_values(terms, w, start, stop):
    total = 0.0
    for i in range(start, stop):
        total += terms.value(i, w)
    return total


@kernel
def _sum_gradients(terms, w, start, stop):
    total = np.zeros(w.shape[0])
    for i in range(start, stop):
        r = terms.gradient(i, w)
        for j in range(w.shape[0]):
            total[j] += r[j]
    return total


@kernel
def _sum_hessians(terms, w, start, stop):
    total = np.zeros((w.shape[0], w.shape[0]))
    for i in range(start, stop):
        terms.add_hessian(i, w, 1.0, total)
    return total
