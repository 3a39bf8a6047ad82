"""Estimates of parameters from rows of efforts, and how sure they are."""
