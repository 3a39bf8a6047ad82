"""Figures of robots and of their modes: bodies to scale with the symbols of kinematic diagrams.

Robots in space are projected without perspective, so that lengths along one direction are comparable. What is nearer
to the reader covers what is behind.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path as FilePath
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from parflex.errors import InputError
from parflex.robot.configuration import Configuration, Pose, configure
from parflex.robot.robot import Robot
from parflex.statics.modes import Modes
from parflex.tree.tree import GROUND as ON_GROUND
from parflex.tree.tree import Place
from parflex.view.skeleton import Edge, Face, ModeShape, Skeleton, coupling_labels, extent, mode_shape_points, skeleton
from parflex.view.style import (
    INK,
    LINES,
    TEXT,
    WIDTHS,
    drawing,
    figure_style,
    new_figure,
    picture_path,
    rounded_places,
    svg_of,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.path import Path

Array = np.ndarray

TURN, TILT = -32.0, 22.0  # degrees: direction of view of robots in space
FLAT = 1e-6  # of the size: a robot that is thinner lies in the plane x-y
AMPLITUDE = 0.08  # of the size of the robot
COLUMNS = 3  # of mode shapes
ALONE = -1  # number of a mode whose figure has no room for a triad
FILLS = {  # face and edge by kind of body; flexible ones are lighter
    "link": ("#c4cad4", "#3b4350"), "platform": ("#a9c3e6", "#23508f"), "plate": ("#d3e4f7", "#23508f"),
    "beam": ("#bfe6e1", "#14777f"), "sleeve": ("#8f99a8", "#3b4350"), "slide": ("#e3e7ed", "#3b4350"),
    "plane": ("#eef1f5", "#8f99a8"),
}  # fmt: skip
THICK = {"link": 4.2, "platform": 3.6, "plate": 1.6, "beam": 3.4, "sleeve": 3.6, "slide": 2.2}  # points
STYLES = {"element": "--", "bar": "-", "coupling": ":"}
# A period of 1.6 s, whatever the frequency; the Bezier curve is half a period of a sine to 1 %
SWING = 'dur="1.6s" repeatCount="indefinite" calcMode="spline" keyTimes="0;.5;1" keySplines=".37 0 .63 1;.37 0 .63 1"'
ELEMENT = r"<(path|use) (?!id=)[^>]*/>"  # of the SVG of matplotlib, without definitions
GROUND, MOTOR, PASSIVE, GHOST = "#5a6270", LINES[1], "#ffffff", "#a9b0bb"
NAMES = {
    "motor": "actuated joint", "revolute": "revolute", "prismatic": "prismatic", "universal": "universal",
    "spherical": "spherical", "clamp": "clamped", "end": "end effector",
}  # fmt: skip


def draw(robot: Robot, pose: Pose | None = None, path: str | FilePath | None = None, frames: Sequence[str] = (),
         width: str = TEXT) -> Figure:  # fmt: skip
    """Draw the robot at a pose.

    Parameters
    ----------
    robot, pose, width
        See `parflex.api.WORDS`.
    path : str or Path, default None
        File to write: SVG, PDF or PNG; None writes none.
    frames : Sequence[str], default ()
        Frames to mark with their names, places inside beams too, as `arm@0.5`.

    Returns
    -------
    Figure
        Matplotlib figure; a notebook shows it.
    """
    marked = {name: robot.tree.place(name) for name in frames}
    if path is not None:
        picture_path(path)  # refused before the pose is searched
    wide = WIDTHS.get(width, WIDTHS[TEXT])
    picture = RobotFigure(configure(robot, pose), scale=1.0 if width == TEXT else 0.7)
    title = "\n".join(wrap(robot.description.title or robot.name, int(14 * wide)))
    with drawing(path, 0.9 + wide * min(picture.aspect, 0.8), width) as figure:
        picture.axes = figure.add_subplot()
        picture.body()
        picture.labels(marked)
        picture.frame()
        picture.legend()
        figure.suptitle(title, fontweight="normal")
    return figure


def draw_modes(modes: Modes, path: str | FilePath | None = None, amplitude: float = AMPLITUDE, title: str = "",
               width: str = TEXT) -> Figure:  # fmt: skip
    """Draw mode shapes side by side over the undeformed robot; flat robots are seen from above.

    Parameters
    ----------
    modes : Modes
        Modes, from `natural_frequencies`.
    path : str or Path, default None
        File to write: SVG, PDF or PNG; None writes none.
    amplitude : float, default 0.08
        Largest displacement as a share of the robot's size (dimensionless).
    title, width
        See `parflex.api.WORDS`.

    Returns
    -------
    Figure
        Matplotlib figure; a notebook shows it.
    """
    count = len(modes.frequencies)
    columns = min(COLUMNS if width == TEXT else 2, count)
    rows = -(-count // columns)
    shapes = [drawable_mode(modes, k) for k in range(count)]
    picture = RobotFigure(modes.model.configuration, *shapes, scale=0.65)
    panel = WIDTHS.get(width, WIDTHS[TEXT]) / columns * min(picture.aspect, 1.2)
    tall = (0.35 if title else 0.1) + rows * (0.35 + panel)
    with drawing(path, tall, width, title) as figure:
        for k, shape in enumerate(shapes):
            picture.axes = figure.add_subplot(rows, columns, k + 1)
            picture.mode(shape, amplitude)
            picture.frame(k)
            picture.axes.set_title(f"{k + 1}: {modes.frequencies[k]:.2f} Hz")
    return figure


def moving_mode(modes: Modes, number: int, inches: float) -> tuple[str, str]:
    """Return SVG texts of a mode, from 0: one that swings between its extremes without a script, and a still one."""
    import matplotlib

    shape = drawable_mode(modes, number)
    picture = RobotFigure(modes.model.configuration, shape, scale=0.6)
    texts = []
    with figure_style(), matplotlib.rc_context({"path.simplify": False}):
        for sign in (1.0, -1.0):
            figure = new_figure(inches * picture.aspect, inches)
            picture.axes = figure.add_subplot()
            picture.mode(shape, AMPLITUDE, sign)
            picture.frame(ALONE)
            texts.append(rounded_places(svg_of(figure), 1))
    ends = re.finditer(ELEMENT, texts[1])

    def moved(match: re.Match[str]) -> str:
        end, parts = next(ends)[0], []
        for name in ("d", "x", "y"):
            here, there = (re.search(rf' {name}="([^"]*)"', tag) for tag in (match[0], end))
            if here is not None and there is not None and here[1] != there[1]:
                parts.append(f'<animate attributeName="{name}" values="{here[1]};{there[1]};{here[1]}" {SWING}/>')
        return f"{match[0][:-2]}>{''.join(parts)}</{match[1]}>" if parts else match[0]

    return re.sub(ELEMENT, moved, texts[0]), texts[0]


def drawable_mode(modes: Modes, number: int) -> ModeShape:
    """Return how the points of the robot move in a mode, from 0; a robot without extent is refused."""
    robot = modes.model.robot
    shape = mode_shape_points(robot, modes.model.configuration, modes.shapes[:, number])
    if not len(shape.edges) or not shape.size > 0:
        raise InputError(
            f"the robot '{robot.name}' has no extent: its joints and points coincide",
            key="modes",
            hint="add a [[point]] away from the joints",
        )
    return shape


class RobotFigure:
    """A robot in the axes of a figure, seen from above if it and its modes stay in the plane x-y."""

    axes: Any  # in which it draws

    def __init__(self, configuration: Configuration, *shapes: ModeShape, scale: float = 1.0) -> None:
        self.configuration, self.robot = configuration, configuration.robot
        self.bones: Skeleton = skeleton(self.robot)
        self.rest = self.bones.points(configuration.q, configuration.at)
        body = self.bones.body
        self.size = extent(self.rest[body]) or 1.0
        heights = [self.rest[:, 2] / self.size, *(shape.shape[:, 2] for shape in shapes)]
        self.plan = self.robot.tree.planar or all(np.ptp(height[body]) < FLAT for height in heights)
        self.rows = view_rows(0.0, 90.0) if self.plan else view_rows(TURN, TILT)
        axes_points = {axis for mark in self.bones.marks for axis in mark.axes}
        self.solid = [k for k in range(len(self.rest)) if k not in axes_points]
        flat = self.rest[self.solid] @ self.rows[:2].T
        margin = AMPLITUDE * self.size if shapes else 0.05 * self.size
        self.low, self.high = flat.min(axis=0) - margin, flat.max(axis=0) + margin
        self.aspect = float((self.high - self.low)[1] / (self.high - self.low)[0])
        depth = self.rest[self.solid] @ self.rows[2]
        self.near, self.far = float(depth.max()), float(depth.min())
        self.scale = scale
        self.chains = _chains(self.bones)

    def mode(self, shape: ModeShape, amplitude: float = AMPLITUDE, sign: float = 1.0) -> None:
        """Draw the undeformed robot in grey and the deformed one over it."""
        gap = np.full((1, 3), np.nan)
        chains = [self.rest[chain] for chain, kind in self.chains if kind != "rail"]
        chains += [self.rest[[*face.corners, face.corners[0]]] for face in self.bones.faces]
        self._line(np.concatenate([part for chain in chains for part in (chain, gap)]), GHOST, 1.6, 0.5)
        self.body(self.rest + sign * amplitude * shape.size * shape.shape)

    def body(self, points: Array | None = None) -> None:
        """Draw bodies and joints with their points at these places."""
        points = self.rest if points is None else points
        for face in self.bones.faces:
            self._face(points, face)
        for chain, kind in self.chains:
            self._bar(points, chain, kind)
        for mark in self.bones.marks:
            self._mark(mark, points)

    def labels(self, marked: Mapping[str, Place]) -> None:
        """Write the names of frames and couplings beside them, each where it covers least."""
        places = {name: self.configuration.at.of(place)[1] for name, place in marked.items()}
        for place in places.values():
            self._stamp(self._flat(place), _disc(2.2), LINES[3], 9.0)
        places |= coupling_labels(self.robot, self.configuration.q)
        point = max(self.high - self.low) / (50.0 * self.axes.figure.get_figwidth())  # of the figure, about, in metres
        taken = [self._flat(self.rest[mark.point]) for mark in self.bones.marks]
        for name, place in places.items():
            at, half = self._flat(place), np.array([2.4 * len(name), 5.0]) * point
            spots = [at + (half + far * point) * np.array(side) for far in (4.0, 14.0) for side in SIDES]
            spots = [
                spot for spot in spots if (spot - half > self.low).all() and (spot + half < self.high).all()
            ] or spots
            gaps = [min(np.abs((spot - other) / (half + 6 * point)).max() for other in taken) for spot in spots]
            clear = [gap >= 1 for gap in gaps]
            best = spots[clear.index(True) if any(clear) else int(np.argmax(gaps))]
            self.axes.text(*best, name, fontsize=7.5, ha="center", va="center", zorder=10)
            taken += [best + half * np.array([x, 0.0]) for x in (-1.0, -0.5, 0.0, 0.5, 1.0)]

    def frame(self, mode: int | None = None) -> None:
        """Set equal scales, and show lengths: axes of a plan, else a triad; of modes the first one has the triad."""
        axes, low, high = self.axes, self.low.copy(), self.high
        axes.set_aspect("equal", adjustable="box")
        axes.grid(visible=False)
        if self.plan and mode is None:
            axes.set_xlabel("x (m)")
            axes.set_ylabel("y (m)")
            axes.locator_params(nbins=5)
        else:
            axes.axis("off")
            length = _round_below((0.2 if mode is None else 0.15) * float(max(high - low)))
            tips = length * self.rows[:2].T
            origin = np.array([low[0] - 0.25 * length - max(0.0, float(tips[:, 0].max())), low[1] + 0.3 * length])
            if mode is not None:  # below, so that all panels have one scale
                origin = low + np.array([0.3 * length, -0.2 * length - float(tips[:, 1].max())])
            if mode != ALONE:
                low = np.minimum(low, origin - [0.6 * length * (mode is None), 0.65 * length])
            for name, tip in zip("xyz", tips, strict=True):
                if not mode and np.linalg.norm(tip) > 0.1 * length:
                    axes.annotate("", origin + tip, origin, arrowprops={"arrowstyle": "-|>", "color": INK, "lw": 0.8,
                                  "shrinkA": 0, "shrinkB": 0, "mutation_scale": 6})  # fmt: skip
                    axes.text(*(origin + 1.25 * tip), name, ha="center", va="center", fontsize=7.5)
            if not mode:
                axes.text(*(origin - [0.0, 0.3 * length]), f"{length:g} m", ha="center", va="top", fontsize=7.5)
        axes.set_xlim(low[0], high[0])
        axes.set_ylim(low[1], high[1])

    def legend(self) -> None:
        """Explain the symbols that occur, below the robot."""
        from matplotlib.lines import Line2D

        kinds = {mark.kind for mark in self.bones.marks} | {edge.kind for edge in self.bones.edges}
        kinds |= {"motor"} if any(mark.motor for mark in self.bones.marks) else set()
        handles = [Line2D([], [], color=FILLS["beam"][0], lw=4, label="flexible link")] if "beam" in kinds else []
        for kind, name in NAMES.items():
            if kind in kinds:
                path = _disc(4.0) if kind == "motor" else _symbol(kind, 0.0)
                face = MOTOR if kind == "motor" else LINES[0] if kind == "end" else PASSIVE
                handles.append(Line2D([], [], label=name, **_marker(path, face)))
        columns = min(len(handles), 3 if self.axes.figure.get_figwidth() < 5 else 5)
        self.axes.figure.legend(
            handles=handles, loc="outside lower center", ncols=columns, handletextpad=0.4, columnspacing=1.4
        )

    def _flat(self, points: Array) -> Array:
        return points @ self.rows[:2].T

    def _depth(self, points: list[int], layer: float) -> float:
        """Return the drawing order of something: by its undeformed distance in space, by its layer in the plane."""
        if self.plan:
            return 2.0 + layer
        depth = float((self.rest[points] @ self.rows[2]).mean())
        return 2.0 + 6.0 * (depth - self.far) / max(self.near - self.far, 1e-9) + 0.8 * layer

    def _line(self, points: Array, colour: str, width: float, order: float, **style: Any) -> None:
        self.axes.plot(
            *self._flat(points).T, color=colour, linewidth=width * self.scale, zorder=order, clip_on=False, **style
        )

    def _face(self, points: Array, face: Face) -> None:
        fill, edge = FILLS["platform" if face.kind == "plane" and face.link != ON_GROUND else face.kind]
        corners = list(face.corners)
        style = {"linewidth": self.scale, "joinstyle": "round", "alpha": 0.85, "clip_on": False}
        order = self._depth(corners, -0.5)
        self.axes.fill(*self._flat(points[corners]).T, facecolor=fill, edgecolor=edge, zorder=order, **style)

    def _bar(self, points: Array, chain: list[int], kind: str) -> None:
        """Draw a body as a filled bar with an edge, elements as thin lines, rails with hatching."""
        order = self._depth(chain, 0.0 if kind == "beam" else -0.6)  # rigid bodies do not hide elastic ones
        points = points[chain]
        if kind == "rail":
            from matplotlib.patheffects import withTickedStroke

            ends = self._flat(points)
            side = 135 if (ends[1] - ends[0])[0] > 0 else -135
            effects = [withTickedStroke(spacing=4, length=0.8, angle=side, linewidth=0.7)]
            self._line(points, GROUND, 1.4, order - 0.2, path_effects=effects)
        elif kind in STYLES:
            self._line(points, INK, 1.0, order, linestyle=STYLES[kind])
        else:
            face, edge = FILLS[kind]
            caps = {"solid_capstyle": "round", "solid_joinstyle": "round"}
            self._line(points, edge, THICK[kind] + 1.4, order, **caps)
            self._line(points, face, THICK[kind], order + 0.01, **caps)

    def _mark(self, mark: Any, points: Array) -> None:
        """Draw the symbol of a joint, turned along the projection of its axes."""
        point = points[mark.point]
        at, order = self._flat(point), self._depth([mark.point], 1.0)
        arms = [self._flat(points[axis]) - at for axis in mark.axes]
        fill = MOTOR if mark.motor else PASSIVE
        if mark.kind == "ground":
            below = at[1] < (self.low + self.high)[1] / 2
            self._stamp(at, _base(1.0 if below else -1.0), GROUND, order - 0.6)
            return
        if mark.kind in ("revolute", "universal") and not self.plan:
            true = 0.05 * self.robot.tree.length  # length of an axis of a mark
            for arm in arms:
                self._stamp(at, _pin(arm, float(np.linalg.norm(arm)) / true), fill, order)
            return
        arm = arms[0] if arms else np.array([1.0, 0.0])
        face = LINES[0] if mark.kind == "end" else fill
        self._stamp(at, _symbol(mark.kind, float(np.arctan2(arm[1], arm[0]))), face, order + 0.5 * (mark.kind == "end"))

    def _stamp(self, at: Array, path: Path, colour: str, order: float) -> None:
        self.axes.plot(*at, **_marker(path, colour, self.scale), zorder=order, clip_on=False)


SIDES = ((0.0, 1.0), (1.0, 0.5), (-1.0, 0.5), (0.0, -1.0), (1.0, -0.5), (-1.0, -0.5), (1.0, 1.0), (-1.0, 1.0),
         (1.0, -1.0), (-1.0, -1.0))  # fmt: skip


def view_rows(turn: float, tilt: float) -> Array:
    """Return rows to the right, up and towards the reader of a view turned about z and raised by a tilt (degrees)."""
    c, s = np.cos(np.radians(turn)), np.sin(np.radians(turn))
    up, along = np.sin(np.radians(tilt)), np.cos(np.radians(tilt))
    return np.array([[c, -s, 0.0], [s * up, c * up, along], [-s * along, -c * along, up]])


def _chains(bones: Skeleton) -> list[tuple[list[int], str]]:
    """Return the points and kinds of lines: edges that follow each other are one, those of a plate are its face."""
    plates = {face.link for face in bones.faces if face.kind == "plate"}
    chains: list[tuple[list[int], Edge]] = []
    for edge in bones.edges:
        if edge.kind == "plate" and edge.link in plates:
            continue
        last = chains[-1] if chains else None
        if last is not None and (last[0][-1], *last[1][2:]) == (edge.first, *edge[2:]):
            last[0].append(edge.second)
        else:
            chains.append(([edge.first, edge.second], edge))
    return [(chain, edge.kind) for chain, edge in chains]


def _round_below(value: float) -> float:
    """Return the largest of 1, 2 and 5 times a power of ten that is not larger."""
    power = 10.0 ** np.floor(np.log10(value))
    return float(power * max(step for step in (1, 2, 5) if step * power <= value * (1 + 1e-9)))


# -- symbols: paths in points of the figure, around the joint ---------------------------------------------------------


def _extent(path: Path) -> float:
    """Return the marker size at which matplotlib draws a path in its own points."""
    return 2.0 * float(np.abs(path.vertices).max())


def _marker(path: Path, face: str, scale: float = 1.0) -> dict[str, Any]:
    """Return the style of a symbol as a marker of a line without a line."""
    return {
        "linestyle": "", "marker": path, "markersize": _extent(path) * scale, "markerfacecolor": face,
        "markeredgecolor": GROUND if face == GROUND else INK, "markeredgewidth": 0.9 * scale,
    }  # fmt: skip


def _strokes(*lines: Sequence[Sequence[float]]) -> Path:
    """Return a path of separate lines."""
    from matplotlib.path import Path

    codes = [code for line in lines for code in (Path.MOVETO, *[Path.LINETO] * (len(line) - 1))]
    return Path(np.array([point for line in lines for point in line], dtype=float), codes)


def _disc(radius: float) -> Path:
    from matplotlib.path import Path

    return Path.circle((0.0, 0.0), radius)


def _base(side: float) -> Path:
    """Return a bearing block on hatched ground, below (1) or above (-1)."""
    ground = -8.5 * side
    hatching = [[(x, ground), (x - 2.6, ground - 3.0 * side)] for x in (-5.0, -2.0, 1.0, 4.0, 7.0)]
    return _strokes([(0, 0), (-4.5, ground), (4.5, ground), (0, 0)], [(-7.5, ground), (7.5, ground)], *hatching)


def _rectangle(half_length: float, half_width: float, angle: float) -> Path:
    x, y = half_length, half_width
    corners = np.array([[x, y], [-x, y], [-x, -y], [x, -y], [x, y]])
    c, s = np.cos(angle), np.sin(angle)
    return _strokes(corners @ np.array([[c, s], [-s, c]]))


def _pin(arm: Array, share: float) -> Path:
    """Return a revolute joint in space: a pin along its axis, a disc where the axis points at the reader."""
    return _disc(3.2) if share < 0.35 else _rectangle(7.0 * share, 2.6, float(np.arctan2(arm[1], arm[0])))


def _symbol(kind: str, angle: float) -> Path:
    """Return the symbol of a joint in a plan or in the legend."""
    from matplotlib.path import Path

    match kind:
        case "prismatic":
            return _rectangle(7.0, 4.4, angle)
        case "universal":
            return Path.make_compound_path(_rectangle(6.5, 2.2, angle + 0.5), _rectangle(6.5, 2.2, angle + 2.1))
        case "spherical":
            return Path.make_compound_path(_disc(4.4), _disc(1.8))
        case "clamp":
            return _rectangle(1.5, 6.0, angle)
        case "end":
            return Path.make_compound_path(_strokes([(-6, 0), (6, 0)], [(0, -6), (0, 6)]), _disc(3.0))
        case _:
            return _disc(3.6)
