"""Springs of joints that the file lacks, of motors and of passive joints, looked for in every record.

A spring takes k q - k rest along its joint: two columns, which loops carry to the motors. Weights and friction follow
much of them. Joints are tried one after the other; one is named where its stiffness is many deviations above zero and
it explains a share of the efforts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from parflex.identification.doubts.elements_off import told_columns
from parflex.identification.doubts.other_positions import OtherPositions, Trial
from parflex.identification.estimates.least_squares import EffortRows, fit, solution
from parflex.identification.filtering import decimated, kept_instants, smoothed
from parflex.identification.prepared import joined
from parflex.identification.regressors import Regressor
from parflex.records import Record

Array = np.ndarray
SURE = 6.0  # deviations, by which a stiffness must be above zero: each of several joints is asked
LEAST = 2e-3  # of the efforts of a motor, what it must explain: filters leave 1.3e-3 of a record without noise
TOLD = 1e-5  # of a column, what parameters must leave of it: deviations say how well it is told
ALIKE = 1.2  # times what the best joint leaves: records do not tell which of them it is
FAINT = 0.05  # of the largest efforts: those of a motor count as so large at least
FEW = 3  # joints that are fitted in full, those that explain most


@dataclass(frozen=True, eq=False, repr=False)
class _Spring(Record):
    """A spring that explains more of the efforts: what is left with it, rows that have it, and its two numbers."""

    link: int
    left: float
    rows: EffortRows
    stiffness: float
    rest: float | None  # None where the record does not tell it


@dataclass(frozen=True, eq=False, repr=False)
class _Columns(Record):
    """Efforts per unit of stiffness about the middle of the motion of a joint, and of what the spring has there.

    About a place far from the motion the two would be nearly one column.
    """

    own: Array  # instants x rows x 2
    middle: float


def spring_trials(other: OtherPositions) -> list[Trial]:
    """Springs that are surely there and not in the file, if there are some, and the share of residuals then left."""
    rows = replace(joined(other.parts), instruments=None)
    values, weights = solution(rows, "wls")
    left = now = _left(rows, rows.y - rows.W @ values)
    links = _without_spring(other.regressor)
    if not links or not now:
        return []
    columns, words = _columns(other, links), []
    while columns:  # one after the other, those before it with numbers of their own
        found = _tried(rows, weights, columns)
        if not found:
            break
        best, *others = sorted(found, key=lambda one: one.left)
        alike = [one for one in others if one.left <= ALIKE * best.left]
        words.append(" or ".join(_words(other.regressor, one) for one in (best, *alike)))
        left, rows = best.left, best.rows
        columns.pop(best.link)
    cure = "check the joints, and give them their springs" if words[1:] else "check the joint, and give it its spring"
    several = "springs that the file lacks" if words[1:] else "a spring that the file lacks"
    return [(left / now, f"with {several}, {' and '.join(words)}: {cure}")] if words else []


def _without_spring(regressor: Regressor) -> list[int]:
    """Numbers of the links whose joints have one axis and no spring in the file."""
    links = regressor.robot.tree.links
    return [j for j, link in enumerate(links) if link.joint.one_axis and not link.terms.stiffness and not link.strut]


def _columns(other: OtherPositions, links: list[int]) -> dict[int, _Columns]:
    """Of some links; slow as the motion is, no filter changes them."""
    moves, gains = [], []
    for record in other.used:
        smooth = smoothed(record, other.choice)
        q, qd, qdd = (kept_instants(one, other.choice) for one in (smooth.position, smooth.rate, smooth.acceleration))
        moves.append(other.regressor.moving(q, qd, qdd))
        gains.append(decimated(np.ones(len(smooth.t)), other.choice)[:, None])  # of all rows at rest
    tree, found = other.regressor.robot.tree, {}
    for j in links:
        angle = np.concatenate([one.q[:, tree.links[j].q.start] for one in moves])
        along = np.concatenate([g * one.J[:, tree.links[j].v.start] for g, one in zip(gains, moves, strict=True)])
        middle = float(angle.mean())
        found[j] = _Columns(np.stack([along * (angle - middle)[:, None], along], axis=2), middle)
    return found


def _tried(rows: EffortRows, weights: Array, columns: Mapping[int, _Columns]) -> list[_Spring]:
    """Springs that are sure, each for itself; most joints are out of the question by white residuals."""
    flat = (rows.W * weights[:, :, None]).reshape(-1, rows.W.shape[2])
    Q = np.linalg.qr(flat / np.maximum(np.linalg.norm(flat, axis=0), 1e-300))[0]
    missed = (rows.y * weights).ravel()
    missed = missed - Q @ (Q.T @ missed)
    free = max(np.count_nonzero(weights) - flat.shape[1] - 2, 1)
    likely = []
    for link, one in columns.items():
        both = (one.own * weights[:, :, None]).reshape(len(flat), -1)
        rest = both - Q @ (Q.T @ both)
        after = missed - rest @ np.linalg.lstsq(rest, missed, rcond=None)[0]
        more = float(missed @ missed - after @ after)
        if more > SURE**2 * float(after @ after) / free:
            likely.append((more, link))
    tried = [_judged(rows, weights, link, columns[link]) for _, link in sorted(likely, reverse=True)[:FEW]]
    return [spring for spring in tried if spring is not None]


def _judged(rows: EffortRows, weights: Array, link: int, columns: _Columns) -> _Spring | None:
    """The spring of a joint by a fit with its columns; None where that is not sure, or small."""
    own = columns.own
    told = told_columns(rows, weights, own, TOLD)
    if 0 not in told:
        return None
    size = rows.W.shape[2]
    wider = replace(rows, W=np.concatenate([rows.W, own[:, :, told]], axis=2))
    judged = fit(wider, "wls")
    stiffness, spread = float(judged.values[size]), float(np.sqrt(max(float(judged.robust[size, size]), 0.0)))
    # k (q - middle) + force there: it rests where that is nothing
    rest = columns.middle - float(judged.values[size + 1]) / stiffness if len(told) > 1 and stiffness else None
    explained = rows.y - rows.W @ solution(rows, "wls")[0] - judged.residuals
    share = float((np.linalg.norm(explained * rows.mask, axis=0) / _whole(rows)).max())
    if not (stiffness > SURE * spread and share > LEAST):
        return None
    return _Spring(link, _left(rows, judged.residuals), wider, stiffness, rest)


def _left(rows: EffortRows, residuals: Array) -> float:
    """Norm of residuals, those of each motor over its efforts: all motors count by what they miss."""
    return float(np.linalg.norm(residuals * rows.mask / _whole(rows)))


def _whole(rows: EffortRows) -> Array:
    """Norm of the efforts of each motor."""
    assert rows.known is not None
    whole = np.linalg.norm((rows.y + rows.known) * rows.mask, axis=0)
    return np.maximum(whole, max(FAINT * float(whole.max()), 1e-300))


def _words(regressor: Regressor, one: _Spring) -> str:
    link = regressor.robot.tree.links[one.link]
    per, unit = ("N m/rad", "rad") if link.joint.unit == "rad" else ("N/m", "m")
    rest = " whose rest the record does not tell" if one.rest is None else f" that rests at {one.rest:.3g} {unit}"
    return f"{one.stiffness:.4g} {per}{rest} in '{link.name}'"
