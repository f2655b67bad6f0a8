"""The picture of a cross-validation: mean, standard error, the best radius, the one-standard-error rule, sparsity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import ArrayLike

from condgrad.paths.plotting._axes import COLOURS, count_on_top, new_axes, place_legend, points_of, tidy
from condgrad.paths.validation import standard_errors

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.lines import Line2D


class CrossValidated(Protocol):
    """A fitted estimator that has tried several radii in folds, such as ConstrainedLassoCV."""

    radii_: np.ndarray
    radius_: float


class CVDisplay:
    """An error along the radii of a cross-validation, with the radii that the two rules of selection choose.

    Make it by :meth:`from_estimator`, which draws at once.

    Parameters
    ----------
    radii, mean : array of shape (n_radii,)
        ``mean`` is an error (smaller is better), or a score with ``is_score=True``.
    standard_error : array of shape (n_radii,), optional
        Of the mean over the folds.
    n_nonzero : array of shape (n_radii,), optional
        Number of nonzero coefficients, written on top.
    chosen : float, optional
        The radius of the model.
    is_score : bool
        Whether larger is better.
    label : str
        What ``mean`` is, for the vertical axis.

    Attributes
    ----------
    best_radius, one_standard_error_radius : float
        The radius with the best mean, and the smallest one whose mean is within one standard error of it.
    ax_, figure_ : matplotlib axes and figure
    line_ : matplotlib line of the mean
    band_ : matplotlib collection or None
        One standard error on both sides.
    best_, one_standard_error_ : matplotlib lines
        The two marked points; the second is None without standard errors.
    limit_ : matplotlib line or None
        One standard error from the best mean.
    chosen_ : matplotlib line or None

    Examples
    --------
    >>> import condgrad as cg
    >>> from condgrad import datasets
    >>> from condgrad.plotting import CVDisplay
    >>> data = datasets.simulate_regression(80, 20, n_informative=4, noise=1.0, random_state=0)
    >>> display = CVDisplay.from_estimator(cg.ConstrainedLassoCV(n_radii=10, cv=4).fit(data.X, data.y))
    >>> display.one_standard_error_radius <= display.best_radius
    True
    """

    ax_: Axes
    figure_: Figure | SubFigure
    line_: Line2D
    band_: PolyCollection | None
    best_: Line2D
    one_standard_error_: Line2D | None
    limit_: Line2D | None
    chosen_: Line2D | None

    def __init__(
        self,
        radii: ArrayLike,
        mean: ArrayLike,
        standard_error: ArrayLike | None = None,
        *,
        n_nonzero: ArrayLike | None = None,
        chosen: float | None = None,
        is_score: bool = False,
        label: str = "error",
    ) -> None:
        radii = points_of(radii)
        order = np.argsort(radii, kind="stable")
        self.radii, self.chosen, self.is_score, self.label = radii[order], chosen, is_score, label
        self.mean = _column("mean", mean, radii.size)[order]
        self.standard_error = None
        self.n_nonzero = None
        if standard_error is not None:
            self.standard_error = _column("standard_error", standard_error, radii.size)[order]
        if n_nonzero is not None:
            self.n_nonzero = _column("n_nonzero", n_nonzero, radii.size)[order]
        sign = 1.0 if is_score else -1.0
        self._best = int((sign * self.mean).argmax())
        spread = 0.0 if self.standard_error is None else float(self.standard_error[self._best])
        self._limit = float(self.mean[self._best] - sign * spread)
        self._sparse = int(np.flatnonzero(sign * self.mean >= sign * self._limit)[0])
        self.best_radius = float(self.radii[self._best])
        self.one_standard_error_radius = float(self.radii[self._sparse])

    @classmethod
    def from_estimator(cls, estimator: CrossValidated, *, ax: Axes | None = None) -> CVDisplay:
        """Draw the cross-validation of a fitted estimator: any of condgrad whose name ends in CV.

        Scores whose sign was turned so that larger is better (``neg_...`` of scikit-learn, the default scores of
        condgrad) are drawn as the errors that they are.
        """
        scores, label, is_score = _scores_of(estimator)
        path = getattr(estimator, "coef_path_", None)
        n_nonzero = None
        if path is not None and path.shape[1] == len(scores):
            n_nonzero = np.asarray((path != 0).sum(axis=0)).ravel()
        display = cls(
            estimator.radii_, scores.mean(axis=1), standard_errors(scores), n_nonzero=n_nonzero,
            chosen=float(estimator.radius_), is_score=is_score, label=f"{label}, mean of {scores.shape[1]} folds",
        )  # fmt: skip
        return display.plot(ax)

    def plot(self, ax: Axes | None = None) -> CVDisplay:
        """Draw into the given axes, or into a new figure, and return the display itself."""
        ax = new_axes() if ax is None else ax
        self.ax_, self.figure_ = ax, ax.figure
        self.band_ = self.limit_ = self.one_standard_error_ = self.chosen_ = None
        across, up = self.radii, self.mean
        if self.standard_error is not None:
            self.band_ = ax.fill_between(
                across, up - self.standard_error, up + self.standard_error, color=COLOURS[0], alpha=0.15, linewidth=0.0
            )  # fmt: skip
        name = "mean" if self.standard_error is None else "mean ± standard error"
        (self.line_,) = ax.plot(across, up, color=COLOURS[0], linewidth=2.0, marker="o", markersize=3, label=name)
        word = "largest" if self.is_score else "smallest"
        self.best_ = self._mark(ax, self._best, "o", COLOURS[1], f"{word}: {self.best_radius:.4g}")
        if self.standard_error is not None:
            self.limit_ = ax.axhline(self._limit, color="0.5", linewidth=0.8, linestyle=":")
            label = f"one-standard-error rule: {self.one_standard_error_radius:.4g}"
            self.one_standard_error_ = self._mark(ax, self._sparse, "D", COLOURS[2], label)
        if self.chosen is not None:
            label = f"chosen: {self.chosen:.4g}"
            self.chosen_ = ax.axvline(self.chosen, color="0.4", linewidth=1.0, linestyle="--", label=label)
        ax.set_xscale("log" if across[0] > 0.0 else "linear")
        ax.set_xlabel("radius")
        ax.set_ylabel(self.label)
        tidy(ax)
        if self.n_nonzero is not None:
            count_on_top(ax, across, self.n_nonzero, "nonzero coefficients")
        place_legend(ax)
        return self

    def _mark(self, ax: Axes, k: int, marker: str, colour: str, label: str) -> Line2D:
        (line,) = ax.plot(
            self.radii[k], self.mean[k], marker, color=colour, markersize=8, markerfacecolor="none",
            markeredgewidth=2.0, label=label,
        )  # fmt: skip
        return line


def _column(name: str, values: ArrayLike, size: int) -> np.ndarray:
    column = np.asarray(values, dtype=np.float64)
    if column.shape != (size,):
        raise ValueError(f"{name} must have one entry per point, {size} in all; got shape {column.shape}.")
    return column


def _scores_of(estimator: CrossValidated) -> tuple[np.ndarray, str, bool]:
    """Return the scores of the folds, one row per radius, what they are, and whether larger is better."""
    scoring = getattr(estimator, "scoring", None)
    if scoring is None and hasattr(estimator, "mse_path_"):
        return np.asarray(estimator.mse_path_), "mean squared error", False
    for name in ("score_path_", "scores_"):
        if hasattr(estimator, name):
            scores = np.asarray(getattr(estimator, name))
            if scoring is None and (scores <= 0.0).all():
                return -scores, "loss of samples left out", False
            if isinstance(scoring, str) and scoring.startswith("neg_"):
                return -scores, scoring.removeprefix("neg_").replace("_", " "), False
            return scores, scoring.replace("_", " ") if isinstance(scoring, str) else "score", True
    raise ValueError(
        f"{type(estimator).__name__} holds no scores of a cross-validation; fit an estimator whose name ends in CV."
    )


def plot_path_scores(
    radii: ArrayLike,
    error: ArrayLike,
    spread: ArrayLike | None = None,
    *,
    n_nonzero: ArrayLike | None = None,
    best: int | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot an error along a path, and the sparsity of its points, and return the matplotlib axes.

    Parameters
    ----------
    radii, error : array of shape (n_points,)
        For instance the mean loss on held-out samples.
    spread : array of shape (n_points,), optional
        The standard error of ``error``: half the height of the band around it.
    n_nonzero : array of shape (n_points,), optional
        Written on top.
    best : int, optional
        The place of the chosen point.
    ax : matplotlib axes, optional

    See Also
    --------
    CVDisplay : the same picture as an object, made from a fitted estimator.

    Examples
    --------
    >>> ax = plot_path_scores([1.0, 2.0, 4.0], [0.5, 0.3, 0.4], [0.1, 0.1, 0.1], n_nonzero=[1, 5, 20], best=1)
    >>> ax.get_xscale(), ax.get_legend_handles_labels()[1][-1]
    ('log', 'chosen: 2')
    """
    chosen = None if best is None else float(points_of(radii)[best])
    return CVDisplay(radii, error, spread, n_nonzero=n_nonzero, chosen=chosen).plot(ax).ax_
