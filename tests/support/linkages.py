"""Random planar linkages, each as a robot file and as bodies of the oracle, from the same draw."""

from dataclasses import dataclass, field
from itertools import combinations, pairwise

import numpy as np

from support.oracles.planar_bodies import GROUND, Line, Linkage, Pin, Upright

Array = np.ndarray
CHAINS = {  # corners, and the chains of links through them that begin on the ground and meet at corner 2
    "four-bar": (4, [[0, 1, 2], [3, 2]]),
    "slider-crank": (3, [[0, 1, 2]]),
    "five-bar": (5, [[0, 1, 2], [4, 3, 2]]),
}
SHORTEST = 0.4  # m between corners
REGULAR = 0.05  # ratio of singular values of the closures, and of the joints that are to determine the motion


@dataclass
class Drawn:
    """A linkage at its start: its robot file, its bodies, and its joints with the body and the one that carries it."""

    text: str
    linkage: Linkage
    q: Array
    joints: dict[str, tuple[int, int]]
    slide: Array | None = None  # direction of the slider
    v: Array = field(default_factory=lambda: np.zeros(0))

    def value(self, name: str, x: Array) -> Array:
        """Of a joint, from rows of positions or of velocities; the slider counts from the origin of the world."""
        body, parent = self.joints[name]
        if name == "slider":
            assert self.slide is not None
            return x[..., 3 * body] * self.slide[0] + x[..., 3 * body + 1] * self.slide[1]
        return x[..., 3 * body + 2] - (0.0 if parent == GROUND else x[..., 3 * parent + 2])

    def motions(self) -> Array:
        """Rates of all joints along the motions that the closures allow, one column for each of these."""
        G = self.linkage.rows(0.0, self.q, np.zeros(len(self.q)))[0]
        _, sizes, V = np.linalg.svd(G)
        if sizes[-1] < REGULAR * sizes[0]:
            raise ValueError("almost singular")
        return np.stack([self.value(name, V[len(sizes) :]) for name in self.joints])

    def determining(self, rng: np.random.Generator) -> list[str]:
        """Joints, as many as there are freedoms, whose rates determine all others."""
        motions, names = self.motions(), list(self.joints)
        sets = []
        for rows in combinations(range(len(names)), motions.shape[1]):
            sizes = np.linalg.svd(motions[list(rows)], compute_uv=False)
            if sizes[-1] > REGULAR * np.linalg.norm(motions, 2):
                sets.append([names[row] for row in rows])
        return sets[rng.integers(len(sets))]

    def push(self, name: str, effort: float) -> None:
        """Let a motor act on a joint."""
        body, parent = self.joints[name]
        if name == "slider":
            assert self.slide is not None
            self.linkage.pushes[body] = (effort * self.slide[0], effort * self.slide[1])
            return
        self.linkage.torques[body] = self.linkage.torques.get(body, 0.0) + effort
        if parent != GROUND:
            self.linkage.torques[parent] = self.linkage.torques.get(parent, 0.0) - effort


def draw(rng: np.random.Generator, kind: str, actuated: int = 1) -> tuple[Drawn, list[str]]:
    """A linkage away from singular poses that moves, and so many of its joints with motors."""
    while True:
        corners = rng.uniform(-1, 1, (CHAINS[kind][0], 2))
        if min(np.linalg.norm(a - b) for a, b in combinations(corners, 2)) < SHORTEST:
            continue
        drawn = _Builder(rng, corners, kind).built()
        try:
            motions = drawn.motions()
        except ValueError:
            continue
        motors = drawn.determining(rng)[:actuated]
        drawn.text += f"[actuation.drawn]\nactuated = [{', '.join(repr(name) for name in motors)}]\n"
        mix = rng.normal(size=motions.shape[1])
        _, _, V = np.linalg.svd(drawn.linkage.rows(0.0, drawn.q, np.zeros(len(drawn.q)))[0])
        v = mix @ V[-len(mix) :]
        drawn.v = 3.0 * v / np.abs(motions @ mix).max()  # the fastest joint: 3 rad/s or m/s
        return drawn, motors


class _Builder:
    """Bodies, joints and lines of the robot file, one link after the other."""

    def __init__(self, rng: np.random.Generator, corners: Array, kind: str) -> None:
        self.rng, self.corners, self.kind = rng, corners, kind
        self.mass: list[float] = []
        self.inertia: list[float] = []
        self.q: list[float] = []
        self.pins: list = []
        self.joints: dict[str, tuple[int, int]] = {}
        self.lines: list[str] = []

    def built(self) -> Drawn:
        gravity = self.rng.uniform(-9.81, 9.81, 2)
        ends = [self._chain(chain) for chain in CHAINS[self.kind][1]]
        slide = self._slider() if self.kind == "slider-crank" else None
        second = ends[1] if slide is None else (len(self.mass) - 1, (0.0, 0.0), "slider")
        self.pins.append(Pin(ends[0][0], ends[0][1], second[0], second[1]))
        self.lines += ["[[closure]]", f'between = ["{ends[0][2]}", "{second[2]}"]', 'joint = "revolute"']
        head = ["format = 1", f'name = "{self.kind}"', 'motion = "planar"', f"gravity = [{_list(gravity)}, 0]"]
        home = [f"{name} = {self._value(name, slide)!r}" for name in self.joints]
        linkage = Linkage(np.array(self.mass), np.array(self.inertia), self.pins, gravity=tuple(map(float, gravity)))
        text = "\n".join([*head, *self.lines, "[poses.home]", *home]) + "\n"
        return Drawn(text, linkage, np.array(self.q), self.joints, slide)

    def _value(self, name: str, slide: Array | None) -> float:
        return float(Drawn("", None, np.array(self.q), self.joints, slide).value(name, np.array(self.q)))  # type: ignore[arg-type]

    def _chain(self, chain: list[int]) -> tuple[int, tuple[float, float], str]:
        """Links from corner to corner; the end: body, point from its centre, name of the point."""
        parent, before, on, base = "base", GROUND, tuple(self.corners[chain[0]]), 0.0
        place = self.corners[chain[0]]
        length = 0.0
        for first, second in pairwise(chain):
            body, name = len(self.mass), f"link{len(self.mass)}"
            way = self.corners[second] - self.corners[first]
            length, angle = float(np.hypot(*way)), float(np.arctan2(way[1], way[0]))
            x, y = float(self.rng.uniform(0.1, 0.9) * length), float(self.rng.uniform(-0.2, 0.2))
            self._body(self.corners[first] + _turned(angle, x, y), angle)
            self.pins.append(Pin(body, (-x, -y), before, on))
            self.joints[name] = (body, before)
            self.lines += [
                "[[frame]]", f'name = "{name}"', f'parent = "{parent}"', 'joint = "revolute"',
                f"place = {{ position = [{_list(place)}, 0] }}", f"start = {angle - base!r}",
                f"inertia = {{ mass = {self.mass[-1]!r}, centre = [{x!r}, {y!r}, 0], "
                f"about_centre = [0, 0, {self.inertia[-1]!r}] }}",
            ]  # fmt: skip
            parent, before, on, base, place = name, body, (length - x, -y), angle, np.array([length, 0.0])
        self.lines += ["[[point]]", f'name = "{parent}.end"', f'frame = "{parent}"', f"position = [{length!r}, 0, 0]"]
        return before, on, f"{parent}.end"

    def _slider(self) -> Array:
        alpha = float(self.rng.uniform(-np.pi, np.pi))
        slide = np.array([np.cos(alpha), np.sin(alpha)])
        corner, body = self.corners[2], len(self.mass)
        self._body(corner, 0.0)
        self.joints["slider"] = (body, GROUND)
        normal = (-float(slide[1]), float(slide[0]))
        self.pins += [Upright(body), Line(body, (0.0, 0.0), tuple(corner), normal)]
        rail = float(corner @ normal) * np.array(normal)  # the point of the rail nearest to the origin: its zero
        self.lines += [
            "[[frame]]", 'name = "rail"', f"place = {{ position = [{_list(rail)}, 0], rotation = [0, 0, {alpha!r}] }}",
            "[[frame]]", 'name = "slider"', 'parent = "rail"', 'joint = "prismatic"',
            'place = { rotation = [0, "pi/2", 0] }', f"start = {float(corner @ slide)!r}",
            f"inertia = {{ mass = {self.mass[-1]!r} }}",
        ]  # fmt: skip
        return slide

    def _body(self, centre: Array, angle: float) -> None:
        self.mass.append(float(self.rng.uniform(0.2, 2.0)))
        self.inertia.append(float(self.rng.uniform(0.02, 0.3)))
        self.q += [float(centre[0]), float(centre[1]), angle]


def _turned(angle: float, x: float, y: float) -> Array:
    return np.array([np.cos(angle) * x - np.sin(angle) * y, np.sin(angle) * x + np.cos(angle) * y])


def _list(values: Array) -> str:
    return ", ".join(repr(float(value)) for value in values)
