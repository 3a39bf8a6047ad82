"""Flexible bodies at rest under their loads while the joints stay where a pose puts them.

Motions of the rigid robot that no motor keeps are held at the pose as by brakes, which are let go when the run begins:
an equilibrium of such motions may be anywhere, and upside down. Springs keep a motion too, unless a pose is given.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import scipy

from parflex.closure.mobility import RANK_TOLERANCE
from parflex.errors import SingularError
from parflex.forces.forces import Wrench
from parflex.robot.configuration import Configuration, Pose
from parflex.robot.robot import Robot
from parflex.simulation.starts.kept_rest import Relaxed, named_rates
from parflex.statics.equilibrium import equilibrium, is_stable
from parflex.statics.linear_model import tree_stiffness
from parflex.statics.linear_system import rate_units
from parflex.statics.zero_dynamics import held_frame

Array = np.ndarray
NO_STIFFNESS = 1e-10  # of the stiffest motion: what springs hold less than this they do not hold
BALANCED = 1e-7  # of the forces that act: what brakes carry beyond is more than Newton's method leaves


def relaxed(
    robot: Robot,
    here: Configuration,
    wrench: Wrench,
    pose: Pose | None,
    frame_held: bool = False,
    near: Array | None = None,
) -> Relaxed:
    """Bodies in equilibrium at the positions `here`, with motors and all motions of joints held that nothing keeps.

    With a `pose` these are all motions of joints, without one those that no springs keep in a stable equilibrium. With
    `frame_held` motors stand where the end effector is as at `here`. `near` are positions of rest with motors held
    alone, to start from where nothing else is.
    """
    motions = rigid_motions(here)
    near = None if motions.shape[1] else near
    if pose is None:
        soft = unsprung(here, motions)
        if soft.shape[1] < motions.shape[1]:
            found = _settled(robot, here, _joints_of(robot, soft, ()), wrench, frame_held)
            if found is not None:
                return found
    return _at_rest(robot, here, _joints_of(robot, motions, named_rates(robot, pose)), wrench, frame_held, near)


def _settled(
    robot: Robot, here: Configuration, rates: Sequence[int], wrench: Wrench, frame_held: bool
) -> Relaxed | None:
    """With joints on springs at rest too; None where they would not stay there, or springs do not hold them `here`."""
    try:
        found = _at_rest(robot, here, rates, wrench, frame_held, sprung=True)
    except SingularError:
        return None
    return found if found.steady else None


def _at_rest(
    robot: Robot,
    here: Configuration,
    rates: Sequence[int],
    wrench: Wrench,
    frame_held: bool,
    near: Array | None = None,
    sprung: bool = False,
) -> Relaxed:
    """The robot at rest with brakes at `rates`, which are named if they carry something.

    Where joints are `sprung`, springs must hold them at the positions `here` too: an arm that would fall over onto a
    weak spring starts upright.
    """
    braked = robot.locking(rates) if rates else robot
    begin = Configuration(braked, here.q if near is None else near)
    rest = (held_frame if frame_held else equilibrium)(braked, begin, wrench=wrench)
    at, loading = rest.configuration, rest.loading
    loose = Configuration(robot.locking(robot.actuated), at.q)
    carried = loose.reduction.forces(loading.forces(loose)) * rate_units(loose)
    acting = [loading.forces(Configuration(robot, q)) * robot.tree.rate_units for q in (here.q, at.q)]
    idle = np.abs(carried).max(initial=0.0) <= BALANCED * np.abs(acting).max(initial=0.0)
    names = () if idle else tuple(robot.tree.rate_names[k] for k in rates)
    all_held = robot.locking([*rates, *robot.actuated])
    steady = all(is_stable(Configuration(all_held, q), loading) for q in ((here.q, at.q) if sprung else (at.q,)))
    return Relaxed(at.q, names, steady)


def rigid_motions(here: Configuration) -> Array:
    """All rates, without units, per motion of joints that closures and motors at rest allow with bodies as they are."""
    robot, n = here.robot, here.robot.tree.n
    moving = sorted({*range(n)} - {*robot.deformations, *robot.actuated, *robot.locked})
    rows = here.scaled_closure_jacobian[:, moving]
    own = scipy.linalg.null_space(rows, rcond=RANK_TOLERANCE) if rows.size else np.eye(len(moving))
    motions = np.zeros((n, own.shape[1]))
    motions[moving] = own
    return motions


def unsprung(here: Configuration, motions: Array) -> Array:
    """Those of the motions that no spring of a joint, coupling or element resists."""
    units = here.robot.tree.rate_units
    scaled = units[:, None] * motions
    K = scaled.T @ tree_stiffness(here)[0] @ scaled
    values, vectors = np.linalg.eigh((K + K.T) / 2)
    return motions @ vectors[:, np.abs(values) <= NO_STIFFNESS * np.abs(values).max(initial=0.0)]


def _joints_of(robot: Robot, motions: Array, first: Collection[int]) -> list[int]:
    """One rate for each of the motions, which determine them well; of `first` as many as can be."""
    left, chosen = motions, list[int]()
    for rates in ([k for k in range(robot.tree.n) if k in first], list(range(robot.tree.n))):
        if not left.shape[1] or not rates:
            continue
        _, R, order = scipy.linalg.qr(left[rates].T, mode="economic", pivoting=True)
        sizes = np.abs(np.diag(R))
        chosen += [rates[k] for k in order[: int((sizes > RANK_TOLERANCE).sum())]]
        left = motions @ scipy.linalg.null_space(motions[chosen], rcond=RANK_TOLERANCE) if chosen else motions
    return sorted(chosen)
