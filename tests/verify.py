"""Long proofs in one report: all tests with their figures, stored answers, and mutations that a named test must notice.

python tests/verify.py --output out/verify.md [--only tests|answers|mutations] [--function 'parflex.closure.*']
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import io
import json
import multiprocessing
import os
import platform
import subprocess
import sys
import tempfile
import time
import tomllib
import xml.etree.ElementTree as ElementTree
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
sys.path.insert(0, str(TESTS))

from support.mutation import install, mutate, source_file  # noqa: E402

LIBRARIES = (
    "scipy.optimize",
    "scipy.integrate",
    "scipy.interpolate",
    "matplotlib.pyplot",
    "pydantic",
    "llvmlite.binding",
)
PARTS = ("tests", "answers", "mutations")
STORED_ANSWERS = "tests/project/test_golden.py::test_new_processes_give_the_answers_that_are_kept"


@dataclass(frozen=True)
class Mutation:
    """A patch inside one function, and the test that must fail with the patch."""

    function: str
    old: str
    new: str
    test: str

    def check(self, package_folder: Path) -> None:
        """Raise ValueError unless the patch applies to the source."""
        path, name = source_file(self.function, package_folder)
        mutate(path.read_text(encoding="utf-8"), name, self.old, self.new)


@dataclass
class Report:
    """Results so far; the report can be written at any time."""

    rows: list[tuple[str, str, str, float]] = field(default_factory=list)  # part, result, details, seconds
    figures: list[dict[str, str]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    interrupted: bool = False

    @property
    def ok(self) -> bool:
        return not self.failures and not self.interrupted

    def text(self) -> str:
        """Return the report as Markdown."""
        lines = [
            f"# Verification: {'ok' if self.ok else 'NOT OK'}",
            "",
            *(["Interrupted: the table shows the finished parts.", ""] if self.interrupted else []),
            f"Python {platform.python_version()} on {platform.machine()}.",
            "",
            "| part | result | details | s |",
            "| --- | --- | --- | --- |",
            *(f"| {part} | {result} | {details} | {seconds:.0f} |" for part, result, details, seconds in self.rows),
            "",
            *(f"- FAILED {name}" for name in self.failures),
            "",
            "| figure | value | limit |",
            "| --- | --- | --- |",
            *(f"| {figure['what']} | {figure['value']} | {figure['limit']} |" for figure in self.figures),
        ]
        return "\n".join(lines) + "\n"


def read_mutations() -> list[Mutation]:
    """Return all mutations of the table."""
    table = tomllib.loads((TESTS / "mutations.toml").read_text(encoding="utf-8"))
    return [Mutation(**entry) for entry in table["mutation"]]


def run_tests(report: Report, folder: Path) -> tuple[str, str]:
    """Run the whole suite, the long proofs included."""
    figures, results = folder / "figures.jsonl", folder / "suite.xml"
    command = [sys.executable, "-m", "pytest", str(TESTS), "-n", "auto", "--dist", "loadfile", f"--junitxml={results}"]
    command += ["--deselect", STORED_ANSWERS]  # the part `answers` is the same
    environment = os.environ | {"PARFLEX_FIGURES": str(figures), "PARFLEX_VERIFY": "1"}
    code = subprocess.run(command, cwd=TESTS.parent, env=environment, check=False).returncode
    if figures.exists():
        lines = figures.read_text(encoding="utf-8").splitlines()
        report.figures = sorted((json.loads(line) for line in lines), key=lambda f: (f["test"], f["what"]))
    cases = list(ElementTree.parse(results).iter("testcase")) if results.exists() else []
    failed = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    report.failures += [f"{case.get('classname')}: {case.get('name')}" for case in failed]
    if code != 0 and not failed:
        report.failures.append(f"pytest ended with {code}")
    return ("passed" if code == 0 else "failed"), f"{len(cases)} cases, {len(failed)} failed"


def run_answers(report: Report, folder: Path) -> tuple[str, str]:
    """Compare the stored answers."""
    command = [sys.executable, str(TESTS / "golden.py"), "--compare"]
    run = subprocess.run(command, cwd=TESTS.parent, capture_output=True, text=True, check=False)
    last = (run.stdout.strip().splitlines() or [run.stderr.strip()[-120:]])[-1]
    if run.returncode:
        report.failures.append(f"stored answers: {last}")
    return ("passed" if run.returncode == 0 else "failed"), last


def run_pytest(tests: list[str], mutation: Mutation | None) -> str:
    """Run tests in this process, with a mutation or without; return `passed`, `failed`, or why nothing ran."""
    if mutation is not None:
        install(mutation.__dict__)
    sys.path.insert(0, str(TESTS))
    # the cache knows a program by the source on disk, which the mutation does not change
    os.environ.update({"PARFLEX_CACHE": "off", "PARFLEX_VERIFY": "1"})
    arguments = ["-x", "-p", "no:cacheprovider", "-p", "no:xdist", f"--rootdir={TESTS.parent}"]
    with redirect_stdout(io.StringIO()) as output:
        code = pytest.main([*arguments, *(str(TESTS / test) for test in tests)])
    # pytest: 0 all passed, 1 a test failed, others nothing ran
    return {0: "passed", 1: "failed"}.get(int(code), f"not run: {output.getvalue().strip()[-160:]}")


def run_mutations(report: Report, mutations: list[Mutation]) -> tuple[str, str]:
    """Run every named test without its mutation, where it must pass, and with it, where it must fail.

    Each run is a fork of this process, which has imported the libraries and nothing of the package.
    """
    package = importlib.util.find_spec("parflex")
    assert package is not None and package.origin is not None, "parflex is not installed"
    for mutation in mutations:
        mutation.check(Path(package.origin).parents[1])
    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
    for library in LIBRARIES:
        importlib.import_module(library)
    bad = []
    with multiprocessing.get_context("fork").Pool(os.cpu_count(), maxtasksperchild=1) as pool:
        unchanged = pool.apply_async(run_pytest, (list(dict.fromkeys(m.test for m in mutations)), None))
        results = [pool.apply_async(run_pytest, ([mutation.test], mutation)) for mutation in mutations]
        for count, (mutation, waiting) in enumerate(zip(mutations, results, strict=True), start=1):
            result = waiting.get()
            verdict = {"failed": "noticed", "passed": "survived"}.get(result, result)
            print(f"[{count}/{len(mutations)}] {verdict}: {mutation.function}: {mutation.old}", flush=True)
            if verdict != "noticed":
                bad.append(f"mutation of {mutation.function}: `{mutation.old}` {verdict} ({mutation.test})")
        if unchanged.get() != "passed":
            bad.append(f"named tests on the unchanged source: {unchanged.get()}")
    report.failures += bad
    return ("passed" if not bad else "failed"), f"{len(mutations)} mutations, {len(bad)} not noticed"


def main() -> int:
    """Run the parts, write the report, return the exit status."""
    parser = argparse.ArgumentParser(description="Run all tests, stored answers and mutations and write a report.")
    parser.add_argument("--output", type=Path, default=Path("out/verify.md"), help="file of the report")
    parser.add_argument("--only", choices=PARTS, help="run this part alone")
    parser.add_argument("--function", default="*", help="run mutations of these functions (parflex.closure.*)")
    arguments = parser.parse_args()
    report = Report()
    mutations = [mutation for mutation in read_mutations() if fnmatch(mutation.function, arguments.function)]
    if not mutations:
        parser.error(f"no mutation has a function '{arguments.function}': name one of {TESTS / 'mutations.toml'}")
    with tempfile.TemporaryDirectory() as name:
        parts = {
            "tests": lambda: run_tests(report, Path(name)),
            "answers": lambda: run_answers(report, Path(name)),
            "mutations": lambda: run_mutations(report, mutations),
        }
        try:
            for part in PARTS if arguments.only is None else (arguments.only,):
                start = time.monotonic()
                result, details = parts[part]()
                report.rows.append((part, result, details, time.monotonic() - start))
        except KeyboardInterrupt:
            report.interrupted = True
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(report.text(), encoding="utf-8")
    print(f"{'ok' if report.ok else 'NOT OK'}: {arguments.output}")
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main())
