"""Machine parts against Lagrange's equations: each row a part, each column a question.

A row is a small robot with one part. Its reference is `oracles.EnergyModel`, Lagrange's equations by CasADi from the
same file, which shares no code with parflex.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from support.comparison import largest, order_of, positions, stiffness_error
from support.emitted import c_library, casadi_function, numpy_run
from support.machine_matrix import arm
from support.oracles.energy import EnergyModel
from support.oracles.reader import read_robot

import parflex
from parflex import Configuration
from parflex.dynamics.dynamics import accelerations_under, rigid_inverse
from parflex.view.scene import scene

TIGHT = 1e-10  # systems of condition below 1e3 in double precision leave 1e-13
STEP = 1e-3  # s; fourth order: 1e-9 of the energy that moves

# -- rows ----------------------------------------------------------------------------------------------------


RAM = """[[frame]]
name = "ram"
parent = "elbow"
joint = "prismatic"
place = { position = [0.1, 0, 0], rotation = [0, "pi/2", 0] }
inertia = { mass = 0.8, centre = [0.02, 0.01, 0.05], about_centre = [0.003, 0.003, 0.003] }
"""


def geared(keys: str, elbow: bool = False, more: str = "") -> str:
    return arm("", elbow=elbow).partition("[[element]]")[0] + f"{more}[[coupling]]\nname = 'part'\n" + keys + "\n"


ROWS = {
    "spring": arm("kind = 'spring'; stiffness = 250; rest = 0.2; damping = 3"),
    "spring by table": arm("kind = 'spring'; table = [[0.1, -5], [0.3, 10], [0.6, 60], [0.9, 70]]"),
    "damper": arm("kind = 'damper'; damping = 20"),
    "force": arm("kind = 'force'; table = { length = [[0, 8], [1, 12]], speed = [[-3, -20], [0, 0], [3, 9]] }"),
    "cable": arm("kind = 'cable'; stiffness = 300; rest = 0.25; damping = 5"),
    "rod": arm("kind = 'rod'", elbow=False),
    "strut": arm("kind = 'strut'; actuated = true; stiffness = 100; rest = 0.3; damping = 4", shoulder=False),
    "linear coupling": geared("joint = 'elbow'\nterms = { shoulder = -1.5 }\noffset = 1.3"),
    "screw": geared("joint = 'ram'\nother = 'elbow'\nlead = 0.5\noffset = 0.02", elbow=True, more=RAM),
    "elastic coupling": geared(
        "joint = 'elbow'\nterms = { shoulder = -1.5 }\noffset = 1.3\nstiffness = 90\ndamping = 2", elbow=True
    ),
}


class Machine:
    def __init__(self, row: str, folder: Path) -> None:
        self.path = folder / f"{re.sub(' ', '-', row)}.toml"
        self.path.write_text(ROWS[row], encoding="utf-8")
        self.robot = parflex.load(self.path)
        data = read_robot(self.path)
        for element in data.elements:  # a rod without a length is as long as it starts
            if element.kind == "rod" and element.rest is None:
                rods = {held.name: held.rest for held in self.robot.closures.constraints}
                object.__setattr__(element, "rest", rods[element.name])
        self.oracle = EnergyModel(data)
        robot, rng = self.robot, np.random.default_rng(3)
        home = Configuration(robot, robot.home)
        step = np.zeros(robot.tree.n)
        direction = home.null_space @ rng.standard_normal(home.null_space.shape[1])
        step[robot.free] = 0.1 * direction / largest(direction) * robot.tree.rate_units[robot.free]
        q, error = robot.assembler.newton(robot.tree.moved(home.q, step), robot.free, robot.closures.rows)
        assert error < 1e-12
        self.at = Configuration(robot, q)
        independent = self.at.reduction.partition.independent
        self.qd = self.at.J @ rng.uniform(-2, 2, len(independent))
        self.tau = rng.uniform(-5, 5, len(robot.actuated))
        self.qdd, self.multipliers = self.lagrange(self.at, self.qd, self.tau)

    def lagrange(self, at: Configuration, qd: np.ndarray, tau: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        named, order = positions(at), order_of(self.robot, self.oracle)
        back = np.argsort(order)
        M, c = self.oracle.mass_matrix_and_bias(named, qd[back])
        A, bias = self.oracle.closure_jacobian(named, qd[back])
        push = np.zeros(len(M))
        for name, value in zip(self.robot.actuated_names, tau, strict=True):
            push[self.oracle.coordinates.index(name)] = value
        system = np.block([[M, -A.T], [A, np.zeros((len(A), len(A)))]])
        found = np.linalg.solve(system, np.concatenate([push - c, -bias]))
        return found[: len(M)][order], found[len(M) :]

    def program(self, run, *folder) -> None:
        model = parflex.model(self.robot, "direct")
        own = [self.robot.tree.rate_names.index(name) for name in model.labels["qd"]]
        given = {"q": self.at.q, "qd": self.qd[own], "effort": self.tau}
        found = run(model, {name: np.array([given[name]]) for name in model.inputs}, *folder)
        assert found["qdd"][0] == pytest.approx(self.qdd[own], rel=1e-9, abs=TIGHT * largest(self.qdd))


@pytest.fixture(scope="module")
def machines(tmp_path_factory):
    folder = tmp_path_factory.mktemp("machines")
    return cache(lambda row: Machine(row, folder))


# -- columns -------------------------------------------------------------------------------------------------


def inverse(machine, folder):
    found = rigid_inverse(machine.at, machine.qd, machine.qdd)
    assert list(found.efforts.values()) == pytest.approx(machine.tau, abs=TIGHT * largest(machine.qdd))


def direct(machine, folder):
    found = accelerations_under(machine.at, machine.qd, machine.tau)
    assert found.accelerations == pytest.approx(machine.qdd, rel=TIGHT, abs=TIGHT * largest(machine.qdd))


def reactions(machine, folder):
    """Rods, struts and couplings carry the multipliers of their rows; other parts what they change of the motion."""
    found = accelerations_under(machine.at, machine.qd, machine.tau, reactions=True)
    parts = {**found.reactions.get("elements", {}), **found.reactions.get("couplings", {})}
    assert "part" in parts
    values = [one.get("force", one.get("effort")) for one in parts.values()]
    held = len(machine.multipliers) - sum(loop.size for loop in machine.robot.closures.loops)
    if held:  # rods and struts: the multiplier pushes, tension pulls; couplings: the effort itself
        sign = -1 if "elements" in found.reactions else 1
        rows = machine.multipliers[-held:]
        assert [sign * value for value in values[-held:]] == pytest.approx(rows, abs=TIGHT * largest(rows))
        return
    text = machine.path.read_text(encoding="utf-8")
    (folder / "bare.toml").write_text(re.split(r"\[\[(?:element|coupling)\]\]", text)[0], encoding="utf-8")
    named = positions(machine.at)
    c, free = (one.mass_matrix_and_bias(named, machine.qd)[1] for one in (machine.oracle, bare_model(folder)))
    if machine.oracle.data.couplings:  # its effort on the elbow, and minus the ratio times it on the shoulder
        assert free - c == pytest.approx([1.5 * values[0], values[0]], rel=1e-9)
        return
    wall, hand = (machine.at.at.of(machine.robot.tree.places[end])[1] for end in ("wall", "hand"))
    along = (hand - wall) / np.linalg.norm(hand - wall)
    assert c - free == pytest.approx(values[0] * along @ machine.at.frame_rows("hand")[:3], rel=1e-9, abs=1e-9)


def bare_model(folder):
    return EnergyModel(read_robot(folder / "bare.toml"))


def frequencies(machine, folder):
    """The stiffness about home, held there by the motors, is the second derivative of the energies."""
    efforts = parflex.inverse_dynamics(machine.robot).efforts
    model = parflex.linear_model(machine.robot, None, "none", "equilibrium", effort=efforts)
    assert stiffness_error(model, machine.oracle, efforts) < 1e-8  # as frequencies of systems of condition 1e6


def c_program(machine, folder):
    machine.program(c_library, folder)


def numpy_program(machine, folder):
    machine.program(numpy_run)


def casadi_program(machine, folder):
    machine.program(casadi_function)


def arrays(machine, folder):
    found = parflex.forward_dynamics(machine.robot, machine.at.q, machine.qd, machine.tau)
    assert found == pytest.approx(machine.qdd, rel=1e-9, abs=TIGHT * largest(machine.qdd))


def simulate(machine, folder):
    robot = machine.robot
    effort = dict(zip(robot.actuated_names, machine.tau, strict=True))
    run = parflex.simulate(robot, None, 0.1, effort=effort, step=STEP, start={"pose": "home"})
    assert run.summary["energy_balance_error"] < 1e-7 * np.ptp(run["energy.kinetic"])
    q, change = (np.array([run[f"{w}.{c}"][-1] for c in robot.tree.position_names]) for w in ("q", "qd"))
    rates = robot.tree.rates(q, change)
    qdd, _ = machine.lagrange(Configuration(robot, q), rates, machine.tau)
    for name in (column.removeprefix("qdd.") for column in run.columns if column.startswith("qdd.")):
        # rates at the last row are closed to 1e-12, and steep parts carry that on
        assert run[f"qdd.{name}"][-1] == pytest.approx(qdd[robot.tree.rate_names.index(name)], rel=1e-7, abs=1e-7)


def explain(machine, folder):
    told = parflex.explain(machine.robot)
    lines = [line for chapter in told.sections for line in chapter.text]
    assert any("part" in line for line in lines)


def view(machine, folder):
    robot = machine.robot
    shown = scene(robot)
    ends = {"wall", "hand"} if robot.description.element else set()
    points = shown.vertices(machine.at.q)
    if robot.description.coupling:  # wheels and threads on both of its joints
        (mesh,) = (mesh for mesh in shown.meshes if mesh.name == "couplings")
        one = robot.description.coupling[0]
        for joint in (one.joint, *one.others):
            place = machine.at.at.position[robot.tree.number(joint)]
            assert np.linalg.norm(points[mesh.vertices] - place, axis=1).min() < 0.06
    for end in ends:
        assert np.linalg.norm(points - machine.at.at.of(robot.tree.places[end])[1], axis=1).min() < 0.02


QUESTIONS = (inverse, direct, reactions, frequencies, c_program, numpy_program, casadi_program, arrays, simulate)
COLUMNS = {question.__name__: question for question in (*QUESTIONS, explain, view)}


@pytest.mark.few
@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("row", ROWS)
def test_machine(row, column, machines, tmp_path):
    COLUMNS[column](machines(row), tmp_path)
