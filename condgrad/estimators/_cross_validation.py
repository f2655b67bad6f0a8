"""CrossValidated: the radius of a linear model by cross-validation, for any loss, any set with a radius, any scores."""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, TypeAlias, TypeVar

import numpy as np
import scipy.sparse
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer
from sklearn.model_selection import check_cv
from sklearn.utils import indexable
from sklearn.utils.parallel import Parallel, delayed

from condgrad.estimators._fits import Budget, as_seed
from condgrad.estimators._held_out import two_digits
from condgrad.estimators._linear_model import ConstrainedLinearModel
from condgrad.estimators._observations import Observations
from condgrad.estimators.radius import RadiusWarning
from condgrad.linalg import convert, threads
from condgrad.linalg.callers import level_of_user
from condgrad.linalg.coded_data import CodedData
from condgrad.linalg.convert import Checked, Data
from condgrad.linalg.interrupts import Interrupts, at_most, time_is_over, time_left
from condgrad.paths.allowed_sets import check_radii, least_radius, leaves_out_zero
from condgrad.paths.grids import LARGEST_GROWTH, as_radii, check_grid, further_radii, is_still_rising, shares
from condgrad.paths.radius_search import contains_zero
from condgrad.paths.smooth import largest_radius, solutions
from condgrad.paths.validation import check_selection, select
from condgrad.storage.outside_rows import OutsideRows

_DEFAULT_FOLDS = 5
_SAMPLE_BYTES = 2**28  # size of the sample in memory on which a radius is chosen for rows on disk
_SEARCH = 0.8  # share of max_time that the choice of a radius may take: the fit to all data is one of about six
_GRID = 0.2  # share of the time of the choice in which the end of the grid is found
_ONLY = "score"  # name of a metric that has none

Fold: TypeAlias = tuple[np.ndarray, np.ndarray]  # samples to fit, and those left out
T = TypeVar("T")


class CrossValidated(ConstrainedLinearModel):
    """Base of the estimators whose radius cross-validation picks; subclasses say what targets and scores are.

    In every fold the radii are solved in ascending order, each from the last solution and certified to ``tol``. The
    radius with the best mean score is taken for all data, the same one for all classes or outputs. Where ``max_time``
    ends the search, it is the best of the radii that every fold has solved, or has begun with.
    """

    radii: ArrayLike | None = None
    n_radii: int = 20
    eps: float = 1e-2
    cv: object = None
    scoring: object = None
    refit: str | None = None
    selection: str = "best"
    n_jobs: int | None = None

    learns_in_batches = False
    validates_classes = False  # whether folds are stratified by y

    _is_cut_short = False  # whether max_time has ended the choice of the radius
    radii_: np.ndarray
    score_path_: np.ndarray
    score_paths_: dict[str, np.ndarray]

    # What subclasses say

    def _framed(self, data: Observations) -> tuple[Observations, list[np.ndarray]]:
        """Return samples of all data with their weights in the fit, and the targets of each problem."""
        raise NotImplementedError

    def _framed_fold(self, data: Observations) -> tuple[Observations, list[np.ndarray]]:
        """Return the same for the samples of a fold, after ``_framed`` has seen all data."""
        return self._framed(data)

    def _own_score(self, scores: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> float:
        """Return the score that ``scoring=None`` means, of predictions of shape (n_samples, n_problems)."""
        raise NotImplementedError

    def _fold_labels(self, y: np.ndarray) -> np.ndarray:
        """Return what splitters see of the targets."""
        return y

    # The choice of a radius

    def _fit_validated(self, data: Observations, groups: ArrayLike | None) -> Self:
        """Choose the radius and fit the model to all data."""
        began, self._is_cut_short = time.perf_counter(), False
        with at_most(None if self.max_time is None else _SEARCH * self.max_time):
            if isinstance(data.X, OutsideRows):
                used, targets = self._framed(data)
                radius = self._choose_outside(data, groups, used, targets)
            else:
                labels = self._fold_labels(data.y)
                parts = folds(self.cv, data.X, labels, data.weight, groups, is_classifier=self.validates_classes)
                used, targets = self._framed(data.weighted_only())
                self._check_offset(data.offset, targets)
                radius = self._choose_from_grid(data, parts, used, targets)
        if self._is_cut_short:
            warnings.warn(
                f"max_time (now {self.max_time:g} s) ended the cross-validation: the radius is the best of the first "
                f"{self.radii_.size} ones, which every fold has at least begun with; raise max_time, or try fewer.",
                ConvergenceWarning,
                stacklevel=level_of_user(),
            )
        self._solve_all(used, targets, self._known_starts(radius), radius=radius, began=began)
        self.radius_ = radius
        return self

    def _known_starts(self, radius: float) -> list[np.ndarray] | None:
        """Return solutions of all data for a radius of the grid, where they are known."""
        return None

    def _choose_from_grid(
        self, data: Observations, parts: list[Fold], used: Observations, targets: list[np.ndarray]
    ) -> float:
        """Return the best radius of the grid of all data."""
        return self._choose(data, parts, self._grid(used, targets))

    def _choose(self, data: Observations, parts: list[Fold], radii: np.ndarray) -> float:
        """Score all radii in all folds, and more where the largest of a default grid is the best; return the best."""
        end, is_default = float(radii[-1]), self.radii is None
        self.score_paths_ = self._validation_scores(data, parts, radii)
        name = self._chosen_metric()
        self.radii_ = radii[: len(self.score_paths_[name])]
        self._is_cut_short |= self.radii_.size < radii.size or time_is_over()
        while is_default and not time_is_over() and is_still_rising(self.score_paths_[name].mean(axis=1)):
            more = further_radii(self.radii_, self.n_radii, end)
            if more.size == 0:
                warnings.warn(
                    f"the largest radius, {self.radii_[-1]:.4g}, has the best score, although the grid was extended to "
                    f"{LARGEST_GROWTH:g} times its default end; standardise the features, or give radii=.",
                    RadiusWarning,
                    stacklevel=level_of_user(),
                )
                break
            scores = self._validation_scores(data, parts, more)
            self.radii_ = np.concatenate([self.radii_, more[: len(scores[name])]])
            self.score_paths_ = {key: np.vstack([self.score_paths_[key], scores[key]]) for key in scores}
        self.score_path_ = self.score_paths_[name]
        return float(self.radii_[select(self.score_path_, self.selection)])

    def _choose_outside(
        self, data: Observations, groups: ArrayLike | None, used: Observations, targets: list[np.ndarray]
    ) -> float:
        """Return the best radius for samples that are not in memory: that of a sample which is."""
        return self._choose_on_sample(data, groups)

    def _choose_on_sample(self, data: Observations, groups: ArrayLike | None) -> float:
        """Fit a copy of this estimator to a sample in memory, take over what it has chosen, and return its radius."""
        matrix, places = data.X.sample_within(_SAMPLE_BYTES)
        of_samples = [None if part is None else part[places] for part in data[1:]]
        chooser = clone(self)
        if chooser.device is not None:
            chooser.set_params(device=None)
        chooser.fit(matrix.X, *of_samples, None if groups is None else np.asarray(groups)[places])
        for name in ("radii_", "score_path_", "score_paths_", *self._chosen_with_the_radius):
            setattr(self, name, getattr(chooser, name))
        return float(chooser.radius_)

    _chosen_with_the_radius: tuple[str, ...] = ()  # more attributes that the choice of a radius sets

    def _grid(self, data: Observations, targets: list[np.ndarray]) -> np.ndarray:
        """Return the given radii, or the default grid."""
        budget = self._budget(data)
        if self.radii is not None:
            given = as_radii(self.radii)
            check_radii(given, budget.make)
            return given
        least = least_radius(budget.make)
        if not leaves_out_zero(budget.make) and not contains_zero(budget.make(1.0)):
            raise ValueError(
                f"constraint={self.constraint!r} does not contain zero, so it has no default grid; give radii=."
            )
        first = self._problem(data, targets[0], budget)
        problems = [first, *(first.with_targets(y) for y in targets[1:])]
        with at_most(time_left(_GRID)):
            largest = max(largest_radius(problem, budget.make, self.eps) for problem in problems)
        return least + (two_digits(largest - least) or 1.0) * shares(self.n_radii)

    def _validation_scores(self, data: Observations, parts: list[Fold], radii: np.ndarray) -> dict[str, np.ndarray]:
        """Return the scores of each metric: one row per radius that all folds have, one column per fold."""
        tasks = [(self._fold_scores, data, train, test, radii) for train, test in parts]
        each = on_threads(tasks, self.n_jobs)
        n_known = min(scores.size for of_fold in each for scores in of_fold.values())
        return {name: np.column_stack([scores[name][:n_known] for scores in each]) for name in each[0]}

    def _fold_scores(
        self, data: Observations, train: np.ndarray, test: np.ndarray, radii: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Return the scores on ``test`` of the models of all radii, or the first ones, that are fitted on ``train``."""
        coef, intercept = self._fold_models(data.at(train), radii)
        held_out, scorers = data.at(test), self._scorers()
        of_radii = [self._scores_of(*model, held_out, scorers) for model in zip(coef, intercept, strict=True)]
        return {name: np.array([scores[name] for scores in of_radii]) for name in of_radii[0]}

    def _fold_models(self, fitted: Observations, radii: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the coefficients of all radii, of shape (n_radii, n_rows, n_features), and the intercepts.

        When the time is over they are those of the first radii.
        """
        used, targets = self._framed_fold(fitted)
        budget, n_features = self._budget(used), fitted.X.shape[1]
        first = self._problem(used, targets[0], budget)
        coef = np.empty((radii.size, len(targets), first.n_features))
        intercept = np.empty((radii.size, len(targets), first.n_features // n_features))
        settings: dict[str, Any] = {"max_epochs": self.max_iter, "random_state": as_seed(self.random_state)}
        n_known = radii.size
        for c, target in enumerate(targets):
            problem, k = first if c == 0 else first.with_targets(target), -1
            with at_most(time_left(1.0 / (len(targets) - c))):
                found = solutions(problem, budget.make, self.solver, radii.tolist(), tol=self.tol, **settings)
                for k, point in enumerate(found):
                    coef[k, c], intercept[k, c] = point.w, point.intercept
            n_known = min(n_known, k + 1)
        coef = coef[:n_known].reshape(n_known, -1, n_features)
        return coef, intercept[:n_known].reshape(coef.shape[:2])

    # Scores

    def _scores_of(
        self, coef: np.ndarray, intercept: np.ndarray, held_out: Observations, scorers: Mapping[str, Any]
    ) -> dict[str, float]:
        """Return each score of a model on some samples."""
        X, y, weight, offset = held_out
        if not scorers:
            scores = X @ coef.T + intercept + (0.0 if offset is None else offset[:, None])
            return {_ONLY: self._own_score(scores, y, weight)}
        if offset is not None:  # a scorer knows no offsets, so they are one more column with the coefficient 1
            column = offset[:, None]
            if isinstance(X, CodedData):
                X = X.with_column(offset)
            else:
                is_sparse = scipy.sparse.issparse(X)
                X = scipy.sparse.hstack([X, column], format="csr") if is_sparse else np.hstack([X, column])
            coef = np.hstack([coef, np.ones((coef.shape[0], 1))])
        model = self._with_coefficients(coef, intercept, is_single=y.ndim == 1)
        given = {} if weight is None else {"sample_weight": weight}
        return {name: float(scorer(model, X, y, **given)) for name, scorer in scorers.items()}

    def _with_coefficients(self, coef: np.ndarray, intercept: np.ndarray, *, is_single: bool) -> Self:
        """Return a copy of this estimator with these coefficients, for scorers."""
        model = clone(self)
        model.coef_, model.intercept_, model.n_features_in_ = coef, intercept, coef.shape[1]
        return model

    def _scorers(self) -> dict[str, Any]:
        """Return the scorers of scikit-learn by their names; none where ``scoring`` is None."""
        scoring = self.scoring
        if scoring is None:
            return {}
        if isinstance(scoring, str):
            return {scoring: get_scorer(scoring)}
        if isinstance(scoring, Mapping):
            return {str(name): get_scorer(each) for name, each in scoring.items()}
        if isinstance(scoring, list | tuple | set | frozenset):
            return {str(name): get_scorer(name) for name in (sorted(scoring) if isinstance(scoring, set) else scoring)}
        return {_ONLY: get_scorer(scoring)}

    def _chosen_metric(self) -> str:
        """Return the name of the metric that chooses the radius."""
        names = list(self._scorers()) or [_ONLY]
        if self.refit is None and len(names) == 1:
            return names[0]
        if self.refit not in names:
            raise ValueError(
                f"refit must be the name of the metric that chooses the radius, one of {names}; got {self.refit!r}."
            )
        return str(self.refit)

    def score(
        self, X: Data, y: ArrayLike, sample_weight: ArrayLike | None = None, offset: ArrayLike | None = None
    ) -> float:
        """Return the score of ``scoring`` that has chosen the radius; where that is None, the usual one."""
        if self.scoring is None:
            return float(super().score(X, y, sample_weight, offset))
        name = self._chosen_metric()
        scorer = self._scorers()[name]
        weight = None if sample_weight is None else np.asarray(sample_weight)
        if offset is None:
            return float(scorer(self, X, y, **({} if weight is None else {"sample_weight": weight})))
        X, y = self._encoded(X), np.asarray(y)
        X = X if isinstance(X, CodedData) else convert.as_data(X)
        held_out = Observations(X, y, weight, convert.as_vector(offset, "offset", X.shape[0]))
        return self._scores_of(self._coefficients(), np.atleast_1d(self.intercept_), held_out, {name: scorer})[name]

    # Settings

    def _check_settings(self) -> None:
        super()._check_settings()
        check_selection(self.selection)
        check_grid(self.n_radii, self.eps)
        self._chosen_metric()

    def _budget(self, data: Observations) -> Budget:
        """Return the sets to choose from: given by name, by one of them, or by a function of the radius."""
        constraint = self.constraint
        if isinstance(constraint, str):
            return super()._budget(data)
        if callable(constraint) and (isinstance(constraint, type) or not hasattr(constraint, "lmo")):
            return Budget(None, constraint, None)
        if "radius" in getattr(constraint, "_fields", ()):
            return Budget(None, functools.partial(_with_radius, constraint), None)
        raise ValueError(
            "constraint must be the name of a set, a set with a radius, or a function that makes the set of a radius; "
            f"got {constraint!r}."
        )


def _with_radius(constraint: Any, radius: float) -> Any:
    """Return the set with another radius."""
    return constraint._replace(radius=radius)


def folds(
    cv: object,
    X: Checked,
    y: np.ndarray,
    weight: np.ndarray | None,
    groups: ArrayLike | None = None,
    *,
    is_classifier: bool,
) -> list[Fold]:
    """Return the folds as pairs of index arrays, without the samples that have no weight.

    ``cv=None`` means 5 folds; for a classifier at most as many as the largest class has samples. Splitters that keep
    groups together read ``groups``.
    """
    if cv is None and is_classifier:
        cv = max(2, min(_DEFAULT_FOLDS, int(np.unique(y, return_counts=True)[1].max())))
    if groups is not None:
        indexable(X, y, groups)
        groups = np.asarray(groups)
    split = check_cv(cv, y, classifier=is_classifier).split(X, y, groups)
    samples, of_weight = np.arange(X.shape[0]), ""  # masks, lists and negative numbers choose some of them
    parts = [(samples[train], samples[test]) for train, test in split]
    if weight is not None:
        parts = [(train[weight[train] > 0.0], test[weight[test] > 0.0]) for train, test in parts]
        of_weight = " with a positive sample_weight"
    if any(train.size == 0 or test.size == 0 for train, test in parts):
        raise ValueError(f"a fold of cv holds no samples{of_weight}; use fewer folds.")
    return parts


def on_threads(tasks: Sequence[tuple[object, ...]], n_jobs: int | None) -> list[Any]:
    """Return the results of tasks (function, arguments), running ``n_jobs`` at a time.

    Ctrl-C also interrupts tasks in other threads. Parallel tasks share the threads that passes over the data may use,
    and tasks that run one after the other the time that is left.
    """
    n_at_once = effective_n_jobs(n_jobs)
    share, n_turns = threads.n_threads() // n_at_once, -(-len(tasks) // n_at_once)
    now, left = time.perf_counter(), time_left()
    ends = [None if left is None else now + left * (k // n_at_once + 1) / n_turns for k in range(len(tasks))]
    with Interrupts():
        return Parallel(n_jobs=n_jobs, prefer="threads")(
            delayed(_run)(share, end, *task) for end, task in zip(ends, tasks, strict=True)
        )


def _run(share: int, end: float | None, function: Callable[..., T], *given: object) -> T:
    with threads.at_most(share), at_most(None if end is None else max(0.0, end - time.perf_counter())):
        return function(*given)
