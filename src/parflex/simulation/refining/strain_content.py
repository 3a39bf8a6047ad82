"""How fast beams vibrate in a run, beside the frequencies of their elements by themselves.

The mean frequency of an element is that of its strain: omega^2 = <ed^T K ed> / <e^T K e>, each about its mean over the
run. An element held at both ends has the lowest frequency mu of motions that its shapes leave out; a
frequency omega of the robot is then too high by at most 1/2 omega^2/(mu^2 - omega^2) of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from parflex.robot.robot import Robot
from parflex.statics.mesh_error import ENOUGH as MODES_RESOLVED
from parflex.statics.mesh_error import REACHED, TOO_HIGH, InnerMotions, inner_beams, reduced_beams

Array = np.ndarray
STRAINED = 0.01  # of the strain energy of the beam that vibrates most: others do not matter
AT_REST = 1e-10  # of the typical length, and rad: coordinates that vary by less are at rest, but for rounding
COUPLED = 0.1  # of the motion inside an element that goes most with its shapes


@dataclass(frozen=True)
class Content:
    """Of the beam that vibrates fastest for its elements: its squared frequency, and that inside its elements."""

    beam: str = ""
    count: int = 1
    squared: float = 0.0
    alone: float = 1.0
    reduced: bool = False

    @property
    def error(self) -> float:
        """Share by which frequencies may be too high."""
        share = self.squared / self.alone
        return share / (1 - min(share, REACHED)) / 2


def strain_content(robot: Robot, columns: Mapping[str, Array], reductions: bool = False) -> Content:
    """How fast the beams of a run vibrate for the length of their elements, or for their reduction, in the worst."""
    found, strains = [], []
    for beam in (*inner_beams(robot).values(), *(reduced_beams(robot).values() if reductions else ())):
        strain, squared, alone = max(
            (_content(robot, *each, columns) for each in zip(beam.links, beam.inside, strict=True)),
            key=lambda one: one[0],
        )
        strains.append(strain)
        found.append(Content(beam.name, len(beam.links), squared, alone, beam.reduced is not None))
    most = max(strains, default=0.0)
    matter = [one for one, strain in zip(found, strains, strict=True) if strain > STRAINED * most > 0]
    return max(matter, key=lambda one: one.error, default=Content())


def content_warnings(robot: Robot, columns: Mapping[str, Array]) -> list[str]:
    """One sentence about the beam that vibrates fastest for the length of its elements."""
    worst = strain_content(robot, columns, reductions=True)
    if not worst.error > TOO_HIGH:
        return []
    enough = int(np.ceil(worst.count * (worst.squared / worst.alone / (2 * MODES_RESOLVED)) ** 0.25))
    fast, alone = (f"{np.sqrt(value) / (2 * np.pi):.3g} Hz" for value in (worst.squared, worst.alone))
    its = f"its {'element' if worst.count == 1 else 'elements'} held at both ends at {alone}"
    advice = f"use {max(enough, worst.count + 1)} elements, or converge=1e-2"
    if worst.reduced:
        its, advice = f"its reduction leaves out {alone}", "give 'reduce' a higher band"
    high = (
        f"frequencies of the run may be {worst.error:.0%} too high"
        if worst.squared < REACHED * worst.alone
        else "the run does not know such vibrations, and their frequencies and stresses may be anything"
    )
    return [
        f"'{worst.beam}' vibrates at {fast}, the mean of its strain, and {its}: {high}, and what is faster is missing; "
        f"{advice}"
    ]


def _content(robot: Robot, j: int, inside: InnerMotions, columns: Mapping[str, Array]) -> tuple[float, float, float]:
    """Of an element: mean strain energy, squared mean frequency, and the squared frequency inside it."""
    link = robot.tree.links[j]
    names = [robot.tree.position_names[k] for k in range(link.e.start, link.e.stop)]
    e, ed = (np.stack([columns[f"{word}.{name}"] for name in names]) for word in ("q", "qd"))
    K = link.body.material_stiffness(np.zeros(link.body.size))
    C, C_rate = (np.atleast_2d(np.cov(rows)) if rows.shape[1] > 1 else np.zeros_like(K) for rows in (e, ed))
    strain, rate = float(np.trace(K @ C)), float(np.trace(K @ C_rate))
    still = float(np.diag(C).max(initial=0.0)) <= (AT_REST * robot.tree.length) ** 2
    if still or not strain > 0 or not np.isfinite(rate):
        return 0.0, 0.0, 1.0
    own, vectors = inside.still
    root = np.linalg.cholesky(K)
    way = np.linalg.solve(root.T, np.linalg.eigh(root.T @ C_rate @ root)[1][:, -1])  # that is strained most
    coupled = (vectors.T @ (inside.M_ib[:, 6:] @ way)) ** 2 / own
    return strain, rate / strain, float(own[np.flatnonzero(coupled > COUPLED * coupled.max())[0]])
