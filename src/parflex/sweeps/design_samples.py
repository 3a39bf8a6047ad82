"""Designs of a sweep: all of a grid, samples that fill the space between bounds, or the lines of a file."""

from __future__ import annotations

import csv
import io
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np

from parflex.design.problem_file import VariableTable
from parflex.errors import InputError
from parflex.io import read_npz
from parflex.sweeps.sweep_file import MOST, SweepFile

Array = np.ndarray


def designs_of(sweep: SweepFile, folder: Path) -> dict[str, Array]:
    """Values of each variable, one for each design, in the same order whenever they are asked for."""
    kind, samples = sweep.samples.kind, sweep.samples
    if kind == "list":
        assert samples.file is not None
        return _listed(sweep, folder / samples.file)
    if kind == "grid":
        return _grid(sweep)
    from scipy.stats import qmc

    engine = qmc.LatinHypercube if kind == "latin-hypercube" else qmc.Sobol
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of counts of Sobol points that are no powers of two
        unit = engine(len(sweep.variables), seed=samples.seed).random(samples.count)
    return {key: _spread(unit[:, k], one) for k, (key, one) in enumerate(sweep.variables.items())}


def _spread(unit: Array, variable: VariableTable) -> Array:
    """Values of a variable for numbers from 0 to 1."""
    if variable.choices:
        choices = np.array(variable.choices)
        return choices[np.minimum((unit * len(choices)).astype(int), len(choices) - 1)]
    low, high = variable.bounds
    return low + (high - low) * unit


def _grid(sweep: SweepFile) -> dict[str, Array]:
    counts = sweep.samples.count
    axes = []
    for key, one in sweep.variables.items():
        count = counts.get(key) if isinstance(counts, dict) else counts
        if one.choices:
            axes.append(np.array(one.choices))
        elif count is None:
            raise InputError(
                f"'{key}' has no number of values", key="samples", value=key, hint="give 'count' for each variable"
            )
        else:
            axes.append(np.linspace(*one.bounds, count) if count > 1 else np.array([np.mean(one.bounds)]))
    designs = int(np.prod([len(axis) for axis in axes], dtype=object))
    if designs > MOST:
        raise InputError(f"the grid has {designs} designs", key="samples", value=designs, hint=f"up to {MOST}")
    mesh = np.meshgrid(*axes, indexing="ij")
    return {key: values.ravel() for key, values in zip(sweep.variables, mesh, strict=True)}


def _listed(sweep: SweepFile, path: Path) -> dict[str, Array]:
    """Columns of a file, named by the keys; where variables are given, these and no others."""
    try:
        columns = _read_npz(path) if path.suffix == ".npz" else _read_csv(path)
    except (OSError, ValueError, KeyError, TypeError, UnicodeError, csv.Error) as error:
        said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(
            f"the list of designs cannot be read ({said})", file=str(path), key="samples.file", value=str(path),
            hint="give a CSV file with keys of the robot file in its first line, or an npz file with one array each",
        ) from None  # fmt: skip
    keys = list(sweep.variables) or list(columns)
    for key in keys:
        if key not in columns:
            raise InputError(
                f"the list has no column '{key}'", file=str(path), key="samples.file", value=key, hint="add it"
            )
    found = {key: columns[key] for key in keys}
    if not found or any(len(one) != len(other) for one, other in pairwise(found.values())) or not len(found[keys[0]]):
        raise InputError("the list has no designs", file=str(path), key="samples.file", value=str(path), hint="add one")
    return found


def beyond_bounds(sweep: SweepFile, designs: dict[str, Array]) -> list[str]:
    """A sentence for each variable with listed values that its bounds or choices leave out: they are computed."""
    found = []
    for key, one in sweep.variables.items() if sweep.samples.kind == "list" else ():
        values, (low, high) = designs[key], one.bounds
        outside = ~np.isin(values, one.choices) if one.choices else (values < low) | (values > high)
        outside &= np.isfinite(values)
        if outside.any():
            limits = "its choices" if one.choices else f"its bounds {low:g} and {high:g}"
            first = int(np.argmax(outside))
            found.append(
                f"{int(outside.sum())} of {len(values)} listed designs have a '{key}' beyond {limits}, the first "
                f"{values[first]:g} in line {first + 1} of the designs; they are computed as they stand"
            )
    return found


def _read_npz(path: Path) -> dict[str, Array]:
    columns = read_npz(path)
    return {key: np.asarray(values, dtype=float).ravel() for key, values in columns.items() if key not in _OTHERS}


_OTHERS = ("status", "reason", "settings")  # of a table of an earlier sweep


def _read_csv(path: Path) -> dict[str, Array]:
    head, *lines = [row for row in csv.reader(io.StringIO(Path(path).read_text(encoding="utf-8-sig"))) if row]
    names = [word.strip() for word in head]
    rows = np.array([[float(word) if word.strip() else np.nan for word in line] for line in lines], dtype=float)
    if len(lines) and rows.shape[1] != len(names):
        raise ValueError(f"lines have {rows.shape[1]} numbers for {len(names)} names")
    return {name: rows[:, k] if len(lines) else np.zeros(0) for k, name in enumerate(names)}
