"""Hulls of combinatorial objects: permutations, paths, trees, bases."""
