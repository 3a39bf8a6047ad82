"""Symbols of robots in leg form: pose and motion of the platform, and the legs that follow it in closed form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from parflex.codegen.traces.parameters import cleaned_body, grouped_tree, moments_scale
from parflex.codegen.traces.tracing import Options, Tracer
from parflex.graph.expression import known_angle
from parflex.models import leg_form
from parflex.models.robot import Robot

Array = np.ndarray


def pose_symbols(tracer: Tracer, planar: bool) -> tuple[Array, Array]:
    """Position and rotation matrix of the platform; in the plane two coordinates and a 2 x 2 matrix."""
    if not planar:
        return tracer.group("position", 3), tracer.group("rotation", 3, 3)
    position, turn = tracer.group("position", 2), tracer.group("rotation", 2, 2)
    R = np.array([[turn[0, 0], turn[0, 1], 0.0], [turn[1, 0], turn[1, 1], 0.0], [0.0, 0.0, 1.0]], dtype=object)
    return np.array([*position, 0.0], dtype=object), R


def platform_symbols(tracer: Tracer, form: leg_form.LegForm, accelerating: bool) -> leg_form.PlatformMotion:
    """Pose, twist and acceleration of the platform in world axes; in the plane only what moves."""
    gravity = form.robot.tree.gravity
    p, R = pose_symbols(tracer, form.planar)
    modes = form.elastic.body.size if form.elastic is not None else 0
    bent = [tracer.group(name, modes) for name in ("elastic", "elastic_rate")] if modes else []
    if form.planar:
        v = np.array([*tracer.group("velocity", 2), 0.0], dtype=object)
        w = np.array([0.0, 0.0, *tracer.group("angular_velocity", 1)], dtype=object)
        a = np.array([*tracer.group("acceleration", 2), 0.0], dtype=object) if accelerating else np.zeros(3)
        al = (
            np.array([0.0, 0.0, *tracer.group("angular_acceleration", 1)], dtype=object)
            if accelerating
            else np.zeros(3)
        )
    else:
        v, w = tracer.group("velocity", 3), tracer.group("angular_velocity", 3)
        a = tracer.group("acceleration", 3) if accelerating else np.zeros(3)
        al = tracer.group("angular_acceleration", 3) if accelerating else np.zeros(3)
    return leg_form.PlatformMotion(R, p, v, w, a - gravity, al, *bent)


def closed_legs(grouped: Robot, options: Options) -> leg_form.LegForm | None:
    """The leg form of a robot whose legs all follow in closed form, written as the options say; else None."""
    form = leg_form.leg_form(grouped)
    if form is None or not form.closed_form:
        return None
    if form.elastic is not None:
        form = replace(form, legs=tuple(replace(leg, tree=grouped_tree(leg.tree)) for leg in form.legs))
    if options.end_masses:
        form = leg_form.end_masses_on_platform(form)
        form = replace(form, body=cleaned_body(form.body, moments_scale(form.body, grouped.tree.length)))
    return replace(form, by_columns=options.by_columns)


def loaded_legs(grouped: Robot, options: Options) -> leg_form.LegForm | None:
    """The same for models with forces; None where a spring needs an angle, of which legs know sine and cosine alone."""
    twisted = any(link.terms.stiffness and link.joint.kind == "revolute" for link in grouped.tree.links)
    return None if twisted else closed_legs(grouped, options)


def leg_values(form: leg_form.LegForm, platform: leg_form.PlatformMotion) -> list[Array]:
    """Joint values of all legs."""
    return [np.array(leg_form.leg_values(form, leg, platform, known_angle), dtype=object) for leg in form.legs]


def mode_labels(form: leg_form.LegForm) -> dict[str, list[str]]:
    """Names of the modes of a platform that bends."""
    tree = form.robot.tree
    names = [tree.rate_names[k] for k in tree.elastic]
    return dict.fromkeys(("elastic", "elastic_rate", "elastic_acceleration"), names) if names else {}


def plain_values(form: leg_form.LegForm, values: list[Array], near: Array | None = None) -> dict[int, object]:
    """Joint values by position coordinate of the robot, angles as numbers; `near` says in which turn they are."""
    tree, found = form.robot.tree, {}
    for leg, own in zip(form.legs, values, strict=True):
        for link, value in zip((tree.links[j] for j in leg.links), own, strict=True):
            found[link.q.start] = value
            if link.joint.kind != "revolute":
                continue
            if near is None:
                found[link.q.start] = np.arctan2(value.sin(), value.cos())
                continue
            guess = near[link.q.start]
            c, s = np.cos(guess), np.sin(guess)
            ahead = np.arctan2(value.sin() * c - value.cos() * s, value.cos() * c + value.sin() * s)
            found[link.q.start] = guess + ahead
    return found
