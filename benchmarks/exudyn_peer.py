"""Exudyn as a peer: the DualEMPS with beams of the absolute nodal coordinate formulation (`ANCFCable2D`).

Numbers are those of Briot2014, Tables 1 and 2, as in the catalogue; nothing of parflex is used. Slides are driven by
constraints on their coordinates, with expressions that Exudyn evaluates in C++.
"""

from __future__ import annotations

from dataclasses import dataclass

import dualemps_path as path
import numpy as np
from exudyn_solver import INSIDE, CreateSymbolicUserFunction, Settings, eii, exu, seconds_of

SLIDE = 95.196
OFFSET, BLADE, REACH, STEP, LAST = 0.0675, 0.4505, 0.082, 0.065, 0.14
HEIGHT, WIDTH, DENSITY, MODULUS = 0.004, 0.050, 2800.0, 74e9
# mass, first moment and second moment about the frame's origin, along the leg
ROOT, FORK, HAND, TOE = (
    (0.843, 0.004, 7.06e-4),
    (0.396, 0.030, 0.003),
    (0.177, 0.006, 2.56e-4),
    (0.190, 0.011, 9.44e-4),
)


@dataclass(frozen=True)
class Run:
    """Times, P, forces of the drives along y, and CPU seconds of the solver."""

    times: np.ndarray
    x: np.ndarray
    y: np.ndarray
    forces: np.ndarray
    seconds: float


class DualEmps:
    """The robot at the start of a motion, undeformed and at rest."""

    def __init__(self, motion: str = "circle", elements: int = 1, stiffness: float = 1.0) -> None:
        self.motion, self.elements, self.stiffness = motion, elements, stiffness
        self.container = exu.SystemContainer()
        self.mbs = self.container.AddSystem()
        self.kept: list[object] = []  # expressions must live as long as the system
        self.ground = self.mbs.AddObject(eii.ObjectGround())
        places = path.positions(motion, 0.0, np)
        x, y = path.point(*places, np)
        knee = np.array([x, y - places[0]]) * path.KNEE / path.ARM + [0, places[0]]
        self.held, self.drives = [], []  # constraints of the slides, and sensors of their forces
        forks = []
        for number, (across, along) in enumerate(zip((0.0, path.BETWEEN), places, strict=True)):
            foot = np.array([across, along])
            forks.append(self._leg(foot, (knee - foot) / path.KNEE, FORK if number == 0 else TOE, number))
        self._hinge(self._on(forks[0], REACH), self._on(forks[1], REACH))
        self._hand(knee, np.array([x, y - places[0]]) / path.ARM, forks[0])
        self.mbs.Assemble()

    def _leg(self, foot: np.ndarray, along: np.ndarray, fork: tuple[float, float, float], number: int):
        """Slide, root, blade and the body at its end."""
        slide = self._slide(foot, number)
        root = self._body(foot, along, ROOT)
        self._hinge(slide, self._on(root, 0.0))
        first, last = self._beam(foot + OFFSET * along, along, BLADE)
        self._weld(self._on(root, OFFSET), first)
        end = self._body(foot + (OFFSET + BLADE) * along, along, fork)
        self._weld(last, self._on(end, 0.0))
        return end

    def _hand(self, knee: np.ndarray, along: np.ndarray, fork) -> None:
        """The last blade with the body that carries P."""
        first, last = self._beam(knee + STEP * along, along, LAST)
        self._weld(self._on(fork, REACH + STEP), first)
        hand = self._body(knee + (STEP + LAST) * along, along, HAND)
        self._weld(last, self._on(hand, 0.0))
        self.hand = self._on(hand, 0.0)
        self.sensor = self.mbs.AddSensor(
            eii.SensorMarker(markerNumber=self.hand, outputVariableType=exu.OutputVariableType.Position, **INSIDE)
        )

    def _slide(self, foot: np.ndarray, number: int):
        node = self.mbs.AddNode(eii.NodePoint2D(referenceCoordinates=foot))
        self.mbs.AddObject(eii.ObjectMassPoint2D(mass=SLIDE, nodeNumber=node))
        fixed = self.mbs.AddNode(eii.NodePointGround())
        still = self.mbs.AddMarker(eii.MarkerNodeCoordinate(nodeNumber=fixed, coordinate=0))
        for axis in (0, 1):
            moving = self.mbs.AddMarker(eii.MarkerNodeCoordinate(nodeNumber=node, coordinate=axis))
            held = self.mbs.AddObject(eii.ObjectConnectorCoordinate(markerNumbers=[still, moving]))
        self.held.append(held)
        self._drive(held, number, float(foot[1]))
        force = eii.SensorObject(objectNumber=held, outputVariableType=exu.OutputVariableType.Force, **INSIDE)
        self.drives.append(self.mbs.AddSensor(force))
        return self.mbs.AddMarker(eii.MarkerNodePosition(nodeNumber=node))

    def _drive(self, held, number: int, start: float) -> None:
        """The slide's way from its start as an expression of time."""

        def way(mbs, t, item, offset):
            return path.positions(self.motion, t, exu.symbolic)[number] - start

        made = CreateSymbolicUserFunction(self.mbs, way, "offsetUserFunction", held)
        self.kept.append(made)
        self.mbs.SetObjectParameter(held, "offsetUserFunction", made)

    def _body(self, origin: np.ndarray, along: np.ndarray, inertia: tuple[float, float, float]):
        """A rigid body whose node is its centre of mass; remembers where the frame's origin is from there."""
        mass, first, second = inertia
        centre = first / mass
        angle = float(np.arctan2(along[1], along[0]))
        node = self.mbs.AddNode(eii.NodeRigidBody2D(referenceCoordinates=[*(origin + centre * along), angle]))
        body = eii.ObjectRigidBody2D(mass=mass, inertia=second - first**2 / mass, nodeNumber=node)
        return self.mbs.AddObject(body), centre

    def _on(self, body, distance: float):
        """A marker on a body at a distance from its frame's origin along the leg."""
        number, centre = body
        return self.mbs.AddMarker(eii.MarkerBodyRigid(bodyNumber=number, localPosition=[distance - centre, 0, 0]))

    def _beam(self, start: np.ndarray, along: np.ndarray, length: float):
        """Elements in a row; markers at both ends."""
        stiffness = MODULUS * self.stiffness
        nodes = [
            self.mbs.AddNode(
                eii.NodePoint2DSlope1(referenceCoordinates=[*(start + length * k / self.elements * along), *along])
            )
            for k in range(self.elements + 1)
        ]
        cables = [
            self.mbs.AddObject(
                eii.ObjectANCFCable2D(
                    length=length / self.elements,
                    massPerLength=DENSITY * HEIGHT * WIDTH,
                    bendingStiffness=stiffness * WIDTH * HEIGHT**3 / 12,
                    axialStiffness=stiffness * HEIGHT * WIDTH,
                    nodeNumbers=[nodes[k], nodes[k + 1]],
                )
            )
            for k in range(self.elements)
        ]
        ends = ((cables[0], 0.0), (cables[-1], length / self.elements))
        return [self.mbs.AddMarker(eii.MarkerBodyRigid(bodyNumber=c, localPosition=[x, 0, 0])) for c, x in ends]

    def _hinge(self, first, second) -> None:
        self.mbs.AddObject(eii.ObjectJointRevolute2D(markerNumbers=[first, second]))

    def _weld(self, first, second) -> None:
        self.mbs.AddObject(eii.ObjectJointGeneric(markerNumbers=[first, second], constrainedAxes=[1, 1, 0, 0, 0, 1]))

    def frequencies(self) -> np.ndarray:
        """Frequencies in Hz about the start with the slides held."""
        values, _ = self.mbs.ComputeODE2Eigenvalues(convert2Frequencies=True)
        return np.sort(np.array(values))

    def deflection(self, force: tuple[float, float]) -> np.ndarray:
        """Static displacement of P under a force there, slides held."""
        for held in self.held:
            self.mbs.SetObjectParameter(held, "offsetUserFunction", 0)
        self.mbs.AddLoad(eii.LoadForceVector(markerNumber=self.hand, loadVector=[*force, 0]))
        self.mbs.Assemble()
        before = np.array(self.mbs.GetSensorValues(self.sensor, configuration=exu.ConfigurationType.Reference))
        settings = exu.SimulationSettings()
        settings.staticSolver.verboseMode = 0
        settings.staticSolver.newton.relativeTolerance = 1e-6  # of the load; rounding of axial forces leaves 1e-8 N
        settings.solution.file.write = False
        self.mbs.SolveStatic(settings)
        return (np.array(self.mbs.GetSensorValues(self.sensor)) - before)[:2]

    def simulate(self, end: float, step: float, output: float, how: Settings) -> Run:
        """Motion from rest, recorded at every `output` seconds."""
        seconds = seconds_of(self.mbs, end, step, output, how)
        place = np.array(self.mbs.GetSensorStoredData(self.sensor))
        forces = np.column_stack([np.array(self.mbs.GetSensorStoredData(drive))[:, 1] for drive in self.drives])
        return Run(place[:, 0], place[:, 1], place[:, 2], -forces, seconds)  # a multiplier pulls at the slide


def run(
    motion: str, end: float, step: float = 5e-4, elements: int = 1, output: float = 0.01, how: Settings | None = None
) -> Run:
    """A motion of the robot from rest."""
    return DualEmps(motion, elements).simulate(end, step, output, how or Settings())
