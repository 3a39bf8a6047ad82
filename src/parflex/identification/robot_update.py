"""A robot file with identified numbers: it extends the original file and contains only the changes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from parflex.diagnostics import Diagnostic
from parflex.errors import InputError
from parflex.fit import extended_name
from parflex.forces.base_parameters import PARAMETERS, body_parameters
from parflex.identification.unknowns import NEVER_NEGATIVE, SPRINGS, fields_of, linear_elements
from parflex.io import check_writable, refuse_overwrite, write_text
from parflex.parameters.robot_file import extending_file_text
from parflex.robot.load import FRICTION as TERMS
from parflex.robot.robot import Robot
from parflex.robotfile import schema
from parflex.tree.build import read_body
from parflex.tree.tree import Link

Array = np.ndarray
FRICTION = {"FV": "viscous", "FS": "coulomb", "FV_back": "viscous_back", "FS_back": "coulomb_back", "offset": "offset"}
CHANGED = 1e-12  # of its size: what differs less is the same


def write_robot(
    robot: Robot, theta: Mapping[str, float], friction: str, source: str, path: str | Path
) -> list[Diagnostic]:
    """Write the file of a robot with parameters that were identified by the `source`; return diagnostics."""
    check_robot_target(path, robot)
    refuse_overwrite([path], robot.files)
    rows, diagnostics = changed_rows(robot, theta, friction)
    acting, more = changed_elements(robot, theta)
    platform, leg_of = robot.description.platform, _leg_of(robot)
    printable = "".join(letter for letter in source if letter.isprintable())
    settings: dict[str, Any] = {"reference.source": f"identified by {printable}"}
    in_legs: dict[str, dict[str, dict[str, Any]]] = {}
    for kind, some in {"frame": rows, **acting}.items():
        for name, table in some.items():
            if name in leg_of:
                in_legs.setdefault(kind, {})[name] = table
                continue
            place = "platform" if platform is not None and name == platform.name else f"{kind}.{name}"
            settings |= {f"{place}.{key}": value for key, value in table.items()}
    if in_legs:
        settings |= _leg_settings(robot, in_legs, leg_of)
    write_text(path, extending_file_text(extended_name(robot), robot, settings, Path(path), "identified"))
    return [each.prefixed(f"{Path(path).name}: ") for each in diagnostics + more]


def check_robot_target(path: str | Path, robot: Robot | None = None) -> None:
    """Refuse a file that cannot be written before anything is computed, and one that would extend flexible bodies."""
    if robot is not None and robot.written is not None and robot.written.rigid:
        raise InputError(
            "a file that extends a flexible robot cannot hold the bodies of its rigid version",
            key="out",
            value=str(path),
            hint="take the numbers from the answer",
        )
    if Path(path).suffix != ".toml":
        raise InputError("a robot file ends in .toml", key="out", value=str(path), hint=f"{Path(path).stem}.toml")
    check_writable(path)


def changed_rows(
    robot: Robot, theta: Mapping[str, float], friction: str = "file"
) -> tuple[dict[str, dict[str, Any]], list[Diagnostic]]:
    """Tables by frame whose numbers differ from those of the file; what cannot be is left, and said.

    Motors have no friction where none was looked for.
    """
    frames: dict[str, Any] = {frame.name: frame for frame in robot.description.frame}
    if robot.description.platform is not None:
        frames[robot.description.platform.name] = robot.description.platform
    rows: dict[str, dict[str, Any]] = {}
    diagnostics: list[Diagnostic] = []
    for link in robot.tree.links:
        frame = frames.get(link.name) or frames.get(link.name.rpartition(".")[0])
        if frame is None:
            continue
        numbers = {symbol: theta[f"{symbol}[{link.name}]"] for symbol in (*PARAMETERS, *FRICTION, "IA", *SPRINGS)
               if f"{symbol}[{link.name}]" in theta}  # fmt: skip
        for symbol in NEVER_NEGATIVE:
            if numbers.get(symbol, 0.0) < 0:
                text = f"{symbol}[{link.name}] = {numbers[symbol]:.4g} is negative: zero is written instead"
                diagnostics.append(_impossible(text, f"{symbol}[{link.name}]", numbers[symbol]))
                numbers[symbol] = 0.0
        if numbers.get("M", 0.0) < 0:
            cure = "identify with 'physical', or from a more exciting motion"
            text = f"M[{link.name}] = {numbers['M']:.4g} kg is negative: {cure}"
            diagnostics.append(_impossible(text, f"M[{link.name}]", numbers["M"]))
        if friction == "none" and link.joint.one_axis and link.v.start in robot.actuated and _has_friction(link):
            numbers |= {"FV": 0.0, "FS": 0.0}
        made = _tables(link, frame, numbers)
        if "friction" in made and not (friction == "none" and link.v.start in robot.actuated):
            diagnostics += _keep_static(link, frame, made["friction"])
        if made:
            rows.setdefault(frame.name, {}).update(made)
    return rows, diagnostics


def _impossible(text: str, parameter: str, value: float) -> Diagnostic:
    return Diagnostic("impossible-parameter", text, parameter, value)


def _keep_static(link: Link, frame: schema.Frame, friction: dict[str, float]) -> list[Diagnostic]:
    """Friction at rest as in the file, which no moving joint tells; not below that in motion."""
    static = frame.friction.static
    if not static:
        return []
    sliding = friction.get("coulomb", link.terms.coulomb + link.terms.more_coulomb)
    friction["static"] = max(float(static), sliding)
    if static >= sliding:
        return []
    text = f"static friction {static:g} of '{link.name}' is below its sliding friction: {sliding:.4g} is written"
    return [_impossible(text, link.name, float(static))]


def _has_friction(link: Link) -> bool:
    return any(getattr(link.terms, word) for word in TERMS)


def _tables(link: Link, frame: Any, numbers: Mapping[str, float]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    before = body_parameters(link.body.as_rigid())
    if any(symbol in numbers for symbol in PARAMETERS):
        body = np.array([numbers.get(symbol, value) for symbol, value in zip(PARAMETERS, before, strict=True)])
        if np.abs(body - before).max() > CHANGED * max(np.abs(body).max(), 1e-300):
            plain = body_parameters(read_body(frame.inertia)) + body - before  # other bodies on the link stay
            made["inertia"] = {symbol: float(value) for symbol, value in zip(PARAMETERS, plain, strict=True)}
    if not isinstance(frame, schema.Frame):
        return made
    friction = {FRICTION[symbol]: numbers[symbol] for symbol in FRICTION if symbol in numbers}
    if friction:
        made["friction"] = friction
        made.setdefault("inertia", _khalil(frame))  # FV and FS stand in the friction now
    if "IA" in numbers:
        made["motor_inertia"] = numbers["IA"]
        made.setdefault("inertia", _khalil(frame))
    elif frame.inertia.IA and "inertia" in made:
        made["motor_inertia"] = frame.inertia.IA
    if "k" in numbers:
        spring = fields_of({symbol: numbers[symbol] for symbol in ("k", "k_rest") if symbol in numbers})
        made["spring"] = {"rest": link.terms.rest} | spring
    return made | ({"damper": numbers["d"]} if "d" in numbers else {})


def changed_elements(
    robot: Robot, theta: Mapping[str, float]
) -> tuple[dict[str, dict[str, dict[str, float]]], list[Diagnostic]]:
    """Numbers of elements, struts and elastic couplings by kind of table and name; what cannot be is left, and said."""
    result: dict[str, dict[str, dict[str, float]]] = {"element": {}, "coupling": {}}
    diagnostics = []
    springs = {element.name for element in robot.tree.springs}
    names = [
        *(element.name for element in linear_elements(robot)),
        *(link.name for link in robot.tree.links if link.strut),
    ]
    for name in names:
        numbers = {symbol: theta[f"{symbol}[{name}]"] for symbol in SPRINGS if f"{symbol}[{name}]" in theta}
        if "k" in numbers and numbers["k"] <= 0:
            text = f"k[{name}] = {numbers['k']:.4g} is not positive: the spring is written as it was"
            diagnostics.append(_impossible(text, f"k[{name}]", numbers["k"]))
            numbers = {symbol: value for symbol, value in numbers.items() if symbol == "d"}
        kind = "coupling" if name in springs else "element"
        made = fields_of(numbers, "offset" if kind == "coupling" else "rest")
        for key in ("rest", "damping"):
            if made.get(key, 0.0) < 0:
                text = f"the {key} of '{name}' is {made[key]:.4g}: zero is written instead"
                diagnostics.append(_impossible(text, name, made[key]))
                made[key] = 0.0
        if made:
            result[kind][name] = made
        lost = [symbol for symbol in (*FRICTION, "IA") if f"{symbol}[{name}]" in theta]
        if lost:
            text = f"{', '.join(lost)} of the strut '{name}' are not in the file: struts have no friction there"
            diagnostics.append(Diagnostic("not-in-file", text, name))
    return result, diagnostics


def _khalil(frame: schema.Frame) -> dict[str, float]:
    return {s: float(v) for s, v in zip(PARAMETERS, body_parameters(read_body(frame.inertia)), strict=True)}


def _leg_settings(
    robot: Robot, rows: Mapping[str, Mapping[str, dict[str, Any]]], leg_of: Mapping[str, str]
) -> dict[str, Any]:
    """Settings of legs: each number is a column with a value per leg, and the one row of all legs names it."""
    table = robot.written.table.get("legs") if robot.written is not None else None
    if not isinstance(table, dict):
        raise InputError(
            "a robot with several families of legs cannot be extended by numbers of single legs", key="out",
            value=robot.name, hint="take the numbers from the answer",
        )  # fmt: skip
    several: dict[str, dict[str, dict[str, Any]]] = {}
    for kind, some in rows.items():
        for name, values in some.items():
            several.setdefault(f"{kind}.{name.removeprefix(f'{leg_of[name]}.')}", {})[leg_of[name]] = values
    settings: dict[str, Any] = {}
    for place, (row, by_leg) in enumerate(several.items()):
        first = next(iter(by_leg.values()))
        for key, value in first.items():
            named = {}
            for part in value if isinstance(value, dict) else ("",):
                word = f"{key}_{place}_{part}".strip("_")
                entries = [by_leg.get(leg, first)[key] for leg in table["names"]]
                settings[f"legs.{word}"] = [float(entry[part] if part else entry) for entry in entries]
                named[part] = word
            settings[f"legs.{row}.{key}"] = named if isinstance(value, dict) else named[""]
    return settings


def _leg_of(robot: Robot) -> dict[str, str]:
    """The leg of each frame, element and coupling that belongs to one."""
    result = dict(robot.description.leg_of)
    legs = set(result.values())
    return result | {
        spring.name: leg for spring in robot.tree.springs for leg in legs if spring.name.startswith(f"{leg}.")
    }  # fmt: skip
