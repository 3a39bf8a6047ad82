"""Flexible robots, their forms and their programs against Lagrange's equations of energies that share no code.

Bodies are beams or given by modes. Soft ones bend far, so that no term is too small to be seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pytest
from support import modal_robots as modal
from support.cases import VERIFY
from support.catalogue import CATALOGUE
from support.comparison import accelerated, largest, order_of, positions
from support.flexible_states import batch, error_of
from support.forms_lagrange import BEHIND, CUT, bent_lagrange_state, in_pieces, lagrange_state
from support.oracles.beam_robots import HEXAGON
from support.oracles.flexible_energy import FlexibleEnergyModel
from support.oracles.modal_data import invented, read_modes
from support.oracles.reader import read_robot
from support.paths import ROBOTS

import parflex
from parflex import Configuration, Robot, natural_frequencies
from parflex.formulations.base import ModelRequest
from parflex.formulations.general import general_formulation
from parflex.formulations.substructures import substructure_state
from parflex.recursion.kinematics import motion
from parflex.robot.program_rates import motor_partition
from parflex.robot.substructures import PREFERENCES, find_substructures, substructures_or_reason
from parflex.statics.linear_model import tree_stiffness

STATES = 20 if VERIFY else 2
GRAVITY = [1.0, -2.0, -9.81]  # along no axis of any of the robots
MEAN = "dualemps, mean strain"
BEAMS = ["dualemps", "navaro", "gough-stewart-beams", MEAN, "rolled-beams"]  # the last: chains, shear, rolled sections
SOFT = 1e-7  # of the stiffness: elastic forces do not hide the others however much beams bend
REAL_SIZE, SOFT_SIZE = 1e-4, 0.1  # m and rad at the ends of beams: what real ones bear, and far more
# robot, whether the modes carry no momentum, how much softer the body is: elastic forces then hide nothing
MODAL = {
    "free modes": ("gough-stewart", True, 1.0),
    "free modes, soft": ("gough-stewart", True, 1e-6),
    "other modes, soft": ("gough-stewart", False, 1e-6),
    "on beams": ("gough-stewart-beams", True, 1.0),
    "a plate on beams": ("gough-stewart-elastic", True, 1.0),
    "with a tool on a corner, soft": ("gough-stewart", True, 1e-6),
    "links in a row": ("modal-arms-in-a-row", False, 1e-3),
    "links in a loop, hinged": ("modal-arms-in-a-loop", False, 1e-3),
    "links in a loop, welded": ("modal-arms-in-a-loop, welded", False, 1e-3),
}
CASES = [*BEAMS, *(f"{name}, soft" for name in BEAMS), *MODAL]
# rounding of 2.2e-16 times the condition of the systems: up to 1e6 with beams (a blade's tip beside a slide of 95 kg),
# and 1e4 with modes
TOLERANCE, MODAL_TOLERANCE = 2.2e-10, 1e-11
FEW = pytest.mark.few("dualemps]", "[navaro, soft", "links in a loop, hinged", "[free modes, soft")


def tolerance(case: str) -> float:
    return MODAL_TOLERANCE if case in MODAL else TOLERANCE


@cache
def pair(case: str) -> tuple[Robot, FlexibleEnergyModel]:
    """A robot and its Lagrangian."""
    return modal_pair(case) if case in MODAL else beam_pair(case)


def beam_pair(case: str) -> tuple[Robot, FlexibleEnergyModel]:
    """A robot with beams, whose materials may be softer."""
    mean, name, stiffness = "mean" in case, case.partition(",")[0], SOFT if "soft" in case else 1.0
    own = ROBOTS / f"{name}.toml"
    file = own if own.exists() else CATALOGUE / f"{name}.toml"
    settings: dict = {"gravity": GRAVITY} | ({"axial": "mean"} if mean else {})
    for key, material in parflex.load(file).description.materials.items():
        settings[f"materials.{key}.elastic_modulus"] = stiffness * material.elastic_modulus
        if material.shear_modulus is not None:
            settings[f"materials.{key}.shear_modulus"] = stiffness * material.shear_modulus
    data = read_robot(file)

    def softer(bar):
        return bar and replace(bar, E=stiffness * bar.E, G=stiffness * bar.G, mean=mean or bar.mean)

    frames = [replace(frame, bar=softer(frame.bar)) for frame in data.frames]
    oracle = FlexibleEnergyModel(replace(data, frames=frames, gravity=np.array(GRAVITY)))
    return parflex.load(file, settings=settings), oracle


def modal_pair(case: str) -> tuple[Robot, FlexibleEnergyModel]:
    """A robot with bodies given by modes, in place of its platform or as its links."""
    (name, free, softer), folder = MODAL[case], Path(mkdtemp())
    if "links" in case:
        places = (modal.ARM, modal.OTHER)
        two = [invented(one, 7, seed, False, mass=5.0, held="root") for seed, one in enumerate(places)]
        return modal.arms(folder, name, *(replace(one, stiffnesses=softer * one.stiffnesses) for one in two))
    if name == "gough-stewart-elastic":
        modes = read_modes(CATALOGUE / "hexagon-plate.npz")
        modes = replace(modes, stiffnesses=np.array(modal.PRINTED_STIFFNESS), damping_ratios=np.full(10, 0.4))
        robot = parflex.load(name, settings={"gravity": GRAVITY})
        return robot, modal.lagrange("gough-stewart-beams", {"platform": modes})
    modes = invented(HEXAGON, 10, seed=1 + free, free=free)
    modes = replace(modes, stiffnesses=softer * modes.stiffnesses)
    tool = "tool" in case
    robot = modal.with_platform(folder, name, modes, extra=modal.TOOL if tool else "")
    return robot, modal.lagrange(name, {"platform": modes}, more=[modal.TOOL_FRAME] if tool else [])


@cache
def states(case: str) -> list[dict]:
    """Bent, closed positions in motion, with efforts, and all that follows by Lagrange's equations."""
    robot, oracle = pair(case)
    if case not in MODAL:
        rng, size = np.random.default_rng(11), SOFT_SIZE if "soft" in case else REAL_SIZE
        return [bent_lagrange_state(robot, oracle, rng, size) for _ in range(STATES)]
    tree, rng, found = robot.tree, np.random.default_rng(3), []
    size = np.full(tree.n, 0.1)  # modal coordinates: the static deflection of a plate of 15 mm, and joints
    size[[k for k in tree.elastic if "mode" not in tree.rate_names[k]]] = 2e-4  # m and rad at the ends of steel tubes
    joints = [k for k in robot.free if "mode" not in tree.rate_names[k] or "links" in case]
    for _ in range(STATES):
        start = tree.moved(robot.home, rng.uniform(-1, 1, tree.n) * size)
        q, error = robot.assembler.newton(start, np.array(joints), list(robot.closures.loops))
        assert error < 1e-12
        found.append(lagrange_state(robot, oracle, q, rng, 5.0, 300.0))
    assert max(largest(motion(tree, one["at"].at, one["rates"], one["rates"]).w) for one in found) > 3  # rad/s
    return found


def of_motors(state: dict, values: np.ndarray) -> dict[str, float]:
    of = state["at"].robot
    return {name: float(values[k]) for name, k in zip(of.motors, of.actuated, strict=True)}


@FEW
@pytest.mark.parametrize("case", CASES)
def test_closed_robots_accelerate_as_by_lagrange(case, figure):
    _, oracle = pair(case)
    worst = loops = inertia = 0.0
    for state in states(case):
        at = state["at"]
        found = accelerated(at, state["rates"], state["effort"]).accelerations
        worst = max(worst, largest(found - state["accelerations"]) / state["sizes"]["qdd"])
        M = at.J.T @ state["M"] @ at.J
        inertia = max(inertia, largest(parflex.mass_matrix(at.robot, at).matrix - M) / largest(M))
        loops = max(loops, largest(oracle.closure_residual(positions(at))))
    figure(f"{case}: accelerations against Lagrange", worst, tolerance(case))
    assert worst < tolerance(case)
    assert inertia < 1e-12  # sums of products
    assert loops < 1e-12  # both say that the loops are closed


@FEW
@pytest.mark.parametrize("case", CASES)
def test_inverse_and_direct_model_are_those_of_lagrange_when_motors_move(case, figure):
    """The functions take rates of motors; bodies are bent but do not vibrate beyond what these ask for."""
    robot, oracle = pair(case)
    order, worst = order_of(robot, oracle), {"direct": 0.0, "inverse": 0.0}
    for state in states(case):
        at, q = state["at"], positions(state["at"])
        rates, wanted = of_motors(state, state["rates"]), of_motors(state, state["accelerations"])
        efforts = dict(zip(robot.motors, map(float, state["effort"]), strict=True))
        direct = parflex.forward_dynamics(robot, at, rates, efforts)
        qd = np.empty(robot.nv)
        qd[order] = direct.rates
        expected = oracle.accelerations(q, qd, efforts)[order]
        worst["direct"] = max(worst["direct"], largest(direct.accelerations - expected) / largest(expected))
        inverse = parflex.inverse_dynamics(robot, at, rates, wanted)
        expected, needed = oracle.driven(q, qd, wanted)
        missed = largest([inverse.efforts[word] - needed[word] for word in needed])
        # efforts are what is left of the inertia of everything that moves with a motor
        inertia = np.abs(state["M"][list(robot.actuated)]) @ np.abs(expected[order])
        size = max(state["sizes"]["effort"], largest(list(needed.values())), largest(inertia))
        miss = largest(inverse.accelerations - expected[order]) / largest(expected)
        worst["inverse"] = max(worst["inverse"], miss, missed / size)
    for what, error in worst.items():
        figure(f"{case}: {what} model against Lagrange", error, tolerance(case))
    assert max(worst.values()) < tolerance(case)


PROGRAMS = [name for name in CASES if name not in ("free modes", "free modes, soft", "other modes, soft", "on beams")]


# of links in a loop modes depend on the motors: the choice of coordinates matters; links in a row are written in pieces
@pytest.mark.few("dualemps-inverse")
@pytest.mark.parametrize("model", ["direct", "inverse"])
@pytest.mark.parametrize("case", PROGRAMS)
def test_compiled_programs_give_the_numbers_of_lagrange(case, model, figure):
    robot, _ = pair(case)
    program = parflex.model(robot, model, include=("motor-inertia", "friction"))
    given, wanted = batch(states(case), program, robot)
    error = error_of(program(**given), wanted, states(case))
    figure(f"{case} {model}: program against Lagrange", error, tolerance(case))
    assert error < tolerance(case)


@pytest.mark.parametrize(
    ("name", "poses"), [("dualemps", [None]), ("navaro", ["pose-2", "pose-4"]), ("gough-stewart-beams", [None])]
)
def test_linearised_the_energies_have_the_natural_frequencies(name, poses, figure):
    robot, oracle = pair(name)
    for pose in poses:
        for lock in ("actuators", "none"):
            modes = natural_frequencies(robot, pose, lock=lock)
            held = robot.motors if lock == "actuators" else []
            expected = oracle.frequencies(positions(modes.model.start), held)[len(modes.free_motions) :]
            error = largest(modes.frequencies / expected[: len(modes.frequencies)] - 1)
            figure(f"{name} {pose or 'home'}, locked {lock}: frequencies against Lagrange", error, 1e-9)
            assert error < 1e-9  # rounding of the highest of the squares, 1e12 times the lowest, leaves 1e-10


# -- the rigid limit, and other coordinates ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["dualemps", pytest.param("gough-stewart-beams", marks=pytest.mark.verify)])
def test_stiffer_beams_come_nearer_to_the_rigid_robot_as_one_over_their_stiffness(name, figure):
    rng = np.random.default_rng(5)
    given = [dict(zip(pair(name)[0].motors, rng.uniform(-1, 1, 6), strict=False)) for _ in range(2)]
    efforts, passive = zip(*(_steadily_bent(name, 10.0**k, *given) for k in range(4)), strict=True)
    for what, found, rigid in zip(("efforts", "accelerations"), (efforts, passive), _rigid(name, *given), strict=True):
        errors = np.array([largest(one - rigid) / largest(rigid) for one in found])
        figure(f"{name}: {what} nearer to the rigid robot per decade", str(np.round(errors[:-1] / errors[1:], 4)))
        assert errors[0] > 1e-7  # beams matter
        # the next term of the series is a hundredth at the real stiffness, and falls as well
        assert errors[:-1] / errors[1:] == pytest.approx([10] * 3, rel=0.05)


def _steadily_bent(name: str, stiffness: float, rates: dict, accelerations: dict) -> tuple[np.ndarray, np.ndarray]:
    """Efforts, and accelerations of joints, where beams are bent so that they do not vibrate: e_dot = e_ddot = 0."""
    materials = parflex.load(name).description.materials
    moduli = {f"materials.{key}.elastic_modulus": stiffness * one.elastic_modulus for key, one in materials.items()}
    robot = parflex.load(name, settings={"gravity": GRAVITY} | moduli)
    held = np.isin(np.arange(robot.nv), [*robot.tree.elastic, *robot.actuated])
    robot.__dict__["preference"] = np.where(held, 1e-4, 1.0)  # joints and platform are the dependent coordinates
    tree = robot.tree
    elastic = [tree.rate_names[k] for k in tree.elastic]
    places = [tree.position_names.index(word) for word in elastic]
    q = robot.home
    for _ in range(7):  # each divides the rest by twenty or more
        q, _ = robot.assembler.newton(q, np.setdiff1d(robot.free, tree.elastic), list(robot.closures.loops))
        at = Configuration(robot, q)
        result = parflex.inverse_dynamics(robot, at, rates, accelerations)
        M, K = parflex.mass_matrix(robot, at).matrix, at.J.T @ tree_stiffness(at)[0] @ at.J
        own = [at.independent_names.index(word) for word in elastic]
        block = np.ix_(own, own)
        q = q.copy()
        q[places] += np.linalg.solve(K[block], M[block] @ [result.elastic_accelerations[word] for word in elastic])
    assert max(map(abs, result.elastic_accelerations.values())) < 1e-6  # m/s2, where the motors accelerate by 1
    return np.array(list(result.efforts.values())), np.delete(result.accelerations, tree.elastic)


def _rigid(name: str, rates: dict, accelerations: dict) -> tuple[np.ndarray, np.ndarray]:
    """The same of the Lagrangian with its elastic coordinates held as if by motors."""
    robot, oracle = pair(name)
    q = positions(Configuration(robot, robot.home))
    none = dict.fromkeys((robot.rates[k] for k in robot.tree.elastic), 0.0)
    qd, _ = oracle.motion(q, rates | none, accelerations | none)
    qdd, efforts = oracle.driven(q, qd, accelerations | none)
    ours = np.delete(qdd[order_of(robot, oracle)], robot.tree.elastic)
    return np.array([efforts[word] for word in robot.motors]), ours


@pytest.mark.few("dualemps", "rolled-beams")
@pytest.mark.parametrize("name", BEAMS)
def test_another_choice_of_dependent_coordinates_changes_nothing(name, figure):
    case = f"{name}, soft"
    robot, _ = pair(case)
    rng, worst, partitions = np.random.default_rng(6), 0.0, set()
    for state in states(case):
        found = 0
        while found < 2:
            chosen = replace(robot)
            chosen.__dict__["preference"] = 10 ** rng.uniform(-1.5, 1.5, robot.nv)
            at = Configuration(chosen, state["q"])
            M = parflex.mass_matrix(chosen, at).matrix
            sizes = np.sqrt(np.diag(M))
            if np.linalg.cond(M / np.outer(sizes, sizes)) > 1e6:
                continue
            found += 1
            partitions.add(tuple(at.independent_names))
            accelerations = accelerated(at, state["rates"], state["effort"]).accelerations
            worst = max(worst, largest(accelerations - state["accelerations"]) / state["sizes"]["qdd"])
    figure(f"{name}: {len(partitions)} choices of coordinates against Lagrange", worst, TOLERANCE)
    assert len(partitions) > 1
    assert worst < TOLERANCE  # rounding times the condition of the mass matrix


# -- forms: what a program is traced from, with plain numbers ----------------------------------------------------------

IN_LOOPS = ["with a tool on a corner, soft", "links in a loop, hinged", "links in a loop, welded"]
IN_PIECES = ["on beams", "links in a row", *(f"{name}, soft" for name in [*BEAMS, "three-beam-legs"]), *BEHIND, *CUT]


def robot_and_states(case: str) -> tuple[Robot, list[dict]]:
    return in_pieces(case) if case in BEHIND | CUT else (pair(case)[0], states(case)[:2])


def worst(case: str, independent: np.ndarray, direct: Callable, inverse: Callable) -> float:
    """Largest relative error of accelerations under efforts, and of efforts for accelerations of the motors."""
    robot, found = robot_and_states(case)
    errors = []
    for state in found:
        q, rates, wanted = state["q"], state["rates"][independent], state["accelerations"]
        effort, qdd = inverse(q, rates, wanted[list(robot.actuated)])
        errors.append(largest(direct(q, rates, state["effort"]) - wanted[independent]) / state["sizes"]["qdd"])
        errors.append(largest(effort - state["effort"]) / state["sizes"]["effort"])
        errors.append(largest(qdd - wanted[independent]) / state["sizes"]["qdd"])
    return max(errors)


@pytest.mark.few("links in a row-", "dualemps, soft-", "in the plane-root", "to another loop-root")
@pytest.mark.parametrize("preferred", PREFERENCES)
@pytest.mark.parametrize("case", IN_PIECES)
def test_robots_in_pieces_move_as_by_lagrange(case, preferred, figure):
    form = substructures_or_reason(robot_and_states(case)[0], preferred, at_any_cost=True)
    assert not isinstance(form, str), form
    error = worst(
        case,
        form.partition.independent,
        lambda q, rates, tau: substructure_state(form, q, rates).pushed(tau)[0],
        lambda q, rates, wanted: substructure_state(form, q, rates).efforts_for(wanted),
    )
    figure(f"{case}, pieces by {preferred}, against Lagrange", error, TOLERANCE)
    assert error < TOLERANCE


@pytest.mark.parametrize(("case", "frame"), [("links in a row", "hand"), ("gough-stewart-beams, soft", "platform")])
def test_wrenches_act_on_robots_in_pieces_as_on_the_tree(case, frame):
    """Against the general reduction, whose wrenches are held against both oracles with rigid robots."""
    form, state = find_substructures(pair(case)[0]), states(case)[0]
    load, independent = {frame: np.array([80.0, -50.0, 30.0, 7.0, -9.0, 4.0])}, form.partition.independent
    qdd = accelerated(state["at"], state["rates"], state["effort"], wrench=load).accelerations[independent]
    moving = substructure_state(form, state["q"], state["rates"][independent], load)
    assert largest(moving.pushed(state["effort"])[0] - qdd) < TOLERANCE * largest(qdd)
    assert largest(qdd - state["accelerations"][independent]) > 1e-3 * largest(qdd)  # the wrench matters


@pytest.mark.parametrize("case", [*IN_LOOPS, "links in a row", "dualemps, soft"])
def test_the_general_form_moves_as_by_lagrange(case, figure):
    robot = pair(case)[0]
    assert (find_substructures(robot) is None) == (case in IN_LOOPS)
    form = general_formulation(robot, motor_partition(robot), ModelRequest("state-rates-driven"))
    error = worst(
        case,
        form.partition.independent,
        lambda q, rates, tau: form.accelerations_under(form.moving(q, rates), tau),
        lambda q, rates, wanted: form.efforts_for(form.moving(q, rates), wanted),
    )
    figure(f"{case}, general form, against Lagrange", error, TOLERANCE)
    assert error < TOLERANCE
