"""One run of a solver: the loop, what it returns, its trace, its checkpoints."""
