"""Beams of many elements, reduced to their ends and a few modes: matrices, statics, the bound, programs."""

import json
import re
from functools import cache

import numpy as np
import pytest
from support import bars
from support.command_line import answered, refused
from support.flexible_states import bent_state
from support.oracles.beam_element import Bar
from support.oracles.beam_robots import tube
from support.oracles.chains import assembly, chain, clamped, moving_energy, shortening
from support.robots import load_robot, robot_file

import parflex
from parflex.bodies.beam import Material, Section
from parflex.bodies.reduced_beam import reduced_beam
from parflex.formulations.substructures import substructure_state
from parflex.robot.load import JOINT_TERMS, acting_robot
from parflex.robot.substructures import PREFERENCES, find_substructures
from parflex.simulation.mesh_convergence import content_warnings

LENGTH = 0.6
REDUCE = {"error": 0.1, "band": 100}
STEEL = Material(210e9, 210e9 / 2.6, 7850)
FLAT = Section(4e-4, 3.333e-9, 5.333e-8, 1.123e-8, 7e-8, 0.8, 0.7)  # its polar moment is none of a flat section
PIPE_BAR = tube(0.05, 0.008)
PIPE = Section(PIPE_BAR.A, PIPE_BAR.Iy, PIPE_BAR.Iz, PIPE_BAR.J, PIPE_BAR.Ip, 0.5, 0.5)


def flat(**more: object) -> Bar:
    section = FLAT
    values = (section.A, section.Iy, section.Iz, section.J, section.Ip)
    return Bar(STEEL.E, STEEL.G, STEEL.density, *values, **more)  # type: ignore[arg-type]


SHEARED = {"shear_y": FLAT.ky * FLAT.A, "shear_z": FLAT.kz * FLAT.A}
CASES = {
    "tube": (PIPE, {"rotary_inertia": True}, PIPE_BAR),
    "flat": (FLAT, {}, flat()),
    "thick": (FLAT, {"rotary_inertia": True, "shear": True}, flat(rotary=True, **SHEARED)),
    "rolled": (FLAT, {"roll": 0.4, "shear": True}, flat(**SHEARED)),
}


def frequency_bound(frequency: float, left_out: float) -> float:
    """By how much a frequency is too high at most where modes from `left_out` on are missing, (56) of theory."""
    return frequency / np.sqrt(1.0 - (frequency / left_out) ** 2) - frequency


def body_of(case: str, elements: int, error: float, band: float):
    section, choices, _ = CASES[case]
    return reduced_beam(LENGTH, STEEL, section, elements, error, band, **choices)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("elements", [2, 5, 16])
def test_a_reduced_beam_vibrates_as_the_matrices_of_craig_and_bampton(case, elements, figure):
    """Clamped at its root, and held at both ends, against a chain of elements that shares no code."""
    body = body_of(case, elements, 1.0, 150.0)
    own = chain(LENGTH, CASES[case][2], elements)
    held = np.sqrt(own.held()[0]) / (2 * np.pi)
    kept = body.held
    cut = held[kept] if kept < len(held) else np.inf
    assert body.reduced.left_out == pytest.approx(cut, rel=1e-9)
    # modes are as few as the error in the band allows
    assert body.reduced.bound == pytest.approx(frequency_bound(150.0, cut), rel=1e-8, abs=1e-12)
    assert body.reduced.bound <= 1.0 + 1e-12
    assert kept == 0 or held[kept - 1] <= 150.0 or frequency_bound(150.0, held[kept - 1]) > 1.0
    M = body.inertia_matrix(np.zeros(body.size))
    inner = np.sqrt(np.diag(body.K)[6:] / np.diag(M)[12:]) / (2 * np.pi)
    result = clamped(np.pad(body.K, ((6, 0), (6, 0))), M)
    wanted = clamped(*own.reduced(kept))
    worst = max(np.abs(inner / held[:kept] - 1).max(initial=0), np.abs(result / wanted - 1).max())
    figure(f"reduced beam, {case}, {elements} elements: frequencies", worst, 1e-9)
    assert worst < 1e-9  # the matrices have condition numbers of 1e6
    assert np.linalg.eigvalsh(M).min() > 0


@pytest.mark.parametrize("case", ["flat", "tube"])
def test_energies_of_a_bent_reduced_beam_are_those_of_its_points(case, figure):
    """Far from small deflections, where every integral counts; sections are slices without rotary inertia."""
    section, _, bar = CASES[case]
    body = reduced_beam(LENGTH, STEEL, section, 8, 0.1, 150.0)
    rng = np.random.default_rng(5)
    e, ed, v, w = rng.uniform(-0.3, 0.3, body.size), rng.uniform(-2, 2, body.size), *rng.uniform(-3, 3, (2, 3))
    shapes, places = body.inner.shapes, np.linspace(0, LENGTH, 9)
    wanted = moving_energy(bar, places, shapes @ e, shapes @ ed, v, w)
    worst = abs(body.kinetic_energy(v, w, e, ed) / wanted - 1)
    figure(f"kinetic energy of a reduced beam by quadrature, {case}", worst, 1e-11)
    assert body.held >= 3 and worst < 1e-11
    strain = body.strains[0]
    assert e @ strain.H @ e == pytest.approx(shortening(places, shapes @ e), rel=1e-7)  # by differences
    assert strain.k == pytest.approx(STEEL.E * section.A / LENGTH)


def test_a_reduced_beam_is_damped_as_its_elements():
    damped = reduced_beam(LENGTH, STEEL, FLAT, 4, 1.0, 50.0, damping=(2.0, 1e-4))
    K, inner = damped.K, slice(6, None)
    stiff = reduced_beam(LENGTH, STEEL, FLAT, 4, 1.0, 50.0, damping=(0.0, 1e-4))
    assert np.allclose(stiff.D, 1e-4 * K, rtol=1e-14)
    assert stiff.strains[0].c == 1e-4 * stiff.strains[0].k
    assert np.linalg.eigvalsh(damped.D - stiff.D)[0] > 0 and damped.D[inner, inner].any()


def test_the_bound_holds_for_random_assemblies(figure):
    """Beams whose ends sit on random springs, masses and ties; all modes below those left out."""
    rng = np.random.default_rng(11)
    sharpest = 0.0
    for _ in range(40):
        chains = [chain(length, tube(0.05, 0.008), 6) for length in rng.uniform(0.3, 1.0, rng.integers(1, 3))]
        full, reduced, mu = assembly(rng, chains, [int(k) for k in rng.integers(0, 9, len(chains))])
        for exact, result in zip(full, reduced, strict=False):
            if exact < 0.9 * mu:
                f, cut = np.sqrt(max(exact, 0.0)), np.sqrt(mu)
                bound, error = frequency_bound(f, cut), np.sqrt(result) - f
                assert -1e-6 * f < error <= bound + 1e-6 * f  # seven digits of an eigenvalue
                sharpest = max(sharpest, error / bound) if error > 1e-4 * f else sharpest
    figure("largest error of random assemblies, share of the bound", sharpest, 1.0)
    assert 0.3 < sharpest <= 1.0  # and the bound is not idle


def reduction(name: str, error: float, band: float) -> dict:
    plain = parflex.load(name)
    legs = plain.description.leg_of
    frames = [frame.name for frame in plain.description.frame if frame.beam is not None]
    keys = {f"legs.frame.{one.removeprefix(legs[one] + '.')}" if one in legs else f"frame.{one}" for one in frames}
    return {f"{key}.beam.reduce": {"error": error, "band": band} for key in sorted(keys)}


def reduced_robot(name: str, error: float, band: float, elements: int) -> parflex.Robot:
    return parflex.load(name, elements=elements, settings=reduction(name, error, band))


WAYS = {
    "navaro": (["x", "y", "z", "rx", "ry", "rz"], np.array([0, 0, 0, 0, 0, -1.0]), np.array([0.1, 0.1, 0, 0, 0, 0.3])),
    "gough-stewart-beams": (
        ["x", "y", "z", "rx", "ry", "rz"], np.array([0.25, 0.433, 1, 0, 0, 0]), np.array([0.2, 0.2, 0.1, 0.3, 0.3, 0.3])
    ),
}  # fmt: skip
MODES = 18  # more than lie in the band
ROUNDED = 1e-6  # Hz: rounding of modes up to 200 Hz; that of a mode near a singular pose has a bound of 5e-9 Hz


def parts_of(robot: parflex.Robot) -> dict:
    return {link.name: link.body.reduced for link in robot.tree.links if link.body.reduced}


def audit(name: str, elements: int, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return errors of modes in the band and their bounds (poses x modes, NaN beyond), one by whole matrices."""
    reduced = reduced_robot(name, 0.1, 200.0, elements)
    full = parflex.load(name, elements=elements)
    keys, middle, way = WAYS[name]
    poses = middle + way * np.random.default_rng(seed).uniform(-1, 1, (count + count // 20, 6))  # some out of reach
    exact, result = (parflex.many_frequencies(one, keys, poses, modes=MODES, threads=1) for one in (full, reduced))
    reached = np.flatnonzero((exact.status == 0) & (result.status == 0))[:count]
    assert len(reached) == count and exact.frequencies[reached, -1].min() > 200
    one = parflex.natural_frequencies(full, dict(zip(keys, poses[reached[0]], strict=True)), modes=MODES)
    assert np.allclose(one.frequencies, exact.frequencies[reached[0]], rtol=1e-7)  # half the digits of whole matrices
    cut = min(part.left_out for part in parts_of(reduced).values())
    inside = exact.frequencies[reached] <= 200.0
    errors = np.where(inside, (result.frequencies - exact.frequencies)[reached], np.nan)
    bounds = [[frequency_bound(f, cut) if f < cut else np.nan for f in row] for row in exact.frequencies[reached]]
    return errors, np.where(inside, bounds, np.nan)


def judge(name: str, errors: np.ndarray, bounds: np.ndarray, figure) -> None:
    inside = np.isfinite(errors)
    assert inside[:, 0].all()
    edge = np.array([(bounds[i, k] / errors[i, k]) for i, k in enumerate(inside.sum(axis=1) - 1)])
    largest = float(np.nanmax((errors - ROUNDED) / bounds))
    figure(f"{name}: largest error of a frequency, share of its bound", largest, 1.0)
    figure(f"{name}: bound at the band's edge over the error, median", float(np.median(edge)), 200.0)
    assert np.all(errors[inside] <= bounds[inside] + ROUNDED)
    assert np.all(errors[inside] > -ROUNDED)  # reduction is never softer
    assert np.median(edge) <= 200


@pytest.mark.few("4-3-navaro")
@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize(("elements", "poses"), [(4, 3), (16, 200)])
def test_frequencies_of_reduced_robots_are_within_the_bound_at_random_poses(elements, poses, name, figure):
    judge(name, *audit(name, elements, poses, 1), figure)


def loaded_arm(reduce: dict | None = None, **settings) -> parflex.Robot:
    return load_robot("loaded-arm", settings=settings | ({"frame.arm.beam.reduce": reduce} if reduce else {}))


@pytest.fixture
def cantilevers() -> tuple[parflex.Robot, parflex.Robot]:
    """Reduced, and with all its elements."""
    return loaded_arm(REDUCE), loaded_arm()


def test_loads_at_its_ends_and_its_weight_deflect_a_reduced_beam_as_all_its_elements(cantilevers, figure):
    reduced, full = cantilevers
    load = {"wrench": {"arm.tip": [3.0, -5.0, 4.0, 0.5, -0.2, 0.7]}, "without": ["gravity"]}
    for what, words in (("loads at its end", load), ("its own weight", {})):
        ends = [parflex.deflection(one, about="undeformed", **words).frames["arm.tip"] for one in (reduced, full)]
        worst = np.abs(ends[0] - ends[1]).max() / np.abs(ends[1]).max()
        figure(f"static deflection of a reduced beam under {what}", worst, 1e-10)
        assert worst < 1e-10  # their work is that of the static shapes, so that no mode is needed: rounding
    inside = [parflex.equilibrium(one, "home").configuration for one in (reduced, full)]
    number = reduced.tree.number("arm")
    link = reduced.tree.links[number]
    middle = link.body.inner.shapes[4, :3] @ inside[0].q[link.e]
    at = inside[1].at
    R, root = at.of(full.tree.places["arm"])
    wanted = R.T @ (at.of(full.tree.places["arm.4"])[1] - root) - [0.4, 0, 0]
    share = np.abs(middle - wanted)[1:].max() / np.abs(wanted).max()
    figure("sag of the middle of a reduced beam under its own weight", share, 1e-4)
    assert share < 1e-4  # modes left out, and terms of second order


def test_a_reduced_beam_under_tension_is_stiffened_as_its_elements(cantilevers):
    """About the equilibrium under a pull along it: frequencies with the projected shortening."""
    reduced, full = cantilevers
    for pull in (0.0, 2000.0, -1000.0):
        load = {"arm.tip": [pull, 0, 0]}
        words = {"modes": 3, "about": "equilibrium", "wrench": load, "without": ["gravity"]}
        result, wanted = (parflex.natural_frequencies(one, "home", **words) for one in (reduced, full))
        assert result.frequencies == pytest.approx(wanted.frequencies, rel=2e-4)
    words = {"about": "equilibrium", "wrench": load, "without": ["gravity", "axial"]}
    linear = parflex.natural_frequencies(reduced, "home", modes=1, **words)
    assert abs(linear.frequencies[0] / result.frequencies[0] - 1) > 0.01  # and that is felt


@cache
def bent(name: str, error: float, band: float, elements: int) -> tuple[parflex.Robot, dict]:
    robot = reduced_robot(name, error, band, elements)
    return robot, bent_state(robot, np.random.default_rng(3))


@pytest.mark.few("root-dualemps", "root-rolled")
@pytest.mark.parametrize("name", ["dualemps", "rolled-beams", "navaro"])
@pytest.mark.parametrize("preferred", PREFERENCES)
def test_pieces_of_a_reduced_robot_move_as_the_tree_does(name, preferred, figure):
    """Modes with both ends held are unknowns beside the motion of the pieces; loops are closed by ends of beams."""
    path = str(robot_file(name)) if name == "rolled-beams" else name
    robot, state = bent(path, 0.3, 200.0 if name == "navaro" else 60.0, 4)
    assert any(link.body.held for link in robot.tree.links)
    form = find_substructures(acting_robot(robot, JOINT_TERMS), preferred)
    independent = form.partition.independent
    moving = substructure_state(form, state["q"], state["rates"][independent])
    wanted = state["accelerations"][independent]
    result = moving.pushed(state["effort"])[0]
    worst = np.abs(result - wanted).max() / state["sizes"]["qdd"]
    motors = state["accelerations"][list(robot.actuated)]
    efforts, _ = moving.efforts_for(motors)
    worst = max(worst, np.abs(efforts - state["effort"]).max() / state["sizes"]["effort"])
    figure.below(f"pieces of the reduced {name}, {preferred}", worst, 1e-10)  # as of beams that are rolled or sheared
    assert form.size == len(independent)


def test_designs_of_a_reduced_robot_are_made_one_by_one_where_its_beams_change():
    """Another length may keep other modes; what leaves the beams as they are is solved together."""
    settings = reduction("3rrr-flexible", 1.0, 200.0)
    robot = parflex.load("3rrr-flexible", elements=4, settings=settings)
    for key, values, alone in (("constants.distal", [0.4, 0.42], 2), ("platform.inertia.mass", [1.0, 2.0], 0)):
        result = parflex.many_frequencies(robot, ["x", "y", "theta"], np.zeros((2, 3)), modes=2, designs={key: values})
        assert result.fallbacks == alone
        for row, value in zip(result.frequencies, values, strict=True):
            own = parflex.load(robot.name, elements=4, settings=settings | {key: value})
            wanted = parflex.natural_frequencies(own, {"x": 0.0, "y": 0.0, "theta": 0.0}, modes=2).frequencies
            assert row == pytest.approx(wanted, rel=1e-7)


def test_sections_at_rest_are_those_of_all_elements(cantilevers):
    load = {"arm.tip": [3.0, -5.0, 4.0, 0.5, -0.2, 0.7]}
    result, wanted = (parflex.deflection(one, "home", wrench=load, about="equilibrium") for one in cantilevers)
    reduced, full = (one.beams["arm"].table(np.linspace(0, 1, 9).tolist()) for one in (result, wanted))
    for word in ("N", "Vy", "Vz", "T", "My", "Mz", "stress"):
        largest = np.abs(full[word]).max()
        assert np.abs(np.array(reduced[word]) - full[word]).max() < 1e-3 * largest + 1e-3  # second order of deflections
    assert [row["nodes"] for row in result.sections] == [["arm", "arm.tip"]]


ARM = "frame.13.beam.reduce"


def test_info_reports_the_reduction(capsys):
    answer = answered(capsys, "info", "dualemps", "--elements", "4", "--set", f"{ARM}={{error=0.1,band=60}}")
    (one,) = answer["reduction"]
    assert (one["body"], one["elements"], one["of"]) == ("13", 4, 9)
    assert 0 < one["kept"] < 9 and 0 < one["bound_hz"] <= 0.1
    assert answered(capsys, "info", "dualemps")["reduction"] == []
    answer = answered(capsys, "explain", "dualemps", "--set", f"{ARM}={{error=1,band=60}}")
    assert "to its ends and" in json.dumps(answer)


@pytest.mark.parametrize(
    ("given", "key", "said"),
    [
        ("{error=0.1,band=200}", "band", "begin at 104.2 Hz; use 3 elements or more, or a lower band"),
        ("{error=-1,band=20}", "error", "error = -1.0 is not positive; give a positive number"),
        ("{error=0.1,band=0}", "band", "band = 0.0 is not positive"),
        ("{error=1e-9,band=20}", "error", "below the rounding of frequencies; give 2e-07 Hz or more"),
        ("{error=0.1}", "band", "key 'band' is missing"),
        ("{error=0.1,band=20,modes=3}", "modes", "unknown key 'modes'"),
    ],
)
def test_impossible_reductions_are_refused(capsys, given, key, said):
    error = refused(capsys, "info", "dualemps", "--set", f"{ARM}={given}")
    assert error["key"] == f"frame '13': beam.reduce.{key}"
    assert said in f"{error['message']}; {error['hint']}"


def test_nodes_of_a_reduced_beam_keep_their_names_and_ties_cut_it():
    """A node on which nothing is mounted is a place inside the body, as BEAM@s is; one with a tie ends a body."""
    robot = loaded_arm(REDUCE)
    assert list(parts_of(robot)) == ["arm"]
    state = robot.home + np.random.default_rng(4).uniform(-0.01, 0.01, robot.tree.nq)
    frames = parflex.frames(robot, parflex.Configuration(robot, state))
    for name, same in (("arm.3", "arm@0.375"), ("arm.6", "arm@0.75")):
        assert all(map(np.array_equal, frames[name], frames[same]))
    link, (p, R) = robot.tree.links[robot.tree.number("arm")], frames["arm"]
    moved = np.array([0.3, 0, 0]) + (link.body.inner.shapes @ state[link.e])[3, :3]
    assert np.allclose(frames["arm.3"][0], p + R @ moved, atol=1e-15)
    for settings, elements in (({"end_effector": "arm.3"}, [3, 5]), ({"frame.load.parent": "arm@0.25"}, [2, 6])):
        assert [part.elements for part in parts_of(loaded_arm(REDUCE, **settings)).values()] == elements
    with pytest.raises(parflex.RobotFileError, match="reaches the frequencies of the elements"):
        loaded_arm({"error": 0.1, "band": 1e5})


ROOTS = (1.8751040687119611, 4.694091132974175, 7.854757438237613, 10.995540734875467, 14.13716839104647)
TIP = '[[frame]]\nname = "tip"\nparent = "bar.tip"\ninertia = { mass = 1e-9 }\n'


def cantilever(folder, error=5, **words):
    """The bar of eight elements, reduced in a band of 50 Hz, with next to nothing at its tip."""
    return bars.beam(folder, f"elements = 8, reduce = {{ error = {error}, band = 50 }}", TIP, **words)


@pytest.mark.parametrize("motion", ["planar", "spatial"])
def test_the_excess_of_a_reduced_beam_is_how_much_too_high_it_is(tmp_path, motion, figure):
    """Beside the cantilever itself. An estimate of first order: within a tenth below 5 %, and no less beyond."""
    robot = cantilever(tmp_path, motion=motion)
    modes = parflex.natural_frequencies(robot, modes=4 if motion == "planar" else 6)
    across = [bars.bending(root) for root in ROOTS]
    stiff = np.sqrt(bars.IY / bars.IZ)  # along the other side of the section
    exact = np.sort([*across, *(f * stiff for f in across * (motion == "spatial"))])[: len(modes.frequencies)]
    off = modes.frequencies / exact - 1
    small = off < 0.05
    figure("largest error that is estimated", float(off[small].max()))
    assert small.sum() >= 2 and off[small] == pytest.approx(modes.excess[small], rel=0.1)
    assert (~small).any() and (modes.excess[~small] > 0.9 * off[~small]).all()


def test_beyond_the_band_frequencies_have_their_bound_and_a_warning(tmp_path):
    robot, full = cantilever(tmp_path), bars.cantilever(tmp_path, elements=8)
    result, whole = (parflex.natural_frequencies(one, modes=4) for one in (robot, full))
    left_out = robot.tree.links[0].body.reduced.left_out
    assert (whole.frequencies >= result.frequencies / np.sqrt(1 + (result.frequencies / left_out) ** 2)).all()
    (caught,) = [word for word in result.model.warnings if "beyond the band of 50 Hz" in word]
    most = 100 * (np.sqrt(1 + (result.frequencies[-1] / left_out) ** 2) - 1)
    assert caught.startswith("modes 2 to 4") and f"up to {most:.3g} % higher" in caught and "'bar'" in caught
    assert not parflex.natural_frequencies(robot, modes=1).model.warnings
    assert float(re.search(r"a band of (\d+) Hz", caught)[1]) >= result.frequencies[-1]


def test_maps_and_sensitivities_tell_of_frequencies_beyond_the_band(tmp_path):
    robot = cantilever(tmp_path, joint=bars.HINGE)
    poses = np.array([[0.1], [0.3]])
    for call in (
        lambda: parflex.many_frequencies(robot, ["bar"], poses, modes=2),
        lambda: parflex.many_responses(robot, ["bar"], poses, ["frequency:2", "stiffness:y"]),
        lambda: parflex.frequency_map(robot, [("bar", 0.1, 0.3, 2)], modes=2),
        lambda: parflex.sensitivities(robot, "frequency:2", ["frame.tip.inertia.mass"]),
    ):
        said = "(frequencies of the map|frequency:2) .* beyond the band of 50 Hz"
        with pytest.warns(parflex.ParflexWarning, match=said):
            call()


def test_a_run_tells_what_its_reduction_does_not_follow(tmp_path):
    """A run in one mode: the third is near the lowest that is left out, the first far below."""
    robot = cantilever(tmp_path, error=20)
    modes = parflex.natural_frequencies(robot, modes=3)

    def caught(mode):
        omega, shape = 2 * np.pi * modes.frequencies[mode], 1e-4 * modes.shapes[:, mode]
        t = np.linspace(0, 4 * np.pi / omega, 81)
        q, qd = robot.home + np.outer(np.cos(omega * t), shape), -omega * np.outer(np.sin(omega * t), shape)
        columns = {f"q.{name}": q[:, k] for k, name in enumerate(robot.tree.position_names)}
        columns |= {f"qd.{name}": qd[:, k] for k, name in enumerate(robot.tree.position_names)}
        return content_warnings(robot, columns)

    (fast,) = caught(2)
    assert "its reduction leaves out" in fast.text and "give 'reduce' a higher band" in fast.text
    assert not caught(0)
