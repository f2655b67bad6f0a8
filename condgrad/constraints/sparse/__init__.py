"""Sets with sparse vertices: few features, or few groups of them."""
