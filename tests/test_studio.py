"""The studio: designs follow sliders, the best is kept, two are compared, and their robot files hold them."""

from __future__ import annotations

import numpy as np
import pytest

import parflex
from parflex import InputError, UnreachableError
from parflex.sweeps.sweep_file import read_design

pytest.importorskip("viser", reason="the extra 'view' is not installed")
from parflex.view.page.session import Session
from parflex.view.scene.robot_scene import scene
from parflex.view.studio.design_desk import DesignDesk, ShownDesign, check_robot
from parflex.view.studio.response_bars import response_bars
from parflex.view.studio.studio_viewer import StudioViewer

DESIGN = """
robot = "3rrr-flexible"
[variables.constants.proximal]
lower = 0.45
upper = 0.55
[variables."constants.distal"]
choices = [0.38, 0.4, 0.42]
[responses.stiffness]
response = "stiffness:platform.x"
pose = { x = 0.0, y = 0.0 }
[responses.mass]
response = "mass"
[objective]
maximise = "stiffness"
[[constraint]]
response = "mass"
upper = 4.3
"""


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    path = tmp_path_factory.mktemp("studio") / "design.toml"
    path.write_text(DESIGN)
    return DesignDesk(parflex.load("3rrr-flexible"), read_design(path), "3rrr-flexible")


def test_what_a_design_answers_is_what_its_robot_file_answers(desk, tmp_path):
    values = {"constants.proximal": 0.47, "constants.distal": 0.42}
    shown = desk.look_at(values)
    path = desk.write(values, tmp_path)
    robot = parflex.load(path)
    for word, name in (("stiffness:platform.x", "stiffness"), ("mass", "mass")):
        found = parflex.sensitivities(robot, word, "constants.arm", {"x": 0.0, "y": 0.0}).value
        assert shown.responses[name] == pytest.approx(found, rel=1e-9)
    assert desk.write(values, tmp_path) != path  # nothing is replaced


def test_what_is_seen_of_a_design_is_its_robot_where_it_is(desk):
    """Without reading its file again: positions, frequencies and cells of the map are those of the robot file."""
    values = {"constants.proximal": 0.47, "constants.distal": 0.42}
    session = Session(desk.robot, {"x": 0.01, "y": -0.02, "theta": 0.05})
    sight, robot = desk.sight(session, values), desk.robot_of(values)
    place = desk.place(session)
    q = robot.assemble(place)
    assert sight.q == pytest.approx(q, abs=1e-9)  # loops close to 1e-12
    assert sight.frequencies == pytest.approx(parflex.natural_frequencies(robot, place, 4).frequencies, rel=1e-8)
    own = [
        parflex.natural_frequencies(one, parflex.configure(one, q), 1).frequencies[0] for one in (robot, sight.robot)
    ]
    assert own[1] == pytest.approx(own[0], rel=1e-10)
    assert scene(sight.robot).vertices(q) == pytest.approx(scene(robot).vertices(q), abs=2e-3)  # thickness follows home
    corner = {word: float(axis[0]) for word, axis in sight.axes.items()}
    lowest = parflex.natural_frequencies(robot, place | corner, 1).frequencies[0]
    assert sight.lowest[0] == pytest.approx(lowest, rel=1e-8)


def test_a_design_that_has_no_home_is_left_to_its_file_which_says_so(desk):
    values = {"constants.proximal": 0.2, "constants.distal": 0.1}
    assert desk.sight(Session(desk.robot), values) is None
    with pytest.raises(UnreachableError):
        desk.robot_of(values).home  # noqa: B018 - it is found where it is asked for


def test_a_design_that_cannot_be_shown_is_not_written(desk, tmp_path):
    viewer = StudioViewer(desk, port=0, folder=tmp_path)
    try:
        viewer._warming.join()
        viewer._do_design({"constants.proximal": 0.2, "constants.distal": 0.1})
        viewer._do_write(None)
        assert viewer.tab.note.content.startswith("Not written") and not list(tmp_path.iterdir())
        viewer._do_design(desk.start)
        assert viewer.tab.note.content == ""
        viewer._do_write(None)
        assert len(list(tmp_path.iterdir())) == 1
    finally:
        viewer.close()


def test_bars_show_values_limits_and_the_other_design(desk, monkeypatch):
    monkeypatch.setattr(desk, "kept", ShownDesign({}, {"stiffness": 1e6, "mass": 4.0}))
    page = response_bars(desk, ShownDesign({}, {"stiffness": 2e6, "mass": 4.4}, "a reason <&>"))
    assert "2e+06 N/m (+100.00 %)" in page and "limit 4.3" in page and "a reason &lt;&amp;&gt;" in page
    assert page.count("#dc2626") == 2  # the reason, and the mass beyond its limit


def test_beams_of_a_design_are_drawn_as_thick_as_they_are(desk):
    """Sections stand in the file alone, which is not read again while a slider moves."""
    values = {"sections.rod.diameter": 0.05}
    sight, robot = desk.sight(Session(desk.robot), values, cells=False), desk.robot_of(values)
    drawn = [scene(one).vertices(sight.q) for one in (sight.robot, robot, desk.robot)]
    assert drawn[0] == pytest.approx(drawn[1], abs=1e-9)  # home is found to 1e-12, lengths follow from it
    # half of 0.05 - 0.02 m, along the axis nearest to a corner of 24: at most half of 15 degrees away, cos 0.991
    assert np.abs(drawn[2] - drawn[1]).max() == pytest.approx(0.015, rel=0.01)


def test_text_of_a_design_is_sent_before_its_picture_and_only_what_changed(desk, tmp_path, monkeypatch):
    """A browser draws for a quarter of a second after a message about the scene, and text waits for it."""
    viewer = StudioViewer(desk, port=0, folder=tmp_path)
    sent: list[str] = []
    try:
        viewer._warming.join()
        viewer._do_design({"constants.proximal": 0.48, "constants.distal": 0.4})
        plain = viewer.server._websock_server.queue_message

        def noted(message):
            sent.append(f"{type(message).__name__} {getattr(message, 'name', '')}")
            plain(message)

        monkeypatch.setattr(viewer.server._websock_server, "queue_message", noted)
        viewer._do_design({"constants.proximal": 0.49, "constants.distal": 0.4})
    finally:
        viewer.close()
    kinds = [one.split()[0] for one in sent]
    text = kinds.count("GuiUpdateMessage")
    assert text == 3 and kinds[:text] == ["GuiUpdateMessage"] * text  # bars, frequencies, range of the map
    assert set(kinds[text:]) == {"SceneNodeUpdateMessage"} and "SceneNodeUpdateMessage /robot/beams" in sent
    assert not any("/robot/ground" in one for one in sent)  # it stays where it is
