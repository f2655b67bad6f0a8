"""Cox proportional hazards: the partial likelihood of times of events, over any set."""

from condgrad.problems.cox.problem import CoxProblem as CoxProblem
