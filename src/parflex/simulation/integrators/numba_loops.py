"""Loops that make arrays of their own, compiled by numba, with its cache in parflex's own folder."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numba
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from parflex.codegen import disk_cache


@lru_cache(maxsize=1)
def _cache_folder() -> Path | None:
    """Where compiled loops are kept; None if nowhere can be written, when they are compiled anew in each process.

    numba checks the file of a function alone, not those of the functions that it calls: the folder has a hash of
    all files of this package in its name.
    """
    place = disk_cache.folder()
    if place is None:
        return None
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.read_bytes())
    chosen = place / f"loops-{digest.hexdigest()[:16]}"
    try:
        chosen.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=chosen):
            return chosen
    except OSError:
        return None


# 1/0 is infinite, as in the models themselves
OPTIONS: dict[str, Any] = {"error_model": "numpy", "nogil": True}


def allocating(function: Callable[..., Any]) -> Any:
    """The function as machine code, from the cache if it is there; it may make arrays of its own."""
    place = _cache_folder()
    config: Any = numba.config
    if place is None:
        return numba.njit(**OPTIONS)(function)
    before = config.CACHE_DIR  # the choice is numba's own, for all: it is put back at once
    try:
        config.CACHE_DIR = str(place)
        return numba.njit(cache=True, **OPTIONS)(function)
    except RuntimeError:  # numba has nowhere to write
        return numba.njit(**OPTIONS)(function)
    finally:
        config.CACHE_DIR = before


@intrinsic
def call_lanes(typing: Any, address: Any, x: Any, y: Any, count: Any, work: Any) -> Any:
    """Call `many_in(x, y, count, work)` of a compiled program; all but the count are addresses."""
    signature = types.void(types.intp, types.intp, types.intp, types.intp, types.intp)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word, pointer = ir.IntType(64), ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [pointer, pointer, word, pointer])
        function = builder.inttoptr(arguments[0], kind.as_pointer())
        data = [builder.inttoptr(argument, pointer) for argument in (arguments[1], arguments[2], arguments[4])]
        builder.call(function, [data[0], data[1], arguments[3], data[2]])
        return context.get_dummy_value()

    return signature, generate
