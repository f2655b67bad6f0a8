"""Sets of vectors whose neighbouring entries are alike."""
