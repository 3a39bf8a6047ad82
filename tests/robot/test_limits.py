"""Limits of joints and struts: motions and references beyond them are refused, other answers warn."""

import contextlib
import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
from support.command_line import answered, refused
from support.linkages import CHAINS, draw
from support.robots import load_robot, robot_file, write_robot

import parflex
from parflex import InputError, ParflexError, ParflexWarning, UnreachableError

SPACED = 2001  # samples of a motion: between them smooth motions of a second exceed samples by less than NEAR
NEAR = 1e-3  # of a range: limits so near to it are not drawn


def crane(boom=None, **ram) -> parflex.Robot:
    """Return a boom on a strut, with limits of the strut and keys of the boom."""
    settings = {f"element.ram.{key}": value for key, value in ram.items()}
    return load_robot("crane", settings=settings | {f"frame.boom.{key}": value for key, value in (boom or {}).items()})


def length(angle):
    """Of the strut, by the law of cosines."""
    return np.sqrt(0.8**2 + 0.6**2 + 2 * 0.8 * 0.6 * np.sin(angle))


def limited(robot, **limits):
    """The robot with limits of joints: {joint: {key: value}}."""
    links = tuple(replace(link, **limits.get(link.name, {})) for link in robot.tree.links)
    return robot.on_tree(replace(robot.tree, links=links))


def warned(capsys, *words) -> list[str]:
    return [sentence for sentence in answered(capsys, *map(str, words))["warnings"] if "limit" in sentence]


def crane_file(folder, key, value):
    """Write the crane with a limit of its strut."""
    ram = f'[[element]]\nname = "ram"\n{key} = {value}\n'
    return write_robot(folder, f'extends = "{robot_file("crane")}"\nformat = 1\nname = "x"\n{ram}')


@pytest.mark.parametrize(
    ("boom", "ram", "message"),
    [
        ({"velocity_limit": 0}, {}, "velocity_limit = 0.0 is not positive"),
        ({"effort_limit": -5}, {}, "effort_limit = -5.0 is not positive"),
        ({"limits": [1, 0]}, {}, "in the wrong order"),
        ({}, {"velocity_limit": -1}, "velocity_limit = -1.0 is not positive"),
        ({}, {"effort_limit": 0}, "effort_limit = 0.0 is not positive"),
        ({}, {"limits": [0.9, 0.8]}, "in the wrong order"),
        ({}, {"limits": [-0.9, 0.8]}, "the limits of a strut are lengths"),
        ({}, {"effort_limit": "high"}, "effort_limit"),
        ({}, {"kind": "rod", "actuated": False, "limits": [0.1, 1]}, "a rod has no 'limits'"),
        ({}, {"kind": "rod", "actuated": False, "effort_limit": 1}, "a rod has no 'effort_limit'"),
    ],
)
def test_wrong_limits_are_refused(boom, ram, message):
    with pytest.raises(ParflexError, match=re.escape(message)):
        crane(boom, **ram)


def test_limits_need_a_joint_with_an_axis():
    with pytest.raises(ParflexError, match="limits need a joint with one axis, not a universal joint"):
        load_robot("column-on-foot", settings={"frame.foot.velocity_limit": 1})


def test_limits_may_be_expressions():
    robot = crane({"effort_limit": 7}, limits=["0.5*2", "sqrt(4)"], velocity_limit="3/4")
    ram, boom = (robot.tree.links[robot.tree.number(name)] for name in ("ram", "boom"))
    assert (ram.limits, ram.velocity_limit, ram.effort_limit) == ((1.0, 2.0), 0.75, None)
    assert (boom.limits, boom.velocity_limit, boom.effort_limit) == (None, None, 7.0)


def test_lengths_of_struts_are_checked_in_poses(capsys, tmp_path):
    limits, at = [0.9, float(length(0.6)) - 0.01], f"{length(0.6):.4g}"
    robot = crane(limits=limits)
    with pytest.warns(ParflexWarning, match=f"strut 'ram' is at {at}, outside its limits"):
        parflex.configure(robot, {"boom": 0.6})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parflex.configure(robot, {"boom": 0.6}, ignore_limits=True)
        parflex.configure(robot, {"boom": 0.5})
        parflex.configure(robot, {"boom": 0.5}, ignore_limits=False)
    pose = ("pose", crane_file(tmp_path, "limits", limits), "--pose")
    (said,) = warned(capsys, *pose, "boom=0.6")
    assert said.startswith(f"strut 'ram' is at {at}")
    assert not warned(capsys, *pose, "boom=0.6", "--ignore-limits") and not warned(capsys, *pose, "boom=0.5")


@pytest.mark.parametrize("sign", [-1, 1])
def test_inverse_checks_velocities_and_efforts(capsys, sign, tmp_path):
    rate = float(sign * 0.8 * 0.6 * np.cos(0.6) / length(0.6))  # of the strut while the boom turns at 1 rad/s
    state = {"pose": {"boom": 0.6}, "velocity": {"boom": sign * 1.0}, "acceleration": {"boom": sign * 60.0}}
    inertia = 20 + 5  # about the pivot; the power of the strut is that of the boom
    effort = float((inertia * sign * 60.0 + 20 * 9.81 * np.cos(0.6)) * sign / rate)
    options = ("--pose", "boom=0.6", "--velocity", f"boom={sign}", "--acceleration", f"boom={60 * sign}")
    words = {"velocity_limit": (rate, "moves at {}, faster than")}
    words["effort_limit"] = (effort, "has the effort {}, beyond")
    for key, (exact, verb) in words.items():
        limit = 0.99 * abs(exact)
        said = f"strut 'ram' {verb.format(f'{exact:.4g}')} its {key} {limit:.4g}"
        robot, file = crane(**{key: limit}), crane_file(tmp_path, key, limit)
        assert said in parflex.inverse_dynamics(robot, **state).warnings
        assert said in warned(capsys, "inverse", file, *options)
        assert not warned(capsys, "inverse", file, *options, "--ignore-limits")
        assert said not in parflex.inverse_dynamics(robot, **state, ignore_limits=True).warnings
        inside = parflex.inverse_dynamics(crane(**{key: 1.01 * abs(exact)}), **state).warnings
        assert not any("limit" in sentence for sentence in inside)


def test_an_effort_limit_of_the_call_overrides_that_of_the_file():
    for words, expected in (({}, True), ({"effort_limit": 1e4}, False), ({"effort_limit": {"ram": 1e4}}, False)):
        warned = parflex.inverse_dynamics(crane(effort_limit=1), **words).warnings
        assert any("effort_limit 1" in said for said in warned) == expected


def test_the_effort_limit_of_the_file_does_not_change_how_spare_motors_share():
    free = parflex.load("3rrr", settings={"legs.frame.2.actuated": True})
    low = parflex.load("3rrr", settings={"legs.frame.2.actuated": True, "legs.frame.1.effort_limit": 0.1})
    found = [parflex.inverse_dynamics(robot, acceleration={"x": 5.0}) for robot in (free, low)]
    assert found[0].efforts == found[1].efforts
    assert any("beyond its effort_limit 0.1" in said for said in found[1].warnings)


def test_states_as_arrays_are_checked():
    robot = crane(velocity_limit=0.3, effort_limit=2000)
    at = parflex.configure(robot, {"boom": 0.6})
    rates = at.rates({"boom": 1.0})
    still = np.zeros_like(rates)
    with pytest.warns(ParflexWarning, match="strut 'ram' moves at 0.3.*, faster than its velocity_limit 0.3"):
        parflex.inverse_dynamics(robot, at.q, rates, at.acceleration_bias(rates))
    push = at.accelerations({"boom": 100.0}, still, None)
    with pytest.warns(ParflexWarning, match="strut 'ram' has the effort .*, beyond its effort_limit 2000"):
        parflex.inverse_dynamics(robot, at.q, still, push)
    batch = np.stack([still, rates, -rates]), np.stack([still, *[at.acceleration_bias(rates)] * 2])
    with pytest.warns(ParflexWarning, match="2 of 3 states are answered with a warning: states 1, 2: strut"):
        parflex.inverse_dynamics(robot, at.q, *batch)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parflex.inverse_dynamics(robot, at.q, rates, at.acceleration_bias(rates), ignore_limits=True)
        parflex.inverse_dynamics(robot, at.q, *batch, ignore_limits=True)
        parflex.inverse_dynamics(robot, at.q, still, still)


def test_a_joint_on_its_limit_is_inside_in_single_states_and_batches():
    robot = parflex.load("5r")
    home, still = robot.home, np.zeros(robot.nv)
    on = float(home[robot.coordinates.index("left.1")]) + 1e-10  # positions close to 1e-12
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for rows in ((home, still, still), (np.stack([home] * 2), *[np.stack([still] * 2)] * 2)):
            parflex.inverse_dynamics(five_bar(limits=[on, 9.0]), *rows)


def test_whole_turns_count():
    robot = load_robot("pendulum", settings={"frame.arm.limits": [-1.0, 1.0]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parflex.configure(robot, {"arm": 0.5})
    with pytest.warns(ParflexWarning, match="outside its limits"):
        parflex.configure(robot, {"arm": 0.5 + 2 * np.pi})


def drawn_limits(rng, low, high, fastest):
    """Limits about a range, and a velocity limit about the fastest rate: where they hold the motion, and whether."""
    middle, half = (low + high) / 2, max((high - low) / 2, 1e-3)
    ends = [middle + sign * half * (1 + rng.choice([-1, 1]) * rng.uniform(NEAR, 0.5)) for sign in (-1, 1)]
    most = fastest * (1 + rng.choice([-1, 1]) * rng.uniform(NEAR, 0.5))
    return (ends[0], ends[1]), most, (ends[0] < low and high < ends[1], fastest < most)


@pytest.mark.few
@pytest.mark.parametrize("name", ["delta", "rx90", "gough-stewart", "3rrr", "5r", "orthoglide"])
@pytest.mark.parametrize("seed", range(3))
def test_plans_beyond_limits_are_refused_and_no_others(name, seed):
    rng = np.random.default_rng([seed, *name.encode()])
    robot = parflex.load(name)
    robot = limited(robot, **{n: {"limits": None} for n in robot.coordinates})
    motor = str(rng.choice(robot.motors))
    unit = 0.02 if robot.tree.rate_units[robot.tree.rate_names.index(motor)] != 1 else 0.1  # m or rad
    if seed == 2:  # waves
        motion = {"sines": {motor: [unit * rng.normal(), 0.5 * unit * rng.normal()]}, "frequency": 1.0, "duration": 1.0}
    else:
        moves = [{motor: unit * rng.normal()}, {motor: unit * rng.normal()}]
        motion = {"moves": moves, "law": ["septic", "quintic"][seed], "duration": 0.5}
    free = parflex.plan_motion(robot, motion)
    t = np.linspace(0, float(free.breaks[-1]), SPACED)
    values = np.array([free.at(float(moment))[:2] for moment in t])[:, :, free.names.index(motor)]
    limits, most, (within, slow) = drawn_limits(rng, values[:, 0].min(), values[:, 0].max(), abs(values[:, 1]).max())
    for keys, kept in (({"limits": limits}, within), ({"velocity_limit": most}, slow)):
        of = limited(robot, **{motor: keys})
        if kept:
            parflex.plan_motion(of, motion)
            continue
        with pytest.raises(InputError, match=f"joint '{re.escape(motor)}' .* at t = .* s.*ignore_limits") as refusal:
            parflex.plan_motion(of, motion)
        order = 0 if "limits" in keys else 1
        beyond = np.maximum(values[:, 0] - limits[1], limits[0] - values[:, 0]) if order == 0 else abs(values[:, 1])
        assert refusal.value.value == pytest.approx(values[beyond.argmax(), order], rel=1e-4)
        when = float(re.search("t = ([0-9.e-]+) s", refusal.value.message)[1])  # four digits
        assert free.at(when)[order][free.names.index(motor)] == pytest.approx(refusal.value.value, rel=1e-3)
        parflex.plan_motion(of, motion, ignore_limits=True)


def test_extremes_between_samples_and_jumps_of_velocity_are_seen():
    robot = crane(limits=[0.5, 1.4])
    begin = float(robot.home[robot.coordinates.index("ram")])
    times = [0.0, 0.5, 1.0]
    hump = {"t": times, "ram": [begin, begin, begin], "ram.velocity": [2.0, -2.0, 2.0], "ram.acceleration": [0.0] * 3}
    with pytest.raises(InputError, match=r"strut 'ram' is at 1\..*, outside its limits"):
        parflex.plan_motion(robot, hump)
    back = {"t": [0.0, 0.5, 0.5, 1.0], "ram": [begin, begin + 0.05, begin + 0.05, begin]}
    back |= {"ram.velocity": [0.1, 0.1, -0.2, 0.0], "ram.acceleration": [0.0, 0.0, 0.4, 0.4]}  # -0.2 at the jump alone
    with pytest.raises(InputError, match=r"moves at -0\.2, faster than its velocity_limit 0\.15, at t = 0\.5 s"):
        parflex.plan_motion(crane(velocity_limit=0.15), back)
    parflex.plan_motion(crane(velocity_limit=0.2), back)


def test_the_command_motion_refuses_and_ignores(capsys, tmp_path):
    file = crane_file(tmp_path, "velocity_limit", 0.1)
    slow, fast = (f'{{ moves = [{{ "ram" = 0.05 }}], duration = {t}, law = "quintic" }}' for t in (2, 0.5))
    assert answered(capsys, "motion", file, slow) and answered(capsys, "motion", file, fast, "--ignore-limits")
    error = refused(capsys, "motion", file, fast)
    assert "strut 'ram' moves at 0.1875, faster than its velocity_limit 0.1, at t = 0.25 s" in error["message"]
    assert "change the motion or the limit, or ignore the limits" in error["hint"]


def poses_along(robot, motion, times):
    """Positions of a robot whose motors follow sines, pose after pose."""
    q, rows = robot.home, []
    for t in times:
        wave = np.sin(2 * np.pi * motion["frequency"] * t)
        given = {n: float(robot.home[robot.coordinates.index(n)]) + a * wave for n, (a,) in motion["sines"].items()}
        q = robot.assemble(given, q)
        rows.append(q)
    return np.array(rows)


@pytest.mark.few
@pytest.mark.parametrize(("kind", "seed"), [(kind, 0) for kind in CHAINS])
def test_runs_warn_of_every_joint_and_of_no_others(kind, seed, tmp_path):
    rng = np.random.default_rng([seed, *kind.encode()])
    path, t, rows = tmp_path / "drawn.toml", np.linspace(0, 1, 201), None
    while rows is None:
        drawn, motors = draw(rng, kind, 2 if kind == "five-bar" else 1)
        path.write_text(drawn.text)
        robot = parflex.load(path, actuation="drawn")
        motion = {"sines": {name: [float(rng.uniform(-0.1, 0.1))] for name in motors}, "frequency": 2.0}
        with contextlib.suppress(UnreachableError):
            rows = poses_along(robot, motion, t)
    values = rows[:, [robot.coordinates.index(name) for name in drawn.joints]]
    rates = np.abs(np.gradient(values, t, axis=0))[1:-1]
    limits, wanted = {}, set()
    for k, name in enumerate(drawn.joints):
        found, most, (within, slow) = drawn_limits(rng, values[:, k].min(), values[:, k].max(), rates[:, k].max())
        # differences of samples err by 0.03 of a rate that is 12 times as quick: limits as near are moved away
        most *= 1.05 if slow else 0.95
        limits[name] = {"limits": found, "velocity_limit": most}
        wanted |= set() if within else {(name, "limits")}
        wanted |= set() if slow else {(name, "velocity_limit")}
    text = drawn.text
    for name, keys in limits.items():
        low, high = map(float, keys["limits"])
        more = f'name = "{name}"\nlimits = [{low!r}, {high!r}]\nvelocity_limit = {float(keys["velocity_limit"])!r}'
        text = text.replace(f'name = "{name}"', more)
    path.write_text(text)
    run = parflex.simulate(parflex.load(path, actuation="drawn"), motion, 1.0, step=1e-3, out_step=2e-3)
    said = [re.match(r"joint '(\S+)' (is at|moves)", sentence) for sentence in run.summary["warnings"]]
    assert {(word[1], "limits" if word[2] == "is at" else "velocity_limit") for word in said if word} == wanted
    robot = parflex.load(path, actuation="drawn")
    ignoring = parflex.simulate(robot, motion, 1.0, step=1e-3, out_step=2e-3, ignore_limits=True)
    assert not any("limit" in sentence for sentence in ignoring.summary["warnings"])
    assert np.array_equal(run["energy.total"], ignoring["energy.total"])


def test_runs_know_the_motion_between_their_rows():
    begin = float(length(0.5))
    robot = crane(limits=[begin - 0.045, begin + 0.055])
    motion = {"sines": {"ram": [0.05]}, "frequency": 2.0}
    run = parflex.simulate(robot, motion, 1.0, step=1e-2, out_step=0.25)  # rows where the sine is zero
    assert np.ptp(run["q.ram"]) < 1e-6
    lowest = f"strut 'ram' is at {begin - 0.05:.4g}, outside its limits"
    assert sum(sentence.startswith(lowest) for sentence in run.summary["warnings"]) == 1


def test_runs_check_efforts_and_the_command_ignores(capsys, tmp_path):
    motion = "{ sines = { ram = [0.02] }, frequency = 1 }"
    run = parflex.simulate(crane(), motion, 1.0, step=1e-2)
    row = int(np.abs(run["effort.ram"]).argmax())
    most = float(np.abs(run["effort.ram"][row]))
    words = ("--motion", motion, "--time", 1, "--step", 0.01, "-o", tmp_path / "run.csv")
    file = crane_file(tmp_path, "effort_limit", 0.9 * most)
    expected = f"strut 'ram' has the effort {run['effort.ram'][row]:.4g}, beyond its effort_limit {0.9 * most:.4g}, "
    assert warned(capsys, "simulate", file, *words) == [f"{expected}at t = {run.t[row]:.4g} s"]
    assert not warned(capsys, "simulate", file, *words, "--ignore-limits")
    assert not warned(capsys, "simulate", crane_file(tmp_path, "effort_limit", 1.1 * most), *words)


def test_where_a_stop_acts_its_range_is_not_warned_of():
    robot = crane({"limits": [-0.2, 0.7], "stop": {"stiffness": 1e5, "damping": 1e3}})
    runs = [parflex.simulate(robot, time=1.0, effort=[0.0], step=1e-3, stops=stops) for stops in (True, False)]
    said = [[s for s in run.summary["warnings"] if "outside its limits" in s] for run in runs]
    assert runs[0]["q.boom"].min() < -0.2 and not said[0]
    assert len(said[1]) == 1 and said[1][0].startswith("joint 'boom' is at -")


REFERENCE = "circle:radius=0.05,time=0.5"


def five_bar(**limits):
    return limited(parflex.load("5r"), **{"left.1": limits})


@pytest.fixture(scope="module")
def tracked():
    return parflex.run_control(five_bar(), REFERENCE)


@pytest.mark.verify
def test_references_beyond_limits_are_refused(tracked, capsys):
    places, t = tracked["reference.left.1"], tracked["t"]
    low, high, rate = float(places.min()), float(places.max()), float(np.abs(np.gradient(places, t)).max())
    for limits in ([low - 0.01, high - 0.01], [low + 0.01, high + 0.01]):
        with pytest.raises(InputError, match=r"joint 'left.1' is at .*, outside .*, at t = .* s.*ignore_limits"):
            parflex.run_control(five_bar(limits=limits), REFERENCE)
    with pytest.raises(InputError, match=r"joint 'left.1' moves at .*, faster than .*, at t = .* s"):
        parflex.run_control(five_bar(velocity_limit=0.9 * rate), REFERENCE)
    inside = five_bar(limits=[low - 0.01, high + 0.01], velocity_limit=1.1 * rate)
    assert not any("limit" in said for said in parflex.run_control(inside, REFERENCE).summary["warnings"])
    words = ("control", "5r", "--law", "ctc", "--reference", REFERENCE)
    words = (*words, "--set", f"legs.frame.1.velocity_limit={0.5 * rate}")
    assert "faster than its velocity_limit" in refused(capsys, *words)["message"]
    assert not warned(capsys, *words, "--ignore-limits")


@pytest.mark.verify
def test_references_are_checked_at_passive_joints_and_in_studies():
    robot = parflex.load("3rrr", working_mode="+-+", settings={"legs.frame.2.limits": [3.0, 3.1]})
    with pytest.raises(InputError, match=r"joint 'leg\d.2' is at .* \(and 2 more limits\)"):
        parflex.run_control(robot, REFERENCE)
    table = {"robot": "3rrr", "working_mode": "+-+", "settings": {"legs.frame.1.velocity_limit": 0.01}}
    table |= {"reference": {"kind": "circle", "radius": 0.05, "time": 0.5}, "laws": ["ctc"], "templates": 1}
    with pytest.raises(InputError, match=r"faster than its velocity_limit 0\.01"):
        parflex.run_study(parflex.StudyFile.model_validate(table))


@pytest.mark.verify
def test_efforts_of_controlled_runs_warn(tracked):
    most = float(np.abs(tracked["effort.left.1"]).max())
    low = five_bar(effort_limit=0.9 * most)
    said = [s for s in parflex.run_control(low, REFERENCE).summary["warnings"] if "effort_limit" in s]
    assert len(said) == 1 and re.fullmatch(r"joint 'left.1' has the effort .*, beyond its .*, at t = .* s", said[0])
    for words in ({"ignore_limits": True}, {"effort_limit": 2 * most}):
        assert not any("effort_limit" in s for s in parflex.run_control(low, REFERENCE, **words).summary["warnings"])


@pytest.mark.parametrize("form", ["urdf", "mjcf"])
def test_limits_go_to_other_formats_and_back(form, tmp_path):
    settings = {"frame.upper.limits": [-1, 2], "frame.upper.velocity_limit": 3, "frame.upper.effort_limit": 40}
    settings |= {"frame.lower.velocity_limit": 5, "frame.lower.effort_limit": 6}
    file = tmp_path / f"arm.{'urdf' if form == 'urdf' else 'xml'}"
    (parflex.export_urdf if form == "urdf" else parflex.export_mjcf)(load_robot("planar-arm", settings=settings), file)
    back = parflex.load(parflex.import_robot(file, tmp_path / "back.toml").file)
    wanted = (("upper", (-1, 2), 3, 40), ("lower", None, 5, 6), ("hand", None, None, None))
    for name, limits, velocity, effort in wanted:
        link = back.tree.links[back.tree.number(name)]
        assert (link.limits, link.effort_limit) == (limits, effort)
        assert link.velocity_limit == (velocity if form == "urdf" else None)  # MuJoCo has none
