"""Choose the independent rates of a robot: the platform, those at home, those that a caller names, or the motors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from parflex.closure import mobility
from parflex.closure.partition import Partition, choose_partition
from parflex.errors import InputError
from parflex.robot.configuration import Configuration
from parflex.robot.legs import find_legs
from parflex.robot.robot import Robot
from parflex.robot.states import contradiction, quoted
from parflex.robot.substructures import find_substructures

Array = np.ndarray


def independent_rates(robot: Robot) -> Array:
    """Return the independent rates of programs: the platform on legs, a rigid tree, those at home, or the motors."""
    legs = find_legs(robot)
    if not isinstance(legs, str):
        link = robot.tree.links[legs.platform]
        return np.array([*range(link.v.start, link.v.stop), *range(link.e_v.start, link.e_v.stop)], dtype=int)
    if not robot.closures.size and not robot.tree.elastic:
        return robot.free
    partition = home_partition(robot)
    if robot.tree.elastic and find_substructures(robot) is None and not has_motors(robot, partition):
        try:
            return motor_partition(robot).independent
        except InputError:  # dependent motors: the robot has no inverse model
            pass
    return partition.independent


def home_partition(robot: Robot) -> Partition:
    """Return the independent rates at home; for a robot cut at its beams those of its pieces."""
    substructures = find_substructures(robot) if robot.tree.elastic else None
    return Configuration(robot, robot.home).reduction.partition if substructures is None else substructures.partition


def named_partition(robot: Robot, independent: Sequence[str]) -> Partition:
    """Return the partition with the named independent rates; raise unless the closures determine the others."""
    chosen = {robot.tree.rate_names.index(name) for name in independent}
    dependent = np.array([k for k in robot.free if k not in chosen], dtype=int)
    return Partition(np.arange(len(dependent)), dependent, np.array(sorted(chosen), dtype=int))


def motor_partition(robot: Robot) -> Partition:
    """Return the partition with the motors independent, at any condition number."""
    J = mobility.scaled_jacobian(robot.closures, robot.home)
    passive = np.array([k for k in robot.free if k not in set(robot.actuated)], dtype=int)
    if mobility.rank(J[:, passive]) < robot.mobility.rank:
        raise _dependent_motors(robot)
    chosen = choose_partition(J, passive, robot.mobility.rank, robot.preference)
    dependent = set(chosen.dependent.tolist())
    independent = np.array([k for k in robot.free if int(k) not in dependent], dtype=int)
    partition = Partition(chosen.rows, chosen.dependent, independent)
    if not has_motors(robot, partition):
        raise _dependent_motors(robot)
    return partition


def has_motors(robot: Robot, partition: Partition) -> bool:
    """Return whether all motor rates are independent."""
    return set(robot.actuated) <= set(partition.independent.tolist())


def _dependent_motors(robot: Robot) -> InputError:
    any_rates = {k: 1.0 + np.sqrt(2.0 + n) for n, k in enumerate(robot.actuated)}  # which no coupling would allow
    tied = contradiction(robot.closures.constraints, robot.tree, any_rates, offsets=False)
    names = ""
    if tied is not None:
        names = f": {quoted([coupling.name for coupling in tied.couplings])} couple {quoted(tied.joints)}"
    text = "the motors of this robot cannot all move independently, so their motion does not define that of the robot"
    hint = "choose an actuation with fewer motors, or give efforts"
    return InputError(text + names, key="actuation", value=robot.actuation, hint=hint)
