"""SoftmaxProblem: multinomial logistic regression, all classes together over one set."""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.typing import ArrayLike

from condgrad.linalg import convert
from condgrad.linalg.convert import Data
from condgrad.linalg.device.arrays import beside, on_host
from condgrad.linalg.device.base import DeviceArray
from condgrad.linalg.factored import IterateLike
from condgrad.linalg.fingerprint import fingerprint_of
from condgrad.linalg.rounding import FORMULA, UNIT, Bounds, Sizes, bounds, gamma, prediction_error
from condgrad.problems.active_set import AtomStack
from condgrad.problems.chances import bend_of, best_chances, chances_of, solve, traces_of
from condgrad.problems.evaluation import Evaluation, Support, certify, gap_at, vertex_rounding
from condgrad.problems.output_losses import OutputLossesProblem
from condgrad.problems.outputs import scored
from condgrad.problems.outputs_look import OutputsLook
from condgrad.storage.device_data import DeviceData

_SMALLEST_SCALE = 1e-9  # smallest loss_scale, as a fraction of log(k): for data where one class has all the weight


class SoftmaxProblem(OutputLossesProblem):
    r"""Minimise over W in C the mean of log sum_c exp(x_i'w_c) - x_i'w_(y_i): multinomial logistic regression.

    W has a row w_c for each of the k classes. Solvers and sets work with one vector of k d entries, row after row: the
    set may couple the classes, as does a group ball whose groups are the columns of W. With ``intercept=True``
    the scores are x_i'w_c + b_c with b free, and F(W) is the minimum over b, as for a :class:`~condgrad.Problem`; so
    the gap certifies W and b together.

    The problem can compute its curvature on atoms: besides "fw", "lazy", "away", "pairwise" and "bpcg" it can be solved
    by "corrective", which "auto" chooses. A pass is a product of whole matrices, so solvers of single samples do not
    apply.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n_samples, n_columns)
        Used without a copy, as by :class:`~condgrad.Problem`. Sums are accumulated in float64. Arrays of CuPy, and
        tensors of PyTorch on a GPU, are used where they are.
    y : array of int, of shape (n_samples,)
        The class of each sample, 0, 1, ..., k - 1.
    constraint : a set of :mod:`condgrad.constraints`, or any object with a method ``lmo``
        A set of vectors of length k d.
    n_classes : int, optional
        k; by default one more than the largest class of y.
    sample_weight : array of shape (n_samples,), optional
    intercept : bool
    device : "cuda" or None
        "cuda": X is sent to a GPU, where all passes run then; it must hold X.

    Examples
    --------
    >>> import numpy as np
    >>> import condgrad as cg
    >>> X, y = np.eye(3), [0, 1, 2]
    >>> problem = cg.SoftmaxProblem(X, y, cg.constraints.L1Ball(3.0))
    >>> cg.minimize(problem, tol=1e-9).w.reshape(3, 3).round(4) + 0.0
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """

    is_convex = True
    output_name = "classes"

    def __init__(
        self,
        X: Data | DeviceData,
        y: ArrayLike,
        constraint: object,
        *,
        n_classes: int | None = None,
        sample_weight: ArrayLike | None = None,
        intercept: bool = False,
        device: str | None = None,
    ) -> None:
        super().__init__(scored(X, device, type(self).__name__), sample_weight, intercept)
        self.y, self.n_outputs = _as_classes(y, self.n_samples, n_classes)
        self._check_classes()
        self._constrain(constraint)

    @property
    def n_classes(self) -> int:
        """The number k of classes."""
        return self.n_outputs

    def bend(self) -> float:
        """Return 1/2: the Hessian of f in its scores, diag(p) - pp', has no larger eigenvalue."""
        return 0.5

    def value_of(self, S: np.ndarray) -> float:
        """Return F for the scores S."""
        return self._chances(S)[0]

    def derivatives_of(self, S: np.ndarray) -> np.ndarray:
        """Return the derivatives of F with respect to the scores S."""
        return self._derivatives(self._chances(S)[1])

    def best_offsets(self, S: np.ndarray) -> np.ndarray:
        """Return the best intercepts for the scores S of centred columns; they sum to zero."""
        return self._chances(S)[2]

    def intercept_at(self, w: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Convert the intercepts b for centred columns to those for the columns as given; both sum to zero."""
        given = super().intercept_at(w, b)
        return given if self.matrix.shift is None else given - given.mean()

    def look(self, w: IterateLike) -> SoftmaxLook:
        """Make a pass at W and return objective, gradient, gap, vertex, intercepts and, on demand, the curvature."""
        w = convert.as_point(w, self.n_features, "w")
        value, P, b = self._chances(self.scores(w))
        A = self._derivatives(P)
        r = self.gradient_of(A)
        s = self.lmo(r)
        oracle = vertex_rounding(self.constraint, r, Support.of(w), s)
        rounding = self._rounding_at(w, value, P, A, b).with_oracle(oracle)
        found = certify(True, value, r, gap_at(r, w, s), s, self.intercept_at(w, b), rounding)
        return SoftmaxLook(self, found, P)

    def _rounding_at(self, w: np.ndarray, value: float, P: np.ndarray, A: np.ndarray, b: np.ndarray) -> Bounds:
        """Return bounds of the rounding errors of gradient and objective at W, without those of the oracle."""
        # The error of one score: in its sum, and in its difference from the largest score of the sample.
        W = np.abs(w.reshape(self.shape))
        score = self.largest_entry * float(W.sum(axis=1).max())
        per_class = int(np.count_nonzero(W, axis=1).max())
        of_score = 2.0 * (gamma(per_class + 2) * score + 4.0 * UNIT * (score + float(np.abs(b).max())))
        # A bound of the norm of all scores together: sum_cj |W_cj| ||x_j||.
        spread = float(np.abs(w) @ self.score_sizes)
        own = np.where(self.weight_there > 0.0, self.weight_there, 1.0)
        slope = math.sqrt(float((np.einsum("cn,cn->n", A, A) / own).sum()))
        sizes = Sizes(slope, spread + float(np.linalg.norm(b)), 1.0, value, 0.0)
        if self.has_intercept:
            sizes = sizes._replace(balance=self._balance(value, P, A, b, spread, of_score))
        delta = prediction_error(sizes, int(np.count_nonzero(w)) + self.n_classes, spread)
        # The Hessian of f in the scores is at most its trace, and at most 1/2.
        traces = traces_of(P)
        bend = math.sqrt(self.n_classes * float(self.weight_there @ (traces * traces)))
        of_scores = min(2.0 * bend * of_score, 0.5 * (delta + FORMULA * UNIT * sizes.prediction))
        return bounds(
            sizes,
            n_samples=self.n_samples,
            reach=self.reach,
            free_reach=1.0,  # the balance includes it already
            delta=delta,
            slope_error=UNIT * (FORMULA * sizes.slope + 4.0) + of_scores,  # a probability near 1 is correct to UNIT
        )

    def _balance(
        self, value: float, P: np.ndarray, A: np.ndarray, b: np.ndarray, spread: float, of_score: float
    ) -> float:
        """Return the derivatives with respect to the intercepts, which are rounding, times the range of the intercepts.

        The loss of a sample of class y is at least b_c - b_y plus the difference of the scores, for every class c. So
        the difference between a best intercept and that of the most frequent class (a constant added to all intercepts
        changes nothing) is bounded in terms of F and the scores, divided by the share of its class. The rounding error
        of the derivative is at most a few units of that share and of the sum of the probabilities of the class.
        """
        shares = self._class_shares
        most = int(shares.argmax())
        far = (value + 2.0 * (self.reach + spread)) / shares + np.abs(b - b[most])
        unit = gamma(self.n_samples + 4) + FORMULA * UNIT + of_score
        errors = np.abs(on_host(A.sum(axis=1))) + unit * (on_host(P @ self.weight_there) + shares)
        errors[most] = 0.0
        return float(errors @ far)

    def with_targets(self, y: ArrayLike) -> SoftmaxProblem:
        """Return the same problem with other targets y of the same number of classes; both share the data."""
        other = self._without("_class_shares", "y_there")
        other.y = _as_classes(y, self.n_samples, self.n_classes)[0]
        other._check_classes()
        return other

    def _take_targets_of(self, whole: SoftmaxProblem, rows: np.ndarray) -> bool:
        self.y = whole.y[rows]
        for name in ("_class_shares", "y_there"):
            self.__dict__.pop(name, None)
        return self._has_all_classes or not self.has_intercept

    def least_value(self) -> float:
        """Return 0."""
        return 0.0

    def null_objective(self) -> float:
        """Return the objective at W = 0."""
        return self.objective(np.zeros(self.n_features))

    def loss_scale(self) -> float:
        """Return the loss at W = 0; tolerances of estimators and paths are relative to it."""
        return max(self.null_objective(), _SMALLEST_SCALE * math.log(self.n_classes))

    def derivative_size(self) -> float:
        """Return 1: a derivative of the softmax loss is never larger."""
        return 1.0

    def fingerprint(self) -> str:
        """Return a hash of all that defines the problem, by which a checkpoint recognises it."""
        return fingerprint_of((*self._data(), self.y, self.n_classes, self.weight, self.constraint, self.has_intercept))

    def _check_classes(self) -> None:
        """Raise if intercepts are free and a class holds no samples: its best intercept would be minus infinity."""
        if self.has_intercept and not self._has_all_classes:
            raise ValueError(
                f"an intercept for each class needs samples of all {self.n_classes} classes; "
                f"class {int(self._class_shares.argmin())} has none. Leave this class out, or the intercept: "
                "intercept=False, in estimators fit_intercept=False."
            )

    @functools.cached_property
    def _class_shares(self) -> np.ndarray:
        """The weights of the classes."""
        return np.bincount(self.y, weights=self.weight, minlength=self.n_classes)

    @property
    def _has_all_classes(self) -> bool:
        return bool((self._class_shares > 0.0).all())

    def _chances(self, S: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Return F, the probabilities of all classes and samples, and the best intercepts for the scores S."""
        if self.has_intercept:
            return best_chances(S, self.y_there, self.weight_there, self._class_shares)
        b = np.zeros(self.n_classes)
        return *chances_of(S, b, self.y_there, self.weight_there), b

    @functools.cached_property
    def y_there(self) -> DeviceArray:
        """The classes of the samples where the scores are."""
        return self._beside_scores(self.y)

    def _derivatives(self, P: np.ndarray) -> np.ndarray:
        A: np.ndarray = self.weight_there * P
        A[self.y_there, np.arange(self.n_samples, like=A)] -= self.weight_there
        return A


class SoftmaxLook(OutputsLook):
    """A pass at W with the probabilities ``P`` of all classes and samples."""

    problem: SoftmaxProblem

    def __init__(self, problem: SoftmaxProblem, evaluation: Evaluation, P: np.ndarray) -> None:
        super().__init__(problem, evaluation)
        self.P = P

    def _traces(self) -> np.ndarray:
        weighted: np.ndarray = self.problem.weight_there * traces_of(self.P)
        return weighted

    def _chosen(self, rows: np.ndarray, factor: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the probabilities of some samples, and their weights, each counted ``factor`` times."""
        return self.P[:, beside(rows, self.P)], beside(self.problem.weight[rows] * factor, self.P)

    def _add_of_atoms(
        self, atoms: AtomStack, rows: np.ndarray, factor: np.ndarray, H: np.ndarray, mixed: np.ndarray
    ) -> None:
        P, weight = self._chosen(rows, factor)
        of_class, Z = self._atom_scores(atoms, rows)
        root = np.sqrt(weight)  # of a matrix times its own transpose a BLAS computes only half
        Q = root * P
        R = Q[beside(of_class, P)] * Z
        H -= on_host(R @ R.T)
        mixed -= on_host(R @ Q.T)
        for c in np.unique(of_class):
            own = np.flatnonzero(of_class == c)
            there = beside(own, P)
            T = np.sqrt(weight * P[c]) * Z[there]
            H[np.ix_(own, own)] += on_host(T @ T.T)
            mixed[own, c] += on_host(R[there] @ root)

    def _add_of_scores(
        self, Z: np.ndarray, rows: np.ndarray, factor: np.ndarray, H: np.ndarray, mixed: np.ndarray
    ) -> None:
        P, weight = self._chosen(rows, factor)
        Q = P * Z
        mean = Q.sum(axis=1)
        root = (np.sqrt(weight * P) * Z).reshape(Z.shape[0], -1)
        H += on_host(root @ root.T - (weight * mean) @ mean.T)
        mixed += on_host(np.einsum("i,aci->ac", weight, Q) - (weight * mean) @ P.T)

    def _of_intercepts(self, mixed: np.ndarray, rows: np.ndarray, factor: np.ndarray) -> np.ndarray:
        of_intercepts = bend_of(*self._chosen(rows, factor))
        taken: np.ndarray = mixed @ solve(of_intercepts, mixed.T)
        return taken


def _as_classes(y: ArrayLike, n_samples: int, n_classes: int | None) -> tuple[np.ndarray, int]:
    """Return the classes as integers, and the number of classes."""
    given = convert.as_targets(on_host(y), n_samples)
    y = given.astype(np.int64)
    if (y != given).any() or y.min() < 0:
        wrong = given[(y != given) | (y < 0)][0]
        raise ValueError(f"y must contain class numbers 0, 1, ..., k - 1; got {wrong:g}.")
    k = int(y.max()) + 1 if n_classes is None else n_classes
    if not isinstance(k, int | np.integer) or isinstance(k, bool) or k < 2:
        raise ValueError(f"n_classes must be an integer of at least 2; got {k!r}.")
    if y.max() >= k:
        raise ValueError(f"y contains the class {y.max()}, but n_classes={k} allows only 0 to {k - 1}.")
    return y, int(k)
