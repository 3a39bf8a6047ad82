"""Measured frequency responses, their files and their modes.

sdypy-EMA finds poles for growing orders of a polynomial (LSCF). Stable poles are the start of a fit of all responses
with common poles: H = s^d (sum of R/(s - p) and its conjugate + L/s^2 + U). Residues R and the terms L and U of modes
below and above the band are linear, and eliminated; d = 0, 1, 2 is the number of derivatives.

Residuals give deviations. These include noise that neighbouring lines share, as with windows and means, and the effect
of modes outside the band beyond L and U: the change of the poles by the next terms of their series, less its noise.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.optimize

from parflex.diagnostics import Diagnostic
from parflex.errors import InputError, did_you_mean
from parflex.io import table_rows
from parflex.records import Record
from parflex.updating.measured import PARTS, MeasuredMode, is_sensor

Array = np.ndarray
WORDS = ("responses", "pose", "band", "order", "quantity", "sensors")
ORDER = 30  # highest number of poles
SAME_FREQUENCY = 0.005  # of a frequency, by which a stable pole moves from one order to the next
SAME_DAMPING = 0.2  # of a damping ratio
MOST_DAMPING = 0.3
OFTEN = 0.3  # of the orders, in which a pole must be stable
SURE = 0.02  # of a frequency: a larger deviation is not a mode
TERMS, MORE = (-2, 0), (-4, -2, 0, 2)  # powers of s of modes below and above the band, and with the next ones
LONGEST = 0.1  # of all lines, that noise may have in common
CHANCE = 2.0  # deviations of a correlation of white noise
UFF = (".uff", ".unv", ".uf", ".uf58", ".u58", ".bunv", ".universal")
ORDERS = {"receptance": 0, "mobility": 1, "accelerance": 2}  # derivatives of the position over the force
OF_UFF = {8: "receptance", 11: "mobility", 12: "accelerance"}
FORM = "columns are frequency_hz, and OUTPUT/INPUT.real and .imag, or .magnitude and .phase_deg, e.g. tip.x/tip.x.real"
EVEN = 1e-3  # of a step between frequencies
LEAST = 16  # frequencies of a file
NODE = "node "  # before the number of a node that has no frame: frames may be called by a number, too


def modes_of_responses(table: Mapping[str, Any]) -> tuple[list[MeasuredMode], list[Diagnostic]]:
    """Modes of a table {'responses': FILE, 'pose', 'band', 'order', 'quantity', 'sensors'}, and diagnostics."""
    for word in table:
        if word not in WORDS:
            raise InputError(f"unknown key '{word}' of responses", key="measured", value=str(word),
                             hint=f"keys are {', '.join(WORDS)}")  # fmt: skip
    file = table["responses"]
    nodes = {str(key): str(value) for key, value in (table.get("sensors") or {}).items()}
    responses = read_responses(file, table.get("quantity"), nodes)
    try:
        low, high = _band(table.get("band"), responses.frequencies)
        poles, deviations, residues = identified_modes(responses, low, high, _order(table.get("order")))
    except InputError as error:
        error.file = error.file or str(file)
        raise
    pose = str(table.get("pose") or "home")
    ends, picked, unused = _shape_ends(responses)
    rows = [
        MeasuredMode(
            pose, None, float(abs(pole) / (2 * np.pi)), float(max(spread[0], 1e-9 * abs(pole))),
            float(-pole.real / abs(pole)), float(max(spread[1], 1e-9)),
            {name: complex(1j * residue[k]) for name, k in zip(ends, picked, strict=True)},
        )
        for pole, spread, residue in zip(poles, deviations, residues.T, strict=True)
    ]  # fmt: skip
    summary = f"{file}: {len(rows)} modes between {low:.4g} and {high:.4g} Hz at '{pose}'"
    return rows, [Diagnostic("identified-modes", summary, pose, len(rows)), *responses.diagnostics, *unused]


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
    settings = {"band": band, "order": order, "quantity": quantity, "sensors": _nodes(sensors)}
    settings = {key: value for key, value in settings.items() if value is not None}
    if (settings or pose) and not of_responses:
        word = next(iter(settings), "pose")
        raise InputError(f"'{word}' is of frequency responses, and no file has any", key=word,
                         value=str(settings.get(word, ", ".join(pose))), hint="leave it out")  # fmt: skip
    poses = iter(list(pose) * len(of_responses) if len(pose) == 1 else pose)
    return [
        {"responses": file, **settings, **({"pose": name} if (name := next(poses, None)) else {})}
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


def _band(band: Any, frequencies: Array) -> tuple[float, float]:
    whole = float(max(frequencies[0], frequencies[1] - frequencies[0])), float(frequencies[-1])
    if band is None:
        return whole
    try:
        low, high = (float(value) for value in (band.split("-") if isinstance(band, str) else band))
    except (TypeError, ValueError):
        low, high = 0.0, -1.0
    low, high = max(low, whole[0]), min(high, whole[1])
    if not low < high:
        raise InputError("the band has no frequencies of the file", key="band", value=str(band),
                         hint=f"give LOW-HIGH within {whole[0]:g}-{whole[1]:g} Hz")  # fmt: skip
    return low, high


def _order(order: Any) -> int:
    if order is None:
        return ORDER
    if isinstance(order, bool) or not isinstance(order, int) or not 2 <= order <= 100:
        raise InputError("the order is not a whole number from 2 to 100", key="order", value=str(order),
                         hint=f"give e.g. {ORDER}")  # fmt: skip
    return order


def _shape_ends(responses: Responses) -> tuple[list[str], list[int], list[Diagnostic]]:
    """Sensors of the shapes and their responses: outputs to one input, or inputs to one output (a roving hammer)."""
    best: list[int] = []
    names: Sequence[str] = ()
    for fixed, moving in ((responses.inputs, responses.outputs), (responses.outputs, responses.inputs)):
        for end in dict.fromkeys(fixed):
            matching = [k for k, other in enumerate(fixed) if other == end and is_sensor(moving[k])]
            matching = list({moving[k]: k for k in matching}.values())
            if len(matching) > len(best):
                best, names = matching, moving
    ends = [names[k] for k in best]
    without = [name for name in ends or (*responses.outputs, *responses.inputs) if name.startswith(NODE)]
    if without:
        text = "shapes are not used: nodes of the file have no frames (name them by `sensors`)"
        return [], [], [Diagnostic("incomplete-measurements", text, without[0])]
    if len(best) < 2:
        text = "shapes are not used: the file has no two sensors with one input, nor two inputs of one sensor"
        return [], [], [Diagnostic("incomplete-measurements", text)]
    return ends, best, []


def identified_modes(responses: Responses, low: float, high: float, order: int) -> tuple[Array, Array, Array]:
    """Poles (rad/s), deviations of frequency (Hz) and damping ratio, and residues (responses x modes)."""
    inside = (responses.frequencies >= low) & (responses.frequencies <= high)
    f, H = responses.frequencies[inside], responses.values[:, inside]
    poles = _stable_poles(responses, f[0], f[-1], order)
    fit = ResponseFit(f, H, ORDERS[responses.kind])
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


def _stable_poles(responses: Responses, low: float, high: float, order: int) -> Array:
    """Poles that stay where they are while the order grows, by sdypy-EMA: the median of each."""
    try:
        from sdypy import EMA
    except ImportError:
        raise InputError("poles of frequency responses need the library sdypy-EMA", key="responses",
                         value=responses.kind, hint="pip install 'parflex[vibration]'") from None  # fmt: skip
    step = responses.frequencies[1] - responses.frequencies[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = EMA.Model(
            responses.values, responses.frequencies, lower=low, upper=min(high + step, responses.frequencies[-1]),
            pol_order_high=order, frf_form=responses.kind,
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
    medians: list[complex] = []
    group: list[complex] = []
    for pole in [*stable, complex(0, np.inf)]:
        if group and abs(pole) > abs(group[-1]) * (1 + SAME_FREQUENCY):
            if len(group) >= least:
                medians.append(complex(np.median(np.real(group)), np.median(np.imag(group))))
            group = []
        group.append(pole)
    return np.array(medians, dtype=complex)


class ResponseFit:
    """All responses in a band (Hz, responses x frequencies), and the search for their poles."""

    def __init__(self, f: Array, H: Array, order: int) -> None:
        self.s, self.order = 2j * np.pi * f, order
        self.Y = np.concatenate([H.real, H.imag], axis=1).T
        self.sizes = np.linalg.norm(self.Y, axis=0)
        self.weights = 1 / np.where(self.sizes > 0, self.sizes, np.inf)  # a sensor in a node of all modes sees nothing

    def columns(self, x: Array, terms: Sequence[int] = TERMS) -> tuple[Array, Array]:
        """Responses per unit of real and imaginary parts of residues and of the other terms; and sizes of these."""
        poles = poles_of(x)
        direct, conjugate = (1 / (self.s[:, None] - p[None, :]) for p in (poles, poles.conj()))
        rest = np.stack([self.s**power for power in terms], axis=1)
        parts = self.s[:, None] ** self.order * np.concatenate(
            [direct + conjugate, 1j * (direct - conjugate), rest], axis=1
        )
        stacked = np.concatenate([parts.real, parts.imag])
        sizes = np.linalg.norm(stacked, axis=0)
        return stacked / sizes, sizes

    def left(self, x: Array, terms: Sequence[int] = TERMS) -> Array:
        """Residuals of the best residues over the noise of each response."""
        Q = np.linalg.qr(self.columns(x, terms)[0])[0]
        return ((self.Y - Q @ (Q.T @ self.Y)) * self.weights).ravel()

    def best(self, poles: Array) -> tuple[Array, Array, Array]:
        """Poles (rad/s), deviations of frequency (Hz) and ratio, and residues (responses x modes)."""
        x = np.stack([np.log(np.abs(poles)), -poles.real / np.abs(poles)], axis=1).ravel()
        count = len(poles)
        freedoms = max(len(self.Y) - 2 * count - 2, 1)
        scale = np.full(2 * count, 1e-3)
        for _ in range(2):  # noise of each response from its residuals
            x = scipy.optimize.least_squares(self.left, x, x_scale=scale, xtol=1e-12, ftol=1e-12).x
            left = self.left(x).reshape(len(self.Y), -1)
            noise = np.sqrt((left**2).sum(axis=0) / freedoms) / np.where(self.weights > 0, self.weights, 1.0)
            self.weights = 1 / np.where(self.sizes > 0, np.maximum(noise, 1e-12 * self.sizes), np.inf)
        deviation = np.hypot(self._by_noise(x), self._by_other_modes(x, scale))
        fitted = poles_of(x)
        spread = np.stack([deviation[::2] * np.abs(fitted) / (2 * np.pi), deviation[1::2]], axis=1)
        columns, sizes = self.columns(x)
        parts = np.linalg.lstsq(columns, self.Y, rcond=None)[0] / sizes[:, None]
        return fitted, spread, (parts[:count] + 1j * parts[count : 2 * count]).T

    def _by_noise(self, x: Array, terms: Sequence[int] = TERMS) -> Array:
        """Deviations by noise as residuals have it: lines beside each other may have some in common."""
        J = scipy.optimize.approx_fprime(x, self.left, 1e-7, terms)
        long = np.maximum(np.linalg.norm(J, axis=0), 1e-300)  # a weak mode beside a strong one: squares would be lost
        P = np.linalg.pinv(J / long)
        parts = P.reshape(len(x), 2, len(self.s), -1)  # real and imaginary, lines, responses
        square = (P**2).sum(axis=1)
        for lag, rho in enumerate(self._residual_correlations(x, terms), start=1):
            square = square + 2 * rho * (parts[:, :, lag:] * parts[:, :, :-lag]).sum(axis=(1, 2, 3))
        return np.asarray(np.sqrt(np.maximum(square, (P**2).sum(axis=1))) / long)

    def _residual_correlations(self, x: Array, terms: Sequence[int]) -> list[float]:
        """Correlations of residuals of lines that are one, two, ... apart, up to the first that may be chance."""
        left = self.left(x, terms).reshape(2, len(self.s), -1)
        all_of_it, correlations = float((left**2).sum()), list[float]()
        for lag in range(1, int(LONGEST * len(self.s))):
            rho = float((left[:, lag:] * left[:, :-lag]).sum()) / max(all_of_it, 1e-300)
            if rho < CHANCE / np.sqrt(left.size):
                break
            correlations.append(rho)
        return correlations

    def _by_other_modes(self, x: Array, scale: Array) -> Array:
        """By how much poles move with more terms of modes outside of the band, beyond what noise moves them by."""
        more = scipy.optimize.least_squares(self.left, x, x_scale=scale, xtol=1e-12, ftol=1e-12, args=(MORE,)).x
        noise = np.maximum(self._by_noise(more, MORE) ** 2 - self._by_noise(x) ** 2, 0.0)
        return np.asarray(np.sqrt(np.maximum((more - x) ** 2 - noise, 0.0)))


def poles_of(x: Array) -> Array:
    """Poles (rad/s) from logarithms of their sizes and damping ratios, in turn."""
    omega, ratio = np.exp(x[::2]), x[1::2]
    return omega * (-ratio + 1j * np.sqrt(np.maximum(1 - ratio**2, 1e-12)))


@dataclass(frozen=True, eq=False, repr=False)
class Responses(Record):
    """Frequency responses on one grid: frequencies (Hz), values by response and frequency, and what they are of."""

    frequencies: Array
    values: Array
    outputs: tuple[str, ...]
    inputs: tuple[str, ...]
    kind: str
    diagnostics: tuple[Diagnostic, ...] = ()


def is_responses(path: str | Path) -> bool:
    """Whether a file has frequency responses, by its name or by its row of names."""
    if Path(path).suffix.lower() in UFF:
        return True
    try:
        names, _ = table_rows(path, "measured", FORM)
    except InputError:
        return False
    return "frequency_hz" in names and "pose" not in names and any("/" in name for name in names)


def read_responses(path: str | Path, kind: str | None = None, nodes: Mapping[str, str] | None = None) -> Responses:
    """Responses of a file; `kind` of a CSV file is accelerance unless it is said, `nodes` names frames of UFF nodes."""
    if kind is not None and kind not in ORDERS:
        raise InputError(f"'{kind}' is not a kind of response", key="quantity", value=str(kind),
                         hint=did_you_mean(str(kind), ORDERS))  # fmt: skip
    try:
        responses = (
            _uff(path, kind, nodes or {}) if Path(path).suffix.lower() in UFF else _csv(path, kind or "accelerance")
        )
        _check(responses)
    except InputError as error:
        error.file = error.file or str(path)
        raise
    return responses


def _csv(path: str | Path, kind: str) -> Responses:
    names, rows = table_rows(path, "measured", FORM)
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
    for pair, components in parts.items():
        if set(components) == {"real", "imag"}:
            values.append(components["real"] + 1j * components["imag"])
        elif set(components) in ({"magnitude", "phase"}, {"magnitude", "phase_deg"}):
            phase = components["phase"] if "phase" in components else np.radians(components["phase_deg"])
            values.append(components["magnitude"] * np.exp(1j * phase))
        else:
            raise InputError(
                f"'{pair}' has the columns {', '.join(components)}", key="responses", value=pair, hint=FORM
            )
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
        sets = [dataset for dataset in sets if int(dataset["func_type"]) == 4]
    except Exception as error:  # the library raises whatever a broken file leads to
        raise InputError(f"cannot be read as UFF ({str(error)[:80]})", key="responses", value=str(path),
                         hint="write it again, as ASCII") from None  # fmt: skip
    if not sets:
        raise InputError("the file has no frequency responses (dataset 58, function type 4)", key="responses",
                         value=str(path), hint="export frequency response functions")  # fmt: skip
    frequencies = np.asarray(sets[0]["x"], dtype=float)
    outputs, inputs, values, kinds = [], [], [], set()
    for dataset in sets:
        x = np.asarray(dataset["x"], dtype=float)
        if x.shape != frequencies.shape or np.abs(x - frequencies).max(initial=0) > EVEN * (x[-1] - x[0]) / len(x):
            raise InputError("responses of the file have different frequencies", key="responses", value=str(path),
                             hint="export them on one grid")  # fmt: skip
        output, up = _end(dataset, "rsp", nodes)
        input_, down = _end(dataset, "ref", nodes)
        outputs.append(output)
        inputs.append(input_)
        values.append(up * down * np.asarray(dataset["data"], dtype=complex))
        kinds.add(OF_UFF.get(int(dataset.get("ordinate_spec_data_type") or 0), ""))
    if len(kinds) > 1:
        raise InputError("responses of the file are of different kinds", key="responses", value=str(path),
                         hint="export accelerations, or velocities, or displacements")  # fmt: skip
    file_kind = kinds.pop()
    assumed = Diagnostic(
        "incomplete-measurements", "the file does not state the measured quantity: accelerations are assumed"
    )
    return Responses(frequencies, np.array(values), tuple(outputs), tuple(inputs), kind or file_kind or "accelerance",
                     () if file_kind or kind else (assumed,))  # fmt: skip


def _end(dataset: Mapping[str, Any], word: str, nodes: Mapping[str, str]) -> tuple[str, float]:
    """FRAME.x of an end of a response and its sign: the frame of its node, or its entity name, or its node."""
    node, direction = str(int(dataset.get(f"{word}_node") or 0)), int(dataset.get(f"{word}_dir") or 0)
    entity = str(dataset.get(f"{word}_ent_name") or "").strip()
    frame = nodes.get(node) or (entity if entity and entity.upper() != "NONE" else NODE + node)
    part = list(PARTS)[abs(direction) - 1] if 1 <= abs(direction) <= 6 else ""
    name = f"{frame}_{part}" if frame.endswith(".local") else f"{frame}.{part}"
    return name, -1.0 if direction < 0 else 1.0


def _check(responses: Responses) -> None:
    f = responses.frequencies
    if len(f) < LEAST or not len(responses.values):
        raise InputError(f"{len(responses.values)} responses at {len(f)} frequencies are too few", key="responses",
                         value=len(f), hint=f"give at least {LEAST} frequencies")  # fmt: skip
    if not (np.isfinite(f).all() and np.isfinite(responses.values).all()):
        raise InputError("some values are not finite", key="responses", value="nan", hint="cut the band")
    steps = np.diff(f)
    if (steps <= 0).any() or np.ptp(steps) > EVEN * steps.mean() * len(f) ** 0.5:
        raise InputError("frequencies do not grow by equal steps", key="responses", value=f"{f[0]:g} ... {f[-1]:g}",
                         hint="give a grid with one step")  # fmt: skip
    if not responses.values.any():
        raise InputError("all responses are zero", key="responses", value=len(f), hint="check what was exported")
