"""Dynamic models: forces of a motion, motions under forces, reactions, base parameters."""
