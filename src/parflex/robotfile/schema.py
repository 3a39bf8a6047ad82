"""Schema of the robot file as typed tables."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, model_validator

from parflex.robotfile.element_schema import CouplingTable, ElementTable, Visual
from parflex.robotfile.motion_schema import MotionTable
from parflex.robotfile.values import (
    Axis,
    Coordinates,
    Ends,
    Flag,
    Flags,
    FrameName,
    Name,
    Names,
    Number,
    Numbers,
    Pair,
    Start,
    Table,
    Text,
    Texts,
    Vector,
    check_limit_values,
    list_of,
    plain_list,
    read_coordinates,
    value_error,
)

Sign = Literal["+", "-"]

JointKind = Literal["fixed", "revolute", "prismatic", "helical", "universal", "spherical", "cylindrical", "free"]

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

InertiaRows = Annotated[
    tuple[Vector, Vector, Vector], BeforeValidator(list_of("three rows are", "[[Ixx, Ixy, Ixz], [...], [...]]", 3))
]

Axial = Literal["mean", "linear"]  # axial strain of beams: the mean one, which bending shortens, or that of the chord

NodeNumber = Annotated[int, Field(ge=1, le=10**9, strict=True)]

MIN_RELATIVE_ERROR = 1e-8  # of the band: eigenvalues have seven or eight digits at its edge

SECTION_KEYS = {
    "rectangle": ("y", "z"),
    "circle": ("diameter",),
    "tube": ("diameter", "thickness"),
    "box": ("y", "z", "thickness"),
    "numbers": ("A", "Iy", "Iz", "J", "Ip", "ky", "kz"),
}


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


def _inertia_form(value: Any) -> str:
    """A list with lists in it is a tensor by rows; anything else is read as a diagonal."""
    entries = plain_list(value)
    rows = isinstance(entries, list | tuple) and any(isinstance(entry, list | tuple) for entry in entries)
    return "(rows)" if rows else "(diagonal)"


CentralInertia = Annotated[
    Annotated[Vector, Tag("(diagonal)")] | Annotated[InertiaRows, Tag("(rows)")], Discriminator(_inertia_form)
]


def central_matrix(about_centre: Any) -> np.ndarray:
    """The inertia tensor about the centre from its diagonal or its rows."""
    values = np.array(about_centre)
    return np.diag(values) if values.ndim == 1 else values


def _check_tensor(about_centre: Any) -> None:
    matrix = central_matrix(about_centre)
    if any(abs(matrix[i, j] - matrix[j, i]) > 1e-15 + 1e-9 * abs(matrix[i, j]) for i, j in ((0, 1), (0, 2), (1, 2))):
        hint = "repeat each off-diagonal entry on the other side"
        raise value_error("the inertia tensor is not symmetric", hint, "about_centre", about_centre)


def _check_not_negative(key: str, value: float | None) -> None:
    if value is not None and value < 0:
        what = "the mass" if key in ("M", "mass") else f"{key} ="
        raise value_error(f"{what} {value} is negative", "give zero or more", key, value)


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
    def _check_single_form(self) -> Inertia:
        central_keys = self.model_fields_set & {"mass", "centre", "about_centre"}
        khalil_keys = self.model_fields_set - central_keys - {"IA", "FV", "FS"}
        if central_keys and khalil_keys:
            raise value_error(
                f"'{min(central_keys)}' and '{min(khalil_keys)}' describe the same body twice",
                "use either mass, centre, about_centre or M, MX, ..., ZZ",
                min(khalil_keys),
            )
        if central_keys and self.mass is None:
            raise value_error("'mass' is missing", "give the mass beside centre and about_centre", "mass")
        _check_tensor(self.about_centre)
        for key in ("M", "mass", "IA", "FV", "FS"):
            _check_not_negative(key, getattr(self, key))
        return self


class PointMass(Table):
    """A mass fixed to the body of a frame."""

    mass: Number
    position: Vector = (0.0, 0.0, 0.0)
    about_centre: CentralInertia = (0.0, 0.0, 0.0)

    @model_validator(mode="after")
    def _possible(self) -> PointMass:
        _check_not_negative("mass", self.mass)
        _check_tensor(self.about_centre)
        return self


PointMasses = Annotated[
    tuple[PointMass, ...], BeforeValidator(list_of("a list of tables is", "[{ mass = ..., position = ... }]"))
]


class Friction(Table):
    """FV qd + FS sign(qd) + offset; other numbers for negative rates where they are given; at rest up to `static`."""

    viscous: Number = 0.0
    coulomb: Number = 0.0
    viscous_back: Number | None = None
    coulomb_back: Number | None = None
    offset: Number = 0.0
    static: Number | None = None

    @model_validator(mode="after")
    def _possible(self) -> Friction:
        for key in ("viscous", "coulomb", "viscous_back", "coulomb_back"):
            _check_not_negative(key, getattr(self, key))
        _check_static(self.static, self.coulomb)
        return self


def _check_static(static: float | None, sliding: float) -> None:
    """Friction at rest bears no less than friction in motion."""
    if static is not None and not static >= sliding:
        fix = f"give at least {sliding:g}, or leave it out: a joint at rest then bears as much as a sliding one"
        raise value_error(f"the static friction is below the sliding friction {sliding:g}", fix, "static", static)


class Spring(Table):
    """k (q - rest)."""

    stiffness: Number
    rest: Number = 0.0


class StopTable(Table):
    """At the limits of a joint, in simulations with stops: k depth + c rate, where that pushes."""

    stiffness: Number
    damping: Number = 0.0

    @model_validator(mode="after")
    def _possible(self) -> StopTable:
        if not self.stiffness > 0:
            what = "is negative" if self.stiffness < 0 else "is zero"
            raise value_error(f"the stiffness of the stop {what}", "give e.g. 1e5", "stiffness", self.stiffness)
        _check_not_negative("damping", self.damping)
        return self


def _check_single_mass(
    modal: Modal | Superelement | None, inertia: Inertia, point_masses: tuple[PointMass, ...]
) -> None:
    """A body given by modes or matrices brings its own mass; what else it carries sits on its nodes."""
    inertia_keys = inertia.model_fields_set - {"IA", "FV", "FS"}
    has_mass = any(np.any(np.array(getattr(inertia, key))) for key in inertia_keys)
    if modal is not None and (has_mass or point_masses):
        key = "inertia" if has_mass else "point_masses"
        hint = f"remove {key} (inertia = {{ mass = 0 }}), or give the rest of the mass to a frame on one of its nodes"
        what = "matrices" if isinstance(modal, Superelement) else "modes"
        raise value_error(f"a body given by {what} takes its mass from its file", hint, key)


def _check_pitch(joint: str, pitch: float | None) -> None:
    """A screw needs its pitch; no other joint has one."""
    hint = "give the travel along z per radian in m: the lead divided by 2*pi"
    if joint != "helical" and pitch is not None:
        fix = 'remove it, or use joint = "helical"'
        raise value_error(f"a {joint} joint has no pitch", fix, "pitch", pitch)
    if joint == "helical" and pitch is None:
        raise value_error("a helical joint needs its pitch", hint, "pitch")
    if pitch == 0:
        raise value_error(
            "a pitch of zero makes a revolute joint", hint + ', or use joint = "revolute"', "pitch", pitch
        )


class Frame(Table):
    """A frame, the joint that carries it and the body fixed to it."""

    name: Name
    parent: FrameName = "base"
    joint: JointKind = "fixed"
    pitch: Number | None = None
    mdh: MdhRow | None = None
    place: Placement | None = None
    actuated: Flags = False
    sensed: Flags = False
    locked: Flag = False
    start: Start = ()
    limits: Pair | None = None
    velocity_limit: Number | None = None
    effort_limit: Number | None = None
    stop: StopTable | None = None
    inertia: Inertia = Inertia.model_construct()
    point_masses: PointMasses = ()
    beam: Beam | None = None
    modal: Modal | None = None
    superelement: Superelement | None = None
    motor_inertia: Number = 0.0
    friction: Friction = Friction.model_construct()
    spring: Spring | None = None
    damper: Number = 0.0

    @model_validator(mode="after")
    def _consistent(self) -> Frame:
        if self.mdh is not None and self.place is not None:
            raise value_error("'mdh' and 'place' both place the frame", "keep one of them", "place")
        body_keys = [key for key in ("beam", "modal", "superelement") if getattr(self, key) is not None]
        if len(body_keys) > 1:
            raise value_error(
                f"'{body_keys[0]}' and '{body_keys[1]}' both describe the body", "keep one of them", body_keys[1]
            )
        _check_single_mass(self.modal or self.superelement, self.inertia, self.point_masses)
        _check_pitch(self.joint, self.pitch)
        _check_not_negative("motor_inertia", self.motor_inertia)
        _check_not_negative("damper", self.damper)
        check_limit_values(self.limits, self.velocity_limit, self.effort_limit)
        if self.stop is not None and self.limits is None:
            raise value_error("a stop needs the limits of its joint", "give limits = [low, high]", "stop")
        duplicates = [
            pair
            for pair in (("IA", self.motor_inertia), ("FV", self.friction.viscous), ("FS", self.friction.coulomb))
            if pair[1] and getattr(self.inertia, pair[0])
        ]
        if duplicates:
            raise value_error(
                f"'{duplicates[0][0]}' is given twice",
                "keep it in 'inertia' or in its own key",
                "inertia",
                duplicates[0][1],
            )
        _check_static(self.friction.static, self.friction.coulomb + self.inertia.FS)
        return self


class PlatformTable(Table):
    """The platform: one more body, free on the base."""

    name: Name = "platform"
    start: Start = ()
    inertia: Inertia = Inertia.model_construct()
    point_masses: PointMasses = ()
    points: dict[str, Vector] = {}
    modal: Modal | None = None
    superelement: Superelement | None = None

    @model_validator(mode="after")
    def _consistent(self) -> PlatformTable:
        if self.modal is not None and self.superelement is not None:
            raise value_error("'modal' and 'superelement' both describe the body", "keep one of them", "superelement")
        _check_single_mass(self.modal or self.superelement, self.inertia, self.point_masses)
        return self


class Point(Table):
    """A named place on a frame."""

    name: Name
    frame: FrameName
    position: Vector = (0.0, 0.0, 0.0)
    rotation: Vector = (0.0, 0.0, 0.0)


class Closure(Table):
    """Two frames that coincide but for what the joint lets go."""

    name: Name | None = None
    between: Ends
    joint: ClosureKind
    axis: Axis = (0.0, 0.0, 1.0)
    axis_2: Axis | None = None

    @model_validator(mode="after")
    def _axes(self) -> Closure:
        for key, axis in (("axis", self.axis), ("axis_2", self.axis_2)):
            if axis is not None and sum(part * part for part in axis) < 1e-18:
                raise value_error(
                    "the axis has no length", 'write "x", "y", "z" or a vector that is not zero', key, axis
                )
        if self.joint == "universal" and ("axis" not in self.model_fields_set or self.axis_2 is None):
            raise value_error("a universal closure needs both axes of its cross", "give axis and axis_2", "axis_2")
        return self


class SourceTable(Table):
    """Where the data come from."""

    source: Text = ""
    inferred: Texts = ()
    fitted: Texts = ()
    errata: Texts = ()
    notes: Texts = ()


class WorkingMode(Table):
    """Which assembly is meant: start values and signs of joints."""

    start: Coordinates = {}
    signs: Annotated[dict[str, Sign], BeforeValidator(read_coordinates)] = {}


class Actuation(Table):
    """Another choice of motors and of locked joints."""

    actuated: Names = ()
    locked: Names = ()


class LegsTable(BaseModel):
    """Repeated legs; every other list beside `names` is a value per leg (JSON schema only: the loader expands legs)."""

    model_config = ConfigDict(extra="allow")
    names: list[str]
    frame: list[Frame] = []
    point: list[Point] = []
    closure: list[Closure] = []
    coupling: list[CouplingTable] = []
    element: list[ElementTable] = []
    visual: list[Visual] = []


class RobotFile(Table):
    """The whole file."""

    format: Literal[1]
    name: Name
    extends: Text | None = None
    title: Text = ""
    motion: Literal["spatial", "planar"] = "spatial"
    gravity: Vector = (0.0, 0.0, -9.81)
    rotations: Literal["consistent", "papers"] = "consistent"
    axial: Axial = "mean"
    end_effector: FrameName | None = None
    reference: SourceTable = SourceTable.model_construct()
    constants: dict[str, Number] = {}
    materials: dict[str, MaterialTable] = {}
    sections: dict[str, SectionTable] = {}
    frame: tuple[Frame, ...] = ()
    platform: PlatformTable | None = None
    point: tuple[Point, ...] = ()
    closure: tuple[Closure, ...] = ()
    coupling: tuple[CouplingTable, ...] = ()
    element: tuple[ElementTable, ...] = ()
    visual: tuple[Visual, ...] = ()
    legs: LegsTable | list[LegsTable] | None = None
    poses: dict[Name, Coordinates] = {}
    working_modes: dict[Name, WorkingMode] = {}
    actuation: dict[Name, Actuation] = {}
    motions: dict[Name, MotionTable] = {}
    # which leg each expanded frame belongs to; filled by the loader, not a key of the file
    leg_of: dict[str, str] = Field(default={}, exclude=True, repr=False)


def json_schema() -> dict[str, Any]:
    """JSON schema of the file for editors."""
    schema = RobotFile.model_json_schema()
    schema["properties"].pop("leg_of")
    schema["title"] = "parflex robot file"
    return schema


class MaterialTable(Table):
    """An elastic material: two of Young's modulus, shear modulus and Poisson's ratio, and the density."""

    elastic_modulus: Number
    density: Number
    shear_modulus: Number | None = None
    poisson_ratio: Number | None = None

    @model_validator(mode="after")
    def _possible(self) -> MaterialTable:
        for key in ("elastic_modulus", "density", "shear_modulus"):
            value = getattr(self, key)
            if value is not None and value <= 0:
                raise value_error(f"{key} = {value} is not positive", "give a positive number", key, value)
        if self.shear_modulus is not None and self.poisson_ratio is not None:
            raise value_error("shear_modulus and poisson_ratio are both given", "keep one of them", "poisson_ratio")
        if self.poisson_ratio is not None and not -1 < self.poisson_ratio <= 0.5:
            hint = "give one between -1 and 0.5"
            raise value_error(
                f"no material has a Poisson ratio of {self.poisson_ratio}", hint, "poisson_ratio", self.poisson_ratio
            )
        return self


class SectionTable(Table):
    """A cross-section: rectangle (y, z), circle (diameter), tube (diameter, thickness), box (y, z, thickness).

    Or numbers (A, Iy, Iz, ...).
    """

    shape: Literal["rectangle", "circle", "tube", "box", "numbers"]
    y: Number | None = None
    z: Number | None = None
    diameter: Number | None = None
    thickness: Number | None = None
    A: Number | None = None
    Iy: Number | None = None
    Iz: Number | None = None
    J: Number | None = None
    Ip: Number | None = None
    ky: Number | None = None
    kz: Number | None = None

    @model_validator(mode="after")
    def _complete(self) -> SectionTable:
        needed = SECTION_KEYS[self.shape]
        present = self.model_fields_set - {"shape"}
        for key in sorted(present - set(needed)):
            raise value_error(f"a {self.shape} section has no '{key}'", "it has " + ", ".join(needed), key)
        for key in needed:
            value = getattr(self, key)
            if value is None:
                if key in ("Ip", "ky", "kz"):
                    continue
                raise value_error(f"a {self.shape} section needs '{key}'", f"give {', '.join(needed)}", key)
            if value <= 0:
                raise value_error(f"{key} = {value} is not positive", "a section needs positive sizes", key, value)
        for key in ("ky", "kz"):
            _refuse_shear_coefficient(key, getattr(self, key))
        if self.shape == "tube" and 2 * self.thickness >= self.diameter:  # type: ignore[operator]
            hint = "give a thickness below half the diameter, or use the shape 'circle'"
            raise value_error("the wall of this tube leaves no hole", hint, "thickness")
        if self.shape == "box" and any(2 * self.thickness >= side for side in (self.y, self.z)):  # type: ignore[operator]
            hint = "give a thickness below half the smaller side, or use the shape 'rectangle'"
            raise value_error("the wall of this box leaves no hole", hint, "thickness")
        return self


def _refuse_shear_coefficient(key: str, value: float | None) -> None:
    """A share of the area: above zero, at most one."""
    if value is not None and not 0 < value <= 1:
        raise value_error(f"{key} = {value} is not a shear coefficient", "give a number above 0, at most 1", key, value)


class Damping(Table):
    """Damping of a beam: `mass` (1/s) times its inertia, `stiffness` (s) times its stiffness, or a ratio."""

    mass: Number = 0.0
    stiffness: Number = 0.0
    ratio: Number = 0.0

    @model_validator(mode="after")
    def _possible(self) -> Damping:
        for key in ("mass", "stiffness", "ratio"):
            if getattr(self, key) < 0:
                value = getattr(self, key)
                raise value_error(f"{key} = {value} is negative", "damping must not be negative", key, value)
        if self.ratio and self.stiffness:
            raise value_error("ratio and stiffness are both given", "keep one of them", "ratio")
        return self


class Reduce(Table):
    """Reduction of a beam of many elements: frequencies up to `band` have an error of at most `error`, both in Hz."""

    error: Number
    band: Number

    @model_validator(mode="after")
    def _possible(self) -> Reduce:
        for key, example in (("error", 0.1), ("band", 200)):
            value = getattr(self, key)
            if not value > 0:
                raise value_error(f"{key} = {value} is not positive", f"give it in Hz, e.g. {example}", key, value)
        if self.error < MIN_RELATIVE_ERROR * self.band:
            hint = f"give {MIN_RELATIVE_ERROR * self.band:.2g} Hz or more"
            raise value_error(
                f"an error of {self.error:g} Hz is below the rounding of frequencies", hint, "error", self.error
            )
        return self


class Beam(Table):
    """The body of a frame as an elastic beam along its x axis; its end is the node `tip`."""

    length: Number
    material: Name
    section: Name
    model: Literal["planar", "spatial"] | None = None
    elements: int = Field(default=1, ge=1, le=200, strict=True)
    rotary_inertia: Flag = False
    roll: Number = 0.0
    shear: Flag = False
    shear_coefficient: Number | None = None
    damping: Damping | None = None
    axial: Axial | None = None
    reduce: Reduce | None = None

    @model_validator(mode="after")
    def _possible(self) -> Beam:
        if self.length <= 0:
            raise value_error(
                f"the length {self.length} is not positive", "give a positive length", "length", self.length
            )
        if self.shear_coefficient is not None and not self.shear:
            key = "shear_coefficient"
            raise value_error("shear_coefficient has no effect without shear", "write shear = true", key)
        _refuse_shear_coefficient("shear_coefficient", self.shear_coefficient)
        return self


class Modal(Table):
    """The body of a platform or a frame given by modes: an exchange file, and what differs from it."""

    file: Text
    modes: int | None = Field(default=None, ge=1, le=1000, strict=True)
    stiffness: Numbers | None = None
    damping: Number | None = None

    @model_validator(mode="after")
    def _possible(self) -> Modal:
        for value in self.stiffness or ():
            if value <= 0:
                hint = "give positive stiffnesses; rigid-body motions are not modes"
                raise value_error(f"the modal stiffness {value} is not positive", hint, "stiffness", value)
        if self.damping is not None and self.damping < 0:
            hint = "damping must not be negative"
            raise value_error(f"the damping ratio {self.damping} is negative", hint, "damping", self.damping)
        return self


class Superelement(Table):
    """The body of a frame or platform by matrices that a finite-element program has reduced (Craig-Bampton).

    `nodes` names interface nodes by their numbers; the body is clamped to its frame at the node `root`, by default the
    first one, and moves freely with the platform and with free frames.
    """

    file: Text | dict[Literal["M", "K", "D", "geometric"], Text]
    nodes: dict[Name, NodeNumber] = Field(min_length=1)
    root: Name | None = None
    modes: int | None = Field(default=None, ge=0, le=1000, strict=True)
    damping: Number | Damping | None = None
    geometric: Flag | dict[Name, Numbers] = True
    positions: dict[Name, Vector] | None = None
    units: Literal["m", "mm", "kg-mm-N", "kg-mm-ms", "kg-mm-s", "in"] = "m"

    @model_validator(mode="after")
    def _possible(self) -> Superelement:
        for name in self.nodes:
            if "." in name or "@" in name:
                raise value_error(f"'{name}' is not a valid node name", "give a name without dots", "nodes", name)
        named = [(self.root, "root")] if self.root is not None else []
        named += [(name, "positions") for name in self.positions or ()]
        named += [(name, "geometric") for name in self.geometric] if isinstance(self.geometric, dict) else []
        for name, key in named:
            if name not in self.nodes:
                hint = f"its nodes are {', '.join(self.nodes)}"
                raise value_error(f"'{name}' is not a node of the super-element", hint, key, name)
        for load in self.geometric.values() if isinstance(self.geometric, dict) else ():
            if len(load) != 6:
                raise value_error(f"a load has six components, not {len(load)}", "give fx fy fz mx my mz", "geometric")
        ratio = self.damping
        if ratio is not None and not isinstance(ratio, Damping) and ratio < 0:
            raise value_error(
                f"the damping ratio {ratio} is negative", "damping must not be negative", "damping", ratio
            )
        if isinstance(self.file, dict) and not {"M", "K"} <= set(self.file):
            raise value_error(
                "a file for each matrix needs M and K", 'write file = { M = "m.mtx", K = "k.mtx" }', "file"
            )
        return self
