"""Every code of `parflex.diagnostics.CODES`: one case provokes it, and the same case without its cause lacks it."""

import json
import tempfile
import warnings
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace as Fake

import numpy as np
import pytest
from support import bars
from support.coupled_robots import PAIR
from support.recordings import BY_HAND, axis_record, loaded, slide
from support.robots import load_robot, write_robot
from support.stop_robots import ball

import parflex
from parflex.bodies.superelement import damping_note
from parflex.calibration.calibrate import _dependencies
from parflex.cli.identification import unsaved_options
from parflex.cli.output import diagnostic_of
from parflex.cli.view import _tell
from parflex.codegen.cache import _private
from parflex.design.design_state import ResponseCase
from parflex.design.sweep import _warn_if_slow, beyond_bounds
from parflex.diagnostics import CODES, Diagnostic, read_diagnostics, reported, with_code
from parflex.exchange.import_robot import _missing_inertias, _suspected_units
from parflex.forces.section_forces import missing_stress_warning
from parflex.identification import diagnostics, identify
from parflex.identification.diagnostics import Misfit, residuals_above_noise
from parflex.identification.recordings import _beyond_limits
from parflex.identification.robot_update import changed_rows
from parflex.jobs import _check_workers, source_digest
from parflex.robot.configuration import Condition
from parflex.robot.whole_check import unusual
from parflex.simulation.contacts import identical_joint_warnings, stop_limit_warnings
from parflex.simulation.diagnostics import (
    balance_warnings,
    inconsistency_warnings,
    jump_warnings,
    partition_changed,
    stop_warnings,
)
from parflex.simulation.mesh_convergence import converged_run
from parflex.simulation.step_control import StepReport, error_warnings
from parflex.statics.zero_dynamics import ZeroDynamics
from parflex.trajectories.time_optimal import _loose
from parflex.updating import frequency_response as frf
from parflex.updating import update as before
from parflex.updating.measured import read_rows
from parflex.updating.result import FitReport, _of_others
from parflex.updating.update import read_measured
from parflex.view.meshes import placed_meshes

CASES = {}


def case(*codes):
    """Register a case of one or more codes: a function of (wrong, folder, monkeypatch) yields diagnostics."""

    def register(function):
        for code in codes:
            assert code not in CASES, code
            CASES[code] = function
        return function

    return register


def caught(call):
    """Diagnostics of the warnings of a call."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return [each.message.diagnostic for each in found if isinstance(each.message, parflex.ParflexWarning)]


@cache
def diagnostics_of(function, wrong):
    """Diagnostics of a case; one case provokes several codes."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore", parflex.ParflexWarning)
        return list(function(wrong, Path(folder), patch))


@case("hardly-determined")
def _(wrong, folder, patch):
    J = np.array([[1.0, 1.0], [0.0, 0.01 if wrong else 1.0]])  # two numbers that act almost alike
    numbers = dict.fromkeys(("arm", "rod"), Fake(inflation=100.0))
    yield from _dependencies(list(numbers), J, np.zeros(2, dtype=bool), numbers)


@pytest.mark.parametrize("code", sorted(CODES))
def test_a_case_provokes_the_code_and_lacks_it_without_its_cause(code):
    clean, found = (diagnostics_of(CASES[code], wrong) for wrong in (False, True))
    assert with_code(found, code) and not with_code(clean, code), (found, clean)
    entries = json.loads(json.dumps(reported(found)))
    assert entries["warnings"] == [each.text for each in found] and all(entries["warnings"])
    assert [each.code for each in read_diagnostics(entries["diagnostics"])] == [each.code for each in found]


def test_each_code_says_what_it_means_and_what_to_do_and_no_other_is_accepted():
    assert set(CASES) == set(CODES) and list(CODES) == sorted(CODES)
    for meaning, remedy in CODES.values():
        assert meaning[0].isupper() and meaning.endswith(".") and remedy[0].isupper() and remedy.endswith(".")
    with pytest.raises(KeyError, match="'nonsense'"):
        Diagnostic("nonsense", "text")


@case("impossible-inertia", "superelement-matrices", "slack-cable", "immobile-joint", "far-start")
def _(wrong, folder, patch):
    yield from parflex.load("dualemps", settings={"platform.inertia.ZZ": -1.0} if wrong else None).diagnostics
    yield from damping_note(Fake(data=Fake(D=np.eye(6) if wrong else None), X=np.eye(6)))
    yield from load_robot("sprung-beams", settings={"element.stay.rest": 9.0 if wrong else 0.5}).diagnostics
    mesh = '[[coupling]]\nname = "mesh"\njoint = "wheel"\nterms = { pinion = -2 }\n'
    twice = '[[coupling]]\nname = "b"\njoint = "wheel"\nterms = { pinion = 3 }\n'
    yield from parflex.load(write_robot(folder, PAIR + mesh + twice * wrong)).start_warnings()
    text = PAIR.replace('name = "wheel"', f'name = "wheel"\nstart = {0.5 if wrong else -1.0}')
    yield from parflex.load(
        write_robot(folder, text.replace('"pinion"', '"pinion"\nstart = 0.5') + mesh)
    ).start_warnings()


@case("position-limit", "velocity-limit", "effort-limit", "limit-without-stop", "failed-states", "doubtful-states")
def _(wrong, folder, patch):
    keys = {"limits": [-0.1, 0.1], "velocity_limit": 1.0, "effort_limit": 0.01}
    settings = {f"frame.crank.{key}": value for key, value in keys.items()}
    robot = parflex.load("four-bar", settings=settings if wrong else None)
    yield from parflex.inverse_dynamics(robot, "home", velocity={"crank": 2.0}).diagnostics
    yield from stop_limit_warnings(robot)
    q = np.array([robot.home, robot.home])
    q[1, -1] += 0.1 * wrong
    yield from caught(lambda: parflex.inverse_dynamics(robot, q))


@case("stretched-leg", "undriven-motion", "near-singular", "singular", "redundant-closures", "unused-constant")
def _(wrong, folder, patch):
    yield from parflex.configure(load_robot("slider-crank-flexible"), None if wrong else {"crank": 0.5}).diagnostics
    geared = {"actuation.geared": {"actuated": ["motor", "spindle"]}}
    robot = load_robot("screw-jack", settings=geared, actuation="geared" if wrong else "both")
    yield from parflex.configure(robot).condition.diagnostics
    for condition in (1e5, 1e9) if wrong else (10.0,):
        yield from Condition({}, condition, 1.0).diagnostics
    text = 'format = 1\nname = "arm"\n[[frame]]\nname = "a"\njoint = "revolute"\n' + "[constants]\nspare = 3\n" * wrong
    yield from unusual(parflex.load(write_robot(folder, text)))
    yield from unusual(parflex.load("par4" if wrong else "four-bar"))


@case("redundant-motors", "cables-not-taut", "pushing-cable", "undetermined-forces", "underactuated", "unknown-stress")
def _(wrong, folder, patch):
    robot = parflex.load("planar-cable") if wrong else parflex.load("5r")
    yield from parflex.inverse_dynamics(robot, {"x": 0, "y": 0, "theta": 1.3} if wrong else None).diagnostics
    yield from parflex.inverse_dynamics(robot, preload={"lower_left.drum": 0.1} if wrong else None).diagnostics
    robot = load_robot("cart-pendulum") if wrong else robot
    yield from parflex.inverse_dynamics(robot).diagnostics
    yield from parflex.inverse_dynamics(parflex.load("par4"), reactions=wrong).diagnostics
    chains = {name: Fake(parts=Fake(fibres=fibres)) for name, fibres in (("a", 1), ("b", None if wrong else 1))}
    frames = [Fake(name="a", beam=1), Fake(name="b", beam=1)]
    yield from missing_stress_warning(Fake(description=Fake(frame=frames)), chains)


@case("axial-load", "large-deflection", "beyond-first-order", "neglected-stiffness", "few-elements", "beyond-band")
def _(wrong, folder, patch):
    bar, strip, load = bars.cantilever(folder, elements=1 if wrong else 8), load_robot("column"), 1.0 if wrong else 1e-3
    yield from parflex.deflection(strip, wrench={"end": [20 * load, 0, 0]}, about="equilibrium").diagnostics
    yield from parflex.deflection(strip, wrench={"end": [0, 5 * load, 0]}, about="equilibrium").diagnostics
    yield from parflex.deflection(bar, wrench={"bar.tip": [0, 300 * load, 0]}, about="undeformed").diagnostics
    yield from parflex.natural_frequencies(bar, modes=2).diagnostics
    reduced = bars.beam(folder, "elements = 8, reduce = { error = 1e-3, band = 50 }")
    yield from parflex.natural_frequencies(reduced, modes=4 if wrong else 1).diagnostics
    patch.setattr("parflex.statics.small_deformation.NEGLECTED_STIFFNESS", -1.0 if wrong else 0.1)
    yield from parflex.deflection(parflex.load("gough-stewart-flexible"), without=["gravity"]).diagnostics


@case("not-refined", "not-converged", "unsymmetric-stiffness", "unstable-zero-dynamics")
def _(wrong, folder, patch):
    patch.setattr("parflex.statics.modes.MOST_COORDINATES", 9 if wrong else 99)
    rod = '[[frame]]\nname = "rod"\nbeam = { length = 0.1, material = "steel", section = "bar", reduce = REDUCE }\n'
    robot = bars.beam(folder, more=rod.replace("REDUCE", "{ error = 0.1, band = 50 }") * wrong)
    yield from parflex.natural_frequencies(robot, modes=1, converge=1e-3).diagnostics
    bar, load = bars.cantilever(folder, motion="spatial", elements=2), [0, 0, 0, 8.0 * wrong, 0, 0]
    yield from parflex.natural_frequencies(bar, about="equilibrium", wrench={"bar.tip": load}).diagnostics
    yield from ZeroDynamics(np.array([1.0 if wrong else -1.0], dtype=complex), Fake(frame="tip")).diagnostics


@case("about-equilibrium", "unbalanced-tension", "unstable-equilibrium", "changed-start")
def _(wrong, folder, patch):
    robot = load_robot("pendulum-on-motor", settings={"constants.stiffness": 90.0, "constants.rest": -1.5 * wrong})
    for about in (None, "undeformed"):
        yield from parflex.linear_model(robot, {"motor": -0.5, "arm": -0.3 * wrong}, about=about).diagnostics
    upright = {"motor": np.pi / 2 if wrong else -np.pi / 2}
    yield from caught(lambda: parflex.equilibrium(load_robot("arm-above-motor"), upright))
    pose = {"arm": -1.2 if wrong else -np.pi / 2}
    yield from parflex.simulate(load_robot("hung-beam"), None, 1e-3, pose=pose, start="equilibrium").diagnostics


@case("unknown-zero-dynamics", "not-in-equilibrium")
def _(wrong, folder, patch):
    def refuse(*_):
        raise parflex.SingularError("no equilibrium")

    if wrong:
        patch.setattr("parflex.dynamics.dynamics.zero_dynamics", refuse)
    robot, without = parflex.load("gough-stewart-flexible"), [] if wrong else ["gravity"]
    yield from parflex.inverse_dynamics(robot, velocity={"x": 0.0}, without=without).diagnostics


@case("exceeded-on-path", "unchecked-cables", "velocity-jump")
def _(wrong, folder, patch):
    patch.setattr("parflex.trajectories.time_optimal.WARNED", -1.0 if wrong else 1e-2)
    move = {"moves": [{"block": 0.1}], "law": "time-optimal", "velocity_limit": 1.0, "acceleration_limit": 5.0}
    yield from parflex.plan_motion(load_robot("block"), move).diagnostics
    yield from _loose(parflex.load("planar-cable"), Fake(high=np.array([np.inf if wrong else 1.0])))
    yield from jump_warnings([{"joint": "crank", "jump": 1.0, "time": 0.1}] * wrong)


@case("interrupted", "stopped", "changed-coordinates", "energy-balance", "identical-stiction")
def _(wrong, folder, patch):
    ends = [{"status": "interrupted", "time": 1.0}, {"status": "diverged", "stopped_at": 1.0, "why": "it did"}]
    for summary in ends if wrong else [{"status": "ok"}]:
        yield from stop_warnings(summary)
    yield from partition_changed([{"time": 0.1, "independent": ["a"]} if wrong else {"time": 0.1}])
    names = ("energy.elastic", "energy.gravity", "work.input", "work.loss")
    columns = {name: np.zeros(3) for name in names} | {"energy.kinetic": np.array([1.0, 2.0, 1.0])}
    columns |= {"energy.total": columns["energy.kinetic"] if wrong else np.ones(3)}
    yield from balance_warnings(columns, "rk4", 1.0)
    yield from identical_joint_warnings(Fake(sticking=[Fake(name="a")]), {"alike_rests": int(wrong)})


@case("step-error", "inconsistent-accelerations")
def _(wrong, folder, patch):
    report = StepReport(1e-3, "given", None, (1e-3, 1e-3, 1e-3, 0.7 * wrong))
    yield from report.warnings(1.0)
    error = {"frame": "tip", "metres": 0.1 * wrong, "radians": 0.0}
    yield from error_warnings({"tip.x": np.array([0.0, 1.0])}, error, 1.0, False)
    shares = {"crank.ax": 0.5} if wrong else {}
    yield from inconsistency_warnings(Fake(robot=parflex.load("four-bar")), shares, ["crank.ax"], "rk4", 1e-3, 1)


@case("longer-run", "short-contact", "load-inside-beam")
def _(wrong, folder, patch):
    def slid(effort=0.0, stiffness=0.0, time=0.02, **words):
        settings = {"frame.block.spring": {"stiffness": stiffness}} if stiffness else None
        robot = load_robot("block", settings=settings)
        return parflex.simulate(robot, None, time, effort={"block": effort}, **words).diagnostics

    yield from slid(time=0.01, out_step=0.003 if wrong else 0.001)
    robot, start = ball(spring=0.0, stiffness=1e9, damping=1.8e4), {"pose": {"ball": 0.0}, "velocity": {"ball": 2.0}}
    step = 1e-4 if wrong else 1e-5  # contacts take 1.25e-4 s
    yield from parflex.simulate(robot, None, 0.06, start=start, stops=True, step=step).diagnostics
    wrench = {"bar@0.5" if wrong else "bar.tip": [0, 1, 0]}
    yield from parflex.simulate(bars.cantilever(folder), None, 1e-3, wrench=wrench, frames=list(wrench)).diagnostics


@case("refinement-interrupted", "refinement-stopped")
def _(wrong, folder, patch):
    for ending in ("interrupted", "diverged") if wrong else ("ok",):
        runs = []

        def simulate(robot, runs=runs, ending=ending, **words):
            runs.append(parflex.simulate(robot, None, 2e-3, start="rest", step=1e-3))
            if len(runs) > 1 and ending == "interrupted":
                raise KeyboardInterrupt
            return replace(runs[-1], summary=runs[-1].summary | {"status": ending}) if len(runs) > 1 else runs[-1]

        yield from converged_run(simulate, bars.cantilever(folder), 0.5, {}).diagnostics


def identified(record=None, **words):
    """Diagnostics of the sliding axis, by its record."""
    return parflex.identify(slide(), record or axis_record(), BY_HAND, cutoff=50, **words).diagnostics


@case("held-values", "saturated-effort", "replaced-spikes", "repeated-record", "failed-validation")
def _(wrong, folder, patch):
    record, held = dict(axis_record()), np.arange(4000) // 5 * 5 if wrong else np.arange(4000)
    yield from identified({name: values if name == "t" else values[held] for name, values in record.items()})
    top, spiked = np.abs(record["i"]).max() * (0.6 if wrong else 2.0), record["x"].copy()
    yield from identified(record | {"i": np.clip(record["i"], -top, top)})
    spiked[[700, 1200]] += [40.0 * wrong, -40.0 * wrong]
    yield from identified(record | {"x": spiked}, validate=record | {"x": spiked} if wrong else axis_record(1.0))
    yield from identified(friction="direction", validate=axis_record(9.0 if wrong else 1e-3))


@case("moved-by-noise", "suspected-mistake", "dead-effort")
def _(wrong, folder, patch):
    if wrong:
        patch.setattr(identify, "units_and_signs", lambda *_: Diagnostic("suspected-mistake", "degrees"))
        patch.setattr(diagnostics, "only_noise", lambda *_: np.array([True]))
    for least in (-1.0, np.inf) if wrong else (1.0,):
        patch.setattr(diagnostics, "BIASED", least)
        yield from identified(friction="symmetric" if wrong else "direction")


@case("above-noise", "other-controller", "far-positions", "impossible-parameter", "not-in-file")
def _(wrong, folder, patch):
    misfits = [Misfit("r.csv", "axis", 0.5 if wrong else 1e-4, 1e-4)]
    yield from (*residuals_above_noise(misfits, misfits), *residuals_above_noise(misfits, []))
    limited = parflex.load("emps", settings={"frame.axis.limits": [-0.1, 0.1 if wrong else 1e3]})
    yield from _beyond_limits(limited, ["axis"], np.array([[0.0], [0.5]]))
    yield from changed_rows(slide(), {"M[axis]": 8.0, "FV[axis]": -1.0 if wrong else 1.0})[1]
    yield from unsaved_options({"settings": {"a": 1} if wrong else {}, "payload": None})


@case("contradicting-encoders", "contradicting-sensor")
def _(wrong, folder, patch):
    robot = parflex.load("four-bar")
    closed, at = np.tile(robot.home, (9, 1)), robot.tree.links[robot.tree.number("rocker")].q.start
    patch.setattr(diagnostics, "filtered_motion", lambda *_: Fake(position=np.zeros((9, 1))))
    patch.setattr(diagnostics, "kept_instants", lambda values, choice: values)
    patch.setattr(diagnostics, "position_noise", lambda record: np.full(1, 1e-6))
    for threshold in ("CALIBRATION", "SURE") if wrong else ():
        patch.setattr(diagnostics, threshold, -1.0)
    regressor = Fake(spare=True, robot=robot, closed=lambda position: closed)
    records = [Fake(name="r.csv", passive={"rocker": closed[:, at] + 0.3 * wrong})]
    yield from diagnostics.open_loops(regressor, records, None)
    yield from diagnostics.contradicting_sensors(regressor, records, Fake(inside=lambda column: column))


@case("unused-payload")
def _(wrong, folder, patch):
    named = {"loaded.npz": [3.0, 0, 0, 0.1]} | ({"other.npz": [1.0, 0, 0, 0]} if wrong else {})
    records, options = loaded(folder, 3.0), {"friction": "direction", "cutoff": 50}
    yield from parflex.identify(slide(), records, BY_HAND | {"payload": named}, **options).diagnostics


@case("incomplete-measurements", "identified-modes", "other-solution", "unsure-pair", "held-out-miss", "unpaired-mode")
def _(wrong, folder, patch):
    yield from read_rows([{"frequency_hz": 14.0} | ({} if wrong else {"deviation_hz": 0.1})])[1]
    responses = frf.Responses(np.linspace(1, 9, 9), np.ones((1, 9)), ("a.x",), ("a.x",), "accelerance")
    modes = np.array([-1 + 30j]), np.array([[0.1, 0.1]]), np.ones((1, 1))
    patch.setattr(frf, "read_responses", lambda *_: responses)
    patch.setattr(frf, "identified_modes", lambda *_: modes)
    yield from read_measured([{"responses": "frf.csv"} if wrong else {"frequency_hz": 5.0, "deviation_hz": 0.1}])[1]
    yield from _of_others([{"parameters": {"k": {"value": 1.0}}, "more": 0.1}] * wrong)
    pair = {"mode": 1, "pose": "home", "mac": 0.2 if wrong else 1.0, "mac_of": "measured", "held_out": True}
    pair |= {"interval": (1.0, 2.0), "measured": 3.0 if wrong else 1.5}
    lost = [{"pose": "home", "measured": 9.0}] * wrong
    yield from FitReport._unsure(Fake(), [pair], lost)


@case("neglected-gravity", "undetermined-parameters", "strained-prior", "model-error")
def _(wrong, folder, patch):
    class Report(FitReport):
        def __init__(self):
            self.fitting = Fake(
                keys=["k"], error=np.array([0.1, 0.1]) * wrong, starts=3, freedoms=lambda *_: 2.0, prior=np.ones(1)
            )
            self.fit, self.shifted = Fake(shares=np.array([9.0 if wrong else 1.0])), np.zeros(1, dtype=bool)
            self.undetermined = Fake(combinations=[np.ones(1)] * wrong, numbers=[True])

    yield from Report()._diagnostics([], [])
    patch.setattr(before, "modes_at", lambda *_: Fake(modes=Fake(frequencies=np.array([12.0 if wrong else 10.0]))))
    patch.setattr(before, "modes_needed", lambda rows: 1)
    fitting = Fake(
        case=ResponseCase(), robot=parflex.load("four-bar"), of_pose={"home": [0]}, states={"home": "undeformed"},
        rows=[Fake(deviation=0.01)], start={"home": Fake(frequencies=np.array([10.0]))},
        pairing=Fake(pairs={"home": [0]}),
    )  # fmt: skip
    yield from before.gravity_warnings(fitting)


@case("suspected-units", "missing-inertia", "changed-by-import", "outside-bounds", "not-optimal", "slow-sweep")
def _(wrong, folder, patch):
    frame = {"name": "a", "place": {"position": [500.0 if wrong else 0.5, 0, 0]}, "inertia": {"mass": int(not wrong)}}
    imported = Fake(frame=[frame], point=[], closure=[], element=[], coupling=[], joints=[])
    yield from (*_suspected_units(imported), *_missing_inertias(imported))
    joint = '<joint name="j" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/></joint>'
    joint += '<transmission name="t"><joint name="j"/></transmission>' * (not wrong)
    mass = '<inertial><mass value="1"/><inertia ixx="1e-6" iyy="1e-6" izz="1e-6" ixy="0" ixz="0" iyz="0"/></inertial>'
    links = f'<link name="a"/><link name="b">{mass}</link>'
    (folder / "arm.urdf").write_text(f'<robot name="arm">{links}{joint}</robot>')
    yield from parflex.import_robot(folder / "arm.urdf", folder / "arm.toml").diagnostics
    file = Fake(variables={"a.b": Fake(bounds=(0.0, 1.0), choices=None)}, samples=Fake(kind="list"))
    yield from beyond_bounds(file, {"a.b": np.array([2.0 if wrong else 0.5])})
    fit = Fake(robot=Fake(diagnostics=()), status="stopped" if wrong else "optimal", message="too many designs")
    yield from parflex.Optimised.diagnostics.fget(fit)
    rows = Fake(seconds_left=lambda designs: 1e5 * wrong, reason="", first=1.0)
    yield from _warn_if_slow(rows, Fake(count=2, done=np.zeros(0, dtype=int)), {})


@case("no-workers", "no-cache", "mesh-not-shown", "other-port", "library-warning")
def _(wrong, folder, patch):
    client = Fake(run=lambda source: {} if wrong else {"worker": source_digest()})
    yield from caught(lambda: _check_workers(client))
    folder.chmod(0o777 if wrong else 0o700)
    yield from caught(lambda: _private(folder, folder.stat()))
    visual = Fake(frame="crank", file=str(folder / "none.stl"), scale=1.0, rotation=[0, 0, 0], position=[0, 0, 0])
    shown = Fake(tree=parflex.load("four-bar").tree, description=Fake(visual=[visual] * wrong))
    yield from caught(lambda: placed_meshes(shown))
    viewer, diagnostics = Fake(server=Fake(get_port=lambda: 8081), address="http://127.0.0.1:8081"), []
    _tell(viewer, 8080 if wrong else 8081, None, True, diagnostics)
    yield from diagnostics
    own = parflex.ParflexWarning(Diagnostic("slow-sweep", "slow"))
    yield diagnostic_of(RuntimeWarning("overflow") if wrong else own)
