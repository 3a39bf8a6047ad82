"""What parflex needs: ranges of versions, what is imported and who brings it, and what is loaded only where used."""

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import lru_cache
from importlib import metadata
from pathlib import Path

import lowest
import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.version import Version
from support.paths import TESTS

SOURCE = lowest.ROOT / "src" / "parflex"
REQUIREMENTS = lowest.requirements()

OURS = {"parflex", "__future__", *sys.stdlib_module_names}
# names of imports where they are not those of the packages
PACKAGES = {
    "skfem": "scikit-fem",
    "pinocchio": "pin",
    "mpl_toolkits": "matplotlib",
    "sdypy": "sdypy-EMA",
    "yaml": "pyyaml",
}
PACKAGES |= {"pydantic_core": "pydantic-core"}
# imported, but required by a package that we require and that alone knows which version fits
BROUGHT = {"pydantic-core": "pydantic", "cycler": "matplotlib", "websockets": "viser", "imageio": "viser"}
# imported inside functions that do without, or say what to install
OPTIONAL = {"casadi", "clarabel", "distributed", "mujoco", "pin", "pyarrow", "pymoo", "pyuff", "scikit-fem"}
OPTIONAL |= {"pyyaml", "sdypy-EMA", "viser"}


def as_packaging_reads() -> list[tuple[str, Requirement]]:
    """The requirements of the project file by the reader of the packaging tools, with their groups."""
    table = tomllib.loads((lowest.ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    groups = {lowest.BUILD: table["build-system"]["requires"], lowest.CORE: table["project"]["dependencies"]}
    groups |= table["project"]["optional-dependencies"]
    return [(group, Requirement(line)) for group, lines in groups.items() for line in lines]


def test_the_constraints_name_the_lowest_version_of_every_requirement():
    """Read by another reader: no line is lost, and the constraint is the lowest version that the line allows."""
    other = as_packaging_reads()
    assert len(other) == len(REQUIREMENTS) > 20
    for (group, read), ours in zip(other, REQUIREMENTS, strict=True):
        assert (group, read.name) == (ours.group, ours.name)
        bounds = {part.operator: Version(part.version) for part in read.specifier}
        assert bounds.pop(">=") == Version(ours.lowest)
        assert bounds.pop("<", None) == (Version(ours.limit) if ours.limit else None)
        assert not bounds
        assert read.marker == (Marker(ours.marker) if ours.marker else None)
        constraint = Requirement(ours.constraint)
        assert str(constraint.specifier) == f"=={ours.lowest}" and constraint.marker == read.marker
        assert read.specifier.contains(ours.lowest)


def test_all_but_the_builder_have_a_limit():
    """A new major version is tried before it is allowed; the builder runs alone, where nothing can clash with it."""
    assert [one.name for one in REQUIREMENTS if one.limit is None] == ["setuptools"]


def test_a_package_has_one_range_in_all_groups():
    lines = lowest.constraints(REQUIREMENTS)
    assert len(lines) == len({one.name for one in REQUIREMENTS})
    with pytest.raises(ValueError, match="numpy is bounded in two ways"):
        lowest.constraints([*REQUIREMENTS, lowest.Requirement("fe", "numpy", "2.0", "3", "")])


def test_what_is_installed_here_is_what_the_project_file_allows():
    """Of the core all, of the extras what is there."""
    wrong = []
    for group, read in as_packaging_reads():
        try:
            version = metadata.version(read.name)
        except metadata.PackageNotFoundError:
            if group == lowest.CORE:
                wrong.append(f"{read.name} is missing")
            continue
        here = group != lowest.BUILD and (read.marker is None or read.marker.evaluate())
        if here and not read.specifier.contains(version, prereleases=True):
            wrong.append(f"{read.name} {version} is not {read.specifier}")
    assert not wrong


@pytest.mark.parametrize("package", sorted(BROUGHT))
def test_what_another_package_brings_is_required_by_it_alone(package):
    """Require such a package through its parent alone: two ranges of one package could conflict."""
    bringer, required = BROUGHT[package], {one.name for one in REQUIREMENTS}
    assert bringer in required and package not in required
    try:
        lines = [Requirement(line) for line in metadata.requires(bringer) or []]
    except metadata.PackageNotFoundError:
        pytest.skip(f"{bringer} is not installed")
    needs = {one.name.lower(): one for one in lines if one.marker is None or one.marker.evaluate({"extra": ""})}
    assert needs[package].specifier.contains(metadata.version(package), prereleases=True)


def statements(node: ast.AST, at_once: bool = True) -> Iterator[tuple[ast.AST, bool]]:
    """All statements inside, and whether they are run when the file is imported."""
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, (ast.stmt, ast.excepthandler)):
            yield inner, at_once
            typing = isinstance(inner, ast.If) and ast.unparse(inner.test) == "TYPE_CHECKING"
            later = typing or isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef))
            yield from statements(inner, at_once and not later)


@lru_cache(maxsize=1)
def imports() -> dict[str, set[tuple[str, bool]]]:
    """Packages that the source imports: the files, and whether when the file itself is imported."""
    found: dict[str, set[tuple[str, bool]]] = {}
    for file in sorted(SOURCE.rglob("*.py")):
        for node, at_once in statements(ast.parse(file.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module or ""]
            for package in {name.split(".")[0] for name in names} - OURS:
                place = (str(file.relative_to(SOURCE)), at_once)
                found.setdefault(PACKAGES.get(package, package), set()).add(place)
    return found


@pytest.mark.verify
def test_every_import_is_required_or_brought_by_what_is_required():
    groups: dict[str, set[str]] = {}
    for one in REQUIREMENTS:
        groups.setdefault(one.name, set()).add(one.group)
    found = imports()
    assert {"numpy", "scipy", "llvmlite", "matplotlib", "click"} <= set(found)
    for package, places in found.items():
        origin = BROUGHT.get(package, package)
        assert origin in groups, f"{package} is imported in {sorted(places)} and not required"
        if lowest.CORE not in groups[origin]:
            assert origin in OPTIONAL, f"{package} is imported in {sorted(places)} and only in an extra"
            early = [file for file, at_once in places if at_once]
            assert not early, f"{package} is optional and imported at once in {early}"
    required = {one.name for one in REQUIREMENTS if one.group == lowest.CORE}
    assert required <= set(found), "a requirement that nothing imports"


QUIET = """import contextlib, io, sys
from parflex.cli.app import main

def told(*words):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        main(list(words))

def loaded():
    return [name for name in ("matplotlib", "llvmlite", "viser", "skfem") if name in sys.modules]

told("list")
told("info", "3rrr")
told("check", "3rrr")
told("pose", "3rrr", "--pose", "x=0.05")
told("inverse", "3rrr", "--acceleration", "y=2")
told("direct", "3rrr")
told("frequencies", "dualemps", "--modes", "3")
told("explain", "3rrr")
told("count", "3rrr", "inverse")
print(loaded())
told("draw", "3rrr", "-o", sys.argv[1])
print(loaded())
"""


@pytest.mark.verify
def test_answers_without_a_figure_load_neither_pictures_nor_compilers(tmp_path):
    """Numbers need neither matplotlib nor LLVM; a picture loads the first, and the second still not."""
    picture = tmp_path / "robot.svg"
    command = [sys.executable, "-c", QUIET, str(picture)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert answer.stdout.splitlines() == ["[]", "['matplotlib']"], answer.stdout + answer.stderr
    assert picture.exists()


def test_the_run_at_the_lowest_versions_names_tests_and_packages_that_are_there():
    for name in lowest.TESTS:
        text = (TESTS / name).read_text(encoding="utf-8")
        assert not any(f"import {package}" in text for package in ("pinocchio", *lowest.APART)), name
    assert {one.name for one in REQUIREMENTS} >= set(lowest.APART)
    assert {one.group for one in REQUIREMENTS} >= set(lowest.INSTALLED)


def test_the_lowest_versions_belong_to_the_lowest_python():
    command = [sys.executable, str(Path(lowest.__file__)), "--print"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = answer.stdout.split("\n")
    assert "llvmlite==0.45" in lines and not any(line.startswith("pin==") for line in lines)
    assert lowest.lowest_python() <= sys.version_info[:2]


@pytest.mark.verify
def test_a_run_is_imported_without_what_makes_programs():
    """All that a second start needs: programs are read from the disk, and SciPy is asked where numbers need it."""
    makers = ("codegen.trace", "codegen.optimise", "codegen.emit_llvm", "formulations.choice")
    idle = [*(f"parflex.{name}" for name in makers), "scipy.linalg", "scipy.sparse"]
    code = f"import sys, parflex; parflex.load, parflex.simulate; print([n for n in {idle} if n in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
