"""Zubizarreta's planar robot of three R-R legs, by hand: its equations (27) to (58) with the print errors taken out.

Everything is in world axes and in x, y, theta; matrices are formed as the paper forms them. Parameters may differ from
leg to leg.
"""

from dataclasses import dataclass

import numpy as np

GRAVITY = 9.81


@dataclass(frozen=True)
class Parameters:
    """Lengths, masses, inertias about centres of mass and centres, by leg; the platform with its load."""

    base: np.ndarray  # 3 x 2
    proximal: np.ndarray
    distal: np.ndarray
    arm: np.ndarray
    phi: np.ndarray
    proximal_mass: np.ndarray
    distal_mass: np.ndarray
    sensor_mass: np.ndarray
    proximal_inertia: np.ndarray
    distal_inertia: np.ndarray
    sensor_inertia: np.ndarray
    proximal_centre: np.ndarray
    distal_centre: np.ndarray
    platform_mass: float
    platform_inertia: float


def nominal() -> Parameters:
    """The numbers of section 4.8."""
    three = np.ones(3)
    return Parameters(
        np.array([[-0.15, -0.84], [0.69, -0.17], [-0.66, 0.21]]),
        0.5 * three,
        0.4 * three,
        0.1732 * three,
        np.array([1, 5, 9]) * np.pi / 6,
        0.4239 * three,
        0.3391 * three,
        0.0656 * three,
        0.0088 * three,
        0.0045 * three,
        3.687e-6 * three,
        0.25 * three,
        0.2 * three,
        1.3576 + 0.5,
        0.0085 + 8.3333e-4,
    )


def along(angle: np.ndarray) -> np.ndarray:
    """Unit vectors."""
    return np.array([np.cos(angle), np.sin(angle)]).T


def across(angle: np.ndarray) -> np.ndarray:
    """Their derivatives by the angle."""
    return np.array([-np.sin(angle), np.cos(angle)]).T


def joints(p: Parameters, pose: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """(35), (36): q_a and q_p with the signs of sin q_p; fails out of reach."""
    corners = pose[:2] - p.arm[:, None] * along(pose[2] + p.phi)
    reach = corners - p.base
    cosine = ((reach**2).sum(axis=1) - p.proximal**2 - p.distal**2) / (2 * p.proximal * p.distal)
    if np.any(np.abs(cosine) >= 1):
        raise ValueError("out of reach")
    q_p = signs * np.arccos(cosine)
    q_a = np.arctan2(reach[:, 1], reach[:, 0]) - np.arctan2(p.distal * np.sin(q_p), p.proximal + p.distal * np.cos(q_p))
    return np.concatenate([q_a, q_p])


def jacobians(p: Parameters, theta: float, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(38): J_x (6 x 3) and J_q (6 x 6) of C_i - P + d_i u(theta + phi_i) = 0."""
    q_a, q_p = q[:3], q[3:]
    distal = p.distal[:, None] * across(q_a + q_p)
    proximal = p.proximal[:, None] * across(q_a) + distal
    turning = p.arm[:, None] * across(theta + p.phi)
    J_x, J_q = np.zeros((6, 3)), np.zeros((6, 6))
    for i in range(3):
        rows = slice(2 * i, 2 * i + 2)
        J_x[rows, :2], J_x[rows, 2] = -np.eye(2), turning[i]
        J_q[rows, i], J_q[rows, 3 + i] = proximal[i], distal[i]
    return J_x, J_q


def jacobian_rates(p: Parameters, theta: float, q: np.ndarray, w: float, qd: np.ndarray) -> tuple:
    """Derivatives of both in time."""
    q_a, q_p, d_a, d_p = q[:3], q[3:], qd[:3], qd[3:]
    distal = -p.distal[:, None] * along(q_a + q_p) * (d_a + d_p)[:, None]
    proximal = -p.proximal[:, None] * along(q_a) * d_a[:, None] + distal
    turning = -p.arm[:, None] * along(theta + p.phi) * w
    J_x, J_q = np.zeros((6, 3)), np.zeros((6, 6))
    for i in range(3):
        rows = slice(2 * i, 2 * i + 2)
        J_x[rows, 2] = turning[i]
        J_q[rows, i], J_q[rows, 3 + i] = proximal[i], distal[i]
    return J_x, J_q


def per_motor(J_x: np.ndarray, J_q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """T of (41), and x_dot per motor rate."""
    found = np.linalg.solve(np.hstack([J_q[:, 3:], J_x]), -J_q[:, :3])
    return np.vstack([np.eye(3), found[:3]]), found[3:]


def determinant(p: Parameters, pose: np.ndarray, signs: np.ndarray) -> float:
    """Zero where the platform can move with the motors locked."""
    J_x, J_q = jacobians(p, pose[2], joints(p, pose, signs))
    return float(np.linalg.det(np.hstack([J_q[:, 3:], J_x])))


def leg_matrices(p: Parameters, q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """D_q, C_q and G_q of (55) to (57); the sensor turns with the proximal link."""
    q_a, q_p, d_a, d_p = q[:3], q[3:], qd[:3], qd[3:]
    m_l, l_c, L = p.distal_mass, p.distal_centre, p.proximal
    D, C = np.zeros((6, 6)), np.zeros((6, 6))
    first, last = np.arange(3), np.arange(3, 6)
    coupling = m_l * (l_c**2 + L * l_c * np.cos(q_p)) + p.distal_inertia
    D[last, last] = m_l * l_c**2 + p.distal_inertia
    D[first, last] = D[last, first] = coupling
    D[first, first] = (
        p.proximal_mass * p.proximal_centre**2
        + p.sensor_mass * L**2
        + m_l * (L**2 + l_c**2 + 2 * L * l_c * np.cos(q_p))
        + p.proximal_inertia
        + p.distal_inertia
        + p.sensor_inertia
    )
    h = -m_l * L * l_c * np.sin(q_p)
    C[first, first], C[first, last], C[last, first] = h * d_p, h * (d_a + d_p), -h * d_a
    distal = m_l * l_c * GRAVITY * np.cos(q_a + q_p)
    proximal = (p.proximal_mass * p.proximal_centre + (m_l + p.sensor_mass) * L) * GRAVITY * np.cos(q_a)
    return D, C, np.concatenate([proximal + distal, distal])


def model(p: Parameters, theta: float, q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """D (3 x 6), C qd and G of (58), with J_C of (39) and its derivative of (43); the data need not fit the loops."""
    J_x, J_q = jacobians(p, theta, q)
    inverse = np.linalg.pinv(J_x)
    J_C = -inverse @ J_q
    rate_x, rate_q = jacobian_rates(p, theta, q, float((J_C @ qd)[2]), qd)
    J_C_dot = -inverse @ (rate_q + rate_x @ J_C)
    D_x = np.diag([p.platform_mass, p.platform_mass, p.platform_inertia])
    D_q, C_q, G_q = leg_matrices(p, q, qd)
    T, _ = per_motor(J_x, J_q)
    D = T.T @ (D_q + J_C.T @ D_x @ J_C)
    C = T.T @ (C_q + J_C.T @ D_x @ J_C_dot)
    G = T.T @ (G_q + J_C.T @ np.array([0.0, p.platform_mass * GRAVITY, 0.0]))
    return D, C @ qd, G


def moving(p: Parameters, pose: np.ndarray, q: np.ndarray, twist: np.ndarray, acceleration: np.ndarray) -> tuple:
    """Joint rates and accelerations that go with a motion of the platform, x, y, theta."""
    J_x, J_q = jacobians(p, pose[2], q)
    qd = np.linalg.solve(J_q, -J_x @ twist)
    rate_x, rate_q = jacobian_rates(p, pose[2], q, twist[2], qd)
    return qd, np.linalg.solve(J_q, -(J_x @ acceleration + rate_x @ twist + rate_q @ qd))
