"""HTML representations of results.

Figures of robots are SVG inside the page, static or moving in a mode without a script. Lines without a colour have that
of the surrounding text, so they are visible on light and dark pages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from parflex.codegen.model import Model
from parflex.control.control import Controlled
from parflex.control.study import Study
from parflex.design.grid import FrequencyMap
from parflex.diagnostics import with_code
from parflex.dynamics.dynamics import Result
from parflex.errors import ParflexError
from parflex.formulations.explain import Explanation
from parflex.maps.continuation import OK, OUTSIDE, SINGULAR, UNREACHABLE
from parflex.robot.configuration import Configuration
from parflex.robot.limits import limit_warnings
from parflex.robot.load import load
from parflex.robot.robot import Robot, effort_units, freedoms_of
from parflex.simulation.runs import Run
from parflex.spatial.rotations import vector_from_rotation
from parflex.statics.equilibrium import Equilibrium
from parflex.statics.modes import Modes, energy_shares
from parflex.statics.stiffness import Deflection, Stiffness
from parflex.view.html import any_page, card, embedded_figure, matrix, names, notes, rounded, side_by_side, table
from parflex.view.map_figure import draw_map
from parflex.view.robot_figure import angles_of_view, view
from parflex.view.run_figure import draw_run
from parflex.view.skeleton import ModeShape, mode_shape_points, outline, skeleton
from parflex.view.study_figure import draw_study

MOTIONS = ("x", "y", "z", "rx", "ry", "rz")

TURNS = ("rx", "ry", "rz", "theta")

PICTURES = 6  # modes that are shown moving

MOST_LETTERS = 150_000  # of all pictures together: a notebook is a file that is read whole

ERRORS = {"ise": "m² s", "iae": "m s", "itae": "m s²", "max": "m"}

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


def page_of(record: Any) -> str | None:
    """Return the HTML of a record: one file without scripts or external resources; by default a table of its fields."""
    page = globals().get(f"{type(record).__name__.lower()}_page", any_page)
    return page(record)


def result_page(result: Result) -> str:
    """Efforts with units, the acceleration of the end effector, reactions, warnings."""
    units = effort_units(result.robot)
    efforts = table([(n, rounded(v), units.get(n, "")) for n, v in result.efforts.items()], ["motor", "effort", ""])
    a = result.acceleration_of()
    labels = [f"a{axis}" for axis in "xyz"] + [f"al{axis}" for axis in "xyz"]
    end = result.robot.tree.end_effector
    shown = ["m/s²"] * 3 + ["rad/s²"] * 3
    moved = table([(w, rounded(v), u) for w, v, u in zip(labels, a, shown, strict=True)], [end, "acceleration", ""])
    accelerations = table(
        [(n, rounded(v)) for n, v in result.computed_accelerations().items()], ["acceleration", "m/s² or rad/s²"]
    )
    title = f"{result.robot.name}: {'accelerations' if result.direct else 'efforts'}"
    parts = [accelerations] * bool(result.direct) + [efforts, moved, _reactions(result), _couplings(result)]
    return card(title, side_by_side(*parts), notes(result.warnings))


def _couplings(result: Result) -> str:
    couplings = (result.reactions or {}).get("couplings", {})
    rows = [
        (name, rounded(coupling["effort"]), "undetermined" if coupling["undetermined"] else "")
        for name, coupling in couplings.items()
    ]
    return table(rows, ["coupling", "effort N or N m", ""])


def _reactions(result: Result) -> str:
    rows, reactions = [], result.reactions or {}
    for name, reaction in {**reactions.get("joints", {}), **reactions.get("closures", {})}.items():
        size = [rounded(np.linalg.norm(reaction.get(key, ()))) for key in ("force", "moment")]
        rows.append((name, *size, "undetermined" if reaction.get("undetermined") else ""))
    return table(rows, ["reaction in", "force N", "moment N m", ""])


def equilibrium_page(equilibrium: Equilibrium) -> str:
    """How far the end effector and others moved from where they started."""
    tree = equilibrium.robot.tree
    (R0, P0), (R, P) = (c.at.of(tree.place(tree.end_effector)) for c in (equilibrium.start, equilibrium.configuration))
    rows = [*zip("xyz", (P - P0).tolist(), ["m"] * 3, strict=True)]
    rows += [*zip(MOTIONS[3:], vector_from_rotation(R @ R0.T).tolist(), ["rad"] * 3, strict=True)]
    words = table([("steps", equilibrium.steps), ("loading", equilibrium.loading._told())])
    moved = table(rows, [tree.end_effector, "moved by", ""])
    return card(
        f"{equilibrium.robot.name}: equilibrium", side_by_side(robot_picture(equilibrium.configuration), moved, words)
    )


def stiffness_page(stiffness: Stiffness) -> str:
    """Compliance and stiffness of a frame."""
    words = list(stiffness.directions)
    units = [f"{word} ({'rad' if word in TURNS else 'm'})" for word in words]
    loads = [f"{'m' if word in TURNS else 'f'}{word[-1] if word != 'theta' else 'z'}" for word in words]
    parts = [f"<div>compliance, per N and N m</div>{matrix(stiffness.compliance, units, loads)}"]
    if stiffness.stiffness is not None:
        parts.append(f"<div>stiffness, N and N m</div>{matrix(stiffness.stiffness, loads, units)}")
    rigid = [f"rigid: {names(stiffness.rigid)}"] if stiffness.rigid else []
    return card(f"stiffness of '{stiffness.frame}'", side_by_side(*parts), notes([*rigid, *stiffness.model.warnings]))


def deflection_page(deflection: Deflection) -> str:
    """Motion of frames, efforts that hold the robot, the largest section forces."""
    robot = deflection.configuration.robot
    units = effort_units(robot)
    moved = table([(name, *map(float, d)) for name, d in deflection.frames.items()], ["frame", *MOTIONS])
    efforts = table([(n, float(v), units.get(n, "")) for n, v in deflection.efforts.items()], ["motor", "effort", ""])
    beams = [
        (section["element"], *map(rounded, section["root"].values()))
        for section in deflection.sections
        if "root" in section
    ]
    forces = list(deflection.sections[0].get("root", {})) if deflection.sections else []
    return card(
        f"{robot.name}: deflection (m, rad)",
        side_by_side(moved, efforts),
        side_by_side(table(beams, ["beam, at its root", *forces])),
        notes(deflection.warnings),
    )


def model_page(model: Model) -> str:
    """Inputs and outputs with names and units, operators, what it was made from."""
    about: dict[str, Any] = model.about
    rows = [(s["direction"], s["group"], s["name"], s["unit"]) for s in model.signals]
    counts = [(word, count) for word, count in model.counts.items() if count]
    made = [(word, names(value) if isinstance(value, list) else str(value)) for word, value in about.items() if value]
    made = [row for row in made if row[0] in ("robot", "model", "form", "coordinates", "independent", "without")]
    values = table([(n, float(v)) for n, v in model.parameters.items()], ["parameter", "value"])
    signals = table(rows, ["", "group", "name", "unit"])
    return card(f"model {model.name}", side_by_side(signals, table(made), table(counts, ["operators", ""]), values))


def explanation_page(explanation: Explanation) -> str:
    """The sections, of which the first is open."""
    parts = []
    for k, section in enumerate(explanation.sections):
        text = "".join(f"<p>{escape(paragraph)}</p>" for paragraph in section.text)
        parts.append(f"<details{' open' * (k == 0)}><summary>{escape(section.title)}</summary>{text}</details>")
    return card(f"{explanation.name}: {explanation.title}", "".join(parts), notes(explanation.warnings))


def robot_page(robot: Robot) -> str:
    """A robot: picture at home, freedoms, motors with units, flexible bodies, what can be chosen."""
    here = Configuration(robot, robot.home)
    units, file = effort_units(robot), robot.description
    motors = [(name, *_at_home(robot, name), units[name]) for name in robot.actuated_names]
    facts = [
        ("freedoms", freedoms_of(robot).replace(" freedoms", "").replace(" freedom", "")),
        ("motion", "planar" if robot.tree.planar else "spatial"),
        ("end effector", robot.tree.end_effector),
        ("flexible bodies", names(flexible_bodies(robot)) or "none: rigid"),
        ("elastic coordinates", str(len(robot.tree.elastic)) if robot.tree.elastic else ""),
        ("couplings", names([coupling.name for coupling in file.coupling])),
        ("sensors in passive joints", names(robot.sensed_names)),
        ("actuation", names([robot.actuation, *(n for n in file.actuation if n != robot.actuation)])),
        ("working mode", names([robot.working_mode, *(n for n in file.working_modes if n != robot.working_mode)])),
        ("poses", names(sorted({"home", *file.poses}))),
        ("motions", names(sorted(file.motions))),
    ]
    words = table([row for row in facts if row[1]])
    motor_rows = table(motors, ["motor", "at home", "", "effort in"]) or "<div>no motors</div>"
    title = f"{robot.name}: {file.title}" if file.title else robot.name
    return card(title, side_by_side(robot_picture(here), words, motor_rows), notes(robot.warnings))


def configuration_page(configuration: Configuration) -> str:
    """A robot at a pose: picture, coordinates, how near it is to a singularity."""
    robot, tree = configuration.robot, configuration.robot.tree
    rows = [(name, rounded(value)) for name, value in zip(tree.position_names, configuration.q, strict=True)]
    condition = configuration.condition
    numbers = [("platform, motors locked", condition.platform), ("closures", condition.closures)]
    numbers += [(f"leg {name}", value) for name, value in condition.legs.items()]
    coordinates = table(rows, ["coordinate", "rad or m"])
    judged = table([(name, float(value)) for name, value in numbers], ["condition number of", ""])
    limits = [] if configuration.ignore_limits else limit_warnings(robot, configuration.q)
    return card(
        f"{robot.name} at a pose",
        side_by_side(robot_picture(configuration), coordinates, judged),
        notes([each.text for each in (*limits, *condition.diagnostics)]),
    )


def flexible_bodies(robot: Robot) -> list[str]:
    """Names of the beams and of the bodies given by modes."""
    file = robot.description
    bodies = [frame.name for frame in file.frame if frame.beam or frame.modal or frame.superelement]
    return bodies + (
        ["platform"] if file.platform is not None and (file.platform.modal or file.platform.superelement) else []
    )


def _at_home(robot: Robot, motor: str) -> tuple[float, str]:
    """Position of a motor at home, and its unit."""
    rate = list(robot.tree.rate_names).index(motor)
    link = robot.tree.links[robot.tree.link_of_rate[rate]]
    return float(robot.home[link.q.start]), link.joint.unit


def modes_page(modes: Modes) -> str:
    """Frequencies with damping ratios and where the energy is, and the lowest modes moving side by side."""
    here, robot = modes.model.configuration, modes.model.robot
    try:
        shares = energy_shares(modes)
    except (ParflexError, np.linalg.LinAlgError):
        shares = [{"kind": None, "strain": {"bodies": {}}} for _ in modes.frequencies]
    rows = [
        (k + 1, round(float(f), 4), round(100 * float(d), 4), share["kind"] or "", _largest(share["strain"]["bodies"]))
        for k, (f, d, share) in enumerate(zip(modes.frequencies, modes.damping, shares, strict=True))
    ]
    pictures: list[str] = []
    for k, shape in enumerate(modes.shapes.T[:PICTURES]):
        caption = f"mode {k + 1}: {modes.frequencies[k]:.4g} Hz"
        picture = moving_picture(mode_shape_points(robot, here, shape), here, caption)
        if len(picture) + sum(map(len, pictures)) > MOST_LETTERS:
            break
        pictures.append(f'{picture}<div style="text-align:center">{caption}</div>')
    apart = [f"without stiffness: {name}" for name in modes.free_motions]
    apart += [f"unstable: {name}" for name in modes.unstable_motions]
    head = ["mode", "Hz", "damping %", "", "most strain in"]
    return card(
        f"{robot.name}: natural frequencies",
        side_by_side(table(rows, head)),
        side_by_side(*pictures),
        notes([*apart, *modes.model.warnings]),
    )


def _largest(bodies: dict[str, float]) -> str:
    if not bodies:
        return ""
    name = max(bodies, key=lambda body: bodies[body])
    return f"{name} ({100 * bodies[name]:.0f} %)"


def run_page(run: Run) -> str:
    """Plots of the end effector, efforts and energies, and how the run went."""
    summary, settings = run.summary, run.settings
    rows = [
        ("status", run.status),
        ("rows", len(run.t)),
        ("time", f"{run.t[-1] if len(run.t) else 0.0:.5g} s"),
        ("method", f"{settings.get('method', '')}, {_step(settings)}" if settings else ""),
        ("start", summary.get("start", "")),
        ("largest stress", _stress(summary.get("largest_stress"))),
        ("energy balance error", _unit(summary.get("energy_balance_error"), "J")),
        ("largest opening of loops", _unit(summary.get("closure_error"), "m")),
        ("columns", names(list(run), 10)),
    ]
    of = str(settings.get("robot", "")) or "run"
    messages, why = run.warnings, summary.get("why")
    messages += [why] if why and not with_code(run.diagnostics, "stopped") else []
    words = table([row for row in rows if row[1] != ""])
    return card(f"{of}: run", _plots(run, _robot(of)), side_by_side(words), notes(messages))


def controlled_page(run: Controlled) -> str:
    """Plots, and the errors of the end effector."""
    errors = [(word, float(value), ERRORS.get(word, "")) for word, value in run.errors.items() if value is not None]
    law = str(run.settings.get("law", ""))
    failed = [f"{run.failure}: {run.why}"] if run.failure else []
    error_table = table(errors, ["error of the end effector", "", ""])
    return card(f"run under {law}", _plots(run, None), side_by_side(error_table), notes(failed))


def frequencymap_page(frequency_map: FrequencyMap) -> str:
    """The lowest frequency over the grid, and how many poses were reached."""
    reached = frequency_map.frequencies[frequency_map.status == OK]
    good = reached.ravel()[:: reached.shape[-1] or 1]
    rows = [
        *(
            (f"{name}", f"{axis[0]:.4g} to {axis[-1]:.4g}, {len(axis)} values")
            for name, axis in frequency_map.axes.items()
        ),
        ("poses with frequencies", frequency_map.count(OK)),
        ("unreachable", frequency_map.count(UNREACHABLE)),
        ("singular", frequency_map.count(SINGULAR)),
        ("outside joint limits", frequency_map.count(OUTSIDE)),
        ("lowest frequency", f"{good.min():.5g} to {good.max():.5g} Hz" if good.size else "none"),
    ]
    picture = embedded_figure(draw_map(frequency_map), "lowest natural frequency over the grid") if good.size else ""
    return card("frequency map", side_by_side(picture, table(rows)))


def study_page(study: Study) -> str:
    """Mean errors of the laws over how wrong the parameters are."""
    rows = []
    for row in study.summary():
        for law, errors in row["errors"].items():
            rows.append((f"{row['percentage']:g} %", law, row["compared"], *(_number(errors.get(w)) for w in ERRORS)))
    head = ["off by", "law", "compared", *(f"{word} ({unit})" for word, unit in ERRORS.items())]
    picture = embedded_figure(draw_study(study), "mean errors of each law") if study.cases else ""
    return card(f"{study.file.robot}: study, {len(study.cases)} of {study.total} cases", picture, table(rows, head))


def _plots(run: Any, robot: Robot | None) -> str:
    try:
        return embedded_figure(draw_run(run, robot=robot), "columns over time")
    except ParflexError:  # too many kinds of columns for one figure, or none: the table says what there is
        return ""


def _robot(name: str) -> Robot | None:
    """The robot of the catalogue, which tells the units of joints."""
    try:
        return load(name)
    except ParflexError:
        return None


def _number(value: Any) -> Any:
    return "" if value is None else float(value)


def _stress(most: Any) -> str:
    where = most and f"in '{most['beam']}' at {most['s']:.3g} of its length, t = {most['time']:.4g} s"
    return f"{most['value'] / 1e6:.4g} MPa {where}" if most else ""


def _step(settings: Mapping[str, Any]) -> str:
    step = settings.get("step")
    return "steps by their errors" if step is None else f"step {step:.3g} s"


def _unit(value: Any, unit: str) -> str:
    return "" if value is None else f"{value:.2e} {unit}"


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

    def sheet(self, caption: str, drawn: str) -> str:
        """The picture."""
        return (
            f'<svg width="{SIDE:g}" height="{self.height:.0f}" viewBox="0 0 {SIDE:g} {self.height:.0f}" role="img" '
            f'fill="none" stroke-linecap="round" stroke-linejoin="round"><title>{escape(caption)}</title>{drawn}</svg>'
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


def moving_picture(shape: ModeShape, configuration: Configuration, caption: str) -> str:
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
        edges = [edge for edge, edge_kind in thinned if edge_kind == kind]
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
    return area.sheet(caption, QUIET + drawn + played + stopped)


def _thinned(shape: ModeShape) -> list[tuple[tuple[int, int], str]]:
    """Lines with their kinds; of a fine mesh only as many as can be told apart."""
    lines = [((int(i), int(j)), kind) for (i, j), kind in zip(shape.edges, shape.kinds, strict=True)]
    fine = sum(kind == "plate" for _, kind in lines)
    every = -(-fine // MOST_LINES) if fine else 1
    count = -1
    thinned = []
    for line in lines:
        count += line[1] == "plate"
        if line[1] != "plate" or count % every == 0:
            thinned.append(line)
    return thinned
