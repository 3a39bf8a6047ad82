"""What a loop cannot be: the part of Python that is compiled is small."""

from __future__ import annotations

import ast


class UnsupportedError(TypeError):
    """A loop has something that is not compiled."""

    def __init__(self, why: str, node: ast.AST) -> None:
        super().__init__(f"{why} (line {getattr(node, 'lineno', '?')}: {ast.unparse(node)[:80]})")
