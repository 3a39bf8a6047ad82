"""Rows of poses and parameters to answers with status and reason: `Batch(...).solve()`.

Each response of a row is computed by the quickest method that covers it: compiled steps of modes, linear models of many
rows, the functions of single poses, and last these of the design of the row, loaded by itself. One thread solves a
chunk from a cold start: its results depend neither on the number of threads nor on earlier chunks.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from parflex import jobs
from parflex.cache import cached
from parflex.checks import integer
from parflex.codegen import cache
from parflex.errors import ParflexError, SingularError, UnreachableError
from parflex.maps.batch_result import BatchResult, Progress, chunks_of, loaded_design
from parflex.maps.batched_responses import CONDITIONS, ConditionRows, is_batched
from parflex.maps.continuation import OK, OUTSIDE, SINGULAR, UNREACHABLE
from parflex.maps.kinematics import COMPILE_FROM, Geometry
from parflex.maps.linear_models import LinearModels, prestressed_rows, single_model_reason
from parflex.maps.modes import APART, FEWEST, ModeFinder, nearest_order, put_modes
from parflex.maps.parameters import masses_of, numbers_of_designs
from parflex.maps.positions import IMPOSSIBLE, Positions, PositionSolver, home_state, outside_limits
from parflex.maps.responses import BATCH_FROM, OF_MODES, ResponseName, SinglePoseResponses
from parflex.maps.symbolic_matrices import NotCoveredError
from parflex.parameters.design_numbers import DesignNumbers
from parflex.robot.robot import Robot
from parflex.spatial.batched import VariedNumberError
from parflex.statics.load_case import LoadCase
from parflex.statics.loads import has_springs, locked_robot
from parflex.statics.modes import natural_frequencies

Array = np.ndarray
STEPS_FROM = 200  # rows from which compiled steps pay
PLAIN_FROM = 64  # rows from which programs of linear models about undeformed poses pay: a single pose takes 10 ms
SOME = 64  # rows whose conditions are taken at a time
CHUNK_STEPS, CHUNK_TOGETHER, CHUNK_ALONE = 4096, 256, 64  # rows of a chunk, by how they are solved
SAMPLED = 768  # rows by which the modes of the others are guessed, about
SAMPLE, CHECKS = 100, 4  # rows, spread over all of them, and how many of these are solved by themselves, too
CHECKED = 300  # unknowns up to which that is done: of finer meshes the full solution is the worse one, and slow
AGREE = 1e-6  # relative difference of frequencies that a full solution may have: its own rounding is 1e-8
RIGID_BODY_MODE_RATIO = 1e-9  # of the highest squared frequency asked for: lower ones may be motions without stiffness
STEPPED = ("frequency", "shape")  # responses that compiled steps of modes answer
SHAPES_FALLBACK_REASON = (
    "shapes of some poses come from whole matrices: modes are within 1e-5 of each other, or above those that beams "
    "have while their ends rest"
)


class Batch:
    """Rows of poses of a robot, each with its own parameters where there are any, and the responses requested there.

    `parameters` are columns of numbers of the robot file by dotted path. A batch that is asked `often`, as while a
    slider moves, compiles programs for however few rows, does not search for distant poses, and keeps the positions of
    all rows in `whole`.
    """

    loads = True  # whether the design of a row that programs do not answer is loaded by itself

    def __init__(
        self,
        robot: Robot,
        coordinates: Sequence[str],
        poses: Array,
        responses: Sequence[ResponseName],
        load_case: LoadCase,
        parameters: Mapping[str, Array] | None = None,
        ignore_limits: bool = False,
        often: bool = False,
    ) -> None:
        self.robot, self.coordinates, self.poses, self.count = robot, list(coordinates), poses, len(poses)
        self.responses, self.load_case, self.parameters = tuple(responses), load_case, dict(parameters or {})
        self.ignore_limits, self.often = ignore_limits, often
        self.shapes = {one.name: one.shape for one in self.responses}
        self.modes = max((one.mode for one in responses), default=1) or 1
        self.fallback_reason = self.finder_reason = ""  # why responses, or modes, are not solved together
        self.largest_difference = 0.0
        self.numbers: DesignNumbers | None = None
        self.finder: ModeFinder | None = None
        self.models: LinearModels | None = None
        self._lock, self._made, self._learns = threading.Lock(), False, False  # threads wait for programs of one
        key = cache.key_of(robot, "locked", load_case.lock)
        self.locked = cached("locked robots", key, lambda: locked_robot(robot, load_case.lock))
        # conditions are measured with the length of a robot, which designs change
        measured = [one for one in responses if one.kind in CONDITIONS]
        several = self.count >= BATCH_FROM and not self.parameters
        self.conditions = ConditionRows(robot) if measured and several else None
        self.measured = measured if self.conditions is not None else []
        self.weighed = [one for one in responses if one.kind == "mass"]
        self._choose_methods([one for one in responses if one not in (*self.measured, *self.weighed)])
        self._read_rows()
        self.whole = np.full((self.count if often else 0, robot.tree.nq), np.nan)
        self._prepare_positions()
        self._prepare_models()
        self._prepare_steps()

    # -- methods ---------------------------------------------------------------------------------------

    def _choose_methods(self, others: list[ResponseName]) -> None:
        """Responses that are `covered` by methods for many rows, and those of single poses `alone`."""
        balanced = self.load_case.at_equilibrium
        least = BATCH_FROM if balanced or has_springs(self.robot.tree) else PLAIN_FROM
        self.few = self.count < least and not self.often and (balanced or not self.parameters)
        self.covered = [one for one in others if balanced or is_batched(self.robot, one, False)]
        self.alone = [one for one in others if one not in self.covered]
        kinds = sorted({one.kind for one in self.alone})
        if kinds:
            self.fallback_reason = f"{', '.join(kinds)}: computed pose by pose"
        reason = single_model_reason(self.robot, self.load_case, self.covered, bool(self.parameters))
        if self.covered and (reason or self.few):
            self._compute_alone(f"rows go one by one: {reason}" if reason else "")

    def _compute_alone(self, reason: str) -> None:
        """Leave all responses to single poses."""
        self.fallback_reason = "; ".join(filter(None, (self.fallback_reason, reason)))
        self.alone, self.covered = self.alone + self.covered, []

    def _read_rows(self) -> None:
        """Rows of numbers in the order in which they are solved, and what follows from their parameters."""
        self.keys = np.stack(list(self.parameters.values()), axis=1) if self.parameters else np.zeros((self.count, 0))
        finite = np.isfinite(self.poses).all(axis=1) & np.isfinite(self.keys).all(axis=1)
        rows = np.flatnonzero(finite)
        self.in_order = bool(self.parameters) and len(rows) >= FEWEST
        if self.in_order:
            rows = rows[nearest_order(self.poses[rows])]  # poses that follow each other are alike
        self.order, self.number = rows, np.full(self.count, -1)  # of each row among those whose parameters are read
        self.number[rows] = np.arange(len(rows))
        if self.parameters and len(rows) and (self.covered or self.weighed):
            try:
                self.numbers = numbers_of_designs(self.robot, {key: own[rows] for key, own in self.parameters.items()})
            except (ParflexError, VariedNumberError) as error:
                self._compute_alone(str(error))

    def _prepare_positions(self) -> None:
        self.geometry = Geometry(self.robot, self.numbers)
        self.geometry.settle(COMPILE_FROM if self.often else self.count)
        first = self.poses[self.order[0]] if len(self.order) else np.zeros(len(self.coordinates))
        self.positions = PositionSolver(self.geometry, self.coordinates, first.tolist(), self.ignore_limits)
        self.positions.follows_paths = not self.often
        if self.numbers is not None and not self.positions.fast:
            self.numbers = None
            self._compute_alone(self.positions.single_solve_reason)

    def _prepare_models(self) -> None:
        """Linear models of the rows that steps do not answer; compiled where rows are enough for it."""
        if not self.covered:
            return
        case, springs = self.load_case, has_springs(self.robot.tree)
        compiled = self.often or case.at_equilibrium or springs or self.count >= COMPILE_FROM
        try:
            self.models = LinearModels(self.robot, self.locked, case, self.covered, self.modes, self.numbers, compiled)
        except ParflexError as error:  # home is singular, or nothing can move
            self._compute_alone(error.message)

    def _prepare_steps(self) -> None:
        """Compiled steps of modes, where rows are enough for them."""
        self.stepped = [one for one in self.covered if one.kind in STEPPED and not self.load_case.at_equilibrium]
        if not self.stepped or (self.count < STEPS_FROM and not self.often) or not len(self.order):
            return
        try:
            modes = max(one.mode for one in self.stepped)
            self.finder = ModeFinder(self.locked, modes, self.free, self.numbers)
            self.finder.placed = len(self.coordinates)
        except (NotCoveredError, ParflexError, np.linalg.LinAlgError) as error:  # or the program is too long
            if isinstance(error, ParflexError) and error.key == "modes" and not has_springs(self.robot.tree):
                raise
            self.finder_reason = str(error)
            return
        if self.numbers is None and self.finder.programs.unknowns <= CHECKED and not self.often:
            self._check_steps(self.finder)

    def _check_steps(self, finder: ModeFinder) -> None:
        """Give up steps that differ from single poses; a few poses of a robot are checked once."""
        key = cache.key_of(self.locked, "checked steps", finder.modes)
        try:
            self.largest_difference, agree = cached("checked steps", key, lambda: self._difference(finder))
        except UnreachableError:  # of this batch
            return
        if not agree:
            self.finder, self.finder_reason = None, "compiled steps and single poses disagree"

    def _difference(self, finder: ModeFinder) -> tuple[float, bool]:
        """Return the largest difference between steps and single poses at a few poses (Hz), and whether they agree."""
        spread = self.order[np.unique(np.linspace(0, len(self.order) - 1, SAMPLE).astype(int))]
        placed = self.positions(self.poses[spread if self.positions.fast else spread[:: SAMPLE // CHECKS]])
        q = placed.q[placed.status == OK]
        if not len(q):
            raise UnreachableError("no pose is reached")
        q = q[np.linspace(0, len(q) - 1, CHECKS).astype(int)]
        modes, case, differences, agree = finder(q), LoadCase(self.load_case.lock, "undeformed"), [0.0], True
        for k in np.flatnonzero(modes.ok).tolist():
            single = SinglePoseResponses(self.robot, self.geometry.whole(q[k : k + 1])[0], case, finder.modes)
            try:
                frequencies = single.modes.frequencies
            except ParflexError:  # which this row would answer, too
                continue
            off = np.abs(np.sqrt(modes.x[k]) / (2 * np.pi) - frequencies)
            differences.append(float(off.max()))
            agree &= bool((off <= AGREE * frequencies).all())
        return max(differences), agree

    @cached_property
    def free(self) -> int:
        """Rigid-body modes of the robot at home; the number of modes is checked with them."""
        if not any(one.kind in OF_MODES for one in self.responses):
            return 0
        lock, key = self.load_case.lock, cache.key_of(self.locked, "free", self.modes)
        count = lambda: len(natural_frequencies(self.robot, None, self.modes, lock, "undeformed").free_motions)  # noqa: E731
        return cached("rigid-body modes", key, count)

    @property
    def method(self) -> str:
        """How most rows are solved: "steps", "together" or "one by one"."""
        return "one by one" if self.alone else "together" if self.finder is None else "steps"

    @property
    def reason(self) -> str:
        """Why rows are not solved together, modes not by steps, or positions one by one; empty where they are."""
        slow = "" if self.positions.single_solve_reason in self.fallback_reason else self.positions.single_solve_reason
        return "; ".join(filter(None, (self.fallback_reason, self.finder_reason, slow)))

    @property
    def chunk(self) -> int:
        """Rows of a chunk: fewer where a row takes longer, so that little is lost when a map is interrupted."""
        if self.alone or not self.positions.fast:
            return CHUNK_ALONE
        steps = self.finder is not None and len(self.stepped) == len(self.covered) and not self.measured
        return CHUNK_STEPS if steps else CHUNK_TOGETHER

    def threads(self, requested: int | None, chunks: int) -> int:
        """Threads that are of use: one by one is by the interpreter, which runs one thread at a time."""
        several = jobs.number_of_jobs(None) if requested is None else integer(requested, "threads", 1)
        return 1 if self.chunk == CHUNK_ALONE else min(several, max(1, chunks))

    def prepare(self) -> None:
        """Make what threads share before they start."""
        if not self.load_case.at_equilibrium and not has_springs(self.robot.tree):  # springs differ from pose to pose
            _ = self.free
        if self.conditions is not None:
            self.conditions.prepare()
        if self.finder is None or len(self.stepped) < len(self.covered):  # else few rows need linear models, if any
            self._prepared()

    def _prepared(self) -> LinearModels | None:
        """Linear models, whose programs are traced and compiled when they are first needed."""
        with self._lock:
            if self.models is not None and not self._made:
                try:
                    self.models.prepare()
                    self._made = True
                except (ParflexError, TypeError) as error:  # something decides by a number that designs change
                    if self.numbers is None and isinstance(error, TypeError):
                        raise
                    self.models, self.fallback_reason = None, f"rows go one by one: {error}"
        return self.models

    # -- rows ------------------------------------------------------------------------------------------

    def pose_of(self, row: int) -> dict[str, float]:
        """Return the coordinates of a row by name."""
        return dict(zip(self.coordinates, self.poses[row].tolist(), strict=True))

    def all(self, threads: int | None = None, progress: Progress | None = None) -> BatchResult:
        """Solve all rows in chunks; what could not be asked at any of them is refused."""
        self.prepare()
        result, rows = BatchResult.empty(self.shapes, self.count), self.order
        if self.finder is not None and self.in_order:  # the modes of the others are guessed by those of some
            some, self._learns = slice(None, None, max(APART, len(rows) // SAMPLED)), True
            result.put(rows[some], self.solve(rows[some]))
            rows, self._learns = np.delete(rows, some), False
        rows = np.concatenate([rows, np.flatnonzero(self.number < 0)])
        done, chunks = self.count - len(rows), chunks_of(len(rows), self.chunk)
        workers = jobs.thread_workers(self.threads(threads, len(chunks)))
        for chunk, part in jobs.completed_chunks(lambda chunk: self.solve(rows[chunk]), chunks, workers):
            result.put(rows[chunk], part)
            done += len(part.status)
            if progress is not None:
                progress(done, self.count)
        result.refuse()
        return result

    def solve(self, rows: slice | Array) -> BatchResult:
        """Return the answers of some rows."""
        rows = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
        found = BatchResult.empty(self.shapes, len(rows))
        here = self._finite(found, rows)
        own: Array | None = None  # rows of the numbers of designs
        left: dict[int, Sequence[ResponseName]] = {}
        if self.parameters:
            own = self.number[rows[here]]
            read = np.zeros(len(here), dtype=bool) if self.numbers is None else ~self.numbers.alone[own]
            left = dict.fromkeys(here[~read].tolist(), self.responses)
            here, own = here[read], own[read]
        if len(here):
            placed = self._placed(found, here, self.poses[rows[here]], own)
            good = placed.status == OK
            here, q, own = here[good], placed.q[good], None if own is None else own[good]
            whole = self.geometry.whole(q[:, : len(self.geometry.kept)])
            if self.often:
                self.whole[rows[here]] = whole
            done = self._together(found, here, rows[here], q, whole, own)
            for one in self.weighed:
                found.values[one.name][here] = masses_of(self.robot, self._own(own))
            if self.conditions is not None and len(here):
                for one in self.measured:
                    found.values[one.name][here] = self._measured(whole)[one.kind]
            for k in np.flatnonzero(~done | bool(self.alone)).tolist():
                open_responses = [*self.alone] if done[k] else [*self.covered, *self.alone]
                left[int(here[k])] = open_responses
                if not self.parameters:
                    self._by_single_pose(found, int(here[k]), self.robot, whole[k], open_responses)
        for row, wanted in left.items() if self.parameters else ():
            self._loaded(found, row, int(rows[row]), wanted)
        found.fallbacks += 0 if self.few else len(left)
        for one in self.responses:
            if one.unreached is not None:
                found.values[one.name][np.isin(found.status, (UNREACHABLE, OUTSIDE))] = one.unreached
        return found

    def _finite(self, found: BatchResult, rows: Array) -> Array:
        """Rows of which all coordinates and parameters are numbers; the others are marked."""
        for row in np.flatnonzero(self.number[rows] < 0).tolist():
            for state, names, values in (
                (UNREACHABLE, self.coordinates, self.poses[rows[row]]),
                (IMPOSSIBLE, list(self.parameters), self.keys[rows[row]]),
            ):
                for name in np.array(names, dtype=object)[~np.isfinite(values)][:1]:
                    if found.status[row] == OK:
                        found.mark(row, state, f"'{name}' is not a finite number in this row")
        return np.flatnonzero(self.number[rows] >= 0)

    def _placed(self, found: BatchResult, here: Array, poses: Array, own: Array | None) -> Positions:
        """Positions of rows; those that have none are marked."""
        placed = self.positions(poses, own)
        found.status[here] = placed.status
        bad = np.flatnonzero(placed.status != OK)
        states = np.unique(placed.status[bad]).tolist() if placed.messages is None else []
        why = {state: self.positions.why(state) for state in states}
        for k, row in zip(bad.tolist(), here[bad].tolist(), strict=True):
            found.reasons[row] = why[int(placed.status[k])] if placed.messages is None else placed.messages[k]
        return placed

    def _own(self, own: Array | None) -> DesignNumbers | None:
        """Numbers of the designs of rows."""
        return None if self.numbers is None or own is None else self.numbers.of_rows(own)

    def _measured(self, whole: Array) -> dict[str, Array]:
        assert self.conditions is not None
        parts = [self.conditions(whole[start : start + SOME]) for start in range(0, len(whole), SOME)]
        return {kind: np.concatenate([part[kind] for part in parts]) for kind in CONDITIONS}

    # -- together --------------------------------------------------------------------------------------

    def _together(
        self, found: BatchResult, here: Array, rows: Array, q: Array, whole: Array, own: Array | None
    ) -> Array:
        """Which rows have all answers that methods for many rows cover."""
        done = np.full(len(here), not self.covered)
        if not self.covered or not len(here):
            return done
        stepped = np.zeros(len(here), dtype=bool)
        plain = np.flatnonzero(~self._prestressed(whole, own)) if self.finder is not None else np.zeros(0, dtype=int)
        if len(plain):
            own_plain = None if own is None else own[plain]
            stepped[plain] = self._by_steps(found, here[plain], rows[plain], q[plain], own_plain)
        others = [one for one in self.covered if one not in self.stepped]
        for part, asked in ((stepped, others), (~stepped, self.covered)):
            chosen = np.flatnonzero(part)
            models = self._prepared() if asked and len(chosen) else None
            if models is not None:
                done[chosen] = models(found, here[chosen], whole[chosen], None if own is None else own[chosen], asked)
            elif not asked:
                done[chosen] = True
        found.fallbacks += int((done & ~stepped)[plain].sum())
        if self._learns:
            self.positions.remember(self.poses[rows], q, own)
        return done

    def _prestressed(self, whole: Array, own: Array | None) -> Array:
        """Rows with a spring under tension, which are about their equilibrium."""
        if self.load_case.about == "undeformed":
            return np.zeros(len(whole), dtype=bool)
        return prestressed_rows(self.locked, self.numbers, whole, own)

    def _by_steps(self, found: BatchResult, here: Array, rows: Array, q: Array, own: Array | None) -> Array:
        """Which rows have their modes by compiled steps."""
        assert self.finder is not None
        features = None if own is None else np.concatenate([self.poses[rows], self.keys[rows]], axis=1)
        shaped, count = any(one.kind == "shape" for one in self.stepped), self.finder.modes
        modes = self.finder(q, own, shaped, features, in_order=self.in_order)
        if self._learns and features is not None:
            self.finder.learn(features, modes)
        done = (modes.ok & self._holds_as_at_home(q, own)).astype(np.int64)
        frequencies, twists = np.empty((len(here), count)), np.empty((len(here), count, 6) if shaped else (0, 0, 0))
        every = np.arange(len(here))
        untold = put_modes(modes.x, modes.twists, every, RIGID_BODY_MODE_RATIO, frequencies, twists, done)
        self.finder_reason = self.finder_reason or (SHAPES_FALLBACK_REASON if untold else "")
        good = np.flatnonzero(done)
        for one in self.stepped:
            values = frequencies if one.kind == "frequency" else twists
            found.values[one.name][here[good]] = values[good, one.mode - 1]
        return done > 0

    def _holds_as_at_home(self, q: Array, own: Array | None) -> Array:
        """Rows at which loops hold as at home: elsewhere more rows than steps know of hold something."""
        assert self.models is not None
        statics = self.models.statics
        if not statics.spare:
            return np.ones(len(q), dtype=bool)
        return statics.holds_as_at_home(statics.programs.closures(self.models.wide(self.geometry.whole(q), own)))

    # -- one by one ------------------------------------------------------------------------------------

    def _loaded(self, found: BatchResult, row: int, number: int, responses: Sequence[ResponseName]) -> None:
        """A row by loading its design."""
        if not self.loads:
            found.mark(row, SINGULAR)
            return
        settings = {key: float(values[number]) for key, values in self.parameters.items()}
        try:
            robot = loaded_design(self.robot, settings)
        except ParflexError as error:
            found.mark(row, *home_state(error))
            return
        try:
            q = robot.assemble(self.pose_of(number))
        except ParflexError as error:
            found.mark(row, SINGULAR if isinstance(error, SingularError) else UNREACHABLE, error.message)
            return
        if self.positions.leaves_slice(robot, q):
            found.mark(row, UNREACHABLE, self.positions.why(UNREACHABLE))
            return
        beyond = "" if self.ignore_limits else outside_limits(robot, q)
        if beyond:
            found.mark(row, OUTSIDE, beyond)
            return
        self._by_single_pose(found, row, robot, q, responses)

    def _by_single_pose(
        self, found: BatchResult, row: int, robot: Robot, q: Array, responses: Sequence[ResponseName]
    ) -> None:
        """A row by the functions of single poses."""
        here, wrong = SinglePoseResponses(robot, q, self.load_case, self.modes), dict[str, ParflexError]()
        for one in responses:
            try:
                found.values[one.name][row] = here.answer(one)
            except ParflexError as error:
                wrong[one.name], found.values[one.name][row] = error, np.nan
        for name, why in wrong.items():
            if not isinstance(why, UnreachableError | SingularError):
                found.refusals[name] = why  # it makes no sense here; if it makes none anywhere, it is refused
        if len(wrong) < len(self.responses):
            found.balanced += here.is_implicitly_balanced
            found.rests[row] |= here.rests
            known = here.said  # it is not said again of each response
            others = [f"{name}: {'has none' if why.message == known else why.message}" for name, why in wrong.items()]
            found.say(row, "; ".join([known] * bool(known) + others))
            return
        first = next(iter(wrong.values()))
        found.mark(row, UNREACHABLE if isinstance(first, UnreachableError) else SINGULAR, first.message)
        found.refused = next(iter(found.refusals.values()), found.refused)
