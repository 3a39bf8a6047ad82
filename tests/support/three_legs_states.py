"""Consistent states of the planar robot of three legs, and the same robot as a file with other numbers in every leg."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from support.catalogue import CATALOGUE
from support.oracles import three_rrr
from support.oracles.three_rrr import Parameters
from support.variants import read_table, toml_text

MODES = ["+-+", "-+-", "+++", "++-"]  # do the circle without a singularity
CROSSING = ["---", "--+", "-++", "+--"]
CONDITION = 1e2  # of what T is solved with; states nearer to a singularity are drawn anew


def signs_of(mode: str) -> np.ndarray:
    return np.array([1.0 if sign == "+" else -1.0 for sign in mode])


def varied(share: float, seed: int) -> Parameters:
    """All lengths, masses, inertias and centres changed by a share, up, down or not at all; each leg on its own."""
    rng, p = np.random.default_rng(seed), Parameters()
    numbers = {name: value for name, value in asdict(p).items() if name not in ("A", "phi")}
    return replace(p, **{k: value * (1 + share * rng.integers(-1, 2, np.shape(value))) for k, value in numbers.items()})


def as_file(p: Parameters, folder: Path) -> Path:
    """The robot of the catalogue with these numbers; what was one number for all legs is one for each."""
    table = read_table(CATALOGUE / "3rrr.toml")
    legs, (first, second) = table["legs"], table["legs"]["frame"]
    for name in ("proximal", "distal", "arm"):
        del table["constants"][name]
    legs |= {"proximal": p.L.tolist(), "distal": p.l.tolist(), "arm": p.d.tolist(), "phi": p.phi.tolist()}
    legs |= {f"proximal_{k}": v.tolist() for k, v in (("mass", p.m_1), ("inertia", p.I_1), ("centre", p.c_1))}
    legs |= {f"distal_{k}": v.tolist() for k, v in (("mass", p.m_2), ("inertia", p.I_2), ("centre", p.c_2))}
    legs |= {"sensor_mass": p.m_s.tolist(), "sensor_inertia": p.I_s.tolist()}
    legs["base_x"], legs["base_y"] = p.A.T.tolist()
    first["inertia"] = {
        "mass": "proximal_mass",
        "centre": ["proximal_centre", 0, 0],
        "about_centre": [0, 0, "proximal_inertia"],
    }
    sensor = {"mass": "sensor_mass", "position": ["proximal", 0, 0], "about_centre": [0, 0, "sensor_inertia"]}
    first["point_masses"] = [sensor]
    second["inertia"] = {
        "mass": "distal_mass",
        "centre": ["distal_centre", 0, 0],
        "about_centre": [0, 0, "distal_inertia"],
    }
    table["platform"]["inertia"] = {"mass": float(p.m_p + p.m_c), "about_centre": [0, 0, float(p.I_p + p.I_c)]}
    table["platform"]["point_masses"] = []
    path = folder / "three-legs.toml"
    path.write_text(toml_text(table), encoding="utf-8")
    return path


@dataclass(frozen=True)
class States:
    """Rows: pose x, y, theta; joints q_a, q_p with rates and accelerations, all of one motion."""

    pose: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray

    @property
    def positions(self) -> np.ndarray:
        """In the order of the robot: platform, then leg by leg."""
        return np.hstack([self.pose, self.q[:, [0, 3, 1, 4, 2, 5]]])


def draw(p: Parameters, mode: str, count: int, seed: int) -> States:
    """States around the circle of the paper, within reach and away from singularities."""
    rng = np.random.default_rng(seed)
    rows = []
    while len(rows) < count:
        pose = rng.uniform([-0.12, -0.12, -0.25], [0.12, 0.12, 0.25])
        with np.errstate(invalid="ignore"):
            q = three_rrr.inverse_geometry(p, pose, signs_of(mode))
        if np.isnan(q).any():  # out of reach
            continue
        J_x, J_q = three_rrr.jacobians(p, pose, q)
        if np.linalg.cond(np.hstack([J_q[:, 3:], J_x])) > CONDITION:
            continue
        twist, acceleration = rng.uniform(-1, 1, (2, 3)) * np.array([[1, 1, 3], [20, 20, 60]])
        rows.append((pose, q, *three_rrr.moving(p, pose, q, twist, acceleration)))
    return States(*(np.array(column) for column in zip(*rows, strict=True)))
