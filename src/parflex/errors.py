"""Define errors that name file, key and value, and a hint how to fix them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

from parflex.diagnostics import Diagnostic

CLOSE = 0.65  # likeness of a misspelt word: 'rk5' is for 'rk4', but '12' not for '21', nor 'nope' for 'fore'


class ParflexError(Exception):
    """Base class of all errors, with the offending file, key and value and a hint on how to fix them."""

    kind = "error"

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        key: str | None = None,
        value: Any = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.file = file
        self.key = key
        self.value = value
        self.hint = hint

    def __str__(self) -> str:
        where = ": ".join(part for part in (self.file, self.key) if part)
        text = f"{where}: {self.message}" if where else self.message
        return f"{text.rstrip('.')}; {self.hint}" if self.hint else text

    def as_dict(self) -> dict[str, Any]:
        """Return the `error` object of the command line's JSON."""
        value = self.value if isinstance(self.value, (str, int, float, bool, type(None))) else repr(self.value)
        return {
            "kind": self.kind,
            "message": self.message,
            "file": self.file,
            "key": self.key,
            "value": value,
            "hint": self.hint,
        }


class RobotFileError(ParflexError):
    """The robot file, or a value set on top of it, cannot be used."""

    kind = "robot-file"


class InputError(ParflexError):
    """A requested pose, motion, effort or option is invalid for this robot."""

    kind = "input"


class UnreachableError(ParflexError):
    """No configuration of the robot closes its loops at the requested pose."""

    kind = "unreachable"


class SingularError(ParflexError):
    """The requested model does not exist at this pose."""

    kind = "singular"


class ActuationError(ParflexError):
    """The requested model is not defined for this actuation: motors are missing."""

    kind = "actuation"


class ParflexWarning(UserWarning):
    """A `diagnostic` of an answer that is an array; functions that return objects put it in their `diagnostics`."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic)
        self.diagnostic = diagnostic


def nearest(word: str, words: Iterable[str]) -> str | None:
    """Return the known word nearest to a misspelt word, or None."""
    known = list(words)
    small = {name: name.lower() for name in known}
    same = [name for name in known if small[name] == word.lower()]
    begun = [name for name in known if len(word) > 1 and small[name].startswith(word.lower())]
    close = difflib.get_close_matches(word.lower(), list(small.values()), n=1, cutoff=CLOSE)
    matches = same or begun or [name for name in known if close and small[name] == close[0]]
    return matches[0] if matches else None


def did_you_mean(word: str, words: Iterable[str]) -> str:
    """Return a hint for a misspelt word: the nearest known word, else all known words."""
    known = sorted(words)
    match = nearest(word, known)
    if match:
        return f"did you mean '{match}'?"
    return "choose from " + ", ".join(f"'{name}'" for name in known[:40]) if known else "none are defined"
