"""Checks for your own losses, constraint sets and solvers."""

from condgrad.testing.constraints import check_constraint_set
from condgrad.testing.losses import check_loss
from condgrad.testing.solvers import check_solver

__all__ = ["check_constraint_set", "check_loss", "check_solver"]
