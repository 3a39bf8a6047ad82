"""Laws of mechanics that the models of every robot of the catalogue keep."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from conftest import CATALOGUE, RIGID
from scipy.spatial.transform import Rotation
from support.comparison import after, largest
from support.states import Draws, random_states
from support.variants import base_moved, read_table, toml_text

import parflex
from parflex import Configuration
from parflex.closure import mobility
from parflex.recursion import motion

ROBOTS = RIGID
CLOSED = [name for name in ROBOTS if name not in ("puma560", "rx90")]


@cache
def robot_of(name):
    return parflex.load(name)


@cache
def states_of(name, count=6, seed=11):
    """States in the inner workspace, shared by the laws."""
    robot = robot_of(name)
    return list(random_states(robot, count, seed, Draws(), spread=0.12 * robot.tree.length))


def motors(robot, values):
    """Entries of the actuated rates by name."""
    return {name: float(values[k]) for name, k in zip(robot.actuated_names, robot.actuated, strict=True)}


def inverse(state, **options):
    return parflex.inverse_dynamics(
        state.configuration.robot, state.configuration, state.velocity, state.acceleration, **options
    )


def efforts_of(result):
    return np.array(list(result.efforts.values()))


@pytest.mark.few
@pytest.mark.parametrize("name", ROBOTS)
def test_the_direct_model_undoes_the_inverse_model(name, figure):
    robot, worst = robot_of(name), 0.0
    for state in states_of(name):
        wanted = inverse(state)
        given = motors(robot, wanted.rates)
        found = parflex.forward_dynamics(robot, state.configuration, given, wanted.efforts)
        scale = robot.tree.rate_units
        error = largest((found.accelerations - wanted.accelerations) / scale) / largest(wanted.accelerations / scale)
        again = parflex.inverse_dynamics(robot, state.configuration, given, motors(robot, found.accelerations))
        back = largest(efforts_of(again) - efforts_of(wanted)) / largest(efforts_of(wanted))
        worst = max(worst, error, back)
    figure(f"{name}: direct o inverse, largest relative error", worst, 1e-10)
    # mass matrices and closures have condition numbers up to 1e5: 1e-16 times that is 1e-11
    assert worst < 1e-10


@pytest.mark.parametrize("name", ROBOTS)
def test_both_forms_of_khalil_give_the_same_efforts(name, figure):
    worst = 0.0
    for state in states_of(name):
        projected, split = (efforts_of(inverse(state, form=form)) for form in ("projected", "split"))
        worst = max(worst, largest(projected - split) / largest(split))
    figure(f"{name}: [Khalil2007] (20) against (22), largest relative difference", worst, 1e-12)
    # the same sums in another order: rounding times the condition of J_a, at most some hundreds here
    assert worst < 1e-12


@pytest.mark.parametrize("name", ROBOTS)
def test_the_mass_matrix_is_symmetric_positive_definite_and_that_of_the_inverse_model(name):
    robot = robot_of(name)
    for state in states_of(name)[:3]:
        configuration = state.configuration
        M, names = parflex.mass_matrix(robot, configuration, "motors")
        assert names == robot.actuated_names
        assert largest(M - M.T) < 1e-13 * largest(M)  # products of the same numbers in another order
        assert np.linalg.eigvalsh((M + M.T) / 2).min() > 0
        rest = dict.fromkeys(names, 0.0)
        for k, motor in enumerate(names):
            unit = parflex.inverse_dynamics(
                robot, configuration, rest, rest | {motor: 1.0}, without=("gravity", "springs", "friction")
            )
            # rounding times the condition of J_a
            assert largest(efforts_of(unit) - M[:, k]) < 1e-11 * largest(M)


@pytest.mark.parametrize("name", ROBOTS)
def test_energy_grows_by_the_power_of_the_motors_less_the_losses(name, figure):
    robot, worst, step = robot_of(name), 0.0, 1e-6
    for state in states_of(name):
        result = inverse(state)
        qd, qdd = result.rates, result.accelerations
        ends = [sum(parflex.energies(*after(state.configuration, qd, qdd, t))) for t in (step, -step)]
        growth = (ends[0] - ends[1]) / (2 * step)
        rows = [(link.terms, qd[link.v.start]) for link in robot.tree.links]
        losses = [(t.viscous + t.damper) * rate**2 + t.coulomb * abs(rate) for t, rate in rows]
        powers = np.array([result.efforts[motor] * rate for motor, rate in motors(robot, qd).items()])
        expected = powers.sum() - sum(losses)
        size = largest(powers) + sum(losses) + abs(growth)
        worst = max(worst, abs(growth - expected) / size)
    figure(f"{name}: power balance, largest relative error", worst, 1e-7)
    # central differences: truncation (10 rad/s * 1e-6 s)^2 = 1e-10, rounding 1e-16/1e-6 = 1e-10, times ratios of terms
    assert worst < 1e-7


@pytest.mark.parametrize("name", ROBOTS)
def test_the_jacobian_is_the_derivative_of_the_pose_by_the_motors(name, figure):
    robot, worst, h = robot_of(name), 0.0, 5e-6
    tree, frame = robot.tree, robot.tree.end_effector
    passive = np.array([k for k in robot.free if k not in robot.actuated], dtype=int)

    def slope(configuration, k, step):
        ends = []
        for way in (step, -step):
            q = tree.moved(configuration.q, way * np.eye(tree.n)[k])
            q, _ = robot.assembler.newton(q, passive, robot.closures.rows)
            ends.append(parflex.frames(robot, Configuration(robot, q))[frame])
        (p1, R1), (p2, R2) = ends
        return np.concatenate([p1 - p2, Rotation.from_matrix(R1 @ R2.T).as_rotvec()]) / (2 * step)

    for state in states_of(name)[:3]:
        J = parflex.jacobian(robot, state.configuration)
        for column, k in enumerate(robot.actuated):
            expected = (4 * slope(state.configuration, k, h) - slope(state.configuration, k, 2 * h)) / 3
            worst = max(worst, largest(J[:, column] - expected) / largest(J))
    figure(f"{name}: Jacobian against finite differences, largest relative error", worst, 1e-7)
    # rounding 1e-15/5e-6 = 2e-10 times conditions of some hundreds; truncation falls with the fourth power of the step
    assert worst < 1e-7


@pytest.mark.parametrize("name", CLOSED)
def test_closure_rows_are_derivatives_of_the_openings(name, figure):
    robot, rng, worst = robot_of(name), np.random.default_rng(3), [0.0, 0.0]
    tree, units = robot.tree, robot.closures.row_units()
    for state in states_of(name):
        configuration = state.configuration
        at = configuration.at
        qd = configuration.J @ rng.standard_normal(configuration.J.shape[1])
        qd /= largest(qd / tree.rate_units)
        qdd = rng.uniform(-1, 1, tree.n) * tree.rate_units

        def opening(velocity, acceleration, time, configuration=configuration):
            q = tree.moved(configuration.q, time * velocity + time**2 / 2 * acceleration)
            return robot.closures.residual(Configuration(robot, q).at)

        h, still = 1e-5, np.zeros(tree.n)
        slope = (opening(qdd, still, h) - opening(qdd, still, -h)) / (2 * h)  # any velocity, not only one that closes
        rows = units * (configuration.closure_jacobian @ qdd)
        worst[0] = max(worst[0], largest(slope - rows) / tree.length)
        h = 3e-4
        bend = (opening(qd, qdd, h) - 2 * opening(qd, qdd, 0) + opening(qd, qdd, -h)) / h**2
        moving = motion(tree, at, qd, qdd)
        worst[1] = max(worst[1], largest(bend - units * robot.closures.bias(at, moving)) / tree.length)
    figure(
        f"{name}: closure velocities, accelerations against differences",
        f"{worst[0]:.2g}, {worst[1]:.2g}",
        "1e-8, 1e-5",
    )
    assert worst[0] < 1e-8  # rates of 1: truncation 1e-10, rounding 1e-16/1e-5 = 1e-11
    assert worst[1] < 1e-5  # rates of 1: truncation 1e-7, rounding 1e-16/1e-7 = 1e-9, some dozen terms


@pytest.mark.parametrize("name", CLOSED)
def test_loops_stay_closed_along_the_motion_that_a_model_gives(name, figure):
    robot, worst = robot_of(name), 0.0
    for state in states_of(name):
        result, units = inverse(state), robot.tree.rate_units
        h = 3e-4 / max(largest(result.rates / units), largest(result.accelerations / units) ** 0.5)
        for time in (h, -h):
            moved, _ = after(state.configuration, result.rates, result.accelerations, time)
            worst = max(worst, moved.closure_error / robot.tree.length)
    figure(f"{name}: opening of loops after moving by 3e-4 of a turn, in lengths", worst, 1e-9)
    # only terms of third order are left: (3e-4)^3 = 3e-11, some dozen of them; a wrong velocity opens them by 1e-4, a
    # wrong acceleration by 1e-7
    assert worst < 1e-9


@pytest.mark.parametrize("name", ROBOTS)
def test_turning_the_whole_robot_changes_no_effort(name, figure, tmp_path):
    robot, worst = robot_of(name), 0.0
    turn, shift = ((0, 0, 0.7), (0.4, -0.2, 0)) if robot.tree.planar else ((0.5, -0.8, 0.3), (0.4, -0.2, 0.9))
    path = tmp_path / "turned.toml"
    path.write_text(toml_text(base_moved(read_table(CATALOGUE / f"{name}.toml"), turn, shift)), encoding="utf-8")
    turned, R = parflex.load(path), Rotation.from_rotvec(turn)
    for state in states_of(name):
        q = state.configuration.q.copy()
        for link in robot.tree.links:
            if link.joint.kind == "planar":
                q[link.q] = [*(R.apply([*q[link.q][:2], 0]) + shift)[:2], q[link.q][2] + turn[2]]
            elif link.joint.kind == "free":
                old = Rotation.from_quat(q[link.q][3:], scalar_first=True)
                q[link.q] = [*(R.apply(q[link.q][:3]) + shift), *(R * old).as_quat(scalar_first=True)]
        first = inverse(state)
        velocity, acceleration = motors(robot, first.rates), motors(robot, first.accelerations)
        second = parflex.inverse_dynamics(turned, Configuration(turned, q), velocity, acceleration)
        worst = max(worst, largest(efforts_of(second) - efforts_of(first)) / largest(efforts_of(first)))
    figure(f"{name}: efforts of the turned robot, largest relative difference", worst, 1e-10)
    assert worst < 1e-10  # rounding of the turned positions (1e-16) times conditions up to 1e4


@pytest.mark.few
@pytest.mark.parametrize("name", CLOSED)
def test_the_choice_of_dependent_coordinates_changes_nothing(name, figure):
    robot, rng, worst, partitions = robot_of(name), np.random.default_rng(5), 0.0, set()
    for state in states_of(name):
        first = inverse(state)
        given = motors(robot, first.rates)
        J = state.configuration.scaled_closure_jacobian
        for _ in range(3):
            chosen = replace(robot)
            chosen.__dict__["preference"] = 10 ** rng.uniform(-1.5, 1.5, robot.tree.n)
            other = Configuration(chosen, state.configuration.q)
            partition = other.reduction.partition
            if mobility.condition(J[np.ix_(partition.rows, partition.dependent)]) > 1e4:
                continue
            partitions.add(tuple(partition.independent))
            second = parflex.inverse_dynamics(chosen, other, given, motors(robot, first.accelerations))
            worst = max(worst, largest(efforts_of(second) - efforts_of(first)) / largest(efforts_of(first)))
            found = parflex.forward_dynamics(chosen, other, given, first.efforts).accelerations
            worst = max(worst, largest(found - first.accelerations) / largest(first.accelerations))
    figure(f"{name}: {len(partitions)} choices of coordinates, largest relative difference", worst, 1e-9)
    assert len(partitions) > 1
    assert worst < 1e-9  # rounding times the condition of the worst block that is taken (1e4), twice


@pytest.mark.parametrize("name", ROBOTS)
def test_a_payload_acts_as_the_wrench_of_its_weight_and_inertia(name, figure):
    robot, mass, worst = robot_of(name), 1.7, 0.0
    place = np.array([0.03, -0.05, 0.0 if robot.tree.planar else 0.08])
    loaded, frame = parflex.load(name, payload=[mass, *place]), robot.tree.end_effector
    for state in states_of(name):
        with_payload = parflex.inverse_dynamics(
            loaded, Configuration(loaded, state.configuration.q), state.velocity, state.acceleration
        )
        moved = inverse(state)
        _, R = parflex.frames(robot, state.configuration)[frame]
        a, al = np.split(moved.acceleration_of(), 2)
        w = (state.configuration.frame_rows(frame) @ moved.rates)[3:]
        arm = R @ place
        force = mass * (robot.tree.gravity - a - np.cross(al, arm) - np.cross(w, np.cross(w, arm)))
        pushed = inverse(state, wrench={frame: [*force, *np.cross(arm, force)]})
        worst = max(worst, largest(efforts_of(pushed) - efforts_of(with_payload)) / largest(efforts_of(pushed)))
    figure(f"{name}: payload against its wrench, largest relative difference", worst, 1e-11)
    assert worst < 1e-11  # rounding times the condition of J_a
