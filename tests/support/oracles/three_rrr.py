"""The planar 3RRR of [Zubizarreta2010, section 4] with its errata: geometry, multipliers, laws, sampled loop."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

Array = np.ndarray
G = 9.81
KP, KV = 1517.1502511567755, 46.05170185988091  # ln(10) and pi / 0.1 by hand: (pi/tp)^2 + (ln 10 / tp)^2, 2 ln 10 / tp


def _three(value: float) -> Array:
    return np.full(3, value)


@dataclass
class Parameters:
    """Numbers of section 4.8; arrays have an entry for each leg; 1 is its proximal link, 2 its distal one."""

    A: Array = field(default_factory=lambda: np.array([[-0.15, -0.84], [0.69, -0.17], [-0.66, 0.21]]))
    phi: Array = field(default_factory=lambda: np.array([1, 5, 9]) * np.pi / 6)
    L: Array = field(default_factory=lambda: _three(0.5))
    l: Array = field(default_factory=lambda: _three(0.4))
    d: Array = field(default_factory=lambda: _three(0.1732))
    m_1: Array = field(default_factory=lambda: _three(0.4239))
    m_2: Array = field(default_factory=lambda: _three(0.3391))
    m_s: Array = field(default_factory=lambda: _three(0.0656))
    I_1: Array = field(default_factory=lambda: _three(0.0088))
    I_2: Array = field(default_factory=lambda: _three(0.0045))
    I_s: Array = field(default_factory=lambda: _three(3.687e-6))
    c_1: Array = field(default_factory=lambda: _three(0.25))
    c_2: Array = field(default_factory=lambda: _three(0.2))
    m_p: float = 1.3576
    m_c: float = 0.5
    I_p: float = 0.0085
    I_c: float = 8.3333e-4


def _unit(angle: Array) -> Array:
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)


def _side(angle: Array) -> Array:
    return np.stack([-np.sin(angle), np.cos(angle)], axis=-1)


def inverse_geometry(p: Parameters, x: Array, signs: Array) -> Array:
    """q_a, q_p for a pose of the platform; signs are those of sin q_p."""
    way = x[:2] - p.d[:, None] * _unit(x[2] + p.phi) - p.A
    cosine = ((way**2).sum(1) - p.L**2 - p.l**2) / (2 * p.L * p.l)
    q_p = signs * np.arccos(cosine)
    q_a = np.arctan2(way[:, 1], way[:, 0]) - np.arctan2(p.l * np.sin(q_p), p.L + p.l * np.cos(q_p))
    return np.concatenate([q_a, q_p])


def jacobians(p: Parameters, x: Array, q: Array) -> tuple[Array, Array]:
    """J_x (6 x 3), J_q (6 x 6) of C_i on the platform less C_i on the leg."""
    J_x, J_q = np.zeros((6, 3)), np.zeros((6, 6))
    arm, first, second = _side(x[2] + p.phi), _side(q[:3]), _side(q[:3] + q[3:])
    for i in range(3):
        rows = slice(2 * i, 2 * i + 2)
        J_x[rows, :2] = np.eye(2)
        J_x[rows, 2] = -p.d[i] * arm[i]
        J_q[rows, i] = -p.L[i] * first[i] - p.l[i] * second[i]
        J_q[rows, 3 + i] = -p.l[i] * second[i]
    return J_x, J_q


def drift(p: Parameters, x: Array, xd: Array, q: Array, qd: Array) -> Array:
    """J_x_dot x_dot + J_q_dot q_dot."""
    total = qd[:3] + qd[3:]
    rows = p.d[:, None] * _unit(x[2] + p.phi) * xd[2] ** 2
    rows = rows + p.L[:, None] * _unit(q[:3]) * qd[:3, None] ** 2
    rows = rows + p.l[:, None] * _unit(q[:3] + q[3:]) * total[:, None] ** 2
    return rows.ravel()


def leg_matrices(p: Parameters, q: Array, qd: Array) -> tuple[Array, Array, Array]:
    """D_q, C_q qd and G_q of (55) to (57), corrected."""
    c, s = np.cos(q[3:]), np.sin(q[3:])
    d_p = p.m_2 * p.c_2**2 + p.I_2
    d_ap = d_p + p.m_2 * p.L * p.c_2 * c
    d_a = p.m_1 * p.c_1**2 + p.I_1 + p.m_s * p.L**2 + p.I_s + p.m_2 * p.L**2 + d_p + 2 * p.m_2 * p.L * p.c_2 * c
    D = np.block([[np.diag(d_a), np.diag(d_ap)], [np.diag(d_ap), np.diag(d_p)]])
    h = -p.m_2 * p.L * p.c_2 * s
    a, b = qd[:3], qd[3:]
    C = np.concatenate([h * b * a + h * (a + b) * b, -h * a * a])
    g_p = p.m_2 * p.c_2 * G * np.cos(q[:3] + q[3:])
    return D, C, np.concatenate([(p.m_1 * p.c_1 + (p.m_2 + p.m_s) * p.L) * G * np.cos(q[:3]) + g_p, g_p])


def platform_matrices(p: Parameters) -> tuple[Array, Array]:
    m = p.m_p + p.m_c
    return np.diag([m, m, p.I_p + p.I_c]), np.array([0.0, m * G, 0.0])


def accelerations(p: Parameters, x: Array, xd: Array, tau: Array, signs: Array) -> tuple[Array, Array, Array]:
    """Of the platform, with joints and their rates, by Lagrange multipliers."""
    q = inverse_geometry(p, x, signs)
    J_x, J_q = jacobians(p, x, q)
    qd = -np.linalg.solve(J_q, J_x @ xd)
    D, C, G_q = leg_matrices(p, q, qd)
    D_x, G_x = platform_matrices(p)
    K = np.zeros((15, 15))
    K[:3, :3], K[3:9, 3:9], K[9:, :3], K[9:, 3:9] = D_x, D, J_x, J_q
    K[:9, 9:] = K[9:, :9].T
    push = np.concatenate([tau, np.zeros(3)])
    right = np.concatenate([-G_x, push - C - G_q, -drift(p, x, xd, q, qd)])
    return np.linalg.solve(K, right)[:3], q, qd


def platform_from_legs(p: Parameters, q: Array) -> Array:
    """The pose nearest to the ends of the legs in the sense of least squares: mean and best turn."""
    C = p.A + p.L[:, None] * _unit(q[:3]) + p.l[:, None] * _unit(q[:3] + q[3:])
    arms = -p.d[:, None] * _unit(p.phi)
    c, a = C - C.mean(0), arms - arms.mean(0)
    theta = np.arctan2((a[:, 0] * c[:, 1] - a[:, 1] * c[:, 0]).sum(), (a * c).sum())
    turn = np.array([[np.cos(theta), -np.sin(theta)], [np.sin(theta), np.cos(theta)]])
    return np.array([*(C.mean(0) - turn @ arms.mean(0)), theta])


def platform_from_motors(p: Parameters, q_a: Array, near: Array, signs: Array) -> Array:
    """Direct geometry by Newton on the inverse geometry."""
    x = near.copy()
    for _ in range(20):
        q = inverse_geometry(p, x, signs)
        J_x, J_q = jacobians(p, x, q)
        step = np.linalg.solve(-np.linalg.solve(J_q, J_x)[:3], wrap(q_a - q[:3]))
        x = x + step
        if np.abs(step).max() < 1e-14:
            break
    return x


def wrap(angle: Array) -> Array:
    """To (-pi, pi]."""
    return -((-angle + np.pi) % (2 * np.pi) - np.pi)


def passed_on(p: Parameters, x: Array, q: Array, f_q: Array, f_x: Array) -> Array:
    """T^T (f_q + J_C^T f_x), (39) and (41)."""
    J_x, J_q = jacobians(p, x, q)
    J_C = -np.linalg.pinv(J_x) @ J_q
    passive = np.linalg.solve(np.hstack([J_x, J_q[:, 3:]]), -J_q[:, :3])[3:]
    T = np.vstack([np.eye(3), passive])
    return T.T @ (f_q + J_C.T @ f_x)


def model(p: Parameters, theta: float, q: Array, qd: Array) -> tuple[Array, Array, Array]:
    """D (3 x 6), C qd and G of (58), with J_C of (39) and its derivative of (43); the data need not fit the loops."""
    x = np.array([0.0, 0.0, theta])
    J_x, J_q = jacobians(p, x, q)
    J_C = -np.linalg.pinv(J_x) @ J_q
    xdd = -np.linalg.pinv(J_x) @ drift(p, x, J_C @ qd, q, qd)
    (D, C, G_q), (D_x, G_x) = leg_matrices(p, q, qd), platform_matrices(p)
    parts = (D, D_x @ J_C), (C, D_x @ xdd), (G_q, G_x)
    return tuple(passed_on(p, x, q, *part) for part in parts)  # type: ignore[return-value]


def determinant(p: Parameters, x: Array, signs: Array) -> float:
    """Zero where the platform can move with the motors locked."""
    J_x, J_q = jacobians(p, x, inverse_geometry(p, x, signs))
    return float(np.linalg.det(np.hstack([J_q[:, 3:], J_x])))


def moving(p: Parameters, x: Array, q: Array, xd: Array, xdd: Array) -> tuple[Array, Array]:
    """Joint rates and accelerations of a motion of the platform."""
    J_x, J_q = jacobians(p, x, q)
    qd = -np.linalg.solve(J_q, J_x @ xd)
    return qd, -np.linalg.solve(J_q, J_x @ xdd + drift(p, x, xd, q, qd))


def extended_law(p: Parameters, q: Array, qd: Array, wanted: tuple[Array, Array, Array], kp: float, kv: float) -> Array:
    """(59) with (58), all joints of the legs measured."""
    reference, rate, acceleration = wanted
    u = acceleration + kv * (rate - qd) + kp * wrap(reference - q)
    D, C, G_q = model(p, platform_from_legs(p, q)[2], q, qd)
    return D @ u + C + G_q


def classical_law(
    p: Parameters,
    x: Array,
    q_a: Array,
    qd_a: Array,
    wanted: tuple[Array, Array, Array],
    kp: float,
    kv: float,
    signs: Array,
) -> Array:
    """Computed torque of the motors; the rest of the robot is where the nominal parameters put it."""
    reference, rate, acceleration = wanted
    u = acceleration + kv * (rate - qd_a) + kp * wrap(reference - q_a)
    q = inverse_geometry(p, x, signs)
    J_x, J_q = jacobians(p, x, q)
    B = -np.linalg.solve(J_q, J_x)
    xd = np.linalg.solve(B[:3], qd_a)
    qd = B @ xd
    bias = -np.linalg.solve(J_q, drift(p, x, xd, q, qd))
    xdd = np.linalg.solve(B[:3], u - bias[:3])
    D, C, G_q = leg_matrices(p, q, qd)
    D_x, G_x = platform_matrices(p)
    f_q = D @ (B @ xdd + bias) + C + G_q
    return np.linalg.solve(B[:3].T, D_x @ xdd + G_x + B.T @ f_q)


def circle(
    p: Parameters, t: float, radius: float, time: float, signs: Array
) -> tuple[Array, tuple[Array, Array, Array]]:
    """Pose and joint reference on a circle about the origin, a quintic of time."""
    u = min(t / time, 1.0)
    turn = 2 * np.pi
    a = turn * (10 * u**3 - 15 * u**4 + 6 * u**5)
    ad = turn * 30 * (u * (1 - u)) ** 2 / time
    add = turn * 60 * u * (1 - u) * (1 - 2 * u) / time**2
    c, s = np.cos(a), np.sin(a)
    x = np.array([radius * c, radius * s, 0.0])
    xd = radius * ad * np.array([-s, c, 0.0])
    xdd = radius * (add * np.array([-s, c, 0.0]) - ad**2 * np.array([c, s, 0.0]))
    q = inverse_geometry(p, x, signs)
    return x, (q, *moving(p, x, q, xd, xdd))


def run(
    law: str,
    nominal: Parameters,
    plant: Parameters,
    signs: Array,
    time: float,
    whole: float = 2.0,
    radius: float = 0.1,
    h: float = 1e-3,
) -> tuple[Array, Array, Array]:
    """Sampled loop from motors on the reference: poses of the plant, references, efforts, a row for each sample."""
    x_ref, (q_ref, _, _) = circle(nominal, 0.0, radius, whole, signs)
    x = platform_from_motors(plant, q_ref[:3], x_ref, signs)
    xd, guess = np.zeros(3), x_ref
    rows, wanted_rows, efforts = [x], [x_ref], []
    for k in range(round(time / h)):
        wanted = circle(nominal, k * h, radius, whole, signs)[1]
        q = inverse_geometry(plant, x, signs)
        J_x, J_q = jacobians(plant, x, q)
        qd = -np.linalg.solve(J_q, J_x @ xd)
        if law == "extended":
            tau = extended_law(nominal, q, qd, wanted, KP, KV)
        else:
            guess = platform_from_motors(nominal, q[:3], guess, signs)
            motors = (wanted[0][:3], wanted[1][:3], wanted[2][:3])
            tau = classical_law(nominal, guess, q[:3], qd[:3], motors, KP, KV, signs)
        efforts.append(tau)
        x, xd = rk4(lambda x, xd, tau=tau: accelerations(plant, x, xd, tau, signs)[0], x, xd, h)
        rows.append(x)
        wanted_rows.append(circle(nominal, (k + 1) * h, radius, whole, signs)[0])
    return np.array(rows), np.array(wanted_rows), np.array(efforts)


def rk4(acceleration: Callable[[Array, Array], Array], x: Array, xd: Array, h: float) -> tuple[Array, Array]:
    def slope(y: Array) -> Array:
        return np.concatenate([y[3:], acceleration(y[:3], y[3:])])

    y = np.concatenate([x, xd])
    k1 = slope(y)
    k2 = slope(y + h / 2 * k1)
    k3 = slope(y + h / 2 * k2)
    k4 = slope(y + h * k3)
    y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y[:3], y[3:]
