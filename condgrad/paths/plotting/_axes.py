"""Axes as all plots have them: colours, a light grid, legends that cover nothing, a count on top."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.transforms import Bbox

# Colours that colour-blind readers tell apart, those that differ most first.
COLOURS = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#882255", "#999933", "#332288",
]  # fmt: skip
STYLES = ["-", "--", ":", "-."]
_CORNERS = (1, 2, 3, 4, 7, 6)  # matplotlib's numbers: the four corners from the upper right on, then right and left
_MOST_TICKS = 7  # numbers on the upper axis


def new_axes() -> Axes:
    """Return the axes of a new figure."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("plots need matplotlib: pip install condgrad[plot].") from None
    _, ax = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
    return ax


def tidy(ax: Axes) -> None:
    """Give axes a light grid and no box."""
    ax.grid(True, which="major", color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def place_legend(ax: Axes) -> None:
    """Put the legend into the first corner where it covers nothing, or else below the axes."""
    if not ax.get_legend_handles_labels()[1]:
        return
    for corner in _CORNERS:
        legend = ax.legend(loc=corner, frameon=False, fontsize="small")
        ax.figure.canvas.figure.draw_without_rendering()
        if not _covers(ax, legend.get_window_extent().padded(4.0)):
            return
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, _below(ax)), ncols=2, frameon=False, fontsize="small")


def count_on_top(ax: Axes, across: np.ndarray, counts: ArrayLike, label: str) -> Axes:
    """Write numbers above some of the points, such as the number of nonzero coefficients, and return that axis."""
    counts = np.asarray(counts)
    shown = _spread_places(ax, across)
    top = ax.twiny()
    top.set_xscale(ax.get_xscale())
    top.set_xlim(ax.get_xlim())
    top.set_xticks(across[shown], [f"{counts[k]:.0f}" for k in shown], fontsize="small")
    top.set_xticks([], minor=True)
    top.set_xlabel(label, fontsize="small")
    top.tick_params(length=2, color="0.6")
    for side in ("top", "right"):
        top.spines[side].set_visible(False)
    return top


def points_of(radii: ArrayLike) -> np.ndarray:
    """Return the places along a path as an array, checked."""
    radii = np.asarray(radii, dtype=np.float64)
    if radii.ndim != 1 or radii.size == 0:
        raise ValueError(f"radii must be a list of at least one number; got shape {radii.shape}.")
    return radii


def _spread_places(ax: Axes, across: np.ndarray) -> list[int]:
    """Return the places of at most `_MOST_TICKS` points that are about evenly far apart on the axis."""
    on_axis = ax.transData.transform(np.column_stack([across, np.full_like(across, ax.get_ylim()[1])]))[:, 0]
    goals = np.linspace(on_axis[0], on_axis[-1], min(_MOST_TICKS, across.size))
    nearest = {int(np.abs(on_axis - goal).argmin()) for goal in goals}
    return sorted(nearest)


def _below(ax: Axes) -> float:
    """Return the height of the lower end of the labels, as a share of that of the axes."""
    box, whole = ax.get_window_extent(), ax.xaxis.get_tightbbox()
    return 0.0 if whole is None else (whole.y0 - box.y0) / box.height - 0.02


def _covers(ax: Axes, box: Bbox) -> bool:
    """Tell whether a box on the canvas meets a line, a band or a bar."""
    for line in ax.get_lines():
        path = line.get_transform().transform_path(line.get_path())
        if len(path) and path.intersects_bbox(box, filled=False):
            return True
    areas = [(patch.get_transform(), patch.get_path()) for patch in ax.patches]
    areas += [(band.get_transform(), path) for band in ax.collections for path in band.get_paths()]
    return any(transform.transform_path(path).intersects_bbox(box, filled=True) for transform, path in areas)
