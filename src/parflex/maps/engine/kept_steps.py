"""Programs of steps on disk: a robot that was traced once is not traced again, whatever the designs."""

from __future__ import annotations

import json
import threading

from parflex.codegen import cache
from parflex.codegen.llvm_jit import Kernel
from parflex.codegen.lower import Emission, depth_first
from parflex.codegen.program import Program
from parflex.maps.engine.mode_programs import ModePrograms, StepTrace
from parflex.parameters.design_numbers import DesignNumbers
from parflex.robot.robot import Robot

RECENT = 8  # robots whose programs stay in memory
_recent: dict[str | None, tuple[ModePrograms, Kernel, Kernel]] = {}
_from_keys: dict[tuple[int, int], tuple[Kernel, Kernel, Kernel]] = {}  # by the kernels that are joined, kept with it
_lock = threading.Lock()
DESIGN = "design["  # begins the name of a number of the design
PARTS = ("pose", "step", "closing")
SIZES = ("size", "unknowns", "twisted", "condensed")


def step_kernels(locked: Robot, designs: DesignNumbers | None = None) -> tuple[ModePrograms, Kernel, Kernel]:
    """The programs of a robot with its locked joints, and the machine code of pose and step; the last ones are kept."""
    key = cache.key_of(locked, "step", None if designs is None else designs.name or repr(designs.places))
    found = _recent.get(key)
    if found is None:
        programs = _programs(key, locked, designs)
        found = programs, Kernel(programs.pose), Kernel(programs.step)
        if key is not None:
            with _lock:
                while len(_recent) >= RECENT:
                    _recent.pop(next(iter(_recent)))
                _recent[key] = found
    return found


def pose_of_keys(pose: Kernel, numbers: Kernel) -> Kernel:
    """The program of a pose from keys of its design, in the place of the numbers that another program makes of these.

    One program for both stores no numbers, of which there may be hundreds, and works out no others.
    """
    key = id(pose), id(numbers)
    if key not in _from_keys:
        with _lock:
            if len(_from_keys) >= RECENT:
                _from_keys.clear()
            _from_keys[key] = pose, numbers, Kernel(_composed(pose.program, numbers.program))
    return _from_keys[key][2]


def _composed(pose: Program, numbers: Program) -> Program:
    """The program of a pose behind that of its numbers."""
    placed = [name for name in pose.inputs if not name.startswith(DESIGN)]
    names = (*placed, *numbers.inputs)
    emission = Emission(names, deep=False)
    place = {name: k for k, name in enumerate(names)}

    def emitted(program: Program, values: list[int]) -> list[int]:
        for word, *arguments in program.instructions:
            values.append(emission.emit(word, *(arguments if word == "const" else [values[k] for k in arguments])))
        return [values[k] for _, k in program.outputs]

    made = emitted(numbers, [place[name] for name in numbers.inputs])
    given = [place[name] if name in place else made[int(name[len(DESIGN) : -1])] for name in pose.inputs]
    found = emitted(pose, given)
    outputs = tuple((name, value) for (name, _), value in zip(pose.outputs, found, strict=True))
    return depth_first(Program(pose.name, names, (), tuple(emission.instructions), 0, outputs))


def _programs(key: str | None, locked: Robot, designs: DesignNumbers | None) -> ModePrograms:
    """From the disk if they are there."""
    data = None if key is None else cache.read_bytes(key)
    if data is not None:
        content = json.loads(data)
        pose, step, closing = (cache.program_from_plain(content[part]) for part in PARTS)
        assert pose is not None and step is not None
        return ModePrograms(pose, step, **{name: content[name] for name in SIZES}, closing=closing)
    made = StepTrace(locked, designs).programs()
    if key is not None:
        content = {part: cache.program_to_plain(getattr(made, part)) for part in PARTS}
        content |= {name: getattr(made, name) for name in SIZES}
        cache.write_bytes(key, json.dumps(content, separators=(",", ":")).encode())
    return made
