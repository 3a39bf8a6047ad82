"""Names and units of map responses, and responses at one pose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from parflex.diagnostics import with_code
from parflex.errors import InputError, did_you_mean
from parflex.forces.section_forces import beam_chains, largest_stress_of
from parflex.records import Record
from parflex.recursion.kinematics import jacobians, place_jacobian, pose
from parflex.robot.beam_nodes import at_nodes, is_between
from parflex.robot.configuration import Configuration
from parflex.robot.limits import limit_margin
from parflex.robot.robot import Robot, file_frame
from parflex.statics.equilibrium import NOT_STABLE, Equilibrium, equilibrium_of
from parflex.statics.linear_model import LinearModel, about_equilibrium, linear_model_of
from parflex.statics.load_case import LoadCase
from parflex.statics.loads import equilibrium_reason, locked_robot
from parflex.statics.modes import Modes, modes_of, strain_shares
from parflex.statics.stiffness import Deflection, Stiffness, deflection_at, deflection_of, stiffness_of

Array = np.ndarray

BATCH_FROM = 6  # rows from which programs take less time, compiled first, than rows one by one

NEARLY = 0.9  # of the largest component: what is as large decides the sign of a shape

PLANAR, SPATIAL = ("x", "y", "theta"), ("x", "y", "z", "rx", "ry", "rz")

TURNS = ("rx", "ry", "rz", "theta")

STATIC = ("deflection", "effort", "stress")  # these feel a wrench about the undeformed pose


def check_loads(case: LoadCase, responses: Sequence[ResponseName]) -> None:
    """Refuse loads that change none of the responses."""
    case.state(loads_matter=any(response.kind in STATIC for response in responses))


class SinglePoseResponses:
    """Answers at one pose; what several of them need is computed once."""

    def __init__(self, robot: Robot, q: Array, held: LoadCase, modes: int, rest: Equilibrium | None = None) -> None:
        self.robot, self.here, self.held, self.modes_requested = robot, Configuration(robot, q), held, modes
        self._stiffness: dict[str, Stiffness] = {}
        self._rest = rest  # where it is known
        self._with_nodes: dict[str, SinglePoseResponses] = {}

    def answer(self, response: ResponseName) -> Array:
        """The numbers of a response; not a number where it has none here."""
        if response.value is not None:
            return np.asarray(response.value(self), dtype=float)
        answering = self._at_node(response.of) if response.kind in OF_FRAMES else self
        return np.asarray(RESPONSES[response.kind].value(answering, response), dtype=float)

    def _at_node(self, frame: str) -> SinglePoseResponses:
        """Responses of the robot with a node at a frame."""
        frames = [frame, *self.held.forced_frames]
        robot, here = at_nodes(self.robot, self.here, frames if is_between(self.robot, frame) else ())
        if robot is self.robot:
            return self
        if frame not in self._with_nodes:
            assert isinstance(here, Configuration)
            self._with_nodes[frame] = SinglePoseResponses(robot, here.q, self.held, self.modes_requested)
        return self._with_nodes[frame]

    @property
    def _all(self) -> list[SinglePoseResponses]:
        return [self, *self._with_nodes.values()]

    @cached_property
    def rest(self) -> Equilibrium | None:
        """The equilibrium, where that is asked for."""
        held = self.held
        if self._rest is None and held.at_equilibrium:
            return equilibrium_of(self.robot, self.here, held)
        return self._rest

    @cached_property
    def model(self) -> LinearModel:
        """The linear model; about the undeformed pose no wrench changes it."""
        if self.rest is not None:
            return about_equilibrium(self.rest)
        return linear_model_of(self.robot, self.here, replace(self.held, wrench=None))

    @cached_property
    def modes(self) -> Modes:
        """The lowest modes."""
        return modes_of(self.model, self.modes_requested)

    @cached_property
    def bent(self) -> Deflection:
        """The robot under its loads."""
        return self._deflection(())

    def _deflection(self, frames: Sequence[str]) -> Deflection:
        held = self.held
        if self.rest is not None:
            return deflection_at(self.rest, frames)
        return deflection_of(self.robot, self.here, held, frames)

    @property
    def said(self) -> str:
        """That the equilibrium which was answered about is not the usual one, and why; else empty."""
        tables = [one.__dict__ for one in self._all]
        parts = [made[part].diagnostics for made in tables for part in ("model", "bent") if part in made]
        unstable = any(with_code(part, "unstable-equilibrium") for part in parts)
        unstable |= any("modes" in made and bool(made["modes"].unstable_motions) for made in tables)
        return NOT_STABLE if unstable else ""

    @property
    def is_implicitly_balanced(self) -> bool:
        """Whether springs under tension make the answers those of an equilibrium that was not asked for."""
        models = [one.__dict__["model"] for one in self._all if "model" in one.__dict__]
        return any(model.about == "equilibrium" for model in models) and not self.held.at_equilibrium

    @property
    def rests(self) -> bool:
        """The same of deflections, which need no linear model."""
        if self.held.at_equilibrium or self.held.about is not None or "bent" not in self.__dict__:
            return self.is_implicitly_balanced
        held = Configuration(locked_robot(self.robot, self.held.lock), self.here.q)
        return self.is_implicitly_balanced or bool(equilibrium_reason(held))

    def twists(self) -> Array:
        """Twists of the end effector in the modes (modes x 6)."""
        tree, q = self.robot.tree, self.modes.model.configuration.q
        at = pose(tree, q)
        place = tree.places[tree.end_effector]
        J_v, J_w = place_jacobian(tree, at, jacobians(tree, at), place)
        R = at.rotation[place.link] @ place.rotation
        return signed_twists(np.concatenate([R @ J_v, R @ J_w]).dot(self.modes.shapes).T, tree.length)

    def strain(self, mode: int) -> dict[str, float]:
        """Shares of the strain energy of a mode by name."""
        return strain_shares(self.modes.model.configuration, self.modes.shapes[:, mode - 1])

    def stiffness(self, frame: str) -> Stiffness:
        """Stiffness and compliance of a frame."""
        if frame not in self._stiffness:
            self._stiffness[frame] = stiffness_of(self.model, frame)
        return self._stiffness[frame]

    def stiffness_matrix(self, response: ResponseName) -> Array:
        """Stiffness of a frame; not a number where a direction is rigid."""
        stiffness = self.stiffness(response.of).stiffness
        return np.full((len(response.parts),) * 2, np.nan) if stiffness is None else stiffness

    def displacement(self, response: ResponseName) -> Array:
        """Displacement of a frame under the loads, or its part in a direction."""
        is_end_effector = response.of == self.robot.tree.end_effector
        displacement = (self.bent if is_end_effector else self._deflection([response.of])).frames[response.of]
        return displacement if response.direction is None else displacement[response.direction]

    def stress(self, beam: str) -> float:
        """Largest stress in a beam under the loads."""
        most = largest_stress_of({name: loads for name, loads in self.bent.beams.items() if name == beam})
        return float("nan") if most is None else float(most["value"])

    def singularity(self) -> float:
        """Inverse of the largest condition number."""
        condition = self.here.condition
        platform = condition.platform if condition.enough_motors else 1.0
        return 1.0 / max(1.0, condition.closures, platform, *condition.legs.values())


def selected_entry(matrix: Array, response: ResponseName) -> Array:
    """The whole matrix, or its entry on the diagonal in the direction that is asked for."""
    return matrix if response.direction is None else matrix[..., response.direction, response.direction]


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


@dataclass(frozen=True, eq=False, repr=False)
class ResponseName(Record):
    """What is asked: `kind`, then a mode, a frame with or without a direction, a joint or a beam; unit and size."""

    name: str
    kind: str
    mode: int = 0  # from 1
    of: str = ""  # frame, joint or beam
    direction: int | None = None  # of `parts`; None: all of them
    unit: str = ""
    parts: tuple[str, ...] = ()  # names along each axis of an answer
    value: Callable[[SinglePoseResponses], Any] | None = None  # at one pose; None: that of its kind
    unreached: float | None = None  # value where the pose is not reached; None: none

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the answer at one pose."""
        if self.direction is not None or not self.parts:
            return ()
        return (len(self.parts),) * (2 if self.kind in ("stiffness", "compliance") else 1)

    @property
    def columns(self) -> list[str]:
        """Names of the numbers of an answer, as columns of a table."""
        if not self.shape:
            return [self.name]
        if len(self.shape) == 1:
            return [f"{self.name}.{part}" for part in self.parts]
        return [f"{self.name}.{row}.{column}" for row in self.parts for column in self.parts]


def read_responses(
    robot: Robot,
    requested: str | Sequence[str],
    read: Callable[[Robot, object], ResponseName] | None = None,
) -> tuple[ResponseName, ...]:
    """What is asked in words like 'frequency:1' or 'stiffness:platform.x'; the same twice is refused."""
    texts = [requested] if isinstance(requested, str) else list(requested)
    if not texts:
        raise InputError("no response is asked for", key="responses", hint="give e.g. 'stiffness:x'")
    responses = tuple((read or read_response)(robot, text) for text in texts)
    for k, text in enumerate(texts):
        if text in texts[:k]:
            raise InputError(f"'{text}' is asked for twice", key="responses", value=str(text), hint="keep one")
    return responses


def read_response(robot: Robot, word: object) -> ResponseName:
    """One of them."""
    kind, _, of = word.partition(":") if isinstance(word, str) else ("", "", "")
    if not isinstance(word, str) or kind not in RESPONSES:
        raise InputError(
            f"'{word}' is not a response",
            key="responses",
            value=str(word),
            hint=f"{did_you_mean(kind, tuple(RESPONSES))}; write e.g. frequency:1 or stiffness:FRAME.x",
        )
    return RESPONSES[kind].read(robot, word, kind, of)


def _of_mode(robot: Robot, word: str, kind: str, of: str) -> ResponseName:
    if of and (not of.isascii() or not of.isdigit() or int(of) < 1):
        raise InputError(f"'{of}' is not a mode", key="responses", value=word, hint=f"write e.g. '{kind}:1'")
    parts: Sequence[str] = ()
    if kind == "shape":
        parts = SPATIAL
    elif kind == "motion":
        parts = robot.tree.rate_names
    elif kind == "strain":
        parts = strained_parts(robot)
    return ResponseName(word, kind, mode=int(of or 1), unit=RESPONSES[kind].units[0], parts=tuple(parts))


def _of_frame(robot: Robot, word: str, kind: str, of: str) -> ResponseName:
    tree = robot.tree
    parts = PLANAR if tree.planar and kind != "deflection" else SPATIAL
    frame, direction = of or tree.end_effector, None
    if not tree.has(frame, "responses"):
        before, _, last = of.rpartition(".")
        last = "rz" if last == "theta" and parts == SPATIAL and tree.planar else last
        if last not in parts:
            tree.place(of)  # says which frames there are
        frame, direction = before or tree.end_effector, parts.index(last)
    tree.place(frame)
    straight, turning, both = RESPONSES[kind].units
    unit = both if direction is None else turning if parts[direction] in TURNS else straight
    return ResponseName(word, kind, of=frame, direction=direction, unit=unit, parts=parts)


def _of_robot(robot: Robot, word: str, kind: str, of: str) -> ResponseName:
    if of:
        raise InputError(f"'{kind}' is of the whole robot", key="responses", value=word, hint=f"write '{kind}'")
    return ResponseName(word, kind, unit=RESPONSES[kind].units[0])


def _of_motor(robot: Robot, word: str, kind: str, of: str) -> ResponseName:
    _refuse_unknown(word, of, f"motor '{of}'", [str(name) for name in robot.actuated_names])
    sliding = robot.tree.links[robot.tree.number(of)].joint.unit == "m"
    return ResponseName(word, kind, of=of, unit=RESPONSES[kind].units[0 if sliding else 1])


def _of_beam(robot: Robot, word: str, kind: str, of: str) -> ResponseName:
    shaped = [name for name, chain in beam_chains(robot).items() if chain.parts.fibres is not None]
    _refuse_unknown(word, of, f"beam '{of}' with a known shape", shaped)
    return ResponseName(word, kind, of=of, unit=RESPONSES[kind].units[0])


def _of_joint_with_limits(robot: Robot, word: str, kind: str, of: str) -> ResponseName:
    limit_margin(robot.tree.links, robot.home, of)  # refuses joints without limits
    return ResponseName(word, kind, of=of, unit=RESPONSES[kind].units[0])


def _refuse_unknown(word: str, of: str, what: str, known: Sequence[str]) -> None:
    if of not in known:
        hint = did_you_mean(of, known) if known else "give the shape of its sections"
        raise InputError(f"there is no {what}", key="responses", value=word, hint=hint)


class ResponseKind(NamedTuple):
    """Units (of frames: of a translation, a rotation, all), the function that reads a name, and the response."""

    units: tuple[str, ...]
    read: Callable[[Robot, str, str, str], ResponseName]
    value: Callable[[SinglePoseResponses, ResponseName], Any]


RESPONSES = {
    "frequency": ResponseKind(("Hz",), _of_mode, lambda pose, name: pose.modes.frequencies[name.mode - 1]),
    "damping": ResponseKind(("dimensionless",), _of_mode, lambda pose, name: pose.modes.damping[name.mode - 1]),
    "shape": ResponseKind(("m, rad",), _of_mode, lambda pose, name: pose.twists()[name.mode - 1]),
    "motion": ResponseKind(("m, rad",), _of_mode, lambda pose, name: pose.modes.shapes[:, name.mode - 1]),
    "strain": ResponseKind(
        ("dimensionless",), _of_mode, lambda pose, name: named_values(pose.strain(name.mode), name.parts)
    ),
    "stiffness": ResponseKind(
        ("N/m", "N m/rad", "N/m, N, N m/rad"),
        _of_frame,
        lambda pose, name: selected_entry(pose.stiffness_matrix(name), name),
    ),
    "compliance": ResponseKind(
        ("m/N", "rad/(N m)", "m/N, 1/N, rad/(N m)"),
        _of_frame,
        lambda pose, name: selected_entry(pose.stiffness(name.of).compliance, name),
    ),
    "deflection": ResponseKind(("m", "rad", "m, rad"), _of_frame, SinglePoseResponses.displacement),
    "conditioning": ResponseKind(("dimensionless",), _of_robot, lambda pose, _: pose.here.condition.platform),
    "singularity": ResponseKind(("dimensionless",), _of_robot, lambda pose, _: pose.singularity()),
    "mass": ResponseKind(("kg",), _of_robot, lambda pose, _: sum(link.body.m for link in pose.robot.tree.links)),
    "effort": ResponseKind(("N", "N m"), _of_motor, lambda pose, name: pose.bent.efforts[name.of]),
    "stress": ResponseKind(("Pa",), _of_beam, lambda pose, name: pose.stress(name.of)),
    "limit_margin": ResponseKind(
        ("dimensionless",),
        _of_joint_with_limits,
        lambda pose, name: limit_margin(pose.robot.tree.links, pose.here.q, name.of),
    ),
}

OF_MODES = tuple(kind for kind, response in RESPONSES.items() if response.read is _of_mode)

OF_FRAMES = tuple(kind for kind, response in RESPONSES.items() if response.read is _of_frame)


def strained_parts(robot: Robot) -> list[str]:
    """Frames with a flexible body or a spring, and elements between two points, in the order of the file."""
    tree = robot.tree
    frames = [file_frame(robot, link.name) for link in tree.links if link.elastic_labels or link.terms.stiffness]
    frames += [file_frame(robot, tree.links[spring.numbers[0]].name) for spring in tree.springs]
    return list(dict.fromkeys([*frames, *(element.name for element in tree.elements if element.acts)]))


def named_values(values: dict[str, float], parts: Sequence[str]) -> np.ndarray:
    """Numbers by name in the order of `parts`; what is not named is zero."""
    return np.array([values.get(part, 0.0) for part in parts])
