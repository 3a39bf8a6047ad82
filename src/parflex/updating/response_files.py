"""Files of measured frequency responses: CSV by names of sensors, and UFF (dataset 58) by nodes and directions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from parflex.errors import InputError, did_you_mean
from parflex.records import Record
from parflex.updating.measured_modes import table_rows
from parflex.updating.sensor_rows import PARTS

Array = np.ndarray
UFF = (".uff", ".unv", ".uf", ".uf58", ".u58", ".bunv", ".universal")
ORDERS = {"receptance": 0, "mobility": 1, "accelerance": 2}  # derivatives of the position over the force
OF_UFF = {8: "receptance", 11: "mobility", 12: "accelerance"}
FORM = "columns are frequency_hz, and OUTPUT/INPUT.real and .imag, or .magnitude and .phase_deg, e.g. tip.x/tip.x.real"
EVEN = 1e-3  # of a step between frequencies
LEAST = 16  # frequencies of a file
NODE = "node "  # before the number of a node that has no frame: frames may be called by a number, too


@dataclass(frozen=True, eq=False, repr=False)
class Responses(Record):
    """Frequency responses on one grid: frequencies (Hz), values by response and frequency, and what they are of."""

    frequencies: Array
    values: Array
    outputs: tuple[str, ...]
    inputs: tuple[str, ...]
    kind: str
    warnings: tuple[str, ...] = ()


def is_responses(path: str | Path) -> bool:
    """Whether a file has frequency responses, by its name or by its row of names."""
    if Path(path).suffix.lower() in UFF:
        return True
    try:
        names, _ = table_rows(path)
    except InputError:
        return False
    return "frequency_hz" in names and "pose" not in names and any("/" in name for name in names)


def read_responses(path: str | Path, kind: str | None = None, nodes: Mapping[str, str] | None = None) -> Responses:
    """Responses of a file; `kind` of a CSV file is accelerance unless it is said, `nodes` names frames of UFF nodes."""
    if kind is not None and kind not in ORDERS:
        raise InputError(f"'{kind}' is not a kind of response", key="quantity", value=str(kind),
                         hint=did_you_mean(str(kind), ORDERS))  # fmt: skip
    try:
        found = _uff(path, kind, nodes or {}) if Path(path).suffix.lower() in UFF else _csv(path, kind or "accelerance")
        _check(found)
    except InputError as error:
        error.file = error.file or str(path)
        raise
    return found


def _csv(path: str | Path, kind: str) -> Responses:
    names, rows = table_rows(path)
    if "frequency_hz" not in names:
        raise InputError("there is no column 'frequency_hz'", key="responses", value=", ".join(names)[:60], hint=FORM)
    table = np.empty((len(rows), len(names)))
    for i, row in enumerate(rows):
        for j, word in enumerate(row):
            try:
                table[i, j] = float(word)
            except ValueError:
                raise InputError(f"'{names[j]}' of row {i + 1} is not a number", key="responses", value=word,
                                 hint="give a number in every field") from None  # fmt: skip
    columns = {name: table[:, j] for j, name in enumerate(names)}
    frequencies = columns.pop("frequency_hz")
    parts: dict[str, dict[str, Array]] = {}
    for name, column in columns.items():
        pair, _, part = name.rpartition(".")
        if part not in ("real", "imag", "magnitude", "phase", "phase_deg") or pair.count("/") != 1:
            raise InputError(f"unknown column '{name}'", key="responses", value=name, hint=FORM)
        parts.setdefault(pair, {})[part] = column
    values = []
    for pair, own in parts.items():
        if set(own) == {"real", "imag"}:
            values.append(own["real"] + 1j * own["imag"])
        elif set(own) in ({"magnitude", "phase"}, {"magnitude", "phase_deg"}):
            phase = own["phase"] if "phase" in own else np.radians(own["phase_deg"])
            values.append(own["magnitude"] * np.exp(1j * phase))
        else:
            raise InputError(f"'{pair}' has the columns {', '.join(own)}", key="responses", value=pair, hint=FORM)
    outputs, inputs = (tuple(pair.split("/")[k].strip() for pair in parts) for k in (0, 1))
    return Responses(frequencies, np.array(values), outputs, inputs, kind)


def _uff(path: str | Path, kind: str | None, nodes: Mapping[str, str]) -> Responses:
    try:
        import pyuff
    except ImportError:
        raise InputError("UFF files need the library pyuff", key="responses", value=str(path),
                         hint="pip install 'parflex[vibration]'") from None  # fmt: skip
    if not Path(path).is_file():
        raise InputError("cannot be read (No such file or directory)", key="responses", value=str(path),
                         hint="check the path")  # fmt: skip
    try:
        file = pyuff.UFF(str(path))
        sets = [file.read_sets(k) for k, number in enumerate(file.get_set_types()) if int(number) == 58]
        sets = [one for one in sets if int(one["func_type"]) == 4]
    except Exception as error:  # the library raises whatever a broken file leads to
        raise InputError(f"cannot be read as UFF ({str(error)[:80]})", key="responses", value=str(path),
                         hint="write it again, as ASCII") from None  # fmt: skip
    if not sets:
        raise InputError("the file has no frequency responses (dataset 58, function type 4)", key="responses",
                         value=str(path), hint="export frequency response functions")  # fmt: skip
    frequencies = np.asarray(sets[0]["x"], dtype=float)
    outputs, inputs, values, kinds = [], [], [], set()
    for one in sets:
        x = np.asarray(one["x"], dtype=float)
        if x.shape != frequencies.shape or np.abs(x - frequencies).max(initial=0) > EVEN * (x[-1] - x[0]) / len(x):
            raise InputError("responses of the file have different frequencies", key="responses", value=str(path),
                             hint="export them on one grid")  # fmt: skip
        output, up = _end(one, "rsp", nodes)
        input_, down = _end(one, "ref", nodes)
        outputs.append(output)
        inputs.append(input_)
        values.append(up * down * np.asarray(one["data"], dtype=complex))
        kinds.add(OF_UFF.get(int(one.get("ordinate_spec_data_type") or 0), ""))
    if len(kinds) > 1:
        raise InputError("responses of the file are of different kinds", key="responses", value=str(path),
                         hint="export accelerations, or velocities, or displacements")  # fmt: skip
    said = kinds.pop()
    warnings = () if said or kind else ("the file does not say what was measured: accelerations are taken",)
    return Responses(frequencies, np.array(values), tuple(outputs), tuple(inputs), kind or said or "accelerance",
                     warnings)  # fmt: skip


def _end(one: Mapping[str, Any], word: str, nodes: Mapping[str, str]) -> tuple[str, float]:
    """FRAME.x of an end of a response and its sign: the frame of its node, or its entity name, or its node."""
    node, direction = str(int(one.get(f"{word}_node") or 0)), int(one.get(f"{word}_dir") or 0)
    entity = str(one.get(f"{word}_ent_name") or "").strip()
    frame = nodes.get(node) or (entity if entity and entity.upper() != "NONE" else NODE + node)
    part = list(PARTS)[abs(direction) - 1] if 1 <= abs(direction) <= 6 else ""
    name = f"{frame}_{part}" if frame.endswith(".local") else f"{frame}.{part}"
    return name, -1.0 if direction < 0 else 1.0


def _check(found: Responses) -> None:
    f = found.frequencies
    if len(f) < LEAST or not len(found.values):
        raise InputError(f"{len(found.values)} responses at {len(f)} frequencies are too few", key="responses",
                         value=len(f), hint=f"give at least {LEAST} frequencies")  # fmt: skip
    if not (np.isfinite(f).all() and np.isfinite(found.values).all()):
        raise InputError("some values are not finite", key="responses", value="nan", hint="cut the band")
    steps = np.diff(f)
    if (steps <= 0).any() or np.ptp(steps) > EVEN * steps.mean() * len(f) ** 0.5:
        raise InputError("frequencies do not grow by equal steps", key="responses", value=f"{f[0]:g} ... {f[-1]:g}",
                         hint="give a grid with one step")  # fmt: skip
    if not found.values.any():
        raise InputError("all responses are zero", key="responses", value=len(f), hint="check what was exported")
