"""Plots of runs, paths and cross-validation; matplotlib is imported with the first plot."""

from condgrad.paths.plotting.cv_display import CVDisplay, plot_path_scores
from condgrad.paths.plotting.path_display import PathDisplay, plot_coefficient_path
from condgrad.paths.plotting.runs import plot_comparison, plot_convergence

__all__ = [
    "CVDisplay",
    "PathDisplay",
    "plot_coefficient_path",
    "plot_comparison",
    "plot_convergence",
    "plot_path_scores",
]
