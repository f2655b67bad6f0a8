"""Solvers whose steps use a batch of samples, or of features."""
