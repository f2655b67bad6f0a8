"""Rows: the storage of the samples of a linear problem, and passes over them."""
