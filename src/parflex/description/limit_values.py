"""Limits of a coordinate as they stand in a robot file: of joints and of struts."""

from __future__ import annotations

from typing import Any

from parflex.description.values import complain

LIMIT_KEYS = ("limits", "velocity_limit", "effort_limit")


def check_limit_values(limits: Any, velocity: Any, effort: Any) -> None:
    """Raise where a range is empty or a largest magnitude is not positive."""
    if limits and limits[0] >= limits[1]:
        raise complain(f"limits {list(limits)} are in the wrong order", "write [low, high]", "limits", limits)
    for key, value, example in (
        ("velocity_limit", velocity, "2 (m/s, rad/s)"),
        ("effort_limit", effort, "50 (N, N m)"),
    ):
        if value is not None and not value > 0:
            raise complain(f"the {key} {value:g} is not positive", f"give a magnitude, e.g. {example}", key, value)
