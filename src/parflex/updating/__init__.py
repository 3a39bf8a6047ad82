"""Models updated to measured vibrations."""
