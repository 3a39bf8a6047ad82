"""Define result records: compared by value, pickled, printed as one line.

A dataclass that holds arrays fails at these: `==` of two arrays is an array, a read-only array returns from a pickle
writable, and a robot prints as 22 000 characters. A record is a dataclass with `eq=False, repr=False` and this base.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from parflex.diagnostics import Diagnostic, read_diagnostics

LONGEST = 240  # letters of a line
FEW = 6  # entries that are shown
WORD = 40  # letters of a word that is shown
TIMES = ("seconds", "preparation_seconds", "real_time_factor")  # of computing, in summaries
READ_ONLY = "read only arrays"  # in a pickle: no name of a field
html_page: Callable[[Any], str | None] | None = None  # of a record, for notebooks; the package root sets it


def equal(first: Any, second: Any) -> bool:
    """Return whether two values are equal: arrays entry by entry (NaN equals NaN), containers by content."""
    if first is second:
        return True
    if isinstance(first, np.ndarray) or isinstance(second, np.ndarray):
        return _same_array(first, second)
    if is_dataclass(first) and not isinstance(first, Record | type) and type(first) is type(second):
        return _same_fields(first, second)
    if not isinstance(first, Record) and isinstance(first, Mapping) and isinstance(second, Mapping):
        return len(first) == len(second) and all(name in second and equal(first[name], second[name]) for name in first)
    if isinstance(first, list | tuple) and type(first) is type(second):
        return len(first) == len(second) and all(equal(a, b) for a, b in zip(first, second, strict=True))
    if isinstance(first, float) and isinstance(second, float) and first != first and second != second:
        return True  # what is not known is not known in both
    return bool(first == second)


def _same_fields(first: Any, second: Any) -> bool:
    return all(
        equal(getattr(first, field.name), getattr(second, field.name)) for field in fields(first) if field.compare
    )


def _same_array(first: Any, second: Any) -> bool:
    if not isinstance(first, np.ndarray) or not isinstance(second, np.ndarray) or first.shape != second.shape:
        return False
    if first.dtype == object or second.dtype == object:
        return all(equal(a, b) for a, b in zip(first.ravel(), second.ravel(), strict=True))
    return np.array_equal(first, second, equal_nan=first.dtype.kind in "fc" and second.dtype.kind in "fc")


def _hash_part(value: Any) -> Any:
    """Return a fast hash that is equal for equal values."""
    if isinstance(value, np.ndarray):
        return value.shape
    if isinstance(value, Mapping | Sequence | Set) and not isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, str | int | float):
        return value if value == value else "nan"
    return None


def brief(value: Any) -> str:
    """Return a short text for a value, empty for an empty value."""
    if value is None or (isinstance(value, str | Mapping | Sequence | Set) and not value):
        return ""
    if isinstance(value, str):
        return value if len(value) <= WORD else f"{value[: WORD - 3]}..."
    if isinstance(value, bool | int | np.integer | np.bool_):
        return str(value)
    if isinstance(value, float | np.floating | complex | np.complexfloating):
        return f"{value:.5g}"
    if isinstance(value, np.ndarray):
        small = value.ndim == 1 and value.dtype.kind in "fiu" and value.size <= FEW
        return f"[{', '.join(map(brief, value.tolist()))}]" if small else f"array {'x'.join(map(str, value.shape))}"
    if isinstance(value, Mapping):
        plain = len(value) <= FEW and all(isinstance(entry, str | int | float) for entry in value.values())
        return (
            ", ".join(f"{name} {brief(entry)}" for name, entry in value.items()) if plain else f"{len(value)} entries"
        )
    if isinstance(value, list | tuple | Set):
        plain = len(value) <= FEW and all(isinstance(entry, str | int | float) for entry in value)
        return f"[{', '.join(map(brief, value))}]" if plain else f"{len(value)} entries"
    name = getattr(value, "name", None)
    return f"{type(value).__name__} {name}" if isinstance(name, str) and name else type(value).__name__


def one_line(text: str, most: int = LONGEST) -> str:
    """Return a text of one line, shortened to `most` characters."""
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 3]}..."


def name_list(names: Sequence[str], most: int = FEW) -> str:
    """Return the first names, with the number of all if there are more."""
    shown = ", ".join(brief(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown}, ... ({len(names)})"


def count_of(count: int, word: str, many: str | None = None) -> str:
    """Return a count with its noun: `1 motor`, `2 motors`, `3 bodies`."""
    return f"{count} {word if count == 1 else many or word + 's'}"


def degrees_of_freedom(count: int) -> str:
    """Return `1 degree of freedom` or `3 degrees of freedom`."""
    return count_of(count, "degree of freedom", "degrees of freedom")


class Record:
    """A value: compared by its fields, pickled without derived values, printed as one short line."""

    def __eq__(self, other: object) -> bool:
        return _same_fields(self, other) if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        if not self.__dataclass_params__.frozen:  # type: ignore[attr-defined]
            raise TypeError(f"unhashable type: '{type(self).__name__}', which can change")
        compared = [field.name for field in fields(self) if field.compare]  # type: ignore[arg-type]
        return hash((type(self).__name__, *(_hash_part(getattr(self, name)) for name in compared)))

    def __getstate__(self) -> dict[str, Any]:
        kind = type(self)
        state = {k: v for k, v in self.__dict__.items() if not isinstance(getattr(kind, k, None), cached_property)}
        fixed = [k for k, value in state.items() if isinstance(value, np.ndarray) and not value.flags.writeable]
        return {**state, READ_ONLY: fixed} if fixed else state

    def __setstate__(self, state: dict[str, Any]) -> None:
        fixed = state.get(READ_ONLY, ())
        for name, value in state.items():
            if name != READ_ONLY:
                object.__setattr__(self, name, value)
            if name in fixed:
                value.setflags(write=False)

    def _told(self) -> str:
        """Return the text after the name of the class."""
        shown = [(f.name, brief(getattr(self, f.name))) for f in fields(self) if f.repr]  # type: ignore[arg-type]
        return ", ".join(f"{name} {text}" for name, text in shown if text)

    def __repr__(self) -> str:
        return f"<{one_line(f'{type(self).__name__} {self._told()}', LONGEST - 2)}>"

    def _repr_html_(self) -> str | None:
        """Return what a notebook shows."""
        return html_page(self) if html_page else None


class Answer(Record):
    """A record that a public function returns; most have a field `diagnostics` with the default `()`."""

    @property
    def diagnostics(self) -> Sequence[Diagnostic]:
        """What the user should know about the answer."""
        return ()

    @property
    def warnings(self) -> list[str]:
        """Texts of the diagnostics."""
        return [diagnostic.text for diagnostic in self.diagnostics]


class TimedRecord(Answer):
    """A record whose `summary` includes computing times, which are not compared."""

    summary: dict[str, Any]

    @property
    def diagnostics(self) -> Sequence[Diagnostic]:
        """What the user should know about the answer, as in its summary."""
        return read_diagnostics(self.summary.get("diagnostics", ()))

    @property
    def warnings(self) -> list[str]:
        """Texts of the diagnostics, as in its summary."""
        return list(self.summary.get("warnings", ()))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TimedRecord) or type(other) is not type(self):
            return NotImplemented
        names = [field.name for field in fields(self) if field.compare and field.name != "summary"]  # type: ignore[arg-type]
        mine, theirs = ({k: v for k, v in record.summary.items() if k not in TIMES} for record in (self, other))
        return equal(mine, theirs) and all(equal(getattr(self, name), getattr(other, name)) for name in names)

    __hash__ = Record.__hash__


class Unpacked(Answer):
    """A record that is also the tuple of some of its fields."""

    _unpacked: ClassVar[tuple[str, ...]] = ()

    def __iter__(self) -> Iterator[Any]:
        return iter([getattr(self, name) for name in self._unpacked])

    def __len__(self) -> int:
        return len(self._unpacked)

    def __getitem__(self, key: Any) -> Any:
        return tuple(self)[key]


class NamedMatrix(Answer, np.lib.mixins.NDArrayOperatorsMixin):
    """A record that NumPy treats as its field `matrix`."""

    matrix: np.ndarray

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.matrix, dtype=dtype) if copy else np.asarray(self.matrix, dtype=dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        plain = [item.matrix if isinstance(item, NamedMatrix) else item for item in inputs]
        return getattr(ufunc, method)(*plain, **options)

    @property
    def T(self) -> np.ndarray:
        """The transposed matrix."""
        return self.matrix.T

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""
        return self.matrix.shape

    def __len__(self) -> int:
        return len(self.matrix)

    def __getitem__(self, key: Any) -> Any:
        return self.matrix[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.matrix)
