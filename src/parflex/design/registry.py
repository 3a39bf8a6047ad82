"""The registry of responses, and their values over poses and tolerances."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from parflex.design import motion_responses, rigid_responses, statics_responses, vibration_responses
from parflex.design.design_state import DesignState, ResponseCase, SensitiveDesign, combined, slope_of, value_of
from parflex.errors import InputError, UnreachableError, did_you_mean
from parflex.maps.responses import BATCH_FROM, ResponseName, SinglePoseResponses, read_responses
from parflex.maps.responses import RESPONSES as BATCH_KINDS
from parflex.maps.responses import read_response as read_pose_response
from parflex.parameters.design_numbers import number_at
from parflex.parameters.robot_file import redesigned
from parflex.records import Record
from parflex.robot.configuration import Pose
from parflex.robot.robot import Robot
from parflex.spatial.dual import Sensitive

Function = Callable[[DesignState, str], Any]

Unit = str | Callable[[Robot, str], str]

RESPONSES: dict[str, Response] = {}

Array = np.ndarray

MAX_SAMPLES = 1_000_000

NEARLY = 1e-6  # of the worst value: poses that programs of maps find so near are asked once more

TOGETHER = 1e-9  # of the worst value: other poses that come as near are active too


@dataclass(frozen=True, eq=False, repr=False)
class Response(Record):
    """A response that sensitivities know by its name.

    Attributes
    ----------
    name : str
        Its name, without a colon.
    function : Callable
        Function of a state and of the text behind the colon.
    unit : str or Callable
        Unit of the number, or function of the robot and the text that gives it.
    help : str
        One sentence on what it is.
    worst : {'smallest', 'largest'}
        Which of many poses counts.
    argument : str
        What stands behind the colon, for help.
    unreached : float | None
        Value where the pose is not reached, None where that is an error.
    together : Callable or None
        Whether a batch of poses covers an argument; None: it is computed pose by pose.
    """

    name: str
    function: Function
    unit: Unit
    help: str
    worst: Literal["smallest", "largest"] = "largest"
    argument: str = ""  # what stands behind the colon, for help
    unreached: float | None = None  # value where the pose is not reached; None: an error
    together: Callable[[str], bool] | None = None  # whether a batch covers an argument

    def unit_of(self, robot: Robot, argument: str) -> str:
        """Unit of the number for a `robot` and an `argument`, the text behind the colon."""
        if self.together is not None and self.together(argument):
            return read_pose_response(robot, f"{self.name}:{argument}" if argument else self.name).unit
        return self.unit if isinstance(self.unit, str) else self.unit(robot, argument)

    def _told(self) -> str:
        return f"{self.name}{':' * bool(self.argument)}{self.argument}: {self.help}"


def add_response(
    name: str,
    function: Function,
    unit: str,
    help: str,
    worst: Literal["smallest", "largest"] = "largest",
) -> Response:
    """Add a response to those that sensitivities and optimisation know.

    Parameters
    ----------
    name : str
        Its name, without a colon.
    function : Callable
        Function of a state and of the text behind the colon. It computes with `state.q` and `state.twin.tree`, whose
        numbers have slopes, and gives a number.
    unit, help, worst
        See `parflex.api.WORDS`.

    Returns
    -------
    Response
        The response, as `sensitivities` takes it by name.
    """
    if not isinstance(name, str) or not name or ":" in name:
        raise InputError(f"'{name}' cannot name a response", key="name", value=str(name), hint="use letters and dashes")
    if not callable(function):
        raise InputError("the response is not a function", key="function", hint="give a function of a state and a text")
    if name in BUILTIN_RESPONSE_NAMES:  # questions of others would be answered otherwise without a word
        raise InputError(f"'{name}' is a response already", key="name", value=name, hint="choose another name")
    RESPONSES[name] = Response(name, function, unit, help, worst)
    return RESPONSES[name]


def read_response(text: Any) -> tuple[Response, str]:
    """The response and the argument that a text such as 'frequency:1' names."""
    name, _, argument = text.partition(":") if isinstance(text, str) else ("", "", "")
    if name not in RESPONSES:
        raise InputError(
            f"there is no response '{text}'", key="response", value=str(text), hint=did_you_mean(name, RESPONSES)
        )
    return RESPONSES[name], argument


def _of_joint(straight: str, turning: str) -> Callable[[Robot, str], str]:
    def unit(robot: Robot, argument: str) -> str:
        tree = robot.tree
        names, argument = robot.actuated_names, argument.partition("@")[0]
        k = robot.actuated[names.index(argument) if argument in names else 0]
        return straight if tree.links[tree.link_of_rate[k]].joint.unit == "m" else turning

    return unit


def _of_area(robot: Robot, argument: str) -> str:
    ranges = [part.partition(",") for part in argument.split(";") if part.count(",") == 3]
    power = sum(not word.strip().startswith("r") and "theta" not in word for word, _, _ in ranges)
    turns = len(ranges) - power
    words = [*(["m" if power == 1 else f"m^{power}"] if power else []), *(["rad"] * bool(turns))]
    return " ".join(words) or "dimensionless"


def _without_slopes(kind: str) -> Function:
    """A response that a batch of poses knows, at one pose: one number without slopes."""

    def value(state: DesignState, argument: str) -> float:
        response = read_pose_response(state.robot, f"{kind}:{argument}")
        if state.count or response.shape:
            what = "has no slopes" if state.count else "has several numbers"
            hint = "ask for its value" if state.count else "ask 'many_responses' for it"
            raise InputError(f"'{response.name}' {what}", key="response", value=response.name, hint=hint)
        return float(SinglePoseResponses(state.robot, state.here.q, state.case, response.mode).answer(response))

    return value


_BUILTIN_RESPONSES = (
    ("frequency", vibration_responses.frequency, "Hz", "k or LOW-HIGH", "smallest",
     "Natural frequency of mode k, or the lowest in a band (Hz)."),
    ("stiffness", statics_responses.stiffness, "N/m, N m/rad", "FRAME.x",
     "smallest", "Stiffness of a frame in a direction."),
    ("compliance", statics_responses.compliance, "m/N, rad/(N m)", "FRAME.x",
     "largest", "Compliance of a frame in a direction."),
    ("deflection", statics_responses.deflection, "m, rad", "FRAME.x", "largest",
     "Deflection of a frame in a direction under gravity, springs and a wrench."),
    ("error", statics_responses.static_error, "m", "FRAME", "largest",
     "How far a frame is from its place under gravity, springs and a wrench."),
    ("stress", statics_responses.stress, "Pa", "BEAM", "largest", "Largest normal stress in a beam."),
    ("mass", rigid_responses.mass, "kg", "FRAME", "largest", "Mass of all moving bodies, or of one frame."),
    ("inertia", rigid_responses.inertia, _of_joint("kg", "kg m^2"), "JOINT", "largest",
     "Inertia that a motor feels while the others rest."),
    ("effort", motion_responses.effort, _of_joint("N", "N m"), "JOINT or JOINT@MOTION", "largest",
     "Effort of a motor at rest or in a motion; the largest on the way of a motion of the file."),
    ("speed", motion_responses.speed, _of_joint("m/s", "rad/s"), "JOINT or JOINT@MOTION", "largest",
     "Speed of a motor in a motion, or the largest on the way."),
    ("power", motion_responses.power, "W", "JOINT or JOINT@MOTION", "largest",
     "Mechanical power of a motor, or of all, in a motion, or the largest on the way."),
    ("conditioning", rigid_responses.conditioning, "dimensionless", "", "largest",
     "Condition number of the motors' rates per motion: large near singular poses."),
    ("energy", motion_responses.energy, "J", "MOTION", "largest",
     "Work of all motors in a motion of the file, driving or braking."),
    ("dynamic-error", motion_responses.dynamic_error, "m", "FRAME or FRAME@MOTION", "largest",
     "How far a frame is from its place in a motion, as inertia forces deform the robot."),
    ("singularity", rigid_responses.singularity, "dimensionless", "", "smallest",
     "Distance to singularities: 1 over the largest condition number."),
    ("transmission", rigid_responses.transmission, "rad", "JOINT", "smallest",
     "Smallest angle between links that meet in a passive joint, at most a right angle."),
    ("area", rigid_responses.area, _of_area, "x,FROM,TO,COUNT;y,...", "smallest",
     "Area that the end effector reaches within ranges and joint limits."),
    ("volume", rigid_responses.area, _of_area, "x,FROM,TO,COUNT;y,...", "smallest",
     "Volume that the end effector reaches within ranges and joint limits."),
    ("limit_margin", rigid_responses.joint_margin, "dimensionless", "JOINT", "smallest",
     "Distance of the joint nearest to its limits, as share of its range."),
    ("reachable", rigid_responses.reachable, "dimensionless", "", "smallest",
     "1 where the pose is reached within the limits of all joints, else 0."),
    ("damping", _without_slopes("damping"), "dimensionless", "k", "smallest", "Damping ratio of mode k; no slopes."),
    ("shape", _without_slopes("shape"), "m, rad", "k", "largest",
     "Twist of the end effector in mode k, at many poses: several numbers."),
    ("motion", _without_slopes("motion"), "m, rad", "k", "largest",
     "Rates of all coordinates in mode k, at many poses: several numbers."),
    ("strain", _without_slopes("strain"), "dimensionless", "k", "largest",
     "Shares of the strain energy of mode k by frame, at many poses: several numbers."),
)  # fmt: skip

BUILTIN_RESPONSE_NAMES = frozenset(own[0] for own in _BUILTIN_RESPONSES)

# arguments that a batch covers: all that its kinds of responses read, but those that they do not know
COVERED: dict[str, Callable[[str], bool]] = {kind: lambda _: True for kind in BATCH_KINDS} | {
    "frequency": lambda argument: "-" not in argument,
    "mass": lambda argument: not argument,
    "effort": lambda argument: "@" not in argument,
    "stress": bool,
}

for _name, _function, _unit, _argument, _worst, _help in _BUILTIN_RESPONSES:
    _unreached = 0.0 if _name == "reachable" else None
    RESPONSES[_name] = Response(
        _name, _function, _unit, _help, _worst, _argument, _unreached, COVERED.get(_name)  # type: ignore[arg-type]
    )  # fmt: skip


def bound_responses(robot: Robot, requested: str | Sequence[str]) -> tuple[ResponseName, ...]:
    """Return responses by name, with arguments, as a batch of poses of a robot takes them."""
    return read_responses(robot, requested, _bound)


def _bound(robot: Robot, word: object) -> ResponseName:
    name, _, argument = word.partition(":") if isinstance(word, str) else ("", "", "")
    if name not in RESPONSES:
        raise InputError(
            f"'{word}' is not a response", key="responses", value=str(word),
            hint=f"{did_you_mean(name, RESPONSES)}; write e.g. frequency:1 or stiffness:FRAME.x",
        )  # fmt: skip
    response, text = RESPONSES[name], str(word)
    if response.together is not None and response.together(argument):
        return read_pose_response(robot, text)

    def value(pose: SinglePoseResponses) -> float:
        state = DesignState(pose.robot, pose.here, (), ResponseCase(**vars(pose.held)))
        return value_of(response.function(state, argument))

    unit = response.unit_of(robot, argument)
    return ResponseName(text, text, of=argument, unit=unit, value=value, unreached=response.unreached)


@dataclass(frozen=True, eq=False, repr=False)
class Tolerances(Record):
    """Manufacturing: deviations of keys, normally distributed, and what is asked of the spread."""

    deviations: Mapping[str, float]  # standard deviations, in the units of the keys
    statistic: str = "mean"  # or a quantile from 0 to 1 as text
    samples: int = 32
    seed: int = 0


@dataclass(frozen=True, eq=False, repr=False)
class DesignAnswer(Record):
    """The answer to a question: with slopes by keys, and the pose at which it was found."""

    answer: Any
    pose: Any = None
    active: list[Any] = field(default_factory=list)  # poses at which the value is the worst one


@dataclass(frozen=True, eq=False, repr=False)
class ResponseQuestion(Record):
    """A response with its argument, the poses at which it is requested, its load case and tolerances."""

    response: Response
    argument: str = ""
    poses: tuple[Pose | None, ...] = (None,)
    case: ResponseCase = field(default_factory=ResponseCase)
    tolerances: Tolerances | None = None

    @property
    def text(self) -> str:
        """Name and argument."""
        return f"{self.response.name}:{self.argument}" if self.argument else self.response.name

    def asked(self, robot: Robot, keys: Sequence[str] = ()) -> DesignAnswer:
        """The answer of a robot, with slopes by the keys."""
        if self.tolerances is not None:
            return self._spread(robot, keys, self.tolerances)
        if len(self.poses) == 1:
            return DesignAnswer(
                self.at(robot, self.poses[0], SensitiveDesign(robot, keys)), self.poses[0], [self.poses[0]]
            )
        return self._worst(robot, keys)

    def at(self, robot: Robot, pose: Pose | None, design: SensitiveDesign) -> Any:
        """The answer at one pose."""
        try:
            state = DesignState(robot, pose, design.keys, self.case, design)
        except UnreachableError:
            if self.response.unreached is None:
                raise
            return self.response.unreached
        return self.response.function(state, self.argument)

    def _worst(self, robot: Robot, keys: Sequence[str]) -> DesignAnswer:
        """The worst over all poses; slopes are computed at those where it is reached, theory (64)."""
        design = SensitiveDesign(robot, keys, often=len(self.poses) >= BATCH_FROM)
        sign = 1.0 if self.response.worst == "smallest" else -1.0
        values = np.full(len(self.poses), sign * np.inf)
        batch_values = self._together(robot, {})
        indices, first = np.arange(len(values)), SensitiveDesign(robot, ())
        if batch_values is not None:  # of those near the worst the last digits count
            least = float(np.min(sign * batch_values))
            indices, first = np.flatnonzero(sign * batch_values[0] <= least + NEARLY * abs(least)), design
        answers: dict[int, Any] = {k: self.at(robot, self.poses[k], first) for k in indices.tolist()}
        for k, answer in answers.items():
            values[k] = value_of(answer)
        worst = float(np.min(sign * values))
        active = np.flatnonzero(sign * values <= worst + TOGETHER * abs(worst)).tolist()
        if first is not design and keys:
            answers = {k: self.at(robot, self.poses[k], design) for k in active}
        poses = [self.poses[k] for k in active]
        if not keys:
            return DesignAnswer(float(values[active[0]]), poses[0], poses)
        return DesignAnswer(combined([answers[k] for k in active], len(keys), sign > 0), poses[0], poses)

    def _together(self, robot: Robot, designs: Mapping[str, Array]) -> Array | None:
        """Values by a batch, designs x poses, which brings the compiler; None where it does not cover them."""
        from parflex.design.design_rows import fixed_poses, values_in_designs  # which stands on this module

        values = values_in_designs(robot, replace(self, tolerances=None), designs, fixed_poses(robot, tuple(designs)))
        return values if values is not None and np.isfinite(values).all() else None

    def _spread(self, robot: Robot, keys: Sequence[str], tolerances: Tolerances) -> DesignAnswer:
        """Mean or quantile over robots whose keys deviate; each robot has its own slopes, which add up exactly."""
        rng = np.random.default_rng(tolerances.seed)
        names = list(tolerances.deviations)
        nominal = {key: number_at(robot, key, "tolerances") for key in names}
        draws = rng.standard_normal((tolerances.samples, len(names)))
        plain, smallest = replace(self, tolerances=None), self.response.worst == "smallest"
        columns = {key: nominal[key] + tolerances.deviations[key] * draws[:, k] for k, key in enumerate(names)}
        table = self._together(robot, columns) if names and not keys else None
        if table is not None:
            together = table.min(axis=1) if smallest else table.max(axis=1)
            value = float(spread_weights(together, tolerances.statistic) @ together)
            return DesignAnswer(value, self.poses[0], list(self.poses))
        values, changes = np.zeros(tolerances.samples), np.zeros((tolerances.samples, len(keys)))
        for row, draw in enumerate(draws):
            settings = {key: nominal[key] + tolerances.deviations[key] * x for key, x in zip(names, draw, strict=True)}
            answer = plain.asked(redesigned(robot, settings), keys).answer
            values[row], changes[row] = value_of(answer), slope_of(answer, len(keys))
        weights = spread_weights(values, tolerances.statistic)
        value = float(weights @ values)
        return DesignAnswer(Sensitive(value, weights @ changes) if keys else value, self.poses[0], list(self.poses))


def spread_weights(values: Array, statistic: str) -> Array:
    """Weights of samples in a mean, or in a quantile between the two samples next to it."""
    count = len(values)
    if statistic == "mean":
        return np.full(count, 1 / count)
    try:
        share = float(statistic)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise InputError(
            f"'{statistic}' is not a statistic",
            key="statistic",
            value=statistic,
            hint="give 'mean' or a quantile as 0.05",
        )
    order, at = np.argsort(values), share * (count - 1)
    low = min(int(at), count - 2) if count > 1 else 0
    weights = np.zeros(count)
    weights[order[low]] = 1 - (at - low)
    if count > 1:
        weights[order[low + 1]] = at - low
    return weights


def checked_tolerances(tolerances: Tolerances) -> Tolerances:
    """Tolerances that can be drawn; what cannot is refused."""
    if not 1 <= tolerances.samples <= MAX_SAMPLES:
        raise InputError(
            f"{tolerances.samples} robots cannot be drawn",
            key="samples",
            value=tolerances.samples,
            hint=f"give 1 to {MAX_SAMPLES}",
        )
    if tolerances.seed < 0:
        raise InputError("a seed is not negative", key="seed", value=tolerances.seed, hint="give 0 or more")
    for key, deviation in tolerances.deviations.items():
        if not 0 <= deviation < np.inf:
            raise InputError(
                f"the standard deviation {deviation:g} of '{key}' is negative or not finite",
                key=f"tolerances.{key}", value=float(deviation), hint="give 0 or more, in the unit of the key",
            )  # fmt: skip
    spread_weights(np.zeros(tolerances.samples), tolerances.statistic)
    return tolerances


def read_question(
    response: str,
    poses: Sequence[Any] | None = None,
    case: ResponseCase | None = None,
    tolerances: Tolerances | None = None,
) -> ResponseQuestion:
    """A question from its text."""
    kind, argument = read_response(response)
    requested_poses = (None,) if poses is None else tuple(poses)
    if not requested_poses:
        raise InputError("no pose is given", key="poses", hint="give one or more")
    checked = None if tolerances is None else checked_tolerances(tolerances)
    return ResponseQuestion(kind, argument, requested_poses, case or ResponseCase(), checked)
