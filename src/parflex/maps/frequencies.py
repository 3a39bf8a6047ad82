"""Natural frequencies at many poses of one robot, and platform twists of modes.

Compiled steps with Sturm counts are used where the robot allows them, else each pose is solved alone. Poses without
proof are solved in full, and so are samples of the others, for comparison.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import scipy

from parflex.errors import InputError, ParflexError
from parflex.maps.batch import BatchResult, row_warning, warn_of_balanced
from parflex.maps.kinematics import Geometry, Places
from parflex.maps.matrices import Assembly, NodeModel, NotCoveredError, has_spare_rows, node_model
from parflex.maps.modes import ModeFinder
from parflex.maps.responses import signed_twists
from parflex.maps.springs import LazySpringRows, prestressed_rows
from parflex.recursion.kinematics import jacobians, place_jacobian, pose
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot
from parflex.statics.linear_model import About
from parflex.statics.linear_system import ZERO, count_nearly_free, lowest_modes
from parflex.statics.loads import has_force_elements, locked_robot
from parflex.statics.modes import check_modes, natural_frequencies
from parflex.tree.tree import GROUND

Array = np.ndarray

WORTH = 200  # poses from which compiling pays

LARGEST = 1_000_000  # entries of the whole matrices that are made at a time

CHECKS = 4  # poses of the first call that are solved again in full

CHECKED = 300  # unknowns up to which that is done: of finer meshes the full solution is the worse one, and slow

SHAPES_FALLBACK_REASON = (
    "shapes of some poses come from whole matrices: modes are within 1e-5 of each other, or above those that beams "
    "have while their ends rest"
)

AGREE = 1e-6  # relative difference of frequencies that a full solution may have: its own rounding is 1e-8


@dataclass
class FrequencySolver:
    """Lowest natural frequencies of a robot at many positions of its rigid tree."""

    geometry: Geometry
    modes: int
    lock: str | Sequence[str] = "actuators"
    about: About | None = None  # 'undeformed': springs under tension do not ask for an equilibrium
    finder: ModeFinder | None = None
    fallback_reason: str = ""
    solved_in_full: int = 0  # poses that the functions of single poses answered, or whole matrices in place of steps
    largest_difference: float = 0.0  # Hz, between steps and the full solution at the poses that were checked
    balanced: int = 0  # poses with springs under tension, answered about the equilibrium
    reasons: dict[bytes, str] = field(default_factory=dict, repr=False)  # of poses without an answer
    too_many: ParflexError | None = field(default=None, repr=False)  # more modes were asked for than there are
    springs: LazySpringRows | None = field(default=None, repr=False)  # for rows that are not undeformed
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
            self.assembly, self.fallback_reason = None, str(error)
            try:
                modes = natural_frequencies(
                    self.robot, None, self.modes, self.lock, self.about
                )  # refuses what cannot be asked
                self.free = len(modes.free_motions)
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
        free = _without_stiffness(K[0], M[0])
        free = min(free, count_nearly_free(K[0])) if free else 0
        if not 1 <= self.modes <= K.shape[1] - free:
            raise InputError(
                f"{self.modes} modes are requested, but the robot has {K.shape[1] - free}",
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
        return self._block(q, twists)

    def prepare(self, q: Array) -> None:
        """Trace the step of the robot, or say why it is solved pose by pose."""
        self._ready = True
        if self.assembly is None:
            return
        try:
            self.finder = ModeFinder(self.locked, self.modes, self.free)
        except (NotCoveredError, ParflexError, np.linalg.LinAlgError) as error:  # or the program is too long
            self.fallback_reason = str(error)
            return
        if self.assembly.model.columns <= CHECKED:
            self._check(q[np.linspace(0, len(q) - 1, CHECKS).astype(int)])

    @property
    def method(self) -> str:
        """How poses are solved: "steps" or "full"."""
        return "full" if self.finder is None else "steps"

    def _tense(self, q: Array) -> Array:
        """Poses with a spring of a joint under tension, which have frequencies about the equilibrium only."""
        if self.assembly is None or self.about == "undeformed":  # asked pose by pose, which looks itself
            return np.zeros(len(q), dtype=bool)
        return prestressed_rows(self.locked, self.robot.tree, q, self.geometry.kept)

    def _apart(self, q: Array, twists: Array | None, tense: Array) -> Array:
        """These poses one by one, the others as ever."""
        result = np.empty((len(q), self.modes))
        for mask, solve in ((tense, self._general), (~tense, self)):
            if mask.any():
                part_twists = None if twists is None else np.full((int(mask.sum()), self.modes, 6), np.nan)
                result[mask] = solve(q[mask], part_twists)
                if twists is not None:
                    twists[mask] = part_twists
        return result

    def _block(self, q: Array, twists: Array | None) -> Array:
        if self.finder is None:
            self.solved_in_full += len(q) if self._ready and self.assembly is not None else 0
            return self.full(q, twists)
        modes = self.finder(q, shapes=twists is not None)
        with np.errstate(invalid="ignore"):
            result = np.sqrt(modes.x) / (2 * np.pi)
        failed = ~modes.ok | ~self._usual(q)
        if twists is not None:
            twists[:] = modes.twists
            without_shape = ~np.isfinite(twists).all(axis=(1, 2))
            self.fallback_reason = self.fallback_reason or (
                SHAPES_FALLBACK_REASON if (without_shape & ~failed).any() else ""
            )
            failed |= without_shape
        if failed.any():
            again, before = (
                None if twists is None else np.zeros((int(failed.sum()), self.modes, 6)),
                self.solved_in_full,
            )
            result[failed] = self.full(q[failed], again)
            if twists is not None:
                twists[failed] = again
            self.solved_in_full = before + int(failed.sum())  # each once, whichever way it went
        return result

    def _usual(self, q: Array) -> Array:
        """Poses at which loops hold as at home: elsewhere more rows than steps know of hold something."""
        if self.assembly is None or not has_spare_rows(self.assembly.model.cut):
            return np.ones(len(q), dtype=bool)
        return self.assembly.usual(*self.places(q))

    def _check(self, q: Array) -> None:
        """Solve some poses in full too; steps that are off are given up."""
        assert self.finder is not None
        before = self.solved_in_full
        modes, exact = self.finder(q), self.full(q)
        self.solved_in_full = before
        with np.errstate(invalid="ignore"):
            off = np.abs(exact - np.sqrt(modes.x) / (2 * np.pi))[modes.ok]
        self.largest_difference = max(self.largest_difference, float(off.max(initial=0.0)))
        if (off > AGREE * exact[modes.ok]).any():
            self.finder, self.fallback_reason = None, "compiled and full solutions disagree"

    # -- full solutions --------------------------------------------------------------------------------

    def full(self, q: Array, twists: Array | None = None) -> Array:
        """Frequencies pose by pose from the whole matrices; twists of the platform are stored if requested."""
        if self.assembly is None:
            return self._general(q, twists)
        result = np.full((len(q), self.modes), np.nan)
        some = max(1, min(64, LARGEST // self.assembly.model.columns**2))
        for start in range(0, len(q), some):
            K, M = self.assembly(*self.places(q[start : start + some]))
            J = None if twists is None else self.platform.jacobians(q[start : start + some])
            for k in range(len(K)):
                if not np.isfinite(K[k]).all():  # loops hold otherwise than at home
                    row_twists = None if twists is None else twists[start + k : start + k + 1]
                    result[start + k] = self._general(q[start + k : start + k + 1], row_twists)[0]
                    continue
                values, vectors = lowest_modes(K[k], M[k], self.free, self.modes)
                if J is not None and twists is not None:
                    twists[start + k] = self.platform.signed((J[k] @ vectors[:, self.free :]).T)
                result[start + k] = np.sqrt(np.maximum(values[self.free :], 0.0)) / (2 * np.pi)
        return result

    def _general(self, q: Array, twists: Array | None) -> Array:
        result, full_q = np.full((len(q), self.modes), np.nan), self.geometry.whole(q)
        done = self._with_springs(q, full_q, result, twists)
        self.solved_in_full += int((~done).sum())
        for k in np.flatnonzero(~done):
            configuration = Configuration(self.robot, full_q[k])
            try:
                modes = natural_frequencies(self.robot, configuration, self.modes, self.lock, self.about)
            except ParflexError as error:  # singular here, or more motions without stiffness: not a number
                self.reasons[q[k].tobytes()] = error.message
                self.too_many = error if error.key == "modes" else self.too_many
                continue
            self.balanced += modes.model.about == "equilibrium"
            warning = row_warning(modes)
            if warning:
                self.reasons[q[k].tobytes()] = warning
            result[k] = modes.frequencies
            if twists is not None:
                twists[k] = self.platform.of_tree(modes.model.configuration.q, modes.shapes)
        return result

    def _with_springs(self, q: Array, full_q: Array, result: Array, twists: Array | None) -> Array:
        """Which of these rows programs of the whole tree answer."""
        springs = None if self.springs is None else self.springs.made()
        if springs is None:
            return np.zeros(len(q), dtype=bool)
        batch = BatchResult.empty({response.name: response.shape for response in springs.responses}, len(q))
        done = springs(batch, np.arange(len(q)), full_q)
        self.balanced += batch.balanced
        for k in np.flatnonzero(done):
            result[k] = [batch.values[f"frequency:{number + 1}"][k] for number in range(self.modes)]
            if twists is not None:
                twists[k] = [batch.values[f"shape:{number + 1}"][k] for number in range(self.modes)]
            if batch.reasons[k]:
                self.reasons[q[k].tobytes()] = batch.reasons[k]
        return done

    def say(self, poses: int, some: bool) -> None:
        """Warn where answers are about the equilibrium; refuse where more modes are asked for than any pose has."""
        if self.too_many is not None and not some:
            raise self.too_many
        warn_of_balanced(self.balanced, poses, 5)

    @cached_property
    def platform(self) -> Platform:
        """How twists of the platform follow from shapes."""
        return Platform(self.robot, self.geometry, None if self.assembly is None else self.assembly.model)


def _without_stiffness(K: Array, M: Array) -> int:
    """How many modes have frequencies that are zero beside the highest one."""
    if len(K) <= CHECKED:
        values = scipy.linalg.eigh(K, M, eigvals_only=True)
        return int(np.sum(values < ZERO**2 * values[-1]))
    last = len(K) - 1
    highest = float(scipy.linalg.eigh(K, M, subset_by_index=[last, last], eigvals_only=True)[0])
    pivots = scipy.linalg.ldl(K - ZERO**2 * highest * M)[1]
    return int(np.sum(np.linalg.eigvalsh(pivots) < 0))


class Platform:
    """The end effector of a robot; `model` says how its link moves with the unknowns of whole matrices."""

    def __init__(self, robot: Robot, geometry: Geometry, model: NodeModel | None) -> None:
        self.tree, self.place = robot.tree, robot.tree.places[robot.tree.end_effector]
        self.position = self.place.position
        if geometry.designs is not None:
            self.position = geometry.designs.values_at(("places", robot.tree.end_effector, "position"), self.position)
        if self.place.link == GROUND:
            raise InputError("the end effector does not move, so it has no shapes", key="shapes")
        self.model = model
        self.geometry = geometry

    @cached_property
    def own(self) -> Places:
        """Where its link is."""
        return self.geometry.places([self.place.link])

    @cached_property
    def assembly(self) -> Assembly:
        """Of the link alone, in whole matrices."""
        assert self.model is not None
        return Assembly(self.model, [self.place.link])

    @cached_property
    def links(self) -> Places:
        """Where links are that move it in whole matrices."""
        return self.geometry.places(self.assembly.links)

    def signed(self, twists: Array) -> Array:
        """Twists with the sign that shapes have."""
        return signed_twists(twists, self.tree.length)

    def jacobians(self, q: Array, designs: Array | None = None) -> Array:
        """Twist per unit of each unknown of the whole matrices (poses x 6 x unknowns)."""
        assert self.model is not None
        at, assembly = self.links(q), self.assembly
        if designs is not None and self.geometry.designs is not None:
            assembly = Assembly(self.model, [self.place.link], designs=self.geometry.designs.of_rows(designs))
        columns, W = assembly.twist(self.place.link, *at)
        J = np.zeros((len(q), 6, self.model.columns))
        J[:, :, columns] = self._at_place(q, assembly.local(self.place.link, *at) @ W, designs)
        left = assembly.motions(*at)
        return J if left is None else J @ left

    def of_tree(self, q: Array, shapes: Array) -> Array:
        """From shapes over the coordinates of the tree (columns) at its positions."""
        at = pose(self.tree, q)
        J_v, J_w = place_jacobian(self.tree, at, jacobians(self.tree, at), self.place)
        R = at.rotation[self.place.link] @ self.place.rotation
        return self.signed(np.concatenate([R @ J_v, R @ J_w]).dot(shapes).T)

    def _at_place(self, q: Array, twists: Array, designs: Array | None = None) -> Array:
        """From columns of twists of the link in its axes (poses x 6 x count) to those of the place in world axes."""
        R = self.own(q)[0][:, 0]
        v, w = twists[:, :3], twists[:, 3:]
        position = self.position[None] if self.position.ndim == 1 else self.position[designs]
        x, y, z = position.T[:, :, None]
        moved = v + np.stack([w[:, 1] * z - w[:, 2] * y, w[:, 2] * x - w[:, 0] * z, w[:, 0] * y - w[:, 1] * x], axis=1)
        return np.concatenate([R @ moved, R @ w], axis=1)
