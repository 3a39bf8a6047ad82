"""Where and how fast a run starts."""
