"""Payloads of records: inertia added to the body of the end effector, and a check by the efforts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from parflex.bodies.rigid import RigidBody
from parflex.diagnostics import Diagnostic
from parflex.forces.base_parameters import PARAMETERS, body_parameters
from parflex.identification.estimators import EffortRows, fit_rows
from parflex.identification.recordings import ColumnMap, Recording
from parflex.identification.regressor import ClosedMotion, Regressor
from parflex.identification.unknowns import taken_from_file

Array = np.ndarray
SURE = 5.0  # deviations, beyond which efforts do not fit the payload that is named
OFF = 0.05  # of its mass, and of that on the length of the robot, which it must be off by, too
TOLD = 1e-3  # of a column of the payload, what others must leave of it
UNITS = (  # mass, and first moments along the axes of the end effector
    RigidBody(1.0, np.zeros(3), np.zeros((3, 3))),
    *(RigidBody(0.0, axis, np.zeros((3, 3))) for axis in np.eye(3)),
)


def payload_parameters(regressor: Regressor, payload: Sequence[float]) -> dict[int, float]:
    """Columns of the body that carries the end effector, and what a point mass there adds to each."""
    mass, *at = payload
    return _added(regressor, RigidBody.from_centre(mass, at, np.zeros((3, 3))))


def _added(regressor: Regressor, carried: RigidBody) -> dict[int, float]:
    tree = regressor.robot.tree
    place = tree.places[tree.end_effector]
    body = carried.in_parent(place.rotation, place.position)
    numbers = dict(zip(PARAMETERS, body_parameters(body), strict=True))
    return {
        k: numbers[unknown.symbol]
        for k, unknown in enumerate(regressor.unknowns)
        if unknown.of_body and unknown.link == place.link and numbers[unknown.symbol]
    }


def payload_rows(regressor: Regressor, moving: ClosedMotion) -> Array:
    """Efforts (instants x rows x 4) per unit of a payload's mass and first moments."""
    columns = []
    for unit in UNITS:
        added = _added(regressor, unit)
        W, _ = regressor.of(moving, list(added))
        columns.append(W @ np.array(list(added.values())))
    return np.stack(columns, axis=2)


def payload_warnings(regressor: Regressor, used: Sequence[Recording], parts: Sequence[EffortRows]) -> list[Diagnostic]:
    """Diagnostics of payloads that efforts of their record do not fit.

    Loaded records beside others tell what they carry: mass and first moments are looked for in addition. Where gains of
    drives follow from payloads, that tells centres, and ratios of several masses, but no common factor.
    """
    messages: list[Diagnostic] = []
    if len(used) < 2:
        return messages
    for k, (record, rows) in enumerate(zip(used, parts, strict=True)):
        if record.payload is not None and rows.carried is not None:
            messages += _payload_mismatch(regressor, record, _beside(parts, k), record.payload)
    return messages


def unused_payloads(mapped: ColumnMap, records: Sequence[Recording]) -> list[Diagnostic]:
    """Diagnostics of payloads that no record has."""
    names = {name for record in records for name in (record.name, Path(record.name).name)}
    called = ", ".join(dict.fromkeys(Path(record.name).name for record in records))
    return [
        Diagnostic(
            "unused-payload", f"the payload of '{name}' is not used: no record has this name, they are {called}", name
        )
        for name in mapped.payload if name not in names
    ]  # fmt: skip


def _beside(parts: Sequence[EffortRows], chosen: int) -> EffortRows:
    """Rows of all records, with the columns of one record's payload behind them."""
    more = []
    for k, rows in enumerate(parts):
        carried = rows.carried if k == chosen else None
        payload_columns = np.zeros((*rows.y.shape, len(UNITS))) if carried is None else carried
        more.append(np.concatenate([rows.W, payload_columns], axis=2))
    starts = np.cumsum([0, *(len(rows.y) for rows in parts[:-1])])
    return EffortRows(
        np.concatenate(more), np.concatenate([rows.y for rows in parts]), tuple(map(int, starts)),
        used=np.concatenate([rows.mask > 0 for rows in parts]),
    )  # fmt: skip


def _payload_mismatch(
    regressor: Regressor, record: Recording, rows: EffortRows, named: tuple[float, float, float, float]
) -> list[Diagnostic]:
    size = rows.W.shape[2] - len(UNITS)
    flat = (rows.W * rows.mask[:, :, None]).reshape(-1, rows.W.shape[2])
    payload_columns, length = flat[:, size:], np.linalg.norm(flat[:, size:], axis=0)
    left = payload_columns - flat[:, :size] @ np.linalg.lstsq(flat[:, :size], payload_columns, rcond=None)[0]
    identifiable = [k for k in range(len(UNITS)) if np.linalg.norm(left[:, k]) > TOLD * max(length[k], 1e-300)]
    if 0 not in identifiable:
        return []  # nothing tells it from the robot
    fitted = fit_rows(replace(rows.columns([*range(size), *(size + k for k in identifiable)]), instruments=None), "wls")
    off, spread = fitted.values[size:], fitted.robust[size:, size:]
    mass, *place = named
    scale = np.array([1.0, *[regressor.robot.tree.length] * 3])[identifiable] * abs(mass)
    far = float(off @ np.linalg.pinv(spread) @ off)
    if not (far > SURE**2 * len(identifiable) and (np.abs(off) > OFF * scale).any()):
        return []
    moments = mass * np.array([1.0, *place])
    moments[identifiable] += off
    centre = ", ".join(f"{value:.3g}" for value in moments[1:] / moments[0])
    text = (
        f"efforts fit a payload of {moments[0]:.3g} kg at ({centre}) m, and "
        f"{mass:.3g} kg at ({', '.join(f'{value:.3g}' for value in place)}) m are named: check [payload] and the record"
    )
    if moments[0] < 0:  # what is missing here is on another one
        text = (
            f"{mass:.3g} kg are named as payload, and efforts fit {-moments[0]:.3g} kg at "
            f"({centre}) m less than those of other records: one of those is the loaded one, check [payload]"
        )
    return [Diagnostic("other-payload", f"{Path(record.name).name}: {text}", record.name, float(moments[0]))]


def scale_steps(regressor: Regressor, used: Sequence[Recording]) -> list[str]:
    """What gains of drives are in proportion to, in words: a common factor of all that is known is told by nothing."""
    known = [f"{record.payload[0]:.4g} kg in {Path(record.name).name}" for record in used if record.payload is not None]
    known += taken_from_file(regressor.robot, regressor.unknowns)
    return [
        f"gains and parameters are in proportion to what is known ({', '.join(known)}): 1 % of that is 1 % of every "
        "gain, mass and friction, and no record tells it"
    ]
