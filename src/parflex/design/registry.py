"""One list of responses: named numbers of a robot at a pose, with units and help; users add their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from parflex.design import motion_responses, pose_responses, rigid_responses, statics_responses, vibration_responses
from parflex.design.design_state import DesignState
from parflex.errors import InputError, did_you_mean
from parflex.records import Record
from parflex.robot.robot import Robot

Function = Callable[[DesignState, str], Any]
Unit = str | Callable[[Robot, str], str]


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
    """

    name: str
    function: Function
    unit: Unit
    help: str
    worst: Literal["smallest", "largest"] = "largest"
    argument: str = ""  # what stands behind the colon, for help

    def unit_of(self, robot: Robot, argument: str) -> str:
        """Unit of the number for a `robot` and an `argument`, the text behind the colon."""
        return self.unit if isinstance(self.unit, str) else self.unit(robot, argument)

    def _told(self) -> str:
        return f"{self.name}{':' * bool(self.argument)}{self.argument}: {self.help}"


RESPONSES: dict[str, Response] = {}


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
    unit : str
        Unit of the number.
    help : str
        One sentence on what it is.
    worst : {'smallest', 'largest'}, default "largest"
        Which of many poses counts.

    Returns
    -------
    Response
        The response, as `sensitivities` takes it by name.

    Examples
    --------
    >>> parflex.add_response("height", lambda state, _: state.there.at.position[-1][2], "m", "Height of the last link.")
    """
    if not isinstance(name, str) or not name or ":" in name:
        raise InputError(f"'{name}' cannot name a response", key="name", value=str(name), hint="use letters and dashes")
    if not callable(function):
        raise InputError("the response is not a function", key="function", hint="give a function of a state and a text")
    if name in OWN_NAMES:  # questions of others would be answered otherwise without a word
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


def _turns(argument: str) -> bool:
    return argument.rpartition(".")[2] in ("rx", "ry", "rz", "theta")


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


_OWN = (
    ("frequency", vibration_responses.frequency, "Hz", "k or LOW-HIGH", "smallest",
     "Natural frequency of mode k, or the lowest in a band (Hz)."),
    ("stiffness", statics_responses.stiffness, lambda _, word: "N m/rad" if _turns(word) else "N/m", "FRAME.x",
     "smallest", "Stiffness of a frame in a direction."),
    ("compliance", statics_responses.compliance, lambda _, word: "rad/(N m)" if _turns(word) else "m/N", "FRAME.x",
     "largest", "Compliance of a frame in a direction."),
    ("deflection", statics_responses.deflection, lambda _, word: "rad" if _turns(word) else "m", "FRAME.x", "largest",
     "Deflection of a frame in a direction under gravity, springs and a wrench."),
    ("error", statics_responses.static_error, "m", "FRAME", "largest",
     "How far a frame is from its place under gravity, springs and a wrench."),
    ("stress", statics_responses.stress, "Pa", "BEAM", "largest", "Largest normal stress in a beam."),
    ("mass", rigid_responses.mass, "kg", "FRAME", "largest", "Mass of all moving bodies, or of one frame."),
    ("inertia", rigid_responses.inertia, _of_joint("kg", "kg m^2"), "JOINT", "largest",
     "Inertia that a motor feels while the others rest."),
    ("effort", rigid_responses.effort, _of_joint("N", "N m"), "JOINT or JOINT@MOTION", "largest",
     "Effort of a motor at rest or in a motion; the largest on the way of a motion of the file."),
    ("speed", rigid_responses.speed, _of_joint("m/s", "rad/s"), "JOINT or JOINT@MOTION", "largest",
     "Speed of a motor in a motion, or the largest on the way."),
    ("power", rigid_responses.power, "W", "JOINT or JOINT@MOTION", "largest",
     "Mechanical power of a motor, or of all, in a motion, or the largest on the way."),
    ("conditioning", rigid_responses.conditioning, "dimensionless", "", "largest",
     "Condition number of the motors' rates per motion: large near singular poses."),
    ("energy", motion_responses.energy, "J", "MOTION", "largest",
     "Work of all motors in a motion of the file, driving or braking."),
    ("dynamic-error", motion_responses.dynamic_error, "m", "FRAME or FRAME@MOTION", "largest",
     "How far a frame is from its place in a motion, as inertia forces deform the robot."),
    ("singularity", pose_responses.singularity, "dimensionless", "", "smallest",
     "Distance to singularities: 1 over the largest condition number."),
    ("transmission", pose_responses.transmission, "rad", "JOINT", "smallest",
     "Smallest angle between links that meet in a passive joint, at most a right angle."),
    ("area", pose_responses.area, _of_area, "x,FROM,TO,COUNT;y,...", "smallest",
     "Area that the end effector reaches within ranges."),
    ("limits", rigid_responses.joint_limits, "dimensionless", "JOINT", "smallest",
     "Distance of the joint nearest to its limits, as share of its range."),
)  # fmt: skip

OWN_NAMES = frozenset(own[0] for own in _OWN)
for _name, _function, _unit, _argument, _worst, _help in _OWN:
    RESPONSES[_name] = Response(_name, _function, _unit, _help, _worst, _argument)  # type: ignore[arg-type]
