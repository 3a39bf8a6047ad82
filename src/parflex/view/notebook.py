"""HTML representations of results; figures are SVG inside the page, modes move without a script."""

from __future__ import annotations

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
from parflex.records import name_list
from parflex.robot.configuration import Configuration
from parflex.robot.limits import limit_warnings
from parflex.robot.load import load
from parflex.robot.robot import Robot, effort_units, freedoms_of
from parflex.simulation.runs import Run
from parflex.spatial.rotations import vector_from_rotation
from parflex.statics.equilibrium import Equilibrium
from parflex.statics.modes import Modes, energy_shares
from parflex.statics.stiffness import Deflection, Stiffness
from parflex.view.html import any_page, card, embedded_figure, embedded_svg, matrix, notes, rounded, side_by_side, table
from parflex.view.map_figure import draw_map
from parflex.view.robot_figure import draw, moving_mode
from parflex.view.run_figure import draw_run
from parflex.view.study_figure import draw_study

MOTIONS = ("x", "y", "z", "rx", "ry", "rz")
MOST_NAMES = 12
PICTURES = 6  # modes that are shown moving
MOST_LETTERS = 300_000  # of all pictures together: a notebook is a file that is read whole
INCHES = 2.6  # width of a moving picture
ERRORS = {"ise": "m² s", "iae": "m s", "itae": "m s²", "max": "m"}


def page_of(record: Any) -> str | None:
    """Return the HTML of a record: one file without scripts or external resources; by default a table of its fields."""
    page = globals().get(f"{type(record).__name__.lower()}_page", any_page)
    return page(record)


def robot_page(robot: Robot) -> str:
    """Return a robot at home: picture, degrees of freedom, motors with units, flexible bodies, options."""
    units, file, tree = effort_units(robot), robot.description, robot.tree
    motors = []
    for rate, name in zip(robot.actuated, robot.actuated_names, strict=True):
        link = tree.links[tree.link_of_rate[rate]]
        motors.append((name, float(robot.home[link.q.start]), link.joint.unit, units[name]))
    flexible = [frame.name for frame in file.frame if frame.beam or frame.modal or frame.superelement]
    flexible += ["platform"] if file.platform and (file.platform.modal or file.platform.superelement) else []
    facts = {
        "degrees of freedom": freedoms_of(robot).partition(" ")[0],
        "motion": "planar" if tree.planar else "spatial",
        "end effector": tree.end_effector,
        "flexible bodies": name_list(flexible, MOST_NAMES) or "none: rigid",
        "elastic coordinates": str(len(tree.elastic) or ""),
        "couplings": _names([coupling.name for coupling in file.coupling]),
        "sensors in passive joints": _names(robot.sensed_names),
        "actuation": _names([robot.actuation, *file.actuation]),
        "working mode": _names([robot.working_mode, *file.working_modes]),
        "poses": _names(sorted({"home", *file.poses})),
        "motions": _names(sorted(file.motions)),
    }
    motor_rows = table(motors, ["motor", "at home", "", "effort in"]) or "<div>no motors</div>"
    picture = robot_picture(Configuration(robot, robot.home))
    title = f"{robot.name}: {file.title}" if file.title else robot.name
    return card(title, side_by_side(picture, _facts(facts), motor_rows), notes(robot.warnings))


def configuration_page(configuration: Configuration) -> str:
    """Return a robot at a pose: picture, coordinates, condition numbers."""
    robot, condition = configuration.robot, configuration.condition
    rows = [(name, rounded(q)) for name, q in zip(robot.tree.position_names, configuration.q, strict=True)]
    numbers = {"platform, motors locked": condition.platform, "closures": condition.closures}
    numbers |= {f"leg {name}": value for name, value in condition.legs.items()}
    conditions = table([(name, float(value)) for name, value in numbers.items()], ["condition number of", ""])
    limits = [] if configuration.ignore_limits else limit_warnings(robot, configuration.q)
    return card(
        f"{robot.name} at a pose",
        side_by_side(robot_picture(configuration), table(rows, ["coordinate", "rad or m"]), conditions),
        notes([each.text for each in (*limits, *condition.diagnostics)]),
    )


def result_page(result: Result) -> str:
    """Return efforts with units, the acceleration of the end effector, reactions and warnings."""
    units, reactions = effort_units(result.robot), result.reactions or {}
    efforts = [(name, rounded(value), units.get(name, "")) for name, value in result.efforts.items()]
    labels = {f"{word}{axis}": unit for word, unit in (("a", "m/s²"), ("al", "rad/s²")) for axis in "xyz"}
    moved = [(word, rounded(a), u) for (word, u), a in zip(labels.items(), result.acceleration_of(), strict=True)]
    accelerations = [(name, rounded(value)) for name, value in result.computed_accelerations().items()]
    joints = [
        (name, *(rounded(np.linalg.norm(reaction.get(key, ()))) for key in ("force", "moment")), _unique(reaction))
        for name, reaction in {**reactions.get("joints", {}), **reactions.get("closures", {})}.items()
    ]
    couplings = [
        (name, rounded(reaction["effort"]), _unique(reaction))
        for name, reaction in reactions.get("couplings", {}).items()
    ]
    parts = [
        table(accelerations, ["acceleration", "m/s² or rad/s²"]) if result.direct else "",
        table(efforts, ["motor", "effort", ""]),
        table(moved, [result.robot.tree.end_effector, "acceleration", ""]),
        table(joints, ["reaction in", "force N", "moment N m", ""]),
        table(couplings, ["coupling", "effort N or N m", ""]),
    ]
    title = f"{result.robot.name}: {'accelerations' if result.direct else 'efforts'}"
    return card(title, side_by_side(*parts), notes(result.warnings))


def _unique(reaction: Mapping[str, Any]) -> str:
    return "undetermined" if reaction.get("undetermined") else ""


def equilibrium_page(equilibrium: Equilibrium) -> str:
    """Return the displacement of the end effector from its start."""
    tree = equilibrium.robot.tree
    (R0, P0), (R, P) = (c.at.of(tree.place(tree.end_effector)) for c in (equilibrium.start, equilibrium.configuration))
    moved = [*map(float, P - P0), *map(float, vector_from_rotation(R @ R0.T))]
    rows = list(zip(MOTIONS, moved, ["m"] * 3 + ["rad"] * 3, strict=True))
    facts = {"steps": equilibrium.steps, "loading": equilibrium.loading._told()}
    picture = robot_picture(equilibrium.configuration)
    moves = table(rows, [tree.end_effector, "moved by", ""])
    return card(f"{equilibrium.robot.name}: equilibrium", side_by_side(picture, moves, _facts(facts)))


def stiffness_page(stiffness: Stiffness) -> str:
    """Return compliance and stiffness of a frame."""
    words = list(stiffness.directions)
    rotates = [word.startswith(("r", "theta")) for word in words]
    units = [f"{word} ({'rad' if rotation else 'm'})" for word, rotation in zip(words, rotates, strict=True)]
    loads = [
        f"{'m' if rotation else 'f'}{word[-1] if word != 'theta' else 'z'}"
        for word, rotation in zip(words, rotates, strict=True)
    ]
    parts = [f"<div>compliance, per N and N m</div>{matrix(stiffness.compliance, units, loads)}"]
    if stiffness.stiffness is not None:
        parts.append(f"<div>stiffness, N and N m</div>{matrix(stiffness.stiffness, loads, units)}")
    rigid = [f"rigid: {_names(stiffness.rigid)}"] if stiffness.rigid else []
    return card(f"stiffness of '{stiffness.frame}'", side_by_side(*parts), notes([*rigid, *stiffness.model.warnings]))


def deflection_page(deflection: Deflection) -> str:
    """Return motions of frames, efforts that hold the robot, and section forces at the roots of beams."""
    robot = deflection.configuration.robot
    units, roots = (
        effort_units(robot),
        {part["element"]: part["root"] for part in deflection.sections if "root" in part},
    )
    moved = table([(name, *map(float, d)) for name, d in deflection.frames.items()], ["frame", *MOTIONS])
    efforts = table([(n, float(v), units.get(n, "")) for n, v in deflection.efforts.items()], ["motor", "effort", ""])
    beams = [(name, *map(rounded, root.values())) for name, root in roots.items()]
    forces = table(beams, ["beam, at its root", *next(iter(roots.values()), ())])
    title = f"{robot.name}: deflection (m, rad)"
    return card(title, side_by_side(moved, efforts), side_by_side(forces), notes(deflection.warnings))


def model_page(model: Model) -> str:
    """Return inputs and outputs with units, operators, and the options of a model."""
    rows = [(s["direction"], s["group"], s["name"], s["unit"]) for s in model.signals]
    words = ("robot", "model", "form", "coordinates", "independent", "without")
    options = {word: model.about[word] for word in words if model.about.get(word)}
    made = {word: _names(value) if isinstance(value, list) else str(value) for word, value in options.items()}
    counts = [(word, count) for word, count in model.counts.items() if count]
    values = table([(n, float(v)) for n, v in model.parameters.items()], ["parameter", "value"])
    signals = table(rows, ["", "group", "name", "unit"])
    return card(f"model {model.name}", side_by_side(signals, _facts(made), table(counts, ["operators", ""]), values))


def explanation_page(explanation: Explanation) -> str:
    """Return the sections, of which the first is open."""
    parts = []
    for k, section in enumerate(explanation.sections):
        text = "".join(f"<p>{escape(paragraph)}</p>" for paragraph in section.text)
        parts.append(f"<details{' open' * (k == 0)}><summary>{escape(section.title)}</summary>{text}</details>")
    return card(f"{explanation.name}: {explanation.title}", "".join(parts), notes(explanation.warnings))


def modes_page(modes: Modes) -> str:
    """Return frequencies with damping ratios and shares of the strain energy, and the lowest modes moving."""
    robot = modes.model.robot
    try:
        shares = energy_shares(modes)
    except (ParflexError, np.linalg.LinAlgError):
        shares = [{"kind": None, "strain": {"bodies": {}}} for _ in modes.frequencies]
    rows = [
        (k + 1, round(float(f), 4), round(100 * float(d), 4), share["kind"], _largest(share["strain"]["bodies"]))
        for k, (f, d, share) in enumerate(zip(modes.frequencies, modes.damping, shares, strict=True))
    ]
    pictures: list[str] = []
    for k, frequency in enumerate(modes.frequencies[:PICTURES]):
        caption = f"mode {k + 1}: {frequency:.4g} Hz"
        moving, still = moving_mode(modes, k, INCHES)
        picture = embedded_svg(moving, caption, still, f"{96 * INCHES:.0f}px")
        if len(picture) + sum(map(len, pictures)) > MOST_LETTERS:
            break
        pictures.append(f'{picture}<div style="text-align:center">{caption}</div>')
    apart = [f"without stiffness: {name}" for name in modes.free_motions]
    apart += [f"unstable: {name}" for name in modes.unstable_motions]
    numbers = table(rows, ["mode", "Hz", "damping %", "", "most strain in"])
    title = f"{robot.name}: natural frequencies"
    return card(title, side_by_side(numbers), side_by_side(*pictures), notes([*apart, *modes.model.warnings]))


def _largest(bodies: dict[str, float]) -> str:
    name = max(bodies, key=lambda body: bodies[body], default="")
    return f"{name} ({100 * bodies[name]:.0f} %)" if bodies else ""


def run_page(run: Run) -> str:
    """Return plots of the end effector, efforts and energies, and the settings and checks of the run."""
    summary, settings = run.summary, run.settings
    step, stress, why = settings.get("step"), summary.get("largest_stress"), summary.get("why")
    if stress:
        place = f"in '{stress['beam']}' at s = {stress['s']:.3g}, t = {stress['time']:.4g} s"
    name = str(settings.get("robot", "")) or "run"
    facts = {
        "status": run.status,
        "rows": len(run.t),
        "time": f"{run.t[-1] if len(run.t) else 0.0:.5g} s",
        "method": settings.get("method"),
        "step": "" if not settings else "adaptive" if step is None else f"{step:.3g} s",
        "start": summary.get("start"),
        "largest stress": f"{stress['value'] / 1e6:.4g} MPa {place}" if stress else "",
        "energy balance error": _with_unit(summary.get("energy_balance_error"), "J"),
        "largest opening of loops": _with_unit(summary.get("closure_error"), "m"),
        "columns": _names(list(run)),
    }
    messages = [*run.warnings, *([why] if why and not with_code(run.diagnostics, "stopped") else [])]
    return card(f"{name}: run", _curves(run, name), side_by_side(_facts(facts)), notes(messages))


def controlled_page(run: Controlled) -> str:
    """Return plots, and the errors of the end effector."""
    errors = [(word, float(value), ERRORS.get(word, "")) for word, value in run.errors.items() if value is not None]
    failed = [f"{run.failure}: {run.why}"] if run.failure else []
    error_table = table(errors, ["error of the end effector", "", ""])
    return card(f"run under {run.settings.get('law', '')}", _curves(run), side_by_side(error_table), notes(failed))


def _curves(run: Any, name: str = "") -> str:
    """Return plots of a run, with units of the robot of the catalogue that it names; none of what does not fit."""
    try:
        robot = load(name) if name else None
    except ParflexError:
        robot = None
    try:
        return embedded_figure(draw_run(run, robot=robot), "columns over time")
    except ParflexError:  # too many kinds of columns for one figure, or none: the table lists them
        return ""


def frequencymap_page(frequency_map: FrequencyMap) -> str:
    """Return the lowest frequency over the grid, and how many poses were reached."""
    lowest = frequency_map.frequencies[frequency_map.status == OK][:, :1]
    axes = {name: f"{a[0]:.4g} to {a[-1]:.4g}, {len(a)} values" for name, a in frequency_map.axes.items()}
    states = {"poses with frequencies": OK, "unreachable": UNREACHABLE, "singular": SINGULAR}
    states["outside joint limits"] = OUTSIDE
    facts = axes | {name: frequency_map.count(state) for name, state in states.items()}
    facts["lowest frequency"] = f"{lowest.min():.5g} to {lowest.max():.5g} Hz" if lowest.size else "none"
    picture = embedded_figure(draw_map(frequency_map), "lowest natural frequency over the grid") if lowest.size else ""
    return card("frequency map", side_by_side(picture, _facts(facts)))


def study_page(study: Study) -> str:
    """Return mean errors of the laws over the errors of the parameters."""
    rows = [
        (f"{row['percentage']:g} %", law, row["compared"], *(errors.get(word) for word in ERRORS))
        for row in study.summary()
        for law, errors in row["errors"].items()
    ]
    head = ["parameter error", "law", "compared", *(f"{word} ({unit})" for word, unit in ERRORS.items())]
    picture = embedded_figure(draw_study(study), "mean errors of each law") if study.cases else ""
    return card(f"{study.file.robot}: study, {len(study.cases)} of {study.total} cases", picture, table(rows, head))


def _facts(facts: Mapping[str, Any]) -> str:
    return table([row for row in facts.items() if row[1] not in (None, "")])


def _names(names: Any) -> str:
    return name_list(list(dict.fromkeys(names)), MOST_NAMES)


def _with_unit(value: float | None, unit: str) -> str:
    return "" if value is None else f"{value:.2e} {unit}"


def robot_picture(configuration: Configuration) -> str:
    """Return the figure of a robot at a pose."""
    return embedded_figure(draw(configuration.robot, configuration, width="column"), configuration.robot.name)
