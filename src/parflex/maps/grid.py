"""Maps over a grid of poses: `frequency_map(...)`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from parflex import jobs
from parflex.errors import InputError, ParflexError
from parflex.forces.forces import Wrench
from parflex.maps.api import cells_line, warn_of_few_elements, warn_of_first_order
from parflex.maps.batch import BatchResult, chunks_of, number_of_threads
from parflex.maps.closed_rows import OK, SINGULAR, UNREACHABLE
from parflex.maps.files import MapStore, check_map_file, map_settings
from parflex.maps.frequency_rows import FrequencyRows
from parflex.maps.positions import WAITING
from parflex.maps.response_rows import ResponseRows
from parflex.maps.responses import ResponseName, check_loads, read_responses
from parflex.records import Answer
from parflex.robot.beam_nodes import with_nodes_at
from parflex.robot.coordinate_names import read_columns
from parflex.robot.robot import Robot
from parflex.statics.linear_model import About
from parflex.statics.load_case import LoadCase, read_load_case
from parflex.statics.loads import has_force_elements, has_springs
from parflex.statics.mesh_error import warn_beyond_band
from parflex.statics.modes import default_number_of_modes

Array = np.ndarray

MOST = 20_000_000  # cells: their frequencies alone are a gigabyte

Axis = tuple[str, float, float, int]  # coordinate, first and last value, number of values


@dataclass(frozen=True, eq=False, repr=False)
class FrequencyMap(Answer):
    """Frequencies in Hz over a grid (grid x modes; not a number where there are none) and the state of each cell.

    Attributes
    ----------
    axes : dict[str, Array]
        Values of each coordinate of the grid (m, rad).
    frequencies : Array
        Hz, grid x modes; NaN where there are none. Of rigid robots a map of responses has no modes.
    status : Array
        Of each cell: 0 ok, 1 unreachable, 2 singular, 4 outside the limits of a joint, -1 not computed.
    interrupted : bool
        Whether cells are left.
    computed : int
        Cells of this call.
    method : str
        "steps" or "full".
    reason : str
        Why cells are solved one by one.
    solved_in_full : int
        Cells solved one by one where others are solved together.
    largest_difference : float
        Between steps and full solution at checked cells (Hz).
    responses : dict[str, Array]
        Responses by name over the grid, where some were asked for.
    units : dict[str, str]
        Of each response.
    at : dict[str, Array]
        Where the lowest frequency was found along coordinates that are no axes any more, from `lowest_over` (m, rad).
    why : tuple[Array, list[str]]
        Of each cell the number of its reason, and the reasons; `reason_at` puts them together.
    """

    axes: dict[str, Array]
    frequencies: Array
    status: Array
    interrupted: bool
    computed: int  # cells of this run
    method: str  # "steps" or "full"
    reason: str  # why cells are solved one by one
    solved_in_full: int
    largest_difference: float
    responses: dict[str, Array] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)
    at: dict[str, Array] = field(default_factory=dict)
    why: tuple[Array, list[str]] = field(default_factory=lambda: (np.zeros(0, np.uint16), [""]), repr=False)

    def count(self, state: int) -> int:
        """Number of cells in a `state`, one of those of `status`."""
        return int((self.status == state).sum())

    def reason_at(self, *cell: int) -> str:
        """Why the cell with the numbers `cell` along the axes has no frequencies; empty where it has."""
        numbers, texts = self.why
        return texts[int(numbers.reshape(self.status.shape)[cell])] if numbers.size == self.status.size else ""

    def lowest_over(self, names: Sequence[str]) -> FrequencyMap:
        """The map without the axes `names`, such as all orientations.

        Each mode has its lowest value along them; `at` says where the first mode has it. A cell is reached where any
        of its poses is.
        """
        for name in names:
            if name not in self.axes:
                known = ", ".join(self.axes)
                raise InputError(
                    f"'{name}' is not an axis of the map", key="lowest-over", value=name, hint=f"name {known}"
                )
        if not self.frequencies.shape[-1]:
            hint = "leave it out"
            raise InputError("the map has no frequencies", key="lowest-over", value=str(list(names)), hint=hint)
        remaining = [k for k, name in enumerate(self.axes) if name not in names]
        removed = [k for k, name in enumerate(self.axes) if name in names]
        if not removed or not remaining:
            raise InputError(
                "an axis must remain and one must go", key="lowest-over", value=str(list(names)), hint="name fewer axes"
            )
        shape = [self.status.shape[k] for k in remaining]
        status = self.status.transpose(*remaining, *removed).reshape(*shape, -1)
        frequencies = self.frequencies.transpose(*remaining, *removed, -1).reshape(*shape, status.shape[-1], -1)
        filled = np.where(np.isnan(frequencies), np.inf, frequencies)
        lowest = filled.min(axis=-2)
        place = np.unravel_index(filled[..., 0].argmin(axis=-1), [self.status.shape[k] for k in removed])
        known = np.isfinite(lowest[..., 0])
        axes = list(self.axes)
        at = {
            axes[k]: np.where(known, self.axes[axes[k]][index], np.nan) for k, index in zip(removed, place, strict=True)
        }
        best = np.where(
            (status == OK).any(axis=-1), OK, np.where((status == WAITING).any(axis=-1), WAITING, UNREACHABLE)
        )
        return replace(
            self,
            axes={axes[k]: self.axes[axes[k]] for k in remaining},
            frequencies=np.where(np.isfinite(lowest), lowest, np.nan),
            status=best.astype(np.int8),
            responses={},
            units={},
            at=at,
            why=(np.zeros(0, np.uint16), [""]),
        )

    def _told(self) -> str:
        size = " x ".join(f"{len(axis)} {name}" for name, axis in self.axes.items())
        return f"{size}, {cells_line(self.frequencies, self.status == OK)}"


def frequency_map(
    robot: Robot,
    over: Sequence[Axis],
    fixed: Mapping[str, float] | None = None,
    modes: int | None = None,
    lock: str | Sequence[str] = "actuators",
    out: str | Path | None = None,
    progress: Callable[[int, int], None] | None = None,
    responses: Sequence[str] = (),
    about: About | None = None,
    wrench: Wrench | None = None,
    threads: int | None = None,
    csv: bool = True,
    cluster: str | None = None,
    load_case: LoadCase | None = None,
    ignore_limits: bool = False,
) -> FrequencyMap:
    """Lowest natural frequencies, and other responses, over a grid of poses: undeformed, or about their equilibria.

    Parameters
    ----------
    robot : Robot
        Robot, from `load`.
    over : Sequence[tuple]
        Axes of the grid: (coordinate, first, last, count) (m, rad).
    fixed : Mapping[str, float], default None
        Coordinates that are the same everywhere (m, rad).
    modes : int, default None
        Number of modes; None: six, or all if there are fewer at home.
    lock : Lock, default "actuators"
        Locked joints: 'actuators', 'none' or names.
    out : str or Path, default None
        npz file that keeps the map, with a CSV file beside it; a later call with it continues there.
    progress : callable, default None
        Called with (cells done, all cells) at intervals.
    responses : Sequence[str], default ()
        What is asked beside frequencies, as in `many_responses`: 'stiffness:FRAME.x', 'deflection:FRAME', ...
    about : {'undeformed', 'equilibrium'}, default None
        State of linearisation; None is the equilibrium under a wrench or efforts or where springs are under tension,
        else the undeformed pose.
    wrench : Wrench, default None
        Wrench on a frame in world axes, {frame: [fx, fy, fz, mx, my, mz]}; planar [fx, fy, mz] (N, N m).
    threads : int, default None
        Number of threads; None: one for each core.
    csv : bool, default True
        Write the CSV file beside `out`.
    cluster : str, default None
        Address of a Dask scheduler whose workers compute; None: this machine.
    load_case : LoadCase, default None
        The same values in one object.
    ignore_limits : bool, default False
        Do not check the limits of the robot file.

    Returns
    -------
    FrequencyMap
        Frequencies in Hz (grid x modes, NaN where there are none), and the status of each cell.

    Examples
    --------
    >>> found = parflex.frequency_map(robot, [("x", -0.1, 0.1, 20), ("y", -0.1, 0.1, 20)], modes=2)
    """
    fixed = dict(fixed or {})
    _check_axes(robot, over, fixed)
    conditions = read_load_case(load_case, lock=lock, about=about, wrench=wrench)
    vibrates = robot.tree.elastic or has_springs(robot.tree) or has_force_elements(robot.tree)
    if vibrates or not responses or modes is not None:
        modes = default_number_of_modes(robot, modes, conditions.lock, conditions.about)
    modes = modes or 0  # rigid robots have responses alone
    robot = with_nodes_at(robot, conditions.deforming_frames)
    requested = read_responses(robot, responses) if responses else ()
    check_loads(conditions, requested)
    axes = {name: np.linspace(first, last, count) for name, first, last, count in over}
    settings = map_settings(robot, over, fixed, modes, conditions, requested, ignore_limits)
    store = MapStore(axes, modes, requested)
    path = None if out is None else Path(out)
    if path is not None:
        check_map_file(path, csv)
        store.take_up(path, settings)
    arguments = (robot, axes, fixed, modes, conditions, requested, ignore_limits)
    rows = MapRows(*arguments)
    results = MapResults(store, path, settings, rows.plain)
    interrupted = _fill(results, rows, path, progress, threads, cluster, arguments)
    computed = int((store.status != WAITING).sum()) - results.before
    if rows.plain is not None:
        rows.plain.say(store.status)
    if BatchResult({}, store.status, store.reasons).unstable.any():
        BatchResult({}, store.status, [store.reasons[k] for k in store.reason.ravel().tolist()]).warn(2)
    warn_of_first_order(robot, requested, store.values, conditions, results.rests, 2)
    warn_beyond_band(robot, store.values["frequencies"])

    def cell(row: int) -> dict[str, float]:
        at = np.unravel_index(row, store.shape)
        return {name: float(axis[k]) for (name, axis), k in zip(axes.items(), at, strict=True)} | fixed

    warn_of_few_elements(robot, store.values["frequencies"], cell, conditions, modes, 2)
    if path is not None and csv and (computed or not path.with_suffix(".csv").exists()):
        store.save_csv(path.with_suffix(".csv"))
    plain = rows.plain
    return FrequencyMap(
        axes,
        store.values["frequencies"].reshape(*store.shape, modes),
        store.status.reshape(store.shape),
        interrupted,
        computed,
        "steps" if rows.way == "fast" else "full",
        rows.why,
        results.fallbacks,
        plain.largest_difference if plain is not None else 0.0,
        {response.name: store.values[response.name].reshape(*store.shape, *response.shape) for response in requested},
        {response.name: response.unit for response in requested},
        why=(store.reason.reshape(store.shape), store.reasons),
    )


def _fill(
    results: MapResults,
    rows: MapRows,
    path: Path | None,
    progress: Callable[[int, int], None] | None,
    threads: int | None,
    cluster: str | None,
    arguments: tuple[Any, ...],
) -> bool:
    """Compute what is left and keep each chunk; whether it was interrupted."""
    status = results.store.status
    task = jobs.ChunkTask(map_solver, arguments, results.name, ready=rows.solve)
    results.before = int((status != WAITING).sum())
    left = [chunk for chunk in chunks_of(len(status), rows.chunk) if (status[chunk] == WAITING).any()]

    def workers(chunks: int) -> jobs.Workers:
        return jobs.thread_workers(rows.threads(threads, chunks)) if cluster is None else jobs.dask_workers(cluster)

    def told() -> None:
        if progress is not None:
            progress(int((status != WAITING).sum()), len(status))

    interrupted = jobs.run_job(results, left, task, workers, path, told, ordered=True)
    if results.refused is not None and not interrupted and not (status == OK).any():
        raise results.refused
    return interrupted


def map_solver(arguments: tuple[Any, ...]) -> Callable[[slice], BatchResult]:
    """In a worker that is no thread: its own rows."""
    return MapRows(*arguments).solve


# -- what is asked for -----------------------------------------------------------------------------------
def _check_axes(robot: Robot, over: Sequence[Axis], fixed: Mapping[str, float]) -> None:
    names = [name for name, *_ in over]
    if not names:
        raise InputError("no coordinate to vary", key="over", hint="write e.g. x=-0.1:0.1:50,y=-0.1:0.1:50")
    read_columns(robot.tree, [*names, *fixed], "over")
    cells = int(np.prod([count for *_, count in over], dtype=object))
    if cells > MOST:
        raise InputError(f"the map has {cells} cells", key="over", value=cells, hint=f"at most {MOST} are possible")


class MapRows:
    """Frequencies and responses of the cells of a grid."""

    def __init__(
        self,
        robot: Robot,
        axes: Mapping[str, Array],
        fixed: Mapping[str, float],
        modes: int,
        conditions: LoadCase,
        responses: Sequence[ResponseName],
        ignore_limits: bool = False,
    ) -> None:
        self.axes, self.fixed, self.modes = dict(axes), dict(fixed), modes
        self.count = int(np.prod([len(axis) for axis in axes.values()]))
        self.plain: FrequencyRows | None = None
        self.others: ResponseRows | None = None
        names, self.units = read_columns(robot.tree, [*axes, *fixed], "over")
        requested = list(responses)
        if conditions.at_equilibrium:
            frequency_responses = read_responses(robot, [f"frequency:{k + 1}" for k in range(modes)])
            requested = [
                *frequency_responses,
                *(
                    response
                    for response in responses
                    if response.name not in {other.name for other in frequency_responses}
                ),
            ]
        elif modes:
            plain = (modes, conditions.lock, conditions.about, False, ignore_limits)
            self.plain = FrequencyRows(robot, names, self.count, self.values, *plain)
        if requested:
            cells = self.values(np.arange(self.count))
            self.others = ResponseRows(robot, names, cells, requested, conditions, None, ignore_limits)
            self.others.prepare()
        self.asked = tuple(responses)

    @property
    def way(self) -> str:
        """How cells are solved."""
        rows = self.plain or self.others
        return "one by one" if rows is None else rows.way

    @property
    def why(self) -> str:
        """Why cells are not solved by steps, or their positions not found together; empty where they are."""
        return self.plain.why if self.plain is not None else "" if self.others is None else self.others.why

    @property
    def chunk(self) -> int:
        """Cells of a chunk."""
        return min(rows.chunk for rows in (self.plain, self.others) if rows is not None)

    def values(self, cells: Array) -> Array:
        """Coordinates of cells (m, rad), the fixed ones last."""
        index = np.unravel_index(cells, tuple(len(axis) for axis in self.axes.values()))
        columns = [axis[k] for axis, k in zip(self.axes.values(), index, strict=True)]
        return np.stack([*columns, *(np.full(len(cells), value) for value in self.fixed.values())], axis=1) * self.units

    def solve(self, cells: slice) -> BatchResult:
        """What is found at some cells."""
        plain = None if self.plain is None else self.plain.solve(cells)
        if self.others is None:
            assert plain is not None
            return plain
        other = self.others.solve(cells)
        if plain is None:
            columns = [other.values[f"frequency:{k + 1}"] for k in range(self.modes)]
            return self._chosen(other, np.stack(columns, axis=1) if columns else np.zeros((len(other.status), 0)))
        for row in np.flatnonzero((other.status == OK) & (plain.status != OK)):
            other.mark(int(row), int(plain.status[row]), plain.reasons[row])
        for row in np.flatnonzero((other.status == SINGULAR) & (plain.status == OK)):
            other.status[row] = OK  # it has frequencies; a response alone is not defined there
        joined = self._chosen(other, plain.values["frequencies"])
        joined.fallbacks, joined.balanced, joined.difference = plain.fallbacks, plain.balanced, plain.difference
        joined.refused = plain.refused or other.refused
        return joined

    def _chosen(self, other: BatchResult, frequencies: Array) -> BatchResult:
        other.values = {"frequencies": frequencies} | {
            response.name: other.values[response.name] for response in self.asked
        }
        return other

    def threads(self, requested: int | None, chunks: int) -> int:
        """Threads that are of use: one by one is by the interpreter, which runs one thread at a time."""
        return 1 if self.way == "one by one" else min(number_of_threads(requested), max(1, chunks))


class MapResults:
    """A store of cells with its file; what was counted in chunks of this call goes to `counting`."""

    def __init__(
        self, store: MapStore, path: Path | None, settings: Mapping[str, Any], counting: FrequencyRows | None
    ) -> None:
        self.store, self.path, self.settings, self.counting = store, path, settings, counting
        self.name = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
        self.refused: ParflexError | None = None
        self.fallbacks = 0  # cells that were not solved together with others
        self.before = 0  # cells that were known when this call began
        self.rests = np.zeros(len(store.status), dtype=bool)  # cells about an equilibrium that was not asked for

    def put(self, chunk: slice, part: BatchResult) -> None:
        """Take over what was found in a chunk."""
        self.store.put(chunk, part.values, part.status, part.reasons)
        self.refused = self.refused or part.refused
        self.fallbacks += part.fallbacks
        if len(part.rests):
            self.rests[chunk] = part.rests
        if self.counting is not None:
            self.counting.note(part)

    def save(self) -> None:
        """Write all of it."""
        if self.path is not None:
            self.store.save(self.path, self.settings)
