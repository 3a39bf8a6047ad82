"""Errors put into the source: replace text in one function while its module is imported."""

import ast
import linecache
import sys
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType


def mutate(source: str, qualified_name: str, old: str, new: str) -> str:
    """Return the source with `old` replaced within one function; raise ValueError unless `old` occurs once there."""
    body: list[ast.stmt] = ast.parse(source).body
    for name in qualified_name.split("."):
        node = next((n for n in body if isinstance(n, ast.FunctionDef | ast.ClassDef) and n.name == name), None)
        if node is None:
            raise ValueError(f"no function {qualified_name}")
        body = node.body
    lines = source.splitlines(keepends=True)
    text = "".join(lines[node.lineno - 1 : node.end_lineno])
    if text.count(old) != 1:
        raise ValueError(f"{qualified_name} contains {text.count(old)} times: {old}")
    return "".join([*lines[: node.lineno - 1], text.replace(old, new), *lines[node.end_lineno :]])


def source_file(function: str, package_folder: Path) -> tuple[Path, str]:
    """Return the file of the module in a dotted path, and the name inside the module."""
    names = function.split(".")
    for count in range(len(names) - 1, 0, -1):
        path = package_folder.joinpath(*names[:count]).with_suffix(".py")
        if path.is_file():
            return path, ".".join(names[count:])
    raise ValueError(f"no module contains {function}")


class _Loader(SourceFileLoader):
    mutation: dict[str, str]
    qualified_name: str

    def get_code(self, fullname: str) -> CodeType:
        source = self.get_source(fullname) or ""
        changed = mutate(source, self.qualified_name, self.mutation["old"], self.mutation["new"])
        # time loops are compiled from what `inspect` reads; without a time of change the file is not read again
        linecache.cache[self.path] = (len(changed), None, changed.splitlines(keepends=True), self.path)
        return compile(changed, self.path, "exec")


class _Finder:
    def __init__(self, mutation: dict[str, str]) -> None:
        self.mutation = mutation

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        function = self.mutation["function"]
        if not function.startswith(name + "."):
            return None
        spec = PathFinder.find_spec(name, path)  # type: ignore[arg-type]
        if spec is None or not spec.origin or spec.submodule_search_locations is not None:
            return None  # a package on the way to the module
        loader = _Loader(name, spec.origin)
        loader.mutation, loader.qualified_name = self.mutation, function[len(name) + 1 :]
        spec.loader = loader
        return spec


def install(mutation: dict[str, str]) -> None:
    """Apply a mutation (function, old, new) to modules that this process imports from now on."""
    sys.meta_path.insert(0, _Finder(mutation))
