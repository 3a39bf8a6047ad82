"""Dynamics of states given as arrays, compiled."""
