"""Rotations and transforms over any scalar: floats compute, symbols trace."""
