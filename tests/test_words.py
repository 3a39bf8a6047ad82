"""The field's terms in messages, docstrings, help texts, robot files and documentation: words that are not used."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from source_trees import tree_of

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "parflex"

# word: (what to use instead, uses of it that are right, each with its reason)
WORDS: dict[str, tuple[str, tuple[str, ...]]] = {
    r"bends?": (
        "flexible, deforms, deflects",
        (
            r"plates can bend with s\b",  # bending without shear, as a deformation of its own
        ),
    ),
    r"led|leads|leading|lead (?:a|all|an|every|it|motors|that|the|them|through|what)": (
        "driven, prescribed",
        (
            r"leads to\b",  # to have as a consequence
            r"leading (?:axis|axes|dimension|pivots?|order|zeros?)",  # the first of several
            r'class="lead"',  # a name of a stylesheet
        ),
    ),
    r"wanted|hoped": ("reference, requested, prescribed; in tables what was measured", ()),
    r"doors?": ("interface, public API", ()),
    r"mend(?:s|ed|ing)?": ("fix, correct", ()),
    r"rooms?": ("package, module", (r"mak\w+ room for",)),  # an idiom
    r"look(?:s|ed|ing)? at": ("check, validate, read", ()),
    r"(?:is|are|was|were) to be": ("must be", ()),
    r"stands? still": ("is locked, is fixed, is at rest", ()),
    r"gives? way": ("deforms", ()),
    r"nobody|somebody": ("a user; say what is done", ()),
    r"in the same words|with the same words|words of its own": ("keys, arguments, names", ()),
    r"(?<!there )is no (?!longer\b|more\b|less\b|other\b|worse\b|such\b|better\b)\w+": ("is not a ...", ()),
    r"has not (?:a|an|as|three|one|two)": ("does not have", ()),
    r"will do": ("suffices, use", ()),
}
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
PHRASE_ONLY_IN_STRINGS = "is no"


@cache
def texts() -> tuple[tuple[str, int, str, str], ...]:
    """(file, line, kind, text) of everything that is read by people."""
    found: list[tuple[str, int, str, str]] = []
    for folder in ("src/parflex", "benchmarks", "examples", "docs/hooks"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            found += [(name, line, kind, text) for line, kind, text in of_source(path.read_text(), tree_of(path))]
    pages = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "CHANGELOG.md"]
    tables = [*PACKAGE.rglob("*.toml"), *(ROOT / "examples").glob("*.toml")]
    for path in sorted(pages) + sorted(tables):
        kind, name = "page" if path.suffix == ".md" else "table", path.relative_to(ROOT).as_posix()
        found += [(name, k, kind, line) for k, line in enumerate(path.read_text().splitlines(), 1)]
    return tuple(found)


def of_source(source: str, tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """Docstrings, other strings (of f-strings what is not computed) and comments of a module."""
    nodes = list(ast.walk(tree))
    inner = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    documented = [node for node in nodes if isinstance(node, DOCUMENTED) and node.body]
    docs = {id(node.body[0].value) for node in documented if isinstance(node.body[0], ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            parts = [str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values]
            yield node.lineno, "string", "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
            yield node.lineno, "docstring" if id(node) in docs else "string", node.value
    for k, line in enumerate(source.splitlines(), 1):
        if "# " in line:
            yield k, "comment", line[line.index("# ") :]


def uses(word: str, text: str) -> list[str]:
    """What of a text uses a word in another way than those that are allowed."""
    _, allowed = WORDS[word]
    for exception in allowed:
        text = re.sub(exception, "", text)
    return [match[0] for match in re.finditer(rf"(?<![\w.`-])(?:{word})(?![\w`]|[-_.]\w)", text, re.IGNORECASE)]


@pytest.mark.parametrize("word", WORDS)
def test_words_that_are_not_the_fields_are_absent(word):
    kinds = {"string"} if PHRASE_ONLY_IN_STRINGS in word else {"string", "docstring", "comment", "page", "table"}
    found = [
        f"{file}:{line}: '{use}'" for file, line, kind, text in texts() if kind in kinds for use in uses(word, text)
    ]
    assert not found, f"use: {WORDS[word][0]}\n" + "\n".join(found)


def test_messages_of_the_library_name_no_flags_of_the_command_line():
    found = [
        f"{file}:{line}: {match[0]}"
        for file, line, kind, text in texts()
        if kind == "string" and file.startswith("src/parflex/") and "/cli/" not in file
        for match in FLAG.finditer(text)
    ]
    assert not found, found


@pytest.mark.parametrize(
    ("word", "text", "used"),
    [
        (r"bends?", "a robot that bends", True),
        (
            r"led|leads|leading|lead (?:a|all|an|every|it|motors|that|the|them|through|what)",
            "the platform is led along a path",
            True,
        ),
        (
            r"led|leads|leading|lead (?:a|all|an|every|it|motors|that|the|them|through|what)",
            "a leading axis is a batch, which leads to arrays",
            False,
        ),
        (r"rooms?", "one factor makes room for the next", False),
        (r"mend(?:s|ed|ing)?", "a recommended value", False),
        (r"doors?", "every door reads efforts", True),
    ],
)
def test_the_test_of_words_itself_finds_what_it_should(word, text, used):
    assert bool(uses(word, text)) is used
