"""Design: responses, sensitivities, optimisation and sweeps."""
