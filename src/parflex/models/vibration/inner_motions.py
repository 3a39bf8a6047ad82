"""Motions inside an element of a beam that its cubic shapes leave out: both ends are held, the inside vibrates.

The shapes of an element are those of a beam that is loaded at its ends. To them belong, in the exact beam, motions that
vanish at both ends; statics do not couple them with the shapes. The inertia -lambda M and an axial force N do. What
they would take from an eigenvalue lambda of mode x is

    y^T A_ii^-1 y    with  y = (N G_ib - lambda M_ib) x,    A_ii = K_ii + N G_ii - lambda M_ii

and it has no end where A_ii is singular: at the frequencies of the element clamped at both ends, and at its own
buckling load. Here the inside is cut into FINE elements of the same kind: shear, rotary inertia and roll are in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from parflex.bodies.elastic import Body
from parflex.bodies.reduced_beam import ReducedCentreLine
from parflex.closure.mobility import null_space
from parflex.records import Record
from parflex.robotfile import schema
from parflex.spatial.linear import eigen_pairs
from parflex.spatial.rotations import hat
from parflex.tree.build_elements import read_element

Array = np.ndarray
HALVES = 2  # of an element of a reduced beam: its inside is far above what is left out
FINE = 8  # elements that stand for the inside: in stretch and shear they have 1/64 of the error that is estimated


@dataclass(frozen=True, eq=False, repr=False)
class InnerMotions(Record):
    """Of an element held at both ends: stiffness, mass and G (of a unit of axial force), and their coupling with x.

    x is the twist of the root (v, w in its axes) and the elastic coordinates: of the tip, and of modes that are kept.
    """

    K_ii: Array
    M_ii: Array
    M_ib: Array
    G_ii: Array
    G_ib: Array

    @cached_property
    def still(self) -> tuple[Array, Array]:
        """The same without axial force."""
        return self.modes(0.0)

    def modes(self, N: float) -> tuple[Array, Array]:
        """Squared frequencies under an axial force, and the mass-normalised motions; not positive: it buckles."""
        return eigen_pairs(self.K_ii + N * self.G_ii, self.M_ii)


def inner_motions(pieces: list[Body], kept: Array | None = None) -> InnerMotions:
    """Of an element from the `pieces` that it is cut into, one behind the other.

    A reduced beam has modes, too: `kept` are the coordinates of the pieces in each. Motions of which these have no
    strain energy in common are what is left out.
    """
    N = pieces[0].size
    size = 6 + N * len(pieces)
    M, K, G = np.zeros((size, size)), np.zeros((size, size)), np.zeros((size, size))
    root = np.hstack([np.eye(6), np.zeros((6, size - 6))])  # twist of the node before each piece
    for j, piece in enumerate(pieces):
        own = np.zeros((N, size))
        own[:, 6 + N * j : 6 + N * (j + 1)] = np.eye(N)
        rows, tip = np.vstack([root, own]), piece.nodes["tip"]
        M += rows.T @ piece.inertia_matrix(np.zeros(N)) @ rows
        K += own.T @ piece.material_stiffness(np.zeros(N)) @ own
        G += rows.T @ _shortening(piece) @ rows
        shift = np.block([[np.eye(3), -hat(tip.r0)], [np.zeros((3, 3)), np.eye(3)]])
        root = shift @ root + np.vstack([tip.Phi_d, tip.Phi_r]) @ own
    tip = pieces[0].nodes["tip"]
    relative = (np.vstack([tip.Phi_d, tip.Phi_r]).T @ root)[:, 6:]  # coordinates of the whole tip by those of pieces
    K_e = K[6:, 6:]
    shapes = np.linalg.solve(K_e, relative.T)
    shapes = shapes @ np.linalg.inv(relative @ shapes)  # of the least energy: the cubic shapes of the whole
    if kept is not None:
        shapes, relative = np.hstack([shapes, kept]), np.vstack([relative, kept.T @ K_e])
    inner = null_space(relative / np.linalg.norm(relative, axis=1)[:, None], len(relative))
    B = np.vstack([np.zeros((6, inner.shape[1])), inner])
    T = np.zeros((size, 6 + shapes.shape[1]))
    T[:6, :6], T[6:, 6:] = np.eye(6), shapes
    return InnerMotions(B.T @ K @ B, B.T @ M @ B, B.T @ M @ T, B.T @ G @ B, B.T @ G @ T)


def _shortening(piece: Body) -> Array:
    """What slopes take from the length of a piece, of the turn of its root too: int (v'^2 + w'^2) dx as a form."""
    N, length = piece.size, float(piece.nodes["tip"].r0[0])
    H = np.zeros((6 + N, 6 + N))
    H[4, 4] = H[5, 5] = length
    ends = piece.nodes["tip"].Phi_d
    H[5, 6:], H[4, 6:] = ends[1], -ends[2]  # v' = rz + ..., w' = -ry + ...
    H[6:, 5], H[6:, 4] = H[5, 6:], H[4, 6:]
    for strain in piece.strains:
        H[6:, 6:] += strain.H
    return H


def of_beam(robot: schema.RobotFile, name: str, spec: schema.Beam, count: float) -> InnerMotions:
    """Of one element of the beam of a frame, which has so many of its length."""
    return inner_motions([read_element(robot, name, spec, count * FINE)] * FINE)


def of_reduced(element: Body, line: ReducedCentreLine) -> InnerMotions:
    """Of a reduced beam of such elements, or of their parts: what its modes leave out, and the inside of elements."""
    parts = (len(line.shapes) - 1) * HALVES
    N = element.size
    tip = element.nodes["tip"]
    used = np.vstack([tip.Phi_d, tip.Phi_r])
    kept = np.zeros((parts * N, line.shapes.shape[2] - N))
    ends = [line.at(k / parts) for k in range(parts + 1)]
    moved = [np.vstack([end.Phi_d, end.Phi_r])[:, N:] for end in ends]
    for k in range(parts):
        carried = np.vstack([moved[k][:3] - hat(tip.r0) @ moved[k][3:], moved[k][3:]])
        kept[k * N : (k + 1) * N] = used.T @ (moved[k + 1] - carried)
    return inner_motions([element] * parts, kept if kept.size else None)
