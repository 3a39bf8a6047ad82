"""Responses of robots as rigid bodies: mass, inertia at the motors, efforts, speeds, power, condition, joint limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from parflex.closure import mobility
from parflex.design.answers import Cluster
from parflex.design.design_state import DesignState
from parflex.design.on_the_way.peaks import largest_on_the_way
from parflex.design.rigid_motion import RigidState
from parflex.design.statics_responses import holding_effort
from parflex.errors import InputError, did_you_mean
from parflex.forces.sections import beam_chains
from parflex.robot.configuration import SINGULAR
from parflex.robot.gearing import find_gearing
from parflex.spatial.dual import Sensitive, slopes_last
from parflex.tree.tree import GROUND

Array = np.ndarray
EQUAL = 1e-7  # of a singular value: those nearer to each other are taken as equal


def mass(state: DesignState, argument: str) -> Any:
    """Mass of all moving bodies, or of one frame; of a beam that of all its elements."""
    tree = state.robot.tree
    numbers = list(range(len(tree.links)))
    if argument:
        carrier = tree.place(argument).link
        if carrier == GROUND or tree.links[carrier].name != argument:
            on = "the ground" if carrier == GROUND else f"'{tree.links[carrier].name}', whose mass has its own in it"
            raise InputError(
                f"'{argument}' is fixed on {on}", key="response", value=f"mass:{argument}", hint="name a moving frame"
            )
        chain = beam_chains(state.robot).get(argument)
        numbers = [carrier] if chain is None else list(chain.links)
    return sum((state.twin.tree.links[k].body.m for k in numbers), 0.0)


def motor_number(state: DesignState, argument: str, name: str) -> int:
    """The motor that is meant; the only one need not be named."""
    names = state.robot.actuated_names
    if not argument and len(names) == 1:
        return 0
    if argument not in names:
        raise InputError(
            f"there is no motor '{argument}'" if argument else "no motor is named",
            key="response",
            value=f"{name}:{argument}",
            hint=did_you_mean(argument, names),
        )
    return names.index(argument)


def inertia(state: DesignState, argument: str) -> Any:
    """Inertia that a motor feels while the others rest, bodies undeformed."""
    return RigidState(state).inertia(motor_number(state, argument, "inertia"))


def effort(state: DesignState, argument: str) -> Any:
    """Effort of a motor in the motion, bodies undeformed; of a flexible robot without a motion, the holding effort.

    JOINT@MOTION is the largest size of it on the way of a motion of the file.
    """
    if "@" in argument:
        motor = argument.rpartition("@")[0]
        number = motor_number(state, motor, "effort")
        return largest_on_the_way(state, f"effort:{argument}", lambda rigid: rigid.efforts[[number]])
    number = motor_number(state, argument, "effort")
    given = state.circumstances
    if state.robot.tree.elastic and not given.velocity and not given.acceleration:
        return holding_effort(state, number)
    return RigidState(state).efforts[number]


def speed(state: DesignState, argument: str) -> Any:
    """Rate of a motor in the motion, in size; JOINT@MOTION is the largest on the way."""
    if "@" in argument:
        motor = argument.rpartition("@")[0]
        rate = state.robot.actuated[motor_number(state, motor, "speed")]
        return largest_on_the_way(state, f"speed:{argument}", lambda rigid: rigid.rates[[rate]], rubs=False)
    number = motor_number(state, argument, "speed")
    return abs(RigidState(state).rates[state.robot.actuated[number]])


def power(state: DesignState, argument: str) -> Any:
    """Mechanical power of a motor in the motion, in size; of all together where none is named.

    JOINT@MOTION, or @MOTION for all motors, is the largest on the way.
    """
    if "@" in argument:
        motor = argument.rpartition("@")[0]
        chosen = [motor_number(state, motor, "power")] if motor else slice(None)
        return largest_on_the_way(state, f"power:{argument}", lambda rigid: powers(rigid)[chosen])
    rigid = RigidState(state)
    if not argument and len(state.robot.actuated) > 1:
        return sum((abs(one) for one in powers(rigid)), 0.0)
    return abs(powers(rigid)[motor_number(state, argument, "power")])


def powers(rigid: RigidState) -> Array:
    """Powers of all motors in a motion, with their signs."""
    return rigid.efforts * rigid.rates[list(rigid.state.robot.actuated)]


def joint_limits(state: DesignState, argument: str) -> Any:
    """Distance of the joint nearest to its limits, as share of its range; negative outside."""
    found: list[Any] = []
    for plain, link in zip(state.robot.tree.links, state.twin.tree.links, strict=True):
        if link.limits is not None and (not argument or plain.name == argument):
            low, high = link.limits
            position = state.q[plain.q.start]
            found += [(position - low) / (high - low), (high - position) / (high - low)]
    if not found:
        raise InputError(
            f"the joint '{argument}' has no limits" if argument else "no joint has limits",
            key="response",
            value="limits",
            hint="give 'limits' to joints in the file",
        )
    return min(found, key=lambda x: x.value if isinstance(x, Sensitive) else x)


def conditioning(state: DesignState, argument: str) -> Any:
    """Condition number of the motors' rates per motion of the robot, bodies rigid: large near singular poses."""
    rigid = RigidState(state)
    value = rigid.here.condition.platform
    if not np.isfinite(value) or value > SINGULAR:
        raise InputError(
            "the motors do not hold the robot at this pose" if np.isfinite(value) else "it has too few motors",
            key="response",
            value="conditioning",
            hint="choose another pose or actuation",
        )
    if not state.count:
        return value
    driven, beside = list(rigid.robot.actuated), ~rigid.robot.gearing.rotors
    B = rigid.here.J / rigid.robot.gearing.units[:, None]
    A = B[driven]
    squares, vectors = scipy.linalg.eigh(A.T @ A, B[beside].T @ B[beside])
    if np.sqrt(squares[-1]) <= mobility.SMALL:
        raise InputError(
            "the condition number is measured against other poses here, so that it has no slopes",
            key="response", value="conditioning", hint="choose another pose",
        )  # fmt: skip
    ends = []
    for end in (squares[-1], squares[0]):
        own = np.flatnonzero(np.abs(np.sqrt(squares) - np.sqrt(end)) <= EQUAL * np.sqrt(end))
        moved = rigid.there.along(vectors[:, own]) / units_with_slopes(rigid)[:, None]
        form = moved[driven].T @ moved[driven] - end * (moved[beside].T @ moved[beside])
        ends.append(slopes_last(form, Sensitive, state.count) / (2 * np.sqrt(end)))
    return ratio_of(ends[0], ends[1], float(np.sqrt(squares[-1])), float(np.sqrt(squares[0])))


def units_with_slopes(rigid: RigidState) -> Array:
    """Units of all rates: the typical length of the robot, which measures sliding against turning, and gears."""
    tree, length = rigid.robot.tree, rigid.twin.tree.own_length
    slides = tree.rate_units != 1.0
    plain = np.array([length if slides[k] else 1.0 for k in range(tree.n)], dtype=object)
    return find_gearing(rigid.twin.tree, rigid.twin.closures, plain).units if rigid.robot.gearing.any else plain


def ratio_of(top: Array, low: Array, largest: float, smallest: float) -> Any:
    """The ratio of two values that may be multiple: all ratios of their changes, of which the largest is meant."""
    value, m, n = largest / smallest, len(top), len(low)
    count = top.shape[2]
    matrices = np.zeros((count, m * n, m * n))
    for k in range(count):
        matrices[k] = (np.kron(top[:, :, k], np.eye(n)) - value * np.kron(np.eye(m), low[:, :, k])) / smallest
    if m * n == 1:
        return Sensitive(value, matrices[:, 0, 0])
    return Cluster(value, (matrices + matrices.transpose(0, 2, 1)) / 2, m * n - 1)
