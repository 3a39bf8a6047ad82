"""Least-squares estimators and the covariance of their estimates.

Efforts are fitted by ordinary least squares, weighted by the noise of each motor, reweighted for outliers, or with
instruments. Rows are ordered by record, then instant, then motor.

Two covariances belong to each fit: the white one of papers, for independent residuals, and one that is consistent with
heteroscedastic and autocorrelated residuals. Its variances are mean squares of the scores of a parameter along a few
cosines of time (Lazarus, Lewis, Stock and Watson). Parameters take a part of the residuals, and a few cosines cannot
resolve long correlations. Both biases are corrected, and Student's degrees of freedom found, under a working model:
residuals of each motor are autoregressive of order one, with the coefficient that explains their correlation. The
working model also gives the correlations of parameters.

Gains of drives follow from a known payload by total least squares. Efforts are known up to a factor s of each motor,
forces of the payload exactly: s raw = W theta + known. W and known are exact, and all errors are those of the raw
efforts, so the weighted total least squares are the least squares of raw - (W theta + known) / s.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from parflex.errors import InputError
from parflex.records import Record

Array = np.ndarray
MEDIAN = 1.4826  # a standard deviation over the median of sizes, of normal noise
HUBER = 1.345  # standard deviations: the threshold with 95 % efficiency for normal noise
MOST_ROUNDS, SETTLED = 50, 1e-8  # of weights, and of the parameters, by which the last may change them
ROUNDING = 1e-14  # of columns of length one: what is left of them where they depend on others
COSINES = 8  # intervals with six to eight degrees of freedom are a fifth wider than those of known variances
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
    t: Array | None = None  # of the instants, s
    by_file: Array | None = None  # efforts by the numbers of the robot file, as y
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
        Their covariance where residuals are correlated.
    freedoms : Array
        Degrees of freedom of its variances.
    residuals : Array
        (instants x rows) of efforts.
    condition : float
        Condition number of the rows.
    noise : Array
        Standard deviation of the residuals of each row.
    """

    values: Array
    white: Array
    robust: Array
    freedoms: Array
    residuals: Array
    condition: float
    noise: Array
    weights: Array


def fit_rows(rows: EffortRows, estimator: str = "ols") -> LeastSquaresFit:
    """Fit by "ols", "wls" or "irls", with instruments where rows have them."""
    values, weights = solution(rows, estimator)
    residual = rows.y - rows.W @ values
    white, robust, freedoms = covariances(rows, weights, residual * weights)
    if estimator == "irls":
        wider = _by_outliers(rows, residual, len(values)) ** 2
        white, robust = wider * white, wider * robust
    noise = noise_of(rows, residual)
    return LeastSquaresFit(values, white, robust, freedoms, residual, condition_of(rows), noise, weights)


def condition_of(rows: EffortRows) -> float:
    """Condition number of the rows that are used."""
    plain = (rows.W * rows.mask[:, :, None]).reshape(-1, rows.W.shape[2])
    return float(np.linalg.cond(np.linalg.qr(plain, mode="r")))


def _by_outliers(rows: EffortRows, residual: Array, count: int) -> float:
    """By how much deviations are larger than weights say, as these follow the residuals (Huber).

    A residual beyond the threshold has a weight, and no slope: the parameters do not follow it.
    """
    far = (np.abs(residual) / np.maximum(noise_of(rows, residual, "irls"), 1e-300))[rows.mask > 0]
    slope, weight = float((far <= HUBER).mean()), float(np.minimum(1.0, HUBER / np.maximum(far, 1e-300)).mean())
    few = 1 + count / max(len(far), 1) * (1 - slope) / max(slope, 1e-300)
    return few * weight / max(slope, 1e-300)


def solution(rows: EffortRows, estimator: str) -> tuple[Array, Array]:
    """Parameters of a fit alone, and the weights of its rows."""
    weights = rows.mask
    values = (rows.y * weights).ravel() @ influence(rows, weights)
    least = max(1e-12 * float(np.abs(rows.y).max(initial=0.0)), 1e-300)  # rounding: rows are not more exact
    for _ in range(MOST_ROUNDS if estimator != "ols" else 0):
        residual = rows.y - rows.W @ values
        weights = rows.mask / np.maximum(noise_of(rows, residual, estimator), least)
        if estimator == "irls":
            far = np.abs(residual) * weights
            weights = weights * np.sqrt(np.minimum(1.0, HUBER / np.maximum(far, 1e-300)))
        before, values = values, (rows.y * weights).ravel() @ influence(rows, weights)
        if np.abs(values - before).max() <= SETTLED * np.abs(values).max():
            break
    return values, weights


def noise_of(rows: EffortRows, residual: Array, estimator: str = "wls") -> Array:
    """Return the standard deviation of the residuals of each row: from the median where outliers are expected."""
    if estimator == "irls":
        return MEDIAN * _median(np.abs(residual - _median(residual, rows)), rows)
    count, size = rows.mask.sum(axis=0), rows.W.shape[2] / rows.y.shape[1]
    return np.sqrt(((residual * rows.mask) ** 2).sum(axis=0) / np.maximum(count - size, 1.0))


def _median(values: Array, rows: EffortRows) -> Array:
    """Of each row where it is used; zero of a row that is not."""
    masked = np.where(rows.mask > 0, values, np.nan)
    masked[:, ~rows.mask.any(axis=0)] = 0.0
    return np.asarray(np.nanmedian(masked, axis=0))


def influence(rows: EffortRows, weights: Array) -> Array:
    """Return what parameters change by per unit of weighted efforts, with Z = Q R: Q (Q^T W)^-T."""
    W, Z = _weighted(rows.W, weights), rows.W if rows.instruments is None else rows.instruments
    Q = np.linalg.qr(_weighted(Z, weights))[0]
    return np.asarray(Q @ _inverse(Q.T @ W).T)


def _weighted(W: Array, weights: Array) -> Array:
    return (W * weights[:, :, None]).reshape(-1, W.shape[2])


def covariances(rows: EffortRows, weights: Array, left: Array) -> tuple[Array, Array, Array]:
    """Return the white and the robust covariance of parameters with weighted residuals, and freedoms of the latter."""
    count, motors, size = rows.W.shape
    A, used = influence(rows, weights), (weights > 0).astype(float)
    white = float((left**2).sum()) / max(int(used.sum()) - size, 1) * A.T @ A
    U, R = np.linalg.qr(_weighted(rows.W, weights))
    V = A @ R.T  # residuals are 1 - U V^T times errors
    kernel = autocorrelation(used, U, V, left) ** np.arange(count)
    cosines = np.cos(np.pi * np.outer(np.arange(count) + 0.5, np.arange(1, COSINES + 1)) / count)
    cosines = np.repeat(np.sqrt(2 / COSINES) * cosines, motors, axis=0)
    working = A.T @ _correlated(kernel, A, motors)
    variances, freedoms = np.zeros(size), np.zeros(size)
    for k in range(size):
        scores = cosines * A[:, k, None]
        through = scores - V @ (U.T @ scores)  # scores of residuals by errors
        expected = through.T @ _correlated(kernel, through, motors)
        unbiased = working[k, k] / max(float(np.trace(expected)), 1e-300)
        variances[k] = unbiased * float(((left.ravel() @ scores) ** 2).sum())
        freedoms[k] = np.trace(expected) ** 2 / max(float((expected**2).sum()), 1e-300)
    ratio = np.sqrt(variances / np.maximum(np.diag(working), 1e-300))
    return white, working * np.outer(ratio, ratio), freedoms


def _correlated(kernel: Array, columns: Array, motors: int) -> Array:
    """Return a Toeplitz matrix over instants times columns of rows."""
    count = len(kernel)
    factors = np.fft.rfft(np.concatenate([kernel, [0.0], kernel[:0:-1]]))[:, None]
    product = np.fft.irfft(factors * np.fft.rfft(columns.reshape(count, -1), 2 * count, axis=0), axis=0)[:count]
    return np.asarray(product.reshape(count * motors, -1))


def autocorrelation(used: Array, U: Array, V: Array, left: Array) -> float:
    """Return the coefficient of an autoregression whose residuals have the autocorrelation of those that are left.

    Autocorrelations are summed over the lags that cosines do not resolve. Those of residuals (1 - U V^T) e are a linear
    function of those of errors e, which corrects them for what parameters take.
    """
    count, motors = used.shape
    lags = np.arange(count)
    near = (lags > 0) & (lags <= max(count / (4 * COSINES), 1))
    band = 0.5 * near
    BU = _correlated(band, U, motors) * used.reshape(-1, 1)
    total = (lags == 0) * used.sum() - 2 * _products(V, U, motors) + _products(V, V @ (U.T @ U), motors)
    among = band * _products(used, used) - 2 * _products(V, BU, motors) + _products(V, V @ (U.T @ BU), motors)
    measured = float((left * _correlated(band, left.ravel()[:, None], motors).reshape(left.shape)).sum())
    share = measured / max(float((left**2).sum()), 1e-300)
    low, high = 0.0, float(np.exp(-COSINES / count))
    for _ in range(30):
        middle = (low + high) / 2
        powers = middle**lags
        low, high = (middle, high) if among @ powers < share * (total @ powers) else (low, middle)
    return low


def _products(first: Array, second: Array, motors: int = 1) -> Array:
    """Return sums of products of two columns of rows at instants that are 0, 1, ... apart, in both directions."""
    several = [part.reshape(len(part) // motors, -1) for part in (first, second)]
    count = len(several[0])
    one, other = (np.fft.rfft(part, 2 * count, axis=0) for part in several)
    both = np.fft.irfft((one.conj() * other).real.sum(axis=1))[:count]
    return np.asarray(np.where(np.arange(count) > 0, 2.0, 1.0) * both)


def _inverse(R: Array) -> Array:
    """Of a matrix, each column measured with its length; rows of columns that are zero are zero."""
    lengths = np.linalg.norm(R, axis=0)
    lengths = np.where(lengths > 0, lengths, 1.0)
    return np.asarray(np.linalg.pinv(R / lengths, rcond=ROUNDING) / lengths[:, None])


def total_least_squares(rows: EffortRows) -> tuple[LeastSquaresFit, Array, Array, Array]:
    """Return parameters with known gains, and the factors of the gains with their deviations, robust and white."""
    assert rows.known is not None
    if not np.linalg.norm(rows.known) > LEAST_KNOWN * np.linalg.norm(rows.y):
        raise InputError(
            "gains of drives need a payload that is known: without one all parameters could be scaled with them",
            key="payload", value=0.0, hint="name the payload of a record in [payload] of the map",
        )  # fmt: skip
    raw, motors = rows.y + rows.known, rows.y.shape[1]
    each = np.eye(motors)
    linear = np.concatenate([raw[:, :, None] * each, -rows.W], axis=2)  # its noisy columns only bias the start
    factors, values = np.split(solution(replace(rows, W=linear, y=rows.known), "ols")[0], [motors])
    for _ in range(MOST_ROUNDS):
        before, forces = factors, rows.W @ values + rows.known
        slopes = np.concatenate([forces[:, :, None] * each, rows.W / factors[:, None]], axis=2)
        linear_rows = replace(rows, W=slopes, y=raw + rows.W @ values / factors)
        gains, values = np.split(solution(linear_rows, "wls")[0], [motors])
        factors = 1 / gains
        if np.abs(factors - before).max() <= SETTLED * np.abs(factors).max():
            break
    fitted, left = fit_rows(linear_rows, "wls"), raw * factors - rows.known - rows.W @ values
    judged = replace(
        fitted, values=values, white=fitted.white[motors:, motors:], robust=fitted.robust[motors:, motors:],
        freedoms=fitted.freedoms[motors:], residuals=left, condition=condition_of(rows), noise=noise_of(rows, left),
        weights=fitted.weights / np.abs(factors),
    )  # fmt: skip
    robust, white = (factors**2 * np.sqrt(np.diag(part)[:motors]) for part in (fitted.robust, fitted.white))
    return judged, factors, robust, white
