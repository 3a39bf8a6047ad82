"""Helpers of test_random_linkages that other tests use."""

from __future__ import annotations

FREEDOMS = {"four-bar": 1, "slider-crank": 1, "five-bar": 2}
