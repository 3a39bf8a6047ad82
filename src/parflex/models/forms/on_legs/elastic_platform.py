"""What the legs of a robot feel of a platform given by modes: its motion along the attachments, not all of its modes.

With the forces f of the legs along the directions in which modes move the attachments, the elastic rows of the platform
are M_ee edd + A_re^T Vd + s = P f. They are solved for y = P^T edd, the elastic accelerations of the attachments: with
M_y = (P^T M_ee^-1 P)^-1, lift L = M_ee^-1 P M_y and Pi = M_ee^-1 - L P^T M_ee^-1, all constant,

    M_y y + L^T (A_re^T Vd + s) = f        edd = L y - Pi (A_re^T Vd + s)

This is [Long2014, eqs. (44)-(49)] with as many elastic unknowns as directions at the attachments: a plate has one for
each leg, however many modes describe it. Where modes are fewer than directions, y are the modes themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parflex.bodies.elastic import Body, Node
from parflex.bodies.modal import without_rounding_differences
from parflex.records import Record

Array = np.ndarray
INDEPENDENT = 1e-6  # smallest singular value of P, of the largest: below, directions follow from each other
ROUND_OFF = 1e-14  # of the largest entry: what products of constants leave of zero


@dataclass(frozen=True, eq=False, repr=False)
class ElasticPlatform(Record):
    """A platform given by modes, and constants that reduce its modes to the motion of the attachments."""

    body: Body
    nodes: tuple[Node, ...]  # of the legs
    slots: tuple[Array, ...]  # of each leg 3 x d: acceleration of its attachment per unit of y, in platform axes
    M_y: Array  # d x d
    lift: Array  # N x d
    rest: Array  # Pi, N x N

    @property
    def size(self) -> int:
        """Number of elastic unknowns."""
        return len(self.M_y)

    def place(self, leg: int, e: Array) -> Array:
        """An attachment in platform axes."""
        return self.nodes[leg].r0 + self.nodes[leg].Phi_d @ e

    def rate(self, leg: int, ed: Array) -> Array:
        """Velocity of an attachment against the platform's frame, in its axes."""
        return self.nodes[leg].Phi_d @ ed

    def accelerations(self, y: Array, s: Array) -> Array:
        """Of all modes, theory (34); `s` are the elastic rows without edd, the platform's accelerations included."""
        return self.lift @ y - self.rest @ s

    def with_point_masses(self, masses: list[float]) -> ElasticPlatform:
        """The platform with a point mass on each attachment."""
        body = self.body
        for node, mass in zip(self.nodes, masses, strict=True):
            body = body.with_point_mass(node, mass)
        return elastic_platform(body, self.nodes)


def elastic_platform(body: Body, nodes: tuple[Node, ...]) -> ElasticPlatform:
    """The constants of a platform whose legs hold these nodes, theory (33)."""
    N = body.size
    M_ee = body.inertia_matrix(np.zeros(N))[6:, 6:]
    moves = [(leg, axis) for leg, node in enumerate(nodes) for axis in range(3) if node.Phi_d[axis].any()]
    P = np.array([nodes[leg].Phi_d[axis] for leg, axis in moves]).reshape(-1, N).T
    singular = np.linalg.svd(P, compute_uv=False) if P.size else np.zeros(0)
    if len(moves) >= N or not len(moves) or singular[-1] < INDEPENDENT * singular[0]:
        slots = tuple(node.Phi_d for node in nodes)
        return ElasticPlatform(body, nodes, slots, M_ee, np.eye(N), np.zeros((N, N)))
    free = np.linalg.inv(M_ee)
    M_y = np.linalg.inv(P.T @ free @ P)
    lift = free @ P @ M_y
    slots = tuple(np.zeros((3, len(moves))) for _ in nodes)
    for k, (leg, axis) in enumerate(moves):
        slots[leg][axis, k] = 1.0
    return ElasticPlatform(body, nodes, slots, *(_clean(part) for part in (M_y, lift, free - lift @ P.T @ free)))


def _clean(matrix: Array) -> Array:
    """A constant matrix with zeros where rounding stands, and one number for entries that rounding alone parts."""
    return without_rounding_differences(
        np.where(np.abs(matrix) > ROUND_OFF * np.abs(matrix).max() * len(matrix), matrix, 0.0)
    )
