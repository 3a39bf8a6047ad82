"""Provide rotations, transforms and small linear algebra over any scalar type."""
