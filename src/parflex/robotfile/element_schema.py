"""Schema of elements between two points and of couplings between joints."""

from __future__ import annotations

from collections.abc import Callable, Container
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, model_validator

from parflex.errors import RobotFileError
from parflex.robotfile.values import (
    LIMIT_KEYS,
    Coordinates,
    Flag,
    FrameName,
    Name,
    Number,
    Pair,
    Table,
    Text,
    Vector,
    check_limit_values,
    list_of,
    value_error,
)

if TYPE_CHECKING:
    from parflex.robotfile import schema

Ends = Annotated[tuple[FrameName, FrameName], BeforeValidator(list_of("two frames are", '["base", "platform"]', 2))]

Scale = Annotated[Vector, BeforeValidator(lambda value: value if isinstance(value, (list, tuple)) else [value] * 3)]

Row = Annotated[tuple[Number, Number], BeforeValidator(list_of("a pair is", "[length, force]", 2))]

Rows = Annotated[tuple[Row, ...], BeforeValidator(list_of("a list of pairs is", "[[0.1, 0], [0.2, 50]]"))]

POSE_COORDINATES = ("x", "y", "z", "qw", "qx", "qy", "qz", "rx", "ry", "rz", "theta", "zx", "zy", "zz")

KEYS = {  # what each kind may have beside its name and ends; the first of each group is required, or another of it
    "spring": ("stiffness", "rest", "damping", "table"),
    "damper": ("damping",),
    "rod": ("rest",),
    "force": ("table", "damping"),
    "cable": ("stiffness", "rest", "damping", "actuated"),
    "strut": ("actuated", "stiffness", "rest", "damping", *LIMIT_KEYS),
}


class Visual(Table):
    """A mesh that viewers show, fixed to a frame; it has no mass."""

    frame: FrameName
    file: Text
    scale: Scale = (1.0, 1.0, 1.0)
    position: Vector = (0.0, 0.0, 0.0)
    rotation: Vector = (0.0, 0.0, 0.0)


class ForceTable(Table):
    """Tension over length, and over the rate at which the length grows; both are added."""

    length: Rows = ()
    speed: Rows = ()


def _read_table(value: Any) -> Any:
    return {"length": value} if isinstance(value, list | tuple) else value


class ElementTable(Table):
    """A spring, damper, rod, force, cable or strut between two frames or points; tension is positive."""

    name: Name
    between: Ends
    kind: Literal["spring", "damper", "rod", "force", "cable", "strut"]
    stiffness: Number | None = None
    rest: Number | None = None
    damping: Number | None = None
    table: Annotated[ForceTable | None, BeforeValidator(_read_table)] = None
    actuated: Flag = False
    limits: Pair | None = None
    velocity_limit: Number | None = None
    effort_limit: Number | None = None

    @property
    def measured(self) -> bool:
        """Whether its length is a coordinate: that of a strut, or of a cable that a motor or a drum winds."""
        elastic = (self.stiffness, self.rest, self.damping) != (None, None, None)
        return self.kind == "strut" or (self.kind == "cable" and not elastic)

    @model_validator(mode="after")
    def _whole(self) -> ElementTable:
        for key in ("stiffness", "rest", "damping", "table", "actuated", *LIMIT_KEYS):
            value = getattr(self, key)
            if value not in (None, False) and key not in KEYS[self.kind]:
                allowed = ", ".join(f"'{name}'" for name in KEYS[self.kind])
                raise value_error(f"a {self.kind} has no '{key}'", f"it may have {allowed}", key)
            if key in ("stiffness", "rest", "damping") and value is not None and value < 0:
                raise value_error(f"the {key} is negative", "give zero or more", key, value)
        check_limit_values(self.limits, self.velocity_limit, self.effort_limit)
        if self.limits and self.limits[0] < 0:
            raise value_error("the limits of a strut are lengths", "give [low, high] in m", "limits", self.limits)
        if self.between[0] == self.between[1]:
            raise value_error("both ends are the same", "name two frames", "between", self.between[0])
        self._enough()
        self._check_table()
        return self

    def _enough(self) -> None:
        """What a kind needs to act at all."""
        if self.kind == "spring" and self.table is not None and (self.stiffness is not None or self.rest is not None):
            raise value_error("'table' and 'stiffness' both say how the spring pulls", "keep one of them", "table")
        if self.kind == "cable" and self.actuated and not self.measured:
            raise value_error(
                "a cable with a motor does not stretch",
                "leave out stiffness and rest; couple an elastic cable to a drum, by a coupling with a stiffness",
                "actuated",
            )
        needs = {"spring": ("stiffness", "rest"), "cable": ("stiffness", "rest"), "damper": ("damping",)}
        needs |= {"cable": ()} if self.measured else {}
        units = {"stiffness": "stiffness = 1000 (N/m)", "rest": "rest = 0.2 (m)", "damping": "damping = 50 (N s/m)"}
        for key in needs.get(self.kind, ()):
            if self.table is None and getattr(self, key) is None:
                raise value_error(f"the {self.kind} needs its {key}", f"give {units[key]}", key)
        for key in ("stiffness",) if self.kind in ("spring", "cable") else ():
            if getattr(self, key) == 0:
                raise value_error(f"a {self.kind} of stiffness 0 does nothing", "give it in N/m", key, 0.0)
        if self.kind == "strut" and (self.stiffness is None) != (self.rest is None):
            missing = "rest" if self.rest is None else "stiffness"
            raise value_error("a strut with a spring needs 'stiffness' and 'rest'", f"add {missing}", missing)
        if self.kind == "rod" and self.rest == 0:
            raise value_error("a rod cannot have length zero", "use a closure", "rest", 0.0)
        if self.kind == "force" and self.table is None:
            raise value_error("the force needs its table", "give table = [[length, force], ...]", "table")

    def _check_table(self) -> None:
        for quantity, rows in (("length", self.table.length), ("speed", self.table.speed)) if self.table else ():
            if len(rows) == 1:
                raise value_error("one pair makes no table", "give two or more", f"table.{quantity}")
            out_of_order = [high[0] for low, high in pairwise(rows) if not low[0] < high[0]]
            if out_of_order:
                raise value_error(
                    f"the {quantity}s do not rise", "sort them, each once", f"table.{quantity}", out_of_order[0]
                )
        if self.table and not self.table.length and not self.table.speed:
            raise value_error("the table is empty", "give table = [[length, force], ...]", "table")
        if self.table and self.kind == "spring" and not self.table.length:
            raise value_error("a spring needs a table over length", 'write it so, or kind = "force"', "table")


def strut_names(robot: schema.RobotFile) -> list[str]:
    """Struts and driven cables, whose lengths are coordinates like those of joints."""
    return [element.name for element in robot.element if element.measured]


def _check_coordinate(name: str, places: Container[str], key: str) -> None:
    """The name of a strut is that of a coordinate: it must not mean another one, or a choice of joints."""
    frame, dot, coordinate = name.rpartition(".")
    if coordinate in POSE_COORDINATES and (not dot or frame in places):
        meaning = f"a coordinate of the frame '{frame}'" if dot else "a coordinate of the end effector"
    elif name in ("actuators", "none"):
        meaning = "a choice of joints to lock"
    else:
        return
    raise RobotFileError(
        f"'{name}' is {meaning}, and cannot be the name of a strut, whose length is a coordinate of that name",
        key=key,
        value=name,
        hint="rename the strut",
    )


def check_elements(
    robot: schema.RobotFile, place_names: Container[str], places: Container[str], hint: Callable[[str], str]
) -> None:
    """Raise at the first element that does not fit the rest of the file."""
    owners = {closure.name: "closure" for closure in robot.closure if closure.name}
    owners |= {coupling.name: "coupling" for coupling in robot.coupling}
    driven_names = {name for coupling in robot.coupling for name in (coupling.joint, *coupling.others)}
    driven_names |= {name for actuation in robot.actuation.values() for name in actuation.actuated}
    for element in robot.element:
        key = f"element '{element.name}'"
        if element.kind == "cable" and element.measured and not (element.actuated or element.name in driven_names):
            raise RobotFileError(
                f"the cable '{element.name}' is neither elastic nor driven",
                key=key,
                value=element.name,
                hint="give it stiffness and rest, or actuated = true, or couple it to a drum",
            )
        owner_kind = owners.get(element.name)
        if owner_kind == "element":
            raise RobotFileError(
                f"the element '{element.name}' is there twice", key=key, value=element.name, hint="rename one of them"
            )
        if owner_kind is None and element.name in places:
            owner_kind = "point" if any(point.name == element.name for point in robot.point) else "frame"
        if owner_kind is not None:
            raise RobotFileError(
                f"a {owner_kind} is called '{element.name}' too", key=key, value=element.name, hint="rename one of them"
            )
        if element.measured:
            _check_coordinate(element.name, places, key)
        owners[element.name] = "element"
        for end in element.between:
            if end not in place_names:
                raise RobotFileError(
                    f"there is no frame or point '{end}'",
                    key=f"{key}: between",
                    value=end,
                    hint=hint(end),
                )


class CouplingTable(Table):
    """joint = sum of ratio times other + offset; or a screw: `lead` metres along per turn about the axis.

    A positive lead gives a positive travel for a positive turn: right-handed where one body turns and slides,
    left-handed where a spindle turns in place and its nut slides.
    """

    name: Name
    joint: Name
    terms: Coordinates = {}
    other: Name | None = None
    lead: Number | None = None
    offset: Number = 0.0
    stiffness: Number | None = None
    damping: Number = 0.0
    backlash: Number = 0.0
    efficiency: Number = 1.0
    efficiency_back: Number | None = None

    @model_validator(mode="after")
    def _whole(self) -> CouplingTable:
        form = 'write terms = { NAME = ratio }, or other = "NAME" and lead = 0.005'
        if self.terms and (self.other is not None or self.lead is not None):
            raise value_error("'terms' and 'lead' are both given", "keep one of them", "terms")
        if not self.terms and self.other is None and self.lead is None:
            raise value_error("the coupling has neither 'terms' nor 'other' and 'lead'", form, "terms")
        if not self.terms and (self.other is None or self.lead is None):
            missing = "other" if self.other is None else "lead"
            raise value_error("a screw needs both 'other' and 'lead'", f"add {missing} = ...", missing)
        if self.lead == 0:
            raise value_error("a lead of zero couples nothing", "give the travel per turn in m", "lead", 0.0)
        for name, ratio in self.terms.items():
            if ratio == 0:
                raise value_error(f"the ratio of '{name}' is zero", "remove the term", f"terms.{name}", 0.0)
        if self.joint in (*self.terms, self.other):
            raise value_error("a joint cannot be coupled to itself", "name another joint", "joint", self.joint)
        self._check_spring()
        return self

    def _check_spring(self) -> None:
        """A spring that pushes back, and what only a spring can have."""
        if self.stiffness is not None and self.stiffness <= 0:
            raise value_error(
                "the stiffness is not positive", "leave it out for a rigid coupling", "stiffness", self.stiffness
            )
        for key, value in (("damping", self.damping), ("backlash", self.backlash)):
            if value < 0:
                raise value_error(f"the {key} is negative", "give zero or more", key, value)
        if not 0 < self.efficiency <= 1:
            raise value_error(
                "the efficiency is not between 0 and 1", "1 is without losses", "efficiency", self.efficiency
            )
        if self.back > 1:
            raise value_error(
                "the efficiency of driving back is above 1",
                "1 is without losses, zero or less is self-locking",
                "efficiency_back",
                self.efficiency_back,
            )
        for key, setting in (("damping", self.damping), ("backlash", self.backlash)):
            if setting and self.stiffness is None:
                raise value_error(
                    f"'{key}' needs 'stiffness', and this coupling is rigid",
                    "give the stiffness of the teeth, belt or thread in N m/rad or N/m at the joint",
                    key,
                    setting,
                )

    @property
    def back(self) -> float:
        """Efficiency where `joint` drives the others."""
        return self.efficiency if self.efficiency_back is None else self.efficiency_back

    @property
    def others(self) -> tuple[str, ...]:
        """Joints that `joint` follows."""
        return tuple(self.terms) or (str(self.other),)
