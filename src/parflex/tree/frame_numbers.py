"""Numbers of a frame in the file: its body with point masses, and what acts in its joint."""

from __future__ import annotations

from typing import Any

from parflex.bodies.rigid import RigidBody
from parflex.robotfile import schema
from parflex.tree.link_tree import JointTerms


def read_body(inertia: schema.Inertia, point_masses: tuple[schema.PointMass, ...] = ()) -> RigidBody:
    """The body of a frame with its point masses."""
    if inertia.mass is not None:
        body = RigidBody.from_centre(inertia.mass, inertia.centre, schema.central_matrix(inertia.about_centre))
    else:
        i = inertia
        body = RigidBody.from_khalil(i.M, (i.MX, i.MY, i.MZ), i.XX, i.XY, i.XZ, i.YY, i.YZ, i.ZZ)
    for point in point_masses:
        body = body + RigidBody.from_centre(point.mass, point.position, schema.central_matrix(point.about_centre))
    return body


def joint_terms(frame: schema.Frame) -> JointTerms:
    """What acts in the joint of a frame; friction by direction as its mean and what is above it forwards."""
    spring, friction = frame.spring, frame.friction
    viscous, coulomb = friction.viscous + frame.inertia.FV, friction.coulomb + frame.inertia.FS
    (viscous, more_viscous), (coulomb, more_coulomb) = (
        _both_ways(viscous, friction.viscous_back),
        _both_ways(coulomb, friction.coulomb_back),
    )
    return JointTerms(
        motor_inertia=frame.motor_inertia + frame.inertia.IA,
        viscous=viscous,
        coulomb=coulomb,
        stiffness=spring.stiffness if spring else 0.0,
        rest=spring.rest if spring else 0.0,
        damper=frame.damper,
        static=friction.static - more_coulomb if friction.static else 0.0,
        more_viscous=more_viscous,
        more_coulomb=more_coulomb,
        offset=friction.offset,
    )


def _both_ways(forth: Any, back: Any | None) -> tuple[Any, Any]:
    """The mean of a number for positive and for negative rates, and by how much the first is above it."""
    return (forth, 0.0) if back is None else ((forth + back) / 2, (forth - back) / 2)
