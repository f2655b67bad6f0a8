"""scikit-learn estimators: any loss over any set, by any solver, with the certificate as an attribute."""

from condgrad.estimators.classifier import ConstrainedClassifier
from condgrad.estimators.classifier_cv import ConstrainedClassifierCV
from condgrad.estimators.elastic_net import ConstrainedElasticNet
from condgrad.estimators.elastic_net_cv import ConstrainedElasticNetCV
from condgrad.estimators.lasso import ConstrainedLasso
from condgrad.estimators.lasso_cv import ConstrainedLassoCV
from condgrad.estimators.logistic_regression import ConstrainedLogisticRegression
from condgrad.estimators.logistic_regression_cv import ConstrainedLogisticRegressionCV
from condgrad.estimators.matrix_completion import MatrixCompletion, MatrixCompletionCV
from condgrad.estimators.radius import RadiusWarning, radius_max
from condgrad.estimators.regressor import ConstrainedRegressor
from condgrad.estimators.regressor_cv import ConstrainedRegressorCV

__all__ = [
    "ConstrainedClassifier",
    "ConstrainedClassifierCV",
    "ConstrainedElasticNet",
    "ConstrainedElasticNetCV",
    "ConstrainedLasso",
    "ConstrainedLassoCV",
    "ConstrainedLogisticRegression",
    "ConstrainedLogisticRegressionCV",
    "ConstrainedRegressor",
    "ConstrainedRegressorCV",
    "MatrixCompletion",
    "MatrixCompletionCV",
    "RadiusWarning",
    "radius_max",
]
