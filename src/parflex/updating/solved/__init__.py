"""Fits from all starts: minima, which of them is the answer, and other solutions beside it."""
