"""The base of all tables of a robot file."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

from parflex.description.values import complain, shown
from parflex.errors import did_you_mean
from parflex.records import one_line


class Table(BaseModel):
    """A table of the file: frozen, and an unknown key is an error that names the nearest known one."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    def __repr__(self) -> str:
        return one_line(super().__repr__())  # a robot file would fill pages

    __str__ = __repr__

    @classmethod
    def keys(cls) -> list[str]:
        """Keys that the file may use."""
        return [key for key, field in cls.model_fields.items() if not field.exclude]

    @model_validator(mode="before")
    @classmethod
    def _known_keys_only(cls, data: Any) -> Any:
        if isinstance(data, Table):
            return data
        if not isinstance(data, dict):
            raise complain(f"a table is expected here, not {shown(data)}", "write { key = value, ... }")
        known = cls.keys()
        for key, value in data.items():
            if key not in known:
                word = str(key)[:80]
                raise complain(f"unknown key '{word}'", did_you_mean(word, known), word, value)
        return data
