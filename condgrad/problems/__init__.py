"""Problems: an objective and a constraint set, with exact values, gradients and gaps at any w."""
