"""The page of Python functions, from their signatures and docstrings: `python docs/hooks/api_reference.py`."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import parflex
from parflex import errors

PAGE = Path(__file__).resolve().parent.parent / "generated" / "api.md"
WIDTH = 100
INTRODUCTION = """# Python functions

All names are attributes of `parflex`; `help(parflex.load)` prints what stands here. Units are SI and radians. Arguments
mean the same in all functions. Results are records: they compare by value, print one line, and show as tables in
notebooks; `diagnostics` and `warnings` hold what to know about an answer. The [overview](../index.md#python-functions)
lists the functions by subject.
"""


def signature(name: str, thing: Any) -> str:
    """The call as it is written, one argument a line if it is long."""
    found = inspect.signature(thing)
    one_line = f"{name}{found}"
    if len(one_line) <= WIDTH:
        return tidy(one_line)
    parts, star = [], False
    for parameter in found.parameters.values():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        parts.append(str(parameter))
    answer = found.return_annotation
    arrow = "" if answer is inspect.Signature.empty else f" -> {answer}"
    return tidy(f"{name}(\n    " + ",\n    ".join(parts) + f",\n){arrow}")


def tidy(text: str) -> str:
    """Annotations are strings: without their quotes and without what differs between versions of Python."""
    text = re.sub(r"(?<=[:>] )'([^']*)'", r"\1", text)
    return text.replace("pathlib._local.", "").replace("pathlib.", "")


def paragraphs(thing: Any) -> str:
    """The docstring in Markdown: sections of NumPy style become bold words, lists and code."""
    text, *sections = re.split(
        r"^(Parameters|Attributes|Returns|Examples)\n-+\n", inspect.cleandoc(thing.__doc__ or ""), flags=re.M
    )
    parts = [text.rstrip()]
    for title, body in zip(sections[::2], sections[1::2], strict=True):
        if title == "Examples":
            code = "\n".join(line.removeprefix(">>> ") for line in body.strip().splitlines())
            parts.append(f"```python\n{code}\n```")
            continue
        rows = []
        for head, said in re.findall(r"^(\S.*)\n((?:    .*\n?)+)", body, flags=re.M):
            name, colon, kind = head.partition(" : ")
            told = " ".join(said.split()).replace("<", "&lt;")
            rows.append(f"- `{name}`{f' ({kind})' if colon else ''}: {told}")
        parts.append(f"**{title}**\n\n" + "\n".join(rows))
    return "\n\n".join(parts)


def first_line(thing: Any) -> str:
    """The first paragraph of the docstring, for a cell of a table."""
    return paragraphs(thing).split("\n\n")[0].replace("\n", " ").replace("|", "\\|")


def returned(module: Any, function: Any) -> Any:
    """The class of parflex that a function returns, if it is one."""
    name = str(inspect.signature(function).return_annotation).strip("'")
    found = getattr(module, name, None)
    return found if inspect.isclass(found) and found.__module__.startswith("parflex.") else None


def members(kind: Any) -> list[str]:
    """Rows for the fields, properties and methods of a class."""
    rows = []
    if dataclasses.is_dataclass(kind) and "Attributes\n" not in (kind.__doc__ or ""):
        source = inspect.getsource(kind)
        for field in dataclasses.fields(kind):
            if not field.name.startswith("_"):
                remark = re.search(rf"^    {field.name}: .*?  # (.*)$", source, flags=re.M)
                kind_of = tidy(str(field.type)).replace("|", "or")
                rows.append(f"| `{field.name}` | {kind_of}{f': {remark[1]}' if remark else ''} |".replace("||", "or"))
    for name, thing in vars(kind).items():
        if name.startswith("_") and name not in ("__call__", "__getitem__"):
            continue
        function = getattr(thing, "fget", None) or getattr(thing, "func", None)
        if function is not None:
            rows.append(f"| `{name}` | {first_line(function)} |")
        elif inspect.isfunction(thing):
            shown = tidy(str(inspect.signature(thing))).replace("(self, ", "(").replace("(self)", "()")
            shown = shown.partition(" ->")[0].replace("|", "or")
            rows.append(f"| `{name}{shown}` | {first_line(thing)} |")
    return rows


def section(name: str, shown: set[Any]) -> list[str]:
    """One function, and the class it returns where that was not shown before."""
    thing = getattr(parflex, name)
    module = importlib.import_module(thing.__module__)
    lines = [f"## {name}", "", f"`{thing.__module__}`", "", "```python", signature(name, thing), "```", ""]
    lines += [paragraphs(thing), ""]
    kind = thing if inspect.isclass(thing) else returned(module, thing)
    if kind is not None and kind not in shown:
        shown.add(kind)
        rows = members(kind)
        if kind is not thing:
            lines += [f"`{kind.__name__}`: {paragraphs(kind)}", ""]
        lines += ["| of it | what |", "| --- | --- |", *rows, ""] if rows else []
    elif kind is not None and kind is not thing:
        lines += [f"Gives a `{kind.__name__}`, see above.", ""]
    return lines


def page() -> str:
    """Return the text of the page."""
    lines: list[str] = [INTRODUCTION]
    shown: set[Any] = set()
    functions = [name for name in parflex.__all__ if inspect.isfunction(getattr(parflex, name))]
    names = sorted([*functions, "PD"], key=str.lower)
    lines += ["| function | what it does |", "| --- | --- |"]
    lines += [f"| [`{name}`](#{name.lower()}) | {first_line(getattr(parflex, name))} |" for name in names] + [""]
    for name in names:
        lines += section(name, shown)
    lines += ["## Errors", "", paragraphs(errors.ParflexError), "", "| class | what |", "| --- | --- |"]
    for name, kind in vars(errors).items():
        if inspect.isclass(kind) and issubclass(kind, errors.ParflexError) and kind is not errors.ParflexError:
            lines.append(f"| `{name}` | {first_line(kind)} |")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
