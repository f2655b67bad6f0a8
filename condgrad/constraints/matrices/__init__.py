"""Sets of matrices, given as vectors of their entries."""
