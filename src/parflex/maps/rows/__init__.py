"""Rows of poses: solved in chunks of one size by several threads, each row with its state and its reason."""
