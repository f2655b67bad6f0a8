"""One run of a solver: the loop, its result, its trace, its checkpoints."""
