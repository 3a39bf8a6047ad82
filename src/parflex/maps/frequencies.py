"""Natural frequencies at many poses: by tables of condensed legs where there are such, else pose by pose.

Every mode from tables stands between two frequencies at which modes were counted, some poses are solved again in full,
and poses that do not pass are solved in full anyway.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import scipy.linalg

from parflex.errors import InputError, ParflexError, ParflexWarning
from parflex.maps.batches import Geometry
from parflex.maps.condensation import Band
from parflex.maps.legs import LegStructure, LegSubstructure, NotTabulatedError, alike, structure
from parflex.maps.nodes import Assembly, NotCoveredError, node_model
from parflex.maps.platform import Platform
from parflex.maps.small_problem import ReducedProblem
from parflex.maps.tables import LegTable, build_table
from parflex.models.configuration import Configuration
from parflex.models.elastic.linear_model import ZERO, About, check_modes, locked_robot, natural_frequencies
from parflex.models.elastic.tension import NEAR_REST, has_force_elements

Array = np.ndarray
WORTH = 500  # poses from which tables pay
BLOCK = 16384  # poses that are taken at a time: some tens of megabytes
SAMPLES = 12  # poses solved in full to see how far up the modes reach
HEADROOM = 1.25  # the band ends so far above the highest frequency of the samples
LARGEST = 1_000_000  # entries of the whole matrices that are made at a time
CHECKS = 8  # poses of each call that are solved again in full
AGREE = 1e-6  # relative difference of frequencies that a full solution may have: its own rounding is 1e-8


@dataclass
class FrequencySolver:
    """Lowest natural frequencies of a robot at many positions of its rigid tree."""

    geometry: Geometry
    modes: int
    lock: str | Sequence[str] = "actuators"
    about: About | None = None  # 'undeformed': springs under tension do not ask for an equilibrium
    problem: ReducedProblem | None = None
    why_not: str = ""
    solved_in_full: int = 0
    largest_difference: float = 0.0  # Hz, between tables and the full solution at the poses that were checked
    balanced: int = 0  # poses with springs under tension, answered about the equilibrium
    reasons: dict[bytes, str] = field(default_factory=dict, repr=False)  # of poses without an answer
    too_many: ParflexError | None = field(default=None, repr=False)  # more modes were asked for than there are
    _ready: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        check_modes(self.modes)
        self.robot = self.geometry.robot
        self.locked = locked_robot(self.robot, self.lock)
        try:
            self.assembly: Assembly | None = Assembly(node_model(self.locked))
            self.places = self.geometry.places(self.assembly.links)
            self.free = self._free_motions()
        except NotCoveredError as error:
            self.assembly, self.why_not = None, str(error)
            try:
                found = natural_frequencies(
                    self.robot, None, self.modes, self.lock, self.about
                )  # refuses what cannot be asked
                self.free = len(found.free_motions)
            except ParflexError as home:  # elements may be slack at home alone
                if not has_force_elements(self.robot.tree) or home.key == "lock":
                    raise
                self.free = 0

    def _free_motions(self) -> int:
        """Motions without stiffness, from all modes at home; the number of modes asked for is checked on the way."""
        assert self.assembly is not None
        K, M = self.assembly(*self.places(self.geometry.home[None]))
        if not K.shape[1]:
            raise NotCoveredError("nothing can move")
        values = scipy.linalg.eigh(K[0], M[0], eigvals_only=True)
        free = int(np.sum(values < ZERO**2 * values[-1]))
        if not 1 <= self.modes <= len(values) - free:
            raise InputError(
                f"{self.modes} modes are requested, but the robot has {len(values) - free}",
                key="modes",
                value=self.modes,
                hint="request fewer",
            )
        return free

    def __call__(self, q: Array, twists: Array | None = None) -> Array:
        """Frequencies in Hz (poses x modes); with `twists` (poses x modes x 6), those of the platform are put there."""
        tense = self._tense(q)
        if tense.any():
            return self._apart(q, twists, tense)
        if not self._ready and len(q) >= WORTH:
            self.prepare(q)
        result = np.empty((len(q), self.modes))
        for start in range(0, len(q), BLOCK):
            rows = slice(start, start + BLOCK)
            result[rows] = self._block(q[rows], None if twists is None else twists[rows])
        if self.problem is not None and len(q) >= WORTH:
            self._check(q, result, twists)
        return result

    def _tense(self, q: Array) -> Array:
        """Poses with a spring of a joint under tension, which have frequencies about the equilibrium only."""
        found = np.zeros(len(q), dtype=bool)
        if self.assembly is None or self.about == "undeformed":  # asked pose by pose, which looks itself
            return found
        whole, tree = self.geometry.whole(q), self.robot.tree
        for link in tree.links:
            if link.terms.stiffness and link.v.start not in self.locked.locked:
                found |= np.abs(whole[:, link.q.start] - link.terms.rest) > NEAR_REST * tree.rate_units[link.v.start]
        return found

    def _apart(self, q: Array, twists: Array | None, tense: Array) -> Array:
        """These poses one by one, the others as ever."""
        result = np.empty((len(q), self.modes))
        for mask, solve in ((tense, self._general), (~tense, self)):
            if mask.any():
                own = None if twists is None else np.full((int(mask.sum()), self.modes, 6), np.nan)
                result[mask] = solve(q[mask], own)
                if twists is not None:
                    twists[mask] = own
        self.solved_in_full += int(tense.sum())
        return result

    def _block(self, q: Array, twists: Array | None) -> Array:
        if self.problem is None:
            return self.full(q, twists)
        core = None if twists is None else np.zeros((len(q), self.modes, len(self.problem.structure.columns)))
        found = self.problem.solve(q, self.modes, core)
        with np.errstate(invalid="ignore"):
            result = np.sqrt(found.x) / (2 * np.pi)
        if twists is not None and core is not None:
            twists[:] = self.platform.of_core(self.problem.structure, q, core)
        failed = np.flatnonzero(~found.ok)
        if len(failed):
            again = np.zeros((len(failed), self.modes, 6))
            result[failed] = self.full(q[failed], None if twists is None else again)
            if twists is not None:
                twists[failed] = again
            self.solved_in_full += len(failed)
        return result

    def _check(self, q: Array, result: Array, twists: Array | None) -> None:
        """Solve some poses again in full; tables that are off are given up."""
        picked = np.random.default_rng(0).choice(len(q), min(CHECKS, len(q)), replace=False)
        exact = self.full(q[picked])
        off = np.abs(exact - result[picked])
        self.largest_difference = max(self.largest_difference, float(off.max()))
        if (off > AGREE * exact).any():
            self.problem, self.why_not = None, "tabulated and full solutions disagree"
            result[:] = self.full(q, twists)

    # -- full solutions --------------------------------------------------------------------------------

    def full(self, q: Array, twists: Array | None = None) -> Array:
        """Frequencies pose by pose from the whole matrices; twists of the platform are stored if requested."""
        if self.assembly is None:
            return self._general(q, twists)
        result = np.full((len(q), self.modes), np.nan)
        requested = [self.free, self.free + self.modes - 1]
        some = max(1, min(64, LARGEST // self.assembly.model.columns**2))
        for start in range(0, len(q), some):
            K, M = self.assembly(*self.places(q[start : start + some]))
            J = None if twists is None else self.platform.jacobians(q[start : start + some])
            for k in range(len(K)):
                if J is None or twists is None:
                    values = scipy.linalg.eigh(K[k], M[k], subset_by_index=requested, eigvals_only=True)
                else:
                    values, vectors = scipy.linalg.eigh(K[k], M[k], subset_by_index=requested)
                    twists[start + k] = self.platform.signed((J[k] @ vectors).T)
                result[start + k] = np.sqrt(np.maximum(values, 0.0)) / (2 * np.pi)
        return result

    def _general(self, q: Array, twists: Array | None) -> Array:
        result = np.full((len(q), self.modes), np.nan)
        for k, whole in enumerate(self.geometry.whole(q)):
            here = Configuration(self.robot, whole)
            try:
                found = natural_frequencies(self.robot, here, self.modes, self.lock, self.about)
            except ParflexError as error:  # singular here, or more motions without stiffness: not a number
                self.reasons[q[k].tobytes()] = error.message
                self.too_many = error if error.key == "modes" else self.too_many
                continue
            self.balanced += found.model.about == "equilibrium"
            result[k] = found.frequencies
            if twists is not None:
                twists[k] = self.platform.of_tree(found.model.configuration.q, found.shapes)
        return result

    def say(self, poses: int, some: bool) -> None:
        """Warn where answers are about the equilibrium; refuse where more modes are asked for than any pose has."""
        if self.too_many is not None and not some:
            raise self.too_many
        if self.balanced:
            warnings.warn(
                f"{self.balanced} of {poses} poses have springs under tension: they are answered about the equilibrium",
                ParflexWarning,
                stacklevel=5,
            )

    @cached_property
    def platform(self) -> Platform:
        """How twists of the platform follow from shapes."""
        return Platform(self.robot, self.geometry, None if self.assembly is None else self.assembly.model)

    # -- tables ----------------------------------------------------------------------------------------

    def prepare(self, q: Array) -> None:
        """Build the tables for poses like these."""
        self._ready = True
        try:
            if self.assembly is None or self.free:
                raise NotTabulatedError(self.why_not or "the robot has motions without stiffness")
            found = structure(self.robot, self.locked, self.geometry)
            picked = q[np.linspace(0, len(q) - 1, min(SAMPLES, len(q))).astype(int)]
            top = (2 * np.pi * HEADROOM * float(self.full(picked).max())) ** 2
            self.problem = ReducedProblem(found, _tables(found, q, Band(top)), Band(top))
        except (NotTabulatedError, np.linalg.LinAlgError) as error:
            self.why_not = str(error)


def _tables(found: LegStructure, q: Array, band: Band) -> list[LegTable]:
    """One table for each set of legs that are alike, over all shapes that they take."""
    some = q[np.linspace(0, len(q) - 1, min(len(q), 400)).astype(int)]
    for leg in found.legs:
        leg.known = [some]
    sets: list[list[LegSubstructure]] = []
    for leg in found.legs:
        shapes = leg.shape.of(some[:3])
        for members in sets:
            if alike(members[0], leg, shapes):
                members.append(leg)
                break
        else:
            sets.append([leg])
    tables: dict[int, LegTable] = {}
    for members in sets:
        shapes = np.concatenate([leg.shape.of(q) for leg in members])
        margin = 1e-9 * np.ptp(shapes, axis=0)
        samples = np.concatenate([leg.shape.of(some) for leg in members])
        table = build_table(members[0], shapes.min(axis=0) - margin, shapes.max(axis=0) + margin, band, samples[::8])
        tables |= {id(leg): table for leg in members}
    return [tables[id(leg)] for leg in found.legs]
