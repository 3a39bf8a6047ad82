"""Driven cables only pull: internal efforts of redundant motors keep them taut, else a warning names slack ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from parflex.forces.bounded_efforts import shortest_within
from parflex.forces.forces import multipliers_of
from parflex.forces.shared_efforts import SharedEfforts, internal_basis
from parflex.forces.spare_motors import Sharing
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot
from parflex.spatial.linear import least_norm

Array = np.ndarray
PUSH = 1e-9  # of the largest tension: what rounding leaves of a cable that just hangs
TAUT = "taut cables"  # in what an answer says of how efforts were chosen
LOOSE = "choose efforts that keep it taut, by a preload or by limits of the efforts"


def driven_cables(robot: Robot) -> list[str]:
    """Cables of which the length is a coordinate."""
    return [link.name for link in robot.tree.links if link.pulls_only]


def tautened(found: SharedEfforts, configuration: Configuration, A: Array, f: Array, sharing: Sharing) -> SharedEfforts:
    """Efforts as found, or where cables push with them, those with the shortest internal efforts that keep all taut.

    Tension is linear in the efforts, theory (18), and stands beside them in the limits of theory (48). Where no
    internal effort keeps all taut, or the preload leaves no choice, efforts stay as they are, and a warning tells.
    """
    if not driven_cables(configuration.robot) or sharing.preloads or found.internal is None:
        return found
    here = (configuration, A, sharing)
    own = cable_rows(configuration.robot)
    tau = taut_efforts(*here, found.tau, -multipliers_of(configuration, f, found.tau)[own])
    if tau is None:
        return replace(found, warnings=[*found.warnings, *_lost(found, configuration, f)])
    internal = tau - least_norm(A, A @ tau, sharing.weights)
    told = found.internal | {"chosen_by": f"{found.internal['chosen_by']}, {TAUT}"}
    told["efforts"] = {name: float(value) for name, value in zip(sharing.names, internal, strict=True)}
    said = [f"{warning}; internal efforts keep the cables taut" for warning in found.warnings]
    return replace(found, tau=tau, internal=told, warnings=said)


def _lost(found: SharedEfforts, configuration: Configuration, f: Array) -> list[str]:
    """That nothing helps, where cables push all the same."""
    tension = -multipliers_of(configuration, f, found.tau)[cable_rows(configuration.robot)]
    return ["no internal efforts keep all cables taut at this pose and motion"] * bool(_pushing(tension).any())


def taut_efforts(configuration: Configuration, A: Array, sharing: Sharing, tau: Array, tension: Array) -> Array | None:
    """Efforts that cause the same motion as `tau`, at which cables have `tension`; None: they need not, or cannot."""
    if not _pushing(tension).any():
        return None
    own, motors = cable_rows(configuration.robot), np.eye(len(tau))
    still = np.zeros(configuration.robot.tree.n)
    per_effort = np.array([-multipliers_of(configuration, still, unit)[own] for unit in motors]).T
    least, N = least_norm(A, A @ tau, sharing.weights), internal_basis(A, sharing.weights)
    lower, upper = (np.full(len(least), end) if limit is None else limit
                    for limit, end in ((sharing.lower, -np.inf), (sharing.upper, np.inf)))  # fmt: skip
    z = shortest_within(
        np.concatenate([N, per_effort @ N]),
        np.concatenate([least, tension + per_effort @ (least - tau)]),
        np.concatenate([lower, np.zeros(len(tension))]),
        np.concatenate([upper, np.full(len(tension), np.inf)]),
    )
    return None if z is None else least + N @ z


def cable_rows(robot: Robot) -> list[int]:
    """Rows of the closures that hold driven cables, whose multipliers are minus their tension."""
    names, rows = driven_cables(robot), zip(robot.closures.slices(), robot.closures.rows, strict=True)
    return [part.start for part, row in rows if row.name in names]


def _pushing(tension: Array) -> Array:
    return tension < -PUSH * max(float(np.abs(tension).max(initial=0.0)), 1e-300)


def slack_warnings(robot: Robot, elements: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """A sentence where driven cables would have to push."""
    names = [name for name in driven_cables(robot) if "force" in elements.get(name, {})]
    tension = np.array([elements[name]["force"] for name in names])
    pushing = [f"'{name}' with {-value:.4g} N" for name, value in zip(names, tension, strict=True)
               if _pushing(tension)[names.index(name)]]  # fmt: skip
    if not pushing:
        return []
    return [f"cables pull only, but would have to push here: {', '.join(pushing)}; {LOOSE}"]
