"""The file of a study: robot, laws and parameter errors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, model_validator

from parflex.control.variation import KINDS
from parflex.io import read_bytes
from parflex.robotfile.read import parse_toml, read_tables
from parflex.robotfile.values import Flag, Number, Table, Text, list_of, value_error

Numbers = Annotated[tuple[Number, ...], BeforeValidator(list_of("a list of numbers is", "[1, 2, 3, 4, 5]"))]
LawNames = Annotated[
    tuple[Literal["pd", "ctc", "ctc-task", "extended"], ...],
    BeforeValidator(list_of("a list of laws is", '["ctc", "extended"]')),
]
Kinds = Annotated[
    tuple[Literal["lengths", "masses", "inertias", "centres"], ...],
    BeforeValidator(list_of("a list of kinds is", '["lengths", "masses"]')),
]
Terms = Annotated[
    tuple[Literal["friction", "damping", "gravity", "springs", "motor-inertia", "axial"], ...],
    BeforeValidator(list_of("a list of terms to leave out is", '["friction"]')),
]
MOST_RUNS = 1_000_000


class GainTable(Table):
    """How fast errors die out: by overshoot and peak time, or by `Kp` and `Kv`."""

    overshoot: Number = 0.1
    peak_time: Number = 0.1
    Kp: Number | None = None
    Kv: Number | None = None

    @model_validator(mode="after")
    def _one_way(self) -> GainTable:
        if (self.Kp is None) != (self.Kv is None):
            raise value_error("Kp and Kv must be given together", "give both", "Kv" if self.Kv is None else "Kp")
        if self.Kp is not None and self.model_fields_set & {"overshoot", "peak_time"}:
            raise value_error("the gains are given twice", "keep Kp and Kv, or overshoot and peak_time", "Kp", self.Kp)
        return self


class LoopTable(Table):
    """How law and plant meet, the same for all runs."""

    sample_time: Number = 1e-3
    delay: int = 0
    noise: Number = 0.0
    rate_noise: Number = 0.0
    resolution: Number = 0.0
    rates: Literal["measured", "differences"] = "measured"
    effort_limit: Number | None = None
    start: Literal["motors", "platform"] = "motors"
    step: Number | None = None


class StudyFile(Table):
    """A study: each template of signs, at each percentage, under each law."""

    robot: Text
    settings: dict[str, Any] = {}  # noqa: RUF012 - pydantic copies defaults
    actuation: Text | None = None
    working_mode: Text | None = None
    reference: dict[str, Any]
    laws: LawNames = ("ctc", "extended")
    gains: GainTable = GainTable()
    loop: LoopTable = LoopTable()
    without: Terms = ()
    vary: Kinds = KINDS  # type: ignore[assignment]
    percentages: Numbers = (1.0, 2.0, 3.0, 4.0, 5.0)
    templates: int = 10
    seed: int = 1
    ignore_limits: Flag = False

    @model_validator(mode="after")
    def _possible(self) -> StudyFile:
        for key in ("laws", "vary", "percentages"):
            values = getattr(self, key)
            if not values or len(set(values)) < len(values):
                raise value_error(f"'{key}' is empty or has duplicates", "list each entry once", key, list(values))
        wrong = [value for value in self.percentages if not 0 <= value < 100]
        if wrong:
            raise value_error(
                f"{wrong[0]:g} % is not a valid percentage", "give a value from 0 to below 100", "percentages", wrong[0]
            )
        if not 1 <= self.templates * len(self.percentages) * len(self.laws) <= MOST_RUNS:
            raise value_error("there are no runs, or too many", f"up to {MOST_RUNS}", "templates", self.templates)
        if self.seed < 0:
            raise value_error("the seed is negative", "give 0, 1, 2, ...", "seed", self.seed)
        return self


def read_study(path: str | Path) -> StudyFile:
    """Return the study of a file."""
    return read_tables(StudyFile, parse_toml(read_bytes(path, "FILE"), str(path)), str(path), "docs/control.md")
