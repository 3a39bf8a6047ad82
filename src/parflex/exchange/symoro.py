"""SYMORO import."""

from __future__ import annotations

import keyword
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parflex.checks import short_text
from parflex.errors import ParflexError
from parflex.exchange.imported_tables import NOTE, ImportedTables, allowed, is_stated
from parflex.exchange.untrusted_files import file_error, read_text
from parflex.robotfile.values import FUNCTIONS, NAMES, evaluate

JOINTS = {"0": "revolute", "1": "prismatic", "2": "fixed"}

VARIABLE = {"0": "theta", "1": "r"}

IDENTITY = ["1", "0", "0", "0", "0", "1", "0", "0", "0", "0", "1", "0", "0", "0", "0", "1"]

GEOMETRY = ("gamma", "b", "alpha", "d", "theta", "r")

BODY = ("M", "MX", "MY", "MZ", "XX", "XY", "XZ", "YY", "YZ", "ZZ")

TERMS = ("IA", "FV", "FS")

FORCES = ("FX", "FY", "FZ", "CX", "CY", "CZ")

BASE = ("W0", "WP0", "V0", "VP0")

WORDS = {word.lower(): word for word in ("ant", "sigma", "mu", "eta", "gamma", "alpha", "theta")}

MANY = 1000  # frames

PYTHON = {"Pi": "pi", "Sin": "sin", "Cos": "cos", "Tan": "tan", "Sqrt": "sqrt", "ArcTan": "atan", "Abs": "abs"}

SYMBOL = re.compile(r"[A-Za-z_]\w*")


def symoro_robot(file: str) -> ImportedTables:
    """The tables of a file of SYMORO."""
    return _SymoroTables(read_symoro(file)).whole()


class _SymoroTables:
    """Frame `j` is called `j`; cut joints become closures between two fixed frames."""

    def __init__(self, source: SymoroFile) -> None:
        self.source = source
        self.robot = ImportedTables(allowed(source.name) or "robot", Path(source.file).name)
        self.own = self._variables()

    def whole(self) -> ImportedTables:
        source, robot = self.source, self.robot
        robot.gravity = [self.number(text, "G") for text in source.lists.get("G", ["0"] * 3)[:3]]
        if source.floating:
            name = robot.names.give("0")
            robot.frame.append({"name": name, "joint": "free"} | self._body(0))
        for number in range(1, source.frames + 1):
            robot.names.give(str(number))
            robot.frame.append(self._frame(number))
        for cut in range(source.links + 1, source.joints + 1):
            self._close(cut)
        self._left_out()
        return robot

    def _variables(self) -> dict[int, str]:
        """The symbol that stands for the coordinate of each joint."""
        source, coordinates = self.source, dict[int, str]()
        used = Counter(name for values in source.lists.values() for one in values for name in set(symbols(one)))
        for number in range(1, source.frames + 1):
            key = VARIABLE.get(source.entry("sigma", number))
            if key is None:
                continue
            text = source.entry(key, number)
            names = list(dict.fromkeys(symbols(text)))
            usual = [name for name in names if re.fullmatch(rf"(th|t|q|theta|r)_?{number}", name)]
            unshared = usual or [name for name in names if used[name] == 1]
            strange = [name for name in names if name not in unshared[:1]]
            shared = [name for name in (*strange, *unshared[:1]) if name in coordinates.values()]
            if shared or (unshared and used[unshared[0]] > 1):
                raise file_error(
                    f"{key} of joint {number} is '{short_text(text)}': '{(shared or unshared)[0]}' is used "
                    "elsewhere too",
                    source.file, key, text, "give each joint a variable of its own; couplings are written by hand",
                )  # fmt: skip
            if unshared:
                self._plain_variable(number, key, text, unshared[0])
                coordinates[number] = unshared[0]
        return coordinates

    def _plain_variable(self, number: int, key: str, text: str, variable: str) -> None:
        """The coordinate is added, not turned round or scaled."""
        values = dict.fromkeys(symbols(text), 0.3)
        try:
            slope = evaluate(text, values | {variable: 1.0}) - evaluate(text, values | {variable: 0.0})
        except ParflexError as error:
            raise file_error(error.message, self.source.file, key, text, error.hint or "") from None
        if abs(slope - 1) > 1e-12:
            raise file_error(
                f"{key} of joint {number} is '{short_text(text)}', not its variable plus a constant", self.source.file,
                key,
                text, "turn the axis round: alpha plus pi, and signs of what follows",
            )  # fmt: skip

    def number(self, text: str, key: str) -> Any:
        """A number, or an expression of constants."""
        names = symbols(text)
        for name in names:
            ours = f"{name}_" if keyword.iskeyword(name) else name
            text = re.sub(rf"\b{name}\b", ours, text) if ours != name else text
            self.robot.constants.setdefault(ours, 0.0)
        try:
            value = evaluate(text, dict.fromkeys(self.robot.constants, 0.3))
        except ParflexError as error:
            raise file_error(error.message, self.source.file, key, text, error.hint or "") from None
        return text if names or "pi" in text else value

    def _row(self, number: int) -> dict[str, Any]:
        """Khalil-Kleinfinger parameters, without the coordinate."""
        row = {}
        for key in GEOMETRY:
            text = self.source.entry(key, number)
            variable = self.own.get(number)
            if variable is not None and key == VARIABLE[self.source.entry("sigma", number)]:
                text = _without(variable, text)
            value = self.number(text, key)
            if is_stated(value):
                row[key] = value
        return row

    def _frame(self, number: int) -> dict[str, Any]:
        source = self.source
        ant, sigma = source.entry("ant", number), source.entry("sigma", number)
        cut = source.links < number <= source.joints
        springy = source.entry("eta", number) == "1"
        motor = source.entry("mu", number) != "0" and sigma != "2" and not springy
        table: dict[str, Any] = {"name": str(number)}
        if ant != "0" or source.floating:
            table["parent"] = ant
        if sigma != "2" and number <= source.joints and (not cut or motor):
            table["joint"] = JOINTS[sigma]
        if row := self._row(number):
            table["mdh"] = row
        if motor and number <= source.joints:
            table["actuated"] = True
        if number <= source.links:
            table |= self._body(number)
        elif cut:
            table[NOTE] = f"cut joint; frame {self._other(number)} stands on the other side"
        return table

    def _body(self, number: int) -> dict[str, Any]:
        """Inertia, motor inertia, friction and spring of a link and its joint."""
        source = self.source
        body = {key: value for key in BODY if is_stated(value := self.number(source.entry(key, number), key))}
        table: dict[str, Any] = {"inertia": body} if body else {}
        if number == 0 or source.entry("sigma", number) == "2":
            return table
        rotor = self.number(source.entry("IA", number), "IA")
        table |= {"motor_inertia": rotor} if is_stated(rotor) else {}
        rubs = {"viscous": "FV", "coulomb": "FS"}
        rubbing = {word: self.number(source.entry(key, number), key) for word, key in rubs.items()}
        rubbing = {word: value for word, value in rubbing.items() if is_stated(value)}
        table |= {"friction": rubbing} if rubbing else {}
        if source.entry("eta", number) == "1":
            table["spring"] = {"stiffness": self.number(source.entry("k", number), "k")}
        return table

    def _other(self, cut: int) -> int:
        return self.source.joints + cut - self.source.links

    def _close(self, cut: int) -> None:
        """A cut joint: its frame and the one on the other side coincide, but for its own motion."""
        kind = JOINTS[self.source.entry("sigma", cut)]
        moves = self.robot.frame[cut - 1 + self.source.floating].get("joint", "fixed") != "fixed"
        joint = "welded" if moves or kind == "fixed" else kind
        self.robot.closure.append({"name": f"loop{cut}", "between": [str(cut), str(self._other(cut))], "joint": joint})

    def _left_out(self) -> None:
        source, robot = self.source, self.robot
        if robot.constants:
            robot.report(
                f"{len(robot.constants)} symbols have no number in the source: give theirs in [constants], where they "
                "are zero",
            )
        for name in robot.constants:
            robot.drop("number", name, "a symbol without a number in the source: it is zero in [constants]")
        for key in FORCES:
            for k, text in enumerate(source.lists.get(key, []), 1):
                if text not in ("0", "0.0"):
                    robot.drop("external force", f"{key}{k}", "give wrenches to the functions and commands")
        for key in BASE:
            if any(text not in ("0", "0.0") for text in source.lists.get(key, [])):
                robot.drop("motion of the base", key, "the base is fixed")
        if source.mobile:
            robot.drop("motion of the base", "is_mobile", "the base is fixed")
        if source.lists.get("Z", IDENTITY) != IDENTITY:
            robot.drop("placement of the base", "Z", "positions are in the axes of frame 0")


def _without(variable: str, text: str) -> str:
    """An expression in which the coordinate is zero."""
    if text == variable:
        return "0"
    zero = re.sub(rf"\b{variable}\b", "0", text)
    return re.sub(r"^0 ?\+ ?|(?<=\w|\)) ?[-+] ?0$", "", re.sub(r"^0 ?- ?", "-", zero))


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
        raise file_error("has a comment that does not end", file, "file", None, "is the file cut off?")
    bare = re.sub(r"\(\*.*?\*\)", " ", text, flags=re.DOTALL)
    scalars = dict(re.findall(r"^\s*(\w+)\s*=\s*(\w+)\s*$", bare, flags=re.MULTILINE))
    lists: dict[str, list[str]] = {}
    for key, values in re.findall(r"(\w+)\s*=\s*\{([^{}]*)\}", bare):
        word = WORDS.get(key.lower(), {"B": "b", "D": "d", "R": "r", "K": "k"}.get(key, key))
        if word in lists:
            raise file_error(f"has the list '{word}' twice", file, word, word, "keep one")
        lists[word] = [_expression(part, word, file) for part in _parts(values)]
    if bare.count("{") != bare.count("}"):
        raise file_error("has a list that does not end", file, "file", None, "is the file cut off?")
    links, joints = (_count(scalars, key, file) for key in ("NL", "NJ"))
    result = SymoroFile(
        file,
        (title[1].strip() if title else "") or Path(file).stem,
        links,
        joints,
        _mark(scalars, "is_floating"),
        _mark(scalars, "is_mobile"),
        lists,
    )
    _check_lengths(result)
    return result


def _count(scalars: dict[str, str], key: str, file: str) -> int:
    text = scalars.get(key, "")
    if not re.fullmatch(r"\d{1,4}", text) or not 1 <= int(text) <= MANY:
        what = f"'{key}' is not a number from 1 to {MANY}" if text else f"has no '{key}'"
        raise file_error(what, file, key, text or None, "is this a file of SYMORO? write NL = 6, NJ = 6")
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
        raise file_error(
            f"'{short_text(text.strip())}' in the list '{key}' is not an expression", file, key, text.strip(),
            "write a number, a symbol or arithmetic",
        )  # fmt: skip
    return plain


def _check_lengths(robot: SymoroFile) -> None:
    heavy = robot.floating or robot.mobile
    if robot.joints < robot.links:
        raise file_error(
            f"has {robot.links} links on {robot.joints} joints", robot.file, "NJ", robot.joints, "give NJ at least NL"
        )
    counts = dict.fromkeys(("ant", "sigma", *GEOMETRY, "mu"), robot.frames)
    counts |= dict.fromkeys((*BODY, *TERMS), robot.links + heavy)
    for key, count in counts.items():
        values = robot.lists.get(key)
        if values is None and key in ("ant", "sigma"):
            raise file_error(f"has no list '{key}'", robot.file, key, None, f"give {count} entries")
        if values is not None and len(values) != count:
            raise file_error(
                f"the list '{key}' has {len(values)} entries, not {count}", robot.file, key, len(values),
                "give one for each frame, or for each link",
            )  # fmt: skip
    for number in range(1, robot.frames + 1):
        ant, sigma = robot.entry("ant", number), robot.entry("sigma", number)
        if not re.fullmatch(r"\d{1,4}", ant) or int(ant) >= max(number, robot.links + 1):
            message = f"frame {number} hangs on '{short_text(ant)}'"
            raise file_error(message, robot.file, "ant", ant, "name the base, 0, or a frame")
        if sigma not in ("0", "1", "2"):
            message = f"a joint with sigma '{short_text(sigma)}' is not known"
            raise file_error(message, robot.file, "sigma", sigma, "write 0 (turns), 1 (slides) or 2 (fixed)")
