"""Cases of a study on disk: a JSON file that is there whole or not at all, and single cases for its journal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from parflex.errors import InputError
from parflex.io import atomic_file

Laws = dict[str, dict[str, Any]]


class StudyResults:
    """What a study keeps: its cases by percentage and template, whatever their numbers are in this call."""

    def __init__(self, study: Any, path: Path | None, key: str) -> None:
        self.study, self.path, self.key = study, path, key
        self.number = {percentage: k for k, percentage in enumerate(study.file.percentages)}

    def put(self, case: Any, laws: Laws) -> None:
        """Take over a case, by its numbers or by its percentage and template."""
        if isinstance(case, dict):
            self._known({**case, "laws": laws})
        else:
            self.study.cases[case] = laws

    def _known(self, entry: dict[str, Any]) -> None:
        """A case of the file or the journal, asked for now or not."""
        percentage, template = entry["percentage"], entry["template"]
        if percentage in self.number and template < self.study.file.templates:
            self.study.cases[self.number[percentage], template] = entry["laws"]
        elif not any((one["percentage"], one["template"]) == (percentage, template) for one in self.study.others):
            self.study.others.append(entry)

    def packed(self, case: Any, laws: Laws) -> bytes:
        """A case for the journal."""
        return json.dumps(self._entry(case, laws), allow_nan=False).encode()

    def unpacked(self, data: bytes) -> tuple[Any, Laws]:
        """What `packed` wrote."""
        entry = json.loads(data)
        laws = entry.pop("laws")
        return entry, laws

    def _entry(self, case: Any, laws: Laws) -> dict[str, Any]:
        percentage, template = self.study.file.percentages[case[0]], case[1]
        return {"percentage": percentage, "template": template, "signs": self.study.signs[template], "laws": laws}

    def take_up(self) -> None:
        """Cases that a file has already; a file of another study is refused, not replaced."""
        assert self.path is not None
        if not self.path.exists():
            return
        other = InputError(
            "does not hold this study", file=str(self.path), key="out", value=str(self.path), hint="name another file"
        )
        try:
            stored = json.loads(self.path.read_text(encoding="utf-8"))
            if stored["study"] != self.key:
                raise other
            for entry in stored["cases"]:
                self._known(entry)
        except (OSError, ValueError, KeyError, TypeError):
            raise other from None

    def save(self) -> None:
        """Write all cases and their summary."""
        assert self.path is not None
        study = self.study
        content = {
            "study": self.key,
            "file": study.file.model_dump(mode="json"),
            "parameters": study.parameters,
            "cases": [*(self._entry(case, laws) for case, laws in sorted(study.cases.items())), *study.others],
            "summary": study.summary(),
        }
        with atomic_file(self.path) as file:
            file.write(json.dumps(content, allow_nan=False).encode())
