"""Build the state space and frequency response of a robot between efforts or forces and motions.

The state x = (q, qd) holds the independent coordinates relative to the point of linearisation: A = [[0, 1], [-M^-1 K,
-M^-1 D]], B = [[0], [M^-1 b]]. Positions and rates are read from x, accelerations from A and B.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Unpack

import numpy as np
import scipy

from parflex.checks import short_text
from parflex.diagnostics import Diagnostic, with_code
from parflex.errors import InputError, SingularError, did_you_mean
from parflex.records import Unpacked, count_of, name_list
from parflex.robot.batches import warn
from parflex.robot.configuration import Pose
from parflex.robot.robot import Robot
from parflex.statics.linear_model import LinearAnswer, LinearModel, linear_model_of
from parflex.statics.load_case import About, LoadKeywords, Lock, full_load_case
from parflex.statics.mesh_error import band_warnings, bound_at, element_warnings
from parflex.statics.modes import modes_of

Array = np.ndarray
FORCES = {"fx": 0, "fy": 1, "fz": 2, "mx": 3, "my": 4, "mz": 5}
MOTIONS = {"x": 0, "y": 1, "z": 2, "rx": 3, "ry": 4, "rz": 5, "theta": 5}
ORDERS = ("position", "velocity", "acceleration")


@dataclass(frozen=True, eq=False, repr=False)
class StateSpace(LinearAnswer, Unpacked):
    """Matrices of x_dot = A x + B u, y = C x + D u (SI), of a linear `model`; unpacks as (`A`, `B`, `C`, `D`).

    `states` names the independent coordinates (m, rad), then their rates; `inputs` are efforts and forces (N, N m),
    `outputs` motions (m, rad and derivatives). Diagnostics are also those of the lowest six modes.
    """

    _unpacked: ClassVar = ("A", "B", "C", "D")
    A: Array
    B: Array
    C: Array
    D: Array
    states: list[str]
    inputs: list[str]
    outputs: list[str]
    model: LinearModel

    def response(self, frequencies: float | Sequence[float] | Array) -> Array:
        """Compute H(2 pi i f), outputs x inputs, for `frequencies` in Hz or for one; NaN at a pole.

        A warning reports frequencies that the elements of beams do not resolve.
        """
        warn(self.doubts(frequencies))
        model, answers = self.model, []
        force = model.M @ self.B[len(model.names) :]
        for s in 2j * np.pi * _hertz(frequencies):
            try:
                q = np.linalg.solve(model.K + s * model.D + s * s * model.M, force)
                answers.append(self.C @ np.concatenate([q, s * q]) + self.D)
            except np.linalg.LinAlgError:
                answers.append(np.full(self.D.shape, np.nan + 0j))
        return np.array(answers).reshape(-1, *self.D.shape)

    def doubts(self, frequencies: float | Sequence[float] | Array) -> list[Diagnostic]:
        """Return diagnostics of elements that are too few for `frequencies` in Hz."""
        highest = float(_hertz(frequencies).max(initial=0.0))
        robot, hertz = self.model.robot, np.array([highest])
        few = element_warnings(hertz, bound_at(robot, highest), "the response")
        return [*few, *band_warnings(robot, hertz, "the response")]

    def _told(self) -> str:
        return (
            f"{count_of(len(self.states), 'state')}, inputs {name_list(self.inputs)}, outputs {name_list(self.outputs)}"
        )


def _hertz(frequencies: Any) -> Array:
    try:
        values = np.atleast_1d(np.asarray(frequencies, dtype=float))
    except (TypeError, ValueError):
        values = np.array([np.nan])
    if values.ndim != 1 or not np.isfinite(values).all() or (values < 0).any():
        text, hint = "the frequencies are not finite numbers of zero or more", "give Hz, e.g. [10.0, 20.0]"
        raise InputError(text, key="frequencies", value=short_text(frequencies), hint=hint)
    return values


def state_space(
    robot: Robot,
    inputs: Sequence[str],
    outputs: Sequence[str],
    pose: Pose | None = None,
    lock: Lock = "actuators",
    about: About | None = None,
    **load: Unpack[LoadKeywords],
) -> StateSpace:
    """Build the state space of a robot at a pose, between efforts or forces and motions.

    About the undeformed pose the answer is of first order and without preload; about the equilibrium it includes
    large displacements. The default is the equilibrium for wrenches, efforts, or springs, cables or elastic
    couplings under tension at the pose.

    Parameters
    ----------
    robot, inputs, pose, lock, about, **load
        See `parflex.api.WORDS`.
    outputs : Sequence[str]
        Coordinates or FRAME.x ... FRAME.rz; with velocity: or acceleration: in front their derivatives.

    Returns
    -------
    StateSpace
        `A`, `B`, `C`, `D` (SI) with the names of states, inputs and outputs; unpacks as (A, B, C, D).
    """
    case = full_load_case(lock, about, load, loads_matter=False)
    model = linear_model_of(robot, pose, case, forced_frames(inputs))
    system = state_space_of(model, inputs, outputs)
    return replace(system, model=replace(model, diagnostics=(*model.diagnostics, *mode_warnings(model))))


def forced_frames(inputs: Sequence[str]) -> list[str]:
    """Return the frames on which inputs act."""
    return [word.rpartition(".")[0] for word in inputs]


def state_space_of(model: LinearModel, inputs: Sequence[str], outputs: Sequence[str]) -> StateSpace:
    """Return the state space of a linear model, of which forced frames are nodes."""
    for key, words in (("input", inputs), ("output", outputs)):
        if not words:
            raise InputError(f"no {key} is named", key=key, hint=f"name one with --{key}")
    b = np.array([_row(model, word, FORCES, "input") for word in inputs]).T
    count = len(model.names)
    try:
        factor = scipy.linalg.cho_factor(model.M)
    except np.linalg.LinAlgError:
        text = "some motion has no inertia, so its rate is not a state"
        hint = "give the bodies that move a mass and an inertia"
        raise SingularError(text, key="inertia", hint=hint) from None
    flow = -scipy.linalg.cho_solve(factor, np.hstack([model.K, model.D]))
    input_rows = scipy.linalg.cho_solve(factor, b)
    A = np.block([[np.zeros((count, count)), np.eye(count)], [flow]])
    B = np.vstack([np.zeros_like(input_rows), input_rows])
    C, D, zeros, no_feedthrough = [], [], np.zeros(count), np.zeros(len(inputs))
    for word in outputs:
        order, name = _order(word)
        row = _row(model, name, MOTIONS, "output")
        C.append((np.r_[row, zeros], np.r_[zeros, row], row @ flow)[order])
        D.append((no_feedthrough, no_feedthrough, row @ input_rows)[order])
    states = [*model.names, *(f"velocity:{name}" for name in model.names)]
    return StateSpace(A, B, np.array(C), np.array(D), states, list(inputs), list(outputs), model)


def mode_warnings(model: LinearModel) -> list[Diagnostic]:
    """Return the diagnostics of `natural_frequencies` about elements and reduced beams for the default modes."""
    return with_code(modes_of(model).model.diagnostics, "few-elements", "beyond-band")


def _order(word: str) -> tuple[int, str]:
    """Return the order of derivative and the rest of an output name."""
    prefix, colon, name = word.partition(":")
    if colon and prefix not in ORDERS:
        raise InputError(f"'{prefix}' is not a derivative", key="output", value=word, hint=did_you_mean(prefix, ORDERS))
    return (ORDERS.index(prefix), name) if colon else (0, word)


def _row(model: LinearModel, word: str, components: dict[str, int], key: str) -> Array:
    """Return an output per independent rate: a coordinate, or a component of a frame in world axes."""
    tree, rates = model.robot.tree, list(model.robot.tree.rate_names)
    names = [name for k, name in enumerate(rates) if key != "input" or k not in tree.elastic]
    for name in (word, word.removeprefix("q")):
        if name in names:
            k = rates.index(name)
            if k in model.robot.locked and key == "input":
                text = f"'{word}' is locked, so an effort there moves nothing"
                raise InputError(text, key=key, value=word, hint="lock fewer joints")
            return model.J[k]
    frame, _, component = word.rpartition(".")
    frame = frame or (tree.end_effector if component in components else "")
    if component in components and tree.has(frame, key):
        if component == "theta" and not tree.planar:
            raise InputError("a spatial robot has no 'theta'", key=key, value=word, hint="use rx, ry, rz")
        return model.configuration.frame_rows(frame)[components[component]] @ model.J
    known_names = [*names, *(f"{place}.{part}" for place in tree.places for part in components)]
    what = "a joint or a force on a frame" if key == "input" else "a coordinate or a component of a frame"
    raise InputError(f"'{word}' is not {what}", key=key, value=word, hint=did_you_mean(word, known_names))
