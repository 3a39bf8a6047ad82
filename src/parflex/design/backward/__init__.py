"""Gradients of frequencies by all keys at once: one backward pass through the graph of an energy."""
