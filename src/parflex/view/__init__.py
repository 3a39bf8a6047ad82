"""Pictures of robots."""
