"""Motions in a robot file: paths of a frame of the rigid robot, and sequences of joint moves."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, model_validator

from parflex.description.table import Table
from parflex.description.values import Axis, Coordinates, Name, Number, Vector, complain, list_of

Points = Annotated[tuple[Vector, ...], BeforeValidator(list_of("a list of points is", "[[x, y, z], [x, y, z]]"))]
Moves = Annotated[tuple[Coordinates, ...], BeforeValidator(list_of("a list of tables is", '[{ "joint" = 0.1 }]'))]
Poses = Annotated[
    tuple[Name | Coordinates, ...], BeforeValidator(list_of("a list of poses is", '["home", { x = 0.1 }]'))
]
PATH_KEYS = frozenset({"frame", "circle", "points", "speed"})
MOVE_KEYS = frozenset({"start", "moves", "duration", "smoothing"})
POSE_KEYS = frozenset({"poses", "duration", "rest"})


class Circle(Table):
    """A circle about an axis through its centre, from a point of it, counter-clockwise; endless without `turns`."""

    centre: Vector
    start: Vector
    axis: Axis = (0.0, 0.0, 1.0)
    turns: Number | None = None


class MotionTable(Table):
    """A path of a frame (`circle` or `points`) at a speed, `moves` of joints one after the other, or `poses`."""

    frame: Name | None = None
    circle: Circle | None = None
    points: Points = ()
    speed: Number | None = None
    start: Coordinates = {}
    moves: Moves = ()
    poses: Poses = ()
    duration: Number | None = None
    smoothing: Number = 0.0
    ramp: Number = 0.0
    rest: Number = 0.0
    period: Number | None = None

    @property
    def along_path(self) -> bool:
        """Whether a frame follows a path."""
        return self.circle is not None or bool(self.points)

    @model_validator(mode="after")
    def _one_kind(self) -> MotionTable:
        ways = [key for key in ("circle", "points", "moves", "poses") if getattr(self, key)]
        if len(ways) != 1:
            found = " and ".join(f"'{way}'" for way in ways) or "none"
            kinds = "'circle', 'points', 'moves' and 'poses'"
            raise complain(f"a motion has one of {kinds}, not {found}", "keep one", "moves")
        strange = self.model_fields_set & (MOVE_KEYS if self.along_path else PATH_KEYS)
        if self.poses:
            strange = self.model_fields_set - POSE_KEYS
            if len(self.poses) < 2:
                raise complain("a motion needs at least two poses", "add poses", "poses")
        if strange:
            key = min(strange)
            raise complain(f"'{key}' has no effect in a motion with '{ways[0]}'", "remove it", key, getattr(self, key))
        required = "speed" if self.along_path else "duration"
        if getattr(self, required) is None:
            raise complain(f"'{required}' is missing", f"add {required} = ...", required)
        for key in ("speed", "duration", "period"):
            value = getattr(self, key)
            if value is not None and value <= 0:
                raise complain(f"{key} = {value} is not positive", "give more than zero", key, value)
        for key in ("ramp", "rest", "smoothing"):
            if getattr(self, key) < 0:
                raise complain(f"{key} is negative", "give zero or more", key, getattr(self, key))
        if self.duration is not None and 2 * self.ramp > self.duration:
            raise complain("the two ramps are longer than the move", "make 'duration' longer", "ramp", self.ramp)
        if self.along_path and self.ramp == 0:
            raise complain("'ramp' is missing: a path starts from rest", "add ramp = 0.5", "ramp")
        return self
