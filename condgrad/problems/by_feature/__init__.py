"""F one feature at a time: partial derivatives at w, and steps towards a vertex, without full passes."""
