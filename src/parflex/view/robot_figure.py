"""Figure of a robot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from parflex.robot.configuration import Configuration, Pose, configure
from parflex.robot.robot import Robot
from parflex.tree.tree import Place
from parflex.view.scene import coupled_links, coupled_place, coupling_labels, runs_on_rail
from parflex.view.skeleton import outline, skeleton
from parflex.view.solids import element_places
from parflex.view.style import drawing_lock, finished, new_figure, picture_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = np.ndarray

MARKERS = {"revolute": "o", "prismatic": "s", "helical": "h", "spherical": "D", "free": "", "planar": "", "fixed": ""}

GEAR_MARK, THREAD_MARK = (11, 1, 0), "$\\equiv$"  # on joints that are coupled: a wheel with teeth, a thread

COUPLING_COLOUR, MARK_COLOUR = "darkgoldenrod", "tab:purple"

GROUND_COLOUR, PLATFORM_COLOUR, MOTOR_COLOUR = "0.35", "tab:blue", "tab:red"

TURN, TILT = -28.0, 55.0  # degrees: how a robot in space is seen at first


def draw(robot: Robot, pose: Pose | None = None, path: str | Path | None = None, frames: Sequence[str] = ()) -> Figure:
    """Picture of the robot at a pose.

    Parameters
    ----------
    robot : Robot
        Robot, from `load`.
    pose : Pose, default None
        Name of a pose of the file, coordinates by name, or a configuration; None is home (m, rad).
    path : str or Path, default None
        File to write: SVG, PDF or PNG; None writes none.
    frames : Sequence[str], default ()
        Frames to mark with their names, places inside beams too, as `arm@0.5`.

    Returns
    -------
    Figure
        Matplotlib figure; a notebook shows it.
    """
    if path is not None:
        picture_path(path)  # refused before the pose is looked for
    marked = {name: robot.tree.place(name) for name in frames}
    configuration = configure(robot, pose)
    with drawing_lock():
        return finished(picture(configuration, marked), path)


def picture(configuration: Configuration, marked: Mapping[str, Place] | None = None) -> Figure:
    """The figure, without a window, with marks at some places."""
    robot = configuration.robot
    figure = new_figure(6, 7)
    axes = figure.add_subplot(projection=None if robot.tree.planar else "3d")
    plane = robot.tree.planar

    def line(points: Array, **style: Any) -> None:
        axes.plot(*(points.T[:2] if plane else points.T), **style)

    drawn = _draw_links(configuration, line) + _draw_faces(configuration, line) + _draw_rails(configuration, line)
    drawn += _draw_joints(configuration, line)
    for name, place in coupling_labels(robot, configuration.q).items():
        axes.text(*place[: 2 if plane else 3], f" {name}", fontsize=7, va="bottom", zorder=8)
    for name, place in ((name, configuration.at.of(place)[1]) for name, place in (marked or {}).items()):
        line(place[None, :], marker="P", color=MARK_COLOUR, markersize=5, linestyle="", zorder=7)
        axes.text(*place[: 2 if plane else 3], f"  {name}", fontsize=8, va="bottom", zorder=8)
        drawn.append(place)
    _draw_ground(configuration, line)
    _dress(axes, np.array(drawn), robot, plane)
    return figure


def _draw_links(configuration: Configuration, line: Any) -> list[Array]:
    """The lines of the skeleton; legs have their colours, platforms and slides their widths."""
    robot, links = configuration.robot, configuration.robot.tree.links
    bones = skeleton(robot)
    points = bones.points(configuration.q, configuration.at)
    colours = _leg_colours(robot)
    sheets = [(part, outline(body.r0)) for _, part, body in bones.elastic if len(body.triangles)]
    for part, corners in sheets:  # the rim alone: the lines of all triangles would be a grey spot
        line(points[part][[*corners, corners[0]]], color=PLATFORM_COLOUR, linewidth=2.5, zorder=3)
    for edge in bones.edges:
        ends = points[[edge.first, edge.second]]
        if any(part.start <= edge.first < part.stop for part, _ in sheets):
            continue
        if edge.kind in ("element", "bar"):  # a bar is a rod or a strut
            style = {"color": "black", "linestyle": "-"} if edge.kind == "bar" else {"color": "gray", "linestyle": "--"}
            line(ends, linewidth=1.5, zorder=4, **style)
            continue
        if edge.kind == "platform":
            line(ends, color=PLATFORM_COLOUR, linewidth=2.5, zorder=3)
            continue
        if edge.kind == "slide":
            line(ends, color=colours[links[edge.link].leg], linewidth=4, alpha=0.35)
        line(ends, color=colours[links[edge.link].leg], linewidth=1.5 if edge.kind == "slide" else 2)
    return list(points)


def _draw_faces(configuration: Configuration, line: Any) -> list[Array]:
    """A square on the face that a point slides on."""
    at, side = configuration.at, 0.12 * configuration.robot.tree.length
    corners: list[Array] = []
    for loop in configuration.robot.closures.loops:
        if loop.kind == "point-on-plane":
            R, _ = at.of(loop.first)
            _, centre = at.of(loop.second)
            across = np.linalg.svd(loop.u1[None, :])[2][1:] @ R.T
            square = [
                centre + side * (a * across[0] + b * across[1]) for a, b in ((1, 1), (1, -1), (-1, -1), (-1, 1), (1, 1))
            ]
            line(np.array(square), color=PLATFORM_COLOUR, linewidth=1.5)
            corners += square
    return corners


def _draw_rails(configuration: Configuration, line: Any) -> list[Array]:
    """The way of a carriage on the ground between its limits."""
    robot, at = configuration.robot, configuration.at
    points: list[Array] = []
    for j, link in enumerate(robot.tree.links):
        if link.parent < 0 and link.limits and runs_on_rail(robot, link, robot.tree.length):
            direction = at.rotation[j][:, link.joint.axis]
            ends = at.position[j] + np.outer(np.array(link.limits) - configuration.q[link.q.start], direction)
            line(ends, color=GROUND_COLOUR, linewidth=5, alpha=0.35, zorder=1)
            points += list(ends)
    return points


def _leg_colours(robot: Robot) -> dict[str | None, str]:
    palette = ["tab:green", "tab:orange", "tab:purple", "tab:brown", "tab:olive", "tab:cyan"]
    legs = list(dict.fromkeys(link.leg for link in robot.tree.links))
    return {leg: palette[index % len(palette)] for index, leg in enumerate(legs)}


def _draw_joints(configuration: Configuration, line: Any) -> list[Array]:
    robot, tree, at = configuration.robot, configuration.robot.tree, configuration.at
    motors = {tree.link_of_rate[k] for k in robot.actuated}
    for j, link in sorted(enumerate(tree.links), key=lambda entry: entry[0] in motors):
        marker = MARKERS.get(link.joint.kind, "o")
        if marker and not (link.pulls_only and j not in motors):
            root = at.position[j]
            if link.strut:
                root = _middle(configuration, link.name)
            elif link.joint.unit == "m" and not runs_on_rail(robot, link, tree.length):
                root = root - at.rotation[j][:, link.joint.axis] * configuration.q[link.q.start]
            face = MOTOR_COLOUR if j in motors else "white"
            size, order = (7, 7) if j in motors else (5, 5)
            line(
                root[None, :],
                marker=marker,
                color="black",
                markerfacecolor=face,
                markersize=size,
                linestyle="",
                zorder=order,
            )
    for coupling in robot.description.coupling:
        for other in coupling.others:
            ends = np.array([at.of(coupled_place(robot, name))[1] for name in (coupling.joint, other)])
            line(ends, color="black", linestyle=":", linewidth=1, zorder=4)
    for j in coupled_links(robot):
        shape = THREAD_MARK if tree.links[j].joint.unit == "m" else GEAR_MARK
        style = {"color": COUPLING_COLOUR, "markerfacecolor": "none", "markersize": 13, "zorder": 4}
        line(at.position[j][None, :], marker=shape, linestyle="", **style)
    points = []
    for loop in robot.closures.loops:
        _, point = at.of(loop.second)
        line(point[None, :], marker="o", color="black", markerfacecolor="white", markersize=5, linestyle="", zorder=5)
        points.append(point)
    _, tip = at.of(tree.places[tree.end_effector])
    line(tip[None, :], marker="x", color=PLATFORM_COLOUR, markersize=9, linestyle="", zorder=6)
    return [*points, tip]


def _middle(configuration: Configuration, strut: str) -> Array:
    """Half way between the ends of a strut."""
    entry = next(element for element in configuration.robot.description.element if element.name == strut)
    ends = [configuration.at.of(configuration.robot.tree.places[end])[1] for end in entry.between]
    return (ends[0] + ends[1]) / 2


def _draw_ground(configuration: Configuration, line: Any) -> None:
    tree = configuration.robot.tree
    feet = [link.position for link in tree.links if link.parent < 0 and not link.joint.moves_freely and not link.strut]
    for _, first, second in element_places(configuration.robot):
        feet += [place.position for place in (first, second) if place.link < 0]
    for loop in configuration.robot.closures.loops:
        feet += [place.position for place in (loop.first, loop.second) if place.link < 0]
    for foot in feet:
        line(foot[None, :], marker="^", color=GROUND_COLOUR, markersize=11, linestyle="", zorder=1)


def _dress(axes: Any, points: Array, robot: Robot, plane: bool) -> None:
    """Equal scales, labels with units, and what the marks mean."""
    low, high = points.min(axis=0), points.max(axis=0)
    middle, reach = (low + high) / 2, max(float((high - low).max()) / 2 * 1.1, 1e-6)
    axes.set_xlabel("x (m)")
    axes.set_ylabel("y (m)")
    axes.set_title(f"{robot.description.title or robot.name}", fontsize=10)
    axes.set_xlim(middle[0] - reach, middle[0] + reach)
    axes.set_ylim(middle[1] - reach, middle[1] + reach)
    if plane:
        axes.set_aspect("equal")
        axes.grid(alpha=0.3)
    else:
        axes.set_zlabel("z (m)")
        axes.set_zlim(middle[2] - reach, middle[2] + reach)
        axes.set_box_aspect((1, 1, 1))
        axes.view_init(elev=22, azim=-58)
    write = axes.text if plane else axes.text2D
    legend = "red: motor   white: passive   x: end effector"
    legend += "   gear, thread: coupled" * bool(robot.description.coupling)
    legend += "   dashed: spring, damper" * any(
        e.kind in ("spring", "damper", "force") for e in robot.description.element
    )
    write(0.01, 0.01, legend, transform=axes.transAxes, fontsize=8)


def angles_of_view(robot: Robot) -> tuple[float, float]:
    """Turn about z and tilt, in degrees; a tilt of 90 degrees is a plan."""
    return (0.0, 90.0) if robot.tree.planar else (TURN, TILT)


def view(turn: float, tilt: float) -> Array:
    """Two rows that make a picture of points: turned about z, then seen from above by the tilt (degrees)."""
    c, s = np.cos(np.radians(turn)), np.sin(np.radians(turn))
    up, along = np.sin(np.radians(tilt)), np.cos(np.radians(tilt))
    return np.array([[c, -s, 0.0], [s * up, c * up, along]])
