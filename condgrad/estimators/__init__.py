"""scikit-learn estimators: any loss over any set, by any solver, with the certificate as an attribute."""

from condgrad.estimators.classifier import ConstrainedClassifier
from condgrad.estimators.elastic_net import ConstrainedElasticNet
from condgrad.estimators.lasso import ConstrainedLasso, ConstrainedLassoCV
from condgrad.estimators.logistic_regression import ConstrainedLogisticRegression, ConstrainedLogisticRegressionCV
from condgrad.estimators.matrix_completion import MatrixCompletion, MatrixCompletionCV
from condgrad.estimators.radius import RadiusWarning, radius_max
from condgrad.estimators.regressor import ConstrainedRegressor

__all__ = [
    "ConstrainedClassifier",
    "ConstrainedElasticNet",
    "ConstrainedLasso",
    "ConstrainedLassoCV",
    "ConstrainedLogisticRegression",
    "ConstrainedLogisticRegressionCV",
    "ConstrainedRegressor",
    "MatrixCompletion",
    "MatrixCompletionCV",
    "RadiusWarning",
    "radius_max",
]
