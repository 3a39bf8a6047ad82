"""Maps of natural frequencies over a grid of poses: block by block, kept on disk, taken up again where they stopped."""

from __future__ import annotations

import csv
import io
import json
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from parflex.codegen.program_store import digest_of
from parflex.errors import InputError
from parflex.maps.batches import Geometry
from parflex.maps.frequencies import WORTH, FrequencySolver
from parflex.maps.many import cells_line
from parflex.maps.positions import OK, SINGULAR, UNREACHABLE, WAITING, PositionSolver
from parflex.models.elastic.linear_model import check_modes
from parflex.models.robot import Robot
from parflex.records import Record
from parflex.whole_files import check_writable, whole_file

Array = np.ndarray
BLOCK = 4096  # cells between two checks of the clock
SAVE_EVERY = 10.0  # seconds
SAMPLE = 2000  # cells spread over the grid that decide the range of tables
MOST = 20_000_000  # cells: their frequencies alone are a gigabyte
STATES = {OK: "ok", UNREACHABLE: "unreachable", SINGULAR: "singular", WAITING: "waiting"}
Axis = tuple[str, float, float, int]  # coordinate, first and last value, number of values


@dataclass(frozen=True, eq=False, repr=False)
class FrequencyMap(Record):
    """Frequencies in Hz over a grid (grid x modes; not a number where there are none) and the state of each cell.

    Attributes
    ----------
    axes : dict[str, Array]
        Values of each coordinate of the grid (m, rad).
    frequencies : Array
        Hz, grid x modes; NaN where there are none.
    status : Array
        Of each cell: 0 ok, 1 unreachable, 2 singular, -1 not computed.
    interrupted : bool
        Whether cells are left.
    computed : int
        Cells of this call.
    method : str
        "tables" or "full".
    reason : str
        Why there are no tables.
    solved_in_full : int
        Cells solved without tables.
    largest_difference : float
        Between tables and full solution at checked cells (Hz).
    """

    axes: dict[str, Array]
    frequencies: Array
    status: Array
    interrupted: bool
    computed: int  # cells of this run
    method: str  # "tables" or "full"
    reason: str  # why there are no tables
    solved_in_full: int
    largest_difference: float

    def count(self, state: int) -> int:
        """Number of cells in the `state` 0 (ok), 1 (unreachable), 2 (singular) or -1 (not computed)."""
        return int((self.status == state).sum())

    def _told(self) -> str:
        size = " x ".join(f"{len(axis)} {name}" for name, axis in self.axes.items())
        return f"{size}, {cells_line(self.frequencies, self.status == OK)}"


def frequency_map(
    robot: Robot,
    over: Sequence[Axis],
    fixed: Mapping[str, float] | None = None,
    modes: int = 6,
    lock: str | Sequence[str] = "actuators",
    out: str | Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> FrequencyMap:
    """Lowest natural frequencies over a grid of undeformed poses; with springs under tension about the equilibrium.

    Parameters
    ----------
    robot : Robot
        Robot, from `load`.
    over : Sequence[tuple]
        Axes of the grid: (coordinate, first, last, count) (m, rad).
    fixed : Mapping[str, float], default None
        Coordinates that are the same everywhere (m, rad).
    modes : int, default 6
        Number of modes.
    lock : Lock, default "actuators"
        Locked joints: 'actuators', 'none' or names.
    out : str or Path, default None
        npz file that keeps the map, with a CSV file beside it; a later call with it continues there.
    progress : callable, default None
        Called with (cells done, all cells) at intervals.

    Returns
    -------
    FrequencyMap
        Frequencies in Hz (grid x modes, NaN where there are none), and the status of each cell.

    Examples
    --------
    >>> found = parflex.frequency_map(robot, [("x", -0.1, 0.1, 20), ("y", -0.1, 0.1, 20)], modes=2)
    """
    fixed = dict(fixed or {})
    _check_axes(over, fixed)
    check_modes(modes)
    axes = {name: np.linspace(first, last, count) for name, first, last, count in over}
    shape = tuple(len(axis) for axis in axes.values())
    settings = _settings(robot, over, fixed, modes, lock)
    frequencies, status = np.full((int(np.prod(shape)), modes), np.nan), np.full(int(np.prod(shape)), WAITING, np.int8)
    path = None if out is None else Path(out)
    if path is not None:
        _check_writable(path)
        _take_up(path, settings, frequencies, status)
    run = _Run(robot, axes, fixed, modes, lock)
    before, interrupted, saved = int((status != WAITING).sum()), False, time.monotonic()
    try:
        for cells in run.blocks(np.flatnonzero(status == WAITING)):
            frequencies[cells], status[cells] = run.solve(cells)
            if progress is not None:
                progress(int((status != WAITING).sum()), len(status))
            if path is not None and time.monotonic() - saved > SAVE_EVERY:
                _save(path, settings, axes, shape, frequencies, status)
                saved = time.monotonic()
    except KeyboardInterrupt:
        interrupted = True
    if run.solver is not None:
        run.solver.say(int(((status != WAITING) & (status != UNREACHABLE)).sum()), bool((status != SINGULAR).any()))
    computed = int((status != WAITING).sum()) - before
    if path is not None and (computed or not path.exists()):
        _save(path, settings, axes, shape, frequencies, status)
        _save_csv(path.with_suffix(".csv"), axes, frequencies, status)
    return FrequencyMap(
        axes,
        frequencies.reshape(*shape, modes),
        status.reshape(shape),
        interrupted,
        computed,
        "tables" if run.solver is not None and run.solver.problem is not None else "full",
        run.solver.why_not if run.solver is not None else "",
        run.solver.solved_in_full if run.solver is not None else 0,
        run.solver.largest_difference if run.solver is not None else 0.0,
    )


class _Run:
    """Positions and frequencies of cells."""

    def __init__(
        self, robot: Robot, axes: dict[str, Array], fixed: dict[str, float], modes: int, lock: str | Sequence[str]
    ) -> None:
        self.axes, self.fixed, self.modes = axes, fixed, modes
        self.names = [*axes, *fixed]
        self.geometry, self.lock = Geometry(robot), lock
        self.positions = PositionSolver(self.geometry, self.names, self.values(np.array([0]))[0].tolist())
        self.solver: FrequencySolver | None = None

    def values(self, cells: Array) -> Array:
        """Coordinates of cells, the fixed ones last."""
        index = np.unravel_index(cells, tuple(len(axis) for axis in self.axes.values()))
        columns = [axis[k] for axis, k in zip(self.axes.values(), index, strict=True)]
        return np.stack([*columns, *(np.full(len(cells), value) for value in self.fixed.values())], axis=1)

    def blocks(self, cells: Array) -> Iterator[Array]:
        """Cells in blocks; before the first, tables are made for poses like those of the whole grid."""
        self.solver = FrequencySolver(self.geometry, self.modes, self.lock)
        if len(cells) >= WORTH:
            some = cells[np.unique(np.linspace(0, len(cells) - 1, SAMPLE).astype(int))]
            placed = self.positions(self.values(some))
            if (placed.status == OK).sum() > 0:
                self.solver.prepare(placed.q[placed.status == OK])
        for start in range(0, len(cells), BLOCK):
            yield cells[start : start + BLOCK]

    def solve(self, cells: Array) -> tuple[Array, Array]:
        """Frequencies and states of cells."""
        assert self.solver is not None
        placed = self.positions(self.values(cells))
        result, status = np.full((len(cells), self.modes), np.nan), placed.status.astype(np.int8)
        good = status == OK
        if good.any():
            result[good] = self.solver(placed.q[good])
            status[good] = np.where(np.isfinite(result[good]).all(axis=1), OK, SINGULAR)
        return result, status


# -- what is asked for -----------------------------------------------------------------------------------


def _check_axes(over: Sequence[Axis], fixed: Mapping[str, float]) -> None:
    names = [name for name, *_ in over]
    if not names:
        raise InputError("no coordinate to vary", key="over", hint="write e.g. x=-0.1:0.1:50,y=-0.1:0.1:50")
    for name, first, last, count in over:
        if names.count(name) > 1 or name in fixed:
            raise InputError(f"'{name}' is given twice", key="over", value=name, hint="keep one of them")
        if count < 1:
            raise InputError(f"'{name}' has {count} values", key="over", value=count, hint="give at least one")
        if not np.isfinite([first, last]).all():
            raise InputError(f"'{name}' has an infinite bound", key="over", value=name, hint="give finite numbers")
    cells = int(np.prod([count for *_, count in over], dtype=object))
    if cells > MOST:
        raise InputError(f"the map has {cells} cells", key="over", value=cells, hint=f"at most {MOST} are possible")


def _settings(
    robot: Robot, over: Sequence[Axis], fixed: Mapping[str, float], modes: int, lock: str | Sequence[str]
) -> dict[str, object]:
    """What the map is of; a map on disk is taken up only if this is the same."""
    return {
        "robot": robot.name,
        "description": digest_of(robot),  # of all that was loaded: a payload or modal data stand in no description
        "actuation": robot.actuation,
        "working_mode": robot.working_mode,
        "over": [[name, float(first), float(last), int(count)] for name, first, last, count in over],
        "fixed": {name: float(value) for name, value in fixed.items()},
        "modes": modes,
        "lock": lock if isinstance(lock, str) else list(lock),
    }


# -- on disk ---------------------------------------------------------------------------------------------


def _check_writable(path: Path) -> None:
    if path.suffix != ".npz" or path.is_dir():
        raise InputError(
            f"'{path.name}' is not a map file", key="out", value=str(path), hint="name a file like map.npz"
        )
    check_writable(path)


def _take_up(path: Path, settings: dict[str, object], frequencies: Array, status: Array) -> None:
    """Fill in what an earlier run left; a file that is something else is refused."""
    if not path.exists():
        return
    try:
        with np.load(path, allow_pickle=False) as stored:
            same = json.loads(str(stored["settings"])) == settings
            if same:
                frequencies[:] = stored["frequencies"].reshape(frequencies.shape)
                status[:] = stored["status"].reshape(status.shape)
    except (OSError, ValueError, KeyError, AttributeError, zipfile.BadZipFile):
        raise InputError(
            "the file is not a map", key="out", file=str(path), value=str(path), hint="give another name"
        ) from None
    if not same:
        raise InputError(
            "the file holds a map with other settings",
            key="out",
            file=str(path),
            value=str(path),
            hint="give another name, or remove the file",
        )


def _save(
    path: Path, settings: dict[str, object], axes: dict[str, Array], shape: tuple[int, ...], found: Array, status: Array
) -> None:
    content = {f"axis_{name}": axis for name, axis in axes.items()}
    content |= {"frequencies": found.reshape(*shape, -1), "status": status.reshape(shape)}
    content["settings"] = np.array(json.dumps(settings))
    with whole_file(path) as file:
        np.savez(file, **content)  # type: ignore[arg-type]


def _save_csv(path: Path, axes: dict[str, Array], found: Array, status: Array) -> None:
    shape = tuple(len(axis) for axis in axes.values())
    with whole_file(path) as file:
        head = io.StringIO()
        csv.writer(head).writerow([*axes, "state", *(f"f{k + 1}_hz" for k in range(found.shape[1]))])
        file.write(head.getvalue().encode())
        for start in range(0, len(found), BLOCK):
            cells = np.arange(start, min(start + BLOCK, len(found)))
            index = np.unravel_index(cells, shape)
            columns = [axis[k] for axis, k in zip(axes.values(), index, strict=True)]
            lines = io.StringIO()
            rows = csv.writer(lines)
            for row, cell in enumerate(cells):
                numbers = ["" if np.isnan(value) else repr(float(value)) for value in found[cell]]
                rows.writerow([*(repr(float(column[row])) for column in columns), STATES[int(status[cell])], *numbers])
            file.write(lines.getvalue().encode())
