"""What a pose or a path leaves free: of all poses that it allows, the one nearest to a reference pose.

Subject to the closures and to what is given, the squared distance of all coordinates from those of the reference is
least, turns times the typical length, theory (40). Rates along a path are the exact derivative of that rule: its
conditions of a minimum are differentiated; second derivatives of the kinematics come from accelerations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from parflex.closure.loops import Closures
from parflex.closure.targets import PoseRows, Target
from parflex.errors import SingularError
from parflex.records import count_of
from parflex.recursion.kinematics import Motion, Pose, jacobians, motion, pose
from parflex.spatial.rotations import hat, vector_from_rotation
from parflex.tree.tree import Tree

Array = np.ndarray
ENDED = 1e-9  # Newton step, as a turn: what it leaves is its square
RANK = 1e-8  # of the largest singular value, at least of the typical length: rows below repeat others
LONGEST = 0.3  # Newton step, as a turn
STEPS = 40
LOST = 1e-6  # of the rates of rows: where the rows have rank, rounding leaves far less
TINY = 1e-12  # m/s or m/s^2: slower rows rest


class Wish:
    """Half the squared distance of all coordinates from those of a reference: metres, turns times the typical length.

    Of a joint with one axis its value counts, of a ball its turn, of a free body its place in the world. Bodies are
    not deformed.
    """

    def __init__(self, tree: Tree, reference: Array) -> None:
        self.tree, self.reference = tree, reference
        single = [link for link in tree.links if link.joint.one_axis]
        self.positions = np.array([link.q.start for link in single], dtype=int)
        self.rates = np.array([link.v.start for link in single], dtype=int)
        self.weights = np.where(tree.rate_units[self.rates] == 1.0, tree.length, 1.0) ** 2
        self.values = reference[self.positions]
        at = pose(tree, reference)
        joints = {j: link.joint for j, link in enumerate(tree.links)}
        self.balls = {j: at.turned[j] for j, joint in joints.items() if joint.quaternion and not joint.moves_freely}
        self.bodies = {j: (at.rotation[j], at.position[j]) for j, joint in joints.items() if joint.moves_freely}

    def slope(self, at: Pose, links: Sequence[tuple[Array, Array]]) -> Array:
        """By all rates; a rotation vector stays as it is under its own left Jacobian."""
        tree = self.tree
        result = np.zeros(tree.n)
        result[self.rates] = self.weights * (np.asarray(at.q)[self.positions] - self.values)
        for j, R_ref in self.balls.items():
            phi = vector_from_rotation(at.turned[j] @ R_ref.T)
            result[tree.links[j].v] += tree.length**2 * at.turned[j].T @ phi
        for j in self.bodies:
            d, phi = self._apart(at, j)
            R, (J_v, J_w) = at.rotation[j], links[j]
            result += (R @ J_v).T @ d + tree.length**2 * (R @ J_w).T @ phi
        return result

    def _apart(self, at: Pose, j: int) -> tuple[Array, Array]:
        R_ref, p_ref = self.bodies[j]
        return at.position[j] - p_ref, vector_from_rotation(at.rotation[j] @ R_ref.T)

    def product(self, at: Pose, links: Sequence[tuple[Array, Array]], a: Array, b: Array) -> float:
        """The curvature along two motions, but for what accelerations add."""
        tree, square = self.tree, self.tree.length**2
        total = float(self.weights @ (a[self.rates] * b[self.rates]))
        for j, R_ref in self.balls.items():
            R, own = at.turned[j], tree.links[j].v
            total += square * (R @ a[own]) @ _turning(vector_from_rotation(R @ R_ref.T)) @ (R @ b[own])
        for j in self.bodies:
            (J_v, J_w), R = links[j], at.rotation[j]
            _, phi = self._apart(at, j)
            total += (J_v @ a) @ (J_v @ b) + square * (R @ (J_w @ a)) @ _turning(phi) @ (R @ (J_w @ b))
        return float(total)

    def drift(self, at: Pose, moving: Motion) -> float:
        """The slope along the accelerations that a motion itself causes: of free bodies; joints cause none."""
        total = 0.0
        for j in self.bodies:
            d, phi = self._apart(at, j)
            R = at.rotation[j]
            total += d @ (R @ moving.a[j]) + self.tree.length**2 * phi @ (R @ moving.al[j])
        return float(total)


def _turning(phi: Array) -> Array:
    """The symmetric part of the inverse left Jacobian of rotations."""
    angle, H = float(np.linalg.norm(phi)), hat(phi)
    share = 1 / 12 + angle**2 / 720 if angle < 1e-3 else (1 - angle / 2 / np.tan(angle / 2)) / angle**2
    return np.eye(3) + share * H @ H


class Nearest:
    """The problem at one pose: closures and given rows, and what is minimised over the motions that they allow."""

    def __init__(self, closures: Closures, free: Array, frames: Sequence[PoseRows], wish: Wish, q: Array) -> None:
        tree = closures.tree
        self.tree, self.closures, self.frames, self.wish = tree, closures, list(frames), wish
        self.at = pose(tree, q)
        self.links = jacobians(tree, self.at)
        self.free, self.units = free, tree.rate_units[free]
        rows = [closures.jacobian(self.at, self.links), *(f.jacobian(tree, self.at, self.links) for f in frames)]
        self.metres = np.concatenate([closures.row_units(), *(frame.scale(tree.length) for frame in frames)])
        J = np.concatenate(rows)[:, free] * self.units * self.metres[:, None]
        self.J = J
        self.U, self.s, Vt = np.linalg.svd(J, full_matrices=True)
        self.rank = int(np.sum(self.s > RANK * max(self.s.max(initial=0.0), tree.length)))
        self.Vt = Vt
        self.basis = [self._whole(v) for v in Vt[self.rank :]]
        slope = Vt @ (wish.slope(self.at, self.links)[free] * self.units)
        self.slope = slope[self.rank :]
        self.multipliers = -self.metres * (self.U[:, : self.rank] @ (slope[: self.rank] / self.s[: self.rank]))

    def _whole(self, scaled: Array) -> Array:
        result = np.zeros(self.tree.n)
        result[self.free] = scaled * self.units
        return result

    def particular(self, rows: Array) -> Array:
        """The smallest motion with these rates of the rows."""
        right = (self.U[:, : self.rank].T @ (rows * self.metres)) / self.s[: self.rank]
        return self._whole(self.Vt[: self.rank].T @ right)

    def residual(self) -> Array:
        """How far the rows are from zero, in their own units."""
        parts = [self.closures.residual(self.at), *(frame.residual(self.at, self.tree.length) for frame in self.frames)]
        return np.concatenate(parts) / self.metres

    def curvature(self, along: Array) -> tuple[Array, Array]:
        """Second derivatives of the reduced problem: among the motions that are left, and of them along another one."""
        drift, basis = _polar(self._drift), self.basis
        own = [[drift(a, b) + self._product(a, b) for b in basis] for a in basis]
        return np.array(own), np.array([drift(a, along) + self._product(a, along) for a in basis])

    def _product(self, a: Array, b: Array) -> float:
        return self.wish.product(self.at, self.links, a, b)

    def _drift(self, v: Array) -> float:
        """What the accelerations add that a motion causes: of the distance, and of rows that keep it from falling."""
        moving = motion(self.tree, self.at, v, np.zeros(self.tree.n))
        parts = [self.closures.bias(self.at, moving), *(frame.pushed(self.at, moving) for frame in self.frames)]
        return float(self.wish.drift(self.at, moving) + self.multipliers @ np.concatenate(parts))

    def step(self) -> Array:
        """Newton's: closes the rows, and goes down to where the slope is zero."""
        closing = self.particular(-self.residual())
        if not self.basis:
            return closing
        own, cross = self.curvature(closing)
        if np.linalg.eigvalsh(own)[0] <= 0:  # not near a minimum yet: the part that is never negative
            own = np.array([[self._product(a, b) for b in self.basis] for a in self.basis])
        return closing + np.array(self.basis).T @ np.linalg.lstsq(own, -(self.slope + cross), rcond=1e-10)[0]

    def rates(self, rows: Array) -> Array:
        """The derivative of the nearest pose along a path with these rates of the rows, theory (41)."""
        given = self._exactly(rows)
        if not self.basis:
            return given
        own, cross = self.curvature(given)
        return given + np.array(self.basis).T @ np.linalg.solve(own, -cross)

    def accelerations(self, rows: Array, qd: Array) -> Array:
        """All accelerations with these of the rows, where nothing is free."""
        moving = motion(self.tree, self.at, qd, np.zeros(self.tree.n))
        parts = [self.closures.bias(self.at, moving), *(frame.pushed(self.at, moving) for frame in self.frames)]
        return self._exactly(rows - np.concatenate(parts))

    def _exactly(self, rows: Array) -> Array:
        """The smallest motion with these rates of the rows; refused where they lose rank and do not have them."""
        found = self.particular(rows)
        wanted = rows * self.metres
        missed = float(np.abs(self.J @ (found[self.free] / self.units) - wanted).max(initial=0.0))
        if missed > LOST * max(float(np.abs(wanted).max(initial=0.0)), TINY):
            count = len(rows) - self.closures.size
            raise SingularError(
                f"the path asks for {count_of(count, 'condition')} that lose rank at this pose: they cannot change so",
                key="pose",
                value=count,
                hint="keep away from this pose, or give fewer conditions",
            )
        return found


def _polar(quadratic: Callable[[Array], float]) -> Callable[[Array, Array], float]:
    """The symmetric bilinear form of a quadratic one."""
    known: dict[bytes, float] = {}

    def value(v: Array) -> float:
        key = v.tobytes()
        if key not in known:
            known[key] = quadratic(v)
        return known[key]

    return lambda a, b: (value(a + b) - value(a) - value(b)) / 2


def nearest(closures: Closures, target: Target, held: frozenset[int], wish: Wish, q: Array) -> Array | None:
    """Positions at the smallest distance from the wish, from a closed pose on; None where Newton does not end."""
    tree = closures.tree
    free = np.array([k for k in range(tree.n) if k not in held | target.fixed], dtype=int)
    for _ in range(STEPS):
        step = Nearest(closures, free, target.frames, wish, q).step()
        size = np.abs(step / tree.rate_units).max(initial=0.0)
        q = tree.moved(q, step * min(1.0, LONGEST / max(size, 1e-300)))
        if size < ENDED:
            return q
    return None
