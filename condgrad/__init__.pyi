"""The names of the API, as type checkers see them; __init__.py imports each when it is first asked for."""

from condgrad import constraints as constraints
from condgrad import estimators as estimators
from condgrad import losses as losses
from condgrad import solvers as solvers
from condgrad import theory as theory
from condgrad.estimators import ConstrainedClassifier as ConstrainedClassifier
from condgrad.estimators import ConstrainedClassifierCV as ConstrainedClassifierCV
from condgrad.estimators import ConstrainedCoxRegression as ConstrainedCoxRegression
from condgrad.estimators import ConstrainedCoxRegressionCV as ConstrainedCoxRegressionCV
from condgrad.estimators import ConstrainedElasticNet as ConstrainedElasticNet
from condgrad.estimators import ConstrainedElasticNetCV as ConstrainedElasticNetCV
from condgrad.estimators import ConstrainedGroupLasso as ConstrainedGroupLasso
from condgrad.estimators import ConstrainedGroupLassoCV as ConstrainedGroupLassoCV
from condgrad.estimators import ConstrainedGroupLogisticRegression as ConstrainedGroupLogisticRegression
from condgrad.estimators import ConstrainedGroupLogisticRegressionCV as ConstrainedGroupLogisticRegressionCV
from condgrad.estimators import ConstrainedLasso as ConstrainedLasso
from condgrad.estimators import ConstrainedLassoCV as ConstrainedLassoCV
from condgrad.estimators import ConstrainedLogisticRegression as ConstrainedLogisticRegression
from condgrad.estimators import ConstrainedLogisticRegressionCV as ConstrainedLogisticRegressionCV
from condgrad.estimators import ConstrainedMultiTaskLasso as ConstrainedMultiTaskLasso
from condgrad.estimators import ConstrainedMultiTaskLassoCV as ConstrainedMultiTaskLassoCV
from condgrad.estimators import ConstrainedQuantileRegressor as ConstrainedQuantileRegressor
from condgrad.estimators import ConstrainedRegressor as ConstrainedRegressor
from condgrad.estimators import ConstrainedRegressorCV as ConstrainedRegressorCV
from condgrad.estimators import MatrixCompletion as MatrixCompletion
from condgrad.estimators import MatrixCompletionCV as MatrixCompletionCV
from condgrad.estimators import RadiusWarning as RadiusWarning
from condgrad.estimators import SquareRootLasso as SquareRootLasso
from condgrad.estimators import StabilitySelection as StabilitySelection
from condgrad.estimators import radius_max as radius_max
from condgrad.estimators import relaxed as relaxed
from condgrad.estimators import to_sklearn as to_sklearn
from condgrad.estimators.indicators import IndicatorColumns as IndicatorColumns
from condgrad.estimators.trusted import skops_trusted_types as skops_trusted_types
from condgrad.linalg.coded_data import CodedData as CodedData
from condgrad.models.completion import CompletionModel as CompletionModel
from condgrad.models.files import load_model as load_model
from condgrad.models.files import save_model as save_model
from condgrad.models.linear import Model as Model
from condgrad.models.multi import MultiModel as MultiModel
from condgrad.paths import PathInfo as PathInfo
from condgrad.paths import cox_path as cox_path
from condgrad.paths import lasso_path as lasso_path
from condgrad.paths import plotting as plotting
from condgrad.paths import radius_path as radius_path
from condgrad.problems import terms as terms
from condgrad.problems.completion import CompletionProblem as CompletionProblem
from condgrad.problems.cox import CoxProblem as CoxProblem
from condgrad.problems.evaluation import Evaluation as Evaluation
from condgrad.problems.general import GeneralProblem as GeneralProblem
from condgrad.problems.linear import Problem as Problem
from condgrad.problems.multi_output import MultiOutputProblem as MultiOutputProblem
from condgrad.problems.softmax import SoftmaxProblem as SoftmaxProblem
from condgrad.run.checkpoint import Checkpoint as Checkpoint
from condgrad.run.minimize import minimize as minimize
from condgrad.run.private import PrivateResult as PrivateResult
from condgrad.run.private import minimize_private as minimize_private
from condgrad.run.result import Result as Result
from condgrad.run.result import Status as Status
from condgrad.run.trace import Progress as Progress
from condgrad.run.trace import Trace as Trace
from condgrad.solvers import step_sizes as step_sizes
from condgrad.solvers.stochastic import atom_counts as sample_sizes
from condgrad.solvers.stochastic import renewal_rules as rules
from condgrad.storage import columns as columns
from condgrad.storage import rows as rows

__version__: str
__all__ = [
    "Checkpoint",
    "CodedData",
    "CompletionModel",
    "CompletionProblem",
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
    "CoxProblem",
    "Evaluation",
    "GeneralProblem",
    "IndicatorColumns",
    "MatrixCompletion",
    "MatrixCompletionCV",
    "Model",
    "MultiModel",
    "MultiOutputProblem",
    "PathInfo",
    "PrivateResult",
    "Problem",
    "Progress",
    "RadiusWarning",
    "Result",
    "SoftmaxProblem",
    "SquareRootLasso",
    "StabilitySelection",
    "Status",
    "Trace",
    "columns",
    "constraints",
    "cox_path",
    "estimators",
    "lasso_path",
    "load_model",
    "losses",
    "minimize",
    "minimize_private",
    "plotting",
    "radius_max",
    "radius_path",
    "relaxed",
    "rows",
    "rules",
    "sample_sizes",
    "save_model",
    "solvers",
    "step_sizes",
    "terms",
    "theory",
    "to_sklearn",
]
