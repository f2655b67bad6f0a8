"""SoftmaxProblem: multinomial logistic regression, all classes together over one set."""

from __future__ import annotations

import copy
import functools
import math
from typing import cast

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from condgrad.constraints import best_vertex
from condgrad.constraints.oracle_set import as_set_for
from condgrad.constraints.vertices import Vertex
from condgrad.linalg import convert
from condgrad.linalg.convert import Data
from condgrad.linalg.factored import IterateLike
from condgrad.linalg.fingerprint import fingerprint_of
from condgrad.linalg.matrix import Matrix
from condgrad.linalg.rounding import FORMULA, UNIT, Sizes, bounds, gamma, prediction_error
from condgrad.linalg.settings import as_flag
from condgrad.problems.active_set import AtomStack, Stack, as_stack
from condgrad.problems.base import BaseProblem, Feature
from condgrad.problems.evaluation import Evaluation, certify, gap_at, vertex_rounding
from condgrad.problems.look import Look
from condgrad.problems.samples import sample_by_curvature

_BLOCK_ENTRIES = 4_000_000  # of the dense rows that the curvature is summed from, at a time
_MOST_NEWTON_STEPS = 100
_SMALLEST_SCALE = 1e-9  # of the loss of equal chances, for classes of which one has all the weight
_LONGEST_STEP = 5.0  # of an intercept: far out, where all chances are 0 or 1, a Newton step can be astronomic


class SoftmaxProblem(BaseProblem):
    r"""Minimise over W in C the mean of log sum_c exp(x_i'w_c) - x_i'w_(y_i): multinomial logistic regression.

    W has a row w_c for each of the k classes. Solvers and sets see it as one vector of k d entries, row after row: the
    set may bind classes together, as the group ball does whose groups are the columns of W. With ``intercept=True``
    the scores are x_i'w_c + b_c with b free, and F(W) is the minimum over b, as for a :class:`~condgrad.Problem`; so
    the gap certifies W and b together.

    It knows its curvature on atoms: besides "fw", "lazy", "away", "pairwise" and "bpcg" it can be solved by
    "corrective", which is what "auto" takes. A pass is a product of whole matrices, so there are no single samples.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n_samples, n_columns)
        Sums are in float64; data of another precision are converted once.
    y : array of int, of shape (n_samples,)
        The class of each sample, 0, 1, ..., k - 1.
    constraint : a set of :mod:`condgrad.constraints`, or any object with a method ``lmo``
        A set of vectors of length k d.
    n_classes : int, optional
        k; by default one more than the largest class of y.
    sample_weight : array of shape (n_samples,), optional
    intercept : bool

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

    offers = BaseProblem.offers | {Feature.CURVATURE}
    is_convex = True

    def __init__(
        self,
        X: Data,
        y: ArrayLike,
        constraint: object,
        *,
        n_classes: int | None = None,
        sample_weight: ArrayLike | None = None,
        intercept: bool = False,
    ) -> None:
        X = convert.as_data(X)
        X = (X.tocsr() if scipy.sparse.issparse(X) else X).astype(np.float64, copy=False)
        (self.n_samples, self.n_columns) = X.shape
        self.y, self.n_classes = _as_classes(y, self.n_samples, n_classes)
        self.n_features = self.n_classes * self.n_columns
        self.weight = convert.as_weights(sample_weight, self.n_samples)
        self.has_intercept = as_flag(intercept, "intercept")
        self._check_classes()
        self.X, self.shift = X, None
        if self.has_intercept:  # which takes up what is subtracted: large means shall cost no digits
            self.X, self.shift = Matrix(X).centred(self.weight).as_centred()
        X = self.X
        squares = X.multiply(X).sum(axis=1) if scipy.sparse.issparse(X) else np.einsum("ij,ij->i", X, X)
        # The Hessian of f in s is at most 1/2, and the largest eigenvalue of X' diag(weight) X at most its trace.
        self._lipschitz = 0.5 * float(self.weight @ np.asarray(squares).ravel())
        self._constrain(constraint)

    def __repr__(self) -> str:
        return (
            f"SoftmaxProblem({self.constraint!r}, n_samples={self.n_samples}, n_classes={self.n_classes}, "
            f"n_columns={self.n_columns})"
        )

    def _constrain(self, constraint: object) -> None:
        n_features = getattr(constraint, "n_features", None)
        if n_features not in (None, self.n_features):
            raise ValueError(
                f"{type(constraint).__name__} is a set of vectors of length {n_features}, but "
                f"{self.n_classes} classes and {self.n_columns} columns of X make n_features={self.n_features}."
            )
        self.constraint = as_set_for(constraint, self.n_features)

    def lipschitz(self) -> float:
        """Return a Lipschitz constant of grad F in the l2 norm."""
        return self._lipschitz

    def objective(self, w: IterateLike) -> float:
        """Return F(W)."""
        return self._chances_at(w)[0]

    def gradient(self, w: IterateLike) -> np.ndarray:
        """Return the gradient of F at W, as a vector."""
        return self._gradient(self._chances_at(w)[1])

    def best_intercept(self, w: IterateLike) -> np.ndarray:
        """Return the intercepts that belong to W, which sum to zero (zeros for a problem without them)."""
        w = convert.as_point(w, self.n_features, "w")
        return self._intercept_at(w, self._chances_at(w)[2]) if self.has_intercept else np.zeros(self.n_classes)

    def _intercept_at(self, w: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the intercepts of the columns as given where those of the centred ones are b."""
        if self.shift is None:
            return b
        given: np.ndarray = b - w.reshape(self.n_classes, self.n_columns) @ self.shift
        given -= given.mean()
        return given

    def look(self, w: IterateLike) -> SoftmaxLook:
        """Make a pass at W: objective, gradient, gap, vertex and intercepts, and on demand the curvature on atoms."""
        w = convert.as_point(w, self.n_features, "w")
        value, P, b = self._chances_at(w)
        r = self._gradient(P)
        return SoftmaxLook(self, self._certified_at(w, value, r, best_vertex(self.constraint, r), P, b), P)

    def _certified_at(
        self, w: np.ndarray, value: float, r: np.ndarray, s: Vertex, P: np.ndarray, b: np.ndarray
    ) -> Evaluation:
        n_terms = int(np.count_nonzero(w)) + self.n_classes
        # The error of one score: of its sum, and of its difference to the largest one of the sample.
        W = np.abs(w.reshape(self.n_classes, self.n_columns))
        score = self._largest_entry * float(W.sum(axis=1).max())
        per_class = int(np.count_nonzero(W, axis=1).max())
        of_score = 2.0 * (gamma(per_class + 2) * score + 4.0 * UNIT * (score + float(np.abs(b).max())))
        sizes = self._sizes(P, value, w, b, of_score)
        delta = prediction_error(sizes, n_terms, float(np.abs(w) @ self._score_sizes))
        # The Hessian of f in the scores is at most its trace, and at most 1/2.
        bends = 1.0 - np.einsum("ij,ij->i", P, P)
        bend = math.sqrt(self.n_classes * float(self.weight @ (bends * bends)))
        of_scores = min(2.0 * bend * of_score, 0.5 * (delta + FORMULA * UNIT * sizes.prediction))
        found = bounds(
            sizes,
            n_samples=self.n_samples,
            reach=self._reach,
            free_reach=1.0,  # the balance holds it already
            delta=delta,
            slope_error=UNIT * (FORMULA * sizes.slope + 4.0) + of_scores,  # a chance near 1 is right to a unit of 1
        ).with_oracle(vertex_rounding(self.constraint, r, w, s))
        return certify(True, value, r, gap_at(r, w, s), s, self._intercept_at(w, b), found)

    @functools.cached_property
    def _score_sizes(self) -> np.ndarray:
        """The norms sqrt(sum_i weight_i x_ij^2) of the columns, once for each class."""
        if scipy.sparse.issparse(self.X):
            squares = np.asarray(self.X.multiply(self.X).T @ self.weight).ravel()
        else:
            squares = np.einsum("ij,ij,i->j", self.X, self.X, self.weight)
        return np.tile(np.sqrt(squares), self.n_classes)

    @functools.cached_property
    def _reach(self) -> float:
        """How far the set lets the scores move, in the norm of :mod:`condgrad.linalg.rounding`."""
        return float(self.constraint.reach(self._score_sizes))

    def _sizes(self, P: np.ndarray, value: float, w: np.ndarray, b: np.ndarray, of_score: float) -> Sizes:
        """Return the norms over samples and classes; the balance is already times how far the intercepts can move."""
        A = self.weight[:, None] * P
        of_class = A.sum(axis=0)  # each sum_i weight_i p_ic
        A[np.arange(self.n_samples), self.y] -= self.weight
        own = np.where(self.weight > 0.0, self.weight, 1.0)
        slope = float(np.sqrt(np.einsum("ij,ij,i->", A, A, 1.0 / own)))
        # Scores of all samples at once: their norm is at most that of the sums that they are made of.
        spread = float(np.abs(w) @ self._score_sizes)
        sizes = Sizes(slope, spread + float(np.linalg.norm(b)), 1.0, value, 0.0)
        if not self.has_intercept:
            return sizes
        # The loss of a sample of class y is at least b_c - b_y plus what the scores differ by, for every class c. So a
        # best intercept differs from that of the commonest class (an equal number added to all changes nothing) by no
        # more than F and the scores allow, divided by the share of its class; and rounding moves the derivative by it
        # no more than a few units of that share, and of the sum of its chances.
        shares = self._class_shares()
        most = int(shares.argmax())
        far = (value + 2.0 * (self._reach + spread)) / shares + np.abs(b - b[most])
        unit = gamma(self.n_samples + 4) + FORMULA * UNIT + of_score
        errors = np.abs(A.sum(axis=0)) + unit * (of_class + shares)
        errors[most] = 0.0
        return sizes._replace(balance=float(errors @ far))

    @functools.cached_property
    def _largest_entry(self) -> float:
        return Matrix(self.X).largest_entry()

    def over(self, constraint: object) -> SoftmaxProblem:
        """Return the same problem over another set; both share the data."""
        other = copy.copy(self)
        other._constrain(constraint)
        other.__dict__.pop("_reach", None)
        return other

    def with_targets(self, y: ArrayLike) -> SoftmaxProblem:
        """Return the same problem with other classes of the samples, of the same number; both share the data."""
        other = copy.copy(self)
        other.y = _as_classes(y, self.n_samples, self.n_classes)[0]
        other._check_classes()
        return other

    def part(self, n_rows: int) -> SoftmaxProblem | None:
        """Return the problem of ``n_rows`` samples or somewhat more, evenly spread, over the same set.

        None where they have no weight, or for an intercept not all classes.
        """
        every = max(1, self.n_samples // max(1, n_rows))
        if every == 1:
            return self
        part = copy.copy(self)
        for name in ("_reach", "_score_sizes", "_largest_entry"):
            part.__dict__.pop(name, None)
        part.X, part.y, weight = self.X[::every], self.y[::every], self.weight[::every]
        part.n_samples = part.y.size
        if not weight.any():
            return None
        part.weight = weight / weight.sum()
        return part if part._has_all_classes() or not self.has_intercept else None

    def null_objective(self) -> float:
        """Return the objective at W = 0."""
        return self.objective(np.zeros(self.n_features))

    def loss_scale(self) -> float:
        """Return the loss at W = 0, which tolerances of estimators and paths are relative to."""
        return max(self.null_objective(), _SMALLEST_SCALE * math.log(self.n_classes))

    def slope_size(self, s: Vertex) -> float:
        """Return how large the slope of F at W = 0 towards the vertex s could be if nothing cancelled."""
        return float(np.abs(self._scores(s.to_dense(self.n_features))).max(initial=0.0))

    def derivative_size(self) -> float:
        """Return 1: a derivative of the softmax is never more."""
        return 1.0

    def fingerprint(self) -> str:
        """Return a hash of all that defines the problem, for a checkpoint to know it by."""
        X = self.X
        data = (X.data, X.indices, X.indptr) if scipy.sparse.issparse(X) else (X,)
        return fingerprint_of(
            (X.shape, *data, self.y, self.n_classes, self.weight, self.constraint, self.has_intercept)
        )

    @property
    def cost_of_pass(self) -> float:
        """The multiply-adds of one look: two for every stored entry of X and class."""
        return 2.0 * self.n_classes * Matrix(self.X).n_stored

    def _check_classes(self) -> None:
        """Raise where an intercept is free whose class has no samples: the best one would be minus infinity."""
        if self.has_intercept and not self._has_all_classes():
            raise ValueError(
                f"an intercept for each class needs samples of all {self.n_classes} classes; "
                f"class {int(self._class_shares().argmin())} has none. Leave it out, or use intercept=False."
            )

    def _class_shares(self) -> np.ndarray:
        return np.bincount(self.y, weights=self.weight, minlength=self.n_classes)

    def _has_all_classes(self) -> bool:
        return bool((self._class_shares() > 0.0).all())

    def _scores(self, w: np.ndarray) -> np.ndarray:
        """Return X W', of shape (n_samples, n_classes)."""
        if not w.any():
            return np.zeros((self.n_samples, self.n_classes))
        scores: np.ndarray = self.X @ np.ascontiguousarray(w.reshape(self.n_classes, self.n_columns).T)
        return scores

    def _chances_at(self, w: IterateLike) -> tuple[float, np.ndarray, np.ndarray]:
        """Return F(W), the chances of all samples and classes, and the intercepts."""
        S = self._scores(convert.as_point(w, self.n_features, "w"))
        if not self.has_intercept:
            return *self._chances(S), np.zeros(self.n_classes)
        b = np.log(self._class_shares())  # the best ones at W = 0
        value, P = self._chances(S + b)
        last = np.inf
        for _ in range(_MOST_NEWTON_STEPS):
            step = self._newton_step(P)
            size = float(np.abs(step).max())
            if size > _LONGEST_STEP:
                step, size = step * (_LONGEST_STEP / size), _LONGEST_STEP
            new_value, new_P = self._chances(S + (b + step))
            while new_value > value and size > 1e-6:  # far from the best ones a step may be too long
                step, size = 0.5 * step, 0.5 * size
                new_value, new_P = self._chances(S + (b + step))
            b, value, P = b + step, new_value, new_P
            # The successor of a Newton step is of the order of its square; a short one that is not is rounding.
            if size <= 1e-14 or last <= size <= 1e-4:
                break
            last = size
        return value, P, b - b.mean()

    def _chances(self, S: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the mean loss of the scores S, and the chances exp(s_c) / sum_c exp(s_c)."""
        S = S - S.max(axis=1, keepdims=True)
        P = np.exp(S)
        total = P.sum(axis=1)
        P /= total[:, None]
        return float(self.weight @ (np.log(total) - S[np.arange(self.n_samples), self.y])), P

    def _newton_step(self, P: np.ndarray) -> np.ndarray:
        """Return the Newton step of the intercepts; a constant added to all of them changes nothing."""
        shares = self._class_shares()
        slopes = self.weight @ P - shares
        most = int(shares.argmax())  # whose own difference has lost the digits of the rare classes
        slopes[most] = 0.0
        slopes[most] = -slopes.sum()
        return -_solve(_bend(P, self.weight), slopes)

    def _gradient(self, P: np.ndarray) -> np.ndarray:
        A = self.weight[:, None] * P
        A[np.arange(self.n_samples), self.y] -= self.weight
        return np.ascontiguousarray((self.X.T @ A).T).ravel()

    def curvature_on(self, atoms: Stack, P: np.ndarray, n_rows: float) -> np.ndarray:
        """Return the curvature on atoms for the chances P, from ``n_rows`` samples where that is less than half."""
        rows, weight = np.arange(self.n_samples), self.weight
        bends = weight * (1.0 - np.einsum("ij,ij->i", P, P))  # the traces of weight_i (diag(p_i) - p_i p_i')
        if n_rows <= self.n_samples / 2 and bends.any():
            rows, shares = sample_by_curvature(bends, n_rows)
            weight = weight[rows] * (shares / bends[rows])
        add = self._add_of_atoms if isinstance(atoms, AtomStack) else self._add_of_vertices
        H, mixed = np.zeros((len(atoms), len(atoms))), np.zeros((len(atoms), self.n_classes))
        block = max(1, _BLOCK_ENTRIES // max(1, len(atoms) * (1 if add == self._add_of_atoms else self.n_classes)))
        for start in range(0, rows.size, block):
            part = rows[start : start + block]
            add(cast("AtomStack", atoms), part, P[part], weight[start : start + block], H, mixed)
        if self.has_intercept:  # the minimum over b takes the Schur complement
            H -= mixed @ _solve(_bend(P[rows], weight), mixed.T)
        return H

    def _add_of_atoms(
        self, atoms: AtomStack, rows: np.ndarray, P: np.ndarray, weight: np.ndarray, H: np.ndarray, mixed: np.ndarray
    ) -> None:
        """Add the curvature of some samples on atoms v e_(c, j), and their curvature with the intercepts."""
        of_class, column = np.divmod(atoms.index, self.n_columns)
        single, at = np.unique(column, return_inverse=True)
        found = self.X[rows][:, single] if scipy.sparse.issparse(self.X) else self.X[rows[:, None], single]
        Z = (found.toarray() if scipy.sparse.issparse(found) else found)[:, at] * atoms.value
        Q = P[:, of_class] * Z
        weighted = weight[:, None] * Q
        H -= weighted.T @ Q
        mixed -= weighted.T @ P
        for c in np.unique(of_class):
            own = np.flatnonzero(of_class == c)
            H[np.ix_(own, own)] += weighted[:, own].T @ Z[:, own]
            mixed[own, c] += weighted[:, own].sum(axis=0)

    def _add_of_vertices(
        self, atoms: Stack, rows: np.ndarray, P: np.ndarray, weight: np.ndarray, H: np.ndarray, mixed: np.ndarray
    ) -> None:
        """Add the same for vertices of any kind."""
        X, shape = self.X[rows], (self.n_classes, self.n_columns)
        V = (atoms.vertex(k).to_dense(self.n_features).reshape(shape) for k in range(len(atoms)))
        Z = np.array([X @ v.T for v in V]).reshape(len(atoms), rows.size, self.n_classes)
        Q = P * Z
        mean = Q.sum(axis=2)
        root = (np.sqrt(weight[:, None] * P) * Z).reshape(len(atoms), -1)
        H += root @ root.T - (weight * mean) @ mean.T
        mixed += np.einsum("i,aic->ac", weight, Q) - (weight * mean) @ P


class SoftmaxLook(Look):
    """A pass at W with the chances ``P`` of all samples and classes there."""

    def __init__(self, problem: SoftmaxProblem, evaluation: Evaluation, P: np.ndarray) -> None:
        super().__init__(evaluation)
        self.problem, self.P = problem, P

    def curvature(
        self, atoms: Stack | list[Vertex], known: np.ndarray | None = None, n_rows: float = np.inf
    ) -> np.ndarray:
        """Return <v_k, H v_l> for all pairs of atoms, from ``n_rows`` samples where that is less than half of all."""
        atoms = as_stack(atoms)
        if known is not None and known.shape[0] == len(atoms):
            return known
        H = self.problem.curvature_on(atoms, self.P, n_rows)
        if known is not None:
            H[: known.shape[0], : known.shape[0]] = known
        return H


def _bend(P: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return sum_i weight_i (diag(p_i) - p_i p_i')."""
    B: np.ndarray = -(weight[:, None] * P).T @ P
    np.fill_diagonal(B, 0.0)
    B -= np.diag(B.sum(axis=1))  # rows sum to zero, and no digits of rare classes are lost in 1 - 1
    return B


def _solve(B: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the solution of B z = right whose classes sum to zero, as those of every column of ``right`` do.

    B has one null direction, equal numbers for all classes; a multiple of ones fills it. (A pseudo-inverse would have
    to guess from rounding errors which eigenvalue is zero.)
    """
    scale = max(float(np.trace(B)) / B.shape[0], 1e-300)
    return np.linalg.solve(B + scale * (1.0 + 1e-15 * np.eye(B.shape[0])), right)


def _as_classes(y: ArrayLike, n_samples: int, n_classes: int | None) -> tuple[np.ndarray, int]:
    """Return the classes as integers, and how many there are."""
    given = convert.as_targets(y, n_samples)
    y = given.astype(np.int64)
    if (y != given).any() or y.min() < 0:
        wrong = given[(y != given) | (y < 0)][0]
        raise ValueError(f"y must hold the numbers of classes, 0, 1, ..., k - 1; got {wrong:g}.")
    k = int(y.max()) + 1 if n_classes is None else n_classes
    if not isinstance(k, int | np.integer) or isinstance(k, bool) or k < 2:
        raise ValueError(f"n_classes must be an integer of at least 2; got {k!r}.")
    if y.max() >= k:
        raise ValueError(f"y holds the class {y.max()}, but n_classes={k} leaves 0 to {k - 1}.")
    return y, int(k)
