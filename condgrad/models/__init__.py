"""Models: results of runs, reduced to what predicting needs, and their files."""
