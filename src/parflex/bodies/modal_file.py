"""The exchange file of modal bodies: one npz with the arrays of `ModalData`, interface nodes first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from parflex.bodies.modal import ModalData, checked
from parflex.errors import InputError, RobotFileError, did_you_mean
from parflex.io import atomic_file, read_npz

FORMAT = 1
NEEDED = ("format", "nodes", "masses", "shapes", "modal_stiffnesses", "modal_masses")
KEYS = (*NEEDED, "interface", "damping_ratios", "second_moments", "thickness", "title", "source", "geometric")
MAX_BYTES = 200_000_000


def save_modal(data: ModalData, path: str | Path) -> Path:
    """Write the exchange file; a file that is there is replaced only when the new one is complete."""
    checked(data)
    path = Path(path)
    arrays: dict[str, Any] = {
        "format": np.int64(FORMAT),
        "nodes": data.nodes,
        "interface": np.array(data.interface, dtype=np.str_),
        "masses": data.masses,
        "shapes": data.shapes,
        "modal_masses": data.modal_masses,
        "modal_stiffnesses": data.modal_stiffnesses,
        "damping_ratios": data.damping_ratios,
        "thickness": np.float64(data.thickness),
        "title": np.str_(data.title),
        "source": np.str_(data.source),
    }
    if data.second_moments is not None:
        arrays["second_moments"] = data.second_moments
    if data.geometric is not None:
        arrays["geometric"] = data.geometric
    with atomic_file(path, None, "check the path and its permissions") as file:
        np.savez_compressed(file, **arrays)
    return path


def load_modal(path: str | Path) -> ModalData:
    """Read and check an exchange file."""
    path = Path(path)
    try:
        return checked(_read(path))
    except InputError as error:
        error.file = str(path)
        raise


def _read(path: Path) -> ModalData:
    try:
        if path.is_file() and path.stat().st_size > MAX_BYTES:
            raise RobotFileError("is too large for modal data", file=str(path), hint="keep fewer nodes or modes")
        arrays = read_npz(path)
    except OSError as error:
        reason = (
            "there is no such file" if isinstance(error, FileNotFoundError) else f"cannot be read ({error.strerror})"
        )
        raise RobotFileError(
            reason, file=str(path), value=str(path), hint="check the path and its permissions"
        ) from None
    except ValueError:
        raise RobotFileError(
            "is not an npz file of modal data", file=str(path), hint="write it with save_modal"
        ) from None
    unknown = [name for name in arrays if name not in KEYS]
    if unknown:
        raise RobotFileError(
            f"the array '{unknown[0]}' is not known",
            file=str(path),
            key=unknown[0],
            hint=did_you_mean(unknown[0], KEYS),
        )
    for name in NEEDED:
        if name not in arrays:
            raise RobotFileError(f"the array '{name}' is missing", file=str(path), key=name, hint="add it")
    value = str(arrays["format"])
    if value != str(FORMAT):
        raise RobotFileError(f"format {value} is not known", file=str(path), key="format", value=value, hint="use 1")
    for name, values in arrays.items():
        if name in ("interface", "title", "source"):
            if values.dtype.kind != "U" and values.size:
                raise RobotFileError(f"'{name}' holds no text", file=str(path), key=name, hint="give names or text")
            continue
        if np.iscomplexobj(values) or values.dtype.kind not in "fiu":
            what = "complex numbers" if np.iscomplexobj(values) else "no numbers"
            raise RobotFileError(f"'{name}' holds {what}", file=str(path), key=name, hint="give real numbers")
    count = len(arrays["modal_stiffnesses"]) if arrays["modal_stiffnesses"].ndim else 0
    numbers = {name: np.asarray(arrays[name], dtype=float) for name in NEEDED[1:]}
    return ModalData(
        **numbers,
        damping_ratios=np.asarray(arrays.get("damping_ratios", np.zeros(count)), dtype=float),
        interface=tuple(str(name) for name in np.atleast_1d(arrays.get("interface", np.array([], dtype=np.str_)))),
        second_moments=np.asarray(arrays["second_moments"], dtype=float) if "second_moments" in arrays else None,
        geometric=np.asarray(arrays["geometric"], dtype=float) if "geometric" in arrays else None,
        thickness=float(arrays.get("thickness", 0.0)),
        title=str(arrays.get("title", "")),
        source=str(arrays.get("source", "")),
    )
