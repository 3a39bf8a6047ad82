"""Check the arguments of public functions: unknown names, missing ones, and wrong values.

All functions are checked here, once, before they run.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parflex.argument_checks import CHECKS, OTHERS, Check
from parflex.errors import InputError, ParflexWarning, did_you_mean
from parflex.io import refuse_overwrite


@dataclass(frozen=True)
class _Argument:
    """An argument of a function: its check and its default."""

    name: str
    check: Check | None
    default: Any

    def checked(self, value: Any) -> Any:
        """Return the value after its check."""
        if value is not self.default and self.check is not None:
            self.check(value, self.name)
        return value


class _Call:
    """The arguments of a function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.name = function.__name__
        checks = {**CHECKS, **OTHERS.get(self.name, {})}
        parameters = inspect.signature(function).parameters
        self.arguments = {name: _Argument(name, checks[name], one.default) for name, one in parameters.items()}
        self.in_order = [self.arguments[n] for n, one in parameters.items() if one.kind is not one.KEYWORD_ONLY]
        self.needed = [name for name, one in parameters.items() if one.default is one.empty]
        self.writes = "out" in parameters and checks["out"] is CHECKS["out"]

    def check_names(self, given: Iterable[str], places: int) -> None:
        """Refuse keywords that the function lacks, or that repeat one of the first `places` arguments."""
        taken = {argument.name for argument in self.in_order[:places]}
        for word in given:
            if word not in self.arguments:
                hint = did_you_mean(word, self.arguments)
                raise InputError(f"{self.name} has no argument '{word}'", key=word, value=word, hint=hint)
            if word in taken:
                raise InputError(f"{self.name} is given '{word}' twice", key=word, hint="keep one of them")

    def refuse(self) -> InputError:
        """Return the error for too few or too many arguments."""
        return InputError(
            f"{self.name} is called with too few or too many arguments",
            key=self.name,
            hint=f"required: {', '.join(self.needed) or 'none'}; accepted: {', '.join(self.arguments)}",
        )

    def check_output(self, given: tuple[Any, ...], words: Mapping[str, Any]) -> None:
        """Refuse an output file that is one of the input files."""
        values = {argument.name: value for argument, value in zip(self.in_order, given, strict=False)} | {**words}
        out = values.pop("out", None)
        if out is not None:
            refuse_overwrite([out], (file for value in values.values() for file in _files(value)))


def _files(value: Any) -> Iterable[str | Path]:
    """Return the files that an argument may name: a path, the files of a robot, a list of those."""
    if isinstance(value, str | Path):
        return [value]
    if isinstance(value, list | tuple):
        return [file for one in value for file in _files(one)]
    return getattr(value, "files", ())


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with its arguments checked first."""
    call, doubts = _Call(function), getattr(function, "doubts", None)  # sentences on an answer that all must see
    arguments, in_order, needed = call.arguments, call.in_order, call.needed

    @functools.wraps(function)
    def checked_call(*given: Any, **words: Any) -> Any:
        places = len(given)
        if places > len(in_order):
            raise call.refuse()
        if words:
            call.check_names(words, places)
        if any(name not in words for name in needed[places:]):
            raise call.refuse()
        values = [argument.checked(value) for argument, value in zip(in_order, given, strict=False)]
        words = {name: arguments[name].checked(value) for name, value in words.items()}
        if call.writes:
            call.check_output(given, words)
        found = function(*values, **words)
        for sentence in () if doubts is None or words.get("ignore_limits") else doubts(found):
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
