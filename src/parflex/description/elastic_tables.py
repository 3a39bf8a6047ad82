"""Tables of a robot file about flexibility: materials, sections, beams, bodies given by modes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from parflex.description.table import Table
from parflex.description.values import Flag, Name, Number, Numbers, Text, Vector, complain

Axial = Literal["mean", "linear"]  # axial strain of beams: the mean one, which bending shortens, or that of the chord

NodeNumber = Annotated[int, Field(ge=1, le=10**9, strict=True)]
LEAST_ERROR = 1e-8  # of the band: eigenvalues have seven or eight digits at its edge


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
                raise complain(f"{key} = {value} is not positive", "give a positive number", key, value)
        if self.shear_modulus is not None and self.poisson_ratio is not None:
            raise complain("shear_modulus and poisson_ratio are both given", "keep one of them", "poisson_ratio")
        if self.poisson_ratio is not None and not -1 < self.poisson_ratio <= 0.5:
            hint = "give one between -1 and 0.5"
            raise complain(
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
        given = self.model_fields_set - {"shape"}
        for key in sorted(given - set(needed)):
            raise complain(f"a {self.shape} section has no '{key}'", "it has " + ", ".join(needed), key)
        for key in needed:
            value = getattr(self, key)
            if value is None:
                if key in ("Ip", "ky", "kz"):
                    continue
                raise complain(f"a {self.shape} section needs '{key}'", f"give {', '.join(needed)}", key)
            if value <= 0:
                raise complain(f"{key} = {value} is not positive", "a section needs positive sizes", key, value)
        for key in ("ky", "kz"):
            _refuse_shear_coefficient(key, getattr(self, key))
        if self.shape == "tube" and 2 * self.thickness >= self.diameter:  # type: ignore[operator]
            hint = "give a thickness below half the diameter, or use the shape 'circle'"
            raise complain("the wall of this tube leaves no hole", hint, "thickness")
        if self.shape == "box" and any(2 * self.thickness >= side for side in (self.y, self.z)):  # type: ignore[operator]
            hint = "give a thickness below half the smaller side, or use the shape 'rectangle'"
            raise complain("the wall of this box leaves no hole", hint, "thickness")
        return self


SECTION_KEYS = {
    "rectangle": ("y", "z"),
    "circle": ("diameter",),
    "tube": ("diameter", "thickness"),
    "box": ("y", "z", "thickness"),
    "numbers": ("A", "Iy", "Iz", "J", "Ip", "ky", "kz"),
}


def _refuse_shear_coefficient(key: str, value: float | None) -> None:
    """A share of the area: above zero, at most one."""
    if value is not None and not 0 < value <= 1:
        raise complain(f"{key} = {value} is not a shear coefficient", "give a number above 0, at most 1", key, value)


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
                raise complain(f"{key} = {value} is negative", "damping must not be negative", key, value)
        if self.ratio and self.stiffness:
            raise complain("ratio and stiffness are both given", "keep one of them", "ratio")
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
                raise complain(f"{key} = {value} is not positive", f"give it in Hz, e.g. {example}", key, value)
        if self.error < LEAST_ERROR * self.band:
            hint = f"give {LEAST_ERROR * self.band:.2g} Hz or more"
            raise complain(
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
            raise complain(f"the length {self.length} is not positive", "give a positive length", "length", self.length)
        if self.shear_coefficient is not None and not self.shear:
            key = "shear_coefficient"
            raise complain("shear_coefficient has no effect without shear", "write shear = true", key)
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
                raise complain(f"the modal stiffness {value} is not positive", hint, "stiffness", value)
        if self.damping is not None and self.damping < 0:
            hint = "damping must not be negative"
            raise complain(f"the damping ratio {self.damping} is negative", hint, "damping", self.damping)
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
                raise complain(f"'{name}' is not a valid node name", "give a name without dots", "nodes", name)
        named = [(self.root, "root")] if self.root is not None else []
        named += [(name, "positions") for name in self.positions or ()]
        named += [(name, "geometric") for name in self.geometric] if isinstance(self.geometric, dict) else []
        for name, key in named:
            if name not in self.nodes:
                hint = f"its nodes are {', '.join(self.nodes)}"
                raise complain(f"'{name}' is not a node of the super-element", hint, key, name)
        for load in self.geometric.values() if isinstance(self.geometric, dict) else ():
            if len(load) != 6:
                raise complain(f"a load has six components, not {len(load)}", "give fx fy fz mx my mz", "geometric")
        ratio = self.damping
        if ratio is not None and not isinstance(ratio, Damping) and ratio < 0:
            raise complain(f"the damping ratio {ratio} is negative", "damping must not be negative", "damping", ratio)
        if isinstance(self.file, dict) and not {"M", "K"} <= set(self.file):
            raise complain("a file for each matrix needs M and K", 'write file = { M = "m.mtx", K = "k.mtx" }', "file")
        return self
