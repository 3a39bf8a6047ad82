"""From records to rows: filtered motions through the loops, regressors, both sides decimated alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from parflex.errors import InputError, ParflexError
from parflex.identification.base_columns import BaseColumns
from parflex.identification.estimates.least_squares import EffortRows
from parflex.identification.estimates.reversals import late_signs
from parflex.identification.filtering import REST, SLOW, FilterChoice, decimated, kept_instants, smoothed
from parflex.identification.measured_files import Measurement
from parflex.identification.payloads import payload_parameters, payload_rows
from parflex.identification.regressors import ClosedMotion, Regressor

Array = np.ndarray
VISITED = 40  # states of a record


def motion_of(
    regressor: Regressor, record: Measurement, choice: FilterChoice, position: Array | None = None
) -> tuple[Array, ClosedMotion]:
    """Instants and the motion of all joints in a record, or in other positions at its instants."""
    smooth = smoothed(record, choice, position)
    try:
        return smooth.t, regressor.moving(smooth.position, smooth.rate, smooth.acceleration)
    except ParflexError as error:
        error.file = error.file or record.name
        error.hint = ": ".join(record.far[0]) if record.far else error.hint  # what is suspected explains it
        raise


def visited(regressor: Regressor, records: Sequence[Measurement], choice: FilterChoice) -> list[ClosedMotion]:
    """Some states of each record, as far as loops close on straight ways between them."""
    found = []
    for record in records:
        smooth = smoothed(record, choice)
        some = np.unique(np.linspace(0, len(smooth.t) - 1, VISITED).astype(int))
        try:
            found.append(regressor.moving(smooth.position[some], smooth.rate[some], smooth.acceleration[some]))
        except (ParflexError, np.linalg.LinAlgError):
            continue  # what is wrong with it is said where all of it is closed
    return found


def rows_of_record(
    regressor: Regressor, base: BaseColumns, record: Measurement, choice: FilterChoice, by_reference: bool = False
) -> tuple[Array, EffortRows, Array]:
    """Instants, rows of the base parameters, and what the numbers of the robot file give there.

    `by_reference`: with the regressor of the reference as instruments, which knows nothing of the noise.
    """
    t, moving = motion_of(regressor, record, choice)
    instruments = None
    if by_reference:
        if record.reference is None:
            raise InputError(
                "instrumental variables need the reference of the motors", file=record.name, key="reference",
                hint="name its columns in [reference] of the map",
            )  # fmt: skip
        instruments = motion_of(regressor, record, choice, record.reference)[1]
    return assembled(regressor, base, record, choice, t, moving, instruments)


def assembled(
    regressor: Regressor, base: BaseColumns, record: Measurement, choice: FilterChoice, t: Array, moving: ClosedMotion,
    instruments: ClosedMotion | None = None,
) -> tuple[Array, EffortRows, Array]:  # fmt: skip
    """The same of a motion that is known, with the regressor of another one as instruments."""
    effort = choice.inside(record.effort)
    carried = payload_parameters(regressor, record.payload) if record.payload else {}
    W, known = regressor.of(moving, base.kept)
    if carried:
        more, _ = regressor.of(moving, list(carried))
        known = known + more @ np.array(list(carried.values()))
    y = regressor.measured(moving, effort) - known
    by_file = W @ (base.groups @ np.array([one.value for one in regressor.unknowns]))
    rate = moving.qd[:, list(regressor.robot.actuated)]
    both = [W, y, by_file, rate, known]
    both += [regressor.of(instruments, base.kept)[0]] if instruments is not None else []
    both += [payload_rows(regressor, moving)] if carried else []
    thin = [decimated(values, choice) for values in both]
    kept = fast_enough(regressor, thin[3], choice, record.effort)
    if not kept.any():
        raise InputError(
            "no sample is left: the motors are slower than the least speed everywhere", file=record.name,
            key="least_speed", value=choice.least_speed, hint="give a smaller one",
        )  # fmt: skip
    W, y, by_file, rate, known, *own = thin
    first, load = own[0] if instruments is not None else None, own[-1] if carried else None
    late = late_signs(regressor, base.kept, record, moving, choice)
    rows = EffortRows(W, y, instruments=first, rate=rate, known=known, used=kept, carried=load, late=late)
    return kept_instants(t, choice), rows, by_file


def fast_enough(regressor: Regressor, rate: Array, choice: FilterChoice, effort: Array) -> Array:
    """Rows (instants x rows) of motors that are not slower than the least speed, or have no Coulomb friction.

    A row of a robot with spare motors has friction of all of them. Motors without a measured effort have no rows: they
    could be fitted without any error, and others would not count beside them.
    """
    rubbing = rubbing_motors(regressor)
    kept = np.ones((len(rate), len(regressor.rows)), dtype=bool)
    dead = dead_efforts(effort, rate)
    if dead.any() and not dead.all() and not regressor.spare:
        kept[:, dead] = False
    if not choice.least_speed or not rubbing:
        return kept
    least = np.array(choice.by_motor)[rubbing] if choice.by_motor else choice.least_speed
    fast = np.abs(rate[:, rubbing]) >= least
    if regressor.spare:
        return kept & fast.all(axis=1, keepdims=True)
    kept[:, rubbing] &= fast
    return kept


def dead_efforts(effort: Array, rate: Array) -> Array:
    """Which motors have one effort all the time though their speed changes: nothing was recorded of them."""
    speed = np.abs(rate).max(axis=0)
    moving = (speed > 0) & (np.ptp(rate, axis=0) > SLOW * speed)
    return np.asarray(moving & (np.ptp(effort, axis=0) <= REST * np.abs(effort).max(axis=0)))


def rubbing_motors(regressor: Regressor) -> list[int]:
    """Places of the motors whose Coulomb friction is looked for."""
    links = {one.link for one in regressor.unknowns if one.symbol == "FS"}
    tree = regressor.robot.tree
    return [i for i, k in enumerate(regressor.robot.actuated) if tree.link_of_rate[k] in links]


def joined(parts: Sequence[EffortRows]) -> EffortRows:
    """Rows of several records."""
    starts = np.cumsum([0, *(len(part.y) for part in parts[:-1])])
    instruments = [part.instruments for part in parts]
    return EffortRows(
        np.concatenate([part.W for part in parts]), np.concatenate([part.y for part in parts]),
        tuple(int(start) for start in starts),
        None if instruments[0] is None else np.concatenate([own for own in instruments if own is not None]),
        np.concatenate([part.rate for part in parts if part.rate is not None]),
        np.concatenate([part.known for part in parts if part.known is not None]),
        np.concatenate([part.mask > 0 for part in parts]),
    )  # fmt: skip
