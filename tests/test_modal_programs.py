"""Models of robots with a flexible platform, driven by motors or by the platform, against Lagrange's equations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.comparison import largest, order_of, positions
from support.modal_programs import CASES, State, inputs, pair, states
from support.modal_robots import TWIST, steadily_bent
from support.oracles.modal_lagrange import ModalEnergyModel
from support.traced import long

import parflex
from parflex import Configuration, Robot
from parflex.models.elastic.driven_frame import held_frame, zero_dynamics
from parflex.models.forms.on_legs import leg_equations
from parflex.models.forms.on_legs.platform_legs import PlatformMotion, find_legs

QUICK = ("in the plane",)  # a small program; those of the others take ten seconds to make
LARGE = ("few modes of a plate", "lumps with momentum")
TOLERANCE = 1e-11  # asked for; rounding of systems of condition 1e4 leaves 1e-13


def twist(state: State, values: np.ndarray) -> dict[str, float]:
    """The motion of the platform by words."""
    words = ("x", "y", "theta") if state.planar else ("x", "y", "z", "rx", "ry", "rz")
    slide, turn = state.platform(values)
    return dict(zip(words, [*state.flat(slide).tolist(), *state.flat(turn, True).tolist()], strict=True))


@pytest.mark.few
@pytest.mark.parametrize("case", [pytest.param(case, marks=long if case in LARGE else []) for case in CASES])
def test_the_closed_form_of_the_papers_gives_the_numbers_of_lagrange(case, figure):
    """[Long2014, eqs. (44)-(49)], over numbers, at joint values of the closed robot."""
    robot, _ = pair(case)
    form, worst = find_legs(robot), 0.0
    assert form is not None and form.elastic is not None
    for state in states(case):
        values = [state.at.q[[robot.tree.links[j].q.start for j in leg.links]] for leg in form.legs]
        acceleration = state.platform(state.accelerations)
        modes, here = state.modes(state.accelerations), inputs(state)
        motion = [here[name] for name in ("velocity", "angular_velocity")]
        bent = [here[name] for name in ("elastic", "elastic_rate")]
        given = [acceleration[0] - robot.tree.gravity, acceleration[1]]
        platform = PlatformMotion(here["rotation"], here["position"], *motion, *given, *bent)
        effort, found = leg_equations.inverse(form, values, platform)
        still = replace(platform, a=-robot.tree.gravity, al=np.zeros(3))
        A, h, B, rows = leg_equations.equations(form, values, still)
        freedom = np.linalg.solve(A.astype(float), (B @ here["effort"] - h).astype(float))
        rigid = 3 if state.planar else 6
        direct = np.concatenate([freedom[:rigid], leg_equations.mode_accelerations(form, still, freedom, rows)])
        wanted = np.concatenate([state.flat(acceleration[0]), state.flat(acceleration[1], True), modes])
        worst = max(
            worst,
            largest((effort - here["effort"]).astype(float)) / state.size,
            largest((found - modes).astype(float)) / largest(modes),
            largest((direct - wanted).astype(float)) / largest(wanted),
        )
    figure(f"{case}: closed form against Lagrange", worst, TOLERANCE)
    assert worst < TOLERANCE


@pytest.mark.parametrize("model", ["inverse", "direct"])
@pytest.mark.parametrize("case", [pytest.param(case, marks=[] if case in QUICK else long) for case in CASES])
def test_compiled_models_of_a_flexible_platform_give_the_numbers_of_lagrange(case, model, figure):
    robot, _ = pair(case)
    program = parflex.model(robot, model, include=("motor-inertia",))
    worst = 0.0
    for state in states(case):
        given = {name: value for name, value in inputs(state).items() if name in program.inputs}
        for name in ("position", "rotation", "velocity", "acceleration"):
            given |= {name: state.flat(given[name])} if name in given else {}
        for name in ("angular_velocity", "angular_acceleration"):
            given |= {name: state.flat(given[name], True)} if name in given else {}
        found = program(**given)
        acceleration = state.platform(state.accelerations)
        wanted = {
            "effort": np.array(list(state.efforts.values())),
            "acceleration": state.flat(acceleration[0]),
            "angular_acceleration": state.flat(acceleration[1], True),
            "elastic_acceleration": state.modes(state.accelerations),
        }
        sizes = dict.fromkeys(wanted, largest(state.accelerations))
        sizes["effort"] = state.size
        for name in program.outputs:
            worst = max(worst, largest(found[name] - wanted[name]) / sizes[name])
    figure(f"{case}, {model}: program against Lagrange", worst, TOLERANCE)
    assert worst < TOLERANCE


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=long if case in LARGE or "lumps" in case else []) for case in CASES]
)
def test_the_inverse_model_of_a_driven_platform_is_that_of_lagrange(case, figure):
    """[Long2014, eq. (46)]: motion of the platform and rates of the modes in, efforts and modal accelerations out."""
    robot, oracle = pair(case)
    order, worst = order_of(robot, oracle), 0.0
    for state in states(case):
        velocity, acceleration = (twist(state, values) for values in (state.rates, state.accelerations))
        names = robot.tree.rate_names
        velocity |= {names[k]: float(state.rates[k]) for k in robot.tree.elastic}
        found = parflex.inverse_dynamics(robot, state.at, velocity, acceleration)
        assert largest(found.rates - state.rates) < 1e-12 * largest(state.rates)
        back = np.argsort(order)
        parts = [name for name in names if name.removeprefix("platform.") in TWIST]
        driven = {name: float(state.accelerations[names.index(name)]) for name in parts}
        qdd, efforts = oracle.platform_driven(positions(state.at), state.rates[back], driven, robot.actuated_names)
        missed = [found.efforts[name] - efforts[name] for name in efforts]
        again = [efforts[name] - state.efforts[name] for name in efforts]
        size = state.size
        worst = max(worst, largest(missed) / size, largest(found.accelerations - qdd[order]) / largest(qdd))
        assert largest(again) < TOLERANCE * size  # the oracle's own direct and inverse model
    figure(f"{case}: driven platform against Lagrange", worst, TOLERANCE)
    assert worst < TOLERANCE


def test_a_wrench_at_an_attachment_bends_the_platform_as_by_lagrange(figure):
    robot, oracle = pair("lumps")
    order, worst = order_of(robot, oracle), 0.0
    rng = np.random.default_rng(1)
    for state in states("lumps"):
        wrench = rng.uniform(-200, 200, 6)
        M, c = oracle.mass_matrix_and_bias(positions(state.at), state.rates[np.argsort(order)])
        force = oracle.frame_jacobian(positions(state.at), "leg2.attachment").T @ wrench
        for name, value in state.efforts.items():
            force[oracle.coordinates.index(name)] += value
        A, bias = oracle.closure_jacobian(positions(state.at), state.rates[np.argsort(order)])
        system = np.block([[M, A.T], [A, np.zeros((len(A), len(A)))]])
        expected = np.linalg.solve(system, np.concatenate([force - c, -bias]))[: len(M)][order]
        names = robot.tree.rate_names
        velocity = {
            name: float(state.rates[names.index(name)]) for name in state.at.independent_names if "mode" in name
        }
        velocity |= twist(state, state.rates)
        for frame in ("leg2.attachment", "platform.vertex2"):
            found = parflex.forward_dynamics(robot, state.at, velocity, state.efforts, wrench={frame: wrench})
            worst = max(worst, largest(found.accelerations - expected) / largest(expected))
    figure("wrench at an attachment of lumps against Lagrange", worst, TOLERANCE)
    assert worst < TOLERANCE


POSES = {"home": None, "tilted": {"x": 0.3, "y": 0.4, "z": 0.9, "rx": 0.2, "ry": -0.3, "rz": 0.4}}


@pytest.mark.parametrize("pose", POSES)
@pytest.mark.parametrize("case", [pytest.param("the catalogue", marks=long), "lumps"])
def test_a_platform_that_is_held_rests_as_by_lagrange_and_leaves_it_as_lagrange_says(case, pose, figure):
    """State of rest, and eigenvalues of the zero dynamics against differences of the oracle's inverse model."""
    robot, oracle = pair(case)
    found = zero_dynamics(robot, POSES[pose])
    held = held_frame(robot, POSES[pose])
    tau, e = steadily_bent(robot, POSES[pose] or "home")
    modes = [robot.tree.position_names.index(robot.tree.rate_names[k]) for k in robot.tree.elastic]
    assert held.configuration.q[modes] == pytest.approx(e, abs=1e-9 * largest(e))  # where Newton stops
    assert list(held.efforts.values()) == pytest.approx(tau, abs=1e-9 * largest(tau))
    rest = _modal_accelerations(robot, oracle, held.configuration.q, np.zeros(len(e)))
    assert largest(rest) < 1e-7 * largest(oracle.modes["platform"].stiffnesses * e)  # the same
    n, states = len(e), np.zeros((2 * len(e), 2 * len(e)))
    states[:n, n:] = np.eye(n)
    for k, unit in enumerate(np.eye(n)):
        q = held.configuration.q
        ahead, behind = (
            _modal_accelerations(robot, oracle, _bent(robot, q, h * unit), 0 * unit) for h in (1e-5, -1e-5)
        )
        states[n:, k] = (ahead - behind) / 2e-5
        states[n:, n + k] = _modal_accelerations(robot, oracle, q, 1e-3 * unit) - _modal_accelerations(
            robot, oracle, q, -1e-3 * unit
        )
    states[n:, n:] /= 2e-3
    expected = np.linalg.eigvals(states)
    distance = max(np.abs(expected - value).min() for value in found.eigenvalues) / np.abs(expected).max()
    figure(f"{case} {pose}: zero dynamics against differences of Lagrange", float(distance), 1e-6)
    figure(f"{case} {pose}: growth of the zero dynamics, 1/s", found.growth)
    assert len(expected) == len(found.eigenvalues)
    assert distance < 1e-6  # squares of steps of 1e-5, and rounding of forces of 1e5 N divided by them
    assert found.growth == pytest.approx(max(expected.real.max(), 0), abs=1e-5 * np.abs(expected).max())


def _bent(robot: Robot, q: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Positions with other modal coordinates, the platform where it is."""
    tree = robot.tree
    moved = q.copy()
    moved[[tree.position_names.index(tree.rate_names[k]) for k in tree.elastic]] += step
    joints = np.array([k for k in robot.free if tree.rate_names[k].startswith("leg")])
    return robot.assembler.newton(moved, joints, list(robot.closures.loops))[0]


def _modal_accelerations(robot: Robot, oracle: ModalEnergyModel, q: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Of the modes, when motors keep the platform still."""
    at = Configuration(robot, q)
    chosen = np.zeros(len(at.independent_names))
    chosen[[k for k, name in enumerate(at.independent_names) if "mode" in name]] = rates
    order = order_of(robot, oracle)
    still = dict.fromkeys((f"platform.{part}" for part in TWIST), 0.0)
    qdd, _ = oracle.platform_driven(positions(at), (at.J @ chosen)[np.argsort(order)], still, robot.actuated_names)
    return qdd[order][list(robot.tree.elastic)]


@pytest.mark.parametrize("drive", [pytest.param(drive, marks=long) for drive in ("platform",)])
def test_in_a_run_everything_accelerates_as_by_lagrange_under_the_efforts_of_the_run(drive, figure):
    """Velocities of all rows, differentiated in time, against the oracle's direct model at the same rows."""
    robot, oracle = pair("the catalogue")
    run = parflex.simulate(robot, "tour", 0.6, drive=drive, start="held", method="gauss6", step=1e-3, out_step=1e-3)
    world = np.array([run[f"platform.{part}"] for part in TWIST]).T
    others = [name for name in robot.tree.rate_names if name.removeprefix("platform.") not in TWIST]
    rates = np.hstack([world, np.array([run[f"qd.{name}"] for name in others]).T])
    names, h, worst = [*(f"platform.{part}" for part in TWIST), *others], run.t[1] - run.t[0], 0.0
    order = [oracle.coordinates.index(name) for name in names]
    for row in range(250, 560, 30):
        q = {name: float(run[f"q.{name}"][row]) for name in robot.tree.position_names}
        R = Rotation.from_quat([q[f"platform.q{axis}"] for axis in "wxyz"], scalar_first=True).as_matrix()
        turned = np.eye(len(names))
        turned[:3, :3] = turned[3:6, 3:6] = R
        efforts = {name: float(run[f"effort.{name}"][row]) for name in robot.actuated_names}
        qdd = turned @ oracle.accelerations(q, (turned.T @ rates[row])[np.argsort(order)], efforts)[order]
        change = (8 * (rates[row + 1] - rates[row - 1]) - (rates[row + 2] - rates[row - 2])) / (12 * h)
        worst = max(worst, largest(qdd - change) / largest(change))
        assert largest(oracle.closure_residual(q)) < 1e-12
    figure(f"driven by its {drive}: accelerations in a run against Lagrange", worst, 1e-4)
    assert worst < 1e-4  # differences of fourth order over 1 ms of a motion with parts up to 200 Hz
