"""Choose free coordinates of a target by the pose nearest to a reference.

Of all poses that satisfy the closures and the target, the squared distance of all coordinates from the reference is
least, rotations times the characteristic length, theory (40). Rates along a path are the exact derivative of this rule:
its optimality conditions are differentiated; second derivatives of the kinematics come from accelerations.

The same rule serves poses, paths and references. Where possible, unspecified components of a named frame (a hand with
six degrees of freedom and a specified x) or unspecified motors keep their reference values. Where that is impossible (a
hand with five degrees of freedom and a specified place), or where free motions remain, the whole pose is nearest to the
reference. A frame with a specified direction of its z axis takes the shortest rotation from the reference, or keeps its
place if it cannot do both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from parflex.closure import mobility
from parflex.closure.constraints import Closures
from parflex.closure.rows import Rows, block, stack
from parflex.closure.targets import (
    AxisRotationTarget,
    AxisTarget,
    FrameRotationRows,
    FrameTarget,
    JointTarget,
    PoseRows,
    SphericalTarget,
    Target,
    normal_pair,
    shortest_rotation,
    shortest_rotation_rate,
)
from parflex.errors import SingularError
from parflex.records import Record, count_of
from parflex.recursion.kinematics import Motion, Pose, jacobians, motion, pose
from parflex.spatial.rotations import hat
from parflex.tree.tree import Place, Tree

Array = np.ndarray
CONVERGED_STEP = 1e-9  # Newton step, as a turn: what it leaves is its square
RANK = 1e-8  # of the largest singular value, at least of the typical length: rows below repeat others
LONGEST = 0.3  # Newton step, as a turn
STEPS = 40
LOST = 1e-6  # of the rates of rows: where the rows have rank, rounding leaves far less
TINY = 1e-12  # m/s or m/s^2: slower rows rest
STILL = 1e-7  # turns per unit of the other motions: a component that moves less does not move


class ReferenceDistance:
    """Half the squared distance of all coordinates from a reference, with rotations as lengths.

    Joints with one axis are measured by their value, ball joints by their rotation, free bodies by their world
    pose. Bodies are undeformed. Distances are the residuals of `rows` that the reference meets.
    """

    def __init__(self, tree: Tree, reference: Array) -> None:
        at, self.tree, self.rows = pose(tree, reference), tree, list[PoseRows]()
        for j, link in enumerate(tree.links):
            joint = (link.name, j, link.q.start, link.v.start)
            if link.joint.one_axis:
                turns = bool(tree.rate_units[link.v.start] == 1.0)
                self.rows.append(JointTarget(*joint, float(reference[link.q.start]), turns))
            elif link.joint.moves_freely:
                body, position = Place(j, np.eye(3), np.zeros(3)), dict(enumerate(at.position[j]))
                self.rows.append(FrameTarget(link.name, body, position, at.rotation[j]))
            elif link.joint.quaternion:
                self.rows.append(SphericalTarget(*joint, at.turned[j]))

    def expansion(self, at: Pose, links: Sequence[tuple[Array, Array]]) -> tuple[Array, Array, Array]:
        """Return residuals r (m), rows J and H: the distance has the gradient J^T r and, except J_dot, the Hessian H.

        A rotation vector is invariant under its own left Jacobian.
        """
        L, n = self.tree.length, self.tree.n
        r = stack(row.residual(at, L) for row in self.rows)
        parts = [row.jacobian(self.tree, at, links) * row.scale(L)[:, None] for row in self.rows]
        J, W, end = np.concatenate([np.zeros((0, n)), *parts]), np.eye(len(r)), 0
        for part in parts:
            end += len(part)
            if len(part) >= 3:  # the last three are a turn
                W[end - 3 : end, end - 3 : end] = _turning(r[end - 3 : end] / L)
        return r, J, J.T @ W @ J

    def bias(self, at: Pose, moving: Motion) -> Array:
        """Return second derivatives of the residuals in a motion."""
        return stack(row.scale(self.tree.length) * row.bias(self.tree, at, moving) for row in self.rows)


def _turning(phi: Array) -> Array:
    """Return the symmetric part of the inverse left Jacobian of rotations."""
    angle, H = float(np.linalg.norm(phi)), hat(phi)
    share = 1 / 12 + angle**2 / 720 if angle < 1e-3 else (1 - angle / 2 / np.tan(angle / 2)) / angle**2
    return np.eye(3) + share * H @ H


class NearestPose:
    """The problem at one pose: closures and specified rows, and the objective over the allowed motions."""

    def __init__(
        self, closures: Closures, free: Array, frames: Sequence[PoseRows], wish: ReferenceDistance, q: Array
    ) -> None:
        tree = closures.tree
        self.tree, self.closures, self.frames, self.wish = tree, closures, list(frames), wish
        self.at = pose(tree, q)
        self.links = jacobians(tree, self.at)
        self.free, self.units = free, tree.rate_units[free]
        rows = [closures.jacobian(self.at, self.links), *(f.jacobian(tree, self.at, self.links) for f in frames)]
        self.metres = np.concatenate([closures.row_units(), *(frame.scale(tree.length) for frame in frames)])
        self.J = np.concatenate(rows)[:, free] * self.units * self.metres[:, None]
        self.U, self.s, self.Vt = np.linalg.svd(self.J, full_matrices=True)
        self.rank = int(np.sum(self.s > RANK * max(self.s.max(initial=0.0), tree.length)))
        self.basis = [self._whole(v) for v in self.Vt[self.rank :]]
        self.away, J, self.metric = wish.expansion(self.at, self.links)
        slope = self.Vt @ ((J.T @ self.away)[free] * self.units)
        self.slope = slope[self.rank :]
        self.multipliers = -self.metres * (self.U[:, : self.rank] @ (slope[: self.rank] / self.s[: self.rank]))

    def _whole(self, scaled: Array) -> Array:
        result = np.zeros(self.tree.n)
        result[self.free] = scaled * self.units
        return result

    def particular(self, rows: Array) -> Array:
        """Return the smallest motion with these rates of the rows."""
        rhs = (self.U[:, : self.rank].T @ (rows * self.metres)) / self.s[: self.rank]
        return self._whole(self.Vt[: self.rank].T @ rhs)

    def residual(self) -> Array:
        """Return the residuals of the rows, in their own units."""
        rows = (frame.residual(self.at, self.tree.length) for frame in self.frames)
        return stack([self.closures.residual(self.at), *rows]) / self.metres

    def curvature(self, along: Array) -> tuple[Array, Array]:
        """Return second derivatives of the reduced problem, among the free motions and along another motion."""
        drift, basis = _polar(self._drift), self.basis
        hessian = [[drift(a, b) + a @ self.metric @ b for b in basis] for a in basis]
        return np.array(hessian), np.array([drift(a, along) + a @ self.metric @ along for a in basis])

    def _drift(self, v: Array) -> float:
        """Return the contribution of the accelerations of a motion to the distance and to the multipliers."""
        moving = motion(self.tree, self.at, v, np.zeros(self.tree.n))
        return float(self.away @ self.wish.bias(self.at, moving) + self.multipliers @ self._bias(moving))

    def _bias(self, moving: Motion) -> Array:
        """Return accelerations of the rows in a motion."""
        rows = (frame.bias(self.tree, self.at, moving) for frame in self.frames)
        return stack([self.closures.bias(self.at, moving), *rows])

    def step(self) -> Array:
        """Return Newton's step, which closes the rows and reduces the gradient."""
        closing = self.particular(-self.residual())
        if not self.basis:
            return closing
        hessian, gradient_change = self.curvature(closing)
        if np.linalg.eigvalsh(hessian)[0] <= 0:  # not near a minimum yet: the part that is never negative
            hessian = np.array([[a @ self.metric @ b for b in self.basis] for a in self.basis])
        return (
            closing + np.array(self.basis).T @ np.linalg.lstsq(hessian, -(self.slope + gradient_change), rcond=1e-10)[0]
        )

    def rates(self, rows: Array) -> Array:
        """Return the derivative of the nearest pose along a path with these rates of the rows, theory (41)."""
        particular = self._exactly(rows)
        if not self.basis:
            return particular
        hessian, gradient_change = self.curvature(particular)
        return particular + np.array(self.basis).T @ np.linalg.solve(hessian, -gradient_change)

    def accelerations(self, rows: Array, qd: Array) -> Array:
        """Return all accelerations with these accelerations of the rows, if no motion is free."""
        return self._exactly(rows - self._bias(motion(self.tree, self.at, qd, np.zeros(self.tree.n))))

    def _exactly(self, rows: Array) -> Array:
        """Return the smallest motion with these rates of the rows; raise at a loss of rank without a solution."""
        solution = self.particular(rows)
        target_rates = rows * self.metres
        deviation = float(np.abs(self.J @ (solution[self.free] / self.units) - target_rates).max(initial=0.0))
        if deviation > LOST * max(float(np.abs(target_rates).max(initial=0.0)), TINY):
            count = len(rows) - self.closures.size
            text = (
                f"the path asks for {count_of(count, 'condition')} that lose rank at this pose: they cannot change so"
            )
            hint = "keep away from this pose, or give fewer conditions"
            raise SingularError(text, key="pose", value=count, hint=hint)
        return solution


def _polar(quadratic: Callable[[Array], float]) -> Callable[[Array, Array], float]:
    """Return the symmetric bilinear form of a quadratic form."""
    cache: dict[bytes, float] = {}

    def value(v: Array) -> float:
        key = v.tobytes()
        if key not in cache:
            cache[key] = quadratic(v)
        return cache[key]

    return lambda a, b: (value(a + b) - value(a) - value(b)) / 2


def nearest_pose(
    closures: Closures, target: Target, fixed_rates: frozenset[int], wish: ReferenceDistance, q: Array
) -> Array | None:
    """Return positions nearest to the reference, from a closed pose, or None without convergence."""
    tree = closures.tree
    free = np.array([k for k in range(tree.n) if k not in fixed_rates | target.fixed], dtype=int)
    for _ in range(STEPS):
        step = NearestPose(closures, free, target.frames, wish, q).step()
        size = np.abs(step / tree.rate_units).max(initial=0.0)
        q = tree.moved(q, step * min(1.0, LONGEST / max(size, 1e-300)))
        if size < CONVERGED_STEP:
            return q
    return None


@dataclass(frozen=True, eq=False, repr=False)
class FreePart(Record):
    """A robot whose target leaves motions free."""

    closures: Closures
    actuated: tuple[int, ...]
    held: frozenset[int]
    reference: Array
    poses: tuple[Array, ...] = ()  # others near it: what rests at all of them rests in general
    known: dict[tuple, tuple[int, ...]] = field(
        default_factory=dict, compare=False
    )  # what can be kept, by what is asked

    @property
    def tree(self) -> Tree:
        """Tree of the robot."""
        return self.closures.tree

    def undetermined(self, target: Target, poses: Sequence[Array]) -> int:
        """Return the number of free motions under conditions, the smallest at several poses."""
        blocks = [self._block([*self.closures.rows, *target.frames], target, q) for q in poses]
        return min(J.shape[1] - mobility.rank(J) for J in blocks)

    def contradicts(self, target: Target) -> bool:
        """Return whether a target has more conditions than the robot has degrees of freedom, in general.

        Such a target holds at single poses only, so other coordinates cannot keep their values.
        """
        key = ("contradicts", target.fixed, self.held, tuple(row.general_key for row in target.frames))
        if key not in self.known:  # two threads may both find it: they find the same
            stated = np.eye(len(self._free(Target())))[np.isin(self._free(Target()), sorted(target.fixed))]
            poses = (self.reference, *self.poses)
            rows = [np.concatenate([stated, self._block(target.frames, Target(), q)]) for q in poses]
            blocks = [J @ self._motions(Target(), q) for J, q in zip(rows, poses, strict=True)]
            self.known[key] = (_moving_rows(blocks) > max(map(mobility.rank, blocks)),)
        return bool(self.known[key][0])

    def widened(self, target: Target) -> Target:
        """Return the target with retained coordinates, or the target itself if that is impossible."""
        open_parts = self._open(target)
        if all(isinstance(row, JointTarget) for row in target.frames) and not open_parts:
            return self._with_reference_motors(target)
        key = (target.fixed, self.held, tuple(row.general_key for row in (*target.frames, *open_parts)))
        if key not in self.known:  # two threads may both find it: they find the same
            self.known[key] = self._retainable_rows(target, open_parts)
        retained = [open_parts[index] for index in self.known[key]]
        return replace(target, frames=(*target.frames, *retained)) if retained else target

    def _retainable_rows(self, target: Target, open_parts: Sequence[PoseRows]) -> tuple[int, ...]:
        """Return which open parts can be retained: all, all but rotations about specified axes, or none.

        The choice depends on ranks alone: one set of conditions has one rule, also along a path.
        """
        movable = [i for i, part in enumerate(open_parts) if np.linalg.norm(self._rows(target, [part])) > STILL]
        for chosen in (movable, [i for i in movable if not isinstance(open_parts[i], AxisRotationTarget)]):
            retained = [open_parts[i] for i in chosen]
            blocks = [self._rows(target, retained, q) for q in (self.reference, *self.poses)]
            if max(map(mobility.rank, blocks)) == _moving_rows(blocks):
                return tuple(chosen)
        return ()

    def _with_reference_motors(self, target: Target) -> Target:
        """Return the target with all other motors at the reference, if each is independent.

        Motors coupled to specified coordinates follow these.
        """
        free, motions = self._free(target), self._motions(target)
        stated = {row.rate for row in target.frames if isinstance(row, JointTarget)}
        row_of = {int(k): motions[row] for row, k in enumerate(free)}
        motors = [k for k in self.actuated if k in row_of and k not in stated and np.linalg.norm(row_of[k]) > STILL]
        if not motors or mobility.rank(np.array([row_of[k] for k in motors])) < len(motors):
            return target
        links = [self.tree.links[self.tree.link_of_rate[k]] for k in motors]
        values = {link.q.start: float(self.reference[link.q.start]) for link in links}
        return replace(target, values=target.values | values, fixed=target.fixed | set(motors))

    def pose(self, target: Target, q: Array) -> Array | None:
        """Return the nearest pose from a closed one that meets the target, or None."""
        return nearest_pose(self.closures, target, self.held, ReferenceDistance(self.tree, self.reference), q)

    def moved(self, target: Target, q: Array, rates: Array, row_accelerations: Array) -> tuple[Array, Array]:
        """Return all rates and accelerations along a path at its pose, from derivatives of the rows of the frames.

        Accelerations of a nearest pose are missing (nan), because they are the slopes of its rates.
        """
        wish = ReferenceDistance(self.tree, self.reference)
        nearest = NearestPose(self.closures, self._free(target), target.frames, wish, q)
        closed, retained = np.zeros(self.closures.size), self._kept(target, rates, row_accelerations)
        qd = nearest.rates(np.concatenate([closed, rates, retained[0]]))
        if nearest.basis:
            return qd, np.full(len(qd), np.nan)
        return qd, nearest.accelerations(np.concatenate([closed, row_accelerations, retained[1]]), qd)

    def _kept(self, target: Target, rates: Array, row_accelerations: Array) -> tuple[Array, Array]:
        """Return derivatives of retained rows: zero, except rotations about axes that the path moves."""
        first, derivatives, moved_axes = 0, [np.zeros((2, 0))], {}
        at = pose(self.tree, self.reference)
        for row in target.frames:
            if isinstance(row, AxisTarget):
                e, axis_rows = normal_pair(row.direction), slice(first, first + 2)
                d1 = rates[axis_rows] @ e
                moved_axes[row.name] = (row.direction, d1, row_accelerations[axis_rows] @ e - d1 @ d1 * row.direction)
            if first >= len(rates):
                spins = isinstance(row, AxisRotationTarget) and row.name in moved_axes
                z = row.axis(at) if isinstance(row, AxisRotationTarget) else None
                turn = shortest_rotation_rate(z, moved_axes[row.name]) if spins and z is not None else None
                derivatives.append(np.zeros((2, row.size)) if turn is None else np.array(turn)[:, None])
            first += row.size
        first_derivatives, second_derivatives = np.concatenate(derivatives, axis=1)
        return first_derivatives, second_derivatives

    def _free(self, target: Target) -> Array:
        return np.array([k for k in range(self.tree.n) if k not in self.held | target.fixed], dtype=int)

    def _open(self, target: Target) -> list[PoseRows]:
        """Return the unspecified coordinates of the named frames and platforms, at the reference."""
        tree = self.tree
        at, axes = pose(tree, self.reference), (0, 1) if tree.planar else (0, 1, 2)
        rows_by_frame: dict[str, list[FrameTarget | FrameRotationRows]] = {}
        for row in target.frames:
            if isinstance(row, FrameTarget | FrameRotationRows):
                rows_by_frame.setdefault(row.name, []).append(row)
        for j in sorted({tree.link_of_rate[k] for k in target.fixed}):
            body = Place(j, np.eye(3), np.zeros(3))
            if tree.links[j].joint.moves_freely and all(rows[0].place.link != j for rows in rows_by_frame.values()):
                rows_by_frame[f" {j}"] = [FrameTarget("", body)]
        result: list[PoseRows] = []
        for rows in rows_by_frame.values():
            place = rows[0].place
            xyz_given, rotation_given = self._fixed_by_target(place, target.fixed)
            specified = {axis for row in rows if isinstance(row, FrameTarget) for axis in row.position}
            free_axes = [axis for axis in axes if axis not in specified and not xyz_given]
            rotation_is_free = not rotation_given and not any(
                isinstance(row, FrameRotationRows) or row.rotation is not None for row in rows
            )
            R, p = at.of(place)
            if free_axes or rotation_is_free:
                position = {axis: float(p[axis]) for axis in free_axes}
                result.append(FrameTarget("", place, position, R if rotation_is_free else None))
            for row in rows:
                if isinstance(row, AxisTarget) and not rotation_given:
                    rotation = shortest_rotation(R[:, 2], row.direction) @ R
                    result.append(AxisRotationTarget(row.name, place, row.direction, rotation))
        return result

    def _fixed_by_target(self, place: Place, fixed: frozenset[int]) -> tuple[bool, bool]:
        """Return whether position and rotation of a place are specified coordinates of a free body."""
        link = self.tree.links[place.link]
        if not link.joint.moves_freely or place.inner is not None:
            return False, False
        first = link.v.start + (2 if self.tree.planar else 3)
        return link.v.start in fixed and not place.position.any(), first in fixed

    def _rows(self, target: Target, retained: Sequence[PoseRows], q: Array | None = None) -> Array:
        """Return retained rows without units, in the motions that closures and target allow."""
        return self._block(retained, target, q) @ self._motions(target, q)

    def _block(self, rows: Sequence[Rows], target: Target, q: Array | None) -> Array:
        """Return rows without units, those of frames as they are met, per free rate."""
        at = pose(self.tree, self.reference if q is None else q)
        met = [row.met(at) if isinstance(row, PoseRows) else row for row in rows]
        return block(self.tree, met, self._free(target), at, jacobians(self.tree, at))

    def _motions(self, target: Target, q: Array | None = None) -> Array:
        """Return a basis of the motions that closures and target allow, without units."""
        J = self._block([*self.closures.rows, *target.frames], target, q)
        if not len(J):
            return np.eye(J.shape[1])
        _, _, Vt = np.linalg.svd(J, full_matrices=True)
        return Vt[mobility.rank(J) :].T


def _moving_rows(blocks: Sequence[Array]) -> int:
    """Return the number of rows that move at some pose."""
    return int(np.sum(np.any([np.linalg.norm(J, axis=1) >= STILL for J in blocks], axis=0)))
