"""Calls of the public functions: older names of arguments, unknown ones, and what the arguments have to be.

All of it is done here, before a function sees anything of it, and once for all functions.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from parflex.argument_checks import CHECKS, OTHERS, Check
from parflex.errors import InputError, ParflexWarning, did_you_mean
from parflex.whole_files import keeping_inputs

# older names of an argument, where a function has no argument of that name
ALIASES: dict[str, tuple[str, ...]] = {
    "pose": ("at",),
    "wrench": ("wrenches", "loads", "load"),
    "wrench_frames": ("wrenches",),
    "progress": ("shown",),
    "poses": ("path",),
    "values": ("measured",),
    "source": ("robot",),
    "study": ("file",),
    "operator_limit": ("limit",),
}
# older values of an argument
VALUES: dict[str, dict[str, str]] = {"coordinates": {"actuated": "motors"}}


@dataclass(frozen=True)
class _Argument:
    """An argument of a function: what it has to be, what it is where it is not given, and older values of it."""

    name: str
    check: Check | None
    default: Any
    values: Mapping[str, str]

    def looked_at(self, value: Any) -> Any:
        """The value after its check, in the words of today."""
        if value is self.default:
            return value
        if self.values and isinstance(value, str):
            value = self.values.get(value, value)
        if self.check is not None:
            self.check(value, self.name)
        return value


class _Call:
    """How a function is called."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.name = function.__name__
        checks = {**CHECKS, **OTHERS.get(self.name, {})}
        parameters = inspect.signature(function).parameters
        self.arguments = {
            name: _Argument(name, checks[name], one.default, VALUES.get(name, {})) for name, one in parameters.items()
        }
        self.in_order = [self.arguments[n] for n, one in parameters.items() if one.kind is not one.KEYWORD_ONLY]
        self.needed = [name for name, one in parameters.items() if one.default is one.empty]
        self.older = {old: name for name in parameters for old in ALIASES.get(name, ()) if old not in parameters}
        self.writes = any(name in parameters and checks[name] is CHECKS[name] for name in ("out", "path"))

    def in_new_words(self, given: Mapping[str, Any], places: int) -> dict[str, Any]:
        """Arguments by their names of today."""
        words: dict[str, Any] = {}
        taken = {argument.name: argument.name for argument in self.in_order[:places]}
        for word, value in given.items():
            name = self.older.get(word, word)
            if name not in self.arguments:
                raise InputError(
                    f"{self.name} has no argument '{word}'",
                    key=word,
                    value=word,
                    hint=did_you_mean(word, self.arguments),
                )
            if name in taken:
                both = f"'{word}' and '{taken[name]}'" if word != taken[name] else f"'{word}'"
                raise InputError(
                    f"{self.name} is given {both}, which mean the same"
                    if word != taken[name]
                    else f"{self.name} is given '{word}' twice",
                    key=word,
                    hint="keep one of them",
                )
            taken[name] = word
            words[name] = value
        return words

    def refuse(self) -> InputError:
        """What is said where there are too few or too many arguments."""
        return InputError(
            f"{self.name} is called with too few or too many arguments",
            key=self.name,
            hint=f"required: {', '.join(self.needed) or 'none'}; accepted: {', '.join(self.arguments)}",
        )


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with its arguments checked first."""
    call, doubts = _Call(function), getattr(function, "doubts", None)  # sentences on an answer that all must see
    arguments, in_order, needed = call.arguments, call.in_order, call.needed

    @functools.wraps(function)
    def checked_call(*given: Any, **words: Any) -> Any:
        places = len(given)
        if places > len(in_order):
            raise call.refuse()
        words = call.in_new_words(words, places) if words else words
        if any(name not in words for name in needed[places:]):
            raise call.refuse()
        with keeping_inputs() if call.writes else nullcontext():  # no frame more: warnings count them to the caller
            values = [argument.looked_at(value) for argument, value in zip(in_order, given, strict=False)]
            found = function(*values, **{name: arguments[name].looked_at(value) for name, value in words.items()})
        for sentence in () if doubts is None else doubts(found):
            warnings.warn(sentence, ParflexWarning, stacklevel=2)
        return found

    short_way = getattr(function, "short_way", None)
    if short_way is None:
        return checked_call

    @functools.wraps(function)
    def quick_call(*given: Any, **words: Any) -> Any:
        """Input known to be valid is answered at once: checking all arguments would take longer than the answer."""
        found = short_way(given, words)
        return checked_call(*given, **words) if found is None else found

    return quick_call
