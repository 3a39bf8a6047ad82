"""Modes of the model at measured poses, with slopes, for many sets of numbers."""
