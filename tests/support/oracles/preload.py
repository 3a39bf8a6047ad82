"""Energies of robots whose motors work against each other; stiffness is their second derivative, by CasADi."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class FourLegs:
    """Legs of two bars on a plate in the plane, as drawn: lengths, masses, centres; weight acts along -y."""

    base: Sequence[tuple[float, float]]
    phi: Sequence[float]
    upper: float
    lower: float
    arm: float
    side: Sequence[float]  # sign of each elbow
    upper_mass: Sequence[float]
    upper_centre: tuple[float, float]
    lower_mass: float
    lower_centre: float
    plate_mass: float
    plate_centre: tuple[float, float]
    g: float = 9.81

    def angles(self, x: ca.SX) -> tuple[list[ca.SX], ca.SX]:
        """Angles of the motors, and the weight's energy, for a pose (x, y, theta) of the plate."""
        c, s = ca.cos(x[2]), ca.sin(x[2])
        px, py = self.plate_centre
        weight = self.plate_mass * (x[1] + s * px + c * py)
        found = []
        for k, (bx, by) in enumerate(self.base):
            ax, ay = self.arm * np.cos(self.phi[k]), self.arm * np.sin(self.phi[k])
            dx, dy = x[0] + c * ax - s * ay - bx, x[1] + s * ax + c * ay - by
            square = dx * dx + dy * dy
            bend = (square - self.upper**2 - self.lower**2) / (2 * self.upper * self.lower)
            elbow = self.side[k] * ca.acos(bend)
            q = ca.atan2(dy, dx) - ca.atan2(self.lower * ca.sin(elbow), self.upper + self.lower * ca.cos(elbow))
            found.append(q)
            ux, uy = self.upper_centre
            weight += self.upper_mass[k] * (by + ca.sin(q) * ux + ca.cos(q) * uy)
            weight += self.lower_mass * (by + self.upper * ca.sin(q) + self.lower_centre * ca.sin(q + elbow))
        return found, self.g * weight

    def stiffness(self, pose: Array, tau: Array, servo: float) -> tuple[Array, Array]:
        """What is out of balance, and the second derivative, with constant efforts and springs at the motors."""
        x = ca.SX.sym("x", 3)
        q, weight = self.angles(x)
        q = ca.vertcat(*q)
        rest = ca.Function("q", [x], [q])(pose)
        energy = weight - ca.dot(ca.DM(tau), q) + servo / 2 * ca.sumsqr(q - rest)
        slope = ca.jacobian(energy, x).T
        at = ca.Function("K", [x], [slope, ca.jacobian(slope, x)])
        out, K = at(pose)
        return np.array(out).ravel(), np.array(K)


def slide_between_struts(
    ends: Mapping[str, tuple[float, float]], x: float, forces: Mapping[str, float], servo: float
) -> float:
    """Stiffness of a slide along x that struts with constant forces and servos push: their lengths by Pythagoras."""
    total = 0.0
    for name, (a, b) in ends.items():
        length = np.hypot(x - a, b)
        total += servo * ((x - a) / length) ** 2 - forces[name] * b * b / length**3
    return total


def hinged_beam_under_tension(length: float, EI: float, mass: float, tension: float) -> float:
    """Lowest frequency, Hz, of a beam between hinges; `mass` per length."""
    k = np.pi / length
    return float(np.sqrt((EI * k**4 + tension * k * k) / mass) / (2 * np.pi))
