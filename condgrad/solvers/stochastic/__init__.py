"""Solvers that see a batch of samples, or of features, at a step."""
