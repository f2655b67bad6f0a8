"""Completion of matrices from some of their entries, over nuclear-norm balls, with iterates in factors."""

from condgrad.problems.completion.biases import Biases
from condgrad.problems.completion.problem import CompletionProblem

__all__ = ["Biases", "CompletionProblem"]
