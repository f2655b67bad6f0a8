"""Solvers that see the gradient of the whole objective."""
