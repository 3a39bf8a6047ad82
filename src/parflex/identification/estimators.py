"""Least-squares estimators and the covariance of their estimates.

Efforts are fitted by ordinary least squares, weighted by the noise of each motor, reweighted for outliers, or with
instruments. Rows are ordered by record, then instant, then motor; covariances that are robust to correlation rely on
this order.

Correlated residuals give a covariance by their spectra. Differences of noisy positions leave residuals with little
power where robots move and much above; low-passes remove what is above them; model errors lie below. Sums of products
over neighbouring instants (Newey and West) need a lag, and leak some of the power above. Spectra do not mix: stationary
residuals affect estimates only by their power at the frequencies of the instruments.

Gains of drives follow from a known payload by total least squares. Efforts are known up to a factor of each motor,
forces of the payload exactly: Y s = W theta + known, with the efforts in columns of their own. The columns W and known
are taken as exact, the efforts as noisy. The factors s are the direction in which the residual of Y by W and known is
smallest, and the known forces determine the length.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from parflex.errors import InputError
from parflex.records import Record

Array = np.ndarray

MEDIAN = 1.4826  # a standard deviation over the median of sizes

HUBER = 1.345  # standard deviations: beyond, a residual counts by its size and no longer by its square

MOST_ROUNDS = 50

QUIET = 1e-12  # of the largest effort: rows are not taken as more exact than that

ROUNDING = 1e-14  # of columns of length one: what is left of them where they depend on others

SETTLED = 1e-8  # of the parameters, by which a round may still change them

FEWEST = 8  # frequencies on either side, or the root of the number of instants, over which a spectrum is averaged

WIDTH = 0.25  # of a frequency, over which it is averaged on either side, where these are more

LEAST_FREE = 0.05  # of a frequency, where parameters have taken nearly all of the residuals

MOST_GAIN_ROUNDS, GAINS_SETTLED = 20, 1e-6  # of weights, and what the last may change gains by

RESAMPLED = 200  # times, for the deviations

LEAST_KNOWN = 1e-3  # of the efforts: what is known must be felt


@dataclass(frozen=True, eq=False, repr=False)
class EffortRows(Record):
    """Rows of efforts: W (instants x rows x columns), y (instants x rows), where records begin."""

    W: Array
    y: Array
    starts: tuple[int, ...] = (0,)
    instruments: Array | None = None  # as W
    rate: Array | None = None  # of the motors at the instants
    known: Array | None = None  # efforts that are known, and not in y
    used: Array | None = None  # which rows of y are used, as y; none: all
    carried: Array | None = None  # efforts per unit of the mass and first moments of a payload
    # samples of a record at which signs of friction may be late, what rows change there, and how many samples it has
    late: tuple[Array, Array, int] | None = None

    @property
    def parts(self) -> list[slice]:
        """Instants of each record."""
        ends = (*self.starts[1:], len(self.y))
        return [slice(a, b) for a, b in zip(self.starts, ends, strict=True)]

    @property
    def mask(self) -> Array:
        """One where a row is used, and zero else, as y."""
        return np.ones_like(self.y) if self.used is None else self.used.astype(float)

    def columns(self, chosen: list[int]) -> EffortRows:
        """The same with some of the columns."""
        instruments = None if self.instruments is None else self.instruments[:, :, chosen]
        late = None if self.late is None else (self.late[0], self.late[1][:, :, chosen], self.late[2])
        return replace(self, W=self.W[:, :, chosen], instruments=instruments, late=late)


@dataclass(frozen=True, eq=False, repr=False)
class LeastSquaresFit(Record):
    """Parameters that fit rows.

    Attributes
    ----------
    values : Array
        Parameters.
    white : Array
        Their covariance where residuals are independent of each other.
    robust : Array
        Their covariance where residuals of one record are correlated.
    residuals : Array
        (instants x rows) of efforts.
    condition : float
        Condition number of the rows.
    noise : Array
        Standard deviation of the residuals of each row.
    lag : int
        Instants over which residuals were taken as correlated.
    """

    values: Array
    white: Array
    robust: Array
    residuals: Array
    condition: float
    noise: Array
    lag: int
    weights: Array = field(default_factory=lambda: np.ones(0))


def fit_rows(rows: EffortRows, estimator: str = "ols") -> LeastSquaresFit:
    """Fit by "ols", "wls" or "irls", with instruments where rows have them."""
    fit = _judged(rows, *solution(rows, estimator))
    if estimator != "irls":
        return fit
    wider = _by_outliers(rows, fit) ** 2
    return replace(fit, white=wider * fit.white, robust=wider * fit.robust)


def _by_outliers(rows: EffortRows, fit: LeastSquaresFit) -> float:
    """By how much deviations are larger than weights say, as these follow the residuals (Huber).

    A residual beyond the threshold has a weight, and no slope: the parameters do not follow it.
    """
    used, noise = rows.mask > 0, np.maximum(_noise(rows, fit.residuals, "irls"), 1e-300)
    far = (np.abs(fit.residuals) / noise)[used]
    slope, weight = float((far <= HUBER).mean()), float(np.minimum(1.0, HUBER / np.maximum(far, 1e-300)).mean())
    few = 1 + len(fit.values) / max(len(far), 1) * (1 - slope) / max(slope, 1e-300)
    return few * weight / max(slope, 1e-300)


def solution(rows: EffortRows, estimator: str) -> tuple[Array, Array]:
    """Parameters of a fit alone, and the weights of its rows."""
    ones = rows.mask
    values = _solved(rows, ones)
    if estimator == "ols":
        return values, ones
    weights = ones
    quiet = max(QUIET * float(np.abs(rows.y).max(initial=0.0)), 1e-300)
    for _ in range(MOST_ROUNDS):
        residual = rows.y - rows.W @ values
        weights = ones / np.maximum(_noise(rows, residual, estimator), quiet)
        if estimator == "irls":
            far = np.abs(residual) * weights
            weights = weights * np.sqrt(np.minimum(1.0, HUBER / np.maximum(far, 1e-300)))
        before, values = values, _solved(rows, weights)
        if np.abs(values - before).max() <= SETTLED * np.abs(values).max():
            break
    return values, weights


def _noise(rows: EffortRows, residual: Array, estimator: str) -> Array:
    """Of each row: from squares, or from the median where outliers are expected."""
    if estimator == "irls":
        masked = np.where(rows.mask > 0, residual, np.nan)
        masked[:, ~rows.mask.any(axis=0)] = 0.0
        return MEDIAN * np.nanmedian(np.abs(masked - np.nanmedian(masked, axis=0)), axis=0)
    count, size = rows.mask.sum(axis=0), rows.W.shape[2] / rows.y.shape[1]
    return np.sqrt(((residual * rows.mask) ** 2).sum(axis=0) / np.maximum(count - size, 1.0))


def noise_of(rows: EffortRows, residual: Array) -> Array:
    """Standard deviation of the residuals of each row, where it is used."""
    count = np.maximum(rows.mask.sum(axis=0), 1.0)
    mean = (residual * rows.mask).sum(axis=0) / count
    return np.sqrt((((residual - mean) * rows.mask) ** 2).sum(axis=0) / count)


def _solved(rows: EffortRows, weights: Array) -> Array:
    W = (rows.W * weights[:, :, None]).reshape(-1, rows.W.shape[2])
    y = (rows.y * weights).ravel()
    if rows.instruments is None:
        return np.linalg.lstsq(W, y, rcond=None)[0]
    Z = (rows.instruments * weights[:, :, None]).reshape(W.shape)
    return np.linalg.lstsq(Z.T @ W, Z.T @ y, rcond=None)[0]


def _judged(rows: EffortRows, values: Array, weights: Array) -> LeastSquaresFit:
    """Residuals, and covariances of the parameters of both kinds."""
    judge, every = WeightedRows(rows, weights), list(range(len(values)))
    residual = rows.y - rows.W @ values
    white, robust, lag = judge.covariances(values, every)
    plain = (rows.W * rows.mask[:, :, None]).reshape(-1, len(values))
    condition = float(np.linalg.cond(np.linalg.qr(plain, mode="r")))
    return LeastSquaresFit(values, white, robust, residual, condition, noise_of(rows, residual), lag, weights)


class WeightedRows:
    """Weighted rows and what does not change where columns are left out: factors, products and spectra."""

    def __init__(self, rows: EffortRows, weights: Array) -> None:
        self.rows, self.mask = rows, rows.mask
        self.W, self.y = rows.W * weights[:, :, None], rows.y * weights
        self.Z = self.W if rows.instruments is None else rows.instruments * weights[:, :, None]
        flat, flat_instruments = (part.reshape(-1, rows.W.shape[2]) for part in (self.W, self.Z))
        self.ZW, self.ZZ, self.Zy = (
            flat_instruments.T @ flat,
            flat_instruments.T @ flat_instruments,
            flat_instruments.T @ self.y.ravel(),
        )
        self.Wf = [spectra_of(self.W[part]) for part in rows.parts]
        self.Zf = self.Wf if rows.instruments is None else [spectra_of(self.Z[part]) for part in rows.parts]

    @cached_property
    def factors(self) -> tuple[Array, Array]:
        """R of the rows, and efforts along its rows: least squares of any columns."""
        Q, R = np.linalg.qr(self.W.reshape(-1, self.W.shape[2]))
        return R, Q.T @ self.y.ravel()

    def solved(self, chosen: list[int]) -> Array:
        """Parameters of some columns."""
        if self.rows.instruments is not None:
            return np.linalg.lstsq(self.ZW[np.ix_(chosen, chosen)], self.Zy[chosen], rcond=None)[0]
        R, along = self.factors
        return np.linalg.lstsq(R[:, chosen], along, rcond=None)[0]

    def _inverse(self, chosen: list[int]) -> Array:
        """The inverse of Z^T W of some columns, each measured with its length.

        Columns of one unit may be a million times those of another, and some nearly depend on others: squares of both
        in one matrix would be lost in rounding, and a parameter that is hardly told would have no deviation.
        """
        if self.rows.instruments is not None:
            lengths, instrument_lengths = (
                _lengths(part.reshape(-1, part.shape[2])[:, chosen]) for part in (self.W, self.Z)
            )
            scaled = self.ZW[np.ix_(chosen, chosen)] / np.outer(instrument_lengths, lengths)
            return np.asarray(np.linalg.pinv(scaled, rcond=ROUNDING) / np.outer(lengths, instrument_lengths))
        R = self.factors[0][:, chosen]
        lengths = _lengths(R)
        half = np.linalg.pinv(R / lengths, rcond=ROUNDING)
        return np.asarray(half @ half.T / np.outer(lengths, lengths))

    def covariances(self, values: Array, chosen: list[int]) -> tuple[Array, Array, int]:
        """Covariances of parameters of some columns, for white and for correlated residuals, and the lag of these."""
        W, Z = (self.W, self.Z) if len(chosen) == self.W.shape[2] else (self.W[:, :, chosen], self.Z[:, :, chosen])
        bread = self._inverse(chosen)
        scaled, parts = self.y - W @ values, self.rows.parts
        count, size = int(self.mask.sum()), len(chosen)
        spread = float((scaled**2).sum()) / max(count - size, 1)
        ZZ = self.ZZ[np.ix_(chosen, chosen)]
        white = spread * bread @ ZZ @ bread.T
        scores = np.einsum("nrc,nr->nc", Z, scaled)
        lag = max(usual_lag(scores[part]) for part in parts)
        middle = sum(
            spectral_middle(Zf[:, :, chosen], Wf[:, :, chosen], scaled[part], bread, self.mask[part], ZZ)
            for Zf, Wf, part in zip(self.Zf, self.Wf, parts, strict=True)
        )
        neighbours = sum(long_run(scores[part], lag) for part in parts) * count / max(count - size, 1)
        return white, _wider(bread @ middle @ bread.T, bread @ neighbours @ bread.T), lag


def _lengths(columns: Array) -> Array:
    """Of columns; one of those that are zero."""
    lengths = np.linalg.norm(columns, axis=0)
    return np.where(lengths > 0, lengths, 1.0)


def _wider(stationary: Array, neighbours: Array) -> Array:
    """A covariance with the larger deviations of two.

    Spectra of residuals are right where these are stationary, sums over neighbouring instants where errors of the model
    come and go with the motion.
    """
    by_spectra, by_neighbours = (np.sqrt(np.maximum(np.diag(C), 0.0)) for C in (stationary, neighbours))
    safe = np.where(by_spectra > 0, by_spectra, np.inf)  # spectra without what the fit made of them may leave nothing
    correlation = np.clip(stationary / safe[:, None] / safe, -1.0, 1.0)
    np.fill_diagonal(correlation, 1.0)
    size = np.maximum(by_spectra, by_neighbours)
    return np.asarray(correlation * np.outer(size, size))


def usual_lag(scores: Array) -> int:
    """Over how many instants products of scores are summed: Andrews' rule for the kernel of Bartlett."""
    a, b = scores[:-1], scores[1:]
    power = (a * a).sum(axis=0)
    rho = np.clip((a * b).sum(axis=0) / np.maximum(power, 1e-300), -0.97, 0.97)
    # scores have units: each counts alike, measured with the variance of its own innovations
    top = (4 * rho**2 / ((1 - rho) ** 6 * (1 + rho) ** 2)).sum()
    bottom = (1 / (1 - rho) ** 4).sum()
    return int(min(np.ceil(1.1447 * (top / bottom * len(scores)) ** (1 / 3)), len(scores) // 4))


def long_run(scores: Array, lag: int) -> Array:
    """The sum of products of scores at instants up to a lag apart, by the weights of Bartlett (Newey and West)."""
    total = scores.T @ scores
    for k in range(1, lag + 1):
        shifted = scores[:-k].T @ scores[k:]
        total = total + (1 - k / (lag + 1)) * (shifted + shifted.T)
    return total


def spectra_of(values: Array) -> Array:
    """Spectra of columns, over their instants."""
    return np.fft.rfft(values, axis=0, norm="ortho")


def spectral_middle(Zf: Array, Wf: Array, residual: Array, bread: Array, mask: Array, ZZ: Array) -> Array:
    """Covariance of Z^T e, where e are errors of one record whose `residual` (instants x rows) is left by a fit.

    `Zf` and `Wf` (frequencies x rows x columns) are the spectra of instruments and rows, `bread` the inverse of Z^T W,
    `ZZ` is Z^T Z of all records. All are zero where `mask` is: samples that are left out. Parameters take power from
    residuals where rows have it, and make residuals of independent rows depend on each other. So periodograms are
    averaged over neighbouring frequencies and compared with what the fit would leave of white noise there.
    """
    ef = spectra_of(residual)
    share = np.maximum(mask.T @ mask / len(mask), 1e-300)
    power, white = np.einsum("fi,fj->fij", ef, ef.conj()) / share, _left_of_white(Zf, Wf, bread, ZZ, share)
    every = np.arange(len(share))
    free = np.clip(white[:, every, every].real, 0.0, 1.0)
    level = np.sqrt(np.einsum("fi,fj->fij", free, free))
    least = max(FEWEST, round(np.sqrt(len(mask))))
    spectrum = _averaged(power, least) / np.maximum(_averaged(level.astype(complex), least).real, LEAST_FREE)
    amplitudes = np.sqrt(np.maximum(spectrum[:, every, every].real, 0.0))
    by_fit = amplitudes[:, :, None] * amplitudes[:, None, :] * _averaged(white, least)
    by_fit[:, every, every] = 0.0
    spectrum = spectrum - by_fit / np.maximum(_averaged(level.astype(complex), least).real, LEAST_FREE)
    twice = np.full(len(Zf), 2.0)  # frequencies below zero
    twice[0] = 1.0
    if len(mask) % 2 == 0:
        twice[-1] = 1.0
    return np.einsum("f,fic,fij,fjd->cd", twice, Zf.conj(), spectrum, Zf, optimize=True).real


def _left_of_white(Zf: Array, Wf: Array, bread: Array, ZZ: Array, share: Array) -> Array:
    """Cross spectra (frequencies x rows x rows) that the fit leaves of independent white noise of size one."""
    taken = np.matmul(Wf @ bread, Zf.conj().swapaxes(1, 2))
    twice = np.matmul(Wf @ (bread @ ZZ @ bread.T), Wf.conj().swapaxes(1, 2))
    return np.asarray((np.diag(np.diag(share)) - taken - taken.conj().swapaxes(1, 2) + twice) / share)


def _averaged(values: Array, least: int) -> Array:
    """Means over neighbouring frequencies, the more of them the higher the frequency."""
    count = len(values)
    reach = np.maximum(least, (WIDTH * np.arange(count)).astype(int))
    reach = np.minimum(reach, max(count - 1, 0))
    both = np.concatenate([values[:0:-1].conj(), values, values[-2::-1].conj()])
    sums = np.cumsum(np.concatenate([np.zeros((1, *values.shape[1:]), values.dtype), both]), axis=0)
    middle = count - 1 + np.arange(count)
    wide = (2 * reach + 1).reshape(-1, *[1] * (values.ndim - 1))
    return (sums[middle + reach + 1] - sums[middle - reach]) / wide


def total_least_squares(rows: EffortRows) -> tuple[LeastSquaresFit, Array, Array, Array]:
    """Parameters with known gains, and the factors of the gains with their deviations, robust and white."""
    assert rows.known is not None
    if not np.linalg.norm(rows.known) > LEAST_KNOWN * np.linalg.norm(rows.y):
        raise InputError(
            "gains of drives need a payload that is known: without one all parameters could be scaled with them",
            key="payload", value=0.0, hint="name the payload of a record in [payload] of the map",
        )  # fmt: skip
    raw = rows.y + rows.known
    motors = raw.shape[1]
    noise, factors = fit_rows(rows, "wls").noise, np.ones(motors)
    for _ in range(MOST_GAIN_ROUNDS):  # what wrong gains leave is no noise: motors count by what found ones leave
        blocks = _products(rows, raw, 1 / noise)
        before, (factors, values) = factors, _solved_gains(blocks.sum(axis=0), motors)
        if np.abs(factors - before).max() <= GAINS_SETTLED * np.abs(factors).max():
            break
        noise = noise_of(rows, raw * factors - rows.known - rows.W @ values) / np.abs(factors)
    scaled = replace(rows, y=raw * factors - rows.known)
    after = fit_rows(scaled, "wls")
    scores = np.einsum("nrc,nr->nc", rows.W, after.residuals * rows.mask)
    lag = max(1, max(usual_lag(scores[part]) for part in rows.parts))
    spreads = []
    for length in (2 * lag, 1):  # blocks of instants keep what is correlated together
        rng = np.random.default_rng(0)
        sums = np.cumsum(np.concatenate([np.zeros((1, *blocks.shape[1:])), blocks]), axis=0)
        samples = []
        for _ in range(RESAMPLED):
            chosen = [_chosen(rng, part, length) for part in rows.parts]  # without its record, no payload is known
            first, last = (np.concatenate(ends) for ends in zip(*chosen, strict=True))
            s, theta = _solved_gains((sums[last] - sums[first]).sum(axis=0), motors)
            samples.append(np.concatenate([s, theta]))
        spreads.append(np.atleast_2d(np.cov(np.array(samples).T)))
    robust, white = spreads
    judged = LeastSquaresFit(
        values, white[motors:, motors:], robust[motors:, motors:], scaled.y - rows.W @ values, after.condition,
        noise_of(rows, scaled.y - rows.W @ values), lag, after.weights,
    )  # fmt: skip
    return judged, factors, np.sqrt(np.diag(robust)[:motors]), np.sqrt(np.diag(white)[:motors])


def _chosen(rng: np.random.Generator, part: slice, length: int) -> tuple[Array, Array]:
    """First and last instants of random blocks of a record, about as many instants as it has."""
    count = part.stop - part.start
    length = min(length, count)
    first = part.start + rng.choice(np.arange(count - length + 1), -(-count // length))
    return first, first + length


def _products(rows: EffortRows, raw: Array, weights: Array) -> Array:
    """Of each instant the products of all columns: efforts of each motor, parameters, what is known."""
    count, motors, size = rows.W.shape
    X = np.zeros((count, motors, motors + size + 1))
    X[:, range(motors), range(motors)] = raw
    X[:, :, motors:-1], X[:, :, -1] = rows.W, rows.known
    X = X * weights[None, :, None] * rows.mask[:, :, None]
    return np.einsum("nri,nrj->nij", X, X)


def _solved_gains(G: Array, motors: int) -> tuple[Array, Array]:
    """Factors and parameters from the products of all columns."""
    exact = slice(motors, None)
    size = np.sqrt(np.maximum(np.diag(G)[exact], 0.0))
    size = np.where(size > 0, size, 1.0)  # a column that these instants do not have
    inner = G[exact, exact] / np.outer(size, size)
    cross = G[exact, :motors] / size[:, None]
    per = np.linalg.lstsq(inner, cross, rcond=1e-14)[0]
    left = G[:motors, :motors] - cross.T @ per
    _, vectors = np.linalg.eigh((left + left.T) / 2)
    s = vectors[:, 0]
    values = (per @ s) / size
    return s / values[-1], values[:-1] / values[-1]
