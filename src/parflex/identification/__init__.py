"""Identification of dynamic parameters from recordings."""
