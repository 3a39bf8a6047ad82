"""The file beside a URDF with data that URDF lacks: loops, motors, balls, rotor inertias, gravity."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from parflex.errors import InputError, did_you_mean
from parflex.exchange.untrusted_files import file_error, read_text

KEYS = ("closed_loop", "type", "name_mot", "joint_name", "joint_type", "rotor_inertia", "gravity")
TIES = {"3d": "spherical", "6d": "welded"}
CHANGED = ("SPHERICAL", "FIXED", *(f"UJOINT_{a}{b}" for a in "XYZ" for b in "XYZ" if a != b))


@dataclass(frozen=True)
class LoopsFile:
    """Pairs of frames and how each is tied, motors, joints of another kind, rotor inertias, gravity."""

    file: str = ""
    pairs: tuple[tuple[str, str, str], ...] = ()
    motors: tuple[str, ...] | None = None
    changed: dict[str, str] = field(default_factory=dict)
    rotors: dict[str, float] = field(default_factory=dict)
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

    def require(holds: bool, message: str, key: str, hint: str, value: Any = None) -> None:
        if not holds:
            raise file_error(message, file, key, table.get(key) if value is None else value, hint)

    def names(key: str, otherwise: Any) -> Any:
        value = table.get(key)
        if value is None:
            return otherwise
        listed = isinstance(value, list) and all(isinstance(word, str | int | float) for word in value)
        require(listed, f"'{key}' is not a list of names", key, f"write {key}: [NAME, ...]")
        return tuple(map(str, value))

    pairs = table.get("closed_loop") or []
    paired = isinstance(pairs, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in pairs)
    paired = paired and all(isinstance(name, str | int | float) for pair in pairs for name in pair)
    message = "'closed_loop' is not a list of pairs of frames"
    require(paired, message, "closed_loop", "write [[FRAME, FRAME], ...]")
    ties = names("type", ()) or ("6d",) * len(pairs)
    message = f"'type' has {len(ties)} entries for {len(pairs)} loops"
    require(len(ties) == len(pairs), message, "type", "give one for each pair")
    for tie in ties:
        require(tie.lower() in TIES, f"a loop of type '{tie}' is not known", "type", "write 3d or 6d", tie)
    joints, kinds = names("joint_name", ()), names("joint_type", ())
    message = f"'joint_type' has {len(kinds)} entries for {len(joints)} joints"
    require(len(joints) == len(kinds), message, "joint_type", "give one for each of joint_name")
    for kind in kinds:
        hint = did_you_mean(kind.upper(), CHANGED)
        require(kind.upper() in CHANGED, f"a joint of type '{kind}' is not known", "joint_type", hint, kind)
    rotors, gravity = table.get("rotor_inertia") or {}, table.get("gravity")
    numbers = isinstance(rotors, dict) and all(_is_number(value) and value >= 0 for value in rotors.values())
    message = "'rotor_inertia' is not a map of joints and inertias"
    require(numbers, message, "rotor_inertia", "write { JOINT: 0.01 }")
    three = isinstance(gravity, list) and len(gravity) == 3 and all(map(_is_number, gravity))
    require(gravity is None or three, "'gravity' is not three numbers", "gravity", "write [0, 0, -9.81]")
    return LoopsFile(
        str(file),
        tuple((str(first), str(second), TIES[tie.lower()]) for (first, second), tie in zip(pairs, ties, strict=True)),
        names("name_mot", None),
        {name: kind.upper() for name, kind in zip(joints, kinds, strict=True)},
        {str(name): float(value) for name, value in rotors.items()},
        None if gravity is None else tuple(map(float, gravity)),
        tuple(key for key in table if key not in KEYS),
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e20
