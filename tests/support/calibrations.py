"""Robots with other numbers than their files, and what would be measured of them."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

import parflex
from support.robots import robot_file


@dataclass
class Bench:
    """A robot of the catalogue, changes of its numbers, poses by coordinates, and the map of what is measured."""

    name: str
    changes: dict[str, float]
    poses: dict[str, tuple[float, float]]
    measured: dict[str, float]  # columns of frames or joints, with the deviations of the noise
    offsets: dict[str, float] = field(default_factory=dict)
    count: int = 12
    about: str | None = None

    def load(self, settings: dict[str, float]) -> parflex.Robot:
        known = self.name in parflex.catalogue_names()
        return parflex.load(self.name if known else robot_file(self.name), settings=settings)

    def robot(self) -> parflex.Robot:
        return self.load({})

    def truth(self) -> dict[str, float]:
        robot = self.robot()
        from parflex.parameters.design_numbers import number_at

        found = {key: number_at(robot, key, "keys") + change for key, change in self.changes.items()}
        return found | {f"{joint}.offset": offset for joint, offset in self.offsets.items()}

    def changed(self) -> dict[str, float]:
        """Numbers of the file that are true."""
        return {key: value for key, value in self.truth().items() if key in self.changes}

    def data(self) -> dict[str, Any]:
        """Exact columns: readings of the motors, and what is measured."""
        rng = np.random.default_rng(0)
        robot = self.load(self.changed())
        rows: dict[str, list[float]] = {name: [] for name in (*robot.motors, *self.measured)}
        for _ in range(self.count):
            pose = {name: float(rng.uniform(low, high)) for name, (low, high) in self.poses.items()}
            here = parflex.configure(robot, pose)
            if self.about:
                here = parflex.equilibrium(robot, here).configuration
            q = dict(zip(robot.coordinates, here.q.tolist(), strict=True))
            for motor in robot.motors:
                rows[motor].append(q[motor] - self.offsets.get(motor, 0.0))
            for name in self.measured:
                rows[name].append(_value(robot, here, name, q))
        return {name: np.array(values) for name, values in rows.items()}

    def columns(self, deviations: bool = True) -> dict[str, Any]:
        """The map of the columns."""
        robot, given = self.robot(), dict[str, Any]()
        given["motors"] = {motor: motor for motor in robot.motors}
        joints = {
            name: {"column": name, "deviation": s}
            for name, s in self.measured.items()
            if name in robot.coordinates and "platform" not in name
        }
        poses: dict[str, dict[str, Any]] = {}
        for name, s in self.measured.items():
            frame, _, part = name.rpartition(".")
            if name not in joints:
                word = "rotation_deviation" if part.startswith("r") else "deviation"
                poses.setdefault(frame, {"frame": frame}).update({part: name, word: s})
        return given | ({"joints": joints} if joints else {}) | ({"pose": list(poses.values())} if poses else {})

    def fit(self, data: dict[str, Any]) -> Any:
        keys = [*self.changes, *(f"{joint}.offset" for joint in self.offsets)]
        return parflex.calibrate(self.robot(), data, keys, columns=self.columns(), about=self.about)


def _value(robot: parflex.Robot, here: Any, name: str, q: dict[str, float]) -> float:
    if name in q:
        return q[name]
    frame, _, part = name.rpartition(".")
    position, rotation = parflex.frames(here.robot, here)[frame]
    if part in "xyz":
        return float(position["xyz".index(part)])
    from scipy.spatial.transform import Rotation

    return float(Rotation.from_matrix(rotation).as_rotvec()[("rx", "ry", "rz").index(part)])


PLACE = {f"platform.{axis}": 2e-5 for axis in "xyz"}
FULL = PLACE | {f"platform.r{axis}": 4e-5 for axis in "xyz"}
BENCHES = {
    "delta": Bench(
        "delta", {"constants.rod": 4e-4, "constants.base_radius": -3e-4, "constants.arm": 2e-4},
        {"x": (-0.1, 0.1), "y": (-0.1, 0.1), "z": (-0.45, -0.35)}, PLACE, {"leg1.arm": 1e-3},
    ),
    "5r": Bench(
        "5r", {"constants.proximal": 3e-4, "constants.distal": -2e-4, "legs.base_x.1": 4e-4},
        {"tip.x": (-0.1, 0.1), "tip.y": (0.4, 0.6)}, {"tip.x": 2e-5, "tip.y": 2e-5}, {"left.1": 2e-3},
    ),
    "hexaglide": Bench(
        "hexaglide", {"constants.rod": 2e-4, "legs.rail.1": 3e-4, "legs.ball_y.2": -2e-4, "legs.ball_x.5": 1e-4},
        {"x": (-0.08, 0.08), "y": (-0.04, 0.04), "z": (-0.45, -0.38), "rx": (-0.1, 0.1), "ry": (-0.1, 0.1)}, FULL,
        {"leg3.slide": 2e-4}, 8,
    ),
    "gough-stewart": Bench(
        "gough-stewart", {"constants.radius": 3e-4, "legs.base_x.1": 2e-4, "legs.base_y.3": -3e-4},
        {"x": (0.2, 0.3), "y": (0.4, 0.5), "z": (0.98, 1.05), "rz": (-0.02, 0.02)}, FULL, {"leg2.3": 1e-4}, 8,
    ),
    "3rrr": Bench(
        "3rrr", {"constants.arm": 2e-4, "legs.base_x.1": 3e-4, "constants.distal": -2e-4},
        {"x": (-0.08, 0.08), "y": (-0.08, 0.08), "theta": (-0.2, 0.2)},
        {f"leg{k}.2": 1e-4 for k in (1, 2, 3)}, {"leg1.1": 1e-3},
    ),
    "six-sps": Bench(  # legs that spin about their axes
        "six-sps", {"legs.foot.1": 1e-3}, {"x": (-0.1, 0.1), "y": (-0.1, 0.1), "z": (0.75, 0.85), "rz": (-0.1, 0.1)},
        FULL, {"a.upper": 1e-4}, 6,
    ),
    "gough-stewart-beams": Bench(
        "gough-stewart-beams", {"constants.radius": 3e-4, "materials.steel.elastic_modulus": -2e10},
        {"x": (0.2, 0.3), "y": (0.4, 0.5), "z": (0.98, 1.05)}, FULL, {"leg2.3": 1e-4}, 4, "equilibrium",
    ),
}  # fmt: skip
