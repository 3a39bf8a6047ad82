"""Places inside flexible bodies, `BEAM@s` and `BODY@NODE`: where they are, how they move, what acts there."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from oracles.inside_beams import Element, cantilever, clamped_at_both_ends, section

import parflex
from parflex.models.dynamics.forces import forces_along_rates, on_links
from parflex.recursion import jacobians, motion, pose
from parflex.recursion.kinematics import place_jacobian
from parflex.tree.inner_places import beam_elements

ROBOTS = Path(__file__).parent / "robots"
KINDS = ("dualemps", "geared-beams", "rolled-beams", "bending-satellite", "gough-stewart-beams")
SHEAR = 5 / 6  # of the shear area of rectangles, where a file gives no coefficient


@cache
def robot(name: str) -> parflex.Robot:
    file = ROBOTS / f"{name}.toml"
    return parflex.load(file if file.exists() else name)


def beams(name: str) -> list[str]:
    return [frame.name for frame in robot(name).description.frame if frame.beam is not None]


def random_state(name: str, seed: int, bend: float = 0.05):
    """Positions about home with elements bent by some hundredths of their length, rates and accelerations."""
    tree, rng = robot(name).tree, np.random.default_rng(seed)
    step = 0.4 * rng.standard_normal(tree.n)
    step[list(tree.elastic)] *= bend / 0.4
    return tree.moved(robot(name).home, step), rng.standard_normal(tree.n), rng.standard_normal(tree.n), rng


def element_oracle(name: str, beam: str, length: float) -> Element:
    """The numbers of an element, read from the file by hand."""
    said = robot(name).description
    spec = next(frame.beam for frame in said.frame if frame.name == beam)
    soft = (0.0, 0.0)
    if spec.shear:
        table, material = said.sections[spec.section], said.materials[spec.material]
        assert spec.shear_coefficient is not None and material.shear_modulus is not None
        if table.shape == "rectangle":
            squares = table.y**2 / 12, table.z**2 / 12
        else:
            d, inner = table.diameter, table.diameter - 2 * table.thickness
            squares = ((d**2 + inner**2) / 16,) * 2
        soft = tuple(material.elastic_modulus * k / (spec.shear_coefficient * material.shear_modulus) for k in squares)
    return Element(length, spec.roll, soft)


@pytest.mark.parametrize("name", KINDS)
def test_places_are_on_the_line_that_bends_between_the_ends_of_elements(name):
    tree = robot(name).tree
    q, _, _, rng = random_state(name, 1)
    at = pose(tree, q)
    for beam in beams(name)[:4]:
        elements = beam_elements(tree.links, tree.number(beam))
        for s in rng.uniform(0, 1, 4).tolist():
            one = next(one for one in elements if s <= one.end)
            length = float(tree.links[one.link].body.nodes["tip"].r0[0])
            ends = ((at.rotation[k], at.position[k]) for k in (one.link, one.tip))
            xi = (s - one.start) / (one.end - one.start)
            R, p = section(element_oracle(name, beam, length), *ends, xi)
            found = at.of(tree.places[f"{beam}@{s!r}"])
            assert np.abs(found[1] - p).max() < 1e-12  # rounding of lengths about 1 m
            assert np.abs(found[0] - R).max() < 1e-12
        for s, frame in (("0", beam), ("1", f"{beam}.tip")):
            inside, end = at.of(tree.places[f"{beam}@{s}"]), at.of(tree.places[frame])
            assert np.array_equal(inside[0], end[0]) and np.array_equal(inside[1], end[1])


@pytest.mark.parametrize("name", KINDS)
def test_velocities_and_accelerations_of_places_are_derivatives_of_their_positions(name):
    tree = robot(name).tree
    q, qd, qdd, rng = random_state(name, 2)
    h, change = 1e-5, tree.rate_changes(qd, qdd)
    now, later, before = ((t, tree.moved(q, t * qd + t * t / 2 * change), qd + t * change) for t in (0.0, h, -h))
    names = [f"{beam}@{s!r}" for beam in beams(name)[:3] for s in rng.uniform(0, 1, 2).tolist()]
    for place in (tree.places[name] for name in names):
        poses = {t: pose(tree, q) for t, q, _ in (now, later, before)}
        moving = {t: motion(tree, poses[t], qd, qdd) for t, _, qd in (now, later, before)}
        R = {t: at.of(place)[0] for t, at in poses.items()}
        v, w, a, al = moving[0.0].of(place)
        world = {t: np.concatenate([R[t] @ part for part in moving[t].of(place)[:2]]) for t in poses}
        spin = R[0.0].T @ (R[h] - R[-h]) / (2 * h)
        # central differences: h^2 times third derivatives, some tens here
        assert np.allclose((poses[h].of(place)[1] - poses[-h].of(place)[1]) / (2 * h), R[0.0] @ v, atol=1e-7)
        assert np.allclose([spin[2, 1], spin[0, 2], spin[1, 0]], w, atol=1e-6)
        assert np.allclose((world[h] - world[-h]) / (2 * h), np.concatenate([R[0.0] @ a, R[0.0] @ al]), atol=1e-6)
        J_v, J_w = place_jacobian(tree, poses[0.0], jacobians(tree, poses[0.0]), place)
        assert np.allclose(J_v @ qd, v, atol=1e-12) and np.allclose(J_w @ qd, w, atol=1e-12)


@pytest.mark.parametrize("name", KINDS)
def test_the_power_of_a_wrench_at_a_place_is_that_of_its_forces_along_the_rates(name):
    tree = robot(name).tree
    q, qd, qdd, rng = random_state(name, 3)
    at, h = pose(tree, q), 1e-6
    for beam in beams(name)[:3]:
        frame = f"{beam}@{rng.uniform(0, 1)!r}"
        wrench = rng.standard_normal(6)
        pushed = on_links(tree, at, {frame: wrench})
        without = forces_along_rates(tree, at, q, qd, qdd)
        power = (without - forces_along_rates(tree, at, q, qd, qdd, pushed)) @ qd
        (R1, p1), (R2, p2) = (pose(tree, tree.moved(q, t * qd)).of(tree.places[frame]) for t in (h, -h))
        spin = (R1 - R2) @ at.of(tree.places[frame])[0].T / (2 * h)
        twist = np.concatenate([(p1 - p2) / (2 * h), [spin[2, 1], spin[0, 2], spin[1, 0]]])
        assert abs(power - wrench @ twist) < 1e-8 * (1 + np.abs(without).max())  # rounding of forces and differences


E, RHO, Y, Z, LENGTH = 70e9, 2700.0, 0.004, 0.01, 0.4
BAR = f"""
format = 1
name = "bar"
gravity = [0, 0, 0]
axial = "linear"
end_effector = "bar.tip"
[materials.aluminium]
elastic_modulus = {E}
density = {RHO}
[sections.flat]
shape = "rectangle"
y = {Y}
z = {Z}
[[frame]]
name = "bar"
joint = "fixed"
beam = {{ length = {LENGTH}, material = "aluminium", section = "flat", elements = ELEMENTS }}
"""
EI = E * Z * Y**3 / 12


@cache
def bar(folder: Path, elements: int) -> parflex.Robot:
    file = folder / f"bar-{elements}.toml"
    file.write_text(BAR.replace("ELEMENTS", str(elements)))
    return parflex.load(file)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("bars")


@pytest.mark.parametrize("elements", [1, 3])
def test_a_clamped_beam_bends_as_its_differential_equation_says(folder, elements):
    places = [0.1, 1 / 3, 0.45, 0.9, 1.0]
    names = [f"bar@{s!r}" for s in places]
    # a force and a moment at the tip: cubic between the ends, so that every place is exact whatever the elements
    moved = parflex.deflection(
        bar(folder, elements), wrench={"bar.tip": [0, 0.5, 0, 0, 0, 0.02]}, about="undeformed", frames=names
    ).frames
    for s, name in zip(places, names, strict=True):
        x = s * LENGTH
        v, slope = cantilever(0.5, LENGTH, x, EI)
        v, slope = v + 0.02 * x**2 / (2 * EI), slope + 0.02 * x / EI
        assert moved[name][1] == pytest.approx(v, rel=1e-9) and moved[name][5] == pytest.approx(slope, rel=1e-9)
    # a force between: exact at the nodes, and beside them but for what a beam clamped at its nodes bends
    a = 0.45
    moved = parflex.deflection(
        bar(folder, elements), wrench={f"bar@{a}": [0, 0.5, 0]}, about="undeformed", frames=[*names, "bar"]
    ).frames
    v, slope = cantilever(0.5, a * LENGTH, LENGTH, EI)
    assert moved["bar@1.0"][1] == pytest.approx(v, rel=1e-9) and moved["bar@1.0"][5] == pytest.approx(slope, rel=1e-9)
    size = LENGTH / elements
    missing = clamped_at_both_ends(0.5, (a * elements % 1) * size, size, EI)
    v, _ = cantilever(0.5, a * LENGTH, a * LENGTH, EI)
    assert moved[f"bar@{a}"][1] == pytest.approx(v - missing, rel=1e-9)


@pytest.mark.parametrize("elements", [2, 5])
def test_places_are_those_of_the_whole_beam_whatever_its_elements(folder, elements):
    load = {"bar.tip": [0.1, 0.4, -0.3, 0.02, 0.01, 0.03]}
    names = [f"bar@{s}" for s in (0.2, 0.5, 0.77)]
    one, many = (
        parflex.deflection(bar(folder, count), wrench=load, about="undeformed", frames=names).frames
        for count in (1, elements)
    )
    for name in names:
        assert np.allclose(one[name], many[name], rtol=1e-8, atol=1e-12)
    for name in (f"bar.{k}" for k in range(1, elements)):
        s = int(name.rpartition(".")[2]) / elements
        assert bar(folder, elements).tree.places[f"bar@{s!r}"].inner is None  # a node, not a place beside it
