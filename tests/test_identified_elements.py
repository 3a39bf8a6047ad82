"""Springs and dampers that identification finds: between points by another Lagrangian, in joints by hand."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from support.oracles import led_records

import parflex
from parflex import InputError
from parflex.identification.unknowns import taken_from_file, unknowns
from parflex.identification.written_robot import changed_elements, write_robot

Array = np.ndarray
SPRUNG = Path(__file__).parent / "robots" / "sprung-five-bar.toml"
NOISE = (2e-5, 2 * np.pi / 2**17, 0.05, 60.0)  # rad, rad, N m, N m
WRONG = {"element.across.stiffness": 460, "element.across.rest": 0.2, "element.dash.damping": 18}
TRUE = {"k[across]": 400.0, "k_rest[across]": 100.0, "d[across]": 4.0, "d[dash]": 15.0}


@cache
def clean() -> dict[str, Array]:
    """The linkage with springs, led about home."""
    oracle, t = led_records.LedRobot(SPRUNG), np.arange(1000) * 3e-3
    return oracle.led(t, oracle.about_home(t, 3, 0.12))


def noisy(seed: int) -> dict[str, Array]:
    return led_records.as_measured(clean(), seed, *NOISE)


@pytest.mark.verify
def test_springs_and_dampers_between_points_are_found_where_the_file_has_them_wrong():
    found = parflex.identify(parflex.load(str(SPRUNG), settings=WRONG), clean())
    for name, value in TRUE.items():
        # central differences at 3 ms and 4 Hz leave 1e-4 of rates
        assert abs(found.parameters[name].value / value - 1) < 2e-3, name
    assert not found.warnings
    assert "taken from the file as they are: cable 'rope', spring 'curve'" in found.steps


def test_found_springs_are_within_their_intervals_and_in_the_file(tmp_path):
    robot = parflex.load(str(SPRUNG), settings=WRONG)
    found = parflex.identify(robot, noisy(1))
    for name, value in TRUE.items():
        one = found.parameters[name]
        assert abs(one.value - value) < 3 * one.deviation < 0.1 * value, name
    assert write_robot(robot, found, tmp_path / "found.toml") == []
    written = {one.name: one for one in parflex.load(str(tmp_path / "found.toml")).tree.elements}
    assert written["across"].stiffness == pytest.approx(found.theta["k[across]"])
    assert written["across"].rest == pytest.approx(found.theta["k_rest[across]"] / found.theta["k[across]"])
    assert written["dash"].damping == pytest.approx(found.theta["d[dash]"])
    assert written["rope"].stiffness == 300


@pytest.mark.verify
def test_intervals_of_springs_hold_what_they_say(figure):
    robot = parflex.load(str(SPRUNG))
    several = [parflex.identify(robot, noisy(seed)) for seed in range(20)]
    assert not any(one.warnings for one in several)
    off = np.array([[(p.value - p.file_value) / p.deviation for p in one.parameters.values()] for one in several])
    held = float((np.abs(off) < 1.96).mean())
    figure("springs and dampers between points: share of intervals that hold", held, "0.88 to 0.995")
    assert 0.88 < held < 0.995  # 300 numbers that are correlated within a record


@pytest.mark.few
@pytest.mark.parametrize(("settings", "wrong"), [(WRONG, True), ({"element.rope.stiffness": 375}, True), ({}, False)])
def test_an_element_that_is_kept_and_wrong_leaves_residuals_above_noise(settings, wrong):
    robot = parflex.load(str(SPRUNG), settings=settings)
    found = parflex.identify(robot, noisy(2), keep=["all"])
    assert (
        "taken from the file as they are: spring 'across', damper 'dash', cable 'rope', spring 'curve'" in found.steps
    )
    assert any("above the noise level" in text for text in found.warnings) == wrong
    assert wrong or not found.warnings


@pytest.mark.verify
def test_springs_are_found_by_simulation_beside_a_cable():
    oracle, t = led_records.LedRobot(SPRUNG), np.arange(1000) * 1e-3
    series, middle = (oracle.about_home(at, 3, 0.12) for at in (t, t + 5e-4))
    record = led_records.as_measured(oracle.held(t, series, middle, 2000.0, 40.0), 1, *NOISE)
    words = {"position": "q", "effort": "effort", "reference": "ref"}
    columns = {key: {m: f"{word}.{m}" for m in ("left", "right")} for key, word in words.items()}
    columns |= {"controller": {"kp": 50.0, "kv": 40.0}}
    found = parflex.identify(parflex.load(str(SPRUNG), settings=WRONG), record, columns, "didim")
    for name, value in TRUE.items():
        one = found.parameters[name]
        assert abs(one.value - value) < 3 * one.deviation < 0.1 * value, name
    assert not found.warnings


# -- in joints, by hand ----------------------------------------------------------------------------------------------


AXIS = """
format = 1
name = "sprung-axis"
end_effector = "axis"
gravity = [0, 0, 0]
[[frame]]
name = "axis"
joint = "prismatic"
actuated = true
inertia = { mass = 3 }
spring = { stiffness = 100, rest = 0.05 }
damper = 7
"""


def moved(t: Array) -> tuple[Array, Array, Array]:
    """Position, rate and acceleration."""
    w = 2 * np.pi * np.array([0.5, 1.0, 2.0])[:, None]
    size = np.array([0.1, 0.05, 0.02])[:, None]
    x, v, a = size * np.sin(w * t), size * w * np.cos(w * t), -size * w**2 * np.sin(w * t)
    return x.sum(axis=0), v.sum(axis=0), a.sum(axis=0)


def axis_record() -> dict[str, Array]:
    t = np.arange(4000) * 1e-3
    x, v, a = moved(t)
    return {"t": t, "q.axis": x, "effort.axis": 4.0 * a + 5.0 * v + 0.6 * np.sign(v) + 240.0 * (x - 0.02)}


@pytest.mark.parametrize("friction", ["none", "offset"])
def test_spring_rest_and_damper_of_a_joint_are_found(tmp_path, friction):
    path, record = tmp_path / "axis.toml", axis_record()
    path.write_text(AXIS)
    robot = parflex.load(str(path))
    if friction == "none":
        record["effort.axis"] = record["effort.axis"] - 0.6 * np.sign(moved(record["t"])[1])
    found = parflex.identify(robot, record, friction=friction)
    value = {name: one.value for name, one in found.parameters.items()}
    # without dry friction the low-pass leaves 1e-9; with it signs change between samples, up to half a step late
    near = 1e-7 if friction == "none" else 1e-3
    assert value["M[axis]"] == pytest.approx(4.0, rel=near)
    assert value["k[axis]"] == pytest.approx(240.0, rel=near)
    written = tmp_path / "found.toml"
    assert write_robot(robot, found, written) == []
    terms = parflex.load(str(written)).tree.links[0].terms
    assert terms.stiffness == pytest.approx(240.0, rel=near)
    if friction == "none":
        assert (value["d[axis]"], value["k_rest[axis]"]) == (pytest.approx(5.0, rel=near), pytest.approx(4.8, rel=near))
        assert (terms.rest, terms.damper) == (pytest.approx(0.02, rel=near), pytest.approx(5.0, rel=near))
    else:  # what friction explains alike has its name
        assert found.parameters["FV[axis]"].made_of == "FV[axis] + d[axis]"
        assert found.parameters["offset[axis]"].made_of == "offset[axis] - k_rest[axis]"
        assert value["FV[axis]"] == pytest.approx(5.0, rel=1e-3)
        assert terms.viscous + terms.damper == pytest.approx(5.0, rel=1e-3)
        assert terms.offset - terms.stiffness * terms.rest == pytest.approx(-4.8, rel=1e-2)


def test_springs_of_joints_that_are_kept_are_said(tmp_path):
    path = tmp_path / "axis.toml"
    path.write_text(AXIS)
    robot = parflex.load(str(path))
    assert taken_from_file(robot, unknowns(robot)) == []
    assert taken_from_file(robot, unknowns(robot, keep=["axis"])) == ["damper of 'axis'", "spring of 'axis'"]
    path.write_text(AXIS.replace(", rest = 0.05", ""))
    robot = parflex.load(str(path))
    assert taken_from_file(robot, unknowns(robot)) == ["rest of the spring of 'axis'"]


def test_a_rest_that_the_file_does_not_write_is_zero_by_construction(tmp_path):
    path = tmp_path / "axis.toml"
    path.write_text(AXIS.replace(", rest = 0.05", ""))
    names = [one.name for one in unknowns(parflex.load(str(path)))]
    assert "k[axis]" in names
    assert "k_rest[axis]" not in names


# -- in legs and struts ----------------------------------------------------------------------------------------------


def test_numbers_of_springs_in_legs_are_written_for_each_leg(tmp_path):
    path = SPRUNG.parent / "struts.toml"
    text = path.read_text().replace("actuated = true", "actuated = true\nstiffness = 300\nrest = 0.7\ndamping = 4")
    (tmp_path / "struts.toml").write_text(text)
    robot = parflex.load(str(tmp_path / "struts.toml"))
    theta = {one.name: one.value for one in unknowns(robot, "symmetric") if one.symbol not in ("FV", "FS")}
    assert theta["k_rest[B.strut]"] == pytest.approx(210.0)
    theta |= {"k[B.strut]": 250.0, "d[C.strut]": 5.0, "k[hang]": 400.0, "d[D.strut]": -1.0}
    found = SimpleNamespace(theta=theta, friction="file", estimator="wls", measurements=[], used=0)
    warnings = write_robot(robot, found, tmp_path / "found.toml")
    assert warnings == ["the damping of 'D.strut' is -1: the file has zero instead"]
    written = parflex.load(str(tmp_path / "found.toml"))
    terms = {link.name: link.terms for link in written.tree.links}
    assert (terms["B.strut"].stiffness, terms["B.strut"].rest) == (250.0, pytest.approx(0.84))
    assert (terms["A.strut"].stiffness, terms["A.strut"].rest) == (300.0, pytest.approx(0.7))
    assert [terms[f"{leg}.strut"].damper for leg in "ACD"] == [4.0, 5.0, 0.0]
    assert (written.tree.elements[0].stiffness, written.tree.elements[0].rest) == (400.0, pytest.approx(0.375))


def test_friction_of_struts_is_not_lost_silently():
    robot = parflex.load(str(SPRUNG.parent / "struts.toml"))
    _, warnings = changed_elements(robot, {one.name: one.value for one in unknowns(robot, "symmetric")})
    assert len(warnings) == 6
    assert "FV, FS of the strut 'A.strut' are not in the file" in warnings[0]


def test_names_that_cannot_be_kept_are_refused():
    with pytest.raises(InputError, match="'acros' has no spring and no damper that is looked for"):
        parflex.identify(parflex.load(str(SPRUNG)), {}, keep=["acros"])
