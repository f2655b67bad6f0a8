"""Watch: scikit-learn's callbacks (from its version 1.9 on) during a fit: a task for the fit, one for each record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from condgrad.estimators._observations import Observations
from condgrad.run.trace import Progress

try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupportMixin
    from sklearn.callback import with_callbacks as with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing: this scikit-learn has no callbacks."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method as it is."""
        return method


class Watch:
    """The callbacks of an estimator while it is fitted; without any, nothing is done."""

    def __init__(self, estimator: Any, data: Observations) -> None:
        self.estimator, self.data = estimator, data
        self.context = None
        if hasattr(estimator, "_skl_callbacks"):  # set_callbacks, or a search around the estimator, has set some
            self.context = estimator._init_callback_context(max_subtasks=None)
            self.context.call_on_fit_task_begin(**self._given())

    def of(self, evaluate: Callable[[np.ndarray], Any], *, is_single: bool) -> Callable[[Progress], bool] | None:
        """Return the callback of one run, None where there are no callbacks.

        ``evaluate`` is that of the problem. Callbacks see a fitted estimator at each record if the run is the only one.
        """
        if self.context is None:
            return None
        context = self.context

        def report(progress: Progress) -> bool:
            task = context.subcontext(task_name="record")
            task.call_on_fit_task_begin(**self._given())
            fitted = (lambda: self._fitted(progress.w, evaluate)) if is_single else None
            return bool(task.call_on_fit_task_end(**self._given(), reconstruction_attributes=fitted))

        return report

    def end(self) -> None:
        """Tell that the estimator is fitted."""
        if self.context is not None:
            self.context.call_on_fit_task_end(**self._given(), reconstruction_attributes={})

    def _given(self) -> dict[str, Any]:
        weight = self.data.weight
        metadata = None if weight is None else {"sample_weight": weight}
        return {"estimator": self.estimator, "X": self.data.X, "y": self.data.y, "metadata": metadata}

    def _fitted(self, w: Any, evaluate: Callable[[np.ndarray], Any]) -> dict[str, Any]:
        """Return the attributes that predictions of the present iterate need."""
        coef = np.array(w).reshape(-1, self.data.X.shape[1])
        intercept: Any = np.atleast_1d(evaluate(w).intercept)
        if not hasattr(self.estimator, "classes_") and self.data.y.ndim == 1:
            coef, intercept = coef[0], float(intercept[0])
        return {"coef_": coef, "intercept_": intercept}
