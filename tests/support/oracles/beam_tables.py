"""Tables of a robot file about beams, and a file that says only what differs from another one."""

import tomllib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from .beam_element import Bar
from .expressions import number
from .tables import Table


def complete(path: Path) -> Table:
    """The table of a file with all that it takes from the one it extends, a name in its folder or a path from there."""
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    if "extends" not in table:
        return table
    named = path.parent / f"{table['extends']}.toml"
    return _over(complete(named if named.exists() else path.parent / table["extends"]), table)


def _over(below: Table, above: Table) -> Table:
    """Tables hold the keys of both; rows of the same name become one."""
    result = dict(below)
    for key, value in above.items():
        old = below.get(key)
        if key in ("frame", "point", "closure") and old is not None:
            rows = {_row_name(row): row for row in old}
            for row in value:
                rows[_row_name(row)] = rows.get(_row_name(row), {}) | row
            result[key] = list(rows.values())
        elif isinstance(value, dict) and isinstance(old, dict):
            result[key] = _over(old, value) if key == "legs" else old | value
        else:
            result[key] = value
    return result


def _row_name(row: Table) -> str:
    return row["name"] if "name" in row else "~".join(row["between"])


def bar(beam: Table, names: Mapping[str, float], table: Table) -> Bar:
    """Material and section of a beam."""
    material = {key: number(value, names) for key, value in table["materials"][beam["material"]].items()}
    E = material["elastic_modulus"]
    G = material.get("shear_modulus", E / 2 / (1 + material.get("poisson_ratio", 0.3)))
    moments = _section(table["sections"][beam["section"]], names)
    shear = [np.inf, np.inf]
    if beam.get("shear", False):
        shear = [moments[0] * number(beam["shear_coefficient"], names)] * 2
    return Bar(
        E,
        G,
        material["density"],
        *moments,
        beam.get("rotary_inertia", False),
        *shear,
        roll=number(beam.get("roll", 0), names),
        mean=beam.get("axial", table.get("axial", "mean")) == "mean",
    )


def _section(section: Table, names: Mapping[str, float]) -> tuple[float, float, float, float, float]:
    """A, Iy = int z^2, Iz = int y^2, torsion constant J, polar moment Ip."""
    k = {key: number(value, names) for key, value in section.items() if key != "shape"}
    if section["shape"] == "numbers":
        return k["A"], k["Iy"], k["Iz"], k["J"], k.get("Ip", k["Iy"] + k["Iz"])
    if section["shape"] == "rectangle":
        y, z = k["y"], k["z"]
        return y * z, y * z**3 / 12, z * y**3 / 12, _rectangle_torsion(y, z), (y * z**3 + z * y**3) / 12
    if section["shape"] not in ("circle", "tube"):
        raise ValueError(f"no model of a section '{section['shape']}' is written here")
    outer = k["diameter"]
    inner = 0.0 if section["shape"] == "circle" else outer - 2 * k["thickness"]
    polar = np.pi / 32 * (outer**4 - inner**4)
    return np.pi / 4 * (outer**2 - inner**2), polar / 2, polar / 2, polar, polar


def _rectangle_torsion(y: float, z: float) -> float:
    """Saint-Venant's torsion constant from Prandtl's stress function in a double sine series."""
    odd = np.arange(1, 400, 2.0)
    m, n = np.meshgrid(odd, odd)
    return float(256 * (y * z) ** 3 / np.pi**6 * np.sum(1 / ((m * n) ** 2 * (m**2 * z**2 + n**2 * y**2))))
