"""Symbolic scalars: a graph of signed, hash-consed nodes that plain NumPy code traces."""

from parflex.graph.expression import Expression, Graph, known_angle

__all__ = ["Expression", "Graph", "known_angle"]
