"""Loop closure: constraints, mobility, assembly of a pose and working modes."""
