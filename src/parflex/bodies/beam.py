"""Beams: Euler-Bernoulli elements whose coordinates are displacement and rotation of the tip, with cubic shape functions.

The beam lies along x from its root. Integrals are exact: shape functions are polynomials in x / L and linear in y and z, so every
invariant is a rational number times powers of the length and moments of the section.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.polynomial import polynomial

from parflex.bodies.elastic import ElasticBody, Node

Array = np.ndarray
PLANAR = (0, 1, 5)  # ux, uy, rz


@dataclass(frozen=True)
class Section:
    """Area, second moments of area int z^2 (Iy) and int y^2 (Iz), torsion constant J and polar moment Ip."""

    A: float
    Iy: float
    Iz: float
    J: float
    Ip: float


@dataclass(frozen=True)
class Material:
    """Young's modulus, shear modulus and density."""

    E: float
    G: float
    density: float


def beam(
    length: float, material: Material, section: Section, planar: bool = False, rotary_inertia: bool = False
) -> ElasticBody:
    """One beam element. Without `rotary_inertia` of the section only its torsional inertia is kept."""
    fields = _fields(length)
    weights = (
        material.density * section.A,
        material.density * section.Iz if rotary_inertia else 0.0,
        material.density * section.Iy if rotary_inertia else 0.0,
    )
    count = len(fields)
    G = np.zeros((count, count, 3, 3))
    S = np.array([[weights[0] * length * _integral(field[0][i]) for i in range(3)] for field in fields])
    for a, first in enumerate(fields):
        for b, second in enumerate(fields):
            for i in range(3):
                for j in range(3):
                    terms = (w * _integral(polynomial.polymul(p[i], q[j])) for w, p, q in zip(weights, first, second, strict=True))
                    G[a, b, i, j] = length * sum(terms)
    if not rotary_inertia:
        _add_torsion(G, material.density * section.Ip * length)
    K = _stiffness(length, material, section)
    body = ElasticBody(weights[0] * length, S, G, K, np.zeros_like(K), {"tip": _tip(length)})
    return _in_plane(body) if planar else body


def _fields(length: float) -> list[tuple[list[Array], list[Array], list[Array]]]:
    """r0 and the shape functions, each as parts that go with 1, y and z; entries are polynomials in x / L."""
    zero, one, xi = np.zeros(1), np.ones(1), np.array([0.0, 1.0])
    bend = np.array([0.0, 0.0, 3.0, -2.0])  # deflection per tip deflection
    turn = length * np.array([0.0, 0.0, -1.0, 1.0])  # deflection per tip rotation

    def shape(ux: Array, uy: Array, uz: Array, rx: Array) -> tuple[list[Array], list[Array], list[Array]]:
        """Centre line moved by (ux, uy, uz), section turned by rx and by the slopes."""
        ry, rz = -polynomial.polyder(uz) / length, polynomial.polyder(uy) / length
        return [ux, uy, uz], [-rz, zero, rx], [ry, -rx, zero]

    r0 = ([length * xi, zero, zero], [zero, one, zero], [zero, zero, one])
    return [
        r0,
        shape(xi, zero, zero, zero),
        shape(zero, bend, zero, zero),
        shape(zero, zero, bend, zero),
        shape(zero, zero, zero, xi),
        shape(zero, zero, -turn, zero),
        shape(zero, turn, zero, zero),
    ]


def _integral(p: Array) -> float:
    """Integral of a polynomial from 0 to 1."""
    return float(np.sum(p / np.arange(1, len(p) + 1)))


def _add_torsion(G: Array, j: float) -> None:
    """Inertia of the section against twist alone: half of j in y and in z, turning with the twist."""
    half = j / 2
    # fields (0, y, z) of the undeformed body and twist (0, -z, y): int over the section with int y^2 = int z^2 = half
    for a, b, weight in ((0, 0, 1.0), (0, 4, 0.5), (4, 0, 0.5), (4, 4, 1 / 3)):
        if a == b:
            G[a, b] += half * weight * np.diag([0.0, 1.0, 1.0])
        else:
            sign = 1.0 if a == 0 else -1.0
            G[a, b] += half * weight * sign * np.array([[0, 0, 0], [0, 0, 1.0], [0, -1.0, 0]])


def _stiffness(L: float, material: Material, section: Section) -> Array:
    E, G = material.E, material.G
    K = np.diag([E * section.A / L, 0, 0, G * section.J / L, 0, 0])
    for deflection, rotation, inertia, sign in ((1, 5, section.Iz, -1.0), (2, 4, section.Iy, 1.0)):
        stiffness = E * inertia
        K[deflection, deflection] = 12 * stiffness / L**3
        K[rotation, rotation] = 4 * stiffness / L
        K[deflection, rotation] = K[rotation, deflection] = sign * 6 * stiffness / L**2
    return K


def _tip(length: float) -> Node:
    zero = np.zeros((3, 3))
    return Node(np.array([length, 0.0, 0.0]), np.hstack([np.eye(3), zero]), np.hstack([zero, np.eye(3)]))


def _in_plane(body: ElasticBody) -> ElasticBody:
    """The beam with its motion in the x-y plane only."""
    own = list(PLANAR)
    fields = [0, *(k + 1 for k in own)]
    nodes = {name: Node(node.r0, node.Phi_d[:, own], node.Phi_r[:, own]) for name, node in body.nodes.items()}
    return ElasticBody(
        body.m, body.S[fields], body.G[np.ix_(fields, fields)], body.K[np.ix_(own, own)], body.D[np.ix_(own, own)], nodes
    )
