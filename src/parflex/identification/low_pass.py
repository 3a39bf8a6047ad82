"""Low-passes without phase, and mean spectra of records.

A filter that runs forwards and backwards multiplies each frequency by the square of its gain, which has a closed form
behind the bilinear transformation, or by its partial fractions, where few samples are kept. Records go on at both ends
by reflection about their first and last samples for as long as the filter remembers. `scipy.signal` filters alike, but
a third of the time of `identify` went to its import.
"""

from __future__ import annotations

import numpy as np

Array = np.ndarray
ORDER = 4  # of the Butterworth filter
RIPPLE, POLES, BAND = 0.05, 8, 0.8  # dB, order and share of the new Nyquist frequency: MATLAB's and SciPy's `decimate`
# periods of the cutoff in which the slowest pole falls to 1e-12, exp(-2 pi sin(pi/8) n), and of the Chebyshev filter,
# whose slowest pole has 0.073 of the cutoff instead of sin(pi/8), to 1e-8
REMEMBERED, LONGER = 12, 40
BLOCK = 64  # columns decimated at once: a million numbers of a long record


def butterworth(values: Array, band: float) -> Array:
    """Behind a Butterworth low-pass of order four, forwards and backwards, along the first axis.

    `band` is the cutoff over the Nyquist frequency; the gain of both passes is one half there.
    """
    return derivatives(values, band, 1.0, 0)[0]


def derivatives(values: Array, band: float, step: float, highest: int = 2) -> list[Array]:
    """The same, its rates, and so on up to the highest derivative by time.

    Each frequency that passes is multiplied by 2 pi i f: differences of neighbours would miss a part of it, of
    accelerations (2 pi f step)^2/3 by two of them, whatever the noise.
    """
    flat = values.reshape(len(values), -1).T
    count, more = len(values), int(np.ceil(2 * REMEMBERED / band))
    part = np.pad(flat, ((0, 0), (more, more)), mode="reflect", reflect_type="odd")
    # without the line from end to end the series has no jump; the filter leaves lines as they are
    slope = (part[:, -1:] - part[:, :1]) / (part.shape[1] - 1)
    line = part[:, :1] + slope * np.arange(part.shape[1])
    size = _quick_size(part.shape[1])
    f = np.fft.rfftfreq(size)
    over = np.tan(np.pi / 2 * np.minimum(2 * f, 1.0)) / np.tan(np.pi / 2 * band)
    spectrum = np.fft.rfft(part - line, size) / (1 + over ** (2 * ORDER))
    found = []
    for order in range(highest + 1):
        smooth = np.fft.irfft(spectrum, size)[:, more : more + count]
        smooth += (line[:, more : more + count], slope / step, 0.0)[min(order, 2)]
        found.append(np.ascontiguousarray(smooth.T).reshape(values.shape))
        spectrum = spectrum * (2j * np.pi * f / step)
    return found


def decimated(values: Array, every: int) -> Array:
    """Every n-th sample behind the Chebyshev low-pass of `decimate`, forwards and backwards, along the first axis.

    What a sample sends to later and to earlier ones falls by the power of each pole, so that only sums over blocks are
    carried from one sample that is kept to the next.
    """
    flat = values.reshape(len(values), -1)
    blocks, more = (len(flat) - 1) // every, int(np.ceil(2 * LONGER / BAND))
    ends = (more * every, (more + blocks) * every - (len(flat) - 1))
    found = np.empty((blocks + 1, flat.shape[1]))
    poles, shares, own = _chebyshev(BAND / every)
    for start in range(0, flat.shape[1], BLOCK):
        some = slice(start, start + BLOCK)
        part = np.pad(flat[:, some], (ends, (0, 0)), mode="reflect", reflect_type="odd")
        kept = slice(more, more + blocks + 1)
        sums = _carried(part, poles, every)[kept] + _carried(part[::-1], poles, every)[::-1][kept]
        at = part[::every][kept]
        found[:, some] = own * at + 2 * np.einsum("p,npc->nc", shares, sums - at[:, None]).real
    return found.reshape(-1, *values.shape[1:])


def _carried(values: Array, poles: Array, every: int) -> Array:
    """Sums of all samples up to every n-th one, each times the power of the poles by how long ago it was."""
    powers = poles[:, None] ** np.arange(every - 1, -1, -1)
    blocks = values[1:].reshape(-1, every, values.shape[1])
    both = np.concatenate([powers.real, powers.imag]) @ blocks
    found = np.empty((len(blocks) + 1, len(poles), values.shape[1]), dtype=complex)
    found[0] = values[0] / (1 - poles[:, None])  # constant before
    found[1:] = both[:, : len(poles)] + 1j * both[:, len(poles) :]
    once = poles[:, None] ** every
    for k in range(len(blocks)):
        found[k + 1] += once * found[k]
    return found


def _chebyshev(band: float) -> tuple[Array, Array, float]:
    """Poles above the real axis of the Chebyshev low-pass, their shares in both passes, and that of the sample itself.

    Partial fractions of H(z) H(1/z) behind the bilinear transformation; poles below the axis are conjugate.
    """
    ripple = np.sqrt(10 ** (RIPPLE / 10) - 1)
    at = np.arcsinh(1 / ripple) / POLES + 1j * np.pi * (2 * np.arange(POLES) + 1 - POLES) / (2 * POLES)
    analog = -np.tan(np.pi / 2 * band) * np.sinh(at)
    p = (1 + analog) / (1 - analog)
    gain = 10 ** (-RIPPLE / 10) * np.prod(np.abs(1 - p) ** 2) / 4**POLES  # an even order has its ripple at rest
    shares = []
    for k in np.flatnonzero(p.imag > 0):
        others = np.prod(p[k] - np.delete(p, k)) * np.prod(1 / p[k] - p)
        shares.append(gain * ((1 + p[k]) * (1 + 1 / p[k])) ** POLES / (p[k] * others))
    return p[p.imag > 0], np.array(shares), float(gain / np.prod(p).real)


def _quick_size(least: int) -> int:
    """The smallest product of twos, threes and fives that is not below: others take Fourier transforms much longer."""
    best = 1 << (least - 1).bit_length()
    for five in (5**k for k in range(least.bit_length())):
        for odd in (five * 3**k for k in range(least.bit_length())):
            if odd < best:
                best = min(best, odd << (-(-least // odd) - 1).bit_length())
    return best


def mean_spectrum(values: Array, step: float, size: int) -> tuple[Array, Array]:
    """Frequencies and the power per frequency of all columns: mean of Hann windows that overlap by half (Welch)."""
    size = min(size, len(values))
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size)
    window = window.reshape(-1, *(1 for _ in values.shape[1:]))
    starts = range(0, len(values) - size + 1, size - size // 2)
    parts = np.stack([values[start : start + size] for start in starts])
    power = np.abs(np.fft.rfft((parts - parts.mean(axis=1, keepdims=True)) * window, axis=1)) ** 2
    power = power.mean(axis=0) * step / (window**2).sum()
    power[1 : (size + 1) // 2] *= 2  # of negative frequencies, too
    return np.fft.rfftfreq(size, step), power
