"""The map of the packages in the layers of their import contract, read from pyproject.toml and the source.

`python docs/hooks/package_map.py` writes docs/pictures/packages.svg; a test keeps the picture and the source the same.
"""

from __future__ import annotations

import ast
import tomllib
from dataclasses import dataclass
from html import escape
from pathlib import Path
from textwrap import wrap

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCE = ROOT / "src" / "parflex"
PICTURE = ROOT / "docs" / "pictures" / "packages.svg"
GROUPS = {  # the uppermost package of each group
    "cli": "interfaces",
    "identification": "studies",
    "simulation": "time",
    "codegen": "compiler",
    "dynamics": "models",
    "robot": "mechanism",
    "robotfile": "data",
    "jobs": "foundations",
}
WIDTH, LEFT, TOP, GAP = 1000, 116, 66, 8  # the column on the left holds the names of the groups
LOW, LINE, BESIDE = 30, 16, 148  # height of a row with one package, of a line, and the width of its name
CHARACTER = 6.4  # mean width of a letter of the sentences


@dataclass(frozen=True)
class Package:
    """A package, or a module that stands alone: its first sentence and the number of its modules."""

    name: str
    sentence: str
    modules: int


def layers() -> list[list[str]]:
    """The packages of each layer from the top down, as the contract in pyproject.toml orders them."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    contracts = tomllib.loads(text)["tool"]["importlinter"]["contracts"]
    rows = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [[name.strip().removeprefix("parflex.") for name in row.split("|")] for row in rows]


def sentence(path: Path) -> str:
    """The first sentence of a module's docstring."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return " ".join(text.split("\n\n")[0].split())


def modules(folder: Path) -> list[Path]:
    """The modules of a package, without those of its sub-packages and without its `__init__`."""
    return sorted(path for path in folder.glob("*.py") if path.stem != "__init__")


def package(name: str) -> Package:
    """One package of the map, with its sub-packages."""
    folder = SOURCE / name
    if not folder.is_dir():
        return Package(name, sentence(folder.with_suffix(".py")), 1)
    count = sum(path.stem != "__init__" for path in folder.rglob("*.py"))
    return Package(name, sentence(folder / "__init__.py"), count)


def box(item: Package, x: float, y: float, width: float, height: float, sentence: list[str]) -> list[str]:
    """A package: its name and the number of its modules, and its sentence beside or below these."""
    count = f' <tspan fill="#777" font-weight="normal">{item.modules}</tspan>' if item.modules > 1 else ""
    left, first = (x + BESIDE, y + 20) if height == LOW else (x + 10, y + 36)
    return [
        f'<rect x="{x:g}" y="{y}" width="{width:g}" height="{height}" rx="4" fill="white" stroke="#9db3d0"/>',
        f'<text x="{x + 10:g}" y="{y + 20}" font-weight="bold">{item.name}{count}</text>',
        *(
            f'<text x="{left:g}" y="{first + LINE * k:g}" font-size="12">{escape(text)}</text>'
            for k, text in enumerate(sentence)
        ),
    ]


def svg() -> str:
    """The picture: a row for each layer from the top down, in groups."""
    lines, y = [], TOP
    for row in layers():
        if row[0] in GROUPS:
            y += GAP if y > TOP else 0
            lines.append(f'<text x="16" y="{y + 20}" fill="#2a5d9f" font-weight="bold">{GROUPS[row[0]]}</text>')
            lines.append(f'<line x1="16" y1="{y - 6}" x2="{WIDTH - 16}" y2="{y - 6}" stroke="#2a5d9f"/>')
        items = [package(name) for name in row]
        width = (WIDTH - 16 - LEFT - GAP * (len(row) - 1)) / len(row)
        room = width - (BESIDE if len(row) == 1 else 10) - 6
        sentences = [wrap(item.sentence.rstrip("."), int(room / CHARACTER)) for item in items]
        height = LOW if len(row) == 1 else LOW + LINE * max(map(len, sentences))
        for k, (item, sentence) in enumerate(zip(items, sentences, strict=True)):
            lines += box(item, LEFT + k * (width + GAP), y, width, height, sentence)
        y += height + GAP
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 4}"'
        ' font-family="sans-serif" font-size="13">',
        "<title>Packages of parflex: each imports only from those below it</title>",
        f'<rect width="{WIDTH}" height="{y + 4}" fill="white"/>',
        '<text x="16" y="26" font-size="17" font-weight="bold">Packages of parflex</text>',
        '<text x="16" y="46" fill="#555">Each imports only from the rows below it. Numbers: modules.</text>',
        *lines,
        "</svg>\n",
    ])  # fmt: skip


def pictures() -> dict[Path, str]:
    """Return the picture and its text."""
    return {PICTURE: svg()}


if __name__ == "__main__":
    for path, text in pictures().items():
        path.write_text(text, encoding="utf-8")
