"""A robot cut at its beams: pieces, their motion, and the equations of the two-node form."""
