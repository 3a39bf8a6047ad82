"""Models as traces: named symbols in, the physics over them, named expressions out."""
