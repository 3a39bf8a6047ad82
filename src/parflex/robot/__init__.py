"""Represent a loaded robot, its poses, states, configuration and frames."""
