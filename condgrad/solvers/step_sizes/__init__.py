"""Step sizes: rules that return the step length along a segment, one class each.

``begin(problem)`` is called once per run and returns the rule itself, or a copy that stores values between steps;
``at(t, line)`` returns the step gamma for iteration t = 0, 1, 2, ... on a
:class:`~condgrad.problems.segment.Segment`.
"""

from condgrad.solvers.step_sizes.base import EstimateRule as EstimateRule
from condgrad.solvers.step_sizes.base import KernelRule as KernelRule
from condgrad.solvers.step_sizes.base import LineRule as LineRule
from condgrad.solvers.step_sizes.base import StepSize as StepSize
from condgrad.solvers.step_sizes.schedules import Harmonic as Harmonic
from condgrad.solvers.step_sizes.schedules import LogAdaptive as LogAdaptive
from condgrad.solvers.step_sizes.schedules import NonConvex as NonConvex
from condgrad.solvers.step_sizes.schedules import OneSampleStep as OneSampleStep
from condgrad.solvers.step_sizes.schedules import OpenLoop as OpenLoop
from condgrad.solvers.step_sizes.schedules import SubstituteStep as SubstituteStep
from condgrad.solvers.step_sizes.searches import Backtracking as Backtracking
from condgrad.solvers.step_sizes.searches import ExactLineSearch as ExactLineSearch
from condgrad.solvers.step_sizes.searches import SecantSearch as SecantSearch
from condgrad.solvers.step_sizes.short_steps import AutoConditioned as AutoConditioned
from condgrad.solvers.step_sizes.short_steps import ShortStep as ShortStep
