"""Base of the linear estimators: validates data, builds and solves problems, sets coefficients, warns."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_sample_weight, validate_data

from condgrad import losses
from condgrad.constraints import as_constraint_set
from condgrad.constraints._allowance import PerFeature, Which
from condgrad.constraints._row_sentences import Rows, as_rows_of
from condgrad.estimators._batch import Batch, Memory
from condgrad.estimators._callbacks import CallbackSupportMixin, Watch, with_callbacks
from condgrad.estimators._fits import Budget, Fit, as_seed, feasible_start, remedy
from condgrad.estimators._fitted_linear_model import FittedLinearModel
from condgrad.estimators._observations import Observations
from condgrad.estimators._partial_fit import memory_of_fit, one_epoch
from condgrad.estimators._penalised import NAMES, Penalised, penalised_solution
from condgrad.estimators._standardised import Standardises
from condgrad.estimators.radius import RadiusWarning
from condgrad.linalg import convert
from condgrad.linalg.callers import level_of_user
from condgrad.linalg.coded_data import CodedData
from condgrad.linalg.convert import Data
from condgrad.linalg.device.arrays import device_by_name, is_on_device, on_host
from condgrad.linalg.device.failures import failures_explained
from condgrad.linalg.interrupts import as_seconds, at_most
from condgrad.linalg.settings import RandomState, as_flag
from condgrad.losses import Loss
from condgrad.paths.allowed_sets import AllowedSets, Columns, cut, minimize_over, sets_of, suited
from condgrad.paths.batched import BatchedPaths, serves
from condgrad.paths.radius_search import go_on_unless_interrupted, set_by_name
from condgrad.problems.linear import Problem
from condgrad.problems.outputs import OutputsProblem
from condgrad.run.result import Result
from condgrad.storage.cluster_rows import ClusterRows, is_dask, of_dask, on_devices
from condgrad.storage.device_data import DeviceData
from condgrad.storage.outside_rows import OutsideRows
from condgrad.storage.stored_rows import StoredRows


class ConstrainedLinearModel(CallbackSupportMixin, Standardises, FittedLinearModel):
    """Base of the estimators: coefficients from one problem, or from one per class or output."""

    # Values of settings that an estimator does not offer as parameters.
    loss: object = "squared"
    constraint: object = "l1"
    radius: float | None = None
    feature_weight: PerFeature = None
    positive: Which = False
    lower: PerFeature = None
    upper: PerFeature = None
    rows: Rows = None
    solver: object = "auto"
    fit_intercept: bool = True
    tol: float = 1e-6
    max_iter: float = 1000
    max_time: float | None = None
    warm_start: bool = False
    random_state: RandomState = None
    verbose: bool = False
    device: str | None = None

    learns_in_batches = True  # whether a stochastic solver can continue with more samples: see partial_fit
    _memories: list[Memory] | None = None  # what batches told so far, one for each problem

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _validated(
        self,
        X: Data | OutsideRows,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        offset: ArrayLike | None,
        **settings: object,
    ) -> Observations:
        """Return X, y, weights and offsets as arrays; rows outside of memory stay there."""
        self._check_settings()
        if is_dask(X):
            X, y, sample_weight, offset = of_dask(X, y, sample_weight, offset, None), None, None, None
        X = self._encoded(DeviceData.of(X) if is_on_device(X) else on_host(X), reset=bool(settings.get("reset", True)))
        y, sample_weight, offset = map(on_host, (y, sample_weight, offset))
        if isinstance(X, OutsideRows):
            data = self._validated_rows(X, y, sample_weight, offset, **settings)
        else:
            data = self._checked(X, y, sample_weight, offset, **settings)
        if self.device is None or isinstance(X, DeviceData):
            return data
        if isinstance(X, ClusterRows):
            return data._replace(X=on_devices(X, self.device))
        if isinstance(X, OutsideRows) and not isinstance(X, StoredRows):
            raise TypeError(f"{X!r} cannot be sent to a device; leave device out.")
        return data._replace(X=DeviceData.of(data.X, device_by_name(self.device)))

    def _checked(
        self,
        X: Data,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        offset: ArrayLike | None,
        **settings: object,
    ) -> Observations:
        """Return data in memory as arrays."""
        convert.check_columns(X)
        if isinstance(X, CodedData) or self.indicators_ is not None:
            X, y = self._checked_features(X, y, settings)
        else:
            X, y = validate_data(self, X, y, accept_sparse=("csr", "csc"), dtype=(np.float64, np.float32), **settings)
        own = None if offset is None else convert.as_vector(offset, "offset", X.shape[0])
        if sample_weight is None:
            return Observations(X, y, None, own)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
        if weight.min() < 0.0:
            raise ValueError(f"sample_weight must not be negative; got {weight.min():g}.")
        if not weight.any():  # newer scikit-learn raises this itself
            raise ValueError("sample_weight is zero for every sample; at least one must be positive.")
        return Observations(X, y, weight, own)

    def _validated_rows(
        self,
        rows: OutsideRows,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        offset: ArrayLike | None,
        **settings: object,
    ) -> Observations:
        """Return rows outside of memory with the numbers of their samples, which are checked; X was checked before."""
        y, weight = rows.y if y is None else y, rows.weight if sample_weight is None else sample_weight
        offset = rows.offset if offset is None else offset
        if y is None:
            raise ValueError(f"y is missing: {rows!r} has no targets; pass y.")
        outline = scipy.sparse.csr_matrix(rows.shape)  # an empty matrix of this shape, for the checks of y and weights
        checked = self._checked(outline, y, weight, offset, **settings)
        if rows.feature_names is not None:
            self.feature_names_in_ = np.array(rows.feature_names, dtype=object)
        return checked._replace(X=rows)

    def _check_settings(self) -> None:
        convert.as_number(self.tol, "tol", low=0.0, what="a number of at least 0")
        convert.as_number(self.max_iter, "max_iter", low=0.0, what="a number of at least 0")
        as_flag(self.standardize, "standardize")
        as_seconds(self.max_time)
        if self.radius is not None:
            convert.as_number(self.radius, "radius", low=1e-300, what="a positive number, or None")

    def _check_norm_penalty(self, name: str, value: float | None) -> None:
        """Raise unless a penalty in place of a radius makes sense."""
        if value is None:
            return
        convert.as_number(value, name, low=1e-300, what="a positive, finite number, or None", below=math.inf)
        if self.radius is not None:
            raise ValueError(f"give radius or {name}, not both: each radius has its penalty, which alpha_ reports.")
        if not (isinstance(self.constraint, str) and self.constraint in NAMES):
            raise ValueError(
                f"{name} is a penalty of the l1 norm, so constraint must be 'l1' or 'nonnegative-l1'; got "
                f"{self.constraint!r}. Give a radius instead."
            )

    def _loss(self) -> Loss:
        loss = losses.by_name(self.loss) if isinstance(self.loss, str) else self.loss
        if self.fit_intercept and not getattr(loss, "is_convex", True):
            raise ValueError(
                f"{loss!r} is not convex, so its best intercept cannot be certified; use fit_intercept=False, "
                "with a constant column in X if you need one."
            )
        return cast("Loss", loss)

    def _link(self) -> str | None:
        """Return the link of the loss, or None for a setting that is not a loss: only ``fit`` rejects it."""
        loss = losses.REGISTERED.get(self.loss) if isinstance(self.loss, str) else self.loss
        return getattr(loss, "link", None)

    @property
    def _columns(self) -> Columns:
        return Columns(self.n_features_in_, getattr(self, "feature_names_in_", None))

    def _budget(self, data: Observations) -> Budget:
        radius = None if self.radius is None else float(self.radius)
        sets = self._allowed_sets(data)
        if sets is not None:
            return Budget(None, sets, radius)
        if isinstance(self.constraint, str):
            return Budget(None, set_by_name(self.constraint), radius)
        if radius is not None:
            raise ValueError(
                f"radius is for a constraint given by name; {self.constraint!r} has its own size. Leave radius out."
            )
        whole, rows = as_constraint_set(self.constraint), as_rows_of(self.rows, *self._columns)
        return Budget(whole if rows is None else cut(whole, rows), None, None)

    def _allowed_sets(self, data: Observations) -> AllowedSets | None:
        """Return the sets that weights and limits of features ask for, None where there are none."""
        scale = self._deviations(data)
        rows = self.rows if isinstance(self.constraint, str) else None  # another set is cut as a whole
        terms = self.feature_weight, self.positive, self.lower, self.upper, rows
        sets = sets_of(self.constraint, self._columns, *terms, scale)
        if sets is not None and self._is_joint:
            raise ValueError(
                "weights and limits of features need one problem per output or class; this is a joint one."
            )
        return sets

    def _problem(self, data: Observations, y: np.ndarray, budget: Budget) -> Problem | OutputsProblem:
        """Return the problem over the given set, or over the unit set if a radius is to be applied."""
        return Problem(
            data.X, y, self._loss(), budget.unit_set(), sample_weight=data.weight, offset=data.offset,
            intercept=bool(self.fit_intercept), l2=self._penalty(),
        )  # fmt: skip

    def _penalty(self) -> float:
        """Return the factor l2 of the penalty l2 ||w||^2 / 2."""
        return 0.0

    @with_callbacks
    def _solve_all(
        self,
        data: Observations,
        targets: list[np.ndarray],
        starts: Sequence[np.ndarray] | np.ndarray | None = None,
        radius: float | None = None,
        began: float | None = None,
    ) -> None:
        """Solve one problem per vector of targets, set the fitted attributes, and warn where needed.

        ``radius`` is one that the estimator itself has chosen; only a radius given by the user causes warnings. The
        time that counts is that since ``began``, by default since now.
        """
        self._check_offset(data.offset, targets)
        self.has_offset_ = data.offset is not None
        began = time.perf_counter() if began is None else began
        self._begin(data, targets)
        self._warn_of_scales(data)
        watch, budget = Watch(self, data), self._budget(data)
        is_given = budget.radius is not None
        budget = budget if radius is None else budget._replace(radius=radius)
        random_state = as_seed(self.random_state)
        first, fits = self._problem(data, targets[0], budget), []
        if starts is None and len(targets) > 1:
            starts = self._solved_together(first, targets, budget)
        for k, y in enumerate(targets):
            # Remaining time per remaining problem; at most half of it is for choosing the radius.
            share = self._time_left(began) / (len(targets) - k)
            solved_by = time.perf_counter() + share
            first = first if k == 0 else first.with_targets(y)
            start = None if starts is None else starts[k]
            penalised: Penalised | None = None
            if (alpha := self._norm_penalty(data)) is not None and radius is None:
                penalised = self._solved_with(alpha, data, first, y, None if self.max_time is None else share)
                used, start, make = penalised.radius, penalised.w, suited(budget.make, first)
            else:
                make, used = budget.applied(first, None if self.max_time is None else 0.5 * share)
            tol = self.tol * first.loss_scale()
            problem, _, result = minimize_over(
                first,
                make,
                used or 1.0,
                self.solver,
                w0=None if start is None else feasible_start(make(used or 1.0), start),
                tol=tol,
                max_epochs=self.max_iter,
                max_time=None if self.max_time is None else max(0.0, solved_by - time.perf_counter()),
                random_state=random_state,
                verbose=bool(self.verbose),
                callback=watch.of(first.evaluate, is_single=len(targets) == 1),
            )
            if len(targets) > 1:
                go_on_unless_interrupted(result.status)
            # Drop the solver's state: it holds the data, and a pickled estimator should not.
            fit = Fit(problem, used, result._replace(state=None), tol)
            fits.append(fit if penalised is None else fit.of_penalised(penalised))
        self._fitted_to, self._memories = ([repr(fit.problem.constraint) for fit in fits], data.X.shape[0]), None
        self._set_fitted([fit.result for fit in fits], [fit.radius for fit in fits])
        self._conclude(data, targets, [fit.result for fit in fits])
        watch.end()
        self._warn(fits, is_given)

    def _begin(self, data: Observations, targets: list[np.ndarray]) -> None:
        """Choose what a loss needs to know about the data."""

    def _conclude(self, data: Observations, targets: list[np.ndarray], results: list[Result]) -> None:
        """Set attributes that an estimator adds to those of all."""

    def _solved_with(
        self, alpha: float, data: Observations, problem: Problem | OutputsProblem, y: np.ndarray, max_time: float | None
    ) -> Penalised:
        """Return the solution with a penalty of the norm."""
        return penalised_solution(
            data, problem, y, cast("str", self.constraint), alpha,
            l2=self._penalty(), tol=float(self.tol), fit_intercept=bool(self.fit_intercept),
            max_epochs=self.max_iter, max_time=max_time, sets=self._allowed_sets(data),
        )  # fmt: skip

    def _norm_penalty(self, data: Observations) -> float | None:
        """Return the penalty of the norm that was given in place of a radius, or None."""
        return None

    def _solved_together(
        self, first: Problem | OutputsProblem, targets: list[np.ndarray], budget: Budget
    ) -> list[np.ndarray] | None:
        """Return the solutions of all problems if X is on a device where they share passes; each is certified later."""
        if not isinstance(first, Problem) or budget.radius is None or not serves(first, budget.make, self.solver):
            return None
        problems = [first, *(first.with_targets(y) for y in targets[1:])]
        with failures_explained(), at_most(None if self.max_time is None else 0.5 * self.max_time):
            paths = BatchedPaths(problems, budget.make, tol=0.5 * self.tol, max_epochs=self.max_iter)
            return paths.solve_each([budget.radius] * len(targets))

    def _check_offset(self, offset: np.ndarray | None, targets: list[np.ndarray]) -> None:
        """Raise where a sample has several scores, to which one offset cannot belong."""
        if offset is not None and (len(targets) > 1 or targets[0].ndim > 1 or self._is_joint):
            raise ValueError("an offset is one number per sample, so it needs one output or two classes; got more.")

    def _time_left(self, began: float) -> float:
        """Return the remaining seconds of max_time."""
        return math.inf if self.max_time is None else max(0.0, self.max_time - (time.perf_counter() - began))

    def _fit_batch(self, data: Observations, targets: list[np.ndarray]) -> None:
        """Run one epoch over a batch per vector of targets, from the last solutions, and set the fitted attributes."""
        self._check_offset(data.offset, targets)
        self.has_offset_ = self.has_offset_ or data.offset is not None
        budget = self._batch_budget(data)
        seed, results, memories, loss = as_seed(self.random_state), [], [], self._loss()
        known = self._before_batch(len(targets))
        for y, (w, b, before, memory) in zip(targets, known, strict=True):
            problem = Problem(data.X, y, loss, budget.unit_set(), sample_weight=data.weight, offset=data.offset)
            start = None if w is None else feasible_start(problem.constraint, w)
            first = problem.start()[0] if start is None else start
            batch = Batch(problem, memory, first, b if self.fit_intercept else None)
            result, memory = one_epoch(batch, self.solver, start, before, seed)
            go_on_unless_interrupted(result.status)
            results.append(result._replace(state=None))
            memories.append(memory)
        self._fitted_to = [repr(problem.constraint)] * len(results), data.X.shape[0]
        self._set_fitted(results, [budget.radius] * len(results))
        self._memories = memories

    def _batch_budget(self, data: Observations) -> Budget:
        """Return the set of batches, or raise where their epochs cannot have it."""
        if self._is_joint:
            raise ValueError("partial_fit fits one output at a time; use multi_output='separate'.")
        if self.fit_intercept and isinstance(data.X, OutsideRows):
            raise ValueError(
                "partial_fit with an intercept takes batches in memory; fit reads rows from where they are."
            )
        if self.standardize:
            raise ValueError("standardize=True needs all data, and partial_fit sees a batch; give feature_weight.")
        budget = self._budget(data)
        if budget.make is not None and budget.radius is None:
            raise ValueError("partial_fit needs a radius: the choice behind radius=None needs all data.")
        if isinstance(budget.make, AllowedSets) and budget.make.allowance.unlimited.size:
            raise ValueError("partial_fit takes no free features without limits; give them lower and upper.")
        return budget

    def _before_batch(self, n_problems: int) -> list[tuple[np.ndarray | None, float, Result | None, Memory | None]]:
        """Return coefficients, intercept, result and memory of each problem after the last batch, or after ``fit``."""
        if not hasattr(self, "coef_"):
            return [(None, 0.0, None, None)] * n_problems
        results = self.result_ if isinstance(self.result_, list) else [self.result_]
        if len(results) != n_problems:
            raise ValueError(f"earlier batches had {len(results)} outputs; this one has {n_problems}.")
        memories = self._memories or [memory_of_fit(result, self._fitted_to[1]) for result in results]
        return list(zip(self._coefficients(), np.atleast_1d(self.intercept_).tolist(), results, memories, strict=True))

    def _warn(self, fits: list[Fit], is_given: bool) -> None:
        """Warn of a tolerance that was missed, and of a given radius that does nothing."""
        level = level_of_user()
        short = [fit for fit in fits if fit.falls_short]
        if short:
            worst = max(short, key=lambda fit: fit.excess)
            can_continue = worst.penalised_gap is None and "warm_start" in self.get_params()
            settings: dict[str, bool] = {"has_features": True, "can_continue": can_continue}
            advice = remedy(worst.result.status, self.max_iter, self.max_time, **settings)
            of_all = f" (for {len(short)} of {len(fits)} problems; this is the worst)" if len(fits) > 1 else ""
            warnings.warn(
                f"the {worst.name_of_gap} {worst.gap:.3g} is above tol times the loss of a constant model, "
                f"{worst.tol:.3g}{of_all}: {advice}",
                ConvergenceWarning,
                stacklevel=level,
            )
        said = next(filter(None, (fit.complaint() for fit in fits)), None) if is_given else None
        if said is not None:
            warnings.warn(said, RadiusWarning, stacklevel=level)

    def _starts(self, n_problems: int, shape: tuple[int, int]) -> np.ndarray | None:
        """Return the coefficients to start from, one vector per problem, or None; ``shape`` is that of coef_."""
        if not (self.warm_start and hasattr(self, "coef_")):
            return None
        coef = self._coefficients()
        return coef.reshape(n_problems, -1) if coef.shape == shape else None
