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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from scipy.spatial.transform import Rotation

import parflex
from parflex.codegen.model import Model
from parflex.errors import ParflexError
from parflex.robot.robot import Robot
from parflex.simulation.controller import Sensed
from parflex.simulation.runs import Run
from parflex.trajectories.frames import FrameTrajectory, platform_trajectory
from parflex.view.style import write_picture

ROBOT, RIGID, TOUR, TIME = "gough-stewart-flexible", "gough-stewart", "tour", 4.2  # s
BANDWIDTH = 4.0  # rad/s, of the controller: from 6 rad/s on it is unstable on the flexible robot
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#333333")
SHOWN = 900  # points of a curve
LEGS = [f"leg {number}" for number in range(1, 7)]
AXES, TURNS = ["x", "y", "z"], ["about x", "about y", "about z"]


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


def panel(axes: Axes, times: np.ndarray, values: np.ndarray, names: list[str], label: str) -> None:
    """Curves with their names beside them."""
    every = max(1, len(times) // SHOWN)
    for column, name, colour in zip(values.T, names, COLOURS, strict=False):
        axes.plot(times[::every], column[::every], color=colour, linewidth=1.1, label=name)
    axes.axhline(0, color="0.6", linewidth=0.8, zorder=0)
    axes.set_ylabel(label)
    axes.grid(color="0.92")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=8)


def page_of(rows: int, height: float) -> tuple[Figure, np.ndarray]:
    """A page of two columns."""
    page = Figure(figsize=(12, height), layout="constrained")
    FigureCanvasAgg(page)
    panels = page.subplots(rows, 2, sharex=True)
    for axes in panels[-1]:
        axes.set_xlabel("time (s)")
    return page, panels


def paper_figure(run: Run, robot: Robot, path: FrameTrajectory) -> Figure:
    """Figures 4 to 7 of Long2014: efforts, accelerations and what they lack, deformations."""
    page, panels = page_of(4, 11)
    found, (_, _, asked) = direct_accelerations(run, robot), reference_of(path, run.t)
    attachments = np.stack([deformation(run, robot, f"a{number}")[0][:, 2] for number in range(1, 7)], axis=1)
    shift, turn = deformation(run, robot, "origin")
    panel(panels[0, 0], run.t, efforts(run, robot), LEGS, "efforts (N)")
    panel(panels[0, 1], run.t, 1e3 * attachments, LEGS, "attachments along z (mm)")
    panel(panels[1, 0], run.t, found[:, :3], AXES, "acceleration (m/s$^2$)")
    panel(panels[1, 1], run.t, found[:, 3:], TURNS, "acceleration (rad/s$^2$)")
    panel(panels[2, 0], run.t, (found - asked)[:, :3], AXES, "difference (m/s$^2$)")
    panel(panels[2, 1], run.t, (found - asked)[:, 3:], TURNS, "difference (rad/s$^2$)")
    panel(panels[3, 0], run.t, 1e3 * shift, AXES, "origin of the plate (mm)")
    panel(panels[3, 1], run.t, 1e3 * turn, TURNS, "origin of the plate (mrad)")
    page.suptitle(
        "Inverse model feeding the direct one: efforts, accelerations, deformations (platform axes)", fontsize=11
    )
    return page


def control_figure(run: Run, driven: Run, robot: Robot, path: FrameTrajectory) -> Figure:
    """The controller that does not know the elastic state, beside the inverse model that does."""
    page, panels = page_of(2, 6)
    shift, turn = off_path(run, path)
    legs = np.stack([deformation(run, robot, f"a{number}")[0][:, 2] for number in range(1, 7)], axis=1)
    rows = min(len(run.t), len(driven.t))
    panel(panels[0, 0], run.t, efforts(run, robot), LEGS, "efforts (N)")
    panel(panels[0, 1], run.t, 1e3 * legs, LEGS, "attachments along z (mm)")
    panel(panels[1, 0], run.t, 1e3 * shift, AXES, "off the path (mm)")
    panel(panels[1, 1], run.t, 1e3 * turn, TURNS, "off the path (mrad)")
    more = (efforts(run, robot)[:rows] - efforts(driven, robot)[:rows])[:, 2]
    panels[0, 0].plot(run.t[:rows], more, color="0.6", linewidth=0.9, label="leg 3, less\nthat of the\ninverse model")
    panels[0, 0].legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=8)
    page.suptitle(
        f"Computed torque with the rigid model, {BANDWIDTH:g} rad/s, 1 ms, on the flexible robot", fontsize=11
    )
    return page


def start_figure(undeformed: Run, held: Run, robot: Robot) -> Figure:
    """Efforts from both starts, on one scale."""
    page = Figure(figsize=(12, 4), layout="constrained")
    FigureCanvasAgg(page)
    panels = page.subplots(1, 2, sharey=True)
    for axes, run, words in zip(panels, (undeformed, held), ("undeformed", "in equilibrium"), strict=True):
        panel(axes, run.t, efforts(run, robot), LEGS, f"efforts (N), started {words}")
        axes.set_xlabel("time (s)")
    page.suptitle("Where a run starts matters: the platform is held at rest", fontsize=11)
    return page


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
    figures = {
        "flexible-platform": paper_figure(driven, robot, path),
        "flexible-platform-control": control_figure(run, driven, robot, path),
        "flexible-platform-start": start_figure(*runs, robot),
    }
    for name, page in figures.items():
        write_picture(page, output / f"{name}.svg")
        print(f"Figure: {output / name}.svg")


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
