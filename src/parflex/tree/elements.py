"""Elements of beams from their tables in the robot file."""

from __future__ import annotations

from dataclasses import replace

from parflex.bodies import ElasticBody, sections
from parflex.bodies.beam import Material, Section, beam, first_bending, rolled
from parflex.bodies.elastic import with_damping, with_small_turns
from parflex.description import schema
from parflex.errors import RobotFileError

POISSON = 0.3  # of a material that gives neither its shear modulus nor its own ratio


def read_material(table: schema.Material) -> Material:
    """Moduli and density; the shear modulus from Poisson's ratio if it is not given."""
    shear = table.shear_modulus
    if shear is None:
        shear = table.elastic_modulus / (2 * (1 + (POISSON if table.poisson_ratio is None else table.poisson_ratio)))
    return Material(table.elastic_modulus, shear, table.density)


def read_section(table: schema.Section, shear_coefficient: float | None = None) -> Section:
    """Area and moments of a section; `shear_coefficient` takes the place of its own ones."""
    s = table
    match s.shape:
        case "rectangle":
            section = sections.rectangle(s.y, s.z)  # type: ignore[arg-type]
        case "circle":
            section = sections.circle(s.diameter)  # type: ignore[arg-type]
        case "tube":
            section = sections.tube(s.diameter, s.thickness)  # type: ignore[arg-type]
        case _:
            Ip = s.Ip if s.Ip is not None else s.Iy + s.Iz  # type: ignore[operator]
            # without its own, the coefficients are never used: the file is refused before
            section = Section(s.A, s.Iy, s.Iz, s.J, Ip, s.ky or 1.0, s.kz or 1.0)  # type: ignore[arg-type]
    return section if shear_coefficient is None else replace(section, ky=shear_coefficient, kz=shear_coefficient)


def read_element(robot: schema.RobotFile, name: str, spec: schema.Beam, refine: int) -> ElasticBody:
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
    element = beam(length, material, section, planar=planar, rotary_inertia=spec.rotary_inertia, shear=spec.shear)
    element = rolled(element, spec.roll) if spec.roll else element
    if spec.damping is not None:
        stiffness = spec.damping.stiffness
        if spec.damping.ratio:
            stiffness = 2 * spec.damping.ratio / first_bending(spec.length, material, section, planar)
        element = with_damping(element, spec.damping.mass, stiffness)
    return element if robot.rotations == "consistent" else with_small_turns(element)
