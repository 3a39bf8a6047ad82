"""Small pictures of robots as SVG inside a page: at rest, or moving in a mode, without a script.

Lines that are not coloured have the colour of the text around them, so that they are seen on light and dark pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from parflex.robot.configuration import Configuration
from parflex.view.scene.projection import angles_of_view, view
from parflex.view.scene.skeleton import ModeShape, outline, skeleton

Array = np.ndarray
SIDE, MARGIN = 260.0, 14.0  # of a picture, in pixels
LEGS = ("#1f9a58", "#d9681d", "#9467bd", "#a0653c", "#8f8f1f", "#1792a6")
PLATFORM, MOTOR, BEAM = "#3f7fd0", "#e0402c", "#1f9aa2"
BENT = 0.09  # largest displacement in a moving picture, of the size of the robot
PERIOD = 1.6  # s of a moving picture, whatever the frequency
SINE = ".37 0 .63 1"  # Bezier curve that is half a period of a sine to 1 %
MOST_LINES = 250  # of a mesh: more make a page heavy and show nothing else
KINDS = {"beam": (BEAM, 2.4), "platform": (PLATFORM, 2.2), "plate": (PLATFORM, 0.6)}
QUIET = (
    "<style>@media (prefers-reduced-motion:reduce){.parflex-moving{display:none}.parflex-still{display:inline}}</style>"
)


class PictureArea:
    """Places of points in a picture."""

    def __init__(self, points: Array, rows: Array) -> None:
        flat = points @ rows.T
        low, high = flat.min(axis=0), flat.max(axis=0)
        self.rows, self.centre = rows, (low + high) / 2
        self.scale = (SIDE - 2 * MARGIN) / max(float((high - low).max()), 1e-9)
        self.height = max(float((high - low)[1]) * self.scale + 2 * MARGIN, SIDE / 3)

    def at(self, points: Array) -> Array:
        """Places of points, y downwards."""
        flat = (points @ self.rows.T - self.centre) * self.scale
        return np.stack([SIDE / 2 + flat[:, 0], self.height / 2 - flat[:, 1]], axis=1)

    def sheet(self, told: str, drawn: str) -> str:
        """The picture."""
        return (
            f'<svg width="{SIDE:g}" height="{self.height:.0f}" viewBox="0 0 {SIDE:g} {self.height:.0f}" role="img" '
            f'fill="none" stroke-linecap="round" stroke-linejoin="round"><title>{escape(told)}</title>{drawn}</svg>'
        )


def steps(xy: Array, edges: Sequence[tuple[int, int]] | Array) -> str:
    """Lines between points as the data of a path; lines that go on are written as one."""
    parts, last = [], -1
    for i, j in edges:
        start = "" if i == last else f"M{xy[i, 0]:.1f} {xy[i, 1]:.1f}"
        parts.append(f"{start}L{xy[j, 0]:.1f} {xy[j, 1]:.1f}")
        last = j
    return "".join(parts)


def robot_picture(configuration: Configuration) -> str:
    """Links in the colours of their legs, platform, motors (red), passive joints, ground and end effector."""
    robot, at = configuration.robot, configuration.at
    tree, bones = robot.tree, skeleton(robot)
    points = bones.points(configuration.q, at)
    _, tip = at.of(tree.places[tree.end_effector])
    feet = [link.position for link in tree.links if link.parent < 0 and not link.joint.moves_freely]
    area = PictureArea(np.array([*points, tip, *feet]), view(*angles_of_view(robot)))
    xy, legs = area.at(points), list(dict.fromkeys(link.leg for link in tree.links))
    drawn, meshes = [], []
    for _, part, body in bones.elastic:
        if len(body.triangles):  # the rim alone: all triangles would be a grey spot
            corners = [part.start + int(k) for k in outline(body.r0)]
            meshes.append(part)
            drawn.append(_line(xy, list(zip(corners, [*corners[1:], corners[0]], strict=True)), PLATFORM, 2.4))
    for edge in bones.edges:
        if any(part.start <= edge.first < part.stop for part in meshes):
            continue
        leg = LEGS[legs.index(tree.links[edge.link].leg) % len(LEGS)]
        colour, width = KINDS.get(edge.kind, (leg, 2.2)) if edge.kind != "beam" else (leg, 3.2)
        drawn.append(_line(xy, [(edge.first, edge.second)], colour, width))
    for foot in area.at(np.array(feet).reshape(-1, 3)):
        x, y = foot
        drawn.append(f'<path d="M{x:.1f} {y:.1f}l-7 11h14z" fill="currentColor" opacity=".45"/>')
    return area.sheet(f"{robot.name}: red motors", "".join(drawn) + _joints(configuration, area, tip))


def _line(xy: Array, edges: Sequence[tuple[int, int]], colour: str, width: float) -> str:
    return f'<path d="{steps(xy, edges)}" stroke="{colour}" stroke-width="{width:g}"/>'


def _joints(configuration: Configuration, area: PictureArea, tip: Array) -> str:
    """Motors, passive joints and closures, and the end effector."""
    robot, at = configuration.robot, configuration.at
    motors = {robot.tree.link_of_rate[k] for k in robot.actuated}
    passive: list[Array] = []
    active: list[Array] = []
    for j, link in enumerate(robot.tree.links):
        if link.v.stop > link.v.start and not link.joint.moves_freely:
            slid = link.joint.one_axis and link.joint.unit == "m"
            root = at.position[j]
            root = root - at.rotation[j][:, link.joint.axis] * configuration.q[link.q.start] if slid else root
            (active if j in motors else passive).append(root)
    passive += [at.of(loop.second)[1] for loop in robot.closures.loops]
    dots = [
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r}" fill="{fill}" stroke="currentColor"/>'
        for places, r, fill in ((passive, 2.6, "#fff"), (active, 4.2, MOTOR))
        for x, y in area.at(np.array(places).reshape(-1, 3))
    ]
    x, y = area.at(tip[None])[0]
    cross = f'<path d="M{x - 5:.1f} {y - 5:.1f}l10 10m0 -10l-10 10" stroke="{PLATFORM}" stroke-width="2"/>'
    return "".join(dots) + cross


def moving_picture(shape: ModeShape, configuration: Configuration, told: str) -> str:
    """A mode that swings between its extremes; grey is the robot at rest."""
    reach = BENT * shape.size * shape.shape
    rows = view(*angles_of_view(configuration.robot))
    area = PictureArea(np.concatenate([shape.points + reach, shape.points - reach]), rows)
    rest, out, back = (area.at(shape.points + sign * reach) for sign in (0.0, 1.0, -1.0))
    thinned = _thinned(shape)
    firm = [edge for edge, kind in thinned if kind != "plate"]
    drawn = f'<path d="{steps(rest, firm)}" stroke="currentColor" opacity=".3"/>'
    moving, still = [], []
    for kind in dict.fromkeys(kind for _, kind in thinned):
        edges = [edge for edge, own in thinned if own == kind]
        colour, width = KINDS.get(kind, ("currentColor", 2.0))
        first, second = steps(out, edges), steps(back, edges)
        pen = f'stroke="{colour}" stroke-width="{width:g}"'
        swing = (
            f'<animate attributeName="d" dur="{PERIOD}s" repeatCount="indefinite" calcMode="spline" keyTimes="0;.5;1" '
            f'keySplines="{SINE};{SINE}" values="{first};{second};{first}"/>'
        )
        moving.append(f'<path d="{first}" {pen}>{swing}</path>')
        still.append(f'<path d="{first}" {pen}/>')
    played = f'<g class="parflex-moving">{"".join(moving)}</g>'
    stopped = f'<g class="parflex-still" display="none">{"".join(still)}</g>'
    return area.sheet(told, QUIET + drawn + played + stopped)


def _thinned(shape: ModeShape) -> list[tuple[tuple[int, int], str]]:
    """Lines with their kinds; of a fine mesh only as many as can be told apart."""
    lines = [((int(i), int(j)), kind) for (i, j), kind in zip(shape.edges, shape.kinds, strict=True)]
    fine = sum(kind == "plate" for _, kind in lines)
    every = -(-fine // MOST_LINES) if fine else 1
    count = -1
    kept = []
    for line in lines:
        count += line[1] == "plate"
        if line[1] != "plate" or count % every == 0:
            kept.append(line)
    return kept
