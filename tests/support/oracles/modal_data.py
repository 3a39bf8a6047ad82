"""Bodies given by nodes and shapes: what a file holds, invented ones, and their mass matrix as a sum over nodes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import scipy.linalg
import scipy.optimize


@dataclass(frozen=True, eq=False)
class Modes:
    """Nodes (the named ones first), what is lumped at them, and shapes (modes x nodes x 6: shift, then turn)."""

    nodes: np.ndarray
    names: tuple[str, ...]
    masses: np.ndarray
    second_moments: np.ndarray  # int s s^T dm about every node
    shapes: np.ndarray
    stiffnesses: np.ndarray
    damping_ratios: np.ndarray

    @property
    def size(self) -> int:
        return len(self.shapes)

    def first(self, count: int) -> Modes:
        """The softest modes only."""
        return replace(
            self,
            shapes=self.shapes[:count],
            stiffnesses=self.stiffnesses[:count],
            damping_ratios=self.damping_ratios[:count],
        )

    def damping(self) -> np.ndarray:
        """Force per rate of every coordinate: 2 d sqrt(k m) of a mode alone."""
        return 2 * self.damping_ratios * np.sqrt(self.stiffnesses * np.diag(self.mass_matrix())[6:])

    def motions(self) -> np.ndarray:
        """Displacements and turns of all nodes (nodes x 6 x 6+N) by small motions of the body, then by the modes."""
        count = len(self.nodes)
        rigid = np.tile(np.eye(6), (count, 1, 1))
        for node, r in zip(rigid, self.nodes, strict=True):
            node[:3, 3:] = -np.array([[0, -r[2], r[1]], [r[2], 0, -r[0]], [-r[1], r[0], 0]])
        return np.concatenate([rigid, np.nan_to_num(self.shapes).transpose(1, 2, 0)], axis=2)

    def mass_matrix(self) -> np.ndarray:
        """Of small motions of the body and of its modes, about the undeformed body."""
        motion = self.motions()
        arms = np.trace(self.second_moments, axis1=1, axis2=2)[:, None, None] * np.eye(3) - self.second_moments
        shift, turn = motion[:, :3], motion[:, 3:]
        return np.einsum("n,nia,nib->ab", self.masses, shift, shift) + np.einsum("nij,nia,njb->ab", arms, turn, turn)

    def write(self, path: Path, **other: object) -> Path:
        """The exchange file of these modes; entries may be replaced, or left out by None."""
        entries: dict[str, object] = {
            "format": 1,
            "nodes": self.nodes,
            "interface": np.array(self.names),
            "masses": self.masses,
            "second_moments": self.second_moments,
            "shapes": self.shapes,
            "modal_masses": np.diag(self.mass_matrix())[6:],
            "modal_stiffnesses": self.stiffnesses,
            "damping_ratios": self.damping_ratios,
        } | other
        np.savez(path, **{key: value for key, value in entries.items() if value is not None})
        return path


def read_modes(path: Path, count: int | None = None) -> Modes:
    """The numbers of an exchange file."""
    with np.load(path) as file:
        nodes = file["nodes"]
        moments = file["second_moments"] if "second_moments" in file else np.zeros((len(nodes), 3, 3))
        names = tuple(str(name) for name in file["interface"])
        keys = ("shapes", "modal_stiffnesses", "damping_ratios")
        return Modes(nodes, names, file["masses"], moments, *(file[key] for key in keys)).first(count or 10**6)


def invented(
    places: dict[str, np.ndarray],
    count: int,
    seed: int,
    free: bool = True,
    mass: float = 73.0,
    held: str = "",
    planar: bool = False,
) -> Modes:
    """A lumpy body of no symmetry: waves through scattered nodes, made orthogonal to each other by the masses.

    `free` ones are orthogonal to the motions of the rigid body too; the others carry momentum. One node may be held.
    Planar ones leave no plane. Order, size and sign of the shapes are those that a file is to have.
    """
    rng = np.random.default_rng(seed)
    named = np.array(list(places.values()))
    nodes = np.vstack([named, rng.uniform([-0.4, -0.4, -0.1], [0.4, 0.4, 0.15], (12, 3))])
    masses = np.concatenate([np.zeros(len(named) - 1), rng.uniform(1, 3, 13)])  # one of the named has a mass too
    masses *= mass / masses.sum()
    nodes[:, 2] *= not planar
    widths = rng.uniform(-0.08, 0.08, (len(nodes), 3, 3))
    widths[:, 2] *= not planar
    moments = masses[:, None, None] * np.einsum("nij,nkj->nik", widths, widths)
    shapes = np.array([_waves(nodes, rng) for _ in range(count)])
    shapes[:, [k for k, name in enumerate(places) if name == held]] = 0.0
    shapes[:, :, 2:5] *= not planar
    body = Modes(nodes, tuple(places), masses, moments, shapes, *np.zeros((2, count)))
    M, start = body.mass_matrix(), 0 if free else 6
    mixed = np.linalg.inv(np.linalg.cholesky(M[start:, start:]))  # Gram and Schmidt
    shapes = np.einsum("ab,nib->ani", mixed, body.motions()[:, :, start:])[6 - start :]
    for shape in shapes:
        flat = shape[:, :3].ravel()
        shape *= np.sign(flat[np.abs(flat).argmax()])
    return replace(
        body,
        shapes=shapes,
        stiffnesses=3.5e4 * np.cumprod(rng.uniform(1.1, 2, count)),
        damping_ratios=rng.uniform(0.1, 0.5, count),
    )


def _waves(nodes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A sum of plane waves a sin(k r + phase), with half its curl as the turn."""
    field = np.zeros((len(nodes), 6))
    for k, a, phase in zip(rng.normal(0, 4, (4, 3)), rng.normal(0, 1, (4, 3)), rng.uniform(0, 6, 4), strict=True):
        along = nodes @ k + phase
        field += np.hstack([np.outer(np.sin(along), a), np.outer(np.cos(along), np.cross(k, a) / 2)])
    return field


def free_bar(length: float, mass: float, bends: int) -> tuple[Modes, np.ndarray]:
    """A thin bar about its middle at Gauss points: its first stretch, and analytic bending along y and along z."""
    points, weights = np.polynomial.legendre.leggauss(60)
    x, masses = length * points / 2, mass * weights / 2
    roots = np.array([scipy.optimize.brentq(lambda k: np.cos(k) - 1 / np.cosh(k), *_between(n)) for n in range(bends)])
    stretch = np.sqrt(2) * np.cos(np.pi * (x / length + 0.5))
    curves = [_free_bending(root, x / length + 0.5) for root in roots]
    shapes = np.zeros((1 + 2 * bends, len(x), 6))
    shapes[0, :, 0] = stretch
    for k, (curve, slope) in enumerate(curves):
        shapes[1 + 2 * k, :, 1], shapes[1 + 2 * k, :, 5] = curve, slope / length
        shapes[2 + 2 * k, :, 2], shapes[2 + 2 * k, :, 4] = curve, -slope / length
    nodes, zero = np.outer(x, [1.0, 0, 0]), np.zeros(len(shapes))
    moments = np.zeros((len(x), 3, 3))
    return Modes(nodes, (), masses, moments, shapes / np.sqrt(mass), 1e4 * np.arange(1, 1 + len(zero)), zero), roots


def _between(number: int) -> tuple[float, float]:
    """Where the roots of the free bar are looked for, about (n + 3/2) pi."""
    return (number + 1.25) * np.pi, (number + 1.75) * np.pi


def _free_bending(root: float, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Deflection, of mean square one, and slope of a free bar of length one."""
    ratio = (np.cosh(root) - np.cos(root)) / (np.sinh(root) - np.sin(root))
    c, C, n, N = np.cos(root * s), np.cosh(root * s), np.sin(root * s), np.sinh(root * s)
    return C + c - ratio * (N + n), root * (N - n - ratio * (C + c))
