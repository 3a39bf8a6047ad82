"""Run a plant under a control law along a reference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy.integrate import trapezoid
from scipy.spatial.transform import Rotation

from parflex import checks
from parflex.control.laws import COMPENSATED, Law, make_law, read_gains
from parflex.control.plant import (
    STARTS,
    Plant,
    check_plant,
    end_effector_rows,
    loads_on_plant,
    make_plant,
    start_state,
)
from parflex.control.references import reference_from
from parflex.diagnostics import reported
from parflex.dynamics.contact_state import refuse_start_outside
from parflex.errors import InputError, ParflexError
from parflex.forces.effort_allocation import EffortLimit, Preload, Weights, read_limits
from parflex.integrators.common import Status, record
from parflex.integrators.driver import IntegratedRows, System, grid_of, method_named, run_loop
from parflex.integrators.sampled import Sampled, sampled_explicit_steps, sampled_gauss_steps
from parflex.records import brief
from parflex.robot.load import acting_robot, checked_terms
from parflex.robot.robot import Robot
from parflex.simulation.diagnostics import cable_warnings, limit_warnings
from parflex.simulation.outputs import coupling_summary
from parflex.simulation.runs import Run, Summary
from parflex.simulation.simulate import say_first_compilation
from parflex.trajectories.follow import Track, track

Array = np.ndarray
TOLERANCE = 1e-9  # m or rad, of the iteration of the implicit method; with less, held efforts that jump cost many steps
MOST_ROWS = 1_000_000

WORDS = {
    Status.GEOMETRY: ("geometry", "the nominal configuration cannot be computed from the sensors"),
    Status.NOT_CONVERGED: ("plant", "the stages of a plant step do not converge"),
}

INDEXES = ("ise", "iae", "itae", "max")
RATES = ("measured", "differences")
MOST_DELAY = 10_000  # samples


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
        checks.number(self.sample_time, "sample_time", above=0.0, example=1e-3)
        if self.step is not None:
            checks.number(self.step, "step", above=0.0, example=1e-3)
        for key in ("noise", "rate_noise", "resolution"):
            checks.number(getattr(self, key), key, least=0.0, example=1e-4)
        checks.integer(self.delay, "delay", 0, MOST_DELAY)
        checks.integer(self.seed, "seed", 0, 2**63 - 1)
        checks.one_of(self.start, STARTS, "start")
        checks.one_of(self.rates, RATES, "rates")

    def limits(self, motors: Sequence[str]) -> tuple[Array, Array]:
        """Return the lowest and the highest effort of each motor."""
        if isinstance(self.effort_limit, float | int):
            checks.number(self.effort_limit, "effort_limit", above=0.0, example=20)
        return read_limits(motors, self.effort_limit)


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
    duration = track.reference.end if time is None else float(time)
    checks.number(duration, "time", above=0.0, example=2)
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
        why = f"the plant cannot start at this pose: {error.message}"
        return Controlled({"t": t[:0]}, settings, {}, dict.fromkeys(INDEXES), "start", why, 0.0)
    run = SampledRun(law, plant, track, loop, grid, t)
    return _told(run, run.go(q, qd[plant.problem.places], shown), settings)


class SampledRun:
    """Memory of a run: a law that is asked at each row of the loop of all runs, and what it said."""

    def __init__(self, law: Law, plant: Plant, track: Track, loop: LoopSettings, grid: Any, t: Array) -> None:
        self.plant, self.track, self.grid, self.t = plant, track, grid, t
        self.turning = {link.name for link in plant.robot.tree.links if link.periodic}
        self.system = plant.system()
        self.row: tuple[Array, Array] | None = None  # the last that is known
        self.status = Status.OK
        motors = law.robot.actuated_names
        self.efforts = np.zeros((len(t), len(motors)))
        nq, m = law.robot.tree.nq, len(law.sensed)
        reference = np.ascontiguousarray(law.reference_rows(track, t))
        noise = np.random.default_rng(loop.seed).standard_normal((2, len(t), m))
        noise *= np.array([loop.noise, loop.rate_noise])[:, None, None]
        links = [law.robot.tree.links[law.robot.tree.number(name)] for name in law.sensed]
        begin = track.q[0, [link.q.start for link in links]], track.qd[0, [link.v.start for link in links]]
        (geometry, a), (program, b) = law.geometry.machine_code(), law.program.machine_code()
        self.kept = geometry, program  # machine code lives as long as these
        self.sampled = Sampled(
            geometry.address("one"), program.address("one"), np.concatenate([np.zeros(nq + m), a]),
            np.concatenate([np.zeros(nq + m + reference.shape[1]), b]), nq, plant.places(law.sensed),
            np.array([int(link.periodic) for link in links]),
            np.full(m, float(loop.resolution)), float(grid.out_step), int(loop.rates == "differences"),
            int(loop.delay), *loop.limits(motors), reference, np.concatenate(noise, axis=1),
            track.q[0].copy(), np.zeros(len(law.geometry.program.outputs)), np.concatenate(begin),
            np.zeros(len(motors)), np.zeros((loop.delay + 1, len(motors))),
        )  # fmt: skip

    def go(self, q: Array, qd: Array, shown: Callable[[float], None] | None) -> IntegratedRows:
        """Move the plant; efforts are held, also behind the last sample."""
        elastic = bool(self.plant.robot.tree.elastic)
        self.sampled_steps = sampled_gauss_steps if elastic else sampled_explicit_steps
        say_first_compilation(self.sampled_steps)
        method = replace(method_named("gauss4" if elastic else "rk4"), steps=self.steps)
        names = [self.plant.robot.tree.rate_names[k] for k in self.plant.problem.places]
        integrated = run_loop(self.system, method, self.grid, q, qd, names, TOLERANCE, progress=shown)
        last = len(integrated.t) - 1
        self.efforts[last:] = self.efforts[max(0, last - 1)]
        return integrated

    def steps(
        self, system: System, work: Any, tableau: Any, t: float, h: float, every: int, q: Array, qd: Array,
        tolerance: float, x: Array, y: Array,
    ) -> tuple[int, int]:  # fmt: skip
        """Integrate as the steps of a method do, with the law evaluated at each row, from the row before."""
        first, more = round(t / self.grid.out_step), len(x)
        out_x, out_y = np.empty((more + 1, x.shape[1])), np.empty((more + 1, y.shape[1]))
        if more and self.row is None:
            record(system, work, t, q, qd, out_x[0], out_y[0])
        elif self.row is not None:
            out_x[0], out_y[0] = self.row
        filled, self.status = self.sampled_steps(
            self.sampled, system, work, tableau, h, every, tolerance, first, q, qd, out_x, out_y,
            self.efforts[first : first + more],
        )  # fmt: skip
        x[:], y[:] = out_x[1:], out_y[1:]
        self.row = (out_x[filled].copy(), out_y[filled].copy()) if more else None
        return filled, self.status


def _told(run: SampledRun, integrated: IntegratedRows, settings: dict[str, Any]) -> Controlled:
    """Return columns, errors and failures of a run."""
    t, q = integrated.t, integrated.y[:, : run.plant.robot.tree.nq]
    failure, why, stopped = "", "", None
    if integrated.status == "interrupted":
        failure, why, stopped = "interrupted", "interrupted; results so far are kept", float(t[-1])
    elif integrated.status != "ok":
        failure, why = WORDS.get(run.status, ("plant", "the loops of the plant cannot be closed"))
        stopped = float(t[-1])
    position, rotation, crossed = end_effector_rows(run.plant, q)
    if crossed is not None and failure != "interrupted":
        failure, stopped = "singularity", float(t[crossed[0]])
        why = f"the plant crosses a singularity {crossed[1]}"
    columns, error, turn = _columns(run, integrated, position, rotation)
    if failure in ("geometry", "plant"):
        failure, why = _unstable(run, columns, t <= stopped) or (failure, why)
    errors: dict[str, float | None] = dict.fromkeys(INDEXES, None)
    if not failure:
        errors = dict(error_indexes(t, error))
    summary = Summary(seconds=integrated.seconds, rows=len(t), rotation_max=float(turn.max(initial=0.0)))
    summary |= loads_on_plant(run.plant, integrated, run.efforts[0], run.grid.out_step, columns)
    summary |= coupling_summary(run.plant.robot, columns)
    summary |= reported(cable_warnings(run.plant.robot, columns))
    return Controlled(columns, settings, summary, errors, failure, why, stopped)


def _columns(
    run: SampledRun, integrated: IntegratedRows, position: Array, rotation: Array
) -> tuple[dict[str, Array], Array, Array]:
    rows = slice(0, len(integrated.t))
    t, robot = run.t[rows], run.plant.robot
    q = integrated.y[:, : robot.tree.nq]
    path = run.track.path(run.t)
    assert path.rotation is not None
    desired_p, desired_R = path.position[rows], path.rotation[rows]
    columns = {"t": t}
    axes, planar = "xy" if robot.tree.planar else "xyz", robot.tree.planar
    for k, axis in enumerate(axes):
        columns |= {f"reference.{axis}": desired_p[:, k], f"{robot.tree.end_effector}.{axis}": position[:, k]}
    if planar:
        for word, R in (("reference", desired_R), (robot.tree.end_effector, rotation)):
            columns[f"{word}.theta"] = np.unwrap(np.arctan2(R[:, 1, 0], R[:, 0, 0]))
    driven = [c for c in run.track.reference.driven if c < 3]
    error = np.linalg.norm((desired_p - position)[:, driven], axis=1)
    turn = np.zeros(len(t))
    if any(c > 2 for c in run.track.reference.driven):
        turn = Rotation.from_matrix(desired_R @ rotation.transpose(0, 2, 1)).magnitude()
    columns |= {"error": error, "error.rotation": turn}
    for k, name in enumerate(robot.actuated_names):
        columns[f"effort.{name}"] = run.efforts[rows, k]
    joints = run.track.at(run.t)[0][rows]
    names = run.track.joints.names
    columns |= {f"reference.{name}": joints[:, k] for k, name in enumerate(names)}
    places = run.plant.places(names)
    rates, angles = integrated.y[:, robot.tree.nq : 2 * robot.tree.nq], q[:, places]
    turned = np.array([name in run.turning for name in names])  # programs may give angles between -pi and pi
    angles = angles + turned * 2 * np.pi * np.round((joints - angles) / (2 * np.pi))
    columns |= {f"q.{name}": angles[:, k] for k, name in enumerate(names)}
    columns |= {f"qd.{name}": rates[:, p] for name, p in zip(names, places, strict=True)}
    return columns, error, turn


def _unstable(run: SampledRun, columns: dict[str, Array], rows: Array) -> tuple[str, str] | None:
    """Return failure and sentence if a motor is farther from its reference than the reference from its start.

    The first such motor is named. The error at the start is subtracted, since plants with other lengths have one.
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
        "law_operators": law.program.counts["total"],
        **asdict(loop),
    }


LOOP = LoopSettings()


def run_control(
    robot: Robot,
    reference: Any,
    law: Literal["pd", "ctc", "ctc-task", "extended"] = "ctc",
    *,
    plant: Robot | None = None,
    time: float | None = None,
    breaks: Sequence[float] = (),
    overshoot: float = 0.1,
    peak_time: float = 0.1,
    Kp: float | None = None,
    Kv: float | None = None,
    compensate: Sequence[str] = COMPENSATED,
    without: Sequence[str] = (),
    sample_time: float = LOOP.sample_time,
    delay: int = LOOP.delay,
    noise: float = LOOP.noise,
    rate_noise: float = LOOP.rate_noise,
    resolution: float = LOOP.resolution,
    rates: Literal["measured", "differences"] = "measured",
    effort_limit: EffortLimit | None = None,
    weights: Weights | None = None,
    preload: Preload | None = None,
    seed: int = LOOP.seed,
    start: Literal["motors", "platform"] = "motors",
    step: float | None = None,
    stops: bool = False,
    reactions: bool = False,
    ignore_limits: bool = False,
    progress: Callable[[float], None] | None = None,
) -> Controlled:
    """Track a reference with a plant under a control law that knows the nominal robot.

    What is in the robot file acts, except what `without` names. A reference beyond limits of the robot file is refused;
    limits that the plant exceeds are warned of. The plant may have other numbers or flexible bodies;
    without `plant` it is as the law assumes. Gains follow from `overshoot` and `peak_time`, or are `Kp` and `Kv`.

    Parameters
    ----------
    reference : str, Mapping, Reference, Trajectory or callable
        Reference of the end effector: words as in "circle:radius=0.1,time=2", a table of them, or a function of time
        (m, rad).
    time : float, default None
        Duration; None: that of the reference (s).
    preload : Mapping[str, float], default None
        Internal efforts by motor, of one motor for each that is spare, at home; elsewhere the nearest internal efforts
        (N, N m).
    start : {'motors', 'platform'}, default "motors"
        What is at the reference at the start.
    step : float, default None
        Integration step of the plant; None: 0.001, at most the sample time (s).
    stops : bool, default False
        Let the limits of joints act, by the `stop` of the plant's file.
    reactions : bool, default False
        Columns of the reactions of all joints and closures, and their largest values in the summary.
    robot, law, plant, breaks, overshoot, peak_time, Kp, Kv, compensate, without, sample_time, delay, noise
        See `parflex.api.WORDS`.
    rate_noise, resolution, rates, effort_limit, weights, seed, ignore_limits, progress
        See `parflex.api.WORDS`.

    Returns
    -------
    Controlled
        Columns in time, tracking errors (m, s) `ise iae itae max`, and why a run failed.
    """
    robot, real = acting_robot(robot, without), acting_robot(plant or robot, without)
    gains = read_gains(overshoot, peak_time, Kp, Kv)
    meeting = LoopSettings(sample_time, delay, noise, rate_noise, resolution, rates, effort_limit, seed, start, step)
    meeting.limits(robot.actuated_names)
    desired = reference_from(robot, reference, time, breaks)  # words are read before anything is compiled
    joints = [*robot.actuated_names, *robot.sensed_names]
    path = track(robot, desired, [name for name in joints if name in real.tree.rate_names])
    if not ignore_limits:
        stopped = {frame.name for frame in real.description.frame if stops and frame.stop is not None}
        path.refuse_violations(robot, path.reference.end if time is None else min(time, path.reference.end), stopped)
    made = make_law(robot, law, gains, compensate=compensate, weights=weights, preload=preload)
    check_plant(robot, real, made.sensed)
    moved = make_plant(real, stops, reactions)
    run = run_law(made, moved, path, meeting, time, progress)
    if not ignore_limits:
        exceeded = limit_warnings(moved.problem.robot, run.columns, robot.motors, effort_limit)
        run.summary.update(reported([*run.diagnostics, *exceeded]))
    run.settings["without"] = list(checked_terms(without))
    return run


def error_indexes(t: Array, error: Array) -> dict[str, float]:
    """Return ISE, IAE and ITAE [Zubizarreta2010, Table II] by the trapezoidal rule, and the largest error."""
    return {
        "ise": float(trapezoid(error**2, t)),
        "iae": float(trapezoid(error, t)),
        "itae": float(trapezoid(t * error, t)),
        "max": float(error.max(initial=0.0)),
    }


@dataclass(frozen=True, eq=False, repr=False)
class Controlled(Run):
    """A run under a control law; `failure` is empty where it ended well.

    Attributes
    ----------
    columns : dict[str, Array]
        Time series by name, with `t` in s (m, rad, N, N m).
    settings : dict[str, Any]
        How the run was made.
    summary : dict[str, Any]
        Numbers of the run.
    errors : dict[str, float | None]
        ise (m^2 s), iae (m s), itae (m s^2) and max (m) of the end effector; None where the run failed.
    failure : str
        singularity, geometry, plant, start, unstable or interrupted; empty where it ended well.
    why : str
        The failure in words.
    stopped_at : float | None
        Time of the failure (s), or None.
    """

    errors: dict[str, float | None] = field(default_factory=dict)
    failure: str = ""
    why: str = ""
    stopped_at: float | None = None

    @property
    def ok(self) -> bool:
        """Return whether the run ended well."""
        return not self.failure

    @property
    def status(self) -> str:
        """Return `ok`, `interrupted` or `diverged`."""
        return "ok" if self.ok else "interrupted" if self.failure == "interrupted" else "diverged"

    def save(self, path: str | Path) -> list[Path]:
        """Write the file `path`, .csv or .npz, with settings beside a table and inside an archive."""
        summary = {**self.summary, "status": self.status, "errors": self.errors, "failure": self.failure or None}
        return Run(self.columns, self.settings, summary).save(path)

    def _told(self) -> str:
        t = self.columns.get("t", np.zeros(1))
        error_text = ", ".join(f"{word} {value:.4g}" for word, value in self.errors.items() if value is not None)
        rows = f"{len(t)} rows to t = {t[-1] if len(t) else 0.0:.4g} s"
        return f"{brief(self.settings.get('law', ''))}: {rows}, {error_text or self.failure}"
