"""Every way to run a program, as functions of a model and a batch of inputs."""

import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from parflex import Model
from parflex.codegen.source_files import identifier

Array = np.ndarray
Arrays = dict[str, Array]
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]


def tool(name: str) -> str:
    """Path of a program of the machine; where it is missing the test is skipped, but not where all are expected."""
    found = shutil.which(name)
    if found is None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"{name} is missing")
        pytest.skip(f"{name} is missing")
    return found


def flat(model: Model, arrays: Arrays) -> Array:
    """Rows of inputs, parameters behind them."""
    count = len(next(iter(arrays.values())))
    parameters = [model.parameters[name] for name in model.program.parameters]
    parts = [arrays[name].reshape(count, -1) for name in model.inputs]
    return np.concatenate([*parts, np.tile(parameters, (count, 1))], axis=1)


def shaped(model: Model, rows: Array) -> Arrays:
    """Outputs by name."""
    result, start = {}, 0
    for name, shape in model.outputs.items():
        size = int(np.prod(shape))
        result[name] = np.asarray(rows[:, start : start + size], dtype=float).reshape(len(rows), *shape)
        start += size
    return result


def function_of_file(model: Model, target: str) -> Callable:
    """The function in the module that is written for a target."""
    ((name, text),) = model.files(target).items()
    space: dict = {}
    exec(compile(text, name, "exec"), space)
    assert space["INPUTS"] == list(model.program.inputs)
    assert space["OUTPUTS"] == [label for label, _ in model.program.outputs]
    return space[name.removesuffix(".py")]


def llvm_batch(model: Model, arrays: Arrays) -> Arrays:
    return model(**arrays)


def llvm_scalar(model: Model, arrays: Arrays) -> Arrays:
    count = len(next(iter(arrays.values())))
    one_by_one = [model(**{name: value[k] for name, value in arrays.items()}) for k in range(count)]
    return {name: np.array([one[name] for one in one_by_one]) for name in model.outputs}


def numpy_run(model: Model, arrays: Arrays) -> Arrays:
    return model.evaluate("numpy", **arrays)


def _columns(model: Model, arrays: Arrays, target: str) -> Arrays:
    rows = flat(model, arrays)
    columns = function_of_file(model, target)(list(rows.T))
    return shaped(model, np.array([np.broadcast_to(np.asarray(column), len(rows)) for column in columns]).T)


def numpy_file(model: Model, arrays: Arrays) -> Arrays:
    return _columns(model, arrays, "numpy")


@contextmanager
def jax_in_doubles() -> Iterator[None]:
    """By the flag, which every jax has: its context manager was first in `jax.experimental` and is now in `jax`."""
    import jax

    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", before)


def jax_file(model: Model, arrays: Arrays) -> Arrays:
    with jax_in_doubles():
        return _columns(model, arrays, "jax")


def casadi_function(model: Model, arrays: Arrays) -> Arrays:
    function = model.casadi_function()
    count = len(next(iter(arrays.values())))
    results = function.map(count)(*(arrays[name].reshape(count, -1).T for name in model.inputs))
    results = results if isinstance(results, (tuple, list)) else (results,)
    return shaped(model, np.concatenate([np.array(result) for result in results]).T)


def casadi_file(model: Model, arrays: Arrays) -> Arrays:
    function = function_of_file(model, "casadi")
    return shaped(model, np.array([[float(value) for value in function(list(row))] for row in flat(model, arrays)]))


def write_c(model: Model, folder: Path, float32: bool = False) -> str:
    """Write the C files; returns the name of the function."""
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in model.files("c", float32=float32).items():
        (folder / file).write_text(text, encoding="utf-8")
    return identifier(model.name)


def compile_c(*arguments: str | Path, compiler: str = "gcc") -> None:
    """Compile, and show what the compiler says if it does not like it."""
    done = subprocess.run([tool(compiler), *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]


def c_library(model: Model, arrays: Arrays, folder: Path, float32: bool = False, optimise: str = "-O0") -> Arrays:
    """Through a shared library made by gcc."""
    name = write_c(model, folder, float32)
    compile_c(*STRICT, optimise, "-fPIC", "-shared", "-o", folder / f"{name}.so", folder / f"{name}.c", "-lm")
    library = ctypes.CDLL(str(folder / f"{name}.so"))
    real = np.float32 if float32 else np.float64
    rows = np.ascontiguousarray(flat(model, arrays), dtype=real)
    variables = len(model.program.variables)
    y = np.zeros((len(rows), len(model.program.outputs)), dtype=real)

    def pointer(array: Array) -> ctypes.c_void_p:
        return ctypes.c_void_p(array.ctypes.data)

    setup = []
    if model.program.parameters:
        s = np.zeros(len(model.program.split()[0].outputs) + 1, dtype=real)
        library[f"{name}_setup"](pointer(np.ascontiguousarray(rows[0, variables:])), pointer(s))
        setup = [pointer(s)]
    for row, result in zip(rows, y, strict=True):
        library[name](pointer(np.ascontiguousarray(row[:variables])), *setup, pointer(result))
    return shaped(model, y)


STATES = 45  # no whole number of lanes; the float path takes milliseconds for each
EMITTERS = {  # and the number of states: all for those that take them side by side
    "llvm batch": (llvm_batch, STATES),
    "llvm scalar": (llvm_scalar, 20),
    "numpy run": (numpy_run, STATES),
    "numpy file": (numpy_file, STATES),
    "jax file": (jax_file, 20),
    "casadi function": (casadi_function, 20),
}
SHORT = 1_500  # instructions up to which that is so
