"""Schema of the robot file as typed tables.

The docstring of a table lists its keys: from there the JSON schema and the page on the robot file have them.
"""

from __future__ import annotations

import inspect
import re
from itertools import pairwise
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationInfo,
)

from parflex.robotfile.motion_schema import MotionTable
from parflex.robotfile.values import (
    LIMIT_KEYS,
    Axis,
    Coordinates,
    Ends,
    Flag,
    Flags,
    FrameName,
    Limits,
    Name,
    Names,
    NotNegative,
    Number,
    Numbers,
    Positive,
    Start,
    Table,
    Text,
    Texts,
    Vector,
    list_of,
    plain_list,
    read_coordinates,
    refuse,
    refusing,
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
Axial = Literal["mean", "linear"]  # axial strain of beams: the mean one, which bending shortens, or that of the chord
NodeNumber = Annotated[int, Field(ge=1, le=10**9, strict=True)]
SHEAR_HINT = "give a number above 0, at most 1"
ShearCoefficient = Annotated[Number, refusing(lambda x: not 0 < x <= 1, "is not a shear coefficient", SHEAR_HINT)]
Efficiency = Annotated[Number, refusing(lambda x: not 0 < x <= 1, "is not between 0 and 1", "1 is without losses")]
BACK_HINT = "1 is without losses, zero or less is self-locking"
BackEfficiency = Annotated[Number, refusing(lambda x: x > 1, "is above 1", BACK_HINT)]
Lead = Annotated[Number, refusing(lambda x: x == 0, "couples nothing", "give the travel per turn in m")]
RIGID_HINT = "leave it out for a rigid coupling"
CouplingStiffness = Annotated[Number, refusing(lambda x: x <= 0, "is not positive", RIGID_HINT)]
Scale = Annotated[Vector, BeforeValidator(lambda value: value if isinstance(value, (list, tuple)) else [value] * 3)]
Row = Annotated[tuple[Number, Number], BeforeValidator(list_of("a pair is", "[length, force]", 2))]


def _check_rising(rows: Any, info: ValidationInfo) -> Any:
    refuse(len(rows) == 1, "a table needs two pairs", "give two or more")
    for low, high in pairwise(rows):
        refuse(not low[0] < high[0], f"the {info.field_name}s do not increase", "sort them, each once", value=high[0])
    return rows


Rows = Annotated[
    tuple[Row, ...],
    BeforeValidator(list_of("a list of pairs is", "[[0.1, 0], [0.2, 50]]")),
    AfterValidator(_check_rising),
]


def _check_tensor(rows: Any) -> Any:
    wrong = any(abs(rows[i][j] - rows[j][i]) > 1e-15 + 1e-9 * abs(rows[i][j]) for i, j in ((0, 1), (0, 2), (1, 2)))
    hint = "repeat each off-diagonal entry on the other side"
    refuse(wrong, "the inertia tensor is not symmetric", hint, value=rows)
    return rows


InertiaRows = Annotated[
    tuple[Vector, Vector, Vector],
    BeforeValidator(list_of("three rows are", "[[Ixx, Ixy, Ixz], [...], [...]]", 3)),
    AfterValidator(_check_tensor),
]


def _inertia_form(value: Any) -> str:
    """Return the tag of a tensor by rows for nested lists, else of a diagonal."""
    entries = plain_list(value)
    rows = isinstance(entries, list | tuple) and any(isinstance(entry, list | tuple) for entry in entries)
    return "(rows)" if rows else "(diagonal)"


CentralInertia = Annotated[
    Annotated[Vector, Tag("(diagonal)")] | Annotated[InertiaRows, Tag("(rows)")], Discriminator(_inertia_form)
]
MIN_RELATIVE_ERROR = 1e-8  # of the band: eigenvalues have seven or eight digits at its edge
SECTION_KEYS = {
    "rectangle": ("y", "z"),
    "circle": ("diameter",),
    "tube": ("diameter", "thickness"),
    "box": ("y", "z", "thickness"),
    "numbers": ("A", "Iy", "Iz", "J", "Ip", "ky", "kz"),
}
ELEMENT_KEYS = {  # keys of each kind in addition to name and ends
    "spring": ("stiffness", "rest", "damping", "table"),
    "damper": ("damping",),
    "rod": ("rest",),
    "force": ("table", "damping"),
    "cable": ("stiffness", "rest", "damping", "actuated"),
    "strut": ("actuated", "stiffness", "rest", "damping", *LIMIT_KEYS),
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


def central_matrix(about_centre: Any) -> np.ndarray:
    """Return the central inertia tensor from its diagonal or its rows."""
    values = np.array(about_centre)
    return np.diag(values) if values.ndim == 1 else values


class Inertia(Table):
    """A body: the Khalil parameters about the frame's origin, or mass, centre and inertia about the centre."""

    M: NotNegative = 0.0
    MX: Number = 0.0
    MY: Number = 0.0
    MZ: Number = 0.0
    XX: Number = 0.0
    XY: Number = 0.0
    XZ: Number = 0.0
    YY: Number = 0.0
    YZ: Number = 0.0
    ZZ: Number = 0.0
    IA: NotNegative = 0.0
    FV: NotNegative = 0.0
    FS: NotNegative = 0.0
    mass: NotNegative | None = None
    centre: Vector = (0.0, 0.0, 0.0)
    about_centre: CentralInertia = (0.0, 0.0, 0.0)

    def check_values(self) -> None:
        """Refuse a body that is described twice, or without its mass."""
        central_keys = self.model_fields_set & {"mass", "centre", "about_centre"}
        khalil_keys = self.model_fields_set - central_keys - {"IA", "FV", "FS"}
        if central_keys and khalil_keys:
            message = f"'{min(central_keys)}' and '{min(khalil_keys)}' describe the same body twice"
            raise value_error(message, "use either mass, centre, about_centre or M, MX, ..., ZZ", min(khalil_keys))
        missing = central_keys and self.mass is None
        refuse(missing, "'mass' is missing", "give the mass with centre and about_centre", "mass")


class PointMass(Table):
    """A mass fixed to the body of a frame."""

    mass: NotNegative
    position: Vector = (0.0, 0.0, 0.0)
    about_centre: CentralInertia = (0.0, 0.0, 0.0)


PointMasses = Annotated[
    tuple[PointMass, ...], BeforeValidator(list_of("a list of tables is", "[{ mass = ..., position = ... }]"))
]


class Friction(Table):
    """FV qd + FS sign(qd) + offset; other numbers for negative rates where they are given; at rest up to `static`."""

    viscous: NotNegative = 0.0
    coulomb: NotNegative = 0.0
    viscous_back: NotNegative | None = None
    coulomb_back: NotNegative | None = None
    offset: Number = 0.0
    static: Number | None = None

    def check_values(self) -> None:
        """Refuse static friction below sliding friction."""
        self.check_static(self.coulomb)

    def check_static(self, sliding: float) -> None:
        """Refuse static friction below sliding friction."""
        if self.static is not None and not self.static >= sliding:
            fix = f"give at least {sliding:g}, or omit it: static friction then equals sliding friction"
            message = f"the static friction is below the sliding friction {sliding:g}"
            raise value_error(message, fix, "static", self.static)


class Spring(Table):
    """k (q - rest)."""

    stiffness: Number
    rest: Number = 0.0


class StopTable(Table):
    """At the limits of a joint, in simulations with stops: k depth + c rate, where that pushes."""

    stiffness: Positive
    damping: NotNegative = 0.0


class MaterialTable(Table):
    """An elastic material: two of Young's modulus, shear modulus and Poisson's ratio, and the density.

    - `elastic_modulus`: Pa.
    - `density`: kg/m3.
    - `shear_modulus`: Pa.
    - `poisson_ratio`: instead of the shear modulus; 0.3 where neither is given.
    """

    elastic_modulus: Positive
    density: Positive
    shear_modulus: Positive | None = None
    poisson_ratio: Number | None = None

    def check_values(self) -> None:
        """Refuse two descriptions of shear, and a Poisson ratio that no material has."""
        ratio, key = self.poisson_ratio, "poisson_ratio"
        twice = self.shear_modulus is not None and ratio is not None
        refuse(twice, "shear_modulus and poisson_ratio are both given", "keep one of them", key)
        if ratio is not None and not -1 < ratio <= 0.5:
            raise value_error(f"no material has a Poisson ratio of {ratio}", "give one between -1 and 0.5", key, ratio)


class SectionTable(Table):
    """A cross-section: rectangle (y, z), circle (diameter), tube (diameter, thickness), box (y, z, thickness).

    Or numbers (A, Iy, Iz, ...).
    """

    shape: Literal["rectangle", "circle", "tube", "box", "numbers"]
    y: Positive | None = None
    z: Positive | None = None
    diameter: Positive | None = None
    thickness: Positive | None = None
    A: Positive | None = None
    Iy: Positive | None = None
    Iz: Positive | None = None
    J: Positive | None = None
    Ip: Positive | None = None
    ky: ShearCoefficient | None = None
    kz: ShearCoefficient | None = None

    def check_values(self) -> None:
        """Refuse keys that the shape does not have, missing ones, and walls without a hole."""
        keys = SECTION_KEYS[self.shape]
        for key in sorted(self.model_fields_set - {"shape", *keys}):
            raise value_error(f"a {self.shape} section has no '{key}'", "it has " + ", ".join(keys), key)
        for key in keys:
            missing = getattr(self, key) is None and key not in ("Ip", "ky", "kz")
            refuse(missing, f"a {self.shape} section needs '{key}'", f"give {', '.join(keys)}", key)
        sides, solid, hint = {
            "tube": ((self.diameter,), "circle", "half the diameter"),
            "box": ((self.y, self.z), "rectangle", "half the smaller side"),
        }.get(self.shape, ((), "", ""))
        full = any(2 * self.thickness >= side for side in sides)  # type: ignore[operator]
        fix = f"give a thickness below {hint}, or use the shape '{solid}'"
        refuse(full, f"the wall of this {self.shape} leaves no hole", fix, "thickness")


class Damping(Table):
    """Damping of a beam: `mass` (1/s) times its inertia, `stiffness` (s) times its stiffness, or a ratio."""

    mass: NotNegative = 0.0
    stiffness: NotNegative = 0.0
    ratio: NotNegative = 0.0

    def check_values(self) -> None:
        """Refuse two numbers for the damping by stiffness."""
        refuse(self.ratio and self.stiffness, "ratio and stiffness are both given", "keep one of them", "ratio")


class Reduce(Table):
    """Reduction of a beam of many elements: frequencies up to `band` have an error of at most `error`, both in Hz."""

    error: Positive
    band: Positive

    def check_values(self) -> None:
        """Refuse an error below rounding."""
        least = MIN_RELATIVE_ERROR * self.band
        if self.error < least:
            message = f"an error of {self.error:g} Hz is below the rounding of frequencies"
            raise value_error(message, f"give {least:.2g} Hz or more", "error", self.error)


class Beam(Table):
    """The body of a frame as an elastic beam along its x axis; its end is the node `tip`.

    - `length`: m.
    - `material`, `section`: names of their tables.
    - `elements`: number of elements; inner nodes are `NAME.1`, `NAME.2`, ...
    - `rotary_inertia`: `true` for rotary inertia of sections in bending (in torsion it is always included).
    - `shear`, `shear_coefficient`: `true` for a Timoshenko beam; the coefficient overrides `ky kz` of the section.
    - `model`: `"planar"` (`ux uy rz` per element end) or `"spatial"` (`ux uy uz rx ry rz`), default as the robot.
    - `roll`: rotation of the section about x.
    - `damping`: `{ mass, stiffness }` (1/s and s), Rayleigh damping of each element relative to its root; or
      `{ ratio }` at the first cantilever bending frequency, stiffness-proportional.
    - `axial`: as at the [top level](#top-level).
    - `reduce`: `{ error = 0.1, band = 200 }`, both Hz: the elements are replaced by the motion of both ends and as few
      modes as keep frequencies up to `band` within `error`, see [reduced beams](vibration.md#reduced-beams).
    """

    length: Positive
    material: Name
    section: Name
    elements: int = Field(default=1, ge=1, le=200, strict=True)
    rotary_inertia: Flag = False
    shear: Flag = False
    shear_coefficient: ShearCoefficient | None = None
    model: Literal["planar", "spatial"] | None = None
    roll: Number = 0.0
    damping: Damping | None = None
    axial: Axial | None = None
    reduce: Reduce | None = None

    def check_values(self) -> None:
        """Refuse a shear coefficient without shear."""
        wrong, key = self.shear_coefficient is not None and not self.shear, "shear_coefficient"
        refuse(wrong, f"{key} has no effect without shear", "write shear = true", key)


class Modal(Table):
    """The body of a platform or a frame given by modes: an exchange file, and what differs from it.

    - `file`: exchange file with mass and modes.
    - `modes`: number of modes, default all.
    - `stiffness`: replaces the modal stiffnesses (1/s^2 for modal mass 1).
    - `damping`: one damping ratio for all modes.
    """

    file: Text
    modes: int | None = Field(default=None, ge=1, le=1000, strict=True)
    stiffness: Annotated[tuple[Positive, ...], BeforeValidator(list_of("a list of numbers is", "[1e4]"))] | None = None
    damping: NotNegative | None = None


class Superelement(Table):
    """The body of a frame or platform by matrices that a finite-element program has reduced (Craig-Bampton).

    - `file`: `.mat`, `.npz`, Abaqus `*MATRIX` or Nastran DMIG; or `{ M = "m.mtx", K = "k.mtx" }` with a file per
      matrix (Matrix Market, Abaqus entries), also `D` and `geometric`.
    - `nodes`: `{ NAME = number, ... }`, numbers of the file, or 1, 2, ... in the order of the matrices. Not all need a
      name. Each is a frame `NAME.NODE`.
    - `root`: node at the origin of the frame, where the body is clamped to it; default the first of `nodes`. Axes are
      those of the file. Without it the platform and `free` frames move with the mean motion of the body; their origin
      is that of the file.
    - `modes`: number of modal coordinates kept, default all.
    - `damping`: one ratio for all modes, or `{ mass, stiffness }`; replaces `D`.
    - `geometric`: load `{ NODE = [fx, fy, fz, mx, my, mz] }` of the geometric stiffness matrix in the file; `false`:
      not used. An array of a matrix per freedom needs no load.
    - `positions`: `{ NAME = [x, y, z], ... }`, m; default those of the file, else those that `K` shows.
    - `units`: `"m"` (kg, m, N), `"mm"` (t, mm, N), `"kg-mm-N"` (masses in kg although forces are in N), `"kg-mm-ms"`
      (kN), `"kg-mm-s"` (mN) or `"in"` (lbf s^2/in, in, lbf).
    """

    file: Text | dict[Literal["M", "K", "D", "geometric"], Text]
    nodes: dict[Name, NodeNumber] = Field(min_length=1)
    root: Name | None = None
    modes: int | None = Field(default=None, ge=0, le=1000, strict=True)
    damping: NotNegative | Damping | None = None
    geometric: Flag | dict[Name, Numbers] = True
    positions: dict[Name, Vector] | None = None
    units: Literal["m", "mm", "kg-mm-N", "kg-mm-ms", "kg-mm-s", "in"] = "m"

    def check_values(self) -> None:
        """Refuse names that are no nodes, loads without six components, and missing matrices."""
        for name in self.nodes:
            wrong = "." in name or "@" in name
            refuse(wrong, f"'{name}' is not a valid node name", "give a name without dots", "nodes", name)
        loads = self.geometric if isinstance(self.geometric, dict) else {}
        named = {"root": [self.root] if self.root else (), "positions": self.positions or (), "geometric": loads}
        for key, name in ((key, name) for key, names in named.items() for name in names):
            message, hint = f"'{name}' is not a node of the super-element", f"its nodes are {', '.join(self.nodes)}"
            refuse(name not in self.nodes, message, hint, key, name)
        for load in loads.values():
            message = f"a load has six components, not {len(load)}"
            refuse(len(load) != 6, message, "give fx fy fz mx my mz", "geometric")
        incomplete = isinstance(self.file, dict) and not {"M", "K"} <= set(self.file)
        hint = 'write file = { M = "m.mtx", K = "k.mtx" }'
        refuse(incomplete, "a file for each matrix needs M and K", hint, "file")


class BodyTable(Table):
    """What frames and the platform have in common: a name, a start and a body."""

    name: Name
    start: Start = ()
    inertia: Inertia = Inertia.model_construct()
    point_masses: PointMasses = ()
    modal: Modal | None = None
    superelement: Superelement | None = None

    def check_values(self) -> None:
        """Refuse a body that is described twice."""
        bodies = [key for key in ("beam", "modal", "superelement") if getattr(self, key, None) is not None]
        if len(bodies) > 1:
            raise value_error(f"'{bodies[0]}' and '{bodies[1]}' both describe the body", "keep one of them", bodies[1])
        inertia_keys = self.inertia.model_fields_set - {"IA", "FV", "FS"}
        has_mass = any(np.any(np.array(getattr(self.inertia, key))) for key in inertia_keys)
        if bodies not in ([], ["beam"]) and (has_mass or self.point_masses):  # what else it carries sits on its nodes
            key, what = "inertia" if has_mass else "point_masses", "modes" if self.modal is not None else "matrices"
            hint = f"remove {key} (inertia = {{ mass = 0 }}), or put additional mass on a frame at one of its nodes"
            raise value_error(f"a body given by {what} takes its mass from its file", hint, key)


class Frame(BodyTable):
    """A frame, the joint that carries it and the body fixed to it.

    - `name`: unique; letters, digits, `_`, `-` and `.`.
    - `parent`: frame or point it is mounted on.
    - `joint`: the kind of joint.
    - `pitch`: of a `helical` joint, which needs it: displacement along z per radian, m (lead over `2*pi`); negative:
      left-handed.
    - `mdh`: `{ gamma, b, alpha, d, theta, r }`, Khalil-Kleinfinger parameters, default zero.
    - `place`: `{ position = [x, y, z], rotation = [rx, ry, rz] }` instead of `mdh`; `rotation` is a rotation vector.
    - `actuated`: `true` for a motor; for two axes also `[true, false]`.
    - `sensed`: `true` for a passive joint with a sensor, for the [redundant model](redundant.md).
    - `locked`: `true` for a joint fixed at its `start` value or that of the pose.
    - `start`: initial guess for poses, default zero; a list for two axes, rotation vector or quaternion for
      `spherical`, `[x, y, z, rx, ry, rz]` for `free`.
    - `limits`: `[low, high]` of the coordinate, see [limits](#limits).
    - `velocity_limit`, `effort_limit`: positive magnitudes, m/s or rad/s, N or N m.
    - `stop`: `{ stiffness, damping }`, beyond the limits, in [simulations with stops](simulation.md#stops) alone.
    - `inertia`, `beam`, `modal`, `superelement`: rigid or flexible [body](#frame-frame-joint-and-body); default
      massless. `rigid=True` (`--rigid`) loads flexible bodies
      [as rigid ones](howto-flexible-link.md#compute-the-rigid-robot-from-the-same-file).
    - `point_masses`: list of `{ mass, position, about_centre }` added to the body.
    - `motor_inertia`: rotor inertia `IA` at the joint, kg m2 (kg for prismatic).
    - `friction`: `{ viscous, coulomb, viscous_back, coulomb_back, offset, static }`: `FV qd + FS sign(qd) + offset`.
      `viscous_back` and `coulomb_back` act at negative rates (default: the same); `offset` is a constant effort that
      the motor gives, e.g. for the offset of its amplifier. In [simulations](simulation.md#friction) the joint sticks
      at rest up to `static` (default `coulomb`, not below it; backwards `coulomb_back` and as much more).
    - `spring`: `{ stiffness, rest }`: `k (q - rest)`.
    - `damper`: `c qd`.
    """

    parent: FrameName = "base"
    joint: JointKind = "fixed"
    pitch: Number | None = None
    mdh: MdhRow | None = None
    place: Placement | None = None
    actuated: Flags = False
    sensed: Flags = False
    locked: Flag = False
    limits: Limits | None = None
    velocity_limit: Positive | None = None
    effort_limit: Positive | None = None
    stop: StopTable | None = None
    beam: Beam | None = None
    motor_inertia: NotNegative = 0.0
    friction: Friction = Friction.model_construct()
    spring: Spring | None = None
    damper: NotNegative = 0.0

    def check_values(self) -> None:
        """Refuse what is given twice, and a pitch or a stop that the joint cannot have."""
        super().check_values()
        twice = self.mdh is not None and self.place is not None
        refuse(twice, "'mdh' and 'place' both place the frame", "keep one of them", "place")
        helical, hint = self.joint == "helical", "give the travel along z per radian in m: the lead divided by 2*pi"
        wrong, fix = not helical and self.pitch is not None, 'remove it, or use joint = "helical"'
        refuse(wrong, f"a {self.joint} joint has no pitch", fix, "pitch", self.pitch)
        refuse(helical and self.pitch is None, "a helical joint needs its pitch", hint, "pitch")
        hint += ', or use joint = "revolute"'
        refuse(self.pitch == 0, "a pitch of zero makes a revolute joint", hint, "pitch", self.pitch)
        endless = self.stop is not None and self.limits is None
        refuse(endless, "a stop needs the limits of its joint", "give limits = [low, high]", "stop")
        of_joint = {"IA": self.motor_inertia, "FV": self.friction.viscous, "FS": self.friction.coulomb}
        for key, value in of_joint.items():
            hint = "state it in 'inertia' or in its own key"
            refuse(value and getattr(self.inertia, key), f"'{key}' is given twice", hint, "inertia", value)
        self.friction.check_static(self.friction.coulomb + self.inertia.FS)


class PlatformTable(BodyTable):
    """The platform: one more body, free on the base.

    - `name`: of its frame.
    - `inertia`, `point_masses`, `modal`, `superelement`: its body, as of frames.
    - `start`: `[x, y, z]`, `[x, y, z, rx, ry, rz]` or planar `[x, y, theta]`.
    - `points`: `{ b1 = [x, y, z], ... }`, which defines points `platform.b1`.
    """

    name: Name = "platform"
    points: dict[str, Vector] = {}


class Point(Table):
    """A named place on a frame."""

    name: Name
    frame: FrameName
    position: Vector = (0.0, 0.0, 0.0)
    rotation: Vector = (0.0, 0.0, 0.0)


class Closure(Table):
    """Two frames that coincide but for what the joint lets go.

    - `between`: two frames or points.
    - `joint`: [kind](#closure-loop-closures).
    - `axis`: axis in the first frame: `"x"`, `"y"`, `"z"` (default) or a vector.
    - `axis_2`: the same axis in the second frame, default `axis`.
    - `name`: default `FIRST~SECOND`.
    """

    name: Name | None = None
    between: Ends
    joint: ClosureKind
    axis: Axis = (0.0, 0.0, 1.0)
    axis_2: Axis | None = None

    def check_values(self) -> None:
        """Refuse a cross without both axes."""
        wrong = self.joint == "universal" and ("axis" not in self.model_fields_set or self.axis_2 is None)
        refuse(wrong, "a universal closure needs both axes of its cross", "give axis and axis_2", "axis_2")


class CouplingTable(Table):
    """joint = sum of ratio times other + offset; or a screw: `lead` metres along per turn about the axis.

    - `name`: of the coupling.
    - `joint`: joint with one axis, or one axis of a joint with two: `"nut.2"`.
    - `terms`: ratio of each other joint, in m/rad or rad/m between a rotation and a translation.
    - `other`, `lead`: instead of `terms`, a screw between a rotation and a translation, metres per turn. Positive: a
      positive turn about one axis goes with a positive travel along the other. That is a right-hand thread where the
      same body turns and slides; where the spindle turns in place and the nut slides, it is a left-hand thread, and a
      right-hand spindle has a negative `lead`.
    - `offset`: in the unit of `joint`.
    - `stiffness`, `damping`: elastic instead of rigid, N m/rad or N/m at `joint`, and times s.
    - `backlash`: play at `joint` from flank to flank; needs `stiffness`.
    - `efficiency`: share of the power that passes from the others to `joint`, above 0 to 1. The loss is felt by the
      others: together they give `1/efficiency` times the effort while they drive `joint`.
    - `efficiency_back`: the same while `joint` drives the others (they receive so much of the effort); default
      `efficiency`. Zero or less: self-locking, the others must push to let the load move. A thread of lead angle `a`
      and friction angle `p` with its nut as `joint` has `efficiency = "tan(a)/tan(a + p)"` and
      `efficiency_back = "tan(a - p)/tan(a)"`.
    """

    name: Name
    joint: Name
    terms: Coordinates = {}
    other: Name | None = None
    lead: Lead | None = None
    offset: Number = 0.0
    stiffness: CouplingStiffness | None = None
    damping: NotNegative = 0.0
    backlash: NotNegative = 0.0
    efficiency: Efficiency = 1.0
    efficiency_back: BackEfficiency | None = None

    def check_values(self) -> None:
        """Refuse what is neither ratios nor a screw, couples nothing, or needs a stiffness."""
        form = 'write terms = { NAME = ratio }, or other = "NAME" and lead = 0.005'
        screw = [key for key in ("other", "lead") if getattr(self, key) is not None]
        if self.terms and screw:
            raise value_error(f"'terms' and '{screw[0]}' are both given", "keep one of them", "terms")
        nothing = not self.terms and not screw
        refuse(nothing, "the coupling has neither 'terms' nor 'other' and 'lead'", form, "terms")
        missing = "lead" if screw == ["other"] else "other"
        refuse(len(screw) == 1, "a screw needs both 'other' and 'lead'", f"add {missing} = ...", missing)
        for name, ratio in self.terms.items():
            refuse(ratio == 0, f"the ratio of '{name}' is zero", "remove the term", f"terms.{name}", 0.0)
        itself = self.joint in self.others
        refuse(itself, "a joint cannot be coupled to itself", "name another joint", "joint", self.joint)
        for key in ("damping", "backlash") if self.stiffness is None else ():
            hint = "give the stiffness of the teeth, belt or thread in N m/rad or N/m at the joint"
            message, value = f"'{key}' needs 'stiffness', and this coupling is rigid", getattr(self, key)
            refuse(value, message, hint, key, value)

    @property
    def back(self) -> float:
        """Efficiency where `joint` drives the others."""
        return self.efficiency if self.efficiency_back is None else self.efficiency_back

    @property
    def others(self) -> tuple[str, ...]:
        """Joints that `joint` follows."""
        return tuple(self.terms) or (str(self.other),)


class ForceTable(Table):
    """Tension over length, and over the rate at which the length grows; both are added."""

    length: Rows = ()
    speed: Rows = ()


class ElementTable(Table):
    """A spring, damper, rod, force, cable or strut between two frames or points; tension is positive."""

    name: Name
    between: Ends
    kind: Literal["spring", "damper", "rod", "force", "cable", "strut"]
    stiffness: NotNegative | None = None
    rest: NotNegative | None = None
    damping: NotNegative | None = None
    table: Annotated[
        ForceTable | None, BeforeValidator(lambda x: {"length": x} if isinstance(x, list | tuple) else x)
    ] = None
    actuated: Flag = False
    limits: Limits | None = None
    velocity_limit: Positive | None = None
    effort_limit: Positive | None = None

    @property
    def measured(self) -> bool:
        """Whether its length is a coordinate: that of a strut, or of a cable that a motor or a drum winds."""
        elastic = (self.stiffness, self.rest, self.damping) != (None, None, None)
        return self.kind == "strut" or (self.kind == "cable" and not elastic)

    def check_values(self) -> None:
        """Refuse keys that the kind does not have, and what it needs to act at all."""
        kind, table, stiffness, rest = self.kind, self.table, self.stiffness, self.rest
        for key in ("stiffness", "rest", "damping", "table", "actuated", *LIMIT_KEYS):
            extra = getattr(self, key) not in (None, False) and key not in ELEMENT_KEYS[kind]
            allowed = ", ".join(f"'{name}'" for name in ELEMENT_KEYS[kind])
            refuse(extra, f"a {kind} has no '{key}'", f"it may have {allowed}", key)
        negative = self.limits and self.limits[0] < 0
        refuse(negative, "the limits of a strut are lengths", "give [low, high] in m", "limits", self.limits)
        twice = kind == "spring" and table is not None and (stiffness is not None or rest is not None)
        refuse(twice, "'table' and 'stiffness' both define the spring force", "keep one of them", "table")
        stiff = kind == "cable" and self.actuated and not self.measured
        hint = "remove stiffness and rest, or couple an elastic cable to a drum by a coupling with a stiffness"
        refuse(stiff, "an actuated cable cannot be elastic", hint, "actuated")
        needs = {"spring": ("stiffness", "rest"), "cable": ("stiffness", "rest"), "damper": ("damping",)}
        units = {"stiffness": "stiffness = 1000 (N/m)", "rest": "rest = 0.2 (m)", "damping": "damping = 50 (N s/m)"}
        for key in needs.get(kind, ()) if table is None and not self.measured else ():
            refuse(getattr(self, key) is None, f"the {kind} needs its {key}", f"give {units[key]}", key)
        idle = kind in ("spring", "cable") and stiffness == 0
        refuse(idle, f"a {kind} of stiffness 0 has no effect", "give it in N/m", "stiffness", 0.0)
        half = kind == "strut" and (stiffness is None) != (rest is None)
        missing = "rest" if rest is None else "stiffness"
        refuse(half, "a strut with a spring needs 'stiffness' and 'rest'", f"add {missing}", missing)
        refuse(kind == "rod" and rest == 0, "a rod cannot have length zero", "use a closure", "rest", 0.0)
        form = "give table = [[length, force], ...]"
        refuse(kind == "force" and table is None, "the force needs its table", form, "table")
        refuse(table and not table.length and not table.speed, "the table is empty", form, "table")
        by_speed = table and kind == "spring" and not table.length
        refuse(
            by_speed, "a spring needs a table over length", 'use table = { length = ... }, or kind = "force"', "table"
        )


class Visual(Table):
    """A mesh that viewers show, fixed to a frame; it has no mass.

    - `frame`: a frame, point or node.
    - `file`: [path](#paths-of-files) of an STL, OBJ or MuJoCo's `.msh`.
    - `scale`: a number or one per axis.
    - `position`, `rotation`: of the mesh in the frame.
    """

    frame: FrameName
    file: Text
    scale: Scale = (1.0, 1.0, 1.0)
    position: Vector = (0.0, 0.0, 0.0)
    rotation: Vector = (0.0, 0.0, 0.0)


class SourceTable(Table):
    """Where the data come from.

    - `source`: paper, table, page.
    - `inferred`: values not in the source and how they were found.
    - `fitted`: values chosen to match a published number.
    - `errata`: corrected print errors.
    - `notes`: anything else.
    """

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


class ReadingTable(Table):
    """How the reading of a joint gives its coordinate: gain times reading plus offset.

    - `gain`: coordinate per unit of the reading.
    - `offset`: coordinate where the reading is zero (m, rad).
    """

    gain: Number = 1.0
    offset: Number = 0.0


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
    """The whole file.

    - `format`: always `1`.
    - `name`, `title`: name and one-line description.
    - `extends`: [base robot](#extending-another-file).
    - `motion`: `"spatial"`, or `"planar"`: motion in the x-y plane of the base, revolute axes normal to it, prismatic
      axes in it.
    - `gravity`: acceleration in base axes.
    - `end_effector`: frame or point whose pose is the pose of the robot; carries `--payload`. Default: platform, else
      the last frame with a joint or a flexible body (its root; name `BEAM.tip` for the end).
    - `axial`: axial strain of beams. `"mean"` includes shortening by bending, hence
      [stiffening and buckling](theory.md#beams-under-axial-load); `"linear"`, as in the papers, does not.
    - `rotations`: of beam ends, `"consistent"` or `"papers"` (angular velocity as rate of the rotation vector: fewer
      operators, but loops and energy hold only to first order).
    - `constants`, `frame`, `platform`, `point`, `closure`, `coupling`, `element`, `visual`, `legs`, `materials`,
      `sections`, `poses`, `working_modes`, `actuation`, `motions`, `readings`, `reference`: tables of their own.
    """

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
    readings: dict[Name, ReadingTable] = {}
    # which leg each expanded frame belongs to; filled by the loader, not a key of the file
    leg_of: dict[str, str] = Field(default={}, exclude=True, repr=False)


def key_texts(docstring: str) -> list[tuple[list[str], str]]:
    """Keys and their text, in the order of the docstring of a table."""
    rows = re.findall(r"^- ((?:`\w+`,?\s*)+): ((?:.*\n?)(?:  .*\n?)*)", inspect.cleandoc(docstring), flags=re.M)
    return [(re.findall(r"\w+", keys), " ".join(text.split())) for keys, text in rows]


def json_schema() -> dict[str, Any]:
    """JSON schema of the file for editors."""
    schema = RobotFile.model_json_schema()
    schema["properties"].pop("leg_of")
    schema["title"] = "parflex robot file"
    for table in (schema, *schema["$defs"].values()):
        for keys, text in key_texts(table.get("description", "")):
            for key in keys:
                table["properties"][key]["description"] = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
        table["description"] = table.get("description", "").split("\n\n- `")[0]
    return schema
