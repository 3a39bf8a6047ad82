"""Beams in robot files: what is refused, and with which sentence."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from support.command_line import answered, refused
from support.robots import load_robot, robot_file

from parflex import ParflexError, natural_frequencies
from parflex.bodies.sections import SHAPES
from parflex.description.elastic_tables import SECTION_KEYS, SectionTable

ROBOT = robot_file("clamped-bar").read_text()
BEAM = 'beam = { length = 0.8, material = "steel", section = "bar" }'


def beam(keys: str) -> tuple[str, str]:
    """The beam, and the same with more keys."""
    return BEAM, BEAM.replace(" }", f", {keys} }}")


BAD = {  # what is replaced, by what, and words of the sentence
    "universal joint": (
        BEAM,
        'joint = "universal"\n' + BEAM.replace(" }", ", elements = 3 }"),
        "a beam needs a joint with one axis or none",
    ),
    "no length": ("length = 0.8", "length = 0", "length 0.0 is not positive"),
    "negative length": ("length = 0.8", 'length = "-0.8"', "not positive"),
    "negative modulus": ("200e9", "-200e9", "elastic_modulus = -200000000000.0 is not positive"),
    "no density": ("density = 7800", "density = 0", "density = 0.0 is not positive"),
    "two shear moduli": ("density = 7800", "density = 7800\nshear_modulus = 8e10\npoisson_ratio = 0.3", "both given"),
    "no material": ("density = 7800", "density = 7800\npoisson_ratio = 0.7", "no material has a Poisson ratio of 0.7"),
    "unknown shape": ('"rectangle"', '"square"', "'square' is not known here"),
    "half a section": ("z = 0.02\n", "", "a rectangle section needs 'z'"),
    "flat section": ("z = 0.02\n", "z = 0\n", "z = 0.0 is not positive"),
    "size of another section": ("z = 0.02\n", "z = 0.02\ndiameter = 0.1\n", "a rectangle section has no 'diameter'"),
    "tube full of wall": (
        '"rectangle"\ny = 0.01\nz = 0.02',
        '"tube"\ndiameter = 0.02\nthickness = 0.01',
        "leaves no hole",
    ),
    "box full of wall": ('"rectangle"', '"box"\nthickness = 0.005', "the wall of this box leaves no hole"),
    "section that is none": ("J = 5e-9", "J = -5e-9", "J = -5e-09 is not positive"),
    "unknown section": ('section = "bar"', 'section = "bat"', "there is no section 'bat'; did you mean 'bar'"),
    "unknown material": ('material = "steel"', 'material = "stel"', "there is no material 'stel'"),
    "half an element": (*beam("elements = 0"), "elements"),
    "shear as a word": (*beam('shear = "yes"'), "shear"),
    "coefficient without shear": (*beam("shear_coefficient = 0.8"), "write shear = true"),
    "too large a coefficient": (
        *beam("shear = true, shear_coefficient = 1.2"),
        "shear_coefficient = 1.2 is not a shear coefficient",
    ),
    "negative share": ("J = 5e-9", "J = 5e-9\nky = -0.8", "ky = -0.8 is not positive"),
    "shear of plain numbers": (
        BEAM,
        BEAM.replace('"bar"', '"plain"').replace(" }", ", shear = true }"),
        "the section 'plain' has no shear coefficients; give its ky and kz",
    ),
}


def test_every_shape_of_a_section_is_made_of_its_keys_and_on_the_page():
    words = get_args(SectionTable.model_fields["shape"].annotation)
    assert set(words) == set(SECTION_KEYS) == set(SHAPES)
    page = (Path(__file__).parents[1] / "docs" / "robot-file.md").read_text(encoding="utf-8")
    for word in words:
        assert tuple(inspect.signature(SHAPES[word]).parameters) == SECTION_KEYS[word]
        assert re.search(rf'`(shape = )?"{word}"`', page), word


@pytest.mark.parametrize("case", BAD)
def test_a_beam_that_cannot_be_is_refused_with_one_sentence(case, tmp_path, capsys):
    old, new, words = BAD[case]
    assert old in ROBOT
    path = tmp_path / "bar.toml"
    path.write_text(ROBOT.replace(old, new, 1))
    error = refused(capsys, "frequencies", path)
    assert words in f"{error['message']}; {error['hint']}" or words in str(error["key"])
    assert error["file"] == str(path) and error["key"] and error["hint"]


def test_motions_that_nothing_holds_are_named_by_what_moves(capsys):
    words = ("frequencies", robot_file("clamped-bar"), "--set", "frame.bar.joint=revolute", "--modes", "2")
    answer = answered(capsys, *words)
    assert answer["free_motions"] == ["bar"]
    assert len(answer["frequencies_hz"]) == 2 and min(answer["frequencies_hz"]) > 1


def test_more_modes_than_there_are_and_a_rolled_beam_in_the_plane_are_refused(capsys):
    with pytest.raises(ParflexError, match="a planar beam cannot be rolled"):
        load_robot("clamped-bar", settings={"motion": "planar", "frame.bar.beam.roll": 1})
    assert len(natural_frequencies(load_robot("clamped-bar"), modes=6).frequencies) == 6
    error = refused(capsys, "frequencies", robot_file("clamped-bar"), "--modes", "7")
    assert error["message"] == "7 modes are requested, but the robot has 6"
    assert error["key"] == "modes" and error["value"] == 7


def test_a_spring_in_a_joint_that_no_motor_moves_is_an_elastic_clamp():
    """A stiff spring is a clamp, a soft one a swing of the rigid bar: omega^2 = 3 k / (m L^2)."""

    def lowest(**joint) -> float:
        settings = {f"frame.bar.{key}": value for key, value in joint.items()}
        return natural_frequencies(load_robot("clamped-bar", settings=settings), modes=1).frequencies[0]

    stiff, soft = (lowest(joint="revolute", spring={"stiffness": k}) for k in (1e9, 1e-3))
    assert stiff == pytest.approx(lowest(), rel=1e-5)  # the spring gives 1e-6 of what the bar does
    swing = np.sqrt(3 * 1e-3 / (7800 * 2e-4 * 0.8**3)) / (2 * np.pi)
    assert soft == pytest.approx(swing, rel=1e-5)  # the bar bends by 1e-6 of what the spring gives


def test_a_section_by_numbers_has_the_polar_moment_of_both_planes():
    robot = load_robot(
        "clamped-bar", settings={"frame.bar.beam.section": "plain", "materials.steel.shear_modulus": 8e10}
    )
    torsion = np.sqrt(3 * 8e10 * 5e-9 / (7800 * 8e-9 * 0.8**2)) / (2 * np.pi)  # linear twist of one element
    result = natural_frequencies(robot, modes=6).frequencies
    assert np.abs(result / torsion - 1).min() < 1e-9
