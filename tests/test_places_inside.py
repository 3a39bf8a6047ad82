"""Places inside flexible bodies, `BEAM@s` and `BODY@NODE`: where they are, how they move, what acts there."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from support.oracles.inside_beams import Element, cantilever, section

import parflex
from parflex.models.dynamics.forces import forces_along_rates, on_links
from parflex.recursion import jacobians, motion, pose
from parflex.recursion.energy import energies
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
def bar(folder: Path, elements: int, unit: float = 1.0) -> parflex.Robot:
    text = BAR.replace("ELEMENTS", str(elements))
    for size in (Y, Z, LENGTH):
        text = text.replace(f"= {size}\n", f"= {size * unit!r}\n").replace(f"= {size},", f"= {size * unit!r},")
    file = folder / f"bar-{elements}-{unit}.toml"
    file.write_text(text)
    return parflex.load(file)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("bars")


@pytest.mark.parametrize(("elements", "unit"), [(1, 1.0), (3, 1.0), (2, 1e-3)])
def test_a_clamped_beam_bends_as_its_differential_equation_says(folder, elements, unit):
    """Also with all lengths a thousandth."""
    length, stiff = LENGTH * unit, EI * unit**4
    F, M = 0.5 * unit**2, 0.02 * unit**3
    places = [0.1, 1 / 3, 0.45, 0.9, 1.0]
    names = [f"bar@{s!r}" for s in places]
    # a force and a moment at the tip: cubic between the ends, so that every place is exact whatever the elements
    moved = parflex.deflection(
        bar(folder, elements, unit), wrench={"bar.tip": [0, F, 0, 0, 0, M]}, about="undeformed", frames=names
    ).frames
    for s, name in zip(places, names, strict=True):
        x = s * length
        v, slope = cantilever(F, length, x, stiff)
        v, slope = v + M * x**2 / (2 * stiff), slope + M * x / stiff
        assert moved[name][1] == pytest.approx(v, rel=1e-9) and moved[name][5] == pytest.approx(slope, rel=1e-9)
    # a force between: exact at the nodes, and beside them with what a beam clamped at its nodes bends
    a = 0.45
    moved = parflex.deflection(
        bar(folder, elements, unit), wrench={f"bar@{a}": [0, F, 0]}, about="undeformed", frames=names
    ).frames
    for s, name in zip(places, names, strict=True):
        v, slope = cantilever(F, a * length, s * length, stiff)
        assert moved[name][1] == pytest.approx(v, rel=1e-9) and moved[name][5] == pytest.approx(slope, rel=1e-9)


def test_places_of_a_pendulum_accelerate_as_points_of_a_circle():
    """A straight beam that turns about its root: w^2 r inwards, alpha r across; a sensor feels gravity beside them."""
    here = robot("geared-beams")
    tree, L, w, al = here.tree, 0.5, 3.0, -7.0
    qd, qdd = np.zeros(tree.n), np.zeros(tree.n)
    shoulder = tree.links[tree.number("shoulder")].v.start
    qd[shoulder], qdd[shoulder] = w, al
    at = pose(tree, here.home)
    for s in (0.1, 0.5, 0.83):
        place = tree.places[f"upper@{s}"]
        v, turn, a, spin = motion(tree, at, qd, qdd, -tree.gravity).of(place)
        up = at.of(place)[0].T @ [0, 9.81, 0]
        assert np.allclose(v, [0, w * s * L, 0], atol=1e-14) and np.allclose(turn, [0, 0, w])
        circle = np.array([-(w**2) * s * L, al * s * L, 0])
        assert np.allclose(a, up + circle, atol=1e-13) and np.allclose(spin, [0, 0, al])


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


PLATE = "gough-stewart-flexible"


def test_every_node_of_a_modal_body_is_a_place_by_name_and_by_number():
    """Positions and turns are read from the exchange file itself."""
    tree, file = robot(PLATE).tree, robot(PLATE).description.platform.modal.file
    with np.load(file) as data:
        nodes, shapes, names = data["nodes"], data["shapes"], [str(name) for name in data["interface"]]
    q, qd, _, rng = random_state(PLATE, 4, bend=1e-3)
    at, plate = pose(tree, q), tree.number("platform")
    e, R, p = q[tree.links[plate].e], at.rotation[plate], at.position[plate]
    count = len(e)
    inside = [len(nodes) - 1, len(names), int(rng.integers(len(names), len(nodes)))]
    for number in [0, *inside]:
        moved = nodes[number] + shapes[:count, number, :3].T @ e
        assert np.allclose(at.of(tree.places[f"platform@{number}"])[1], p + R @ moved, atol=1e-12)
    for number, name in enumerate(names):
        by_name, own = (at.of(tree.places[frame]) for frame in (f"platform@{name}", f"platform.{name}"))
        assert np.array_equal(by_name[1], own[1]) and np.array_equal(by_name[0], own[0])
        assert np.allclose(at.of(tree.places[f"platform@{number}"])[1], own[1], atol=1e-14)
    frame, wrench, h = f"platform@{inside[0]}", rng.standard_normal(6), 1e-6
    still = np.zeros(tree.n)
    pushed = forces_along_rates(tree, at, q, still, still, on_links(tree, at, {frame: wrench}))
    power = (forces_along_rates(tree, at, q, still, still) - pushed) @ qd
    (R1, p1), (R2, p2) = (pose(tree, tree.moved(q, t * qd)).of(tree.places[frame]) for t in (h, -h))
    spin = (R1 - R2) @ at.of(tree.places[frame])[0].T / (2 * h)
    twist = np.concatenate([(p1 - p2) / (2 * h), [spin[2, 1], spin[0, 2], spin[1, 0]]])
    assert power == pytest.approx(wrench @ twist, rel=1e-6)  # of the differences


INSIDE = {
    "dualemps": "16@0.37",
    "geared-beams": "upper@0.8",
    "rolled-beams": "left@0.3",
    "bending-satellite": "arm@0.6",
}
INSIDE |= {"gough-stewart-beams": "leg1.rod@0.5", PLATE: "platform@60"}


def bent(name: str) -> parflex.Configuration:
    """A closed configuration with bent bodies."""
    here, rng = robot(name), np.random.default_rng(6)
    elastic = {here.tree.rate_names[k] for k in here.tree.elastic}
    return parflex.configure(
        here, {word: 0.003 * rng.standard_normal() for word in here.independent if word in elastic}
    )


def force_at(name: str) -> np.ndarray:
    wrench = np.random.default_rng(7).standard_normal(6)
    return wrench * [1, 1, 0, 0, 0, 1] if robot(name).tree.planar else wrench


@pytest.mark.parametrize("name", INSIDE)
def test_a_wrench_at_a_place_accelerates_closed_robots_by_the_inverse_of_their_mass(name):
    here, wrench = bent(name), force_at(name)
    frame = INSIDE[name]
    free, pushed = (
        parflex.forward_dynamics(robot(name), here, wrench=acting).accelerations for acting in (None, {frame: wrench})
    )
    M = parflex.mass_matrix(robot(name), here).matrix
    wanted = here.J @ np.linalg.solve(M, (here.frame_rows(frame) @ here.J).T @ wrench)
    # the bent beams accelerate by up to 1e6 m/s^2 of themselves: differences keep the rounding of these
    assert np.allclose(pushed - free, wanted, atol=1e-14 * np.abs(free).max() + 1e-8 * np.abs(wanted).max())


def test_programs_take_wrenches_at_places():
    """In the twists of pieces a force along elastic coordinates is a pair of wrenches at the ends of the beam."""
    of, here, frame, wrench = robot("dualemps"), bent("dualemps"), INSIDE["dualemps"], force_at("dualemps")
    program = parflex.model(of, "state-rates", wrench_frames=[frame])
    qd = np.zeros(len(program.labels["qd"]))
    given = {"q": here.q, "qd": qd, "effort": np.array([3.0, -2.0])}
    free, pushed = (
        program.evaluate("numpy", **given, **{f"wrench_{frame}": w})["acceleration"] for w in (np.zeros(6), wrench)
    )
    wanted = parflex.forward_dynamics(of, here, wrench={frame: wrench}).accelerations
    wanted = wanted - parflex.forward_dynamics(of, here).accelerations
    own = [of.tree.rate_names.index(name) for name in program.labels["qd"]]
    assert np.allclose(np.ravel(pushed - free), wanted[own], atol=1e-7 * np.abs(wanted).max())


def test_the_tangent_stiffness_under_a_force_at_a_place_is_the_slope_of_the_balance(folder):
    """The force keeps its direction while its place moves and turns; differences of 1e-5 of the length."""
    here = bar(folder, 2)
    load = {"bar@0.8": np.array([-20.0, 1.0, 2.0, 0.0, 0.0, 0.0])}
    model = parflex.linear_model(here, wrench=load, about="equilibrium")
    tree, q, still, h = here.tree, model.configuration.q, np.zeros(here.tree.n), 1e-6

    def forces(q):
        at = pose(tree, q)
        return forces_along_rates(tree, at, q, still, still, on_links(tree, at, load))

    assert np.abs(forces(q)).max() < 1e-6
    K = np.array(
        [(forces(tree.moved(q, h * unit)) - forces(tree.moved(q, -h * unit))) / (2 * h) for unit in np.eye(12)]
    )
    scale = np.sqrt(np.outer(np.diag(K), np.diag(K)))
    assert np.abs((model.K - K.T) / scale).max() < 1e-7
    plain = parflex.linear_model(here, about="undeformed").K
    assert np.abs((model.K - plain) / scale).max() > 1e-4  # the load is felt


@pytest.mark.parametrize(
    ("name", "frame", "said"),
    [
        ("dualemps", "13@1.2", "'1.2' is not a place of the beam '13'"),
        ("dualemps", "13@nan", "'nan' is not a place of the beam '13'"),
        ("dualemps", "13@middle", "'middle' is not a place of the beam '13'"),
        ("dualemps", "12@0.5", "'12' is not a beam or modal body"),
        ("dualemps", "base@0.5", "'base' is not a beam or modal body"),
        ("dualemps", "arm@0.5", "there is no frame 'arm@0.5'"),
        ("dualemps", "13@", "there is no frame '13@'"),
        (PLATE, "platform@b77", "the body 'platform' has no node 'b77'"),
        (PLATE, "platform@100000", "the body 'platform' has no node '100000'"),
        (PLATE, "platform@-1", "the body 'platform' has no node '-1'"),
    ],
)
def test_a_place_that_is_not_there_is_refused_in_a_sentence(name, frame, said):
    with pytest.raises(parflex.InputError, match=said) as caught:
        robot(name).tree.place(frame)
    assert caught.value.key == "frame" and caught.value.value == frame and caught.value.hint
    with pytest.raises(parflex.InputError, match=said) as caught:
        parflex.deflection(robot(name), wrench={frame: [0, 1, 0]})
    assert caught.value.key == "wrench"


FILE = """
format = 1
name = "mounted"
motion = "planar"
gravity = [0, -9.81, 0]
[materials.a]
elastic_modulus = 7e10
density = 2700
[sections.f]
shape = "rectangle"
y = 0.008
z = 0.03
[[frame]]
name = "arm"
joint = "revolute"
actuated = true
start = 0.3
beam = { length = 0.6, material = "a", section = "f", elements = ELEMENTS }
[[point]]
name = "roof"
frame = "base"
position = [0.3, 0.9, 0]
"""
MASS = '[[frame]]\nname = "mass"\nparent = "PLACE"\ninertia = { mass = 0.7, about_centre = [0, 0, 0.002] }\n'
CLOSED = '[[frame]]\nname = "foot"\njoint = "revolute"\nplace = { position = [0.5, -0.3, 0] }\nstart = 2.0\n'
CLOSED += (
    'inertia = { mass = 0.2, centre = [0.1, 0, 0] }\n[[point]]\nname = "end"\nframe = "foot"\nposition = [0.5, 0, 0]\n'
)
CLOSED += '[[closure]]\nbetween = ["end", "PLACE"]\njoint = "revolute"\n'
ROD = '[[element]]\nname = "rod"\nkind = "rod"\nbetween = ["roof", "PLACE"]\n'
SPRING = '[[element]]\nname = "spring"\nkind = "spring"\nstiffness = 400\nrest = 0.4\nbetween = ["roof", "PLACE"]\n'


def written(folder: Path, more: str, place: str, elements: int, head: str = "") -> parflex.Robot:
    text = FILE.replace("gravity", f"{head}\ngravity", 1).replace("ELEMENTS", str(elements))
    file = folder / f"{abs(hash((more, place, elements, head)))}.toml"
    file.write_text(text + more.replace("PLACE", place))
    return parflex.load(file)


@pytest.mark.parametrize("more", [MASS, CLOSED, ROD], ids=["frame", "closure", "rod"])
def test_what_is_mounted_inside_a_beam_sits_on_a_node_of_equal_elements(tmp_path, more):
    inside, plain = written(tmp_path, more, "arm@0.5", 1), written(tmp_path, more, "arm.1", 2)
    assert inside.tree.n == plain.tree.n and "arm@0.5" in list(inside.tree.places)
    found, expected = (parflex.natural_frequencies(one, modes=3).frequencies for one in (inside, plain))
    assert np.allclose(found, expected, rtol=1e-12)


def test_the_end_effector_may_be_a_place_inside_a_beam(tmp_path):
    inside = written(tmp_path, "", "", 1, 'end_effector = "arm@0.5"')
    plain = written(tmp_path, "", "", 2, 'end_effector = "arm.1"')
    poses = [parflex.configure(one, {"y": 0.1}).q for one in (inside, plain)]
    assert np.allclose(*poses, atol=1e-12)
    stiffness = [parflex.cartesian_stiffness(one).compliance for one in (inside, plain)]
    assert np.allclose(*stiffness, rtol=1e-12)


def test_a_spring_inside_a_beam_pushes_as_its_energy_says(tmp_path):
    """Forces along rates are slopes of the energy: differences of 1e-6 of lengths of 1 m."""
    here = written(tmp_path, SPRING, "arm@0.37", 2)
    tree, rng = here.tree, np.random.default_rng(5)
    assert here.tree.n == 10  # two elements, and a node where it pulls
    q, still, h = tree.moved(here.home, 0.05 * rng.standard_normal(tree.n)), np.zeros(tree.n), 1e-6
    forces = forces_along_rates(tree, pose(tree, q), q, still, still)

    def energy(q):
        found = energies(tree, pose(tree, q), still)
        return found.elastic + found.gravity

    slopes = [(energy(tree.moved(q, h * unit)) - energy(tree.moved(q, -h * unit))) / (2 * h) for unit in np.eye(tree.n)]
    assert np.allclose(forces, slopes, rtol=1e-6, atol=1e-6 * np.abs(forces).max())


def test_points_inside_beams_move_with_them_and_carry_nothing(tmp_path):
    point = '[[point]]\nname = "sensor"\nframe = "arm@0.37"\nposition = [0, 0.05, 0]\nrotation = [0, 0, 0.4]\n'
    here = written(tmp_path, point, "", 1)
    q = here.tree.moved(here.home, np.array([0.1, 0.0, 0.02, 0.05]))
    (R, p), (R0, p0) = (pose(here.tree, q).of(here.tree.places[name]) for name in ("sensor", "arm@0.37"))
    assert np.allclose(p, p0 + R0 @ [0, 0.05, 0], atol=1e-15)
    assert np.allclose((R0.T @ R)[:2, 0], [np.cos(0.4), np.sin(0.4)], atol=1e-15)
    with pytest.raises(parflex.RobotFileError, match="nothing can be mounted on 'sensor'"):
        written(tmp_path, point + CLOSED, "sensor", 1)
    with pytest.raises(parflex.RobotFileError, match="nothing can be mounted on 'sensor'"):
        written(tmp_path, point + ROD, "sensor", 1)


@pytest.mark.parametrize(
    ("more", "place", "key", "said"),
    [
        (MASS, "arm@1.5", "frame 'mass': parent", "there is no frame 'arm@1.5'"),
        (CLOSED, "arm@-1", "closure 'end~arm@-1': between", "there is no frame 'arm@-1'"),
        (SPRING, "roof@0.5", "element 'spring': between", "there is no frame or point 'roof@0.5'"),
        (SPRING, "arm@one", "element 'spring': between", "there is no frame or point 'arm@one'"),
        (MASS, "arm@0.9997", "frame 'arm': beam.elements", "mounted on 'arm@0.9997', 0.0003 elements from a node"),
        (MASS, "arm@0.5@0.5", "frame 'mass': parent", "'arm@0.5' is not a valid name"),
    ],
)
def test_a_file_that_names_no_place_of_a_beam_is_refused_in_a_sentence(tmp_path, more, place, key, said):
    with pytest.raises(parflex.RobotFileError, match=said) as caught:
        written(tmp_path, more, place, 1)
    assert caught.value.key == key and caught.value.hint
