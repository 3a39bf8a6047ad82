"""Elements between arbitrary bodies of random robots, in any unit of length, against Lagrange's equations."""

import numpy as np
import pytest
from support.cases import VERIFY
from support.comparison import accelerated, chosen, largest, order_of, positions
from support.oracles.energy import EnergyModel
from support.oracles.flexible_energy import FlexibleEnergyModel
from support.oracles.reader import read_robot
from support.robots import write_robot

import parflex

SEEDS = range(200 if VERIFY else 6)
ROUNDING = 1e-9  # of the largest acceleration: systems of condition up to 1e6 in double precision
CONDITION = 1e5  # of the whole system, without units: what is nearer to a singular one is drawn again


def vector(rng, size):
    return [float(x) for x in np.round(rng.uniform(-size, size, 3), 6)]


def robot_text(rng) -> tuple[str, bool]:
    """Random chains, perhaps a free platform and a beam, with elements; one scale of length, mass and stiffness."""
    L = float(10.0 ** rng.uniform(-3, 2))
    planar = rng.random() < 0.4
    beams = rng.random() < 0.4
    mass = 8.0
    head = f'format = 1\nname = "drawn"\nmotion = "{"planar" if planar else "spatial"}"\n'
    head += f"gravity = [0, {-9.81 * L!r}, 0]\n"
    lines, places, motors = [], {"base": -1}, 0
    flat = (lambda v: [*v[:2], 0.0]) if planar else (lambda v: v)

    def point(frame: str, number: int, body: int) -> None:
        name = f"p{len(places)}"
        lines.append(f'[[point]]\nname = "{name}"\nframe = "{frame}"\nposition = {flat(vector(rng, 0.6 * L))}\n')
        places[name] = body

    bodies = 0
    for chain in range(int(rng.integers(1, 3))):
        parent = "base"
        for link in range(int(rng.integers(1, 3))):
            name, bent = f"c{chain}l{link}", beams and link == 0 and chain == 0
            kind = "revolute" if bent or rng.random() < 0.7 else "prismatic"
            turn = [0, 0, 0] if planar and kind == "revolute" else [float(v) for v in rng.uniform(-1.5, 1.5, 3)]
            if planar and kind == "prismatic":
                turn = [float(np.pi / 2), float(rng.uniform(-1, 1)), 0]  # its axis in the plane
            start = float(rng.uniform(-0.8, 0.8)) * (1 if kind == "revolute" else L)
            driven = rng.random() < 0.7
            motors += driven
            text = f'[[frame]]\nname = "{name}"\nparent = "{parent}"\njoint = "{kind}"\nstart = {start!r}\n'
            text += f"actuated = {str(bool(driven)).lower()}\n"
            text += f"place = {{ position = {flat(vector(rng, 0.5 * L))}, rotation = {turn} }}\n"
            if bent:
                text += f'beam = {{ length = {L!r}, material = "m", section = "s" }}\n'
            I = [float(v * mass * L * L) for v in rng.uniform(0.05, 0.06, 3)]
            text += f"inertia = {{ mass = {mass}, centre = {flat(vector(rng, 0.2 * L))}, about_centre = {I} }}\n"
            lines.append(text)
            places[name] = bodies
            point(name, 0, bodies)
            parent = f"{name}.tip" if bent else name
            if bent:
                bodies += 1
                places[parent] = bodies
            bodies += 1
    if not beams and rng.random() < 0.4:
        where = vector(rng, L) if not planar else [*vector(rng, L)[:2], 0.3]
        lines.append(
            f"[platform]\nstart = {[*where, 0.2, -0.1, 0.3] if not planar else where}\n"
            f"inertia = {{ mass = {mass}, about_centre = {[float(0.1 * mass * L * L)] * 3} }}\n"
        )
        places["platform"] = bodies
        point("platform", 0, bodies)
    point("base", 0, -1)
    tables = ""
    if beams:
        EI = 1e5 * mass * L**3  # first frequencies of some tens of hertz, whatever the unit
        A, E = 1e-4 * L * L, 2e11
        inertia = EI / E
        tables = f'[materials.m]\nE = {E}\nnu = 0.3\nrho = {0.05 * mass / (A * L)!r}\n[sections.s]\nshape = "numbers"\n'
        tables += f"A = {A!r}\nIy = {inertia!r}\nIz = {1.3 * inertia!r}\nJ = {1.5 * inertia!r}\n"
    return head + "".join(lines) + elements(rng, places, L, mass, motors) + tables, beams


def elements(rng, places: dict[str, int], L: float, mass: float, motors: int) -> str:
    found, names = [], list(places)
    kinds = ["spring", "damper", "cable", "force", "rod", "strut", "strut"]
    rods, W = 0, mass * L
    for k in range(int(rng.integers(2, 5))):
        for _ in range(20):
            first, second = rng.choice(names, 2, replace=False)
            if places[first] != places[second]:
                break
        else:
            continue
        kind = str(rng.choice(kinds))
        if kind == "rod":
            rods += 1
            kind = "spring" if rods > 1 else kind
        stiff, damp = mass * float(rng.uniform(10, 100)), mass * float(rng.uniform(0.1, 3))
        rest = float(rng.uniform(0.1, 0.8)) * L
        keys = {
            "spring": f"stiffness = {stiff!r}\nrest = {rest!r}\ndamping = {damp!r}",
            "damper": f"damping = {damp!r}",
            "cable": f"stiffness = {stiff!r}\nrest = {rest!r}\ndamping = {damp!r}",
            "force": f"table = {{ length = [[0, {W!r}], [{L!r}, {3 * W!r}], [{2 * L!r}, {2 * W!r}]], "
            f"speed = [[{-L!r}, {-2 * W!r}], [0, 0], [{2 * L!r}, {W!r}]] }}",
            "rod": "",
            "strut": f"actuated = {str(bool(rng.random() < 0.5)).lower()}\n"
            + (f"stiffness = {stiff!r}\nrest = {rest!r}\ndamping = {damp!r}" if rng.random() < 0.5 else ""),
        }[kind]
        found.append(f'[[element]]\nname = "e{k}"\nkind = "{kind}"\nbetween = ["{first}", "{second}"]\n{keys}\n')
    return "".join(found)


def drawn(seed, folder):
    """A robot, its reference, and a state with rates and efforts; drawn again where it is nearly singular."""
    rng = np.random.default_rng(seed)
    for _ in range(100):
        text, beams = robot_text(rng)
        path = write_robot(folder, text, f"robot-{seed}")
        try:
            robot = parflex.load(path)
            home = parflex.Configuration(robot, robot.home)
            if not home.J.shape[1] or not robot.description.element or robot.mobility.redundant:
                continue  # nothing moves, nothing acts, or a rod only repeats a joint
            if home.reduction.block.size and np.linalg.cond(home.scaled_closure_jacobian[:, robot.free]) > 1e3:
                continue
        except parflex.ParflexError:
            continue
        data = read_robot(path)
        for element in data.elements:
            if element.kind == "rod":
                rest = next(row.rest for row in robot.closures.constraints if row.name == element.name)
                object.__setattr__(element, "rest", rest)
        oracle = (FlexibleEnergyModel if beams else EnergyModel)(data)
        tree = robot.tree
        qd = home.J @ (rng.uniform(-2, 2, home.J.shape[1]) * tree.rate_units[home.reduction.partition.independent])
        if tree.elastic:
            qd *= np.where(np.isin(np.arange(tree.n), tree.elastic), 0.1, 1.0)
            independent = home.reduction.partition.independent
            qd = home.J @ qd[independent]
        motors = list(robot.actuated)
        tau = rng.uniform(-2, 2, len(motors)) * 8.0 * tree.length**2 / tree.rate_units[motors]
        return robot, oracle, home, qd, tau, text
    raise AssertionError("no robot")


def lagrange(robot, oracle, at, qd, tau):
    """Accelerations by one system in the units of the rates, and how near it is to a singular one."""
    order = order_of(robot, oracle)
    back, named = np.argsort(order), positions(at)
    M, c = oracle.mass_matrix_and_bias(named, qd[back])
    A, bias = oracle.closure_jacobian(named, qd[back])
    units = robot.tree.rate_units[back]
    push = np.zeros(len(M))
    for name, value in zip(robot.actuated_names, tau, strict=True):
        push[oracle.coordinates.index(name)] = value
    size = np.abs(M * np.outer(units, units)).max()
    M, A = M * np.outer(units, units) / size, A * units / robot.tree.length
    system = np.block([[M, -A.T], [A, np.zeros((len(A), len(A)))]])
    right = np.concatenate([(push - c) * units / size, -bias / robot.tree.length])
    found = np.linalg.solve(system, right)
    return (found[: len(M)] * units)[order], np.linalg.cond(system)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_elements_act_as_lagrange_says(seed, tmp_path):
    robot, oracle, at, qd, tau, text = drawn(seed, tmp_path)
    units = robot.tree.rate_units
    qdd, condition = lagrange(robot, oracle, at, qd, tau)
    found = accelerated(at, qd, tau, reactions=True)
    size = largest(qdd / units)
    assert largest((found.accelerations - qdd) / units) < max(ROUNDING, 1e-15 * condition) * size, text
    back = np.argsort(order_of(robot, oracle))
    energies = oracle.energy(positions(at), qd[back])
    assert parflex.energies(at, qd) == pytest.approx(energies, rel=1e-9, abs=1e-9 * sum(map(abs, energies))), text
    motors = set(robot.actuated)
    if motors == set(at.reduction.partition.independent.tolist()) and not robot.tree.elastic:
        again = parflex.inverse_dynamics(robot, at, chosen(at, qd), chosen(at, found.accelerations))
        assert list(again.efforts.values()) == pytest.approx(tau, abs=1e-7 * largest(tau) + 1e-300), text
    if len(motors) > at.J.shape[1]:
        return  # no program says how spare motors share
    model = parflex.model(robot, "direct")
    own = [robot.rates.index(name) for name in model.labels["qd"]]
    given = {"q": at.q, "qd": qd[own], "effort": tau}
    program = model.evaluate("numpy", **{name: given[name] for name in model.inputs})
    assert largest((program["qdd"] - qdd[own]) / units[own]) < max(ROUNDING, 1e-14 * condition) * size, text
