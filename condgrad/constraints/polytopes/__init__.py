"""Polytopes by inequalities or by vertices."""
