"""formulations."""
