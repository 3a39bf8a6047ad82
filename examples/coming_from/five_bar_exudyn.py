"""The five-bar robot of docs/coming-from.md in Exudyn: four bodies in absolute coordinates, joined by five hinges."""

from __future__ import annotations

import exudyn as exu
import exudyn.itemInterface as eii  # noqa: N813
import numpy as np

BASE, CRANK, ROD, LINE_MASS, ROTOR = 0.12, 0.3, 0.4, 1.08, 0.01


def _cross(vector: np.ndarray) -> np.ndarray:
    return np.array([-vector[1], vector[0]])


class FiveBar:
    """Robot at two motor angles, with two motor rates."""

    def __init__(self, angles=(2.1, 1.0), rates=(0.0, 0.0), gravity: float = -9.81) -> None:
        self.container = exu.SystemContainer()
        self.mbs = self.container.AddSystem()
        self.gravity = gravity
        self.ground = self.mbs.AddObject(eii.ObjectGround())
        self.cranks: list[int] = []  # nodes
        feet = np.array([[-BASE, 0.0], [BASE, 0.0]])
        arms = CRANK * np.column_stack([np.cos(angles), np.sin(angles)])
        elbows, speeds = feet + arms, np.array([rate * _cross(arm) for rate, arm in zip(rates, arms, strict=True)])
        between = elbows[1] - elbows[0]
        height = np.sqrt(ROD**2 / np.dot(between, between) - 0.25)
        point = elbows.mean(axis=0) + height * _cross(between)
        speed = np.linalg.solve(point - elbows, np.sum((point - elbows) * speeds, axis=1))
        ends = [self._side(*side, point, speed) for side in zip(feet, elbows, speeds, strict=True)]
        self.tip = ends[0]
        self.pin = self._hinge(*ends)

    def _side(self, foot, elbow, elbow_speed, point, speed):
        """Crank and rod of one side; the marker on the far end of the rod."""
        crank, node = self._bar(foot, elbow, np.zeros(2), elbow_speed, ROTOR)
        rod, _ = self._bar(elbow, point, elbow_speed, speed)
        self._hinge(self._on(self.ground, foot[0]), self._on(crank, -CRANK / 2))
        self._hinge(self._on(crank, CRANK / 2), self._on(rod, -ROD / 2))
        self.cranks.append(node)
        return self._on(rod, ROD / 2)

    def _bar(self, start, end, start_speed, end_speed, rotor=0.0):
        """Bar between two moving points; its node is its centre of mass."""
        along = end - start
        length, mass = np.linalg.norm(along), LINE_MASS * np.linalg.norm(along)
        turning = np.dot(_cross(along), end_speed - start_speed) / length**2
        node = self.mbs.AddNode(
            eii.NodeRigidBody2D(
                referenceCoordinates=[*(start + end) / 2, np.arctan2(along[1], along[0])],
                initialVelocities=[*(start_speed + end_speed) / 2, turning],
            )
        )
        inertia = mass * length**2 / 12 + rotor  # the rotor stands on the ground
        body = self.mbs.AddObject(eii.ObjectRigidBody2D(mass=mass, inertia=inertia, nodeNumber=node))
        weight = eii.LoadForceVector(markerNumber=self._on(body, 0.0), loadVector=[0, mass * self.gravity, 0])
        self.mbs.AddLoad(weight)
        return body, node

    def _on(self, body, x: float):
        return self.mbs.AddMarker(eii.MarkerBodyRigid(bodyNumber=body, localPosition=[x, 0, 0]))

    def _hinge(self, first, second):
        return self.mbs.AddObject(eii.ObjectJointRevolute2D(markerNumbers=[first, second]))

    def angle(self, motor: int):
        """Marker of a motor angle, for torques, springs and prescribed motions."""
        return self.mbs.AddMarker(eii.MarkerNodeCoordinate(nodeNumber=self.cranks[motor], coordinate=2))

    def fixed(self):
        """Marker of a coordinate that stays zero."""
        node = self.mbs.AddNode(eii.NodePointGround())
        return self.mbs.AddMarker(eii.MarkerNodeCoordinate(nodeNumber=node, coordinate=0))


def settings(end: float, steps: int) -> exu.SimulationSettings:
    """Settings of a run that writes no files."""
    chosen = exu.SimulationSettings()
    chosen.timeIntegration.endTime, chosen.timeIntegration.numberOfSteps = end, steps
    chosen.timeIntegration.verboseMode = 0
    chosen.solution.file.write = False
    return chosen
