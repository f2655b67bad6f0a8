"""Checks for your own losses, constraint sets, problems, rows, solvers and terms."""

from condgrad.testing.constraints import check_constraint_set
from condgrad.testing.losses import check_loss
from condgrad.testing.problems import check_problem
from condgrad.testing.rows import check_rows
from condgrad.testing.solvers import check_solver
from condgrad.testing.terms import check_terms

__all__ = ["check_constraint_set", "check_loss", "check_problem", "check_rows", "check_solver", "check_terms"]
