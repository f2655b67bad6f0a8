"""GeneralProblem: minimise (1/n) sum_i f_i(w) over a constraint set, for terms f_i of any form."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from condgrad.compiled import is_compiled
from condgrad.constraints.oracle_set import as_set_for
from condgrad.linalg import convert
from condgrad.linalg.factored import IterateLike
from condgrad.linalg.fingerprint import fingerprint_of
from condgrad.problems import taylor_points
from condgrad.problems import terms as passes
from condgrad.problems.base import BaseProblem, Feature
from condgrad.problems.finite_sum import GeneralSum
from condgrad.problems.look import Look
from condgrad.problems.taylor_points import Expansions, Workspace


class GeneralProblem(BaseProblem):
    r"""Minimise over w in C the mean F(w) = (1/n) sum_i f_i(w) of n terms given by their values and derivatives.

    This is empirical risk minimisation as in section 5.2 of Xiong & Freund: a small neural network, a structured
    loss, anything that is not a loss of x_i'w (for those :class:`Problem` is far faster). Its solvers are "tufw",
    which uses second derivatives, and "fw", "lazy", "away", "pairwise" and "bpcg".

    Parameters
    ----------
    terms : object
        It has methods ``value(i, w)`` and ``gradient(i, w)``, and ``hessian_product(i, w, v)`` for "tufw"; see
        :class:`condgrad.terms.Terms` for its optional attributes. Plain NumPy methods work; a NamedTuple class marked
        :func:`condgrad.terms.compiled_terms` runs in kernels.
    constraint : a set of :mod:`condgrad.constraints`, or any object with a method ``lmo``
    n_samples, n_features : int, optional
        n and d, where ``terms`` has no attributes of these names.

    Examples
    --------
    >>> import numpy as np
    >>> import condgrad as cg
    >>> class Distances:  # f_i(w) = ||w - c_i||^2 / 2
    ...     is_convex = True
    ...     centres = np.array([[1.0, 0.0], [0.0, 3.0]])
    ...     def value(self, i, w):
    ...         return 0.5 * np.sum((w - self.centres[i]) ** 2)
    ...     def gradient(self, i, w):
    ...         return w - self.centres[i]
    >>> problem = cg.GeneralProblem(Distances(), cg.constraints.L1Ball(1.0), n_samples=2, n_features=2)
    >>> cg.minimize(problem, "pairwise").w
    array([0., 1.])
    """

    remedies: ClassVar = {Feature.SECOND_DERIVATIVES: "give the terms a method hessian_product(i, w, v)"}

    def __init__(
        self, terms: object, constraint: object, *, n_samples: int | None = None, n_features: int | None = None
    ) -> None:
        self.terms = passes.as_terms(terms)
        self.n_samples = _count("n_samples", n_samples, terms)
        self.n_features = _count("n_features", n_features, terms)
        self.constraint = as_set_for(constraint, self.n_features)
        self._try_terms()
        second = {Feature.SECOND_DERIVATIVES} if self.has_second_derivatives else set()
        self.offers = BaseProblem.offers | {Feature.SAMPLES} | second

    def __repr__(self) -> str:
        return (
            f"GeneralProblem({type(getattr(self.terms, 'given', self.terms)).__name__}, {self.constraint!r}, "
            f"n_samples={self.n_samples}, n_features={self.n_features})"
        )

    @property
    def is_convex(self) -> bool:
        """Whether the gap bounds F(w) - F*: the value of ``is_convex`` of the terms."""
        return bool(self.terms.is_convex)

    @property
    def has_second_derivatives(self) -> bool:
        """Whether the terms have a method ``hessian_product``."""
        return hasattr(self.terms, "hessian_product")

    def objective(self, w: IterateLike) -> float:
        """Return F(w)."""
        w = convert.as_point(w, self.n_features, "w")
        value = passes.mean_value(self.terms, self.n_samples, w)
        _require_finite(value, "objective", w)
        return value

    def gradient(self, w: IterateLike) -> np.ndarray:
        """Return the gradient of F at w."""
        w = convert.as_point(w, self.n_features, "w")
        r = passes.mean_gradient(self.terms, self.n_samples, w)
        _require_finite(r, "gradient", w)
        return r

    def hessian(self, w: IterateLike) -> np.ndarray:
        """Return the Hessian of F at w, a d x d array; without ``add_hessian`` it takes n d Hessian products."""
        w = convert.as_point(w, self.n_features, "w")
        H = passes.mean_hessian(self.terms, self.n_samples, w)
        _require_finite(H, "Hessian", w)
        return H

    def look(self, w: IterateLike) -> Look:
        """Make passes at w and return objective, gradient, gap and vertex (the intercept is 0)."""
        w = convert.as_point(w, self.n_features, "w")
        sizes = passes.typical_sizes(self.terms, self.n_samples, w)  # estimated from some of the terms
        return Look(self.certified(w, self.objective(w), self.gradient(w), sizes=sizes))

    def best_intercept(self, w: IterateLike) -> float:
        """Return 0: general terms have no intercept."""
        return 0.0

    def lipschitz(self) -> float:
        """Return the Lipschitz constant of grad F that the terms define; inf if they define none."""
        return float(self.terms.smoothness())

    def smoothness(self) -> float:
        """Return a Lipschitz constant of grad F in the l2 norm, or raise if the terms do not define one."""
        L = self.lipschitz()
        if not 0.0 <= L < np.inf:
            raise ValueError(
                "a short step needs a Lipschitz constant of the gradients: give the terms a method smoothness() that "
                f"returns it (now it is {L:g}), or use Backtracking()."
            )
        return L

    def importance(self) -> np.ndarray:
        """Raise: importance is defined by the rows of X, which general terms do not have."""
        raise ValueError(
            "sampling='importance' needs the norms of the rows of X, which a GeneralProblem does not have; use 'batch'."
        )

    @property
    def is_compiled(self) -> bool:
        """Whether steps can run inside kernels: set and terms must both be compiled."""
        return is_compiled(self.constraint) and is_compiled(self.terms)

    @property
    def entries_per_sample(self) -> float:
        """The number of entries of a term's gradient."""
        return float(self.n_features)

    def finite_sum(self, b: np.ndarray) -> GeneralSum:
        """Return the problem one sample at a time."""
        return GeneralSum(self.terms, self.constraint, 1.0 / self.n_samples)

    def taylor_points(self, space: Workspace, form: str, renews_all: bool) -> Expansions:
        """Return the Taylor points of TUFW in the form in which they are stored, and its H."""
        return taylor_points.of_terms(space, form, renews_all)

    def fingerprint(self) -> str:
        """Return a hash of all that defines the problem, by which a checkpoint recognises it."""
        return fingerprint_of((self.n_samples, self.n_features, self.terms, self.constraint))

    def _try_terms(self) -> None:
        """Raise a clear error if the first or the last term returns an array of the wrong shape."""
        w = self.constraint.start(self.n_features).to_dense(self.n_features)
        for i in {0, self.n_samples - 1}:
            np.asarray(self.terms.value(i, w), dtype=np.float64)
            answers = {"gradient(i, w)": self.terms.gradient(i, w)}
            if self.has_second_derivatives:
                answers["hessian_product(i, w, v)"] = self.terms.hessian_product(i, w, w)
            for method, answer in answers.items():
                if np.shape(answer) != (self.n_features,):
                    raise ValueError(
                        f"{method} of the terms must return an array of shape ({self.n_features},); "
                        f"for i = {i} it returned shape {np.shape(answer)}."
                    )


def _count(name: str, given: int | None, terms: object) -> int:
    """Return n or d: the user's argument ``given``, or the attribute of the terms."""
    own = getattr(terms, name, None)
    if given is None and own is None:
        raise ValueError(f"{name} is not known: pass {name}, or give the terms an attribute of that name.")
    if given is not None and own is not None and given != own:
        raise ValueError(f"{name} is given as {given!r}, but the terms have {name} = {own!r}; leave one of them out.")
    what = "a whole number of at least 1"
    count = convert.as_number(own if given is None else given, name, low=1, what=what)
    if count != int(count):
        raise ValueError(f"{name} must be {what}; got {count!r}.")
    return int(count)


def _require_finite(answer: float | np.ndarray, name: str, w: np.ndarray) -> None:
    if not np.isfinite(answer).all():
        raise ValueError(
            f"the {name} of the terms is not finite at a point of the set with entries up to {np.abs(w).max():.3g}; "
            "check_terms of condgrad.testing finds the term."
        )
