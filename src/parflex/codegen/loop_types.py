"""Types of compiled loops: numbers, arrays and named tuples of them."""

from __future__ import annotations

import ast
import hashlib
from dataclasses import dataclass, field
from struct import pack, unpack
from typing import Any, ClassVar, Self

import numpy as np

Array = np.ndarray
REAL, WHOLE, FLAG = "double", "i64", "i1"
ZERO_KIND = "0"  # of a field of a bundle: a whole number that is zero, so that what it would ask for is not compiled
Kind = Any  # REAL, WHOLE, FLAG, an ArrayKind, a BundleKind, or a tuple of kinds


@dataclass(frozen=True)
class ArrayKind:
    """An array of real or whole numbers with so many indices."""

    element: str
    indices: int


@dataclass(frozen=True)
class RecordKind:
    """Fields of a bundle: their kinds, and where in the block each one stands."""

    title: str
    held: tuple[tuple[str, Any], ...]
    found: dict[str, tuple[int, Any]] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        layout, start = {}, 0
        for name, kind in self.held:
            layout[name] = (start, kind)
            start += 1 + (kind.indices if isinstance(kind, ArrayKind) else 0)
        object.__setattr__(self, "found", layout)


_ARRAYS = {(letter, n): ArrayKind(kind, n) for letter, kind in (("f", REAL), ("i", WHOLE)) for n in range(1, 5)}


class CompiledRecord:
    """The base of records that compiled code reads: fields are annotations, some with defaults; they do not change.

    Where its arrays lie is written into a block of memory once; compiled functions get the address of the block.
    Arrays must be contiguous: compiled code takes the strides from the shape.
    """

    _names: ClassVar[tuple[str, ...]]
    _switches: ClassVar[tuple[str, ...]] = ()  # whole numbers: where one is zero, code is compiled for that alone

    def __init_subclass__(cls) -> None:
        cls._names = tuple(name for name in cls.__annotations__ if not name.startswith("_"))

    def __init__(self, *values: Any, **named: Any) -> None:
        defaults = {name: vars(type(self))[name] for name in self._names if name in vars(type(self))}
        field_values = defaults | dict(zip(self._names, values, strict=False)) | named
        if len(values) > len(self._names) or field_values.keys() != set(self._names):
            raise TypeError(f"{type(self).__name__} takes {', '.join(self._names)}")
        for name in self._names:
            setattr(self, name, field_values[name])
        self._kind = RecordKind(type(self).__name__, tuple((name, self._kind_of(name)) for name in self._names))
        self._block = np.array([word for name in self._names for word in _words(field_values[name])], dtype=np.int64)

    def _kind_of(self, name: str) -> Kind:
        value = getattr(self, name)
        return ZERO_KIND if name in self._switches and value == 0 else kind_of(value)

    def _replace(self, **changed: Any) -> Self:
        """The same record with other values of some fields."""
        return type(self)(**({name: getattr(self, name) for name in self._names} | changed))

    @property
    def _address(self) -> int:
        """Where the block lies."""
        return int(self._block.ctypes.data)


def kind_of(value: Any) -> Kind:
    """The kind of a value of Python."""
    if isinstance(value, np.ndarray):
        kind = _ARRAYS.get((value.dtype.kind, value.ndim))
        if kind is None or value.dtype.itemsize != 8:
            raise TypeError(f"compiled loops take no array of {value.ndim} indices and type {value.dtype}")
        return kind
    if isinstance(value, CompiledRecord):
        return value._kind
    if isinstance(value, (bool, np.bool_)):
        return FLAG
    if isinstance(value, (int, np.integer)):
        return WHOLE
    if isinstance(value, (float, np.floating)):
        return REAL
    raise TypeError(f"compiled loops take no {type(value).__name__}")


def signature(kinds: tuple[Kind, ...]) -> str:
    """A hash of kinds, equal in every process."""
    return hashlib.sha256(repr(kinds).encode()).hexdigest()[:16]


def _words(value: Any) -> tuple[int, ...]:
    """A value in the block: a number as it is, an array as its address and its shape."""
    if isinstance(value, np.ndarray):
        if not value.flags.c_contiguous:
            raise TypeError("an array of a bundle is not contiguous")
        return (value.ctypes.data, *value.shape)
    return unpack("<q", pack("<d", value)) if isinstance(value, float) else (int(value),)


class UnsupportedError(TypeError):
    """A loop has something that is not compiled."""

    def __init__(self, why: str, node: ast.AST) -> None:
        super().__init__(f"{why} (line {getattr(node, 'lineno', '?')}: {ast.unparse(node)[:80]})")
