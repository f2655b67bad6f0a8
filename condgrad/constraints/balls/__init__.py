"""Balls and boxes of the classical norms."""
