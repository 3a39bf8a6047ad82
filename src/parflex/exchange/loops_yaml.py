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


def read_loops(file: str | Path) -> LoopsFile:
    """Read the file; each entry is checked for its form, and its names when the URDF is read."""
    table = read_yaml(read_text(file, "loops"), str(file))
    reader = _Entries(str(file), table)
    return LoopsFile(
        str(file),
        reader.pairs(),
        reader.motors(),
        reader.changed(),
        reader.rotors(),
        reader.gravity(),
        tuple(key for key in table if key not in KEYS),
    )


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


class _Entries:
    """Entries of the table, each in its form."""

    def __init__(self, file: str, table: Any) -> None:
        self.file = file
        if not isinstance(table, dict):
            raise self.bad("has no keys", "closed_loop", table, "write closed_loop: [[FRAME, FRAME], ...]")
        self.table = table

    def bad(self, message: str, key: str, value: Any, hint: str) -> Exception:
        """What is wrong with an entry."""
        return file_error(message, self.file, key, value, hint)

    def names(self, key: str) -> list[str] | None:
        """A list of names."""
        value = self.table.get(key)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(word, str | int | float) for word in value):
            raise self.bad(f"'{key}' is not a list of names", key, value, f"write {key}: [NAME, ...]")
        return [str(word) for word in value]

    def pairs(self) -> tuple[tuple[str, str, str], ...]:
        """Names of two frames and how they are tied."""
        pairs = self.table.get("closed_loop") or []
        fits = isinstance(pairs, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in pairs)
        if not fits or not all(isinstance(name, str | int | float) for pair in pairs for name in pair):
            raise self.bad(
                "'closed_loop' is not a list of pairs of frames", "closed_loop", pairs, "write [[FRAME, FRAME], ...]"
            )
        kinds = self.names("type") or ["6d"] * len(pairs)
        if len(kinds) != len(pairs):
            raise self.bad(
                f"'type' has {len(kinds)} entries for {len(pairs)} loops", "type", kinds, "give one for each pair"
            )
        for kind in kinds:
            if kind.lower() not in TIES:
                raise self.bad(f"a loop of type '{kind}' is not known", "type", kind, "write 3d or 6d")
        return tuple(
            (str(first), str(second), TIES[kind.lower()]) for (first, second), kind in zip(pairs, kinds, strict=True)
        )

    def motors(self) -> tuple[str, ...] | None:
        """Names of motors; None where nothing is said."""
        names = self.names("name_mot")
        return None if names is None else tuple(names)

    def changed(self) -> dict[str, str]:
        """Joints that are of another kind than in the URDF."""
        names, kinds = self.names("joint_name") or [], self.names("joint_type") or []
        if len(names) != len(kinds):
            raise self.bad(
                f"'joint_type' has {len(kinds)} entries for {len(names)} joints", "joint_type", kinds,
                "give one for each of joint_name",
            )  # fmt: skip
        for kind in kinds:
            if kind.upper() not in CHANGED:
                hint = did_you_mean(kind.upper(), CHANGED)
                raise self.bad(f"a joint of type '{kind}' is not known", "joint_type", kind, hint)
        return {name: kind.upper() for name, kind in zip(names, kinds, strict=True)}

    def rotors(self) -> dict[str, float]:
        """Rotor inertias by joint."""
        table = self.table.get("rotor_inertia") or {}
        if not isinstance(table, dict) or not all(_is_number(value) and value >= 0 for value in table.values()):
            raise self.bad(
                "'rotor_inertia' is not a map of joints and inertias", "rotor_inertia", table, "write { JOINT: 0.01 }"
            )
        return {str(name): float(value) for name, value in table.items()}

    def gravity(self) -> tuple[float, ...] | None:
        """Acceleration of gravity in axes of the base."""
        value = self.table.get("gravity")
        if value is None:
            return None
        if not isinstance(value, list) or len(value) != 3 or not all(map(_is_number, value)):
            raise self.bad("'gravity' is not three numbers", "gravity", value, "write [0, 0, -9.81]")
        return tuple(float(component) for component in value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e20
