"""Modes of measured frequency responses: poles that are stable by sdypy-EMA, then the responses fitted by them.

The library finds poles for growing orders of a polynomial (LSCF); those that stay where they are become the start of a
fit of all responses by poles, residues and two residual terms, whose residuals give deviations.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from parflex.errors import InputError
from parflex.updating.measured_modes import MeasuredMode
from parflex.updating.response_files import NODE, ORDERS, Responses, is_responses, read_responses
from parflex.updating.response_fit import ResponseFit
from parflex.updating.sensor_rows import is_sensor

Array = np.ndarray
WORDS = ("responses", "pose", "band", "order", "quantity", "sensors")
ORDER = 30  # highest number of poles
SAME_FREQUENCY = 0.005  # of a frequency, by which a stable pole moves from one order to the next
SAME_DAMPING = 0.2  # of a damping ratio
MOST_DAMPING = 0.3
OFTEN = 0.3  # of the orders, in which a pole must be stable
SURE = 0.02  # of a frequency: a larger deviation is not a mode


def modes_of_responses(given: Mapping[str, Any]) -> tuple[list[MeasuredMode], list[str]]:
    """Modes of a table {'responses': FILE, 'pose', 'band', 'order', 'quantity', 'sensors'}, and warnings."""
    for word in given:
        if word not in WORDS:
            raise InputError(f"unknown key '{word}' of responses", key="measured", value=str(word),
                             hint=f"keys are {', '.join(WORDS)}")  # fmt: skip
    file = given["responses"]
    nodes = {str(key): str(value) for key, value in (given.get("sensors") or {}).items()}
    found = read_responses(file, given.get("quantity"), nodes)
    try:
        low, high = _band(given.get("band"), found.frequencies)
        poles, deviations, residues = found_modes(found, low, high, _order(given.get("order")))
    except InputError as error:
        error.file = error.file or str(file)
        raise
    pose = str(given.get("pose") or "home")
    ends, picked, doubts = _shape_ends(found)
    rows = [
        MeasuredMode(
            pose, None, float(abs(pole) / (2 * np.pi)), float(max(spread[0], 1e-9 * abs(pole))),
            float(-pole.real / abs(pole)), float(max(spread[1], 1e-9)),
            {name: complex(1j * residue[k]) for name, k in zip(ends, picked, strict=True)},
        )
        for pole, spread, residue in zip(poles, deviations, residues.T, strict=True)
    ]  # fmt: skip
    told = f"{file}: {len(rows)} modes between {low:.4g} and {high:.4g} Hz at '{pose}'"
    return rows, [told, *found.warnings, *doubts]


def responses_of_words(
    files: Sequence[str], pose: Sequence[str] = (), band: str | None = None, order: int | None = None,
    quantity: str | None = None, sensors: str | None = None,
) -> list[Any]:  # fmt: skip
    """Files of a command line: those with frequency responses as tables with what was said of them."""
    for file in files:  # before anything is said of files that are not there
        if not Path(file).is_file():
            why = "it is a folder" if Path(file).is_dir() else "No such file or directory"
            raise InputError(f"cannot be read ({why})", file=str(file), key="measured", value=str(file),
                             hint="name the files in it" if Path(file).is_dir() else "check the path")  # fmt: skip
    of_responses = [file for file in files if is_responses(file)]
    if len(pose) > 1 and len(pose) != len(of_responses):
        raise InputError(f"{len(pose)} poses are given for {len(of_responses)} files of frequency responses",
                         key="pose", value=", ".join(pose), hint="give one pose for each file")  # fmt: skip
    said = {"band": band, "order": order, "quantity": quantity, "sensors": _nodes(sensors)}
    said = {key: value for key, value in said.items() if value is not None}
    if (said or pose) and not of_responses:
        word = next(iter(said), "pose")
        raise InputError(f"'{word}' is of frequency responses, and no file has any", key=word,
                         value=str(said.get(word, ", ".join(pose))), hint="leave it out")  # fmt: skip
    poses = iter(list(pose) * len(of_responses) if len(pose) == 1 else pose)
    return [
        {"responses": file, **said, **({"pose": name} if (name := next(poses, None)) else {})}
        if file in of_responses else file
        for file in files
    ]  # fmt: skip


def _nodes(text: str | None) -> dict[str, str] | None:
    if text is None:
        return None
    words = [word.partition("=") for word in text.split(",") if word.strip()]
    if not words or not all(node.strip() and frame.strip() for node, _, frame in words):
        raise InputError(f"'{text}' does not name frames of nodes", key="sensors", value=text,
                         hint="give NODE=FRAME,..., e.g. 1=tip,2=elbow.local")  # fmt: skip
    return {node.strip(): frame.strip() for node, _, frame in words}


def _band(given: Any, frequencies: Array) -> tuple[float, float]:
    whole = float(max(frequencies[0], frequencies[1] - frequencies[0])), float(frequencies[-1])
    if given is None:
        return whole
    try:
        low, high = (float(value) for value in (given.split("-") if isinstance(given, str) else given))
    except (TypeError, ValueError):
        low, high = 0.0, -1.0
    low, high = max(low, whole[0]), min(high, whole[1])
    if not low < high:
        raise InputError("the band has no frequencies of the file", key="band", value=str(given),
                         hint=f"give LOW-HIGH within {whole[0]:g}-{whole[1]:g} Hz")  # fmt: skip
    return low, high


def _order(given: Any) -> int:
    if given is None:
        return ORDER
    if isinstance(given, bool) or not isinstance(given, int) or not 2 <= given <= 100:
        raise InputError("the order is not a whole number from 2 to 100", key="order", value=str(given),
                         hint=f"give e.g. {ORDER}")  # fmt: skip
    return given


def _shape_ends(found: Responses) -> tuple[list[str], list[int], list[str]]:
    """Sensors of the shapes and their responses: outputs to one input, or inputs to one output (a roving hammer)."""
    best: list[int] = []
    names: Sequence[str] = ()
    for fixed, moving in ((found.inputs, found.outputs), (found.outputs, found.inputs)):
        for end in dict.fromkeys(fixed):
            own = [k for k, other in enumerate(fixed) if other == end and is_sensor(moving[k])]
            own = list({moving[k]: k for k in own}.values())
            if len(own) > len(best):
                best, names = own, moving
    ends = [names[k] for k in best]
    without = [name for name in ends or (*found.outputs, *found.inputs) if name.startswith(NODE)]
    if without:
        return [], [], ["shapes are not used: nodes of the file have no frames (name them by `sensors`)"]
    if len(best) < 2:
        return [], [], ["shapes are not used: the file has no two sensors with one input, nor two inputs of one sensor"]
    return ends, best, []


def found_modes(found: Responses, low: float, high: float, order: int) -> tuple[Array, Array, Array]:
    """Poles (rad/s), deviations of frequency (Hz) and damping ratio, and residues (responses x modes)."""
    inside = (found.frequencies >= low) & (found.frequencies <= high)
    f, H = found.frequencies[inside], found.values[:, inside]
    poles = _stable_poles(found, f[0], f[-1], order)
    fit = ResponseFit(f, H, ORDERS[found.kind])
    while len(poles):
        poles, deviations, residues = fit.best(poles)
        sure = (deviations[:, 0] < SURE * np.abs(poles) / (2 * np.pi)) & (-poles.real > 0)
        sure &= (np.abs(poles) >= 2 * np.pi * f[0]) & (np.abs(poles) <= 2 * np.pi * f[-1])
        if sure.all():
            rank = np.argsort(np.abs(poles))
            return poles[rank], deviations[rank], residues[:, rank]
        poles = poles[sure]
    raise InputError("no stable pole was found", key="responses", value=f"{low:g}-{high:g} Hz",
                     hint="choose another band or a higher order")  # fmt: skip


def _stable_poles(found: Responses, low: float, high: float, order: int) -> Array:
    """Poles that stay where they are while the order grows, by sdypy-EMA: the median of each."""
    try:
        from sdypy import EMA
    except ImportError:
        raise InputError("poles of frequency responses need the library sdypy-EMA", key="responses",
                         value=found.kind, hint="pip install 'parflex[vibration]'") from None  # fmt: skip
    step = found.frequencies[1] - found.frequencies[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = EMA.Model(
            found.values, found.frequencies, lower=low, upper=min(high + step, found.frequencies[-1]),
            pol_order_high=order, frf_form=found.kind,
        )  # fmt: skip
        model.get_poles(method="lscf", show_progress=False)
    stable: list[complex] = []
    last = np.zeros(0, dtype=complex)
    for several in model.all_poles:
        s = np.asarray(several)
        s = s[(s.imag > 0) & (s.real < 0) & (np.abs(s) > 2 * np.pi * low) & (np.abs(s) < 2 * np.pi * high)]
        s = s[-s.real < MOST_DAMPING * np.abs(s)]
        for pole in s:
            near = last[np.abs(np.abs(last) / abs(pole) - 1) < SAME_FREQUENCY]
            ratio = pole.real / abs(pole)
            if (np.abs(near.real / np.abs(near) / ratio - 1) < SAME_DAMPING).any():
                stable.append(complex(pole))
        last = s
    return _gathered(np.array(sorted(stable, key=abs), dtype=complex), max(OFTEN * len(model.all_poles), 2))


def _gathered(stable: Array, least: float) -> Array:
    """The median of each group of poles that are near to each other, if there are enough."""
    found: list[complex] = []
    group: list[complex] = []
    for pole in [*stable, complex(0, np.inf)]:
        if group and abs(pole) > abs(group[-1]) * (1 + SAME_FREQUENCY):
            if len(group) >= least:
                found.append(complex(np.median(np.real(group)), np.median(np.imag(group))))
            group = []
        group.append(pole)
    return np.array(found, dtype=complex)
