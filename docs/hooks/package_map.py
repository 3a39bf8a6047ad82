"""The map of the packages: what each is for, and which it imports, read from the source.

`python docs/hooks/package_map.py` writes docs/pictures/packages.svg; a test keeps the picture and the source the same.
As a hook of mkdocs it puts a table of sub-packages in place of a mark.
"""

from __future__ import annotations

import ast
import tomllib
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCE = ROOT / "src" / "parflex"
PICTURE = ROOT / "docs" / "pictures" / "packages.svg"
MARK = "<!-- the packages are put here -->"
ROW, LEFT, NAME, TEXT, CELL = 44, 16, 128, 660, 22
TOP = 118  # for the names above the columns


@dataclass(frozen=True)
class Package:
    """A package, or a module that stands alone: its first sentence, its sub-packages, and what it imports."""

    name: str
    sentence: str
    parts: tuple[tuple[str, int], ...]  # sub-packages with the number of their modules
    modules: int
    imports: frozenset[str]


def layers() -> list[str]:
    """The packages from the top down, as the contract in pyproject.toml orders them."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    rows = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [name.strip().removeprefix("parflex.") for row in rows for name in row.split("|")]


def sentence(path: Path) -> str:
    """The first sentence of a module's docstring."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return " ".join(text.split("\n\n")[0].split())


def modules(folder: Path) -> list[Path]:
    """The modules of a package, without those of its sub-packages and without its `__init__`."""
    return sorted(path for path in folder.glob("*.py") if path.stem != "__init__")


def packages_in(folder: Path) -> list[Path]:
    """The sub-packages of a package."""
    return sorted(path.parent for path in folder.glob("*/__init__.py"))


def imported(path: Path) -> set[str]:
    """Modules of parflex that a module names in its imports, in functions too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("parflex"):
            inside = [node.module, *(f"{node.module}.{name.name}" for name in node.names)]
            found |= {name.removeprefix("parflex.") for name in inside}
    return found


def package(name: str) -> Package:
    """One package of the map."""
    folder = SOURCE / name
    files = sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]
    imports = {module.split(".")[0] for file in files for module in imported(file)} - {name}
    first = sentence(folder / "__init__.py" if folder.is_dir() else files[0])
    parts = tuple((part.name, len(modules(part))) for part in packages_in(folder)) if folder.is_dir() else ()
    return Package(name, first, parts, len(modules(folder)) if folder.is_dir() else 1, frozenset(imports))


def svg() -> str:
    """The picture: a row for each package from the top down, and dots for what it imports."""
    found = [package(name) for name in layers()]
    width, height = LEFT + NAME + TEXT + CELL * len(found) + 16, TOP + ROW * len(found) + 12
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
        ' font-family="sans-serif" font-size="13">',
        "<title>Packages of parflex: each imports only from those below it</title>",
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{LEFT}" y="26" font-size="17" font-weight="bold">Packages of parflex</text>',
        f'<text x="{LEFT}" y="46" fill="#555">Each imports only from those below it. Numbers: modules.</text>',
        f'<text x="{LEFT}" y="64" fill="#555">A dot: the package of the row imports the one of the column.</text>',
    ]
    start = LEFT + NAME + TEXT
    for column, other in enumerate(found):
        x = start + CELL * column + CELL / 2
        lines.append(f'<text transform="translate({x + 4:g} {TOP - 8}) rotate(-60)" fill="#333">{other.name}</text>')
    for row, one in enumerate(found):
        y = TOP + ROW * row
        shade = "#f2f5f9" if row % 2 == 0 else "#ffffff"
        lines.append(f'<rect x="{LEFT - 6}" y="{y}" width="{width - 2 * LEFT + 12}" height="{ROW}" fill="{shade}"/>')
        count = f' <tspan fill="#777" font-weight="normal">{one.modules}</tspan>' if one.modules > 1 else ""
        lines.append(f'<text x="{LEFT}" y="{y + 18}" font-weight="bold">{one.name}{count}</text>')
        lines.append(f'<text x="{LEFT + NAME}" y="{y + 18}">{escape(shortened(one.sentence))}</text>')
        if one.parts:
            parts = "   ".join(f"{name} {number}" for name, number in one.parts)
            lines.append(f'<text x="{LEFT + NAME}" y="{y + 36}" fill="#2a5d9f" xml:space="preserve">{parts}</text>')
        for column, other in enumerate(found):
            x = start + CELL * column + CELL / 2
            if other.name in one.imports:
                lines.append(f'<circle cx="{x:g}" cy="{y + ROW / 2:g}" r="5" fill="#2a5d9f"/>')
            elif column == row:
                lines.append(f'<circle cx="{x:g}" cy="{y + ROW / 2:g}" r="2" fill="#bbb"/>')
    return "\n".join([*lines, "</svg>"]) + "\n"


def shortened(text: str, limit: int = 100) -> str:
    """A sentence that fits its row, cut between words."""
    text = text.split(". ")[0].rstrip(".")
    return text if len(text) <= limit else text[: text.rindex(" ", 0, limit)] + " ..."


def table() -> str:
    """All packages with their sub-packages, what each is for, and the modules that others import from it."""
    lines = ["| package | what is in it | imported from outside |", "| --- | --- | --- |"]
    users = {path: imported(path) for path in SOURCE.rglob("*.py")}
    for folder in sorted(path.parent for path in SOURCE.rglob("__init__.py")):
        name = ".".join(folder.relative_to(SOURCE).parts)
        if not name:
            continue
        entries = [
            path.stem
            for path in modules(folder)
            if any(f"{name}.{path.stem}" in seen for user, seen in users.items() if user.parent != folder)
        ]
        shown = ", ".join(f"`{entry}`" for entry in entries)
        lines.append(f"| `{name}` | {sentence(folder / '__init__.py')} | {shown} |")
    return "\n".join(lines) + "\n"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """What mkdocs calls for each page."""
    return markdown.replace(MARK, table()) if MARK in markdown else markdown


if __name__ == "__main__":
    PICTURE.write_text(svg(), encoding="utf-8")
