"""The source as syntax trees, parsed once for all tests that read it."""

from __future__ import annotations

import ast
import gc
from functools import cache
from pathlib import Path

import parflex
from parflex.codegen.memory_pause import no_search_for_cycles

SOURCE = Path(parflex.__file__).parent


@cache
def tree_of(file: Path) -> ast.Module:
    """The tree of a file."""
    # a million nodes that stay: looked through for cycles again and again, they take four times as long
    with no_search_for_cycles():
        return ast.parse(file.read_text(encoding="utf-8"))


@cache
def modules() -> dict[str, ast.Module]:
    """Every module of the package by its path below it."""
    found = {file.relative_to(SOURCE).as_posix(): tree_of(file) for file in sorted(SOURCE.rglob("*.py"))}
    gc.freeze()
    return found


@cache
def nodes(tree: ast.Module) -> tuple[ast.AST, ...]:
    """All nodes of a module, in the order of `ast.walk`."""
    with no_search_for_cycles():
        return tuple(ast.walk(tree))
