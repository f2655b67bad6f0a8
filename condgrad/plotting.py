"""Plots of runs; matplotlib is imported when one is drawn."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from condgrad.result import Result
from condgrad.trace import Trace

__all__ = ["plot_convergence"]

_X_LABELS = {
    "seconds": "solver time (s)",
    "epoch": "epochs (passes over the samples)",
    "gradient_evaluations": "gradients of single samples",
}
_Y_LABELS = {"gap": "Frank-Wolfe gap", "suboptimality": "F(w) − best lower bound of F*"}  # noqa: RUF001
_COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000"]  # told apart by everyone
_STYLES = ["-", "--", ":", "-."]


def plot_convergence(runs: Any, x: str = "seconds", y: str = "gap", ax: Any = None, *, log_x: bool = True) -> Any:
    """Draw how runs converged, one line each, and return the matplotlib axes.

    The strong line is the best value so far, which is what a run returns when it stops there; the faint one is that of
    each record.

    Parameters
    ----------
    runs : Result, Trace, or several of them
        A list labels each line by its solver; a dictionary ``{label: run}`` chooses the labels.
    x : {"seconds", "epoch", "gradient_evaluations"}
        ``"seconds"`` is the solver's own time, without the evaluation of the records.
    y : {"gap", "suboptimality"}
        The exact Frank-Wolfe gap, or the objective minus the best lower bound of F* that any of the runs has met: for
        a convex loss a certified bound of F(w) - F*. Compare runs on one problem only.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.
    log_x : bool
        Whether the horizontal axis is logarithmic, where sublinear rates are straight lines; linear rates are
        straight with ``log_x=False``.

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
    named = _named(runs)
    bound = _lower_bound(named.values()) if y == "suboptimality" else 0.0
    ax = _new_axes() if ax is None else ax
    for k, (label, run) in enumerate(named.items()):
        trace = _trace_of(run)
        across, up = trace[x], trace["gap"] if y == "gap" else trace["objective"] - bound
        shown = (up > 0.0) & ((across > 0.0) | (not log_x))  # the others have no place on a logarithmic axis
        across, up = across[shown], up[shown]
        colour = _COLOURS[k % len(_COLOURS)]
        ax.plot(across, up, color=colour, linewidth=0.8, alpha=0.3)
        is_short = across.size < 3  # a line with no length
        ax.plot(
            across, np.minimum.accumulate(up), label=label, color=colour, linewidth=2.2, solid_capstyle="round",
            linestyle=_STYLES[k // len(_COLOURS) % len(_STYLES)], marker="o" if is_short else None,
        )  # fmt: skip
    ax.set_xlabel(_X_LABELS[x])
    ax.set_ylabel(_Y_LABELS[y])
    ax.set_xscale("log" if log_x else "linear")
    ax.set_yscale("log")
    ax.grid(True, which="major", color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.legend(frameon=False)
    return ax


def _new_axes() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("plots need matplotlib: pip install condgrad[plot].") from None
    _, ax = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
    return ax


def _named(runs: Any) -> dict[str, Any]:
    """Return the runs by label: given, or the name of the solver, in full where two would be the same."""
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


def _listed(runs: Any) -> list[Any]:
    if not isinstance(runs, Iterable):
        raise TypeError(f"runs must be a Result or a Trace, or several of them; got {runs!r}.")
    return list(runs)


def _full_label(run: Any, k: int) -> str:
    return run.solver if isinstance(run, Result) else f"run {k + 1}"


def _trace_of(run: Any) -> Trace:
    trace = run.trace if isinstance(run, Result) else run
    if not isinstance(trace, Trace):
        raise TypeError(f"runs must be a Result or a Trace, or several of them; got {run!r}.")
    return trace


def _lower_bound(runs: Iterable[Any]) -> float:
    """Return the largest F(w) - gap(w) of all records: no point has a lower objective."""
    bounds = []
    for run in runs:
        if isinstance(run, Result) and run.lower_bound == -np.inf:
            raise ValueError("y='suboptimality' needs a convex loss, which bounds F* from below; use y='gap'.")
        trace = _trace_of(run)
        bounds.append(float((trace["objective"] - trace["gap"]).max()))
    return max(bounds)


def _check_choice(name: str, value: Any, choices: Iterable[str]) -> None:
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}.")
