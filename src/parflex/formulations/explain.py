"""Describe the model of a robot: bodies, coordinates, loops, motors, sizes and formulation."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from parflex.closure.constraints import Coupling, Distance
from parflex.diagnostics import Diagnostic, reported
from parflex.errors import ParflexError
from parflex.forces.forces import element_values
from parflex.formulations.base import COORDINATE_MODELS, MODELS, Formulation, ModelRequest, refuse_unknown_coordinates
from parflex.formulations.choice import choose
from parflex.records import Answer, Record, count_of
from parflex.robot.configuration import Configuration
from parflex.robot.gearing import loss_text, spring_text
from parflex.robot.robot import Robot
from parflex.tree.tree import beam_elements

JOINT_WORDS = {"free": "free in space", "planar": "free in the plane", "fixed": "fixed"}
TERM_WORDS = {"motor_inertia": "motor inertia", "viscous": "viscous friction", "coulomb": "Coulomb friction"}
TERM_WORDS |= {"offset": "friction offset", "stiffness": "springs", "damper": "dampers"}
SOURCE_WORDS = {"inferred": "inferred", "fitted": "fitted", "errata": "corrected", "notes": "note"}
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
    """Description of the model of the robot with this `name` and `title`, printed by `as_text` or `as_markdown`.

    `form` is the formulation of the direct model, `forms` that of every model, None where there is no such model.
    `sizes` are numbers of bodies, coordinates and rows, `sections` texts, `diagnostics` those of the robot at home.
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
            hangs = ((text, "  " * text.startswith("- ")) for text in section.paragraphs())
            lines = [textwrap.fill(text, width, subsequent_indent=hang, **WRAP_OPTIONS) for text, hang in hangs]
            parts.append("\n".join([section.title, "-" * len(section.title), *lines]))
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
            {"key": part.key, "title": part.title, "text": list(part.text)}
            | {"equations": [{"number": number, "text": f"theory ({number})"} for number in part.equations]}
            for part in self.sections
        ]
        head = {name: getattr(self, name) for name in ("name", "title", "form", "forms", "sizes")}
        return {**head, "sections": sections, **reported(self.diagnostics)}

    def _told(self) -> str:
        return f"{self.name}: {self.form}, {count_of(len(self.sections), 'section')}: print it with as_text()"


def explain(robot: Robot, coordinates: str | None = None) -> Explanation:
    """Describe the model of a robot: bodies, loops, motors, sizes and formulation, in `coordinates` as in `model`.

    Parameters
    ----------
    robot, coordinates
        See `parflex.api.WORDS`.

    Returns
    -------
    Explanation
        Sections, sizes and formulations; `as_text()`, `as_markdown()`.
    """
    if coordinates is not None:
        refuse_unknown_coordinates(coordinates)
    configuration = Configuration(robot, robot.home)
    chosen: dict[str, Formulation | None] = dict.fromkeys(MODELS)
    for model in MODELS:
        with suppress(ParflexError):  # a robot without such a model
            options = coordinates if model in COORDINATE_MODELS else None
            chosen[model] = choose(robot, ModelRequest(model, coordinates=options))
    form = chosen["direct"] or choose(robot, ModelRequest("state-rates"))  # every robot has state-rates
    forms = {model: None if choice is None else choice.name for model, choice in chosen.items()}
    tree, rank, free = robot.tree, robot.mobility.rank, len(robot.free)
    sizes = {"links": len(tree.links), "positions": tree.nq, "rates": free, "elastic": len(tree.elastic)}
    sizes |= {"closure_rows": robot.closures.size, "rank": rank, "independent": free - rank}
    sizes |= {"degrees_of_freedom": robot.undeformed.freedoms, "motors": len(robot.actuated)} | form.sizes
    sized = [f"{key.replace('_', ' ')} {size}" for key, size in sizes.items()]
    by_form = _grouped((name or "not available", model) for model, name in forms.items())
    groups = [f"- {name}: {', '.join(models)}" for name, models in by_form.items()]
    reference = robot.description.reference
    remarks = (f"- {word}: {line}" for key, word in SOURCE_WORDS.items() for line in getattr(reference, key))
    sections = (
        _bodies(robot),
        _coordinates(robot),
        *((_loops(robot), _dependent(configuration, form)) if robot.closures.size else ()),
        _motors(robot, sizes["degrees_of_freedom"]),
        _section(
            *("models", "Models"),
            (robot.closures.size, (14, 16, 18)),
            (True, (17,), f"Sizes: {', '.join(sized)}.", *groups),
        ),
        ExplanationSection("programs", f"Formulation: {form.name}", tuple(form.because), form.equations),
        ExplanationSection(
            "data", "Sources of the data", (f"Source: {reference.source or 'not in the file'}.", *remarks)
        ),
    )
    diagnostics, title = (*robot.diagnostics, *configuration.condition.diagnostics), robot.description.title
    return Explanation(robot.name, title or robot.name, form.name, sizes, sections, diagnostics, forms)


def _section(key: str, title: str, *parts: tuple[Any, ...]) -> ExplanationSection:
    """Return a section of those parts (condition, numbers of equations, lines of text) whose condition holds."""
    true = [part for part in parts if part[0]]
    cited = sorted(number for _, numbers, *_ in true for number in numbers)
    return ExplanationSection(key, title, tuple(line for _, _, *lines in true for line in lines), tuple(cited))


def _grouped(pairs: Iterable[tuple[Any, str]]) -> dict[Any, list[str]]:
    """Return names by what they share."""
    groups: dict[Any, list[str]] = {}
    for shared, name in pairs:
        groups.setdefault(shared, []).append(name)
    return groups


def _bodies(robot: Robot) -> ExplanationSection:
    links = robot.tree.links
    flexible = [link for link in links if link.elastic_labels]
    models = _grouped((_flexible_model(robot, j), link.name) for j, link in enumerate(links) if link.elastic_labels)
    stiffened = [link.name for link in flexible if link.body.acting]
    linear = [link.name for link in flexible if link.body.by_tip and not link.body.acting]
    superelements = [link for link in flexible if link.body.found is not None]
    heavy = sum(bool(link.heavy) for link in links)
    kind = "Planar" if robot.tree.planar else "Spatial"
    rows = [f"- {model}: {listed(names)}" for model, names in models.items()]
    return _section(
        *("bodies", "Bodies"),
        (True, (3,), f"{kind} robot with {count_of(len(links), 'link')}, {heavy} with mass.", *_link_rows(robot)),
        (any(frame.mdh is not None for frame in robot.description.frame), (1,)),
        (flexible, (24, 25, 26, 27), f"{count_of(len(flexible), 'flexible body', 'flexible bodies')}:", *rows),
        (stiffened, (37, 38), f"Mean axial strain, with stress stiffening: {listed(stiffened)}."),
        (linear, (), f'Linear axial strain (axial = "linear"), no stress stiffening: {listed(linear)}.'),
        (any(link.body.reduced for link in flexible), (55, 56)),
        (superelements, (67, 68, 69)),
        (any(link.body.acting for link in superelements), (70,)),
    )


def _link_rows(robot: Robot) -> list[str]:
    """Return one item per link outside of legs and one per group of identical legs."""
    stops = {frame.name for frame in robot.description.frame if frame.stop}
    rows, legs = list[str](), dict[str, list[str]]()
    for link in (link for link in robot.tree.links if link.node is None):
        rates = set(range(link.v.start, link.v.stop))
        words = [JOINT_WORDS.get(link.joint.kind, link.joint.kind)]
        words += ["motor"] * bool(rates & {*robot.actuated}) + ["locked"] * bool(rates and rates <= robot.locked)
        words += ["spring"] * bool(link.terms.stiffness) + ["stops in simulation"] * (link.name in stops)
        words += ["flexible"] * bool(link.elastic_labels)
        if link.leg is None:
            rows.append(f"- {link.name} ({', '.join(words)})")
        else:
            legs.setdefault(link.leg, []).append(f"{link.name.removeprefix(f'{link.leg}.')} ({', '.join(words)})")
    for text, names in _grouped(("; ".join(words), leg) for leg, words in legs.items()).items():
        rows.append(f"- {f'legs {listed(names)}, each' if len(names) > 1 else f'leg {names[0]}'}: {text}")
    return rows


def _flexible_model(robot: Robot, number: int) -> str:
    """Return the model of a flexible body and its coordinates."""
    link = robot.tree.links[number]
    beams = {frame.name: frame.beam for frame in robot.description.frame if frame.beam is not None}
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
    return f"{model}, coordinates {listed(link.elastic_labels)}"


def _coordinates(robot: Robot) -> ExplanationSection:
    tree = robot.tree
    rates, elastic = count_of(tree.n, "velocity", "velocities"), len(tree.elastic)
    quaternions = [link.name for link in tree.links if link.joint.quaternion]
    locked = listed([tree.rate_names[k] for k in sorted(robot.locked)])
    gravity = ", ".join(f"{value:g}" for value in tree.gravity)
    terms = [word for key, word in TERM_WORDS.items() if any(getattr(link.terms, key) for link in tree.links)]
    springs = [f"- {spring_text(spring, tree)}" for spring in tree.springs]
    values = element_values(Configuration(robot, robot.home))
    shown = "- {} ({}): {length:.4g} m, {force:.4g} N"
    elements = [shown.format(element.name, element.kind, **values[element.name]) for element in tree.elements]
    return _section(
        *("coordinates", "Coordinates of the open tree"),
        (True, (4, 5, 6, 8), f"Open tree: {count_of(tree.nq, 'position')} q_tot, {rates} qd_tot, {elastic} elastic."),
        (quaternions, (2,), f"Orientation by unit quaternion, with angular velocities: {listed(quaternions)}."),
        (locked, (), f"Locked: {locked}; {count_of(len(robot.free), 'velocity', 'velocities')} remain."),
        (True, (), f"Gravity: ({gravity}) m/s2." if tree.gravity.any() else "No gravity."),
        (terms, (7,), f"Joint terms: {', '.join(terms)}."),
        (springs, (43,), "Elastic couplings:", *springs),
        (any(spring.lossy for spring in tree.springs), (49,)),
        (elements, (44,), "Force elements, at home and zero velocity:", *elements),
    )


def _loops(robot: Robot) -> ExplanationSection:
    closures, mobility = robot.closures, robot.mobility
    couplings = [row for row in closures.constraints if isinstance(row, Coupling)]
    distances = [row for row in closures.constraints if isinstance(row, Distance)]
    loops = [
        f"- {kind}, {count_of(size, 'row')}{' each' if len(names) > 1 else ''}: {listed(names)}"
        for (kind, size), names in _grouped(((loop.kind, loop.size), loop.name) for loop in closures.loops).items()
    ]
    at_home = {row.name: f", {robot.home[row.position]:.4g} m at home" for row in distances if row.number is not None}
    redundant = [closures.row_names[k] for k in mobility.redundant]
    excess = f"; over-constrained, {count_of(len(redundant), 'redundant row')}: {listed(redundant, 4)}"
    kinds = [word for word, rows in (("loops", loops), ("couplings", couplings), ("rods", distances)) if rows]
    return _section(
        *("loops", " and ".join(kinds).capitalize()),
        (True, (11,), "Constraints of the open tree:"),
        (loops, (9,), *loops),
        (any(loop.turning == "universal" for loop in closures.loops), (10,)),
        (couplings, (42,), *(f"- coupling, 1 row: {row.equation}{loss_text(row)}" for row in couplings)),
        (any(row.lossy for row in couplings), (49,)),
        (distances, (45,), *(f"- {row.kind}, 1 row: {row.equation}{at_home.get(row.name, '')}" for row in distances)),
        (True, (), f"{count_of(closures.size, 'row')} of J_tot, rank {mobility.rank}{excess * bool(redundant)}."),
        (mobility.home_rank < mobility.rank, (), f"Home is a singular configuration: rank {mobility.home_rank}."),
    )


def _dependent(configuration: Configuration, form: Formulation) -> ExplanationSection:
    robot, names = configuration.robot, configuration.robot.tree.rate_names
    chosen = configuration.reduction.partition.independent if form.dependence is None else form.independent
    dependent = [names[k] for k in robot.free if k not in set(chosen)]
    why = form.dependence or "Chosen at home by QR with pivoting, passive joints first:"
    independent = f"- independent ({len(chosen)}): {listed([names[k] for k in chosen])}"
    text = why, f"- dependent ({len(dependent)}): {listed(dependent)}", independent
    return ExplanationSection("dependent", "Dependent coordinates", text, (12, 13))


def _motors(robot: Robot, freedoms: int) -> ExplanationSection:
    motors, count, description = robot.actuated_names, len(robot.actuated), robot.description
    counted = count_of(freedoms, "degree of freedom", "degrees of freedom")
    drives = listed([robot.tree.links[number].name for number in robot.drive_springs])
    actuations, modes = listed(sorted(description.actuation)), listed(sorted(description.working_modes))
    owned = f"{count_of(count, 'motor')} ({listed(motors)}) for" if count else "No motor,"
    return _section(
        *("motors", "Motors"),
        (True, (), f"{owned} {counted}."),
        (count > freedoms, (), "Actuation redundancy: motor efforts have minimum norm."),
        (0 < count < freedoms, (), "Underactuated: the inverse model takes the motion of the motors."),
        (actuations, (), f"Actuation: {robot.actuation}; also in the file: {actuations}."),
        (modes, (), f"Working mode: {robot.working_mode}; in the file: {modes}."),
        (drives, (), f"Elastic drives, undeformed in every pose: {drives}."),
    )


def listed(names: Sequence[str], most: int = 8) -> str:
    """Return names with commas; of a long list the first names and the last."""
    return ", ".join(names if len(names) <= most else [*names[: most - 2], "...", names[-1]])
