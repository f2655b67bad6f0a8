"""The picture of a path: coefficients against the radius, the largest ones with their names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from condgrad.paths.plotting._axes import COLOURS, count_on_top, new_axes, points_of, tidy
from condgrad.paths.points import PathInfo

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.lines import Line2D
    from matplotlib.text import Annotation

_MOST_LABELS = len(COLOURS)
_LINE = 0.055  # height of a line of text, as a share of that of the axes


class HasPath(Protocol):
    """A fitted estimator with the coefficients of all radii, such as ConstrainedLassoCV."""

    radii_: np.ndarray
    coef_path_: np.ndarray
    radius_: float


class PathDisplay:
    """The coefficients along a path: one line each, those of the largest features in colour and named at their end.

    Make it by :meth:`from_path` or :meth:`from_estimator`; both draw at once.

    Parameters
    ----------
    radii : array of shape (n_points,)
        Or penalties, or another parameter of the path.
    coefs : array or sparse matrix of shape (n_features, n_points)
        Features that are zero everywhere have no line.
    names : list of str, optional
        Names of the features; by default their numbers.
    chosen : float, optional
        A radius to mark.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    lines_ : list of matplotlib lines
        One for each feature that is not zero everywhere, the largest at the end of the path first.
    labels_ : list of matplotlib texts
    chosen_ : matplotlib line or None

    Examples
    --------
    >>> import condgrad as cg
    >>> from condgrad import datasets
    >>> from condgrad.plotting import PathDisplay
    >>> data = datasets.simulate_regression(60, 30, n_informative=4, random_state=0)
    >>> display = PathDisplay.from_path(cg.lasso_path(data.X, data.y, n_radii=20), n_labels=4)
    >>> len(display.labels_)
    4
    """

    ax_: Axes
    figure_: Figure | SubFigure
    lines_: list[Line2D]
    labels_: list[Annotation]
    chosen_: Line2D | None

    def __init__(
        self,
        radii: ArrayLike,
        coefs: ArrayLike | scipy.sparse.spmatrix,
        *,
        names: Sequence[str] | np.ndarray | None = None,
        chosen: float | None = None,
    ) -> None:
        radii, rows = points_of(radii), scipy.sparse.csr_array(coefs)
        if rows.shape[1] != radii.size:
            raise ValueError(f"coefs must have a column per point, {radii.size} in all; got shape {rows.shape}.")
        if names is not None and len(names) != rows.shape[0]:
            raise ValueError(f"names must have one entry per feature, {rows.shape[0]} in all; got {len(names)}.")
        order = np.argsort(radii, kind="stable")
        self.radii, self.coefs = radii[order], rows[:, order]
        self.names, self.chosen = names, chosen

    @classmethod
    def from_path(
        cls,
        path: tuple[np.ndarray, scipy.sparse.spmatrix, PathInfo],
        *,
        names: Sequence[str] | np.ndarray | None = None,
        n_labels: int = _MOST_LABELS,
        ax: Axes | None = None,
    ) -> PathDisplay:
        """Draw what :func:`condgrad.lasso_path` or :func:`condgrad.radius_path` returned."""
        _, coefs, info = path
        return cls(info.radius, coefs, names=names).plot(ax, n_labels=n_labels)

    @classmethod
    def from_estimator(cls, estimator: HasPath, *, n_labels: int = _MOST_LABELS, ax: Axes | None = None) -> PathDisplay:
        """Draw the path of a fitted estimator that has one, with its feature names, and mark the chosen radius."""
        if not hasattr(estimator, "coef_path_"):
            raise ValueError(
                f"{type(estimator).__name__} has no fitted path (coef_path_); fit a ConstrainedLassoCV, or draw the "
                "result of lasso_path or radius_path by PathDisplay.from_path."
            )
        names = getattr(estimator, "feature_names_in_", None)
        display = cls(estimator.radii_, estimator.coef_path_, names=names, chosen=float(estimator.radius_))
        return display.plot(ax, n_labels=n_labels)

    def plot(self, ax: Axes | None = None, *, n_labels: int = _MOST_LABELS) -> PathDisplay:
        """Draw into the given axes, or into a new figure, and return the display itself.

        Parameters
        ----------
        ax : matplotlib axes, optional
        n_labels : int
            Number of features that are coloured and named; the lines of the others are thin and grey.
        """
        ax = new_axes() if ax is None else ax
        self.ax_, self.figure_, self.chosen_ = ax, ax.figure, None
        ends = np.abs(self.coefs[:, [-1]].toarray()[:, 0])
        drawn = np.flatnonzero(np.diff(self.coefs.indptr))
        drawn = drawn[np.argsort(-ends[drawn], kind="stable")]
        named = [int(j) for j in drawn[:n_labels] if ends[j] > 0.0]
        self.lines_ = [self._line(ax, int(j), named.index(j) if j in named else None) for j in drawn]
        ax.set_xlabel("radius" if self.chosen is None else f"radius (chosen: {self.chosen:.4g}, dashed)")
        ax.set_ylabel("coefficient")
        tidy(ax)
        if self.chosen is not None:
            self.chosen_ = ax.axvline(self.chosen, color="0.4", linewidth=1.0, linestyle="--")
        self.labels_ = self._names_at_the_ends(ax, named)
        counts = np.diff(scipy.sparse.csc_array(self.coefs).indptr)
        count_on_top(ax, self.radii, counts, "nonzero coefficients")
        return self

    def _line(self, ax: Axes, j: int, place: int | None) -> Line2D:
        values = self.coefs[[j], :].toarray()[0]
        if place is None:
            (line,) = ax.plot(self.radii, values, color="0.75", linewidth=0.7, zorder=1.5)
        else:
            colour = COLOURS[place % len(COLOURS)]
            (line,) = ax.plot(self.radii, values, color=colour, linewidth=1.6, label=self._name(j))
        return line

    def _name(self, j: int) -> str:
        return str(j if self.names is None else self.names[j])

    def _names_at_the_ends(self, ax: Axes, named: list[int]) -> list[Annotation]:
        """Write the names to the right of the axes, at the heights of the lines and far enough apart to be read."""
        ax.margins(x=0.0)
        ends = self.coefs[:, [-1]].toarray()[named, 0]
        low, high = ax.get_ylim()
        heights = spread((ends - low) / (high - low), _LINE)
        return [
            ax.annotate(
                self._name(j), (self.radii[-1], end), xytext=(1.03, height), textcoords="axes fraction",
                va="center", fontsize="small", color=COLOURS[place % len(COLOURS)],
                arrowprops={"arrowstyle": "-", "color": "0.7", "linewidth": 0.5, "shrinkA": 0, "shrinkB": 0},
            )
            for place, (j, end, height) in enumerate(zip(named, ends, heights, strict=True))
        ]  # fmt: skip


def spread(heights: np.ndarray, distance: float) -> np.ndarray:
    """Return numbers in the same order at least ``distance`` apart, as near to the given ones as least squares allow.

    >>> spread(np.array([0.5, 0.5, 0.9]), 0.1)
    array([0.45, 0.55, 0.9 ])
    """
    order = np.argsort(heights, kind="stable")[::-1]
    steps = distance * np.arange(heights.size)
    # Without the steps the numbers must fall or stay: an isotonic regression, by pooling neighbours.
    pools: list[list[float]] = []
    for value in heights[order] + steps:
        pools.append([float(value)])
        while len(pools) > 1 and np.mean(pools[-1]) > np.mean(pools[-2]):
            last = pools.pop()
            pools[-1] += last
    result = np.empty(heights.size)
    result[order] = np.concatenate([np.full(len(pool), np.mean(pool)) for pool in pools] or [steps]) - steps
    return result


def plot_coefficient_path(
    radii: ArrayLike,
    coefs: ArrayLike | scipy.sparse.spmatrix,
    names: Sequence[str] | np.ndarray | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot the coefficients against the radius, a line each, and return the matplotlib axes.

    Parameters
    ----------
    radii : array of shape (n_points,)
        Or penalties, or another parameter of the path.
    coefs : array or sparse matrix of shape (n_features, n_points)
        As :func:`condgrad.lasso_path` returns them. Features that are zero everywhere have no line.
    names : list of str, optional
        Names of the features, shown for the ten with the largest coefficients at the end; by default their numbers.
    ax : matplotlib axes, optional

    See Also
    --------
    PathDisplay : the same picture as an object, also of a fitted estimator.

    Examples
    --------
    >>> ax = plot_coefficient_path([0.5, 1.0, 2.0], [[0.5, 1.0, 1.6], [0.0, 0.0, 0.4], [0.0, 0.0, 0.0]])
    >>> len(ax.get_lines())
    2
    """
    return PathDisplay(radii, coefs, names=names).plot(ax).ax_
