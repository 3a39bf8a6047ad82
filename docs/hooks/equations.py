"""Typeset equations: an extension of Python-Markdown that turns TeX into MathML, which browsers show without a script.

GitHub shows the same blocks (three backquotes and `math`) and the same inline formulas (a dollar sign and a backquote).
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from typing import Any

from latex2mathml.converter import convert, convert_to_element
from markdown import Markdown
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor
from markdown.preprocessors import Preprocessor

BLOCK = re.compile(r"^```math\n(.*?)^```$", flags=re.M | re.S)
TAG = re.compile(r"\s*\\tag\{(\d+)\}")
BEFORE_FENCES, BEFORE_BACKQUOTES = 30, 200  # priorities: fenced code has 25, inline code 190


class Equations(Preprocessor):
    """Displayed equations, with their numbers at the margin."""

    def run(self, lines: list[str]) -> list[str]:
        """Replace the blocks of a page."""
        return BLOCK.sub(lambda match: self.md.htmlStash.store(equation(match[1])), "\n".join(lines)).split("\n")


class Formulas(InlineProcessor):
    """Formulas within a line."""

    def handleMatch(self, m: re.Match[str], data: str) -> tuple[ElementTree.Element, int, int]:  # type: ignore[override]
        """Return the formula as an element of the page."""
        return convert_to_element(m[1]), m.start(0), m.end(0)


def equation(tex: str) -> str:
    """Return a displayed equation in MathML."""
    number = TAG.search(tex)
    label = f'<span class="number">({number[1]})</span>' if number else ""
    return f'<div class="equation">{convert(TAG.sub("", tex).strip(), display="block")}{label}</div>'


class EquationExtension(Extension):
    """Both kinds of equations."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Register both."""
        md.preprocessors.register(Equations(md), "equations", BEFORE_FENCES)
        md.inlinePatterns.register(Formulas(r"\$`([^`\n]+)`\$", md), "formulas", BEFORE_BACKQUOTES)


def makeExtension(**options: Any) -> EquationExtension:
    """Return the extension; the name is that which Python-Markdown looks for."""
    return EquationExtension(**options)
