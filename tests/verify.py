"""The proof in one report: all tests with their figures, and errors in a copy of the source that a test must notice.

python tests/verify.py --output out/verify.md [--quick] [--only 'spatial/*']
"""

from __future__ import annotations

import argparse
import compileall
import contextlib
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

TESTS = Path(__file__).resolve().parent
SOURCE = TESTS.parent / "src"
IMPORTED = "import pathlib, parflex; print(pathlib.Path(parflex.__file__).resolve())"


@dataclass(frozen=True)
class Mutation:
    """An error in the source and the test that must notice it."""

    what: str
    file: str
    old: str
    new: str
    test: str

    @property
    def test_file(self) -> str:
        return self.test.split("::")[0]

    def apply(self, package: Path) -> None:
        """Put the error into a copy of the package."""
        path = package / self.file
        text = path.read_text(encoding="utf-8")
        if text.count(self.old) != 1:
            raise ValueError(f"{self.file} has {text.count(self.old)} times: {self.old}")
        path.write_text(text.replace(self.old, self.new), encoding="utf-8")


@dataclass
class Outcome:
    """What was found so far; a report can be written at any time."""

    figures: list[dict[str, str]] = field(default_factory=list)
    tests: int = 0
    failures: list[str] = field(default_factory=list)
    suite: str = "not run"
    control: str = "not run"
    mutations: dict[Mutation, str] = field(default_factory=dict)
    seconds: float = 0.0
    interrupted: bool = False

    @property
    def ok(self) -> bool:
        killed = all(verdict == "noticed" for verdict in self.mutations.values())
        return self.suite in ("passed", "left out") and self.control == "passed" and killed and not self.interrupted


class Processes:
    """Child processes in sessions of their own: an interrupt reaches only us, and we end what we started."""

    def __init__(self) -> None:
        self.running: set[subprocess.Popen[str]] = set()
        self.ended = False

    def run(self, command: list[str], show: bool = False, **environment: str) -> tuple[int, str]:
        if self.ended:
            return -1, "ended"
        output = None if show else subprocess.PIPE
        process = subprocess.Popen(
            command,
            cwd=TESTS.parent,
            env=os.environ | environment,
            stdout=output,
            stderr=None if show else subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.running.add(process)  # stays there when interrupted, for `end`
        text, _ = process.communicate()
        self.running.discard(process)
        return process.returncode, text or ""

    def end(self) -> None:
        self.ended = True
        for process in list(self.running):
            with contextlib.suppress(ProcessLookupError):  # it may just have ended
                os.killpg(process.pid, signal.SIGTERM)  # with the workers that it started
            process.wait()


def read_mutations() -> list[Mutation]:
    """Return all mutations of the table."""
    table = tomllib.loads((TESTS / "mutations.toml").read_text(encoding="utf-8"))
    return [Mutation(**entry) for entry in table["mutation"]]


def run_suite(outcome: Outcome, processes: Processes, folder: Path) -> None:
    """The whole suite, its figures and failures."""
    figures, report = folder / "figures.jsonl", folder / "suite.xml"
    command = [sys.executable, "-m", "pytest", str(TESTS), "-n", "auto", f"--junitxml={report}"]
    try:
        code, _ = processes.run(command, show=True, PARFLEX_FIGURES=str(figures), PARFLEX_VERIFY="1")
        outcome.suite = "passed" if code == 0 else "failed"
    finally:
        if figures.exists():
            lines = figures.read_text(encoding="utf-8").splitlines()
            outcome.figures = sorted((json.loads(line) for line in lines), key=lambda f: (f["test"], f["what"]))
    if report.exists():
        cases = list(ElementTree.parse(report).iter("testcase"))
        outcome.tests = len(cases)
        bad = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
        outcome.failures = [f"{case.get('classname')}: {case.get('name')}" for case in bad]


def compiled_source(folder: Path) -> Path:
    """A copy of the source with its byte code, which every other copy takes over: only what differs is compiled."""
    base = folder / "source"
    if not base.exists():
        shutil.copytree(SOURCE, base, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        compileall.compile_dir(base, quiet=1)
    return base


def run_in_copy(tests: list[str], mutation: Mutation | None, processes: Processes, folder: Path) -> str:
    """Tests on a copy of the source, with an error or without: `passed`, `failed`, or why they could not be run."""
    copy = Path(tempfile.mkdtemp(dir=folder))
    shutil.copytree(compiled_source(folder), copy, dirs_exist_ok=True)
    environment = {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1", "PARFLEX_ALL_CASES": "1"}
    if mutation is not None:
        try:
            mutation.apply(copy / "parflex")
        except (OSError, ValueError) as error:
            return f"not applied: {error}"
    else:
        _, imported = processes.run([sys.executable, "-c", IMPORTED], **environment)
        if not Path(imported.strip()).is_relative_to(copy.resolve()):
            return f"not run: the copy is not what is imported ({imported.strip()[-80:]})"
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", *(str(TESTS / test) for test in tests)]
    code, text = processes.run(command, **environment)
    shutil.rmtree(copy)
    # 0: all passed, 1: a test failed, others: nothing ran
    return {0: "passed", 1: "failed"}.get(code) or f"not run: pytest ended with {code}: {text.strip()[-120:]}"


def run_control(outcome: Outcome, processes: Processes, folder: Path, mutations: list[Mutation]) -> None:
    """The named tests pass on a copy without an error; else it would say nothing that they fail on one with it."""
    tests = list(dict.fromkeys(mutation.test for mutation in mutations))
    outcome.control = run_in_copy(tests, None, processes, folder)
    print(f"unchanged copy: {outcome.control}", flush=True)


def try_mutation(mutation: Mutation, processes: Processes, folder: Path) -> str:
    """`noticed`, `survived`, or why it could not be tried."""
    result = run_in_copy([mutation.test], mutation, processes, folder)
    return {"failed": "noticed", "passed": "survived"}.get(result, result)


def run_mutations(outcome: Outcome, processes: Processes, folder: Path, mutations: list[Mutation]) -> None:
    """All mutations, as many at a time as there are processors."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        waiting = {pool.submit(try_mutation, mutation, processes, folder): mutation for mutation in mutations}
        try:
            for count, done in enumerate(as_completed(waiting), start=1):
                mutation = waiting[done]
                outcome.mutations[mutation] = done.result()
                print(f"[{count}/{len(mutations)}] {outcome.mutations[mutation]}: {mutation.what}", flush=True)
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            processes.end()
            raise


def quick_choice(mutations: list[Mutation]) -> list[Mutation]:
    """The first mutation of each test file."""
    return list({mutation.test_file: mutation for mutation in reversed(mutations)}.values())


def report(outcome: Outcome, asked: list[Mutation]) -> str:
    """The report as Markdown."""
    verdict = "ok" if outcome.ok else "NOT OK"
    noticed = sum(result == "noticed" for result in outcome.mutations.values())
    lines = [
        f"# Verification: {verdict}",
        "",
        *(["Interrupted: what follows is what was done until then.", ""] if outcome.interrupted else []),
        f"Python {platform.python_version()} on {platform.machine()}, {outcome.seconds:.0f} s.",
        "",
        f"- Tests: {outcome.suite}, {outcome.tests} run, {len(outcome.failures)} failed.",
        f"- Named tests on an unchanged copy of the source: {outcome.control}.",
        f"- Mutations: {noticed} of {len(asked)} noticed.",
        *(f"- FAILED {name}" for name in outcome.failures),
        "",
        "## Figures",
        "",
        "| what | value | limit |",
        "| --- | --- | --- |",
        *(f"| {figure['what']} | {figure['value']} | {figure['limit']} |" for figure in outcome.figures),
        "",
        "## Mutations: errors put into the source, and whether the named test noticed",
        "",
        "| error | file | test | result |",
        "| --- | --- | --- | --- |",
    ]
    for mutation in asked:
        result = outcome.mutations.get(mutation, "not run")
        lines.append(f"| {mutation.what} | {mutation.file} | {mutation.test} | {result} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run everything, write the report, say whether all is well."""
    parser = argparse.ArgumentParser(description="Run all tests and mutations and write a report.")
    parser.add_argument("--output", type=Path, default=Path("out/verify.md"), help="where the report goes")
    parser.add_argument("--quick", action="store_true", help="only one mutation for each test file")
    parser.add_argument("--only", action="append", help="only mutations of such files (spatial/*), without the suite")
    arguments = parser.parse_args()
    mutations = read_mutations()
    asked = quick_choice(mutations) if arguments.quick else mutations
    if arguments.only:
        asked = [mutation for mutation in asked if any(fnmatch(mutation.file, form) for form in arguments.only)]
    outcome, processes, start = Outcome(), Processes(), time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        try:
            if arguments.only:
                outcome.suite = "left out"
            else:
                run_suite(outcome, processes, Path(name))
            run_control(outcome, processes, Path(name), asked)
            run_mutations(outcome, processes, Path(name), asked)
        except KeyboardInterrupt:
            processes.end()
            outcome.interrupted = True
    outcome.seconds = time.monotonic() - start
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(report(outcome, asked), encoding="utf-8")
    print(f"{'ok' if outcome.ok else 'NOT OK'}: {arguments.output}")
    return 0 if outcome.ok else 1


if __name__ == "__main__":
    sys.exit(main())
