"""Benchmark mechanisms of rigid bodies, from their published data, in redundant coordinates.

- Andrews' squeezer, seven bodies: W. Schiehlen (ed.), Multibody Systems Handbook, Springer 1990; data, start and the
  positions at 0.03 s as in E. Hairer and G. Wanner, Solving Ordinary Differential Equations II, section VII.7, and in
  the Test Set for IVP Solvers.
- Double four-bar (A02, N = 2) and Bricard's mechanism (A04): library of computational benchmark problems of the
  IFToMM technical committee for multibody dynamics.
- Spatial slider-crank: the same library; P. Masarati's and R. Masoudi's data.
"""

import numpy as np
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from support.oracles.constrained import Track, closed, integrate, started
from support.oracles.planar_bodies import GROUND, Linkage, Pin, Spring
from support.oracles.spatial_bodies import Assembly, Ball, Square, hinge

Array = np.ndarray

SQUEEZER_START = {  # angles of the Test Set at t = 0
    "K1": -0.0617138900142764496, "K2": 0.0, "K3": 0.455279819163070380, "K4": 0.222668390165885885,
    "K5": 0.487364979543842550, "K6": -0.222668390165885885, "K7": 1.23054744454982119,
}  # fmt: skip
SQUEEZER_END = {  # angles of the Test Set at t = 0.03
    "K1": 0.1581077119629904e2, "K2": -0.1575637105984298e2, "K3": 0.4082224013073101e-1, "K4": -0.5347301163226948,
    "K5": 0.5244099658805304, "K6": 0.5347301163226948, "K7": 0.1048080741042263e1,
}  # fmt: skip
PARENTS = {"K2": "K1", "K4": "K5", "K6": "K7"}  # angles of these count from the body that carries them


def squeezer() -> tuple[Linkage, Array]:
    """The seven bodies, and where they start (positions of the centres, angles against the ground)."""
    rr, ra, d, da, e, ea, ss, sa, sb = 0.007, 0.00092, 0.028, 0.0115, 0.02, 0.01421, 0.035, 0.01874, 0.01043
    sc, sd, ta, tb, u, ua, ub, zf, zt, fa = 0.018, 0.02, 0.02308, 0.00916, 0.04, 0.01228, 0.00449, 0.02, 0.04, 0.01421
    A, B, C = (-0.06934, -0.00227), (-0.03635, 0.03273), (0.014, 0.072)
    mass = np.array([0.04325, 0.00365, 0.02373, 0.00706, 0.07050, 0.00706, 0.05498])
    inertia = np.array([2.194e-6, 4.410e-7, 5.255e-6, 5.667e-7, 1.169e-5, 5.667e-7, 1.912e-5])
    centre = [(ra, 0), (-da, 0), (sb, -sa), (0, ea - e), (ta, tb), (zf - fa, 0), (-ub, -ua)]  # from the joint

    def of(body: int, x: float, y: float) -> tuple[float, float]:
        return x - centre[body - 1][0], y - centre[body - 1][1]

    E = [(1, of(2, -d, 0)), (2, of(3, 0, -ss)), (3, of(4, 0, -e)), (5, of(6, zf, 0))]
    joints = [
        Pin(0, of(1, 0, 0), GROUND, (0, 0)), Pin(1, of(2, 0, 0), 0, of(1, rr, 0)), Pin(2, of(3, 0, 0), GROUND, B),
        Pin(4, of(5, 0, 0), GROUND, A), Pin(3, of(4, 0, 0), 4, of(5, zt, 0)), Pin(6, of(7, 0, 0), GROUND, A),
        Pin(5, of(6, 0, 0), 6, of(7, 0, -u)), *(Pin(*E[0], *other) for other in E[1:]),
    ]  # fmt: skip
    springs = [Spring(GROUND, C, 2, of(3, sd, -sc), 4530.0, 0.07785)]
    linkage = Linkage(mass, inertia, joints, springs, {0: 0.033})
    value = SQUEEZER_START
    angles = [value[name] + (value[PARENTS[name]] if name in PARENTS else 0.0) for name in value]

    def turned(angle: float, p: tuple[float, float]) -> Array:
        c, s = np.cos(angle), np.sin(angle)
        return np.array([c * p[0] - s * p[1], s * p[0] + c * p[1]])

    origin = [np.zeros(2), turned(angles[0], (rr, 0)), np.array(B), np.array(A) + turned(angles[4], (zt, 0))]
    origin += [np.array(A), np.array(A) + turned(angles[6], (0, -u)), np.array(A)]
    q = np.concatenate([[*(o + turned(a, c)), a] for o, a, c in zip(origin, angles, centre, strict=True)])
    return linkage, closed(linkage, 0.0, q)


def squeezer_angles(q: Array) -> dict[str, Array]:
    """Angles of the joints, as the publications name them, from rows of positions."""
    own = {f"K{k + 1}": q[..., 3 * k + 2] for k in range(7)}
    return {name: value - own[PARENTS[name]] if name in PARENTS else value for name, value in own.items()}


def squeezer_track(t: Array, tolerance: float = 1e-12) -> Track:
    linkage, q = squeezer()
    return integrate(linkage, t, q, np.zeros(len(q)), tolerance)


def double_four_bar(t: Array, speed: float = -1.0, tolerance: float = 1e-13) -> tuple[Array, Array]:
    """Angle of the three rockers and its rate; the smooth motion keeps the rockers parallel, a pendulum.

    Rockers of length 1, mass 1 turn about their ends, two couplers move as their pins do: kinetic energy
    `(3/3 + 2)/2 w^2`, weights `(3/2 + 2) g sin(angle)`.
    """
    made = solve_ivp(
        lambda _, y: [y[1], -3.5 / 3.0 * 9.81 * np.cos(y[0])], (t[0], t[-1]), [np.pi / 2, speed], "DOP853", t_eval=t,
        rtol=tolerance, atol=tolerance,
    )  # fmt: skip
    return made.y[0], made.y[1]


CRANK, ROD = 0.08, 0.3


def slider_crank(speed: float = 6.0) -> tuple[Assembly, Array, Array]:
    """Crank about x at (0, 0.1, 0.12), rod with a ball at the crank and a universal joint at the slider along x.

    The universal joint turns about the x axis of the slider and about an axis of the rod that is normal to it and to
    the rod. Bodies: crank (its arm along its own y), rod (along its own x, from the slider), slider.
    """
    mass = np.array([0.12, 0.5, 2.0])
    inertia = np.array([[1e-4, 1e-5, 1e-4], [4e-4, 4e-3, 4e-3], [1e-4, 1e-4, 1e-4]])
    tip = np.array([0.0, 0.1, 0.12 + CRANK])
    C = np.array([0.2, 0.0, 0.0])
    e = (tip - C) / ROD
    second = np.cross([1.0, 0.0, 0.0], e)
    second /= np.linalg.norm(second)
    R_rod = np.stack([e, second, np.cross(e, second)], axis=1)
    R_crank = np.stack([[1.0, 0, 0], [0, 0, 1.0], [0, -1.0, 0]], axis=1)  # its own y along z of the world
    turns = Rotation.from_matrix([R_crank, R_rod, np.eye(3)]).as_quat(scalar_first=True)
    joints = [
        *hinge(0, (0, -CRANK / 2, 0), (1, 0, 0), -1, (0, 0.1, 0.12), (1, 0, 0)),
        Ball(0, (0, CRANK / 2, 0), 1, (ROD / 2, 0, 0)),
        Ball(1, (-ROD / 2, 0, 0), 2, (0, 0, 0)),
        Square(1, (0, 1, 0), 2, (1, 0, 0)),
        Ball(2, (0, 0, 0), -1, (0, 0, 0), ((0, 1, 0), (0, 0, 1))),
        Square(2, (1, 0, 0), -1, (0, 1, 0)), Square(2, (1, 0, 0), -1, (0, 0, 1)), Square(2, (0, 1, 0), -1, (0, 0, 1)),
    ]  # fmt: skip
    places = [tip - np.array([0, 0, CRANK / 2]), (tip + C) / 2, C]
    assembly = Assembly(mass, inertia, joints, (0.0, 0.0, -9.81))
    q = closed(assembly, 0.0, np.concatenate([part for pair in zip(places, turns, strict=True) for part in pair]))
    return assembly, q, started(assembly, q, {3: speed})


CORNERS = np.array([[0, 0, 0], [1, 0, 0], [1, -1, 0], [1, -1, 1], [0, -1, 1], [0, 0, 1]], dtype=float)
AXES = "yzxyzx"  # of the hinges at the corners, in the world at the start; the first and the last are on the ground


def bricard() -> tuple[Assembly, Array]:
    """Five rods of 1 m, 1 kg, section 0.1 x 0.1 m, from rest; at the start they are edges of a cube."""
    axial, across = (0.1**2 + 0.1**2) / 12, (1 + 0.1**2) / 12
    inertia, joints, q = [], [], []
    for k in range(5):
        way = CORNERS[k + 1] - CORNERS[k]
        inertia.append(np.where(way != 0, axial, across))
        q += [*((CORNERS[k] + CORNERS[k + 1]) / 2), 1.0, 0.0, 0.0, 0.0]
    for k, letter in enumerate(AXES):
        axis = tuple(np.eye(3)["xyz".index(letter)])
        before, after = (k - 1 if k else -1), (k if k < 5 else -1)
        places = [CORNERS[k] - (np.array(q[7 * b : 7 * b + 3]) if b >= 0 else 0.0) for b in (before, after)]
        joints += hinge(before, tuple(places[0]), axis, after, tuple(places[1]), axis)
    return Assembly(np.ones(5), np.array(inertia), joints, (0.0, -9.81, 0.0)), np.array(q)
