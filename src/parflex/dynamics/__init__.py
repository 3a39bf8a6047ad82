"""Compute the inverse and direct dynamics of closed robots."""
