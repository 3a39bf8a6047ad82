"""Random closed mechanisms, each written twice: as a robot file and as a finite-element frame."""

from dataclasses import dataclass, field

import numpy as np
from scipy.spatial.transform import Rotation

from support.oracles.beam_element import Bar
from support.oracles.frame import FrameModel

Array = np.ndarray
HEAD = 'format = 1\nname = "twin"\nmotion = "{motion}"\ngravity = [0, 0, 0]\n'


@dataclass(frozen=True)
class Spot:
    """A place of the robot file and the node of the frame that moves with it."""

    name: str
    R: Array
    p: Array
    node: int | None  # None: the ground


def _list(values: Array) -> str:
    return "[" + ", ".join(repr(float(value)) for value in values) + "]"


@dataclass
class Twin:
    """Robot file and frame model, grown together."""

    planar: bool
    rng: np.random.Generator
    text: str = ""
    count: int = 0
    model: FrameModel = field(init=False)

    def __post_init__(self) -> None:
        self.model = FrameModel(self.planar)
        self.text = HEAD.format(motion="planar" if self.planar else "spatial")

    def name(self, what: str) -> str:
        self.count += 1
        return f"{what}{self.count}"

    def _place(self, parent: Spot, R: Array, p: Array) -> str:
        turn = Rotation.from_matrix(parent.R.T @ R).as_rotvec()
        return f"position = {_list(parent.R.T @ (p - parent.p))}, rotation = {_list(turn)}"

    def turned(self) -> Array:
        """A random orientation; in the plane a turn about z."""
        if self.planar:
            return Rotation.from_rotvec([0, 0, self.rng.uniform(-3, 3)]).as_matrix()
        return Rotation.random(random_state=int(self.rng.integers(1 << 30))).as_matrix()

    def somewhere(self, size: float) -> Array:
        step = self.rng.uniform(-size, size, 3)
        return step * [1, 1, 0] if self.planar else step

    def joint(self, parent: Spot, p: Array, kind: str, spring: float = 0.0, R: Array | None = None) -> Spot:
        """A joint at the end of a rigid arm from its parent, with axes of its own."""
        R = self.turned() if R is None else R
        if self.planar and kind == "prismatic":  # its z axis lies in the plane
            R = R @ np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])
        name = self.name(kind)
        stiff = f"spring = {{ stiffness = {spring!r} }}\n" if spring else ""
        self.text += f'[[frame]]\nname = "{name}"\nparent = "{parent.name}"\njoint = "{kind}"\n{stiff}'
        self.text += f"place = {{ {self._place(parent, R, p)} }}\n"
        node = self.model.node(p)
        held = None if parent.node is None else self.model.rigid(parent.node, p)
        self.model.tie(node, held, kind, R[:, 2])
        if spring:
            self.model.spring(R[:, 2], spring, node, held, turn=kind == "revolute")
        return Spot(name, R, p, node)

    def beam(self, root: Spot, to: Array, bar: Bar, elements: int) -> Spot:
        """A beam clamped to a place, to a point; its section is turned at random."""
        x = (to - root.p) / np.linalg.norm(to - root.p)
        near = np.cross([0, 0, 1], x) if self.planar else self.rng.standard_normal(3)
        y = near - x * (x @ near)
        y /= np.linalg.norm(y)
        R = np.array([x, y, np.cross(x, y)]).T
        name = self.name("beam")
        sheared = [min(area / bar.A, 1.0) for area in (bar.shear_y, bar.shear_z)]
        self.text += (
            f"[materials.{name}]\nelastic_modulus = {bar.E!r}\nshear_modulus = {bar.G!r}\ndensity = {bar.density!r}\n"
            f'[sections.{name}]\nshape = "numbers"\nA = {bar.A!r}\nIy = {bar.Iy!r}\nIz = {bar.Iz!r}\nJ = {bar.J!r}\n'
            f"Ip = {bar.Ip!r}\nky = {sheared[0]!r}\nkz = {sheared[1]!r}\n"
            f'[[frame]]\nname = "{name}"\nparent = "{root.name}"\n'
            f"place = {{ {self._place(root, R, root.p)} }}\n"
            f'beam = {{ length = {float(np.linalg.norm(to - root.p))!r}, material = "{name}", section = "{name}", '
            f"elements = {elements}, rotary_inertia = {str(bar.rotary).lower()}, "
            f"shear = {str(np.isfinite(bar.shear_y)).lower()} }}\n"
        )
        first = self.model.node(root.p)
        self.model.tie(first, root.node)
        last = self.model.node(to)
        self.model.beam(first, last, bar, y, elements)
        return Spot(f"{name}.tip", R, to, last)

    def body(self, root: Spot, mass: float) -> Spot:
        """A rigid body fixed to a place, its centre beside it."""
        name, R, centre = self.name("body"), self.turned(), self.somewhere(0.2)
        about = np.diag(mass * self.rng.uniform(0.01, 0.015, 3))
        place = self._place(root, R, root.p)
        self.text += f'[[frame]]\nname = "{name}"\nparent = "{root.name}"\nplace = {{ {place} }}\n'
        first, second = _list(R.T @ centre), _list(np.diag(about))
        self.text += f"inertia = {{ mass = {mass!r}, centre = {first}, about_centre = {second} }}\n"
        assert root.node is not None
        self.model.mass(root.node, mass, R @ about @ R.T, centre)
        return Spot(name, R, root.p, root.node)

    def lump(self, root: Spot, mass: float) -> None:
        """A lumped mass with inertia at a node."""
        about = np.diag(mass * self.rng.uniform(0.001, 0.0015, 3))
        self.text += (
            f'[[frame]]\nname = "{self.name("lump")}"\nparent = "{root.name}"\n'
            f"point_masses = [{{ mass = {mass!r}, about_centre = {_list(np.diag(about))} }}]\n"
        )
        assert root.node is not None
        self.model.mass(root.node, mass, root.R @ about @ root.R.T)

    def close(self, one: Spot, two: Spot, kind: str, R: Array) -> None:
        """A closure between two moving places, at the second, with the axes R: points of its own on both."""
        names = [self.name("end"), self.name("end")]
        for name, spot in zip(names, (one, two), strict=True):
            self.text += f'[[point]]\nname = "{name}"\nframe = "{spot.name}"\n'
            self.text += self._place(spot, R, two.p).replace(", rotation", "\nrotation") + "\n"
        axis = "" if self.planar else 'axis = "z"\n'
        self.text += f'[[closure]]\nbetween = ["{names[0]}", "{names[1]}"]\njoint = "{kind}"\n{axis}'
        assert one.node is not None
        self.model.tie(self.model.rigid(one.node, two.p), two.node, kind, R[:, 2])

    def bar(self) -> Bar:
        """A random beam: modulus, density and section of the size of a small robot's links."""
        u = self.rng.uniform
        E, y, z = u(60e9, 220e9), u(0.008, 0.02), u(0.008, 0.02)
        Iy, Iz = y * z**3 / 12, z * y**3 / 12
        rotary = bool(self.rng.integers(2))
        shear = u(0.5, 0.9, 2) * y * z if self.rng.integers(2) else (np.inf, np.inf)
        J, Ip = u(0.3, 1) * (Iy + Iz), u(1, 1.2) * (Iy + Iz)
        return Bar(E, E / u(2.2, 2.8), u(2500, 8000), y * z, Iy, Iz, J, Ip, rotary, *map(float, shear))


TIES = {True: ("revolute", "welded"), False: ("spherical", "revolute", "welded", "cylindrical", "prismatic")}
KINDS = {True: ("fixed", "revolute", "prismatic"), False: ("fixed", "revolute", "prismatic", "spherical")}
CHANCES = {True: (0.4, 0.5, 0.1), False: (0.4, 0.3, 0.1, 0.2)}


def leg(twin: Twin, root: Spot, links: int) -> tuple[Spot, list[Spot]]:
    """A chain of beams and rigid links from a place; its end, and places on the way."""
    rng, passed = twin.rng, []
    spot = root
    for _ in range(links):
        kind = str(rng.choice(KINDS[twin.planar], p=CHANCES[twin.planar]))
        if kind != "fixed":
            stiff = float(10 ** rng.uniform(1, 3)) * {"revolute": rng.integers(2), "prismatic": 100}.get(kind, 0)
            spot = twin.joint(spot, spot.p + twin.somewhere(0.05), kind, float(stiff))
        if rng.random() < 0.75 or spot.node is None or "beam" not in twin.text:
            way = twin.somewhere(1.0)
            end = spot.p + way / np.linalg.norm(way) * rng.uniform(0.2, 0.6)
            spot = twin.beam(spot, end, twin.bar(), int(rng.integers(1, 4)))
            if rng.random() < 0.4:
                twin.lump(spot, float(rng.uniform(0.1, 0.5)))
        else:
            spot = twin.body(spot, float(rng.uniform(0.3, 2)))
        passed.append(spot)
    return spot, passed


def anchor(twin: Twin) -> Spot:
    """A random point of the ground."""
    spot = Spot(twin.name("anchor"), np.eye(3), twin.somewhere(0.6), None)
    twin.text += f'[[point]]\nname = "{spot.name}"\nframe = "base"\nposition = {_list(spot.p)}\n'
    return spot


def rigid_four_bar(twin: Twin, root: Spot) -> Spot:
    """Four rigid links with parallel hinges in space, which repeat three closure equations; a spring holds them."""
    R = twin.turned()
    spot = twin.body(root, 1.0)
    for corner in (R @ [0.2, 0.0, 0.0], R @ [0.25, 0.2, 0.0], R @ [0.05, 0.3, 0.0]):
        spot = twin.body(twin.joint(spot, root.p + corner, "revolute", 300.0, R), 0.5)
    twin.close(spot, root, "revolute", R)
    return spot


def random_twin(planar: bool, seed: int) -> Twin:
    """Legs from the ground to a common body, now and then with a loop inside a leg or closures that repeat others."""
    rng = np.random.default_rng(seed)
    twin = Twin(planar, rng)
    ends, inner = [], []
    for _ in range(int(rng.integers(2, 4))):
        end, passed = leg(twin, anchor(twin), int(rng.integers(1, 4)))
        ends.append(end)
        inner += passed[:-1]
    hub = twin.body(ends[0], float(rng.uniform(0.5, 3)))
    for end in ends[1:]:
        kind = str(rng.choice(TIES[planar]))
        for _ in range(int(rng.integers(1, 3))):  # twice the same joint: over-constrained
            twin.close(hub, end, kind, np.eye(3))
    if inner and rng.random() < 0.6:
        first = inner[int(rng.integers(len(inner)))]
        brace = twin.beam(first, first.p + twin.somewhere(0.4) + [0.1, 0.1, 0], twin.bar(), 1)
        twin.close(ends[-1], brace, str(rng.choice(TIES[planar])), twin.turned())
    if not planar and rng.random() < 0.3:
        rigid_four_bar(twin, ends[0])
    return twin
