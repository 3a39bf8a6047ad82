"""Responses of a robot at one pose, by the functions that answer for single poses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from parflex.errors import InputError
from parflex.forces.forces import Wrench
from parflex.forces.sections import largest_stress_of
from parflex.maps.responses.response_names import STATIC, ResponseName, spread
from parflex.recursion.kinematics import jacobians, place_jacobian, pose
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot
from parflex.statics.equilibrium import BEYOND, LOST_WARNING, NOT_STABLE, Equilibrium, equilibrium
from parflex.statics.linear_model import About, LinearModel, about_equilibrium, linear_model, state_about
from parflex.statics.loads import equilibrium_reason, locked_robot
from parflex.statics.modes import Modes, modes_of, strain_shares
from parflex.statics.stiffness import Deflection, Stiffness, deflection, deflection_at, stiffness_of

Array = np.ndarray
NEARLY = 0.9  # of the largest component: what is as large decides the sign of a shape


@dataclass(frozen=True)
class Held:
    """How a robot is held and loaded at all poses: locked joints, what is linearised about, wrenches."""

    lock: str | Sequence[str] = "actuators"
    about: About | None = None
    wrench: Wrench | None = None

    @property
    def balanced(self) -> bool:
        """Whether the equilibrium is asked for at every pose."""
        return state_about(self.about, self.wrench, None) == "equilibrium"

    def check(self, responses: Sequence[ResponseName]) -> None:
        """Refuse a wrench that nothing feels."""
        felt = any(one.kind in STATIC for one in responses)
        state_about(self.about, self.wrench, None, felt=felt)


class AtOnePose:
    """Answers at one pose; what several of them need is computed once."""

    def __init__(self, robot: Robot, q: Array, held: Held, modes: int, rest: Equilibrium | None = None) -> None:
        self.robot, self.here, self.held, self.modes_asked = robot, Configuration(robot, q), held, modes
        self._stiffness: dict[str, Stiffness] = {}
        self._rest = rest  # where it is known

    def answer(self, one: ResponseName) -> Array:
        """The numbers of a response; not a number where it has none here."""
        return np.asarray(getattr(self, f"_of_{one.kind}")(one), dtype=float)

    @cached_property
    def rest(self) -> Equilibrium | None:
        """The equilibrium, where that is asked for."""
        held = self.held
        if self._rest is None and held.balanced:
            return equilibrium(self.robot, self.here, held.lock, wrench=held.wrench)
        return self._rest

    @cached_property
    def model(self) -> LinearModel:
        """The linear model; about the undeformed pose no wrench changes it."""
        if self.rest is not None:
            return about_equilibrium(self.rest)
        return linear_model(self.robot, self.here, self.held.lock, self.held.about)

    @cached_property
    def modes(self) -> Modes:
        """The lowest modes."""
        return modes_of(self.model, self.modes_asked)

    @cached_property
    def bent(self) -> Deflection:
        """The robot under its loads."""
        return self._deflection(())

    def _deflection(self, frames: Sequence[str]) -> Deflection:
        held = self.held
        if self.rest is not None:
            return deflection_at(self.rest, frames)
        return deflection(self.robot, self.here, frames, held.lock, held.about, wrench=held.wrench)

    @property
    def said(self) -> str:
        """That the equilibrium which was answered about is not the usual one, and why; else empty."""
        made = self.__dict__
        words = [word for part in ("model", "bent") if part in made for word in made[part].warnings]
        if "modes" in made and made["modes"].unstable_motions:
            words.append(NOT_STABLE)
        return next((word for word in (NOT_STABLE, BEYOND, LOST_WARNING) if word in words), "")

    @property
    def balanced_itself(self) -> bool:
        """Whether springs under tension make the answers those of an equilibrium that was not asked for."""
        made = self.__dict__.get("model")
        return made is not None and made.about == "equilibrium" and not self.held.balanced

    @property
    def rests(self) -> bool:
        """The same of deflections, which need no linear model."""
        if self.held.balanced or self.held.about is not None or "bent" not in self.__dict__:
            return self.balanced_itself
        held = Configuration(locked_robot(self.robot, self.held.lock), self.here.q)
        return self.balanced_itself or bool(equilibrium_reason(held))

    def twists(self) -> Array:
        """Twists of the end effector in the modes (modes x 6)."""
        tree, q = self.robot.tree, self.modes.model.configuration.q
        at = pose(tree, q)
        place = tree.places[tree.end_effector]
        J_v, J_w = place_jacobian(tree, at, jacobians(tree, at), place)
        R = at.rotation[place.link] @ place.rotation
        return signed_twists(np.concatenate([R @ J_v, R @ J_w]).dot(self.modes.shapes).T, tree.length)

    # -- kinds of responses ----------------------------------------------------------------------------

    def _of_frequency(self, one: ResponseName) -> float:
        return float(self.modes.frequencies[one.mode - 1])

    def _of_damping(self, one: ResponseName) -> float:
        return float(self.modes.damping[one.mode - 1])

    def _of_shape(self, one: ResponseName) -> Array:
        return self.twists()[one.mode - 1]

    def _of_motion(self, one: ResponseName) -> Array:
        return self.modes.shapes[:, one.mode - 1]

    def _of_strain(self, one: ResponseName) -> Array:
        modes = self.modes
        return spread(strain_shares(modes.model.configuration, modes.shapes[:, one.mode - 1]), one.parts)

    def _stiff(self, frame: str) -> Stiffness:
        if frame not in self._stiffness:
            self._stiffness[frame] = stiffness_of(self.model, frame)
        return self._stiffness[frame]

    def _of_compliance(self, one: ResponseName) -> Array:
        return picked(self._stiff(one.of).compliance, one)

    def _of_stiffness(self, one: ResponseName) -> Array:
        found = self._stiff(one.of).stiffness
        return picked(np.full((len(one.parts),) * 2, np.nan) if found is None else found, one)

    def _of_deflection(self, one: ResponseName) -> Array:
        own = one.of == self.robot.tree.end_effector
        moved = (self.bent if own else self._deflection([one.of])).frames[one.of]
        return moved if one.direction is None else moved[one.direction]

    def _of_effort(self, one: ResponseName) -> float:
        return self.bent.efforts[one.of]

    def _of_stress(self, one: ResponseName) -> float:
        most = largest_stress_of({name: own for name, own in self.bent.beams.items() if name == one.of})
        return float("nan") if most is None else float(most["value"])

    def _of_conditioning(self, one: ResponseName) -> float:
        return self.here.condition.platform

    def _of_singularity(self, one: ResponseName) -> float:
        found = self.here.condition
        return 1.0 / max(1.0, found.closures, found.platform if found.enough_motors else 1.0, *found.legs.values())

    def _of_mass(self, one: ResponseName) -> float:
        return float(sum(link.body.m for link in self.robot.tree.links))


def picked(matrix: Array, one: ResponseName) -> Array:
    """The whole matrix, or its entry on the diagonal in the direction that is asked for."""
    return matrix if one.direction is None else matrix[..., one.direction, one.direction]


def signed_twists(twists: Array, length: float) -> Array:
    """Twists whose first component that is nearly as large as the largest is positive; turns count by the length.

    Components that are equal by symmetry differ by rounding alone, which would choose the sign.
    """
    sized = twists * np.array([1.0] * 3 + [length] * 3)
    size = np.abs(sized)
    first = (size >= NEARLY * size.max(axis=-1, keepdims=True)).argmax(axis=-1)
    return np.where(np.take_along_axis(sized, first[..., None], axis=-1) < 0, -twists, twists)


def refuse_still(robot: Robot) -> None:
    """Refuse shapes of an end effector that stands on the ground."""
    if robot.tree.places[robot.tree.end_effector].link < 0:
        raise InputError("the end effector does not move, so it has no shapes", key="shapes")
