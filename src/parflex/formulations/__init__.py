"""Formulations of a model, and the one choice between them."""
