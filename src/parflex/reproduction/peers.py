"""Operator counts and times of models and of other software, for the report: not checks."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Callable
from contextlib import suppress
from importlib import resources
from typing import Any

import numpy as np

import parflex
from parflex.codegen.model import Model
from parflex.robot.load import JOINT_TERMS
from parflex.robot.robot import Robot

Array = np.ndarray
Entry = tuple[str, float]  # who, value
Groups = list[tuple[str, list[Entry]]]
PeerProgram = tuple[Callable[[], Any], dict[str, Array], float]  # work, results, seconds of the calls alone
TABLE = resources.files("parflex.reproduction").joinpath("peers.toml")
STATES, ROUNDS = 512, 5
WRONG = 1e-6  # of the largest value: a peer that is off by more computes something else and is not shown


def operator_groups() -> Groups:
    """Return operators `+ - * /` of models, and published ones."""
    groups: Groups = []
    for row in tomllib.loads(TABLE.read_text("utf-8"))["operators"]:
        options = {"parameters": row.get("parameters", "numbers"), "without": JOINT_TERMS}
        counts = parflex.model(parflex.load(row["robot"]), row["model"], **options).counts
        peers = [(peer["name"], peer["total"]) for peer in row["peers"]]
        groups.append((row["title"], [("parflex", counts["total"]), *peers]))
    return groups


def speed_groups() -> Groups:
    """Return microseconds for a state: of the compiled model, and of other installed programs."""
    rows = tomllib.loads(TABLE.read_text("utf-8"))["speed"]
    return [(row["title"], _peer_speeds(parflex.load(row["robot"]), row["model"])) for row in rows]


def _peer_speeds(robot: Robot, model: str) -> list[Entry]:
    generated = parflex.model(robot, model, without=JOINT_TERMS)  # as the others do it
    states = _states(generated)
    expected = generated(**states)
    entries: list[Entry] = [("parflex, compiled, batches", _best(lambda: generated(**states)))]
    plain = generated.evaluate("numpy", **states)
    programs = {"NumPy, the same program in batches": (lambda: generated.evaluate("numpy", **states), plain, 0.0)}
    for name, make in (("CasADi's interpreter, the same program", _casadi), ("Pinocchio's RNEA", _pinocchio)):
        with suppress(ImportError):  # programs that are not installed are left out
            program = make(robot, model, generated, states)
            programs |= {} if program is None else {name: program}
    for name, (work, results, overhead) in programs.items():
        if all(_near(results[key], value) for key, value in expected.items() if key in results):
            entries.append((name, _best(work) - overhead))
    return [(who, 1e6 * seconds / STATES) for who, seconds in entries]


def _states(generated: Model) -> dict[str, Array]:
    """Return the model's own example with a little noise, as a batch: loops stay nearly closed."""
    rng, samples = np.random.default_rng(1), {name: np.asarray(generated.sample[name]) for name in generated.inputs}
    return {name: value + 1e-3 * rng.standard_normal((STATES, *value.shape)) for name, value in samples.items()}


def _best(work: Callable[[], Any]) -> float:
    """Return the shortest of some rounds, in seconds of this process."""
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        calls = 0
        while time.process_time() - start < 0.02:
            work()
            calls += 1
        times.append((time.process_time() - start) / calls)
    return min(times)


def _near(computed: Array, expected: Array) -> bool:
    return bool(np.abs(computed - expected).max() <= WRONG * np.abs(expected).max())


def _casadi(robot: Robot, model: str, generated: Model, states: dict[str, Array]) -> PeerProgram | None:
    import casadi  # noqa: F401 - left out where it is not there

    mapped = generated.casadi_function().map(STATES)
    columns = [states[name].reshape(STATES, -1).T for name in generated.inputs]
    found = mapped(*columns)
    results = [np.array(value) for value in (found if isinstance(found, (tuple, list)) else [found])]
    shaped = {
        name: value.T.reshape(STATES, *shape)
        for (name, shape), value in zip(generated.outputs.items(), results, strict=True)
    }
    return (lambda: mapped(*columns)), shaped, 0.0


def _pinocchio(robot: Robot, model: str, generated: Model, states: dict[str, Array]) -> PeerProgram | None:
    """Return its recursion for open chains of hinges, called state by state; calls on nothing are its overhead."""
    import pinocchio as pin

    hinges = all(link.joint.kind == "revolute" and link.joint.axis == 2 for link in robot.tree.links)
    if model != "inverse" or robot.closures.size or not hinges:
        return None
    chain = pin.Model()
    chain.gravity.linear = robot.tree.gravity
    for link in robot.tree.links:
        place = pin.SE3(link.rotation, link.position)
        joint = chain.addJoint(link.parent + 1, pin.JointModelRZ(), place, f"joint {link.name}")
        body = link.body.as_rigid()
        m, S, I = body.m, np.asarray(body.S), np.asarray(body.I)
        c = S / m if m else S
        inertia = pin.Inertia(m, c, I - m * (c @ c * np.eye(3) - np.outer(c, c)))
        chain.appendBodyToJoint(joint, inertia, pin.SE3.Identity())
    data, nothing, none = chain.createData(), pin.Model(), np.zeros(0)
    empty, rnea = nothing.createData(), pin.rnea
    rows = list(zip(*(states[name] for name in generated.inputs), strict=True))
    overhead = _best(lambda: [rnea(nothing, empty, none, none, none) for _ in rows])
    results = {next(iter(generated.outputs)): np.array([np.array(rnea(chain, data, *row)) for row in rows])}
    return (lambda: [rnea(chain, data, *row) for row in rows]), results, overhead
