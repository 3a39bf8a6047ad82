"""Motions of more motors than freedoms: whether they fit each other, and which of the motors define the motion.

All positions are those that fit all motors best, with loops closed. Where some motor is off, the motions contradict
each other and are refused. Of motors that fit, as many as there are freedoms drive the robot: those that do it best all
the way, since a robot may have spare motors to pass where fewer are singular.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from parflex.checks import short_text
from parflex.errors import InputError
from parflex.forces.shared_efforts import home_preload, shared_efforts
from parflex.forces.spare_motors import Sharing, asked, read_sharing, spare_motors
from parflex.forces.taut_cables import taut_efforts
from parflex.records import Record
from parflex.robot.configuration import Configuration
from parflex.robot.load import acting_robot
from parflex.robot.robot import Robot
from parflex.simulation.inputs.polynomials import Polynomials

Array = np.ndarray
FIT, GROSS = 1e-5, 0.1  # rad or typical lengths: splines through knots of a motion that fits are off by less
ROUNDS, STILL = 12, 1e-12  # of three Newton steps each, until positions stay
LOOKED_AT = 200  # times at which motions are checked
LEFT_OUT = "leave it out, or give a motion"
DRIVEN = {"motors": "", "efforts": "", "platform": ", and here the platform follows it"}
MOST_SETS = 300  # of motors that are compared


@dataclass(frozen=True, eq=False, repr=False)
class SpareMotors(Record):
    """A run in which some motors drive the robot and all of them share the efforts."""

    robot: Robot  # with all its motors
    driven: Robot  # with those that drive it
    sharing: Sharing

    def efforts(self, t: Array, q: Array, tau: Array) -> Array:
        """Efforts of all motors from those of the motors that drive, row by row."""
        rows = []
        for time, positions, given in zip(t, q, tau, strict=True):
            here = Configuration(self.robot, positions)
            g = here.J[list(self.driven.actuated)].T @ given
            try:
                rows.append(shared_efforts(here.J_a.T, g, self.sharing).tau)
            except InputError as error:
                error.message = f"at t = {time:.6g} s {error.message}"
                raise
        return np.array(rows).reshape(len(t), len(self.robot.actuated))

    def told(self) -> dict[str, Any]:
        """How the efforts of the run were chosen; `preload` are the internal efforts at home."""
        preloads, names = self.sharing.preloads, self.sharing.names
        words = ["least weighted norm" if self.sharing.weights is not None else "least norm"]
        words += ["preload at home, elsewhere the nearest internal efforts"] * preloads + [
            "limits"
        ] * self.sharing.bounded
        near = self.sharing.near if preloads and self.sharing.near is not None else ()
        return {
            "spare_motors": spare_motors(self.robot),
            "chosen_by": ", ".join(words),
            "preload": {name: float(value) for name, value in zip(names, near, strict=False)},
        }

    def taut(self, q: Array, effort: Array, tensions: Array) -> Array:
        """Efforts that keep driven cables taut, row by row, from efforts at which they have these tensions."""
        found = effort.copy()
        if self.sharing.preloads:
            return found
        for row, (positions, tau, tension) in enumerate(zip(q, effort, tensions, strict=True)):
            here = Configuration(self.robot, positions)
            kept = taut_efforts(here, here.J_a.T, self.sharing, tau, tension)
            found[row] = tau if kept is None else kept
        return found


def is_spare(robot: Robot) -> bool:
    """Whether motions of all motors of a robot have to fit each other: bodies that deform make them independent."""
    return not robot.tree.elastic and spare_motors(robot) > 0


def fitted(robot: Robot, values: Array, near: Array) -> Array:
    """Closed positions at which all motors are as near to their values as can be, near others."""
    from parflex.formulations.base import ModelRequest
    from parflex.formulations.choice import choose  # which other runs do without
    from parflex.formulations.coordinates import fitted_positions

    form: Any = choose(robot, ModelRequest("step"))
    q = np.array(near, dtype=float)
    for _ in range(ROUNDS):
        before, q = q, fitted_positions(form, np.asarray(values, dtype=float), q)
        if np.abs(q - before).max() < STILL * robot.tree.length:
            break
    return q


def shared_case(case: Any, words: Mapping[str, Any]) -> Any:
    """A run with the motors that drive a robot with spare ones; what is asked of these has no effect elsewhere."""
    robot = acting_robot(case.robot, case.without)
    if case.prescribed == "motors" and is_spare(robot):
        spare = with_drivers(robot, case.motion, case.grid.rows * case.grid.out_step, **words)
        names = tuple(spare.driven.actuated_names)
        kept = [robot.actuated_names.index(name) for name in names]
        moved = replace(case.motion, motors=names, pieces=_columns(case.motion.pieces, kept), exact=None)
        loads = range(len(robot.actuated), case.given.coefficients.shape[2])
        return replace(case, robot=spare.driven, motion=moved, given=_columns(case.given, [*kept, *loads]), spare=spare)
    for key, value in words.items():
        if asked(value):
            raise InputError(
                f"'{key}' has an effect where more motors than freedoms follow a motion{DRIVEN[case.prescribed]}",
                key=key,
                value=short_text(value),
                hint="leave it out, or drive the motors" if case.prescribed == "platform" else LEFT_OUT,
            )
    return case


def _columns(pieces: Polynomials, kept: list[int]) -> Polynomials:
    return replace(pieces, coefficients=np.ascontiguousarray(pieces.coefficients[:, :, kept]))


def with_drivers(robot: Robot, motion: Any, end: float, weights: Any, preload: Any, effort_limit: Any) -> SpareMotors:
    """Which motors drive a motion, and how all share the efforts; motions that do not fit are refused."""
    pieces: Polynomials = motion.pieces
    sharing = read_sharing(robot, weights, preload, effort_limit)
    lossy = [row.name for row in robot.closures.constraints if getattr(row, "lossy", False)]
    if lossy:
        raise InputError(
            f"internal efforts change what the rigid coupling '{lossy[0]}' loses, so no motor can drive alone",
            key="efficiency",
            value=lossy[0],
            hint="leave out friction, or use a controller",
        )
    if sharing.preloads:
        sharing = replace(sharing, preloaded=(), preload=np.zeros(0), near=home_preload(robot, sharing))
    motors, q, rows = list(robot.actuated), motion.start, []
    places = [robot.tree.links[robot.tree.link_of_rate[k]].q.start for k in motors]
    units = robot.tree.rate_units
    worst: tuple[float, float, int] = (0.0, 0.0, 0)  # by how much, when, and which motor
    for t in np.linspace(0.0, end, LOOKED_AT + 1):
        wanted = pieces.at(float(t))[: len(motors)]
        q = fitted(robot, wanted, q)
        off = np.abs(q[places] - wanted) / units[motors]
        worst = max(worst, (float(off.max()), float(t), int(off.argmax())))
        if not worst[0] <= GROSS:  # farther on, the nearest pose would be any
            break
        rows.append(Configuration(robot, q).J_a / units[motors][:, None])
    if not worst[0] <= FIT:
        raise _contradiction(robot, worst[1], worst[2], worst[0] * float(units[motors[worst[2]]]))
    chosen = _best(np.array(rows))
    driven = replace(robot, actuated=tuple(motors[k] for k in chosen), known_home=robot.home)
    return SpareMotors(robot, driven, sharing)


def _best(rows: Array) -> list[int]:
    """The set of motors whose rates determine the motion best at the worst of all times."""
    count, freedoms = rows.shape[1:]
    sets = [list(chosen) for _, chosen in zip(range(MOST_SETS), combinations(range(count), freedoms), strict=False)]
    return max(sets, key=lambda chosen: float(np.linalg.svd(rows[:, chosen], compute_uv=False)[:, -1].min()))


def _contradiction(robot: Robot, t: float, motor: int, off: float) -> InputError:
    name = robot.actuated_names[motor]
    freedoms = len(robot.actuated) - spare_motors(robot)
    unit = "m" if np.any(robot.tree.links[robot.tree.link_of_rate[robot.actuated[motor]]].joint.S_v) else "rad"
    return InputError(
        f"the motions of the {len(robot.actuated)} motors do not fit the {freedoms} freedoms: at t = {t:.4g} s the "
        f"nearest pose leaves '{name}' off by {off:.4g} {unit}",
        key="motion",
        value=name,
        hint="give motions that the robot can have, e.g. along a path of its end effector",
    )
