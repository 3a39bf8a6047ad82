"""The rigid version of a flexible robot: its masses, what it answers, and which robots have none."""

import numpy as np
import pytest
from support.command_line import answered, refused
from support.oracles import super_elements as oracle
from support.robots import any_robot, load_robot, robot_file, write_robot

import parflex
from parflex.codegen.cache import digest_of
from parflex.parameters.parameters import Parameters

BEAMS = ["dualemps", "3rrr-flexible", "gough-stewart-beams", "navaro", "navaro-refined", "three-beam-legs"]
FLEXIBLE = [*BEAMS, "gough-stewart-flexible", "gough-stewart-elastic", "unlike-legs", "geared-beams"]


def energy(robot, v, w) -> float:
    """Kinetic energy of all bodies at home, moving as one: velocity v of the origin, angular velocity w."""
    total, at = 0.0, parflex.frames(robot)
    for link in robot.tree.links:
        if link.strut:
            continue
        p, R = at[link.name]
        M = link.body.inertia_matrix(np.zeros(link.body.size))[:6, :6]
        twist = np.concatenate([R.T @ (v + np.cross(w, p)), R.T @ w])
        total += 0.5 * twist @ M @ twist
    return total


@pytest.mark.few("dualemps", "gough-stewart-flexible", "unlike-legs")
@pytest.mark.parametrize("name", FLEXIBLE)
def test_bodies_have_the_energy_of_the_undeformed_flexible_ones(name):
    flexible, rigid = any_robot(name), any_robot(name, rigid=True)
    assert flexible.tree.elastic and not rigid.tree.elastic
    rng = np.random.default_rng(1)
    for v, w in rng.standard_normal((3, 2, 3)):
        assert energy(rigid, v, w) == pytest.approx(energy(flexible, v, w), rel=1e-12)  # sums of a hundred terms
    one, other = parflex.frames(flexible), parflex.frames(rigid)
    assert set(one) == set(other)
    for frame, (position, rotation) in one.items():
        assert np.abs(position - other[frame][0]).max() < 1e-12 and np.abs(rotation - other[frame][1]).max() < 1e-12


@pytest.mark.few("dualemps", "gough-stewart-flexible")
@pytest.mark.parametrize("name", ["dualemps", "3rrr-flexible", "gough-stewart-beams", "gough-stewart-flexible"])
def test_inverse_dynamics_are_those_of_locked_elastic_coordinates(name):
    flexible, rigid = parflex.load(name), parflex.load(name, rigid=True)
    velocity = {motor: 0.3 * (-1) ** k for k, motor in enumerate(rigid.motors)}
    acceleration = {motor: 0.7 + k for k, motor in enumerate(rigid.motors)}
    locked = flexible.locking(flexible.tree.elastic)
    wanted, found = (parflex.inverse_dynamics(one, None, velocity, acceleration).efforts for one in (locked, rigid))
    assert found == pytest.approx(wanted, rel=1e-8)  # loops close to 1e-12, and efforts are differences


def test_loops_inside_one_rigid_body_have_no_rows():
    robot = load_robot("arch-of-beams", rigid=True)
    assert robot.closures.size == 0 and robot.motors == ["hub"]
    bar = 7850 * 0.01 * 0.02
    arm = 2 * (0.3**2 / 2 * 0.3 * bar) / 0.3 + (0.3 * 0.2 * bar) + 0.3 * 0.5  # first moment about the hub, kg m
    assert parflex.inverse_dynamics(robot).efforts["hub"] == pytest.approx(9.81 * arm, rel=1e-12)
    moments = 0.01 + 2 * bar * 0.3 * (0.3**2 / 3 + 0.1**2) + bar * 0.2 * (0.3**2 + 0.2**2 / 12) + 0.5 * 0.3**2
    assert parflex.mass_matrix(robot)[0] == pytest.approx(moments, rel=1e-12)


def test_flexures_are_refused_by_name(capsys):
    assert load_robot("flexure-stage").tree.elastic
    error = refused(capsys, "info", robot_file("flexure-stage"), "--rigid")
    assert error["key"] == "rigid" and error["hint"] == "load the robot without --rigid"
    assert error["message"].startswith("'motor' can move only by the deformation of")
    assert "'left'" in error["message"] and "'right'" in error["message"] and "'boom'" not in error["message"]
    with pytest.raises(parflex.InputError, match="'tie' can move only by the deformation of 'rod'"):  # it has no motors
        load_robot("tie", rigid=True)


def test_a_super_element_is_the_rigid_body_in_its_matrices(tmp_path):
    M, K = oracle.reduced_beam(0.3, 4, oracle.round_bar(0.004), 2)
    np.savez(tmp_path / "bar.npz", M=M, K=K, positions=[[0, 0, 0], [0.3, 0, 0]])
    text = (
        'format = 1\nname = "arm"\n[[frame]]\nname = "arm"\njoint = "revolute"\nactuated = true\n'
        'superelement = { file = "bar.npz", nodes = { a = 1, b = 2 } }\n[[frame]]\nname = "hand"\nparent = "arm.b"\n'
        "inertia = { mass = 0.2, centre = [0, 0, 0], about_centre = [0, 0, 0] }\n"
    )
    rigid = parflex.load(write_robot(tmp_path, text), rigid=True)
    turn = np.array([0, 0, 0, 0, 0, 1.0, 0, 0.3, 0, 0, 0, 1.0])  # about z: of nodes at 0 and 0.3 on x
    assert parflex.mass_matrix(rigid)[0] == pytest.approx(turn @ M[:12, :12] @ turn + 0.2 * 0.3**2, rel=1e-9)


def test_springs_and_dampers_of_joints_and_elements_stay():
    settings = {"frame.hub.spring": {"stiffness": 40.0}, "frame.hub.damper": 0.3}
    terms = load_robot("arch-of-beams", settings=settings, rigid=True).tree.links[0].terms
    assert (terms.stiffness, terms.damper) == (40.0, 0.3)
    flexible, rigid = (load_robot("sprung-beams", rigid=rigid) for rigid in (False, True))
    assert [one.name for one in rigid.tree.elements] == [one.name for one in flexible.tree.elements] != []


def test_settings_payload_and_designs_apply_to_the_rigid_version():
    words = {"rigid": True, "payload": [0.5, 0, 0, 0]}
    robot, key = parflex.load("3rrr-flexible", **words), "sections.rod.diameter"
    found = parflex.many_responses(robot, ["x", "y"], [[0.0, 0.0]] * 2, ["mass"], designs={key: [0.02, 0.03]})["mass"]
    wide = parflex.load("3rrr-flexible", settings={key: 0.03}, **words)
    assert found == pytest.approx([sum(link.body.m for link in one.tree.links) for one in (robot, wide)], rel=1e-12)
    assert found[1] - found[0] == pytest.approx(3 * 0.3391 * (1.5**2 - 1), rel=1e-9)  # three rods of 0.3391 kg
    assert robot.tree.links[0].body.m == pytest.approx(parflex.load("3rrr").tree.links[0].body.m + 0.5)


def test_programs_of_both_versions_are_apart():
    flexible, rigid = parflex.load("dualemps"), parflex.load("dualemps", rigid=True)
    assert digest_of(flexible) != digest_of(rigid)
    assert Parameters(flexible, ["constants.blade"]).name() != Parameters(rigid, ["constants.blade"]).name()
    assert parflex.model(rigid, "inverse").counts["total"] < parflex.model(flexible, "inverse").counts["total"]
    assert digest_of(parflex.load("3rrr")) == digest_of(parflex.load("3rrr", rigid=True))  # its own rigid version


def test_errors_about_flexible_bodies_name_the_remedy(capsys):
    for call, *given in (
        (parflex.jacobian,),
        (parflex.inverse_dynamics, None, None, {"x": 0.1}),
        (parflex.model, "step"),
        (parflex.base_parameters,),
    ):
        with pytest.raises(parflex.ParflexError, match="rigid=True"):
            call(parflex.load("dualemps"), *given)
    assert "--rigid" in refused(capsys, "inverse", "dualemps", "--acceleration", "x=0.1")["hint"]
    assert set(answered(capsys, "inverse", "dualemps", "--rigid", "--acceleration", "x=0.1")["efforts"]) == {"11", "21"}


def test_poses_lose_their_deformations():
    settings = {"poses.bent": {"11": 0.05, "21": 0.02, "13.uy": 0.001}, "poses.only_bent": {"13.uy": 0.001}}
    robot = parflex.load("dualemps", rigid=True, settings=settings)
    assert robot.description.poses["bent"] == {"11": 0.05, "21": 0.02}
    assert "only_bent" not in robot.description.poses
    assert parflex.configure(robot, "bent").q == pytest.approx(parflex.configure(robot, {"11": 0.05, "21": 0.02}).q)
