"""Flexible robots: statics, equilibrium, the linear model with its modes, driven frames."""
