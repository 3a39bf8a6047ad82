"""What acts on a beam between its ends beside its own inertia, at `BEAM@s`: springs, masses, forces; closed forms.

A place where something acts is a node, whatever the number of elements, in reduced beams too.
"""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from support import bars
from support.oracles import exact_beams
from support.oracles.beam_element import Bar

import parflex
from parflex.bodies.reduced_link import frequency_bound
from parflex.tree.beam_mesh import beam_mesh

L, EI = bars.LENGTH, bars.EI
SPRING = """
[[point]]
name = "ceiling"
frame = "base"
position = [{x}, 0.3, 0]
[[element]]
name = "spring"
kind = "spring"
between = ["ceiling", "{end}"]
stiffness = {k}
rest = 0.3
"""
MASS = '[[frame]]\nname = "mass"\nparent = "bar@{s}"\ninertia = {{ mass = {m} }}\n'


def sprung(folder: Path, s: float, k: float, elements: int, reduce: str = "", more: str = "", times=None, **words):
    """The cantilever with a spring without tension across it, at a share of its length."""
    own = f'"bar", elements = {elements}{f", reduce = {reduce}" if reduce else ""} }}'
    text = bars.CANTILEVER.replace('"bar" }', own) + SPRING.format(x=s * L, end=words.pop("end", f"bar@{s}"), k=k)
    return bars.robot(folder, text + more, elements=times, **words)


def bent(x: float, a: float) -> float:
    """How far a unit force at `a` deflects a cantilever at `x`."""
    x, a = min(x, a), max(x, a)
    return x**2 * (3 * a - x) / (6 * EI)


def with_spring(x: float, load: float, a: float, k: float) -> float:
    """The same of a cantilever that a spring at `a` holds."""
    return bent(x, load) - bent(x, a) * bent(a, load) * k / (1 + k * bent(a, a))


def places(count: int) -> list[tuple[float, float, int]]:
    """Random places, stiffnesses of all scales beside that of the beam, and numbers of elements."""
    rng = np.random.default_rng(7)
    return [
        (float(f"{rng.uniform(0.02, 0.98):.4g}"), float(f"{EI / L**3 * 10 ** rng.uniform(-2, 7):.6g}"), n)
        for n in rng.integers(1, 9, count).tolist()
    ]


@pytest.mark.parametrize("reduce", ["", "{ error = 0.5, band = 20 }"], ids=["elements", "reduced"])
@pytest.mark.parametrize("motion", ["planar", "spatial"])
def test_a_spring_inside_a_beam_leaves_the_compliance_of_the_closed_form(tmp_path, reduce, motion, figure):
    """Nodes of cubic elements are exact under loads at nodes; 1e-9 is rounding beside springs of 1e7 times the beam."""
    worst = 0.0
    for s, k, elements in places(6 if motion == "planar" else 2):
        robot = sprung(tmp_path, s, k, elements, reduce, motion=motion)
        for frame, x in (("bar.tip", L), (f"bar@{s}", s * L)):
            found = parflex.cartesian_stiffness(robot, frame=frame).compliance[1, 1]
            exact = with_spring(x, x, s * L, k)
            # the stiffness of the spring is in the matrix; what is left of the beam beside it loses as many digits
            worst = max(worst, abs(found - exact) / max(exact, 1e-6 * bent(x, x)))
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
    for s, k, elements in places(5):
        modes = parflex.natural_frequencies(sprung(tmp_path, s, k, elements, times=times), modes=1)
        off = modes.frequencies[0] / exact_frequency(s, k) - 1
        assert off == pytest.approx(modes.excess[0], rel=0.35, abs=1e-7), (s, k, elements)


@pytest.mark.parametrize("reduce", ["", "{ error = 0.1, band = 60 }"], ids=["elements", "reduced"])
def test_estimates_know_nothing_of_how_short_the_element_beside_a_spring_is(tmp_path, reduce, figure):
    """Springs a thousandth to a hundredth of an element from an end; squared frequencies of what is beside reach 1e23.

    A tenth is what estimates of first order and halves of elements leave; 2e-7 is what float64 leaves of the squares.
    """
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
    return bars.robot(folder, text + SPRING.format(x=s * L, end="root.tip", k=k))


def test_the_bound_of_a_reduction_holds_where_springs_act_inside(tmp_path):
    """Against as many elements of equal length from place to place; unequal ones may be stiffer than the reduction."""
    for s, k, elements in [(0.127, 1e3, 2), *((s, k, n + 4) for s, k, n in places(4))]:
        robot = sprung(tmp_path, s, k, elements, "{ error = 0.5, band = 40 }")
        found = parflex.natural_frequencies(robot, modes=1).frequencies[0]
        parts = [link.body.reduced for link in robot.tree.links if link.body.reduced]
        full = parflex.natural_frequencies(parted(tmp_path, s, k, *(part.elements for part in parts)), modes=1)
        full, left_out = full.frequencies[0], min(part.left_out for part in parts)
        assert -1e-8 * full < found - full < frequency_bound(full, left_out) + 1e-8 * full, (s, k, elements)


def test_refined_frequencies_know_what_the_spring_needs(tmp_path):
    modes = parflex.natural_frequencies(sprung(tmp_path, 0.4, 1e6, 1), modes=1, converge=5e-2)
    assert modes.frequencies[0] / exact_frequency(0.4, 1e6) - 1 < 2 * modes.refinement.remaining < 1e-3


@pytest.mark.parametrize("reduce", ["", "{ error = 0.1, band = 50 }"], ids=["elements", "reduced"])
def test_a_mass_at_any_place_needs_no_simple_fraction(tmp_path, reduce):
    """0.37 of 7 elements would take 700 equal ones; 32 is the limit, and a node more does."""
    own = f'"bar", elements = 7{f", reduce = {reduce}" if reduce else ""} }}'
    text = bars.CANTILEVER.replace('"bar" }', own) + MASS.format(s=0.37, m=5.0)
    robot = bars.robot(tmp_path, text)
    found = parflex.natural_frequencies(robot, modes=1).frequencies[0]
    assert found == pytest.approx(exact_frequency(0.37, mass=5.0), rel=3e-5)


def test_springs_by_points_on_places_and_nodes_cut_reduced_beams(tmp_path):
    """A point on a point on a place, and one on a node of the file: both are ends of bodies."""
    point = '[[point]]\nname = "{name}"\nframe = "{on}"\nposition = [0, {y}, 0]\n'
    hook = point.format(name="plate", on="bar@0.3", y=0.01) + point.format(name="hook", on="plate", y=-0.01)
    for end, s, more in (("hook", 0.3, hook), ("bar.2", 0.4, "")):
        robot = sprung(tmp_path, s, 1e7, 5, "{ error = 0.5, band = 20 }", more, end=end)
        assert [link.position[0] for link in robot.tree.links[1:]] == pytest.approx([s * L, (1 - s) * L], rel=1e-14)
        found = parflex.cartesian_stiffness(robot, frame="bar.tip").compliance[1, 1]
        assert found == pytest.approx(with_spring(L, L, s * L, 1e7), rel=1e-8)


def test_sections_and_places_of_unequal_elements(tmp_path):
    """Behind the spring the weight alone bends the beam; before it its force does, too."""
    weight, s, k = bars.WEIGHT * bars.G, 0.37, 2e3
    robot = sprung(tmp_path, s, k, 2, gravity=(0, -bars.G, 0))
    where = [0.1, 0.3, 0.45, 0.5, 0.8]
    found = parflex.deflection(robot, frames=[f"bar@{s}", "bar.1"])
    force = -k * found.frames[f"bar@{s}"][1]
    a = s * L
    sag = weight * a**2 * (a**2 - 4 * a * L + 6 * L**2) / (24 * EI)
    assert force == pytest.approx(sag * k / (1 + k * bent(a, a)), rel=2e-3)  # large displacements, deflections of 2 %
    for at in where:
        x = at * L
        exact = force * max(a - x, 0.0) - weight * (L - x) ** 2 / 2
        assert found.beams["bar"].at(at)["Mz"] == pytest.approx(exact, rel=2e-3)  # the same displacements
    chain = found.beams["bar"].chain
    assert [chain.share(*chain.located(at)) for at in where] == pytest.approx(where, abs=1e-15)
    assert robot.tree.place("bar@0.5").link == robot.tree.place("bar.1").link


def test_a_node_is_added_only_where_none_is_and_elements_stay_long_enough():
    mesh = beam_mesh("arm", 4, 2, [], ["0.25", "0.37", "0.5001"])
    expected = [0, 0.125, 0.25, 0.31, 0.37, 0.435, 0.5, 0.625, 0.75, 0.875, 1]
    assert [float(s) for s in mesh.shares] == pytest.approx(expected, abs=1e-15)
    assert mesh.names[2:6] == ("arm.1", "arm.1.1", "arm.1.2", "arm.1.3") and mesh.names[6] == "arm.2"
    assert mesh.tied == {"0.25": 2, "0.37": 4} and mesh.acting == {2, 4, 6}  # 4e-4 elements from a node is that node
    assert mesh.counts()[:4] == [8, 8, pytest.approx(1 / 0.06), pytest.approx(1 / 0.06)]
    assert beam_mesh("arm", 1, 1, ["0.25"], []).shares == tuple(Fraction(k, 4) for k in range(5))
    assert len(beam_mesh("arm", 8, 1, ["0.4"], []).shares) == 10


# -- forces that are given ----------------------------------------------------------------------------------


@pytest.mark.parametrize("reduce", ["", "{ error = 0.5, band = 20 }"], ids=["elements", "reduced"])
@pytest.mark.parametrize("shear", [False, True], ids=["slender", "shear"])
def test_compliance_between_nodes_is_that_of_the_closed_form(tmp_path, reduce, shear):
    """A cantilever of any number of elements under a wrench at any place, with a rolled section in space."""
    roll, rng = 0.6, np.random.default_rng(3)
    EI_z, GA = bars.E * bars.IY, 5 / 6 * bars.E / 2.6 * bars.AREA
    for elements in (1, 4):
        own = f'"bar", elements = {elements}, roll = {roll}, shear = {str(shear).lower()}'
        text = bars.CANTILEVER.replace('"bar" }', own + (f", reduce = {reduce} }}" if reduce else " }"))
        robot = bars.robot(tmp_path, text, motion="spatial")
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
    """Seen at the force, before and behind it, and in the columns of a run that begins at rest under it."""
    force, a = 0.5, 0.55
    robot = bars.robot(tmp_path, bars.CANTILEVER.replace('"bar" }', f'"bar", elements = 4{reduce} }}'))
    assert not reduce or robot.tree.links[0].body.reduced.kept > 0
    push, where = {f"bar@{a}": [0.0, force, 0.0]}, (0.3, a, 0.7, 1.0)
    found = parflex.deflection(robot, frames=[f"bar@{s}" for s in where], about="undeformed", wrench=push)
    exact = np.array([force * bent(s * L, a * L) for s in where])
    assert [found.frames[f"bar@{s}"][1] for s in where] == pytest.approx(exact, rel=1e-8)
    rest = parflex.deflection(robot, frames=[f"bar@{s}" for s in where], wrench=push)
    assert [rest.frames[f"bar@{s}"][1] for s in where] == pytest.approx(exact, rel=1e-4)  # large displacements
    words = [f"bar@{s}.y" for s in where]
    gain = parflex.state_space(robot, [f"bar@{a}.fy"], words).response(0.0)[0][:, 0] * force
    assert gain == pytest.approx(exact, rel=1e-8)
    asked = [f"bar.tangent_y@{s}" for s in where]
    run = parflex.simulate(robot, None, 0.002, wrench=push, outputs=[*asked, "bar@0.7.y"])
    assert [run[word][0] for word in asked] == pytest.approx(exact, rel=1e-4)
    assert any("inside of a reduced" in word for word in run.summary["warnings"]) == bool(reduce)


def test_an_offset_point_between_nodes_moves_as_what_carries_it(tmp_path):
    more = '[[point]]\nname = "hook"\nframe = "bar@0.3"\nposition = [0.02, 0.05, 0]\n'
    own = [bars.CANTILEVER.replace('"bar" }', f'"bar", elements = {n} }}') + more for n in (1, 10)]
    one, fine = (parflex.cartesian_stiffness(bars.robot(tmp_path, text), frame="hook").compliance for text in own)
    assert one == pytest.approx(fine, rel=1e-9)


def test_slopes_and_maps_have_the_compliance_between_nodes(tmp_path):
    """Slopes beside differences over 2e-6 of a size, whose error is 1e-12/1e-6 of rounding; maps beside one pose."""
    text = bars.CANTILEVER.replace('name = "bar"', 'name = "bar"\njoint = "revolute"\nactuated = true')
    robot, key, h = bars.robot(tmp_path, text), "sections.bar.y", 1e-8
    asked, push = ["compliance:bar@0.4.y", "deflection:bar@0.4.y"], {"bar@0.6": [0, 2.0, 0.1]}
    value, slopes = {}, {}
    for word in asked:
        words = {"wrench": push, "about": "undeformed"} if word.startswith("deflection") else {}
        found = parflex.sensitivities(robot, word, [key], {"bar": 0.3}, **words)
        value[word], slopes[word] = found.value, found.sensitivities[key]["derivative"]

    def answers(size):
        own = parflex.load(tmp_path / "bars-0.toml", settings={key: size})
        stiff = parflex.cartesian_stiffness(own, {"bar": 0.3}, frame="bar@0.4").compliance[1, 1]
        way = parflex.deflection(own, {"bar": 0.3}, frames=["bar@0.4"], about="undeformed", wrench=push)
        return np.array([stiff, way.frames["bar@0.4"][1]])

    exact = (answers(bars.Y + h) - answers(bars.Y - h)) / (2 * h)
    assert [value[word] for word in asked] == pytest.approx(answers(bars.Y), rel=1e-12)
    assert [slopes[word] for word in asked] == pytest.approx(exact, rel=1e-5)
    many = parflex.many_responses(robot, ["bar"], np.linspace(0.3, 0.5, 6)[:, None], asked, wrench=push)
    rest = parflex.deflection(robot, {"bar": 0.3}, frames=["bar@0.4"], wrench=push)
    stiff = parflex.cartesian_stiffness(robot, {"bar": 0.3}, frame="bar@0.4", wrench=push)
    assert many.values[asked[1]][0] == pytest.approx(rest.frames["bar@0.4"][1], rel=1e-9)
    assert many.values[asked[0]][0] == pytest.approx(stiff.compliance[1, 1], rel=1e-9)


def test_rates_at_a_loaded_place_between_nodes_are_told_to_lack_the_element(tmp_path):
    """A force bends its element at once: 1/192 of 1/24 L^3/EI in the middle of a cantilever, an eighth."""
    for elements, loaded, seen, share in ((1, 0.5, 0.5, "13%"), (1, 0.1, 0.9, ""), (4, 0.5, 0.5, "")):
        robot = bars.robot(tmp_path, bars.CANTILEVER.replace('"bar" }', f'"bar", elements = {elements} }}'))
        for word in ("velocity", "acceleration"):
            found = parflex.state_space(robot, [f"bar@{loaded}.fy"], [f"{word}:bar@{seen}.y"])
            said = [one for one in found.model.warnings if "which are no input" in one]
            assert len(said) == bool(share) and all(f"lacks {share}" in one for one in said)
    said = parflex.state_space(robot, ["bar@0.5.fy"], ["bar@0.5.y"]).model.warnings
    assert said == parflex.natural_frequencies(robot).too_few  # and nothing else


def test_what_frames_lack_is_told_where_it_is_much_of_the_deflection(tmp_path):
    """Of the deflection of the tip 3 % with one element, and 1/64 of that in one of four, which is told nowhere."""
    push = {"bar@0.55": [0.0, 0.5, 0.0]}
    for elements in (1, 4):
        robot = bars.robot(tmp_path, bars.CANTILEVER.replace('"bar" }', f'"bar", elements = {elements} }}'))
        run = parflex.simulate(robot, None, 0.002, wrench=push, outputs=["bar@0.55.y"])
        told = [one for one in run.summary["warnings"] if "between two nodes" in one]
        assert len(told) == (elements == 1)
        if told:
            said = float(told[0].partition("'bar@0.55' lacks up to ")[2].split()[0])
            lacking = 0.5 * bent(0.55 * L, 0.55 * L) - run["bar@0.55.y"][0]
            assert said == pytest.approx(lacking, rel=0.05)  # large displacements: 1e-4 of the deflection
