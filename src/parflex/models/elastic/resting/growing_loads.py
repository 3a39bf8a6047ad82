"""The states through which a robot goes while what acts on it grows, by arc length from the pose.

Weights, wrenches and efforts grow from nothing; what springs under tension do at the pose is let go at the same pace:
F_s(q) = F_0(q) + s F_loads(q) - (1 - s) F_0(q0). Where something is held by loads alone, as a pendulum by its weight,
all that acts at the pose is let go instead. Arc length passes steep parts and limit points alike, so that what is said
of either is known: at a limit point the share s turns back, at a branching it goes on through states that are unstable.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from parflex.errors import SingularError
from parflex.models.elastic.loads_at_rest import Loading, tangent_stiffness
from parflex.models.elastic.resting.static_newton import (
    SAME,
    STRIDE,
    TOLD,
    closed_step,
    newton,
    no_motion_gains,
)
from parflex.models.elastic.stiff_system import DRIVEN, rate_units
from parflex.records import Record
from parflex.robot.configuration import Configuration

Array = np.ndarray
Growth = Callable[[float], Loading]
LONGEST = 2 * STRIDE  # arc: share and motion, the latter in radians and typical lengths
SHORTEST = 2e-4  # arc within which a limit point beside all of the loads is pinned
PINNED = 0.02  # arc within which one that is farther from them is
LOST = 1e-9  # arc below which a path is not followed any more
MOST = 200  # steps of arc
FAR = 8.0  # rad or typical lengths: a robot that has gone so far is falling, or its bodies are not small in deformation
CORRECTIONS = 8  # Newton steps after a step of arc, which is too long where more are needed
NEAR = 1e-6  # of a step of arc: corrections below are the last
ALIGNED = 0.97  # cosine between neighbouring tangents: a quarter turn takes seven steps, and no fold is stepped over
FIRST = 0.02  # first step of arc: what buckles under less of the loads is seen
FEW = 3  # corrections
GROWTH = 2.5  # of a step of arc after one that few corrections ended


@dataclass(frozen=True)
class Growing:
    """Where loads that grow lead: the last state, the share of the loads there, and whether it is stable up to it.

    `ended` tells a limit point (the share turns back) from a path that was lost.
    """

    configuration: Configuration
    share: float
    stable: bool
    steps: int
    ended: str = ""  # "", "limit" or "lost"

    @property
    def reached(self) -> bool:
        """Whether all of the loads are there."""
        return not self.ended


def grown(begun: Configuration, loading: Loading) -> Growing | None:
    """The course of the loads from a pose; None where the pose is not stable without them."""
    for growth in (growing(begun, loading), let_go_slowly(begun, loading)):
        first = _Point.at(begun, growth, 0.0)
        if first is None or not first.stable:
            continue
        along = first.first_tangent()
        if along is not None:
            return _followed(first, along, loading)
    return None


def growing(begun: Configuration, loading: Loading) -> Growth:
    """Loads by their share, tension at the pose let go as they grow."""
    bare = replace(loading, wrench={}, tau=np.zeros_like(loading.tau), weight=0.0)
    held = bare.forces(begun)

    def at(share: float) -> Loading:
        part = {frame: share * np.asarray(values) for frame, values in loading.wrench.items()}
        return replace(loading, wrench=part, tau=share * loading.tau + (1 - share) * held, weight=share)

    return at


def let_go_slowly(begun: Configuration, loading: Loading) -> Growth:
    """All that acts at the pose, let go: efforts along all rates hold back the rest of it."""
    held = loading.forces(begun)
    return lambda share: replace(loading, tau=loading.tau + (1 - share) * held)


@dataclass(frozen=True, eq=False, repr=False)
class _Point(Record):
    """A state with a share of the loads: stiffness, what is out of balance there, and what more load adds to it."""

    here: Configuration
    growth: Growth
    share: float
    K: Array  # without units, as what follows
    left: Array
    load: Array

    @classmethod
    def at(cls, here: Configuration, growth: Growth, share: float) -> _Point | None:
        """The point; None where something is not defined there."""
        units = rate_units(here)
        try:
            least, most = (growth(end).forces(here) for end in (0.0, 1.0))  # linear in the share
            acting = (1 - share) * least + share * most
            K = tangent_stiffness(here, growth(share), acting=acting) * np.outer(units, units)
        except SingularError:
            return None
        left, load = (here.reduction.forces(forces) * units for forces in (acting, most - least))
        return cls(here, growth, share, K, left, load) if np.isfinite(K).all() and np.isfinite(left).all() else None

    @property
    def independent(self) -> Array:
        """Rates by which its motions are given."""
        return self.here.reduction.partition.independent

    @property
    def stable(self) -> bool:
        return no_motion_gains(self.K)

    def first_tangent(self) -> Array | None:
        """All rates per share where nothing has moved yet; None where a load drives what nothing holds."""
        x = np.linalg.lstsq(self.K, -self.load, rcond=1e-13)[0]
        if np.linalg.norm(self.K @ x + self.load) > DRIVEN * np.linalg.norm(self.load):
            return None
        return self._whole(x, 1.0)

    def tangent(self, before: Array) -> Array:
        """The direction in which the states go on, of unit length: motion of all rates, without units, and share."""
        found = self._solved(before, np.append(np.zeros(len(self.load)), 1.0))
        return self._whole(found[:-1], found[-1])

    def correction(self, before: Array) -> Array:
        """Step across the direction back into balance: independent rates, without units, and share."""
        return self._solved(before, np.append(-self.left, 0.0))

    def _solved(self, before: Array, right: Array) -> Array:
        scale = max(float(np.abs(self.K).max(initial=0.0)), 1e-300)
        matrix = np.block([[self.K / scale, self.load[:, None] / scale], [self._own(before)[None]]])
        right = np.append(right[:-1] / scale, right[-1])
        try:
            found = np.linalg.solve(matrix, right)
            good = np.isfinite(found).all() and np.abs(found).max() < 1e9
        except np.linalg.LinAlgError:
            good = False
        # what nothing holds and nothing drives stays where it is
        return found if good else np.linalg.lstsq(matrix, right, rcond=1e-13)[0]

    def _whole(self, x: Array, share: float) -> Array:
        tree = self.here.robot.tree
        motion = self.here.J @ (rate_units(self.here) * x) / tree.rate_units
        found = np.append(motion, share)
        return found / np.linalg.norm(np.append(x, share))

    def _own(self, whole: Array) -> Array:
        """A direction by the independent rates of this state, of unit length."""
        found = np.append(whole[:-1][self.independent], whole[-1])
        return found / np.linalg.norm(found)

    def ahead(self, whole: Array, arc: float) -> Configuration | None:
        """The state after a step of arc, loops closed."""
        own = self._own(whole)[:-1] * arc
        return closed_step(self.here, rate_units(self.here) * own)


def _followed(point: _Point, along: Array, loading: Loading) -> Growing:
    """States from a first one on, until all loads are there, their share turns back, or the path is lost."""
    stable, steps = True, 0
    arc = FIRST
    begun, limit = point.here.q, FAR * max(1.0, point.here.robot.tree.length)
    while steps < MOST and arc > LOST and np.abs(point.here.q - begun).max(initial=0.0) < limit:
        steps += 1
        own = point._own(along)
        rise = own[-1]
        step = min(arc, (1.0 - point.share) / rise) if rise > 0 else arc
        ahead = point.ahead(along, step)
        last = (rise > 0 and step < arc) or point.share + step * rise >= 1.0 - 1e-12
        if last and ahead is not None:
            end = _at_full_load(point, ahead, loading, step)
            if end is not None and (end[1] or not stable):
                return Growing(end[0], 1.0, stable and end[1], steps + end[2])
        made = None if ahead is None else _corrected(ahead, point.share + step * rise, along, point.growth, step)
        if made is None:
            arc = step / 2
            continue
        there, corrections = made
        onward = there.tangent(along)
        turned = float(there._own(onward) @ there._own(along))
        stays, climbs = there.stable, there._own(onward)[-1]
        if climbs <= 0.0 and step <= PINNED and max(point.share, there.share) + step < 1.0:
            return Growing(point.here, max(point.share, there.share), stable, steps, "limit")
        lost = stable and not stays  # at a branching, or over the turn of a path that passes beside one
        if (turned < ALIGNED or there.share >= 1.0 or lost or climbs <= 0.0) and step > SHORTEST:
            arc = step / 2
            continue
        if turned < 0.0 and step > LOST:
            arc = step / 2
            continue
        if climbs <= 0.0:
            return Growing(point.here, max(point.share, there.share), stable, steps, "limit")
        if there.share >= 1.0:
            end = _at_full_load(point, there.here, loading, step)
            if end is not None:
                return Growing(end[0], 1.0, stable and end[1], steps + end[2])
            return Growing(point.here, point.share, stable, steps, "lost")
        stable = stable and stays
        point, along = there, onward
        arc = min(LONGEST, (GROWTH if corrections <= FEW else 1.0) * step if step == arc else arc)
    return Growing(point.here, point.share, stable, steps, "lost")


def _corrected(
    here: Configuration, share: float, along: Array, growth: Growth, step: float
) -> tuple[_Point, int] | None:
    """The state of balance across the direction, and the number of corrections; None where it is another's."""
    moved, before = 0.0, np.inf
    for number in range(1, CORRECTIONS + 1):
        point = _Point.at(here, growth, share)
        if point is None:
            return None
        x = point.correction(along)
        size = float(np.linalg.norm(x))
        moved += size
        if not moved <= TOLD * step + SAME or (number > FEW and not size < max(before, NEAR * step)):
            return None
        there = closed_step(here, rate_units(here) * x[:-1])
        if there is None:
            return None
        here, share, before = there, share + float(x[-1]), size
        if size <= NEAR * step + 1e-12:  # the stiffness is that before a correction which changes it no more
            alike = np.array_equal(point.independent, here.reduction.partition.independent)
            return replace(point, here=here, share=share) if alike else point, number
    return None


def _at_full_load(
    point: _Point, ahead: Configuration, loading: Loading, step: float
) -> tuple[Configuration, bool, int] | None:
    """The state under all loads from one that is near: it, whether it is stable, and Newton steps to it."""
    try:
        found = newton(ahead, loading, 2 * CORRECTIONS)
    except SingularError:
        return None
    units = ahead.robot.tree
    missed = np.abs(found.configuration.q - ahead.q).max(initial=0.0)
    if found.stuck or missed > TOLD * step * max(1.0, units.length) + SAME:
        return None
    end = _Point.at(found.configuration, lambda _: loading, 1.0)
    return None if end is None else (found.configuration, end.stable, found.steps)
