"""Geometry of a robot from measurements of its poses: fit, choice of poses, error budget."""
