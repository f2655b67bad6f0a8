"""HTML that a notebook shows of a fitted estimator: the gap in the diagram, and below it the convergence curve."""

from __future__ import annotations

import html
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator

_WIDTH, _HEIGHT, _MARGIN = 320, 120, 36


class Block(NamedTuple):
    """One box of scikit-learn's diagram, as ``_sk_visual_block_`` returns it: an estimator with its caption."""

    estimators: object
    names: str
    name_details: str
    name_caption: str | None
    kind: str = "single"
    doc_link_label: str | None = None
    dash_wrapped: bool = True


class ShownWithItsGap(BaseEstimator):
    """Mixin of estimators: diagrams show the gap, also inside a pipeline or a search, and a report stands below."""

    def _sk_visual_block_(self) -> Block:
        return Block(self, type(self).__name__, str(self), caption(self))

    def _repr_html_inner(self) -> str:
        return super()._repr_html_inner() + report(self)

    def _repr_mimebundle_(self, **kwargs: object) -> dict[str, str]:
        bundle = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += report(self)
        return bundle


def caption(estimator: Any) -> str | None:
    """Return the gap and the size of a fitted model in a few words, or None if it is not fitted."""
    if not hasattr(estimator, "gap_"):
        return None
    return f"gap {np.max(estimator.gap_):.2g}, {_size(estimator)}"


def report(estimator: Any) -> str:
    """Return the HTML report of a fitted estimator, or an empty string if it is not fitted."""
    if not hasattr(estimator, "result_"):
        return ""
    results = estimator.result_ if isinstance(estimator.result_, list) else [estimator.result_]
    worst = max(results, key=lambda result: result.gap)
    rows = {
        "Frank-Wolfe gap": f"{worst.gap:.3g}" + (f" (the largest of {len(results)})" if len(results) > 1 else ""),
        "model": _size(estimator),
        "radius": _radius(estimator),
        "solver": worst.solver,
        "status": str(worst.status),
    }
    cells = "".join(
        f"<tr><th style='text-align:left;padding-right:1em'>{name}</th>"
        f"<td style='text-align:left'>{html.escape(value)}</td></tr>"
        for name, value in rows.items()
        if value
    )
    curves = [(result.trace.epoch, result.trace.gap) for result in results]
    return f"<div class='condgrad-report'><table>{cells}</table>{convergence_svg(curves)}</div>"


def convergence_svg(curves: list[tuple[np.ndarray, np.ndarray]]) -> str:
    """Return an SVG plot of log10(gap) against epochs, one line per run."""
    curves = [(epoch[gap > 0.0], np.log10(gap[gap > 0.0])) for epoch, gap in curves]
    curves = [curve for curve in curves if curve[0].size]
    if not curves:
        return ""
    low = float(np.floor(min(logs.min() for _, logs in curves)))
    high = max(float(np.ceil(max(logs.max() for _, logs in curves))), low + 1.0)
    last = max(max(float(epoch[-1]) for epoch, _ in curves), 1e-12)
    lines = "".join(
        "<polyline fill='none' stroke='currentColor' stroke-opacity='0.8' points='"
        + " ".join(
            f"{_MARGIN + (_WIDTH - _MARGIN) * x / last:.1f},{(_HEIGHT - _MARGIN) * (high - v) / (high - low) + 8:.1f}"
            for x, v in zip(epoch, logs, strict=True)
        )
        + "'/>"
        for epoch, logs in curves
    )
    bottom = _HEIGHT - _MARGIN + 8
    frame = f"<path fill='none' stroke='currentColor' stroke-opacity='0.4' d='M{_MARGIN} 8V{bottom}H{_WIDTH}'/>"
    words = (
        f"<text x='{_MARGIN - 4}' y='14' text-anchor='end'>1e{high:.0f}</text>"
        f"<text x='{_MARGIN - 4}' y='{bottom}' text-anchor='end'>1e{low:.0f}</text>"
        f"<text x='{_WIDTH}' y='{bottom + 14}' text-anchor='end'>{last:.3g} epochs</text>"
        f"<text x='{_MARGIN}' y='{bottom + 14}'>gap</text>"
    )
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{_WIDTH + 8}' height='{_HEIGHT}' role='img' "
        f"aria-label='Frank-Wolfe gap against epochs' font-size='10' fill='currentColor'>{frame}{lines}{words}</svg>"
    )


def _size(estimator: Any) -> str:
    if hasattr(estimator, "rank_"):
        return f"rank {estimator.rank_}"
    coef = estimator.coef_
    n_nonzero = coef.nnz if scipy.sparse.issparse(coef) else int(np.count_nonzero(coef))
    return f"{n_nonzero} of {int(np.prod(coef.shape))} coefficients"


def _radius(estimator: Any) -> str:
    radius = getattr(estimator, "radius_", None)
    return "" if radius is None else ", ".join(f"{value:.4g}" for value in np.atleast_1d(radius))
