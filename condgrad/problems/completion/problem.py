"""CompletionProblem: minimise the mean loss at the observed entries of a matrix over a nuclear-norm ball."""

from __future__ import annotations

import copy
import functools
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from condgrad import losses
from condgrad.constraints import NuclearBall
from condgrad.constraints.vertices import Vertex
from condgrad.linalg import convert
from condgrad.linalg.entries import Entries
from condgrad.linalg.factored import Factored, IterateLike, RankOne
from condgrad.linalg.fingerprint import fingerprint_of
from condgrad.linalg.rounding import UNIT, bounds, gamma, prediction_error
from condgrad.linalg.settings import as_flag
from condgrad.linalg.support import support_of
from condgrad.losses._protocol import as_loss
from condgrad.problems.base import BaseProblem, Feature
from condgrad.problems.completion.biases import Biases, best_biases, check_biases
from condgrad.problems.completion.dense_fit import DenseFit, is_narrow
from condgrad.problems.completion.factor_fit import FactorFit
from condgrad.problems.completion.oracle import ACCURACY, Answer, Search, ask
from condgrad.problems.completion.places import as_places
from condgrad.problems.completion.point import CompletionPoint
from condgrad.problems.completion.steps import EntrySum, FactoredVector
from condgrad.problems.evaluation import Evaluation, certify
from condgrad.problems.look import Look
from condgrad.problems.samples import Samples

_CERTIFIED = 0.01  # largest error of the oracle for a certificate, as a fraction of the gap
_NARROW = 256  # largest number of columns (or rows) for which a decomposition of the whole matrix is cheap
_DENSE = 0.1  # least share of observed entries for which projected gradient steps converge fast
_LANCZOS = 1000  # number of products that a Lanczos step may add to the sums over the entries


class CompletionProblem(BaseProblem):
    r"""Minimise over matrices W in a nuclear-norm ball the mean loss F(W) = (1/n) sum_t f(W[i_t, j_t], y_t).

    W is stored in factors (:class:`~condgrad.linalg.factored.Factored`), and memory is of the order of the observed
    entries and the factors. With ``biases=True`` a prediction is W[i, j] + a_i + b_j with free a and b, and F(W) is the
    minimum over a and b: every method uses that minimum.

    The gap is max over the ball of <grad F(W), W - S> = <grad F(W), W> + radius ||grad F(W)||. The gradient is a sparse
    matrix; Lanczos steps find its norm and bound it from above, up to a probability of 1e-10
    (:class:`~condgrad.linalg.lanczos.Lanczos`). The gap uses that bound: an inexact oracle never makes it too small.

    Parameters
    ----------
    rows, columns : integer arrays of equal length
        The places of the observed entries; each place at most once.
    values : array
        The targets at these places, in the form that the loss requires.
    loss : a loss of :mod:`condgrad.losses`, or your own
    constraint : NuclearBall or WeightedNuclearBall
    shape : (int, int), optional
        The shape of the matrix, by default just large enough.
    sample_weight : array, optional
    biases : bool

    Examples
    --------
    >>> import condgrad as cg
    >>> rows, columns, values = [0, 0, 1, 1], [0, 1, 0, 1], [1.0, 2.0, 2.0, 4.0]
    >>> problem = CompletionProblem(rows, columns, values, cg.losses.Squared(), cg.constraints.NuclearBall(5.0))
    >>> result = cg.minimize(problem, tol=1e-8)
    >>> result.w.rank, np.round(result.w.to_dense(), 3)
    (1, array([[1., 2.],
           [2., 4.]]))
    """

    constraint: NuclearBall
    l2 = 0.0  # the factor of the penalty that segments read: there is none here
    remedies: ClassVar = dict.fromkeys(
        (Feature.CHUNKS, Feature.PREDICTIONS),
        "steps over batches of entries do not support biases; biases=False leaves them out",
    )

    def __init__(
        self,
        rows: ArrayLike,
        columns: ArrayLike,
        values: ArrayLike,
        loss: object,
        constraint: object,
        *,
        shape: tuple[int, int] | None = None,
        sample_weight: ArrayLike | None = None,
        biases: bool = False,
    ) -> None:
        rows, columns, self.shape = as_places(rows, columns, shape)
        self.n_samples = rows.size
        self.n_features = self.shape[0] * self.shape[1]
        y = convert.as_targets(values, self.n_samples)
        weight = convert.as_weights(sample_weight, self.n_samples)
        self.loss = as_loss(loss)
        self.loss.check_targets(y)
        self.has_biases = as_flag(biases, "biases")
        if self.has_biases:
            check_biases(self.loss, y[weight > 0.0])
        self.offers = frozenset({Feature.LOOK, Feature.POINT, Feature.FACTORS})
        if not self.has_biases:
            self.offers |= {Feature.CHUNKS, Feature.PREDICTIONS}
        self.entries = Entries(rows, columns, self.shape)
        order = self.entries.sorting
        self.samples = Samples(self.loss, y[order], weight[order])
        self._constrain(constraint)

    def _constrain(self, constraint: object) -> None:
        if not isinstance(constraint, NuclearBall):
            raise TypeError(f"constraint must be a NuclearBall or a WeightedNuclearBall; got {constraint!r}.")
        if constraint.shape not in (None, self.shape):
            raise ValueError(f"{constraint!r} is a set of matrices of shape {constraint.shape}, not {self.shape}.")
        self.constraint = constraint
        self.row_scale, self.column_scale = constraint.scales(self.shape)
        for name in ("_largest_scale", "_largest_entry", "is_narrow"):
            self.__dict__.pop(name, None)

    def over(self, constraint: object) -> CompletionProblem:
        """Return the same problem over another ball; both share the data."""
        other = copy.copy(self)
        other._constrain(constraint)
        return other

    def of_entries(self, chosen: np.ndarray, constraint: object) -> CompletionProblem:
        """Return the problem of the chosen entries only (a mask), which must have a positive total weight."""
        entries, samples = self.entries, self.samples
        return CompletionProblem(
            entries.rows[chosen], entries.columns[chosen], samples.y[chosen], samples.loss, constraint,
            shape=self.shape, sample_weight=samples.weight[chosen], biases=self.has_biases,
        )  # fmt: skip

    def has_weight(self, chosen: np.ndarray) -> bool:
        """Return whether any of the chosen entries (a mask) has a positive weight."""
        return bool(self.samples.weight[chosen].any())

    def losses_at(self, W: Factored, biases: Biases | None) -> np.ndarray:
        """Return the loss of W with the given biases at each entry."""
        p = self.predict(self.entries.values_of(W.U * W.s, W.V), biases)
        losses: np.ndarray = self.loss.value(p, self.samples.y)
        return losses

    @property
    def is_convex(self) -> bool:
        """Whether the gap bounds F(W) - F*, as it does for convex losses."""
        return bool(self.loss.is_convex)

    @property
    def is_compiled(self) -> bool:
        """Whether steps can run inside kernels: with this oracle they cannot."""
        return False

    @property
    def is_quadratic(self) -> bool:  # type: ignore[override]
        """Whether the curvature of F is the same everywhere, as for quadratic losses."""
        return bool(self.loss.is_quadratic)

    def start(self) -> tuple[Factored, list[tuple[float, Vertex]]]:
        """Return the point where solvers start: the zero matrix, without vertices."""
        return Factored.zero(self.shape), []

    def objective(self, W: IterateLike) -> float:
        """Return F(W)."""
        return self.samples.value(self.predict(*self._at(W)), 0.0)

    def gradient(self, W: IterateLike) -> Any:
        """Return the gradient of F at W, a sparse matrix."""
        import scipy.sparse

        alpha = self.samples.derivatives(self.predict(*self._at(W)), 0.0)
        side = self.entries.by_row
        return scipy.sparse.csr_matrix((alpha, side.others, side.indptr), shape=self.shape)

    def look(self, w: IterateLike) -> Look:
        """Make a pass at W and return objective, gradient at the entries, gap, vertex and biases.

        The gap is an upper bound of the Frank-Wolfe gap, up to a probability of 1e-10.
        """
        W = self.as_iterate(w, "W")
        x, biases = self._at(W)
        alpha = self.samples.derivatives(self.predict(x, biases), 0.0)
        answer = self.ask_oracle(alpha, x, np.random.default_rng(self.n_samples), accuracy=_CERTIFIED)
        return Look(self.certified_at(W, x, biases, answer.gap, answer.vertex))

    def certified_at(self, W: Factored, x: np.ndarray, biases: Biases | None, gap: float, s: RankOne) -> Evaluation:
        """Return the certified evaluation at W, for values x at the entries, biases, gap and vertex computed at W."""
        p = self.predict(x, biases)
        seen = self.samples.expand(p, 0.0)
        sizes, reach, free_reach = seen.totals.sizes, 2.0 * self.constraint.radius * self._largest_scale, 0.0
        if biases is not None:
            # Assumption: with the best biases, predictions stay within twice the range of the targets and the present
            # predictions. Then a chain of entries bounds each bias.
            sizes = sizes._replace(balance=self._imbalance(seen.alpha))
            range_ = float(np.abs(p).max() + np.abs(self.samples.y).max())
            free_reach = self.entries.longest_chain * (4.0 * range_ + self.constraint.radius * self._largest_entry)
            reach += 2.0 * (sizes.prediction + sizes.target)
        delta = prediction_error(sizes, W.rank, float(np.sqrt(self.samples.weight.max())) * W.spread())
        largest = gamma(W.rank + 4) * W.spread() + 2.0 * UNIT * float(np.abs(p).max())
        found = bounds(
            sizes,
            n_samples=self.n_samples + _LANCZOS,
            reach=reach,
            free_reach=free_reach,
            delta=delta,
            slope_error=seen.totals.slope_error(self.loss, delta, largest),
        )
        return certify(self.is_convex, seen.totals.value, seen.alpha, gap, s, biases, found)

    @functools.cached_property
    def _largest_scale(self) -> float:
        """The largest sqrt(weight) of an entry times the scales of its row and column."""
        return float(np.sqrt(self.samples.weight * self._entry_scales() ** 2).max())

    @functools.cached_property
    def _largest_entry(self) -> float:
        """The largest product of the scales of an entry's row and column: the largest factor of an entry of Z in W."""
        return float(self._entry_scales().max())

    def _entry_scales(self) -> np.ndarray:
        ones = Factored(np.ones((self.shape[0], 1)), np.ones(1), np.ones((self.shape[1], 1)))
        scales: np.ndarray = np.abs(self.values_of(ones))
        return scales

    def _imbalance(self, alpha: np.ndarray) -> float:
        """Return the sum of the absolute derivatives with respect to all biases, which is 0 at the best biases."""
        return float(np.abs(self.entries.row_sums(alpha)).sum() + np.abs(self.entries.column_sums(alpha)).sum())

    @property
    def n_coordinates(self) -> int:
        """The length of the vectors that steps work on: the number of observed entries."""
        return self.n_samples

    def in_coordinates(self, W: Factored) -> np.ndarray:
        """Return an iterate in the coordinates of the steps: W at the observed entries."""
        return self._at(W)[0]

    def vector_at(self, W: Factored) -> FactoredVector:
        """Return an iterate as the vector that steps move."""
        return FactoredVector(self, self.into_ball(W))

    def iterate_of(self, vector: FactoredVector) -> Factored:
        """Return the matrix that a vector of the steps represents."""
        return self.out_of_ball(vector.Z)

    def predictions(self, x: np.ndarray) -> np.ndarray:
        """Return the predictions at the entries in the coordinates of the steps: x itself."""
        return x.copy()

    def derivatives(self, x: np.ndarray, b: float) -> np.ndarray:
        """Return the derivatives weight_i f'(x_i + b, y_i) of all entries."""
        return self.samples.derivatives(x, b)

    def transpose_dot(self, alpha: np.ndarray) -> np.ndarray:
        """Return the gradient in the coordinates of the steps: the derivatives themselves."""
        return alpha.copy()

    def loss_scale(self) -> float:
        """Return the mean absolute loss at W = 0 with its biases; tolerances of estimators are relative to it."""
        return self.samples.loss_scale(self._null_predictions)

    def null_spread(self) -> float:
        """Return the root mean square of the residuals at W = 0 with its biases."""
        residual = self.samples.y - self._null_predictions
        return float(np.sqrt(self.samples.weight @ residual**2))

    @functools.cached_property
    def _null_predictions(self) -> np.ndarray:
        """The predictions of W = 0 with its biases, whatever the ball is."""
        zeros = np.zeros(self.n_samples)
        return self.predict(zeros, self.best_biases(zeros))

    def curvatures(self, p: np.ndarray) -> np.ndarray:
        """Return the second derivatives weight_i f''(p_i, y_i) for predictions p."""
        return self.samples.curvatures(p, 0.0)

    def mean_curvature(self, p: np.ndarray) -> float:
        """Return the mean curvature of F along matrices of rank one of the plain ball, at predictions p."""
        m, n = self.shape
        return float(self.curvatures(p) @ self._entry_scales() ** 2) / (m * n)

    def objective_at(self, Z: Factored, biases: Biases | None) -> float:
        """Return the mean loss at Z, in the coordinates of the plain ball, with the biases given."""
        return self.samples.value(self.predict(self.values_of(Z), biases), 0.0)

    def best_multiple(self, x: np.ndarray, offset: np.ndarray, limit: float) -> float:
        """Return the factor in [0, limit] that minimises the loss of the predictions offset + factor x."""
        everywhere = support_of(None, self.n_samples)
        return self.samples.minimise_on_line(everywhere, offset, x, 0.0, False, limit, self.is_quadratic)

    def factor_fit(self, Z: Factored, p: np.ndarray, biases: Biases | None) -> FactorFit:
        """Return a fit that starts from the factors of Z, with the predictions p and the given biases."""
        return FactorFit(self.samples, self.entries, *Z.balanced(), p, biases, self.row_scale, self.column_scale)

    def dense_fit(self, Z: Factored, biases: Biases | None) -> DenseFit:
        """Return a fit of the whole matrix that starts from Z and the given biases, for narrow matrices."""
        return DenseFit(self, Z, biases)

    @functools.cached_property
    def is_narrow(self) -> bool:
        """Whether the matrix has few columns or rows, and many of its entries are observed."""
        return is_narrow(self, _NARROW, _DENSE)

    def finite_sum(self, b: np.ndarray) -> EntrySum:
        """Return the problem one entry at a time."""
        return EntrySum(self)

    def best_offset(self, W: Factored) -> float:
        """Return 0: steps over batches do not support biases."""
        return 0.0

    def importance(self) -> np.ndarray:
        """Return the weight of each entry, its importance for sampling."""
        return self.samples.weight

    def point(self, W: Factored) -> CompletionPoint:
        """Return an iterate at ``W`` for a solver of full passes."""
        return CompletionPoint(self, W)

    def as_iterate(self, W: IterateLike, name: str) -> Factored:
        """Convert a matrix given by the user to factors."""
        if not isinstance(W, Factored):
            W = np.asarray(W)
            if W.shape != self.shape:
                raise ValueError(f"{name} must be a Factored matrix or an array of shape {self.shape}; got {W.shape}.")
            U, s, Vt = np.linalg.svd(W.astype(np.float64), full_matrices=False)
            W = Factored(U, s, Vt.T).compressed(1e-14)
        if W.shape != self.shape:
            raise ValueError(f"{name} must be a matrix of shape {self.shape}; got {W.shape}.")
        return W

    def into_ball(self, W: Factored) -> Factored:
        """Return Z with W = diag(row_scale) Z diag(column_scale)."""
        return W.scaled(_inverse(self.row_scale), _inverse(self.column_scale)).compressed(1e-14)

    def out_of_ball(self, Z: Factored) -> Factored:
        """Return W = diag(row_scale) Z diag(column_scale)."""
        return Z.scaled(self.row_scale, self.column_scale)

    def values_of(self, Z: Factored) -> np.ndarray:
        """Return W at the observed entries, for the W that Z represents."""
        W = self.out_of_ball(Z)
        return self.entries.values_of(W.U * W.s, W.V)

    def predict(self, x: np.ndarray, biases: Biases | None) -> np.ndarray:
        """Return predictions at the entries, from the values x of W there and the biases."""
        return x if biases is None else x + self.entries.sums_of(*biases)

    def best_biases(self, x: np.ndarray, start: Biases | None = None) -> Biases | None:
        """Return the best biases for a W with the values x at the entries (None for a problem without biases)."""
        if not self.has_biases:
            return None
        if start is None:  # the biases of the squared loss are a good guess for any other loss
            start = Biases(np.zeros(self.shape[0]), np.zeros(self.shape[1]))
            if not self.loss.is_quadratic:
                start = best_biases(self.samples._replace(loss=losses.by_name("squared")), self.entries, x, start)
        return best_biases(self.samples, self.entries, x, start)

    def ask_oracle(
        self,
        alpha: np.ndarray,
        x: np.ndarray,
        rng: np.random.Generator,
        guess: np.ndarray | None = None,
        accuracy: float = ACCURACY,
        goal: float = 0.0,
    ) -> Answer:
        """Return the best vertex for the gradient with the entries ``alpha`` at a W with the values x there.

        The error of the oracle is at most the fraction ``accuracy`` of the gap, unless the gap is at most ``goal``, or
        surely above it: see :func:`condgrad.problems.completion.oracle.ask`.
        """
        return ask(self.search(alpha, rng, guess), float(alpha @ x), self.constraint.radius, accuracy, goal)

    def search(self, alpha: np.ndarray, rng: np.random.Generator, guess: np.ndarray | None = None) -> Search:
        """Return a search for the singular vectors of the gradient, in the coordinates of the plain ball."""
        is_plain = self.row_scale is None and self.column_scale is None
        return Search(self.entries, alpha if is_plain else alpha * self._entry_scales(), rng, guess)

    def vertex_predictions(self, s: RankOne) -> np.ndarray:
        """Return the vertex at the observed entries."""
        return self.values_of(s.as_factored())

    def fingerprint(self) -> str:
        """Return a hash of all that defines the problem, by which a checkpoint recognises it."""
        return fingerprint_of((self.shape, tuple(self.entries.by_row), self.samples, self.constraint, self.has_biases))

    def _at(self, W: IterateLike) -> tuple[np.ndarray, Biases | None]:
        W = self.as_iterate(W, "W")
        x = self.entries.values_of(W.U * W.s, W.V)
        return x, self.best_biases(x)


def _inverse(scale: np.ndarray | None) -> np.ndarray | None:
    if scale is None:
        return None
    inverse: np.ndarray = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0.0)
    return inverse
