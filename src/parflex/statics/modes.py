"""Compute natural frequencies, mode shapes, damping, participation and mesh convergence.

A mesh is refined until two independent criteria agree: the change of the frequencies by the last doubling of the
elements, and the estimated error of the motions inside the elements. A small change alone may be chance.

Modes along a path of poses are compared by MAC = (a^T M b)^2 of mass-normalised shapes. Nearly repeated modes are
compared as subspaces, and their basis is rotated to the nearest one at the pose before (orthogonal Procrustes).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, Unpack

import numpy as np

from parflex.bodies.reduced_beam import mirror_symmetric_part
from parflex.diagnostics import Diagnostic, with_code
from parflex.errors import InputError, ParflexError, SingularError
from parflex.records import Answer, Record, brief, count_of, name_list
from parflex.recursion.dynamics import mass_matrix
from parflex.robot.configuration import Configuration, Pose
from parflex.robot.load import with_refined_beams
from parflex.robot.robot import Robot, file_frame
from parflex.spatial.dual import Dual
from parflex.statics.equilibrium import NOT_STABLE
from parflex.statics.linear_model import LinearAnswer, LinearModel, linear_model_of
from parflex.statics.linear_system import eigen, moving_names, rate_units, sorted_modes
from parflex.statics.load_case import About, LoadCase, LoadKeywords, Lock, full_load_case
from parflex.statics.loads import length_row
from parflex.statics.mesh_error import (
    Refinement,
    at_same_pose,
    band_warnings,
    beam_links,
    element_errors,
    element_warnings,
    numbers_of_elements,
    refinement_messages,
)

Array = np.ndarray

USUAL = 6  # default number of modes
MOST_COORDINATES = 2500  # of a robot: larger dense eigenvalue problems take minutes
# of the change by a doubling, what is left: errors of cubic elements go with the fourth power of their length; those of
# deflected shapes, which straight elements follow, with the second
LEFT = {"undeformed": 1 / 15, "equilibrium": 1 / 3}
SAME = 0.8  # share of the common nodal motion that identifies a mode on two meshes
ABOUT, HIGHEST = 0.1, 0.98  # relative distance of equal frequencies; modes near the highest may lack partners
SMALL = 1e-4  # energy shares below are omitted
CLEAR = 0.99  # energy share of a mode of one kind: modes of symmetric robots have it to rounding
PARALLEL = 1e-2  # sine of the angle between axes: deflected robots deviate a little
MIN_MAC = 0.8  # MAC of equal shapes: any other shape then has at most 0.2
CLOSE = 1e-3  # relative distance of frequencies within which modes form a subspace
SPARE = 4  # modes above the tracked ones, partners of branches that leave the lowest modes


@dataclass(frozen=True, eq=False, repr=False)
class Modes(LinearAnswer):
    """Modes of a linear `model`: `frequencies` in Hz, lowest first, and motions that do not vibrate.

    `shapes` are over all coordinates, one column per mode, mass-normalised, the largest entry positive (m, rad);
    `damping` ratios are v^T D v / (2 omega), for light damping. `free_motions` names rigid-body modes and
    `unstable_motions` growing motions by their largest coordinate; `independent_coordinates` is the number of all
    motions.

    `excess` estimates the shares by which frequencies are too high because of too few elements or omitted modes of
    reduced beams (beyond the lowest of these modes it is the bound); it is infinite above the lowest frequency
    inside elements. `by_elements` excludes reduced beams; None if unknown. `refinement` is the mesh convergence
    with `converge`.
    """

    frequencies: Array
    shapes: Array
    damping: Array
    free_motions: list[str]
    independent_coordinates: int
    unstable_motions: list[str]
    model: LinearModel
    excess: Array = field(default_factory=lambda: np.zeros(0))
    refinement: Refinement | None = None
    by_elements: Array | None = None

    @property
    def about(self) -> About:
        """State of linearisation: `undeformed` or `equilibrium`."""
        return self.model.about

    def _told(self) -> str:
        count, hertz = len(self.frequencies), name_list([f"{value:.4g}" for value in self.frequencies])
        modes = f"{count_of(count, 'mode')}, {f'{hertz} Hz' if count else 'no frequency'}"
        parts = [f"{brief(self.model.robot.name)}: {modes}"]
        if self.free_motions:
            parts.append(f"{count_of(len(self.free_motions), 'motion')} without stiffness")
        if self.unstable_motions:
            parts.append(count_of(len(self.unstable_motions), "unstable motion"))
        return "; ".join(parts)


def natural_frequencies(
    robot: Robot,
    pose: Pose | None = None,
    modes: int | None = None,
    lock: Lock = "actuators",
    about: About | None = None,
    *,
    converge: float | None = None,
    **load: Unpack[LoadKeywords],
) -> Modes:
    """Compute the lowest natural frequencies, mode shapes and damping ratios at a pose.

    The default state is the undeformed pose, and the equilibrium under a wrench, efforts, or springs under tension.
    `free_motions` lists rigid-body modes.

    Parameters
    ----------
    robot, pose, modes, lock, about, converge, **load
        See `parflex.api.WORDS`.

    Returns
    -------
    Modes
        `frequencies` in Hz, `shapes` over all coordinates (mass-normalised), `damping` ratios, `free_motions`; with
        `converge` also `refinement`.
    """
    case = full_load_case(lock, about, load, loads_matter=False)
    if converge is None:
        return modes_of(linear_model_of(robot, pose, case), modes)
    return converged_modes(robot, pose, modes, converge, case)


def check_modes(modes: object) -> None:
    """Raise unless the number of modes is valid."""
    if isinstance(modes, bool) or not isinstance(modes, int | np.integer) or modes < 1:
        raise InputError("the number of modes must be 1 or more", key="modes", value=modes, hint="give e.g. 6")


def modes_of(model: LinearModel, modes: int | None = None, or_fewer: bool = False) -> Modes:
    """Return the lowest modes of a linear model, by default six or all; raise for too many unless `or_fewer`."""
    if modes is not None:
        check_modes(modes)
    here, count = model.configuration, len(model.names)
    units = rate_units(here)
    scale = np.outer(units, units)
    diagnostics = list(model.diagnostics)
    weights = np.sqrt(np.maximum(np.abs(np.diag(model.K)), 1e-300))
    if np.any(np.abs(model.K - model.K.T) > 1e-4 * np.outer(weights, weights)):  # frequencies feel the square of it
        text = (
            "moments with axes fixed in the world are not conservative: "
            "the modes are those of the symmetric part of the stiffness"
        )
        diagnostics.append(Diagnostic("unsymmetric-stiffness", text))
    K, M = (model.K + model.K.T) / 2 * scale, model.M * scale
    values, vectors = eigen(here, K, M)
    if model.K_tot is not None:
        values, vectors = _sharpened(values, vectors, model.K_tot, model.J @ (units[:, None] * vectors))
    values, vectors, unstable, free = sorted_modes(values, vectors, K, M)
    first = unstable + free
    if modes is None or or_fewer:
        modes = min(modes or USUAL, count - first)
    elif modes > count - first:
        if unstable:
            hint = f"{count - first} of its {count} motions vibrate, {unstable} would grow: request fewer"
            raise SingularError(NOT_STABLE, key="pose", hint=hint)
        text = f"{modes} modes are requested, but the robot has {count - first}"
        hint = "request fewer" + (f"; {first} motions have no frequency" if first else "")
        raise InputError(text, key="modes", value=modes, hint=hint)
    picked = slice(first, first + modes)
    reduced = units[:, None] * vectors
    shapes, omega = model.J @ reduced, np.sqrt(values[picked])
    signs = np.sign(shapes[np.abs(shapes[:, picked]).argmax(axis=0), range(first, first + modes)])
    damping = np.array([float(v @ model.D @ v) for v in reduced[:, picked].T]) / (2 * omega)
    free_motions, growing = (moving_names(here, part) for part in (shapes[:, unstable:first], shapes[:, :unstable]))
    if unstable:
        text = f"the equilibrium is not stable: {', '.join(map(repr, growing))} would grow"
        diagnostics.append(Diagnostic("unstable-equilibrium", text, growing[0]))
    frequencies, errors = omega / (2 * np.pi), element_errors(here, values[first:], shapes[:, first:], modes)
    diagnostics += [*element_warnings(frequencies, errors), *band_warnings(here.robot, frequencies)]
    motions = shapes[:, picked] * signs, damping, free_motions, count, growing
    model = replace(model, diagnostics=tuple(diagnostics))
    return Modes(frequencies, *motions, model, errors.shares, by_elements=errors.by_elements)


def _sharpened(values: Array, vectors: Array, K_tot: Array, shapes: Array) -> tuple[Array, Array]:
    """Recompute eigenvalues as twice the strain energy of each shape, body by body, and sort them.

    Rounding of the solver is relative to the highest eigenvalue. Shapes are more accurate, and energies of bodies
    are positive, so the slowest modes gain digits.
    """
    strained = np.einsum("ik,ik->k", shapes, K_tot @ shapes)
    order = np.argsort(strained, kind="stable")
    return strained[order], vectors[:, order]


def converged_modes(robot: Robot, pose: Pose | None, modes: int | None, converge: float, case: LoadCase) -> Modes:
    """Return modes of a mesh whose relative change is within `converge`."""
    named = [*(case.wrench or ()), *(() if isinstance(case.lock, str) else case.lock)]
    messages = refinement_messages(robot, named)
    steps, numbers = list[dict[str, Any]](), list(numbers_of_elements(robot, MOST_COORDINATES))
    best: Modes | None = None
    refusal: InputError | None = None
    converged = False
    for times in numbers:
        begin = perf_counter()
        finer = robot if times == 1 else with_refined_beams(robot, times)
        try:
            model = linear_model_of(finer, at_same_pose(robot, finer, pose), case)
            result = modes_of(model, modes)
        except InputError as error:  # nothing can move yet, or there are too few modes
            if not (error.key == "lock" and times < 4) and not (error.key == "modes" and (modes or 0) > 0):
                raise
            refusal = error
            continue
        change = _change(best, result)
        excess = result.excess if result.by_elements is None else result.by_elements  # reductions stay as they are
        remaining = max(float(excess.max(initial=0.0)), change * LEFT[model.about])
        step = {"elements": finer.refine, "coordinates": result.independent_coordinates, "change": change}
        step |= {"remaining": remaining, "seconds": perf_counter() - begin, "frequencies": result.frequencies.tolist()}
        steps.append(step)
        changes = [step["change"] for step in steps if np.isfinite(step["change"])]
        # nothing else estimates the error of a deflected robot: its changes must become smaller
        settled = model.about == "undeformed" or (len(changes) > 1 and changes[-1] <= max(changes[-2], 1e-12))
        best, converged = result, max(change, remaining) <= converge and settled
        if converged:
            break
    if best is None:
        assert refusal is not None
        raise refusal
    if not converged:
        why = (
            f"{numbers[-1] * robot.refine} elements in each of the file, the limit, leave a change of {change:.2g} "
            f"and an error of about {remaining:.2g}, not the requested {converge:g}"
        )
        messages.append(Diagnostic("not-converged", why, value=change))
    why = "" if converged else messages[-1].text
    refinement = Refinement(steps[-1]["elements"], change, remaining, converged, steps, why)
    model = replace(best.model, diagnostics=(*best.model.diagnostics, *messages))
    return replace(best, refinement=refinement, model=model)


def _change(before: Modes | None, after: Modes) -> float:
    """Return the largest relative change of the frequencies; infinite for different modes."""
    if before is None or _sizes(before) != _sizes(after) or not _all_known(before, after):
        return np.inf
    return float(np.abs(before.frequencies / after.frequencies - 1).max(initial=0.0))


def _sizes(modes: Modes) -> list[int]:
    return [len(motions) for motions in (modes.frequencies, modes.free_motions, modes.unstable_motions)]


def _all_known(before: Modes, after: Modes) -> bool:
    """Return whether each mode matches the nodal motions of a mode of similar frequency on the coarser mesh."""
    known_motions, new_motions = _node_motions(before, after)
    top = after.frequencies.max(initial=0.0)
    for k, frequency in enumerate(after.frequencies):
        if frequency > HIGHEST * top:
            continue
        candidates = known_motions[:, np.abs(before.frequencies / frequency - 1) < ABOUT]
        size, residual = np.linalg.norm(new_motions[:, k]), new_motions[:, k]
        if not candidates.size or not size > 0:
            return False
        residual = residual - candidates @ np.linalg.lstsq(candidates, residual, rcond=None)[0]
        if 1 - (np.linalg.norm(residual) / size) ** 2 < SAME:
            return False
    return True


def _node_motions(before: Modes, after: Modes) -> tuple[Array, Array]:
    """Return the twists of common nodes, rotations times a length, one column per mode."""
    (coarse, fine), tree = (beam_links(modes.model.robot) for modes in (before, after)), before.model.robot.tree
    inside, finer = {j for row in coarse.values() for j in row[1:]}, after.model.robot.tree
    common = [(j, link.name) for j, link in enumerate(tree.links) if j not in inside and link.name in finer.places]
    pairs = [(j, finer.number(name)) for j, name in common]
    for name, row in coarse.items():
        pairs += list(zip(row[1:], fine[name][2::2], strict=True))

    def motions(modes: Modes, numbers: Iterable[int]) -> Array:
        jacobians = modes.model.configuration.link_jacobians
        rows = [np.vstack([jacobians[j][0], tree.length * jacobians[j][1]]) @ modes.shapes for j in numbers]
        return np.vstack(rows)

    return motions(before, (pair[0] for pair in pairs)), motions(after, (pair[1] for pair in pairs))


natural_frequencies.doubts = (  # type: ignore[attr-defined]
    lambda found: with_code(found.model.diagnostics, "unstable-equilibrium")
)


def participation(here: Configuration, shapes: Array) -> list[dict[str, float]]:
    """Return the share of strain energy of each mode in each frame with a beam or spring, without small shares."""
    shares = [strain_shares(here, shape) for shape in shapes.T]
    return [{name: share for name, share in table.items() if share > SMALL} for table in shares]


def strain_shares(here: Configuration, shape: Array) -> dict[str, float]:
    """Return the share of the strain energy of a motion in each frame with a beam or spring, and in each element."""
    bending, springs, elements = _strain(here, shape)
    table = _sums([*_frames(here.robot), *elements], [*bending + springs, *elements.values()])
    total = sum(table.values())
    return {name: energy / total for name, energy in table.items()} if total else table


def energy_shares(modes: Modes) -> list[dict[str, Any]]:
    """Return for each mode strain energy by bodies, joints and legs, kinetic energy by bodies and legs, and kind.

    `kind` is "in-plane", "out-of-plane" or "mixed" for a robot whose joints all move it in one plane, else None.
    """
    robot, here = modes.model.robot, modes.model.configuration
    frames, legs = _frames(robot), [link.leg for link in robot.tree.links]
    normal = plane_normal(here)
    bent = [
        mirror_symmetric_part(link.body, R.T @ normal) if normal is not None and link.body.size else np.zeros((0, 0))
        for link, R in zip(robot.tree.links, here.at.rotation, strict=True)
    ]
    result = []
    for shape in modes.shapes.T:
        bending, springs, elements = _strain(here, shape)
        total = float(bending.sum() + springs.sum() + sum(elements.values()))
        strain = {"bodies": _shares(frames, bending, total), "joints": _shares(frames, springs, total)}
        strain["legs"] = _shares(legs, bending + springs, total)
        if elements:
            strain["elements"] = _shares(elements, elements.values(), total)
        energies, share = _kinetic(here, shape, normal, bent)
        kinetic = {"bodies": _shares(frames, energies, sum(energies)), "legs": _shares(legs, energies, sum(energies))}
        kind = None
        if share is not None:
            kind = "in-plane" if share > CLEAR else "out-of-plane" if share < 1 - CLEAR else "mixed"
        result.append({"strain": strain, "kinetic": kinetic, "in_plane": share, "kind": kind})
    return result


def _frames(robot: Robot) -> list[str]:
    return [file_frame(robot, link.name) for link in robot.tree.links]


def _sums(names: Iterable[str | None], energies: Iterable[float]) -> dict[str, float]:
    table: dict[str, float] = {}
    for name, energy in zip(names, energies, strict=True):
        if name is not None:
            table[name] = table.get(name, 0.0) + float(energy)
    return table


def _shares(names: Iterable[str | None], energies: Iterable[float], total: float) -> dict[str, float]:
    table = _sums(names, energies)
    return {name: energy / total for name, energy in table.items() if energy > SMALL * total}


def _strain(here: Configuration, shape: Array) -> tuple[Array, Array, dict[str, float]]:
    """Return twice the strain energy of body and joint of each link and of each element, without preload."""
    tree = here.robot.tree
    bending, springs = np.zeros(len(tree.links)), np.zeros(len(tree.links))
    for j, link in enumerate(tree.links):
        e = shape[link.e_v]
        bending[j] = e @ link.body.material_stiffness(here.q[link.e]) @ e
        springs[j] = link.terms.stiffness * shape[link.v.start] ** 2 if link.joint.one_axis else 0.0
    for spring in tree.springs:
        if not spring.slack(here.q):
            springs[spring.numbers[0]] += spring.stiffness * float(spring.along(shape)) ** 2  # counted with its joint
    elements: dict[str, float] = {}
    for element in tree.elements:
        if element.acts:
            length, row = length_row(here, element)
            tension = element.tension(Dual(float(length), np.ones(1)), 0.0)
            slope = float(tension.slope[0]) if isinstance(tension, Dual) else 0.0
            elements[element.name] = slope * float(row @ shape) ** 2
    return bending, springs, elements


def _kinetic(here: Configuration, shape: Array, normal: Array | None, bent: list[Array]) -> tuple[Array, float | None]:
    """Return twice the kinetic energy of each link, and its in-plane share; `bent` is that of elastic coordinates."""
    energies, inside, outside = [], 0.0, 0.0
    links = zip(here.robot.tree.links, here.link_jacobians, here.at.rotation, bent, strict=True)
    for link, (J_v, J_w), R, planar_part in links:
        M = link.body.inertia_matrix(here.q[link.e])
        motor = link.terms.motor_inertia * float(shape[link.v.start]) ** 2 if link.terms.motor_inertia else 0.0
        twist = np.concatenate([J_v @ shape, J_w @ shape, shape[link.e_v]])
        energies.append(float(twist @ M @ twist) + motor)
        if normal is not None:
            along = np.outer(R.T @ normal, R.T @ normal)
            planar = np.concatenate([twist[:3] - along @ twist[:3], along @ twist[3:6], planar_part @ twist[6:]])
            inside += float(planar @ M @ planar) + motor
            outside += float((twist - planar) @ M @ (twist - planar))
    return np.array(energies), inside / (inside + outside) if normal is not None else None


def plane_normal(here: Configuration) -> Array | None:
    """Return the normal of the plane of motion of all joints, or None."""
    tree = here.robot.tree
    if tree.planar:
        return np.array([0.0, 0.0, 1.0])
    hinges, slides = [], []
    for link, R in zip(tree.links, here.at.rotation, strict=True):
        if link.joint.moves_freely:
            continue
        if len(link.joint.rate_labels) > 1:
            return None
        hinges += list((R @ link.joint.S_w).T[link.joint.S_w.any(axis=0)])
        slides += [axis / np.linalg.norm(axis) for axis in (R @ link.joint.S_v).T[link.joint.S_v.any(axis=0)]]
    loops = here.robot.closures.loops
    hinges += [here.at.of(loop.first)[0] @ loop.u1 for loop in loops if loop.turning == "about-axis"]
    if not hinges or any(np.linalg.norm(np.cross(hinges[0], axis)) >= PARALLEL for axis in hinges):
        return None
    return hinges[0] if all(abs(hinges[0] @ axis) < PARALLEL for axis in slides) else None


def default_number_of_modes(
    robot: Robot, modes: int | None, lock: str | Sequence[str] = "actuators", about: About | None = None
) -> int:
    """Return the requested number of modes; by default six, or all that the robot has at home if fewer."""
    if modes is not None:
        check_modes(modes)
        return modes
    try:
        count = len(natural_frequencies(robot, None, None, lock, about).frequencies)
    except ParflexError:  # a request that fails at home may succeed elsewhere, or is refused there
        return USUAL
    return count or USUAL


@dataclass(frozen=True, eq=False, repr=False)
class TrackedModes(Answer):
    """Branches along a path: `frequencies` (Hz, places x branches) and mass-normalised `shapes` (m, rad).

    `places` counts the input poses; inserted poses have fractions. `positions` has all positions at each place (m,
    rad). `agreement` (places x branches) is the MAC with the previous place, for repeated modes that of the
    subspace; `doubtful` lists places where it stays low for any spacing.
    """

    places: Array
    positions: Array
    frequencies: Array
    shapes: Array
    agreement: Array
    doubtful: list[float] = field(default_factory=list)

    def _told(self) -> str:
        poses, branches = self.frequencies.shape
        span = f"{np.nanmin(self.frequencies):.4g} to {np.nanmax(self.frequencies):.4g} Hz"
        doubts = f", {count_of(len(self.doubtful), 'doubtful place')}" if self.doubtful else ""
        return f"{count_of(branches, 'mode')} at {count_of(poses, 'pose')}, {span}{doubts}"


@dataclass(frozen=True, eq=False, repr=False)
class TrackedPose(Record):
    """Modes at one place of the path."""

    place: float
    q: Array
    M: Array
    frequencies: Array
    shapes: Array


def track_modes(
    robot: Robot,
    poses: Sequence[str | Mapping[str, float]],
    modes: int | None = None,
    lock: str | Sequence[str] = "actuators",
    agreement: float = MIN_MAC,
    finest: float = 1 / 64,
) -> TrackedModes:
    """Track the lowest modes of the first pose along a path of poses by their shapes.

    Poses are inserted where shapes change too much, down to the `finest` share of the path.

    Parameters
    ----------
    robot, lock, agreement, finest
        See `parflex.api.WORDS`.
    poses : Sequence
        Poses of the path, at least two, each with the same coordinates (m, rad).
    modes : int, default None
        Number of modes; None: six, or all if there are fewer at home.

    Returns
    -------
    TrackedModes
        Frequencies in Hz (poses x branches), shapes, and places where the tracking is doubtful.
    """
    modes = default_number_of_modes(robot, modes, lock)
    for key, value in (("agreement", agreement), ("finest", finest)):
        if not 0 < value <= 1:  # a finest share of zero would be searched for endlessly
            raise InputError(f"'{key}' is not a share", key=key, value=value, hint="give a number above 0, up to 1")
    stations = _stations(robot, poses)
    case = LoadCase(lock)
    current = _pose_at(robot, stations, 0.0, robot.home, modes, case)
    current = replace(current, frequencies=current.frequencies[:modes], shapes=current.shapes[:, :modes])
    tracked, agreements, doubtful = [current], [np.ones(modes)], []
    waiting = [_pose_at(robot, stations, float(k), None, modes, case) for k in reversed(range(1, len(stations)))]
    while waiting:
        next_pose = waiting[-1]
        before = _settled(current, next_pose) if len(tracked) == 1 else current
        matched, agreeing = match_modes(before, next_pose)
        if agreeing.min() < agreement:
            if next_pose.place - current.place > finest:
                middle = (current.place + next_pose.place) / 2
                waiting.append(_pose_at(robot, stations, middle, current.q, modes, case))
                continue
            doubtful.append(next_pose.place)
        tracked[-1], current = before, matched
        tracked.append(current)
        agreements.append(agreeing)
        waiting.pop()
    places, positions, frequencies, shapes = (
        np.array([getattr(entry, name) for entry in tracked]) for name in ("place", "q", "frequencies", "shapes")
    )
    return TrackedModes(places, positions, frequencies, shapes, np.array(agreements), doubtful)


def match_modes(before: TrackedPose, after: TrackedPose) -> tuple[TrackedPose, Array]:
    """Return the modes of `after` in the order and basis of `before`, and their agreement."""
    from scipy.optimize import linear_sum_assignment  # a tenth of a second to load

    overlap = before.shapes.T @ (0.5 * (before.M + after.M)) @ after.shapes
    sizes = np.outer(*(np.sqrt(np.einsum("ik,ij,jk->k", s.shapes, s.M, s.shapes)) for s in (before, after)))
    overlap, groups = overlap / sizes, close_groups(after.frequencies)
    likeness = np.empty_like(overlap)
    for group in groups:
        likeness[:, group] = (overlap[:, group] ** 2).sum(axis=1)[:, None]  # of the whole subspace
    branches, partners = linear_sum_assignment(-likeness)
    shapes, squares = np.empty_like(before.shapes), np.empty(len(branches))
    for group in groups:
        matched = np.flatnonzero(np.isin(partners, group))
        if not len(matched):
            continue
        U, _, Vt = np.linalg.svd(overlap[matched][:, group], full_matrices=False)
        rotation = (U @ Vt).T  # columns: the basis of the group nearest to the branches
        shapes[:, matched] = after.shapes[:, group] @ rotation
        squares[matched] = (after.frequencies[group] ** 2) @ rotation**2
    return replace(after, frequencies=np.sqrt(squares), shapes=shapes), likeness[branches, partners]


def close_groups(frequencies: Array) -> list[Array]:
    """Return groups of modes with close frequencies, lowest first."""
    apart = np.flatnonzero(np.diff(frequencies) > CLOSE * frequencies[1:]) + 1
    return np.split(np.arange(len(frequencies)), apart)


def _settled(first: TrackedPose, after: TrackedPose) -> TrackedPose:
    """Rotate repeated modes of the first pose to the basis of the next pose."""
    shapes, mean = first.shapes.copy(), 0.5 * (first.M + after.M)
    for group in (group for group in close_groups(first.frequencies) if len(group) > 1):
        overlap = first.shapes[:, group].T @ mean @ after.shapes
        partners = np.sort(np.argsort(-(overlap**2).sum(axis=0))[: len(group)])
        U, _, Vt = np.linalg.svd(overlap[:, partners])
        shapes[:, group] = first.shapes[:, group] @ (U @ Vt)
    return replace(first, shapes=shapes)


def _pose_at(
    robot: Robot, stations: list[dict[str, float]], place: float, near: Array | None, modes: int, case: LoadCase
) -> TrackedPose:
    """Return the modes at a place of the path, interpolating coordinates between two poses."""
    k = min(int(place), len(stations) - 2)
    share = place - k
    coordinates = {word: (1 - share) * value + share * stations[k + 1][word] for word, value in stations[k].items()}
    configuration = Configuration(robot, robot.assemble(coordinates, near))
    model = linear_model_of(robot, configuration, case)
    try:
        result = modes_of(model, modes + SPARE)
    except InputError:  # fewer modes than that: all of them do
        result = modes_of(model, modes)
    M = mass_matrix(robot.tree, model.configuration.at)
    return TrackedPose(place, configuration.q, M, result.frequencies, result.shapes)


def _stations(robot: Robot, poses: Sequence[str | Mapping[str, float]]) -> list[dict[str, float]]:
    """Return the poses of the path as the same coordinates by name, which can be interpolated."""
    if len(poses) < 2:
        raise InputError("a path needs at least two poses", key="poses", value=len(poses), hint="give start and end")
    file_poses = robot.description.poses
    stations = []
    for entry in poses:
        if isinstance(entry, str) and entry not in file_poses:
            raise InputError(f"the robot has no pose '{entry}'", key="poses", value=entry, hint="see 'parflex info'")
        stations.append(dict(file_poses[entry] if isinstance(entry, str) else entry))
        if stations[-1].keys() != stations[0].keys():
            text, hint = "the poses of a path give different coordinates", f"give {', '.join(stations[0])} in each"
            raise InputError(text, key="poses", value=", ".join(stations[-1]), hint=hint)
    return stations
