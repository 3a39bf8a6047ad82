"""The face of the package: names that are there, words of arguments, what is returned."""

import ast
import dataclasses
import importlib
import inspect
import re
import tomllib
from functools import cache
from pathlib import Path

import click
import numpy as np
import pytest
from support.paths import ROOT

import parflex
from parflex.api import WORDS
from parflex.cli.app import cli

FUNCTIONS = [name for name in parflex.__all__ if inspect.isfunction(getattr(parflex, name))]
PARTS = ("Check", "Difference", "FramePose", "Gains", "Response")  # rows of a result, inputs of other functions
VARIABLE = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)


@cache
def robot(name: str = "5r"):
    return parflex.load(name)


def words(name: str) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(getattr(parflex, name)).parameters)


def test_everything_listed_is_there_and_is_completed():
    names = "ParflexError InputError Robot Configuration Result Modes Model Run"
    assert set(names.split()) <= set(parflex.__all__)
    assert set(parflex.__all__) <= set(dir(parflex)) and not {"re", "importlib", "Path", "Any"} & set(dir(parflex))
    for name in parflex.__all__:
        assert getattr(parflex, name) is getattr(parflex, name)
    with pytest.raises(AttributeError, match="nonsense"):
        _ = parflex.nonsense
    for name, kind in vars(importlib.import_module("parflex.errors")).items():
        if inspect.isclass(kind) and kind.__module__ == "parflex.errors":
            assert getattr(parflex, name) is kind and issubclass(kind, (parflex.ParflexError, Warning))


def test_types_travel_with_the_package_and_the_version_is_written_once():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert {"py.typed", "__init__.pyi"} <= set(settings["tool"]["setuptools"]["package-data"]["parflex"])
    folder = Path(parflex.__file__).parent
    assert (folder / "py.typed").exists() and (folder / "__init__.pyi").exists()
    assert "version" not in settings["project"] and settings["project"]["dynamic"] == ["version"]
    assert settings["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "parflex.__version__"}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_arguments_are_words_of_one_vocabulary(name):
    for word, parameter in words(name).items():
        assert parameter.kind not in VARIABLE, f"'{word}' hides the names that are known"
        assert word in WORDS, f"'{word}' is no word of the vocabulary"


def test_every_word_of_the_vocabulary_is_used_and_explained_once():
    assert set(WORDS) == {word for name in FUNCTIONS for word in words(name)}
    for word, (kind, text, _, _, in_functions) in WORDS.items():
        assert all(word in words(name) for name in in_functions or ())
        assert kind and text.endswith(".") and (text[0].isupper() or text[0] == "'"), word


@pytest.mark.parametrize(
    ("function", "given", "options", "match"),
    [
        ("jacobian", [], {"loads": {}}, "has no argument 'loads'"),
        ("model", ["state-rates"], {"wrench": {}}, "has no argument 'wrench'; did you mean 'wrench_frames'"),
        ("inverse_dynamics", ["home"], {"pose": "home"}, "'pose' twice; keep one of them"),
        ("inverse_dynamics", [], {"accelaration": {}}, "did you mean 'acceleration'"),
    ],
)
def test_arguments_that_are_unknown_or_given_twice_are_refused(function, given, options, match):
    with pytest.raises(parflex.InputError, match=match):
        getattr(parflex, function)(robot(), *given, **options)
    with pytest.raises(parflex.InputError, match="required: robot"):
        getattr(parflex, function)()


def test_energies_have_names_and_unpack():
    found = parflex.energies(robot(), "home", {"left.1": 1.0})
    kinetic, potential = found
    assert (kinetic, potential) == (found.kinetic, found.potential) == (found[0], found[1])
    assert found.potential == found.elastic + found.gravity
    assert isinstance(found, parflex.Energies)


def test_a_mass_matrix_names_its_rates_unpacks_and_is_an_array():
    found = parflex.mass_matrix(robot(), coordinates="motors")
    M, names = found
    assert names == found.names == robot().motors
    assert found[0] is M and found[1] is names and found[0, 1] == M[0, 1]
    rates = np.array([0.3, -0.2])
    for product in (found @ rates, M @ rates, np.asarray(found) @ rates, found.T @ rates):
        assert np.allclose(product, M @ rates)
    assert np.linalg.eigvalsh(found).min() > 0 and found.shape == (2, 2)
    assert np.allclose(2 * found - M, M)


def test_a_jacobian_names_its_rows_and_columns_and_is_an_array():
    found = parflex.jacobian(robot())
    assert found.frame == robot().tree.end_effector and found.motors == robot().motors
    assert found.directions[0] == "vx" and found.shape == (6, 2)
    assert np.array_equal(found[[0, 1]], found.matrix[:2]) and np.array_equal(np.abs(found), np.abs(found.matrix))
    assert np.array_equal(found.T @ np.ones(6), found.matrix.sum(axis=0)) and len(list(found)) == 6


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_result_has_warnings(name):
    kinds = re.findall(r"\w+", str(inspect.signature(getattr(parflex, name)).return_annotation))
    results = [kind for kind in kinds if kind in parflex.__all__ and kind not in PARTS]
    fields = {kind: {field.name for field in dataclasses.fields(getattr(parflex, kind))} for kind in results}
    assert all("warnings" in fields[kind] or hasattr(getattr(parflex, kind), "warnings") for kind in results)


def test_warnings_of_a_result_contain_those_of_the_robot():
    odd = parflex.load("dualemps", settings={"platform.inertia.ZZ": -1.0})
    assert odd.warnings
    for found in (parflex.configure(odd), parflex.explain(odd)):
        assert set(odd.warnings) <= set(found.warnings)


def test_dir_of_a_robot_lists_the_names_of_the_documentation():
    shown = dir(robot())
    assert all(hasattr(robot(), name) and not name.startswith("_") for name in shown)
    text = "".join(path.read_text() for path in ROOT.glob("docs/*.md"))
    code = "".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    used = {name for name in re.findall(r"\brobot\.([a-z_]+)\b", code) if hasattr(robot(), name)}
    assert used and used <= set(shown)
    assert not {"known_home", "pose_finder", "assembler", "resting_but"} & set(shown)


def test_frames_and_state_spaces_unpack():
    position, rotation = parflex.frames(robot())["tip"]
    place = parflex.frames(robot())["tip"]
    assert np.array_equal(place.position, position) and np.array_equal(place.rotation, rotation)
    system = parflex.state_space(parflex.load("four-bar"), ["crank"], ["crank"], lock="none", about="undeformed")
    A, B, C, D = system
    assert A is system.A and B is system.B and C is system.C and D is system.D


ENTRY = re.compile(r"^(\w+) : (.+?)(?:, default (.+))?\n((?:    .+\n?)+)", flags=re.M)


def described(thing) -> dict[str, tuple[str, str | None, str]]:
    """Type, default and text of the arguments that a docstring describes."""
    text = inspect.getdoc(thing) or ""
    part = re.search(r"^Parameters\n-+\n(.*?)(?=^\w+\n-+$|\Z)", text, flags=re.M | re.S)
    entries = ENTRY.findall(part[1] + "\n" if part else "")
    return {name: (kind, default or None, said) for name, kind, default, said in entries}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_help_describes_every_argument_with_type_unit_and_default_and_what_is_returned(name):
    function = getattr(parflex, name)
    said = described(function)
    assert list(said) == list(words(name))
    for word, parameter in words(name).items():
        _, default, text = said[word]
        assert (default is None) == (parameter.default is parameter.empty), word
        if default is not None:
            assert ast.literal_eval(default) == parameter.default, word
        assert WORDS[word].unit in " ".join(text.split()), f"the unit of '{word}' is missing"
    returned = re.search(r"^Returns\n-+\n(\S.*)\n    \S", inspect.getdoc(function) or "", flags=re.M)
    assert returned, "it is not said what is returned"


def test_help_takes_from_the_vocabulary_what_a_docstring_only_names():
    said = described(parflex.natural_frequencies)
    kind, default, text = said["wrench"]
    assert (kind, default, " ".join(text.split())) == ("Wrench", "None", f"{WORDS['wrench'].text[:-1]} (N, N m).")
    assert said["lock"][:2] == ("Lock", "'actuators'") and "WORDS" not in (parflex.natural_frequencies.__doc__ or "")
    assert "batch" in described(parflex.frames)["pose"][2] and "batch" not in WORDS["pose"].text


EVERYTHING = [getattr(parflex, name) for name in parflex.__all__]
RECORDS = [thing for thing in EVERYTHING if dataclasses.is_dataclass(thing)]


@pytest.mark.parametrize("kind", RECORDS, ids=lambda kind: kind.__name__)
def test_help_of_results_describes_their_fields(kind):
    text = inspect.getdoc(kind) or ""
    for field in dataclasses.fields(kind):
        if not field.name.startswith("_"):
            assert f"`{field.name}`" in text or re.search(rf"^{field.name} : \S.*\n    \S", text, flags=re.M), (
                field.name
            )


METHODS = [
    (kind, name)
    for kind in EVERYTHING
    if inspect.isclass(kind)
    for name, thing in vars(kind).items()
    if inspect.isfunction(thing) and not name.startswith("_")
]


@pytest.mark.parametrize("kind, name", METHODS, ids=lambda part: getattr(part, "__name__", part))
def test_help_of_methods_names_their_arguments(kind, name):
    method = getattr(kind, name)
    text = inspect.getdoc(method) or ""
    assert text
    for word in list(inspect.signature(method).parameters)[1:]:
        assert f"`{word}`" in text or word in described(method), word


# values differ from verb to verb: `parameters` of programs are inertial ones, of FMUs gravity and a payload too
OTHER_VALUES = {"name", "parameters", "start", "modes", "out", "path", "outputs", "columns", "record", "measured"}
OTHER_VALUES |= {"drive", "hold_out", "keys"}


def options() -> list[tuple[str, click.Option]]:
    return [(verb, one) for verb, command in cli.commands.items() for one in command.params if hasattr(one, "help")]


def test_options_have_the_units_of_the_vocabulary_and_one_syntax():
    syntaxes: dict[str, set[str | None]] = {}
    for verb, option in options():
        word = WORDS.get(option.name)
        if word is None:
            continue
        syntaxes.setdefault(option.name, set()).add(option.metavar)
        units = [] if word.unit in ("", "dimensionless") else word.unit.split(", ")
        assert not units or any(unit in option.help for unit in units), f"{verb} --{option.name} has no unit"
    assert {word for word, found in syntaxes.items() if len(found) > 1} <= OTHER_VALUES


def test_files_are_written_by_the_same_option_everywhere():
    written = [one for _, one in options() if {"-o", "--out"} & set(one.opts)]
    assert len(written) > 6
    for option in written:
        assert option.opts[:2] == ["-o", "--out"]


USER = """
import numpy as np
import parflex

robot: parflex.Robot = parflex.load("5r")
pose: parflex.Pose = {"x": 0.1, "y": 0.3}
push: parflex.Wrench = {"tip": [1.0, 2.0, 0.0]}
efforts: dict[str, float] = parflex.inverse_dynamics(robot, "home", wrench=push).efforts
row: np.ndarray = parflex.inverse_dynamics(robot, np.zeros(4), np.zeros(4), np.zeros(4))
M, names = parflex.mass_matrix(robot, pose, coordinates="motors")
try:
    found: list[str] = parflex.jacobian(robot, pose, "tip").motors
except parflex.ParflexError as error:
    print(error.hint)
"""


@pytest.mark.verify
def test_type_checkers_understand_a_script_of_a_user(tmp_path):
    api = pytest.importorskip("mypy.api")
    file = tmp_path / "user.py"
    file.write_text(USER)
    found, told, code = api.run(["--strict", "--disable-error-code=type-arg", str(file)])
    assert code == 0, found + told
    file.write_text(USER + 'parflex.mass_matrix(robot, coordinates="nonsense")\nparflex.jacobian(robot, at="home")\n')
    found, _, code = api.run(["--strict", "--disable-error-code=type-arg", str(file)])
    assert code == 1 and found.count("error:") == 2, found
