"""State of a viewer session: pose, modes, run, deformation, reactions; no window.

A session keeps the last valid state: an invalid input leaves a sentence in `trouble` and changes nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from parflex.dynamics.dynamics import inverse_dynamics
from parflex.errors import InputError, ParflexError, UnreachableError
from parflex.recursion.kinematics import pose
from parflex.robot.configuration import Configuration
from parflex.robot.limits import limit_warnings
from parflex.robot.robot import Robot
from parflex.simulation.runs import Run, load_run
from parflex.spatial.rotations import vector_from_rotation
from parflex.statics.equilibrium import equilibrium
from parflex.statics.linear_model import linear_model_of
from parflex.statics.load_case import full_load_case
from parflex.statics.modes import Modes, modes_of
from parflex.statics.stiffness import deflection_at
from parflex.view.colours import stress_colours
from parflex.view.run_figure import along_beams
from parflex.view.scene import arrows, reaction_arrows, scene
from parflex.view.solids import merged

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
        self.trouble = ""
        self.asked: Array | None = None  # a requested position that the end effector cannot reach
        self.deformation_scale = 1.0
        self.sagging = False
        self.servo: float | None = None
        self.coupling_efforts: dict[str, str] = {}  # in static equilibrium, of the last reactions
        self.take(robot)

    def take(self, robot: Robot) -> None:
        """Show a robot at these positions."""
        self.robot, self.scene = robot, scene(robot)
        self.colours = stress_colours(self.scene)
        self._place(self.q)

    def _place(self, q: Array) -> None:
        self.q, self.base = q, self.scene.vertices(q)
        self._modes: Modes | None = None
        self._shapes: dict[int, Array] = {}
        if self.sagging:
            self.sag(True)

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
        """Return the motors, with their limits where the robot file gives them."""
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
        """Move to a pose; if it cannot be reached, state so in `trouble` and stay."""
        try:
            q = self._assembled(goal)
        except ParflexError as error:
            self.trouble, self.asked = f"This pose cannot be shown: {error}", None
            if not isinstance(goal, str) and not goal.keys().isdisjoint("xyz"):
                place = {**self.place(), **goal}
                self.asked = np.array([place[word] for word in "xyz"])
            return False
        self.trouble, self.asked = "", None
        self._place(q)
        return True

    def _assembled(self, goal: str | Mapping[str, float]) -> Array:
        """Search for a pose of the file; continue to one of sliders from here, which takes no noticeable time."""
        rigid = self.robot.locking(self.robot.deformations)  # its degrees of freedom exclude bending
        if isinstance(goal, str):
            return rigid.assemble(goal)
        q = rigid.pose_finder.near(goal, undeformed(self.robot, self.q))
        if q is None:
            value = ", ".join(f"{word} = {number:.4g}" for word, number in goal.items())
            text = f"{value} cannot be reached from here in this working mode"
            raise UnreachableError(text, key="pose", value=value, hint="go back, or around it")
        return q

    def status(self) -> str:
        """Return one line on the pose that is shown."""
        here = Configuration(self.robot, self.q)
        notes = [each.text for each in (*limit_warnings(self.robot, self.q), *here.condition.diagnostics)]
        place, axes = self.place(), "xy" if self.robot.tree.planar else "xyz"
        where = ", ".join(f"{word} = {round(place[word], 9):.4g} m" for word in axes)
        return "; ".join([f"'{self.robot.tree.end_effector}' at {where}", *notes])

    # -- deformation and modes -------------------------------------------------------------------------

    def sag(self, on: bool, scale: float | None = None) -> None:
        """Show the robot deflected by its own weight, magnified by the deformation scale."""
        self.deformation_scale = self.deformation_scale if scale is None else scale
        self.sagging, self.trouble = on, ""
        self.base = straight = self.scene.vertices(self.q)
        if not on:
            return
        try:
            bent = self.scene.vertices(equilibrium(self.robot, Configuration(self.robot, self.q)).configuration.q)
            self.base = straight + self.deformation_scale * (bent - straight)
        except ParflexError as error:
            self.sagging, self.trouble = False, f"No equilibrium can be shown: {error}"

    def modes(self) -> Modes | None:
        """Return the lowest modes here; None with a sentence in `trouble` where there are none."""
        if self._modes is None:
            try:
                case = full_load_case("actuators", None, {"servo": self.servo}, loads_matter=False)
                model = linear_model_of(self.robot, Configuration(self.robot, self.q), case)
                self._modes = modes_of(model, MODES, or_fewer=True)
            except ParflexError as error:
                self.trouble = f"No modes here: {error}"
        return self._modes

    def set_servo(self, stiffness: float | None) -> None:
        """Hold the motors by springs of this stiffness instead of locking them."""
        self.servo = stiffness
        self._modes, self._shapes = None, {}

    def mode_names(self) -> list[str]:
        """Return number and frequency of each mode, as labels."""
        modes = self.modes()
        return [] if modes is None else [f"{k + 1}: {f:.2f} Hz" for k, f in enumerate(modes.frequencies)]

    def in_mode(self, number: int, phase: float, amplitude: float) -> Array:
        """Return vertices in a mode, from 0; the amplitude is a share of the robot's size."""
        modes = self.modes()
        if modes is None or not 0 <= number < len(modes.frequencies):
            return self.base
        if number not in self._shapes:
            self._shapes[number] = self.scene.shape(self.q, modes.shapes[:, number])
        return self.base + amplitude * self.scene.size * np.sin(phase) * self._shapes[number]

    # -- runs, reactions and stresses ------------------------------------------------------------------

    def in_run(self, run: Playback, time: float) -> Array:
        """Return vertices at a time of a run, its deformation magnified."""
        vertices = self.scene.vertices(run.positions(time))
        if self.deformation_scale == 1.0 or not self.robot.deformations:
            return vertices
        straight = self.scene.vertices(run.undeformed(time))
        return straight + self.deformation_scale * (vertices - straight)

    def reactions(self) -> tuple[Array, Array, str]:
        """Return arrows of the forces in joints and closures in static equilibrium, and the largest of them."""
        self.coupling_efforts = {}
        try:
            here = Configuration(self.robot, self.q)
            if self.robot.tree.elastic:
                here = Configuration(self.robot, equilibrium(self.robot, here).configuration.q)
            result = inverse_dynamics(self.robot, here, reactions=True)
        except ParflexError as error:
            return *merged([]), f"No reactions here: {error}"
        assert result.reactions is not None
        places, forces = reaction_arrows(self.robot, here.q, result.reactions)
        largest = float(np.linalg.norm(forces, axis=1).max(initial=0.0))
        if largest < 1e-9:
            return *merged([]), "Nothing acts on this robot at rest: its file has no gravity."
        note, tree = f"Largest reaction {largest:.4g} N.", self.robot.tree
        for coupling in self.robot.description.coupling:
            unit = "N" if tree.links[tree.number(coupling.joint)].joint.unit == "m" else "N m"
            text = f"{result.reactions['couplings'][coupling.name]['effort']:.4g} {unit}"
            self.coupling_efforts[coupling.name] = text
            note += f" Coupling '{coupling.name}': {text}."
        joints = [part for kind, part in result.reactions.items() if kind not in ("beams", "largest_stress")]
        if any(reaction["undetermined"] for part in joints for reaction in part.values()):
            note += " The robot is over-constrained: arrows are those of least norm."
        return *arrows(places, forces, self.scene.size), note

    def stresses(self, run: Playback | None, time: float) -> tuple[list[Array] | None, str]:
        """Return triangles of the beams by colour of their stress, in a run or under gravity, and a line on them."""
        if self.colours is None:
            return None, "This robot has no beams."
        if run is not None:
            top = run.largest_stress
            if not top:
                return None, "The run has no stresses: request the outputs 'BEAM.stress@0:1:13'."
            return self.colours.levels(run.stresses(time), top), f"Yellow: {top / 1e6:.4g} MPa, the largest of the run."
        try:
            deflected = deflection_at(equilibrium(self.robot, Configuration(self.robot, self.q)))
        except ParflexError as error:
            return None, f"No stresses here: {error}"
        most = deflected.largest_stress
        if most is None:
            return None, "No beam has a section whose fibres are known."
        known = {name: beam for name, beam in deflected.beams.items() if beam.chain.parts.fibres is not None}
        tables = {name: beam.table(PLACES) for name, beam in known.items()}
        stresses = {name: (np.array(table["s"]), np.array(table["stress"])) for name, table in tables.items()}
        line = f"Yellow: {most['value'] / 1e6:.4g} MPa, in '{most['beam']}' at {most['s']:.3g} of its length."
        return self.colours.levels(stresses, most["value"]), line


def undeformed(robot: Robot, q: Array) -> Array:
    """Return the same positions with nothing deformed; loops may be open."""
    plain = q.copy()
    for link in robot.tree.links:
        plain[link.e] = 0.0
    return plain


def require_run(robot: Robot, path: str) -> Playback:
    """Return a saved run of this robot."""
    run = load_run(path)
    missing = [f"q.{name}" for name in robot.tree.position_names if f"q.{name}" not in run.columns]
    if missing:
        text = f"the run has no column '{missing[0]}', so it is not one of '{robot.name}' as it is loaded here"
        hint = "give the robot of the run, with the same number of elements"
        raise InputError(text, file=path, key="run", value=missing[0], hint=hint)
    return Playback(robot, run)


class Playback:
    """A run of a robot; between two rows the nearer one is shown."""

    def __init__(self, robot: Robot, run: Run) -> None:
        if not len(run.t):
            raise InputError("the run has no rows", key="run", hint="simulate for a longer time")
        self.robot, self.t = robot, run.t
        self._q = np.column_stack([run[f"q.{name}"] for name in robot.tree.position_names])
        self._straight: dict[int, Array] = {}
        stressed = [name for name in run if ".stress@" in name]
        beams = along_beams(run, stressed) if stressed else []
        self._stresses = {beam.name.removesuffix(".stress"): beam for beam in beams}

    @property
    def duration(self) -> float:
        """Seconds from the first row to the last."""
        return float(self.t[-1] - self.t[0])

    def _row(self, time: float) -> int:
        return int(np.abs(self.t - self.t[0] - time).argmin())

    def positions(self, time: float) -> Array:
        """Return positions of all coordinates at a time after the start."""
        return self._q[self._row(time)]

    @cached_property
    def largest_stress(self) -> float:
        """Of all columns of stresses; 0 where the run has none."""
        return max((float(np.nanmax(beam.values)) for beam in self._stresses.values()), default=0.0)

    def stresses(self, time: float) -> dict[str, tuple[Array, Array]]:
        """Return places and stresses of each beam with columns of stresses at a time after the start."""
        return {name: (beam.s, beam.values[self._row(time)]) for name, beam in self._stresses.items()}

    def undeformed(self, time: float) -> Array:
        """Return positions with the motors where they are and nothing deformed; deformed if there are none."""
        row = self._row(time)
        if row not in self._straight:
            q, tree = self._q[row], self.robot.tree
            links = [tree.links[tree.link_of_rate[k]] for k in self.robot.actuated]
            motors = {link.name: float(q[link.q.start]) for link in links if link.joint.one_axis}
            try:
                rigid = self.robot.locking(self.robot.deformations)
                self._straight[row] = rigid.assemble(motors, near=undeformed(self.robot, q))
            except ParflexError:
                self._straight[row] = q
        return self._straight[row]
