"""Standardised fits: the budget counts coefficients of features that are divided by their standard deviations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from condgrad.constraints._allowance import PerFeature
from condgrad.estimators._observations import Observations
from condgrad.estimators._penalised import NAMES
from condgrad.linalg.coded_data import CodedData
from condgrad.linalg.coded_matrix import matrix_of
from condgrad.paths.scales import ADVICE, SCALE_FIRST, deviations, warn_of_scales
from condgrad.storage.outside_rows import OutsideRows


class Standardises:
    """What an estimator with the setting ``standardize`` needs of the data."""

    standardize: bool = False
    constraint: object
    feature_weight: PerFeature
    fit_intercept: bool

    @property
    def _is_joint(self) -> bool:
        """Whether several outputs, or classes, are one problem."""
        return False

    def _deviations(self, data: Observations) -> np.ndarray | None:
        """Return what standardisation multiplies the weights of features with, None where there is none."""
        if not self.standardize:
            return None
        if self._is_joint or not (isinstance(self.constraint, str) and self.constraint in NAMES):
            what = "a joint problem" if self._is_joint else f"constraint={self.constraint!r}"
            raise ValueError(
                f"standardize=True needs constraint='l1' or 'nonnegative-l1' and one problem per output or class, as "
                f"other sets have no weights; got {what}. Use StandardScaler in a pipeline."
            )
        return deviations_of(data, self.fit_intercept)

    def _warn_of_scales(self, data: Observations) -> None:
        """Warn of columns of very different scale, unless weights or standardisation tell what they mean."""
        if self.standardize or self.feature_weight is not None or not isinstance(self.constraint, str):
            return
        has_weights = self.constraint in NAMES and not self._is_joint and "standardize" in vars(self)
        warn_of_scales(data.X, ADVICE if has_weights else SCALE_FIRST)


class StandardisesData(Standardises):
    """The same for an elastic net, whose l2 term is to count the same coefficients: the data themselves are divided."""

    def _deviations(self, data: Observations) -> np.ndarray | None:
        return None

    def _scaled(self, data: Observations) -> Scaled:
        """Return the samples with features divided by their deviations: a copy, sparse where the data are."""
        given = {name for name in ("lower", "upper", "rows") if getattr(self, name) is not None}
        if given:
            raise ValueError(f"standardize=True goes without {min(given)}, which counts coefficients as they are.")
        if isinstance(data.X, CodedData):
            raise ValueError("standardize=True of the elastic net needs columns of numbers; make indicators of words.")
        scales = deviations_of(data, self.fit_intercept)
        if scipy.sparse.issparse(data.X):
            return Scaled(data._replace(X=(data.X @ scipy.sparse.diags(1.0 / scales)).asformat(data.X.format)), scales)
        return Scaled(data._replace(X=data.X / scales), scales)

    def _solve_all(
        self,
        data: Observations,
        targets: list[np.ndarray],
        starts: Sequence[np.ndarray] | np.ndarray | None = None,
        radius: float | None = None,
        began: float | None = None,
    ) -> None:
        if not self.standardize:
            super()._solve_all(data, targets, starts, radius, began)
            return
        used, scales = self._scaled(data)
        starts = None if starts is None else [scales * w for w in starts]
        super()._solve_all(used, targets, starts, radius, began)
        self.coef_: Any = self.coef_ / scales


class Scaled(NamedTuple):
    """Samples whose features are divided by ``scales``."""

    data: Observations
    scales: np.ndarray


def deviations_of(data: Observations, has_intercept: bool) -> np.ndarray:
    """Return the standard deviations of the features, of samples with their weights."""
    if isinstance(data.X, OutsideRows):
        raise ValueError(
            f"standardize=True needs X in memory; got {data.X!r}. Divide the columns before they are stored, or give "
            "their standard deviations as feature_weight."
        )
    n = data.X.shape[0]
    weight = np.full(n, 1.0 / n) if data.weight is None else data.weight / data.weight.sum()
    return deviations(matrix_of(data.X), weight, bool(has_intercept))
