"""Describe the model of a robot: bodies, coordinates, loops, motors, sizes and formulation."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from parflex.closure.constraints import Coupling, Distance, coupling_row
from parflex.diagnostics import Diagnostic, reported
from parflex.errors import ParflexError
from parflex.forces.forces import element_values
from parflex.formulations.base import (
    COORDINATE_MODELS,
    MODELS,
    Formulation,
    ModelRequest,
    refuse_unknown_coordinates,
)
from parflex.formulations.choice import choose
from parflex.records import Answer, Record, count_of
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot
from parflex.tree.force_elements import CoupledSpring
from parflex.tree.tree import Link, Tree, beam_elements

JOINT_WORDS = {"free": "free in space", "planar": "free in the plane", "fixed": "fixed"}

JOINT_TERMS = {
    "motor_inertia": "motor inertia",
    "viscous": "viscous friction",
    "coulomb": "Coulomb friction",
    "offset": "friction offset",
    "stiffness": "springs",
    "damper": "dampers",
}

WRAP_OPTIONS: dict[str, Any] = {"break_on_hyphens": False, "break_long_words": False}


@dataclass(frozen=True, eq=False, repr=False)
class ExplanationSection(Record):
    """Section of an explanation: paragraphs (list items begin with a dash) and numbers of equations in theory.md."""

    key: str
    title: str
    text: tuple[str, ...]
    equations: tuple[int, ...] = ()

    def paragraphs(self) -> list[str]:
        """Return the text, followed by the cited equations."""
        cited = ", ".join(f"({number})" for number in self.equations)
        return [*self.text, *([f"Theory: {cited}."] if cited else [])]


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(Answer):
    """Description of the model of a robot.

    Attributes
    ----------
    name : str
        Name of the robot.
    title : str
        Title of the robot.
    form : str
        Formulation of the direct model.
    sizes : dict[str, int]
        Numbers of bodies, joints, coordinates, rows and operators.
    sections : tuple[ExplanationSection, ...]
        Text by subject, with the equations of the theory.
    diagnostics : tuple[Diagnostic, ...]
        Diagnostics.
    forms : dict[str, str | None]
        Formulation of every model, None where the robot has no such model.
    """

    name: str
    title: str
    form: str
    sizes: dict[str, int]
    sections: tuple[ExplanationSection, ...]
    diagnostics: tuple[Diagnostic, ...] = ()
    forms: dict[str, str | None] = field(default_factory=dict)

    def as_text(self, width: int = 100) -> str:
        """Return plain text for a terminal of `width` characters."""
        parts = [textwrap.fill(f"{self.name}: {self.title}", width, **WRAP_OPTIONS)]
        for section in self.sections:
            lines = [section.title, "-" * len(section.title)]
            for paragraph in section.paragraphs():
                hang = "  " if paragraph.startswith("- ") else ""
                lines.append(textwrap.fill(paragraph, width, subsequent_indent=hang, **WRAP_OPTIONS))
            parts.append("\n".join(lines))
        return "\n\n".join(parts) + "\n"

    def as_markdown(self) -> str:
        """Return Markdown."""
        parts = [f"# {self.name}: {self.title}"]
        for section in self.sections:
            parts += [f"## {section.title}", *section.paragraphs()]
        return re.sub(r"^(- .*)\n\n(?=- )", r"\1\n", "\n\n".join(parts), flags=re.MULTILINE) + "\n"  # tight lists

    def as_dict(self) -> dict[str, Any]:
        """Return a dictionary for JSON."""
        sections = [
            {
                "key": section.key,
                "title": section.title,
                "text": list(section.text),
                "equations": [{"number": number, "text": f"theory ({number})"} for number in section.equations],
            }
            for section in self.sections
        ]
        head = {"name": self.name, "title": self.title, "form": self.form, "forms": self.forms, "sizes": self.sizes}
        return {**head, "sections": sections, **reported(self.diagnostics)}

    def _told(self) -> str:
        return f"{self.name}: {self.form}, {count_of(len(self.sections), 'section')}: print it with as_text()"


def explain(robot: Robot, coordinates: str | None = None) -> Explanation:
    """Describe the model of a robot: bodies, coordinates, loops, motors, sizes and formulation.

    Parameters
    ----------
    robot : Robot
        Robot, from `load`.
    coordinates : str, default None
        As in `model`: 'platform', 'motors', 'independent' or 'all'; None: those of the formulation.

    Returns
    -------
    Explanation
        Sections, sizes and formulations; `as_text()`, `as_markdown()`.
    """
    if coordinates is not None:
        refuse_unknown_coordinates(coordinates)
    configuration = Configuration(robot, robot.home)
    chosen = {model: _formulation(robot, model, coordinates) for model in MODELS}
    form = chosen["direct"] or choose(robot, ModelRequest("state-rates"))  # every robot has state-rates
    forms = {model: None if choice is None else choice.name for model, choice in chosen.items()}
    sizes = _sizes(robot) | form.sizes
    sections = [
        _bodies(robot),
        _coordinates(robot),
        *([_loops(robot), _dependent(configuration, form)] if robot.closures.size else []),
        _motors(robot, sizes["degrees_of_freedom"]),
        _models(robot, sizes, forms),
        ExplanationSection("programs", f"Formulation: {form.name}", tuple(form.because), form.equations),
        _data(robot),
    ]
    title = robot.description.title or robot.name
    diagnostics = (*robot.diagnostics, *configuration.condition.diagnostics)
    return Explanation(robot.name, title, form.name, sizes, tuple(sections), diagnostics, forms)


def _formulation(robot: Robot, model: str, coordinates: str | None) -> Formulation | None:
    """Return the formulation of a model, None if the robot has no such model."""
    try:
        return choose(robot, ModelRequest(model, coordinates=coordinates if model in COORDINATE_MODELS else None))
    except ParflexError:
        return None


def _sizes(robot: Robot) -> dict[str, int]:
    rank, free = robot.mobility.rank, len(robot.free)
    rigid = robot.locking(robot.deformations)
    return {
        "links": len(robot.tree.links),
        "positions": robot.tree.nq,
        "rates": free,
        "elastic": len(robot.tree.elastic),
        "closure_rows": robot.closures.size,
        "rank": rank,
        "independent": free - rank,
        "degrees_of_freedom": rigid.mobility.freedoms(len(rigid.free)),
        "motors": len(robot.actuated),
    }


def _bodies(robot: Robot) -> ExplanationSection:
    links = robot.tree.links
    flexible = [link for link in links if link.elastic_labels]
    motion = "Planar" if robot.tree.planar else "Spatial"
    heavy = sum(bool(link.heavy) for link in links)
    text = [f"{motion} robot with {count_of(len(links), 'link')}, {heavy} with mass.", *_link_rows(robot)]
    equations = [1] if any(frame.mdh is not None for frame in robot.description.frame) else []
    equations.append(3)
    if flexible:
        text.append(f"{count_of(len(flexible), 'flexible body', 'flexible bodies')}:")
        text += _flexible_rows(robot)
        equations += [24, 25, 26, 27]
    stiffened = [link.name for link in flexible if link.body.acting]
    linear = [link.name for link in flexible if link.body.by_tip and not link.body.acting]
    if stiffened:
        text.append(f"Mean axial strain, with stress stiffening: {listed(stiffened)}.")
        equations += [37, 38]
    if linear:
        text.append(f'Linear axial strain (axial = "linear"), no stress stiffening: {listed(linear)}.')
    if any(link.body.reduced for link in flexible):
        equations += [55, 56]
    superelements = [link for link in flexible if link.body.found is not None]
    if superelements:
        equations += [67, 68, 69]
    if any(link.body.acting for link in superelements):
        equations.append(70)
    return ExplanationSection("bodies", "Bodies", tuple(text), tuple(equations))


def _link_rows(robot: Robot) -> list[str]:
    """Return one item per link outside of legs and one per group of identical legs."""
    groups: dict[tuple[str, ...], list[str]] = {}
    rows = []
    for leg in dict.fromkeys(link.leg for link in robot.tree.links):
        links = [link for link in robot.tree.links if link.leg == leg and link.node is None]
        if leg is None:
            rows = [f"- {_link_text(robot, link, link.name)}" for link in links]
        else:
            texts = tuple(_link_text(robot, link, link.name.removeprefix(f"{leg}.")) for link in links)
            groups.setdefault(texts, []).append(leg)
    for texts, legs in groups.items():
        head = f"legs {listed(legs)}, each" if len(legs) > 1 else f"leg {legs[0]}"
        rows.append(f"- {head}: {'; '.join(texts)}")
    return rows


def _link_text(robot: Robot, link: Link, name: str) -> str:
    rates = set(range(link.v.start, link.v.stop))
    words = [JOINT_WORDS.get(link.joint.kind, link.joint.kind)]
    words += ["motor"] if rates & set(robot.actuated) else []
    words += ["locked"] if rates and rates <= robot.locked else []
    words += ["spring"] if link.terms.stiffness else []
    stops = {frame.name for frame in robot.description.frame if frame.stop is not None}
    words += ["stops in simulation"] if link.name in stops else []
    words += ["flexible"] if link.elastic_labels else []
    return f"{name} ({', '.join(words)})"


def _flexible_rows(robot: Robot) -> list[str]:
    """Return one item per group of flexible bodies with identical models."""
    beams = {frame.name: frame.beam for frame in robot.description.frame if frame.beam is not None}
    groups: dict[str, list[str]] = {}
    for number, link in enumerate(robot.tree.links):
        if not link.elastic_labels:
            continue
        beam, reduction = beams.get(link.name), link.body.reduced
        if beam is not None:
            theory = "Timoshenko" if beam.shear else "Euler-Bernoulli"
            elements = beam.elements if reduction else len(beam_elements(robot.tree.links, number))
            model = f"{theory} beam of {beam.length:g} m in {count_of(elements, 'element')}"
        elif any(link.name.startswith(f"{name}.") for name in beams):
            model = f"further {'parts' if reduction else 'elements'} of these beams"
        else:
            model = "modal body" if link.body.found is None else "super-element"
        if reduction is not None:
            model += f", reduced from {count_of(reduction.elements, 'element')} to its ends and "
            model += f"{count_of(reduction.kept, 'fixed-interface mode')} "
            model += f"(frequencies up to {reduction.band:g} Hz at most {reduction.bound:.2g} Hz too high)"
        groups.setdefault(f"{model}, coordinates {listed(link.elastic_labels)}", []).append(link.name)
    return [f"- {model}: {listed(names)}" for model, names in groups.items()]


def _coordinates(robot: Robot) -> ExplanationSection:
    tree = robot.tree
    text = [
        f"Open tree: {count_of(tree.nq, 'position')} q_tot, {count_of(tree.n, 'velocity', 'velocities')} qd_tot "
        f"({tree.n - len(tree.elastic)} of joints and free bodies, {len(tree.elastic)} elastic)."
    ]
    equations = [4, 5, 6, 8]
    quaternions = [link.name for link in tree.links if link.joint.quaternion]
    if quaternions:
        text.append(f"Orientation by unit quaternion, with angular velocities: {listed(quaternions)}.")
        equations.insert(0, 2)
    if robot.locked:
        locked = listed([tree.rate_names[k] for k in sorted(robot.locked)])
        text.append(f"Locked: {locked}; {count_of(len(robot.free), 'velocity', 'velocities')} remain.")
    gravity = ", ".join(f"{value:g}" for value in tree.gravity)
    text.append(f"Gravity: ({gravity}) m/s2." if tree.gravity.any() else "No gravity.")
    terms = [word for key, word in JOINT_TERMS.items() if any(getattr(link.terms, key) for link in tree.links)]
    if terms:
        text.append(f"Joint terms: {', '.join(terms)}.")
        equations.insert(-1, 7)
    if tree.springs:
        text += ["Elastic couplings:", *(f"- {spring_text(spring, tree)}" for spring in tree.springs)]
        equations += [43, 49] if any(spring.lossy for spring in tree.springs) else [43]
    if tree.elements:
        values = element_values(Configuration(robot, robot.home))
        text.append("Force elements, at home and zero velocity:")
        for element in tree.elements:
            length, force = (values[element.name][key] for key in ("length", "force"))
            text.append(f"- {element.name} ({element.kind}): {length:.4g} m, {force:.4g} N")
        equations.append(44)
    return ExplanationSection("coordinates", "Coordinates of the open tree", tuple(text), tuple(equations))


def _loops(robot: Robot) -> ExplanationSection:
    closures, mobility = robot.closures, robot.mobility
    couplings = [row for row in closures.constraints if isinstance(row, Coupling)]
    distances = [row for row in closures.constraints if isinstance(row, Distance)]
    groups: dict[tuple[str, int], list[str]] = {}
    for loop in closures.loops:
        groups.setdefault((loop.kind, loop.size), []).append(loop.name)
    text = ["Constraints of the open tree:"]
    for (kind, size), names in groups.items():
        text.append(f"- {kind}, {count_of(size, 'row')}{' each' if len(names) > 1 else ''}: {listed(names)}")
    text += [f"- coupling, 1 row: {coupling.equation}{loss_text(coupling)}" for coupling in couplings]
    at_home = {row.name: f", {robot.home[row.position]:.4g} m at home" for row in distances if row.number is not None}
    text += [f"- {row.kind}, 1 row: {row.equation}{at_home.get(row.name, '')}" for row in distances]
    rank_text = f"{count_of(closures.size, 'row')} of J_tot, rank {mobility.rank}"
    if mobility.redundant:
        names = [closures.row_names[k] for k in mobility.redundant]
        rank_text += f"; over-constrained, {count_of(len(names), 'redundant row')}: {listed(names, 4)}"
    text.append(f"{rank_text}.")
    if mobility.home_rank < mobility.rank:
        text.append(f"Home is a singular configuration: rank {mobility.home_rank}.")
    kinds = [word for word, rows in (("loops", closures.loops), ("couplings", couplings), ("rods", distances)) if rows]
    equations = [9] if closures.loops else []
    equations += [10] if any(loop.turning == "universal" for loop in closures.loops) else []
    equations += [11, *([42] if couplings else []), *([45] if distances else [])]
    equations += [49] if any(coupling.lossy for coupling in couplings) else []
    return ExplanationSection("loops", " and ".join(kinds).capitalize(), tuple(text), tuple(equations))


def _dependent(configuration: Configuration, form: Formulation) -> ExplanationSection:
    robot, names = configuration.robot, configuration.robot.tree.rate_names
    chosen = configuration.reduction.partition.independent if form.dependence is None else form.independent
    independent = [names[k] for k in chosen]
    dependent = [names[k] for k in robot.free if k not in set(chosen)]
    text = (
        form.dependence or "Chosen at home by QR with pivoting, passive joints first:",
        f"- dependent ({len(dependent)}): {listed(dependent)}",
        f"- independent ({len(independent)}): {listed(independent)}",
    )
    return ExplanationSection("dependent", "Dependent coordinates", text, (12, 13))


def _motors(robot: Robot, freedoms: int) -> ExplanationSection:
    motors = robot.actuated_names
    counted = count_of(freedoms, "degree of freedom", "degrees of freedom")
    text = [
        f"{count_of(len(motors), 'motor')} ({listed(motors)}) for {counted}." if motors else f"No motor, {counted}."
    ]
    if len(motors) > freedoms:
        text.append("Actuation redundancy: motor efforts have minimum norm.")
    elif motors and len(motors) < freedoms:
        text.append("Underactuated: the inverse model takes the motion of the motors.")
    actuations, modes = (sorted(table) for table in (robot.description.actuation, robot.description.working_modes))
    if actuations:
        text.append(f"Actuation: {robot.actuation}; also in the file: {listed(actuations)}.")
    if modes:
        text.append(f"Working mode: {robot.working_mode}; in the file: {listed(modes)}.")
    if robot.drive_springs:
        names = [robot.tree.links[number].name for number in robot.drive_springs]
        text.append(f"Elastic drives, undeformed in every pose: {listed(names)}.")
    return ExplanationSection("motors", "Motors", tuple(text))


def _models(robot: Robot, sizes: Mapping[str, int], forms: Mapping[str, str | None]) -> ExplanationSection:
    text = ["Sizes: " + ", ".join(f"{key.replace('_', ' ')} {size}" for key, size in sizes.items()) + "."]
    groups: dict[str, list[str]] = {}
    for model, form in forms.items():
        groups.setdefault(form or "not available", []).append(model)
    text += [f"- {form}: {', '.join(models)}" for form, models in groups.items()]
    equations = (14, 16, 17, 18) if robot.closures.size else (17,)
    return ExplanationSection("models", "Models", tuple(text), equations)


def _data(robot: Robot) -> ExplanationSection:
    reference = robot.description.reference
    text = [f"Source: {reference.source or 'not in the file'}."]
    words = {"inferred": "inferred", "fitted": "fitted", "errata": "corrected", "notes": "note"}
    text += [f"- {word}: {line}" for key, word in words.items() for line in getattr(reference, key)]
    return ExplanationSection("data", "Sources of the data", tuple(text))


def listed(names: list[str] | tuple[str, ...], most: int = 8) -> str:
    """Return names with commas; of a long list the first names and the last."""
    if len(names) <= most:
        return ", ".join(names)
    return ", ".join([*names[: most - 2], "...", names[-1]])


def loss_text(coupling: Coupling | CoupledSpring) -> str:
    """Return the efficiencies of a coupling with losses."""
    if not coupling.lossy:
        return ""
    locked = " (self-locking)" if coupling.back <= 0 else ""
    return f"; efficiency {coupling.efficiency:.4g}, driven back {coupling.back:.4g}{locked}"


def spring_text(spring: CoupledSpring, tree: Tree) -> str:
    """Return the equation and the parameters of an elastic coupling."""
    unit = "N/m" if tree.links[spring.numbers[0]].joint.unit == "m" else "N m/rad"
    parts = [f"stiffness {spring.stiffness:.4g} {unit}"]
    parts += [f"damping {spring.damping:.4g} {unit.replace('/', ' s/')}"] if spring.damping else []
    parts += [f"backlash {spring.play:.4g} {unit[-1:] if unit == 'N/m' else 'rad'}"] if spring.play else []
    parts += ["pulls only"] if spring.pulls_only else []
    return f"{coupling_row(spring, tree).equation}: {', '.join(parts)}{loss_text(spring)}"


def coupling_texts(robot: Robot) -> dict[str, str]:
    """Return the equation and the parameters of each coupling, by name."""
    rows = {row.name: row for row in robot.closures.constraints if isinstance(row, Coupling)}
    springs = {spring.name: spring_text(spring, robot.tree) for spring in robot.tree.springs}
    texts = {}
    for name in (coupling.name for coupling in robot.description.coupling):
        line = f"{rows[name].equation}{loss_text(rows[name])}" if name in rows else springs[name]
        texts[name] = line.removeprefix(f"{name}: ")
    return texts
