"""The commented template of `parflex new`."""

from __future__ import annotations

from importlib import resources


def template(name: str) -> str:
    """A robot file that works as it stands, with the robot's name put in."""
    text = resources.files("parflex.description").joinpath("template.toml").read_text(encoding="utf-8")
    return text.replace("NAME", name)
