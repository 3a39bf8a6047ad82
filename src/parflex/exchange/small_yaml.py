"""A subset of YAML for lists of loops: maps, lists and plain values, nothing that makes objects.

Anchors, tags, several documents and folded texts are refused: none of the files uses them.
"""

from __future__ import annotations

import re
from typing import Any

from parflex.exchange.untrusted_files import file_error

MAX_LEVELS = 20
NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?")
QUOTED = r"\"(?:[^\"\\]|\\.)*\"|'(?:[^']|'')*'"
TOKENS = re.compile(QUOTED + r"|[\[\]{},]|:(?=\s|$)|[^\[\]{},:\s](?:[^\[\]{},:]|:(?!\s))*")
WORDS = {"null": None, "~": None, "": None, "true": True, "false": False}
REFUSED = {"&": "an anchor", "*": "a reference", "!": "a tag", "|": "a text over lines", ">": "a text over lines",
           "%": "a directive", "@": "a reserved letter", "`": "a reserved letter"}  # fmt: skip


def read_yaml(text: str, file: str, key: str = "loops") -> Any:
    """The value of a document."""
    return _Document(text, file, key).read()


class _Document:
    """Lines without comments, and the place in them."""

    def __init__(self, text: str, file: str, key: str) -> None:
        self.file, self.key, self.levels = file, key, 0
        self.lines: list[tuple[int, int, str]] = []  # number, indent, text
        for number, line in enumerate(text.splitlines(), 1):
            bare = _without_comment(line)
            if not bare.strip() or (bare.strip() == "---" and not self.lines):
                continue
            if bare.strip() in ("---", "..."):
                raise self.bad(number, "a second document", "keep one")
            if "\t" in bare[: len(bare) - len(bare.lstrip())]:
                raise self.bad(number, "a tab in front", "indent with spaces")
            self.lines.append((number, len(bare) - len(bare.lstrip(" ")), bare.strip()))
        self.at = 0

    def bad(self, number: int, what: str, hint: str) -> Exception:
        """What is wrong in a line."""
        return file_error(f"line {number} has {what}", self.file, self.key, None, hint)

    def read(self) -> Any:
        if not self.lines:
            return None
        value = self.block(self.lines[0][1])
        if self.at < len(self.lines):
            raise self.bad(self.lines[self.at][0], "another indent than the lines before", "line up the keys")
        return value

    def block(self, indent: int) -> Any:
        """A map, a list or a value whose lines begin at an indent."""
        number, _, text = self.lines[self.at]
        self.levels += 1
        if self.levels > MAX_LEVELS:
            raise self.bad(number, "too many levels", f"write {MAX_LEVELS} at most")
        if text.startswith("- ") or text == "-":
            value: Any = self._list(indent)
        elif _split_key(text) is not None:
            value = self._map(indent)
        else:
            value = self._value(text, number)
        self.levels -= 1
        return value

    def _list(self, indent: int) -> list[Any]:
        found = []
        while self.at < len(self.lines):
            number, here, text = self.lines[self.at]
            if here != indent or not (text.startswith("- ") or text == "-"):
                break
            rest = text[1:].strip()
            if not rest:
                self.at += 1
                found.append(self._below(indent))
                continue
            self.lines[self.at] = (number, here + len(text) - len(rest), rest)
            found.append(self.block(here + len(text) - len(rest)))
        return found

    def _map(self, indent: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while self.at < len(self.lines):
            number, here, text = self.lines[self.at]
            pair = _split_key(text) if here == indent else None
            if pair is None:
                break
            word, rest = _unquoted(pair[0]), pair[1]
            if word in found:
                raise self.bad(number, f"the key '{word}' a second time", "keep one")
            if rest:
                found[word] = self._value(rest, number)
            else:
                self.at += 1
                found[word] = self._below(indent, lists=True)
        return found

    def _below(self, indent: int, lists: bool = False) -> Any:
        """What stands further in; a list may stand as far out as its key."""
        if self.at >= len(self.lines):
            return None
        _, here, text = self.lines[self.at]
        if here > indent or (lists and here == indent and text.startswith("-")):
            return self.block(here)
        return None

    def _value(self, text: str, number: int) -> Any:
        """A value that begins in this line; one in brackets goes on until they close."""
        self.at += 1
        if text[0] in "[{":
            parts = [text]
            while not _closed(parts):
                if self.at >= len(self.lines):
                    raise self.bad(number, "a bracket that is never closed", "is the file cut off?")
                parts.append(self.lines[self.at][2])
                self.at += 1
            flow = _Flow(" ".join(parts), lambda what: self.bad(number, what, "write [a, b] or { key: value }"))
            return flow.whole()
        if text[0] in REFUSED:
            raise self.bad(number, REFUSED[text[0]], "write the values themselves")
        return scalar(text)


class _Flow:
    """Lists and maps in brackets."""

    def __init__(self, text: str, bad: Any) -> None:
        self.tokens = TOKENS.findall(text)
        self.bad, self.at = bad, 0

    def whole(self) -> Any:
        value = self._value(0)
        if self.at < len(self.tokens):
            raise self.bad("something behind a bracket")
        return value

    def _next(self) -> str:
        if self.at >= len(self.tokens):
            raise self.bad("a bracket that is never closed")
        self.at += 1
        return self.tokens[self.at - 1].strip()

    def _value(self, level: int) -> Any:
        token = self._next()
        if level > MAX_LEVELS:
            raise self.bad("too many brackets")
        if token == "[":
            return self._items("]", level, lambda: self._value(level + 1))
        if token == "{":
            return dict(self._items("}", level, lambda: self._pair(level + 1)))
        if token in ("]", "}", ",", ":"):
            raise self.bad(f"a '{token}' without a value before it")
        if token[0] in REFUSED:
            raise self.bad(REFUSED[token[0]])
        return scalar(token)

    def _items(self, end: str, level: int, read: Any) -> list[Any]:
        found: list[Any] = []
        while True:
            if self.at < len(self.tokens) and self.tokens[self.at] == end:
                self.at += 1
                return found
            found.append(read())
            token = self._next()
            if token == end:
                return found
            if token != ",":
                raise self.bad(f"'{token[:20]}' where a comma or '{end}' is expected")

    def _pair(self, level: int) -> tuple[str, Any]:
        word = _unquoted(self._next())
        if self._next() != ":":
            raise self.bad(f"'{word[:20]}' without a ':'")
        return word, self._value(level)


def scalar(text: str) -> Any:
    """A word, a number, a truth value or nothing."""
    if text[0] in "\"'":
        return _unquoted(text)
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    if NUMBER.fullmatch(text):
        return int(text) if re.fullmatch(r"[-+]?\d{1,18}", text) else float(text)
    return text


def _unquoted(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] == '"':
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    return text


def _split_key(text: str) -> tuple[str, str] | None:
    """Key and what stands behind its colon."""
    match = re.match(rf"({QUOTED}|[^\s\[\]{{}},\"'#][^\[\]{{}},\"'#:]*?)\s*:(?:\s+(.*))?$", text)
    return (match[1], (match[2] or "").strip()) if match else None


def _without_comment(line: str) -> str:
    quote = ""
    for k, letter in enumerate(line):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'" and (k == 0 or line[k - 1] in " [{,:-"):
            quote = letter
        elif letter == "#" and (k == 0 or line[k - 1].isspace()):
            return line[:k].rstrip()
    return line.rstrip()


def _closed(parts: list[str]) -> bool:
    """Whether as many brackets close as open, outside of quotes."""
    bare = re.sub(QUOTED, "", " ".join(parts))
    return bare.count("[") + bare.count("{") <= bare.count("]") + bare.count("}")
