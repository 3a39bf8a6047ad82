"""Check values: each error names the key, the value and the fix; imports without NumPy keep `parflex --help` fast."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from parflex.errors import InputError, ParflexError, did_you_mean

if TYPE_CHECKING:
    import numpy as np

SHOWN = 60  # characters of a value that an error repeats


def short_text(value: Any) -> str:
    """Return a value as a short text."""
    if isinstance(value, str):
        return value[:SHOWN]
    try:
        text = repr(value)
    except Exception:  # of a foreign class
        text = type(value).__name__
    return " ".join(text.split())[:SHOWN]


def require(
    holds: Any, message: str, key: str, hint: str, value: object = None, kind: type[ParflexError] = InputError
) -> None:
    """Raise an error unless a condition holds."""
    if not holds:
        raise kind(message, key=key, value=value, hint=hint)


def one_of(value: Any, words: Iterable[str], key: str) -> str:
    """Return a word; raise if it is unknown."""
    known = list(words)
    if not isinstance(value, str) or value not in known:
        raise InputError(
            f"'{short_text(value)}' is not a known value of '{key}'",
            key=key,
            value=short_text(value),
            hint=did_you_mean(short_text(value), known),
        )
    return value


def number(value: Any, key: str, *, least: float = -math.inf, above: float = -math.inf, example: float = 0.1) -> float:
    """Return a finite number, not below `least` and above `above`."""
    fits = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    if not fits or value < least or value <= above:
        what = (
            "a finite number" if math.isinf(least) and math.isinf(above)
            else "a positive number" if above == 0.0
            else f"a finite number of {least:g} or more" if math.isfinite(least)
            else f"a finite number above {above:g}"
        )  # fmt: skip
        raise InputError(f"'{key}' is not {what}", key=key, value=short_text(value), hint=f"give e.g. {example:g}")
    return float(value)


def integer(value: Any, key: str, least: int = 0, most: int | None = None) -> int:
    """Return an integer in a range."""
    fits = isinstance(value, Integral) and not isinstance(value, bool)
    if not fits or value < least or (most is not None and value > most):
        upto = "or more" if most is None else f"to {most}"
        raise InputError(
            f"'{key}' is not a whole number of {least} {upto}",
            key=key,
            value=short_text(value),
            hint=f"give e.g. {least}",
        )
    return int(value)


def numbers(value: Any, shape: tuple[int | None, ...], key: str) -> np.ndarray:
    """Return finite numbers in an array of a shape; None is any size."""
    import numpy as np

    try:
        array = np.asarray(None if isinstance(value, (str, bytes)) else value, dtype=float)
    except (TypeError, ValueError):
        array = np.array(np.nan)  # of no shape that is asked for, and not finite
    fits = array.ndim == len(shape) and all(
        expected in (None, size) for expected, size in zip(shape, array.shape, strict=True)
    )
    size = " x ".join("n" if expected is None else str(expected) for expected in shape) or "one"
    if not fits or not np.isfinite(array).all():
        raise InputError(
            f"'{key}' is not {size} finite number{'' if size in ('1', 'one') else 's'}",
            key=key,
            value=short_text(value),
            hint=f"give an array of {size} number{'' if size in ('1', 'one') else 's'}",
        )
    return array


def table(value: Any, key: str, example: str = "{'x': 0.1}") -> Mapping[str, Any]:
    """Return a dictionary with names as keys; None is an empty one."""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(word, str) for word in value):
        raise InputError(
            f"'{key}' must be a dictionary of names and values, not {_kind(value)}",
            key=key,
            value=short_text(value),
            hint=f"write e.g. {example}",
        )
    return value


def names(value: Any, key: str, example: str = "['a', 'b']") -> tuple[str, ...]:
    """Return a list of names."""
    listed = isinstance(value, (Sequence, set, frozenset)) and not isinstance(value, (str, bytes))
    if not listed or not all(isinstance(word, str) for word in value):
        raise InputError(
            f"'{key}' must be a list of names, not {_kind(value)}", key=key, value=short_text(value),
            hint=f"write e.g. {example}",
        )  # fmt: skip
    return tuple(value)


def names_or_all(value: Any, key: str) -> tuple[str, ...]:
    """Return a list of names, or the word 'all'."""
    every = isinstance(value, str) and value == "all"
    return (value,) if every else names(value, key, "['a', 'b'] or 'all'")


def boolean(value: Any, key: str) -> bool:
    """Return true or false; raise for other values."""
    import numpy as np

    if not isinstance(value, (bool, np.bool_)):
        raise InputError(f"'{key}' must be True or False", key=key, value=short_text(value), hint="give True or False")
    return bool(value)


def instance(value: Any, kind: type, key: str, hint: str) -> Any:
    """Return an object of a class of parflex; raise for other objects."""
    if not isinstance(value, kind):
        raise InputError(
            f"'{key}' must be a {kind.__name__}, not {_kind(value)}", key=key, value=short_text(value), hint=hint
        )
    return value


def _kind(value: Any) -> str:
    import numpy as np

    words = {list: "a list", tuple: "a tuple", str: "a string", dict: "a dictionary", np.ndarray: "an array"}
    known = words.get(type(value))
    if known is None:
        known = "a number" if isinstance(value, Real) else f"a {type(value).__name__}"
    return known
