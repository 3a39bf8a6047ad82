"""Bodies by modes against Lagrange; bodies of unknown kinds."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.cases import VERIFY
from support.catalogue import CATALOGUE
from support.comparison import largest, order_of, positions
from support.modal_programs import CASES, State, inputs, pair, states
from support.modal_robots import GRAVITY, TRIANGLE, TWIST, steadily_bent, with_platform
from support.oracles.beam_robots import HEXAGON
from support.oracles.modal_data import Modes, invented
from support.oracles.modal_lagrange import ModalEnergyModel
from support.oracles.pinocchio_tree import PinocchioTree
from support.oracles.reader import RobotData, read_robot

import parflex
from parflex import Configuration, Robot
from parflex.bodies.elastic import Body
from parflex.formulations.legs import PlatformEquations
from parflex.robot.legs import PlatformMotion, end_masses_on_platform, find_legs
from parflex.statics.zero_dynamics import held_frame, zero_dynamics

TOLERANCE = 1e-11  # asked for; rounding of systems of condition 1e4 leaves 1e-13


def twist(state: State, values: np.ndarray) -> dict[str, float]:
    words = ("x", "y", "theta") if state.planar else ("x", "y", "z", "rx", "ry", "rz")
    slide, turn = state.platform(values)
    return dict(zip(words, [*state.flat(slide).tolist(), *state.flat(turn, True).tolist()], strict=True))


@pytest.mark.few("the catalogue-False", "in the plane")
@pytest.mark.parametrize("end_masses", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_the_closed_form_of_the_papers_gives_the_numbers_of_lagrange(case, end_masses, figure):
    """[Long2014, eqs. (44)-(49)], over numbers, at joint values of the closed robot."""
    robot, worst = pair(case)[0], 0.0
    form = find_legs(robot)
    assert form is not None and form.elastic is not None
    form = end_masses_on_platform(form) if end_masses else form  # masses at the ends of legs move to the platform
    for state in states(case):
        values = [state.at.q[[robot.tree.links[j].q.start for j in leg.links]] for leg in form.legs]
        acceleration = state.platform(state.accelerations)
        modes, here = state.modes(state.accelerations), inputs(state)
        moving = [here[name] for name in ("rotation", "position", "velocity", "angular_velocity")]
        bent = [here[name] for name in ("elastic", "elastic_rate")]
        platform = PlatformMotion(*moving, acceleration[0] - robot.tree.gravity, acceleration[1], *bent)
        effort, found = PlatformEquations(form, values, platform).efforts()
        still = replace(platform, a=-robot.tree.gravity, al=np.zeros(3))
        freedom, bending = PlatformEquations(form, values, still).accelerations(here["effort"])
        direct = np.concatenate([freedom[: 3 if state.planar else 6], bending])
        wanted = np.concatenate([state.flat(acceleration[0]), state.flat(acceleration[1], True), modes])
        worst = max(
            worst,
            largest((effort - here["effort"]).astype(float)) / state.size,
            largest((found - modes).astype(float)) / largest(modes),
            largest((direct - wanted).astype(float)) / largest(wanted),
        )
    figure.below(f"{case}: closed form against Lagrange", worst, TOLERANCE)


@pytest.mark.few("in the plane")
@pytest.mark.parametrize("model", ["inverse", "direct"])
@pytest.mark.parametrize("case", CASES)
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
    figure.below(f"{case}, {model}: program against Lagrange", worst, TOLERANCE)


@pytest.mark.few("in the plane", "the catalogue")
@pytest.mark.parametrize("case", CASES)
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
        qdd, efforts = oracle.driven(positions(state.at), state.rates[back], driven, robot.actuated_names)
        missed = [found.efforts[name] - efforts[name] for name in efforts]
        again = [efforts[name] - state.efforts[name] for name in efforts]
        size = state.size
        worst = max(worst, largest(missed) / size, largest(found.accelerations - qdd[order]) / largest(qdd))
        assert largest(again) < TOLERANCE * size  # the oracle's own direct and inverse model
    figure.below(f"{case}: driven platform against Lagrange", worst, TOLERANCE)


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
        modal = [name for name in state.at.independent_names if "mode" in name]
        velocity = {name: float(state.rates[names.index(name)]) for name in modal}
        velocity |= twist(state, state.rates)
        for frame in ("leg2.attachment", "platform.vertex2"):
            found = parflex.forward_dynamics(robot, state.at, velocity, state.efforts, wrench={frame: wrench})
            worst = max(worst, largest(found.accelerations - expected) / largest(expected))
    figure.below("wrench at an attachment of lumps against Lagrange", worst, TOLERANCE)


POSES = {"home": None, "tilted": {"x": 0.3, "y": 0.4, "z": 0.9, "rx": 0.2, "ry": -0.3, "rz": 0.4}}


@pytest.mark.parametrize("pose", POSES)
@pytest.mark.parametrize("case", [pytest.param("the catalogue", marks=pytest.mark.verify), "lumps"])
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
        bends = (_bent(robot, q, h * unit) for h in (1e-5, -1e-5))
        ahead, behind = (_modal_accelerations(robot, oracle, bend, 0 * unit) for bend in bends)
        states[n:, k] = (ahead - behind) / 2e-5
        ahead, behind = (_modal_accelerations(robot, oracle, q, h * unit) for h in (1e-3, -1e-3))
        states[n:, n + k] = ahead - behind
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
    qdd, _ = oracle.driven(positions(at), (at.J @ chosen)[np.argsort(order)], still, robot.actuated_names)
    return qdd[order][list(robot.tree.elastic)]


@pytest.mark.verify
def test_in_a_run_everything_accelerates_as_by_lagrange_under_the_efforts_of_the_run(figure):
    """Velocities of all rows, differentiated in time, against the oracle's direct model at the same rows."""
    robot, oracle = pair("the catalogue")
    run = parflex.simulate(
        robot, "tour", 0.6, drive="platform", start="held", method="gauss6", step=1e-3, out_step=1e-3
    )
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
    figure("driven by its platform: accelerations in a run against Lagrange", worst, 1e-4)
    assert worst < 1e-4  # differences of fourth order over 1 ms of a motion with parts up to 200 Hz


POSE = {"x": 0.3, "y": 0.4, "z": 1.05, "rx": 0.1, "ry": -0.15, "rz": 0.2}
VELOCITY, ACCELERATION = [0.4, -0.3, 0.5, 1.0, -1.5, 0.8], [2.0, 1.0, -3.0, 4.0, -2.0, 5.0]  # platform axes
FREE = ["friction", "damping"]


def modes(count: int = 10, stiffer: float = 1.0) -> Modes:
    body = invented(HEXAGON, count, seed=1)
    return replace(body, stiffnesses=stiffer * body.stiffnesses)


def rigid_data() -> RobotData:
    """The robot of the catalogue with a rigid platform of the mass and the inertia of the modes."""
    body = modes()
    M, gravity = body.mass_matrix(), np.array(GRAVITY)
    first = np.array([M[5, 1], M[3, 2], M[4, 0]])  # m c from the rows m (c x) of the turns
    data = read_robot(CATALOGUE / "gough-stewart.toml")
    own = {"mass": M[0, 0], "first_moment": first, "inertia": M[3:6, 3:6]}
    frames = [replace(frame, **own) if frame.name == "platform" else frame for frame in data.frames]
    return replace(data, frames=frames, gravity=gravity)


def test_efforts_come_nearer_to_the_rigid_ones_as_one_over_the_stiffness_of_the_modes(tmp_path, figure):
    """The body is bent as much as keeps it from vibrating: e_dot = e_ddot = 0 in the motion of the platform."""
    errors, bent = [], []
    for decade in range(5 if VERIFY else 3):
        robot = with_platform(tmp_path, "gough-stewart", modes(stiffer=10.0**decade))
        expected = _pinocchio(parflex.configure(robot, POSE))
        tau, e = steadily_bent(robot, POSE, VELOCITY, ACCELERATION)
        errors.append(largest(tau - expected) / largest(expected))
        bent.append(largest(e))
    ratios = np.array(errors[:-1]) / errors[1:]
    figure("efforts nearer to those of Pinocchio per decade of stiffness", str(np.round(ratios, 3)))
    assert errors[0] > 1e-3 and bent[0] > 1e-3
    assert ratios == pytest.approx(10, rel=0.01)  # the next term of the series is a thousandth of the first


def _pinocchio(at: Configuration) -> np.ndarray:
    oracle = PinocchioTree(rigid_data())
    parts = [f"platform.{part}" for part in ("vx", "vy", "vz", "wx", "wy", "wz")]
    motion = [dict(zip(parts, values, strict=True)) for values in (VELOCITY, ACCELERATION)]
    efforts = oracle.inverse(positions(at), *motion, at.robot.actuated_names)
    return np.array([efforts[name] for name in at.robot.actuated_names])


def free_of_damping(case: str, folder: Path) -> Robot:
    if case == "plate":
        return parflex.load("gough-stewart-flexible", settings={"platform.modal.damping": 0.0})
    if case == "lumps":
        return with_platform(folder, "gough-stewart", modes(), damping=0)
    flat = invented(TRIANGLE, 3, seed=5, mass=2.0, planar=True)
    return with_platform(folder, "3rrr", flat, [1.0, -9.81, 0.0], damping=0)


@pytest.mark.few("plane")
@pytest.mark.parametrize("case", ["in the plane", "plate", "lumps"])
def test_a_robot_with_a_flexible_platform_keeps_its_energy_at_the_order_of_the_method(case, tmp_path, figure):
    robot = free_of_damping(case, tmp_path)
    here = parflex.configure(robot)
    rates = np.random.default_rng(3).uniform(-0.5, 0.5, here.J.shape[1])
    start, drifts = {"q": here.q, "qd": here.J @ rates}, []
    for step in (1e-3, 5e-4):
        words = {"start": start, "step": step, "out_step": 0.01, "without": ["friction"]}
        run = parflex.simulate(robot, None, 0.1, **words, tolerance=1e-14)
        total = run["energy.total"]
        drifts.append(float(np.abs(total - total[0]).max() / run["energy.kinetic"].max()))
        assert run["closure_error"].max() < 1e-12
    figure(f"{case}: energy drift by gauss4 at 0.5 ms", drifts[1], 1.6e-8)
    figure(f"{case}: energy drift, ratio when the step is halved", drifts[0] / drifts[1])
    assert drifts[0] / drifts[1] == pytest.approx(16, rel=0.2)  # 2^4; finer steps show rounding of 1e-11
    assert drifts[1] < 1.6e-8  # 1e-9 at half the step
    assert np.ptp(run["q.platform.mode1"]) > 1e-3  # it vibrates


def test_a_free_body_with_modes_keeps_its_momentum_and_energy(tmp_path, figure):
    body = modes(6)
    body.write(tmp_path / "body.npz")
    text = 'format = 1\nname = "body"\ngravity = [0, 0, 0]\n[platform]\nmodal = { file = "body.npz", damping = 0 }\n'
    (tmp_path / "body.toml").write_text(text, encoding="utf-8")
    robot = parflex.load(tmp_path / "body.toml")
    assert robot.tree.n == 12
    rates = np.array([0.3, -0.2, 0.5, 2.0, -3.0, 4.0, *np.random.default_rng(1).uniform(3, 6, 6)])
    start = {"q": robot.home, "qd": rates}
    time = 0.3 if VERIFY else 0.1
    run = parflex.simulate(robot, None, time, start=start, method="gauss6", step=2.5e-4, out_step=5e-3, tolerance=1e-14)
    P, H, T = zip(*(_node_momenta(body, run, row) for row in range(len(run.t))), strict=True)
    lost = max(largest(np.array(values) - values[0]) / np.linalg.norm(values[0]) for values in (P, H))
    figure("momentum lost by a free body with modes", lost, 1e-9)
    assert np.linalg.norm(H[0]) > 10 and np.ptp(run["platform.orientation_x"]) > 0.1  # it turns by far
    assert np.ptp(run["q.platform.mode1"]) > 1e-2  # and vibrates
    assert lost < 1e-9  # steps of gauss6 of 0.25 ms through vibrations of up to 200 Hz
    total = run["energy.total"]
    assert largest(total - total[0]) < 1e-9 * run["energy.kinetic"].max()  # the same
    assert run["energy.kinetic"] == pytest.approx(np.array(T), rel=1e-12)  # a sum over nodes


def _node_momenta(body: Modes, run, row: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Linear and angular momentum about the origin, and kinetic energy, as sums over the nodes."""
    values = {word: np.array([run[f"platform.{word}{axis}"][row] for axis in "xyz"]) for word in ("", "v", "w")}
    R = Rotation.from_quat([run[f"platform.orientation_{axis}"][row] for axis in "wxyz"], scalar_first=True).as_matrix()
    e, ed = (np.array([run[f"{kind}.platform.mode{k + 1}"][row] for k in range(body.size)]) for kind in ("q", "qd"))
    u, ud = (np.tensordot(rates, body.shapes, axes=1) for rates in (e, ed))
    P, H, T = np.zeros(3), np.zeros(3), 0.0
    for r, mass, moments, shift, rate in zip(body.nodes, body.masses, body.second_moments, u, ud, strict=True):
        arm = R @ (r + shift[:3])
        v = values["v"] + np.cross(values["w"], arm) + R @ rate[:3]
        P += mass * v
        H += mass * np.cross(values[""] + arm, v)
        T += mass * v @ v / 2
        weights, ways = np.linalg.eigh(moments)  # specks about the node: they move with its turn
        for weight, way in zip(weights, ways.T, strict=True):
            offset = R @ (way + np.cross(shift[3:], way))
            speed = np.cross(values["w"], offset) + R @ np.cross(rate[3:], way)
            H += weight * np.cross(offset, speed)
            T += weight * speed @ speed / 2
    return P, H, T


QUESTIONS = {name for name in (*vars(Body), *Body.__annotations__) if not name.startswith("_")}


@dataclass(frozen=True)
class Stranger:
    """Answers what `Body` asks, and nothing else, as another body would; it is of no known class."""

    known: Any

    def __getattr__(self, name: str) -> Any:
        if name not in QUESTIONS:
            raise AttributeError(f"no body is asked for '{name}'")
        answer = getattr(self.known, name)
        return (lambda *given: Stranger(answer(*given))) if name.startswith("with") else answer


def estranged(robot: parflex.Robot) -> parflex.Robot:
    tree = replace(robot.tree, links=tuple(replace(link, body=Stranger(link.body)) for link in robot.tree.links))
    return replace(robot, tree=tree, closures=replace(robot.closures, tree=tree))


@pytest.mark.few("5r", "dualemps")
@pytest.mark.parametrize("name", ["5r", "puma560", "dualemps", "gough-stewart-elastic"])
def test_a_robot_of_unknown_kinds_of_bodies_moves_bends_and_is_described_alike(name):
    robot = parflex.load(name)
    other = estranged(robot)
    assert np.array_equal(other.home, robot.home) and np.array_equal(other.tree.rate_units, robot.tree.rate_units)
    qd = parflex.configure(robot).J[:, 0]
    assert parflex.energies(other, "home", qd) == parflex.energies(robot, "home", qd)
    assert parflex.inverse_dynamics(other).efforts == parflex.inverse_dynamics(robot).efforts
    assert parflex.explain(other).as_text() == parflex.explain(robot).as_text()
    if robot.tree.elastic:
        one, two = (parflex.natural_frequencies(r, modes=4) for r in (robot, other))
        assert np.array_equal(one.frequencies, two.frequencies)


def test_unknown_kinds_of_bodies_make_the_same_programs():
    robot = parflex.load("5r")
    for model in ("inverse", "energy"):
        one, two = (parflex.model(r, model) for r in (robot, estranged(robot)))
        assert one.program.instructions == two.program.instructions and one.signals == two.signals
