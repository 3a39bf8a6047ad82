"""Assembling a pose: Newton on the closures, ways to far poses, and what is said where there is none."""
