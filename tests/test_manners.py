"""Manners of the command line: help with examples, JSON everywhere, quick start, completion."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import CATALOGUE

from parflex.cli.main import BLAS_THREADS, cli, main

VERBS = sorted(cli.commands)
HEAVY = ("numpy", "scipy", "llvmlite", "matplotlib", "pydantic", "rich", "viser", "jax", "casadi")


def shell(*arguments: str, **environment: str) -> subprocess.CompletedProcess:
    """A Python process of its own."""
    everything = {**os.environ, **environment}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=everything, check=False)


def examples(epilog: str | None) -> list[list[str]]:
    """The commands that a help text shows, without what goes to the shell."""
    lines = re.findall(r"^ *parflex (.*)$", epilog or "", flags=re.M)
    return [shlex.split(re.split(r" >>? ", line)[0]) for line in lines]


@pytest.mark.parametrize("verb", [None, *VERBS])
def test_every_help_shows_examples_that_the_command_line_understands(verb):
    shown = examples(cli.epilog if verb is None else cli.commands[verb].epilog)
    assert shown, "no example"
    for words in shown:
        assert verb is None or words[0] == verb
        command = cli.commands[words[0]]
        context = command.make_context(words[0], words[1:])  # reads all options, and raises on those it does not know
        robot = context.params.get("robot")
        assert robot is None or robot.endswith(".toml") or (CATALOGUE / f"{robot}.toml").exists(), robot


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_can_answer_in_json(verb):
    assert any("--json" in parameter.opts for parameter in cli.commands[verb].params)


def test_help_starts_without_the_libraries_that_compute():
    code = f"import sys, parflex.cli.main; print([name for name in {HEAVY} if name in sys.modules])"
    answer = shell("-c", code)
    assert answer.stdout.strip() == "[]", answer.stdout + answer.stderr


def completed(*words: str) -> list[str]:
    """What bash would offer for the last of these words."""
    answer = shell(
        "-m", "parflex", _PARFLEX_COMPLETE="bash_complete", COMP_WORDS=" ".join(words), COMP_CWORD=str(len(words) - 1)
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.split()


def test_verbs_options_robots_and_files_are_completed():
    assert {"plain,inverse", "plain,info"} <= set(completed("parflex", "in"))
    assert completed("parflex", "info", "gough-stewart-b") == ["plain,gough-stewart-beams"]
    assert completed("parflex", "info", "./my") == ["file,./my"]
    assert "plain,--elements" in completed("parflex", "frequencies", "navaro", "--el")


@pytest.mark.parametrize("kind", ["bash", "zsh", "fish"])
def test_the_completion_script_is_one_of_its_shell(kind, capsys, tmp_path):
    with pytest.raises(SystemExit) as stop:
        main(["completion", kind, "--json"])
    assert stop.value.code == 0
    script = json.loads(capsys.readouterr().out)["script"]
    assert "_PARFLEX_COMPLETE" in script and f"{kind}_complete" in script
    if shutil.which(kind):
        file = tmp_path / "script"
        file.write_text(script)
        assert subprocess.run([kind, "-n", str(file)], check=False).returncode == 0


def test_an_unknown_shell_is_refused_in_one_line():
    answer = shell("-m", "parflex", "completion", "tcsh")
    assert answer.returncode == 2
    assert answer.stderr.startswith("error: ") and answer.stderr.count("\n") == 1


COMMAND = """import os, sys
from parflex.cli.main import main
try:
    main(["frequencies", "dualemps", "--json"])
except SystemExit:
    pass
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="no list of threads on this system")
@pytest.mark.parametrize("first", ["import conftest, numpy.linalg\n", COMMAND], ids=["tests", "command line"])
def test_tests_and_the_command_line_compute_in_one_thread(first):
    free = {name: value for name, value in os.environ.items() if name not in BLAS_THREADS}
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    code = (
        first + "import os; print(len(os.listdir('/proc/self/task')))"
    )  # OpenBLAS starts its threads when it is loaded
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**free, "PYTHONPATH": path}, check=False
    )
    assert answer.stdout.split()[-1] == "1", answer.stdout + answer.stderr
