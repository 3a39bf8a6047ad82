"""The commented template of `parflex new`."""

from __future__ import annotations

from importlib import resources

from pydantic_core import PydanticCustomError

from parflex.description.values import as_value, read_name
from parflex.errors import InputError


def template(name: str) -> str:
    """A robot file that works as it stands, with the robot's name put in."""
    try:
        read_name(name)
    except PydanticCustomError as error:
        context = error.context or {}
        raise InputError(context["message"], key="NAME", value=as_value(name), hint=context["hint"]) from None
    text = resources.files("parflex.description").joinpath("template.toml").read_text(encoding="utf-8")
    return text.replace("NAME", name, 1)
