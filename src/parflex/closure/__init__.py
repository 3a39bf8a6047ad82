"""Closing the loops: equations at position, velocity and acceleration level, mobility, assembly of a pose."""
