"""Machine code of loops that are written in plain Python."""
