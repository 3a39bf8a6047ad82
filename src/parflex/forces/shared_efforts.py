"""Efforts of redundant motors, theory (46) to (48).

A tau = g leaves internal efforts undetermined, those with A tau = 0, which cause no motion. The efforts of least
weighted norm are taken, plus the internal efforts of a specified preload; the smallest further internal efforts keep
the limits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from parflex.errors import InputError
from parflex.forces.bounded_efforts import nearest_outside, shortest_within
from parflex.forces.spare_motors import Sharing, refuse_many
from parflex.records import Record
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot
from parflex.spatial.linear import least_norm, scalar_type

Array = np.ndarray
MISSED = 1e-9  # of the stated efforts: a preload that is met to rounding
OUT = 1e-9  # of an effort: nearer to its limit it stands there
IDLE = 1e-9  # of the largest share of a motor in internal efforts: a motor with less has none
SPARE_MOTORS = "there are more motors than degrees of freedom"
SPARE = f"{SPARE_MOTORS}: the efforts are those of least norm"
MIXED = "; newtons and newton metres weigh alike in it, which 'weights' changes"


# -- over any scalar -------------------------------------------------------------------------------------------------


def unbounded_efforts(A: Array, g: Array, sharing: Sharing) -> Array:
    """Efforts of least weighted norm with A tau = g, theory (46), and the preload, theory (47)."""
    if sharing.near is not None:
        return sharing.near + least_norm(A, g - A @ sharing.near, sharing.weights)
    tau = least_norm(A, g, sharing.weights)
    return tau + preload_efforts(A, sharing) if sharing.preloaded else tau


def preload_efforts(A: Array, sharing: Sharing) -> Array:
    """The internal efforts of least weighted norm of which some are as stated."""
    places = list(sharing.preloaded)
    stated: Array = np.eye(A.shape[1], dtype=scalar_type(A))[places]
    right = np.concatenate([np.zeros(len(A), dtype=scalar_type(sharing.preload)), sharing.preload])
    return least_norm(np.concatenate([A, stated]), right, sharing.weights)


# -- of numbers ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class SharedEfforts(Record):
    """Efforts of the motors, the internal part of them, and how they were chosen."""

    tau: Array
    internal: dict[str, Any] | None
    warnings: list[str]


def shared_efforts(A: Array, g: Array, sharing: Sharing) -> SharedEfforts:
    """Efforts with A tau = g, as asked for; refused where no internal effort meets what is asked."""
    motors, spare = A.shape[1], A.shape[1] - A.shape[0]
    if not motors:
        return SharedEfforts(np.zeros(0), None, [])
    least = least_norm(A, g, sharing.weights)
    if spare <= 0:
        refuse_outside(least, sharing)
        return SharedEfforts(least, None, [])
    N = internal_basis(A, sharing.weights)
    if len(sharing.preloaded) > spare:
        refuse_many(sharing, spare)
    preload = _stated(N, sharing)
    tau, rest = least + preload, _left_open(N, sharing)
    if sharing.bounded:
        tau = tau + rest @ _within(tau, rest, N, sharing)
    return SharedEfforts(tau, _told(tau, least, preload, spare, sharing), [_said(sharing)])


def internal_basis(A: Array, weights: Array | None = None) -> Array:
    """Internal efforts, one column for each spare motor, with N^T W N = 1."""
    units = np.ones(A.shape[1]) if weights is None else 1 / np.sqrt(weights)
    return units[:, None] * np.linalg.svd(A * units)[2][len(A) :].T


def home_preload(robot: Robot, sharing: Sharing) -> Array:
    """Efforts of all motors to which a program takes the nearest internal ones: those of the preload at home."""
    if sharing.near is not None:
        return sharing.near
    A = Configuration(robot, robot.home).J_a.T
    return _stated(internal_basis(A, sharing.weights), sharing)


def _stated(N: Array, sharing: Sharing) -> Array:
    """The internal efforts of the preload; a motor that cannot have its own is named."""
    places = list(sharing.preloaded)
    if sharing.near is not None:
        weights = np.ones(len(N)) if sharing.weights is None else sharing.weights
        return N @ (N.T @ (weights * sharing.near))
    if not places:
        return np.zeros(len(N))
    size = np.linalg.norm(N, axis=1)
    for k in places:
        if size[k] <= IDLE * size.max():
            raise InputError(
                f"'{sharing.names[k]}' cannot be preloaded at this pose: the other motors cannot work against it",
                key="preload",
                value=sharing.names[k],
                hint="preload " + " or ".join(f"'{n}'" for n, s in zip(sharing.names, size, strict=True)
                                              if s > IDLE * size.max()),
            )  # fmt: skip
    z = np.linalg.lstsq(N[places], sharing.preload, rcond=IDLE)[0]
    missed = np.abs(N[places] @ z - sharing.preload)
    if missed.max() > MISSED * max(float(np.abs(sharing.preload).max()), 1e-300):
        k = places[int(missed.argmax())]
        raise InputError(
            f"no internal efforts are as the preload states: the nearest give '{sharing.names[k]}' "
            f"{float(N[k] @ z):.6g} instead of {float(sharing.preload[places.index(k)]):.6g}",
            key="preload",
            value=sharing.names[k],
            hint="name fewer motors, or efforts in the ratio of the internal ones",
        )
    return N @ z


def _left_open(N: Array, sharing: Sharing) -> Array:
    """Internal efforts that change nothing of the preload, with N^T W N = 1."""
    places = list(sharing.preloaded)
    if not places:
        return N
    _, values, Vt = np.linalg.svd(N[places], full_matrices=True)
    return N @ Vt[int(np.sum(values > IDLE * values.max(initial=0.0))) :].T


def refuse_outside(tau: Array, sharing: Sharing) -> None:
    """Raise where efforts that leave no choice are outside their limits."""
    _within(tau, np.zeros((len(tau), 0)), np.zeros((len(tau), 0)), sharing)


def _within(tau: Array, rest: Array, N: Array, sharing: Sharing) -> Array:
    """The shortest change that brings efforts within their limits; where there is none, the nearest is told."""
    if sharing.lower is None or sharing.upper is None:
        return np.zeros(rest.shape[1])
    z = shortest_within(rest, tau, sharing.lower, sharing.upper)
    if z is not None:
        return z
    nearest, outside = nearest_outside(rest, tau, sharing.lower, sharing.upper)
    k = int(outside.argmax())
    limit = sharing.lower[k] if nearest[k] < sharing.lower[k] else sharing.upper[k]
    kept = "with the stated preload " if sharing.preloaded else ""
    free = sharing.preloaded and shortest_within(N, tau, sharing.lower, sharing.upper) is not None
    raise InputError(
        f"{kept}no internal efforts keep the motors within their limits: at best '{sharing.names[k]}' has "
        f"{nearest[k]:.6g} for a limit of {limit:.6g}, {outside[k]:.4g} too much"
        if N.shape[1]
        else f"the effort of '{sharing.names[k]}' is {nearest[k]:.6g}, which leaves its limit of {limit:.6g} by "
        f"{outside[k]:.4g}, and without spare motors there is no choice",
        key="effort_limit",
        value=sharing.names[k],
        hint="change the preload, which contradicts limits that can be met" if free
        else "widen the limits, or ask for a slower motion, a smaller load or another pose",
    )  # fmt: skip


def _told(tau: Array, least: Array, preload: Array, spare: int, sharing: Sharing) -> dict[str, Any]:
    """What is said of the choice."""

    def table(values: Any) -> dict[str, float]:
        return {name: float(value) + 0.0 for name, value in zip(sharing.names, values, strict=True)}

    found: dict[str, Any] = {
        "spare_motors": spare,
        "chosen_by": _words(sharing),
        "efforts": table(tau - least),
        "weights": table(np.ones(len(tau)) if sharing.weights is None else sharing.weights),
        "preload": {},
        "limits": {},
        "at_limit": [],
    }
    if sharing.preloads:
        found["preload"] = table(preload)
    if sharing.lower is not None and sharing.upper is not None:
        near = OUT * np.maximum(np.abs(tau), 1e-300)
        at = (tau - sharing.lower <= near) | (sharing.upper - tau <= near)
        found["limits"] = {
            name: [None if np.isinf(end) else float(end) for end in ends]
            for name, *ends in zip(sharing.names, sharing.lower, sharing.upper, strict=True)
        }
        found["at_limit"] = [name for name, there in zip(sharing.names, at, strict=True) if there]
    return found


def _words(sharing: Sharing) -> str:
    """How the efforts were chosen."""
    words = ["least weighted norm" if sharing.weights is not None else "least norm"]
    words += ["preload"] * sharing.preloads + ["limits"] * sharing.bounded
    return ", ".join(words)


def _said(sharing: Sharing) -> str:
    norm = SPARE.replace("least norm", "least weighted norm") if sharing.weights is not None else SPARE
    more = [" and of the preload"] * sharing.preloads + [", within their limits"] * sharing.bounded
    return norm + "".join(more) + (MIXED if sharing.mixed and sharing.weights is None else "")
