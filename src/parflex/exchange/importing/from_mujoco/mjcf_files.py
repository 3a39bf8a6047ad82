"""Files of MuJoCo, looked through before its compiler reads them: what they include and name stays in the folder."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from parflex.checks import short_text
from parflex.errors import InputError
from parflex.exchange.importing.foreign_files import Element, foreign_error, inside, line_of, read_xml
from parflex.exchange.importing.from_mujoco.mjcf_compiler import mujoco_compiler

Array = np.ndarray
MAX_FILES = 2_000
MAX_ASSETS = 1_000_000_000  # bytes of meshes and pictures
MAX_REPEATED = (
    10_000  # elements beyond those written: the compiler takes 10 s for them, and four times as long for twice
)
ROOTS = ("mujoco", "mujocoinclude")
REPEATING = ("replicate", "composite", "flexcomp")


def compiled(file: str) -> tuple[Any, Any, bool]:
    """The package mujoco, the model that its compiler makes of a file, and whether some mesh has another origin."""
    elements = look_through(file)
    moved = any(element.get("refpos") or element.get("refquat") for element in elements if element.tag == "mesh")
    try:
        import mujoco
    except ImportError:
        raise InputError(
            "files of MuJoCo are read by its own compiler, which is not there", file=file, key="file", value=file,
            hint="pip install 'parflex[mujoco]'",
        ) from None  # fmt: skip
    return mujoco, mujoco_compiler().compiled(file), moved


def look_through(file: str) -> list[Element]:
    """All elements; a file that names others outside of its folder, has entities, or is too large, is refused."""
    folder = Path(file).resolve().parent
    waiting, elements = [Path(file)], []
    seen: dict[Path, Element | None] = {}
    while waiting:
        path = waiting.pop()
        if path.resolve() in seen:
            continue
        seen[path.resolve()] = None
        if len(seen) > MAX_FILES:
            raise foreign_error(f"includes more than {MAX_FILES} files", file, "include", None, "take fewer")
        root = read_xml(path)
        if root.tag not in ROOTS:
            hint = "give a file of MuJoCo; a URDF ends in .urdf"
            raise foreign_error(
                f"begins with <{short_text(root.tag)}>, not with <mujoco>", path, "mujoco", root.tag, hint
            )
        seen[path.resolve()] = root
        for element in root.iter():
            elements.append((path, element))
            if element.tag == "include" or (element.tag == "model" and element.get("file")):
                waiting.append(_included(folder, element, path))
    _refuse_expansion(folder, Path(file), seen)
    _assets(folder, elements, file)
    return [element for _, element in elements]


def _refuse_expansion(folder: Path, file: Path, roots: dict[Path, Element | None]) -> None:
    """Refuse a file whose elements are repeated too often, before the compiler makes them."""
    sizes: dict[Path, Array] = {}

    def size_of(path: Path) -> Array:
        if path.resolve() not in sizes:
            sizes[path.resolve()] = np.zeros(2)  # a file that includes itself is refused by the compiler
            root = roots.get(path.resolve())
            if root is not None:
                sizes[path.resolve()] = size(root, path)
        return sizes[path.resolve()]

    def size(element: Element, path: Path) -> Array:
        """Return the number of elements that are made, and of those that are written."""
        total = sum((size(child, path) for child in element), np.ones(2))
        if element.tag == "include":
            total = total + size_of(_included(folder, element, path))
        elif element.tag == "attach":  # the largest of the models that it may name
            total = total + max((size_of(_included(folder, model, at)) for at, model in models), key=max, default=0)
        if element.tag in REPEATING:
            total = total * [_count(element), 1]
        if total[0] - total[1] > MAX_REPEATED:
            raise foreign_error(
                f"<{element.tag}> in line {line_of(element)} repeats elements more than {MAX_REPEATED} times", path,
                element.tag, element.get("count"), "take a smaller count",
            )  # fmt: skip
        return total

    models = [
        (path, element) for path, root in roots.items() if root is not None
        for element in root.iter("model") if element.get("file")
    ]  # fmt: skip
    try:
        size_of(file)
    except RecursionError:
        raise foreign_error("includes are nested too deeply", file, "include", None, "include fewer levels") from None


def _count(element: Element) -> float:
    """Return how often an element repeats its content; the compiler refuses counts that are no numbers."""
    try:
        return math.prod(max(1.0, float(word)) for word in (element.get("count") or "").split())
    except ValueError:
        return 1.0


def _included(folder: Path, element: Element, path: Path) -> Path:
    """A file that another one includes: from the folder of the first one or, if none is there, of the other one."""
    found = _named(folder, "", element, path, element.get("file") or "")
    beside = path.resolve().parent
    if found.is_file() or beside == folder:
        return found
    return _named(folder, str(beside.relative_to(folder)), element, path, element.get("file") or "")


def _assets(folder: Path, elements: list[tuple[Path, Element]], file: str) -> None:
    """Meshes, pictures and height fields stand in the folders that the compiler is told."""
    words: dict[str, str] = {}
    for _, element in elements:
        if element.tag == "compiler":
            words |= {key: value for key, value in element.attrib.items() if key.endswith("dir") or key == "strippath"}
    strip = words.pop("strippath", "false") == "true"
    total = 0
    for path, element in elements:
        for key, name in element.attrib.items():
            if not key.startswith("file") or element.tag in ("include", "model"):
                continue
            bare = Path(name.replace("\\", "/")).name if strip else name
            own = "texturedir" if element.tag in ("texture", "skin") else "meshdir"
            asset = _named(folder, words.get(own) or words.get("assetdir", ""), element, path, bare)
            total += asset.stat().st_size if asset.is_file() else 0
    if total > MAX_ASSETS:
        raise foreign_error(
            f"names {total / 1e6:.0f} MB of meshes and pictures", file, "asset", None, "take smaller ones"
        )


def _named(folder: Path, under: str, element: Element, path: Path, name: str) -> Path:
    key = f"{element.tag} (line {line_of(element)})"
    whole = f"{under}/{name}" if under and name and not Path(name).is_absolute() else name
    return inside(folder, whole, path, key)
