"""A robot cut at its beams: the equations of the two-node form."""
