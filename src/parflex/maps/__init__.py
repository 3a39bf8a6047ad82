"""Natural frequencies and responses at many poses and parameters."""
