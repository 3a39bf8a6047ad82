"""Robots that bend: statics, equilibrium, the linear model with its modes, driven frames."""
