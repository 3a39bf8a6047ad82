"""Positions that Newton does not find at once: from neighbours, on ways from home, beyond folds of coordinates."""
