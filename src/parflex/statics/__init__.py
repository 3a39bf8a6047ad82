"""Statics and vibration: equilibrium, linear model, modes, stiffness, state space."""
