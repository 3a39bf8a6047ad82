"""Robots that float, their momenta and starts."""

import numpy as np
from scipy.spatial.transform import Rotation

import parflex
from parflex.spatial.rotations import ORIENTATION

FREE = ["friction", "damping"]


def moving_start(of, seed: int = 3, speed: float = 0.5) -> dict:
    """Home, with all independent rates of a random size."""
    here = parflex.configure(of)
    rates = np.random.default_rng(seed).uniform(-speed, speed, here.J.shape[1])
    soft = [k for k, name in enumerate(here.independent_names) if of.tree.rate_names.index(name) in of.tree.elastic]
    rates[soft] *= 0.02  # beams bend a little
    return {"q": here.q, "qd": here.J @ rates}


def momenta(of, run) -> tuple[np.ndarray, np.ndarray]:
    """Linear momentum and angular momentum about the origin, by quadrature of the masses of the file."""
    P, H = np.zeros((len(run.t), 3)), np.zeros((len(run.t), 3))
    for frame in of.description.frame:
        at = {word: np.stack([run[f"{frame.name}.{word}{axis}"] for axis in "xyz"], axis=1) for word in ("v", "w")}
        place = np.stack([run[f"{frame.name}.{axis}"] for axis in "xyz"], axis=1)
        turn = np.stack([run[f"{frame.name}.{axis}"] for axis in ORIENTATION], axis=1)
        R = Rotation.from_quat(turn, scalar_first=True).as_matrix()
        body = frame.inertia
        centre = np.einsum("tij,j->ti", R, np.array(body.centre))
        v = at["v"] + np.cross(at["w"], centre)
        mass = body.mass or 0.0
        own = np.einsum("tji,tj->ti", R, at["w"]) * np.array(body.about_centre)
        P += mass * v
        H += mass * np.cross(place + centre, v) + np.einsum("tij,tj->ti", R, own)
        if frame.beam is not None:
            p, h = beam_momenta(of, run, frame, place, R, at["v"], at["w"])
            P, H = P + p, H + h
    return P, H


def beam_momenta(of, run, frame, place, R, v, w):
    """A beam with cubic shapes and sections that twist, in slices."""
    length, d = frame.beam.length, of.description.sections[frame.beam.section].diameter
    density = of.description.materials[frame.beam.material].density
    line, twist = density * np.pi * d**2 / 4, density * np.pi * d**4 / 32
    words = ("ux", "uy", "uz", "rx", "ry", "rz")
    e, ed = (np.stack([run[f"{kind}.{frame.name}.{word}"] for word in words], axis=1) for kind in ("q", "qd"))
    nodes, weights = np.polynomial.legendre.leggauss(5)
    P, H = np.zeros_like(v), np.zeros_like(v)
    for s, weight in zip((nodes + 1) / 2, weights * length / 2, strict=True):
        bend, turn = 3 * s**2 - 2 * s**3, length * (s**3 - s**2)

        def shaped(c, s=s, bend=bend, turn=turn):
            return np.stack([s * c[:, 0], bend * c[:, 1] + turn * c[:, 5], bend * c[:, 2] - turn * c[:, 4]], axis=1)

        r = np.einsum("tij,tj->ti", R, np.array([s * length, 0, 0]) + shaped(e))
        velocity = v + np.cross(w, r) + np.einsum("tij,tj->ti", R, shaped(ed))
        spin = np.einsum("tji,tj->ti", R, w)[:, 0] + s * ed[:, 3]
        P += weight * line * velocity
        H += weight * (line * np.cross(place + r, velocity) + twist * spin[:, None] * R[:, :, 0])
    return P, H
