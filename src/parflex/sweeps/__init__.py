"""Sweeps: many designs of a robot, their responses in a table."""
