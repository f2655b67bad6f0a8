"""Plots of runs: how they converge, and what they need to reach given gaps."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from condgrad.paths.plotting._axes import COLOURS, STYLES, new_axes, place_legend, tidy
from condgrad.run.result import Result
from condgrad.run.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Runs: TypeAlias = Result | Trace | Sequence[Result | Trace] | Mapping[str, Result | Trace]

_X_LABELS = {
    "seconds": "solver time (s)",
    "epoch": "epochs (passes over the samples)",
    "gradient_evaluations": "gradients of single samples",
}
_Y_LABELS = {
    "gap": "Frank-Wolfe gap",
    "suboptimality": "F(w) − best lower bound of F*",  # noqa: RUF001
    "objective": "F(w)",
}


def plot_convergence(
    runs: Runs,
    x: str = "seconds",
    y: str = "gap",
    ax: Axes | None = None,
    *,
    log_x: bool = True,
    slopes: Iterable[float] = (),
) -> Axes:
    """Plot the convergence of runs, one line each, and return the matplotlib axes.

    The strong line is the best value so far, which a run returns if it stops there; the faint line is the value of each
    record.

    Parameters
    ----------
    runs : Result, Trace, or several of them
        A list labels each line by its solver; a dictionary ``{label: run}`` chooses the labels.
    x : {"seconds", "epoch", "gradient_evaluations"}
        ``"seconds"`` is the solver's own time, without the evaluation of the records.
    y : {"gap", "suboptimality", "objective"}
        The exact Frank-Wolfe gap; the objective minus the best lower bound of F* of any of the runs, for a convex loss
        a certified bound of F(w) - F*; or the objective itself. Compare runs on one problem only.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.
    log_x : bool
        Whether the horizontal axis is logarithmic. Sublinear rates are then straight lines; linear rates are straight
        lines with ``log_x=False``.
    slopes : numbers
        Rates to compare with: for each number p a thin line proportional to x^-p, starting at the first point of the
        first run. They need ``log_x=True``.

    Examples
    --------
    >>> import condgrad as cg
    >>> problem = cg.Problem([[1.0, 0.0], [0.0, 1.0]], [1.0, 2.0], cg.losses.Squared(), cg.constraints.L1Ball(1.0))
    >>> ax = plot_convergence([cg.minimize(problem, name) for name in ("fw", "pairwise")], x="epoch")
    >>> ax.get_legend_handles_labels()[1]
    ['FrankWolfe', 'Pairwise']
    """
    _check_choice("x", x, _X_LABELS)
    _check_choice("y", y, _Y_LABELS)
    slopes = _rates(slopes, log_x)
    named = _named(runs)
    bound = _lower_bound(named.values()) if y == "suboptimality" else 0.0
    ax = new_axes() if ax is None else ax
    for k, (label, run) in enumerate(named.items()):
        trace = _trace_of(run)
        across, up = trace[x], trace["gap"] if y == "gap" else trace["objective"] - bound
        if y == "objective" and up.min() <= 0.0:
            raise ValueError("y='objective' needs positive objectives for its logarithmic axis; use y='gap'.")
        shown = (up > 0.0) & ((across > 0.0) | (not log_x))  # a logarithmic axis cannot show the others
        across, up = across[shown], up[shown]
        colour = COLOURS[k % len(COLOURS)]
        ax.plot(across, up, color=colour, linewidth=0.8, alpha=0.3)
        if k == 0 and across.size > 1:
            _draw_slopes(ax, across, up[0], slopes)
        is_short = across.size < 3  # too few points for a line
        ax.plot(
            across, np.minimum.accumulate(up), label=label, color=colour, linewidth=2.2, solid_capstyle="round",
            linestyle=STYLES[k // len(COLOURS) % len(STYLES)], marker="o" if is_short else None,
        )  # fmt: skip
    ax.set_xlabel(_X_LABELS[x])
    ax.set_ylabel(_Y_LABELS[y])
    ax.set_xscale("log" if log_x else "linear")
    ax.set_yscale("log")
    tidy(ax)
    place_legend(ax)
    return ax


def plot_comparison(
    runs: Runs, goals: Iterable[float] = (1e-2, 1e-4, 1e-6), x: str = "seconds", ax: Axes | None = None
) -> Axes:
    """Plot the time or work that runs needed to reach given gaps, a bar each, and return the matplotlib axes.

    A cross instead of a bar means that the run did not reach the gap.

    Parameters
    ----------
    runs : Result, Trace, or several of them
        As in :func:`plot_convergence`.
    goals : numbers
        Frank-Wolfe gaps, each a group of bars.
    x : {"seconds", "epoch", "gradient_evaluations"}
        The length of the bars.
    ax : matplotlib axes, optional

    Examples
    --------
    >>> import condgrad as cg
    >>> problem = cg.Problem([[1.0, 0.0], [0.0, 1.0]], [1.0, 2.0], cg.losses.Squared(), cg.constraints.L1Ball(1.0))
    >>> ax = plot_comparison([cg.minimize(problem, name) for name in ("fw", "pairwise")], goals=[1e-1, 1e-3], x="epoch")
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['gap 0.1', 'gap 0.001']
    """
    _check_choice("x", x, _X_LABELS)
    named, goals = _named(runs), [float(goal) for goal in goals]
    if not goals or not min(goals) > 0.0:
        raise ValueError(f"goals must be positive gaps; got {goals!r}.")
    ax = new_axes() if ax is None else ax
    height = 0.8 / len(named)
    for k, (label, run) in enumerate(named.items()):
        trace = _trace_of(run)
        for m, goal in enumerate(goals):
            reached = np.flatnonzero(trace["gap"] <= goal)
            place = m - 0.4 + (k + 0.5) * height
            colour, name = COLOURS[k % len(COLOURS)], label if m == 0 else None
            if reached.size:
                ax.barh(place, trace[x][reached[0]], 0.9 * height, color=colour, label=name)
            else:
                ax.barh(place, 0.0, 0.9 * height, color=colour, label=name)
                ax.plot(0.0, place, "x", color=colour, clip_on=False)
    ax.set_yticks(range(len(goals)), [f"gap {goal:g}" for goal in goals])
    ax.invert_yaxis()
    ax.set_xlabel(_X_LABELS[x])
    tidy(ax)
    place_legend(ax)
    return ax


def _rates(slopes: Iterable[float], log_x: bool) -> list[float]:
    rates = [float(p) for p in slopes]
    if rates and not log_x:
        raise ValueError("slopes are straight lines on logarithmic axes only; use log_x=True.")
    return rates


def _draw_slopes(ax: Axes, across: np.ndarray, first: float, rates: list[float]) -> None:
    ends = np.array([across[0], across[-1]])
    for p in rates:
        ax.plot(ends, first * (ends / ends[0]) ** -p, color="0.5", linewidth=0.8, linestyle=":", label=_rate_name(p))


def _rate_name(p: float) -> str:
    return "1/t" if p == 1.0 else f"1/t^{p:g}"


def _named(runs: Runs) -> dict[str, Result | Trace]:
    """Return the runs by label: the given one, or the name of the solver, with its settings where names repeat."""
    if isinstance(runs, Mapping):
        named = {str(label): run for label, run in runs.items()}
    else:
        listed = [runs] if isinstance(runs, Result | Trace) else _listed(runs)
        full = [_full_label(run, k) for k, run in enumerate(listed)]
        short = [label.split("(")[0].strip() for label in full]
        seen = collections.Counter(short)
        labels = [brief if seen[brief] == 1 else long for brief, long in zip(short, full, strict=True)]
        seen = collections.Counter(labels)
        labels = [label if seen[label] == 1 else f"{label}, run {k + 1}" for k, label in enumerate(labels)]
        named = dict(zip(labels, listed, strict=True))
    if not named:
        raise ValueError("there is nothing to plot: give a Result or a Trace, or several of them.")
    for run in named.values():
        if len(_trace_of(run)) == 0:
            raise ValueError("a trace without records cannot be plotted.")
    return named


def _listed(runs: Runs) -> list[Result | Trace]:
    if not isinstance(runs, Iterable):
        raise TypeError(f"runs must be a Result or a Trace, or several of them; got {runs!r}.")
    return list(runs)


def _full_label(run: Result | Trace, k: int) -> str:
    return run.solver if isinstance(run, Result) else f"run {k + 1}"


def _trace_of(run: Result | Trace) -> Trace:
    trace = run.trace if isinstance(run, Result) else run
    if not isinstance(trace, Trace):
        raise TypeError(f"runs must be a Result or a Trace, or several of them; got {run!r}.")
    return trace


def _lower_bound(runs: Iterable[Result | Trace]) -> float:
    """Return the largest F(w) - gap(w) of all records: a lower bound of F*."""
    bounds = []
    for run in runs:
        if isinstance(run, Result) and run.lower_bound == -np.inf:
            raise ValueError("y='suboptimality' needs a convex loss, which bounds F* from below; use y='gap'.")
        trace = _trace_of(run)
        bounds.append(float((trace["objective"] - trace["gap"]).max()))
    return max(bounds)


def _check_choice(name: str, value: str, choices: Iterable[str]) -> None:
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}.")
