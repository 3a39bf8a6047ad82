"""The file of a sweep or of the studio: variables and responses; what it says of an optimisation is left alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import model_validator

from parflex.design.problem_file import ObjectiveTable, ProblemFile, VariableTable, design_tables
from parflex.robotfile.read import read_tables
from parflex.robotfile.values import Table, Text, value_error

MOST = 50_000_000  # designs: their numbers alone are gigabytes
TAKEN = ("status", "reason", "settings")  # names in the table


class SampleTable(Table):
    """Which designs are computed."""

    kind: Literal["grid", "latin-hypercube", "sobol", "list"] = "grid"
    count: Any = None  # of designs; of a grid the values of each variable, or a table of them by key
    seed: int = 0
    file: Text | None = None

    @model_validator(mode="after")
    def _possible(self) -> SampleTable:
        if (self.kind == "list") != (self.file is not None):
            raise value_error(
                "'file' belongs to the kind 'list', and to no other", "give both or none", "file", self.file
            )
        if self.kind == "list" and self.count is not None:
            raise value_error("a list has as many designs as lines", "leave 'count' out", "count", self.count)
        if self.kind != "list" and self.count is None:
            raise value_error("'count' is missing", "write e.g. count = 100", "count")
        by_key = self.count.values() if self.kind == "grid" and isinstance(self.count, dict) else [self.count]
        for one in by_key if self.kind != "list" else ():
            if isinstance(one, bool) or not isinstance(one, int) or not 1 <= one <= MOST:
                raise value_error(f"'{one}' is not a number of designs", f"give 1 to {MOST}", "count", str(one))
        if self.seed < 0:
            raise value_error("the seed is negative", "give 0, 1, 2, ...", "seed", self.seed)
        return self


class DesignFile(ProblemFile):
    """A design with variables and responses: an objective and limits are as good as none."""

    robot: Text = ""
    objective: ObjectiveTable | None = None  # type: ignore[assignment]

    @model_validator(mode="after")
    def _known(self) -> DesignFile:
        if not self.responses:
            raise value_error("there are no responses", "write [responses.lowest] with response = 'frequency:1'")
        if not self.variables:
            raise value_error("there are no variables", "name numbers of the robot file", "variables")
        asked = [] if self.objective is None else [self.objective.maximise or self.objective.minimise or ""]
        for name in [*asked, *(one.response for one in self.constraint)]:
            if name not in self.responses:
                raise value_error(
                    f"there is no response '{name}'", f"choose from {', '.join(self.responses)}", "objective", name
                )
        return self


class SweepFile(DesignFile):
    """A sweep."""

    robot: Text
    variables: dict[str, VariableTable] = {}  # noqa: RUF012 - pydantic copies defaults
    samples: SampleTable

    @model_validator(mode="after")
    def _known(self) -> SweepFile:
        if not self.responses:
            raise value_error("there are no responses", "write [responses.lowest] with response = 'frequency:1'")
        if not self.variables and self.samples.kind != "list":
            raise value_error("there are no variables", "name numbers of the robot file", "variables")
        for name in self.responses:
            if name in TAKEN or name in self.variables:
                raise value_error(f"'{name}' cannot name a response", "choose another name", "responses", name)
        counts = self.samples.count
        for key in counts if isinstance(counts, dict) else ():
            if key not in self.variables:
                raise value_error(f"'{key}' is not a variable", f"name {', '.join(self.variables)}", "samples", key)
        return self


def read_sweep(path: str | Path) -> SweepFile:
    """The sweep of a file; keys of variables may be written as nested tables or in quotes."""
    return read_tables(SweepFile, _raw(path), str(path), "docs/design.md")


def read_design(path: str | Path) -> DesignFile:
    """The design of a file, for the studio."""
    return read_tables(DesignFile, _raw(path), str(path), "docs/design.md")


def _raw(path: str | Path) -> dict[str, Any]:
    table = design_tables(path)
    samples = table.get("samples")
    if isinstance(samples, dict) and isinstance(samples.get("count"), dict):
        samples["count"] = dict(_flat_counts(samples["count"]))
    return table


def _flat_counts(table: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for key, value in table.items():
        found += _flat_counts(value, f"{prefix}{key}.") if isinstance(value, dict) else [(f"{prefix}{key}", value)]
    return found
