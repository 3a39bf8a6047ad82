"""One emitter per target, and what all generated files have in common."""
