"""Designs of a robot without any window: what each answers, the best so far, one to compare with, its robot file."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from parflex.design.design_rows import DesignRows
from parflex.design.design_state import checked_number
from parflex.design.sweep import DesignFile
from parflex.errors import InputError, ParflexError, UnreachableError
from parflex.io import new_file
from parflex.parameters.robot_file import extending_text
from parflex.records import Record
from parflex.recursion.kinematics import pose
from parflex.robot.load import with_file_of, with_settings
from parflex.robot.robot import Robot
from parflex.spatial.rotations import vector_from_rotation
from parflex.statics.modes import natural_frequencies
from parflex.view.page.session import Session
from parflex.view.scene.map_colours import MapPoints, coloured
from parflex.view.studio.quick_rows import QuickRows, SeenPoses

Array = np.ndarray
CELLS = 16  # of the map along each of its axes: from 200 poses on they are found by compiled steps
AROUND = 0.12  # half the side of the map, as share of the robot's size, where no response has a region
MODES = 4  # whose frequencies follow a slider


@dataclass(frozen=True)
class ShownDesign:
    """Values of the variables, responses by name (NaN where there is none), and why one is missing."""

    values: dict[str, float]
    responses: dict[str, float]
    reason: str = ""


@dataclass(frozen=True)
class Limit:
    """A response that stays on one side of a number."""

    name: str
    value: float
    upper: bool

    def missed(self, found: float) -> float:
        """How far a value is beyond it, as share of the limit; endless where there is no value."""
        if not np.isfinite(found):
            return np.inf
        return max(0.0, (found - self.value if self.upper else self.value - found) / (abs(self.value) or 1.0))


@dataclass(frozen=True, eq=False, repr=False)
class SeenDesign(Record):
    """A design as it is seen: robot, positions, frequencies there (Hz), axes of the map, lowest ones of its cells."""

    robot: Robot
    q: Array
    frequencies: Array
    axes: dict[str, Array]
    lowest: Array


@dataclass
class DesignDesk:
    """A robot, the file of a design, and designs of it."""

    robot: Robot
    file: DesignFile
    source: str  # the robot's name or file
    best: ShownDesign | None = field(default=None, init=False)
    kept: ShownDesign | None = field(default=None, init=False)  # to compare with

    def __post_init__(self) -> None:
        self.keys = list(self.file.variables)
        given = {key: checked_number(self.robot, key, "variables") for key in self.keys}
        starts = {key: one.start if one.start is not None else given[key] for key, one in self.file.variables.items()}
        self.start = {key: self.fitting(key, value) for key, value in starts.items()}
        questions = {name: table.question() for name, table in self.file.responses.items()}
        self.rows = QuickRows(self.robot, self.keys, questions)
        DesignRows(self.robot, self.keys, questions).check()  # few poses, for which nothing is compiled
        self.units = {name: one.response.unit_of(self.robot, one.argument) for name, one in questions.items()}
        sides = (("lower", False), ("upper", True))
        self.limits = [
            Limit(one.response, getattr(one, word), upper)
            for one in self.file.constraint
            for word, upper in sides
            if getattr(one, word) is not None
        ]
        self.modes = self._modes()
        begin = Session(self.robot)
        self.words = [slider.word for slider in begin.pose_sliders()]
        self._home, self._size = self.place(begin), begin.scene.size

    def _modes(self) -> int:
        """How many frequencies can be shown; 0 where nothing vibrates."""
        try:
            return min(MODES, len(natural_frequencies(self.robot).frequencies))
        except ParflexError:
            return 0

    def fitting(self, key: str, value: float) -> float:
        """The value within the bounds of its variable, or the nearest of its choices."""
        one = self.file.variables[key]
        if one.choices:
            return min(one.choices, key=lambda choice: abs(choice - value))
        return float(np.clip(value, *one.bounds))

    def robot_of(self, values: Mapping[str, float]) -> Robot:
        """The robot of a design; how many freedoms it has, its numbers do not change."""
        made = with_settings(self.robot, values)
        return replace(made, known_mobility=self.robot.mobility)

    def look_at(self, values: Mapping[str, float]) -> ShownDesign:
        """What a design answers; the best so far is remembered."""
        found = self.rows({key: np.array([values[key]]) for key in self.keys})
        responses = {name: float(own[0]) for name, own in found.values.items()}
        shown = ShownDesign(dict(values), responses, found.reasons[0])
        if self._merit(shown) < self._merit(self.best):
            self.best = shown
        return shown

    def _merit(self, design: ShownDesign | None) -> tuple[float, float]:
        """Less is better: how far limits are missed, then the objective."""
        if design is None:
            return np.inf, np.inf
        missed = sum(limit.missed(design.responses[limit.name]) for limit in self.limits)
        objective = self.file.objective
        if objective is None or not np.isfinite(missed):
            return missed, 0.0
        name = objective.maximise or objective.minimise or ""
        value = design.responses[name] * (-1.0 if objective.maximise else 1.0)
        return missed, value if np.isfinite(value) else np.inf

    # -- the map ---------------------------------------------------------------------------------------

    def place(self, session: Session) -> dict[str, float]:
        """Where the end effector is, in the words of its freedoms."""
        tree = session.robot.tree
        rotation, position = pose(tree, session.q).of(tree.places[tree.end_effector])
        turn = vector_from_rotation(rotation)
        known = dict(zip(("x", "y", "z", "rx", "ry", "rz"), [*position, *turn], strict=True))
        known["theta"] = np.arctan2(rotation[1, 0], rotation[0, 0])
        return {word: float(known[word]) for word in self.words}

    def sight(self, session: Session, values: Mapping[str, float], cells: bool = True) -> SeenDesign | None:
        """A design as it is seen: its robot where the end effector is, frequencies there, and those of the map.

        By programs, without reading its file again; None where they do not cover it.
        """
        place = self.place(session)
        if not self.modes or not place:
            return None
        axes = self._axes(place) if cells else {}
        mesh = np.meshgrid(*axes.values(), indexing="ij") if axes else []
        poses = np.tile(np.array(list(place.values())), ((mesh[0].size if mesh else 0) + 2, 1))
        poses[1] = list(self._home.values())
        for word, own in zip(axes, mesh, strict=True):
            poses[2:, list(place).index(word)] = own.ravel()
        seen = SeenPoses(self.robot, list(place), poses, values, self.modes, "actuators")
        if seen.lost[0]:
            where = ", ".join(f"{word} = {value:.4g}" for word, value in place.items())
            raise UnreachableError(
                f"{where} cannot be reached by this design", key="pose", value=where, hint="move the slider back"
            )
        if seen.whole is None or not np.isfinite(seen.whole[0]).all():
            return None
        here, home = seen.whole[0], seen.whole[1]
        robot = seen.numbers.robot_of(0, home if np.isfinite(home).all() else here)
        robot = with_file_of(robot, values, sections_alone=True)  # beams are drawn as thick as they are
        lowest = seen.frequencies[: len(poses)]
        return SeenDesign(robot, here, lowest[0] if np.isfinite(lowest[0]).all() else np.zeros(0), axes, lowest[2:, 0])

    def coloured(self, sight: SeenDesign) -> MapPoints | None:
        """The map as points in the plane of the end effector."""
        good = np.isfinite(sight.lowest)
        if not good.any():
            return None
        tree = sight.robot.tree
        _, centre = pose(tree, sight.q).of(tree.places[tree.end_effector])
        points = np.tile(np.asarray(centre, dtype=float), (int(good.sum()), 1))
        for word, own in zip(sight.axes, np.meshgrid(*sight.axes.values(), indexing="ij"), strict=True):
            points[:, "xyz".index(word)] = own.ravel()[good]
        return coloured(points, sight.lowest[good], min(float(axis[1] - axis[0]) for axis in sight.axes.values()))

    def _axes(self, place: Mapping[str, float]) -> dict[str, Array]:
        return {word: self._axis(word) for word in [word for word in ("x", "y", "z") if word in place][:2]}

    def _axis(self, word: str) -> Array:
        """Places of the map along a coordinate: over the region of a response, else around home."""
        for table in self.file.responses.values():
            span = table.region.get(word)
            if isinstance(span, list) and span[0] != span[1]:
                return np.linspace(float(span[0]), float(span[1]), CELLS)
        tree = self.robot.tree
        _, home = pose(tree, self.robot.home).of(tree.places[tree.end_effector])
        middle, reach = float(home["xyz".index(word)]), AROUND * self._size
        return np.linspace(middle - reach, middle + reach, CELLS)

    # -- keeping ---------------------------------------------------------------------------------------

    def warm(self, session: Session) -> None:
        """Have all programs made that sliders will need: for the first design and for one beside it."""
        for share in (0.0, 1e-3):
            values = {key: self.start[key] + share * np.ptp(self.file.variables[key].bounds) for key in self.keys}
            fitting = {key: self.fitting(key, value) for key, value in values.items()}
            with suppress(ParflexError):
                self.sight(session, fitting)
                self.rows({key: np.array([value]) for key, value in fitting.items()})

    def write(self, values: Mapping[str, float], folder: Path) -> Path:
        """The robot file of a design, under a name that is free."""
        for number in range(1, 1000):
            target = folder / f"{self.robot.name}-design-{number}.toml"
            if not target.exists():
                with new_file(target, "design") as file:
                    file.write(extending_text(self.source, self.robot, values, target, "design").encode())
                return target
        raise InputError("there are a thousand designs already", key="design", file=str(folder), hint="remove some")


def check_robot(file: DesignFile, robot: Robot, design: Any) -> None:
    """Refuse a design of another robot."""
    known = Path(file.robot).stem if file.robot else robot.name
    if known not in (robot.name, Path(robot.file).stem):
        raise InputError(
            f"the design is of '{file.robot}'",
            file=str(design),
            key="robot",
            value=file.robot,
            hint=f"show it with 'parflex view {file.robot}', or change its 'robot'",
        )
