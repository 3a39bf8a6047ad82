"""What explains efforts that a model misses: payloads, exchanged columns, gains, friction and delays, each tried.

Each trial is least squares with other efforts or a few more columns. One is named where it leaves a tenth of the power
of what is missed without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np

from parflex.identification.doubts.other_positions import OtherPositions
from parflex.identification.estimates.least_squares import EffortRows
from parflex.identification.filtering import FilterChoice, decimated, kept_instants, smoothed
from parflex.identification.measured_files import Measurement
from parflex.identification.payloads import payload_rows
from parflex.identification.regressors import Regressor

Array = np.ndarray
EXPLAINED = 0.1  # of the power of what is missed beyond noise
HALF = 0.71  # of what is missed, noise or not: half of its power must go
LIKE = 1.5  # times the best: records hardly tell these apart
INSIDE = 1e-6  # of a column, what others leave of it where they span it
STRIBECK = (0.02, 0.06, 0.2)  # of the largest rate, over which dry friction falls
ROUNDS = 4  # of Gauss's method for delays
LONGEST = 0.1  # s, of a delay

Trial = tuple[float, str]  # what is missed with it, and what it is


class RecordedRows:
    """Rows of all records, weighted by the efforts of their motors, and what is left by least squares."""

    def __init__(
        self, regressor: Regressor, used: Sequence[Measurement], parts: Sequence[EffortRows], choice: FilterChoice
    ) -> None:
        self.regressor, self.used, self.parts, self.choice = regressor, used, parts, choice
        self.known = np.concatenate([part.known for part in parts if part.known is not None])
        self.mask = np.concatenate([part.mask for part in parts])
        self.effort = np.concatenate([part.y for part in parts]) + self.known
        size = np.sqrt(((self.effort * self.mask) ** 2).mean(axis=0))
        self.weights = self.mask / np.maximum(size, max(0.05 * float(size.max()), 1e-300))
        W = np.concatenate([part.W for part in parts])
        flat = (W * self.weights[:, :, None]).reshape(-1, W.shape[2])
        self.Q = np.linalg.qr(flat / np.maximum(np.linalg.norm(flat, axis=0), 1e-300))[0]
        self.smooth = [smoothed(record, choice) for record in used]

    def _rest(self, columns: Array) -> Array:
        """What parameters leave of columns (instants x rows x any)."""
        flat = (columns * self.weights[:, :, None]).reshape(len(self.Q), -1)
        return flat - self.Q @ (self.Q.T @ flat)

    def missed(self, effort: Array | None = None, more: Array | None = None) -> tuple[float, Array]:
        """Share of the efforts, or of others, that parameters leave, with more columns, and factors of these."""
        effort = self.effort if effort is None else effort
        left, factors = self._rest((effort - self.known)[:, :, None])[:, 0], np.zeros(0)
        if more is not None:
            rest = self._rest(more)
            length = np.linalg.norm((more * self.weights[:, :, None]).reshape(len(rest), -1), axis=0)
            new = np.linalg.norm(rest, axis=0) > INSIDE * np.maximum(length, 1e-300)
            factors = np.zeros(more.shape[2])
            factors[new] = np.linalg.lstsq(rest[:, new], left, rcond=None)[0]
            left = left - rest @ factors
        by_row = (left.reshape(effort.shape) ** 2).sum(axis=0)
        whole = ((effort * self.weights) ** 2).sum(axis=0)
        some = whole > 0
        return float(np.sqrt((by_row[some] / whole[some]).mean())), factors

    def of_motors(self, columns: Array) -> Array:
        """Columns (instants x motors) that act in the row of their motor, each."""
        return columns[:, :, None] * np.eye(columns.shape[1])

    def at_all_samples(self, values: Sequence[Array]) -> Array:
        """Values at the samples of all records, behind the low-pass of efforts."""
        return np.concatenate([decimated(one, self.choice) for one in values])


def left_by(noise: float) -> float:
    """Share of what is missed that a mistake may leave which explains it: noise, of this share, it does not explain."""
    return float(np.sqrt(EXPLAINED + (1 - EXPLAINED) * min(noise, 1.0) ** 2))


def likely_cause(
    rows: RecordedRows, noise: float, other: OtherPositions, sure: Sequence[Sequence[Trial]],
    of_one_record: Sequence[Trial] = (),
) -> str | None:  # fmt: skip
    """Mistakes that explain what is missed, in words, or None: the best, and what records hardly tell from it.

    `noise` is its share of what is missed; `sure` are trials that were made before, by what they leave of it,
    `of_one_record` some of mistakes that one record has alone.
    """
    now, _ = rows.missed()
    most = now * min(left_by(noise), HALF)
    kinds: list[list[Trial]] = [_payloads(rows), list(of_one_record)]
    if not rows.regressor.spare:  # else rows mix the efforts of all motors
        kinds += [list(some(rows)) for some in (_exchanged, _frictions, _delays)]
    kinds = [[one for one in trials if one[0] <= most] for trials in kinds]
    # these are sure by their deviations
    kinds += [[(now * left, words) for left, words in some if left <= left_by(noise)] for some in sure]

    def least() -> float:
        return min((left for trials in kinds for left, _ in trials), default=np.inf)

    # all rows anew for each: only where others leave more than noise, as efforts or friction follow such columns partly
    if least() > LIKE * now * noise and not rows.regressor.spare:
        kinds.append([(now * left, words) for left, words in sorted(other.exchanged()) if now * left <= most])
    best = least()
    if best == np.inf:
        return None
    # of each kind the first: frictions have more and more columns
    alike = [next((one for one in trials if one[0] <= LIKE * best), None) for trials in kinds]
    told = {one[1].partition(":")[2]: one for one in sorted((one for one in alike if one is not None), reverse=True)}
    words = ", or ".join(f"{100 * left:.3g} % {text}" for left, text in sorted(told.values()))  # one cure once
    return f"mean of all motors {100 * now:.3g} %, and {words}"


def _payloads(rows: RecordedRows) -> list[Trial]:
    """A payload on one record of several, of which nothing is said."""
    found = []
    for k, record in enumerate(rows.used if len(rows.used) > 1 else ()):
        if record.payload is not None:
            continue  # doubts about it are those of `payloads`
        smooth = rows.smooth[k]
        q, qd, qdd = (kept_instants(one, rows.choice) for one in (smooth.position, smooth.rate, smooth.acceleration))
        own = payload_rows(rows.regressor, rows.regressor.moving(q, qd, qdd))
        own = own * decimated(np.ones(len(smooth.t)), rows.choice)[:, None, None]  # all rows have its gain at rest
        more = np.concatenate([own if j == k else np.zeros((*part.y.shape, 4)) for j, part in enumerate(rows.parts)])
        left, (mass, *moments) = rows.missed(more=more)
        name = Path(record.name).name
        at = ", ".join(f"{value:.3g}" for value in np.array(moments) / (mass or 1e-300))
        words = f"{mass:.3g} kg more at ({at}) m in {name}: name its [payload]"
        if mass < 0:
            words = f"{-mass:.3g} kg less in {name} than in others: name the [payload] of those"
        found.append((mass < 0, left, f"with {words}"))
    return [(left, words) for _, left, words in sorted(found)]  # what is carried before what is missing


def _exchanged(rows: RecordedRows) -> Iterator[Trial]:
    motors = rows.regressor.rows
    for i, j in combinations(range(len(motors)), 2):
        order = list(range(len(motors)))
        order[i], order[j] = j, i
        left, _ = rows.missed(rows.effort[:, order])
        yield left, f"with efforts of '{motors[i]}' and '{motors[j]}' exchanged: check their columns"


def _frictions(rows: RecordedRows) -> Iterator[Trial]:
    rate = [one.rate for one in rows.smooth]
    fastest = np.maximum(np.max([np.abs(one).max(axis=0) for one in rate], axis=0), 1e-300)

    def column(values: list[Array]) -> Array:
        return rows.of_motors(rows.at_all_samples(values))

    more = np.concatenate([column(rate), column([np.sign(v) for v in rate])], axis=2)
    yield rows.missed(more=more)[0], "with friction of all motors: use friction 'symmetric'"
    for word, own in (("offset", [np.ones_like(v) for v in rate]), ("direction", [np.abs(v) for v in rate])):
        more = np.concatenate([more, column(own)], axis=2)
        said = "that differs by direction" if word == "direction" else "with an offset"
        yield rows.missed(more=more)[0], f"with friction {said}: use friction '{word}'"
    falling = [column([np.sign(v) * np.exp(-((v / (part * fastest)) ** 2)) for v in rate]) for part in STRIBECK]
    yield (
        rows.missed(more=np.concatenate([more, *falling], axis=2))[0],
        f"with dry friction that changes with the speed: no term of files is such; use a least speed of "
        f"{2 * STRIBECK[-1] * fastest.max():.2g}",
    )


def _delays(rows: RecordedRows) -> Iterator[Trial]:
    """Efforts that were recorded later or earlier than positions."""
    delay, left, raw = 0.0, np.inf, [record.effort for record in rows.used]
    for _ in range(ROUNDS):
        slopes = [
            rows.choice.inside(np.gradient(one, record.step, axis=0))
            for one, record in zip(raw, rows.used, strict=True)
        ]
        effort = rows.at_all_samples([rows.choice.inside(one) for one in raw])
        _, (more,) = rows.missed(effort, -rows.at_all_samples(slopes)[:, :, None])
        delay += more
        if abs(delay) > LONGEST:
            return
        raw = [_moved(record, delay) for record in rows.used]
        left, _ = rows.missed(rows.at_all_samples([rows.choice.inside(one) for one in raw]))
    when = "later" if delay > 0 else "earlier"
    samples = abs(delay) / rows.used[0].step
    yield (
        left,
        f"with efforts that are {1e3 * abs(delay):.3g} ms ({samples:.3g} samples) {when} than positions: "
        "shift their columns",
    )


def _moved(record: Measurement, delay: float) -> Array:
    """Efforts as they would be recorded without a delay."""
    return np.stack([np.interp(record.t + delay, record.t, column) for column in record.effort.T], axis=1)
