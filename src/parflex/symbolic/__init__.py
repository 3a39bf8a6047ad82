"""Symbolic scalars: a graph of signed, hash-consed nodes that plain NumPy code traces, and its derivatives."""
