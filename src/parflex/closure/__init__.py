"""Close loops: constraints, mobility, assembly of a pose and working modes."""
