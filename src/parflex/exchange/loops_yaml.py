"""The file beside a URDF with data that URDF lacks: loops, motors, balls, rotor inertias, gravity, start values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from parflex.errors import InputError, did_you_mean
from parflex.exchange.untrusted_files import file_error, read_text

Form = tuple[Callable[[Any], bool], str, str]  # whether a value fits, what it should be, an example
TIES = {"3d": "spherical", "6d": "welded"}
CHANGED = ("SPHERICAL", "FIXED", *(f"UJOINT_{a}{b}" for a in "XYZ" for b in "XYZ" if a != b))


@dataclass(frozen=True)
class LoopsFile:
    """Pairs of frames and how each is tied, motors, joints of another kind, rotor inertias, start values, gravity."""

    file: str = ""
    pairs: tuple[tuple[str, str, str], ...] = ()
    motors: tuple[str, ...] | None = None
    changed: dict[str, str] = field(default_factory=dict)
    rotors: dict[str, float] = field(default_factory=dict)
    starts: dict[str, tuple[float, ...]] = field(default_factory=dict)
    gravity: tuple[float, ...] | None = None
    unknown: tuple[str, ...] = ()


def read_yaml(text: str, file: str) -> Any:
    """Return the value of a YAML document by PyYAML's safe loader, without aliases and repeated keys."""
    try:
        import yaml
    except ImportError:
        raise InputError(
            "files of loops need the package PyYAML", file=file, key="loops", hint="pip install 'parflex[yaml]'"
        ) from None
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            if isinstance(event, yaml.AliasEvent):  # a few lines of aliases can stand for gigabytes
                line = event.start_mark.line + 1
                raise file_error(f"line {line} has an alias", file, "loops", None, "write the values themselves")
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        _refuse_repeated_keys(node, file)
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
        where = f"line {mark.line + 1} of the YAML file: " if mark else ""
        raise file_error(f"{where}{problem or 'is not YAML'}", file, "loops", None, "correct the line") from None
    except (RecursionError, ValueError) as error:  # nested too deeply for Python, or an impossible date
        raise file_error(f"is not a list of loops ({error})", file, "loops", None, "correct the file") from None


def _refuse_repeated_keys(node: Any, file: str) -> None:
    """Raise where a map has a key twice: PyYAML would keep the last value alone."""
    for child in node.value if node is not None and isinstance(node.value, list) else []:
        for part in child if isinstance(child, tuple) else (child,):
            _refuse_repeated_keys(part, file)
    if node is not None and node.id == "mapping":
        keys = [str(key.value) for key, _ in node.value]
        twice = next((key for key in keys if keys.count(key) > 1), None)
        if twice is not None:
            raise file_error(f"the key '{twice}' stands twice in a map", file, "loops", None, "keep one")


def read_loops(file: str | Path) -> LoopsFile:
    """Read the file; each entry is checked for its form, and its names when the URDF is read."""
    table = read_yaml(read_text(file, "loops"), str(file))
    if not isinstance(table, dict):
        raise file_error("has no keys", file, "closed_loop", table, "write closed_loop: [[FRAME, FRAME], ...]")
    for key, (fits, what, example) in FORMS.items():
        if table.get(key) is not None and not fits(table[key]):
            raise file_error(f"'{key}' is not {what}", file, key, table[key], f"write {key}: {example}")
    pairs, joints = table.get("closed_loop") or [], table.get("joint_name") or []
    ties = [str(tie).lower() for tie in table.get("type") or ["6d"] * len(pairs)]
    kinds = [str(kind).upper() for kind in table.get("joint_type") or []]
    for key, words, known, named, what in (
        ("type", ties, TIES, pairs, "loop"), ("joint_type", kinds, CHANGED, joints, "joint"),
    ):  # fmt: skip
        if len(words) != len(named):
            text = f"'{key}' has {len(words)} entries for {len(named)} {what}s"
            raise file_error(text, file, key, table.get(key), f"give one for each {what}")
        for word in words:
            if word not in known:
                raise file_error(f"a {what} of type '{word}' is not known", file, key, word, did_you_mean(word, known))
    motors, gravity = table.get("name_mot"), table.get("gravity")
    starts, rotors = table.get("start") or {}, table.get("rotor_inertia") or {}
    return LoopsFile(
        str(file),
        tuple((str(first), str(second), TIES[tie]) for (first, second), tie in zip(pairs, ties, strict=True)),
        None if motors is None else tuple(map(str, motors)),
        dict(zip(map(str, joints), kinds, strict=True)),
        {str(name): float(value) for name, value in rotors.items()},
        {str(name): tuple(map(float, x if isinstance(x, list) else [x])) for name, x in starts.items()},
        None if gravity is None else tuple(map(float, gravity)),
        tuple(key for key in table if key not in FORMS),
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e20


def _is_name(value: Any) -> bool:
    return isinstance(value, str | int | float)


def _is_list(value: Any, fits: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and all(map(fits, value))


def _is_map(value: Any, fits: Callable[[Any], bool]) -> bool:
    return isinstance(value, dict) and all(map(fits, value.values()))


NAMES: Form = (lambda value: _is_list(value, _is_name), "a list of names", "[NAME, ...]")
FORMS: dict[str, Form] = dict.fromkeys(("type", "name_mot", "joint_name", "joint_type"), NAMES) | {
    "closed_loop": (
        lambda value: _is_list(value, lambda pair: _is_list(pair, _is_name) and len(pair) == 2),
        "a list of pairs of frames", "[[FRAME, FRAME], ...]",
    ),
    "rotor_inertia": (
        lambda value: _is_map(value, lambda x: _is_number(x) and x >= 0), "a map of inertias", "{ JOINT: 0.01 }",
    ),
    "start": (
        lambda value: _is_map(value, lambda x: _is_number(x) or _is_list(x, _is_number)), "a map of coordinates",
        "{ JOINT: 0.1 }",
    ),
    "gravity": (lambda value: _is_list(value, _is_number) and len(value) == 3, "three numbers", "[0, 0, -9.81]"),
}  # fmt: skip
