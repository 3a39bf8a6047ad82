"""How the model of a robot is made, in words: what the other modules decided about it, nothing is decided here."""

from __future__ import annotations

from parflex.closure.closed_form import TwoBars
from parflex.models.configuration import Configuration
from parflex.models.explaining.explanation import Chapter, Explanation, counted, listed
from parflex.models.leg_form import LegForm, find_leg_form
from parflex.models.pieces import Pieces, pieces
from parflex.models.robot import Robot
from parflex.tree.link_tree import GROUND, Link

KINDS = {"free": "free in space", "planar": "free in the plane", "fixed": "fixed"}
TERMS = {
    "motor_inertia": "motor inertia",
    "viscous": "viscous friction",
    "coulomb": "Coulomb friction",
    "stiffness": "springs",
    "damper": "dampers",
}
Form = LegForm | Pieces | str


def explain(robot: Robot) -> Explanation:
    """In words and equations: bodies, coordinates, loops, what depends on what, motors, the form of the programs."""
    configuration = Configuration(robot, robot.home)
    form: Form = find_leg_form(robot)
    if isinstance(form, LegForm) and not form.closed_form:
        form = "the joint values of its legs have no closed form that is recognised"
    if isinstance(form, str) and robot.tree.elastic:
        form = pieces(robot) or form
    sections = [
        _bodies(robot),
        _coordinates(robot),
        *([_loops(robot), _dependent(configuration, form)] if robot.closures.loops else []),
        _motors(robot),
        _models(robot),
        _programs(robot, form),
        _data(robot),
    ]
    name, _ = _form_name(robot, form)
    return Explanation(
        robot.name,
        robot.description.title or robot.name,
        name,
        _sizes(robot, form),
        tuple(sections),
        (*robot.warnings, *configuration.condition.warnings()),
    )


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
    return sizes | ({"pieces": len(form.pieces), "unknowns": form.size} if isinstance(form, Pieces) else {})


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
        f"The robot {where}. Its frames make {counted(len(tree.links), 'link')}, {len(heavy)} of them with mass; each "
        "is placed in its parent by a constant rotation and position and then moved by its joint. What is fixed to a "
        "link is part of it.",
        *_rows(robot),
    ]
    bending = [link for link in tree.links if link.elastic_labels]
    if bending:
        text += [
            f"{counted(len(bending), 'body bends', 'bodies bend')}: a material point is where the rigid body would "
            "have it, plus shapes times elastic coordinates; all inertial terms follow from integrals over the "
            "undeformed body.",
            *_shapes(robot),
            *_axial(bending),
        ]
    rows = (1,) if any(frame.mdh is not None for frame in robot.description.frame) else ()
    mean = (37, 38) if any(link.body.acting for link in bending) else ()
    bent = (24, 25, 26, 27, *mean) if bending else ()
    entries = (*robot.description.frame, *((robot.description.platform,) if robot.description.platform else ()))
    modal = (32,) if any(entry.modal is not None for entry in entries) else ()
    return Chapter("bodies", "Bodies", tuple(text), (*rows, 3, *bent, *modal))


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
    if link.elastic_labels:
        words.append("bends")
    return f"{name} ({', '.join(words)})"


def _shapes(robot: Robot) -> list[str]:
    """What bends and how; bodies that are alike in one row."""
    beams = {frame.name: frame.beam for frame in robot.description.frame if frame.beam is not None}
    groups: dict[str, list[str]] = {}
    for link in robot.tree.links:
        if not link.elastic_labels:
            continue
        beam = beams.get(link.name)
        if beam is not None:
            kind = "Timoshenko" if beam.shear else "Euler-Bernoulli"
            what = f"{kind} beam of {beam.length:g} m in {counted(beam.elements, 'element')}"
        elif any(link.name.startswith(f"{name}.") for name in beams):
            what = "further elements of these beams"
        else:
            what = "body given by its modes"
        groups.setdefault(f"{what}, coordinates {listed(link.elastic_labels)}", []).append(link.name)
    return [f"- {what}: {listed(names)}" for what, names in groups.items()]


def _axial(bending: list[Link]) -> list[str]:
    """What bending does to the axial strain."""
    mean = [link.name for link in bending if link.body.acting]
    linear = [link.name for link in bending if link.body.by_tip and not link.body.acting]
    text = []
    if mean:
        text.append(
            f"Bending shortens the chord of {listed(mean)}: the axial strain is the mean one, so that pull makes "
            "stiffer and pressure softer."
        )
    if linear:
        text.append(
            f'Axial strain is linear (axial = "linear") in {listed(linear)}: axial load does not make it stiffer.'
        )
    return text


def _coordinates(robot: Robot) -> Chapter:
    tree = robot.tree
    elastic = len(tree.elastic)
    joints = tree.n - elastic
    parts = [counted(joints, "rate of joints and free bodies", "rates of joints and free bodies")]
    parts += [f"{elastic} of elastic coordinates"] if elastic else []
    quaternions = [link.name for link in tree.links if link.joint.kind in ("free", "spherical")]
    text = [f"All joints are open at first: q_tot has {tree.nq} positions, qd_tot {tree.n} rates ({', '.join(parts)})."]
    if quaternions:
        text.append(f"The orientation of {listed(quaternions)} is a unit quaternion; its rate is the angular velocity.")
    if robot.locked:
        locked = listed([tree.rate_names[k] for k in sorted(robot.locked)])
        text.append(f"Locked joints stand still and leave {len(robot.free)} rates: {locked}.")
    text.append(
        "A recursion outwards gives twists and accelerations of all links, one inwards the forces along all rates; "
        + ("gravity is an acceleration of the ground upwards." if tree.gravity.any() else "there is no gravity.")
    )
    acting = [word for key, word in TERMS.items() if any(getattr(link.terms, key) for link in tree.links)]
    if acting:
        text.append(f"Joints add their own terms: {', '.join(acting)}.")
    equations = (*((2,) if quaternions else ()), 4, 5, 6, *((7,) if acting else ()), 8)
    return Chapter("coordinates", "Coordinates and the open tree", tuple(text), equations)


# -- loops ------------------------------------------------------------------------------------------------------


def _loops(robot: Robot) -> Chapter:
    tree, loops = robot.tree, robot.closures.loops
    free = [link.name for link in tree.links if link.joint.kind in ("free", "planar") and link.parent == GROUND]
    why = "A tree has no loops, so each loop is cut where the file has a closure"
    if free:
        why += f"; {listed(free)} is a body of its own that no leg carries, so every leg ends in one"
    groups: dict[tuple[str, int], list[str]] = {}
    for loop in loops:
        groups.setdefault((loop.kind, loop.size), []).append(loop.name)
    text = [why + "."]
    for (kind, size), names in groups.items():
        text.append(f"- {kind}, {counted(size, 'row')}{' each' if len(names) > 1 else ''}: {listed(names)}")
    mobility = robot.mobility
    said = f"Together {counted(robot.closures.size, 'row')} of J_tot with rank {mobility.rank}"
    if mobility.redundant:
        names = [robot.closures.row_names[k] for k in mobility.redundant]
        said += f": the robot is over-constrained, {counted(len(names), 'row repeats', 'rows repeat')} others "
        said += f"({listed(names, 4)})"
    if mobility.home_rank < mobility.rank:
        said += f". Home is a singular pose, where the rank is only {mobility.home_rank}"
    text.append(said + ".")
    universal = any(loop.turning == "universal" for loop in loops)
    return Chapter("loops", "Loops", tuple(text), (9, *((10,) if universal else ()), 11))


def _dependent(configuration: Configuration, form: Form) -> Chapter:
    robot, names = configuration.robot, configuration.robot.tree.rate_names
    split = form.partition if isinstance(form, Pieces) else configuration.reduction.partition
    dependent, independent = ([names[k] for k in part] for part in (split.dependent, split.independent))
    if isinstance(form, Pieces):
        how = [
            "Each closure fixes elastic coordinates of one body beside it, so that its end is where it must be: "
            f"{len(dependent)} of {len(robot.free)} rates follow from the others."
        ]
    else:
        how = [
            f"The square block J_f of {len(dependent)} rows and columns gives the dependent rates. QR with pivoting "
            "picks them, passive joints before motors before free bodies, so that the block is regular; another choice "
            "would give the same motion. At home they are these:"
        ]
    rows = [f"- dependent: {listed(dependent)}", f"- independent ({len(independent)}): {listed(independent)}"]
    return Chapter("dependent", "What depends on what", (*how, *rows), (12, 13))


def _motors(robot: Robot) -> Chapter:
    motors, freedoms = robot.actuated_names, _freedoms(robot)
    text = [f"{counted(len(motors), 'motor')} ({listed(motors)}) for {counted(freedoms, 'freedom')}."]
    if not motors:
        text = [f"No motor moves its {counted(freedoms, 'freedom')}: it falls, swings or is moved by hand."]
    elif len(motors) > freedoms:
        text.append("More motors than freedoms: efforts are those of least norm.")
    elif len(motors) < freedoms:
        text.append("Fewer motors than freedoms: the direct model exists, the inverse one of a free motion does not.")
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
    closed = bool(robot.closures.loops)
    size = len(robot.free) - robot.mobility.rank
    if closed:
        text = [
            f"Virtual powers take the forces of the open tree to the {counted(size, 'independent rate')}; closures do "
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
    if elastic:
        text.append("Natural frequencies come from the same reduction of mass and stiffness, motors locked or held.")
        equations = (*equations, 28)
    return Chapter("models", "Models", tuple(text), equations)


def _form_name(robot: Robot, form: Form) -> tuple[str, tuple[int, ...]]:
    """The form of the programs and its equations."""
    if isinstance(form, Pieces):
        return "two-node form", (29, 30, 31)
    if isinstance(form, LegForm):
        return "leg form", (19, 20, 21, 22, *((33, 34) if form.elastic is not None else ()))
    if not robot.closures.loops and not robot.tree.elastic:
        return "open tree", (23,)
    return "general form", (13, 16, 17)


def _programs(robot: Robot, form: Form) -> Chapter:
    name, equations = _form_name(robot, form)
    match form:
        case Pieces():
            cuts = [counted(len(form.beams), "beam element")] if form.beams else []
            cuts += [counted(len(form.modal), "body given by modes", "bodies given by modes")] if form.modal else []
            beams = " and ".join(cuts)
            text = [
                f"Cut at its {beams} the robot falls into {counted(len(form.pieces), 'piece')}. Unknown are "
                f"their accelerations and those of the joints inside them, {form.size} in all; loops through beams "
                "need no equation. The matrix is symmetric and sparse and is eliminated from the tips inwards."
            ]
        case LegForm():
            solved = {
                "two bars" if isinstance(leg.geometry, TwoBars) else "a slide on crossed hinges" for leg in form.legs
            }
            text = [
                f"Each of {len(form.legs)} legs is reduced to what the platform feels at its end; one "
                f"{len(robot.actuated)} x {len(robot.actuated)} solve is left. Joint values follow from the platform "
                f"in closed form ({', '.join(sorted(solved))})."
            ]
            if form.elastic is not None:
                text.append(
                    "The platform bends: attachments move with its modes, and instead of their accelerations the "
                    "unknowns are what they give along the directions in which they move the attachments."
                )
        case _ if name == "open tree":
            text = ["The inverse model is the recursion, the direct one goes by articulated bodies."]
        case _:
            why = "the two-node form" if robot.tree.elastic else f"the leg form: {form}"
            if robot.tree.elastic:
                why += ": some loop runs through rigid links alone, or a body is not a beam with a node at each end"
            text = [
                f"Dependent rates are chosen once, at home, and eliminated by blocks. The robot does not fit {why}."
            ]
    return Chapter("programs", f"Programs: {name}", tuple(text), equations)


def _data(robot: Robot) -> Chapter:
    reference = robot.description.reference
    text = [f"Source: {reference.source or 'not said in the file'}."]
    words = {"inferred": "inferred", "fitted": "fitted", "errata": "corrected", "notes": "note"}
    text += [f"- {word}: {line}" for key, word in words.items() for line in getattr(reference, key)]
    return Chapter("data", "Where the numbers come from", tuple(text))
