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
from support.coupled_robots import PAIR, pair
from support.recordings import BY_HAND, axis_record, loaded, slide
from support.robots import load_robot, write_robot
from support.stop_robots import ball

import parflex
from parflex.bodies.superelement import damping_note
from parflex.cli.identification import _unsaved_option_warnings
from parflex.cli.output import diagnostic_of
from parflex.cli.view import _tell
from parflex.codegen.cache import _private
from parflex.design.design_state import ResponseCase
from parflex.design.sweep import _warn_if_slow, beyond_bounds
from parflex.diagnostics import CODES, Diagnostic, read_diagnostics, reported, with_code
from parflex.exchange.import_robot import import_warnings
from parflex.forces.section_forces import missing_stress_warning
from parflex.identification import contradicting_encoders as encoders
from parflex.identification import passive_sensors as sensors
from parflex.identification import recorded_signals, usual_mistakes
from parflex.identification.didim import tracking_warnings
from parflex.identification.lack_of_fit import Misfit, misfit_doubts
from parflex.identification.payloads import gain_warnings, unused_payloads
from parflex.identification.robot_update import changed_rows
from parflex.integrators.driver import method_named
from parflex.jobs import _check_workers, source_digest
from parflex.robot.configuration import Condition
from parflex.robot.whole_check import unusual
from parflex.simulation.consistency import AccelerationFilter, inconsistency_warnings
from parflex.simulation.contact_report import identical_joint_warnings, stop_warnings_of
from parflex.simulation.diagnostics import balance_warnings, partition_changed, stop_warnings
from parflex.simulation.discontinuities import jump_warnings
from parflex.simulation.lost_phase import Vibrations, drift
from parflex.simulation.mesh_convergence import converged_run
from parflex.simulation.step_requests import StepChoice, error_warnings, step_warnings
from parflex.statics.zero_dynamics import ZeroDynamics
from parflex.trajectories.time_optimal import _loose
from parflex.updating import diagnostics as before
from parflex.updating import frequency_response as frf
from parflex.updating.measured import read_rows
from parflex.updating.result import FitReport, _of_others
from parflex.updating.update import read_measured
from parflex.view.meshes import placed_meshes

CASES = {}


def case(*codes):
    """Register a case of one or more codes: (wrong, folder, monkeypatch) -> diagnostics."""

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


# -- robots ---------------------------------------------------------------------------------------------------------


case("impossible-inertia")(
    lambda wrong, folder, patch: (
        parflex.load("dualemps", settings={"platform.inertia.ZZ": -1.0} if wrong else None).diagnostics
    )
)
case("superelement-matrices")(
    lambda wrong, folder, patch: damping_note(Fake(data=Fake(D=np.eye(6) if wrong else None), X=np.eye(6)))
)
case("slack-cable")(
    lambda wrong, folder, patch: (
        load_robot("sprung-beams", settings={"element.stay.rest": 9.0 if wrong else 0.5}).diagnostics
    )
)


@case("immobile-joint")
def _(wrong, folder, patch):
    twice = '[[coupling]]\nname = "b"\njoint = "wheel"\nterms = { pinion = 3 }\n'
    return pair(folder, "terms = { pinion = -2 }", twice if wrong else "").start_warnings()


@case("far-start")
def _(wrong, folder, patch):
    text = PAIR.replace('name = "wheel"', f'name = "wheel"\nstart = {0.5 if wrong else -1.0}')
    text = text.replace('"pinion"', '"pinion"\nstart = 0.5')
    mesh = '[[coupling]]\nname = "mesh"\njoint = "wheel"\nterms = { pinion = -2 }\n'
    return parflex.load(write_robot(folder, text + mesh)).start_warnings()


@case("position-limit", "velocity-limit", "effort-limit")
def _(wrong, folder, patch):
    keys = {"limits": [-0.1, 0.1], "velocity_limit": 1.0, "effort_limit": 0.01}
    settings = {f"frame.crank.{key}": value for key, value in keys.items()}
    robot = parflex.load("four-bar", settings=settings if wrong else None)
    return parflex.inverse_dynamics(robot, "home", velocity={"crank": 2.0}).diagnostics


case("stretched-leg")(
    lambda wrong, folder, patch: (
        parflex.configure(load_robot("slider-crank-flexible"), None if wrong else {"crank": 0.5}).diagnostics
    )
)


@case("undriven-motion")
def _(wrong, folder, patch):
    geared = {"actuation.geared": {"actuated": ["motor", "spindle"]}}
    robot = load_robot("screw-jack", settings=geared, actuation="geared" if wrong else "both")
    return parflex.configure(robot).condition.diagnostics


@case("near-singular")
def _(wrong, folder, patch):
    dead = float(np.arctan2(0.25, 0.35))
    return parflex.inverse_dynamics(load_robot("arm-on-strut"), {"arm": dead - 1e-6 if wrong else 0.1}).diagnostics


case("singular")(lambda wrong, folder, patch: Condition({}, 1e9 if wrong else 10.0, 1.0).diagnostics)


@case("redundant-closures", "unused-constant")
def _(wrong, folder, patch):
    text = 'format = 1\nname = "arm"\n[[frame]]\nname = "a"\njoint = "revolute"\n' + "[constants]\nspare = 3\n" * wrong
    return [*unusual(parflex.load(write_robot(folder, text))), *unusual(parflex.load("par4" if wrong else "four-bar"))]


# -- forces and statics ----------------------------------------------------------------------------------------------


case("redundant-motors")(
    lambda wrong, folder, patch: parflex.inverse_dynamics(parflex.load("planar-cable" if wrong else "5r")).diagnostics
)


@case("cables-not-taut")
def _(wrong, folder, patch):
    pose = {"x": 0, "y": 0, "theta": 1.3} if wrong else None
    return parflex.inverse_dynamics(parflex.load("planar-cable"), pose).diagnostics


@case("pushing-cable")
def _(wrong, folder, patch):
    preload = {"lower_left.drum": 0.1} if wrong else None
    return parflex.inverse_dynamics(parflex.load("planar-cable"), preload=preload).diagnostics


case("undetermined-forces")(
    lambda wrong, folder, patch: parflex.inverse_dynamics(parflex.load("par4"), reactions=wrong).diagnostics
)


@case("unknown-stress")
def _(wrong, folder, patch):
    chains = {name: Fake(parts=Fake(fibres=fibres)) for name, fibres in (("a", 1), ("b", None if wrong else 1))}
    frames = [Fake(name="a", beam=1), Fake(name="b", beam=1)]
    return missing_stress_warning(Fake(description=Fake(frame=frames)), chains)


@case("load-inside-beam")
def _(wrong, folder, patch):
    wrench = {"bar@0.5" if wrong else "bar.tip": [0, 1, 0]}
    return parflex.simulate(bars.cantilever(folder), None, 1e-3, wrench=wrench, frames=list(wrench)).diagnostics


@case("axial-load", "large-deflection")
def _(wrong, folder, patch):
    robot, load = load_robot("column"), 1.0 if wrong else 1e-3
    return [
        *parflex.deflection(robot, wrench={"end": [20 * load, 0, 0]}, about="equilibrium").diagnostics,
        *parflex.deflection(robot, wrench={"end": [0, 5 * load, 0]}, about="equilibrium").diagnostics,
    ]


@case("beyond-first-order")
def _(wrong, folder, patch):
    wrench = {"bar.tip": [0, 300.0 if wrong else 1.0, 0]}
    return parflex.deflection(bars.cantilever(folder), wrench=wrench, about="undeformed").diagnostics


@case("neglected-stiffness")
def _(wrong, folder, patch):
    patch.setattr("parflex.statics.small_deformation.NEGLECTED_STIFFNESS", -1.0 if wrong else 0.1)
    return parflex.deflection(parflex.load("gough-stewart-flexible"), about="undeformed").diagnostics


case("few-elements")(
    lambda wrong, folder, patch: (
        parflex.natural_frequencies(bars.cantilever(folder, elements=1 if wrong else 8), modes=2).diagnostics
    )
)


@case("beyond-band")
def _(wrong, folder, patch):
    robot = bars.beam(folder, "elements = 8, reduce = { error = 1e-3, band = 50 }")
    return parflex.natural_frequencies(robot, modes=4 if wrong else 1).diagnostics


@case("not-refined", "not-converged")
def _(wrong, folder, patch):
    patch.setattr("parflex.statics.modes.MOST_COORDINATES", 9 if wrong else 99)
    rod = '[[frame]]\nname = "rod"\nbeam = { length = 0.1, material = "steel", section = "bar", reduce = REDUCE }\n'
    robot = bars.beam(folder, more=rod.replace("REDUCE", "{ error = 0.1, band = 50 }") * wrong)
    return parflex.natural_frequencies(robot, modes=1, converge=1e-3).diagnostics


@case("about-equilibrium", "unbalanced-tension")
def _(wrong, folder, patch):
    robot = load_robot("pendulum-on-motor", settings={"constants.stiffness": 90.0, "constants.rest": -1.5 * wrong})
    asked = {"motor": -0.5, "arm": -0.3 * wrong}
    models = [parflex.linear_model(robot, asked, about=about) for about in (None, "undeformed")]
    return [diagnostic for model in models for diagnostic in model.diagnostics]


@case("unstable-equilibrium")
def _(wrong, folder, patch):
    pose = {"motor": np.pi / 2 if wrong else -np.pi / 2}
    return caught(lambda: parflex.equilibrium(load_robot("arm-above-motor"), pose))


@case("unsymmetric-stiffness")
def _(wrong, folder, patch):
    bar, load = bars.cantilever(folder, motion="spatial", elements=2), [0, 0, 0, 8.0 * wrong, 0, 0]
    return parflex.natural_frequencies(bar, about="equilibrium", wrench={"bar.tip": load}).diagnostics


case("unstable-zero-dynamics")(
    lambda wrong, folder, patch: (
        ZeroDynamics(np.array([1.0 if wrong else -1.0], dtype=complex), Fake(frame="tip")).diagnostics
    )
)


# -- dynamics and arrays ---------------------------------------------------------------------------------------------


@case("unknown-zero-dynamics", "not-in-equilibrium")
def _(wrong, folder, patch):
    def refuse(*_):
        raise parflex.SingularError("no equilibrium")

    calm = ["gravity"] if not wrong else []
    if wrong:
        patch.setattr("parflex.dynamics.dynamics.zero_dynamics", refuse)
    robot = parflex.load("gough-stewart-flexible")
    return parflex.inverse_dynamics(robot, velocity={"x": 0.0}, without=calm).diagnostics


case("underactuated")(
    lambda wrong, folder, patch: (
        parflex.inverse_dynamics(load_robot("cart-pendulum") if wrong else parflex.load("four-bar")).diagnostics
    )
)


@case("failed-states", "doubtful-states")
def _(wrong, folder, patch):
    robot = parflex.load("5r", settings={"legs.frame.1.limits": [-3.0, 0.0]} if wrong else None)
    q = np.array([robot.home, robot.home])
    q[1, -1] += 0.1 * wrong
    return caught(lambda: parflex.inverse_dynamics(robot, q))


# -- motions ---------------------------------------------------------------------------------------------------------


@case("exceeded-on-path", "unchecked-cables")
def _(wrong, folder, patch):
    patch.setattr("parflex.trajectories.time_optimal.WARNED", -1.0 if wrong else 1e-2)
    move = {"moves": [{"block": 0.1}], "law": "time-optimal", "velocity_limit": 1.0, "acceleration_limit": 5.0}
    limits = Fake(high=np.array([np.inf if wrong else 1.0]))
    plan = parflex.plan_motion(load_robot("block"), move)
    return [*plan.diagnostics, *_loose(parflex.load("planar-cable"), limits)]


# -- runs ------------------------------------------------------------------------------------------------------------


def slid(effort=0.0, spring=0.0, **words):
    """Diagnostics of a run of a mass that a motor pushes."""
    robot = load_robot("block", settings={"frame.block.spring": {"stiffness": spring}} if spring else None)
    return parflex.simulate(robot, None, words.pop("time", 0.02), effort={"block": effort}, **words).diagnostics


case("longer-run")(lambda wrong, folder, patch: slid(time=0.01, out_step=0.003 if wrong else 0.001))


@case("interrupted", "stopped")
def _(wrong, folder, patch):
    states = [{"status": "interrupted", "time": 1.0}, {"status": "diverged", "stopped_at": 1.0, "why": "it did"}]
    return [each for state in (states if wrong else [{"status": "ok"}]) for each in stop_warnings(state)]


case("changed-coordinates")(
    lambda wrong, folder, patch: partition_changed([{"time": 0.1, "independent": ["a"]} if wrong else {"time": 0.1}])
)


@case("energy-balance")
def _(wrong, folder, patch):
    names = ("energy.elastic", "energy.gravity", "work.input", "work.loss")
    columns = {name: np.zeros(3) for name in names} | {"energy.kinetic": np.array([1.0, 2.0, 1.0])}
    columns |= {"energy.total": columns["energy.kinetic"] if wrong else np.ones(3)}
    return balance_warnings(columns, "rk4", 1.0)


@case("limit-without-stop")
def _(wrong, folder, patch):
    limits = {"frame.crank.limits": [-9.0, 9.0]} if wrong else None
    return stop_warnings_of(Fake(robot=parflex.load("four-bar", settings=limits)))


@case("short-contact")
def _(wrong, folder, patch):
    robot = ball(spring=0.0, stiffness=1e9, damping=1.8e4)  # contacts of 1.25e-4 s
    start, step = {"pose": {"ball": 0.0}, "velocity": {"ball": 2.0}}, 1e-4 if wrong else 1e-5
    return parflex.simulate(robot, None, 0.06, start=start, stops=True, step=step).diagnostics


case("identical-stiction")(
    lambda wrong, folder, patch: identical_joint_warnings(Fake(sticking=[Fake(name="a")]), {"alike_rests": int(wrong)})
)
case("velocity-jump")(
    lambda wrong, folder, patch: jump_warnings([{"joint": "crank", "jump": 1.0, "time": 0.1}] * wrong)
)


@case("inconsistent-accelerations")
def _(wrong, folder, patch):
    asked, beside = inconsistency_warnings(
        Fake(robot=parflex.load("four-bar")), {"crank.ax": 0.5} if wrong else {}, ["crank.ax"],
        AccelerationFilter("gauss4", Fake(begin=0.0, every=1, step=1e-3), ""),
    )  # fmt: skip
    return [*asked, *beside]


@case("lost-phase", "unresolved-forces")
def _(wrong, folder, patch):
    seen = Vibrations(np.array([100.0]), np.array([1e-3]), np.zeros(1), 1e-9, False, 1e-3)
    lost = drift((seen,), 1.0, method_named("gauss4").tableau, 0.03 if wrong else 1e-5)
    return [*lost, *StepChoice(forces="at 6 Hz" * wrong).of_forces]


@case("too-many-steps")
def _(wrong, folder, patch):
    patch.setattr("parflex.simulation.default_step.MOST_STEPS", 20 if wrong else 10**7)
    return slid(lambda t: 2000 * np.exp(-(((t - 0.01) / 0.0006) ** 2)), 8e6)


@case("unknown-frequencies")
def _(wrong, folder, patch):
    patch.setattr("parflex.simulation.default_step.MOST_COORDINATES", 0 if wrong else 600)
    return slid(1.0, 100.0)


case("fast-input")(
    lambda wrong, folder, patch: slid(lambda t: 10 * np.sin((2000 if wrong else 20) * np.pi * t), time=0.04)
)
case("slow-convergence")(
    lambda wrong, folder, patch: step_warnings(
        1e-3, {"rejected": 500 * wrong, "steps": 1000, "evaluations": 4000}, "gauss4"
    )
)


@case("step-error")
def _(wrong, folder, patch):
    error = {"frame": "tip", "metres": 0.1 * wrong, "radians": 0.0}
    return error_warnings({"tip.x": np.array([0.0, 1.0])}, error, 1.0, False)


@case("changed-start")
def _(wrong, folder, patch):
    pose = {"arm": -1.2 if wrong else -np.pi / 2}
    return parflex.simulate(load_robot("hung-beam"), None, 1e-3, pose=pose, start="equilibrium").diagnostics


@case("refinement-interrupted", "refinement-stopped")
def _(wrong, folder, patch):
    def runs(ending):
        runs = []

        def simulate(robot, **words):
            run = parflex.simulate(robot, None, 2e-3, start="rest", step=1e-3)
            runs.append(run)
            if len(runs) > 1 and ending == "interrupted":
                raise KeyboardInterrupt
            return replace(run, summary=run.summary | {"status": ending}) if len(runs) > 1 and ending else run

        return converged_run(simulate, bars.cantilever(folder), 0.5, {}).diagnostics

    endings = ("interrupted", "diverged") if wrong else ("",)
    return [diagnostic for ending in endings for diagnostic in runs(ending)]


# -- records ---------------------------------------------------------------------------------------------------------


def identified(record=None, **words):
    """Diagnostics of the sliding axis, by its record."""
    return parflex.identify(slide(), record or axis_record(), BY_HAND, cutoff=50, **words).diagnostics


@case("held-values", "saturated-effort", "replaced-spikes")
def _(wrong, folder, patch):
    if not wrong:
        return identified()
    held, record = np.arange(4000) // 5 * 5, dict(axis_record())
    top, spiked = np.abs(record["i"]).max() * 0.6, record["x"].copy()
    spiked[[700, 1200]] += [40.0, -40.0]
    records = (
        {name: values if name == "t" else values[held] for name, values in record.items()},
        record | {"i": np.clip(record["i"], -top, top)},
        record | {"x": spiked},
    )
    return [diagnostic for each in records for diagnostic in identified(each)]


case("repeated-record")(lambda wrong, folder, patch: identified(validate=axis_record(0.0 if wrong else 1.0)))


@case("opposite-sign")
def _(wrong, folder, patch):
    other = dict(axis_record(1.0))
    return identified([axis_record(), other | {"i": -other["i"] if wrong else other["i"]}])


case("failed-validation")(
    lambda wrong, folder, patch: identified(friction="direction", validate=axis_record(9.0 if wrong else 1e-3))
)


@case("unexplained-effort", "long-rest", "moved-by-stiction", "moved-by-noise", "suspected-mistake")
def _(wrong, folder, patch):
    if wrong:
        for name in ("result.UNEXPLAINED", "result.RESTS", "recorded_signals.SURE", "recorded_signals.LEAST"):
            patch.setattr(f"parflex.identification.{name}", -1.0)
        patch.setattr("parflex.identification.noise_of_positions.SEEN", -1.0)
        patch.setattr("parflex.identification.identify.suspicions", lambda *_: ["positions are in degrees"])
        patch.setattr("parflex.identification.identify.misfit_doubts", lambda *_: [])
        found = identified(friction="symmetric")
        patch.setattr("parflex.identification.noise_of_positions.SEEN", np.inf)
        return [*found, *identified(friction="symmetric")]
    return identified(friction="direction")


@case("above-noise", "other-controller")
def _(wrong, folder, patch):
    misfits = [Misfit("r.csv", "axis", 0.5 if wrong else 1e-4, 1e-4)]
    return [*misfit_doubts(misfits, misfits), *misfit_doubts(misfits, [])]


@case("dead-effort")
def _(wrong, folder, patch):
    patch.setattr(recorded_signals, "only_noise", lambda *_: np.array([wrong]))
    return identified()


@case("far-positions")
def _(wrong, folder, patch):
    patch.setattr(usual_mistakes, "whole_turns", lambda *_: None)
    far = [("positions of 'axis' are between -90 and 90 rad, beyond its limits", "if they are degrees")] * wrong
    record = Fake(name="r.csv", far=far, position=np.zeros((1, 1)))
    patch.setattr(usual_mistakes, "_turns_on", lambda trial: not wrong)
    return usual_mistakes.far_positions(Fake(regressor=None, record=record), None)


@case("contradicting-encoders")
def _(wrong, folder, patch):
    robot = parflex.load("four-bar")
    patch.setattr(encoders, "_open", lambda *_: 0.1 * wrong)
    patch.setattr(encoders, "filtered_motion", lambda *_: Fake(position=np.zeros((9, 1))))
    patch.setattr(encoders, "kept_instants", lambda values, choice: values)
    patch.setattr(encoders, "position_noise", lambda record: np.full(1, 1e-6))
    patch.setattr(encoders, "encoder_that_is_wrong", lambda *_: None)
    return encoders.contradictions(Fake(spare=True, robot=robot), [Fake(name="r.csv")], None)


@case("contradicting-sensor")
def _(wrong, folder, patch):
    robot = parflex.load("four-bar")
    closed = np.tile(robot.home, (9, 1))
    link = robot.tree.links[robot.tree.number("rocker")]
    record = Fake(name="r.csv", passive={"rocker": closed[:, link.q.start] + 0.3 * wrong})
    patch.setattr(sensors, "filtered_motion", lambda *_: Fake(position=None))
    patch.setattr(sensors, "kept_instants", lambda values, choice: values)
    regressor = Fake(robot=robot, closed=lambda position: closed)
    return sensors.passive_doubts(regressor, [record], Fake(inside=lambda column: column))


case("impossible-parameter")(
    lambda wrong, folder, patch: changed_rows(slide(), {"M[axis]": 8.0, "FV[axis]": -1.0 if wrong else 1.0})[1]
)
case("not-in-file")(
    lambda wrong, folder, patch: _unsaved_option_warnings({"settings": {"a": 1} if wrong else {}, "payload": None})
)


@case("other-payload", "unused-payload", "scaled-payload")
def _(wrong, folder, patch):
    named = {"loaded.npz": [3.0, 0, 0, 0.1]} | ({"other.npz": [1.0, 0, 0, 0]} if wrong else {})
    records, options = loaded(folder, 3.6 if wrong else 3.0), {"friction": "direction", "cutoff": 50}
    fit = parflex.identify(slide(), records, BY_HAND | {"payload": named}, **options)
    gains = gain_warnings({"axis": {"value": 2.0 if wrong else 1.0, "given": 1.0, "deviation": 1e-3}})
    return [*fit.diagnostics, *gains, *unused_payloads(Fake(payload={}), [])]


@case("missed-tracking")
def _(wrong, folder, patch):
    shares = [(np.array([0.9 * wrong]), np.array([1e3]))]
    return tracking_warnings(["axis"], Fake(law="pd"), [Fake(name="r.csv")], shares, [Fake(relative_error=0.01)])


# -- measured modes --------------------------------------------------------------------------------------------------


case("incomplete-measurements")(
    lambda wrong, folder, patch: read_rows([{"frequency_hz": 14.0} | ({} if wrong else {"deviation_hz": 0.1})])[1]
)


@case("identified-modes")
def _(wrong, folder, patch):
    responses = frf.Responses(np.linspace(1, 9, 9), np.ones((1, 9)), ("a.x",), ("a.x",), "accelerance")
    patch.setattr(frf, "read_responses", lambda *_: responses)
    found = (np.array([-1 + 30j]), np.array([[0.1, 0.1]]), np.ones((1, 1)))
    patch.setattr(frf, "identified_modes", lambda *_: found)
    source = {"responses": "frf.csv"} if wrong else {"frequency_hz": 5.0, "deviation_hz": 0.1}
    return read_measured([source])[1]


@case("neglected-gravity", "suspected-units", "missing-inertia")
def _(wrong, folder, patch):
    patch.setattr(before, "modes_at", lambda *_: Fake(modes=Fake(frequencies=np.array([12.0 if wrong else 10.0]))))
    patch.setattr(before, "modes_needed", lambda rows: 1)
    fitting = Fake(
        case=ResponseCase(), robot=parflex.load("four-bar"), of_pose={"home": [0]}, states={"home": "undeformed"},
        rows=[Fake(deviation=0.01)], start={"home": Fake(frequencies=np.array([10.0]))}, pairs={"home": [0]},
    )  # fmt: skip
    frame = {"name": "a", "place": {"position": [500.0 if wrong else 0.5, 0, 0]}, "inertia": {"mass": int(not wrong)}}
    source = Fake(frame=[frame], point=[], closure=[], element=[], coupling=[], joints=[])
    return [*before.gravity_warnings(fitting), *import_warnings(source)]


@case("undetermined-parameters", "strained-prior", "model-error")
def _(wrong, folder, patch):
    class Report(FitReport):
        def __init__(self):
            self.fitting = Fake(keys=["k"], error=np.array([0.1, 0.1]) * wrong, starts=3, freedoms=lambda *_: 2.0)
            self.fit, self.without_error, self.freedoms, self.shifted = 0, 1, 5.0, np.zeros(1, dtype=bool)
            self.undetermined = Fake(combinations=[np.ones(1)] * wrong, numbers=[True])

        def _strained(self, fit):
            return {"k": 9.0} if wrong else {}

    return Report()._diagnostics([], {}, [])


@case("unsure-pair", "held-out-miss", "unpaired-mode")
def _(wrong, folder, patch):
    pair = {"mode": 1, "pose": "home", "mac": 0.2 if wrong else 1.0, "mac_of": "measured", "held_out": True}
    pair |= {"interval": (1.0, 2.0), "measured": 3.0 if wrong else 1.5}
    lost = [{"pose": "home", "measured": 9.0}] * wrong
    return FitReport._unsure(Fake(_too_many=lambda pose: ""), [pair], lost)


case("other-solution")(
    lambda wrong, folder, patch: _of_others([{"parameters": {"k": {"value": 1.0}}, "more": 0.1}] * wrong)
)


# -- files, studies and the program ----------------------------------------------------------------------------------


@case("changed-by-import")
def _(wrong, folder, patch):
    joint = '<joint name="j" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/></joint>'
    drive = '<transmission name="t"><joint name="j"/></transmission>' * (not wrong)
    (folder / "arm.urdf").write_text(f'<robot name="arm"><link name="a"/><link name="b"/>{joint}{drive}</robot>')
    return parflex.import_robot(folder / "arm.urdf", folder / "arm.toml").diagnostics


@case("outside-bounds")
def _(wrong, folder, patch):
    variable = Fake(bounds=(0.0, 1.0), choices=None)
    file = Fake(variables={"constants.a": variable}, samples=Fake(kind="list"))
    return beyond_bounds(file, {"constants.a": np.array([2.0 if wrong else 0.5])})


@case("not-optimal")
def _(wrong, folder, patch):
    fit = Fake(robot=Fake(diagnostics=()), status="stopped" if wrong else "optimal", message="too many designs")
    return parflex.Optimised.diagnostics.fget(fit)


@case("slow-sweep")
def _(wrong, folder, patch):
    rows = Fake(seconds_left=lambda designs: 1e5 * wrong, reason="", first=1.0)
    return _warn_if_slow(rows, Fake(count=2, done=np.zeros(0, dtype=int)), {})


@case("no-workers")
def _(wrong, folder, patch):
    client = Fake(run=lambda source: {} if wrong else {"worker": source_digest()})
    return caught(lambda: _check_workers(client))


@case("no-cache")
def _(wrong, folder, patch):
    folder.chmod(0o777 if wrong else 0o700)
    return caught(lambda: _private(folder, folder.stat()))


@case("mesh-not-shown")
def _(wrong, folder, patch):
    visual = Fake(frame="crank", file=str(folder / "none.stl"), scale=1.0, rotation=[0, 0, 0], position=[0, 0, 0])
    robot = parflex.load("four-bar")
    return caught(lambda: placed_meshes(Fake(tree=robot.tree, description=Fake(visual=[visual] * wrong))))


@case("other-port")
def _(wrong, folder, patch):
    viewer, diagnostics = Fake(server=Fake(get_port=lambda: 8081), address="http://127.0.0.1:8081"), []
    _tell(viewer, 8080 if wrong else 8081, None, True, diagnostics)
    return diagnostics


@case("library-warning")
def _(wrong, folder, patch):
    own = parflex.ParflexWarning(Diagnostic("slow-sweep", "slow"))
    return [diagnostic_of(RuntimeWarning("overflow") if wrong else own)]
