"""Rows: where the samples of a linear problem lie, and how a pass runs over them."""
