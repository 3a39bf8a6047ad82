"""Models of a robot: named inputs in, named outputs out."""
