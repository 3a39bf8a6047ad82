"""The matrix of an implicit step of robots in pieces against dense matrices by differences of the direct model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import parflex
from parflex import Robot
from parflex.codegen.step_programs import step_programs
from parflex.models.forms.in_pieces.node_equations import accelerations_under, efforts_for, node_state
from parflex.models.forms.in_pieces.piece_rates import piece_rates
from parflex.models.forms.in_pieces.pieces import Pieces, pieces
from parflex.models.forms.in_pieces.step_matrix import JointSlope, StepMatrix
from parflex.models.terms import acting
from parflex.recursion import pose
from parflex.spatial.complex_pairs import Pair

HERE = Path(__file__).parent / "robots"
ROBOTS = {  # closed loops in the plane; a body free in space that bends
    "dualemps": "dualemps",
    "bending satellite": HERE / "bending-satellite.toml",
}
ROOT = 0.25 + 0.14433756729740643j  # of Gauss collocation of order 4


def sprung(robot: Robot) -> Robot:
    """The robot with a spring and viscous friction in every joint, slack at home, and damped bodies."""
    links = []
    for k, link in enumerate(robot.tree.links):
        terms = link.terms
        if link.joint.one_axis:
            terms = replace(terms, stiffness=20.0 + k, rest=float(robot.home[link.q.start]), viscous=0.3 + k / 10)
        body = link.body
        if body.size:
            bare = None if body.bare is None else replace(body.bare, D=1e-3 * body.K)
            body = replace(body, D=1e-3 * body.K, bare=bare)
        links.append(replace(link, terms=terms, body=body))
    tree = replace(robot.tree, links=tuple(links))
    return replace(robot, tree=tree, closures=replace(robot.closures, tree=tree))


def slopes(robot: Robot) -> dict[int, JointSlope]:
    links = [link for link in robot.tree.links if link.joint.one_axis]
    return {link.v.start: JointSlope(link.terms.stiffness, link.terms.viscous + link.terms.damper) for link in links}


def free_accelerations(form: Pieces, q: np.ndarray, rates: np.ndarray, driven: bool) -> np.ndarray:
    state = node_state(form, q, rates)
    motors = np.zeros(len(form.robot.actuated))
    return efforts_for(state, motors)[1] if driven else accelerations_under(state, motors)


def tangents(form: Pieces, q: np.ndarray, rates: np.ndarray, free: list[int], driven: bool) -> list[np.ndarray]:
    """Derivatives of the free accelerations by free positions and rates, by central differences."""
    tree, by_position, by_rate = form.robot.tree, [], []
    for k in free:
        way = np.zeros(len(rates))
        way[k] = 1.0
        turned = np.asarray(piece_rates(form, pose(tree, q), way).qd, dtype=float)
        small = 1e-6 * tree.rate_units[form.partition.independent[k]]
        sides = [free_accelerations(form, tree.moved(q, s * small * turned), rates, driven)[free] for s in (1, -1)]
        by_position.append((sides[0] - sides[1]) / (2 * small))
        sides = [free_accelerations(form, q, rates + s * small * way, driven)[free] for s in (1, -1)]
        by_rate.append((sides[0] - sides[1]) / (2 * small))
    return [np.array(by_position).T, np.array(by_rate).T]


def corrected(form: Pieces, q: np.ndarray, c1: complex, c2: complex, driven: bool, miss: np.ndarray) -> np.ndarray:
    """The change by the sparse matrix, as complex numbers."""
    numbers = [Pair(c.real, c.imag) for c in (c1, c2)] if isinstance(c1, complex) else [c1, c2]
    matrix = StepMatrix(form, q, *numbers, driven, slopes(form.robot))
    given = [Pair(m.real, m.imag) for m in miss] if isinstance(c1, complex) else list(miss)
    change, _ = matrix.correction(matrix.factors(), np.array(given, dtype=object))
    return np.array([complex(x.re, x.im) if isinstance(x, Pair) else x for x in change])


@pytest.mark.few
@pytest.mark.parametrize("driven", [False, True], ids=["efforts", "driven"])
@pytest.mark.parametrize("name", ROBOTS)
def test_a_step_of_newton_at_rest_is_that_of_the_dense_matrix(name, driven):
    robot = sprung(acting(parflex.load(ROBOTS[name]), ("gravity", "friction")))
    form = pieces(robot)
    assert form is not None
    driven = driven and bool(robot.actuated)
    q, h, rng = robot.home, 1e-3, np.random.default_rng(3)
    free = StepMatrix(form, q, 1.0, 1.0, driven).free
    Jq, Jv = tangents(form, q, np.zeros(len(form.partition.independent)), free, driven)
    for root in (ROOT, 0.3):  # of a pair of stages, and of one alone
        c1, c2 = h * root, h * h * root * root
        miss = rng.standard_normal(len(free)) + (1j * rng.standard_normal(len(free)) if root == ROOT else 0.0)
        dense = np.linalg.solve(np.eye(len(free)) - c1 * Jv - c2 * Jq, miss)
        # differences have six digits of the largest entries
        assert np.abs(corrected(form, q, c1, c2, driven, miss) - dense).max() < 2e-5 * np.abs(dense).max()


@pytest.mark.parametrize("name", ["dualemps"])
def test_what_motion_adds_is_left_to_a_second_iteration(name):
    robot, rng, h = acting(parflex.load(ROBOTS[name]), ("friction",)), np.random.default_rng(4), 1e-3
    form = pieces(robot)
    rates, q = 0.3 * rng.standard_normal(len(form.partition.independent)), robot.home
    free = StepMatrix(form, q, 1.0, 1.0, False).free
    Jq, Jv = tangents(form, q, rates, free, False)
    miss = rng.standard_normal(len(free)) + 1j * rng.standard_normal(len(free))
    c1, c2 = h * ROOT, (h * ROOT) ** 2
    dense = np.linalg.solve(np.eye(len(free)) - c1 * Jv - c2 * Jq, miss)
    assert np.abs(corrected(form, q, c1, c2, False, miss) - dense).max() < 1e-2 * np.abs(dense).max()


def test_operators_of_a_step_grow_linearly_with_the_elements(figure):
    found = []
    for elements in (2, 4, 8):
        robot = acting(parflex.load("dualemps", elements=elements), ("friction",))
        made = step_programs(robot, "state-rates-driven", 0.0, True)
        assert made is not None
        found.append([len(program.program.instructions) for program in (made.factor, made.solve)])
    factor, solve = np.array(found).T
    for name, (two, four, eight) in (("factor", factor), ("solve", solve)):
        figure(f"instructions to {name} with 8 elements", int(eight))
        # twice the growth from 2 to 4, but for what the order of elimination finds by chance
        assert abs((eight - four) - 2 * (four - two)) < 0.1 * (eight - four)


def test_programs_give_the_change_of_the_matrix_and_its_friction():
    robot = parflex.load("dualemps")
    made, form = step_programs(robot, "state-rates", 1e-2, True), pieces(robot)
    q, h, rng = robot.home, 1e-3, np.random.default_rng(5)
    rates = 1e-2 * rng.standard_normal(len(form.partition.independent))
    c1, c2 = h * ROOT, (h * ROOT) ** 2
    full = np.zeros(robot.tree.n)
    full[form.partition.independent] = rates
    joints = {}
    for link in robot.tree.links:
        if link.joint.one_axis and (link.terms.viscous or link.terms.coulomb):
            rate = full[link.v.start]  # Coulomb friction is rate / sqrt(rate^2 + width^2)
            slope = link.terms.viscous + link.terms.coulomb * 1e-4 / (rate**2 + 1e-4) ** 1.5
            joints[link.v.start] = JointSlope(0.0, slope)
    assert joints
    matrix = StepMatrix(form, q, Pair(c1.real, c1.imag), Pair(c2.real, c2.imag), False, joints)
    miss = rng.standard_normal(len(rates)) + 1j * rng.standard_normal(len(rates))
    change, _ = matrix.correction(matrix.factors(), np.array([Pair(m.real, m.imag) for m in miss], dtype=object))
    factors = made.factor(q=q, qd=rates, c=np.array([c1.real, c1.imag, c2.real, c2.imag]))["factors"]
    found = made.solve(miss=np.concatenate([miss.real, miss.imag]), factors=factors)["change"]
    wanted = np.array([*(x.re for x in change), *(x.im for x in change)], dtype=float)
    assert np.abs(found - wanted).max() < 1e-9 * np.abs(wanted).max()  # condition of the matrix times rounding
