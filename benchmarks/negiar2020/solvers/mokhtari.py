"""Mokhtari, Hassani & Karbasi (2020)."""

from benchmark_utils.solver import CourseSolver


class Solver(CourseSolver):
    """condgrad's ``mokhtari``."""

    name = "mokhtari"
