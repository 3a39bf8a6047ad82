"""Types of the compiled loop in C: numbers, views of arrays, records of both, and their operations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

MOST_AXES = 4


@dataclass(frozen=True)
class Number:
    """A number or a truth value."""

    word: str  # "double", "int64_t" or "int"

    @property
    def c(self) -> str:
        """Its name in C."""
        return self.word


@dataclass(frozen=True)
class View:
    """An array, or a part of one."""

    letter: str  # "d" of doubles, "i" of whole numbers
    axes: int

    @property
    def c(self) -> str:
        """Its name in C."""
        return f"{self.letter}{self.axes}"

    @property
    def entry(self) -> Number:
        """Of its entries."""
        return REAL if self.letter == "d" else WHOLE


@dataclass(frozen=True)
class Fields:
    """A record, handed on by its address."""

    title: str
    held: tuple[tuple[str, Any], ...]

    @property
    def c(self) -> str:
        """Its name in C."""
        return f"{self.title} *"

    def declared(self) -> str:
        """The struct."""
        lines = "".join(f"  {kind.c} {name};\n" for name, kind in self.held)
        return f"typedef struct {{\n{lines}}} {self.title};\n"


@dataclass(frozen=True)
class Several:
    """What a function returns that returns more than one value."""

    kinds: tuple[Any, ...]

    @property
    def c(self) -> str:
        """Its name in C."""
        return "several_" + "_".join(kind.c.replace("int64_t", "long").replace(" *", "") for kind in self.kinds)

    def declared(self) -> str:
        """The struct."""
        lines = "".join(f"  {kind.c} v{k};\n" for k, kind in enumerate(self.kinds))
        return f"typedef struct {{\n{lines}}} {self.c};\n"


REAL, WHOLE, TRUTH = Number("double"), Number("int64_t"), Number("int")
ORDER = (TRUTH, WHOLE, REAL)


def joined(first: Any, other: Any) -> Any:
    """The type that holds both."""
    if first is None or other is None or first == other:
        return first or other
    if isinstance(first, Number) and isinstance(other, Number):
        return max(first, other, key=ORDER.index)
    raise TypeError(f"a name has the types {first} and {other}")


def type_of(value: Any) -> Any:
    """Of a field of a bundle."""
    if isinstance(value, np.ndarray):
        return View("d" if value.dtype.kind == "f" else "i", value.ndim)
    return REAL if isinstance(value, float) else WHOLE


def bundle_type(title: str, bundle: Any) -> Fields:
    """Of a bundle."""
    return Fields(title, tuple((name, type_of(getattr(bundle, name))) for name in bundle._names))


def helpers() -> str:
    """Views in C, with entries, rows and parts."""
    lines = ["typedef void (*program_t)(const double *, double *, int64_t);"]
    for letter, word in (("d", "double"), ("i", "int64_t")):
        for n in range(1, MOST_AXES + 1):
            name = f"{letter}{n}"
            lines.append(f"typedef struct {{ {word} *at; int64_t n[{n}], s[{n}]; }} {name};")
            indices = [f"k{a}" for a in range(n)]
            place = " + ".join(f"k{a} * v.s[{a}]" for a in range(n))
            parameters = ", ".join(f"int64_t {k}" for k in indices)
            lines.append(f"static inline {word} *{name}_at({name} v, {parameters}) {{ return v.at + {place}; }}")
            for a in range(n):
                cut = f"v.at += from * v.s[{a}]; v.n[{a}] = to - from; return v;"
                lines.append(f"static inline {name} {name}_cut{a}({name} v, int64_t from, int64_t to) {{ {cut} }}")
            if n > 1:
                sizes, steps = (", ".join(f"v.{w}[{a}]" for a in range(1, n)) for w in ("n", "s"))
                row = f"{letter}{n - 1} r = {{v.at + k * v.s[0], {{{sizes}}}, {{{steps}}}}}; return r;"
                lines.append(f"static inline {letter}{n - 1} {name}_row({name} v, int64_t k) {{ {row} }}")
    lines += [
        "static inline double max_of(double a, double b) { return b > a ? b : a; }",
        "static inline double min_of(double a, double b) { return b < a ? b : a; }",
        "static inline int64_t max_whole(int64_t a, int64_t b) { return b > a ? b : a; }",
        "static inline int64_t min_whole(int64_t a, int64_t b) { return b < a ? b : a; }",
        "static inline int64_t whole_power(int64_t a, int64_t n) { int64_t r = 1; while (n-- > 0) r *= a; return r; }",
        "static inline int64_t floor_part(int64_t a, int64_t b) {",
        "  return a / b - (a % b && (a < 0) != (b < 0));",
        "}",
    ]
    return "\n".join(lines) + "\n"
