"""Records of numbers and arrays that compiled code reads through one address.

numba hands over a tuple of arrays as some hundred numbers, one by one, in every call: to compile that takes longer than
all else of a loop. A `Bundle` writes where its arrays lie into a block of memory once; compiled functions get the
address of the block and read from it what they use, by the same names.
"""

from __future__ import annotations

import hashlib
from typing import Any, ClassVar, Self

import numpy as np
from llvmlite import ir
from numba import typeof
from numba.core import cgutils, types
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_getattr_generic,
    models,
    register_model,
    typeof_impl,
    unbox,
)
from numba.np.arrayobj import make_array, populate_array

WORD = ir.IntType(64)


class Bundle:
    """The base of such records: fields are annotations, some with defaults; they do not change.

    Arrays must be contiguous: compiled code takes the strides from the shape.
    """

    _names: ClassVar[tuple[str, ...]]

    def __init_subclass__(cls) -> None:
        cls._names = tuple(name for name in cls.__annotations__ if not name.startswith("_"))

    def __init__(self, *values: Any, **named: Any) -> None:
        defaults = {name: vars(type(self))[name] for name in self._names if name in vars(type(self))}
        given = defaults | dict(zip(self._names, values, strict=False)) | named
        if len(values) > len(self._names) or given.keys() != set(self._names):
            raise TypeError(f"{type(self).__name__} takes {', '.join(self._names)}")
        for name in self._names:
            setattr(self, name, given[name])
        self._kind = BundleType(type(self).__name__, tuple((name, typeof(given[name])) for name in self._names))
        self._block = np.concatenate([_words(given[name]) for name in self._names])

    def _replace(self, **changed: Any) -> Self:
        """The same record with other values of some fields."""
        return type(self)(**({name: getattr(self, name) for name in self._names} | changed))

    @property
    def _address(self) -> int:
        """Where the block lies."""
        return int(self._block.ctypes.data)


def _words(value: Any) -> np.ndarray:
    """A value in the block: a number as it is, an array as its address and its shape."""
    if isinstance(value, np.ndarray):
        if not value.flags.c_contiguous:
            raise TypeError("an array of a bundle is not contiguous")
        return np.array([value.ctypes.data, *value.shape], dtype=np.int64)
    return np.array([value], dtype=float).view(np.int64) if isinstance(value, float) else np.array([value], np.int64)


class BundleType(types.Type):
    """What numba knows of a bundle: the types of its fields, and where in the block each one stands."""

    def __init__(self, title: str, held: tuple[tuple[str, Any], ...]) -> None:
        self.held, self.place, start = dict(held), {}, 0
        for name, kind in held:
            self.place[name] = start
            start += 1 + (kind.ndim if isinstance(kind, types.Array) else 0)
        digest = hashlib.sha256(repr(held).encode()).hexdigest()[:12]  # short, since it becomes part of all names
        super().__init__(name=f"{title}_{digest}")


@typeof_impl.register(Bundle)
def _type_of(value: Bundle, _: Any) -> BundleType:
    return value._kind


@register_model(BundleType)
class _BundleModel(models.PrimitiveModel):
    """One address."""

    def __init__(self, manager: Any, kind: BundleType) -> None:
        super().__init__(manager, kind, WORD)


@unbox(BundleType)
def _unboxed(_: BundleType, value: Any, c: Any) -> NativeValue:
    found = c.pyapi.object_getattr_string(value, "_address")
    address = c.pyapi.long_as_longlong(found)
    c.pyapi.decref(found)
    return NativeValue(address, is_error=cgutils.is_not_null(c.builder, c.pyapi.err_occurred()))


@infer_getattr
class _BundleFields(AttributeTemplate):
    """Fields by their names."""

    key = BundleType

    def generic_resolve(self, kind: BundleType, name: str) -> Any:  # type: ignore[override]
        return kind.held.get(name)


@lower_getattr_generic(BundleType)
def _read(context: Any, builder: Any, kind: BundleType, address: Any, name: str) -> Any:
    """Load what the field needs; nothing changes the block while compiled code runs, so that loads leave loops."""
    held, start = kind.held[name], kind.place[name]

    def word(index: int, as_type: Any = WORD) -> Any:
        place = builder.add(address, ir.Constant(WORD, 8 * (start + index)))
        loaded = builder.load(builder.inttoptr(place, as_type.as_pointer()))
        loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
        return loaded

    if not isinstance(held, types.Array):
        return word(0, context.get_value_type(held))
    array = make_array(held)(context, builder)
    shape = [word(1 + k) for k in range(held.ndim)]
    size = context.get_abi_sizeof(context.get_data_type(held.dtype))
    strides = [ir.Constant(WORD, size)]
    for extent in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], extent))
    data = builder.inttoptr(word(0), array.data.type)
    populate_array(array, data=data, shape=shape, strides=strides, itemsize=ir.Constant(WORD, size), meminfo=None)
    return array._getvalue()
