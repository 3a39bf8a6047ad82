"""Pages of answers about one state: efforts, equilibria, stiffness, deflections, models, explanations."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from parflex.codegen.model import Model
from parflex.dynamics.dynamics import Result
from parflex.formulations.explain import Explanation
from parflex.robot.robot import effort_units
from parflex.spatial.rotations import vector_from_rotation
from parflex.statics.equilibrium import Equilibrium
from parflex.statics.stiffness import Deflection, Stiffness
from parflex.view.notebook.html_parts import beside, card, matrix, names, notes, table, tidy
from parflex.view.notebook.line_pictures import robot_picture

MOTIONS = ("x", "y", "z", "rx", "ry", "rz")
TURNS = ("rx", "ry", "rz", "theta")


def result_page(result: Result) -> str:
    """Efforts with units, the acceleration of the end effector, reactions, warnings."""
    units = effort_units(result.robot)
    efforts = table([(n, tidy(v), units.get(n, "")) for n, v in result.efforts.items()], ["motor", "effort", ""])
    a = result.acceleration_of()
    told = [f"a{axis}" for axis in "xyz"] + [f"al{axis}" for axis in "xyz"]
    end = result.robot.tree.end_effector
    shown = ["m/s²"] * 3 + ["rad/s²"] * 3
    moved = table([(w, tidy(v), u) for w, v, u in zip(told, a, shown, strict=True)], [end, "acceleration", ""])
    found = table([(n, tidy(v)) for n, v in result.found_accelerations().items()], ["acceleration", "m/s² or rad/s²"])
    title = f"{result.robot.name}: {'accelerations' if result.direct else 'efforts'}"
    parts = [found] * bool(result.direct) + [efforts, moved, _reactions(result), _couplings(result)]
    return card(title, beside(*parts), notes(result.warnings))


def _couplings(result: Result) -> str:
    found = (result.reactions or {}).get("couplings", {})
    rows = [(name, tidy(one["effort"]), "undetermined" if one["undetermined"] else "") for name, one in found.items()]
    return table(rows, ["coupling", "effort N or N m", ""])


def _reactions(result: Result) -> str:
    rows, found = [], result.reactions or {}
    for name, one in {**found.get("joints", {}), **found.get("closures", {})}.items():
        size = [tidy(np.linalg.norm(one.get(key, ()))) for key in ("force", "moment")]
        rows.append((name, *size, "undetermined" if one.get("undetermined") else ""))
    return table(rows, ["reaction in", "force N", "moment N m", ""])


def equilibrium_page(found: Equilibrium) -> str:
    """How far the end effector and others moved from where they started."""
    tree = found.robot.tree
    (R0, P0), (R, P) = (c.at.of(tree.place(tree.end_effector)) for c in (found.start, found.configuration))
    rows = [*zip("xyz", (P - P0).tolist(), ["m"] * 3, strict=True)]
    rows += [*zip(MOTIONS[3:], vector_from_rotation(R @ R0.T).tolist(), ["rad"] * 3, strict=True)]
    words = table([("steps", found.steps), ("loading", found.loading._told())])
    moved = table(rows, [tree.end_effector, "moved by", ""])
    return card(f"{found.robot.name}: equilibrium", beside(robot_picture(found.configuration), moved, words))


def stiffness_page(found: Stiffness) -> str:
    """Compliance and stiffness of a frame."""
    words = list(found.directions)
    units = [f"{word} ({'rad' if word in TURNS else 'm'})" for word in words]
    loads = [f"{'m' if word in TURNS else 'f'}{word[-1] if word != 'theta' else 'z'}" for word in words]
    parts = [f"<div>compliance, per N and N m</div>{matrix(found.compliance, units, loads)}"]
    if found.stiffness is not None:
        parts.append(f"<div>stiffness, N and N m</div>{matrix(found.stiffness, loads, units)}")
    rigid = [f"rigid: {names(found.rigid)}"] if found.rigid else []
    return card(f"stiffness of '{found.frame}'", beside(*parts), notes([*rigid, *found.model.warnings]))


def deflection_page(found: Deflection) -> str:
    """Motion of frames, efforts that hold the robot, the largest section forces."""
    robot = found.configuration.robot
    units = effort_units(robot)
    moved = table([(name, *map(float, d)) for name, d in found.frames.items()], ["frame", *MOTIONS])
    efforts = table([(n, float(v), units.get(n, "")) for n, v in found.efforts.items()], ["motor", "effort", ""])
    beams = [(one["element"], *map(tidy, one["root"].values())) for one in found.sections if "root" in one]
    forces = list(found.sections[0].get("root", {})) if found.sections else []
    return card(
        f"{robot.name}: deflection (m, rad)",
        beside(moved, efforts),
        beside(table(beams, ["beam, at its root", *forces])),
        notes(found.warnings),
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
    return card(f"model {model.name}", beside(signals, table(made), table(counts, ["operators", ""]), values))


def explanation_page(found: Explanation) -> str:
    """The sections, of which the first is open."""
    parts = []
    for k, section in enumerate(found.sections):
        text = "".join(f"<p>{escape(paragraph)}</p>" for paragraph in section.text)
        parts.append(f"<details{' open' * (k == 0)}><summary>{escape(section.title)}</summary>{text}</details>")
    return card(f"{found.name}: {found.title}", "".join(parts), notes(found.warnings))
