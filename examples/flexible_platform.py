"""A Gough-Stewart robot whose platform is a flexible plate, along a tour through four poses, as Long2014 shows it.

    python examples/flexible_platform.py --output out

First the inverse model, which includes the flexible plate, feeds the direct one; fed with the same state, the two are
an identity, so what differs is rounding. Then a controller that does not know the elastic state moves the same robot:
computed torque with the model of the rigid robot, sampled at 1 ms, which sees the pose of the platform but not its
deformation. Last, the first tenths of a second when the robot starts undeformed, and when it starts in equilibrium.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

import parflex
from parflex.codegen.model import Model
from parflex.errors import ParflexError
from parflex.robot.robot import Robot
from parflex.simulation.controller import Sensed
from parflex.simulation.runs import Run
from parflex.trajectories.frames import FrameTrajectory, platform_trajectory
from parflex.view.style import REST, drawing, time_axis

ROBOT, RIGID, TOUR, TIME = "gough-stewart-flexible", "gough-stewart", "tour", 4.2  # s
BANDWIDTH = 4.0  # rad/s, of the controller: from 6 rad/s on it is unstable on the flexible robot
SHOWN = 900  # points of a curve
LEGS = [f"leg {number}" for number in range(1, 7)]
AXES, TURNS = ["x", "y", "z"], ["rx", "ry", "rz"]


@dataclass(frozen=True)
class RigidComputedTorque:
    """Efforts of the rigid robot's inverse model for the reference acceleration and feedback of the errors.

    It measures pose and twist of the platform (say, by a laser tracker); of its modes it knows nothing.
    """

    model: Model = field(repr=False)
    path: FrameTrajectory = field(repr=False)
    stiffness: float
    damping: float
    sample_time: float = 1e-3

    def __call__(self, sensed: Sensed, memory: Any) -> tuple[np.ndarray, Any]:
        """Efforts now; the platform's coordinates come first: position and unit quaternion."""
        (position, turn), (velocity, change) = (
            (values[:3], values[3:7]) for values in (sensed.coordinates, sensed.coordinate_rates)
        )
        rotation = Rotation.from_quat(turn, scalar_first=True)
        spin = 2 * (turn[0] * change[1:] - change[0] * turn[1:] + np.cross(turn[1:], change[1:]))
        desired = self.path.at(sensed.time)
        p, R, twist, acceleration = desired.position, desired.rotation, desired.twist, desired.acceleration
        off = np.concatenate([p - position, (Rotation.from_matrix(R) * rotation.inv()).as_rotvec()])
        push = acceleration + self.stiffness * off + self.damping * (twist - np.concatenate([velocity, spin]))
        answer = self.model(
            position=position, rotation=rotation.as_matrix(), velocity=velocity, angular_velocity=spin,
            acceleration=push[:3], angular_acceleration=push[3:],
        )  # fmt: skip
        return answer["effort"], memory


# -- what the runs tell --------------------------------------------------------------------------------


def columns(run: Run, names: list[str]) -> np.ndarray:
    """Several columns side by side."""
    return np.stack([run[name] for name in names], axis=1)


def efforts(run: Run, robot: Robot) -> np.ndarray:
    """Of the six legs, N."""
    return columns(run, [f"effort.{name}" for name in robot.actuated_names])


def rotations(run: Run) -> np.ndarray:
    """Of the platform, a matrix for each row."""
    names = [f"platform.orientation_{axis}" for axis in "wxyz"]
    return Rotation.from_quat(columns(run, names), scalar_first=True).as_matrix()


def deformation(run: Run, robot: Robot, node: str) -> tuple[np.ndarray, np.ndarray]:
    """Displacement (m) and turn (rad) of a node of the plate by its modes, in axes of the platform."""
    link = robot.tree.links[robot.tree.number("platform")]
    modes = columns(run, [f"q.{robot.tree.position_names[k]}" for k in range(link.e.start, link.e.stop)])
    shape = link.body.nodes[node]
    return modes @ shape.Phi_d.T, modes @ shape.Phi_r.T


def attachments(run: Run, robot: Robot) -> np.ndarray:
    """Displacements of the attachments of the legs along z, m."""
    return np.stack([deformation(run, robot, f"a{number}")[0][:, 2] for number in range(1, 7)], axis=1)


def direct_accelerations(run: Run, robot: Robot) -> np.ndarray:
    """Of the platform in world axes by the direct model, from the states and efforts of a run."""
    model, tree = parflex.model(robot, "state-rates"), robot.tree
    q = columns(run, [f"q.{name}" for name in tree.position_names])
    twist = [f"platform.local_{part}{axis}" for part in "vw" for axis in "xyz"]
    qd = columns(run, [*twist, *(f"qd.{tree.rate_names[k]}" for k in tree.elastic)])
    own = model(q=q, qd=qd, effort=efforts(run, robot))["acceleration"][:, :6].reshape(-1, 2, 3)
    return np.einsum("nij,nkj->nki", rotations(run), own).reshape(-1, 6)


def reference_of(path: FrameTrajectory, times: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Position, rotation and acceleration of the path."""
    rows = path.at(times)
    return rows.position, rows.rotation, rows.acceleration


def off_path(run: Run, path: FrameTrajectory) -> tuple[np.ndarray, np.ndarray]:
    """How far the platform is from its path: m, and rad about the axes of the world."""
    p, R, _ = reference_of(path, run.t)
    turn = Rotation.from_matrix(rotations(run) @ R.transpose(0, 2, 1)).as_rotvec()
    return columns(run, [f"platform.{axis}" for axis in "xyz"]) - p, turn


# -- figures -------------------------------------------------------------------------------------------


def panel(axes: Any, times: np.ndarray, values: np.ndarray, names: list[str], label: str) -> None:
    """Draw curves; their names stand beside the right panel of a row."""
    every = max(1, len(times) // SHOWN)
    for column, name in zip(values.T, names, strict=False):
        axes.plot(times[::every], column[::every], linewidth=0.9, label=name)
    axes.axhline(0, color=REST, linewidth=0.8, zorder=0)
    axes.set_ylabel(label)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=7, handlelength=1.0)


@contextmanager
def panels_of(path: Path, rows: int, times: np.ndarray, title: str) -> Iterator[Any]:
    """Yield panels in two columns over one time axis."""
    with drawing(path, 0.5 + 1.6 * rows, title=title) as figure:
        panels = figure.subplots(rows, 2, sharex=True, squeeze=False)
        yield panels
        for axes in panels[-1]:
            time_axis(axes, times)
        figure.align_ylabels()


def draw_paper(run: Run, robot: Robot, path: FrameTrajectory, file: Path) -> None:
    """Draw figures 4 to 7 of Long2014: efforts, accelerations and their errors, deformations."""
    found, (_, _, desired) = direct_accelerations(run, robot), reference_of(path, run.t)
    shift, turn = deformation(run, robot, "origin")
    with panels_of(file, 4, run.t, "Inverse model feeding the direct one, axes of the platform") as panels:
        panel(panels[0, 0], run.t, efforts(run, robot) / 1e3, LEGS, "efforts (kN)")
        panel(panels[0, 1], run.t, 1e3 * attachments(run, robot), LEGS, "attachments, z (mm)")
        panel(panels[1, 0], run.t, found[:, :3], AXES, "acceleration (m/s$^2$)")
        panel(panels[1, 1], run.t, found[:, 3:], TURNS, "acceleration (rad/s$^2$)")
        panel(panels[2, 0], run.t, (found - desired)[:, :3], AXES, "difference (m/s$^2$)")
        panel(panels[2, 1], run.t, (found - desired)[:, 3:], TURNS, "difference (rad/s$^2$)")
        panel(panels[3, 0], run.t, 1e3 * shift, AXES, "origin of plate (mm)")
        panel(panels[3, 1], run.t, 1e3 * turn, TURNS, "origin of plate (mrad)")


def draw_control(run: Run, driven: Run, robot: Robot, path: FrameTrajectory, file: Path) -> None:
    """Draw the run of the controller that does not know the elastic state."""
    shift, turn = off_path(run, path)
    rows = min(len(run.t), len(driven.t))
    more = (efforts(run, robot)[:rows] - efforts(driven, robot)[:rows]) / 1e3
    title = f"Computed torque by the rigid model ({BANDWIDTH:g} rad/s, 1 ms) on the flexible robot"
    with panels_of(file, 3, run.t, title) as panels:
        panel(panels[0, 0], run.t, efforts(run, robot) / 1e3, LEGS, "efforts (kN)")
        panel(panels[0, 1], run.t, 1e3 * attachments(run, robot), LEGS, "attachments, z (mm)")
        panel(panels[1, 0], run.t, 1e3 * shift, AXES, "path error (mm)")
        panel(panels[1, 1], run.t, 1e3 * turn, TURNS, "path error (mrad)")
        panel(panels[2, 0], run.t[:rows], more, LEGS, "less inverse model (kN)")
        panels[2, 1].axis("off")
        panels[1, 1].tick_params(labelbottom=True)


def draw_starts(undeformed: Run, held: Run, robot: Robot, file: Path) -> None:
    """Draw efforts from both starts, on one scale."""
    with panels_of(file, 1, held.t, "Platform held at one pose") as panels:
        for axes, run, word in zip(panels[0], (undeformed, held), ("undeformed", "in equilibrium"), strict=True):
            panel(axes, run.t, efforts(run, robot) / 1e3, LEGS, "efforts (kN)")
            axes.set_title(f"started {word}")
        panels[0, 1].sharey(panels[0, 0])


# -- the whole -----------------------------------------------------------------------------------------


def compute(output: Path, time: float) -> None:
    """Three comparisons: their figures, and their largest numbers."""
    robot, rigid = parflex.load(ROBOT), parflex.load(RIGID)
    path = platform_trajectory(robot, TOUR)
    driven = parflex.simulate(robot, TOUR, time, drive="platform", frames=["platform"])
    found = direct_accelerations(driven, robot) - reference_of(path, driven.t)[2]
    print(f"inverse model feeding the direct one: {driven.t[-1]:g} s in {driven.seconds:.2f} s")
    print(
        f"  largest effort {np.abs(efforts(driven, robot)).max():.0f} N, accelerations off by {np.abs(found).max():.1e}"
    )
    sag, far = deformation(driven, robot, "origin")[0], [deformation(driven, robot, f"a{k}")[0] for k in range(1, 7)]
    print(f"  origin of the plate {1e3 * sag[0, 2]:.3f} mm at rest, attachments up to {1e3 * np.abs(far).max():.1f} mm")
    for warning in driven.summary["warnings"]:
        print(f"  warning: {warning}")
    gains = BANDWIDTH**2, 2 * BANDWIDTH
    law = RigidComputedTorque(parflex.model(rigid, "inverse"), path, *gains)
    run = parflex.simulate(robot, None, time, controller=law, pose="home", start="held", frames=["platform"])
    shift, turn = off_path(run, path)
    print(f"computed torque with the rigid model, {BANDWIDTH:g} rad/s: {run.status}")
    print(f"  off the path by up to {1e3 * np.abs(shift).max():.1f} mm and {1e3 * np.abs(turn).max():.1f} mrad")
    starts = [{"drive": "platform", "frames": ["platform"], "start": start} for start in ("rest", "held")]
    runs = [parflex.simulate(robot, TOUR, 0.2, **start) for start in starts]
    static = np.abs(efforts(runs[1], robot)[0]).max()
    first = np.abs(efforts(runs[0], robot)).max()
    print(f"started undeformed: {first:.0f} N at first, {first / static:.2f} times the {static:.0f} N that it needs")
    files = [output / f"flexible-platform{word}.svg" for word in ("", "-control", "-start")]
    draw_paper(driven, robot, path, files[0])
    draw_control(run, driven, robot, path, files[1])
    draw_starts(*runs, robot, files[2])
    for file in files:
        print(f"Figure: {file}")


def main() -> int:
    """0 when all was computed, 1 when it was interrupted, 2 when the files cannot be written."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, default=Path("out"), metavar="FOLDER", help="where the files go")
    parser.add_argument("--short", action="store_true", help="only the first half second")
    options = parser.parse_args()
    try:
        options.output.mkdir(parents=True, exist_ok=True)
        compute(options.output, 0.5 if options.short else TIME)
    except (OSError, ParflexError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
