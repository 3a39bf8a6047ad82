"""Shared pieces of the tests: robots as files, random states, figures for the report."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path

import pytest

import parflex

CATALOGUE = Path(str(resources.files("parflex.description"))) / "catalogue"
RIGID = [name for name in parflex.catalogue_names() if not parflex.load(name).tree.elastic]


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Iterator[Callable[..., None]]:
    """Note a figure of a proof; `make verify` collects them in its report."""
    target = os.environ.get("PARFLEX_FIGURES")

    def note(what: str, value: float | str, limit: float | str | None = None) -> None:
        shown = f"{value:.3g}" if isinstance(value, float) else str(value)
        print(f"{what}: {shown}" + (f" (limit {limit})" if limit is not None else ""))
        if target:
            line = {"test": request.node.name, "what": what, "value": shown, "limit": str(limit or "")}
            with Path(target).open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")

    yield note
