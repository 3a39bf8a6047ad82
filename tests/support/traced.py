"""Programs of robots, and the numbers of the float path to hold them against."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

import parflex
from parflex import Configuration, Model, Robot
from parflex.codegen import laws
from parflex.formulations.base import partition_holding
from parflex.recursion.kinematics import motion
from support.catalogue import RIGID
from support.robots import any_robot
from support.states import Draws, random_states

Array = np.ndarray
Arrays = dict[str, Array]
ROBOTS = RIGID
CLOSED = [name for name in ROBOTS if name not in ("puma560", "rx90")]
LEG_FORM = ["3rrr", "gough-stewart", "space"]
SENSING = {  # programs with sensors in passive joints; those of the motors alone are tried with one robot
    "3rrr": (
        *("redundant", "extended-law", "classical-law", "extended-step", "classical-step"),
        *("geometry-redundant", "geometry-motors"),
    ),
    "5r": ("extended-law",),
    "gough-stewart": ("extended-law", "geometry-redundant"),
}
SEEDS = 6  # poses drawn over the workspace; the others lie around them
CONDITION = 1e3  # of what a program divides by: three of sixteen digits may go

JOINT_TERMS = ("friction", "motor-inertia", "springs")  # terms that programs include only on request


@cache
def robot(name: str) -> Robot:
    """A robot of the catalogue, or one that only tests know."""
    return parflex.load(name) if name in parflex.catalogue_names() else any_robot(name)


@cache
def made(name: str, model: str, parameters: str | tuple[str, ...] = "numbers", include: tuple[str, ...] = ()) -> Model:
    return parflex.model(robot(name), model, parameters=parameters, include=include)


def has_model(name: str, model: str) -> bool:
    """Open robots have no closures to solve, and few robots have sensors in passive joints."""
    if model in laws.MODELS:
        return model in SENSING.get(name, ())
    if model in ("pd-law", "task-law", "state-rates-following"):
        return False  # proven where they are used: in the tests of control and of flexible platforms
    return name in CLOSED or not model.startswith("geometry")


@dataclass(frozen=True)
class Sample:
    """A state of a robot: all positions, rates and accelerations, and the efforts that go with them."""

    configuration: Configuration
    rates: Array
    accelerations: Array
    efforts: Array

    @property
    def robot(self) -> Robot:
        return self.configuration.robot

    def platform(self, frame: str | None = None) -> Arrays:
        """Pose, twist, acceleration (world axes) of the platform, end effector or a frame; in the plane what moves."""
        tree, at = self.robot.tree, self.configuration.at
        body = next((link for link in tree.links if link.joint.kind in ("free", "planar")), None)
        place = tree.places[frame or (tree.end_effector if body is None else body.name)]
        v, w, a, al = motion(tree, at, self.rates, self.accelerations).of(place)
        (R, p), flat = at.of(place), slice(0, 2 if tree.planar else 3)
        turn = slice(2 if tree.planar else 0, 3)
        own = {} if body is None else {"turn": self.configuration.q[body.q][2 if tree.planar else 3 :]}
        return own | {
            "position": p[flat],
            "rotation": R[flat, flat],
            "velocity": (R @ v)[flat],
            "angular_velocity": (R @ w)[turn],
            "acceleration": (R @ a)[flat],
            "angular_acceleration": (R @ al)[turn],
        }


def samples(name: str, count: int = 200) -> list[Sample]:
    """States over the workspace, away from singularities; the first ones are the same whatever the number."""
    found, more = _drawn(name)
    while len(found) < count:
        found.append(next(more))
    return found[:count]


@cache
def _drawn(name: str) -> tuple[list[Sample], Iterator[Sample]]:
    return [], _draw(name)


def _draw(name: str) -> Iterator[Sample]:
    rng = np.random.default_rng(17)
    start = [Configuration(robot(name), robot(name).home)]
    if name in ROBOTS:
        start = [state.configuration for state in random_states(robot(name), SEEDS, 5, Draws())]
    while True:
        for one in start:
            configuration = _near(one, rng)
            if configuration is not None:
                yield _in_motion(configuration, rng)


def _near(start: Configuration, rng: np.random.Generator) -> Configuration | None:
    """A closed pose near another one, on the same side of all singularities."""
    of, direction = start.robot, start.null_space
    step = np.zeros(of.tree.n)
    step[of.free] = direction @ rng.standard_normal(direction.shape[1])
    step *= rng.uniform(0, 0.3) * of.tree.rate_units / np.abs(step).max()
    moved, error = of.assembler.newton(of.tree.moved(start.q, step), of.free, list(of.closures.rows))
    configuration = Configuration(of, moved)
    condition = configuration.condition
    if error > 1e-12 or max(condition.platform, condition.closures, *condition.legs.values(), 1.0) > CONDITION:
        return None
    return configuration


def _in_motion(configuration: Configuration, rng: np.random.Generator) -> Sample:
    """Rates up to 3 and accelerations up to 20 in the fastest joint; the motors say them."""
    of = configuration.robot
    given = []
    for size in (3.0, 20.0):
        rates = configuration.null_space @ rng.standard_normal(configuration.null_space.shape[1])
        full = np.zeros(of.tree.n)
        full[of.free] = rates * size / np.abs(rates).max() * of.tree.rate_units[of.free]
        given.append(dict(zip(of.motors, full[list(of.actuated)], strict=True)))
    result = parflex.inverse_dynamics(of, configuration, *given, without=JOINT_TERMS)
    return Sample(configuration, result.rates, result.accelerations, np.array(list(result.efforts.values())))


def stacked(of: list[Arrays]) -> Arrays:
    return {name: np.array([one[name] for one in of]) for name in of[0]}


def inputs(model: Model, states: list[Sample], seed: int = 0) -> Arrays:
    """The inputs of a model at the states, as a batch; guesses and last poses are a little off."""
    rng = np.random.default_rng(seed)
    return stacked([{group: _input(model, group, state, rng) for group in model.inputs} for state in states])


def _input(model: Model, group: str, state: Sample, rng: np.random.Generator) -> Array:
    of, q = state.robot, state.configuration.q
    motors = list(of.actuated)
    if group in ("guess", "last"):
        return _guess(model, state, rng)
    if group.startswith("last_"):
        near = state.platform()[group.removeprefix("last_")]
        near = near + rng.uniform(-1e-4, 1e-4, near.shape)
        return near / np.linalg.norm(near) if len(near) == 4 else near  # a unit quaternion, as the model gives it
    if group.startswith("motor_"):
        return {
            "motor_position": np.array([q[of.tree.links[of.tree.link_of_rate[k]].q.start] for k in motors]),
            "motor_rate": state.rates[motors],
            "motor_acceleration": state.accelerations[motors],
        }[group]
    if group.startswith("measured") or group.startswith("reference"):
        return sensor_data(state, model.labels[group])[group]
    if group in ("q", "effort"):
        return q if group == "q" else state.efforts
    if group == "rates":
        return state.rates
    if group in ("qd", "qdd"):
        chosen = labelled(of, model.labels[group])
        return (state.rates if group == "qd" else state.accelerations)[chosen]
    return state.platform()[group]


def sensor_data(state: Sample, names: list[str]) -> Arrays:
    """What sensors measure in the named joints, and a reference that is a little off, half of it by a whole turn."""
    chosen = labelled(state.robot, names)
    tree, count = state.robot.tree, np.arange(len(names))
    measured = state.configuration.q[[tree.links[tree.link_of_rate[k]].q.start for k in chosen]]
    turn = [tree.links[tree.link_of_rate[k]].joint.kind == "revolute" for k in chosen]
    return {
        "measured": measured,
        "measured_rate": state.rates[chosen],
        "reference": measured + 1e-3 * (1 + count) + np.where(turn, 2 * np.pi * (count % 2), 0.0),
        "reference_rate": state.rates[chosen] + 0.05 * np.cos(count),
        "reference_acceleration": state.accelerations[chosen] + 0.3 * np.sin(count),
    }


def _law(name: str, model: str, state: Sample) -> Array:
    """Efforts of a control law, D (reference and feedback) + C qd + G, by the public model of its sensors."""
    of = robot(name) if model.startswith("extended") else robot(name).sensing([])
    rates = {word: float(state.rates[of.rates.index(word)]) for word in of.motors}
    at = Configuration(of, state.configuration.q)
    found = parflex.redundant_model(of, at, rates, without=JOINT_TERMS)
    data, gains, own = sensor_data(state, found.names), made(name, model).parameters, labelled(of, found.names)
    off = data["reference"] - data["measured"]
    turning = [of.tree.links[of.tree.link_of_rate[k]].joint.kind == "revolute" for k in own]
    off = np.where(turning, (off + np.pi) % (2 * np.pi) - np.pi, off)
    command = data["reference_acceleration"] + gains["Kp"] * off
    command = command + gains["Kv"] * (data["reference_rate"] - data["measured_rate"])
    return found.D @ command + found.C @ data["measured_rate"] + found.G


def _guess(model: Model, state: Sample, rng: np.random.Generator) -> Array:
    """All positions a little off, but those that the model holds as they are given."""
    tree, q = state.robot.tree, state.configuration.q
    bodies = [k for j in tree.links if j.joint.kind in ("free", "planar") for k in range(j.v.start, j.v.stop)]
    held = bodies if model.name.endswith("_geometry") and bodies else list(state.robot.actuated)
    step = 1e-4 * rng.uniform(-1, 1, tree.n) * tree.rate_units
    step[held] = 0.0
    if model.name.endswith("_geometry"):
        step[partition_holding(state.robot, held).independent] = 0.0  # what moves while the platform stands is held too
    return tree.moved(q, step)


def independent(of: Robot) -> list[int]:
    """Numbers of the rates that a program takes as independent: those that are best at home."""
    return labelled(of, Configuration(of, of.home).independent_names)


def labelled(of: Robot, names: list[str]) -> list[int]:
    return [of.rates.index(name) for name in names]


def expected(name: str, model: str, states: list[Sample]) -> Arrays:
    """What the float path gives for the outputs of a model, as a batch."""
    return stacked([_expected(name, model, state) for state in states])


def _expected(name: str, model: str, state: Sample) -> Arrays:
    answer = _answer(name, model, state)
    if "status" in made(name, model).outputs:
        answer |= {"residual": np.zeros(1), "status": np.zeros(1)}
    return answer


def _answer(name: str, model: str, state: Sample) -> Arrays:
    of, configuration = state.robot, state.configuration
    answer: Arrays
    if model == "mass-matrix":
        M = parflex.mass_matrix(of, configuration, without=JOINT_TERMS).matrix
        T = np.linalg.inv(configuration.J[independent(of)])  # to the rates that are best at home
        return {"mass_matrix": T.T @ M @ T}
    if model == "kinematics":
        p, R = parflex.frames(of, configuration)[of.tree.end_effector]
        twist = configuration.frame_rows(of.tree.end_effector) @ state.rates
        frame = {"position": p, "rotation": R, "velocity": twist[:3], "angular_velocity": twist[3:]}
        return frame | {"rates": state.rates}
    if model == "energy":
        found = parflex.energies(of, configuration, state.rates, without=JOINT_TERMS)
        return {kind: np.array([getattr(found, kind)]) for kind in ("kinetic", "elastic", "gravity")}
    if model.startswith("state-rates"):
        chosen = labelled(of, made(name, model).labels["qd"])
        answer = {"q": configuration.q, "acceleration": state.accelerations[chosen]}
        answer["position_rates"] = of.tree.position_rates(configuration.q, state.rates)
        answer["rate_changes"] = of.tree.rate_changes(state.rates, state.accelerations)[chosen]
        return answer | ({"effort": state.efforts} if model.endswith("driven") else {})
    if model.endswith("-law"):
        return {"effort": _law(name, model, state)}
    if model.endswith("-step"):
        return {"effort": _law(name, model, state), "q": configuration.q}
    if model in ("geometry-redundant", "geometry-motors"):
        return {"q": configuration.q}
    answer = {"effort": state.efforts} if model in ("inverse", "step", "jacobian-of-inverse", "redundant") else {}
    leg_form = name in (*LEG_FORM, "six-ups")
    if model == "direct":
        efforts = dict(zip(of.motors, state.efforts.tolist(), strict=True))
        velocity = {of.rates[k]: state.rates[k] for k in of.actuated}
        result = parflex.forward_dynamics(of, configuration, velocity, efforts, without=JOINT_TERMS)
        if not leg_form:
            return {"qdd": result.accelerations[independent(of)]}
        platform = Sample(configuration, state.rates, result.accelerations, state.efforts).platform()
        return {group: platform[group] for group in ("acceleration", "angular_acceleration")}
    if model == "geometry" and leg_form:
        names = made(name, model).labels["joints"]
        return {"joints": configuration.q[[of.coordinates.index(joint) for joint in names]]}
    if model in ("geometry-direct", "step") and leg_form:
        platform = state.platform()
        return answer | {"position": platform["position"], "turn": platform["turn"]}
    if model in ("geometry", "geometry-direct", "step") and name in CLOSED:
        return answer | {"q": configuration.q}
    return answer


def closure_error(of: Robot, q: Array) -> float:
    return float(np.abs(of.closures.residual(Configuration(of, q).at)).max())


def difference(found: Arrays, wanted: Arrays, angles: bool = False) -> float:
    """Return the largest difference of any state over the largest entry of its group there, at least 0.01 (SI)."""
    worst = 0.0
    for group, value in wanted.items():
        axes = tuple(range(1, value.ndim))
        miss = found[group] - value
        if angles:
            miss = (miss + np.pi) % (2 * np.pi) - np.pi
        size = np.maximum(np.abs(value).max(axis=axes), 0.01)
        error = np.abs(miss).max(axis=axes) / size
        worst = max(worst, float(np.where(np.isfinite(error), error, np.inf).max()))
    return worst
