"""A robot as points, lines and solids at any configuration."""
