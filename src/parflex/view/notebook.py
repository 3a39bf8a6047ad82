"""HTML representations of results; figures are SVG inside the page, modes move without a script."""

from __future__ import annotations

import re
from collections.abc import Mapping
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
from parflex.view.html import (
    any_page,
    card,
    embedded_figure,
    embedded_svg,
    matrix,
    names,
    notes,
    rounded,
    side_by_side,
    table,
)
from parflex.view.map_figure import draw_map
from parflex.view.robot_figure import draw, mode_picture
from parflex.view.run_figure import draw_run
from parflex.view.study_figure import draw_study

MOTIONS = ("x", "y", "z", "rx", "ry", "rz")

TURNS = ("rx", "ry", "rz", "theta")

PICTURES = 6  # modes that are shown moving

MOST_LETTERS = 300_000  # of all pictures together: a notebook is a file that is read whole

ERRORS = {"ise": "m² s", "iae": "m s", "itae": "m s²", "max": "m"}

Array = np.ndarray

INCHES = 2.6  # width of a moving picture

# A period of 1.6 s, whatever the frequency; the Bezier curve is half a period of a sine to 1 %
SWING = 'dur="1.6s" repeatCount="indefinite" calcMode="spline" keyTimes="0;.5;1" keySplines=".37 0 .63 1;.37 0 .63 1"'

ELEMENT = r"<(path|use) (?!id=)[^>]*/>"  # of the SVG of matplotlib, without definitions


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
    robot = modes.model.robot
    try:
        shares = energy_shares(modes)
    except (ParflexError, np.linalg.LinAlgError):
        shares = [{"kind": None, "strain": {"bodies": {}}} for _ in modes.frequencies]
    rows = [
        (k + 1, round(float(f), 4), round(100 * float(d), 4), share["kind"] or "", _largest(share["strain"]["bodies"]))
        for k, (f, d, share) in enumerate(zip(modes.frequencies, modes.damping, shares, strict=True))
    ]
    pictures: list[str] = []
    for k, frequency in enumerate(modes.frequencies[:PICTURES]):
        caption = f"mode {k + 1}: {frequency:.4g} Hz"
        picture = moving_picture(modes, k, caption)
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


def robot_picture(configuration: Configuration) -> str:
    """Return the figure of a robot at a pose."""
    return embedded_figure(draw(configuration.robot, configuration, width="column"), configuration.robot.name)


def moving_picture(modes: Modes, number: int, caption: str) -> str:
    """Return a mode, from 0, that swings between its extremes without a script; grey is the undeformed robot."""
    first, second = mode_picture(modes, number, INCHES, (1.0, -1.0))
    return embedded_svg(swinging(first, second), caption, first, f"{96 * INCHES:.0f}px")


def swinging(first: str, second: str) -> str:
    """Return an SVG whose lines and symbols move between their places in two SVGs of the same elements."""
    ends = re.finditer(ELEMENT, second)

    def moved(match: re.Match[str]) -> str:
        end, parts = next(ends)[0], []
        for name in ("d", "x", "y"):
            here, there = (re.search(rf' {name}="([^"]*)"', tag) for tag in (match[0], end))
            if here is not None and there is not None and here[1] != there[1]:
                parts.append(f'<animate attributeName="{name}" values="{here[1]};{there[1]};{here[1]}" {SWING}/>')
        return f"{match[0][:-2]}>{''.join(parts)}</{match[1]}>" if parts else match[0]

    return re.sub(ELEMENT, moved, first)
