"""Traces for simulation of robots in leg form: the state is that of the platform, all legs follow in closed form."""

from __future__ import annotations

from typing import Any

import numpy as np

from parflex.codegen.traces.leg_symbols import closed_legs, leg_values, plain_values
from parflex.codegen.traces.tracing import Options, Outputs, Tracer
from parflex.models import leg_models
from parflex.models.leg_form import LegForm, PlatformMotion, leg_motion
from parflex.models.robot import Robot
from parflex.spatial.linear import solve_positive

Array = np.ndarray


def moving_legs(robot: Robot, options: Options) -> LegForm | None:
    """The leg form of a robot in motion; None where something acts that it does not know."""
    form = closed_legs(robot, options)
    springs = any(link.terms.stiffness for link in robot.tree.links)
    return None if form is None or springs or options.wrenches else form


def state_rates(tracer: Tracer, form: LegForm, following: bool, options: Options) -> Outputs:
    """Positions, rates of the platform and efforts in; what changes in time out.

    `following`: accelerations of the platform (world axes) in the place of efforts, and the efforts that cause them
    out, [Long2014, eq. (46)].
    """
    tree = form.robot.tree
    link = tree.links[form.platform]
    independent = [*range(link.v.start, link.v.stop), *range(link.e_v.start, link.e_v.stop)]
    q, rates = tracer.group("q", tree.nq), tracer.group("qd", len(independent))
    own, ed = rates[: link.v.stop - link.v.start], rates[link.v.stop - link.v.start :]
    given = tracer.group("platform_acceleration" if following else "effort", _components(form, following))
    R, p = link.joint.transform(q[link.q])
    S_v, S_w = link.joint.S_v, link.joint.S_w
    a, al = _world(form, given) if following else (np.zeros(3), np.zeros(3))
    platform = PlatformMotion(R, p, R @ (S_v @ own), R @ (S_w @ own), a - tree.gravity, al, q[link.e], ed)
    values = leg_values(form, platform)
    effort, a, al, edd = _accelerations(form, values, platform, given, (a, al) if following else None, options.without)
    accelerations = np.concatenate([S_v.T @ (R.T @ a) + S_w.T @ (R.T @ al), edd])
    all_rates: Array = np.zeros(tree.n, dtype=object)
    all_rates[independent] = rates
    for leg, joints in zip(form.legs, values, strict=True):
        all_rates[[tree.links[j].v.start for j in leg.links]] = leg_motion(form, leg, joints, platform).qd
    closed = q.copy()
    for place, value in plain_values(form, values, q).items():
        closed[place] = value
    resolved: Array = np.zeros(tree.n, dtype=object)
    resolved[independent] = accelerations
    changes = tree.rate_changes(all_rates, resolved)[independent]
    outputs = {"q": closed, "position_rates": tree.position_rates(closed, all_rates), "rate_changes": changes}
    outputs["acceleration"] = accelerations
    names = [tree.rate_names[k] for k in independent]
    labels = {"q": list(tree.position_names), "qd": names, "effort": form.robot.actuated_names}
    labels |= {"position_rates": list(tree.position_names), "rate_changes": names, "acceleration": names}
    return (outputs | {"effort": effort} if following else outputs), labels


def _components(form: LegForm, following: bool) -> int:
    return (3 if form.planar else 6) if following else len(form.robot.actuated)


def _world(form: LegForm, components: Array) -> tuple[Array, Array]:
    """Acceleration and angular acceleration from the components of the platform's freedoms."""
    if form.planar:
        return np.array([components[0], components[1], 0.0]), np.array([0.0, 0.0, components[2]])
    return components[:3], components[3:6]


def _accelerations(
    form: LegForm, values: list[Array], platform: PlatformMotion, given: Array, wanted: Any, without: tuple[str, ...]
) -> tuple[Array, Array, Array, Array]:
    """Efforts, accelerations of the platform in world axes, and of its modes."""
    if wanted is not None:
        effort, modes = leg_models.inverse(form, values, platform, without)
        return effort, *wanted, modes
    A, h, B, s = leg_models.equations(form, values, platform, without)
    freedom = solve_positive(A, B @ given - h)
    modes = leg_models.mode_accelerations(form, platform, freedom, s) if form.elastic is not None else np.zeros(0)
    return given, *_world(form, freedom), modes
