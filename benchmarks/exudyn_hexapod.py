"""Exudyn as a peer: the Gough-Stewart robot whose legs are steel tubes, as geometrically exact beams.

Geometry and platform are those of Long2014, the legs those of the catalogue's `gough-stewart-beams`; nothing of parflex
is used. The motors hold their strokes. The robot is let go undeformed: the platform falls into its legs and swings; or,
without gravity, the platform is pushed.
(Strokes that move were tried: the generic joint of Exudyn does not converge with an offset.) Its elements interpolate
linearly, so that more of them are needed for the same error; shear, which our tubes do not have, is a thousand times as
stiff as that of steel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from exudyn_solver import INSIDE, Settings, eii, exu, seconds_of

FEET = np.array([[0.1, -0.2, 0], [0.3, -0.2, 0], [1.3, 0.4, 0], [1.0, 1.0, 0], [-0.2, 0.9, 0], [-0.7, 0.5, 0]])
TURNS = np.pi / 3 * np.array([-2, -1, 0, 1, 2, 3])
CENTRE, RADIUS, THICKNESS, PLATE = np.array([0.25, 0.433, 1.0]), 0.5, 0.015, 73.069
ATTACHMENTS = CENTRE + RADIUS * np.column_stack([np.cos(TURNS), np.sin(TURNS), np.zeros(6)])
STROKES = np.linalg.norm(ATTACHMENTS - FEET, axis=1)
CYLINDER, ROD = (0.5, 0.12, 0.01), (0.6, 0.05, 0.008)  # length, diameter, thickness
MODULUS, POISSON, DENSITY = 210e9, 0.3, 7850.0
CROSS, MOTOR = (3.0, 0.01), (15.0, 0.06)  # mass and moment of inertia about any axis
GRAVITY = [0, 0, -9.81]
RIGID_SHEAR = 1e3
# forces of so stiff a shear are rounded to 1e-2 N and more: below it Newton's iteration does not end with 16 elements
PUSHED = Settings(absolute=0.1)


@dataclass(frozen=True)
class Run:
    """Times, position of the platform's centre, and CPU seconds of the solver."""

    times: np.ndarray
    position: np.ndarray
    seconds: float


class Hexapod:
    """The robot at the start, undeformed and at rest; `push` is a force on the platform in time, without gravity."""

    def __init__(self, elements: int = 1, push: Callable[[float], np.ndarray] | None = None) -> None:
        self.elements, self.gravity = elements, GRAVITY if push is None else [0, 0, 0]
        self.container = exu.SystemContainer()
        self.mbs = self.container.AddSystem()
        self.ground = self.mbs.AddObject(eii.ObjectGround())
        across = PLATE * (5 * RADIUS**2 / 24 + THICKNESS**2 / 12)
        plate = np.array([across, across, PLATE * 5 * RADIUS**2 / 12])
        self.plate = self._rigid(CENTRE, np.eye(3), PLATE, plate)
        for number in range(6):
            self._leg(number)
        marker = self.mbs.AddMarker(eii.MarkerBodyRigid(bodyNumber=self.plate))
        self.sensor = self.mbs.AddSensor(
            eii.SensorMarker(markerNumber=marker, outputVariableType=exu.OutputVariableType.Position, **INSIDE)
        )
        if push is not None:
            force = eii.LoadForceVector(
                markerNumber=marker, loadVector=[0, 0, 0], loadVectorUserFunction=lambda _, t, __: push(t).tolist()
            )
            self.mbs.AddLoad(force)
        self.mbs.Assemble()

    def _leg(self, number: int) -> None:
        foot, top = FEET[number], ATTACHMENTS[number]
        along = (top - foot) / STROKES[number]
        away = foot - FEET[0]
        turn = np.arctan2(away[1], away[0])
        first = np.array([-np.sin(turn), np.cos(turn), 0])  # axes of the universal joint
        second = np.cross(along, first) / np.linalg.norm(np.cross(along, first))
        axes = np.column_stack([along, second, np.cross(along, second)])  # of the beams, x along them
        cross = self._rigid(foot, np.eye(3), CROSS[0], np.full(3, CROSS[1]))
        motor = self._rigid(foot, axes, MOTOR[0], np.full(3, MOTOR[1]))
        ground = self.mbs.AddMarker(eii.MarkerBodyRigid(bodyNumber=self.ground, localPosition=foot))
        here = self.mbs.AddMarker(eii.MarkerBodyRigid(bodyNumber=cross))
        there = self.mbs.AddMarker(eii.MarkerBodyRigid(bodyNumber=motor))
        self._hinge(ground, here, first, np.eye(3), np.eye(3))
        self._hinge(here, there, second, np.eye(3), axes)
        low, high = self._beam(foot, axes, CYLINDER)
        self._weld(there, self._beyond(low, 0.0))
        root, tip = (
            self._beyond(node, 0.0) for node in self._beam(foot + (STROKES[number] - ROD[0]) * along, axes, ROD)
        )
        self._weld(self._beyond(high, STROKES[number] - ROD[0] - CYLINDER[0]), root)
        on = self.mbs.AddMarker(eii.MarkerBodyRigid(bodyNumber=self.plate, localPosition=top - CENTRE))
        self.mbs.AddObject(eii.ObjectJointSpherical(markerNumbers=[on, tip]))

    def _rigid(self, place: np.ndarray, axes: np.ndarray, mass: float, moments: np.ndarray):
        node = self._node(place, axes)
        body = eii.ObjectRigidBody(mass=mass, inertia=[*moments, 0, 0, 0], nodeNumber=node)
        number = self.mbs.AddObject(body)
        marker = self.mbs.AddMarker(eii.MarkerBodyMass(bodyNumber=number))
        self.mbs.AddLoad(eii.LoadMassProportional(markerNumber=marker, loadVector=self.gravity))
        return number

    def _node(self, place: np.ndarray, axes: np.ndarray):
        vector = exu.rigidBodyUtilities.RotationMatrix2RotationVector(axes)
        return self.mbs.AddNode(eii.NodeRigidBodyRotVecLG(referenceCoordinates=[*place, *vector]))

    def _beam(self, start: np.ndarray, axes: np.ndarray, tube: tuple[float, float, float]):
        """Elements in a row; nodes of both ends."""
        length, diameter, thickness = tube
        outer, inner = diameter / 2, diameter / 2 - thickness
        area, bending = np.pi * (outer**2 - inner**2), np.pi / 4 * (outer**4 - inner**4)
        shear = MODULUS / 2 / (1 + POISSON)
        section = exu.BeamSection()
        section.massPerLength = DENSITY * area
        section.inertia = DENSITY * np.diag([2 * bending, bending, bending])
        stiff = [MODULUS * area, *[RIGID_SHEAR * shear * area] * 2, 2 * shear * bending, *[MODULUS * bending] * 2]
        section.stiffnessMatrix = np.diag(stiff)
        step = length / self.elements
        nodes = [self._node(start + k * step * axes[:, 0], axes) for k in range(self.elements + 1)]
        for pair in pairwise(nodes):
            made = eii.ObjectBeamGeometricallyExact(nodeNumbers=list(pair), length=step, sectionData=section)
            marker = self.mbs.AddMarker(eii.MarkerBodyMass(bodyNumber=self.mbs.AddObject(made)))
            self.mbs.AddLoad(eii.LoadMassProportional(markerNumber=marker, loadVector=self.gravity))
        return nodes[0], nodes[-1]

    def _beyond(self, node, distance: float):
        """A marker beyond a node along its x axis, on a body without mass."""
        carrier = self.mbs.AddObject(eii.ObjectRigidBody(nodeNumber=node))
        return self.mbs.AddMarker(eii.MarkerBodyRigid(bodyNumber=carrier, localPosition=[float(distance), 0, 0]))

    def _hinge(self, first, second, axis: np.ndarray, axes_0: np.ndarray, axes_1: np.ndarray) -> None:
        """Free about `axis`, which is given in the world; the axes of both markers at the start are given."""
        side = np.cross(axis, [1.0, 0.3, 0.2])
        side /= np.linalg.norm(side)
        joint = np.column_stack([side, np.cross(axis, side), axis])
        self.mbs.AddObject(
            eii.ObjectJointGeneric(
                markerNumbers=[first, second],
                constrainedAxes=[1, 1, 1, 1, 1, 0],
                rotationMarker0=axes_0.T @ joint,
                rotationMarker1=axes_1.T @ joint,
            )
        )

    def _weld(self, first, second) -> None:
        self.mbs.AddObject(eii.ObjectJointGeneric(markerNumbers=[first, second]))

    def simulate(self, end: float, step: float, output: float, how: Settings) -> Run:
        """Motion from rest, recorded at every `output` seconds."""
        seconds = seconds_of(self.mbs, end, step, output, how)
        place = np.array(self.mbs.GetSensorStoredData(self.sensor))
        return Run(place[:, 0], place[:, 1:4], seconds)


def run(
    end: float,
    step: float,
    elements: int,
    output: float = 0.01,
    how: Settings | None = None,
    push: Callable[[float], np.ndarray] | None = None,
) -> Run:
    """The robot with its strokes held, let go or pushed."""
    usual = Settings() if push is None else PUSHED
    return Hexapod(elements, push).simulate(end, step, output, how or usual)
