"""Files of MuJoCo, looked through before its compiler reads them: what they include and name stays in the folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from parflex.checking import shown
from parflex.errors import InputError
from parflex.exchange.importing.foreign_files import Element, foreign_error, inside, line_of, read_xml
from parflex.exchange.importing.from_mujoco.mjcf_compiler import mujoco_compiler

MAX_FILES = 2_000
MAX_ASSETS = 1_000_000_000  # bytes of meshes and pictures
ROOTS = ("mujoco", "mujocoinclude")


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
    waiting, seen, elements = [Path(file)], set(), []
    while waiting:
        path = waiting.pop()
        if path.resolve() in seen:
            continue
        seen.add(path.resolve())
        if len(seen) > MAX_FILES:
            raise foreign_error(f"includes more than {MAX_FILES} files", file, "include", None, "take fewer")
        root = read_xml(path)
        if root.tag not in ROOTS:
            hint = "give a file of MuJoCo; a URDF ends in .urdf"
            raise foreign_error(f"begins with <{shown(root.tag)}>, not with <mujoco>", path, "mujoco", root.tag, hint)
        for element in root.iter():
            elements.append((path, element))
            if element.tag == "include" or (element.tag == "model" and element.get("file")):
                waiting.append(_included(folder, element, path))
    _assets(folder, elements, file)
    return [element for _, element in elements]


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
