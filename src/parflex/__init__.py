"""parflex."""
