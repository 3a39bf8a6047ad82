"""Forces and stresses inside beams: closed forms, quadrature, both ends, and what a run says of them."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from click.testing import CliRunner
from support import bars
from support.oracles.beam_sections import ShakenCantilever, wrench_beyond

import parflex
from parflex import InputError
from parflex.cli.main import cli
from parflex.models.dynamics.forces import tree_newton_euler
from parflex.models.elastic.stiffness import deflection_at
from parflex.models.inside_beams.beam_loads import loads_of_beams
from parflex.models.inside_beams.section_forces import ElementRows, sections_of_element
from parflex.recursion import motion
from parflex.spatial import cross
from parflex.spatial.row_numbers import over_rows

FORCES = ("N", "Vy", "Vz", "T", "My", "Mz")
STEEL = """
[materials.steel]
elastic_modulus = 2.1e11
density = 7800
"""


HINGED = """
[[frame]]
name = "bar"
joint = "revolute"
actuated = true
beam = { length = 0.8, material = "steel", section = "bar", elements = @ }
"""


def written(tmp_path, text, name="made.toml"):
    path = tmp_path / name
    path.write_text("format = 1\n" + text)
    return parflex.load(path)


def arm(tmp_path, section, beam="", more="", gravity=(0, 0, -9.81)):
    """A beam of 0.8 m on a turntable, whose base is turned; `more` goes behind it."""
    return written(tmp_path, f"""
name = "arm"
gravity = {list(gravity)}
{STEEL}
[sections.bar]
{section}
[[frame]]
name = "arm"
joint = "revolute"
actuated = true
place = {{ position = [0.1, 0.2, 0.3], rotation = [0.3, -0.4, 0.5] }}
inertia = {{ mass = 2.0, centre = [0.05, 0, 0] }}
beam = {{ length = 0.8, material = "steel", section = "bar"{beam} }}
{more}
""")  # fmt: skip


RECTANGLE = 'shape = "rectangle"\ny = 0.02\nz = 0.03'


def element_state(rng, planar=False):
    """A random state of one element as rows of one, and as numbers."""
    e, ed, edd = rng.normal(size=(3, 6)) * [[2e-2], [0.5], [20.0]]
    if planar:
        e, ed, edd = (np.where(np.isin(range(6), (0, 1, 5)), part, 0.0) for part in (e, ed, edd))
    a, w, al = rng.normal(size=(3, 3)) * [[10.0], [3.0], [30.0]]
    if planar:
        a[2] = w[0] = w[1] = al[0] = al[1] = 0.0
    end = rng.normal(size=6) * 40
    return (a, w, al), (e, ed, edd), end


@pytest.mark.parametrize("kind", ["", ", rotary_inertia = true", ", elements = 2", ', model = "planar"'])
def test_every_section_carries_what_moves_the_points_beyond_it(tmp_path, kind):
    robot = arm(tmp_path, RECTANGLE, kind)
    parts = loads_of_nothing(robot).chain.parts
    rng, L = np.random.default_rng(7), parts.length
    for _ in range(4):
        motion, (e, ed, edd), end = element_state(rng, "planar" in kind)
        own = [0, 1, 5] if "planar" in kind else list(range(6))
        rows = ElementRows(*(part[None] for part in (*motion, e[own], ed[own], edd[own], end)))
        xi = [0.0, 0.21, 0.5, 0.93, 1.0]
        found = sections_of_element(parts, rows, xi)[0]
        for k, where in enumerate(xi):
            force, moment = wrench_beyond(where, L, (0.02, 0.03), 7800, "rotary" in kind, motion, (e, ed, edd), end)
            s = where
            slope_y = 6 * (s - s**2) / L * e[1] + (3 * s**2 - 2 * s) * e[5]
            slope_z = 6 * (s - s**2) / L * e[2] - (3 * s**2 - 2 * s) * e[4]
            R = turned(np.array([s * e[3], -slope_z, slope_y]))
            exact = -np.concatenate([R.T @ force, R.T @ moment])
            assert np.abs(found[k] - exact).max() < 1e-11 * np.abs(found).max()  # rounding of a few thousand terms


def turned(th):
    """exp(hat(th)), by its series."""
    H = np.array([[0, -th[2], th[1]], [th[2], 0, -th[0]], [-th[1], th[0], 0]])
    R, term = np.eye(3), np.eye(3)
    for k in range(1, 20):
        term = term @ H / k
        R = R + term
    return R


def loads_of_nothing(robot):
    still = np.zeros(robot.tree.n)
    here = parflex.configure(robot)
    return next(iter(loads_of_beams(here, still, still, tree_newton_euler(here, still, still), {}).values()))


@pytest.mark.parametrize(
    "kind", ["", ", rotary_inertia = true, shear = true, roll = 0.4", ", elements = 3, roll = 0.7"]
)
def test_integrals_beyond_the_root_are_those_of_the_element(tmp_path, kind):
    robot = arm(tmp_path, RECTANGLE, kind)
    chain = loads_of_nothing(robot).chain
    body = robot.tree.links[chain.links[-1]].body.without_rigid()
    m, S, G = (part[0] for part in chain.parts.beyond(np.array([0.0])))
    assert math.isclose(m, body.m, rel_tol=1e-14)
    assert np.abs(S - body.S).max() < 1e-14 * np.abs(body.S).max()
    assert np.abs(G - body.G).max() < 1e-14 * np.abs(body.G).max()


def test_numbers_of_rows_are_those_of_each_row():
    """All operators and functions that the physics calls, against NumPy row by row; zeros stay plain."""
    rng = np.random.default_rng(3)
    table = rng.normal(size=(700, 3)) + 3.0

    def some(given):
        a, b, c = given["x"]
        A = np.array([[a, b * 0, 2.0], [1.0, c, a], [b, a - b, -c]], dtype=object)
        solved = a.solve_system(A, np.array([a, 1.0, b], dtype=object))
        angle = np.arctan2(b, c)
        values = [a + 2, 2 - a, 3 / b, a / 4, -c, a**2, np.sqrt(a * a), np.sin(a) * np.cos(b), np.sign(c - 3), angle]
        assert a * 0.0 == 0.0 and (0.0 / a) == 0.0 and isinstance(a * 0, float)
        return {"values": np.array(values, dtype=object), "solved": solved}

    found = over_rows(some, {"x": table}, size=10)
    a, b, c = table.T
    exact = [a + 2, 2 - a, 3 / b, a / 4, -c, a**2, abs(a), np.sin(a) * np.cos(b), np.sign(c - 3), np.arctan2(b, c)]
    assert np.abs(found["values"] - np.array(exact).T).max() < 1e-14
    one, zero = np.ones_like(a), np.zeros_like(a)
    A = np.array([[a, zero, 2 * one], [one, c, a], [b, a - b, -c]]).transpose(2, 0, 1)
    exact = np.linalg.solve(A, np.array([a, one, b]).T[..., None])[..., 0]
    assert np.abs(found["solved"] - exact).max() < 1e-10 * np.abs(exact).max()


TWO_LINKS = """
[sections.rod]
shape = "tube"
diameter = 0.03
thickness = 0.003
[[frame]]
name = "fore"
parent = "arm.tip"
place = { position = [0.02, 0, 0.01], rotation = [0.2, 0.7, 0] }
joint = "revolute"
actuated = true
inertia = { mass = 0.7, centre = [0.01, 0.02, 0] }
beam = { length = 0.5, material = "steel", section = "rod", elements = 2, shear = true }
[[frame]]
name = "hand"
parent = "fore.tip"
inertia = { mass = 1.5, centre = [0.1, 0, 0.02], about_centre = [0.01, 0.02, 0.03] }
"""


def moving_arm(tmp_path, beam, seed):
    """A random state of the arm of two links, and what its links and sections carry."""
    robot = arm(tmp_path, RECTANGLE, beam, TWO_LINKS)
    rng, tree = np.random.default_rng(seed), robot.tree
    q = rng.normal(size=tree.nq) * 0.5
    for link in tree.links:
        q[link.e] *= 0.02
    here = parflex.configure(robot, dict(zip(tree.position_names, q, strict=True)))
    qd, qdd = rng.normal(size=(2, tree.n)) * [[1.0], [10.0]]
    pushed = {"hand": [30, -20, 10, 1, 2, -3], "arm": [5, 6, 7, 1, 1, 1], "fore@0.4": [-9, 2, 4, 1, -2, 1]}
    pushed = {frame: np.array(wrench, dtype=float) for frame, wrench in pushed.items()}
    found = tree_newton_euler(here, qd, qdd, pushed)
    return robot, here, qd, qdd, found, loads_of_beams(here, qd, qdd, found, pushed)


@pytest.mark.parametrize(("beam", "seed"), [(", rotary_inertia = true", 1), (", elements = 4, roll = 0.3", 2)])
def test_both_ends_of_a_beam_give_the_same(tmp_path, beam, seed):
    robot, here, qd, qdd, found, beams = moving_arm(tmp_path, beam, seed)
    tree = robot.tree
    moving = motion(tree, here.at, qd, qdd, -tree.gravity)
    for name, one in beams.items():
        j = one.chain.links[0]
        rigid, place = tree.links[j].body.rigid, np.zeros(3)
        force, moment = rigid.wrench(moving.U[j], moving.a[j])  # of what is fixed to the root
        if name == "arm":
            R = here.at.rotation[j].T
            force, moment = force - R @ [5, 6, 7], moment - R @ [1, 1, 1] - cross(place, R @ [5, 6, 7])
        root = -np.concatenate([found.f[j] - force, found.m[j] - moment])
        k = one.chain.tip
        tip = -np.concatenate([found.f[k], found.m[k]])
        size = np.abs(root).max()
        assert np.abs(np.array(list(one.at(0.0).values()))[:6] - root).max() < 1e-12 * size, name
        assert np.abs(np.array(list(one.at(1.0).values()))[:6] - tip).max() < 1e-12 * size, name
        for number in range(1, len(one.chain.links)):  # no step where elements meet
            s = number / len(one.chain.links)
            before, behind = (np.array(list(one.at(s + d).values())) for d in (0.0, 1e-9))
            assert np.abs(before - behind)[:6].max() < 1e-6 * size, (name, s)


@pytest.mark.parametrize("elements", [1, 3])
def test_loads_inside_a_beam_make_steps_in_what_it_carries(tmp_path, elements):
    """Forces between the ends: the sections before them carry them, and those at their places, but not those behind."""
    robot = arm(tmp_path, RECTANGLE, f", elements = {elements}", gravity=(0, 0, 0))
    R = parflex.frames(robot)["arm"].rotation
    loads = {0.5: R @ [40.0, 7.0, -3.0], 0.75: R @ [-25.0, 4.0, 12.0]}
    rest = parflex.equilibrium(robot, wrench={f"arm@{s}": [*load, 0, 0, 0] for s, load in loads.items()})
    bent, at = deflection_at(rest), rest.configuration.at
    for s in (0.0, 0.3, 0.5, 0.500001, 0.7, 0.75, 0.76, 1.0):
        own, here = at.of(robot.tree.places[f"arm@{s}"])
        force, moment = np.zeros(3), np.zeros(3)
        for where, load in loads.items():
            if s <= where:
                place = at.of(robot.tree.places[f"arm@{where}"])[1]
                force, moment = force + load, moment + np.cross(place - here, load)
        found = np.array([bent.beams["arm"].at(s)[word] for word in FORCES])
        assert np.abs(found - [*(own.T @ force), *(own.T @ moment)]).max() < 1e-11 * 50, s  # of 50 N
    stations = [bent.beams["arm"].at(s)["stress"] for s in np.linspace(0, 1, 301)]
    assert max(stations) <= bent.largest_stress["value"] <= max(stations) * (1 + 1e-9)


@pytest.mark.parametrize("elements", [1, 3])
def test_loads_at_the_ends_are_in_the_section_at_the_tip_and_not_in_that_at_the_root(tmp_path, elements):
    """What acts on the frame of a beam goes into its joint: the reaction is the section at 0 and that load."""
    made = bars.robot(tmp_path, HINGED.replace("@", str(elements)))
    push = {"bar@0": [3.0, -40.0, 0.7], "bar@1": [5.0, 20.0, -0.3], "bar@0.5": [0.0, 7.0, 0.0]}
    asked = ["bar.N@0", "bar.Vy@0", "bar.Mz@0", "bar.N@1", "bar.Vy@1", "bar.Mz@1", "reaction.bar"]
    still = {"t": [0.0, 0.01], "bar": [0.0, 0.0]}
    run = parflex.simulate(made, still, 0.002, wrench=push, outputs=asked, frames=["bar@1", "bar@0.5"])
    first = {word.rpartition(".")[2]: float(run[word][0]) for word in run if word.startswith(("bar.", "reaction."))}
    turn = float(run["bar@1.theta"][0])  # sections turn with the bar
    own = [5 * np.cos(turn) + 20 * np.sin(turn), 20 * np.cos(turn) - 5 * np.sin(turn), -0.3]
    assert [first["N@1"], first["Vy@1"], first["Mz@1"]] == pytest.approx(own, abs=1e-9)
    assert [first["N@0"], first["Vy@0"]] == pytest.approx([5.0, 27.0], abs=1e-9)
    moment = 20 * run["bar@1.x"][0] - 5 * run["bar@1.y"][0] + 7 * run["bar@0.5.x"][0] - 0.3
    assert first["Mz@0"] == pytest.approx(moment, abs=1e-9)
    # the joint holds what the section and the load pull with
    assert [-first["fx"], -first["fy"]] == pytest.approx([first["N@0"] + 3.0, first["Vy@0"] - 40.0], abs=1e-9)
    assert -first["mz"] == pytest.approx(first["Mz@0"] + 0.7, abs=1e-9)


def test_loads_inside_of_a_reduced_beam_are_told_of(tmp_path):
    plain = bars.robot(tmp_path, bars.CANTILEVER, elements=8)
    text = bars.CANTILEVER.replace('"bar" }', '"bar", elements = 8, reduce = { error = 0.1, band = 60 } }')
    small = bars.robot(tmp_path, text)
    push = {"bar@0.5": [0.0, 10.0, 0.0]}
    away = [parflex.deflection(of, wrench=push, frames=["bar@0.5"]) for of in (plain, small)]
    true, stiff = (float(one.frames["bar@0.5"][1]) for one in away)
    assert true == pytest.approx(10 * 0.4**3 / (3 * bars.EI), rel=1e-3) and stiff == pytest.approx(true, rel=1e-3)
    run = parflex.simulate(small, None, 0.002, wrench=push)
    assert [word for word in run.summary["warnings"] if "inside of a reduced beam" in word]
    assert max(np.ptp(run[name]) for name in run if name.startswith("q.")) < 1e-9 * stiff  # it stays where statics say
    tip = parflex.deflection(small, wrench={"bar@1": [0.0, 10.0, 0.0]})
    assert not [word for word in tip.warnings if "reduced beam" in word]


def test_a_spring_between_the_ends_is_carried_before_its_place(tmp_path):
    """Its force is known from where its hook is; sections behind it carry nothing."""
    more = """
[[point]]
name = "wall"
frame = "base"
position = [0.5, 0.6, 0.9]
[[element]]
name = "spring"
kind = "spring"
between = ["wall", "arm@0.6"]
stiffness = 300
rest = 0.1
"""
    robot = arm(tmp_path, RECTANGLE, "", more, gravity=(0, 0, 0))
    rest = parflex.equilibrium(robot)
    bent, at = deflection_at(rest), rest.configuration.at
    hook = at.of(robot.tree.places["arm@0.6"])[1]
    across = np.array([0.5, 0.6, 0.9]) - hook
    force = 300 * (np.linalg.norm(across) - 0.1) * across / np.linalg.norm(across)
    assert np.linalg.norm(force) > 30
    for s in (0.0, 0.4, 0.6, 0.61, 1.0):
        own, here = at.of(robot.tree.places[f"arm@{s}"])
        load = force * (s <= 0.6)
        found = np.array([bent.beams["arm"].at(s)[word] for word in FORCES])
        exact = [*(own.T @ load), *(own.T @ np.cross(hook - here, load))]
        assert np.abs(found - exact).max() < 1e-10 * np.linalg.norm(force), s


def test_a_turning_beam_is_pulled_by_what_lies_beyond(tmp_path):
    robot = arm(tmp_path, RECTANGLE, ", elements = 3", gravity=(0, 0, 0))
    here, speed = parflex.configure(robot), 12.0
    qd, qdd = np.zeros((2, robot.tree.n))
    qd[0] = speed
    beam = loads_of_beams(here, qd, qdd, tree_newton_euler(here, qd, qdd), {})["arm"]
    for s in (0.0, 0.2, 1 / 3, 0.71, 1.0):
        exact = 7800 * 0.02 * 0.03 * speed**2 * 0.8**2 * (1 - s**2) / 2
        found = beam.at(s)
        assert math.isclose(found["N"], exact, abs_tol=1e-11) and abs(found["Mz"]) + abs(found["My"]) < 1e-11
        assert math.isclose(found["stress"], exact / (0.02 * 0.03), abs_tol=1e-6)


@pytest.mark.parametrize("elements", [1, 3])
def test_a_clamped_beam_carries_its_load_as_by_hand(tmp_path, elements):
    """Tension, two bending planes and torsion at once; both signs; any number of elements says the same."""
    robot = arm(tmp_path, RECTANGLE, f", elements = {elements}", gravity=(0, 0, 0))
    R = parflex.frames(robot)["arm"].rotation
    F, M, L = np.array([900.0, 3.0, -2.0]), np.array([1.5, 0.4, -0.3]), 0.8
    for sign in (1, -1):
        wrench = {"arm.tip": [*(R @ F * sign), *(R @ M * sign)]}
        bent = parflex.deflection(robot, about="undeformed", wrench=wrench)
        for s in (0.0, 0.35, 1.0):
            arm_left = (1 - s) * L
            exact = np.array([*F, M[0], M[1] - arm_left * F[2], M[2] + arm_left * F[1]]) * sign
            found = bent.beams["arm"].at(s)
            assert np.abs([found[word] for word in FORCES] - exact).max() < 1e-9, s
            y, z = 0.01, 0.015
            N, My, Mz = exact[0], exact[4], exact[5]
            corners = [N / 6e-4 + My * k * z / (0.02 * 0.03**3 / 12) - Mz * j * y / (0.03 * 0.02**3 / 12)
                       for j in (-1, 1) for k in (-1, 1)]  # fmt: skip
            assert math.isclose(found["stress"], max(map(abs, corners)), rel_tol=1e-11)
        most = bent.largest_stress
        root = bent.beams["arm"].at(0.0)["stress"]
        assert most == {"beam": "arm", "s": 0.0, "value": pytest.approx(root, rel=1e-12)}


@pytest.mark.parametrize(("shape", "half"), [("tube", None), ("circle", None)])
def test_round_sections_bend_alike_in_all_directions(tmp_path, shape, half):
    sizes = "diameter = 0.03" + ("\nthickness = 0.004" if shape == "tube" else "")
    robot = arm(tmp_path, f'shape = "{shape}"\n{sizes}', ", roll = 0.9", gravity=(0, 0, 0))
    R, L = parflex.frames(robot)["arm"].rotation, 0.8
    inner = 0.015 - 0.004 if shape == "tube" else 0.0
    I, A = math.pi / 4 * (0.015**4 - inner**4), math.pi * (0.015**2 - inner**2)
    bent = parflex.deflection(robot, about="undeformed", wrench={"arm.tip": [*(R @ [-50.0, 30.0, 40.0]), 0, 0, 0]})
    assert math.isclose(bent.largest_stress["value"], 50 / A + 50 * L * 0.015 / I, rel_tol=1e-10)


def test_the_largest_stress_may_be_inside_an_element(tmp_path):
    """A moment at the tip against the weight of the beam: its largest bending is where the shear force vanishes."""
    robot = arm(tmp_path, RECTANGLE, ", elements = 2", gravity=(0, 0, 0))
    g, L, mu = 9.81, 0.8, 7800 * 6e-4
    robot = parflex.load(robot.file, settings={"gravity": list(parflex.frames(robot)["arm"].rotation @ [0, -g, 0])})
    R = parflex.frames(robot)["arm"].rotation
    V, M = 18.0, 0.2  # M(x) = M + V (L - x) - mu g (L - x)^2/2 is largest at L - x = V/(mu g)
    bent = parflex.deflection(robot, about="undeformed", wrench={"arm.tip": [*(R @ [0, V, 0]), *(R @ [0, 0, M])]})
    x = V / (mu * g)
    exact = (M + V**2 / (2 * mu * g)) * 0.01 / (0.03 * 0.02**3 / 12)
    most = bent.largest_stress
    assert math.isclose(most["value"], exact, rel_tol=1e-12) and math.isclose(most["s"], 1 - x / L, abs_tol=1e-6)


# -- in time ---------------------------------------------------------------------------------------------------

SHAKEN = f"""
name = "shaken"
motion = "planar"
axial = "linear"
gravity = [0, 0, 0]
{STEEL}
[sections.bar]
shape = "rectangle"
y = 0.01
z = 0.03
[[frame]]
name = "slide"
joint = "prismatic"
actuated = true
place = {{ rotation = [-1.5707963267948966, 0, 0] }}
[[frame]]
name = "beam"
parent = "slide"
place = {{ rotation = [1.5707963267948966, 0, 0] }}
beam = {{ length = 0.6, material = "steel", section = "bar", elements = 6 }}
"""


def test_a_shaken_beam_carries_what_its_series_says(tmp_path):
    """Moment and stress at all times; the base begins to accelerate by A sin(W t)."""
    robot = written(tmp_path, SHAKEN)
    L, EI, mu, c = 0.6, 2.1e11 * 0.03 * 0.01**3 / 12, 7800 * 3e-4, 0.005
    exact = ShakenCantilever(L, EI, mu, A=30.0, W=90.0)
    assert exact.omega[0] / (2 * math.pi) == pytest.approx(23.3, rel=0.01)
    A, W = 30.0, 90.0

    def base(t):
        return A / W**2 * (W * t - math.sin(W * t)), A / W * (1 - math.cos(W * t)), A * math.sin(W * t)

    places = (0.0, 0.3, 0.75)
    asked = [f"beam.{word}@{s}" for s in places for word in ("Mz", "stress", "N")]
    run = parflex.simulate(robot, base, 0.1, step=2.5e-4, outputs=asked, start="rest")
    M = exact.moment(np.array(places), run.t)
    for k, s in enumerate(places):
        # six elements: higher modes are off by a few parts in a thousand, and so are their shares of the moment
        assert np.abs(run[f"beam.Mz@{s}"] - M[k]).max() < 3e-3 * np.abs(M[k]).max(), s
        stress = np.abs(run[f"beam.N@{s}"]) / 3e-4 + np.abs(run[f"beam.Mz@{s}"]) * c / (0.03 * 0.01**3 / 12)
        assert np.abs(run[f"beam.stress@{s}"] - stress).max() < 1e-12 * stress.max()
    most = run.summary["largest_stress"]
    row = int(np.abs(M[0]).argmax())
    # six elements: the moment errs by 3e-3 of its largest, so that its peak may lie a row aside
    assert most["beam"] == "beam" and most["s"] == 0.0 and most["time"] == pytest.approx(run.t[row], abs=2e-3)
    assert most["value"] == pytest.approx(np.abs(M[0]).max() * c / (0.03 * 0.01**3 / 12), rel=3e-3)


FIVE_BAR = f"""
name = "loaded five-bar"
motion = "planar"
gravity = [0, 0, 0]
{STEEL}
[sections.bar]
shape = "rectangle"
y = 0.02
z = 0.03
[[frame]]
name = "left"
joint = "revolute"
actuated = true
place = {{ position = [-0.3, 0, 0] }}
start = 1.5707963267948966
beam = {{ length = 0.4, material = "steel", section = "bar" }}
[[frame]]
name = "left2"
parent = "left.tip"
joint = "revolute"
start = -0.9272952180016122
beam = {{ length = 0.5, material = "steel", section = "bar", elements = 2 }}
[[frame]]
name = "right"
joint = "revolute"
actuated = true
place = {{ position = [0.3, 0, 0] }}
start = 1.5707963267948966
beam = {{ length = 0.4, material = "steel", section = "bar" }}
[[frame]]
name = "right2"
parent = "right.tip"
joint = "revolute"
start = 0.9272952180016122
beam = {{ length = 0.5, material = "steel", section = "bar" }}
[[closure]]
name = "hinge"
between = ["left2.tip", "right2.tip"]
joint = "revolute"
"""


@pytest.fixture(scope="module")
def five_bar(tmp_path_factory):
    return written(tmp_path_factory.mktemp("bars"), FIVE_BAR)


@pytest.fixture(scope="module")
def loaded_run(five_bar):
    """The five-bar stands still under a small load on its hinge; all that sections carry is known by hand."""
    beams = ("left", "left2", "right", "right2")
    asked = [f"{beam}.{word}@{s}" for beam in beams for word in ("N", "Vy", "Mz", "stress") for s in (0, 0.4, 1)]
    return parflex.simulate(
        five_bar, None, 0.02, effort={"left": -12.0, "right": 12.0}, wrench={"left2.tip": [0, -80.0, 0]},
        outputs=asked, reactions=True, start="rest", step=5e-4,
    )  # fmt: skip


def test_a_closed_robot_at_rest_has_the_largest_stress_that_statics_say(five_bar):
    """Upper bars are two-force members, 3-4-5: N = F/2 / (4/5)... lower ones carry N and bend by its sideways part."""
    F = 80.0
    bent = parflex.deflection(five_bar, about="undeformed", wrench={"left2.tip": [0, -F, 0]})
    along = -F / 2 / math.sin(math.acos(0.6))  # compression of an upper bar
    side = along * 0.6  # its sideways part, which bends the lower bar
    for name, sign in (("left", -1), ("right", 1)):
        upper, lower = bent.beams[f"{name}2"].at(0.4), bent.beams[name].at(0.25)
        assert math.isclose(upper["N"], along, rel_tol=1e-9) and abs(upper["Mz"]) < 1e-9
        assert math.isclose(lower["N"], -F / 2, rel_tol=1e-9)
        assert math.isclose(lower["Mz"], sign * side * 0.75 * 0.4, rel_tol=1e-9)
    most = bent.largest_stress
    exact = F / 2 / 6e-4 + abs(side) * 0.4 * 0.01 / (0.03 * 0.02**3 / 12)
    assert most["beam"] in ("left", "right") and most["s"] == 0.0 and math.isclose(most["value"], exact, rel_tol=1e-9)


def test_sections_of_a_run_are_in_equilibrium_with_its_reactions(five_bar, loaded_run):
    """At the root what the joint carries, at the tip what the next joint carries; in each row."""
    run = loaded_run
    scale = max(np.abs(run[name]).max() for name in run if name.startswith("reaction."))
    for beam, after in (("left", "left2"), ("right", "right2")):
        for word, part in (("N", "fx"), ("Vy", "fy"), ("Mz", "mz")):
            assert np.abs(run[f"{beam}.{word}@0"] + run[f"reaction.{beam}.{part}"]).max() < 1e-11 * scale
        turn = run[f"q.{after}"]
        c, s = np.cos(turn), np.sin(turn)
        fx, fy = run[f"reaction.{after}.fx"], run[f"reaction.{after}.fy"]
        assert np.abs(run[f"{beam}.N@1"] + c * fx - s * fy).max() < 1e-11 * scale
        assert np.abs(run[f"{beam}.Vy@1"] + s * fx + c * fy).max() < 1e-11 * scale
        assert np.abs(run[f"{beam}.Mz@1"] + run[f"reaction.{after}.mz"]).max() < 1e-11 * scale
    most = run.summary["largest_stress"]
    listed = [(run[name].max(), name) for name in run if ".stress@" in name]
    assert most["value"] >= max(listed)[0] * (1 - 1e-12) and set(most) == {"beam", "s", "time", "value"}


def test_rows_carry_what_their_states_do(five_bar, loaded_run):
    run, row = loaded_run, 13
    tree = five_bar.tree
    q = {name: run[f"q.{name}"][row] for name in tree.position_names}
    qd = {name: run[f"qd.{name}"][row] for name in tree.position_names}
    one = parflex.forward_dynamics(
        five_bar, parflex.configure(five_bar, q), qd, {"left": -12.0, "right": 12.0},
        wrench={"left2.tip": [0, -80.0, 0]}, reactions=True,
    ).reactions  # fmt: skip
    for beam in ("left2", "right"):
        for word in ("N", "Vy", "Mz", "stress"):
            values = one["beams"][beam][word]
            size = max(map(abs, values))
            # poses close to 1e-12 of the size of the robot, and bars are stiff: that is 1e-6 of their forces
            assert abs(values[4] - run[f"{beam}.{word}@0.4"][row]) < 1e-5 * max(size, 1.0), (beam, word)


# -- what cannot be asked ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "says", "hint"),
    [
        ("left.Mz@1.2", r"the place '1.2' is not on the beam 'left'", "from 0"),
        ("left.Mz@-0.1", r"the place '-0.1' is not on the beam 'left'", "from 0"),
        ("left.Mz@middle", r"the place 'middle' is not on the beam 'left'", "from 0"),
        ("left.My@0.5", r"a planar robot does not say what 'left' carries as My", "Mz"),
        ("lift.Mz@0.5", r"there is no beam 'lift'", "left"),
        ("left.tip.Mz@0.5", r"'left.tip' is not a beam", "left"),
        ("left.Mz@0:2:5", r"'0:2:5' is not a range of places", "0:1:21"),
        ("left.Mq@0.5", r"there is no output 'left.Mq@0.5'", "left.M"),
        ("left.Mz", r"there is no output 'left.Mz'", "left.M"),
    ],
)
def test_sections_that_are_not_there_are_refused(five_bar, word, says, hint):
    with pytest.raises(InputError, match=says) as caught:
        parflex.simulate(five_bar, None, 0.01, outputs=[word])
    assert hint in caught.value.hint


def test_stress_needs_fibres_and_beams_need_no_modes(tmp_path):
    robot = arm(tmp_path, 'shape = "numbers"\nA = 6e-4\nIy = 4.5e-8\nIz = 2e-8\nJ = 5e-8')
    with pytest.raises(InputError, match="stress in 'arm' is not known") as caught:
        parflex.simulate(robot, None, 0.01, outputs=["arm.stress@0"])
    assert "rectangle" in caught.value.hint
    bent = parflex.deflection(robot, about="undeformed")
    assert bent.largest_stress is None and "stress" not in bent.beams["arm"].at(0.5)
    with pytest.raises(InputError, match="not on the beam 'arm'"):
        bent.beams["arm"].at(1.5)


def test_beams_whose_stress_is_not_known_are_named(tmp_path):
    """Of a section given by numbers no fibres are known: the largest stress is that of the others, and says so."""
    robot = arm(tmp_path, 'shape = "numbers"\nA = 6e-4\nIy = 4.5e-8\nIz = 2e-8\nJ = 5e-8', "", TWO_LINKS)
    bent = parflex.deflection(robot, about="undeformed")
    assert bent.largest_stress["beam"] == "fore"
    assert any("leaves out 'arm'" in sentence for sentence in bent.warnings)


def test_reduced_beams_have_their_sections(tmp_path):
    found, wanted = (
        parflex.deflection(arm(tmp_path, RECTANGLE, f", elements = 4{more}", TWO_LINKS), about="undeformed")
        for more in (", reduce = { error = 1.0, band = 50 }", "")
    )
    assert found.largest_stress["value"] == pytest.approx(wanted.largest_stress["value"], rel=1e-9)
    for s in (0.0, 0.3, 0.5, 1.0):
        for word, value in wanted.beams["arm"].at(s).items():
            assert found.beams["arm"].at(s)[word] == pytest.approx(value, rel=1e-7, abs=1e-6)


@pytest.mark.parametrize("kind", [", rotary_inertia = true, roll = 0.4", ', model = "planar"'])
def test_both_ends_of_a_reduced_beam_give_the_same(tmp_path, kind):
    """In motion; integrals from the root are those of the body."""
    robot = arm(tmp_path, RECTANGLE, f", elements = 6, reduce = {{ error = 1.0, band = 400 }}{kind}")
    chain = loads_of_nothing(robot).chain
    body = robot.tree.links[chain.links[0]].body.without_rigid()
    assert body.reduced is not None and body.reduced.kept
    m, S, G = (part[0] for part in chain.parts_of(0).beyond(np.array([0.0])))
    assert math.isclose(m, body.m, rel_tol=1e-13)
    # the body has zeros where sums over elements have rounding
    assert np.abs(S - body.S).max() < 1e-11 * np.abs(body.S).max()
    assert np.abs(G - body.G).max() < 1e-11 * np.abs(body.G).max()
    rng = np.random.default_rng(5)
    q, qd, qdd = rng.normal(size=(3, robot.tree.n)) * [[2e-3], [0.3], [5.0]]
    here = parflex.configure(robot, dict(zip(robot.tree.position_names, q, strict=True)))
    found = tree_newton_euler(here, qd, qdd)
    beam = loads_of_beams(here, qd, qdd, found, {})["arm"]
    j, k = chain.links[0], chain.tip
    moving = motion(robot.tree, here.at, qd, qdd, -robot.tree.gravity)
    force, moment = robot.tree.links[j].body.rigid.wrench(moving.U[j], moving.a[j])
    root = -np.concatenate([found.f[j] - force, found.m[j] - moment])
    tip = -np.concatenate([found.f[k], found.m[k]])
    for s, exact in ((0.0, root), (1.0, tip)):
        values = np.array([beam.at(s)[word] for word in FORCES])
        assert np.abs(values - exact).max() < 1e-10 * np.abs(root).max(), s


def test_the_command_line_names_the_largest_stress(tmp_path, five_bar):
    path = tmp_path / "made.toml"
    path.write_text(
        "format = 1\n" + SHAKEN.replace("elements = 6", "elements = 1").replace("[0, 0, 0]", "[0, -9.81, 0]")
    )
    command = ["simulate", str(path), "--time", "0.002", "--step", "5e-4", "--out", str(tmp_path / "run.csv")]
    done = CliRunner().invoke(cli, [*command, "--outputs", "beam.Mz@0:1:3,beam.stress@0", "--json"])
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    assert {"beam.Mz@0", "beam.Mz@0.5", "beam.Mz@1", "beam.stress@0"} <= set(answer["columns"])
    drawn = CliRunner().invoke(
        cli, ["plot", str(tmp_path / "run.csv"), "--sections", "-o", str(tmp_path / "a.svg"), "--json"]
    )
    assert drawn.exit_code == 0 and json.loads(drawn.stdout)["columns"] == ["beam.Mz"]
    assert set(answer["largest_stress"]) == {"beam", "s", "time", "value"}
    told = CliRunner().invoke(cli, command)
    assert told.exit_code == 0 and "largest stress" in told.stdout and "MPa" in told.stdout
    bent = CliRunner().invoke(cli, ["stiffness", five_bar.file, "--wrench", "left2.tip=0,-80,0", "--json"])
    answer = json.loads(bent.stdout)
    assert set(answer["largest_stress"]) == {"beam", "s", "value"} and set(answer["beams"]["left"]) >= {"s", "N", "Mz"}
