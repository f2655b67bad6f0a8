"""Lu & Freund (2021)."""

from benchmark_utils.solver import CourseSolver


class Solver(CourseSolver):
    """condgrad's ``lu-freund``."""

    name = "lu-freund"
