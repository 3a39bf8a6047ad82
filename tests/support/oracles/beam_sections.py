"""Loads beyond a section of a beam element by sums over its points; closed forms of a beam on a moving base."""

import numpy as np

POINTS, WEIGHTS = np.polynomial.legendre.leggauss(12)


def displaced(x, y, z, L, e):
    """Displacement of the point (x, y, z) of an Euler-Bernoulli element for the motion e of its tip, linear in e."""
    s = x / L
    up, tilt = 3 * s**2 - 2 * s**3, L * (s**3 - s**2)
    up_slope, tilt_slope = 6 * (s - s**2) / L, 3 * s**2 - 2 * s
    ux, uy, uz, rx, ry, rz = e
    v, w = up * uy + tilt * rz, up * uz - tilt * ry
    v_slope, w_slope = up_slope * uy + tilt_slope * rz, up_slope * uz - tilt_slope * ry
    return np.array([s * ux - y * v_slope - z * w_slope, v - z * s * rx, w + y * s * rx])


def wrench_beyond(xi, L, sides, density, rotary, motion, deformed, end):
    """Force and moment about the section at xi, axes of the root, that move what lies beyond it and carry its end.

    `motion` is (a, w, al) of the root, `deformed` (e, ed, edd), `end` a wrench at the tip (about the root).
    """
    a, w, al = motion
    e, ed, edd = deformed
    force, moment = np.array(end[:3], dtype=float), np.array(end[3:], dtype=float)
    b, h = sides
    across = ([(0.0, 0.0, 1.0)] if not rotary else [
        (b / 2 * p, h / 2 * q, wp * wq / 4)
        for p, wp in zip(*np.polynomial.legendre.leggauss(2), strict=True)
        for q, wq in zip(*np.polynomial.legendre.leggauss(2), strict=True)
    ])  # fmt: skip
    for point, weight in zip(POINTS, WEIGHTS, strict=True):
        x = L * (xi + (1 - xi) * (point + 1) / 2)
        dm = density * b * h * L * (1 - xi) * weight / 2
        for y, z, share in across:
            r = np.array([x, y, z]) + displaced(x, y, z, L, e)
            v, drift = displaced(x, y, z, L, ed), displaced(x, y, z, L, edd)
            moved = a + np.cross(al, r) + np.cross(w, np.cross(w, r)) + 2 * np.cross(w, v) + drift
            force += share * dm * moved
            moment += share * dm * np.cross(r, moved)
        if not rotary:  # sections spin about the beam alone
            j = dm * (b**2 + h**2) / 12
            spin = w[0] + x / L * ed[3]
            moment += j * np.array([al[0] + x / L * edd[3], spin * w[2], -spin * w[1]])
    place = np.array([xi * L, 0, 0]) + displaced(xi * L, 0, 0, L, e)
    return force, moment - np.cross(place, force)


def cantilever_roots(count):
    """beta L of the modes of a clamped and free beam."""
    roots = []
    for n in range(1, count + 1):
        x = (n - 0.5) * np.pi
        for _ in range(50):  # cos x + 1/cosh x = 0, well scaled
            f, slope = np.cos(x) + 1 / np.cosh(x), -np.sin(x) - np.tanh(x) / np.cosh(x)
            x -= f / slope
        roots.append(x)
    return np.array(roots)


class ShakenCantilever:
    """A clamped beam at rest whose base begins to accelerate by A sin(W t) across it, by its modes."""

    def __init__(self, L, EI, rho_A, A, W, modes=60):
        self.L, self.EI, self.rho_A, self.A, self.W = L, EI, rho_A, A, W
        self.beta = cantilever_roots(modes)
        self.omega = self.beta**2 * np.sqrt(EI / (rho_A * L**4))
        x, weight = np.polynomial.legendre.leggauss(400)
        x, weight = (x + 1) / 2, weight / 2
        phi = self.shape(x)[0]
        self.share = (phi @ weight) / (phi**2 @ weight)

    def shape(self, s):
        """Modes and their second derivatives by s, scaled so that nothing overflows."""
        b = self.beta[:, None] * np.asarray(s)[None]
        full = self.beta[:, None]
        # sigma = (cosh + cos)/(sinh + sin), with exponentials of negative numbers only
        down = np.exp(-full)
        sigma = (1 + down**2 + 2 * down * np.cos(full)) / (1 - down**2 + 2 * down * np.sin(full))
        rising = (np.exp(b - full) * (np.exp(full) * (1 - sigma))) / 2  # e^b (1 - sigma)/2
        falling = np.exp(-b) * (1 + sigma) / 2
        wave = -np.cos(b) + sigma * np.sin(b)
        curved = np.cos(b) - sigma * np.sin(b)
        return rising + falling + wave, full**2 * (rising + falling + curved)

    def moment(self, s, t):
        """EI v'' at s over times t: the quasi-static part in closed form, the rest by modes."""
        L, W = self.L, self.W
        static = -self.rho_A * L**2 * self.A * (1 - np.asarray(s)) ** 2 / 2  # all of the beam follows the base
        _, curved = self.shape(s)
        w = self.omega[:, None]
        moved = -self.share[:, None] * self.A * (np.sin(W * t) - W / w * np.sin(w * t)) / (w**2 - W**2)
        rigid = -self.share[:, None] * self.A * np.sin(W * t) / w**2
        return static[:, None] * np.sin(W * t) + self.EI / L**2 * np.einsum("ns,nt->st", curved, moved - rigid)
