"""Deflections between the nodes of elements, by weight and by inertia, against closed forms of beams."""

from __future__ import annotations

import numpy as np
import pytest

import parflex
from parflex.bodies.beam import Material, Section
from parflex.bodies.beam_parts import ElementParts
from parflex.simulation.outputs.inner_bending import clamped

E, RHO, L, Y, Z = 7e10, 2700, 0.5, 0.004, 0.012
SHARES = (0.1, 0.3, 0.5, 0.9)
TOP = f"""
format = 1
name = "bar"
end_effector = "bar.tip"
[materials.aluminium]
elastic_modulus = {E}
density = {RHO}
[sections.flat]
shape = "rectangle"
y = {Y}
z = {Z}
"""
BAR = """
beam = {{ length = 0.5, material = "aluminium", section = "flat", elements = {elements}{more} }}
"""
SLIDE = """
[[closure]]
name = "end"
between = ["bar.tip", "slide"]
joint = "revolute"
[[frame]]
name = "slide"
joint = "prismatic"
place = { rotation = [0, "pi/2", 0] }
start = 0.5
inertia = { mass = 0.1 }
"""


def load(tmp_path, text):
    path = tmp_path / "bar.toml"
    path.write_text(text)
    return parflex.load(path)


def cantilever(x, q, EI):
    return q * x**2 * (6 * L**2 - 4 * L * x + x**2) / (24 * EI)


def supported(x, q, EI):
    return q * x * (L**3 - 2 * L * x**2 + x**3) / (24 * EI)


def words(*kinds):
    return [f"bar.{kind}@{s}" for kind in kinds for s in SHARES]


@pytest.mark.few
@pytest.mark.parametrize("elements", [1, 2])
@pytest.mark.parametrize("ends", ["clamped", "supported"])
def test_a_heavy_beam_hangs_between_its_nodes_as_the_closed_form(ends, elements, tmp_path):
    """Without its own part one element is 14 to 20 % too straight in its middle."""
    held = ends == "clamped"
    top = TOP.replace('name = "bar"\n', 'name = "bar"\nmotion = "planar"\ngravity = [0, -9.81, 0]\n', 1)
    frame = '[[frame]]\nname = "bar"\njoint = "revolute"\n' + ("actuated = true" if held else "")
    robot = load(tmp_path, top + frame + BAR.format(elements=elements, more="") + ("" if held else SLIDE))
    still = {"joints": [{"bar": 0}, {"bar": 0}], "duration": 0.002} if held else None
    run = parflex.simulate(robot, still, 0.002, start="equilibrium", outputs=words("chord_y", "tangent_y"))
    q, EI = -RHO * Y * Z * 9.81, E * Z * Y**3 / 12
    for s in SHARES:
        exact = cantilever(s * L, q, EI) - s * cantilever(L, q, EI) if held else supported(s * L, q, EI)
        # deflections of 0.7 % of the length: their squares are in the model, and not in the closed form
        assert run[f"bar.chord_y@{s}"][0] == pytest.approx(exact, rel=1e-4)
        if held:
            assert run[f"bar.tangent_y@{s}"][0] == pytest.approx(cantilever(s * L, q, EI), rel=1e-4)


def test_a_turned_section_hangs_in_both_planes(tmp_path):
    """Principal axes are turned about the beam: it also hangs to the side."""
    roll, EI = 0.4, E * Y * Z / 12 * np.array([Y**2, Z**2])
    frame = '[[frame]]\nname = "bar"\njoint = "revolute"\nactuated = true'
    top = TOP.replace('name = "bar"\n', 'name = "bar"\ngravity = [0, -9.81, 0]\n', 1)
    robot = load(tmp_path, top + frame + BAR.format(elements=1, more=f", roll = {roll}"))
    still = {"joints": [{"bar": 0}, {"bar": 0}], "duration": 0.002}
    run = parflex.simulate(robot, still, 0.002, start="equilibrium", outputs=words("chord_y", "chord_z"))
    turn = np.array([[np.cos(roll), -np.sin(roll)], [np.sin(roll), np.cos(roll)]])
    q = turn.T @ [-RHO * Y * Z * 9.81, 0]
    for s in SHARES:
        exact = turn @ [cantilever(s * L, q[k], EI[k]) - s * cantilever(L, q[k], EI[k]) for k in (0, 1)]
        found = [run[f"bar.chord_{axis}@{s}"][0] for axis in "yz"]
        assert np.abs(found - exact).max() < 1e-3 * np.abs(exact).max()  # it twists by its weight, too


def test_a_shaken_beam_bends_between_its_nodes_by_its_inertia(tmp_path):
    """A carriage that swings at a fiftieth of the first frequency of the beam: what deflects it is its own inertia."""
    EI, mass = E * Z * Y**3 / 12, RHO * Y * Z
    frequency = 1.8751**2 / (2 * np.pi * L**2) * np.sqrt(EI / mass) / 50
    frames = """
[[frame]]
name = "car"
joint = "prismatic"
actuated = true
place = { rotation = [0, "pi/2", 0] }
inertia = { mass = 1 }
[[frame]]
name = "back"
parent = "car"
place = { rotation = [0, "-pi/2", 0] }
[[frame]]
name = "bar"
parent = "back"
place = { rotation = [0, 0, "pi/2"] }
"""
    top = TOP.replace('name = "bar"\n', 'name = "bar"\nmotion = "planar"\ngravity = [0, 0, 0]\n', 1)
    robot = load(tmp_path, top + frames.strip() + BAR.format(elements=1, more=", damping = { stiffness = 2e-3 }"))
    motion = {"sines": {"car": [0.02]}, "frequency": frequency, "duration": 2 / frequency}
    run = parflex.simulate(
        robot, motion, 2 / frequency, out_step=0.01 / frequency, outputs=["bar.chord_y@0.5", "car.ax"]
    )
    q = mass * run["car.ax"]  # the y axis of the bar points against that of the carriage
    exact = cantilever(0.5 * L, q, EI) - 0.5 * cantilever(L, q, EI)
    later = run.t > 1 / frequency
    # (1/50)^2 by its own vibration, 2 % of phase by the damping that the start needs
    assert np.abs(run["bar.chord_y@0.5"] - exact)[later].max() < 0.03 * np.abs(exact).max()


def test_the_part_of_each_place_is_that_of_greens_function():
    draw = np.random.default_rng(5)
    for _ in range(20):
        xi, load = draw.uniform(0, 1), np.polynomial.Polynomial(draw.normal(size=4))
        places = (np.polynomial.legendre.leggauss(4)[0] + 1) / 2
        x = (np.polynomial.legendre.leggauss(40)[0] + 1) / 2
        weights = np.polynomial.legendre.leggauss(40)[1] / 2
        exact = 0.0
        for low, high in ((0.0, xi), (xi, 1.0)):  # of a unit force at s on a clamped beam
            s = low + (high - low) * x
            near, far = np.minimum(s, xi), np.maximum(s, xi)
            green = near**2 * (1 - far) ** 2 * (3 * far - near - 2 * near * far) / 6
            exact += (high - low) * (weights * green * load(s)).sum()
        assert clamped(xi) @ load(places) == pytest.approx(exact, rel=1e-9, abs=1e-15)


def test_shear_of_a_held_beam_is_that_of_forces_side_by_side():
    """The deflection under a linear load is the integral of those under forces, of two elements that meet there."""
    parts = ElementParts(1.0, Material(1.0, 0.4, 1.0), Section(1.0, 0.02, 0.01, 0.03, 0.03, 0.8, 0.7), shear=True)
    x, weights = np.polynomial.legendre.leggauss(12)
    places = (np.polynomial.legendre.leggauss(4)[0] + 1) / 2
    for axis, Ps, I in ((1, parts.shear_ratios[0], 0.01), (2, parts.shear_ratios[1], 0.02)):
        for xi in (0.2, 0.65):
            exact = 0.0
            for low, high in ((0.0, xi), (xi, 1.0)):  # a force at one place bends the other by a cubic on each side
                for s, weight in zip(low + (high - low) * (x + 1) / 2, weights * (high - low) / 2, strict=True):
                    exact += weight * (1 + 3 * s) * parts.held_compliance(s, xi)[axis, axis]
            assert clamped(xi, Ps) @ (1 + 3 * places) / I == pytest.approx(exact, rel=1e-9)
            uniform = parts.held_by_gravity(xi, np.eye(3)[axis])[axis]
            assert clamped(xi, Ps).sum() / I == pytest.approx(uniform, rel=1e-12)


REDUCED = ", reduce = { error = 100, band = 1000 }"  # some modes are kept, and most are not


@pytest.mark.parametrize("reduce", ["", REDUCED], ids=["element", "reduced"])
@pytest.mark.parametrize("shear", [False, True], ids=["slender", "shear"])
def test_weight_deflects_every_place_of_a_beam_as_the_closed_form(tmp_path, reduce, shear):
    """A cantilever of one element, its section turned, under gravity in any direction: displacements and turns."""
    roll, g = 0.7, np.array([2.0, -3.0, 5.0])
    top = TOP.replace('name = "bar"\n', f'name = "bar"\ngravity = {g.tolist()}\n', 1).replace("y = 0.004", "y = 0.06")
    more = f", roll = {roll}, shear = {str(shear).lower()}{reduce}"
    robot = load(tmp_path, top + '[[frame]]\nname = "bar"' + BAR.format(elements=1 if not reduce else 4, more=more))
    assert not reduce or robot.tree.links[0].body.reduced.kept > 0
    found = parflex.deflection(robot, frames=[f"bar@{s}" for s in SHARES], about="undeformed").frames
    c, s_ = np.cos(roll), np.sin(roll)
    turn = np.array([[1, 0, 0], [0, c, -s_], [0, s_, c]])
    A, EI = 0.06 * Z, E * 0.06 * Z / 12 * np.array([0.06**2, Z**2])
    q, GA = RHO * A * (turn.T @ g), 5 / 6 * E / 2.6 * A
    for s in SHARES:
        x = s * L
        sheared = q * (L * x - x**2 / 2) / GA if shear else np.zeros(3)
        way = [q[0] * (L * x - x**2 / 2) / (E * A), *(cantilever(x, q[k], EI[k - 1]) + sheared[k] for k in (1, 2))]
        slopes = q[1:] * x * (3 * L**2 - 3 * L * x + x**2) / (6 * EI)
        exact = np.concatenate([turn @ way, turn @ [0.0, -slopes[1], slopes[0]]])
        assert found[f"bar@{s}"] == pytest.approx(exact, rel=1e-8, abs=1e-10 * np.abs(exact).max())


def test_slopes_have_the_weight_between_nodes(tmp_path):
    """Beside differences over 2e-6 of a size; and the equilibrium has it too, but for large displacements."""
    top = TOP.replace('name = "bar"\n', 'name = "bar"\nmotion = "planar"\ngravity = [0, -9.81, 0]\n', 1)
    frame = '[[frame]]\nname = "bar"\njoint = "revolute"\nactuated = true'
    robot, key, h = load(tmp_path, top + frame + BAR.format(elements=1, more="")), "sections.flat.y", 1e-8

    def way(size):
        own = parflex.load(tmp_path / "bar.toml", settings={key: size})
        return parflex.deflection(own, {"bar": 0.3}, frames=["bar@0.4"], about="undeformed").frames["bar@0.4"][1]

    found = parflex.sensitivities(robot, "deflection:bar@0.4.y", [key], {"bar": 0.3}, about="undeformed")
    assert found.value == pytest.approx(way(Y), rel=1e-12)
    exact = (way(Y + h) - way(Y - h)) / (2 * h)
    assert found.sensitivities[key]["derivative"] == pytest.approx(exact, rel=1e-5)
    rest = parflex.deflection(robot, frames=["bar@0.4"], about="equilibrium").frames["bar@0.4"][1]
    exact = cantilever(0.4 * L, -RHO * Y * Z * 9.81, E * Z * Y**3 / 12)
    assert rest == pytest.approx(exact, rel=1e-4)  # squares of deflections of 0.7 % of the length
