"""Negiar et al. (2020), algorithm 1."""

from benchmark_utils.solver import CourseSolver


class Solver(CourseSolver):
    """condgrad's ``sfw``."""

    name = "sfw"
