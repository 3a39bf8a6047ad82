"""Tables inside a frame of a robot file: placement, body, terms of the joint."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from .expressions import number, numbers

Table = dict[str, Any]


def placement(entry: Table, names: Mapping[str, float]) -> tuple[np.ndarray, np.ndarray]:
    """Position and rotation of a joint frame at zero in its parent."""
    if "mdh" not in entry:
        place = entry.get("place", {})
        position = np.array(numbers(place.get("position", [0, 0, 0]), names))
        vector = numbers(place.get("rotation", [0, 0, 0]), names)
        return position, Rotation.from_rotvec(vector).as_matrix()
    row = {key: number(value, names) for key, value in entry["mdh"].items()}
    gamma, b, alpha, d, theta, r = (row.get(key, 0.0) for key in ("gamma", "b", "alpha", "d", "theta", "r"))
    about_z, about_x, about_own_z = (
        Rotation.from_euler(axis, angle).as_matrix() for axis, angle in (("z", gamma), ("x", alpha), ("z", theta))
    )
    position = about_z @ (np.array([0, 0, b]) + about_x @ np.array([d, 0, r]))
    return position, about_z @ about_x @ about_own_z


def body(entry: Table, names: Mapping[str, float]) -> Table:
    """Mass, first moment and inertia about the origin of the frame."""
    table = entry.get("inertia", {})
    if {"mass", "centre", "about_centre"} & table.keys():
        parts = [table | {"position": table.get("centre", [0, 0, 0])}]
        mass, first, second = 0.0, np.zeros(3), np.zeros((3, 3))
    else:
        parts = []
        k = {key: number(value, names) for key, value in table.items()}
        mass, mx, my, mz, xx, xy, xz, yy, yz, zz = (
            k.get(key, 0.0) for key in ("M", "MX", "MY", "MZ", "XX", "XY", "XZ", "YY", "YZ", "ZZ")
        )
        first = np.array([mx, my, mz])
        second = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    for part in parts + entry.get("point_masses", []):
        added = number(part.get("mass", 0), names)
        centre = np.array(numbers(part.get("position", [0, 0, 0]), names))
        own = np.array([numbers(row, names) for row in part.get("about_centre", [0, 0, 0])])
        own = np.diag(own[:, 0]) if own.shape == (3, 1) else own
        mass, first = mass + added, first + added * centre
        second = second + own + added * (centre @ centre * np.eye(3) - np.outer(centre, centre))
    return {"mass": mass, "first_moment": first, "inertia": second}


def joint_terms(entry: Table, names: Mapping[str, float], axis: int) -> dict[str, float]:
    """Motor inertia, friction, spring and damper of one axis; a lone number serves both axes."""
    inertia, friction, spring = entry.get("inertia", {}), entry.get("friction", {}), entry.get("spring", {})
    given = {
        "motor_inertia": entry.get("motor_inertia", inertia.get("IA", 0)),
        "viscous": friction.get("viscous", inertia.get("FV", 0)),
        "coulomb": friction.get("coulomb", inertia.get("FS", 0)),
        "stiffness": spring.get("stiffness", 0),
        "rest": spring.get("rest", 0),
        "damper": entry.get("damper", 0),
    }
    return {key: number(value[axis] if isinstance(value, list) else value, names) for key, value in given.items()}


def quaternion(values: list[float]) -> tuple[float, ...]:
    """Unit quaternion, scalar first, of a rotation vector or of a quaternion."""
    if len(values) == 3:
        return tuple(Rotation.from_rotvec(values).as_quat(scalar_first=True))
    return tuple(np.array(values) / np.linalg.norm(values))
