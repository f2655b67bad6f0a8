"""What race.py and benchopt's classes share: the problems, the methods, and the course of a run."""

from benchmark_utils.methods import FULL_PASS, STOCHASTIC, new
from benchmark_utils.problems import PROBLEMS, problem

__all__ = ["FULL_PASS", "PROBLEMS", "STOCHASTIC", "new", "problem"]
