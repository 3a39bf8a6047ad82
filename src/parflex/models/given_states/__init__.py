"""States given as arrays: their order, their checks, and dynamics in floats."""
