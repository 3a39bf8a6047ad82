"""Compute static equilibria, linear models, modes, stiffness and state spaces of a robot."""
