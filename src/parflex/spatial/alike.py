"""Functions of alike things, over any scalar.

Numbers compute. Symbols that know how call one function for all elements of a robot that are alike, so that long
programs are calls of short ones: what is asked of such a scalar is its method `alike`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from parflex.spatial.complex_pairs import Pair, pair

Array = np.ndarray


def alike(function: Callable[..., tuple[Array, ...]], key: Any, *arrays: Any) -> tuple[Array, ...]:
    """Results of a function of arrays; the function is the same for equal keys, words or things that hold the same.

    Where an array holds pairs, these go through as two parts, and all results are pairs.
    """
    given = [np.asarray(values) for values in arrays]
    caller = next((x for values in given if values.dtype == object for x in values.flat if _calls(x)), None)
    if caller is None:
        return function(*given)
    if not isinstance(caller, Pair) and not any(_has_pairs(values) for values in given):
        return caller.alike(function, key, given)
    paired = [_has_pairs(values) for values in given]

    def apart(*parts: Array) -> tuple[Array, ...]:
        """The function of real and imaginary parts."""
        rest = iter(parts)
        found = function(*(_joined(next(rest), next(rest)) if pairs else next(rest) for pairs in paired))
        return tuple(part for values in found for part in _parts(values))

    parts = [part for a, pairs in zip(given, paired, strict=True) for part in (_parts(a) if pairs else [a])]
    symbol = caller.re if isinstance(caller, Pair) else caller
    results = iter(symbol.alike(apart, (key, tuple(paired)), parts))
    return tuple(_joined(re, im) for re, im in zip(results, results, strict=True))


def calls_alike(*arrays: Any) -> bool:
    """Whether entries of an array would call one function for alike things."""
    return any(values.dtype == object and any(_calls(x) for x in values.flat) for values in map(np.asarray, arrays))


def _calls(x: Any) -> bool:
    return getattr(x.re if isinstance(x, Pair) else x, "calls_alike", False)


def _has_pairs(values: Array) -> bool:
    return values.dtype == object and any(isinstance(x, Pair) for x in values.flat)


def _parts(values: Array) -> list[Array]:
    """Real and imaginary parts."""
    found = []
    for word in ("re", "im"):
        part = np.zeros(values.shape, dtype=object)
        for index in np.ndindex(values.shape):
            part[index] = getattr(pair(values[index]), word)
        found.append(part)
    return found


def _joined(re: Array, im: Array) -> Array:
    """Pairs of both parts; real numbers stay such, so that zeros are seen."""
    whole = np.zeros(re.shape, dtype=object)
    for index in np.ndindex(re.shape):
        real = all(isinstance(part[index], (int, float)) for part in (re, im)) and im[index] == 0
        whole[index] = re[index] if real else Pair(re[index], im[index])
    return whole
