"""What may stand in a robot file, as typed tables. `docs/robot-file.md` is the same for people."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from parflex.description.expressions import evaluate
from parflex.errors import RobotFileError, did_you_mean


def complain(message: str, hint: str) -> PydanticCustomError:
    """An error of one value; the loader adds file and key. Braces are doubled: the text is a format string."""
    return PydanticCustomError("parflex", message.replace("{", "{{").replace("}", "}}"), {"hint": hint})  # type: ignore[arg-type]


def read_number(value: Any, info: ValidationInfo) -> float:
    """A finite number, or an expression that has one as its value."""
    if isinstance(value, str):
        try:
            return evaluate(value, (info.context or {}).get("constants", {}))
        except RobotFileError as error:
            raise complain(error.message, error.hint or "") from None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise complain(f"a number is expected here, not {_describe(value)}", 'write a number or "an expression"')
    if not math.isfinite(value):
        raise complain(f"{value} is not a finite number", "write a finite number")
    return float(value)


def read_name(value: Any) -> str:
    """A name of a frame, point, closure, pose or mode."""
    if not isinstance(value, str):
        raise complain(f"a name is expected here, not {_describe(value)}", "put it in quotes")
    if not re.fullmatch(r"[\w+\-.~ ]{1,80}", value) or value != value.strip():
        raise complain(f"'{value[:40]}' is no name", "use letters, digits, '_', '-' and '.', at most 80 of them")
    return value


def _describe(value: Any) -> str:
    kinds = {bool: "true or false", str: "text", list: "a list", dict: "a table", float: "a number", int: "a number"}
    return kinds.get(type(value), type(value).__name__)


NUMBER_SCHEMA = {"anyOf": [{"type": "number"}, {"type": "string", "description": "arithmetic expression"}]}
Number = Annotated[float, BeforeValidator(read_number), WithJsonSchema(NUMBER_SCHEMA)]
Name = Annotated[str, BeforeValidator(read_name)]
Vector = tuple[Number, Number, Number]
Sign = Literal["+", "-"]
JointKind = Literal["fixed", "revolute", "prismatic", "universal", "spherical", "cylindrical", "free"]
ClosureKind = Literal[
    "spherical",
    "revolute",
    "universal",
    "cylindrical",
    "prismatic",
    "planar",
    "point-on-plane",
    "point-on-line",
    "welded",
]


class Table(BaseModel):
    """A table of the file: frozen, and an unknown key is an error that names the nearest known one."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys_only(cls, data: Any) -> Any:
        if isinstance(data, Table):
            return data
        if not isinstance(data, dict):
            raise complain(f"a table is expected here, not {_describe(data)}", "write { key = value, ... }")
        for key in data:
            if key not in cls.model_fields:
                raise complain(f"unknown key '{key}'", did_you_mean(str(key), cls.model_fields))
        return data


class MdhRow(Table):
    """Khalil-Kleinfinger row: Rot(z,gamma) Trans(z,b) Rot(x,alpha) Trans(x,d) Rot(z,theta) Trans(z,r)."""

    gamma: Number = 0.0
    b: Number = 0.0
    alpha: Number = 0.0
    d: Number = 0.0
    theta: Number = 0.0
    r: Number = 0.0


class Placement(Table):
    """A position and a rotation vector (axis times angle) in the parent."""

    position: Vector = (0.0, 0.0, 0.0)
    rotation: Vector = (0.0, 0.0, 0.0)


CentralInertia = Vector | tuple[Vector, Vector, Vector]


def central_matrix(about_centre: Any) -> np.ndarray:
    """The inertia tensor about the centre from its diagonal or its rows."""
    values = np.array(about_centre, dtype=float)
    return np.diag(values) if values.ndim == 1 else values


def _check_tensor(about_centre: Any) -> None:
    matrix = central_matrix(about_centre)
    if not np.allclose(matrix, matrix.T, rtol=1e-9, atol=1e-15):
        raise complain("the inertia tensor is not symmetric", "repeat each off-diagonal entry on the other side")


class Inertia(Table):
    """A body: the Khalil parameters about the frame's origin, or mass, centre and inertia about the centre."""

    M: Number = 0.0
    MX: Number = 0.0
    MY: Number = 0.0
    MZ: Number = 0.0
    XX: Number = 0.0
    XY: Number = 0.0
    XZ: Number = 0.0
    YY: Number = 0.0
    YZ: Number = 0.0
    ZZ: Number = 0.0
    IA: Number = 0.0
    FV: Number = 0.0
    FS: Number = 0.0
    mass: Number | None = None
    centre: Vector = (0.0, 0.0, 0.0)
    about_centre: CentralInertia = (0.0, 0.0, 0.0)

    @model_validator(mode="after")
    def _one_form(self) -> Inertia:
        words = self.model_fields_set & {"mass", "centre", "about_centre"}
        symbols = self.model_fields_set - words - {"IA", "FV", "FS"}
        if words and symbols:
            raise complain(
                f"'{min(words)}' and '{min(symbols)}' describe the same body in two ways",
                "use either mass, centre, about_centre or M, MX, ..., ZZ",
            )
        if words and self.mass is None:
            raise complain("'mass' is missing", "give the mass beside centre and about_centre")
        _check_tensor(self.about_centre)
        for key in ("M", "mass"):
            value = getattr(self, key)
            if value is not None and value < 0:
                raise complain(f"the mass {value} is negative", "give a mass of zero or more")
        return self


class PointMass(Table):
    """A mass fixed to the body of a frame."""

    mass: Number
    position: Vector = (0.0, 0.0, 0.0)
    about_centre: CentralInertia = (0.0, 0.0, 0.0)

    @model_validator(mode="after")
    def _possible(self) -> PointMass:
        if self.mass < 0:
            raise complain(f"the mass {self.mass} is negative", "give a mass of zero or more")
        _check_tensor(self.about_centre)
        return self


def _not_negative(name: str, value: float) -> None:
    if value < 0:
        raise complain(f"{name} = {value} is negative", "give zero or more")


class Friction(Table):
    """FV qd + FS sign(qd)."""

    viscous: Number = 0.0
    coulomb: Number = 0.0

    @model_validator(mode="after")
    def _possible(self) -> Friction:
        _not_negative("viscous", self.viscous)
        _not_negative("coulomb", self.coulomb)
        return self


class Spring(Table):
    """k (q - rest)."""

    stiffness: Number
    rest: Number = 0.0


def read_per_axis(value: Any) -> Any:
    """`true` or `[true, false]`, and nothing that merely looks like it."""
    flags = value if isinstance(value, list) else [value]
    if not flags or not all(isinstance(flag, bool) for flag in flags):
        raise complain("true or false is expected here", "write actuated = true, or [true, false] for two axes")
    return tuple(flags) if isinstance(value, list) else value


def read_start(value: Any) -> Any:
    """One start value as a list of one."""
    return value if isinstance(value, list) else [value]


class Frame(Table):
    """A frame, the joint that carries it and the body fixed to it."""

    name: Name
    parent: Name = "base"
    joint: JointKind = "fixed"
    mdh: MdhRow | None = None
    place: Placement | None = None
    actuated: Annotated[bool | tuple[bool, ...], BeforeValidator(read_per_axis)] = False
    locked: bool = False
    start: Annotated[tuple[Number, ...], BeforeValidator(read_start)] = ()
    limits: tuple[Number, Number] | None = None
    inertia: Inertia = Inertia()
    point_masses: tuple[PointMass, ...] = ()
    motor_inertia: Number = 0.0
    friction: Friction = Friction()
    spring: Spring | None = None
    damper: Number = 0.0

    @model_validator(mode="after")
    def _consistent(self) -> Frame:
        if self.mdh is not None and self.place is not None:
            raise complain("'mdh' and 'place' both place the frame", "keep one of them")
        _not_negative("motor_inertia", self.motor_inertia)
        _not_negative("damper", self.damper)
        if self.limits and self.limits[0] >= self.limits[1]:
            raise complain(f"limits {list(self.limits)} are the wrong way round", "write [low, high]")
        doubled = [
            pair
            for pair in (("IA", self.motor_inertia), ("FV", self.friction.viscous), ("FS", self.friction.coulomb))
            if pair[1] and getattr(self.inertia, pair[0])
        ]
        if doubled:
            raise complain(f"'{doubled[0][0]}' is given twice", "keep it in 'inertia' or in its own key")
        return self


class Platform(Table):
    """The platform: one more body, free on the base."""

    name: Name = "platform"
    start: Annotated[tuple[Number, ...], BeforeValidator(read_start)] = ()
    inertia: Inertia = Inertia()
    point_masses: tuple[PointMass, ...] = ()
    points: dict[str, Vector] = {}


class Point(Table):
    """A named place on a frame."""

    name: Name
    frame: Name
    position: Vector = (0.0, 0.0, 0.0)
    rotation: Vector = (0.0, 0.0, 0.0)


def read_axis(value: Any) -> Any:
    """`"x"`, `"y"`, `"z"` as a vector."""
    letters = {"x": [1.0, 0.0, 0.0], "y": [0.0, 1.0, 0.0], "z": [0.0, 0.0, 1.0]}
    if isinstance(value, str):
        if value not in letters:
            raise complain(f"'{value}' is no axis", 'write "x", "y", "z" or a vector [1, 0, 0]')
        return letters[value]
    return value


Axis = Annotated[Vector, BeforeValidator(read_axis)]


class Closure(Table):
    """Two frames that coincide but for what the joint lets go."""

    name: Name | None = None
    between: tuple[Name, Name]
    joint: ClosureKind
    axis: Axis = (0.0, 0.0, 1.0)
    axis_2: Axis | None = None

    @model_validator(mode="after")
    def _axes(self) -> Closure:
        for axis in (self.axis, self.axis_2):
            if axis is not None and math.hypot(*axis) < 1e-9:
                raise complain("the axis has no length", 'write "x", "y", "z" or a vector that is not zero')
        if self.joint == "universal" and ("axis" not in self.model_fields_set or self.axis_2 is None):
            raise complain("a universal closure needs both arms of its cross", "give axis and axis_2")
        return self


class Reference(Table):
    """Where the data come from."""

    source: str = ""
    inferred: tuple[str, ...] = ()
    fitted: tuple[str, ...] = ()
    errata: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class WorkingMode(Table):
    """Which assembly is meant: start values and signs of joints."""

    start: dict[str, Number] = {}
    signs: dict[str, Sign] = {}


class Actuation(Table):
    """Another choice of motors and of joints that stand still."""

    actuated: tuple[Name, ...] = ()
    locked: tuple[Name, ...] = ()


class Legs(BaseModel):
    """Repeated legs; every other list beside `names` is a value per leg (JSON schema only: the loader expands legs)."""

    model_config = ConfigDict(extra="allow")
    names: list[str]
    frame: list[Frame] = []
    point: list[Point] = []
    closure: list[Closure] = []


class RobotFile(Table):
    """The whole file."""

    format: Literal[1]
    name: Name
    title: str = ""
    motion: Literal["spatial", "planar"] = "spatial"
    gravity: Vector = (0.0, 0.0, -9.81)
    end_effector: Name | None = None
    reference: Reference = Reference()
    constants: dict[str, Number] = {}
    frame: tuple[Frame, ...] = ()
    platform: Platform | None = None
    point: tuple[Point, ...] = ()
    closure: tuple[Closure, ...] = ()
    legs: Legs | list[Legs] | None = None
    poses: dict[str, dict[str, Number]] = {}
    working_modes: dict[str, WorkingMode] = {}
    actuation: dict[str, Actuation] = {}
    # which leg each expanded frame belongs to; filled by the loader, not a key of the file
    leg_of: dict[str, str] = Field(default={}, exclude=True, repr=False)


def json_schema() -> dict[str, Any]:
    """JSON schema of the file for editors."""
    schema = RobotFile.model_json_schema()
    schema["properties"].pop("leg_of")
    schema["title"] = "parflex robot file"
    return schema
