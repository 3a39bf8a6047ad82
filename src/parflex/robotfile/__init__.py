"""Read a robot file from text to a checked description."""
