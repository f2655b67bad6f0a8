"""MultiModel: several linear models that belong together, for predicting, with their certificates."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import scipy.special

from condgrad.linalg import convert
from condgrad.linalg.convert import Data
from condgrad.linalg.names import visible
from condgrad.losses import Loss
from condgrad.run.result import Status
from condgrad.storage.outside_rows import OutsideRows

OUTPUTS, REST, MULTINOMIAL = "outputs", "one-against-the-rest", "multinomial"


class MultiModel(NamedTuple):
    """The linear models of several classes or outputs; estimators have it as ``model_``.

    Attributes
    ----------
    coef, intercept : arrays of shapes (n_rows, n_features) and (n_rows,)
        One row for each class or output.
    kind : {"outputs", "one-against-the-rest", "multinomial"}
        What the rows are: outputs, classes with a problem each, or classes of one problem together.
    classes : tuple or None
        The labels of the rows.
    loss : a loss of :mod:`condgrad.losses`
        The logistic one for a multinomial problem.
    constraint : tuple of str
        The constraint sets, as they print; this and the following have one entry for each problem.
    radius : tuple of float or None
    objective, gap, rounding, lower_bound : tuples of float
        F(w), the exact Frank-Wolfe gap at w, a bound of its rounding error and the best lower bound of F*, on the data
        of the fit.
    status : tuple of Status
    n_steps : tuple of int
    solver : str
    n_samples : int
    feature_names : tuple of str or None
    version : str
        The version of condgrad that made the model.

    Examples
    --------
    >>> import condgrad as cg
    >>> X, y = [[0.0], [1.0], [5.0], [6.0], [10.0], [11.0]], ["a", "a", "b", "b", "c", "c"]
    >>> model = cg.ConstrainedLogisticRegression(radius=5.0, multi_class="multinomial").fit(X, y).model_
    >>> model.kind, model.predict([[0.5], [10.5]])
    ('multinomial', array(['a', 'c'], dtype='<U1'))
    """

    coef: np.ndarray
    intercept: np.ndarray
    kind: str
    classes: tuple[Any, ...] | None
    loss: Loss
    constraint: tuple[str, ...]
    radius: tuple[float | None, ...]
    objective: tuple[float, ...]
    gap: tuple[float, ...]
    rounding: tuple[float, ...]
    lower_bound: tuple[float, ...]
    status: tuple[Status, ...]
    n_steps: tuple[int, ...]
    solver: str
    n_samples: int
    feature_names: tuple[str, ...] | None
    version: str

    @property
    def n_features(self) -> int:
        """The number of features."""
        return self.coef.shape[1]

    def __repr__(self) -> str:
        worst = int(np.argmax(self.gap))
        return (
            f"MultiModel({visible(self.kind)}, {self.loss!r} over {visible(self.constraint[0])}, "
            f"{self.coef.shape[0]} x {self.n_features}, gap={self.gap[worst]:.3g}, {self.status[worst].name})"
        )

    def decide(self, X: Data | OutsideRows) -> np.ndarray:
        """Return the linear predictions x_i'w_k + b_k, of shape (n_samples, n_rows)."""
        X = X if isinstance(X, OutsideRows) else convert.as_data(X)
        if X.shape[1] != self.n_features:
            raise ValueError(f"X has {X.shape[1]} features, but the model has {self.n_features}.")
        if isinstance(X, OutsideRows):
            return X.dot_each(self.coef).T + self.intercept
        p = X @ (scipy.sparse.csr_array(self.coef).T if scipy.sparse.issparse(X) else self.coef.T)
        return (p.toarray() if scipy.sparse.issparse(p) else p) + self.intercept

    def predict(self, X: Data | OutsideRows) -> np.ndarray:
        """Return the predictions of y: the label with the largest score, or all outputs (means for Poisson)."""
        p = self.decide(X)
        if self.classes is not None:
            return np.asarray(self.classes)[p.argmax(axis=1)]
        return self.loss.mean(p)

    def probabilities(self, X: Data | OutsideRows) -> np.ndarray | None:
        """Return the probability of each class for losses that model it (logistic, sigmoid), else None."""
        if self.classes is None or self.loss.link != "logit":
            return None
        return np.exp(log_probabilities(self.decide(X), self.kind))


def log_probabilities(scores: np.ndarray, kind: str) -> np.ndarray:
    """Return the logarithms of the probabilities of all classes from their logits: of two classes where there is one.

    They come from the logits and not from probabilities, which round to 0 and 1 beyond a logit of 37: a wrong
    prediction costs what its logit says, whatever its class. Those of one against the rest are normalised.
    """
    if kind == MULTINOMIAL:
        return scipy.special.log_softmax(scores, axis=1)
    if scores.shape[1] == 1:
        return scipy.special.log_expit(np.hstack([-scores, scores]))
    return scipy.special.log_softmax(scipy.special.log_expit(scores), axis=1)
