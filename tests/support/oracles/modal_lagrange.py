"""Lagrange's equations of robots with bodies given by modes, from the kinetic energy of every node.

A node of the body is at r0 + u with u = sum_k shape_k e_k, and what is lumped about it moves with it: a speck at an
offset s is at r0 + s + u + th x s, with the turn th = sum_k turn_k e_k. The body's frame carries all that. Velocities
are derivatives of these positions in the world; no integral of the shapes is formed.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

import casadi as ca
import numpy as np

from .energy import Numbers, displaced, transforms
from .flexible_energy import Bent, FlexibleEnergyModel
from .modal_data import Modes
from .reader import Frame, RobotData


class ModalEnergyModel(FlexibleEnergyModel):
    """Rigid bodies, beams and frames with modes (`<body>.mode1`, ...); `inertia` of such a frame is fixed to it."""

    def __init__(self, data: RobotData, modes: Mapping[str, Modes]) -> None:
        self.modes = modes
        frames: list[Frame] = []
        for frame in data.frames:
            frames.append(frame)
            if frame.name in modes:
                own = tuple(f"{frame.name}.mode{k + 1}" for k in range(modes[frame.name].size))
                zero = (0.0,) * len(own)
                frames.append(Frame(_name(frame.name), frame.name, np.zeros(3), np.eye(3), "modes", own, own, zero))
        super().__init__(replace(data, frames=frames))

    def _placed(self, x: ca.SX, poses: Mapping[str, ca.SX]) -> dict[str, ca.SX]:
        attached = [f for f in self.data.frames if f.parent in self.modes and f.kind != "modes"]
        return transforms(self.data, x, poses, {frame.name: self._attached(frame) for frame in attached})

    def _attached(self, frame: Frame) -> Callable[[ca.SX], ca.SX]:
        """Where a frame sits in a body with modes."""
        modes = self.modes[frame.parent]
        named = modes.nodes[: len(modes.names)]
        node = int(np.linalg.norm(named - frame.position, axis=1).argmin())
        assert np.allclose(named[node], frame.position, atol=1e-9)
        place = np.eye(4)
        place[:3, :3] = frame.rotation
        first = self.coordinates.index(f"{frame.parent}.mode1")

        def where(x: ca.SX) -> ca.SX:
            shift = np.nan_to_num(modes.shapes[:, node].T) @ x[first : first + modes.size]
            return displaced(ca.SX(named[node]) + shift[:3], shift[3:]) @ ca.SX(place)

        return where

    def _element(self, frame: Frame, d: ca.SX) -> Bent | None:
        if frame.kind == "modes":
            return NodalBody(self.modes[frame.parent], d, self._transforms[frame.parent])
        return super()._element(frame, d)

    def _inertial(self, q: Numbers, qd: np.ndarray) -> list[np.ndarray]:
        M, c = super()._inertial(q, qd)
        for name, modes in self.modes.items():
            first = self.coordinates.index(f"{name}.mode1")
            own = slice(first, first + modes.size)
            c[own, 0] += modes.damping() * qd[own]
        return [M, c]


class NodalBody(Bent):
    """Nodes with masses on the transform of their body."""

    def __init__(self, modes: Modes, e: ca.SX, root: ca.SX) -> None:
        root = root[:3, :]
        self.weighed, self.spun = [], []
        self.first_moment = ca.SX.zeros(3)
        self.strain = ca.dot(ca.SX(modes.stiffnesses), e**2) / 2
        columns = modes.nodes, modes.masses, modes.second_moments, modes.shapes.transpose(1, 2, 0)
        for r, mass, moments, shapes in zip(*columns, strict=True):
            if mass:
                place = root @ ca.vertcat(ca.SX(r) + ca.SX(shapes[:3]) @ e, 1)
                self.weighed.append((float(mass), place))
                self.first_moment += mass * place
            for weight, way in zip(*_directions(moments), strict=True):
                arm = ca.SX(way) + ca.cross(ca.SX(shapes[3:]) @ e, ca.SX(way))
                self.weighed.append((weight, root @ ca.vertcat(arm, 0)))


def _directions(moments: np.ndarray) -> tuple[list[float], np.ndarray]:
    """Weights and unit vectors whose squares add up to the second moments."""
    values, vectors = np.linalg.eigh(moments)
    some = values > 1e-14 * max(values.max(), 1e-300)
    return values[some].tolist(), vectors[:, some].T


def _name(body: str) -> str:
    return f"{body} modes"
