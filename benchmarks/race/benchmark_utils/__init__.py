"""What race.py and benchopt's classes share: the problems, the methods, and the tables of the report."""

from benchmark_utils.methods import FULL_PASS, STOCHASTIC, new
from benchmark_utils.problems import PROBLEMS, problem
from benchmark_utils.report import TARGETS, all_needs, draw, tables

__all__ = [
    "FULL_PASS", "PROBLEMS", "STOCHASTIC", "TARGETS", "all_needs", "draw", "new", "problem", "tables",
]  # fmt: skip
