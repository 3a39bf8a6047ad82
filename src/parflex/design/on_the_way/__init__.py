"""Designs in motions of the robot file: instants with slopes, and the largest values on the way."""
