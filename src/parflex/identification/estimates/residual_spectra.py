"""Covariance of estimates whose residuals are correlated: by the spectra of the residuals.

Differences of noisy positions leave residuals with little power where robots move and much above; low-passes cut what
is above them; errors of a model have it below. Sums of products over neighbouring instants (Newey and West) need a lag,
and with any lag some of the power above leaks down. Spectra do not mix: residuals that are stationary add to estimates
only what power they have at the frequencies of the instruments.
"""

from __future__ import annotations

import numpy as np

Array = np.ndarray
FEWEST = 8  # frequencies on either side, or the root of the number of instants, over which a spectrum is averaged
WIDTH = 0.25  # of a frequency, over which it is averaged on either side, where these are more
LEAST_FREE = 0.05  # of a frequency, where parameters have taken nearly all of the residuals


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
    own = np.sqrt(np.maximum(spectrum[:, every, every].real, 0.0))
    by_fit = own[:, :, None] * own[:, None, :] * _averaged(white, least)
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
