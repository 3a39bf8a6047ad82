"""A body given by mass and stiffness matrices: checks, rigid motions, lowest modes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import eigsh, splu

from parflex.bodies.finite_elements.nodal import rigid_shapes
from parflex.errors import InputError
from parflex.records import Record

Array = np.ndarray
SYMMETRIC = 1e-6  # of the largest entry: matrices of other programs are printed with some digits only
NEGATIVE = 1e-8  # of the largest eigenvalue: what is below zero by less is rounding
DENSE = 800  # coordinates up to which matrices are treated as full ones
FREE = 1e-4  # of the first elastic eigenvalue: rigid motions may have so much
STIFF = 1e-12  # of the stiffest coordinate: motions with less have no stiffness


@dataclass(frozen=True, eq=False, repr=False)
class Structure(Record):
    """Matrices over coordinates `node * width + axis`, of which only the active ones carry mass or stiffness."""

    M: sparse.csc_matrix  # over the active coordinates, as K
    K: sparse.csc_matrix
    nodes: Array  # n x 3
    width: int  # 6: Tx Ty Tz Rx Ry Rz; 3: translations only
    active: Array  # indices of the active coordinates
    interface: dict[str, int]

    @cached_property
    def rigid(self) -> Array:
        """Rigid motions over the active coordinates that can be told apart there, orthonormal in mass."""
        moves = rigid_shapes(self.nodes)[:, :, : self.width].reshape(6, -1).T[self.active]
        values, vectors = np.linalg.eigh(moves.T @ (self.M @ moves))
        kept = values > 1e-10 * values.max()
        return moves @ (vectors[:, kept] / np.sqrt(values[kept]))

    @property
    def turns(self) -> bool:
        """Whether nodes have rotations."""
        return self.width == 6 and bool((self.active % 6 >= 3).any())

    def coordinates(self, node: int) -> Array:
        """Positions of the active coordinates of a node among the active ones."""
        return np.flatnonzero(self.active // self.width == node)

    def shapes(self, vectors: Array) -> Array:
        """Vectors over the active coordinates as shapes, N x n x 6; rotations NaN where a body has none."""
        whole = np.zeros((vectors.shape[1], len(self.nodes) * self.width))
        whole[:, self.active] = vectors.T
        shapes = np.zeros((vectors.shape[1], len(self.nodes), 6))
        shapes[:, :, : self.width] = whole.reshape(vectors.shape[1], len(self.nodes), self.width)
        if not self.turns:
            shapes[:, :, 3:] = np.nan
        return shapes


def structure(M: Any, K: Any, nodes: Any, interface: Mapping[str, int]) -> Structure:
    """Matrices, node positions (n x 3) and the indices of interface nodes, after every check."""
    places = np.array(nodes, dtype=float)
    if places.ndim != 2 or places.shape[1] != 3 or not len(places) or not np.isfinite(places).all():
        raise InputError("the nodes are not a list of points", key="nodes", hint="give an array of n x 3 numbers")
    mass, stiffness = _matrix(M, "M"), _matrix(K, "K")
    count = len(places)
    for name, matrix in (("M", mass), ("K", stiffness)):
        if matrix.shape not in ((6 * count, 6 * count), (3 * count, 3 * count)) or matrix.shape != mass.shape:
            size = " x ".join(str(k) for k in matrix.shape)
            raise InputError(
                f"{name} is {size}, which does not match {count} nodes",
                key=name,
                value=size,
                hint=f"give {6 * count} rows and columns (Tx Ty Tz Rx Ry Rz of each node) or {3 * count} (Tx Ty Tz)",
            )
    for name, index in interface.items():
        if not (isinstance(index, (int, np.integer)) and 0 <= index < count):
            raise InputError(
                f"interface node '{name}' has the index {index}, the body has {count} nodes",
                key="interface",
                value=index,
                hint=f"give an index from 0 to {count - 1}",
            )
    if len(set(interface.values())) < len(interface):
        raise InputError("two interface names refer to one node", key="interface", hint="give each node one name")
    width = mass.shape[0] // count
    active = np.flatnonzero(np.asarray(abs(mass).sum(axis=0) + abs(stiffness).sum(axis=0)).ravel())
    mass, stiffness = mass[active][:, active], stiffness[active][:, active]
    _check_definite(mass, "M", "give a mass matrix without negative masses")
    _check_definite(stiffness, "K", "give the stiffness of a stable body")
    return Structure(mass, stiffness, places, width, active, {name: int(index) for name, index in interface.items()})


def _matrix(given: Any, name: str) -> sparse.csc_matrix:
    """A real, finite and symmetric sparse matrix."""
    matrix = sparse.csc_matrix(given)
    if np.iscomplexobj(matrix):
        raise InputError(f"{name} is complex", key=name, hint="give real matrices, and damping by ratios")
    matrix = matrix.astype(float)
    if not np.isfinite(matrix.data).all():
        raise InputError(f"{name} has an entry that is not a number", key=name, hint="give finite numbers")
    if not matrix.nnz or matrix.shape[0] != matrix.shape[1]:
        raise InputError(f"{name} is empty or not square", key=name, hint="give a square matrix")
    skew = float(abs(matrix - matrix.T).max() / abs(matrix).max())
    if skew > SYMMETRIC:
        raise InputError(
            f"{name} is not symmetric: it differs from its transpose by {skew:.2g} of its largest entry",
            key=name,
            value=skew,
            hint="give the whole matrix, not one triangle",
        )
    return sparse.csc_matrix((matrix + matrix.T) / 2)


def _check_definite(matrix: sparse.csc_matrix, name: str, hint: str) -> None:
    """No eigenvalue is negative beyond rounding; coordinates of other units are scaled first."""
    diagonal = matrix.diagonal()
    if diagonal.max() > 0 and diagonal.min() >= -NEGATIVE * diagonal.max():
        root = 1 / np.sqrt(np.where(diagonal > 0, diagonal, diagonal.max()))
        scaled = sparse.csc_matrix(sparse.diags(root) @ matrix @ sparse.diags(root))
        if matrix.shape[0] <= DENSE:
            lowest = float(linalg.eigvalsh(scaled.toarray(), subset_by_index=[0, 0])[0])
            negative = lowest < -NEGATIVE * len(diagonal)
        else:
            negative = _pivots_below_zero(scaled + NEGATIVE * sparse.identity(matrix.shape[0])) > 0
        if not negative:
            return
    what = "negative masses" if name == "M" else "motions with negative stiffness"
    raise InputError(f"{name} is not positive semidefinite: it has {what}", key=name, hint=hint)


def _pivots_below_zero(matrix: sparse.csc_matrix) -> int:
    """Number of negative eigenvalues, by the signs of the pivots (Sylvester)."""
    factors = splu(
        sparse.csc_matrix(matrix),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    return int(np.sum(factors.U.diagonal() < 0))


def lowest_modes(M: Any, K: Any, count: int, rigid: Array | None = None) -> tuple[Array, Array]:
    """Eigenvalues and vectors (mass 1) of the lowest modes, without the given rigid motions (orthonormal in M)."""
    fixed = np.zeros((M.shape[0], 0)) if rigid is None else rigid
    movable = M.shape[0] - fixed.shape[1]
    if not 1 <= count <= movable:
        raise InputError(
            f"{count} modes are requested, but the body has at most {movable}",
            key="modes",
            value=count,
            hint=f"request 1 to {movable}",
        )
    mass, stiffness = M.diagonal(), K.diagonal()
    top = float((stiffness[mass > 0] / mass[mass > 0]).max())
    first = _modes_near(M, K, -1e-9 * top, 1, fixed)[0][0]
    if fixed.shape[1]:
        held = float(linalg.eigvalsh(fixed.T @ (K @ fixed)).max())
        if held > FREE * max(first, STIFF * top):
            raise InputError(
                f"the body is not free: a rigid-body motion has the eigenvalue {held:.3g}, the first mode {first:.3g}",
                key="K",
                value=held,
                hint="give the stiffness without supports",
            )
    if first < STIFF * top:
        rest = "other than the rigid-body ones" if fixed.shape[1] else "at all"
        raise InputError(f"the body has motions without stiffness {rest}", key="K", hint="connect its parts")
    return _modes_near(M, K, -first, count, fixed)


def _modes_near(M: Any, K: Any, sigma: float, count: int, fixed: Array) -> tuple[Array, Array]:
    """The lowest modes by inverses of K - sigma M; Ritz values in the space that is orthogonal to what is fixed."""
    size, required = M.shape[0], count + fixed.shape[1]
    if size <= DENSE or required > size // 3:
        full_mass, full_stiffness = _full(M), _full(K)
        # mass over stiffness, so that coordinates without mass do no harm: they are the zeros
        vectors = linalg.eigh(
            full_mass, full_stiffness - sigma * full_mass, subset_by_index=[size - required, size - 1]
        )[1]
    else:
        start = np.random.default_rng(0).normal(size=size)
        vectors = eigsh(K, required, M, sigma=sigma, which="LM", v0=start)[1]
    inertia = M @ fixed
    vectors = vectors - fixed @ (inertia.T @ vectors)
    values, turns = np.linalg.eigh(vectors.T @ (M @ vectors))
    kept = values > 1e-9 * values.max() if fixed.shape[1] else np.ones(len(values), dtype=bool)
    basis = (vectors @ turns[:, kept]) / np.sqrt(values[kept])
    basis = basis - fixed @ (inertia.T @ basis)
    stiffnesses, turns = linalg.eigh(basis.T @ (K @ basis), basis.T @ (M @ basis))
    return stiffnesses[:count], (basis @ turns)[:, :count]


def _full(matrix: Any) -> Array:
    return matrix.toarray() if sparse.issparse(matrix) else np.asarray(matrix)
