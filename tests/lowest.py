"""The lowest versions that pyproject.toml allows: as constraints for pip, and tests in an environment that has them.

python tests/lowest.py --print                        what it would ask pip for
python tests/lowest.py --environment .venv-lowest     install them there and run the tests below; other tests may follow

Needs nothing but Python. Only what pyproject.toml names is old: what these packages bring is as new as they allow.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORE, BUILD = "", "build"
INSTALLED = (CORE, BUILD, "fe", "view", "test")  # tools and peers of other groups are always the newest
# Pinocchio is an oracle: all its wheels of version 3 and later need numpy >= 2.2, above the lowest of the core
APART = {"pin": "needs a newer numpy than the lowest"}
# what touches each package: numpy and scipy everywhere, then machine code, time loop, files, command line, pictures,
# other languages, finite elements and the viewer; none needs Pinocchio or minutes
TESTS = (
    "project/test_dependencies.py",
    "symbolic/test_expression_graph.py",
    "robotfile/test_robot_files.py",
    "cli/test_command_line.py",
    "view/test_figures.py",
    "statics/test_linear_model.py",
    "codegen/test_compiled_models.py",
    "dynamics/test_laws_of_mechanics.py",
    "simulation/test_simulation.py",
    "bodies/test_modal_files.py",
    "bodies/test_finite_elements.py",
    "view/test_viewer.py",
)


@dataclass(frozen=True)
class Requirement:
    """A line of pyproject.toml: `name>=lowest,<limit`, and where it applies."""

    group: str  # "" for the core, "build" for what builds the wheel, else the name of the extra
    name: str
    lowest: str
    limit: str | None
    marker: str

    @property
    def constraint(self) -> str:
        return f"{self.name}=={self.lowest}" + (f"; {self.marker}" if self.marker else "")


LINE = re.compile(r"(?P<name>[\w.-]+)>=(?P<lowest>[\d.]+)(,<(?P<limit>[\d.]+))?(; *(?P<marker>.+))?")


def requirements(pyproject: Path = ROOT / "pyproject.toml") -> list[Requirement]:
    """Every requirement of the project file; one that is written in another way is refused, not passed over."""
    table = tomllib.loads(pyproject.read_text(encoding="utf-8"))
    project = table["project"]
    groups = {BUILD: table["build-system"]["requires"], CORE: project["dependencies"]}
    groups |= project["optional-dependencies"]
    found = []
    for group, lines in groups.items():
        for line in lines:
            parts = LINE.fullmatch(line)
            if parts is None:
                raise ValueError(f"'{line}' is not written as name>=lowest,<limit")
            found.append(Requirement(group, parts["name"], parts["lowest"], parts["limit"], parts["marker"] or ""))
    return found


def lowest_python(pyproject: Path = ROOT / "pyproject.toml") -> tuple[int, int]:
    """The lowest Python, as (major, minor)."""
    text = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]["requires-python"]
    major, minor = re.fullmatch(r">=(\d+)\.(\d+)", text).groups()  # type: ignore[union-attr]
    return int(major), int(minor)


def constraints(wanted: list[Requirement]) -> list[str]:
    """For pip, one line a package; a package that two groups bound differently has no lowest version."""
    lines: dict[str, str] = {}
    for one in wanted:
        if lines.setdefault(one.name, one.constraint) != one.constraint:
            raise ValueError(f"{one.name} is bounded in two ways: {lines[one.name]} and {one.constraint}")
    return sorted(lines.values())


def install(environment: Path, wanted: list[Requirement]) -> Path:
    """An environment with the lowest versions and parflex as a wheel built by the lowest setuptools; its Python."""
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    python = environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    file = environment / "constraints.txt"
    file.write_text("\n".join(constraints(wanted)) + "\n", encoding="utf-8")
    pip = [str(python), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, "--upgrade", "pip"], check=True)
    names = sorted({one.name for one in wanted})
    subprocess.run([*pip, "--only-binary", ":all:", "--constraint", str(file), *names], check=True)
    shutil.rmtree(ROOT / "build", ignore_errors=True)  # modules that are gone would come back from there
    subprocess.run([*pip, "--no-build-isolation", "--no-deps", "--force-reinstall", str(ROOT)], check=True)
    shutil.rmtree(ROOT / "build", ignore_errors=True)
    subprocess.run([str(python), "-m", "pip", "check"], check=True)
    return python


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--print", action="store_true", help="print the constraints and stop")
    what.add_argument("--environment", type=Path, help="folder of the environment to make or to use again")
    parser.add_argument("tests", nargs="*", default=[str(ROOT / "tests" / name) for name in TESTS])
    arguments = parser.parse_args()
    wanted = [one for one in requirements() if one.group in INSTALLED and one.name not in APART]
    if arguments.print:
        print("\n".join(constraints(wanted)))
        return 0
    if sys.version_info[:2] != lowest_python():
        wheels = ".".join(map(str, lowest_python()))
        print(f"error: the lowest versions are those of Python {wheels}; call it with PYTHON=python{wheels}")
        return 2
    python = install(arguments.environment, wanted)
    begin = time.monotonic()
    code = subprocess.run([str(python), "-m", "pytest", *arguments.tests], cwd=ROOT, check=False).returncode
    print(f"tests at the lowest versions: {'passed' if code == 0 else 'FAILED'}, {time.monotonic() - begin:.0f} s")
    return code


if __name__ == "__main__":
    raise SystemExit(main())
