"""Compute forces of a motion: joint forces, reactions, effort allocation, losses, section forces, base parameters."""
