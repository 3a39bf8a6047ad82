"""The page of the keys of the robot file, from its schema: `python docs/hooks/robot_file.py` writes it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from parflex.robotfile import schema

PAGE = Path(__file__).resolve().parent.parent / "generated" / "robot-file.md"
INTRODUCTION = """# Keys of the robot file

Keys by table; those of sections, elements, poses, working modes and legs are on the page of the
[robot file](../robot-file.md). Units are SI and radians. Keys without a default are optional unless they are required.
"""
TABLES = {
    "Top level": "RobotFile",
    "`[[frame]]`": "Frame",
    "`beam`": "Beam",
    "`modal`": "Modal",
    "`superelement`": "Superelement",
    "`[materials.NAME]`": "MaterialTable",
    "`[platform]`": "PlatformTable",
    "`[[closure]]`": "Closure",
    "`[[coupling]]`": "CouplingTable",
    "`[readings.JOINT]`": "ReadingTable",
    "`[motions.NAME]`": "MotionTable",
    "`[[visual]]`": "Visual",
    "`[reference]`": "SourceTable",
}


def rows(table: str) -> list[str]:
    """Return one row a key, or a group of keys: its text, allowed words, and default."""
    model = getattr(schema, table)
    rows = []
    for names, text in schema.key_texts(model.__doc__):
        fields = [model.model_fields[name] for name in names]
        meaning = [text if text.endswith("...") else text.removesuffix(".")]
        words = get_args(fields[0].annotation) if get_origin(fields[0].annotation) is Literal else ()
        if not all(f"`{word}`" in text or f'"{word}"' in text for word in words):
            meaning.append("one of " + " ".join(f"`{word}`" for word in words))
        value = default(fields[0].default)
        if all(field.is_required() for field in fields):
            value = "required"
        elif value and "default" in text.lower():
            value = ""
        cells = (", ".join(f"`{name}`" for name in names), from_here("; ".join(meaning)), value)
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells).rstrip() + " |")
    return rows


def from_here(text: str) -> str:
    """Return a text with links from the folder of this page; those without a page are to the page on the robot file."""
    text = re.sub(r"\]\(#(?!top-level)", "](../robot-file.md#", text)
    return re.sub(r"\]\((?=[\w-]+\.md)", "](../", text)


def default(value: Any) -> str:
    """Return a default as it is written in the file; nothing where a key is left out, false or empty."""
    if isinstance(value, str):
        return f'`"{value}"`' if value else ""
    if isinstance(value, tuple) and value:
        return f"`[{', '.join(f'{x:g}' for x in value)}]`"
    return f"`{value:g}`" if isinstance(value, int | float) and not isinstance(value, bool) else ""


def page() -> str:
    """Return the text of the page."""
    lines = [INTRODUCTION]
    for heading, table in TABLES.items():
        lines += [f"## {heading}", "", "| key | meaning | default |", "| --- | --- | --- |", *rows(table), ""]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
