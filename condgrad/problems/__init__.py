"""Problems: what is minimised, and exact answers about any w."""
