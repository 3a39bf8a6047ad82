"""Laws of mechanics that the models of every robot of the catalogue keep."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.catalogue import CATALOGUE, RIGID
from support.comparison import after, largest
from support.robots import write_robot
from support.states import Draws, random_states
from support.variants import base_moved, read_table, toml_text

import parflex
from parflex import Configuration
from parflex.recursion.kinematics import motion

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


@pytest.fixture
def check(figure):
    """Check the largest error of the states of a robot."""

    def of(name, law, error, limit, count=6):
        worst = max(error(robot_of(name), state) for state in states_of(name)[:count])
        figure(f"{name}: {law}, largest relative error", worst, limit)
        assert worst < limit

    return of


def inverse(state, **options):
    return parflex.inverse_dynamics(
        state.configuration.robot, state.configuration, state.velocity, state.acceleration, **options
    )


def efforts_of(result):
    return np.array(list(result.efforts.values()))


@pytest.mark.few
@pytest.mark.parametrize("name", ROBOTS)
def test_the_direct_model_undoes_the_inverse_model(name, check):
    def error(robot, state):
        wanted, scale = inverse(state), robot.tree.rate_units
        given = motors(robot, wanted.rates)
        direct = parflex.forward_dynamics(robot, state.configuration, given, wanted.efforts)
        off = largest((direct.accelerations - wanted.accelerations) / scale) / largest(wanted.accelerations / scale)
        again = parflex.inverse_dynamics(robot, state.configuration, given, motors(robot, direct.accelerations))
        return max(off, largest(efforts_of(again) - efforts_of(wanted)) / largest(efforts_of(wanted)))

    # mass matrices and closures have condition numbers up to 1e5: 1e-16 times that is 1e-11
    check(name, "direct o inverse", error, 1e-10)


@pytest.mark.parametrize("name", ROBOTS)
def test_both_forms_of_khalil_give_the_same_efforts(name, check):
    def error(robot, state):
        projected, split = (efforts_of(inverse(state, form=form)) for form in ("projected", "split"))
        return largest(projected - split) / largest(split)

    # the same sums in another order: rounding times the condition of J_a, at most some hundreds here
    check(name, "[Khalil2007] (20) against (22)", error, 1e-12)


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
def test_energy_grows_by_the_power_of_the_motors_less_the_losses(name, check):
    def error(robot, state, step=1e-6):
        result = inverse(state)
        qd, qdd = result.rates, result.accelerations
        ends = [sum(parflex.energies(*after(state.configuration, qd, qdd, t))) for t in (step, -step)]
        growth = (ends[0] - ends[1]) / (2 * step)
        rows = [(link.terms, qd[link.v.start]) for link in robot.tree.links]
        losses = sum((t.viscous + t.damper) * rate**2 + t.coulomb * abs(rate) for t, rate in rows)
        powers = np.array([result.efforts[motor] * rate for motor, rate in motors(robot, qd).items()])
        return abs(growth - powers.sum() + losses) / (largest(powers) + losses + abs(growth))

    # central differences: truncation (10 rad/s * 1e-6 s)^2 = 1e-10, rounding 1e-16/1e-6 = 1e-10, times ratios of terms
    check(name, "power balance", error, 1e-7)


@pytest.mark.parametrize("name", ROBOTS)
def test_the_jacobian_is_the_derivative_of_the_pose_by_the_motors(name, check):
    robot, h = robot_of(name), 5e-6
    tree, passive = robot.tree, np.array([k for k in robot.free if k not in robot.actuated], dtype=int)

    def slope(configuration, k, step):
        ends = []
        for way in (step, -step):
            q = tree.moved(configuration.q, way * np.eye(tree.n)[k])
            q, _ = robot.assembler.newton(q, passive, robot.closures.rows)
            ends.append(parflex.frames(robot, Configuration(robot, q))[tree.end_effector])
        (p1, R1), (p2, R2) = ends
        return np.concatenate([p1 - p2, Rotation.from_matrix(R1 @ R2.T).as_rotvec()]) / (2 * step)

    def error(robot, state):
        at, J = state.configuration, parflex.jacobian(robot, state.configuration)
        expected = [(4 * slope(at, k, h) - slope(at, k, 2 * h)) / 3 for k in robot.actuated]
        return largest(J - np.array(expected).T) / largest(J)

    # rounding 1e-15/5e-6 = 2e-10 times conditions of some hundreds; truncation falls with the fourth power of the step
    check(name, "Jacobian against finite differences", error, 1e-7, count=3)


@pytest.mark.parametrize("name", CLOSED)
def test_closure_rows_are_derivatives_of_the_openings(name, check):
    rng, still = np.random.default_rng(3), np.zeros(robot_of(name).tree.n)

    def error(robot, state):
        tree, units, at = robot.tree, robot.closures.row_units(), state.configuration
        qd = at.J @ rng.standard_normal(at.J.shape[1])
        qd /= largest(qd / tree.rate_units)
        qdd = rng.uniform(-1, 1, tree.n) * tree.rate_units

        def opening(velocity, acceleration, time):
            q = tree.moved(at.q, time * velocity + time**2 / 2 * acceleration)
            return robot.closures.residual(Configuration(robot, q).at)

        h = 1e-5
        slope = (opening(qdd, still, h) - opening(qdd, still, -h)) / (2 * h)  # any velocity, not only one that closes
        first = largest(slope - units * (at.closure_jacobian @ qdd)) / tree.length
        h = 3e-4
        bend = (opening(qd, qdd, h) - 2 * opening(qd, qdd, 0) + opening(qd, qdd, -h)) / h**2
        second = largest(bend - units * robot.closures.bias(at.at, motion(tree, at.at, qd, qdd))) / tree.length
        # truncation 1e-10 and rounding 1e-16/1e-5 = 1e-11; of second derivatives 1e-7 and 1e-9, some dozen terms
        return max(1e3 * first, second)

    check(name, "closure velocities and accelerations against differences", error, 1e-5)


@pytest.mark.parametrize("name", CLOSED)
def test_loops_stay_closed_along_the_motion_that_a_model_gives(name, check):
    def error(robot, state):
        result, units = inverse(state), robot.tree.rate_units
        h = 3e-4 / max(largest(result.rates / units), largest(result.accelerations / units) ** 0.5)
        ends = [after(state.configuration, result.rates, result.accelerations, time)[0] for time in (h, -h)]
        return max(moved.closure_error for moved in ends) / robot.tree.length

    # only terms of third order are left: (3e-4)^3 = 3e-11, some dozen of them; a wrong velocity opens them by 1e-4, a
    # wrong acceleration by 1e-7
    check(name, "opening of loops after moving by 3e-4 of a turn, in lengths", error, 1e-9)


@pytest.mark.parametrize("name", ROBOTS)
def test_turning_the_whole_robot_changes_no_effort(name, check, tmp_path):
    planar = robot_of(name).tree.planar
    turn, shift = ((0, 0, 0.7), (0.4, -0.2, 0)) if planar else ((0.5, -0.8, 0.3), (0.4, -0.2, 0.9))
    text = toml_text(base_moved(read_table(CATALOGUE / f"{name}.toml"), turn, shift))
    turned, R = parflex.load(write_robot(tmp_path, text)), Rotation.from_rotvec(turn)

    def error(robot, state):
        q = state.configuration.q.copy()
        for link in robot.tree.links:
            if link.joint.kind == "planar":
                q[link.q] = [*(R.apply([*q[link.q][:2], 0]) + shift)[:2], q[link.q][2] + turn[2]]
            elif link.joint.kind == "free":
                old = Rotation.from_quat(q[link.q][3:], scalar_first=True)
                q[link.q] = [*(R.apply(q[link.q][:3]) + shift), *(R * old).as_quat(scalar_first=True)]
        first = inverse(state)
        given = motors(robot, first.rates), motors(robot, first.accelerations)
        second = parflex.inverse_dynamics(turned, Configuration(turned, q), *given)
        return largest(efforts_of(second) - efforts_of(first)) / largest(efforts_of(first))

    # rounding of the turned positions (1e-16) times conditions up to 1e4
    check(name, "efforts of the turned robot", error, 1e-10)


@pytest.mark.few
@pytest.mark.parametrize("name", CLOSED)
def test_the_choice_of_dependent_coordinates_changes_nothing(name, check):
    rng, partitions = np.random.default_rng(5), set()

    def error(robot, state):
        first, worst = inverse(state), 0.0
        given, J = motors(robot, first.rates), state.configuration.scaled_closure_jacobian
        for _ in range(3):
            chosen = replace(robot)
            chosen.__dict__["preference"] = 10 ** rng.uniform(-1.5, 1.5, robot.tree.n)
            other = Configuration(chosen, state.configuration.q)
            partition = other.reduction.partition
            if np.linalg.cond(J[np.ix_(partition.rows, partition.dependent)]) > 1e4:
                continue
            partitions.add(tuple(partition.independent))
            second = parflex.inverse_dynamics(chosen, other, given, motors(robot, first.accelerations))
            direct = parflex.forward_dynamics(chosen, other, given, first.efforts).accelerations
            off = largest(efforts_of(second) - efforts_of(first)) / largest(efforts_of(first))
            worst = max(worst, off, largest(direct - first.accelerations) / largest(first.accelerations))
        return worst

    # rounding times the condition of the worst block that is taken (1e4), twice
    check(name, "choices of coordinates", error, 1e-9)
    assert len(partitions) > 1


@pytest.mark.parametrize("name", ROBOTS)
def test_a_payload_acts_as_the_wrench_of_its_weight_and_inertia(name, check):
    mass, place = 1.7, np.array([0.03, -0.05, 0.0 if robot_of(name).tree.planar else 0.08])
    loaded = parflex.load(name, payload=[mass, *place])

    def error(robot, state):
        q, frame = state.configuration.q, robot.tree.end_effector
        carried = parflex.inverse_dynamics(loaded, Configuration(loaded, q), state.velocity, state.acceleration)
        moved, arm = inverse(state), parflex.frames(robot, state.configuration)[frame][1] @ place
        a, al = np.split(moved.acceleration_of(), 2)
        w = (state.configuration.frame_rows(frame) @ moved.rates)[3:]
        force = mass * (robot.tree.gravity - a - np.cross(al, arm) - np.cross(w, np.cross(w, arm)))
        pushed = inverse(state, wrench={frame: [*force, *np.cross(arm, force)]})
        return largest(efforts_of(pushed) - efforts_of(carried)) / largest(efforts_of(pushed))

    check(name, "payload against its wrench", error, 1e-11)  # rounding times the condition of J_a
