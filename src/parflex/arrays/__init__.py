"""Dynamics of states given as NumPy arrays, compiled behind the public functions."""
