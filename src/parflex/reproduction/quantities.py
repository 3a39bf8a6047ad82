"""Quantities of published tables: a word of the data files selects a call of public functions.

This module knows no robot: names, poses and states come from the data files.
"""

from __future__ import annotations

import time
import timeit
from collections.abc import Callable, Mapping
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np

import parflex
from parflex.bodies.modal import load_modal
from parflex.control.study_file import StudyFile
from parflex.dynamics.dynamics import Result
from parflex.errors import InputError, did_you_mean
from parflex.robot.frames import counts
from parflex.robot.load import JOINT_TERMS
from parflex.robot.robot import Robot
from parflex.spatial.rotations import vector_from_rotation
from parflex.statics.modes import Modes, energy_shares
from parflex.statics.zero_dynamics import held_frame

Array = np.ndarray
Published = list[Any]
DOUBLE = 1e-4  # Hz, below which two frequencies are those of a double mode: symmetry gives them to 1e-9
CATALOGUE = Path(str(resources.files("parflex.robotfile"))) / "catalogue"


class Quantities:
    """Numbers by the `kind` of a group of a data file: a kind is a method, with its options as arguments.

    Robots, modes and runs that several groups need are computed once.
    """

    def __init__(self) -> None:
        self._results: dict[str, Any] = {}
        self.published: list[Any] = []

    def compute(self, kind: str, published: list[Any], options: Mapping[str, Any]) -> list[Any]:
        """Return as many numbers as are published."""
        if kind not in KINDS:
            raise InputError(f"there is no quantity '{kind}'", key="kind", value=kind, hint=did_you_mean(kind, KINDS))
        self.published = published
        values = getattr(self, kind.replace("-", "_"))(**options)
        return [value if value is None or isinstance(value, int) else float(value) for value in values]

    def stored(self, key: str, make: Callable[[], Any]) -> Any:
        """Return the result stored under a key, or compute it."""
        if key not in self._results:
            self._results[key] = make()
        return self._results[key]

    def robot(self, robot: str, **choice: Any) -> Robot:
        """Return a loaded robot."""
        return self.stored(f"robot {robot} {choice}", lambda: parflex.load(robot, **choice))

    def modes_of(self, robot: str, pose: Any = None, count: int | None = None, **choice: Any) -> Modes:
        """Return natural frequencies and modes at a pose."""
        lock = choice.pop("lock", "actuators")
        loaded = self.robot(robot, **choice)
        return self.stored(
            f"modes {robot} {choice} {pose} {count} {lock}",
            lambda: parflex.natural_frequencies(loaded, pose, modes=count, lock=lock),
        )

    def run(self, robot: str, motion: str, time: float, step: float, **options: Any) -> Any:
        """Return a simulated motion."""
        arguments = {"step": step, "out_step": max(step, 1e-3), "check_width": False, **options}
        run = self.stored(
            f"run {robot} {motion} {time} {arguments}",
            lambda: parflex.simulate(self.robot(robot), motion, time, **arguments),
        )
        if run.status == "interrupted":
            raise KeyboardInterrupt
        if run.status != "ok":
            raise InputError(f"the motion '{motion}' does not reach its end", key="motion", value=motion)
        return run

    def frequencies(self, plane: str | None = None, **choice: Any) -> list[Any]:
        """Return lowest natural frequencies, Hz; of modes in the plane alone, or of those out of it, double ones once.

        Of modes out of the plane each published one gets its nearest: nothing says which it is.
        """
        choice.setdefault("count", len(self.published))
        modes = self.modes_of(**choice)
        if plane is None:
            return list(modes.frequencies[: len(self.published)])
        kinds = np.array([shares["kind"] == plane for shares in energy_shares(modes)])
        chosen = modes.frequencies[kinds]
        single = [f for f, above in pairwise([*chosen, np.inf]) if above - f > DOUBLE]
        if plane == "in-plane":
            return single[: len(self.published)]
        return [min(single, key=lambda f: abs(f - requested)) for requested in self.published]

    def coordinates(self, robot: str, keys: list[str], **choice: Any) -> list[Any]:
        """Return counts of bodies, joints and coordinates; `locked.` in front: with motors locked."""
        numbers = counts(self.robot(robot, **choice))
        flat = {**numbers, **{f"locked.{key}": value for key, value in numbers["locked"].items()}}
        return [flat[key] for key in keys]

    def operators(self, robot: str, model: str, keys: list[str], parameters: str = "numbers") -> list[Any]:
        """Return operators of a model as a program; keys may be sums, as in `mul+div`."""
        loaded = self.robot(robot)
        made = self.stored(  # as the papers count: no friction, no motor inertia, no springs
            f"model {robot} {model} {parameters}",
            lambda: parflex.model(loaded, model, parameters=parameters, without=JOINT_TERMS),
        )
        return [sum(made.counts[word] for word in key.split("+")) for key in keys]

    def joint_values(self, robot: str, pose: Any, joints: list[str]) -> list[Any]:
        """Return values of joints at a pose of the platform."""
        loaded = self.robot(robot)
        q = parflex.configure(loaded, pose).q
        return [q[loaded.tree.position_names.index(name)] for name in joints]

    def frame_pose(self, robot: str, pose: Any, frame: str) -> list[Any]:
        """Return position and rotation vector of a frame in the world."""
        position, rotation = parflex.frames(self.robot(robot), pose)[frame]
        return [*position, *vector_from_rotation(rotation)][: len(self.published)]

    def _moving(self, robot: str, states: list[dict[str, Any]], **options: Any) -> list[Result]:
        """Return the inverse model in some states of motion."""
        loaded = self.robot(robot)
        return [
            parflex.inverse_dynamics(loaded, state["pose"], state["velocity"], state["acceleration"], **options)
            for state in states
        ]

    def round_trip(self, robot: str, states: list[dict[str, Any]]) -> list[Any]:
        """Return the largest relative error of the direct model that inverts the inverse one."""
        worst = 0.0
        for state, requested in zip(states, self._moving(robot, states), strict=True):
            here = requested.configuration
            forward = parflex.forward_dynamics(requested.robot, here, state["velocity"], requested.efforts)
            expected, computed = requested.acceleration_of(), forward.acceleration_of()
            worst = max(worst, _largest(computed - expected) / _largest(expected))
        return [worst]

    def two_forms(self, robot: str, states: list[dict[str, Any]]) -> list[Any]:
        """Return the largest relative difference of efforts by [Khalil2007, eq. (20)] and by (22)."""
        both = [self._moving(robot, states, form=form) for form in ("projected", "split")]
        pairs = [[np.array(list(result.efforts.values())) for result in pair] for pair in zip(*both, strict=True)]
        return [max(_largest(first - second) / _largest(second) for first, second in pairs)]

    def redundant_model(self, robot: str, states: list[dict[str, Any]]) -> list[Any]:
        """Return the largest relative difference of efforts with sensors in passive joints and of the inverse model."""
        loaded = self.robot(robot)
        generated = parflex.model(loaded, "redundant")
        worst = 0.0
        for result in self._moving(robot, states):
            chosen = [result.robot.tree.rate_names.index(name) for name in generated.labels["qd"]]
            state = {"q": result.configuration.q, "qd": result.rates[chosen], "qdd": result.accelerations[chosen]}
            (efforts,) = generated(**state).values()
            requested = np.array(list(result.efforts.values()))
            worst = max(worst, _largest(efforts - requested) / _largest(requested))
        return [worst]

    def model_time(self, robot: str, model: str) -> list[Any]:
        """Return seconds of one call of a compiled model from Python for its example: the best of some rounds."""
        generated = parflex.model(self.robot(robot), model, without=JOINT_TERMS)
        times = timeit.repeat(lambda: generated(**generated.sample), number=20, repeat=10, timer=time.process_time)
        return [min(times) / 20]

    def face_rows(
        self,
        robot: str,
        states: list[dict[str, Any]],
        legs: list[dict[str, Any]],
        printed: bool = False,
    ) -> list[Any]:
        """Return the error of accelerations of strokes that slide on faces by [Khalil2007, eq. (64)] or its correction.

        The corrected row: r.a qdd = r.(vd + wd x PP) + r.(w x (2 a qd - 2 v - w x PP)). Relative to its last term.
        """
        worst = 0.0
        for result in self._moving(robot, states):
            frame, names = result.robot.tree.end_effector, result.robot.tree.rate_names
            places = parflex.frames(result.robot, result.configuration)
            p, R = places[frame]
            v, w = np.split(result.configuration.frame_rows(frame) @ result.rates, 2)
            vd, wd = np.split(result.acceleration_of(frame), 2)
            for leg in legs:
                k, axis = names.index(leg["stroke"]), np.array(leg["axis"], dtype=float)
                r, PP, slide = R @ np.array(leg["normal"]), places[leg["stroke"]][0] - p, axis * result.rates[k]
                remainder = r @ axis * result.accelerations[k] - r @ (vd + np.cross(wd, PP))
                corrected = r @ np.cross(w, 2 * slide - 2 * v - np.cross(w, PP))
                claimed = r @ np.cross(w, slide - v) if printed else corrected
                worst = max(worst, abs(claimed - remainder) / abs(corrected))
        return [worst]

    def crossings(self, robot: str, centre: list[float], radius: float, working_mode: str) -> list[Any]:
        """Return how often a translation of a planar platform on a circle crosses a singularity of its closures.

        There the motors lose hold of the platform, and the determinant of its Jacobian changes sign.
        """
        loaded = self.robot(robot, working_mode=working_mode)
        signs = []
        for angle in np.linspace(0, 2 * np.pi, 91):
            pose = {"x": centre[0] + radius * np.cos(angle), "y": centre[1] + radius * np.sin(angle), "theta": 0.0}
            signs.append(np.sign(np.linalg.det(parflex.jacobian(loaded, pose)[[0, 1, 5]])))
        return [int(np.sum(np.array(signs[1:]) != np.array(signs[:-1])))]

    def joint_range(self, robot: str, motion: str, time: float, step: float, columns: list[str]) -> list[Any]:
        """Return the largest value of some columns in a simulated motion."""
        run = self.run(robot, motion, time, step)
        return [max(_largest(run[column]) for column in columns)]

    def computing_time(self, robot: str, motion: str, time: float, step: float) -> list[Any]:
        """Return seconds of the time loop."""
        return [self.run(robot, motion, time, step).seconds]

    def modal_body(self, file: str, quantity: Literal["frequencies", "mass"], first: int = 0) -> list[Any]:
        """Return natural frequencies (rad/s) of a free body of the catalogue that is given by modes, or its mass."""
        data = self.stored(f"body {file}", lambda: load_modal(CATALOGUE / file))
        if quantity == "mass":
            return [data.masses.sum()]
        return list(np.sqrt(data.modal_stiffnesses / data.modal_masses)[first : first + len(self.published)])

    def deflection(self, robot: str, pose: Any, body: str, nodes: list[str], largest: list[str]) -> list[Any]:
        """Return the static deflection of a body given by modes, its robot held at a pose, in axes of the body.

        z of some nodes, and the largest size of z at others.
        """
        loaded = self.robot(robot)
        link = loaded.tree.links[loaded.tree.number(body)]
        e = held_frame(loaded, pose).configuration.q[link.e]
        down = {name: float(link.body.nodes[name].Phi_d[2] @ e) for name in (*nodes, *largest)}
        return [*(down[name] for name in nodes), max(abs(down[name]) for name in largest)]

    def gains(self, overshoot: float, peak_time: float) -> list[Any]:
        """Return gains on errors and on their rates."""
        result = parflex.gains_from(overshoot, peak_time)
        return [result.Kp, result.Kv]

    def study(self, index: str, **table: Any) -> list[Any]:
        """Return means of an index under the second law over those under the first, at each parameter error."""
        result = self.stored(f"study {table}", lambda: parflex.run_study(StudyFile.model_validate(table)))
        if result.interrupted:
            raise KeyboardInterrupt
        law = table["laws"][1]
        return [row["ratio"][law][index] for row in result.summary()]


def _largest(values: Any) -> float:
    return float(np.abs(np.asarray(values)).max())


KINDS = {name.replace("_", "-") for name in vars(Quantities)} - {"compute", "stored", "robot", "modes-of", "run"}
