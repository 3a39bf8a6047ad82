"""Responses of a robot at many poses beside its frequencies: stiffness, deflection, damping, energies, condition."""
