"""Degrees of freedom of random linkages."""

from __future__ import annotations

FREEDOMS = {"four-bar": 1, "slider-crank": 1, "five-bar": 2}
