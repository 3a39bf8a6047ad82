"""A file of SYMORO as tables of a robot file: its rows are those of robot files, its symbols constants."""

from __future__ import annotations

import keyword
import re
from collections import Counter
from pathlib import Path
from typing import Any

from parflex.checks import short_text
from parflex.errors import ParflexError
from parflex.exchange.importing.foreign_files import foreign_error
from parflex.exchange.importing.foreign_names import allowed
from parflex.exchange.importing.foreign_robot import NOTE, ForeignRobot, said
from parflex.exchange.importing.symoro_file import (
    BASE,
    BODY,
    FORCES,
    GEOMETRY,
    SymoroFile,
    read_symoro,
    symbols,
)
from parflex.robotfile.values import evaluate

JOINTS = {"0": "revolute", "1": "prismatic", "2": "fixed"}
VARIABLE = {"0": "theta", "1": "r"}
IDENTITY = ["1", "0", "0", "0", "0", "1", "0", "0", "0", "0", "1", "0", "0", "0", "0", "1"]


def symoro_robot(file: str) -> ForeignRobot:
    """The tables of a file of SYMORO."""
    return _SymoroTables(read_symoro(file)).whole()


class _SymoroTables:
    """Frame `j` is called `j`; cut joints become closures between two fixed frames."""

    def __init__(self, source: SymoroFile) -> None:
        self.source = source
        self.robot = ForeignRobot(allowed(source.name) or "robot", Path(source.file).name)
        self.own = self._variables()

    def whole(self) -> ForeignRobot:
        source, robot = self.source, self.robot
        robot.gravity = [self.number(one, "G") for one in source.lists.get("G", ["0"] * 3)[:3]]
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
        source, found = self.source, dict[int, str]()
        used = Counter(name for values in source.lists.values() for one in values for name in set(symbols(one)))
        for number in range(1, source.frames + 1):
            key = VARIABLE.get(source.entry("sigma", number))
            if key is None:
                continue
            text = source.entry(key, number)
            names = list(dict.fromkeys(symbols(text)))
            usual = [name for name in names if re.fullmatch(rf"(th|t|q|theta|r)_?{number}", name)]
            own = usual or [name for name in names if used[name] == 1]
            strange = [name for name in names if name not in own[:1]]
            shared = [name for name in (*strange, *own[:1]) if name in found.values()]
            if shared or (own and used[own[0]] > 1):
                raise foreign_error(
                    f"{key} of joint {number} is '{short_text(text)}': '{(shared or own)[0]}' is used elsewhere too",
                    source.file, key, text, "give each joint a variable of its own; couplings are written by hand",
                )  # fmt: skip
            if own:
                self._plain_variable(number, key, text, own[0])
                found[number] = own[0]
        return found

    def _plain_variable(self, number: int, key: str, text: str, own: str) -> None:
        """The coordinate is added, not turned round or scaled."""
        values = dict.fromkeys(symbols(text), 0.3)
        try:
            slope = evaluate(text, values | {own: 1.0}) - evaluate(text, values | {own: 0.0})
        except ParflexError as error:
            raise foreign_error(error.message, self.source.file, key, text, error.hint or "") from None
        if abs(slope - 1) > 1e-12:
            raise foreign_error(
                f"{key} of joint {number} is '{short_text(text)}', not its variable plus a constant", self.source.file, key,
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
            raise foreign_error(error.message, self.source.file, key, text, error.hint or "") from None
        return text if names or "pi" in text else value

    def _row(self, number: int) -> dict[str, Any]:
        """Khalil-Kleinfinger parameters, without the coordinate."""
        row = {}
        for key in GEOMETRY:
            text = self.source.entry(key, number)
            own = self.own.get(number)
            if own is not None and key == VARIABLE[self.source.entry("sigma", number)]:
                text = _without(own, text)
            value = self.number(text, key)
            if said(value):
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
        body = {key: value for key in BODY if said(value := self.number(source.entry(key, number), key))}
        table: dict[str, Any] = {"inertia": body} if body else {}
        if number == 0 or source.entry("sigma", number) == "2":
            return table
        rotor = self.number(source.entry("IA", number), "IA")
        table |= {"motor_inertia": rotor} if said(rotor) else {}
        rubs = {"viscous": "FV", "coulomb": "FS"}
        rubbing = {word: self.number(source.entry(key, number), key) for word, key in rubs.items()}
        rubbing = {word: value for word, value in rubbing.items() if said(value)}
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
            robot.warnings.append(
                f"{len(robot.constants)} symbols have no number in the source: give theirs in [constants], where they "
                "are zero"
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


def _without(own: str, text: str) -> str:
    """An expression in which the coordinate is zero."""
    if text == own:
        return "0"
    zero = re.sub(rf"\b{own}\b", "0", text)
    return re.sub(r"^0 ?\+ ?|(?<=\w|\)) ?[-+] ?0$", "", re.sub(r"^0 ?- ?", "-", zero))
