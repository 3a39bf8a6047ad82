"""Elastic bodies from their tables in the robot file: elements of beams, bodies given by modes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from parflex.bodies import Body, sections
from parflex.bodies.beam import Material, Section, beam, first_bending, rolled
from parflex.bodies.beam_parts import ElementParts
from parflex.bodies.elastic_body import with_damping, with_small_turns
from parflex.bodies.modal import modal_body, with_values
from parflex.bodies.modal_file import load_modal
from parflex.description import schema
from parflex.description.elastic_tables import SECTION_KEYS
from parflex.description.names import split_place
from parflex.errors import InputError, ParflexError, RobotFileError

MOST_ELEMENTS = 32  # into which a beam is cut so that one of its nodes is where something is mounted
SAME_NODE = 1e-9  # of the length of a beam
POISSON = 0.3  # of a material that gives neither its shear modulus nor its own ratio


def read_material(table: schema.MaterialTable) -> Material:
    """Moduli and density; the shear modulus from Poisson's ratio if it is not given."""
    shear = table.shear_modulus
    if shear is None:
        shear = table.elastic_modulus / (2 * (1 + (POISSON if table.poisson_ratio is None else table.poisson_ratio)))
    return Material(table.elastic_modulus, shear, table.density)


def read_section(table: schema.SectionTable, shear_coefficient: float | None = None) -> Section:
    """Area and moments of a section; `shear_coefficient` takes the place of its own ones."""
    sizes = {key: getattr(table, key) for key in SECTION_KEYS[table.shape]}
    section = sections.SHAPES[table.shape](**sizes)
    return section if shear_coefficient is None else replace(section, ky=shear_coefficient, kz=shear_coefficient)


def read_element(robot: schema.RobotFile, name: str, spec: schema.Beam, refine: int) -> Body:
    """One element of the beam of a frame, each element of the file cut into `refine`."""
    planar = (spec.model or robot.motion) == "planar"
    if spec.roll and planar:
        raise RobotFileError(
            "a planar beam cannot be rolled",
            key=f"frame '{name}': beam.roll",
            value=spec.roll,
            hint='swap y and z, or use model = "spatial"',
        )
    material = read_material(robot.materials[spec.material])
    section = read_section(robot.sections[spec.section], spec.shear_coefficient)
    length = spec.length / (spec.elements * refine)
    linear = (spec.axial or robot.axial) == "linear"
    element = beam(length, material, section, planar, spec.rotary_inertia, spec.shear, linear)
    element = rolled(element, spec.roll) if spec.roll else element
    if spec.damping is not None:
        stiffness = spec.damping.stiffness
        if spec.damping.ratio:
            stiffness = 2 * spec.damping.ratio / first_bending(spec.length, material, section, planar)
        element = with_damping(element, spec.damping.mass, stiffness)
    return element if robot.rotations == "consistent" else with_small_turns(element)


def element_parts(robot: schema.RobotFile, spec: schema.Beam, length: float) -> ElementParts:
    """The same element cut at its sections; its length is that of its body."""
    table = robot.sections[spec.section]
    fibres = sections.fibres_of(table.shape, {key: getattr(table, key) for key in SECTION_KEYS[table.shape]})
    planar = (spec.model or robot.motion) == "planar"
    material, section = read_material(robot.materials[spec.material]), read_section(table, spec.shear_coefficient)
    return ElementParts(length, material, section, planar, spec.rotary_inertia, spec.shear, spec.roll, fibres)


def read_modal(robot: schema.RobotFile, name: str, spec: schema.Modal) -> Body:
    """The body of a frame given by modes."""
    owner = "platform" if robot.platform is not None and robot.platform.name == name else f"frame '{name}'"
    key = f"{owner}: modal"
    try:
        data = load_modal(spec.file)
    except ParflexError as error:
        error.key = error.key or f"{key}.file"  # nothing in the file is wrong: the file is
        raise
    try:
        data = data if spec.modes is None else data.with_modes(spec.modes)
        body = modal_body(with_values(data, spec.stiffness, spec.damping))
    except InputError as error:
        raise RobotFileError(error.message, key=f"{key}.{error.key}", value=error.value, hint=error.hint) from None
    if robot.motion == "planar" and any(
        np.any(node.Phi_d[2]) or np.any(node.Phi_r[:2]) for node in body.nodes.values()
    ):
        raise RobotFileError(
            "some mode leaves the plane", key=f"{key}.file", value=spec.file, hint='use motion = "spatial"'
        )
    body = body if robot.axial == "mean" else body.with_linear_strain()
    return body if robot.rotations == "consistent" else with_small_turns(body)


def mounted_inside(robot: schema.RobotFile) -> dict[str, list[str]]:
    """Of each body the places inside it on which the file mounts or closes something, or measures the robot."""
    ties = [closure.between for closure in robot.closure]
    ties += [element.between for element in robot.element if element.kind == "rod" or element.measured]
    named = [*(frame.parent for frame in robot.frame), *(end for between in ties for end in between)]
    found: dict[str, list[str]] = {}
    for owner, where in filter(None, map(split_place, dict.fromkeys([*named, robot.end_effector or ""]))):
        found.setdefault(owner, []).append(where)
    return found


def elements_between(name: str, elements: int, mounts: Mapping[str, float | None]) -> int:
    """Into how many parts each element of a beam is cut, so that what is mounted inside it sits on nodes."""
    for parts in range(1, max(MOST_ELEMENTS // elements, 1) + 1):
        along = [s * elements * parts for s in mounts.values() if s is not None]
        if all(abs(x - round(x)) < SAME_NODE * elements * parts for x in along):
            return parts
    where = next(where for where in mounts)
    raise RobotFileError(
        f"no beam of up to {MOST_ELEMENTS} equal elements has nodes where something is mounted on '{name}'",
        key=f"frame '{name}': beam.elements",
        value=f"{name}@{where}",
        hint="mount it at a simple fraction such as 0.5, or make two beams in series",
    )
