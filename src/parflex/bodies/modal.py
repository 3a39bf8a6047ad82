"""Define bodies by mode shapes at nodes, and read and write their exchange file.

Nodes have masses and the shape of each mode; modes have modal masses and stiffnesses. Integrals over the body are sums
over its nodes. A lumped mass may have an extent: its second moments move with the rotation theta of the node, so a
point at the offset s moves by u + theta x s.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from parflex.bodies.elastic import ElasticBody, MeanStrain, NamedNodes
from parflex.checks import require
from parflex.errors import InputError, RobotFileError, did_you_mean
from parflex.io import atomic_file, read_bytes, read_npz
from parflex.records import Record
from parflex.spatial.rotations import cross, hat

Array = np.ndarray
ROUND_OFF = 1e-12  # relative size of entries of integrals that are rounding
ORTHOGONAL = 1e-3  # of the modal masses: larger products of two modes are not rounding of printed shapes
SAME_MASS = 1e-2  # relative difference between a modal mass and the sum over the nodes
RIGID_SHARE = 1e-6  # of a mode: a smaller rigid-body share is rounding
DEGENERATE = 1e-6  # relative difference of stiffnesses of degenerate modes
STILL = 1e-9  # m/rad: translations below this share of the rotations are rounding, as in the torsion of a shaft
RESOLVED = 1e-10  # of the largest entry of a mode: precision of eigenvectors of finite elements
FELT = 0.1  # of the largest translation: least motion of an interface node that decides a sign
SIGN_TIE_TOLERANCE = 1e-6  # relative difference of components that decide the sign in node order
THIN = 0.5  # deflections beyond this share of the thickness stretch the middle plane
FORMAT = 1
NEEDED = ("format", "nodes", "masses", "shapes", "modal_stiffnesses", "modal_masses")
TEXTS = ("interface", "title", "source")
KEYS = (*NEEDED, *TEXTS, "damping_ratios", "second_moments", "thickness", "geometric")
MAX_BYTES = 200_000_000


@dataclass(frozen=True, eq=False, repr=False)
class ModalData(Record):
    """Nodes (interface first), masses and modes of a body, in its frame; for units see the exchange file."""

    nodes: Array  # n x 3
    masses: Array  # n
    shapes: Array  # N x n x 6: Tx Ty Tz Rx Ry Rz; rotations may be NaN where they are not known
    modal_stiffnesses: Array  # N
    modal_masses: Array  # N
    damping_ratios: Array  # N
    interface: tuple[str, ...] = ()  # names of the first nodes
    second_moments: Array | None = field(default=None, repr=False)  # n x 3 x 3, of what is lumped, about the node
    thickness: float = 0.0  # reference of deflections; 0: no warning
    title: str = ""
    source: str = ""
    geometric: Array | None = field(default=None, repr=False)  # N x N x N: of each mode, what its stress adds to K

    @property
    def count(self) -> int:
        """Number of modes."""
        return len(self.shapes)

    @property
    def mass(self) -> float:
        """Mass of the body."""
        return float(self.masses.sum())

    def with_modes(self, count: int) -> ModalData:
        """Return the body with its first modes only."""
        message = f"{count} modes are requested, but the data have {self.count}"
        require(1 <= count <= self.count, message, "modes", f"give a number from 1 to {self.count}", count)
        names = ("shapes", "modal_stiffnesses", "modal_masses", "damping_ratios")
        geometric = None if self.geometric is None else self.geometric[:count, :count, :count]
        return replace(self, **{name: getattr(self, name)[:count] for name in names}, geometric=geometric)


def checked(data: ModalData) -> ModalData:
    """Return the data after all checks."""
    points = data.nodes.ndim == 2 and data.nodes.shape[1] == 3 and len(data.nodes)
    require(points, "the nodes are not a list of points", "nodes", "give an array of n x 3 numbers")
    n = len(data.nodes)
    shape, hint = " x ".join(map(str, data.shapes.shape)), f"give modes x {n} x 6 numbers"
    fits = data.shapes.ndim == 3 and data.shapes.shape[1:] == (n, 6)
    require(fits, f"the shapes ({shape}) do not match the {n} nodes", "shapes", hint, shape)
    N = data.count
    require(N, "there are no modes", "shapes", "give at least one, or use a rigid body")
    for name in ("masses", "modal_stiffnesses", "modal_masses", "damping_ratios"):
        values, length, what = np.asarray(getattr(data, name)), *((n, "nodes") if name == "masses" else (N, "modes"))
        message = f"{name} has {values.size} values for {length} {what}"
        require(values.shape == (length,), message, name, "give one for each", values.size)
        require(np.all(np.isfinite(values)), f"{name} has a value that is not a number", name, "give finite numbers")
    unique = len(data.interface) <= n and len(set(data.interface)) == len(data.interface)
    require(unique, "the interface names do not match the nodes", "interface", "give each node one name")
    for name in data.interface:
        valid = name and "." not in name and name.strip() == name
        require(valid, f"'{name}' is not a valid node name", "interface", "give a name without dots", name)
    require(np.all(np.isfinite(data.nodes)), "a node coordinate is not a number", "nodes", "give finite numbers")
    finite = bool(np.all(np.isfinite(data.shapes[:, :, :3])) and not np.any(np.isinf(data.shapes)))
    hint = "give finite numbers; only rotations may be NaN"
    require(finite, "a shape has an entry that is not a number", "shapes", hint)
    if data.second_moments is not None:
        _check_moments(data, data.second_moments)
    if data.geometric is not None:
        key, A = "geometric", data.geometric
        fits, hint = A.shape == (N, N, N) and bool(np.all(np.isfinite(A))), f"give {N} x {N} x {N} numbers"
        require(fits, "the geometric stiffnesses do not match the modes", key, hint)
        symmetric = np.abs(A - np.moveaxis(A, 1, 2)).max() <= 1e-6 * np.abs(A).max()
        hint = "give the matrix of each mode's stress over all modes"
        require(symmetric, "a geometric stiffness is not symmetric", key, hint)
    thick, hint = 0 <= data.thickness < np.inf, "give a positive number, or none"
    require(thick, "the thickness is not a positive length", "thickness", hint, data.thickness)
    positive = not np.any(data.masses < 0) and data.mass > 0
    require(positive, "the masses of the nodes are not positive", "masses", "give masses of zero or more")
    hints = {"modal_stiffnesses": "leave rigid-body motions out of the modes", "modal_masses": "give positive masses"}
    for name, hint in hints.items():
        values = getattr(data, name)
        k = int(np.argmin(values > 0))  # the first that is not positive
        message = f"mode {k + 1} has {name[:-2].replace('_', ' ')} {values[k]:g}"
        require(values[k] > 0, message, name, hint, float(values[k]))
    negative = np.any(data.damping_ratios < 0)
    require(not negative, "a damping ratio is negative", "damping_ratios", "damping must not be negative")
    _check_products(data)
    return data


def _check_moments(data: ModalData, moments: Array) -> None:
    """Raise for second moments without masses or at nodes without rotations."""
    key = "second_moments"
    fits = moments.shape == (len(data.nodes), 3, 3) and np.all(np.isfinite(moments))
    require(fits, "the second moments do not match the nodes", key, "give n x 3 x 3 numbers")
    turned = not np.abs(moments[np.isnan(data.shapes[:, :, 3:]).any(axis=(0, 2))]).any()
    require(turned, "a node with second moments has no rotations", key, "give its rotations, or no moments")
    rounding = 1e-9 * np.abs(moments).max()
    symmetric = np.abs(moments - np.moveaxis(moments, 1, 2)).max() <= rounding
    require(symmetric, "the second moments of a node are not symmetric", key, "give int s s^T dm")
    hint = "give int s s^T dm, not moments of inertia"
    require(np.linalg.eigvalsh(moments).min() >= -rounding, "the second moments of a node are negative", key, hint)


def _check_products(data: ModalData) -> None:
    """Raise unless modes are orthogonal with the masses of the nodes."""
    gram = products(data, data.shapes)
    masses = np.diag(gram)
    require(np.all(masses > 0), f"mode {int(np.argmin(masses)) + 1} moves no mass", "shapes", "leave it out")
    share = np.abs(gram) / np.sqrt(np.outer(masses, masses)) - np.eye(data.count)
    largest = float(share.max(initial=0.0))
    i, j = sorted(int(k) + 1 for k in np.unravel_index(share.argmax(), share.shape))
    message = f"modes {i} and {j} are not orthogonal: their product is {largest:.2g} of their masses"
    hint = "give modes of the same mass matrix, with the nodal masses that belong to it"
    require(largest <= ORTHOGONAL, message, "shapes", hint, largest)
    off = np.abs(masses / data.modal_masses - 1)
    k = int(off.argmax())
    message = f"mode {k + 1} has the modal mass {data.modal_masses[k]:.4g}, its nodes have {masses[k]:.4g}"
    hint = "normalise shapes and masses together"
    require(off[k] <= SAME_MASS, message, "modal_masses", hint, float(data.modal_masses[k]))


def integrals(data: ModalData) -> tuple[Array, Array]:
    """Return S_a = int f_a and G_ab = int f_a f_b^T of the fields (r0, phi_1, ...) as nodal sums, theory (32)."""
    positions = np.concatenate([data.nodes[None], data.shapes[:, :, :3]])
    weighted = positions * data.masses[None, :, None]
    S = weighted.sum(axis=1)
    G = np.einsum("ani,bnj->abij", weighted, positions, optimize=True)
    if data.second_moments is not None:  # an offset s moves with the rotation of its node
        turns = np.moveaxis(hat(np.nan_to_num(data.shapes[:, :, 3:]).transpose(2, 0, 1)), (0, 1), (2, 3))
        carry = np.concatenate([np.broadcast_to(np.eye(3), (1, *turns.shape[1:])), turns])
        carried = np.einsum("anik,nkl->anil", carry, data.second_moments, optimize=True)
        G = G + np.einsum("anil,bnjl->abij", carried, carry, optimize=True)
    return S, G


def without_rounding_differences(values: Array, share: float = ROUND_OFF) -> Array:
    """Return values in which numbers equal to rounding (except sign) are equal, so symmetry is exact.

    Rounding of sums depends on the machine, and shared functions of a program must not.
    """
    flat = np.abs(values).ravel()
    order = np.argsort(flat)
    steps = ~(np.diff(flat[order]) <= share * flat[order][1:])  # NaN is like nothing else
    group = np.concatenate([[0], np.cumsum(steps)])
    first = flat[order][np.concatenate([[0], np.flatnonzero(steps) + 1])]
    result = np.empty_like(flat)
    result[order] = first[group]
    return np.sign(values) * result.reshape(values.shape)


def drop_rounding(S: Array, G: Array, m: float) -> tuple[Array, Array]:
    """Set integrals that are rounding to zero, relative to the sizes of both fields."""
    sizes = np.sqrt(np.maximum(np.trace(np.diagonal(G, axis1=0, axis2=1), axis1=0, axis2=1), 1e-300))
    S = np.where(np.abs(S) > ROUND_OFF * (np.sqrt(m) * sizes)[:, None], S, 0.0)
    scale = np.outer(sizes, sizes)[:, :, None, None]
    G = np.where(np.abs(G) > ROUND_OFF * scale, G, 0.0)
    S, G = without_rounding_differences(S), without_rounding_differences(G)
    masses = np.trace(G[1:, 1:], axis1=2, axis2=3)
    for k in range(len(masses)):  # a mass of 1 but for rounding is 1
        if abs(masses[k, k] - 1) < ROUND_OFF:
            largest = int(np.argmax(np.diag(G[k + 1, k + 1])))
            G[k + 1, k + 1, largest, largest] += 1.0 - masses[k, k]
    return S, G


def modal_body(data: ModalData) -> ElasticBody:
    """Return the body with its interface nodes; the elastic coordinates are those of the modes."""
    S, G = drop_rounding(*integrals(data), data.mass)
    k, m = data.modal_stiffnesses, data.modal_masses
    D = np.diag(2 * data.damping_ratios * np.sqrt(k * m))
    largest = np.abs(data.shapes[:, :, :3]).max()
    indices = {str(k): k for k in range(len(data.nodes))} | {name: k for k, name in enumerate(data.interface)}
    shapes = np.where(np.abs(data.shapes) <= ROUND_OFF * largest, 0.0, data.shapes)
    inner = NamedNodes(indices, data.nodes, shapes)
    nodes = {name: inner.node(name) for name in data.interface}
    labels = tuple(f"mode{number + 1}" for number in range(data.count))
    return ElasticBody(
        data.mass, S, G, np.diag(k), D, nodes, labels, ("1",) * data.count, small=THIN * data.thickness,
        strains=stress_strains(data.geometric, k, np.diag(D)), slopes=mean_slopes(data.shapes, data.masses),
        inner=inner,
    )  # fmt: skip


def stress_strains(geometric: Array | None, stiffnesses: Array, damping: Array) -> tuple[MeanStrain, ...]:
    """Return the second-order elongation for each mode whose stress changes the stiffness."""
    if geometric is None:
        return ()
    symmetric = (geometric + np.moveaxis(geometric, 1, 2)) / 2
    modes = zip(np.eye(len(stiffnesses)), symmetric, map(float, stiffnesses), map(float, damping), strict=True)
    return tuple(MeanStrain(row, H / k, k, c) for row, H, k, c in modes if H.any())


def mean_slopes(shapes: Array, masses: Array) -> Array | None:
    """Return mass averages of the rotations of material lines by pairs of modes, N x N x 3 x 3, or None.

    A line along a rotates by th x a, so a stress sigma contributes sigma : (|th|^2 1 - th th^T).
    """
    th, mass_fractions = shapes[:, masses > 0, 3:], masses[masses > 0] / masses.sum()
    if not np.all(np.isfinite(th)) or not th.any():
        return None
    squares = np.einsum("n,ani,bni->ab", mass_fractions, th, th)
    mixed = np.einsum("n,ani,bnj->abij", mass_fractions, th, th)
    return squares[:, :, None, None] * np.eye(3) - (mixed + np.swapaxes(mixed, 2, 3)) / 2


def normalised(data: ModalData) -> ModalData:
    """Return the modes with modal mass 1 in ascending order, with signs and degenerate bases by rule.

    Rounding of rigid motions is removed. The first of the largest translations (node by node, x y z; rotations if
    no node translates) is positive. Modes of equal stiffness are rotated so that the first contains the largest
    translation of their space and the others do not, whatever mixture is in the file.
    """
    hint = "normalise the modes first and give the geometric stiffnesses of these"
    require(data.geometric is None, "geometric stiffnesses refer to the modes as given", "geometric", hint)
    order = np.argsort(data.modal_stiffnesses / data.modal_masses, kind="stable")
    shapes = data.shapes[order] / np.sqrt(data.modal_masses[order])[:, None, None]
    stiffnesses = data.modal_stiffnesses[order] / data.modal_masses[order]
    ratios, ones = data.damping_ratios[order], np.ones(data.count)
    data = replace(data, shapes=shapes, modal_stiffnesses=stiffnesses, modal_masses=ones, damping_ratios=ratios)
    shapes = _without_rigid_share(data)
    gram = products(data, shapes)
    if np.abs(gram - np.eye(data.count)).max() <= SAME_MASS:  # orthonormal but for rounding
        shapes = nearest_orthonormal(shapes, gram)
    for group in equal_groups(stiffnesses, DEGENERATE):
        shapes[group] = _canonical_shapes(shapes[group], len(data.interface))
    for part in (slice(0, 3), slice(3, 6)):  # what is not resolved where legs are attached is zero: symmetry is seen
        largest = np.nanmax(np.abs(shapes[:, :, part]), axis=(1, 2), keepdims=True, initial=0.0)
        interface_shapes = shapes[:, : len(data.interface), part]
        if interface_shapes.size:
            resolved = np.where(np.abs(interface_shapes) < RESOLVED * largest, 0.0, interface_shapes)
            interface_shapes[...] = without_rounding_differences(resolved, RESOLVED)
    return replace(data, shapes=shapes)


def equal_groups(values: Array, share: float) -> Iterator[slice]:
    """Return ranges of rising values that differ by no more than a relative share."""
    first = 0
    while first < len(values):
        last = first + 1
        while last < len(values) and values[last] - values[first] <= share * abs(values[last]):
            last += 1
        yield slice(first, last)
        first = last


def _canonical_shapes(shapes: Array, interface: int) -> Array:
    """Rotate shapes of equal stiffness to a basis that does not depend on their mixture."""
    result, remaining = [], list(shapes)
    while remaining:
        index = _largest(np.sqrt(np.sum(np.square(remaining), axis=0)), interface)
        along = np.array([shape.flat[index] for shape in remaining])
        rotation = _householder(along / np.linalg.norm(along))
        remaining = list(np.tensordot(rotation, np.array(remaining), axes=1))
        result.append(remaining.pop(0))
    return np.array(result)


def _largest(shape: Array, interface: int) -> int:
    """Return the first of the largest translations of interface nodes, or of all nodes if these hardly move.

    Rotations decide if translations are rounding.
    """
    sizes = np.nan_to_num(np.abs(shape))
    if sizes[:, :3].max() > STILL * sizes[:, 3:].max():
        sizes[:, 3:] = 0.0
    interface_sizes = sizes[:interface]
    candidates = interface_sizes if interface_sizes.max(initial=0.0) > FELT * sizes.max() else sizes
    return int(np.flatnonzero(candidates >= (1 - SIGN_TIE_TOLERANCE) * candidates.max())[0])


def _householder(direction: Array) -> Array:
    """Return an orthogonal matrix with the direction as first row; for one shape, a sign."""
    if len(direction) == 1:
        return np.sign(direction)[None]
    basis = np.linalg.qr(np.column_stack([direction, np.eye(len(direction))]))[0][:, : len(direction)]
    return (basis * np.sign(basis[:, 0] @ direction)).T


def rigid_shapes(nodes: Array) -> Array:
    """Return six rigid motions (along x, y, z, about x, y, z) at the nodes: 6 x n x 6."""
    shapes = np.repeat(np.eye(6)[:, None], len(nodes), axis=1)
    shapes[3:, :, :3] = [cross(axis, nodes.T).T for axis in np.eye(3)]
    return shapes


def products(data: ModalData, *shapes: Array) -> Array:
    """Return sums over the mass of products of every two shapes."""
    together = np.concatenate(shapes)
    ones = np.ones(len(together))
    body = replace(data, shapes=together, modal_masses=ones, modal_stiffnesses=ones, damping_ratios=ones)
    return np.einsum("abii->ab", integrals(body)[1][1:, 1:])


def momenta(data: ModalData) -> Array:
    """Return linear and angular momentum of each mode per unit rate, N x 6."""
    return products(data, rigid_shapes(data.nodes), data.shapes)[6:, :6]


def nearest_orthonormal(shapes: Array, gram: Array) -> Array:
    """Return the nearest orthonormal shapes by the inverse root of their products `gram`."""
    values, vectors = np.linalg.eigh(gram)
    return np.tensordot((vectors / np.sqrt(values)) @ vectors.T, shapes, axes=1)


def _without_rigid_share(data: ModalData) -> Array:
    """Return shapes without rounding of momentum in free modes; other modes are unchanged."""
    rigid = rigid_shapes(data.nodes)
    inertia = products(data, rigid)
    shares = np.linalg.lstsq(inertia, momenta(data).T, rcond=None)[0].T  # rigid motion with the momentum of each mode
    shares[np.einsum("ni,ij,nj->n", shares, inertia, shares) >= RIGID_SHARE**2] = 0.0
    return data.shapes - np.tensordot(shares, rigid, axes=1)


def with_values(data: ModalData, stiffness: Sequence[float] | None, damping: float | None) -> ModalData:
    """Return the data with other modal stiffnesses (one per mode) or one damping ratio for all modes."""
    if stiffness is not None:
        count, message = len(stiffness), f"{len(stiffness)} stiffnesses for {data.count} modes"
        require(count == data.count, message, "stiffness", "give one for each", count)
        stiffnesses = np.array(stiffness, dtype=float)
        if data.geometric is not None:  # the stress of a mode goes with its stiffness
            data = replace(data, geometric=data.geometric * (stiffnesses / data.modal_stiffnesses)[:, None, None])
        data = replace(data, modal_stiffnesses=stiffnesses)
    if damping is not None:
        data = replace(data, damping_ratios=np.full(data.count, float(damping)))
    return checked(data)


def save_modal(data: ModalData, path: str | Path) -> Path:
    """Write the exchange file; an existing file is replaced atomically."""
    checked(data)
    path = Path(path)
    given = {field_.name: getattr(data, field_.name) for field_ in fields(data) if field_.name != "interface"}
    arrays: dict[str, Any] = {"format": np.int64(FORMAT), "interface": np.array(data.interface, dtype=np.str_)}
    arrays |= {name: np.asarray(value) for name, value in given.items() if value is not None}
    with atomic_file(path, None) as file:
        np.savez_compressed(file, **arrays)
    return path


def load_modal(path: str | Path) -> ModalData:
    """Read and check an exchange file."""
    content = read_bytes(path, None, RobotFileError, MAX_BYTES, "keep fewer nodes or modes")
    try:
        arrays = read_npz(content)
    except ValueError:
        hint = "write it with save_modal"
        raise RobotFileError("is not an npz file of modal data", file=str(path), hint=hint) from None
    try:
        return checked(_from_arrays(arrays))
    except InputError as error:
        error.file = str(path)
        raise


def _from_arrays(arrays: dict[str, Array]) -> ModalData:
    for name in arrays:
        if name not in KEYS:
            raise InputError(f"the array '{name}' is not known", key=name, hint=did_you_mean(name, KEYS))
    for name in NEEDED:
        require(name in arrays, f"the array '{name}' is missing", name, "add it")
    value = str(arrays.pop("format"))
    require(value == str(FORMAT), f"format {value} is not known", "format", f"use {FORMAT}", value)
    given: dict[str, Any] = {"damping_ratios": np.zeros(arrays["modal_stiffnesses"].size)}
    for name, values in arrays.items():
        if name in TEXTS:
            require(values.dtype.kind == "U" or not values.size, f"'{name}' holds no text", name, "give names or text")
            given[name] = tuple(map(str, np.atleast_1d(values))) if name == "interface" else str(values)
        else:
            content = "complex numbers" if np.iscomplexobj(values) else "no numbers"
            require(values.dtype.kind in "fiu", f"'{name}' holds {content}", name, "give real numbers")
            given[name] = float(values) if name == "thickness" else np.asarray(values, dtype=float)
    return ModalData(**given)
