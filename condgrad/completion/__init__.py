"""Completion of matrices from some of their entries, over nuclear-norm balls, with iterates in factors."""

from condgrad.completion.biases import Biases
from condgrad.completion.problem import CompletionProblem

__all__ = ["Biases", "CompletionProblem"]
