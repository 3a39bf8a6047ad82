"""Commands and code blocks of the documentation."""

import contextlib
import io
import re
from pathlib import Path

import pytest

from parflex.cli.app import main

NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:[eE][-+]?\d+)?")
TOKEN = re.compile(r"\.\.\.|[-+]?\d+\.?\d*(?:[eE][-+]?\d+)?|\w+|[^\w\s]")


def blocks(page: Path) -> list[tuple[str, str]]:
    """Language and text of the fenced blocks of a page."""
    return re.findall(r"^```(\w*)[^\n]*\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.M | re.S)


def same_token(shown: str, real: str) -> bool:
    """Words are equal; numbers agree to the digits that are shown."""
    if not (NUMBER.fullmatch(shown) and NUMBER.fullmatch(real)):
        return shown == real
    digits = shown.partition("e")[0].partition(".")[2]
    step = 10.0 ** -len(digits) * (10.0 ** int(shown.partition("e")[2] or 0))
    return abs(float(shown) - float(real)) <= 0.51 * step + 1e-5 * abs(float(shown))


def shows(shown: str, real: str) -> bool:
    """Whether a text shows another one; `...` stands for anything."""
    actual = TOKEN.findall(real)
    parts: list[list[str]] = [[]]
    for token in TOKEN.findall(shown):
        if token == "...":
            parts.append([])
        else:
            parts[-1].append(token)

    def fits(part: list[str], at: int) -> bool:
        here = actual[at : at + len(part)]
        return len(here) == len(part) and all(map(same_token, part, here))

    position = 0
    for index, part in enumerate(parts):
        last = len(actual) - len(part)
        starts = [0] if index == 0 else range(position, last + 1)
        if index == len(parts) - 1:
            starts = [start for start in starts if start == last] or ([last] if index and last >= position else [])
        found = next((start for start in starts if fits(part, start)), None)
        if found is None:
            return False
        position = found + len(part)
    return True


def run_parflex(arguments: list[str]) -> tuple[int, str]:
    """Exit code and what was printed on stdout."""
    output = io.StringIO()
    with (
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(io.StringIO()),
        pytest.raises(SystemExit) as stop,
    ):
        main(arguments)
    return int(stop.value.code or 0), output.getvalue()


def console_commands(text: str) -> list[tuple[str, int, str]]:
    """Command, exit code and shown output of every `$ parflex ...` line of a block."""
    found = []
    for entry in re.split(r"^\$ ", text, flags=re.M)[1:]:
        line, _, shown = entry.partition("\n")
        line, _, remark = line.partition(" # ")
        code = re.search(r"exit code (\d)", remark)
        found.append((line.strip(), int(code[1]) if code else 0, shown))
    return found


def commands(page: Path) -> list[tuple[str, int, str]]:
    """Those of all blocks of a page."""
    return [row for language, text in blocks(page) if language == "console" for row in console_commands(text)]
