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
from parflex.design.many import warn_of_first_order
from parflex.design.registry import bound_responses
from parflex.errors import InputError
from parflex.forces.forces import Wrench
from parflex.maps.api import cells_line, warn_of_few_elements
from parflex.maps.batch import Batch
from parflex.maps.batch_result import BatchResult, chunks_of, warn_of_balanced, warn_of_unstable
from parflex.maps.continuation import OK, SINGULAR, UNREACHABLE
from parflex.maps.files import MapStore, check_map_file, map_settings
from parflex.maps.positions import WAITING
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
        How most cells are solved: "steps", "together" or "one by one".
    reason : str
        Why cells are solved one by one.
    fallbacks : int
        Cells solved one by one where others are solved together.
    largest_difference : float
        Between steps and single poses, at a few poses of the robot that were solved by both (Hz).
    responses : dict[str, Array]
        Responses by name over the grid, where some were asked for.
    units : dict[str, str]
        Of each response.
    at : dict[str, Array]
        Where the lowest frequency was found along coordinates that are no axes any more, from `lowest_over` (m, rad).
    reasons : Array
        Of each cell why it has no frequencies; empty where it has.
    fixed : dict[str, float]
        Coordinates that are the same in all cells (m, rad).
    """

    axes: dict[str, Array]
    frequencies: Array
    status: Array
    interrupted: bool
    computed: int  # cells of this run
    method: str
    reason: str
    fallbacks: int
    largest_difference: float
    responses: dict[str, Array] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)
    at: dict[str, Array] = field(default_factory=dict)
    reasons: Array = field(default_factory=lambda: np.zeros(0, dtype=object), repr=False)
    fixed: dict[str, float] = field(default_factory=dict)

    def count(self, state: int) -> int:
        """Number of cells in a `state`, one of those of `status`."""
        return int((self.status == state).sum())

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
            reasons=np.full(best.shape, "", dtype=object),
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
    responses : Sequence[str], default ()
        What is asked beside frequencies, as in `many_responses`: 'stiffness:FRAME.x', 'deflection:FRAME', ...
    robot, over, fixed, modes, lock, out, progress, about, wrench, threads, csv, cluster, load_case, ignore_limits
        See `parflex.api.WORDS`.

    Returns
    -------
    FrequencyMap
        Frequencies in Hz (grid x modes, NaN where there are none), and the status of each cell.
    """
    fixed = dict(fixed or {})
    _check_axes(robot, over, fixed)
    conditions = read_load_case(load_case, lock=lock, about=about, wrench=wrench)
    vibrates = robot.tree.elastic or has_springs(robot.tree) or has_force_elements(robot.tree)
    if vibrates or not responses or modes is not None:
        modes = default_number_of_modes(robot, modes, conditions.lock, conditions.about)
    modes = modes or 0  # rigid robots have responses alone
    robot = with_nodes_at(robot, conditions.deforming_frames)
    requested = bound_responses(robot, responses) if responses else ()
    check_loads(conditions, requested)
    axes = {name: np.linspace(first, last, count) for name, first, last, count in over}
    settings = map_settings(robot, over, fixed, modes, conditions, requested, ignore_limits)
    store = MapStore(axes, modes, requested)
    path = None if out is None else Path(out)
    if path is not None:
        check_map_file(path, csv)
        store.take_up(path, settings)
    arguments = (robot, axes, fixed, modes, conditions, requested, ignore_limits)
    batch = map_batch(*arguments)
    results = MapResults(store, path, settings, modes)
    interrupted = _fill(results, batch, path, progress, threads, cluster, arguments)
    computed = int((store.status != WAITING).sum()) - results.before
    if not conditions.at_equilibrium and modes:
        reached = (store.status == OK) | (store.status == SINGULAR)
        warn_of_balanced(results.counted.balanced, int(reached.sum()), 3)
    warn_of_unstable([store.reasons[k] for k in store.reason.tolist()], 3)
    warn_of_first_order(robot, requested, store.values, conditions, results.rests, 2)
    warn_beyond_band(robot, store.values["frequencies"])
    warn_of_few_elements(robot, store.values["frequencies"], batch.pose_of, conditions, modes, 2)
    if path is not None and csv and (computed or not path.with_suffix(".csv").exists()):
        store.save_csv(path.with_suffix(".csv"))
    return FrequencyMap(
        axes,
        store.values["frequencies"].reshape(*store.shape, modes),
        store.status.reshape(store.shape),
        interrupted,
        computed,
        batch.method,
        batch.reason,
        results.counted.fallbacks,
        batch.largest_difference,
        {response.name: store.values[response.name].reshape(*store.shape, *response.shape) for response in requested},
        {response.name: response.unit for response in requested},
        reasons=np.array(store.reasons, dtype=object)[store.reason].reshape(store.shape),
        fixed=fixed,
    )


def _fill(
    results: MapResults,
    batch: Batch,
    path: Path | None,
    progress: Callable[[int, int], None] | None,
    threads: int | None,
    cluster: str | None,
    arguments: tuple[Any, ...],
) -> bool:
    """Compute what is left and keep each chunk; whether it was interrupted."""
    status = results.store.status
    batch.prepare()
    task = jobs.ChunkTask(map_solver, arguments, results.name, ready=batch.solve)
    results.before = int((status != WAITING).sum())
    left = [chunk for chunk in chunks_of(len(status), batch.chunk) if (status[chunk] == WAITING).any()]

    def workers(chunks: int) -> jobs.Workers:
        return jobs.thread_workers(batch.threads(threads, chunks)) if cluster is None else jobs.dask_workers(cluster)

    def told() -> None:
        if progress is not None:
            progress(int((status != WAITING).sum()), len(status))

    interrupted = jobs.run_job(results, left, task, workers, path, told)
    if results.counted.refused is not None and not interrupted and not (status == OK).any():
        raise results.counted.refused
    return interrupted


def map_solver(arguments: tuple[Any, ...]) -> Callable[[slice], BatchResult]:
    """In a worker that is no thread: its own rows."""
    batch = map_batch(*arguments)
    batch.prepare()
    return batch.solve


def map_batch(
    robot: Robot,
    axes: Mapping[str, Array],
    fixed: Mapping[str, float],
    modes: int,
    conditions: LoadCase,
    responses: Sequence[ResponseName],
    ignore_limits: bool = False,
) -> Batch:
    """Return the cells of a grid as a batch of the lowest modes and other responses."""
    names, units = read_columns(robot.tree, [*axes, *fixed], "over")
    mesh = np.meshgrid(*axes.values(), *([value] for value in fixed.values()), indexing="ij")
    cells = np.stack([values.ravel() for values in mesh], axis=1) * units
    words = [f"frequency:{k + 1}" for k in range(modes)]
    others = [response for response in responses if response.name not in words]
    requested = [*(read_responses(robot, words) if words else ()), *others]
    return Batch(robot, names, cells, requested, conditions, None, ignore_limits)


# -- what is asked for -----------------------------------------------------------------------------------
def _check_axes(robot: Robot, over: Sequence[Axis], fixed: Mapping[str, float]) -> None:
    names = [name for name, *_ in over]
    if not names:
        raise InputError("no coordinate to vary", key="over", hint="write e.g. x=-0.1:0.1:50,y=-0.1:0.1:50")
    read_columns(robot.tree, [*names, *fixed], "over")
    cells = int(np.prod([count for *_, count in over], dtype=object))
    if cells > MOST:
        raise InputError(f"the map has {cells} cells", key="over", value=cells, hint=f"at most {MOST} are possible")


class MapResults:
    """A store of cells with its file, and what was counted in the chunks of this call."""

    def __init__(self, store: MapStore, path: Path | None, settings: Mapping[str, Any], modes: int) -> None:
        self.store, self.path, self.settings, self.modes = store, path, settings, modes
        self.name = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
        self.counted = BatchResult.empty({}, 0)
        self.before = 0  # cells that were known when this call began
        self.rests = np.zeros(len(store.status), dtype=bool)  # cells about an equilibrium that was not asked for

    def put(self, chunk: slice, part: BatchResult) -> None:
        """Take over what was found in a chunk."""
        values = {response.name: part.values[response.name] for response in self.store.responses}
        values["frequencies"] = part.modal("frequency", self.modes)
        self.store.put(chunk, values, part.status, part.reasons)
        self.rests[chunk] = part.rests
        self.counted.count(part)

    def save(self) -> None:
        """Write all of it."""
        if self.path is not None:
            self.store.save(self.path, self.settings)
