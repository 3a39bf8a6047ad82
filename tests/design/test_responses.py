"""Responses of designs and their slopes; designs at the edge of assembly."""

import numpy as np
import pytest
from support.command_line import answered, run
from support.differences import INSIDE, LENGTHS, conditions, extrapolated, value_of_response
from support.robots import load_robot, robot_file

import parflex
from parflex.design.descent import Descent, Designs, Term, descend, with_remaining_slope
from parflex.design.design_state import DesignState
from parflex.design.optimise import OptimisationProblem
from parflex.design.problem import ProblemDesigns, ResponsePiece, read_problem
from parflex.design.registry import RESPONSES
from parflex.robot.load import with_settings


@pytest.fixture(scope="module")
def navaro():
    return parflex.load("navaro")


@pytest.fixture(scope="module")
def planar():
    return parflex.load("3rrr")


def pair(robot, settings):
    pose = dict(robot.description.poses["pose-1"])
    return parflex.natural_frequencies(with_settings(robot, settings), pose, modes=2).frequencies


@pytest.mark.verify
def test_double_modes_separate_by_their_directional_derivatives(navaro):
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


def test_the_worst_of_many_poses_has_the_derivatives_of_its_pose(planar):
    poses = [{"x": x, "y": y, "theta": 0.1} for x in (-0.02, 0.03) for y in (-0.01, 0.04)]
    found = parflex.sensitivities(planar, "conditioning", LENGTHS, poses=poses)
    values = [conditions(planar, pose) for pose in poses]
    assert found.value == pytest.approx(max(values), rel=1e-12)
    assert found.pose == poses[int(np.argmax(values))]
    alone = parflex.sensitivities(planar, "conditioning", LENGTHS, found.pose)
    assert found.sensitivities == alone.sensitivities


@pytest.mark.verify
def test_mean_and_quantile_over_tolerances_have_the_derivatives_of_the_samples(planar):
    given = {"tolerances": {"constants.distal": 1e-3, "constants.proximal": 2e-3}, "samples": 3, "seed": 2}
    draws = np.random.default_rng(2).standard_normal((3, 2)) * [1e-3, 2e-3]

    def values(arm):
        nominal = [planar.description.constants[key] for key in ("distal", "proximal")]
        keys = ("constants.distal", "constants.proximal")
        settings = [dict(zip(keys, nominal + draw, strict=True)) for draw in draws]
        robots = [with_settings(planar, {**one, "constants.arm": arm}) for one in settings]
        return np.array([conditions(robot, INSIDE) for robot in robots])

    arm = planar.description.constants["arm"]
    for statistic, function in (("mean", np.mean), ("0.2", lambda x: np.quantile(x, 0.2))):
        found = parflex.sensitivities(planar, "conditioning", ["constants.arm"], INSIDE, statistic=statistic, **given)
        assert found.value == pytest.approx(function(values(arm)), rel=1e-12)
        its = extrapolated(lambda h, f=function: f(values(arm * (1 + h))), 2) / arm
        assert found.sensitivities["constants.arm"]["derivative"] == pytest.approx(its, rel=1e-5)


def test_users_add_responses_whose_slopes_come_by_themselves(planar):
    def area(state: DesignState, argument: str):
        at, tree = state.there.at, state.robot.tree
        a, b, c = (at.position[tree.number(f"leg{k}.2")] for k in (1, 2, 3))
        return 0.5 * abs((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))

    parflex.add_response("knees", area, "m^2", "Area between the knees.")
    try:
        found = parflex.sensitivities(planar, "knees", LENGTHS, INSIDE)

        def changed(h):
            other = with_settings(planar, {"constants.proximal": planar.description.constants["proximal"] * (1 + h)})
            return area(DesignState(other, INSIDE), "")

        assert found.value == pytest.approx(changed(0.0), rel=1e-12)
        its = extrapolated(changed) / found.value
        assert found.sensitivities["constants.proximal"]["elasticity"] == pytest.approx(its, rel=1e-8)
        assert found.unit == "m^2"
    finally:
        del RESPONSES["knees"]


def test_what_a_key_does_not_touch_has_no_sensitivity(planar):
    for response in ("effort:left.1", "conditioning"):
        key = "legs.frame.1.motor_inertia"
        result = parflex.sensitivities(parflex.load("5r"), response, [key], {"x": 0.05, "y": 0.5})
        assert result.sensitivities[key]["derivative"] == 0 and abs(result.value) > 0
    masses = parflex.sensitivities(planar, "mass", LENGTHS, INSIDE).sensitivities
    assert all(entry["derivative"] == 0 for entry in masses.values())


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"response": "frequenc:1"}, "did you mean 'frequency'"),
        ({"response": "frequency:1"}, "no elastic bodies, no springs and no servos"),
        ({"response": "frequency:1-2", "servo": 1e4}, "no natural frequency lies between"),
        ({"keys": ["constants.x"]}, "there is no value at 'constants.x'"),
        ({"keys": ["constants.arm", "constants.arm"]}, "named twice"),
        ({"response": "stiffness:platform.q", "servo": 1e4}, "platform.q"),
    ],
)
def test_invalid_requests_for_sensitivities_are_refused(planar, given, says):
    with pytest.raises(parflex.ParflexError, match=says):
        parflex.sensitivities(planar, **{"response": "mass", "keys": ["constants.arm"]} | given)


def test_a_key_whose_change_opens_the_loops_is_named(navaro):
    key = "legs.frame.1.place.position.2"
    with pytest.raises(parflex.InputError, match="cannot be closed at this pose when"):
        parflex.sensitivities(navaro, "frequency:1", [key], "pose-3")


def test_the_command_prints_sorted_elasticities_and_draws_them(tmp_path, capsys):
    figure = tmp_path / "bars.svg"
    words = ["sensitivities", "dualemps", "--response", "frequency:1", "--to", "constants.offset,constants.blade"]
    answer = answered(capsys, *words, "--figure", figure)
    assert {"response", "value", "unit", "multiplicity", "sensitivities", "directional"} <= set(answer)
    assert set(answer["sensitivities"]["constants.blade"]) == {"derivative", "elasticity"}
    assert "constants.blade" in figure.read_text()
    shown = run(capsys, *words).out
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
    with pytest.raises(parflex.ParflexError, match=r"'sections.t.diameter' follows from 'constants.r'"):
        parflex.sensitivities(robot, "mass", ["constants.r", "sections.t.diameter"])


MASS, ARM, INERTIA, GRAVITY = 2.0, 0.4, 0.05, 9.81
TURN, PULSE = 0.8, 2 * np.pi * 1.5  # of the swing: rad, rad/s


@pytest.fixture(scope="module")
def pendulum():
    return load_robot("motor-pendulum")


def swing(t, mass=MASS, arm=ARM):
    q, speed, push = TURN * np.sin(PULSE * t), TURN * PULSE * np.cos(PULSE * t), -TURN * PULSE**2 * np.sin(PULSE * t)
    effort = (INERTIA + mass * arm**2) * push + mass * GRAVITY * arm * np.cos(q)
    return np.abs([effort, speed, effort * speed])


def largest(row, **given):
    """The largest value of a row of the swing, by looking closer three times."""
    t, step = np.linspace(0, 2 / 1.5, 4001), 2 / 1.5 / 4000
    for _ in range(3):
        best = t[np.argmax(swing(t, **given)[row])]
        t, step = np.linspace(best - step, best + step, 401), step / 200
    return swing(t, **given)[row].max()  # 1e-16 of it beside the top


@pytest.mark.verify
def test_peak_values_and_energy_of_a_motion_are_those_of_the_closed_form(pendulum):
    keys = ["constants.mass", "constants.arm"]
    for row, name in enumerate(("effort", "speed", "power")):
        found = parflex.sensitivities(pendulum, f"{name}:arm@swing", keys)
        assert found.value == pytest.approx(largest(row), rel=1e-10)
        for key, nominal in zip(keys, (MASS, ARM), strict=True):
            word = key.partition(".")[2]
            its = extrapolated(lambda h, w=word, x=nominal, r=row: largest(r, **{w: x * (1 + h)}), 2) / found.value
            # differences of fourth order with steps of 0.004
            assert found.sensitivities[key]["elasticity"] == pytest.approx(its, rel=1e-7, abs=1e-9)
    found = parflex.sensitivities(pendulum, "energy:swing", keys)
    assert found.unit == "J"
    assert found.value == pytest.approx(work(), rel=1e-10)
    for key, nominal in zip(keys, (MASS, ARM), strict=True):
        word = key.partition(".")[2]
        its = extrapolated(lambda h, w=word, x=nominal: work(**{w: x * (1 + h)}), 2, 0.002) / found.value
        assert found.sensitivities[key]["elasticity"] == pytest.approx(its, rel=1e-7)  # kinks: third order


def work(**given):
    """The integral of the power of the swing in size, by trapezoids: 1e-12 of it are missing at kinks."""
    t = np.linspace(0, 2 / 1.5, 1_000_001)
    return np.trapezoid(swing(t, **given)[2], t)


def test_the_largest_effort_of_a_trapezoid_is_beside_a_jump_of_its_acceleration(pendulum):
    push = 1.2 / 0.4 / 0.1  # full speed in 0.1 s
    q = np.array([0.0, push * 0.1**2 / 2, 1.2 - push * 0.1**2 / 2, 1.2])
    with_push = (INERTIA + MASS * ARM**2) * np.array([push, push, -push, -push]) + MASS * GRAVITY * ARM * np.cos(q)
    found = parflex.sensitivities(pendulum, "effort:arm@lift", ["constants.mass"])
    assert found.value == pytest.approx(np.abs(with_push).max(), rel=1e-12)
    assert found.value == pytest.approx(with_push[0], rel=1e-12)
    slope = ARM**2 * push + GRAVITY * ARM
    assert found.sensitivities["constants.mass"]["derivative"] == pytest.approx(slope, rel=1e-10)


def test_instants_that_reach_the_largest_value_together_are_active_together(pendulum):
    found = parflex.sensitivities(pendulum, "speed:arm@swing", ["constants.mass"])
    assert found.multiplicity == 5 and np.abs(found.directional["constants.mass"]).max() == 0


def test_where_dry_friction_jumps_the_largest_effort_is_its_limit():
    """It is just behind the instant at which the slider turns back, before which friction helps to stop it."""
    robot = load_robot("rubbing-slider")
    found = parflex.sensitivities(robot, "effort:slide@swing", ["constants.mass", "constants.rub"])
    push = 0.1 * (4 * np.pi) ** 2
    assert found.value == pytest.approx(2.0 * push + 3.0, rel=1e-10)
    assert found.sensitivities["constants.mass"]["derivative"] == pytest.approx(push, rel=1e-9)
    assert found.sensitivities["constants.rub"]["derivative"] == pytest.approx(1.0, rel=1e-9)
    energy = parflex.sensitivities(robot, "energy:swing", ["constants.rub"])
    # out, the motor brakes where inertia exceeds friction, from x0 on; back, both resist: twice both ways
    way, x0 = 0.1, 0.1 * 3.0 / (2.0 * push)
    out = 3.0 * x0 / 2 + (2.0 * push - 3.0) * (way - x0) / 2
    assert energy.value == pytest.approx(2 * (out + 3.0 * way + push * way), rel=1e-10)
    assert energy.sensitivities["constants.rub"]["derivative"] == pytest.approx(4 * x0, rel=1e-9)


RUBBED = {"legs.frame.1.friction": {"coulomb": 2.0}, "legs.frame.2.friction": {"coulomb": 1.5}}


@pytest.mark.verify
@pytest.mark.parametrize(
    ("response", "settings"),
    [("energy:push", {}), *[
        ("power:@line", {}), ("energy:line", {}), ("effort:left.1@line", RUBBED), ("energy:line", RUBBED),
        ("power:@line", RUBBED)]],
)  # fmt: skip
def test_slopes_over_motions_are_those_of_reloaded_robots(response, settings):
    robot = load_robot("five-bar-motions", settings=settings)
    found = parflex.sensitivities(robot, response, ["constants.proximal"])
    nominal = robot.description.constants["proximal"]

    def changed(h):
        return value_of_response(with_settings(robot, {"constants.proximal": nominal * (1 + h)}), response)

    long = response != "energy:push"
    its = extrapolated(changed, *((3, 0.002) if long else (1, 0.001))) / found.value
    # errors of second order: 1e-5; extrapolated twice 1e-10 (a dead point is near: steps of a percent leave 1e-7)
    assert found.sensitivities["constants.proximal"]["elasticity"] == pytest.approx(its, rel=1e-8 if long else 1e-5)


@pytest.mark.parametrize(
    ("response", "key", "says"),
    [
        ("effort:arm@swing", "constants.wide", "itself follows from 'constants.wide'"),
        ("speed:arm@swing", "motions.lift.ramp", None),
        ("speed:arm@lift", "motions.lift.ramp", "itself follows from 'motions.lift.ramp'"),
        ("power:arm@fast", "constants.mass", "takes another time in each design"),
        ("effort:arm@slow", "constants.mass", "no motion 'slow'"),
        ("effort:leg@swing", "constants.mass", "no motor 'leg'"),
    ],
)
def test_motions_that_change_with_the_key_have_no_slopes(pendulum, response, key, says):
    if says is None:
        assert parflex.sensitivities(pendulum, response, [key]).sensitivities[key]["derivative"] == 0
        return
    with pytest.raises(parflex.ParflexError, match=says):
        parflex.sensitivities(pendulum, response, [key])


@pytest.mark.verify
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_motions_without_an_end_are_refused():
    circle = {"centre": [0.0, 0.5, 0.0], "start": [0.05, 0.5, 0.0]}
    endless = {"frequency": 2.0, "sines": {"left.1": [0.1]}}
    motions = {"endless": endless, "round": {"circle": circle, "speed": 0.5, "ramp": 0.05}}
    robot = parflex.load("5r", settings={"motions": motions})
    for name in motions:
        says = "has no end; add turns = 1 to its circle" if name == "round" else "has no end; name one that ends"
        with pytest.raises(parflex.ParflexError, match=says):
            parflex.sensitivities(robot, f"energy:{name}", ["constants.proximal"])


@pytest.fixture
def five():
    return load_robot("five-bar-in-designs")


class Disc:
    """Designs that can be within a circle; near its edge values change as the root of the distance."""

    def checked(self, z):
        inside = 0.16 - (z[0] - 0.5) ** 2 - (z[1] - 0.5) ** 2
        if inside < 0:
            raise parflex.InputError("cannot be", key="z")
        return inside

    def designs(self):
        def value(z):
            return z[0] + 0.3 * z[1] - 0.5 * np.sqrt(self.checked(z))

        def pieces(z):
            slope = np.array([1.0, 0.3]) + 0.5 * (z - 0.5) / np.sqrt(self.checked(z))
            return [[ResponsePiece(value(z), slope.reshape(2, 1, 1))]]

        return Designs([Term("f", 1.0, None, 1.0)], lambda z: np.array([value(z)]), pieces)


def test_steps_end_inside_the_edge_of_assembly_with_what_stops_them():
    free, disc = np.ones(2, dtype=bool), Disc()
    designs = disc.designs()
    found = with_remaining_slope(designs, descend(designs, np.array([0.6, 0.8]), free, 200, 1e-8), free)
    assert 0 <= disc.checked(found.z) < 1e-6 and found.values[0] > designs.at(np.array([0.6, 0.8])).values[0]
    assert found.stopped == "cannot be" and found.slope > 0.1


def test_many_poses_have_all_responses_of_the_registry(planar):
    names, poses = ["x", "y", "theta"], np.array([[0.02, 0.03, 0.1], [-0.01, 0.0, 0.0], [5.0, 0.0, 0.0]])
    words = ["transmission", "mass:platform", "reachable", "inertia:leg1.1"]
    found = parflex.many_responses(planar, names, poses, words)
    assert found.status.tolist() == [0, 0, 1] and found["reachable"].tolist() == [1.0, 1.0, 0.0]
    assert found.units["inertia:leg1.1"] == "kg m^2" and np.isnan(found["transmission"][2])
    for row, pose in enumerate(poses[:2]):
        at = [dict(zip(names, pose.tolist(), strict=True))]
        expected = [value_of_response(planar, word, at) for word in words]
        assert [found[word][row] for word in words] == pytest.approx(expected, rel=1e-9)  # closed in two ways


def test_damping_is_a_response_of_one_pose_without_slopes():
    robot = parflex.load("dualemps")
    damping = parflex.natural_frequencies(robot, modes=2).damping[1]
    assert value_of_response(robot, "damping:2") == pytest.approx(damping, rel=1e-12)
    for word, says in (("damping:1", "has no slopes"), ("shape:1", "has no slopes")):
        with pytest.raises(parflex.InputError, match=says):
            parflex.sensitivities(robot, word, ["constants.blade"])
    with pytest.raises(parflex.InputError, match="has several numbers; ask 'many_responses' for it"):
        value_of_response(robot, "shape:1")


def test_ends_of_searches_are_told():
    problem = object.__new__(OptimisationProblem)
    problem.designs = Disc().designs()
    problem.problem = type("Problem", (), {"steps": 60})()
    z, none = np.zeros(2), np.zeros(1)

    def ended(value, **more):
        return Descent(z, np.array([value]), none, none, 1, 1, **more)

    tried = [ended(1.0), parflex.InputError("too short", key="z"), ended(1.00001), ended(0.7), ended(0.9, slope=0.5)]
    told, sentence = problem._searches(tried)
    assert [one["status"] for one in told] == ["optimal", "impossible", "optimal", "optimal", "stalled"]
    assert told[1] == {"status": "impossible", "objective": None, "reason": "too short"}
    assert sentence == (
        "of 5 starts 2 came to the best optimum, 1 to others, 1 ended before an optimum, 1 cannot be assembled"
    )
    stuck = ended(1.0, slope=0.5, stopped="B misses it by 2 mm")
    assert "may not be an optimum: B misses it by 2 mm" in problem._message(stuck, problem._status(stuck))


def test_legs_of_designs_stay_on_their_sides(tmp_path, five):
    (tmp_path / "problem.toml").write_text(
        f'robot = "{robot_file("five-bar-in-designs")}"\n[variables.constants.A]\nlower = 0.1\nupper = 0.4\n'
        '[responses.f]\nresponse = "frequency:1"\npose = { x = 0.05, y = 0.45 }\n[objective]\nmaximise = "f"\n'
    )
    knee = five.tree.links[five.tree.number("l2")].q.start
    robots = ProblemDesigns(read_problem(tmp_path / "problem.toml"), five)
    for length in np.linspace(0.2244, 0.4, 12):
        design = robots.design(np.array([(length - 0.1) / 0.3]))
        bend = np.sin(design.home[knee]) * np.sin(five.home[knee])
        assert bend > 0, length
