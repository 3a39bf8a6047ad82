"""Responses and their sensitivities: equal modes, worst of many poses, tolerances, responses of users, bad input."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner
from support.differences import INSIDE, LENGTHS, conditions, extrapolated
from support.robots import load_robot

import parflex
from parflex import InputError, ParflexError
from parflex.cli.main import cli
from parflex.design.design_state import DesignState
from parflex.design.registry import RESPONSES
from parflex.models.loading import redesigned


@pytest.fixture(scope="module")
def navaro():
    return parflex.load("navaro")


@pytest.fixture(scope="module")
def planar():
    return parflex.load("3rrr")


def pair(robot, settings):
    """The two lowest frequencies of NaVARo at pose-1."""
    pose = dict(robot.description.poses["pose-1"])
    return parflex.natural_frequencies(redesigned(robot, settings), pose, modes=2).frequencies


@pytest.mark.verify
def test_double_modes_part_as_their_directional_derivatives_say(navaro):
    keys = ["constants.bar", "legs.gamma.0"]
    found = parflex.sensitivities(navaro, "frequency:1", keys, "pose-1")
    assert found.value == pytest.approx(44.10, abs=0.01)  # Germain2015, Table 2
    assert found.multiplicity == 2
    # a change of all legs keeps the symmetry, and both modes go together
    together = found.directional["constants.bar"]
    assert together[1] == pytest.approx(together[0], rel=1e-9)
    bar, gamma = 0.21, np.pi / 2
    both = extrapolated(lambda h: pair(navaro, {"constants.bar": bar * (1 + h)})[0], 3)
    assert together[0] * bar == pytest.approx(both, rel=1e-8)
    # a change of one leg parts them: the lower falls and the upper rises, whichever way it goes
    apart = found.directional["legs.gamma.0"]
    assert apart[0] == pytest.approx(-apart[1], rel=1e-6)
    # one-sided, since the sorted pair has a kink: twice the shorter less the longer
    slopes = [(pair(navaro, {"legs.gamma.0": gamma + h}) - found.value) / h for h in (2e-4, 1e-4)]
    assert 2 * slopes[1] - slopes[0] == pytest.approx(np.array(apart), rel=1e-6)
    # both at once: eigenvalues of the sum of the matrices
    change = np.array([1e-5, 2e-5])
    ahead = np.linalg.eigvalsh(np.tensordot(change, found.matrices, 1))
    moved = pair(navaro, {"constants.bar": bar + change[0], "legs.gamma.0": gamma + change[1]}) - found.value
    assert moved == pytest.approx(ahead, rel=1e-3)  # second order: 1e-5 of the number


def test_the_second_of_equal_modes_rises_where_the_first_falls(navaro):
    first, second = (parflex.sensitivities(navaro, f"frequency:{k}", ["legs.gamma.0"], "pose-1") for k in (1, 2))
    one, two = (found.sensitivities["legs.gamma.0"]["derivative"] for found in (first, second))
    assert one < 0 < two


def test_the_worst_of_many_poses_has_the_derivatives_of_its_pose(planar):
    poses = [{"x": x, "y": y, "theta": 0.1} for x in (-0.02, 0.03) for y in (-0.01, 0.04)]
    found = parflex.sensitivities(planar, "conditioning", LENGTHS, poses=poses)
    values = [conditions(planar, pose) for pose in poses]
    assert found.value == pytest.approx(max(values), rel=1e-12)
    assert found.pose == poses[int(np.argmax(values))]
    alone = parflex.sensitivities(planar, "conditioning", LENGTHS, found.pose)
    assert found.sensitivities == alone.sensitivities


def test_mean_and_quantile_over_tolerances_have_the_derivatives_of_the_samples(planar):
    given = {"tolerances": {"constants.distal": 1e-3, "constants.proximal": 2e-3}, "samples": 3, "seed": 2}
    draws = np.random.default_rng(2).standard_normal((3, 2)) * [1e-3, 2e-3]

    def values(arm):
        nominal = [planar.description.constants[key] for key in ("distal", "proximal")]
        settings = [
            dict(zip(("constants.distal", "constants.proximal"), nominal + draw, strict=True)) for draw in draws
        ]
        robots = [redesigned(planar, {**one, "constants.arm": arm}) for one in settings]
        return np.array([conditions(robot, INSIDE) for robot in robots])

    arm = planar.description.constants["arm"]
    for statistic, function in (("mean", np.mean), ("0.2", lambda x: np.quantile(x, 0.2))):
        found = parflex.sensitivities(planar, "conditioning", ["constants.arm"], INSIDE, statistic=statistic, **given)
        assert found.value == pytest.approx(function(values(arm)), rel=1e-12)
        its = extrapolated(lambda h, f=function: f(values(arm * (1 + h))), 2) / arm
        assert found.sensitivities["constants.arm"]["derivative"] == pytest.approx(its, rel=1e-5)


def test_users_add_responses_whose_slopes_come_by_themselves(planar):
    def area(state: DesignState, argument: str):
        """Area of the triangle of the knees."""
        at, tree = state.there.at, state.robot.tree
        a, b, c = (at.position[tree.number(f"leg{k}.2")] for k in (1, 2, 3))
        return 0.5 * abs((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))

    parflex.add_response("knees", area, "m^2", "Area between the knees.")
    try:
        found = parflex.sensitivities(planar, "knees", LENGTHS, INSIDE)

        def changed(h):
            other = redesigned(planar, {"constants.proximal": planar.description.constants["proximal"] * (1 + h)})
            return area(DesignState(other, INSIDE), "")

        assert found.value == pytest.approx(changed(0.0), rel=1e-12)
        its = extrapolated(changed) / found.value
        assert found.sensitivities["constants.proximal"]["elasticity"] == pytest.approx(its, rel=1e-8)
        assert found.unit == "m^2"
    finally:
        del RESPONSES["knees"]


@pytest.mark.parametrize("response", ["effort:left.1", "conditioning"])
def test_a_key_without_influence_on_a_robot_at_rest_has_no_sensitivity(response):
    robot = parflex.load("5r")
    found = parflex.sensitivities(robot, response, ["legs.frame.1.motor_inertia"], {"x": 0.05, "y": 0.5})
    assert found.sensitivities["legs.frame.1.motor_inertia"]["derivative"] == 0
    assert abs(found.value) > 0


def test_what_a_key_does_not_touch_has_no_sensitivity(planar):
    found = parflex.sensitivities(planar, "mass", LENGTHS, INSIDE)
    assert all(one["derivative"] == 0 for one in found.sensitivities.values())


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"response": "frequenc:1"}, "did you mean 'frequency'"),
        ({"response": "frequency:1"}, "no elastic bodies, no springs and no servos"),
        ({"response": "frequency:99", "servo": 1e4}, "mode 99 is asked for"),
        ({"response": "frequency:1-2", "servo": 1e4}, "no natural frequency lies between"),
        ({"keys": ["constants.x"]}, "there is no value at 'constants.x'"),
        ({"keys": ["name"]}, "'name' is not a number"),
        ({"keys": ["constants.arm", "constants.arm"]}, "named twice"),
        ({"response": "effort:leg9"}, "there is no motor 'leg9'"),
        ({"response": "stiffness:platform.q", "servo": 1e4}, "does not end with a direction"),
        ({"response": "limits"}, "no joint has limits"),
    ],
)
def test_what_cannot_be_answered_is_refused_in_a_sentence(planar, given, says):
    with pytest.raises(ParflexError, match=says):
        parflex.sensitivities(planar, **{"response": "mass", "keys": ["constants.arm"]} | given)


def test_a_key_whose_change_opens_the_loops_is_named(navaro):
    key = "legs.frame.1.place.position.2"
    with pytest.raises(InputError, match="cannot be closed at this pose when"):
        parflex.sensitivities(navaro, "frequency:1", [key], "pose-3")


def test_the_command_prints_sorted_elasticities_and_draws_them(tmp_path):
    figure = tmp_path / "bars.svg"
    words = ["sensitivities", "dualemps", "--response", "frequency:1", "--to", "constants.offset,constants.blade"]
    done = CliRunner().invoke(cli, [*words, "--figure", str(figure), "--json"])
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    wanted = {"response", "value", "unit", "multiplicity", "sensitivities", "directional"}
    assert wanted <= set(answer)
    assert set(answer["sensitivities"]["constants.blade"]) == {"derivative", "elasticity"}
    assert "constants.blade" in figure.read_text()
    shown = CliRunner().invoke(cli, words).stdout
    assert shown.index("constants.blade") < shown.index("constants.offset")


def test_the_mass_of_a_beam_is_that_of_all_its_elements_and_parts_of_a_body_are_refused():
    for elements in (1, 3):
        robot = load_robot("beam-with-tool", elements=elements)
        found = parflex.sensitivities(robot, "mass:arm", ["materials.m.density"])
        assert found.value == pytest.approx(2700 * 0.5 * 2e-4, rel=1e-12)
        assert found.sensitivities["materials.m.density"]["derivative"] == pytest.approx(0.5 * 2e-4, rel=1e-12)
        with pytest.raises(parflex.ParflexError, match=r"'tool' is fixed on 'arm\.tip', whose mass has its own in it"):
            parflex.sensitivities(robot, "mass:tool", ["materials.m.density"])


@pytest.mark.parametrize(
    ("motion", "force"), [("planar", [0.0, 10.0, 0.0]), ("spatial", [0.0, 6.0, 8.0, 0.0, 0.0, 0.0])]
)
def test_stress_of_round_beams_has_the_slopes_of_the_closed_form(motion, force):
    keys = ["frame.b.beam.length", "sections.t.diameter", "materials.m.density"]
    robot = load_robot("round-tube", settings={"motion": motion})
    found = parflex.sensitivities(robot, "stress:b", keys, about="undeformed", wrench={"b.tip": force})

    def closed(d):
        return 10 * 0.5 * d / 2 / (np.pi / 64 * (d**4 - (d - 0.004) ** 4))

    assert found.value == pytest.approx(closed(0.02), rel=1e-6)
    elasticities = [found.sensitivities[key]["elasticity"] for key in keys]
    by_diameter = extrapolated(lambda h: closed(0.02 * (1 + h))) / closed(0.02)
    np.testing.assert_allclose(elasticities, [1.0, by_diameter, 0.0], atol=1e-6)


def test_keys_that_follow_from_other_keys_are_refused_beside_them():
    settings = {"constants": {"r": 0.01, "h": "r"}, "sections.t.diameter": "2*h"}
    robot = load_robot("round-tube", settings=settings)
    assert parflex.sensitivities(robot, "mass", ["constants.r"]).sensitivities["constants.r"]["derivative"] > 0
    with pytest.raises(ParflexError, match=r"'sections.t.diameter' follows from 'constants.r'"):
        parflex.sensitivities(robot, "mass", ["constants.r", "sections.t.diameter"])
