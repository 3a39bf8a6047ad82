"""Build elastic bodies and force elements from their tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from parflex.bodies import sections
from parflex.bodies.beam import BeamElement, Material, Section, beam, first_bending_frequency
from parflex.bodies.elastic import Body, ElasticBody, with_damping, with_small_rotations
from parflex.bodies.rigid import RigidBody
from parflex.errors import InputError, ParflexError, RobotFileError
from parflex.robotfile import schema
from parflex.robotfile.checks import refuse, refuse_unknown
from parflex.robotfile.schema import SECTION_KEYS, Damping, ElementTable
from parflex.robotfile.values import LIMIT_KEYS
from parflex.spatial.batched import VariedNumberError, is_varied
from parflex.spatial.rotations import compose, vector_length
from parflex.tree import joints
from parflex.tree.force_elements import JointTerms, PointElement, curve_of
from parflex.tree.tree import GROUND, Link, NamedPlaces, Place, Tree, new_link

if TYPE_CHECKING:
    from parflex.bodies.modal import ModalData

POISSON = 0.3  # of a material that gives neither its shear modulus nor its own ratio
Array = np.ndarray
MIN_START_DISTANCE = 1e-9  # m, between points that are one


def read_material(table: schema.MaterialTable) -> Material:
    """Return moduli and density; the default shear modulus follows from Poisson's ratio."""
    shear = table.shear_modulus
    if shear is None:
        shear = table.elastic_modulus / (2 * (1 + (POISSON if table.poisson_ratio is None else table.poisson_ratio)))
    return Material(table.elastic_modulus, shear, table.density)


def read_section(table: schema.SectionTable, shear_coefficient: float | None = None) -> Section:
    """Return area and moments of a section; `shear_coefficient` overrides those of the section."""
    sizes = {key: getattr(table, key) for key in SECTION_KEYS[table.shape]}
    section = sections.SHAPES[table.shape](**sizes)
    return section if shear_coefficient is None else replace(section, ky=shear_coefficient, kz=shear_coefficient)


def read_element(robot: schema.RobotFile, name: str, spec: schema.Beam, count: float) -> ElasticBody:
    """Return one of `count` equal elements of the beam of a frame."""
    element = _checked_element(robot, name, spec, spec.length / count)
    body = beam(element, _is_linear(robot, spec))
    body = with_damping(body, *_damping(spec, element)) if spec.damping is not None else body
    return _as_in_file(body, robot)


def _as_in_file(body: Any, robot: schema.RobotFile) -> Any:
    """Return the body with the strain and rotations that the file states for all bodies."""
    body = body if robot.axial == "mean" or body.by_tip else body.with_linear_strain()
    return body if robot.rotations == "consistent" else with_small_rotations(body)


def read_reduced(robot: schema.RobotFile, name: str, spec: schema.Beam, elements: int, fraction: float) -> ElasticBody:
    """Return a fraction of the beam of a frame as one reduced body in place of `elements` elements."""
    from parflex.bodies.reduced_beam import reduced_beam

    whole = _checked_element(robot, name, spec, spec.length * fraction)
    damping, settings = _damping(spec, whole), spec.reduce
    assert settings is not None
    numbers = (whole.length, whole.roll, *vars(whole.material).values(), *vars(whole.section).values())
    numbers = (*numbers, settings.error, settings.band, *damping)  # how many modes are kept depends on all of them
    if any(map(is_varied, numbers)):
        raise VariedNumberError("reduced beams of many designs are made one by one")
    try:
        body = reduced_beam(whole, elements, settings.error, settings.band, _is_linear(robot, spec), damping)
    except InputError as error:
        key = f"frame '{name}': beam.reduce.{error.key}"
        raise RobotFileError(error.message, key=key, value=error.value, hint=error.hint) from None
    return _as_in_file(body, robot)


def _checked_element(robot: schema.RobotFile, name: str, spec: schema.Beam, length: float) -> BeamElement:
    """Return an element of this length of the beam of a frame, after checks."""
    element = element_parts(robot, spec, length)
    hint, key = 'swap y and z, or use model = "spatial"', f"frame '{name}': beam.roll"
    refuse(spec.roll and element.planar, "a planar beam cannot be rolled", key, spec.roll, hint)
    return element


def _is_linear(robot: schema.RobotFile, spec: schema.Beam) -> bool:
    return (spec.axial or robot.axial) == "linear"


def _damping(spec: schema.Beam, element: BeamElement) -> tuple[float, float]:
    """Return the mass and stiffness factors of damping."""
    if spec.damping is None:
        return 0.0, 0.0
    if spec.damping.ratio:
        first = first_bending_frequency(replace(element, length=spec.length))
        return spec.damping.mass, 2 * spec.damping.ratio / first
    return spec.damping.mass, spec.damping.stiffness


def element_parts(robot: schema.RobotFile, spec: schema.Beam, length: float) -> BeamElement:
    """Return an element of a beam as the file describes it."""
    table = robot.sections[spec.section]
    fibres = sections.fibres_of(table.shape, {key: getattr(table, key) for key in SECTION_KEYS[table.shape]})
    planar = (spec.model or robot.motion) == "planar"
    material, section = read_material(robot.materials[spec.material]), read_section(table, spec.shear_coefficient)
    return BeamElement(length, material, section, planar, spec.rotary_inertia, spec.shear, spec.roll, fibres)


def read_modal(robot: schema.RobotFile, name: str, spec: schema.Modal) -> Body:
    """Return the modal body of a frame."""
    from parflex.bodies.modal import load_modal  # kinds of bodies that few robots have are read when they do

    owner = "platform" if robot.platform is not None and robot.platform.name == name else f"frame '{name}'"
    key = f"{owner}: modal"
    try:
        data = load_modal(spec.file)
    except ParflexError as error:
        error.key = error.key or f"{key}.file"  # nothing in the file is wrong: the file is
        raise
    try:
        data = data if spec.modes is None else data.with_modes(spec.modes)
        body = _modal_body(data, spec)
    except InputError as error:
        raise RobotFileError(error.message, key=f"{key}.{error.key}", value=error.value, hint=error.hint) from None
    spatial = any(np.any(node.Phi_d[2]) or np.any(node.Phi_r[:2]) for node in body.nodes.values())
    wrong, hint = robot.motion == "planar" and spatial, 'use motion = "spatial"'
    refuse(wrong, "some mode leaves the plane", f"{key}.file", spec.file, hint)
    return _as_in_file(body, robot)


def _modal_body(data: ModalData, spec: schema.Modal) -> ElasticBody:
    """Return the body with modal stiffnesses and damping ratio of the file, cached without these."""
    from parflex.bodies.modal import modal_body, with_values

    values = [*(spec.stiffness or ()), spec.damping]
    if not any(is_varied(x) for x in values):
        return modal_body(with_values(data, spec.stiffness, spec.damping))
    k: Any = spec.stiffness
    ratio: Any = spec.damping
    first = None if k is None else [x.nominal if is_varied(x) else x for x in k]
    body = modal_body(with_values(data, first, ratio.nominal if is_varied(ratio) else ratio))
    if data.geometric is not None:
        raise VariedNumberError("the geometric stiffness of a mode depends on its stiffness")
    stiffness = np.array(data.modal_stiffnesses if k is None else k, dtype=object)
    ratios = data.damping_ratios if ratio is None else [ratio] * data.count
    damping = [2 * r * np.sqrt(x * m) for r, x, m in zip(ratios, stiffness, data.modal_masses, strict=True)]
    return replace(body, K=np.diag(stiffness), D=np.diag(np.array(damping, dtype=object)))


def read_superelement(
    robot: schema.RobotFile, name: str, spec: schema.Superelement, free: bool
) -> tuple[Body, str | None]:
    """Return the superelement of a frame, and the node at which the frame clamps it."""
    from parflex.bodies.matrix_files import load_matrices
    from parflex.bodies.superelement import super_element, superelement_body
    from parflex.bodies.superelement_matrices import in_si_units

    owner = "platform" if robot.platform is not None and robot.platform.name == name else f"frame '{name}'"
    key = f"{owner}: superelement"
    damping: Any = spec.damping
    if isinstance(damping, Damping):
        hint = "write damping = 0.01 for a ratio of all modes, or { mass, stiffness }"
        refuse(damping.ratio, "a damping ratio must be a number, not a table", f"{key}.damping.ratio", None, hint)
        damping = (damping.mass, damping.stiffness)
    root = spec.root or (None if free else next(iter(spec.nodes)))
    files: Any = spec.file
    try:
        data = load_matrices(files, list(spec.nodes.values()))
        data = data if spec.modes is None else data.with_modes(spec.modes)
        data = in_si_units(data, spec.units)
        data = replace(data, geometric=None) if spec.geometric is False else data
        element = super_element(data, spec.nodes, root, spec.positions, robot.motion == "planar")
        loads = spec.geometric if isinstance(spec.geometric, dict) else None
        body = superelement_body(element, damping, loads)
    except np.linalg.LinAlgError as error:  # numbers that differ by more than floats hold
        message = f"its matrices cannot be decomposed ({str(error).split('.')[0].lower()})"
        raise RobotFileError(message, key=f"{key}.file", hint="check its numbers, or write them again") from None
    except ParflexError as error:
        error.file = error.file or (files if isinstance(files, str) else next(iter(files.values())))
        error.key = f"{key}.{error.key if error.key in schema.Superelement.model_fields else 'file'}"
        raise
    return _as_in_file(body, robot), root


def with_elements(tree: Tree, robot: schema.RobotFile) -> Tree:
    """Return the tree with the elements of the file: force elements, and coordinates of struts."""
    if not robot.element:
        return tree
    for element in robot.element:
        _check_ends(tree, element)
    forces = [element for element in robot.element if element.kind != "rod" and not element.measured]
    struts = [element for element in robot.element if element.measured]
    return replace(_with_struts(tree, robot, struts), elements=tuple(_force(tree, element) for element in forces))


def start_distance(tree: Tree, element: ElementTable) -> Any:
    """Return the distance between the ends of an element at the start values of all joints."""
    frames: dict[int, tuple[Array, Array]] = {GROUND: (np.eye(3), np.zeros(3))}
    for j, link in enumerate(tree.links):
        joint_rotation, d = (np.eye(3), np.zeros(3)) if link.node is not None else link.joint.transform(link.start)
        frames[j] = compose(*frames[link.parent], *compose(link.rotation, link.position, joint_rotation, d))

    def point(place: Place) -> Array:
        R, p = frames[place.link]
        return p + R @ (place.position if place.inner is None else place.inner.node.r0 + place.position)

    first, second = (point(tree.places[end]) for end in element.between)
    distance = vector_length(second - first)
    return distance if is_varied(distance) else float(distance)


def _check_ends(tree: Tree, element: ElementTable) -> None:
    """Raise unless both ends exist and are on two bodies."""
    key, ends = f"element '{element.name}': between", "'{}' and '{}'".format(*element.between)
    for end in element.between:
        if place_named(end, key, tree.places, tree.links) is None:
            refuse_unknown(end, dict(tree.places), "frame or point", key)
        if (element.kind == "rod" or element.measured) and tree.places[end].inner is not None:
            raise inner_point_error(key, end)
    first, second = (tree.places[end] for end in element.between)
    same, value = first.link == second.link and first.inner is None and second.inner is None, element.between[1]
    body = "the ground" if first.link == GROUND else f"the body '{tree.links[first.link].name}'"
    refuse(same, f"{ends} are both on {body}, where an element has no effect", key, value, "name points on two bodies")
    smooth = element.kind == "spring" and element.rest == 0 and not element.damping
    meeting = not smooth and start_distance(tree, element) <= MIN_START_DISTANCE
    hint = "give starts at which they are apart, or other points"
    refuse(meeting, f"{ends} coincide at the start, so the element has no direction", key, value, hint)


def inner_point_error(key: str, name: str) -> RobotFileError:
    """Return the error for a point between nodes of a body on which more than forces would act."""
    hint = "name the place itself, as in BEAM@0.5, which becomes a node of the beam"
    message = f"nothing can be mounted on '{name}', which is a point inside a body"
    return RobotFileError(message, key=key, value=name, hint=hint)


def place_named(name: str, key: str, places: Mapping[str, Place], links: Sequence[Link]) -> Place | None:
    """Return a place by name, also inside bodies."""
    try:
        return NamedPlaces(places, links).get(name)
    except InputError as error:
        raise RobotFileError(error.message, key=key, value=name, hint=error.hint) from None


def _force(tree: Tree, element: ElementTable) -> PointElement:
    first, second = (tree.places[end] for end in element.between)
    table = element.table
    numbers = (element.stiffness or 0.0, element.rest or 0.0, element.damping or 0.0)
    curves = (curve_of(table.length), curve_of(table.speed)) if table else (None, None)
    return PointElement(element.name, element.kind, first, second, *numbers, *curves)


def _with_struts(tree: Tree, robot: schema.RobotFile, struts: list[ElementTable]) -> Tree:
    """Return the tree with a massless prismatic joint per strut, which a closure row sets to the length."""
    links = list(tree.links)
    for strut in struts:
        start, joint = np.array([start_distance(tree, strut)]), joints.JOINTS["prismatic"]()
        terms = JointTerms(stiffness=strut.stiffness or 0.0, rest=strut.rest or 0.0, damper=strut.damping or 0.0)
        more: dict[str, Any] = {"leg": robot.leg_of.get(strut.name), "strut": True, "pulls_only": strut.kind == "cable"}
        more |= {key: getattr(strut, key) for key in LIMIT_KEYS}
        base = tree.places["base"]
        links.append(new_link(links, strut.name, base, joint, RigidBody(), start, terms=terms, **more))
    return replace(tree, links=tuple(links))
