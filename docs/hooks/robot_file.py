"""The keys of the tables in docs/robot-file.md, read from the models of `parflex.robotfile.schema`.

`python docs/hooks/robot_file.py` writes them into the page; a test keeps the page and the models the same.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from parflex.robotfile import schema

PAGE = Path(__file__).resolve().parent.parent / "robot-file.md"
KEYS = re.compile(r"(?<=<!-- keys of )(\w+)(?: -->).*?(?=<!-- end of keys -->)", flags=re.DOTALL)


def keys(table: str) -> str:
    """One row a key, or a group of keys: its text, allowed words, and default."""
    model = getattr(schema, table)
    rows = []
    for names, text in schema.key_texts(model.__doc__):
        fields = [model.model_fields[name] for name in names]
        said = [text if text.endswith("...") else text.removesuffix(".")]
        words = get_args(fields[0].annotation) if get_origin(fields[0].annotation) is Literal else ()
        if not all(f"`{word}`" in text or f'"{word}"' in text for word in words):
            said.append("one of " + " ".join(f"`{word}`" for word in words))
        if all(field.is_required() for field in fields):
            said.append("*required*")
        elif (shown := default(fields[0].default)) and "default" not in text.lower():
            said.append(f"default `{shown}`")
        rows.append(f"- {', '.join(f'`{name}`' for name in names)}: {'; '.join(said)}.")
    return "\n".join(rows)


def default(value: Any) -> str:
    """A default as it is written in the file; nothing where a key is left out, false or empty."""
    if isinstance(value, str):
        return f'"{value}"' if value else ""
    if isinstance(value, tuple) and value:
        return f"[{', '.join(f'{x:g}' for x in value)}]"
    return f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else ""


def page() -> str:
    """The page with the keys of all tables between their marks."""
    return KEYS.sub(lambda mark: f"{mark[1]} -->\n\n{keys(mark[1])}\n\n", PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
