"""Bodies given by modes in files: what is refused, and with which sentence."""

from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from support.catalogue import CATALOGUE
from support.command_line import refused
from support.oracles.beam_robots import HEXAGON
from support.oracles.modal_data import Modes, invented
from support.robots import robot_file

import parflex
from parflex.bodies.modal import load_modal, save_modal

BODY = invented(HEXAGON, 4, seed=1)
ROBOT = robot_file("modal-platform").read_text()


def mixed() -> np.ndarray:
    shapes = BODY.shapes.copy()
    shapes[1] += 0.1 * shapes[0]
    return shapes


def at(array: np.ndarray, index: object, value: float) -> np.ndarray:
    changed = np.array(array, dtype=complex if isinstance(value, complex) else float)
    changed[index] = value
    return changed


K, N = BODY.stiffnesses, len(BODY.nodes)
DATA: dict[str, tuple[dict, str, str]] = {  # arrays of the file, the key that is named, and words of the sentence
    "shapes of fewer nodes": ({"shapes": BODY.shapes[:, 1:]}, "shapes", f"do not match the {N} nodes"),
    "shapes without rotations": ({"shapes": BODY.shapes[:, :, :3]}, "shapes", f"do not match the {N} nodes"),
    "shapes of one mode": ({"shapes": BODY.shapes[0]}, "shapes", "do not match"),
    "a number for the shapes": ({"shapes": 1.0}, "shapes", "do not match"),
    "no modes": (
        {"shapes": BODY.shapes[:0], "modal_masses": K[:0], "modal_stiffnesses": K[:0], "damping_ratios": K[:0]},
        "shapes",
        "no mode",
    ),
    "a translation that is no number": ({"shapes": at(BODY.shapes, (0, 1, 2), np.nan)}, "shapes", "not a number"),
    "an endless rotation": ({"shapes": at(BODY.shapes, (0, 1, 4), np.inf)}, "shapes", "not a number"),
    "a node nowhere": ({"nodes": at(BODY.nodes, (2, 0), np.nan)}, "nodes", "not a number"),
    "flat nodes": ({"nodes": BODY.nodes[:, :2]}, "nodes", "n x 3"),
    "a negative stiffness": (
        {"modal_stiffnesses": at(K, 2, -5.0)},
        "modal_stiffnesses",
        "mode 3 has modal stiffness -5",
    ),
    "a rigid mode": ({"modal_stiffnesses": at(K, 0, 0.0)}, "modal_stiffnesses", "leave rigid-body motions out"),
    "a complex stiffness": ({"modal_stiffnesses": at(K, 0, 1 + 1j)}, "modal_stiffnesses", "complex numbers"),
    "a stiffness that is no number": ({"modal_stiffnesses": at(K, 1, np.nan)}, "modal_stiffnesses", "not a number"),
    "stiffnesses as words": ({"modal_stiffnesses": np.array(["a"] * 4)}, "modal_stiffnesses", "no numbers"),
    "too few stiffnesses": ({"modal_stiffnesses": K[:3]}, "modal_stiffnesses", "3 values for 4 modes"),
    "one stiffness": ({"modal_stiffnesses": 5.0}, "modal_stiffnesses", "for 4 modes"),
    "complex shapes": ({"shapes": at(BODY.shapes, (0, 0, 0), 1j)}, "shapes", "complex numbers"),
    "modes that are not orthogonal": ({"shapes": mixed()}, "shapes", "modes 1 and 2 are not orthogonal"),
    "one mode twice": ({"shapes": BODY.shapes[[0, 0, 2, 3]]}, "shapes", "not orthogonal"),
    "a mode of nothing": ({"shapes": at(BODY.shapes, 1, 0.0)}, "shapes", "mode 2 moves no mass"),
    "modal masses of other shapes": (
        {"modal_masses": np.full(4, 2.0)},
        "modal_masses",
        "modal mass 2, its nodes have 1",
    ),
    "a title that is a number": ({"title": 5.0}, "title", "holds no text"),
    "a negative mass": ({"masses": at(BODY.masses, 7, -1.0)}, "masses", "not positive"),
    "no mass": ({"masses": 0 * BODY.masses}, "masses", "not positive"),
    "masses of other nodes": ({"masses": BODY.masses[1:]}, "masses", f"{N - 1} values for {N} nodes"),
    "damping that feeds": ({"damping_ratios": at(K, 0, -0.1)}, "damping_ratios", "negative"),
    "second moments of other nodes": ({"second_moments": BODY.second_moments[1:]}, "second_moments", "do not match"),
    "second moments that are skew": (
        {"second_moments": at(BODY.second_moments, (8, 0, 1), 1.0)},
        "second_moments",
        "symmetric",
    ),
    "negative second moments": ({"second_moments": -BODY.second_moments}, "second_moments", "negative"),
    "second moments that cannot turn": (
        {"shapes": at(BODY.shapes, (slice(None), 8, slice(3, 6)), np.nan)},
        "second_moments",
        "no rotations",
    ),
    "two nodes of one name": ({"interface": np.array(["a", "b", "a"])}, "interface", "one name"),
    "more names than nodes": ({"interface": np.array([str(k) for k in range(N + 1)])}, "interface", "do not match"),
    "numbers for names": ({"interface": np.arange(6)}, "interface", "no text"),
    "a name with a dot": ({"interface": np.array(["a.b"])}, "interface", "is not a valid node name"),
    "no nodes": ({"nodes": None}, "nodes", "the array 'nodes' is missing"),
    "no format": ({"format": None}, "format", "missing"),
    "another format": ({"format": 2}, "format", "format 2 is not known"),
    "a format in words": ({"format": "one"}, "format", "format"),
    "an unknown array": ({"stifnesses": K}, "stifnesses", "is not known"),
    "a negative thickness": ({"thickness": -1.0}, "thickness", "thickness"),
    "things that are no arrays": ({"shapes": np.array([{}, None], dtype=object)}, "file", "is not an npz file"),
}
FILES: dict[str, tuple[Callable[[Path], object], str]] = {  # what lies in place of the file, words of the sentence
    "nothing": (lambda path: path.unlink(), "cannot be read"),
    "text": (lambda path: path.write_text("nodes"), "is not an npz file of modal data"),
    "half a file": (lambda path: path.write_bytes(path.read_bytes()[:200]), "is not an npz file of modal data"),
    "a broken array": (lambda path: path.write_bytes(path.read_bytes()[:-3000] + b"0" * 3000), "is not an npz file"),
    "one array": (lambda path: np.save(path.open("wb"), np.eye(3)), "is not an npz file of modal data"),
    "an empty file": (lambda path: path.write_bytes(b""), "is not an npz file of modal data"),
}


def test_modal_data_come_back_from_their_file_as_they_were(tmp_path):
    plate = load_modal(CATALOGUE / "hexagon-plate.npz")
    given = replace(
        plate,
        damping_ratios=np.linspace(0.01, 0.02, plate.count),
        geometric=np.arange(float(plate.count))[:, None, None] * np.eye(plate.count),
        title="a plate",
        source="somebody",
    )
    assert given.second_moments is not None and given.thickness
    result = load_modal(save_modal(given, tmp_path / "plate.npz"))
    for field in fields(given):
        assert np.array_equal(getattr(result, field.name), getattr(given, field.name)), field.name


def error_of(capsys, folder: Path, text: str = ROBOT) -> dict:
    path = folder / "modal.toml"
    path.write_text(text, encoding="utf-8")
    error = refused(capsys, "info", path)
    assert error["hint"] and error["file"]
    return error


def sentence(error: dict) -> str:
    return f"{error['key']}: {error['message']}; {error['hint']}"


@pytest.mark.parametrize("case", DATA)
def test_data_that_cannot_be_are_refused_with_one_sentence(case, tmp_path, capsys):
    arrays, key, words = DATA[case]
    path = BODY.write(tmp_path / "platform.npz", **arrays)
    error = error_of(capsys, tmp_path)
    assert words in sentence(error)
    assert (error["key"] or "").rpartition(".")[2] == key
    assert error["file"] == str(path)
    with pytest.raises(parflex.ParflexError):
        load_modal(path)


@pytest.mark.parametrize("case", FILES)
def test_files_that_hold_no_modal_data_are_refused_with_one_sentence(case, tmp_path, capsys):
    spoil, words = FILES[case]
    path = BODY.write(tmp_path / "platform.npz")
    spoil(path)
    error = error_of(capsys, tmp_path)
    assert words in sentence(error) and error["file"] == str(path)


@pytest.mark.parametrize(("joint", "allowed"), [("spherical", True), ("welded", False), ("revolute", False)])
def test_a_node_without_rotations_takes_only_a_ball(joint, allowed, tmp_path, capsys):
    shapes = BODY.shapes.copy()
    shapes[:, :5, 3:] = np.nan  # corners without mass
    BODY.write(tmp_path / "platform.npz", shapes=shapes)
    closing = f'[[legs.closure]]\nname = "attachment~3"\njoint = "{joint}"\n[platform]'
    text = ROBOT.replace("[platform]", closing)
    if allowed:
        (tmp_path / "modal.toml").write_text(text, encoding="utf-8")
        robot = parflex.load(tmp_path / "modal.toml")
        known = Modes(BODY.nodes, BODY.names, BODY.masses, BODY.second_moments, BODY.shapes, K, BODY.damping_ratios)
        known.write(tmp_path / "platform.npz")
        same = parflex.load(tmp_path / "modal.toml")
        result, expected = (parflex.natural_frequencies(one, modes=4).frequencies for one in (robot, same))
        assert result == pytest.approx(expected, rel=1e-12)
        return
    error = error_of(capsys, tmp_path, text)
    assert "the rotations of the node at 'leg1.attachment' are not known" in error["message"]
    assert error["value"] == joint
    mounted = '[[frame]]\nname = "tool"\nparent = "platform"\nplace = { position = [0.5, 0, 0] }\n[platform]'
    error = error_of(capsys, tmp_path, ROBOT.replace("[platform]", mounted))
    assert "the rotations of the node 'platform.vertex3' are not known" in error["message"]
