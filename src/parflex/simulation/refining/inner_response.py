"""How far the beams of a run are off since their elements are too few: the motions that these leave out push the rest.

Inside an element held at both ends lie motions that its shapes leave out. The accelerations xdd of its ends (twist of
the root, elastic coordinates of the tip) drive them; far below their own frequencies they follow at once, and their
inertia acts back on the ends:

    eta = -K_ii^-1 M_ib xdd,    f = -M_bi etadd = C d2(xdd)/dt2,    C = M_bi K_ii^-1 M_ib

What a run is off by, to first order, is how the robot answers f. In its modes at the start, of mass one, damping d and
stiffness k, with c = shape^T C qdd,

    m z'' + d z' + k z = c'',    m z = c - (k h + d h') * c

where h is the answer of m z'' + d z' + k z to a blow and * sums over the past: nothing is differentiated. The mass
m = 1 + shape^T C shape k/m has in it what z itself moves inside, at its own frequency, theory (73).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from parflex.errors import ParflexError
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot
from parflex.spatial.linear import eigen_pairs
from parflex.spatial.rotations import hat
from parflex.statics.mesh_error import BeamElements, inner_beams

Array = np.ndarray
OFF = 0.02  # of the deflection: twice the converge=1e-2 that is advised, as the estimate is right within a third
ENOUGH = 0.01  # of the deflection: the number of elements in warnings is that for this error
UNKNOWN = 0.5  # of the deflection: beyond, first order says no more than that it is much
BENT = 0.1  # of the largest deflection of a beam: smaller ones do not matter
AT_REST = 1e-10  # of the typical length: beams that deflect by less are at rest, but for rounding
MOST_ROWS, MOST_COORDINATES = 20_000, 300  # of a run that are used, and of a robot
RESOLVED = 1.0  # rad between two rows: faster modes follow at once as well
ROWS_OF_A_MEAN = 7  # a period of what is resolved just so


@dataclass(frozen=True)
class InnerError:
    """Of the beam that is most off: share of its largest deflection, when it is beyond a limit first, elements now."""

    beam: str = ""
    count: int = 1
    share: float = 0.0
    time: float = 0.0


def inner_error(
    robot: Robot, driven: bool, t: Array, q: Array, accelerations: Array, without: Sequence[str] = ()
) -> InnerError:
    """Of a run: rows of positions and of the accelerations of all rates; motors may follow a motion."""
    rows = slice(0, min(len(t), MOST_ROWS))
    t, q, moved, tree = t[rows], q[rows], accelerations[rows], robot.tree
    beams = inner_beams(robot) if tree.n <= MOST_COORDINATES else {}
    if not beams or len(t) < 3 or not (np.isfinite(moved).all() and np.isfinite(q).all() and t[-1] > t[0]):
        return InnerError()
    e = np.zeros(moved.shape)
    for link in tree.links:
        e[:, link.e_v] = q[:, link.e] - q[:, link.e].mean(axis=0)
    nodes = {name: _node_motions(robot, beam) for name, beam in beams.items()}
    sizes = {name: float(_deflections(motions, e).max()) for name, motions in nodes.items()}
    most = max(sizes.values())
    if not most > AT_REST * tree.length:
        return InnerError()
    try:
        off = _off(Configuration(robot, q[0]), driven, t, moved, without)
    except (ParflexError, np.linalg.LinAlgError):  # no modes at the start: nothing is known
        return InnerError()
    found = InnerError()
    for name, beam in beams.items():
        shares = _deflections(nodes[name], off) / max(sizes[name], BENT * most)
        if (largest := float(shares.max())) > found.share:
            found = InnerError(
                name, len(beam.links), largest, float(t[int(np.argmax(shares > min(OFF, 0.99 * largest)))])
            )
    return found


def inner_warnings(
    robot: Robot, prescribed: str, columns: Mapping[str, Array], accelerations: Array, without: Sequence[str] = ()
) -> list[str]:
    """One sentence about the beam whose elements are too few for what a run shows of it.

    Nothing is said of a platform that is driven: all that is elastic answers it.
    """
    if prescribed == "platform":
        return []
    q = np.stack([columns[f"q.{name}"] for name in robot.tree.position_names], axis=1)
    worst = inner_error(robot, prescribed == "motors", columns["t"], q, accelerations, without)
    if not worst.share > OFF:
        return []
    enough = max(worst.count + 1, int(np.ceil(worst.count * (worst.share / ENOUGH) ** 0.25)))  # errors: fourth power
    its = "its element is" if worst.count == 1 else f"its {worst.count} elements are"
    much = f"about {worst.share:.0%}" if worst.share < UNKNOWN else "half or more"
    return [
        f"'{worst.beam}' is off by {much} of its largest deflection, from t = {worst.time:.3g} s on by more than "
        f"{OFF:.0%}: {its} too long for how it is shaken or vibrates; use {enough} elements, or converge=1e-2"
    ]


def largest_deflection(robot: Robot, j: int, q: Array) -> float:
    """Of the nodes of the beam that a link is an element of, in rows of positions (m); of small deflections."""
    beam = next((one for one in inner_beams(robot).values() if j in one.links), None)
    if beam is None:
        return 0.0
    e = np.zeros((len(q), robot.tree.n))
    for link in (robot.tree.links[k] for k in beam.links):
        e[:, link.e_v] = q[:, link.e]
    return float(_deflections(_node_motions(robot, beam), e).max(initial=0.0))


def _node_motions(robot: Robot, beam: BeamElements) -> Array:
    """Displacements of the nodes of a beam in the axes of its root, (node, axis, rate), of small deflections."""
    twist, found = np.zeros((6, robot.tree.n)), []
    for j in beam.links:
        link = robot.tree.links[j]
        tip = link.body.nodes["tip"]
        twist[:3] -= hat(tip.r0) @ twist[3:]
        twist[:, link.e_v] += np.vstack([tip.Phi_d, tip.Phi_r])
        found.append(twist[:3].copy())
    return np.array(found)


def _deflections(motions: Array, q: Array) -> Array:
    """The largest displacement of a node in each row."""
    moved = q @ motions.reshape(-1, motions.shape[2]).T
    return np.linalg.norm(moved.reshape(len(q), *motions.shape[:2]), axis=2).max(axis=1)


def _inertia_inside(here: Configuration) -> Array:
    """C of all elements, over the rates of the tree."""
    tree, found = here.robot.tree, np.zeros((here.robot.tree.n, here.robot.tree.n))
    for beam in inner_beams(here.robot).values():
        made = {one: one.M_ib.T @ np.linalg.solve(one.K_ii, one.M_ib) for one in dict.fromkeys(beam.inside)}
        for j, inside in zip(beam.links, beam.inside, strict=True):
            own = np.zeros((tree.links[j].body.size, tree.n))
            own[:, tree.links[j].e_v] = np.eye(len(own))
            x = np.vstack([*here.link_jacobians[j], own])
            found += x.T @ made[inside] @ x
    return found


def _off(here: Configuration, driven: bool, t: Array, moved: Array, without: Sequence[str]) -> Array:
    """What the coordinates of all rates are off by, in rows: answers of the modes that rows resolve."""
    from parflex.statics.linear_model import linear_model  # which rigid robots do without

    model = linear_model(here.robot, here, "actuators" if driven else "none", "undeformed", without=without)
    values, vectors = eigen_pairs((model.K + model.K.T) / 2, model.M)
    step = float(t[-1] - t[0]) / (len(t) - 1)
    slow = (values >= 0) & (values < (RESOLVED / step) ** 2)
    values, vectors = values[slow], vectors[:, slow]
    shapes, C = model.J @ vectors, _inertia_inside(here)
    mass = (1 + np.sqrt(1 + 4 * values * np.einsum("nk,nm,mk->k", shapes, C, shapes))) / 2
    c = _smooth(moved @ C @ shapes / mass)
    damping = np.einsum("ik,ij,jk->k", vectors, model.D, vectors) / mass
    kernel = _kernel(values / mass, damping, step * np.arange(len(t)))
    whole = 2 * len(t)  # no row is among the past of another end
    past = np.fft.irfft(np.fft.rfft(kernel, whole, axis=0) * np.fft.rfft(c, whole, axis=0), whole, axis=0)
    return (c - step * past[: len(t)]) @ shapes.T


def _smooth(c: Array) -> Array:
    """Means about each row: vibrations that rows do not resolve, and steps may not follow, are left out."""
    weights = np.hanning(ROWS_OF_A_MEAN + 2)[1:-1]
    half = ROWS_OF_A_MEAN // 2
    wide = np.pad(c, ((half, half), (0, 0)), mode="edge")
    return sum(weight / weights.sum() * wide[k : k + len(c)] for k, weight in enumerate(weights))


def _kernel(values: Array, damping: Array, times: Array) -> Array:
    """K h + d h' of each mode of mass one; the first row counts half, as it is the end of a sum."""
    decay = damping / 2
    omega = np.sqrt(np.maximum(values - decay**2, (1e-3 / float(times[-1])) ** 2))  # what is damped more hardly moves
    fading = np.exp(-np.outer(times, decay))
    h = fading * np.sin(np.outer(times, omega)) / omega
    found = values * h + damping * (fading * np.cos(np.outer(times, omega)) - decay * h)
    found[0] /= 2
    return found
