"""Cases that tests run: all of them in `make verify`, and the public functions."""

import inspect
import os

import parflex

VERIFY = bool(os.environ.get("PARFLEX_VERIFY"))  # set by `make verify`
PUBLIC = sorted([*(n for n in parflex.__all__ if inspect.isfunction(getattr(parflex, n))), "PD"])
