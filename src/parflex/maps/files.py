"""Maps on disk: one npz file, written atomically and resumable, and a CSV table."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from parflex.codegen.cache import digest_of
from parflex.errors import InputError
from parflex.io import atomic_file, check_writable, read_npz
from parflex.maps.continuation import OK, OUTSIDE, SINGULAR, UNREACHABLE
from parflex.maps.positions import IMPOSSIBLE, WAITING
from parflex.maps.responses import ResponseName
from parflex.robot.robot import Robot
from parflex.statics.load_case import LoadCase

Array = np.ndarray
FORMAT = 3  # of map files
LINES = 4096  # of a CSV file that are written at a time
STATES = {OK: "ok", UNREACHABLE: "unreachable", SINGULAR: "singular", IMPOSSIBLE: "impossible", WAITING: "waiting"}
STATES[OUTSIDE] = "outside"
FOREIGN = (OSError, ValueError, KeyError, AttributeError, TypeError, IndexError)


class MapStore:
    """Numbers of all cells, their states, and their reasons by number."""

    def __init__(self, axes: Mapping[str, Array], modes: int, responses: Sequence[ResponseName]) -> None:
        self.axes, self.responses = dict(axes), tuple(responses)
        self.shape = tuple(len(axis) for axis in axes.values())
        count = int(np.prod(self.shape))
        self.values = {"frequencies": np.full((count, modes), np.nan)}
        self.values |= {response.name: np.full((count, *response.shape), np.nan) for response in responses}
        self.status = np.full(count, WAITING, np.int8)
        self.reason = np.zeros(count, np.uint16)
        self.reasons = [""]

    def put(self, cells: slice, values: Mapping[str, Array], status: Array, reasons: Sequence[str]) -> None:
        """Take over what was found at some cells."""
        for name, array in values.items():
            self.values[name][cells] = array
        self.status[cells] = status
        texts, numbers = numbered(reasons)
        self.reason[cells] = np.array([self._number(text) if text else 0 for text in texts])[numbers]

    def _number(self, text: str) -> int:
        if text not in self.reasons:
            if len(self.reasons) > np.iinfo(np.uint16).max:  # they name numbers: the rest is told by the state
                return 0
            self.reasons.append(text)
        return self.reasons.index(text)

    def take_up(self, path: Path, settings: Mapping[str, Any]) -> None:
        """Fill in what an earlier run left; a file that is something else is refused."""
        if not path.exists():
            return
        try:
            stored = read_npz(path)
            stored_settings = json.loads(str(stored["settings"]))
            same = stored_settings == settings
            if same:
                for name, array in self.values.items():
                    array[:] = stored[_key(name)].reshape(array.shape)
                self.status[:] = stored["status"].ravel()
                self.reason[:] = stored["reason"].ravel()
                self.reasons = json.loads(str(stored["reasons"]))
        except FOREIGN:
            raise _refused(path, "the file is not a map", "give another name") from None
        if not same:
            old = isinstance(stored_settings, dict) and stored_settings.get("format") != FORMAT
            what = "an earlier version wrote this map" if old else "the file holds a map with other settings"
            raise _refused(path, what, "give another name, or remove the file")

    def save(self, path: Path, settings: Mapping[str, Any]) -> None:
        """Write all of it; reasons are numbered in the order of cells, whatever the order of chunks was."""
        used, first = np.unique(self.reason, return_index=True)
        order = [0, *(int(k) for k in used[np.argsort(first)] if k)]
        numbers = np.zeros(len(self.reasons), np.uint16)
        numbers[order] = np.arange(len(order))
        self.reason, self.reasons = numbers[self.reason], [self.reasons[k] for k in order]
        content: dict[str, Array] = {f"axis_{name}": axis for name, axis in self.axes.items()}
        content |= {_key(name): array.reshape(*self.shape, *array.shape[1:]) for name, array in self.values.items()}
        content |= {"status": self.status.reshape(self.shape), "reason": self.reason.reshape(self.shape)}
        content |= {"settings": np.array(json.dumps(settings)), "reasons": np.array(json.dumps(self.reasons))}
        with atomic_file(path) as file:
            np.savez(file, **content)  # type: ignore[arg-type]

    def save_csv(self, path: Path) -> None:
        """A table with one line for each cell."""
        frequencies = self.values["frequencies"]
        names = [f"f{k + 1}_hz" for k in range(frequencies.shape[1])]
        names += [column for response in self.responses for column in response.columns]
        with atomic_file(path) as file:
            head = io.StringIO()
            csv.writer(head).writerow([*self.axes, "state", *names])
            file.write(head.getvalue().encode())
            for start in range(0, len(frequencies), LINES):
                cells = np.arange(start, min(start + LINES, len(frequencies)))
                index = np.unravel_index(cells, self.shape)
                columns = [axis[k] for axis, k in zip(self.axes.values(), index, strict=True)]
                numbers = np.concatenate(
                    [array[cells].reshape(len(cells), -1) for array in self.values.values()], axis=1
                )
                lines = io.StringIO()
                rows = csv.writer(lines)
                for row, cell in enumerate(cells):
                    fields = ["" if np.isnan(value) else repr(value) for value in numbers[row].tolist()]
                    place = [repr(float(column[row])) for column in columns]
                    rows.writerow([*place, STATES[int(self.status[cell])], *fields])
                file.write(lines.getvalue().encode())


def numbered(reasons: Sequence[str]) -> tuple[list[str], Array]:
    """The texts that there are, few as a rule, and the number of that of each row."""
    place = {text: k for k, text in enumerate(dict.fromkeys(reasons))}
    return list(place), np.fromiter(map(place.__getitem__, reasons), np.uint16, len(reasons))


def map_settings(
    robot: Robot,
    over: Sequence[tuple[str, float, float, int]],
    fixed: Mapping[str, float],
    modes: int,
    conditions: LoadCase,
    responses: Sequence[ResponseName],
    ignore_limits: bool,
) -> dict[str, Any]:
    """What the map is of; a map on disk is taken up only if this is the same."""
    wrench = {
        name: np.asarray(components, dtype=float).tolist() for name, components in (conditions.wrench or {}).items()
    }
    return {
        "format": FORMAT,
        "robot": robot.name,
        "description": digest_of(robot),  # of all that was loaded: a payload or modal data stand in no description
        "actuation": robot.actuation,
        "working_mode": robot.working_mode,
        "over": [[name, float(first), float(last), int(count)] for name, first, last, count in over],
        "fixed": {name: float(value) for name, value in fixed.items()},
        "modes": int(modes),
        "lock": conditions.lock if isinstance(conditions.lock, str) else list(conditions.lock),
        "about": conditions.about,
        "wrench": wrench,
        "responses": [response.name for response in responses],
        "ignore_limits": ignore_limits,
    }


def check_map_file(path: Path, csv: bool = False) -> None:
    """Refuse a name that no map can have, nor the table beside it, before anything is computed."""
    if path.suffix != ".npz" or path.is_dir():
        raise InputError(
            f"'{path.name}' is not a map file", key="out", value=str(path), hint="name a file like map.npz"
        )
    for target in (path, path.with_suffix(".csv")) if csv else (path,):
        check_writable(target)


def _key(name: str) -> str:
    """The name of an array in the file: one that every system takes for the name of a file."""
    return name.replace(":", "_").replace("@", "_at_").replace("/", "_")


def _refused(path: Path, what: str, hint: str) -> InputError:
    return InputError(what, key="out", file=str(path), value=str(path), hint=hint)
