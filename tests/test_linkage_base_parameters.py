"""Base parameters of linkages with one motor: told where motions are wide, grouped with others where they are not."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest
from support.oracles import led_records

import parflex

BARS = {  # parent, place of its axis, start, mass, centre, moment about it
    "crank": ("", (0.0, 0.0), 1.1, 0.7, (0.04, 0.015), 9e-4),
    "coupler": ("crank", (0.12, 0.0), -0.5, 1.2, (0.17, 0.05), 1.3e-2),
    "rocker": ("", (0.42, 0.0), 1.6, 1.0, (0.12, 0.04), 6e-3),
    "link": ("coupler", (0.22, 0.14), -3.7, 0.5, (0.15, 0.02), 5e-3),
    "swing": ("", (-0.18, 0.06), 1.45, 0.8, (0.13, -0.03), 5e-3),
}
ENDS = {"coupler": 0.40, "rocker": 0.30, "link": 0.34, "swing": 0.32}
LOOPS = (("coupler", "rocker"), ("link", "swing"))
MOTOR = "actuated = true\nmotor_inertia = 0.003\nfriction = { viscous = 0.06, coulomb = 0.12 }\n"


def six_bar(heavier: float = 1.0) -> str:
    """A crank, a coupler and a rocker, and two more bars behind the coupler; the last ones some times as heavy."""
    text = 'format = 1\nname = "six-bar"\nmotion = "planar"\ngravity = [0, -9.81, 0]\nend_effector = "coupler.end"\n'
    for name, (parent, (x, y), start, mass, (cx, cy), moment) in BARS.items():
        own = mass * (heavier if name in ("link", "swing") else 1.0)
        text += (
            f'[[frame]]\nname = "{name}"\njoint = "revolute"\nplace = {{ position = [{x}, {y}, 0] }}\nstart = {start}\n'
        )
        text += f'parent = "{parent}"\n' if parent else ""
        text += MOTOR if name == "crank" else ""
        text += (
            f"inertia = {{ mass = {own}, centre = [{cx}, {cy}, 0], about_centre = [[{moment}, 0, 0], [0, {moment}, 0], "
        )
        text += f"[0, 0, {moment}]] }}\n"
    for name, length in ENDS.items():
        text += f'[[point]]\nname = "{name}.end"\nframe = "{name}"\nposition = [{length}, 0, 0]\n'
    for one, other in LOOPS:
        text += f'[[closure]]\nbetween = ["{one}.end", "{other}.end"]\njoint = "revolute"\n'
    return text


@cache
def record(path: str, reach: float, noise: float = 1e-4) -> dict[str, np.ndarray]:
    """Efforts that a motion of the crank about home takes, by Lagrange's equations, with noise."""
    oracle, t = led_records.LedRobot(path), np.arange(400) * 1e-2
    clean = oracle.led(t, oracle.about_home(t, 3, reach))
    effort = clean["effort.crank"]
    return clean | {"effort.crank": effort + noise * effort.std() * np.random.default_rng(0).normal(size=len(t))}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("six-bar")
    found = {}
    for name, heavier in (("true", 1.0), ("file", 1.4)):
        found[name] = folder / f"{name}.toml"
        found[name].write_text(six_bar(heavier))
    return found


def of_truth(made_of: str) -> float:
    """What the parameters give of which a base parameter is made."""
    every = {}
    for name, (_, _, _, mass, (cx, cy), moment) in BARS.items():
        every |= {f"M[{name}]": mass, f"MX[{name}]": mass * cx, f"MY[{name}]": mass * cy}
        every |= {f"ZZ[{name}]": moment + mass * (cx * cx + cy * cy)}
    every |= {"IA[crank]": 0.003, "FV[crank]": 0.06, "FS[crank]": 0.12}
    total = 0.0
    for sign, weight, name in re.findall(r"(^|[+-] )([0-9.e+-]+ )?([A-Z]+\[\w+\])", made_of):
        total += (-1.0 if sign.startswith("-") else 1.0) * (float(weight) if weight else 1.0) * every[name]
    return total


# the crank about home: little, so that columns are powers of it and some are not told, and by half a turn
@pytest.mark.parametrize(("reach", "noise", "least"), [(0.03, 1e-6, 10), (0.5, 1e-4, 15)])
def test_parameters_of_a_six_bar_are_those_of_its_bars(files, reach, noise, least):
    found = parflex.identify(parflex.load(files["file"]), record(str(files["true"]), reach, noise), cutoff=20)
    off = [(one.value - of_truth(one.made_of)) / one.deviation for one in found.parameters.values()]
    assert len(off) >= least
    # of up to 15 numbers, one in 4e3 that are right is beyond; weights have six digits
    assert np.abs(off).max() < 4.5, dict(zip(found.parameters, off, strict=True))
    assert found.relative_error < 1e-3 and not found.warnings


@pytest.mark.verify
def test_a_wide_motion_is_predicted_by_what_a_narrow_one_does_not_tell(files):
    # of a robot file that is right: what the record leaves open is as in the file, and nothing is lost of it
    narrow, wide = (record(str(files["true"]), reach, 0.0) for reach in (0.03, 0.5))
    found = parflex.identify(parflex.load(files["true"]), narrow, validate=wide, cutoff=20)
    assert len(found.parameters) < 15 and found.undetermined
    assert found.validation["relative_error"] < 1e-3  # differences of the narrow one, magnified by the wide one
