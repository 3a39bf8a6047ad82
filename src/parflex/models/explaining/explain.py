"""How the model of a robot is made, in words: what the other modules decided about it, nothing is decided here."""

from __future__ import annotations

from collections.abc import Mapping

from parflex.closure.constraints import Coupling, Distance
from parflex.errors import ParflexError
from parflex.forces.forces import element_values
from parflex.models.explaining.coupling_words import LOSSES, loss_words, spring_line
from parflex.models.explaining.explanation import Chapter, Explanation, listed
from parflex.models.explaining.reductions import REDUCED
from parflex.models.explaining.superelements import STRESSED, SUPER
from parflex.models.forms.choice import choose
from parflex.models.forms.form import IN_COORDINATES, MODELS, Form, Question, refuse_unknown_coordinates
from parflex.records import count_of
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot
from parflex.tree.tree import GROUND, Link, beam_elements

KINDS = {"free": "free in space", "planar": "free in the plane", "fixed": "fixed"}
TERMS = {
    "motor_inertia": "motor inertia",
    "viscous": "viscous friction",
    "coulomb": "Coulomb friction",
    "offset": "offsets of friction",
    "stiffness": "springs",
    "damper": "dampers",
}
TOLD = ("inverse", "direct", "mass-matrix", "kinematics", "step", "state-rates", "state-rates-driven")  # in words


def explain(robot: Robot, coordinates: str | None = None) -> Explanation:
    """Explain how the model of a robot is made, in words and equations.

    Parameters
    ----------
    robot : Robot
        Robot, from `load`.
    coordinates : str, default None
        As in `model`: 'platform', 'motors', 'independent' or 'all'; None: those of the form.

    Returns
    -------
    Explanation
        Sections on bodies, coordinates, loops, motors and the form of the programs; `as_text()`, `as_markdown()`.
    """
    if coordinates is not None:
        refuse_unknown_coordinates(coordinates)
    configuration = Configuration(robot, robot.home)
    forms = {model: _asked(robot, model, coordinates) for model in MODELS}
    form = forms["direct"] or choose(robot, Question("state-rates"))  # this one every robot has
    names = {model: None if found is None else found.name for model, found in forms.items()}
    sections = [
        _bodies(robot),
        _coordinates(robot),
        *([_loops(robot), _dependent(configuration, form)] if robot.closures.size else []),
        _motors(robot),
        _models(robot),
        _programs(form, names),
        _data(robot),
    ]
    return Explanation(
        robot.name,
        robot.description.title or robot.name,
        form.name,
        _sizes(robot, form),
        tuple(sections),
        (*robot.warnings, *configuration.condition.warnings()),
        names,
    )


def _asked(robot: Robot, model: str, coordinates: str | None) -> Form | None:
    """The form of a model, None where the robot has no such model."""
    try:
        return choose(robot, Question(model, coordinates=coordinates if model in IN_COORDINATES else None))
    except ParflexError:
        return None


def _sizes(robot: Robot, form: Form) -> dict[str, int]:
    rank, free = robot.mobility.rank, len(robot.free)
    sizes = {
        "links": len(robot.tree.links),
        "positions": robot.tree.nq,
        "rates": free,
        "elastic": len(robot.tree.elastic),
        "closure_rows": robot.closures.size,
        "rank": rank,
        "independent": free - rank,
        "degrees_of_freedom": _freedoms(robot),
        "motors": len(robot.actuated),
    }
    return sizes | form.sizes


def _freedoms(robot: Robot) -> int:
    """Freedoms of the robot with its bodies stiff."""
    rigid = robot.locking(robot.deformations)
    return rigid.mobility.freedoms(len(rigid.free))


# -- the tree ---------------------------------------------------------------------------------------------------


def _bodies(robot: Robot) -> Chapter:
    tree = robot.tree
    heavy = [link for link in tree.links if link.heavy]
    where = "moves in the plane" if tree.planar else "moves in space"
    text = [
        f"The robot {where}. Its frames make {count_of(len(tree.links), 'link')}, {len(heavy)} of them with mass; each "
        "is placed in its parent by a constant rotation and position and then moved by its joint. What is fixed to a "
        "link is part of it.",
        *_rows(robot),
    ]
    bending = [link for link in tree.links if link.elastic_labels]
    if bending:
        text += [
            f"{count_of(len(bending), 'body is flexible', 'bodies are flexible')}: a material point is "
            "where the rigid body would have it, plus shapes times elastic coordinates; all inertial terms follow from "
            "integrals over the undeformed body.",
            *_shapes(robot),
            *_axial(bending),
        ]
    rows = (1,) if any(frame.mdh is not None for frame in robot.description.frame) else ()
    mean = (37, 38) if any(link.body.acting for link in bending) else ()
    bent = (24, 25, 26, 27, *mean) if bending else ()
    entries = (*robot.description.frame, *((robot.description.platform,) if robot.description.platform else ()))
    modal = (32,) if any(entry.modal is not None for entry in entries) else ()
    reduced = REDUCED if any(link.body.reduced for link in bending) else ()
    given = [link for link in bending if link.body.found is not None]
    matrices = (*SUPER, *((STRESSED,) if any(link.body.acting for link in given) else ())) if given else ()
    return Chapter("bodies", "Bodies", tuple(text), (*rows, 3, *bent, *modal, *reduced, *matrices))


def _rows(robot: Robot) -> list[str]:
    """Links and joints; legs that are alike in one row."""
    groups: dict[tuple[str, ...], list[str]] = {}
    alone = []
    for leg in dict.fromkeys(link.leg for link in robot.tree.links):
        links = [link for link in robot.tree.links if link.leg == leg and link.node is None]
        if leg is None:
            alone = [_described(robot, link, link.name) for link in links]
        else:
            own = tuple(_described(robot, link, link.name.removeprefix(f"{leg}.")) for link in links)
            groups.setdefault(own, []).append(leg)
    rows = [f"- {row}" for row in alone]
    for parts, legs in groups.items():
        head = f"legs {listed(legs)}, each" if len(legs) > 1 else f"leg {legs[0]}"
        rows.append(f"- {head}: {'; '.join(parts)}")
    return rows


def _described(robot: Robot, link: Link, name: str) -> str:
    rates = set(range(link.v.start, link.v.stop))
    words = [KINDS.get(link.joint.kind, link.joint.kind)]
    if rates & set(robot.actuated):
        words.append("motor")
    if rates and rates <= robot.locked:
        words.append("locked")
    if link.terms.stiffness:
        words.append("spring")
    if any(frame.stop is not None for frame in robot.description.frame if frame.name == link.name):
        words.append("stops in simulation")
    if link.elastic_labels:
        words.append("flexible")
    return f"{name} ({', '.join(words)})"


def _shapes(robot: Robot) -> list[str]:
    """Flexible bodies and their models; bodies that are alike in one row."""
    beams = {frame.name: frame.beam for frame in robot.description.frame if frame.beam is not None}
    groups: dict[str, list[str]] = {}
    for number, link in enumerate(robot.tree.links):
        if not link.elastic_labels:
            continue
        beam = beams.get(link.name)
        if beam is not None:
            kind = "Timoshenko" if beam.shear else "Euler-Bernoulli"
            whole = beam.elements if link.body.reduced else len(beam_elements(robot.tree.links, number))
            what = f"{kind} beam of {beam.length:g} m in {count_of(whole, 'element')}{_reduced(link)}"
        elif any(link.name.startswith(f"{name}.") for name in beams):
            what = f"further {'parts' if link.body.reduced else 'elements'} of these beams{_reduced(link)}"
        else:
            what = "body given by its modes" if link.body.found is None else "super-element given by reduced matrices"
        groups.setdefault(f"{what}, coordinates {listed(link.elastic_labels)}", []).append(link.name)
    return [f"- {what}: {listed(names)}" for what, names in groups.items()]


def _reduced(link: Link) -> str:
    """What is left of a beam of many elements."""
    said = link.body.reduced
    if said is None:
        return ""
    return (
        f", reduced from {count_of(said.elements, 'element')} to its ends and {count_of(said.kept, 'mode')} with both "
        f"held (frequencies up to {said.band:g} Hz are at most {said.bound:.2g} Hz too high)"
    )


def _axial(bending: list[Link]) -> list[str]:
    """What bending does to the axial strain."""
    mean = [link.name for link in bending if link.body.acting]
    linear = [link.name for link in bending if link.body.by_tip and not link.body.acting]
    text = []
    if mean:
        text.append(
            f"Bending shortens the chord of {listed(mean)}: the axial strain is the mean one, so tension "
            "stiffens and compression softens."
        )
    if linear:
        text.append(f'Axial strain is linear (axial = "linear") in {listed(linear)}: axial load does not stiffen it.')
    return text


def _coordinates(robot: Robot) -> Chapter:
    tree = robot.tree
    elastic = len(tree.elastic)
    joints = tree.n - elastic
    parts = [count_of(joints, "rate of joints and free bodies", "rates of joints and free bodies")]
    parts += [f"{elastic} of elastic coordinates"] if elastic else []
    quaternions = [link.name for link in tree.links if link.joint.quaternion]
    text = [f"All joints are open at first: q_tot has {tree.nq} positions, qd_tot {tree.n} rates ({', '.join(parts)})."]
    if quaternions:
        text.append(f"The orientation of {listed(quaternions)} is a unit quaternion; its rate is the angular velocity.")
    if robot.locked:
        locked = listed([tree.rate_names[k] for k in sorted(robot.locked)])
        text.append(f"Locked joints are fixed and leave {len(robot.free)} rates: {locked}.")
    text.append(
        "A recursion outwards gives twists and accelerations of all links, one inwards the forces along all rates; "
        + ("gravity is an acceleration of the ground upwards." if tree.gravity.any() else "there is no gravity.")
    )
    acting = [word for key, word in TERMS.items() if any(getattr(link.terms, key) for link in tree.links)]
    if tree.springs:
        text.append("Elastic couplings act as springs:")
        text += [f"- {spring_line(spring, tree)}" for spring in tree.springs]
    if tree.elements:
        text.append(f"Forces along the line between two points, at home: {_at_home(robot)}.")
    if acting:
        text.append(f"Joints add their own terms: {', '.join(acting)}.")
    equations = (
        *((2,) if quaternions else ()),
        4,
        5,
        6,
        *((7,) if acting else ()),
        8,
        *((43,) if tree.springs else ()),
        *((LOSSES,) if any(spring.lossy for spring in tree.springs) else ()),
        *((44,) if tree.elements else ()),
    )
    return Chapter("coordinates", "Coordinates and the open tree", tuple(text), equations)


def _at_home(robot: Robot, most: int = 6) -> str:
    """Length and force of elements at home, at rest; the first ones."""
    values = element_values(Configuration(robot, robot.home))
    told = [
        f"{one.name} ({one.kind}) {values[one.name]['length']:.4g} m, {values[one.name]['force']:.4g} N"
        for one in robot.tree.elements[:most]
    ]
    return "; ".join(told) + (f"; ... ({len(robot.tree.elements)})" if len(robot.tree.elements) > most else "")


# -- loops ------------------------------------------------------------------------------------------------------


def _loops(robot: Robot) -> Chapter:
    tree, loops = robot.tree, robot.closures.loops
    free = [link.name for link in tree.links if link.joint.moves_freely and link.parent == GROUND]
    couplings = [row for row in robot.closures.constraints if isinstance(row, Coupling)]
    why = "A tree has no loops, so each loop is cut where the file has a closure"
    if not loops:
        tied = "couplings relate its joints" if couplings else "rods and struts connect its bodies"
        why = f"The robot has no loop; {tied}"
    elif free:
        why += f"; {listed(free)} is a body of its own that no leg carries, so every leg ends in one"
    groups: dict[tuple[str, int], list[str]] = {}
    for loop in loops:
        groups.setdefault((loop.kind, loop.size), []).append(loop.name)
    text = [why + "."]
    for (kind, size), names in groups.items():
        text.append(f"- {kind}, {count_of(size, 'row')}{' each' if len(names) > 1 else ''}: {listed(names)}")
    text += [f"- coupling, 1 row: {coupling.equation}{loss_words(coupling)}" for coupling in couplings]
    distances = [row for row in robot.closures.constraints if isinstance(row, Distance)]
    at_home = {row.name: f", {robot.home[row.position]:.4g} m at home" for row in distances if row.number is not None}
    text += [f"- {row.kind}, 1 row: {row.equation}{at_home.get(row.name, '')}" for row in distances]
    mobility = robot.mobility
    said = f"Together {count_of(robot.closures.size, 'row')} of J_tot with rank {mobility.rank}"
    if mobility.redundant:
        names = [robot.closures.row_names[k] for k in mobility.redundant]
        said += f": the robot is over-constrained, {count_of(len(names), 'row repeats', 'rows repeat')} others "
        said += f"({listed(names, 4)})"
    if mobility.home_rank < mobility.rank:
        said += f". Home is a singular pose, where the rank is only {mobility.home_rank}"
    text.append(said + ".")
    universal = any(loop.turning == "universal" for loop in loops)
    words = [word for word, rows in (("loops", loops), ("couplings", couplings), ("rods", distances)) if rows]
    title = listed(words).capitalize().replace(", ", " and ") if words else "Loops"
    rows = (*((9,) if loops else ()), *((10,) if universal else ()), 11)
    rows = (*rows, *((42,) if couplings else ()), *((45,) if distances else ()))
    rows = (*rows, *((LOSSES,) if any(coupling.lossy for coupling in couplings) else ()))
    return Chapter("loops", title, tuple(text), rows)


def _dependent(configuration: Configuration, form: Form) -> Chapter:
    robot, names = configuration.robot, configuration.robot.tree.rate_names
    chosen = configuration.reduction.partition.independent if form.dependence is None else form.independent
    dependent = [names[k] for k in robot.free if k not in set(chosen)]
    independent = [names[k] for k in chosen]
    how = form.dependence or (
        f"The square block J_f of {len(dependent)} rows and columns gives the dependent rates. QR with pivoting "
        "picks them, passive joints before motors before free bodies, so that the block is regular; another choice "
        "would give the same motion. At home they are these:"
    )
    rows = [f"- dependent: {listed(dependent)}", f"- independent ({len(independent)}): {listed(independent)}"]
    return Chapter("dependent", "What depends on what", (how, *rows), (12, 13))


def _motors(robot: Robot) -> Chapter:
    motors, freedoms = robot.actuated_names, _freedoms(robot)
    text = [f"{count_of(len(motors), 'motor')} ({listed(motors)}) for {count_of(freedoms, 'freedom')}."]
    if not motors:
        text = [f"No motor drives its {count_of(freedoms, 'freedom')}: it moves under gravity and external loads."]
    elif len(motors) > freedoms:
        text.append("More motors than degrees of freedom: efforts are those of least norm.")
    elif len(motors) < freedoms:
        text.append(
            "Fewer motors than degrees of freedom: the inverse model takes motions of motors; the rest moves freely."
        )
    actuations, modes = (sorted(table) for table in (robot.description.actuation, robot.description.working_modes))
    if actuations:
        text.append(f"Chosen actuation: {robot.actuation}; the file also has {listed(actuations)}.")
    if modes:
        text.append(f"Working mode: {robot.working_mode}; the file has {listed(modes)}.")
    if robot.drive_springs:
        names = [robot.tree.links[number].name for number in robot.drive_springs]
        text.append(f"Elastic drives: the springs of {listed(names)} are at rest in every pose.")
    return Chapter("motors", "Motors", tuple(text))


# -- models -----------------------------------------------------------------------------------------------------


def _models(robot: Robot) -> Chapter:
    closed = bool(robot.closures.size)
    size = len(robot.free) - robot.mobility.rank
    if closed:
        text = [
            f"Virtual powers take the forces of the open tree to the {count_of(size, 'independent rate')}; closures do "
            f"no work. The inverse model solves for the efforts, the direct one a {size} x {size} mass matrix."
        ]
        equations: tuple[int, ...] = (14, 16, 17, 18)
    else:
        text = [
            f"No loop: the recursion itself is the inverse model, and the direct one solves a {size} x {size} mass "
            "matrix."
        ]
        equations = (17,)
    elastic = bool(robot.tree.elastic) or any(link.terms.stiffness for link in robot.tree.links)
    elastic = elastic or bool(robot.tree.springs or robot.tree.elements)
    if elastic:
        text.append("Natural frequencies come from the same reduction of mass and stiffness, motors locked or held.")
        equations = (*equations, 28)
    return Chapter("models", "Models", tuple(text), equations)


def _programs(form: Form, names: Mapping[str, str | None]) -> Chapter:
    others: dict[str, list[str]] = {}
    for model in TOLD:
        name = names[model]
        if name is not None and name != form.name:
            others.setdefault(name, []).append(model)
    rest = [f"Written in the {name}: {', '.join(models)}." for name, models in others.items()]
    return Chapter("programs", f"Programs: {form.name}", (*form.because, *rest), form.equations)


def _data(robot: Robot) -> Chapter:
    reference = robot.description.reference
    text = [f"Source: {reference.source or 'not said in the file'}."]
    words = {"inferred": "inferred", "fitted": "fitted", "errata": "corrected", "notes": "note"}
    text += [f"- {word}: {line}" for key, word in words.items() for line in getattr(reference, key)]
    return Chapter("data", "Where the numbers come from", tuple(text))
