"""Natural frequencies of a robot whose beams are divided until all modes that are asked for are converged.

Two things that know nothing of each other have to agree: the change of the frequencies by the last doubling of the
elements, and the estimate of what is left from the motions inside the elements. A small change alone may be chance.
"""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from parflex.errors import InputError
from parflex.models.elastic.linear_model import linear_model
from parflex.models.vibration.element_errors import beam_links
from parflex.models.vibration.natural_modes import Modes, modes_of
from parflex.models.vibration.refinement import Refinement, at_same_pose, check_share, numbers_of_elements, refinable
from parflex.robot.configuration import Pose
from parflex.robot.load import with_refined_beams
from parflex.robot.robot import Robot

Array = np.ndarray
MOST_COORDINATES = 2500  # of a robot: dense eigenvalue problems of more take minutes
# of the change by a doubling, what is left: errors of cubic elements go with the fourth power of their length; those of
# deflected shapes, which straight elements follow, with the second
LEFT = {"undeformed": 1 / 15, "equilibrium": 1 / 3}
SAME = 0.8  # of a mode's motion of common nodes that modes of about its frequency must have with fewer elements
ABOUT, HIGHEST = 0.1, 0.98  # frequencies that are about the same; those so near to the highest may have partners above


def converged_modes(robot: Robot, pose: Pose | None, modes: int | None, converge: float, **words: Any) -> Modes:
    """Modes with as many elements as it takes; what is asked is said in the words of `natural_frequencies`."""
    share = check_share(converge)
    lock = words.get("lock")
    named = [*(words.get("wrench") or ()), *(() if lock is None or isinstance(lock, str) else lock)]
    kept = refinable(robot, named)
    steps: list[dict[str, Any]] = []
    best: Modes | None = None
    refusal: InputError | None = None
    numbers = list(numbers_of_elements(robot, MOST_COORDINATES))
    for times in numbers:
        begin = perf_counter()
        finer = robot if times == 1 else with_refined_beams(robot, times)
        try:
            model = linear_model(finer, at_same_pose(robot, finer, pose), **words)
            found = modes_of(model, modes)
        except InputError as error:  # nothing can move yet, or there are fewer modes than are asked for
            if not (error.key == "lock" and times < 4) and not (error.key == "modes" and (modes or 0) > 0):
                raise
            refusal = error
            continue
        change = _change(best, found)
        own = found.excess if found.by_elements is None else found.by_elements  # reductions stay as they are
        left = max(float(own.max(initial=0.0)), change * LEFT[model.about])
        step = {"elements": finer.refine, "coordinates": found.independent_coordinates, "change": change}
        step |= {"remaining": left, "seconds": perf_counter() - begin, "frequencies": found.frequencies.tolist()}
        steps.append(step)
        best = found
        if max(change, left) <= share and (model.about == "undeformed" or _settles(steps)):
            return _with(best, Refinement(finer.refine, change, left, True, steps), kept)
    if best is None:
        assert refusal is not None
        raise refusal
    last = steps[-1]
    why = (
        f"{numbers[-1] * robot.refine} elements in each of the file, the limit, leave a change of {last['change']:.2g} "
        f"and an error of about {last['remaining']:.2g}, not the {share:g} asked for"
    )
    return _with(best, Refinement(last["elements"], last["change"], last["remaining"], False, steps, why), kept)


def _with(found: Modes, refinement: Refinement, said: list[str]) -> Modes:
    sentences = [*found.model.warnings, *said, *([refinement.why] if refinement.why else [])]
    return replace(found, refinement=refinement, model=replace(found.model, warnings=sentences))


def _settles(steps: list[dict[str, Any]]) -> bool:
    """Whether the changes of a deflected robot, whose error nothing else estimates, become smaller."""
    changes = [step["change"] for step in steps if np.isfinite(step["change"])]
    return len(changes) > 1 and changes[-1] <= max(changes[-2], 1e-12)


def _change(before: Modes | None, found: Modes) -> float:
    """Largest relative change of the frequencies; infinite where there are other modes than before."""
    if before is None or len(before.frequencies) != len(found.frequencies):
        return np.inf
    sizes = [(len(one.free_motions), len(one.unstable_motions)) for one in (before, found)]
    if sizes[0] != sizes[1] or not _all_known(before, found):
        return np.inf
    return float(np.abs(before.frequencies / found.frequencies - 1).max(initial=0.0))


def _all_known(before: Modes, found: Modes) -> bool:
    """Whether each mode moves the nodes of both as modes of about its frequency did with half the elements."""
    known, new = _node_motions(before, found)
    top = found.frequencies.max(initial=0.0)
    for k, frequency in enumerate(found.frequencies):
        if frequency > HIGHEST * top:
            continue
        alike = known[:, np.abs(before.frequencies / frequency - 1) < ABOUT]
        size, rest = np.linalg.norm(new[:, k]), new[:, k]
        if not alike.size or not size > 0:
            return False
        rest = rest - alike @ np.linalg.lstsq(alike, rest, rcond=None)[0]
        if 1 - (np.linalg.norm(rest) / size) ** 2 < SAME:
            return False
    return True


def _node_motions(before: Modes, found: Modes) -> tuple[Array, Array]:
    """Twists, turns times a length, of the nodes that both robots have, one column a mode."""
    links = beam_links(before.model.robot), beam_links(found.model.robot)
    inside = [{j for row in one.values() for j in row[1:]} for one in links]
    trees = [modes.model.robot.tree for modes in (before, found)]
    pairs = [
        (j, trees[1].number(link.name))
        for j, link in enumerate(trees[0].links)
        if j not in inside[0] and link.name in trees[1].places
    ]
    for name, row in links[0].items():
        pairs += list(zip(row[1:], links[1][name][2::2], strict=True))
    length = trees[0].length
    return tuple(  # type: ignore[return-value]
        np.vstack([np.vstack([J_v, length * J_w]) @ modes.shapes for J_v, J_w in (jacobians[p[side]] for p in pairs)])
        for side, (modes, jacobians) in enumerate((m, m.model.configuration.link_jacobians) for m in (before, found))
    )
