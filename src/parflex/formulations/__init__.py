"""Define the formulations of a model, and choose between them."""
