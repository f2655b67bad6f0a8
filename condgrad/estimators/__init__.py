"""scikit-learn estimators: any loss over any set, by any solver, with the certificate as an attribute."""

from condgrad.estimators.classifier import ConstrainedClassifier
from condgrad.estimators.classifier_cv import ConstrainedClassifierCV
from condgrad.estimators.cox_regression import ConstrainedCoxRegression
from condgrad.estimators.cox_regression_cv import ConstrainedCoxRegressionCV
from condgrad.estimators.elastic_net import ConstrainedElasticNet
from condgrad.estimators.elastic_net_cv import ConstrainedElasticNetCV
from condgrad.estimators.group_lasso import ConstrainedGroupLasso, ConstrainedGroupLassoCV
from condgrad.estimators.group_logistic_regression import (
    ConstrainedGroupLogisticRegression,
    ConstrainedGroupLogisticRegressionCV,
)
from condgrad.estimators.lasso import ConstrainedLasso
from condgrad.estimators.lasso_cv import ConstrainedLassoCV
from condgrad.estimators.logistic_regression import ConstrainedLogisticRegression
from condgrad.estimators.logistic_regression_cv import ConstrainedLogisticRegressionCV
from condgrad.estimators.matrix_completion import MatrixCompletion
from condgrad.estimators.matrix_completion_cv import MatrixCompletionCV
from condgrad.estimators.multi_task_lasso import ConstrainedMultiTaskLasso, ConstrainedMultiTaskLassoCV
from condgrad.estimators.plain_models import to_sklearn
from condgrad.estimators.quantile_regressor import ConstrainedQuantileRegressor
from condgrad.estimators.radius import RadiusWarning, radius_max
from condgrad.estimators.regressor import ConstrainedRegressor
from condgrad.estimators.regressor_cv import ConstrainedRegressorCV
from condgrad.estimators.relaxation import relaxed
from condgrad.estimators.square_root_lasso import SquareRootLasso
from condgrad.estimators.stability_selection import StabilitySelection
from condgrad.paths.scales import ScaleWarning

__all__ = [
    "ConstrainedClassifier",
    "ConstrainedClassifierCV",
    "ConstrainedCoxRegression",
    "ConstrainedCoxRegressionCV",
    "ConstrainedElasticNet",
    "ConstrainedElasticNetCV",
    "ConstrainedGroupLasso",
    "ConstrainedGroupLassoCV",
    "ConstrainedGroupLogisticRegression",
    "ConstrainedGroupLogisticRegressionCV",
    "ConstrainedLasso",
    "ConstrainedLassoCV",
    "ConstrainedLogisticRegression",
    "ConstrainedLogisticRegressionCV",
    "ConstrainedMultiTaskLasso",
    "ConstrainedMultiTaskLassoCV",
    "ConstrainedQuantileRegressor",
    "ConstrainedRegressor",
    "ConstrainedRegressorCV",
    "MatrixCompletion",
    "MatrixCompletionCV",
    "RadiusWarning",
    "ScaleWarning",
    "StabilitySelection",
    "SquareRootLasso",
    "radius_max",
    "relaxed",
    "to_sklearn",
]
