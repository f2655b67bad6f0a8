"""Models: what a run leaves for predicting, and the files that hold them."""
