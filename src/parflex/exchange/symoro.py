"""SYMORO import."""

from __future__ import annotations

import keyword
import re
from collections import Counter
from pathlib import Path
from typing import Any

from parflex.checks import short_text
from parflex.errors import InputError, ParflexError
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
    return _Reader(file).robot


class _Reader:
    """Frame `j` is called `j`; cut joints become closures between two fixed frames.

    Entries of the file are texts: expressions of numbers and symbols, which become constants of the robot file.
    """

    def __init__(self, file: str) -> None:
        self.file = file
        text = read_text(file)
        title = re.search(r"Robotname\s*=\s*'([^']*)'", text)
        name = (title[1].strip() if title else "") or Path(file).stem
        self.robot = ImportedTables(allowed(name) or "robot", Path(file).name)
        self._read(text)
        self._check()
        self.variables = self._variables()
        self.robot.gravity = [self._number(entry, "G") for entry in self.lists.get("G", ["0"] * 3)[:3]]
        if self.floating:
            self.robot.frame.append({"name": self.robot.names.give("0"), "joint": "free"} | self._body(0))
        for number in range(1, self.frames + 1):
            self.robot.names.give(str(number))
            self.robot.frame.append(self._frame(number))
        for cut in range(self.links + 1, self.joints + 1):
            self._close(cut)
        self._left_out()

    def _error(self, message: str, key: str, value: object, hint: str) -> InputError:
        return file_error(message, self.file, key, value, hint)

    # -- the file

    def _read(self, text: str) -> None:
        """Counts of links and joints, whether the base is free, and lists with one text for each entry."""
        if text.count("(*") != text.count("*)"):
            raise self._error("has a comment that does not end", "file", None, "is the file cut off?")
        bare = re.sub(r"\(\*.*?\*\)", " ", text, flags=re.DOTALL)
        scalars = dict(re.findall(r"^\s*(\w+)\s*=\s*(\w+)\s*$", bare, flags=re.MULTILINE))
        self.lists: dict[str, list[str]] = {}
        for key, values in re.findall(r"(\w+)\s*=\s*\{([^{}]*)\}", bare):
            word = WORDS.get(key.lower(), {"B": "b", "D": "d", "R": "r", "K": "k"}.get(key, key))
            if word in self.lists:
                raise self._error(f"has the list '{word}' twice", word, word, "keep one")
            self.lists[word] = [self._expression(part, word) for part in _parts(values)]
        if bare.count("{") != bare.count("}"):
            raise self._error("has a list that does not end", "file", None, "is the file cut off?")
        self.links, self.joints = (self._count(scalars.get(key, ""), key) for key in ("NL", "NJ"))
        self.frames = 2 * self.joints - self.links  # one for each joint, and one more for each that is cut
        free = [scalars.get(f"is_{word}", "0").lower() in ("1", "true") for word in ("floating", "mobile")]
        self.floating, self.mobile = free

    def _count(self, text: str, key: str) -> int:
        if not re.fullmatch(r"\d{1,4}", text) or not 1 <= int(text) <= MANY:
            what = f"'{key}' is not a number from 1 to {MANY}" if text else f"has no '{key}'"
            raise self._error(what, key, text or None, "is this a file of SYMORO? write NL = 6, NJ = 6")
        return int(text)

    def _expression(self, text: str, key: str) -> str:
        """An expression in the words of robot files."""
        plain = " ".join(text.split()).replace("^", "**").replace("[", "(").replace("]", ")")
        for word, ours in PYTHON.items():
            plain = re.sub(rf"\b{word}\b", ours, plain)
        if not plain or not re.fullmatch(r"[\w\s.+\-*/(),]*", plain):
            message = f"'{short_text(text.strip())}' in the list '{key}' is not an expression"
            raise self._error(message, key, text.strip(), "write a number, a symbol or arithmetic")
        return plain

    def _check(self) -> None:
        if self.joints < self.links:
            message = f"has {self.links} links on {self.joints} joints"
            raise self._error(message, "NJ", self.joints, "give NJ at least NL")
        counts = dict.fromkeys(("ant", "sigma", *GEOMETRY, "mu"), self.frames)
        counts |= dict.fromkeys((*BODY, *TERMS), self.links + (self.floating or self.mobile))
        for key, count in counts.items():
            values = self.lists.get(key)
            if values is None and key in ("ant", "sigma"):
                raise self._error(f"has no list '{key}'", key, None, f"give {count} entries")
            if values is not None and len(values) != count:
                message = f"the list '{key}' has {len(values)} entries, not {count}"
                raise self._error(message, key, len(values), "give one for each frame, or for each link")
        for number in range(1, self.frames + 1):
            ant, sigma = self._entry("ant", number), self._entry("sigma", number)
            if not re.fullmatch(r"\d{1,4}", ant) or int(ant) >= max(number, self.links + 1):
                message = f"frame {number} hangs on '{short_text(ant)}'"
                raise self._error(message, "ant", ant, "name the base, 0, or a frame")
            if sigma not in JOINTS:
                message = f"a joint with sigma '{short_text(sigma)}' is not known"
                raise self._error(message, "sigma", sigma, "write 0 (turns), 1 (slides) or 2 (fixed)")

    def _entry(self, key: str, number: int) -> str:
        """An entry of frame, joint or link `number`, from 1; the base is 0 where it has a body."""
        values = self.lists.get(key, [])
        heavy = self.floating or self.mobile
        place = number if heavy and key in (*BODY, *TERMS, *FORCES) else number - 1
        return values[place] if 0 <= place < len(values) else "0"

    # -- coordinates and numbers

    def _variables(self) -> dict[int, str]:
        """The symbol that stands for the coordinate of each joint."""
        coordinates: dict[int, str] = {}
        used = Counter(name for values in self.lists.values() for one in values for name in set(symbols(one)))
        for number in range(1, self.frames + 1):
            key = VARIABLE.get(self._entry("sigma", number))
            if key is None:
                continue
            text = self._entry(key, number)
            names = list(dict.fromkeys(symbols(text)))
            usual = [name for name in names if re.fullmatch(rf"(th|t|q|theta|r)_?{number}", name)]
            unshared = usual or [name for name in names if used[name] == 1]
            ordered = [*(name for name in names if name not in unshared[:1]), *unshared[:1]]
            shared = [name for name in ordered if name in coordinates.values()]
            if shared or (unshared and used[unshared[0]] > 1):
                message = f"{key} of joint {number} is '{short_text(text)}': '{(shared or unshared)[0]}' is used"
                hint = "give each joint a variable of its own; couplings are written by hand"
                raise self._error(f"{message} elsewhere too", key, text, hint)
            if unshared:
                coordinates[number] = unshared[0]
                values = dict.fromkeys(names, 0.3)
                ends = [self._evaluated(text, values | {unshared[0]: end}, key) for end in (0.0, 1.0)]
                if abs(ends[1] - ends[0] - 1) > 1e-12:
                    message = f"{key} of joint {number} is '{short_text(text)}', not its variable plus a constant"
                    raise self._error(
                        message, key, text, "turn the axis round: alpha plus pi, and signs of what follows"
                    )
        return coordinates

    def _evaluated(self, text: str, values: dict[str, float], key: str) -> float:
        try:
            return evaluate(text, values)
        except ParflexError as error:
            raise self._error(error.message, key, text, error.hint or "") from None

    def _number(self, text: str, key: str) -> Any:
        """A number, or an expression of constants."""
        names = symbols(text)
        for name in names:
            ours = f"{name}_" if keyword.iskeyword(name) else name
            text = re.sub(rf"\b{name}\b", ours, text) if ours != name else text
            self.robot.constants.setdefault(ours, 0.0)
        value = self._evaluated(text, dict.fromkeys(self.robot.constants, 0.3), key)
        return text if names or "pi" in text else value

    def _stated(self, keys: dict[str, str], number: int) -> dict[str, Any]:
        """Entries that are not zero, by their words in the robot file."""
        values = {word: self._number(self._entry(key, number), key) for word, key in keys.items()}
        return {word: value for word, value in values.items() if is_stated(value)}

    # -- tables

    def _frame(self, number: int) -> dict[str, Any]:
        ant, sigma = self._entry("ant", number), self._entry("sigma", number)
        cut, ours = self.links < number <= self.joints, number <= self.joints
        motor = self._entry("mu", number) != "0" and sigma != "2" and self._entry("eta", number) != "1"
        row = {}
        for key in GEOMETRY:  # Khalil-Kleinfinger parameters, without the coordinate
            text, variable = self._entry(key, number), self.variables.get(number)
            text = text if variable is None or key != VARIABLE[sigma] else _without(variable, text)
            row[key] = self._number(text, key)
        row = {key: value for key, value in row.items() if is_stated(value)}
        table: dict[str, Any] = {"name": str(number)}
        table |= {"parent": ant} if ant != "0" or self.floating else {}
        table |= {"joint": JOINTS[sigma]} if sigma != "2" and ours and (not cut or motor) else {}
        table |= {"mdh": row} if row else {}
        table |= {"actuated": True} if motor and ours else {}
        if number <= self.links:
            table |= self._body(number)
        elif cut:
            table[NOTE] = f"cut joint; frame {self._other(number)} stands on the other side"
        return table

    def _body(self, number: int) -> dict[str, Any]:
        """Inertia, motor inertia, friction and spring of a link and its joint."""
        body = self._stated({key: key for key in BODY}, number)
        table: dict[str, Any] = {"inertia": body} if body else {}
        if number == 0 or self._entry("sigma", number) == "2":
            return table
        table |= self._stated({"motor_inertia": "IA"}, number)
        friction = self._stated({"viscous": "FV", "coulomb": "FS"}, number)
        table |= {"friction": friction} if friction else {}
        if self._entry("eta", number) == "1":
            table["spring"] = {"stiffness": self._number(self._entry("k", number), "k")}
        return table

    def _other(self, cut: int) -> int:
        return self.joints + cut - self.links

    def _close(self, cut: int) -> None:
        """A cut joint: its frame and the one on the other side coincide, but for its own motion."""
        kind = JOINTS[self._entry("sigma", cut)]
        moves = self.robot.frame[cut - 1 + self.floating].get("joint", "fixed") != "fixed"
        joint = "welded" if moves or kind == "fixed" else kind
        self.robot.closure.append({"name": f"loop{cut}", "between": [str(cut), str(self._other(cut))], "joint": joint})

    def _left_out(self) -> None:
        robot, zero = self.robot, ("0", "0.0")
        if robot.constants:
            count = len(robot.constants)
            robot.report(
                f"{count} symbols have no number in the source: give theirs in [constants], where they are zero"
            )
        for name in robot.constants:
            robot.drop("number", name, "a symbol without a number in the source: it is zero in [constants]")
        for key in FORCES:
            for k, text in enumerate(self.lists.get(key, []), 1):
                if text not in zero:
                    robot.drop("external force", f"{key}{k}", "give wrenches to the functions and commands")
        moving = [key for key in BASE if any(text not in zero for text in self.lists.get(key, []))]
        for key in [*moving, *(["is_mobile"] if self.mobile else [])]:
            robot.drop("motion of the base", key, "the base is fixed")
        if self.lists.get("Z", IDENTITY) != IDENTITY:
            robot.drop("placement of the base", "Z", "positions are in the axes of frame 0")


def symbols(text: str) -> list[str]:
    """Names in an expression that are no functions or numbers; exponents of numbers look like names."""
    bare = re.sub(r"(?<![\w.])(\d+\.?\d*|\.\d+)[eE][-+]?\d+", "1", text)
    return [name for name in SYMBOL.findall(bare) if name not in FUNCTIONS and name not in NAMES]


def _without(variable: str, text: str) -> str:
    """An expression in which the coordinate is zero."""
    if text == variable:
        return "0"
    zero = re.sub(rf"\b{variable}\b", "0", text)
    return re.sub(r"^0 ?\+ ?|(?<=\w|\)) ?[-+] ?0$", "", re.sub(r"^0 ?- ?", "-", zero))


def _parts(values: str) -> list[str]:
    """Entries between commas, not those within brackets."""
    parts, depth, start = [], 0, 0
    for k, letter in enumerate(values):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            parts.append(values[start:k])
            start = k + 1
    return [*parts, values[start:]]
