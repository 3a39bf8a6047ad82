"""Poses of a robot: home, those that are asked for, and the motions it has there."""
