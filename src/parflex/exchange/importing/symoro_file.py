"""Files of SYMORO (`.par`) as they stand: lists of numbers and expressions, one entry for each frame, joint or link."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from parflex.checks import short_text
from parflex.exchange.importing.foreign_files import foreign_error, read_text
from parflex.robotfile.values import FUNCTIONS, NAMES

GEOMETRY = ("gamma", "b", "alpha", "d", "theta", "r")
BODY = ("M", "MX", "MY", "MZ", "XX", "XY", "XZ", "YY", "YZ", "ZZ")
TERMS = ("IA", "FV", "FS")
FORCES = ("FX", "FY", "FZ", "CX", "CY", "CZ")
BASE = ("W0", "WP0", "V0", "VP0")
WORDS = {word.lower(): word for word in ("ant", "sigma", "mu", "eta", "gamma", "alpha", "theta")}
MANY = 1000  # frames
PYTHON = {"Pi": "pi", "Sin": "sin", "Cos": "cos", "Tan": "tan", "Sqrt": "sqrt", "ArcTan": "atan", "Abs": "abs"}
SYMBOL = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class SymoroFile:
    """Counts of links and joints, whether the base is free, and lists with one text for each entry."""

    file: str
    name: str
    links: int
    joints: int
    floating: bool
    mobile: bool
    lists: dict[str, list[str]]

    def entry(self, key: str, number: int) -> str:
        """An entry of frame, joint or link `number`, from 1; the base is 0 where it has a body."""
        values = self.lists.get(key, [])
        heavy = self.floating or self.mobile
        place = number if heavy and key in (*BODY, *TERMS, *FORCES) else number - 1
        return values[place] if 0 <= place < len(values) else "0"

    @property
    def frames(self) -> int:
        """Frames: one for each joint, and one more for each that is cut."""
        return 2 * self.joints - self.links


def symbols(text: str) -> list[str]:
    """Names in an expression that are no functions or numbers."""
    return [name for name in SYMBOL.findall(_bare(text)) if name not in FUNCTIONS and name not in NAMES]


def _bare(text: str) -> str:
    """Without exponents of numbers, which look like names."""
    return re.sub(r"(?<![\w.])(\d+\.?\d*|\.\d+)[eE][-+]?\d+", "1", text)


def read_symoro(file: str) -> SymoroFile:
    """Read a file."""
    text = read_text(file)
    title = re.search(r"Robotname\s*=\s*'([^']*)'", text)
    if text.count("(*") != text.count("*)"):
        raise foreign_error("has a comment that does not end", file, "file", None, "is the file cut off?")
    bare = re.sub(r"\(\*.*?\*\)", " ", text, flags=re.DOTALL)
    scalars = dict(re.findall(r"^\s*(\w+)\s*=\s*(\w+)\s*$", bare, flags=re.MULTILINE))
    lists: dict[str, list[str]] = {}
    for key, values in re.findall(r"(\w+)\s*=\s*\{([^{}]*)\}", bare):
        word = WORDS.get(key.lower(), {"B": "b", "D": "d", "R": "r", "K": "k"}.get(key, key))
        if word in lists:
            raise foreign_error(f"has the list '{word}' twice", file, word, word, "keep one")
        lists[word] = [_expression(one, word, file) for one in _parts(values)]
    if bare.count("{") != bare.count("}"):
        raise foreign_error("has a list that does not end", file, "file", None, "is the file cut off?")
    links, joints = (_count(scalars, key, file) for key in ("NL", "NJ"))
    found = SymoroFile(
        file,
        (title[1].strip() if title else "") or Path(file).stem,
        links,
        joints,
        _mark(scalars, "is_floating"),
        _mark(scalars, "is_mobile"),
        lists,
    )
    _check_lengths(found)
    return found


def _count(scalars: dict[str, str], key: str, file: str) -> int:
    text = scalars.get(key, "")
    if not re.fullmatch(r"\d{1,4}", text) or not 1 <= int(text) <= MANY:
        what = f"'{key}' is not a number from 1 to {MANY}" if text else f"has no '{key}'"
        raise foreign_error(what, file, key, text or None, "is this a file of SYMORO? write NL = 6, NJ = 6")
    return int(text)


def _mark(scalars: dict[str, str], key: str) -> bool:
    return scalars.get(key, "0").lower() in ("1", "true")


def _parts(values: str) -> list[str]:
    """Entries between commas, not those within brackets."""
    parts, depth, start = [], 0, 0
    for k, letter in enumerate(values):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            parts.append(values[start:k])
            start = k + 1
    return [*parts, values[start:]]


def _expression(text: str, key: str, file: str) -> str:
    """An expression in the words of robot files."""
    plain = " ".join(text.split()).replace("^", "**").replace("[", "(").replace("]", ")")
    for word, ours in PYTHON.items():
        plain = re.sub(rf"\b{word}\b", ours, plain)
    if not plain or not re.fullmatch(r"[\w\s.+\-*/(),]*", plain):
        raise foreign_error(
            f"'{short_text(text.strip())}' in the list '{key}' is not an expression", file, key, text.strip(),
            "write a number, a symbol or arithmetic",
        )  # fmt: skip
    return plain


def _check_lengths(robot: SymoroFile) -> None:
    heavy = robot.floating or robot.mobile
    if robot.joints < robot.links:
        raise foreign_error(
            f"has {robot.links} links on {robot.joints} joints", robot.file, "NJ", robot.joints, "give NJ at least NL"
        )
    wanted = dict.fromkeys(("ant", "sigma", *GEOMETRY, "mu"), robot.frames)
    wanted |= dict.fromkeys((*BODY, *TERMS), robot.links + heavy)
    for key, count in wanted.items():
        values = robot.lists.get(key)
        if values is None and key in ("ant", "sigma"):
            raise foreign_error(f"has no list '{key}'", robot.file, key, None, f"give {count} entries")
        if values is not None and len(values) != count:
            raise foreign_error(
                f"the list '{key}' has {len(values)} entries, not {count}", robot.file, key, len(values),
                "give one for each frame, or for each link",
            )  # fmt: skip
    for number in range(1, robot.frames + 1):
        ant, sigma = robot.entry("ant", number), robot.entry("sigma", number)
        if not re.fullmatch(r"\d{1,4}", ant) or int(ant) >= max(number, robot.links + 1):
            message = f"frame {number} hangs on '{short_text(ant)}'"
            raise foreign_error(message, robot.file, "ant", ant, "name the base, 0, or a frame")
        if sigma not in ("0", "1", "2"):
            message = f"a joint with sigma '{short_text(sigma)}' is not known"
            raise foreign_error(message, robot.file, "sigma", sigma, "write 0 (turns), 1 (slides) or 2 (fixed)")
