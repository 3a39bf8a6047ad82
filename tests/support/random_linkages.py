"""Degrees of freedom of random linkages."""

FREEDOMS = {"four-bar": 1, "slider-crank": 1, "five-bar": 2}
