"""Inverse and direct dynamics of closed robots."""
