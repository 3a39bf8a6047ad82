"""Requested rates and accelerations are accepted if, and only if, the mechanism can have them.

The oracle differences positions: openings of the loops and poses of frames as all coordinates change.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.linkages import CHAINS, draw
from support.traced import long

import parflex
from parflex.cli.main import main
from parflex.recursion import pose

ROBOTS = Path(__file__).parent / "robots"
HEAVY = ("gough-stewart-beams", "gough-stewart-elastic", "navaro", "navaro-refined", "three-beam-legs")
OTHERS = ("3-prs", "bricard-iftomm", "differential", "parallelogram", "rccc", "satellite", "tripod-wrist", "upu")
PARTS = ("x", "y", "z", "rx", "ry", "rz")
H = 2e-3  # rad, or typical lengths: differences of fourth order are off by h^4 / 30, rounding by 1e-16 / h^2
NEVER, MOVES = 1e-7, 1e-5  # sizes of singular values that are zero by differences, and of those that are not


TWO_LINKS = """
format = 1
name = "arm"
motion = "planar"
gravity = [0, 0, 0]
end_effector = "tip"
[[frame]]
name = "shoulder"
joint = "revolute"
actuated = true
inertia = { mass = 1, centre = [0.5, 0, 0], about_centre = [0, 0, 0.1] }
[[frame]]
name = "elbow"
parent = "shoulder"
joint = "revolute"
actuated = true
place = { position = [1, 0, 0] }
inertia = { mass = 1, centre = [0.5, 0, 0], about_centre = [0, 0, 0.1] }
[[point]]
name = "tip"
frame = "elbow"
position = [1, 0, 0]
"""


def cases() -> list:
    names = [*parflex.catalogue_names(), *OTHERS]
    return [pytest.param(name, marks=long if name in HEAVY else []) for name in names]


@cache
def loaded(name: str) -> parflex.Robot:
    return parflex.load(name if name in parflex.catalogue_names() else ROBOTS / f"{name}.toml")


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


@pytest.mark.few
@pytest.mark.parametrize("name", cases())
def test_velocities_are_accepted_where_they_are_in_the_velocity_space(name):
    robot = loaded(name)
    at, rng = Differenced(robot, robot.home), np.random.default_rng([*name.encode()])
    here = parflex.configure(robot)
    refused = 0
    for chosen in subsets(at, rng, 20):
        possible, impossible = draws(at, rng, chosen)
        qd = here.rates(in_words(at, chosen, possible))
        scale = 1 + np.abs(qd / at.units).max()
        assert at.rows[chosen] @ (qd / at.units) == pytest.approx(possible, abs=1e-8 * scale)  # of the differences
        assert np.abs(at.J @ (qd / at.units)).max(initial=0.0) < 1e-8 * scale
        if impossible is not None:
            refused += 1
            with pytest.raises(parflex.ParflexError, match=r"cannot have|contradicts the coupling"):
                here.rates(in_words(at, chosen, impossible))
    assert bool(refused) == (np.linalg.matrix_rank(at.rows @ at.N, MOVES) < len(at.words))


@pytest.mark.few
@pytest.mark.parametrize("name", cases())
def test_accelerations_are_accepted_where_the_velocity_and_the_loops_allow_them(name):
    robot = loaded(name)
    at, rng = Differenced(robot, robot.home), np.random.default_rng([1, *name.encode()])
    here = parflex.configure(robot)
    qd = at.units * (at.N @ rng.normal(size=at.N.shape[1]))
    drift = at.drift(qd)
    for chosen in subsets(at, rng, 20):
        possible, impossible = draws(at, rng, chosen)
        qdd = here.accelerations(in_words(at, chosen, possible + drift[chosen]), qd, None)
        assert np.isfinite(qdd).all()
        if impossible is not None:
            with pytest.raises(parflex.ParflexError, match=r"cannot have|contradicts the coupling"):
                here.accelerations(in_words(at, chosen, impossible + drift[chosen]), qd, None)


# end effector components that are impossible at home
IMPOSSIBLE = {
    "delta": ("rx", "ry", "rz"),
    "3-prs-2r": ("rz",),
    "orthoglide": ("rx", "ry", "rz"),
    "3-prrr": ("rx", "ry", "rz"),
    "par4": ("rx", "ry"),
    "emps": ("y", "z", "rx", "ry", "rz"),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_impossible_components_are_refused_by_every_function_and_zero_is_not(name):
    robot = loaded(name)
    for part in IMPOSSIBLE[name]:
        calls = [
            lambda given: parflex.inverse_dynamics(robot, velocity=given),
            lambda given: parflex.inverse_dynamics(robot, acceleration=given),
            lambda given: parflex.forward_dynamics(robot, velocity=given),
            lambda given: parflex.energies(robot, "home", given),
        ]
        for call in calls:
            with pytest.raises(parflex.InputError, match=rf"cannot have '\w+\.{part}' = 1 .*: .* it can only be 0 "):
                call({part: 1.0})
            call({part: 0.0})


def test_starts_of_runs_and_moving_responses_refuse_impossible_velocities():
    robot = loaded("delta")
    with pytest.raises(parflex.InputError, match=r"cannot have 'platform.rz' = 1 rad/s"):
        parflex.simulate(robot, time=1e-3, step=1e-3, start={"velocity": {"rz": 1.0}})
    with pytest.raises(parflex.InputError, match=r"cannot have 'platform.rz' = 1 rad/s"):
        keys = ["constants.arm"]
        parflex.sensitivities(robot, "effort:leg1.arm", keys, velocity={"rz": 1.0}, without=["friction"])


@pytest.mark.parametrize("state", ["velocity", "acceleration"])
@pytest.mark.parametrize(("robot", "part"), [("delta", "rz"), ("orthoglide", "rx")])
def test_the_command_line_refuses_impossible_rates_in_one_sentence(robot, part, state, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["inverse", robot, f"--{state}", f"{part}=1"])
    assert stop.value.code == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    unit = "rad/s" if state == "velocity" else "rad/s2"
    assert shown.err.split(f"{state}: ", 1)[1] == (
        f"the mechanism cannot have 'platform.{part}' = 1 {unit}: at this pose it can only be 0 {unit}; give that "
        f"value or omit 'platform.{part}' ('platform' has 3 degrees of freedom here: x, y, z)\n"
    )


def test_a_component_that_follows_from_others_is_named_with_the_value_that_they_leave():
    robot = loaded("four-bar")
    alone = parflex.inverse_dynamics(robot, velocity={"crank": 2.0}, acceleration={"crank": -3.0})
    k = robot.rates.index("rocker")
    speed, push = float(alone.rates[k]), float(alone.accelerations[k])
    parflex.inverse_dynamics(robot, "home", {"crank": 2.0, "rocker": speed}, {"crank": -3.0, "rocker": push})
    with pytest.raises(parflex.InputError, match=rf"'rocker' = 1 rad/s: .* it can only be {speed:.6g} rad/s"):
        parflex.inverse_dynamics(robot, "home", {"crank": 2.0, "rocker": 1.0})
    with pytest.raises(parflex.InputError, match=rf"'rocker' = 1 rad/s2: .* it can only be {push:.6g} rad/s2"):
        parflex.inverse_dynamics(robot, "home", {"crank": 2.0}, {"crank": -3.0, "rocker": 1.0})


def test_robots_with_fewer_motors_refuse_impossible_accelerations():
    robot = loaded("cart-pendulum")
    with pytest.raises(parflex.InputError, match=r"cannot have 'cart.y' = 1 m/s2: at this pose it can only be 0 m/s2"):
        parflex.inverse_dynamics(robot, acceleration={"cart.y": 1.0})
    with pytest.raises(parflex.InputError, match=r"2 accelerations \(1 independent\) for 1 motor"):
        parflex.inverse_dynamics(robot, acceleration={"cart.x": 1.0, "cart.y": 0.0})


def test_a_motion_that_the_motors_do_not_hold_is_possible():
    robot = loaded("5r")
    height = np.sqrt(0.3**2 - (0.4 - 0.12) ** 2)  # both distal links on one line: the tip is free along y
    here = parflex.configure(robot, {"x": 0.0, "y": float(height)})
    qd = here.rates({"y": 1.0})
    assert here.frame_rows("tip")[1] @ qd == pytest.approx(1.0)
    assert np.abs(qd[list(robot.actuated)]).max() < 1e-6  # a double root is found to 1e-8
    assert parflex.energies(robot, here, {"y": 1.0}).kinetic > 0
    with pytest.raises(parflex.SingularError, match="with the motors locked"):
        parflex.inverse_dynamics(robot, here, {"y": 1.0})


SPHERICAL = """
format = 1
name = "spherical"
end_effector = "hand"
[[frame]]
name = "a"
joint = "revolute"
place = { position = [0.3, 0.2, 0.1], rotation = [0.3, 0.2, 0.4] }
[[frame]]
name = "b"
parent = "a"
joint = "revolute"
place = { rotation = [1.1, 0.3, 0] }
[[frame]]
name = "c"
parent = "b"
joint = "revolute"
place = { position = AWAY, rotation = [0.2, 1.3, 0.1] }
[[frame]]
name = "hand"
parent = "c"
place = { position = [0, 0, 0.3] }
[poses.home]
a = 0.3
b = 0.2
c = 0.7
"""


def test_a_hand_that_only_turns_turns_about_the_requested_axis_alone(tmp_path):
    away = Rotation.from_rotvec([0.2, 1.3, 0.1]).apply([0, 0, -0.3])  # three axes meet in the hand up to rounding
    (tmp_path / "spherical.toml").write_text(SPHERICAL.replace("AWAY", repr(away.tolist())))
    here = parflex.configure(parflex.load(tmp_path / "spherical.toml"))
    for k, part in enumerate(("rx", "ry", "rz")):
        qd = here.rates({part: 1.0})
        assert here.frame_rows("hand") @ qd == pytest.approx(np.eye(6)[3 + k], abs=1e-12)  # rounding
    with pytest.raises(parflex.InputError, match="cannot have"):
        here.rates({"x": 1.0})


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
    here, rng = parflex.configure(robot), np.random.default_rng(5)
    assert robot.tree.length == pytest.approx(factor * scaled(name, 1.0).tree.length)
    for _ in range(10):
        v = dict(zip("xyz", (factor * rng.normal(size=3)).tolist(), strict=True))
        turn = {"xyz"[int(rng.integers(3))]: float(rng.normal())}
        qd = here.rates(v | {"rx": 0.0, "ry": 0.0, "rz": 0.0})
        here.accelerations(v | {"rx": 0.0, "ry": 0.0, "rz": 0.0}, qd, None)
        for part, value in turn.items():
            for given in ({f"r{part}": value}, v | {f"r{part}": value}, v | {f"r{part}": 1e-3 * value}):
                with pytest.raises(parflex.InputError, match="cannot have"):
                    here.rates(given)
                with pytest.raises(parflex.InputError, match="cannot have"):
                    here.accelerations(given, qd, None)


@pytest.mark.parametrize("kind", CHAINS)
@pytest.mark.parametrize("seed", range(5))
def test_random_linkages_have_the_velocity_space_of_the_oracle(kind, seed, tmp_path):
    rng = np.random.default_rng([77, seed, *kind.encode()])
    drawn, _ = draw(rng, kind)
    (tmp_path / "drawn.toml").write_text(drawn.text)
    here = parflex.configure(parflex.load(tmp_path / "drawn.toml", actuation="drawn"))
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
        for values, call in (
            (0.0, here.rates),
            (drift[chosen], lambda given: here.accelerations(given, qd, None)),
        ):
            call(dict(zip([names[k] for k in chosen], (inside + values).tolist(), strict=True)))
            if rank < len(chosen):
                with pytest.raises(parflex.InputError, match="cannot have"):
                    call(dict(zip([names[k] for k in chosen], (outside + values).tolist(), strict=True)))


def test_a_possible_velocity_of_more_components_than_degrees_of_freedom_needs_no_acceleration(tmp_path):
    """Zero acceleration of all components contradicts the centripetal one, and nobody requested it."""
    file = tmp_path / "arm.toml"
    file.write_text(TWO_LINKS)
    robot = parflex.load(file)
    pose = {"shoulder": 0.0, "elbow": 0.3}
    one = parflex.inverse_dynamics(robot, pose, {"tip.y": 1.0})
    both = parflex.inverse_dynamics(robot, pose, {"tip.x": 0.0, "tip.y": 1.0})
    assert both.rates == pytest.approx(one.rates, abs=1e-12)
    rates = dict(zip(robot.motors, one.rates, strict=True))
    all_rates = parflex.inverse_dynamics(robot, pose, {"tip.x": 0.0, "tip.y": 1.0, **rates})
    assert all_rates.rates == pytest.approx(one.rates, abs=1e-12)
    assert np.isfinite([*all_rates.efforts.values()]).all()
    with pytest.raises(parflex.ParflexError, match="the mechanism cannot have"):
        parflex.inverse_dynamics(
            robot, pose, {"tip.x": 0.0, "tip.y": 1.0, **rates}, dict.fromkeys(("tip.x", "tip.y", *rates), 0.0)
        )
