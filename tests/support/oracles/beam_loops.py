"""Potential energy of planar mechanisms of beams, written with CasADi: its minimum, and its second derivatives.

Chains start on the ground. A chain is a list of pieces: `("joint", stiffness, rest)` turns, `("turn", angle)` turns by
a constant, `("beam", length, EA, EI, weight)` is one element of a beam with its weight per length. Beams bend about
the tangent at their root, with the cubic shapes of Euler and Bernoulli; their axial strain is the mean one.
"""

import casadi as ca
import numpy as np

GAUSS = np.polynomial.legendre.leggauss(5)


class BeamLoops:
    """Chains in the plane; the ends of two chains may be hinged together, and a load may act on an end."""

    def __init__(self, chains: list[tuple[tuple[float, float], list[tuple]]], hinge: bool, gravity, load) -> None:
        coordinates: list[ca.SX] = []
        energy = ca.SX(0)
        ends = []
        for start, pieces in chains:
            place, angle = ca.DM(start), ca.SX(0)
            for piece in pieces:
                if piece[0] == "turn":
                    angle = angle + piece[1]
                elif piece[0] == "joint":
                    q = ca.SX.sym(f"q{len(coordinates)}")
                    coordinates.append(q)
                    energy += piece[1] * (q - piece[2]) ** 2 / 2
                    angle = angle + q
                else:
                    own = ca.SX.sym(f"e{len(coordinates)}", 3)
                    coordinates += [own[0], own[1], own[2]]
                    added, place, angle = _beam(piece[1:], own, place, angle, gravity)
                    energy += added
            ends.append(place)
        energy -= ca.dot(ca.DM(load), ends[0])
        x = ca.vertcat(*coordinates)
        gap = ends[1] - ends[0] if hinge else ca.SX(0, 1)
        lam = ca.SX.sym("lam", gap.numel())
        lagrangian = energy + ca.dot(lam, gap) if hinge else energy
        self.size = x.numel()
        slopes, jacobian, second = ca.gradient(energy, x), ca.jacobian(gap, x), ca.hessian(lagrangian, x)[0]
        self._all = ca.Function("all", [x, lam], [slopes, gap, jacobian, second])
        self._ends = ca.Function("ends", [x], ends)

    def end(self, x: np.ndarray, chain: int = 0) -> np.ndarray:
        return np.array(self._ends(x)[chain] if isinstance(self._ends(x), tuple) else self._ends(x)).ravel()

    def minimum(self, x: np.ndarray, steps: int = 40) -> tuple[np.ndarray, np.ndarray]:
        """Stationary point of the energy on the closed loop, and the multipliers there."""
        rows = self._all.size1_in(1)
        lam = np.zeros(rows)
        for _ in range(steps):
            g, gap, A, H = (np.array(part) for part in self._all(x, lam))
            system = np.block([[H, A.T], [A, np.zeros((rows, rows))]])
            step = np.linalg.solve(system, -np.concatenate([g.ravel() + A.T @ lam, gap.ravel()]))
            x, lam = x + step[: self.size], lam + step[self.size :]
        return x, lam

    def second_derivative(self, x: np.ndarray, lam: np.ndarray) -> np.ndarray:
        """Hessian of the energy with the loop held by its multipliers."""
        return np.array(self._all(x, lam)[3])


def _beam(data, e: ca.SX, place, angle, gravity):
    """Energy of an element, and place and angle of its end."""
    length, EA, EI, weight = data
    turn = _turn(angle)
    shorter = 0
    for node, share in zip((GAUSS[0] + 1) / 2, GAUSS[1] / 2, strict=True):
        slope = 6 * (node - node**2) * e[1] / length + (3 * node**2 - 2 * node) * e[2]
        shorter += length * share * slope**2 / 2  # of the chord of a line that keeps its length
    strain = EA * (e[0] + shorter) ** 2 / length / 2
    strain += EI / 2 * (12 * e[1] ** 2 / length**3 - 12 * e[1] * e[2] / length**2 + 4 * e[2] ** 2 / length)
    fall = ca.SX(0)
    for node, share in zip((GAUSS[0] + 1) / 2, GAUSS[1] / 2, strict=True):
        across = (3 * node**2 - 2 * node**3) * e[1] + length * (node**3 - node**2) * e[2]
        point = place + turn @ ca.vertcat(length * node + node * e[0], across)
        fall -= weight * length * share * ca.dot(ca.DM(gravity), point)
    return strain + fall, place + turn @ ca.vertcat(length + e[0], e[1]), angle + e[2]


def _turn(angle):
    return ca.vertcat(ca.horzcat(ca.cos(angle), -ca.sin(angle)), ca.horzcat(ca.sin(angle), ca.cos(angle)))
