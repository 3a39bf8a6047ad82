"""robotfile."""
