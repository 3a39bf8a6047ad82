"""An explanation as text, Markdown or plain data."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from typing import Any

from parflex.models.explaining.equations import EQUATIONS
from parflex.records import Record, count_of

INDENT = "    "
WHOLE_WORDS: dict[str, Any] = {"break_on_hyphens": False, "break_long_words": False}


@dataclass(frozen=True, eq=False, repr=False)
class Chapter(Record):
    """Sentences about one step of the model, and the numbers of the equations in docs/theory.md that it takes."""

    key: str
    title: str
    text: tuple[str, ...]  # paragraphs; those that begin with a dash are items of a list
    equations: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(Record):
    """How the model of the robot `name` (`title`) is made: `sections` in the order of the work, and `sizes`.

    `form` is that of its direct program, `forms` that of each model (None: there is none); `warnings` are warnings.
    """

    name: str
    title: str
    form: str
    sizes: dict[str, int]
    sections: tuple[Chapter, ...]
    warnings: tuple[str, ...] = ()
    forms: dict[str, str | None] = field(default_factory=dict)  # of every model; None where the robot has none

    def as_text(self, width: int = 100) -> str:
        """For a terminal of `width` characters."""
        parts = [textwrap.fill(f"{self.name}: {self.title}", width, **WHOLE_WORDS)]
        for section in self.sections:
            lines = [section.title, "-" * len(section.title)]
            for paragraph in section.text:
                hang = "  " if paragraph.startswith("- ") else ""
                lines.append(textwrap.fill(paragraph, width, subsequent_indent=hang, **WHOLE_WORDS))
            lines += [""] * bool(section.equations)
            lines += [line for number in section.equations for line in _numbered(number)]
            parts.append("\n".join(lines))
        return "\n\n".join(parts) + "\n"

    def as_markdown(self) -> str:
        """For a page."""
        parts = [f"# {self.name}: {self.title}"]
        for section in self.sections:
            parts.append(f"## {section.title}")
            items = [paragraph for paragraph in section.text if paragraph.startswith("- ")]
            parts += [paragraph for paragraph in section.text if not paragraph.startswith("- ")]
            parts += ["\n".join(items)] if items else []
            if section.equations:
                shown = "\n".join(line.removeprefix(INDENT) for n in section.equations for line in _numbered(n))
                parts.append(f"```text\n{shown}\n```")
        return "\n\n".join(parts) + "\n"

    def as_dict(self) -> dict[str, Any]:
        """For programs."""
        sections = [
            {
                "key": section.key,
                "title": section.title,
                "text": list(section.text),
                "equations": [{"number": number, "text": EQUATIONS[number]} for number in section.equations],
            }
            for section in self.sections
        ]
        head = {"name": self.name, "title": self.title, "form": self.form, "forms": self.forms, "sizes": self.sizes}
        return {**head, "sections": sections, "warnings": list(self.warnings)}

    def _told(self) -> str:
        return f"{self.name}: {self.form}, {count_of(len(self.sections), 'section')}: print it with as_text()"


def _numbered(number: int) -> list[str]:
    """The lines of an equation, its number behind the last one."""
    *lines, last = EQUATIONS[number].splitlines()
    return [INDENT + line for line in [*lines, f"{last:<88} ({number})"]]


def listed(names: list[str] | tuple[str, ...], most: int = 8) -> str:
    """Names with commas; of many the first and the last."""
    if len(names) <= most:
        return ", ".join(names)
    return ", ".join([*names[: most - 2], "...", names[-1]])
