"""Robot files that nobody meant: the catalogue and the robots of the tests, changed by chance and by a number.

python tests/fuzz.py 4711            what happens with case 4711, with its traceback
python tests/fuzz.py 0:20000         many cases, each in a process of its own with limits

Every case is asked what a stranger asks first: load, check, info, pose, inverse, frequencies. Either all is well
and finite, or one sentence says what is wrong. The number of a case is all that it depends on.
"""

import contextlib
import copy
import datetime
import io
import json
import math
import random
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from support.catalogue import CATALOGUE
from support.forks import answers
from support.paths import ROBOTS

import parflex
from parflex.robot.frames import counts
from parflex.robotfile.read import read_source

HEAVY = {"gough-stewart-elastic", "gough-stewart-beams", "navaro", "navaro-refined", "three-beam-legs"}
SECONDS = 60  # of CPU time, 20 on a quiet core: on a busy machine a process is charged up to three times as much
MEMORY = 6_000_000_000  # bytes of a worker: a file of some kilobytes that takes more is a finding too


# named one by one: with another list every number would be another case
NAMES = "3-prrr 3rrr 3rrr-flexible 5r bricard c5 delta dualemps dualemps-fitted four-bar gough-stewart "
NAMES += "gough-stewart-beams gough-stewart-elastic gough-stewart-flexible navaro navaro-refined puma560 rx90 "
NAMES += "space three-beam-legs"
OWN = "3-prs bending-satellite double-four-bar flat-loop hexaglide made-up-plane made-up-space nested planar-rpr rccc "
OWN += "satellite scara six-ups slider-crank-flexible slider-crank-spatial spatial-four-bar squeezer tie tripod-wrist "
OWN += "two-bodies upu wrist"


def bases() -> list[str]:
    """Robots to start from; those that take longest are drawn less often."""
    names = [*NAMES.split(), *(str(ROBOTS / f"{name}.toml") for name in OWN.split())]
    return [name for name in names for _ in range(1 if name in HEAVY else 4)]


NUMBERS = [0, 0.0, -0.0, 1, -1, 2, 7, 1e300, -1e300, 1e-300, 1e20, -1e20, 1.1e20, 1e-20, 1e6, 1e-6, 1e12, 1e-12]
NUMBERS += [math.nan, math.inf, -math.inf, 2**31, 2**63 - 1, -(2**63), 10**30, 0.1, 100, 1000, 5e-324]
WORDS = ["", " ", "x", "base", "platform", "home", "default", "tip", "rod.tip", "pi", "pi/2", "1/0", "0/0", "sqrt(-1)"]
WORDS += ["9**9**9**9", "1e999", "nan", "inf", "-inf", "(" * 300 + "1" + ")" * 300, "1" + "+1" * 3000, "a" * 5000]
WORDS += ["__import__('os').system('true')", "{leg}", "{", "a.b.c", "..", ".", "-", "\u00e4\u03b2\u4e2d", "\U0001f600"]
WORDS += ["\u202e", "\n", "a\tb", "x y", "x=1", "lambda: 0", "acos(2)", "atan2(0,0)", "0**-1", "(-1)**0.5", "deg"]
WORDS += ["revolute", "spherical", "free", "fixed", "prismatic", "universal", "cylindrical", "welded", "planar", "z"]
WORDS += ["helical"]
OTHERS: list[Any] = [True, False, [], {}, [[]], [1], [1, 2], [1, 2, 3], [0, 0, 0], [1] * 7, [math.nan] * 3, [1e300] * 3]
OTHERS += [["x", "y"], [True, False], {"x": 1}, {"": 0}, [[1, 2], [3, 4]], [[1, 0, 0], [0, 1, 0], [0, 0, 1]], [{}]]
OTHERS += [datetime.date(2000, 1, 1), datetime.time(1, 2, 3), [[[[[[[[[[[1]]]]]]]]]]]]
JOINTS = ["fixed", "revolute", "prismatic", "helical", "universal", "spherical", "cylindrical", "free", "nothing"]
CLOSED = ["welded", "revolute", "spherical", "universal", "cylindrical", "prismatic", "planar", "point-on-plane"]
CLOSED += ["point-on-line", "nothing"]
WORDS_OF_KEYS = "name parent joint mdh place beam modal inertia start limits spring damper friction actuated locked "
WORDS_OF_KEYS += "sensed point_masses motor_inertia x y theta z rx qw extends gravity motion constants platform "
WORDS_OF_KEYS += "closure legs poses frames axial axis "
KEYS = ["", *WORDS_OF_KEYS.split()]


def hostile(chance: random.Random) -> Any:
    """A value that need not be there."""
    return copy.deepcopy(chance.choice(chance.choice([NUMBERS, NUMBERS, WORDS, OTHERS])))


def places(table: Any) -> Iterator[tuple[Any, Any]]:
    """Every container of the file with each of its keys."""
    entries = table.items() if isinstance(table, dict) else enumerate(table)
    for key, value in list(entries):
        yield table, key
        if isinstance(value, dict | list):
            yield from places(value)


def rows(table: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """The rows of one kind, those of legs too."""
    legs = table.get("legs", [])
    parts = [table, *(legs if isinstance(legs, list) else [legs])]
    found = [part.get(kind, []) for part in parts if isinstance(part, dict)]
    return [row for some in found if isinstance(some, list) for row in some if isinstance(row, dict)]


def pick(table: Any, chance: random.Random, fits: Callable[[Any], bool] = lambda value: True) -> tuple[Any, Any] | None:
    """A place whose value is of a kind."""
    found = [(holder, key) for holder, key in places(table) if fits(holder[key])]
    return chance.choice(found) if found else None


def number_like(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def replace_anything(table: dict[str, Any], chance: random.Random) -> None:
    holder, key = pick(table, chance) or (table, "name")
    holder[key] = hostile(chance)


def replace_a_number(table: dict[str, Any], chance: random.Random) -> None:
    place = pick(table, chance, number_like)
    if place:
        place[0][place[1]] = chance.choice(NUMBERS)


def scale_a_number(table: dict[str, Any], chance: random.Random) -> None:
    place = pick(table, chance, number_like)
    if place:
        factor = chance.choice([-1, 1e-9, 1e-6, 1e-3, 0.5, 1 + 1e-12, 1.01, 2, 10, 1e3, 1e6, 1e9, 1e15])
        place[0][place[1]] = place[0][place[1]] * factor


def replace_words(table: dict[str, Any], chance: random.Random) -> None:
    place = pick(table, chance, lambda value: isinstance(value, str))
    if place:
        names = [value for holder, key in places(table) if isinstance(value := holder[key], str)]
        place[0][place[1]] = chance.choice([chance.choice(WORDS), chance.choice(names)])


def delete(table: dict[str, Any], chance: random.Random) -> None:
    place = pick(table, chance)
    if place:
        del place[0][place[1]]


def double_a_row(table: dict[str, Any], chance: random.Random) -> None:
    place = pick(table, chance, lambda value: isinstance(value, list) and len(value) > 0)
    if place:
        some = place[0][place[1]]
        some.insert(chance.randrange(len(some) + 1), copy.deepcopy(chance.choice(some)))


def shorten(table: dict[str, Any], chance: random.Random) -> None:
    place = pick(table, chance, lambda value: isinstance(value, list) and len(value) > 0)
    if place:
        place[0][place[1]].pop(chance.randrange(len(place[0][place[1]])))


def shuffle(table: dict[str, Any], chance: random.Random) -> None:
    place = pick(table, chance, lambda value: isinstance(value, list) and len(value) > 1)
    if place:
        chance.shuffle(place[0][place[1]])


def swap(table: dict[str, Any], chance: random.Random) -> None:
    one, two = pick(table, chance), pick(table, chance)
    if one and two:
        first, second = copy.deepcopy(one[0][one[1]]), copy.deepcopy(two[0][two[1]])
        one[0][one[1]] = second
        with contextlib.suppress(KeyError, IndexError):
            two[0][two[1]] = first


def rename_a_key(table: dict[str, Any], chance: random.Random) -> None:
    holders = [(holder, key) for holder, key in places(table) if isinstance(holder, dict)]
    if holders:
        holder, key = chance.choice(holders)
        holder[chance.choice([str(key)[:-1], str(key) + "s", *chance.sample(KEYS, 3)])] = holder.pop(key)


def add_a_key(table: dict[str, Any], chance: random.Random) -> None:
    holders = [table, *(holder[key] for holder, key in places(table) if isinstance(holder[key], dict))]
    chance.choice(holders)[chance.choice(KEYS)] = hostile(chance)


def other_parent(table: dict[str, Any], chance: random.Random) -> None:
    frames = rows(table, "frame") + rows(table, "point")
    names = [row.get("name") for row in frames]
    if frames:
        row = chance.choice(frames)
        parent = chance.choice([row.get("name"), *names, "base", "platform", f"{chance.choice(names)}.tip", "none"])
        row["parent" if "frame" not in row else "frame"] = parent


def other_name(table: dict[str, Any], chance: random.Random) -> None:
    frames = rows(table, "frame") + rows(table, "point") + rows(table, "closure")
    if frames:
        names = [row.get("name") for row in frames]
        chance.choice(frames)["name"] = chance.choice([*names, *WORDS])


def other_joint(table: dict[str, Any], chance: random.Random) -> None:
    frames, closures = rows(table, "frame"), rows(table, "closure")
    if frames and (not closures or chance.random() < 0.6):
        row = chance.choice(frames)
        row[chance.choice(["joint", "joint", "actuated", "locked", "sensed"])] = chance.choice([*JOINTS, True])
    elif closures:
        chance.choice(closures)["joint"] = chance.choice(CLOSED)


def other_ends(table: dict[str, Any], chance: random.Random) -> None:
    closures = rows(table, "closure")
    names = [row.get("name") for row in rows(table, "frame") + rows(table, "point")]
    if closures and names:
        ends = [chance.choice([*names, "base", "platform", "nobody"]) for _ in range(chance.choice([2, 2, 2, 1, 3]))]
        chance.choice(closures)[chance.choice(["between", "between", "axis", "axis_2"])] = ends


def other_beam(table: dict[str, Any], chance: random.Random) -> None:
    frames = rows(table, "frame")
    if not frames:
        return
    table.setdefault("materials", {"steel": {"elastic_modulus": 2e11, "density": 7800}})
    table.setdefault("sections", {"rod": {"shape": "circle", "diameter": 0.02}})
    row = chance.choice(frames)
    beam = row.setdefault("beam", {"length": 0.3})
    if isinstance(beam, dict) and isinstance(table["materials"], dict) and isinstance(table["sections"], dict):
        beam.setdefault("material", next(iter(table["materials"]), "steel"))
        beam.setdefault("section", next(iter(table["sections"]), "rod"))
        extra = ["elements", "length", "shear", "rotary_inertia", "model", "roll", "damping", "shear_coefficient"]
        # 201 is one more than a file may ask for; a hundred in each of six legs would be honest work for minutes
        value = chance.choice([0, 1, 2, 3, -1, 1.5, 9, 201, 10**9, "planar", "spatial", True, hostile(chance)])
        beam[chance.choice(extra)] = value


def other_choice(table: dict[str, Any], chance: random.Random) -> None:
    """Poses, actuations, working modes, and the words of the whole file."""
    names = [row.get("name", "") for row in rows(table, "frame")] or ["x"]
    some = [chance.choice([*names, "x", "platform", "nobody"]) for _ in range(chance.randrange(4))]
    key = str(chance.choice([*names, "x", "theta", "theta_deg", "z", "qw", "rx", "platform.x", "base.x"]))
    value = chance.choice([chance.uniform(-1, 1), 0.01, hostile(chance)])
    kind = chance.randrange(7)
    if kind == 0:
        table["poses"] = {"home": {key: value}}
    elif kind == 1:
        table["actuation"] = {"default": {"actuated": some, "locked": chance.choice([[], some])}}
    elif kind == 2:
        table["working_modes"] = {
            "default": {chance.choice(["start", "signs"]): {key: chance.choice(["+", "-", value])}}
        }
    elif kind == 3:
        table["motion"] = chance.choice(["planar", "spatial", "other"])
    elif kind == 4:
        table["end_effector"] = chance.choice([*names, "nobody", "base"])
    elif kind == 5:
        table["extends"] = chance.choice(["robot.toml", "5r", "navaro", "nothing", "..", "/"])
    else:
        table[chance.choice(["gravity", "rotations", "axial", "format"])] = hostile(chance)


WAYS = [replace_anything, replace_a_number, scale_a_number, replace_words, delete, double_a_row, shorten, shuffle, swap]
WAYS += [rename_a_key, add_a_key, other_parent, other_name, other_joint, other_ends, other_beam, other_choice]
WAYS += 3 * [scale_a_number, other_joint, other_ends, other_beam, other_choice]  # most of these can be loaded


def as_toml(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(str(key))} = {as_toml(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(as_toml(entry) for entry in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value)
    return value.isoformat() if isinstance(value, datetime.date | datetime.time) else repr(value)


def garbled(text: str, chance: random.Random) -> bytes:
    """Text with errors of the hand."""
    lines = text.splitlines()
    kind, at = chance.randrange(7), chance.randrange(max(len(lines), 1))
    if kind == 0:
        return text[: chance.randrange(len(text))].encode()
    if kind == 1:
        del lines[at]
    elif kind == 2:
        lines.insert(at, lines[chance.randrange(len(lines))])
    elif kind == 3:
        content = bytearray(text.encode())
        content[chance.randrange(len(content))] = chance.randrange(256)
        return bytes(content)
    elif kind == 4:
        lines[at] = lines[at].replace(chance.choice('=",[]{}'), chance.choice(["", "==", "'", ";", "]"]))
    elif kind == 5:
        other = chance.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
    else:
        lines = ["a." * chance.choice([3, 60]) + "b = 1", *lines]
    return "\n".join(lines).encode()


def garbled_modes(source: Path, target: Path, chance: random.Random) -> None:
    """Modal data with arrays of other shapes, kinds and numbers, or half a file."""
    with np.load(source) as archive:
        arrays: dict[str, Any] = {name: archive[name] for name in archive.files}
    name = chance.choice(list(arrays))
    values = arrays[name]
    kind = chance.randrange(9)
    if kind == 0:
        del arrays[name]
    elif kind == 1:
        arrays[name] = np.array([{"a": 1}, None], dtype=object)
    elif kind == 2 and values.dtype.kind == "f" and values.size:
        values = values.copy()
        values.flat[chance.randrange(values.size)] = chance.choice([math.nan, math.inf, 1e300, -1.0, 0.0])
        arrays[name] = values
    elif kind == 3:
        arrays[name] = values[..., None] if chance.random() < 0.5 else values[:1] if values.ndim else values
    elif kind == 4:
        arrays[name] = np.asarray(chance.choice([0, 1, -1, math.nan, "word", 1j, True]))
    elif kind == 5:
        arrays[name] = np.zeros_like(values)
    elif kind == 6:
        arrays[chance.choice(["extra", "modes"])] = np.zeros(3)
    elif kind == 7:
        arrays[name] = values[..., :-1] if values.ndim else np.zeros((0, 3))
    elif kind == 8 and values.dtype.kind == "f":
        arrays[name] = values * chance.choice([-1, 1e-12, 1e12, 1e150, 1e3])
    with target.open("wb") as file:
        np.savez(file, allow_pickle=True, **arrays)
    if chance.random() < 0.15:
        content = target.read_bytes()
        target.write_bytes(content[: chance.randrange(len(content))])


def write_case(number: int, folder: Path) -> tuple[Path, str]:
    """The robot file of a case, and in words what it is."""
    chance = random.Random(number)
    base = chance.choice(BASES)
    table, _ = read_source(base)
    path = folder / "robot.toml"
    ways = [chance.choice(WAYS) for _ in range(chance.choice([1, 1, 1, 2, 3]))]
    files = [holder for holder, key in places(table) if key == "file" and isinstance(holder[key], str)]
    for holder in files:
        source = Path(holder["file"])
        holder["file"] = "modes.npz"
        if chance.random() < 0.6:
            garbled_modes(source, folder / "modes.npz", chance)
            ways = []
        else:
            (folder / "modes.npz").write_bytes(source.read_bytes())
    what = f"{Path(base).stem}: {', '.join(way.__name__ for way in ways) or 'modal data'}"
    if chance.random() < 0.08:
        known = CATALOGUE / f"{base}.toml"
        plain = Path(base) if Path(base).exists() else known
        path.write_bytes(garbled(plain.read_text(encoding="utf-8"), chance))
        return path, f"{Path(base).stem}: garbled text"
    for way in ways:
        way(table, chance)
    path.write_text("".join(f"{json.dumps(str(key))} = {as_toml(value)}\n" for key, value in table.items()))
    return path, what


def finite(what: str, value: Any) -> None:
    """An answer is made of numbers that are numbers."""
    if isinstance(value, dict):
        for key, entry in value.items():
            finite(f"{what}.{key}", entry)
    elif isinstance(value, list | tuple):
        for entry in value:
            finite(what, entry)
    elif isinstance(value, float | np.ndarray | np.floating):
        assert np.all(np.isfinite(value)), f"{what} is not finite"


def ask(path: Path, number: int) -> str:
    """What the robot answers: `ok`, or the kinds of the errors; anything else is raised."""
    said = []

    def asked(question: Callable[[], Any]) -> Any:
        try:
            return question()
        except parflex.ParflexError as error:
            text = str(error)
            assert text and "Traceback" not in text, f"no sentence: {text!r}"
            said.append(error.kind)
            return None

    robot = asked(lambda: parflex.load(path))
    if robot is None:
        return ",".join(said)
    asked(lambda: finite("info", counts(robot)))
    configuration = asked(lambda: parflex.configure(robot))
    if configuration is not None:
        finite("q", configuration.q)
        asked(lambda: finite("frames", parflex.frames(robot, configuration)))
        finite("closure_error", configuration.closure_error)
        asked(lambda: configuration.condition.warnings)
        efforts = asked(lambda: parflex.inverse_dynamics(robot, configuration, reactions=number % 4 == 0))
        if efforts is not None:
            finite("efforts", efforts.efforts)
        modes = asked(lambda: parflex.natural_frequencies(robot, configuration))
        if modes is not None:
            finite("frequencies", [modes.frequencies, modes.shapes, modes.damping])
    if number % 10 == 0:
        asked(lambda: through_the_command_line(path, ["check", "info", "pose"][number // 10 % 3]))
    return ",".join(said) or "ok"


def through_the_command_line(path: Path, verb: str) -> None:
    """The same file on the command line: an exit code, and JSON that any program can read."""
    from parflex.cli.app import main

    out, err = io.StringIO(), io.StringIO()
    code: Any = None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main([verb, str(path), "--json"])
        except SystemExit as stop:
            code = stop.code
    assert code in (0, 2), f"{verb} ended with {code}: {err.getvalue()[:300]}"
    answer = json.loads(out.getvalue(), parse_constant=lambda word: 1 / 0)
    assert ("error" in answer) == (code == 2), answer


def try_case(number: int) -> tuple[str, str]:
    """`ok`, kinds of errors, or what must not be; and what the case is."""
    with tempfile.TemporaryDirectory() as folder, np.errstate(all="ignore"):
        path, what = write_case(number, Path(folder))
        try:
            return ask(path, number), what
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(last.filename).name}:{last.lineno}"
            return f"BAD {type(error).__name__} at {where}: {str(error)[:200]}", what


BASES = bases()


def many(numbers: range) -> Iterator[tuple[int, str, str]]:
    """Number, answer and description of cases, each in a process of its own."""
    for name in ("dualemps", "3rrr"):  # imports what most cases need
        parflex.natural_frequencies(parflex.load(name), modes=1, servo=1e5, lock="none")
    for number, content in answers(try_case, numbers, SECONDS, MEMORY):
        answer, what = content.get("answer", (f"BAD {content.get('crash')}", ""))
        yield number, answer, what


def main(words: list[str]) -> int:
    first, _, last = words[0].partition(":")
    if not last:
        with tempfile.TemporaryDirectory() as folder:
            path, what = write_case(int(first), Path(folder))
            print(what, path.read_bytes()[:9000], ask(path, int(first)), sep="\n")
        return 0
    kinds: Counter[str] = Counter()
    for number, answer, what in many(range(int(first), int(last))):
        kinds[answer.split(" ")[0]] += 1
        if answer.startswith("BAD"):
            print(number, answer, what, sep="\t", flush=True)
    print(json.dumps(dict(kinds.most_common())))
    return 1 if "BAD" in kinds else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
