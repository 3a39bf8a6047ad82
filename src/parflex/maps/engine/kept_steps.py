"""Programs of steps on disk: a robot that was traced once is not traced again, whatever the designs."""

from __future__ import annotations

import json
import threading

from parflex.codegen import disk_cache, program_store
from parflex.codegen.compile import Kernel
from parflex.designs.design_numbers import DesignNumbers
from parflex.maps.engine.mode_programs import ModePrograms, StepTrace
from parflex.models.robot import Robot

RECENT = 8  # robots whose programs stay in memory
_recent: dict[str | None, tuple[ModePrograms, Kernel, Kernel]] = {}
_lock = threading.Lock()
PARTS = ("pose", "step", "closing")
SIZES = ("size", "unknowns", "twisted", "condensed")


def step_kernels(locked: Robot, designs: DesignNumbers | None = None) -> tuple[ModePrograms, Kernel, Kernel]:
    """The programs of a robot with its locked joints, and the machine code of pose and step; the last ones are kept."""
    key = program_store.key_of(locked, "step", None if designs is None else designs.name or repr(designs.places))
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


def _programs(key: str | None, locked: Robot, designs: DesignNumbers | None) -> ModePrograms:
    """From the disk if they are there."""
    data = None if key is None else disk_cache.read(key)
    if data is not None:
        content = json.loads(data)
        pose, step, closing = (program_store.read_back(content[part]) for part in PARTS)
        assert pose is not None and step is not None
        return ModePrograms(pose, step, **{name: content[name] for name in SIZES}, closing=closing)
    made = StepTrace(locked, designs).programs()
    if key is not None:
        content = {part: program_store.written(getattr(made, part)) for part in PARTS}
        content |= {name: getattr(made, name) for name in SIZES}
        disk_cache.write(key, json.dumps(content, separators=(",", ":")).encode())
    return made
