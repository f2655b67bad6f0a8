"""Solvers that use the gradient of the whole objective."""
