"""Lagrange's equations of a robot with beams, differentiated automatically from its energies and closures.

A section of an element moves with the root of the element and by its shapes: u = xi ux along the beam, the cubic
deflections v and w, the twist xi rx; the section turns by (xi rx, -w', v'), less by what shear slides, and stays plane.
The normal force is the same everywhere along an element, so its strain is the mean of u' + v'^2/2 + w'^2/2. Energies
are Gauss sums along the elements over squares of velocities and of strains; nothing is integrated by hand.
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np

from . import chart
from .energy import TERMS, EnergyModel, Numbers
from .reader import Frame

POINTS, WEIGHTS = np.polynomial.legendre.leggauss(4)  # exact to degree seven; cubics squared have degree six
NODES = ("node", "planar-node")


class FlexibleEnergyModel(EnergyModel):
    """Rigid bodies and beams; loops are closed by multipliers. Coordinates and terms as in `EnergyModel`."""

    def _derive(self) -> None:
        x, xd, _ = self._inputs
        weighed: list[tuple[float, ca.SX]] = []  # T = sum weight |rate of vector|^2 / 2
        spun: list[
            tuple[float, ca.SX, ca.SX, ca.SX]
        ] = []  # T = sum weight (rate of first . second + rate of scalar)^2 / 2
        strain, weight = ca.SX(0), ca.SX(0)
        gravity = ca.SX(self.data.gravity)
        for frame, d in self._moved(x):
            for mass, vector in _principal(chart.pseudo_inertia(frame)):
                weighed.append((mass, self._transforms[frame.name][:3, :] @ vector))
            weight -= ca.dot(gravity, self._transforms[frame.name][:3, :] @ chart.pseudo_inertia(frame)[:, 3])
            element = self._element(frame, d)
            if element is not None:
                weighed += element.weighed
                spun += element.spun
                strain += element.strain
                weight -= ca.dot(gravity, element.first_moment)
        kinetic = _kinetic(weighed, spun, x, xd)
        momentum, potential = ca.gradient(kinetic, xd), strain + weight
        bias = ca.jtimes(momentum, x, xd) - ca.gradient(kinetic, x) + ca.gradient(potential, x)
        pulled, stored = self._elements()
        self._momentum = ca.Function("momentum", self._inputs, [momentum])
        self._bias = ca.Function("bias", self._inputs, [bias + pulled])
        self._energy = ca.Function("energy", self._inputs, [kinetic, potential + stored])
        self._potential = potential + stored
        self._stiffness = ca.Function("stiffness", self._inputs, [ca.hessian(strain + stored, x)[0]])

    def _element(self, frame: Frame, d: ca.SX) -> Bent | None:
        return Element(frame, d, self._transforms[frame.parent]) if frame.kind in NODES else None

    def _moved(self, x: ca.SX) -> list[tuple[Frame, ca.SX]]:
        ends = np.cumsum([0, *(len(frame.rates) for frame in self.data.frames)])
        return [(f, x[int(a) : int(b)]) for f, a, b in zip(self.data.frames, ends, ends[1:], strict=False)]

    def _inertial(self, q: Numbers, qd: np.ndarray) -> list[np.ndarray]:
        """The momentum is linear in the rates: its values at unit rates are the columns of the mass matrix."""
        columns = [self._evaluate(self._momentum, q, unit)[0].ravel() for unit in np.eye(len(self.coordinates))]
        return [np.array(columns).T, self._evaluate(self._bias, q, qd)[0]]

    def accelerations(self, q: Numbers, qd: np.ndarray, efforts: Numbers, include: Sequence[str] = TERMS) -> np.ndarray:
        """All accelerations under efforts, with the multipliers of the loops."""
        M, c = self.mass_matrix_and_bias(q, qd, include)
        force = np.zeros(len(M))
        for name, value in efforts.items():
            force[self.coordinates.index(name)] = value
        A, bias = self.closure_jacobian(q, qd)
        system = np.block([[M, A.T], [A, np.zeros((len(A), len(A)))]])
        return np.linalg.solve(system, np.concatenate([force - c, -bias]))[: len(M)]

    def driven(
        self,
        q: Numbers,
        qd: np.ndarray,
        accelerations: Numbers,
        motors: Sequence[str] | None = None,
        include: Sequence[str] = TERMS,
    ) -> tuple[np.ndarray, dict[str, float]]:
        """All accelerations, and the efforts of motors (if none are named: there) if some accelerate as given."""
        M, c = self.mass_matrix_and_bias(q, qd, include)
        A, bias = self.closure_jacobian(q, qd)
        motors, units = list(motors or accelerations), np.eye(len(M))
        wanted, pushed = (units[[self.coordinates.index(name) for name in names]] for names in (accelerations, motors))
        zero = np.zeros((len(A) + len(wanted), len(A) + len(pushed)))
        system = np.block([[M, A.T, -pushed.T], [np.vstack([A, wanted]), zero]])
        solution = np.linalg.solve(system, np.concatenate([-c, -bias, list(accelerations.values())]))
        return solution[: len(M)], dict(zip(motors, map(float, solution[len(M) + len(A) :]), strict=True))

    def frequencies(self, q: Numbers, held: Sequence[str]) -> np.ndarray:
        """Frequencies in Hz, also those that are zero, about rest, gravity left out, with some coordinates held."""
        M, _ = self.mass_matrix_and_bias(q, np.zeros(len(self.coordinates)), ("motor_inertia",))
        K = self._evaluate(self._stiffness, q)[0]
        for coupled in self.data.couplings:
            weights = np.array([coupled.weights.get(name, 0.0) for name in self.coordinates])
            K = K + (coupled.stiffness or 0.0) * np.outer(weights, weights)
        rows = np.eye(len(M))[[self.coordinates.index(name) for name in held]].reshape(-1, len(M))
        _, values, right = np.linalg.svd(np.vstack([self.closure_jacobian(q)[0], rows]))
        free = right[int(np.sum(values > 1e-10 * values[0])) :].T
        factor = np.linalg.inv(np.linalg.cholesky(free.T @ M @ free))
        squares = np.linalg.eigvalsh(factor @ (free.T @ K @ free) @ factor.T)
        return np.sqrt(np.maximum(squares, 0)) / (2 * np.pi)


class Bent:
    """Parts of the energies of something that bends; `spun` as in `_kinetic`."""

    weighed: list[tuple[float, ca.SX]]
    spun: list[tuple[float, ca.SX, ca.SX, ca.SX]]
    strain: ca.SX
    first_moment: ca.SX  # of mass, in the world


class Element(Bent):
    """A beam element between the transform of its root and its elastic coordinates."""

    def __init__(self, node: Frame, d: ca.SX, root: ca.SX) -> None:
        assert node.bar is not None
        self.bar, self.length = node.bar, float(node.position[0])
        c, s = np.cos(node.bar.roll), np.sin(node.bar.roll)
        turn = np.array([[1, 0, 0], [0, c, -s], [0, s, c]])  # axes of the section, in those of the root
        self.root = ca.horzcat(root[:3, :3] @ turn, root[:3, 3])
        # ux, uy, uz, rx, ry, rz
        e = d if node.kind == "node" else ca.vertcat(d[:2], 0, 0, 0, d[2])
        self.e = ca.vertcat(turn.T @ e[:3], turn.T @ e[3:])
        self.weighed, self.spun = [], []
        self.strain, self.first_moment = ca.SX(0), ca.SX.zeros(3)
        self.stretch = self.e[0]  # of the centre line
        for point, share in zip((POINTS + 1) / 2, WEIGHTS / 2, strict=True):
            self._section(point, share * self.length, twists=node.kind == "node")
        self.strain += self.bar.E * self.bar.A / self.length / 2 * self.stretch**2

    def _section(self, xi: float, length: float, twists: bool) -> None:
        """Add a slice of some length at the share xi of the element."""
        bar, e = self.bar, self.e
        v, up, turn_z, bend_z = _deflected(xi, self.length, e[1], e[5], bar.E * bar.Iz / (bar.G * bar.shear_y))
        w, across, turn_y, bend_y = _deflected(xi, self.length, e[2], -e[4], bar.E * bar.Iy / (bar.G * bar.shear_z))
        turn = ca.vertcat(xi * e[3], -turn_y, turn_z)
        line = ca.vertcat(xi * (self.length + e[0]), v, w, 1)
        along_y, along_z = (ca.vertcat(axis + ca.cross(turn, axis), 0) for axis in (ca.SX([0, 1, 0]), ca.SX([0, 0, 1])))
        mass = bar.density * bar.A * length
        self.weighed.append((mass, self.root @ line))
        self.first_moment += mass * (self.root @ line)
        spin = bar.Ip
        if bar.rotary:
            self.weighed.append((bar.density * bar.Iz * length, self.root @ along_y))
            self.weighed.append((bar.density * bar.Iy * length, self.root @ along_z))
            spin -= bar.Iy + bar.Iz
        if twists and abs(spin) > 1e-12 * bar.Ip:
            self.spun.append((bar.density * spin * length, self.root[:, 1], self.root[:, 2], xi * e[3]))
        self.strain += length / 2 * bar.E * (bar.Iz * bend_z**2 + bar.Iy * bend_y**2)
        self.strain += length / 2 * bar.G * bar.J * (e[3] / self.length) ** 2
        for area, slide in ((bar.shear_y, up - turn_z), (bar.shear_z, across - turn_y)):
            self.strain += length / 2 * bar.G * area * slide**2 if np.isfinite(area) else 0
        if bar.mean:
            self.stretch += length / 2 * (up**2 + across**2)


def _deflected(xi: float, length: float, end: ca.SX, turned: ca.SX, ratio: float) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
    """Deflection, slope, turn of the section and its derivative: a cubic v whose sections turn by v' + ratio v'''.

    At 0 it does not deflect or turn, at its end as given. The ratio of bending to shear stiffness is a length squared.
    """

    def turn(x: float) -> list[float]:
        return [2 * x, 3 * x**2]  # of x^2 and of x^3 - 6 ratio x, which does not turn at 0

    shapes = np.linalg.inv([[length**2, length**3 - 6 * ratio * length], turn(length)])
    a, b = (row[0] * end + row[1] * turned for row in shapes.tolist())
    x = xi * length
    slope = 2 * a * x + b * (3 * x**2 - 6 * ratio)
    return a * x**2 + b * (x**3 - 6 * ratio * x), slope, slope + 6 * ratio * b, 2 * a + 6 * b * x


def _principal(moments: np.ndarray) -> list[tuple[float, np.ndarray]]:
    """Second moments of mass as a sum of weighted squares; weights are negative where no real body has them."""
    if not moments.any():
        return []
    values, vectors = np.linalg.eigh(moments)
    return [(float(value), vector) for value, vector in zip(values, vectors.T, strict=True) if value]


def _kinetic(weighed: list, spun: list, x: ca.SX, xd: ca.SX) -> ca.SX:
    """Kinetic energy; all rates are found in one sweep."""
    moving = ca.vertcat(*(vector for _, vector in weighed), *(ca.vertcat(y, angle) for _, y, _, angle in spun))
    rates = ca.jtimes(moving, x, xd)
    kinetic, first = ca.SX(0), 0
    for mass, _ in weighed:
        kinetic += mass / 2 * ca.sumsqr(rates[first : first + 3])
        first += 3
    for inertia, _, z, _ in spun:
        kinetic += inertia / 2 * (ca.dot(rates[first : first + 3], z) + rates[first + 3]) ** 2
        first += 4
    return kinetic
