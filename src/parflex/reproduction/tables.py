"""Published numbers as data: one file per paper, groups of rows with a quantity and a tolerance."""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from parflex.errors import InputError, did_you_mean

FOLDER = Path(str(resources.files("parflex.reproduction"))) / "published"
Number = float | int


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Row(_Strict):
    """Numbers that are published together, and what their computation takes besides that of the group.

    `case` names options that several rows of the paper share.
    """

    name: str = ""
    names: list[str] = Field(default_factory=list)
    published: list[Number] = Field(default_factory=list)
    tolerance: Number | list[Number] | None = None
    case: str | None = None
    options: dict[str, Any] = Field(default_factory=dict)


class Group(_Strict):
    """A table of a paper, or a part of one: its source, how it is computed, and its tolerance with the reason.

    `kind` is a word of `quantities`. `verdict` "fitted": parameters were chosen to give these numbers.
    "not-reproducible": the paper does not tell whether they are right; `reason` says why. `slow` groups are left
    out of a quick run.
    """

    title: str
    source: str
    kind: str | None = None
    verdict: Literal["check", "fitted", "not-reproducible"] = "check"
    compare: Literal["equal", "at most"] = "equal"
    unit: str = ""
    names: list[str] = Field(default_factory=list)
    tolerance: Number | list[Number] = 0
    reason: str
    options: dict[str, Any] = Field(default_factory=dict)
    rows: list[Row] = Field(default_factory=list)
    figure: bool = False
    slow: bool = False


class Erratum(_Strict):
    """A print error or a gap: its place, its meaning, and how that is known."""

    where: str
    meant: str
    how: str = ""


class Show(_Strict):
    """Modes of a robot that the report moves, or a motion whose time series it draws, with options of `simulate`."""

    robot: str
    title: str
    pose: str | None = None
    modes: int = 6
    motion: str | None = None
    time: Number = 0
    step: Number = 5e-4
    options: dict[str, Any] = Field(default_factory=dict)
    series: dict[str, list[str]] = Field(default_factory=dict)


class Paper(_Strict):
    """All published numbers of a paper."""

    paper: str
    title: str
    about: str
    group: list[Group]
    cases: dict[str, dict[str, Any]] = Field(default_factory=dict)
    erratum: list[Erratum] = Field(default_factory=list)
    shapes: list[Show] = Field(default_factory=list)
    motions: list[Show] = Field(default_factory=list)


def paper_names() -> list[str]:
    """Return keys of the papers, oldest first."""
    return sorted((path.stem for path in FOLDER.glob("*.toml")), key=lambda name: (name[-4:], name))


def read_paper(name: str) -> Paper:
    """Return the published numbers of a paper by its key, in any case."""
    names = paper_names()
    matched = {known.lower(): known for known in names}.get(name.lower())
    if matched is None:
        hint = did_you_mean(name.capitalize(), names)
        raise InputError(f"there is no paper '{name}'", key="paper", value=name, hint=hint)
    return Paper(**tomllib.loads((FOLDER / f"{matched}.toml").read_text(encoding="utf-8")))
