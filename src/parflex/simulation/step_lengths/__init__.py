"""How long the steps of a run are, and what its error is."""
