"""Made-up trees with made-up couplings, rigid, lossy and elastic, against Lagrange's equations and brute force."""

from __future__ import annotations

import os

import numpy as np
import pytest
from support.comparison import largest, order_of, positions, written
from support.oracles.energy import EnergyModel
from support.oracles.gear_losses import LossyGear, driven, pushed
from support.oracles.reader import read_robot

import parflex
from parflex import Configuration, SingularError
from parflex.models.dynamics.dynamic_models import moved_by, rigid_inverse

SEEDS = range(60) if os.environ.get("PARFLEX_VERIFY") else (0, 11, 23)  # the three have loss, spring and screw


def tree_of(rng) -> tuple[list[str], list[str]]:
    """Lines of a tree of drawn joints, and their kinds; lengths differ by ten from one robot to another."""
    size = 10 ** rng.uniform(-0.5, 0.5)
    lines, names, kinds = ["format = 1", 'name = "made-up"', "gravity = [1.1, -2.0, -9.3]"], ["base"], []
    for k in range(int(rng.integers(3, 7))):
        kinds.append(str(rng.choice(["revolute", "prismatic", "revolute", "helical"])))
        a, b, c = (rng.uniform(-0.3, 0.3, (3, 3)) * [[size], [1], [size]]).round(4).tolist()
        about = (rng.uniform(0.02, 0.04, 3) * size**2).round(5).tolist()
        lines += ["[[frame]]", f'name = "f{k}"', f'parent = "{rng.choice(names)}"', f'joint = "{kinds[-1]}"']
        lines += [f"place = {{ position = {a}, rotation = {b} }}", f"damper = {rng.uniform(0, 1):.3f}"]
        lines += [f"inertia = {{ mass = {rng.uniform(0.5, 2):.3f}, centre = {c}, about_centre = {about} }}"]
        lines += [f"pitch = {rng.uniform(0.01, 0.3) * size:.4f}"] if kinds[-1] == "helical" else []
        lines += [f"motor_inertia = {rng.uniform(0, 0.1) * size**2:.4f}"] if kinds[-1] != "prismatic" else []
        names.append(f"f{k}")
    return lines, kinds


def couplings_of(rng, kinds) -> tuple[list[str], dict[str, tuple[float, float]]]:
    """Lines of couplings that do not repeat each other, and the efficiencies of those that lose power."""
    n, rows, lines, lossy = len(kinds), np.zeros((0, len(kinds))), [], {}
    for i in range(int(rng.integers(1, n))):
        joints = rng.permutation(n)[: int(rng.integers(2, min(n, 4) + 1))]
        ratios = rng.uniform(0.05, 3, len(joints) - 1) * rng.choice([-1, 1], len(joints) - 1)
        row = np.zeros(n)
        row[joints[0]], row[joints[1:]] = 1.0, -ratios
        if np.linalg.matrix_rank(np.vstack([rows, row]), tol=1e-2) <= len(rows):
            continue
        rows = np.vstack([rows, row])
        slides = [kinds[j] == "prismatic" for j in joints]
        lines += ["[[coupling]]", f'name = "c{i}"', f'joint = "f{joints[0]}"', f"offset = {rng.uniform(-0.3, 0.3):.3f}"]
        if len(joints) == 2 and slides[0] != slides[1]:
            lead = 2 * np.pi * ratios[0] if slides[0] else 2 * np.pi / ratios[0]
            lines += [f'other = "f{joints[1]}"', f"lead = {float(lead)!r}"]
        else:
            terms = ", ".join(f"f{j} = {ratio!r}" for j, ratio in zip(joints[1:], map(float, ratios), strict=True))
            lines.append(f"terms = {{ {terms} }}")
        if rng.random() < 0.3:
            lines += [f"stiffness = {rng.uniform(20, 300):.2f}", f"damping = {rng.uniform(0, 2):.2f}"]
        elif rng.random() < 0.6:
            lossy[f"c{i}"] = forward, back = tuple(map(float, rng.uniform(0.5, 0.99, 2)))
            lines += [f"efficiency = {forward!r}", f"efficiency_back = {back!r}"]
    return lines, lossy


def any_motors(rng, robot) -> list[str]:
    """As many joints as freedoms, which determine the motion at home; coupled-away joints among them."""
    chosen: list[int] = []
    motions = Configuration(robot, robot.home).motions
    for k in map(int, rng.permutation(robot.tree.n)):
        if np.linalg.matrix_rank(motions[[*chosen, k]], tol=0.02) == len(chosen) + 1:
            chosen.append(k)
    return [robot.tree.rate_names[k] for k in sorted(chosen)]


@pytest.mark.parametrize("seed", SEEDS)
def test_made_up_couplings_move_and_carry_as_brute_force_says(seed, tmp_path, figure):
    rng = np.random.default_rng(seed)
    lines, kinds = tree_of(rng)
    more, lossy = couplings_of(rng, kinds)
    text = "\n".join([*lines, *more, ""])
    plain = parflex.load(written(text, tmp_path, "plain"))
    path = written(f"{text}[actuation.any]\nactuated = {any_motors(rng, plain)}\n", tmp_path, "made-up")
    robot, oracle = parflex.load(path, actuation="any"), EnergyModel(read_robot(path))
    q, error = robot.assembler.newton(robot.home + rng.uniform(-0.3, 0.3, robot.nq), robot.free, robot.closures.rows)
    assert error < 1e-10
    at, order = Configuration(robot, q), order_of(robot, oracle)
    qd, tau = at.J @ rng.uniform(-2, 2, at.J.shape[1]), rng.uniform(-3, 3, robot.nu)
    M, c = oracle.mass_matrix_and_bias(positions(at), qd[np.argsort(order)])
    A, bias = oracle.closure_jacobian(positions(at), qd[np.argsort(order)])
    rigid = [one for one in oracle.data.couplings if one.stiffness is None]
    gears = []
    for row, one in enumerate(rigid, len(A) - len(rigid)):
        joint = next(iter(one.weights))
        others = np.array([0.0 if name == joint else one.weights.get(name, 0.0) for name in oracle.coordinates])
        if one.name in lossy:
            gears.append(LossyGear(row, oracle.coordinates.index(joint), others, *lossy[one.name]))
    push = np.zeros(len(M))
    push[[oracle.coordinates.index(name) for name in robot.actuated_names]] = tau
    ((qdd, lam),) = pushed(M, c, A, bias, push, gears, qd[np.argsort(order)])
    found = moved_by(at, qd, tau, reactions=True)
    carried = np.array([found.reactions["couplings"][one.name]["effort"] for one in rigid])
    errors = [largest(found.accelerations - qdd[order]) / largest(qdd)]
    errors.append(largest(carried - lam[len(A) - len(rigid) :]) / max(largest(carried), 1.0))
    motors = [oracle.coordinates.index(name) for name in robot.actuated_names]
    ways = driven(M @ qdd + c, A, gears, qd[np.argsort(order)], motors)
    if len(ways) == 1:
        back = rigid_inverse(at, qd, found.accelerations)
        errors.append(largest(np.array(list(back.efforts.values())) - tau) / (1 + largest(found.accelerations)))
    else:  # where motors stand, several efforts cause this motion
        with pytest.raises(SingularError, match="jams in this motion"):
            rigid_inverse(at, qd, found.accelerations)
    model = parflex.model(robot, "direct")
    own = [robot.tree.rate_names.index(name) for name in model.labels["qd"]]
    out = model.evaluate("numpy", q=q[None], qd=qd[own][None], effort=tau[None])["qdd"][0]
    errors.append(largest(out - qdd[order][own]) / largest(qdd))
    figure(f"made-up couplings, seed {seed}", max(errors), 1e-8)
    assert max(errors) < 1e-8  # ratios up to 60 multiply: conditions up to 1e5
