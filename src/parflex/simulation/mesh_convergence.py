"""Mesh convergence of runs.

A run is repeated with twice the elements in all beams until it changes by at most a share of its deflections, and the
error of the frequencies in the strain of the beams is below that share too. Positions and rotations of frames are
compared with the largest deflection and rotation of a beam, efforts and `outputs` with the largest of their kind.

To first order the error of a run is the response of the robot to the inertia of motions inside elements that their
shapes omit, theory (73): a convolution over the past in the modes at the start. The mean frequency of an element is
omega^2 = <ed^T K ed> / <e^T K e>, each about its mean. With mu the lowest frequency of its omitted motions, omega is
too high by at most 1/2 omega^2/(mu^2 - omega^2) of it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from parflex.diagnostics import Diagnostic, reported, with_code
from parflex.errors import InputError, ParflexError
from parflex.records import count_of
from parflex.robot.configuration import Configuration
from parflex.robot.load import with_refined_beams
from parflex.robot.robot import Robot
from parflex.simulation.quantities import coordinate_rows, frame_difference, quantity
from parflex.simulation.runs import Run
from parflex.spatial.linear import eigen_pairs
from parflex.spatial.rotations import ORIENTATION, hat
from parflex.statics.mesh_error import ENOUGH as MODES_RESOLVED
from parflex.statics.mesh_error import (
    REACHED,
    WARNING_EXCESS,
    InnerMotions,
    at_same_pose,
    beam_links,
    inner_beams,
    numbers_of_elements,
    refinement_messages,
    same_positions,
)
from parflex.trajectories.frames import FrameTrajectory
from parflex.trajectories.trajectory import Trajectory

LOG = logging.getLogger("parflex")
Array = np.ndarray
MOST_RUN_COORDINATES = 800  # of a robot in time: programs of more take minutes to make
OFF = 0.02  # of the deflection: twice the converge=1e-2 that is advised, as the estimate is right within a third
ENOUGH_RESPONSE = 0.01  # of the deflection: the number of elements in warnings is that for this error
UNKNOWN = 0.5  # of the deflection: beyond, first order says no more than that it is much
BENT = 0.1  # of the largest deflection of a beam: smaller ones do not matter
AT_REST = 1e-10  # of the typical length: beams that deflect by less are at rest, but for rounding
MOST_ROWS, MOST_LINEAR_COORDINATES = 20_000, 300  # of a run that are used, and of a robot
RESOLVED = 1.0  # rad between two rows: faster modes follow at once as well
ROWS_OF_A_MEAN = 7  # a period of what is resolved just so
ROUNDING = 1e-10  # of the size of the robot, or of a turn by 1: less is no deflection
STRAINED = 0.01  # of the strain energy of the beam that vibrates most: others do not matter
COUPLED = 0.1  # of the motion inside an element that goes most with its shapes


def converged_run(simulate: Callable[..., Run], robot: Robot, converge: float, arguments: Mapping[str, Any]) -> Run:
    """Return the run with as many elements as convergence needs; `arguments` are those of `simulate`.

    After an interruption, or if a finer robot cannot be simulated, return the last complete run with a diagnostic.
    """
    start, outputs = arguments.get("start"), list(arguments.get("outputs") or ())
    if isinstance(start, Mapping) and {"q", "qd"} & set(start):
        text = "a start by all coordinates belongs to its number of elements"
        raise InputError(text, key="start", hint="give a pose and velocities by name")
    named = [*(arguments.get("frames") or ()), *(arguments.get("wrench") or ())]
    notes = refinement_messages(robot, [*named, *(word.rpartition(".")[0] for word in outputs)])
    if arguments.get("reactions"):
        outputs.append("reaction")
    steps: list[dict[str, Any]] = []
    best: Run | None = None
    change: float | None = None  # unknown for the first run
    converged = False
    for times in numbers_of_elements(robot, MOST_RUN_COORDINATES):
        begin, finer = perf_counter(), robot if times == 1 else with_refined_beams(robot, times)
        elements = count_of(finer.refine, "element")
        try:
            run = simulate(finer, **{**arguments, **_moved(robot, finer, arguments)})
        except KeyboardInterrupt:
            if best is None:
                raise
            text = f"interrupted before the run with {elements} in each of the file was complete"
            notes.append(Diagnostic("refinement-interrupted", text))
            break
        if run.status != "ok":
            if best is None:
                best = run
            else:
                text = f"the run with {elements} in each of the file is {run.status} at t = {run.t[-1]:.4g} s"
                notes.append(Diagnostic("refinement-stopped", text, "time", float(run.t[-1])))
            break
        apart = {} if best is None else changes(finer, run, best, outputs)
        before, change = change, max(apart.values()) if apart else None
        error, best = strain_content(finer, run).error, run
        steps.append({"elements": finer.refine, "coordinates": finer.tree.n, "change": change, "changes": apart,
                      "frequency_error": error, "seconds": perf_counter() - begin,
                      "loop_seconds": run.seconds})  # fmt: skip
        LOG.info("run with %s in each of the file: change %s, %.1f s", elements, change, steps[-1]["seconds"])
        # a change that is larger than the one before may be small by chance
        if change is not None and max(change, error) <= converge:
            converged = before is None or change <= max(before, 1e-12)
            if converged:
                break
    assert best is not None
    return _with(best, steps, converged, converge, notes)


def _moved(robot: Robot, finer: Robot, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that depend on the number of elements, for another robot."""
    moved: dict[str, Any] = {}
    motion, start = arguments.get("motion"), arguments.get("start")
    if isinstance(motion, Trajectory | FrameTrajectory):
        moved["motion"] = replace(motion, start=same_positions(robot, finer, motion.start))
    if arguments.get("pose") is not None:
        moved["pose"] = at_same_pose(robot, finer, arguments["pose"])
    if isinstance(start, Mapping) and "pose" in start:
        moved["start"] = {**start, "pose": at_same_pose(robot, finer, start["pose"])}
    return moved


def _with(run: Run, steps: list[dict[str, Any]], converged: bool, share: float, notes: list[Diagnostic]) -> Run:
    """Return the run with its refinement in the summary."""
    last = steps[-1] if steps else {"elements": None, "change": None, "changes": {}}
    diagnostics = [*run.diagnostics, *notes]
    if not converged and run.status == "ok":
        diagnostics.append(Diagnostic("not-converged", _not_converged(last, share), value=last["change"]))
    run.summary.update(
        elements=last["elements"], change=last["change"], change_by_kind=last["changes"], converged=converged,
        refinement=steps, **reported(diagnostics),
    )  # fmt: skip
    if with_code(notes, "refinement-interrupted"):
        run.summary["status"] = "interrupted"
    return run


def _not_converged(last: Mapping[str, Any], share: float) -> str:
    """Return why a run is not converged: the kind of result that changed most, or the frequencies of the strain."""
    if last["change"] is None:
        return f"there is one run alone: nothing says whether it is converged within {share:g}"
    worst = max(last["changes"], key=lambda kind: last["changes"][kind])
    of = "deflection" if worst == "position" else worst
    changed = f"the run changed by {last['change']:.2g} of its largest {of} with the last elements"
    if last["change"] > share:
        return f"{changed}, not by the {share:g} asked for at most"
    if last["frequency_error"] > share:
        return (
            f"{changed}, but the frequencies of its strain may be off by {last['frequency_error']:.2g}, not {share:g}"
        )
    return f"{changed}, which is more than with those before: it may be chance that this is below {share:g}"


def inner_warnings(
    robot: Robot, prescribed: str, columns: Mapping[str, Array], accelerations: Array, without: Sequence[str] = ()
) -> list[Diagnostic]:
    """Return a diagnostic of the beam with the largest error, if its elements are too few for its motion.

    Runs of a driven platform are not checked.
    """
    tree, rows = robot.tree, slice(0, MOST_ROWS)
    beams = inner_beams(robot) if prescribed != "platform" and tree.n <= MOST_LINEAR_COORDINATES else {}
    q = coordinate_rows(robot, columns)[rows]
    t, moved = columns["t"][rows], accelerations[rows]
    if not beams or len(t) < 3 or not (np.isfinite(moved).all() and np.isfinite(q).all() and t[-1] > t[0]):
        return []
    e = _elastic_rows(robot, q)
    e -= e.mean(axis=0)
    nodes = {name: _node_motions(robot, beam.links)[:, :3] for name, beam in beams.items()}
    sizes = {name: float(_deflections(motions, e).max()) for name, motions in nodes.items()}
    most = max(sizes.values())
    if not most > AT_REST * tree.length:
        return []
    try:
        off = _off(Configuration(robot, q[0]), prescribed == "motors", t, moved, without)
    except (ParflexError, np.linalg.LinAlgError):  # no modes at the start: nothing is known
        return []
    shares = {name: _deflections(nodes[name], off) / max(sizes[name], BENT * most) for name in beams}
    worst = max(shares, key=lambda name: float(shares[name].max()))
    share, count = float(shares[worst].max()), len(beams[worst].links)
    if not share > OFF:
        return []
    time = float(t[int(np.argmax(shares[worst] > min(OFF, 0.99 * share)))])
    enough = max(count + 1, int(np.ceil(count * (share / ENOUGH_RESPONSE) ** 0.25)))  # errors: fourth power
    its = "its element is" if count == 1 else f"its {count} elements are"
    much = f"about {share:.0%}" if share < UNKNOWN else "half or more"
    text = (
        f"'{worst}' is off by {much} of its largest deflection, from t = {time:.3g} s on by more than "
        f"{OFF:.0%}: {its} too long for how it is shaken or vibrates; use {enough} elements, or converge=1e-2"
    )
    return [Diagnostic("few-elements", text, worst, share)]


def largest_beam_deflection(robot: Robot, j: int, q: Array) -> float:
    """Return the largest deflection (m), if small, of the beam that link `j` is an element of, in rows of positions."""
    beam = next((candidate for candidate in inner_beams(robot).values() if j in candidate.links), None)
    if beam is None:
        return 0.0
    return float(_deflections(_node_motions(robot, beam.links)[:, :3], _elastic_rows(robot, q)).max(initial=0.0))


def _elastic_rows(robot: Robot, q: Array) -> Array:
    """Return elastic coordinates of rows of positions, in the order of the rates."""
    e = np.zeros((len(q), robot.tree.n))
    for link in robot.tree.links:
        e[:, link.e_v] = q[:, link.e]
    return e


def _node_motions(robot: Robot, links: Sequence[int]) -> Array:
    """Return displacements and rotations (node, component, rate) of nodes of a beam in axes of its root, if small."""
    twist, motions = np.zeros((6, robot.tree.n)), []
    for j in links:
        link = robot.tree.links[j]
        tip = link.body.nodes["tip"]
        twist[:3] -= hat(tip.r0) @ twist[3:]
        twist[:, link.e_v] += np.vstack([tip.Phi_d, tip.Phi_r])
        motions.append(twist.copy())
    return np.array(motions)


def _deflections(motions: Array, q: Array) -> Array:
    """Return the largest displacement, or rotation, of a node in each row."""
    moved = q @ motions.reshape(-1, motions.shape[2]).T
    return np.linalg.norm(moved.reshape(len(q), *motions.shape[:2]), axis=2).max(axis=1)


def _inertia_inside(here: Configuration) -> Array:
    """Return C of all elements, over the rates of the tree, theory (73)."""
    tree, inertia = here.robot.tree, np.zeros((here.robot.tree.n, here.robot.tree.n))
    for beam in inner_beams(here.robot).values():
        for j, inside in zip(beam.links, beam.inside, strict=True):
            elastic_rows = np.zeros((tree.links[j].body.size, tree.n))
            elastic_rows[:, tree.links[j].e_v] = np.eye(len(elastic_rows))
            x = np.vstack([*here.link_jacobians[j], elastic_rows])
            inner = inside.M_ib @ x
            inertia += inner.T @ np.linalg.solve(inside.K_ii, inner)
    return inertia


def _off(here: Configuration, driven: bool, t: Array, moved: Array, without: Sequence[str]) -> Array:
    """Return the errors of the coordinates of all rates in rows: responses of the modes that rows resolve."""
    from scipy.ndimage import convolve1d  # which rigid robots do without
    from scipy.signal import fftconvolve

    from parflex.statics.linear_model import linear_model

    model = linear_model(here.robot, here, "actuators" if driven else "none", "undeformed", without=without)
    values, vectors = eigen_pairs((model.K + model.K.T) / 2, model.M)
    step = float(t[-1] - t[0]) / (len(t) - 1)
    slow = (values >= 0) & (values < (RESOLVED / step) ** 2)
    values, vectors = values[slow], vectors[:, slow]
    shapes, C = model.J @ vectors, _inertia_inside(here)
    mass = (1 + np.sqrt(1 + 4 * values * np.einsum("nk,nm,mk->k", shapes, C, shapes))) / 2
    weights = np.hanning(ROWS_OF_A_MEAN + 2)[1:-1]  # vibrations that rows and steps do not resolve are left out
    c = convolve1d(moved @ C @ shapes / mass, weights / weights.sum(), axis=0, mode="nearest")
    damping = np.einsum("ik,ij,jk->k", vectors, model.D, vectors) / mass
    kernel = _kernel(values / mass, damping, step * np.arange(len(t)))
    return (c - step * fftconvolve(kernel, c, axes=0)[: len(t)]) @ shapes.T


def _kernel(values: Array, damping: Array, times: Array) -> Array:
    """Return k h + d h' of each mode of mass one; the first row counts half, as the end of a trapezoidal sum."""
    decay = damping / 2
    omega = np.sqrt(np.maximum(values - decay**2, (1e-3 / float(times[-1])) ** 2))  # what is damped more hardly moves
    fading = np.exp(-np.outer(times, decay))
    h = fading * np.sin(np.outer(times, omega)) / omega
    kernel = values * h + damping * (fading * np.cos(np.outer(times, omega)) - decay * h)
    kernel[0] /= 2
    return kernel


def largest_column_deflection(robot: Robot, columns: Mapping[str, Array]) -> tuple[float, float]:
    """Return the largest deflection (m) and rotation (rad) of the node of a beam in a run."""
    e, length = _elastic_rows(robot, coordinate_rows(robot, columns)), robot.tree.length
    motions = [_node_motions(robot, links) for links in beam_links(robot).values()]
    moved, turned = (
        max((float(_deflections(nodes[:, part], e).max(initial=0.0)) for nodes in motions), default=0.0)
        for part in (slice(0, 3), slice(3, 6))
    )
    return max(moved, ROUNDING * length), max(turned, moved / length, ROUNDING)


def changes(
    robot: Robot, columns: Mapping[str, Array], before: Mapping[str, Array], outputs: Collection[str] = ()
) -> dict[str, float]:
    """Return relative changes by kind: position, turn, effort, and the quantities of `outputs`."""
    rows = min(len(columns["t"]), len(before["t"]))
    moved, turned = largest_column_deflection(robot, columns)
    result: dict[str, float] = {}
    frames = [name.removesuffix(".x") for name in columns if name.endswith(".x")]
    for frame in frames:
        if f"{frame}.theta" in columns or f"{frame}.{ORIENTATION[0]}" in columns:
            metres, radians, _ = frame_difference(columns, before, frame)
            result["position"] = max(result.get("position", 0.0), metres / moved)
            result["turn"] = max(result.get("turn", 0.0), radians / turned)
    kinds: dict[str, list[str]] = {}
    for name in columns:
        kind = _kind(robot, name, outputs)
        if kind and name in before:
            kinds.setdefault(kind, []).append(name)
    for kind, names in kinds.items():
        size = max(float(np.nanmax(np.abs(columns[name]), initial=0.0)) for name in names)
        apart = max(float(np.nanmax(np.abs(columns[n][:rows] - before[n][:rows]), initial=0.0)) for n in names)
        size = {"deflection": max(size, moved), "position": moved, "turn": turned}.get(kind, size)
        result[kind] = max(result.get(kind, 0.0), apart / size if size > 0 else 0.0)
    return result


def _kind(robot: Robot, name: str, outputs: Collection[str]) -> str | None:
    """Return the kind of a column, with which it is compared; None if it is not compared."""
    if name.startswith("effort."):
        link = robot.tree.links[robot.tree.link_of_rate[robot.tree.rate_names.index(name.removeprefix("effort."))]]
        return "force of motors" if link.joint.unit == "m" else "moment of motors"
    requested = any(name == word or name.startswith((f"{word}.", f"{word}@")) for word in outputs)
    return quantity(name).name if requested else None


@dataclass(frozen=True)
class StrainContent:
    """The beam that vibrates fastest for its elements: its squared frequency, and that inside its elements."""

    beam: str = ""
    count: int = 1
    squared: float = 0.0
    alone: float = 1.0
    reduced: bool = False

    @property
    def error(self) -> float:
        """Return the share by which frequencies may be too high."""
        share = self.squared / self.alone
        return share / (1 - min(share, REACHED)) / 2


def strain_content(robot: Robot, columns: Mapping[str, Array], reductions: bool = False) -> StrainContent:
    """Return the beam whose vibrations are fastest for the length of its elements, or for its reduction."""
    contents, strains = [], []
    for beam in (*inner_beams(robot).values(), *(inner_beams(robot, reduced=True).values() if reductions else ())):
        strain, squared, alone = max(
            (_content(robot, *each, columns) for each in zip(beam.links, beam.inside, strict=True)),
            key=lambda content: content[0],
        )
        strains.append(strain)
        contents.append(StrainContent(beam.name, len(beam.links), squared, alone, beam.reduced is not None))
    most = max(strains, default=0.0)
    matter = [content for content, strain in zip(contents, strains, strict=True) if strain > STRAINED * most > 0]
    return max(matter, key=lambda content: content.error, default=StrainContent())


def content_warnings(robot: Robot, columns: Mapping[str, Array]) -> list[Diagnostic]:
    """Return a diagnostic if a beam vibrates too fast for the length of its elements."""
    worst = strain_content(robot, columns, reductions=True)
    if not worst.error > WARNING_EXCESS:
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
    text = (
        f"'{worst.beam}' vibrates at {fast}, the mean of its strain, and {its}: {high}, and what is faster is missing; "
        f"{advice}"
    )
    return [Diagnostic("beyond-band" if worst.reduced else "few-elements", text, worst.beam, float(worst.error))]


def _content(robot: Robot, j: int, inside: InnerMotions, columns: Mapping[str, Array]) -> tuple[float, float, float]:
    """Return mean strain energy and squared mean frequency of an element, and the squared frequency inside it."""
    link = robot.tree.links[j]
    names = [robot.tree.position_names[k] for k in range(link.e.start, link.e.stop)]
    e, ed = (np.stack([columns[f"{word}.{name}"] for name in names]) for word in ("q", "qd"))
    K = link.body.material_stiffness(np.zeros(link.body.size))
    C, C_rate = (np.atleast_2d(np.cov(rows)) if rows.shape[1] > 1 else np.zeros_like(K) for rows in (e, ed))
    strain, rate = float(np.trace(K @ C)), float(np.trace(K @ C_rate))
    still = float(np.diag(C).max(initial=0.0)) <= (AT_REST * robot.tree.length) ** 2
    if still or not strain > 0 or not np.isfinite(rate):
        return 0.0, 0.0, 1.0
    squared_frequencies, vectors = inside.still
    root = np.linalg.cholesky(K)
    shape = np.linalg.solve(root.T, np.linalg.eigh(root.T @ C_rate @ root)[1][:, -1])  # that is strained most
    coupled = (vectors.T @ (inside.M_ib[:, 6:] @ shape)) ** 2 / squared_frequencies
    return strain, rate / strain, float(squared_frequencies[np.flatnonzero(coupled > COUPLED * coupled.max())[0]])
