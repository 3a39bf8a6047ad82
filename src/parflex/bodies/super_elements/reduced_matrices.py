"""Matrices of a body reduced to the motions of its interface nodes and modal coordinates, and what is said of bad ones.

Rows are in the order of the nodes, of each `x y z rx ry rz` (or `x y z` alone), then the modal coordinates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from parflex.errors import RobotFileError
from parflex.records import Record

Array = np.ndarray
Freedom = tuple[int, int]  # number of a node and 1 to 6; number of a modal coordinate and 0
MAX_ORDER = 600  # freedoms; what is larger is not reduced
UNSYMMETRIC = 1e-6  # of the largest entry: more than rounding of printed numbers
LARGEST_NUMBER = 1e10  # of a node or a freedom
LARGEST = 1e100  # of an entry: its square is a number too
WORDS = {"M": "mass matrix", "K": "stiffness matrix", "D": "damping matrix", "geometric": "geometric stiffness"}


@dataclass(frozen=True, eq=False, repr=False)
class InterfaceNode(Record):
    """A node that others are attached to: number in its file, rows of its freedoms, position if the file has it."""

    number: int
    rows: tuple[int, ...]
    position: Array | None = None

    @property
    def turns(self) -> bool:
        """Whether its rotations are among the freedoms."""
        return len(self.rows) == 6


@dataclass(frozen=True, eq=False, repr=False)
class ReducedMatrices(Record):
    """Mass, stiffness and, where the file has them, damping and geometric stiffness of one body."""

    M: Array
    K: Array
    nodes: tuple[InterfaceNode, ...]
    D: Array | None = None
    geometric: Array | None = field(default=None, repr=False)  # n x n of one load, or n x n x n of each freedom
    file: str = ""
    units: str = "m"  # those that the file was given in

    @property
    def size(self) -> int:
        """Number of freedoms."""
        return len(self.M)

    @property
    def interface(self) -> int:
        """Number of freedoms of the nodes; the others are modal coordinates."""
        return sum(len(node.rows) for node in self.nodes)

    def with_modes(self, count: int) -> ReducedMatrices:
        """The same body with its first modal coordinates only."""
        have = self.size - self.interface
        if not 0 <= count <= have:
            raise RobotFileError(
                f"{count} modes are requested, but the matrices have {have} modal coordinates",
                file=self.file,
                key="modes",
                value=count,
                hint=f"give a number from 0 to {have}",
            )
        n = self.interface + count
        cut = {key: None if (A := getattr(self, key)) is None else A[(slice(n),) * A.ndim] for key in WORDS}
        return ReducedMatrices(nodes=self.nodes, file=self.file, units=self.units, **cut)  # type: ignore[arg-type]


def in_order(one: Freedom) -> tuple[bool, int, int]:
    """Nodes by number, then modal coordinates; internal nodes of Abaqus are -1, -2, ..."""
    return one[1] == 0, abs(one[0]), one[1]


def refuse(file: str, message: str, hint: str, key: str | None = None, value: object = None) -> RobotFileError:
    """What is said of matrices that cannot be."""
    return RobotFileError(message, file=file, key=key, value=value, hint=hint)


def from_freedoms(
    file: str,
    freedoms: Sequence[Freedom],
    matrices: Mapping[str, Array],
    positions: Mapping[int, Array] | None = None,
) -> ReducedMatrices:
    """Matrices by names M, K, D and geometric, whose rows are these freedoms, brought into order."""
    for key in ("M", "K"):
        if key not in matrices:
            have = ", ".join(sorted(matrices)) or "none"
            raise refuse(
                file, f"the {WORDS[key]} {key} is missing", f"give M and K of the same reduction; found {have}", key
            )
    for number, component in freedoms:
        if not 0 <= component <= 6:
            hint = "1 to 6 are x y z rx ry rz, 0 is a modal coordinate"
            raise refuse(file, f"node {number} has a freedom {component}", hint, value=component)
    if len(set(freedoms)) < len(freedoms):
        twice = next(one for k, one in enumerate(freedoms) if one in freedoms[:k])
        raise refuse(file, f"the freedom {twice[1]} of node {twice[0]} is there twice", "give every freedom once")
    numbers = list(dict.fromkeys(number for number, component in freedoms if component))
    order: list[int] = []
    nodes: list[InterfaceNode] = []
    for number in numbers:
        own = sorted((component, row) for row, (n, component) in enumerate(freedoms) if n == number and component)
        held = tuple(component for component, _ in own)
        if held not in ((1, 2, 3), (1, 2, 3, 4, 5, 6)):
            raise refuse(
                file,
                f"node {number} has the freedoms {' '.join(map(str, held))} alone",
                "retain 1 to 6 of interface nodes (or 1 to 3: then only balls can be attached); hold none of them",
                value=number,
            )
        nodes.append(InterfaceNode(number, tuple(range(len(order), len(order) + len(own))), _place(positions, number)))
        order += [row for _, row in own]
    if not nodes:
        raise refuse(file, "there is no interface node", "retain the nodes to which the robot is attached")
    order += [row for row, (_, component) in enumerate(freedoms) if not component]
    index = np.array(order)
    placed: dict[str, Any] = {key: checked(A, key, len(freedoms), file) for key, A in matrices.items()}
    placed = {key: A[np.ix_(*(index,) * A.ndim)] for key, A in placed.items()}
    return ReducedMatrices(nodes=tuple(nodes), file=file, **placed)


def _place(positions: Mapping[int, Array] | None, number: int) -> Array | None:
    return None if positions is None or number not in positions else np.asarray(positions[number], dtype=float)


def checked(A: Array, key: str, order: int, file: str) -> Array:
    """The matrix, finite, of the right order and symmetric; what is rounding of its symmetry is taken out."""
    word = f"the {WORDS[key]} {key}"
    cube = key == "geometric" and A.ndim == 3
    if A.shape != (order,) * (3 if cube else 2):
        shape = " x ".join(map(str, A.shape))
        raise refuse(file, f"{word} is {shape}, with {order} freedoms", f"give {order} x {order} numbers", key, shape)
    if not np.all(np.abs(A) < LARGEST):  # also NaN
        raise refuse(
            file, f"{word} has an entry that is not a finite number below 1e100", "write the matrices again", key
        )
    size, off = np.abs(A).max(), np.abs(A - np.swapaxes(A, -1, -2))
    if off.max() > UNSYMMETRIC * size:
        *_, i, j = np.unravel_index(off.argmax(), off.shape)
        raise refuse(
            file,
            f"{word} is not symmetric: rows {i + 1} and {j + 1} differ by {off.max() / size:.2g} of its largest entry",
            "write both triangles or say that it is symmetric; gyroscopic and load terms have no place in it",
            key,
            float(off.max() / size),
        )
    return (A + np.swapaxes(A, -1, -2)) / 2


def refuse_order(order: int, file: str) -> None:
    """Before anything of that size is made."""
    if order > MAX_ORDER:
        hint = "give matrices that are reduced to interface nodes and modes (craig_bampton reduces whole ones)"
        raise refuse(file, f"has {order} freedoms, more than {MAX_ORDER}", hint, value=order)
    if order < 6:
        raise refuse(file, f"has {order} freedoms alone", "give six for each interface node", value=order)
