"""Simulation: a robot and its inputs to time series."""
