"""Model: a linear model for predicting, with its certificate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from condgrad.linalg import convert
from condgrad.linalg.convert import Data
from condgrad.linalg.names import visible
from condgrad.losses import Loss
from condgrad.problems.linear import Problem
from condgrad.run.result import Result, Status
from condgrad.storage.outside_rows import OutsideRows


class Model(NamedTuple):
    """A linear model with its certificate: coefficients, intercept, and how far it can be from the optimum.

    Attributes
    ----------
    w, intercept : array and float
    loss : a loss of :mod:`condgrad.losses`
    constraint : str
        The constraint set, as it prints.
    radius : float or None
        The radius of the set, or None if it has none.
    objective, gap, rounding, lower_bound : float
        F(w), the exact Frank-Wolfe gap at w, a bound of its rounding error (nan if an older file lacks it) and
        the best lower bound of F*, on the data of the fit.
    status : Status
    solver : str
    n_steps, n_samples : int
        Steps of the solver, and samples of the fit.
    classes : tuple or None
        For a loss of two classes the two labels; the second one is the label of positive predictions.
    feature_names : tuple of str or None
    version : str
        The version of condgrad that made the model.
    has_offset : bool
        Whether it was fitted with offsets: then predictions need them, too.

    Examples
    --------
    >>> import condgrad as cg
    >>> X, y = [[1.0, 0.0], [0.0, 1.0]], [1.0, 2.0]
    >>> problem = cg.Problem(X, y, cg.losses.Squared(), cg.constraints.L1Ball(1.0))
    >>> model = cg.Model.of(problem, cg.minimize(problem), feature_names=("height", "width"))
    >>> model.predict([[3.0, 5.0]])
    array([5.])
    """

    w: np.ndarray
    intercept: float
    loss: Loss
    constraint: str
    radius: float | None
    objective: float
    gap: float
    rounding: float
    lower_bound: float
    status: Status
    solver: str
    n_steps: int
    n_samples: int
    classes: tuple[Any, ...] | None
    feature_names: tuple[str, ...] | None
    version: str
    has_offset: bool = False

    @classmethod
    def of(
        cls,
        problem: Problem,
        result: Result,
        *,
        classes: Sequence[object] | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> Model:
        """Return the model that a run on ``problem`` found.

        ``classes`` are the labels of the two targets of the loss, that of the negative target first; by default the
        targets themselves.
        """
        from condgrad import __version__

        values = problem.loss.classes
        if values is None and classes is not None:
            raise ValueError(f"{type(problem.loss).__name__} is not a loss of two classes; leave out classes.")
        classes = values if classes is None else tuple(classes)
        if classes is not None and len(set(classes)) != 2:
            raise ValueError(f"classes must be two different labels; got {classes!r}.")
        names = None if feature_names is None else tuple(map(str, feature_names))
        if names is not None and len(names) != problem.n_features:
            raise ValueError(f"there must be {problem.n_features} feature names, one per column; got {len(names)}.")
        radius = getattr(problem.constraint, "radius", None)
        return cls(
            w=result.w,
            intercept=result.intercept,
            loss=problem.loss,
            constraint=repr(problem.constraint),
            radius=None if radius is None else float(radius),
            objective=result.objective,
            gap=result.gap,
            rounding=result.rounding,
            lower_bound=result.lower_bound,
            status=result.status,
            solver=result.solver,
            n_steps=result.n_steps,
            n_samples=problem.n_samples,
            classes=classes,
            feature_names=names,
            version=__version__,
            has_offset=problem.samples.offset.to_array() is not None,
        )

    @property
    def n_features(self) -> int:
        """The number of features."""
        return self.w.size

    def __repr__(self) -> str:
        nonzero = np.count_nonzero(self.w)
        return (
            f"Model({self.loss!r} over {visible(self.constraint)}, {nonzero} of {self.w.size} nonzero, "
            f"objective={self.objective:.6g}, gap={self.gap:.3g}, {self.status.name})"
        )

    def decide(self, X: Data | OutsideRows, offset: ArrayLike | None = None) -> np.ndarray:
        """Return the linear predictions x_i'w + b + offset_i; rows outside of memory may bring their offsets."""
        p = self._decide_without_offset(X)
        if offset is None and self.has_offset and isinstance(X, OutsideRows):
            offset = X.offset
        if offset is None and self.has_offset:
            raise ValueError("this model was fitted with offsets, so predictions need them too; pass offset=.")
        return p if offset is None else p + convert.as_vector(offset, "offset", p.size)

    def _decide_without_offset(self, X: Data | OutsideRows) -> np.ndarray:
        X = X if isinstance(X, OutsideRows) else convert.as_data(X)
        if X.shape[1] != self.w.size:
            raise ValueError(f"X has {X.shape[1]} features, but the model has {self.w.size}.")
        if isinstance(X, OutsideRows):
            return X.dot_each(self.w[None])[0] + self.intercept
        p = X @ scipy.sparse.csc_array(self.w[:, None]) if scipy.sparse.issparse(X) else X @ self.w
        p = p.toarray()[:, 0] if scipy.sparse.issparse(p) else p
        return p + self.intercept

    def predict(self, X: Data | OutsideRows, offset: ArrayLike | None = None) -> np.ndarray:
        """Return the predictions of y: labels for a loss of two classes, means for Poisson, else x_i'w + b."""
        p = self.decide(X, offset)
        if self.classes is not None:
            return np.asarray(self.classes)[(p > 0.0).astype(int)]
        return self.loss.mean(p)

    def probabilities(self, X: Data | OutsideRows, offset: ArrayLike | None = None) -> np.ndarray | None:
        """Return the probability of the second class for losses that model it (logistic, sigmoid), else None."""
        return self.loss.probability(self.decide(X, offset))
