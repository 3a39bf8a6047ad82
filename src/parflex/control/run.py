"""One run: a plant under a law along a reference, sampled, with what sensors and motors do to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from parflex.control.control_result import INDEXES, Controlled, error_indexes
from parflex.control.following import Track
from parflex.control.laws import Law
from parflex.control.plant import STARTS, Plant, Seen, check_plant, look, start_state
from parflex.control.plant_loads import loads_on_plant
from parflex.dynamics.contact_state import refuse_start_outside
from parflex.errors import InputError, ParflexError
from parflex.forces.spare_motors import EffortLimit, read_limits
from parflex.integrators.common import record
from parflex.integrators.driver import NOT_CONVERGED, IntegratedRows, System, grid_of, method_named, run_loop
from parflex.integrators.explicit import (
    GEOMETRY,
    OK,
    Given,
    Memory,
    Sampled,
    sampled_explicit_steps,
    sampled_gauss_steps,
)
from parflex.simulation.diagnostics import cable_warnings, coupling_summary
from parflex.simulation.outputs import coupling_columns
from parflex.simulation.simulate import say_first_compilation

Array = np.ndarray
TOLERANCE = 1e-9  # m or rad, of the iteration of the implicit method; with less, held efforts that jump cost many steps
MOST_ROWS = 1_000_000
WORDS = {
    GEOMETRY: ("geometry", "the nominal configuration cannot be computed from the sensors"),
    NOT_CONVERGED: ("plant", "the stages of a plant step do not converge"),
}


def _number(value: Any) -> bool:
    return isinstance(value, (int, float, np.floating)) and not isinstance(value, bool)


@dataclass(frozen=True)
class LoopSettings:
    """How the law and the plant meet."""

    sample_time: float = 1e-3  # s, with the efforts held in between
    delay: int = 0  # samples between sensing and effort
    noise: float = 0.0  # standard deviation of measured positions, rad or m
    rate_noise: float = 0.0  # of measured rates
    resolution: float = 0.0  # of measured positions; 0 is none
    rates: str = "measured"  # or "differences" of measured positions
    effort_limit: EffortLimit | None = None  # one for all motors, or by name
    seed: int = 0
    start: str = "motors"  # what stands at the reference when a run begins: the motors, or the platform
    step: float | None = None  # of the plant's integration; at most the sample time, default 1 ms

    def __post_init__(self) -> None:
        """Refuse what no loop can be."""
        for key in ("sample_time", "step"):
            value = getattr(self, key)
            if (value is not None or key == "sample_time") and not (_number(value) and 0 < value < np.inf):
                raise InputError(f"'{key}' is not a positive number", key=key, value=value, hint="give e.g. 0.001")
        for key in ("noise", "rate_noise", "resolution"):
            value = getattr(self, key)
            if not (_number(value) and 0 <= value < np.inf):
                raise InputError(f"'{key}' is negative or not a number", key=key, value=value, hint="give zero or more")
        for key in ("delay", "seed"):
            value = getattr(self, key)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not 0 <= value < 2**63:
                raise InputError(f"'{key}' is not a whole number", key=key, value=value, hint="give 0, 1, 2, ...")
        if self.delay > 10_000:
            raise InputError(
                "the delay is too long", key="delay", value=self.delay, hint="give a number of samples, e.g. 1"
            )
        if self.start not in STARTS:
            raise InputError(
                f"there is no start '{self.start}'", key="start", value=self.start, hint="'motors' or 'platform'"
            )
        if self.rates not in ("measured", "differences"):
            raise InputError(
                f"there are no rates '{self.rates}'", key="rates", value=self.rates, hint="'measured' or 'differences'"
            )

    def limits(self, motors: Sequence[str]) -> tuple[Array, Array]:
        """The lowest and the highest effort of each motor."""
        given = self.effort_limit
        if _number(given) and not given > 0:  # type: ignore[operator]
            raise InputError("an effort limit must be positive", key="effort_limit", value=given, hint="give e.g. 20")
        return read_limits(motors, given)


def run_law(
    law: Law,
    plant: Plant,
    track: Track,
    loop: LoopSettings = LoopSettings(),
    time: float | None = None,
    shown: Callable[[float], None] | None = None,
) -> Controlled:
    """Move the plant under the law along the reference; whatever happens on the way is told in the result."""
    nominal = law.robot
    check_plant(nominal, plant.robot, law.sensed)
    duration = track.reference.time if time is None else float(time)
    if not 0 < duration < np.inf:
        raise InputError("'time' is not a positive number", key="time", value=duration, hint="give e.g. 2")
    grid = grid_of(duration, min(loop.step or 1e-3, loop.sample_time), loop.sample_time)
    if grid.rows > MOST_ROWS:
        raise InputError(
            f"the run would have {grid.rows} samples", key="sample_time", value=loop.sample_time,
            hint=f"at most {MOST_ROWS}",
        )  # fmt: skip
    t = np.arange(grid.rows + 1) * grid.out_step
    settings = _settings(law, plant, track, loop, duration)
    try:
        q, qd = start_state(plant, nominal, track, loop.start)
        refuse_start_outside(plant.problem.robot, q)
    except ParflexError as error:
        none: dict[str, float | None] = dict.fromkeys(INDEXES)
        return Controlled(
            {"t": t[:0]}, none, settings, "start", f"the plant cannot start at this pose: {error.message}", 0.0
        )
    run = SampledRun(law, plant, track, loop, grid, t)
    return _told(run, run.go(q, qd[plant.problem.places], shown), settings)


class SampledRun:
    """Memory of a run: a law that is asked at each row of the loop of all runs, and what it said."""

    def __init__(self, law: Law, plant: Plant, track: Track, loop: LoopSettings, grid: Any, t: Array) -> None:
        self.plant, self.track, self.grid, self.t = plant, track, grid, t
        self.turning = {link.name for link in plant.robot.tree.links if link.periodic}
        self.system = plant.system()
        self.row: tuple[Array, Array] | None = None  # the last that is known
        self.status = OK
        motors = law.robot.actuated_names
        self.efforts = np.zeros((len(t), len(motors)))
        lower, upper = loop.limits(motors)
        m = len(law.sensed)
        rng = np.random.default_rng(loop.seed)
        reference = np.ascontiguousarray(law.reference_rows(track, t))
        noise = rng.standard_normal((2, len(t), m)) * np.array([loop.noise, loop.rate_noise])[:, None, None]
        self.given = Given(reference, np.ascontiguousarray(noise[0]), np.ascontiguousarray(noise[1]))
        nq, motors_count = law.robot.tree.nq, len(motors)
        links = [law.robot.tree.links[law.robot.tree.number(name)] for name in law.sensed]
        places = [link.q.start for link in links]
        self.memory = Memory(
            track.start.copy(), np.zeros(len(law.geometry.program.outputs)),
            np.concatenate([track.start[places], track.start_rates[[link.v.start for link in links]]]),
            np.zeros(motors_count),
            np.zeros((loop.delay + 1, motors_count)),
        )  # fmt: skip
        (geometry, a), (program, b) = law.geometry.machine_code(), law.program.machine_code()
        self.kept = geometry, program  # machine code lives as long as these
        self.sampled = Sampled(
            geometry.address("one"), program.address("one"), np.concatenate([np.zeros(nq + m), a]),
            np.concatenate([np.zeros(nq + m + reference.shape[1]), b]), nq, plant.places(law.sensed),
            np.array([int(link.periodic) for link in links]),
            np.full(m, float(loop.resolution)), float(grid.out_step), int(loop.rates == "differences"),
            int(loop.delay), lower, upper,
        )  # fmt: skip

    def go(self, q: Array, qd: Array, shown: Callable[[float], None] | None) -> IntegratedRows:
        """Move the plant; efforts are held, also behind the last sample."""
        elastic = bool(self.plant.robot.tree.elastic)
        self.sampled_steps = sampled_gauss_steps if elastic else sampled_explicit_steps
        say_first_compilation(self.sampled_steps)
        method = replace(method_named("gauss4" if elastic else "rk4"), steps=self.steps)
        names = [self.plant.robot.tree.rate_names[k] for k in self.plant.problem.places]
        found = run_loop(self.system, method, self.grid, q, qd, names, TOLERANCE, shown=shown)
        last = len(found.t) - 1
        self.efforts[last:] = self.efforts[max(0, last - 1)]
        return found

    def steps(
        self, system: System, work: Any, tableau: Any, t: float, h: float, every: int, q: Array, qd: Array,
        tolerance: float, x: Array, y: Array,
    ) -> tuple[int, int]:  # fmt: skip
        """Steps as those of a method, with the law asked at each row; it begins with the row before."""
        first, more = round(t / self.grid.out_step), len(x)
        out_x, out_y = np.empty((more + 1, x.shape[1])), np.empty((more + 1, y.shape[1]))
        if more and self.row is None:
            record(system, work, t, q, qd, out_x[0], out_y[0])
        elif self.row is not None:
            out_x[0], out_y[0] = self.row
        filled, self.status = self.sampled_steps(
            self.sampled, system, work, tableau, h, every, tolerance, first, self.given, self.memory, q, qd, out_x,
            out_y, self.efforts[first : first + more],
        )  # fmt: skip
        x[:], y[:] = out_x[1:], out_y[1:]
        self.row = (out_x[filled].copy(), out_y[filled].copy()) if more else None
        return filled, self.status


def _told(run: SampledRun, found: IntegratedRows, settings: dict[str, Any]) -> Controlled:
    """Columns, errors and failures of a run."""
    t, q = found.t, found.y[:, : run.plant.robot.tree.nq]
    failure, why, stopped = "", "", None
    if found.status == "interrupted":
        failure, why, stopped = "interrupted", "interrupted; results so far are kept", float(t[-1])
    elif found.status != "ok":
        failure, why = WORDS.get(run.status, ("plant", "the loops of the plant cannot be closed"))
        stopped = float(t[-1])
    seen = look(run.plant, q)
    if seen.crossed is not None and failure != "interrupted":
        failure, stopped = "singularity", float(t[seen.crossed[0]])
        why = f"the plant crosses a singularity {seen.crossed[1]}"
    columns, error, turn = _columns(run, found, seen)
    if failure in ("geometry", "plant"):
        failure, why = _unstable(run, columns, t <= stopped) or (failure, why)
    errors: dict[str, float | None] = dict.fromkeys(INDEXES, None)
    if not failure:
        errors = dict(error_indexes(t, error))
    summary: dict[str, Any] = {"seconds": found.seconds, "rows": len(t), "rotation_max": float(turn.max(initial=0.0))}
    summary |= coupling_summary(run.plant.robot, columns)
    summary |= loads_on_plant(run.plant, found, run.efforts[0], run.grid.out_step, columns)
    summary["warnings"] = cable_warnings(run.plant.robot, columns)
    return Controlled(columns, errors, settings, failure, why, stopped, summary)


def _columns(run: SampledRun, found: IntegratedRows, seen: Seen) -> tuple[dict[str, Array], Array, Array]:
    rows = slice(0, len(found.t))
    t, robot = run.t[rows], run.plant.robot
    q = found.y[:, : robot.tree.nq]
    position, rotation = seen.position, seen.rotation
    path = run.track.path(run.t)
    desired_p, desired_R = path.position[rows], path.rotation[rows]
    columns = {"t": t}
    axes, planar = "xy" if robot.tree.planar else "xyz", robot.tree.planar
    for k, axis in enumerate(axes):
        columns |= {f"reference.{axis}": desired_p[:, k], f"{robot.tree.end_effector}.{axis}": position[:, k]}
    if planar:
        for word, R in (("reference", desired_R), (robot.tree.end_effector, rotation)):
            columns[f"{word}.theta"] = np.unwrap(np.arctan2(R[:, 1, 0], R[:, 0, 0]))
    driven = [c for c in run.track.driven if c < 3]
    error = np.linalg.norm((desired_p - position)[:, driven], axis=1)
    turn = np.zeros(len(t))
    if any(c > 2 for c in run.track.driven):
        E = desired_R @ rotation.transpose(0, 2, 1)
        axial = np.stack([E[:, 2, 1] - E[:, 1, 2], E[:, 0, 2] - E[:, 2, 0], E[:, 1, 0] - E[:, 0, 1]], axis=1) / 2
        turn = np.arctan2(np.linalg.norm(axial, axis=1), (np.trace(E, axis1=1, axis2=2) - 1) / 2)
    columns |= {"error": error, "error.rotation": turn}
    for k, name in enumerate(robot.actuated_names):
        columns[f"effort.{name}"] = run.efforts[rows, k]
    joints = run.track.at(run.t)[0][rows]
    for k, name in enumerate(run.track.names):
        columns[f"reference.{name}"] = joints[:, k]
    places = run.plant.places(run.track.names)
    rates = found.y[:, robot.tree.nq : 2 * robot.tree.nq]
    for k, (name, p) in enumerate(zip(run.track.names, places, strict=True)):
        columns[f"q.{name}"] = _near(q[:, p], joints[:, k], name in run.turning)
    columns |= {f"qd.{name}": rates[:, p] for name, p in zip(run.track.names, places, strict=True)}
    return columns | coupling_columns(run.plant.problem, found.x, found.y, run.efforts[rows]), error, turn


def _unstable(run: SampledRun, columns: dict[str, Array], rows: Array) -> tuple[str, str] | None:
    """Return failure and sentence if a motor is farther from its reference than the reference from where it began.

    A motor that stood still would be nearer, so tracking is lost; the first such motor is named. The error at the start
    is subtracted: a plant with other lengths has one.
    """
    left = {}
    for name in run.plant.robot.actuated_names:
        desired = columns[f"reference.{name}"][rows]
        error = np.abs(columns[f"q.{name}"][rows] - desired)
        near = np.flatnonzero(error - error[0] <= np.abs(desired - desired[0]))
        left[name] = int(near[-1]) + 1
    name = min(left, key=lambda motor: left[motor])
    if left[name] >= np.count_nonzero(rows):
        return None
    tree = run.plant.robot.tree
    light = tree.links[tree.number(name)].terms.motor_inertia == 0
    advice = f"{'add motor_inertia or ' * light}lower the gains"
    moment = 1e3 * float(run.t[left[name]])
    return "unstable", f"the control loop is unstable: motor {name} left its reference at {moment:.4g} ms; {advice}"


def _near(values: Array, desired: Array, turning: bool) -> Array:
    """Angles in the turn of the reference; programs may give them between -pi and pi."""
    return values + 2 * np.pi * np.round((desired - values) / (2 * np.pi)) if turning else values


def _settings(law: Law, plant: Plant, track: Track, loop: LoopSettings, duration: float) -> dict[str, Any]:
    return {
        "law": law.name,
        "robot": law.robot.name,
        "plant": plant.robot.name,
        "working_mode": law.robot.working_mode,
        "reference": track.reference.name,
        "time": duration,
        "Kp": law.gains.Kp,
        "Kv": law.gains.Kv,
        "sensed": law.sensed,
        "compensate": list(law.compensate),
        "sticking": [link.name for link in plant.problem.sticking],
        "friction_width": plant.problem.width or None,
        **law.shared,
        "law_operators": law.operators,
        **asdict(loop),
    }
