"""State of a viewer session: pose, modes, run, deformation, reactions; no window.

A session keeps the last valid state: an invalid input leaves a sentence in `trouble` and changes nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from parflex.dynamics.dynamics import inverse_dynamics
from parflex.errors import InputError, ParflexError, UnreachableError
from parflex.recursion.kinematics import pose
from parflex.robot.configuration import Configuration
from parflex.robot.limits import limit_warnings
from parflex.robot.robot import Robot
from parflex.simulation.runs import Run
from parflex.spatial.rotations import vector_from_rotation
from parflex.statics.equilibrium import equilibrium
from parflex.statics.modes import Modes, natural_frequencies
from parflex.statics.stiffness import deflection_at
from parflex.view.colours import stress_colours
from parflex.view.run_figure import along_beams
from parflex.view.scene import arrows, reaction_arrows, scene

Array = np.ndarray

REACH, TURN = 0.3, 0.8  # of sliders: share of the robot's size, radians

MODES = 12

PLACES = np.linspace(0, 1, 49).tolist()  # along a beam, where its stress is shown


@dataclass(frozen=True)
class Slider:
    """A coordinate that a person can move: its word in a pose, range, value and unit."""

    word: str
    low: float
    high: float
    value: float
    unit: str


class Session:
    """A robot, the configuration that is shown, and what is laid over it."""

    def __init__(self, robot: Robot, at: str | Mapping[str, float] | None = None, q: Array | None = None) -> None:
        self.q = robot.assemble(at) if q is None else q  # all positions, where they are known
        self.take(robot)
        self.trouble = ""
        self.asked: Array | None = None  # a requested position that the end effector cannot reach
        self.deformation_scale = 1.0
        self.sagging = False
        self.count: int | None = None  # of modes that a robot like this one had
        self.servo: float | None = None
        self.coupling_efforts: dict[str, str] = {}  # at rest, of the last reactions

    def take(self, robot: Robot) -> None:
        """Draw a robot at these positions."""
        self.robot, self.scene = robot, scene(robot)
        self.colours = stress_colours(self.scene)
        self.base = self.scene.vertices(self.q)
        self._modes: Modes | None = None
        self._shapes: dict[int, Array] = {}

    # -- pose ------------------------------------------------------------------------------------------

    def place(self) -> dict[str, float]:
        """Return the pose of the end effector in all words of a pose (m, rad)."""
        tree = self.robot.tree
        rotation, position = pose(tree, self.q).of(tree.places[tree.end_effector])
        values = [*position, *vector_from_rotation(rotation), np.arctan2(rotation[1, 0], rotation[0, 0])]
        return dict(zip(("x", "y", "z", "rx", "ry", "rz", "theta"), map(float, values), strict=True))

    def pose_sliders(self) -> list[Slider]:
        """Return the degrees of freedom of the end effector, in words of a pose."""
        _, moving = Configuration(self.robot.locking(self.robot.deformations), self.q).platform_freedom()
        words = [word for word in "xyz" if f"v{word}" in moving]
        if self.robot.tree.planar and "wz" in moving:
            words.append("theta")
        elif {"wx", "wy", "wz"} <= set(moving):
            words += ["rx", "ry", "rz"]
        sliders, place = [], self.place()
        for word in words:
            reach, unit = (REACH * self.scene.size, "m") if word in "xyz" else (TURN, "rad")
            sliders.append(Slider(word, place[word] - reach, place[word] + reach, place[word], unit))
        return sliders

    def motor_sliders(self) -> list[Slider]:
        """The motors, with their limits where the robot file gives them."""
        sliders = []
        for k in self.robot.actuated:
            link = self.robot.tree.links[self.robot.tree.link_of_rate[k]]
            if not link.joint.one_axis:
                continue
            unit = link.joint.unit
            value, reach = float(self.q[link.q.start]), TURN if unit == "rad" else REACH * self.scene.size
            low, high = link.limits or (value - reach, value + reach)
            sliders.append(Slider(link.name, min(low, value), max(high, value), value, unit))
        return sliders

    def move(self, goal: str | Mapping[str, float]) -> bool:
        """Go to a pose; one that cannot be reached is told in `trouble`, and the robot stays where it was."""
        try:
            q = self._assembled(goal)
        except ParflexError as error:
            self.trouble = f"This pose cannot be shown: {error}"
            self.asked = None if isinstance(goal, str) else self._desired(goal)
            return False
        self.trouble, self.asked = "", None
        self._show(q)
        return True

    def _assembled(self, goal: str | Mapping[str, float]) -> Array:
        """A pose of the file is searched for; one of sliders is gone to from here, which a person does not wait for."""
        rigid = self.robot.locking(self.robot.deformations)  # counts its freedoms without those of bending
        if isinstance(goal, str):
            return rigid.assemble(goal)
        q = rigid.pose_finder.near(goal, self._rigid(self.q))
        if q is not None:
            return q
        desired = ", ".join(f"{word} = {value:.4g}" for word, value in goal.items())
        raise UnreachableError(
            f"{desired} cannot be reached from here in this working mode",
            key="pose",
            value=desired,
            hint="go back, or around it",
        )

    def _rigid(self, q: Array) -> Array:
        """The same positions with nothing deformed; loops may be open."""
        plain = q.copy()
        for link in self.robot.tree.links:
            plain[link.e] = 0.0
        return plain

    def _desired(self, goal: Mapping[str, float]) -> Array | None:
        place = {**self.place(), **goal}
        return np.array([place[word] for word in "xyz"]) if any(word in goal for word in "xyz") else None

    def _show(self, q: Array) -> None:
        self.q = q
        self._modes, self._shapes = None, {}
        self.base = self.scene.vertices(q)
        if self.sagging:
            self.sag(True)

    # -- deformation -----------------------------------------------------------------------------------

    def sag(self, on: bool, scale: float | None = None) -> None:
        """Show the robot deflected by its own weight, magnified by the deformation scale."""
        self.deformation_scale = self.deformation_scale if scale is None else scale
        self.sagging, self.trouble = on, ""
        straight = self.scene.vertices(self.q)
        self.base = straight
        if not on:
            return
        try:
            rest = equilibrium(self.robot, Configuration(self.robot, self.q))
            bent = self.scene.vertices(rest.configuration.q)
            self.base = straight + self.deformation_scale * (bent - straight)
        except ParflexError as error:
            self.sagging, self.trouble = False, f"No equilibrium can be shown: {error}"

    # -- modes -----------------------------------------------------------------------------------------

    def modes(self) -> Modes | None:
        """The lowest modes here; None with a sentence in `trouble` where there are none."""
        if self._modes is None:
            try:
                here = Configuration(self.robot, self.q)
                modes = self._as_many(here)
                left = modes.independent_coordinates - len(modes.free_motions) - len(modes.unstable_motions)
                if len(modes.frequencies) < min(MODES, left):
                    modes = natural_frequencies(self.robot, here, min(MODES, left), servo=self.servo)
                self._modes, self.count = modes, len(modes.frequencies)
            except ParflexError as error:
                self.trouble = f"No modes here: {error}"
        return self._modes

    def _as_many(self, here: Configuration) -> Modes:
        """As many modes as the robot had before, where it still has them; else some."""
        if self.count is not None:
            with suppress(ParflexError):
                return natural_frequencies(self.robot, here, self.count, servo=self.servo)
        return natural_frequencies(self.robot, here, servo=self.servo)

    def set_servo(self, stiffness: float | None) -> None:
        """Hold the motors by springs of this stiffness instead of locking them."""
        self.servo = stiffness
        self._modes, self._shapes = None, {}

    def mode_names(self) -> list[str]:
        """Number and frequency of each mode, as labels."""
        modes = self.modes()
        return [] if modes is None else [f"{k + 1}: {f:.2f} Hz" for k, f in enumerate(modes.frequencies)]

    def mode_shape(self, number: int) -> Array:
        """How the vertices move in a mode, 1 at most."""
        modes = self.modes()
        if modes is None or not 0 <= number < len(modes.frequencies):
            return np.zeros_like(self.base)
        if number not in self._shapes:
            self._shapes[number] = self.scene.shape(self.q, modes.shapes[:, number])
        return self._shapes[number]

    def in_mode(self, number: int, phase: float, amplitude: float) -> Array:
        """Vertices in a mode; the amplitude is a percentage of the robot's size."""
        return self.base + amplitude * self.scene.size * np.sin(phase) * self.mode_shape(number)

    # -- runs and reactions ----------------------------------------------------------------------------

    def in_run(self, run: Playback, time: float) -> Array:
        """Vertices at a time of a run, its deformation magnified."""
        q = run.positions(time)
        vertices = self.scene.vertices(q)
        if self.deformation_scale == 1.0 or not run.bends:
            return vertices
        straight = self.scene.vertices(run.undeformed(time))
        return straight + self.deformation_scale * (vertices - straight)

    def reactions(self) -> tuple[Array, Array, str]:
        """Arrows of the forces in joints and closures at rest under the robot's weight, and the largest of them."""
        self.coupling_efforts = {}
        empty = np.zeros((0, 3)), np.zeros((0, 3), dtype=int)
        try:
            here = Configuration(self.robot, self.q)
            if self.robot.tree.elastic:
                here = Configuration(self.robot, equilibrium(self.robot, here).configuration.q)
            result = inverse_dynamics(self.robot, here, reactions=True)
        except ParflexError as error:
            return *empty, f"No reactions here: {error}"
        assert result.reactions is not None
        places, forces = reaction_arrows(self.robot, here.q, result.reactions)
        largest = float(np.linalg.norm(forces, axis=1).max(initial=0.0))
        if largest < 1e-9:
            return *empty, "Nothing acts on this robot at rest: its file has no gravity."
        note = f"Largest reaction {largest:.4g} N."
        for name, reaction in result.reactions.get("couplings", {}).items():
            joint = next(coupling.joint for coupling in self.robot.description.coupling if coupling.name == name)
            unit = "N" if self.robot.tree.links[self.robot.tree.number(joint)].joint.unit == "m" else "N m"
            self.coupling_efforts[name] = f"{reaction['effort']:.4g} {unit}"
            note += f" Coupling '{name}': {self.coupling_efforts[name]}."
        joints = [part for kind, part in result.reactions.items() if kind not in ("beams", "largest_stress")]
        if any(reaction["undetermined"] for part in joints for reaction in part.values()):
            note += " The robot is over-constrained: arrows are those of least norm."
        return *arrows(places, forces, self.scene.size), note

    def stresses(self, run: Playback | None, time: float) -> tuple[list[Array] | None, str]:
        """Triangles of the beams by colour of their stress, in a run or at rest under gravity, and a line on that."""
        if self.colours is None:
            return None, "This robot has no beams."
        if run is not None:
            if not run.largest_stress:
                return None, "The run has no stresses: ask for the outputs 'BEAM.stress@0:1:13'."
            top = run.largest_stress
            return self.colours.levels(run.stresses(time), top), f"Yellow: {top / 1e6:.4g} MPa, the largest of the run."
        try:
            rest = deflection_at(equilibrium(self.robot, Configuration(self.robot, self.q)))
        except ParflexError as error:
            return None, f"No stresses here: {error}"
        most = rest.largest_stress
        if most is None:
            return None, "No beam has a section whose fibres are known."
        tables = {name: beam.table(PLACES) for name, beam in rest.beams.items() if beam.chain.parts.fibres is not None}
        stresses = {name: (np.array(table["s"]), np.array(table["stress"])) for name, table in tables.items()}
        line = f"Yellow: {most['value'] / 1e6:.4g} MPa, in '{most['beam']}' at {most['s']:.3g} of its length."
        return self.colours.levels(stresses, most["value"]), line

    def status(self) -> str:
        """One line on the pose that is shown."""
        here = Configuration(self.robot, self.q)
        notes = [each.text for each in (*limit_warnings(self.robot, self.q), *here.condition.diagnostics)]
        tree = self.robot.tree
        _, position = here.at.of(tree.places[tree.end_effector])
        axes = "xyz"[: 2 if tree.planar else 3]
        where = ", ".join(
            f"{word} = {round(float(value), 9):.4g} m" for word, value in zip(axes, position, strict=False)
        )
        return "; ".join([f"'{tree.end_effector}' at {where}", *notes])


def require_run(robot: Robot, path: str) -> Playback:
    """A saved run of this robot."""
    from parflex.simulation.runs import load_run

    run = load_run(path)
    missing = [name for name in robot.tree.position_names if f"q.{name}" not in run.columns]
    if missing:
        raise InputError(
            f"the run has no column 'q.{missing[0]}', so it is not one of '{robot.name}' as it is loaded here",
            file=path,
            key="run",
            value=f"q.{missing[0]}",
            hint="give the robot of the run, with the same number of elements",
        )
    return Playback(robot, run)


class Playback:
    """A run of a robot; between two rows the nearer one is shown."""

    def __init__(self, robot: Robot, run: Run) -> None:
        if not len(run.t):
            raise InputError("the run has no rows", key="run", hint="simulate for a longer time")
        self.robot = robot
        self.t = run.t
        self._q = np.column_stack([run[f"q.{name}"] for name in robot.tree.position_names])
        self._straight: dict[int, Array] = {}
        stressed = [name for name in run if ".stress@" in name]
        self._stresses = (
            {beam.name.removesuffix(".stress"): beam for beam in along_beams(run, stressed)} if stressed else {}
        )

    @property
    def duration(self) -> float:
        """Seconds from the first row to the last."""
        return float(self.t[-1] - self.t[0])

    @cached_property
    def bends(self) -> bool:
        """Whether anything deforms."""
        return bool(self.robot.deformations)

    def row(self, time: float) -> int:
        """The row nearest to a time after the start."""
        desired = self.t[0] + time
        after = int(np.clip(np.searchsorted(self.t, desired), 1, max(len(self.t) - 1, 1)))
        if len(self.t) == 1:
            return 0
        return after - 1 if desired - self.t[after - 1] < self.t[after] - desired else after

    def positions(self, time: float) -> Array:
        """Positions of all coordinates at a time after the start."""
        return self._q[self.row(time)]

    @cached_property
    def largest_stress(self) -> float:
        """Of all columns of stresses; 0 where the run has none."""
        return max((float(np.nanmax(beam.values)) for beam in self._stresses.values()), default=0.0)

    def stresses(self, time: float) -> dict[str, tuple[Array, Array]]:
        """Of each beam with columns of stresses, their places and values at a time after the start."""
        return {name: (beam.s, beam.values[self.row(time)]) for name, beam in self._stresses.items()}

    def undeformed(self, time: float) -> Array:
        """Positions with the motors where they are and nothing deformed; as they are where that cannot be."""
        row = self.row(time)
        if row not in self._straight:
            q, tree = self._q[row], self.robot.tree
            plain = q.copy()
            for link in tree.links:
                plain[link.e] = 0.0
            motors = {
                tree.links[j].name: float(q[tree.links[j].q.start])
                for j in (tree.link_of_rate[k] for k in self.robot.actuated)
                if tree.links[j].joint.one_axis
            }
            try:
                rigid = self.robot.locking(self.robot.deformations)
                self._straight[row] = rigid.assemble(motors, near=plain)
            except ParflexError:
                self._straight[row] = q
        return self._straight[row]
