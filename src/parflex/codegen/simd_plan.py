"""Plan the SIMD lanes of a long program: identical calls that do not depend on each other share one call.

Legs of a robot call the same functions with other numbers. Such calls become a row of up to eight lanes, and values
computed between the calls for several lanes are a row as well. A leg has the same lane everywhere, so a row takes its
arguments from other rows as they lie in memory; a lane without a call is a hole. Rows are ordered by the calls on which
they depend.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from parflex.codegen.program import Program, function_number, is_call, is_pick

WIDTH = 8  # lanes of a row, on any machine: LLVM cuts them where registers are shorter
# times the instructions of rows that those of single calls are: two states side by side save half
MIN_SIMD_SAVING = 2.5
HOLE = -1  # a lane of a row with no value
SPARE = "spare"  # names of outputs that may have any value begin so
IN_ROWS = frozenset(("add", "sub", "mul", "div", "neg", "sqrt", "abs"))  # of what stands between calls
LOAD = "load"  # operation of a row of inputs
WHOLE = 3000  # instructions that are one function: cuts cost stores and loads
CHUNK = 1000  # of one function of a longer program: LLVM's time grows faster than the length of a function
PIECE = 240  # of one function for many lanes: longer ones keep their values worse, and a step takes a third longer
OTHER, CALLED, PICKED, CONSTANT = range(4)  # kinds of words
Lanes = tuple[int, ...]


class SimdRow(NamedTuple):
    """One operation, or calls of one function, for the values `lanes`; one value where it is not wide."""

    operation: str
    lanes: Lanes
    operands: list[Lanes]  # one for each argument
    wide: bool


def lane_values(lanes: Lanes) -> list[int]:
    """Values of a row without its holes."""
    return [k for k in lanes if k != HOLE]


class SimdPlan:
    """Rows of a program in the order in which they are computed, and the row and lane of each value."""

    def __init__(self, program: Program, rows: Iterable[SimdRow]) -> None:
        self.base, self.instructions = len(program.inputs), program.instructions
        self.rows: list[SimdRow] = []
        self.place: dict[int, tuple[int, int]] = {}
        for row in rows:
            self.add(row)

    def add(self, row: SimdRow) -> None:
        """Add a row."""
        self.place.update({k: (len(self.rows), lane) for lane, k in enumerate(row.lanes) if k != HOLE})
        self.rows.append(row)

    def producer(self, lanes: Lanes) -> int | None:
        """The row, or the row of calls, whose values these are, lane by lane; None where they are of several."""
        rows, words = set(), set()
        for lane, k in enumerate(lanes):
            if k == HOLE:
                continue
            word, *arguments = self.instructions[k - self.base] if k >= self.base else (LOAD,)
            picked = is_pick(word)
            row, producer_lane = (
                (-1, -1) if word == "const" else self.place.get(arguments[0] if picked else k, (-1, -1))
            )
            if producer_lane != lane:
                return None
            rows.add(row)
            words.add(word if picked else "")
        return rows.pop() if len(rows) == 1 and len(words) == 1 else None

    def has_row(self, lanes: Lanes) -> bool:
        """Return whether these values are those of one row of several lanes."""
        row = self.producer(lanes)
        return row is not None and self.rows[row].wide


def scalar_plan(program: Program) -> SimdPlan:
    """Rows of one value each, in the order of the instructions."""
    kinds, base = _kinds(program), len(program.inputs)
    numbered = enumerate(program.instructions, base)
    computed = ((k, instruction) for k, instruction in numbered if kinds[instruction[0]] in (OTHER, CALLED))
    return SimdPlan(program, (SimdRow(word, (k,), [(a,) for a in values], False) for k, (word, *values) in computed))


def simd_plan(program: Program) -> SimdPlan:
    """Rows of a program with functions."""
    base, instructions = len(program.inputs), program.instructions
    depth, height = _depths(program)
    sets = _call_sets(program, depth)
    legs = _legs(program, sets)
    rows = [_row(program, lanes) for values in sets.values() for lanes in _lane_rows(values, legs)]
    taken: set[int] = set()

    def fits(lanes: Lanes) -> bool:
        row_values = lane_values(lanes)
        if not 2 <= len(set(row_values)) == len(row_values) or min(row_values) < base:
            return False
        if not taken.isdisjoint(row_values):
            return False
        words = {instructions[k - base][0] for k in row_values}
        return len(words) == 1 and words <= IN_ROWS and len({(depth[k], height[k]) for k in row_values}) == 1

    seeds = [operand for row in rows if row.wide for operand in row.operands]
    seeds += output_rows(program)
    while seeds:
        lanes = seeds.pop()
        if fits(lanes):
            taken.update(lane_values(lanes))
            rows.append(_row(program, lanes))
            seeds += rows[-1].operands
    remaining: dict[tuple[str, int, int], list[int]] = defaultdict(list)
    kinds = _kinds(program)
    for k, instruction in enumerate(instructions, base):
        if kinds[instruction[0]] == OTHER and k not in taken:
            remaining[instruction[0], depth[k], height[k]].append(k)
    plan = SimdPlan(program, rows)
    for (word, *_), values in sorted(remaining.items(), key=lambda item: item[0][1:]):
        for lanes in _lane_rows(values, legs) if word in IN_ROWS else ((k,) for k in values):
            row = _row(program, lanes)
            ready = all(len(set(lane_values(part))) == 1 or plan.producer(part) is not None for part in row.operands)
            for part in [row] if ready or not row.wide else [_row(program, (k,)) for k in lane_values(lanes)]:
                plan.add(part)
    rows = [*plan.rows, *(SimdRow(LOAD, lanes, [], True) for lanes in _input_rows(program, plan.rows, 2))]

    def order(row: SimdRow) -> tuple[int, int, int, int]:
        if row.operation == LOAD:
            return -1, 0, 0, 0
        first = max(row.lanes)
        return depth[first], 0 if is_call(row.operation) else 1, height[first], first

    return SimdPlan(program, sorted(rows, key=order))


def simd_pays(program: Program) -> bool:
    """Whether enough calls are alike: rows of few lanes copy more than they save."""
    if not program.functions:
        return False
    if "rows pay" not in program.found:
        lengths = [function.length for function in program.functions]
        sets = _call_sets(program, _depths(program)[0])
        work = [(lengths[function_number(word)], len(calls)) for (_, word), calls in sets.items()]
        alone = sum(length * count for length, count in work)
        in_rows = max(sum(length * -(-count // WIDTH) for length, count in work), 1)
        program.found["rows pay"] = alone / in_rows >= MIN_SIMD_SAVING
    return bool(program.found["rows pay"])


def _input_rows(program: Program, rows: list[SimdRow], least: int) -> list[Lanes]:
    """Inputs that rows take together at least so often, where they do not lie side by side."""
    base, taken = len(program.inputs), set[int]()
    uses = Counter(operand for row in rows if row.wide for operand in row.operands if max(operand) < base)
    input_rows = []
    for lanes, count in uses.items():
        row_values = lane_values(lanes)
        apart = len(set(row_values)) == len(row_values) > 1 and not contiguous(lanes, base)
        if count >= least and apart and taken.isdisjoint(row_values):
            taken.update(row_values)
            input_rows.append(lanes)
    return input_rows


def contiguous(lanes: Lanes, count: int) -> bool:
    """Whether all lanes of a row are inputs that lie one behind the other, with some in place of the holes."""
    start = next(k - lane for lane, k in enumerate(lanes) if k != HOLE)
    return 0 <= start <= count - WIDTH and all(k in (HOLE, start + lane) for lane, k in enumerate(lanes))


def output_rows(program: Program) -> Iterator[Lanes]:
    """Outputs that lie side by side; spare ones are holes."""
    for start in range(0, len(program.outputs) - WIDTH + 1, WIDTH):
        part = program.outputs[start : start + WIDTH]
        yield tuple(HOLE if name.startswith(SPARE) else k for name, k in part)


def arrange_parts(setup: Program, main: Program) -> tuple[Program, Program]:
    """Both parts of a program that was split, with what the first hands over in the order of the rows of the second.

    Lanes of such a row lie side by side, those without a value as spare ones.
    """
    inputs = main.inputs
    first, base = len(main.variables), len(inputs)
    rows = [lanes for lanes in _input_rows(main, simd_plan(main).rows, 1) if min(lane_values(lanes)) >= first]
    order = [k for lanes in rows for k in lanes]
    placed = set(order)
    order += [k for k in range(first, base) if k not in placed]
    number = {k: k for k in range(first)}
    number |= {k: first + place for place, k in enumerate(order) if k != HOLE}
    shift = first + len(order) - base
    names, handed = [], []
    for place, k in enumerate(order):
        names.append(f"{SPARE}[{place}]" if k == HOLE else inputs[k])
        handed.append((names[-1], setup.outputs[(k if k != HOLE else first) - first][1]))
    instructions = tuple(
        (word, *arguments) if word == "const" else (word, *(number[k] if k < base else k + shift for k in arguments))
        for word, *arguments in main.instructions
    )
    outputs = tuple((name, number[k] if k < base else k + shift) for name, k in main.outputs)
    return (
        replace(setup, outputs=tuple(handed)),
        replace(main, parameters=tuple(names), instructions=instructions, outputs=outputs),
    )


def _row(program: Program, lanes: Lanes) -> SimdRow:
    base, values = len(program.inputs), lane_values(lanes)
    if len(values) == 1:
        word, *arguments = program.instructions[values[0] - base]
        return SimdRow(word, (values[0],), [(k,) for k in arguments], False)
    lane_arguments = [program.instructions[k - base][1:] if k != HOLE else None for k in lanes]
    count = len(program.instructions[values[0] - base]) - 1
    operands = [tuple(HOLE if values is None else values[slot] for values in lane_arguments) for slot in range(count)]
    return SimdRow(program.instructions[values[0] - base][0], lanes, operands, True)


def _depths(program: Program) -> tuple[list[int], list[int]]:
    """Of each value the calls in a chain that it waits for, and the operations behind the last of them."""
    base = len(program.inputs)
    depth, height = [0] * base, [0] * base
    kinds = _kinds(program)
    for instruction in program.instructions:
        kind = kinds[instruction[0]]
        if kind in (PICKED, CONSTANT):  # most of them
            depth.append(0 if kind == CONSTANT else depth[instruction[1]])
            height.append(0)
            continue
        arguments = instruction[1:]
        deepest = max([depth[k] for k in arguments], default=0)
        called = kind == CALLED
        depth.append(deepest + called)
        height.append(0 if called else 1 + max([height[k] for k in arguments if depth[k] == deepest], default=0))
    return depth, height


def _call_sets(program: Program, depth: list[int]) -> dict[tuple[int, str], list[int]]:
    """Calls of a function at a depth."""
    sets: dict[tuple[int, str], list[int]] = defaultdict(list)
    kinds = _kinds(program)
    for k, instruction in enumerate(program.instructions, len(program.inputs)):
        if kinds[instruction[0]] == CALLED:
            sets[depth[k], instruction[0]].append(k)
    return sets


def _kinds(program: Program) -> dict[str, int]:
    """What the words of a program are: each is asked once, not for each of its instructions, which may be a million."""
    kinds: dict[str, int] = {}
    for word in {instruction[0] for instruction in program.instructions}:
        kinds[word] = CALLED if is_call(word) else PICKED if is_pick(word) else CONSTANT if word == "const" else OTHER
    return kinds


def _legs(program: Program, sets: dict[tuple[int, str], list[int]]) -> list[int]:
    """A leg for each value, as lanes are called here: that of most of what it is computed from, or goes into.

    The legs are as many as the calls that most often are side by side. The first such calls begin them.
    """
    base, instructions = len(program.inputs), program.instructions
    work: Counter[int] = Counter()
    for (_, word), calls in sets.items():
        if 1 < len(calls) <= WIDTH:
            work[len(calls)] += program.functions[function_number(word)].length
    usual = max(work, key=lambda size: work[size], default=WIDTH)
    legs = [HOLE] * (base + len(instructions))
    begin = min((key for key, calls in sets.items() if len(calls) == usual), default=None)
    if any(name.startswith(SPARE) for name, _ in program.outputs):  # another program takes them in its own lanes
        for lanes in output_rows(program):
            for leg, k in enumerate(lanes if HOLE in lanes else ()):
                if k >= base and instructions[k - base][0] != "const":
                    legs[k] = leg
    else:
        for leg, k in enumerate(sets[begin] if begin is not None else ()):
            legs[k] = leg
    users: list[list[int]] = [[] for _ in legs]
    for k, (word, *arguments) in enumerate(instructions, base):
        if word != "const":
            for argument in arguments:
                users[argument].append(k)
    everything = range(base, len(legs))
    for k in everything:
        word, *arguments = instructions[k - base]
        if legs[k] == HOLE and word != "const":
            legs[k] = _most_common_leg(legs, arguments)
    for k in reversed(everything):
        if legs[k] == HOLE and instructions[k - base][0] != "const":
            legs[k] = _most_common_leg(legs, users[k])
    _make_legs_consistent(program, sets, legs, usual)
    return legs


def _make_legs_consistent(
    program: Program, sets: dict[tuple[int, str], list[int]], legs: list[int], usual: int
) -> None:
    """Legs once more from the first calls on: where calls of a set are some for each leg, none has another's."""
    base, instructions = len(program.inputs), program.instructions
    picks: dict[int, list[int]] = defaultdict(list)
    kinds = _kinds(program)
    for k, instruction in enumerate(instructions, base):
        if kinds[instruction[0]] == PICKED:
            picks[instruction[1]].append(k)
    for key in sorted(sets):
        calls = sets[key]
        for k in calls:
            most = _most_common_leg(legs, instructions[k - base][1:])
            legs[k] = legs[k] if most == HOLE else most
        if len(calls) % usual == 0:
            _distribute_over_legs(calls, legs, usual)
        for k in calls:
            for pick in picks[k]:
                legs[pick] = legs[k]


def _distribute_over_legs(identical_calls: list[int], legs: list[int], usual: int) -> None:
    """Give each leg as many of the calls, where calls of one leg are side by side, or each leg's in turn."""
    each = len(identical_calls) // usual
    if all(count == each for count in Counter(legs[k] for k in identical_calls).values()):
        return
    for parts in (
        [identical_calls[leg::usual] for leg in range(usual)],
        [identical_calls[k : k + each] for k in range(0, len(identical_calls), each)],
    ):
        if any(len({legs[k] for k in part}) > 1 for part in parts):
            continue
        free = [leg for leg in range(usual) if leg not in {legs[part[0]] for part in parts}]
        assigned: set[int] = set()
        for part in parts:
            leg = legs[part[0]]
            leg = leg if leg != HOLE and leg not in assigned else free.pop(0) if free else leg
            assigned.add(leg)
            for k in part:
                legs[k] = leg
        return


def _most_common_leg(legs: list[int], values: Sequence[int]) -> int:
    assigned_legs = [leg for leg in [legs[k] for k in values] if leg != HOLE]
    if len(assigned_legs) > 2:
        return max(dict.fromkeys(assigned_legs), key=assigned_legs.count)
    return assigned_legs[0] if assigned_legs else HOLE


def _lane_rows(values: list[int], legs: list[int]) -> Iterator[Lanes]:
    """Rows of values: each has one of each leg at most."""
    rows: list[list[int]] = []
    for k in values:
        lane = legs[k]
        row = next((candidate for candidate in rows if lane != HOLE and candidate[lane] == HOLE), None)
        if row is None:
            row = [HOLE] * WIDTH
            rows.append(row)
        row[lane if lane != HOLE else 0] = k
    yield from (tuple(row) for row in rows)


class Layout:
    """Pieces of a program, and places in its workspace: values of other pieces, outputs and arguments of calls.

    A place holds one value of all `lanes`. It is free again in the pieces after the last one that reads it. `limits`
    are the instructions of a program in one piece, and the rows of a piece of a longer program.
    """

    def __init__(
        self, program: Program, lanes: int, access: str = "", legs: bool = False, limits: tuple[int, int] | None = None
    ) -> None:
        self.program, self.lanes, self.access, self.base = program, lanes, access, len(program.inputs)
        self.plan: SimdPlan = simd_plan(program) if legs else scalar_plan(program)
        self.wide = {function_number(row.operation) for row in self.plan.rows if row.wide and is_call(row.operation)}
        self.functions = [
            Layout(function, WIDTH if number in self.wide else lanes)
            for number, function in enumerate(program.functions)
        ]
        whole, piece = limits or (WHOLE, CHUNK)
        self.pieces, self.piece_of = self._cut(piece if len(program.instructions) > whole else whole)
        self.reads = self._last_reads()
        self.places, self.arguments = self._allocated()
        self.inner = self.arguments + self._each(self.wide) * max((f.base for f in self.functions), default=0)
        within = (self._each({number} & self.wide) * function.size for number, function in enumerate(self.functions))
        self.size: int = self.inner + max(within, default=0)

    @staticmethod
    def _each(wide: object) -> int:
        return WIDTH if wide else 1

    def each(self, row: SimdRow) -> int:
        """Return places of one value of a row."""
        return self._each(row.wide or (is_call(row.operation) and function_number(row.operation) in self.wide))

    def _cut(self, limit: int) -> tuple[list[list[int]], list[int]]:
        """Return rows of each piece, and the piece of each row."""
        limit = PIECE if self.lanes > 2 and not self.functions else limit
        pieces: list[list[int]] = [[]]
        piece_of, length = [], 0
        for number, row in enumerate(self.plan.rows):
            if length >= limit:
                pieces.append([])
                length = 0
            length += 1 + (len(row.operands) if row.wide or is_call(row.operation) else 0)  # these are copied
            pieces[-1].append(number)
            piece_of.append(len(pieces) - 1)
        return pieces, piece_of

    def _last_reads(self) -> dict[int, int]:
        """Return the last piece that reads a row: of calls any, of others one that is not their own."""
        rows, place, instructions = self.plan.rows, self.plan.place, self.program.instructions
        last_reads: dict[int, int] = {}

        def read(k: int, piece: int) -> None:
            word, *arguments = instructions[k - self.base] if k >= self.base else (LOAD,)
            if word == "const" or (k < self.base and k not in place):
                return
            row, _ = place[arguments[0] if is_pick(word) else k]
            if is_pick(word) or k < self.base or self.piece_of[row] != piece:
                last_reads[row] = max(last_reads.get(row, 0), piece)

        for piece, numbers in enumerate(self.pieces):
            for k in {k for number in numbers for operand in rows[number].operands for k in operand} - {HOLE}:
                read(k, piece)
        for k in {k for _, k in self.program.outputs}:
            read(k, len(self.pieces) - 1)
        for number, row in enumerate(rows):
            if is_call(row.operation):  # written even where nothing is read
                last_reads.setdefault(number, self.piece_of[number])
        return last_reads

    def _allocated(self) -> tuple[dict[int, int], int]:
        """Return places by row, and their number."""
        places: dict[int, int] = {}
        free: dict[int, list[int]] = defaultdict(list)  # by size
        ending: dict[int, list[tuple[int, int]]] = defaultdict(list)
        start = 0
        for number, rows in enumerate(self.pieces):
            for size, place in ending[number - 1]:
                free[size].append(place)
            for row_number in (row for row in rows if row in self.reads):
                row = self.plan.rows[row_number]
                values = (
                    len(self.functions[function_number(row.operation)].program.outputs) if is_call(row.operation) else 1
                )
                size = self.each(row) * values
                size = -(-size // WIDTH) * WIDTH if size > 1 else 1
                if not free[size]:
                    free[size] += range(start, start + WIDTH) if size == 1 else [start]  # a line of the cache
                    start += max(size, WIDTH)
                places[row_number] = free[size].pop()
                ending[self.reads[row_number]].append((size, places[row_number]))
        return places, start
