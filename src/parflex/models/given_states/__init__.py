"""States given as arrays: their order, what is looked at before they are used, and dynamics in floats."""
