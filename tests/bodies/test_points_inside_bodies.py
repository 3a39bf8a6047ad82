"""Places inside flexible bodies, `BEAM@s` and `BODY@NODE`: positions, motions, loads, and columns of runs."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from support import bars
from support.oracles import exact_beams
from support.oracles.beam_element import Bar
from support.oracles.inside_beams import Element, cantilever, section
from support.robots import any_robot, load_robot, robot_file

import parflex
from parflex.recursion.kinematics import motion

KINDS = ("dualemps", "geared-beams", "rolled-beams", "bending-satellite", "gough-stewart-beams")
L, EI = bars.LENGTH, bars.EI
robot = cache(any_robot)


def beams(name: str) -> list:
    return [frame for frame in robot(name).description.frame if frame.beam is not None]


def difference(before: parflex.Configuration, after: parflex.Configuration, frame: str, h: float) -> np.ndarray:
    """Velocity and angular velocity of a frame in world axes, by a central difference."""
    ((R1, p1), (R2, p2)) = (here.at.of(here.robot.tree.places[frame]) for here in (before, after))
    spin = (R2 - R1) @ ((R1 + R2) / 2).T / (2 * h)
    return np.concatenate([(p2 - p1) / (2 * h), [spin[2, 1], spin[0, 2], spin[1, 0]]])


def random_state(name: str, seed: int, bend: float = 0.05):
    """Positions about home with elements bent by some hundredths of their length, rates and accelerations."""
    tree, rng = robot(name).tree, np.random.default_rng(seed)
    step = 0.4 * rng.standard_normal(tree.n)
    step[list(tree.elastic)] *= bend / 0.4
    return tree.moved(robot(name).home, step), rng.standard_normal(tree.n), rng.standard_normal(tree.n), rng


def element_oracle(name: str, spec) -> Element:
    said = robot(name).description
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
    return Element(spec.length / spec.elements, spec.roll, soft)


@pytest.mark.parametrize("name", KINDS)
def test_places_are_on_the_line_that_bends_between_the_ends_of_elements(name):
    q, _, _, rng = random_state(name, 1)
    frames = parflex.frames(robot(name), parflex.Configuration(robot(name), q))
    for beam in beams(name)[:4]:
        spec, own = beam.beam, beam.name
        ends = [own, *(f"{own}.{k}" for k in range(1, spec.elements)), f"{own}.tip"]
        for s in rng.uniform(0, 1, 4).tolist():
            k, xi = int(s * spec.elements), s * spec.elements % 1
            R, p = section(element_oracle(name, spec), *(frames[end][::-1] for end in ends[k : k + 2]), xi)
            position, rotation = frames[f"{own}@{s!r}"]
            assert np.abs(position - p).max() < 1e-12  # rounding of lengths about 1 m
            assert np.abs(rotation - R).max() < 1e-12
        for s, frame in (("0", own), ("1", f"{own}.tip")):
            assert all(map(np.array_equal, frames[f"{own}@{s}"], frames[frame]))


@pytest.mark.parametrize("name", KINDS)
def test_velocities_and_accelerations_of_places_are_derivatives_of_their_positions(name):
    tree = robot(name).tree
    q, qd, qdd, rng = random_state(name, 2)
    h, change = 1e-5, tree.rate_changes(qd, qdd)
    states = {
        t: (parflex.Configuration(robot(name), tree.moved(q, t * qd + t * t / 2 * change)), qd + t * change)
        for t in (-h, 0.0, h)
    }
    here = states[0.0][0]
    moving = {t: motion(tree, at.at, rates, qdd) for t, (at, rates) in states.items()}
    names = [f"{beam.name}@{s!r}" for beam in beams(name)[:3] for s in rng.uniform(0, 1, 2).tolist()]
    for frame in names:
        place = tree.places[frame]
        world = {
            t: np.concatenate([at.at.of(place)[0] @ part for part in moving[t].of(place)[:2]])
            for t, (at, _) in states.items()
        }
        accelerations = np.concatenate([here.at.of(place)[0] @ part for part in moving[0.0].of(place)[2:]])
        # central differences: h^2 times third derivatives, some tens here
        twist = difference(states[-h][0], states[h][0], frame, h)
        assert np.allclose(twist[:3], world[0.0][:3], atol=1e-7)
        assert np.allclose(twist[3:], world[0.0][3:], atol=1e-6)
        assert np.allclose((world[h] - world[-h]) / (2 * h), accelerations, atol=1e-6)
        assert np.allclose(here.frame_rows(frame) @ qd, world[0.0], atol=1e-12)


E, RHO, Y, Z, LENGTH = 70e9, 2700.0, 0.004, 0.012, 0.5  # of the robot flat-bar
SHARES = (0.1, 0.3, 0.5, 0.9)


def flat_bar(motion="planar", gravity=(0, 0, 0), beam=None, settings=None) -> parflex.Robot:
    keys = {"motion": motion, "gravity": list(gravity)} | (settings or {})
    of_beam = {f"frame.bar.beam.{key}": value for key, value in (beam or {}).items()}
    return load_robot("flat-bar", settings=keys | of_beam)


PLATE = "gough-stewart-flexible"


def test_every_node_of_a_modal_body_is_a_place_by_name_and_by_number():
    tree, file = robot(PLATE).tree, robot(PLATE).description.platform.modal.file
    with np.load(file) as data:
        nodes, shapes, names = data["nodes"], data["shapes"], [str(name) for name in data["interface"]]
    q, qd, _, rng = random_state(PLATE, 4, bend=1e-3)
    here, h = parflex.Configuration(robot(PLATE), q), 1e-6
    frames, e = parflex.frames(robot(PLATE), here), q[tree.links[tree.number("platform")].e]
    p, R = frames["platform"]
    inside = [len(nodes) - 1, len(names), int(rng.integers(len(names), len(nodes)))]
    for number in [0, *inside]:
        moved = nodes[number] + shapes[: len(e), number, :3].T @ e
        assert np.allclose(frames[f"platform@{number}"][0], p + R @ moved, atol=1e-12)
    for number, name in enumerate(names):
        assert all(map(np.array_equal, frames[f"platform@{name}"], frames[f"platform.{name}"]))
        assert np.allclose(frames[f"platform@{number}"][0], frames[f"platform.{name}"][0], atol=1e-14)
    before, after = (parflex.Configuration(robot(PLATE), tree.moved(q, t * qd)) for t in (-h, h))
    twist = difference(before, after, f"platform@{inside[0]}", h)
    assert here.frame_rows(f"platform@{inside[0]}") @ qd == pytest.approx(twist, rel=1e-6)  # of the differences


INSIDE = {
    "dualemps": "16@0.37",
    "geared-beams": "upper@0.8",
    "rolled-beams": "left@0.3",
    "bending-satellite": "arm@0.6",
}
INSIDE |= {"gough-stewart-beams": "leg1.rod@0.5", PLATE: "platform@60"}


def bent(name: str) -> parflex.Configuration:
    here, rng = robot(name), np.random.default_rng(6)
    elastic = {here.tree.rate_names[k] for k in here.tree.elastic}
    bend = {name: 0.003 * rng.standard_normal() for name in here.independent if name in elastic}
    return parflex.configure(here, bend)


def force_at(name: str) -> np.ndarray:
    wrench = np.random.default_rng(7).standard_normal(6)
    return wrench * [1, 1, 0, 0, 0, 1] if robot(name).tree.planar else wrench


@pytest.mark.parametrize("name", INSIDE)
def test_a_wrench_at_a_place_accelerates_closed_robots_by_the_inverse_of_their_mass(name):
    here, wrench = bent(name), force_at(name)
    frame = INSIDE[name]
    loads = (None, {frame: wrench})
    free, pushed = (parflex.forward_dynamics(robot(name), here, wrench=load).accelerations for load in loads)
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
    acting = (np.zeros(6), wrench)
    free, pushed = (program.evaluate("numpy", **given, **{f"wrench_{frame}": w})["acceleration"] for w in acting)
    wanted = parflex.forward_dynamics(of, here, wrench={frame: wrench}).accelerations
    wanted = wanted - parflex.forward_dynamics(of, here).accelerations
    own = [of.tree.rate_names.index(name) for name in program.labels["qd"]]
    assert np.allclose(np.ravel(pushed - free), wanted[own], atol=1e-7 * np.abs(wanted).max())


def test_the_tangent_stiffness_under_a_force_at_a_place_is_the_slope_of_the_balance():
    clamped = {"axial": "linear", "frame.bar.joint": "fixed", "frame.bar.actuated": False}
    here, load, h = flat_bar("spatial", beam={"elements": 2}, settings=clamped), {"bar@0.8": [-20.0, 1.0, 2.0]}, 1e-3

    def tip(force):
        result = parflex.deflection(here, frames=["bar.tip"], wrench=load | {"bar.tip": force}, about="equilibrium")
        return result.frames["bar.tip"]

    result = parflex.cartesian_stiffness(here, frame="bar.tip", wrench=load, about="equilibrium").compliance
    slopes = np.array([(tip(unit) - tip(-unit)) / (2 * h) for unit in h * np.eye(3)]).T
    # the third derivative of deflections of a millimetre over a millinewton; rounding of the equilibrium over 2e-3 N
    assert np.abs(result[:3, :3] - slopes[:3]).max() < 1e-7 * np.abs(slopes[:3]).max()
    plain = parflex.cartesian_stiffness(here, frame="bar.tip", about="undeformed").compliance
    assert np.abs(result - plain).max() > 0.1 * np.abs(plain).max()  # the load is felt


@pytest.mark.parametrize(
    ("name", "frame", "said"),
    [
        ("dualemps", "13@1.2", "'1.2' is not a place of the beam '13'"),
        ("dualemps", "12@0.5", "'12' is not a beam or modal body"),
        ("dualemps", "13@", "there is no frame '13@'"),
        (PLATE, "platform@b77", "the body 'platform' has no node 'b77'"),
    ],
)
def test_places_outside_of_bodies_are_refused(name, frame, said):
    with pytest.raises(parflex.InputError, match=said) as caught:
        robot(name).tree.place(frame)
    assert caught.value.key == "frame" and caught.value.value == frame and caught.value.hint
    with pytest.raises(parflex.InputError, match=said) as caught:
        parflex.deflection(robot(name), wrench={frame: [0, 1, 0]})
    assert caught.value.key == "wrench"


MASS = '[[frame]]\nname = "mass"\nparent = "PLACE"\ninertia = { mass = 0.7, about_centre = [0, 0, 0.002] }\n'
CLOSED = '[[frame]]\nname = "foot"\njoint = "revolute"\nplace = { position = [0.5, -0.3, 0] }\nstart = 2.0\n'
CLOSED += "inertia = { mass = 0.2, centre = [0.1, 0, 0] }\n"
CLOSED += '[[point]]\nname = "end"\nframe = "foot"\nposition = [0.5, 0, 0]\n'
CLOSED += '[[closure]]\nbetween = ["end", "PLACE"]\njoint = "revolute"\n'
ROD = '[[element]]\nname = "rod"\nkind = "rod"\nbetween = ["roof", "PLACE"]\n'
SPRING = '[[element]]\nname = "spring"\nkind = "spring"\nstiffness = 400\nrest = 0.4\nbetween = ["roof", "PLACE"]\n'


def mounted(folder: Path, more: str, place: str, elements: int, head: str = "") -> parflex.Robot:
    text = robot_file("arm-under-roof").read_text().replace("gravity", f"{head}\ngravity", 1)
    file = folder / f"arm-{len(list(folder.iterdir()))}.toml"
    text = text.replace('section = "f"', f'section = "f", elements = {elements}')
    file.write_text(text + more.replace("PLACE", place))
    return parflex.load(file)


@pytest.mark.parametrize("more", [MASS, CLOSED, ROD], ids=["frame", "closure", "rod"])
def test_what_is_mounted_inside_a_beam_sits_on_a_node_of_equal_elements(tmp_path, more):
    inside = mounted(tmp_path, more, "arm@0.5", 1, 'end_effector = "arm@0.5"')
    plain = mounted(tmp_path, more, "arm.1", 2, 'end_effector = "arm.1"')
    assert inside.tree.n == plain.tree.n and "arm@0.5" in list(inside.tree.places)
    for call in (
        lambda robot: parflex.natural_frequencies(robot, modes=3).frequencies,
        lambda robot: parflex.cartesian_stiffness(robot).compliance,
        lambda robot: parflex.configure(robot, {"y": 0.1} if more == MASS else None).q,
    ):
        assert np.allclose(call(inside), call(plain), rtol=1e-12, atol=1e-12)


def test_points_inside_beams_move_with_them_and_carry_nothing(tmp_path):
    point = '[[point]]\nname = "sensor"\nframe = "arm@0.37"\nposition = [0, 0.05, 0]\nrotation = [0, 0, 0.4]\n'
    here = mounted(tmp_path, point, "", 1)
    q = here.tree.moved(here.home, np.array([0.1, 0.0, 0.02, 0.05]))
    (p, R), (p0, R0) = (parflex.frames(here, parflex.Configuration(here, q))[name] for name in ("sensor", "arm@0.37"))
    assert np.allclose(p, p0 + R0 @ [0, 0.05, 0], atol=1e-15)
    assert np.allclose((R0.T @ R)[:2, 0], [np.cos(0.4), np.sin(0.4)], atol=1e-15)
    for more in (CLOSED, ROD):
        with pytest.raises(parflex.RobotFileError, match="nothing can be mounted on 'sensor'"):
            mounted(tmp_path, point + more, "sensor", 1)


@pytest.mark.parametrize(
    ("more", "place", "key", "said"),
    [
        (MASS, "arm@1.5", "frame 'mass': parent", "there is no frame 'arm@1.5'"),
        (SPRING, "roof@0.5", "element 'spring': between", "there is no frame or point 'roof@0.5'"),
        (MASS, "arm@0.9997", "frame 'arm': beam.elements", "mounted on 'arm@0.9997', 0.0003 elements from a node"),
    ],
)
def test_files_with_places_outside_of_beams_are_refused(tmp_path, more, place, key, said):
    with pytest.raises(parflex.RobotFileError, match=said) as caught:
        mounted(tmp_path, more, place, 1)
    assert caught.value.key == key and caught.value.hint


HANGER = '[[point]]\nname = "ceiling"\nframe = "base"\nposition = [{x}, 0.3, 0]\n'
HANGER += '[[element]]\nname = "spring"\nkind = "spring"\nbetween = ["ceiling", "{end}"]\nstiffness = {k}\nrest = 0.3\n'


def sprung(folder: Path, s: float, k: float, elements: int, reduce: str = "", more: str = "", times=None, **words):
    spring = HANGER.format(x=s * L, end=words.pop("end", f"bar@{s}"), k=k)
    return bars.beam(folder, f"elements = {elements}{reduce}", spring + more, elements=times, **words)


def deflected(x: float, a: float) -> float:
    return cantilever(1.0, a, x, EI)[0]


def with_spring(x: float, load: float, a: float, k: float) -> float:
    return deflected(x, load) - deflected(x, a) * deflected(a, load) * k / (1 + k * deflected(a, a))


def random_springs(count: int) -> list[tuple[float, float, int]]:
    rng = np.random.default_rng(7)
    return [
        (float(f"{rng.uniform(0.02, 0.98):.4g}"), float(f"{EI / L**3 * 10 ** rng.uniform(-2, 7):.6g}"), n)
        for n in rng.integers(1, 9, count).tolist()
    ]


@pytest.mark.parametrize("reduce", ["", ", reduce = { error = 0.5, band = 20 }"], ids=["elements", "reduced"])
@pytest.mark.parametrize("motion", ["planar", "spatial"])
def test_a_spring_inside_a_beam_leaves_the_compliance_of_the_closed_form(tmp_path, reduce, motion, figure):
    """Nodes of cubic elements are exact under loads at nodes; 1e-9 is rounding beside springs of 1e7 times the beam."""
    worst = 0.0
    for s, k, elements in random_springs(6 if motion == "planar" else 2):
        robot = sprung(tmp_path, s, k, elements, reduce, motion=motion)
        for frame, x in (("bar.tip", L), (f"bar@{s}", s * L)):
            result = parflex.cartesian_stiffness(robot, frame=frame).compliance[1, 1]
            exact = with_spring(x, x, s * L, k)
            # the stiffness of the spring is in the matrix; what is left of the beam beside it loses as many digits
            worst = max(worst, abs(result - exact) / max(exact, 1e-6 * deflected(x, x)))
    figure("error of the compliance", worst)
    assert worst < 1e-8


BAR = Bar(bars.E, bars.E / 2.6, bars.DENSITY, bars.AREA, bars.IY, bars.IZ, 1.0, 1.0)


def exact_frequencies(s: float, k: float = 0.0, mass: float = 0.0, count: int = 1) -> np.ndarray:
    """Lowest frequencies of the cantilever with a spring or a mass at a place, by the differential equation."""

    def path(omega: float) -> np.ndarray:
        jump = np.eye(6)
        jump[4, 1], jump[3, 0] = (k - mass * omega**2) / EI, -mass * omega**2 / EI
        return exact_beams.transfer(BAR, (1 - s) * L, omega) @ jump @ exact_beams.transfer(BAR, s * L, omega)

    return exact_beams.frequencies(path, exact_beams.CLAMPED, exact_beams.FREE, count, 150.0 * count**2)


def exact_frequency(s: float, k: float = 0.0, mass: float = 0.0) -> float:
    return float(exact_frequencies(s, k, mass)[0])


@pytest.mark.parametrize("times", [None, 2])
def test_frequencies_and_their_estimates_are_those_of_the_differential_equation(tmp_path, times):
    """The estimate is of first order: within a third of what it estimates (1e-7 is rounding beside stiff springs)."""
    for s, k, elements in random_springs(5):
        modes = parflex.natural_frequencies(sprung(tmp_path, s, k, elements, times=times), modes=1)
        off = modes.frequencies[0] / exact_frequency(s, k) - 1
        assert off == pytest.approx(modes.excess[0], rel=0.35, abs=1e-7), (s, k, elements)


@pytest.mark.parametrize("reduce", ["", ", reduce = { error = 0.1, band = 60 }"], ids=["elements", "reduced"])
def test_estimates_know_nothing_of_how_short_the_element_beside_a_spring_is(tmp_path, reduce, figure):
    """Estimates of first order leave a tenth; float64 leaves 2e-7 of squared frequencies that reach 1e23."""
    rng, worst = np.random.default_rng(11), 0.0
    for node, elements in ((0, 20), (32, 32)):
        away, side = 10 ** rng.uniform(-2.95, -2), 1 if node == 0 else -1
        s = float(f"{(node + side * away) / elements:.9g}")
        k = float(f"{EI / L**3 * 10 ** rng.uniform(0, 3):.6g}")
        modes = parflex.natural_frequencies(sprung(tmp_path, s, k, elements, reduce), modes=3)
        off = modes.frequencies / exact_frequencies(s, k, count=3) - 1
        worst = max(worst, float(np.max(np.abs(off - modes.excess) / (np.abs(off) + 2e-6))))
        # estimates are within a tenth of errors below 1 %; full meshes round to 1e-7 beside an element of a thousandth
        assert off == pytest.approx(modes.excess, rel=0.1, abs=2e-7), (s, k, elements)
    figure("largest error of an estimate", worst)


def parted(folder: Path, s: float, k: float, before: int, behind: int):
    """The same cantilever of two beams of so many equal elements, which meet where the spring pulls."""
    part = '[[frame]]\nname = "{}"\nparent = "{}"\nbeam = {{ length = {!r}, material = "steel", section = "bar", '
    part += "elements = {} }}\n"
    text = part.format("root", "base", s * L, before) + part.format("rest", "root.tip", (1 - s) * L, behind)
    return bars.robot(folder, text + HANGER.format(x=s * L, end="root.tip", k=k))


def test_the_bound_of_a_reduction_holds_where_springs_act_inside(tmp_path):
    for s, k, elements in [(0.127, 1e3, 2), *((s, k, n + 4) for s, k, n in random_springs(4))]:
        robot = sprung(tmp_path, s, k, elements, ", reduce = { error = 0.5, band = 40 }")
        result = parflex.natural_frequencies(robot, modes=1).frequencies[0]
        parts = [link.body.reduced for link in robot.tree.links if link.body.reduced]
        full = parflex.natural_frequencies(parted(tmp_path, s, k, *(part.elements for part in parts)), modes=1)
        full, left_out = full.frequencies[0], min(part.left_out for part in parts)
        bound = full / np.sqrt(1 - (full / left_out) ** 2) - full  # (56) of theory
        assert -1e-8 * full < result - full < bound + 1e-8 * full, (s, k, elements)


def test_refined_frequencies_know_what_the_spring_needs(tmp_path):
    modes = parflex.natural_frequencies(sprung(tmp_path, 0.4, 1e6, 1), modes=1, converge=5e-2)
    assert modes.frequencies[0] / exact_frequency(0.4, 1e6) - 1 < 2 * modes.refinement.remaining < 1e-3


@pytest.mark.parametrize("reduce", ["", ", reduce = { error = 0.1, band = 50 }"], ids=["elements", "reduced"])
def test_a_mass_at_any_place_needs_no_simple_fraction(tmp_path, reduce):
    mass = MASS.replace("PLACE", "bar@0.37").replace("0.7, about_centre = [0, 0, 0.002]", "5.0")
    robot = bars.beam(tmp_path, f"elements = 7{reduce}", mass)
    result = parflex.natural_frequencies(robot, modes=1).frequencies[0]
    assert result == pytest.approx(exact_frequency(0.37, mass=5.0), rel=3e-5)


def test_springs_by_points_on_places_and_nodes_cut_reduced_beams(tmp_path):
    point = '[[point]]\nname = "{name}"\nframe = "{on}"\nposition = [0, {y}, 0]\n'
    hook = point.format(name="plate", on="bar@0.3", y=0.01) + point.format(name="hook", on="plate", y=-0.01)
    for end, s, more in (("hook", 0.3, hook), ("bar.2", 0.4, "")):
        robot = sprung(tmp_path, s, 1e7, 5, ", reduce = { error = 0.5, band = 20 }", more, end=end)
        assert [link.position[0] for link in robot.tree.links[1:]] == pytest.approx([s * L, (1 - s) * L], rel=1e-14)
        result = parflex.cartesian_stiffness(robot, frame="bar.tip").compliance[1, 1]
        assert result == pytest.approx(with_spring(L, L, s * L, 1e7), rel=1e-8)


def test_sections_and_places_of_unequal_elements(tmp_path):
    weight, s, k = bars.WEIGHT * bars.G, 0.37, 2e3
    robot = sprung(tmp_path, s, k, 2, gravity=(0, -bars.G, 0))
    where = [0.1, 0.3, 0.45, 0.5, 0.8]
    result = parflex.deflection(robot, frames=[f"bar@{s}", "bar.1"])
    force = -k * result.frames[f"bar@{s}"][1]
    a = s * L
    sag = weight * a**2 * (a**2 - 4 * a * L + 6 * L**2) / (24 * EI)
    assert force == pytest.approx(sag * k / (1 + k * deflected(a, a)), rel=2e-3)  # deflections are large, of 2 %
    for at in where:
        x = at * L
        exact = force * max(a - x, 0.0) - weight * (L - x) ** 2 / 2
        assert result.beams["bar"].at(at)["Mz"] == pytest.approx(exact, rel=2e-3)  # the same displacements
    chain = result.beams["bar"].chain
    assert [chain.share(*chain.located(at)) for at in where] == pytest.approx(where, abs=1e-15)
    assert robot.tree.place("bar@0.5").link == robot.tree.place("bar.1").link


@pytest.mark.parametrize("reduce", ["", ", reduce = { error = 0.5, band = 20 }"], ids=["elements", "reduced"])
@pytest.mark.parametrize("shear", [False, True], ids=["slender", "shear"])
def test_compliance_between_nodes_is_that_of_the_closed_form(tmp_path, reduce, shear):
    roll, rng = 0.6, np.random.default_rng(3)
    EI_z, GA = bars.E * bars.IY, 5 / 6 * bars.E / 2.6 * bars.AREA
    for elements in (1, 4):
        keys = f"elements = {elements}, roll = {roll}, shear = {str(shear).lower()}{reduce}"
        robot = bars.beam(tmp_path, keys, motion="spatial")
        for s in rng.uniform(0.05, 0.95, 3):
            x = float(f"{s:.3f}") * L
            C = parflex.cartesian_stiffness(robot, frame=f"bar@{s:.3f}").compliance
            sheared = x / GA if shear else 0.0
            across = np.diag([x**3 / (3 * EI) + sheared, x**3 / (3 * EI_z) + sheared])
            turn = np.array([[np.cos(roll), -np.sin(roll)], [np.sin(roll), np.cos(roll)]])
            assert C[1:3, 1:3] == pytest.approx(turn @ across @ turn.T, rel=1e-8)
            assert C[4:, 4:] == pytest.approx(turn @ np.diag([x / EI_z, x / EI]) @ turn.T, rel=1e-8)
            coupled = turn @ np.array([[0, x**2 / (2 * EI)], [-(x**2) / (2 * EI_z), 0]]) @ turn.T
            assert C[1:3, 4:] == pytest.approx(coupled, rel=1e-8)
            assert C[0, 0] == pytest.approx(x / bars.EA, rel=1e-8)


@pytest.mark.parametrize("reduce", ["", ", reduce = { error = 0.1, band = 60 }"], ids=["elements", "reduced"])
def test_a_force_between_nodes_deflects_its_element_as_a_beam(tmp_path, reduce):
    force, a = 0.5, 0.55
    robot = bars.beam(tmp_path, f"elements = 4{reduce}")
    assert not reduce or robot.tree.links[0].body.reduced.kept > 0
    push, where = {f"bar@{a}": [0.0, force, 0.0]}, (0.3, a, 0.7, 1.0)
    result = parflex.deflection(robot, frames=[f"bar@{s}" for s in where], about="undeformed", wrench=push)
    exact = np.array([force * deflected(s * L, a * L) for s in where])
    assert [result.frames[f"bar@{s}"][1] for s in where] == pytest.approx(exact, rel=1e-8)
    rest = parflex.deflection(robot, frames=[f"bar@{s}" for s in where], wrench=push)
    assert [rest.frames[f"bar@{s}"][1] for s in where] == pytest.approx(exact, rel=1e-4)  # large displacements
    asked = [f"bar.tangent_y@{s}" for s in where]
    run = parflex.simulate(robot, None, 0.002, wrench=push, outputs=[*asked, "bar@0.7.y"])
    assert [run[word][0] for word in asked] == pytest.approx(exact, rel=1e-4)
    assert any("inside of a reduced" in word for word in run.summary["warnings"]) == bool(reduce)


def test_an_offset_point_between_nodes_moves_as_what_carries_it(tmp_path):
    more = '[[point]]\nname = "hook"\nframe = "bar@0.3"\nposition = [0.02, 0.05, 0]\n'
    robots = (bars.beam(tmp_path, f"elements = {n}", more) for n in (1, 10))
    one, fine = (parflex.cartesian_stiffness(robot, frame="hook").compliance for robot in robots)
    assert one == pytest.approx(fine, rel=1e-9)


def test_a_force_on_an_offset_point_deflects_a_run_as_its_moment_does(tmp_path):
    more = '[[point]]\nname = "hook"\nframe = "bar@0.3"\nposition = [0, 0.05, 0]\n'
    robot, word = bars.beam(tmp_path, more=more), "bar.tangent_y@0.4"
    pushes = ({"hook": [1.0, 0, 0]}, {"bar@0.3": [1.0, 0, -0.05]})
    first, second = (parflex.simulate(robot, None, 0.002, wrench=push, outputs=[word])[word][0] for push in pushes)
    assert first == pytest.approx(second, rel=1e-3)  # the arm turns with the bar, by 1e-3
    assert first == pytest.approx(-0.05 * 0.3 * L * (0.8 * L - 0.3 * L) / (2 * EI), rel=1e-3)


def heavy_cantilever(x, q, stiff):
    return q * x**2 * (6 * LENGTH**2 - 4 * LENGTH * x + x**2) / (24 * stiff)


def outputs(*kinds):
    return [f"bar.{kind}@{s}" for kind in kinds for s in SHARES]


def test_a_shaken_beam_bends_between_its_nodes_by_its_inertia():
    stiff, mass = E * Z * Y**3 / 12, RHO * Y * Z
    frequency = 1.8751**2 / (2 * np.pi * LENGTH**2) * np.sqrt(stiff / mass) / 50
    motion = {"sines": {"car": [0.02]}, "frequency": frequency, "duration": 2 / frequency}
    run = parflex.simulate(
        load_robot("flat-bar-on-carriage"), motion, 2 / frequency, out_step=0.01 / frequency,
        outputs=["bar.chord_y@0.5", "car.ax"],
    )  # fmt: skip
    q = mass * run["car.ax"]  # the y axis of the bar points against that of the carriage
    exact = heavy_cantilever(0.5 * LENGTH, q, stiff) - 0.5 * heavy_cantilever(LENGTH, q, stiff)
    later = run.t > 1 / frequency
    # (1/50)^2 by its own vibration, 2 % of phase by the damping that the start needs
    assert np.abs(run["bar.chord_y@0.5"] - exact)[later].max() < 0.03 * np.abs(exact).max()


@pytest.mark.few("reduced")
@pytest.mark.parametrize("reduced", [False, True], ids=["elements", "reduced"])
@pytest.mark.parametrize("shear", [False, True], ids=["slender", "shear"])
def test_weight_deflects_every_place_of_a_beam_as_the_closed_form(reduced, shear):
    roll, g = 0.7, np.array([2.0, -3.0, 5.0])
    beam = {"roll": roll, "shear": shear, "elements": 4 if reduced else 1}
    if reduced:  # some modes are kept, and most are not
        beam["reduce"] = {"error": 100, "band": 1000}
    clamped = {"sections.flat.y": 0.06, "frame.bar.joint": "fixed", "frame.bar.actuated": False}
    robot = flat_bar("spatial", g.tolist(), beam, clamped)
    assert not reduced or robot.tree.links[0].body.reduced.kept > 0
    result = parflex.deflection(robot, frames=[f"bar@{s}" for s in SHARES], about="undeformed").frames
    c, s_ = np.cos(roll), np.sin(roll)
    turn = np.array([[1, 0, 0], [0, c, -s_], [0, s_, c]])
    A, stiff = 0.06 * Z, E * 0.06 * Z / 12 * np.array([0.06**2, Z**2])
    q, GA = RHO * A * (turn.T @ g), 5 / 6 * E / 2.6 * A
    for s in SHARES:
        x = s * LENGTH
        sheared = q * (LENGTH * x - x**2 / 2) / GA if shear else np.zeros(3)
        way = [q[0] * (LENGTH * x - x**2 / 2) / (E * A)]
        way += [heavy_cantilever(x, q[k], stiff[k - 1]) + sheared[k] for k in (1, 2)]
        slopes = q[1:] * x * (3 * LENGTH**2 - 3 * LENGTH * x + x**2) / (6 * stiff)
        exact = np.concatenate([turn @ way, turn @ [0.0, -slopes[1], slopes[0]]])
        assert result[f"bar@{s}"] == pytest.approx(exact, rel=1e-8, abs=1e-10 * np.abs(exact).max())


OUTPUTS = ("arm@0.3.sensor", "arm.deflection@0.3", "arm.deflection@0.5", "arm@0.3.x", "arm@0.3.y", "arm@0.3.z")
OUTPUTS += (*(f"arm@0.3.orientation_{part}" for part in "wxyz"), "arm@0.3.vx", "arm@0.3.local_ay")


@pytest.fixture(scope="module")
def arm():
    return load_robot("swinging-arm")


@pytest.fixture(scope="module")
def run(arm):
    return parflex.simulate(
        arm,
        "swing",
        0.1,
        step=1e-4,
        out_step=1e-4,
        frames=["arm", "arm.tip", "arm@0.5"],
        outputs=OUTPUTS,
        wrench={"arm@0.6": [0.1, -0.2, 0.3, 0.01, 0, 0.02]},
    )


def rotations(run, frame: str) -> np.ndarray:
    from scipy.spatial.transform import Rotation

    return Rotation.from_quat(np.stack([run[f"{frame}.orientation_{axis}"] for axis in "xyzw"], axis=1)).as_matrix()


def places(run, frame: str) -> np.ndarray:
    return np.stack([run[f"{frame}.{axis}"] for axis in "xyz"], axis=1)


@pytest.mark.verify
def test_a_moving_sensor_shows_second_differences_of_its_place_less_gravity(run):
    """Central differences of rows 0.1 ms apart: (2 pi f h)^2 / 12 of vibrations at up to a hundred Hz."""
    h = run.t[1] - run.t[0]
    p, R = places(run, "arm@0.3"), rotations(run, "arm@0.3")
    second = (p[2:] - 2 * p[1:-1] + p[:-2]) / h**2
    felt = np.einsum("tji,tj->ti", R[1:-1], second - np.array([1.0, -9.6, 0.5]))
    shown = np.stack([run[f"arm@0.3.sensor_a{axis}"] for axis in "xyz"], axis=1)[1:-1]
    assert np.abs(shown - felt)[50:].max() < 2e-4  # after 5 ms the stretch of the start, at some kHz, is damped
    spin = np.einsum("tji,tjk->tik", R[1:-1], R[2:] - R[:-2]) / (2 * h)
    turned = np.stack([run[f"arm@0.3.sensor_w{axis}"] for axis in "xyz"], axis=1)[1:-1]
    assert np.abs(turned - np.stack([spin[:, 2, 1], spin[:, 0, 2], spin[:, 1, 0]], axis=1)).max() < 1e-3
    assert np.abs((p[2:, 0] - p[:-2, 0]) / (2 * h) - run["arm@0.3.vx"][1:-1]).max() < 1e-4


def test_deflections_are_those_from_the_line_between_the_ends_and_from_the_root(run):
    from scipy.spatial.transform import Rotation

    root, tip, into = places(run, "arm"), places(run, "arm.tip"), rotations(run, "arm")
    for s, frame in ((0.5, "arm@0.5"),):  # a node: elsewhere elements bend by their own inertia, too
        away = np.einsum("tji,tj->ti", into, places(run, frame) - root)
        for k, axis in ((1, "y"), (2, "z")):
            assert np.allclose(run[f"arm.tangent_{axis}@{s}"], away[:, k], atol=1e-15)
        for row in (0, 400, 900):
            chord = into[row].T @ (tip[row] - root[row])
            turn, _ = Rotation.align_vectors([chord / np.linalg.norm(chord)], [[1.0, 0.0, 0.0]])
            along = turn.as_matrix().T @ away[row]
            found = [run[f"arm.chord_{axis}@{s}"][row] for axis in "yz"]
            assert np.allclose(found, along[1:], atol=1e-12)  # rounding of lengths below a metre
    assert np.abs(run["arm.chord_y@0.3"]).max() > 1e-5  # there is something to see
    assert not np.allclose(run["arm.chord_y@0.3"], run["arm.tangent_y@0.3"])


def test_a_run_with_a_wrench_inside_a_beam_balances_its_energy_and_knows_its_stress(run):
    exchanged = np.ptp(run["work.input"])
    assert run.summary["energy_balance_error"] < 1e-6 * exchanged  # of fourth-order steps of 0.1 ms
    assert run.summary["largest_stress"]["beam"] == "arm" and run.summary["largest_stress"]["value"] > 0


def test_ranges_of_places_are_taken_in_all_outputs_and_frames(arm):
    words = {"start": "rest", "step": 1e-3}
    asked = ("arm@0:1:3.vx", "arm.chord_y@0.25:0.75:3", "arm.Mz@0:1:2")
    run = parflex.simulate(arm, "swing", 0.005, outputs=asked, frames=["arm.tip", "arm@0.2:0.4:2"], **words)
    each = ("arm@0.vx", "arm@0.5.vx", "arm@1.vx", "arm.chord_y@0.25", "arm.chord_y@0.5", "arm.chord_y@0.75", "arm.Mz@1")
    one = parflex.simulate(arm, "swing", 0.005, outputs=each, frames=["arm@0.2", "arm@0.4"], **words)
    for column in (*each, "arm@0.2.x", "arm@0.4.y"):
        assert np.array_equal(run[column], one[column])
    for words in ({"outputs": ["arm@0:2:3.vx"]}, {"outputs": ["arm.chord_y@0:1:5000"]}, {"frames": ["arm@0.5:1"]}):
        with pytest.raises(parflex.InputError, match="is not a range of places"):
            parflex.simulate(arm, "swing", 0.005, **words)
    with pytest.raises(parflex.InputError, match=r"'1\.5' is not a place of the beam 'arm'"):
        parflex.simulate(arm, "swing", 0.1, outputs=["arm.chord_y@1.5"])


def test_sensors_of_planar_robots_show_gravity_across_the_plane_and_no_other_zeros():
    level = load_robot("pendulum-beam", settings={"gravity": [0, 0, -9.81]})
    run = parflex.simulate(level, None, 0.002, outputs=["arm@0.5.sensor_az"])
    assert run["arm@0.5.sensor_az"] == pytest.approx(np.full(3, 9.81))
    upright = load_robot("pendulum-beam")
    for word in ("sensor_az", "sensor_wx", "sensor_wy"):
        with pytest.raises(parflex.InputError, match=f"'{word}' of a planar robot is zero"):
            parflex.simulate(upright, None, 0.002, outputs=[f"arm.{word}"])
