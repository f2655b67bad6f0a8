"""MatrixCompletionCV: matrix completion whose radius cross-validation picks."""

from __future__ import annotations

import os
import time
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from condgrad.estimators._fits import as_seed
from condgrad.estimators._radius_choice import RadiusChoice, held_out
from condgrad.estimators.matrix_completion import MatrixCompletion, as_entries
from condgrad.linalg.settings import RandomState
from condgrad.paths.grids import as_radii
from condgrad.paths.validation import check_selection, select
from condgrad.run.checkpoint import Checkpoint


class MatrixCompletionCV(MatrixCompletion):
    r"""Matrix completion with the radius chosen by cross-validation.

    Parameters
    ----------
    radii : array, optional
        The radii to choose from. By default they grow by a factor of sqrt(2) until the loss at the entries left out
        does not fall by 0.3% any more, as for ``MatrixCompletion(radius=None)``. The fits of the folds are rough, so
        that a radius costs one sweep over the factors of each fold; radii that are far apart are reached
        through others between them.
    cv : int
        The number of folds.
    selection : {"best", "one-standard-error"}
        Which radius: the one with the best mean, or the smallest one whose mean is within one standard error of it.
    loss, biases, bias_shrinkage, value_range, weighted, solver, tol, max_iter, max_time, warm_start,
    random_state, verbose
        As in :class:`MatrixCompletion`; ``random_state`` draws the folds.

    Attributes
    ----------
    radii_ : array of shape (n_radii,)
    scores_ : array of shape (n_radii, cv)
        Minus the mean loss of the rough fits at the entries left out.
    factors_, rank_, radius_, gap_, rounding_, shape_, intercept_, row_bias_, column_bias_, result_, trace_, n_iter_,
    ids_, seen_, model_
        As in :class:`MatrixCompletion`, for the chosen radius and all entries.

    Examples
    --------
    >>> import condgrad as cg
    >>> from condgrad import datasets
    >>> data = datasets.simulate_low_rank(60, 40, 2, 1200, noise=0.1, random_state=0)
    >>> model = cg.MatrixCompletionCV(cv=3, tol=1e-2, random_state=0).fit(data.rows, data.cols, data.values)
    >>> bool(model.radius_ in model.radii_), model.scores_.shape[1]
    (True, 3)
    """

    def __init__(
        self,
        radii: ArrayLike | None = None,
        loss: object = "huber",
        *,
        cv: int = 5,
        selection: str = "best",
        biases: bool = True,
        bias_shrinkage: float = 0.0,
        value_range: tuple[float, float] | str | None = None,
        weighted: bool = True,
        solver: object = "auto",
        tol: float = 1e-3,
        max_iter: int = 1000,
        max_time: float | None = None,
        warm_start: bool = False,
        random_state: RandomState = None,
        verbose: bool = False,
    ) -> None:
        self.radii = radii
        self.loss = loss
        self.cv = cv
        self.selection = selection
        self.biases = biases
        self.bias_shrinkage = bias_shrinkage
        self.value_range = value_range
        self.weighted = weighted
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        rows: object,
        columns: object = None,
        values: ArrayLike | None = None,
        *,
        shape: tuple[int, int] | None = None,
        sample_weight: ArrayLike | None = None,
        checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    ) -> Self:
        """Choose the radius over the folds, then fit all entries; the arguments are those of MatrixCompletion."""
        check_selection(self.selection)
        radii = None if self.radii is None else as_radii(self.radii)
        if not isinstance(self.cv, int | np.integer) or self.cv < 2:
            raise ValueError(f"cv must be a number of folds, at least 2; got {self.cv!r}.")
        began = time.perf_counter()
        problem, ids = self._problem(*as_entries(rows, columns, values, shape), sample_weight)
        splits = held_out(problem.n_samples, int(self.cv), as_seed(self.random_state))
        choice = RadiusChoice(problem, self._ball, splits, self._deadline(began, 0.5))
        if radii is None:
            choice.try_growing(self._natural_radius(problem))
        else:
            choice.try_all(radii.tolist())
        self.radii_, self.scores_ = np.array(choice.radii), np.array(choice.scores)
        radius = float(self.radii_[select(self.scores_, self.selection)])
        last = self._last_matrix(problem, ids)
        start = choice.best_matrix if last is None else last
        self._fit_to(problem, ids, radius, start, self._deadline(began), checkpoint)
        return self
