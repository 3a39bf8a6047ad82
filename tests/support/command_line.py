"""Run the command line in this process; return its JSON, or its error."""

import json
from dataclasses import dataclass

import pytest

from parflex.cli import output
from parflex.cli.app import main

ERROR_KEYS = {"kind", "message", "file", "key", "value", "hint"}


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str


def run(capsys, *arguments: str) -> Answer:
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    shown = capsys.readouterr()
    return Answer(stop.value.code or 0, shown.out, shown.err)


def answered(capsys, *arguments: str) -> dict:
    """The JSON of a command that succeeds: one object, no NaN, nothing else on stdout, all warnings in it."""
    answer = run(capsys, *arguments, "--json")
    assert answer.code == 0, answer.err
    content = json.loads(answer.out, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    told = [line.removeprefix("warning: ") for line in answer.err.splitlines() if line.startswith("warning: ")]
    assert set(told) <= {output.one_line(sentence) for sentence in content.get("warnings", [])}
    return content


def refused(capsys, *arguments: str) -> dict:
    """The error object of a command that is refused, after checking the form: one line, exit 2, JSON on demand."""
    plain = run(capsys, *arguments)
    assert plain.code == 2, plain
    assert plain.out == ""
    assert plain.err.startswith("error: ")
    assert plain.err.endswith("\n")
    assert plain.err.count("\n") == 1, plain.err
    assert "Traceback" not in plain.err
    answer = run(capsys, *arguments, "--json")
    assert (answer.code, answer.err) == (2, plain.err)
    content = json.loads(answer.out)
    assert set(content) == {"error"}
    assert set(content["error"]) == ERROR_KEYS
    error = content["error"]
    assert error["hint"], "no hint is given"
    if error["kind"] != "usage":
        said = [error["file"], error["key"], error["message"].rstrip("."), error["hint"]]
        assert all(part in plain.err for part in said if part and part.isprintable())
    return error
