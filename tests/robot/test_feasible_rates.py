"""Requested rates and accelerations that the mechanism can and cannot have; the oracle differences positions."""

from functools import cache

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.command_line import refused
from support.linkages import CHAINS, draw
from support.robots import any_robot, load_robot, write_robot

import parflex
from parflex.recursion.kinematics import pose

OTHERS = ("3-prs", "bricard-iftomm", "differential", "parallelogram", "rccc", "satellite", "tripod-wrist", "upu")
ROBOTS = [*parflex.catalogue_names(), *OTHERS]
FEW = pytest.mark.few("3rrr-flexible", "four-bar", "differential", "satellite", "[5r")
PARTS = ("x", "y", "z", "rx", "ry", "rz")
H = 2e-3  # rad, or typical lengths: differences of fourth order are off by h^4 / 30, rounding by 1e-16 / h^2
NEVER, MOVES = 1e-7, 1e-5  # sizes of singular values that are zero by differences, and of those that are not
loaded = cache(any_robot)


def stencil(function, order: int, step: float):
    """First or second derivative of a function of time at zero."""
    f = {k: function(k * step) for k in (-2, -1, 0, 1, 2)}
    if order == 1:
        return (f[-2] - 8 * f[-1] + 8 * f[1] - f[2]) / (12 * step)
    return (-f[-2] + 16 * f[-1] - 30 * f[0] + 16 * f[1] - f[2]) / (12 * step**2)


class Differenced:
    """A robot at a pose: closures and the end effector by differences, in turns and typical lengths."""

    def __init__(self, robot: parflex.Robot, q) -> None:
        self.robot, self.q, tree = robot, np.asarray(q), robot.tree
        self.units = tree.rate_units
        self.parts = (0, 1, 5) if tree.planar else range(6)
        place = tree.place(tree.end_effector)
        R0 = pose(tree, self.q).of(place)[0]

        def at(way):
            there = pose(tree, tree.moved(self.q, way * self.units))
            R, p = there.of(place)
            turn = Rotation.from_matrix(R @ R0.T).as_rotvec()
            return np.concatenate([robot.closures.residual(there) / tree.length, p / tree.length, turn])

        self.at = at
        free = [k for k in range(tree.n) if k not in robot.locked]
        slopes = np.zeros((len(at(np.zeros(tree.n))), tree.n))
        for k in free:
            slopes[:, k] = stencil(lambda t, k=k: at(t * np.eye(tree.n)[k]), 1, H)
        self.J, self.frame = slopes[:-6], slopes[-6:][list(self.parts)]
        row_units = robot.closures.row_units()[:, None] if len(self.J) else 1.0
        self.row_units = row_units
        sizes, V = np.zeros(0), np.eye(len(free))
        if self.J.size:
            _, sizes, V = np.linalg.svd(row_units * self.J[:, free])
        assert not np.any((sizes > NEVER) & (sizes < MOVES))
        self.N = np.zeros((tree.n, len(free) - int(np.sum(sizes > MOVES))))
        self.N[free] = V[int(np.sum(sizes > MOVES)) :].T
        single = [link.v.start for link in tree.links if link.joint.one_axis and link.v.start in free]
        self.words = [PARTS[k] for k in self.parts] + [tree.rate_names[k] for k in single]
        self.rows = np.concatenate([self.frame, np.eye(tree.n)[single]])
        self.sizes = np.concatenate([[tree.length if k < 3 else 1.0 for k in self.parts], self.units[single]])

    def drift(self, qd):
        """Accelerations of the components due to all rates alone, for the motion in which others are least."""
        second = stencil(lambda t: self.at(t * qd / self.units), 2, H)
        b = (
            np.linalg.lstsq(self.row_units * self.J, -self.row_units[:, 0] * second[:-6], rcond=NEVER)[0]
            if len(self.J)
            else 0 * qd
        )
        bias = np.concatenate([second[-6:][list(self.parts)], np.zeros(len(self.rows) - len(self.parts))])
        return bias + self.rows @ b


def in_words(at: Differenced, chosen, values) -> dict[str, float]:
    return {at.words[k]: float(at.sizes[k] * value) for k, value in zip(chosen, values, strict=True)}


def draws(at: Differenced, rng, chosen):
    """Possible values of chosen components, and impossible ones where there are any."""
    A = at.rows[chosen] @ at.N
    U, sizes, V = np.linalg.svd(A)
    assert not np.any((sizes > NEVER) & (sizes < MOVES))
    rank = int(np.sum(sizes > MOVES))
    possible = U[:, :rank] @ (sizes[:rank] * (V[:rank] @ rng.normal(size=A.shape[1])))
    left = U[:, rank:] @ rng.normal(size=len(chosen) - rank)
    return possible, possible + left if rank < len(chosen) else None


def subsets(at: Differenced, rng, many: int):
    """Every component alone, and random ones together."""
    count = len(at.words)
    yield from ([k] for k in range(count))
    yield list(range(count))
    for _ in range(many):
        yield sorted(rng.choice(count, int(rng.integers(1, min(count, 8) + 1)), replace=False).tolist())


def refused_in_words(call, *given, match: str = r"cannot have|contradicts the coupling"):
    with pytest.raises(parflex.ParflexError, match=match):
        call(*given)


@FEW
@pytest.mark.parametrize("name", ROBOTS)
def test_rates_are_accepted_where_they_are_in_the_velocity_space_and_accelerations_beside_its_drift(name):
    robot = loaded(name)
    at, rng, here = Differenced(robot, robot.home), np.random.default_rng([*name.encode()]), parflex.configure(robot)
    moving = at.units * (at.N @ rng.normal(size=at.N.shape[1]))
    drift, refusals = at.drift(moving), 0
    for chosen in subsets(at, rng, 20):
        possible, impossible = draws(at, rng, chosen)
        qd = here.rates(in_words(at, chosen, possible))
        scale = 1 + np.abs(qd / at.units).max()
        assert at.rows[chosen] @ (qd / at.units) == pytest.approx(possible, abs=1e-8 * scale)  # of the differences
        assert np.abs(at.J @ (qd / at.units)).max(initial=0.0) < 1e-8 * scale
        assert np.isfinite(here.accelerations(in_words(at, chosen, possible + drift[chosen]), moving, None)).all()
        if impossible is not None:
            refusals += 1
            refused_in_words(here.rates, in_words(at, chosen, impossible))
            refused_in_words(here.accelerations, in_words(at, chosen, impossible + drift[chosen]), moving, None)
    assert bool(refusals) == (np.linalg.matrix_rank(at.rows @ at.N, MOVES) < len(at.words))


# end effector components that are impossible at home
IMPOSSIBLE = {
    "delta": ("rx", "ry", "rz"),
    "3-prs-2r": ("rz",),
    "orthoglide": ("rx", "ry", "rz"),
    "3-prrr": ("rx", "ry", "rz"),
    "par4": ("rx", "ry"),
    "emps": ("y", "z", "rx", "ry", "rz"),
}


@pytest.mark.few("delta", "emps")
@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_impossible_components_are_refused_by_every_function_and_zero_is_not(name):
    robot = loaded(name)
    for part in IMPOSSIBLE[name]:
        for call in (
            lambda given: parflex.inverse_dynamics(robot, velocity=given),
            lambda given: parflex.inverse_dynamics(robot, acceleration=given),
            lambda given: parflex.forward_dynamics(robot, velocity=given),
            lambda given: parflex.energies(robot, "home", given),
        ):
            refused_in_words(call, {part: 1.0}, match=rf"cannot have '\w+\.{part}' = 1 .*: .* it can only be 0 ")
            call({part: 0.0})


def test_starts_of_runs_and_moving_responses_refuse_impossible_velocities():
    robot, keys = loaded("delta"), ["constants.arm"]
    for call in (
        lambda: parflex.simulate(robot, time=1e-3, step=1e-3, start={"velocity": {"rz": 1.0}}),
        lambda: parflex.sensitivities(robot, "effort:leg1.arm", keys, velocity={"rz": 1.0}, without=["friction"]),
    ):
        refused_in_words(call, match=r"cannot have 'platform.rz' = 1 rad/s")


@pytest.mark.parametrize(
    ("robot", "part", "state"), [("delta", "rz", "velocity"), ("orthoglide", "rx", "acceleration")]
)
def test_the_command_line_refuses_impossible_rates_in_one_sentence(robot, part, state, capsys):
    error = refused(capsys, "inverse", robot, f"--{state}", f"{part}=1")
    unit = {"velocity": "rad/s"}.get(state, "rad/s2")
    said = f"the mechanism cannot have 'platform.{part}' = 1 {unit}: at this pose it can only be 0 {unit}"
    assert error["message"] == said
    assert "3 degrees of freedom here: x, y, z" in error["hint"]


def test_a_component_that_follows_from_others_is_named_with_the_value_that_they_leave():
    robot = loaded("four-bar")
    alone = parflex.inverse_dynamics(robot, velocity={"crank": 2.0}, acceleration={"crank": -3.0})
    k = robot.rates.index("rocker")
    speed, push = float(alone.rates[k]), float(alone.accelerations[k])
    parflex.inverse_dynamics(robot, "home", {"crank": 2.0, "rocker": speed}, {"crank": -3.0, "rocker": push})
    for unit, value, motion in (
        ("rad/s", speed, ({"crank": 2.0, "rocker": 1.0},)),
        ("rad/s2", push, ({"crank": 2.0}, {"crank": -3.0, "rocker": 1.0})),
    ):
        words = rf"'rocker' = 1 {unit}: .* it can only be {value:.6g} {unit}"
        refused_in_words(parflex.inverse_dynamics, robot, "home", *motion, match=words)


def test_robots_with_fewer_motors_refuse_impossible_accelerations():
    for given, words in (
        ({"cart.y": 1.0}, r"cannot have 'cart.y' = 1 m/s2: at this pose it can only be 0 m/s2"),
        ({"cart.x": 1.0, "cart.y": 0.0}, r"2 accelerations \(1 independent\) for 1 motor"),
    ):
        refused_in_words(parflex.inverse_dynamics, loaded("cart-pendulum"), None, None, given, match=words)


def test_a_motion_that_the_motors_do_not_hold_is_possible():
    robot = loaded("5r")
    height = np.sqrt(0.3**2 - (0.4 - 0.12) ** 2)  # both distal links on one line: the tip is free along y
    here = parflex.configure(robot, {"x": 0.0, "y": float(height)})
    qd = here.rates({"y": 1.0})
    assert here.frame_rows("tip")[1] @ qd == pytest.approx(1.0)
    assert np.abs(qd[list(robot.actuated)]).max() < 1e-6  # a double root is found to 1e-8
    assert parflex.energies(robot, here, {"y": 1.0}).kinetic > 0
    refused_in_words(parflex.inverse_dynamics, robot, here, {"y": 1.0}, match="with the motors locked")


def test_a_hand_that_only_turns_turns_about_the_requested_axis_alone():
    away = Rotation.from_rotvec([0.2, 1.3, 0.1]).apply([0, 0, -0.3])  # three axes meet in the hand up to rounding
    here = parflex.configure(load_robot("hand-on-three-axes", settings={"frame.c.place.position": away.tolist()}))
    for k, part in enumerate(("rx", "ry", "rz")):
        twist = here.frame_rows("hand") @ here.rates({part: 1.0})
        assert twist == pytest.approx(np.eye(6)[3 + k], abs=1e-12)  # rounding
    refused_in_words(here.rates, {"x": 1.0})


def scaled(name: str, factor: float) -> parflex.Robot:
    """Delta robots and orthoglides of any size."""
    if name == "delta":
        lengths = {"base_radius": 0.2, "platform_radius": 0.05, "arm": 0.25, "rod": 0.5}
        place = {"platform.start": [0, 0, -0.4 * factor], "poses.home.z": -0.4 * factor}
    else:
        lengths, place = {"edge": 0.2, "offset": 0.04, "half": 0.04}, {}
    return parflex.load(name, settings={f"constants.{k}": v * factor for k, v in lengths.items()} | place)


@pytest.mark.parametrize("factor", [2e-3, 1.0, 2e3])
@pytest.mark.parametrize("name", ["delta", "orthoglide"])
def test_verdicts_do_not_depend_on_the_size_of_the_robot(name, factor):
    robot = scaled(name, factor)
    here, rng, still = parflex.configure(robot), np.random.default_rng(5), {"rx": 0.0, "ry": 0.0, "rz": 0.0}
    for _ in range(10):
        v = dict(zip("xyz", (factor * rng.normal(size=3)).tolist(), strict=True))
        part, value = f"r{'xyz'[int(rng.integers(3))]}", float(rng.normal())
        qd = here.rates(v | still)
        here.accelerations(v | still, qd, None)
        for given in ({part: value}, v | {part: value}, v | {part: 1e-3 * value}):
            refused_in_words(here.rates, given)
            refused_in_words(here.accelerations, given, qd, None)


@pytest.mark.few("0-four-bar", "0-slider-crank", "0-five-bar")
@pytest.mark.parametrize("kind", CHAINS)
@pytest.mark.parametrize("seed", range(5))
def test_random_linkages_have_the_velocity_space_of_the_oracle(kind, seed, tmp_path):
    rng = np.random.default_rng([77, seed, *kind.encode()])
    drawn, _ = draw(rng, kind)
    here = parflex.configure(parflex.load(write_robot(tmp_path, drawn.text), actuation="drawn"))
    names, linkage = list(drawn.joints), drawn.linkage
    G, _, gamma = linkage.rows(0.0, drawn.q, drawn.v)
    pushes = np.linalg.lstsq(G, gamma, rcond=None)[0]
    drift = np.array([drawn.value(name, pushes) for name in names])
    qd = here.rates({name: float(drawn.value(name, drawn.v)) for name in names})
    motions = drawn.motions()
    for _ in range(20):
        chosen = sorted(rng.choice(len(names), int(rng.integers(1, len(names) + 1)), replace=False).tolist())
        A = motions[chosen]
        U, sizes, _ = np.linalg.svd(A)
        rank = int(np.sum(sizes > 1e-3 * sizes[0]))
        inside = A @ rng.normal(size=A.shape[1])
        outside = inside + U[:, rank:] @ rng.normal(size=len(chosen) - rank)
        for values, call in ((0.0, here.rates), (drift[chosen], lambda given: here.accelerations(given, qd, None))):
            call(dict(zip([names[k] for k in chosen], (inside + values).tolist(), strict=True)))
            if rank < len(chosen):
                refused_in_words(call, dict(zip([names[k] for k in chosen], (outside + values).tolist(), strict=True)))


def test_a_possible_velocity_of_more_components_than_degrees_of_freedom_needs_no_acceleration():
    """Zero acceleration of all components contradicts the centripetal one, and nobody requested it."""
    robot, where = load_robot("planar-arm"), {"upper": 2.0, "lower": -1.2, "hand": -0.5}
    ends = {"tip.x": 0.3, "tip.y": 1.0, "tip.theta": 0.2}
    few = parflex.inverse_dynamics(robot, where, ends)
    rates = dict(zip(robot.motors, few.rates.tolist(), strict=True))
    many = parflex.inverse_dynamics(robot, where, ends | rates)
    assert many.rates == pytest.approx(few.rates, abs=1e-12) and np.isfinite([*many.efforts.values()]).all()
    refused_in_words(parflex.inverse_dynamics, robot, where, ends | rates, dict.fromkeys(ends | rates, 0.0))
