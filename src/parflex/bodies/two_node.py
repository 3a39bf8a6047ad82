"""Write two-node beams in the accelerations of root and tip instead of root and elastic coordinates.

With Lb = diag(1, L) and T the shift from root to tip, e_dot = Lb^-1 (t_B - T t_A): bodies that meet at a node share its
twist, loops through beams need no equation, and the inertia is constant but for the rotation of the root.

Motions are fields over the body: 3 x r coefficients of r scalar functions of the material point, `weights` holding the
integrals of their products. Linearly dependent functions are written with the others (in an Euler-Bernoulli beam r0 is
the length times the axial shape), so terms that cancel on paper cancel in the program.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from parflex.bodies.beam import add_spin
from parflex.bodies.elastic import Body, ElasticBody, gram_matrix
from parflex.records import Record
from parflex.spatial.linear import is_zero
from parflex.spatial.rotations import cross, hat

Array = np.ndarray
NOTHING = 1e-6  # of the largest component of a field: the root of the rounding of integrals of squares
ORTHOGONAL = 1e-12  # of the sizes of two functions: smaller products are rounding
DEPENDENT = 1e-10  # of the size of a function: smaller remainders are rounding of the integrals
E3 = np.eye(3)


@dataclass(frozen=True, eq=False, repr=False)
class TwoNodeBeam(Record):
    """A beam whose coordinates are `components` of the tip motion, and fixed-interface modes."""

    body: ElasticBody
    components: tuple[int, ...]  # of (x, y, z, rx, ry, rz)
    rigid: Array  # coefficients of the constant function and of r0
    shapes: Array  # coefficients of each shape function, N x 3 x r
    weights: Array  # r x r
    spin: Array  # rotary inertia of sections about the beam

    def tip(self, e: Array) -> Array:
        """Return the place of the tip."""
        return self.body.nodes["tip"].r0 + self.body.nodes["tip"].Phi_d @ e

    def elastic_rates(self, e: Array) -> Array:
        """Return the matrix from the twists of root and tip, in root axes, to the rates of the tip coordinates.

        Theory (29).
        """
        r_B = self.tip(e)
        turn = self.body.nodes["tip"].L_inverse(e)
        zero = np.zeros((3, 3))
        root = np.block([[-E3, hat(r_B)], [zero, -turn]])
        return np.hstack([root, np.block([[E3, zero], [zero, turn]])])[list(self.components)]

    def all_rates(self, e: Array, used: tuple[int, ...]) -> Array:
        """Return the matrix from components `used` of both twists and mode rates to all coordinate rates."""
        rates = self.elastic_rates(e)[:, [*used, *(6 + k for k in used)]]
        held = self.body.held
        matrix = np.zeros((self.body.size, rates.shape[1] + held), dtype=rates.dtype)
        matrix[: len(rates), : rates.shape[1]] = rates
        matrix[len(rates) :, rates.shape[1] :] = np.eye(held)
        return matrix

    def drift(self, e: Array, ed: Array, w: Array) -> Array:
        """Return e_ddot of the tip coordinates at zero acceleration of root and tip: -Lb^-1 h, theory (30)."""
        tip = self.body.nodes["tip"]
        # written like the field of the points below, so that terms cancel
        a = hat(w) @ hat(w) @ self.tip(e) + cross(2 * w, tip.Phi_d @ ed)
        al = cross(w, tip.L(e) @ (tip.Phi_r @ ed)) + tip.L_drift(e, ed)
        return -np.concatenate([a, tip.L_inverse(e) @ al])[list(self.components)]

    def equations(self, e: Array, ed: Array, w: Array, used: tuple[int, ...]) -> tuple[Array, Array]:
        """Return inertia and forces for components `used` of root and tip motion, then of the modes.

        Forces are those at zero acceleration. The angular velocity `w` of the root and all components are in
        root axes.
        """
        columns = [*used, *(6 + k for k in used), *(12 + k for k in range(self.body.held))]
        rates = self.all_rates(e, used)
        fields = [self._column(k, e, rates[:, i]) for i, k in enumerate(columns)]
        drift = self.drift(e, ed, w)
        spin, twice = hat(w) @ hat(w), hat(2 * w)
        n = len(drift)
        terms = (ed[k] * (twice @ f) + (drift[k] * f if k < n else 0.0) for k, f in enumerate(self.shapes))
        bias = self._bent(spin, e) + sum(terms, np.zeros(()))
        weighted = [field @ self.weights for field in fields]
        M = self._products(fields, weighted, rates)
        forces = self._forces(fields, weighted, bias)
        forces = forces + rates.T @ self.body.elastic_force(e, ed)
        if self.spin.any():
            added, turning = self._spin(columns, rates, ed, drift, w)
            M, forces = M + added, forces + turning
        if held := self.body.held:  # constant, and modes have nothing in common
            M[-held:, -held:] = self.body.elastic_mass[-held:, -held:]
        return M, forces

    def _forces(self, fields: list[Array], weighted: list[Array], bias: Array) -> Array:
        """Return the integrals of the fields times a bias, by the weighted fields of the matrix if that is shorter."""
        moving = sum(any(not is_zero(x) for x in row) for row in bias)
        if bias.dtype == object and _products_with(weighted) <= moving * np.count_nonzero(
            self.weights
        ) + _products_with(fields):
            return np.array([(bias * entries).sum() for entries in weighted])
        weighted_bias = bias @ self.weights
        return np.array([(field * weighted_bias).sum() for field in fields])

    def _spin(self, columns: list[int], rates: Array, ed: Array, drift: Array, w: Array) -> tuple[Array, Array]:
        """Return w_x of the root for sections that rotate about the beam, and the contribution of coordinate rates."""
        active = [k for k in range(self.body.size) if self.spin[k + 1].any()]
        rotations = np.array([[float(k == 3), *rates[active, i]] for i, k in enumerate(columns)])
        indices = [0, *(k + 1 for k in active)]
        weights = self.spin[np.ix_(indices, indices)]
        momentum = np.array([weights[0, 0] * w[0] + weights[0, 1:] @ ed[active], 0.0, 0.0])
        turning = cross(w, momentum)
        moments = np.array([turning[k - 3] if 3 <= k < 6 else 0.0 for k in columns])
        twist = active.index(self.components.index(3))
        return rotations @ weights @ rotations.T, rotations @ (weights[:, 1 + twist] * drift[active[twist]]) + moments

    def _column(self, k: int, e: Array, rates: Array) -> Array:
        """Return the field of accelerations per unit of one component of the root (0-5), the tip (6-11) or a mode."""
        if k < 3:
            field = np.outer(E3[k], self.rigid[0])
        elif k < 6:
            field = self._bent(hat(E3[k - 3]), e)
        else:
            field = np.zeros(())
        return field + sum((rate * shape for rate, shape in zip(rates, self.shapes, strict=True)), np.zeros(()))

    def _bent(self, matrix: Array, e: Array) -> Array:
        """Return the field matrix (r0 + Phi_d e)."""
        place = self.rigid[1:] + sum((x * shape for x, shape in zip(e, self.shapes, strict=True)), np.zeros(()))
        return matrix @ place

    def _products(self, fields: list[Array], weighted: list[Array], rates: Array) -> Array:
        count = len(fields)
        M = np.zeros((count, count), dtype=np.result_type(*fields, rates))
        for i in range(count):
            for j in range(i + 1):
                M[i, j] = M[j, i] = (fields[j] * weighted[i]).sum()
        return M


def _products_with(arrays: list[Array]) -> int:
    """Return the number of entries that are neither 0 nor 1 nor -1."""
    return sum(not (isinstance(x, (int, float)) and abs(x) in (0, 1)) for values in arrays for x in np.ravel(values))


def tip_components(body: Body) -> tuple[int, ...] | None:
    """Return the components of the motion of the one tip that are the coordinates of a body, or None.

    Fixed-interface modes may follow the components.
    """
    if set(body.nodes) != {"tip"}:
        return None
    tip = body.nodes["tip"]
    motion = np.vstack([tip.Phi_d, tip.Phi_r])[:, : body.size - body.held]
    components = tuple(int(np.abs(column).argmax()) for column in motion.T)
    return components if np.array_equal(motion, np.eye(6)[:, list(components)]) else None


def two_node_beam(body: ElasticBody) -> TwoNodeBeam | None:
    """Return the two-node form of a body with coordinates of its one tip, or None."""
    components = tip_components(body)
    if components is None:
        return None
    bare = body.without_rigid()
    spin = np.zeros((body.size + 1, body.size + 1)) if bare.spin is None else bare.spin
    points = replace(bare, G=bare.G.copy())
    add_spin(points.G, spin, -1.0)
    coefficients, weights = _independent_functions(points, components)
    shapes = coefficients[4:].reshape(body.size, 3, -1)
    return TwoNodeBeam(bare, components, coefficients[:4], shapes, weights, spin)


def _independent_functions(body: ElasticBody, components: tuple[int, ...]) -> tuple[Array, Array]:
    """Return coefficients of 1, r0 and the shapes in linearly independent functions.

    Functions of the rotation of a bent beam come first, so fields that depend on the state have few entries.
    """
    gram = gram_matrix(body.m, body.S, body.G)
    size = len(gram)
    scale = np.sqrt(np.abs(np.diag(gram)))
    fields = scale[1:].reshape(-1, 3)
    fields[fields <= NOTHING * fields.max(axis=1, keepdims=True)] = 1.0
    unit = np.eye(size)
    shapes_first = [unit[k] for k in (0, *range(4, size), 1, 2, 3)]  # so that r0 is written with the shapes
    basis: Array = np.zeros((0, size))
    product = gram / np.outer(scale, scale)
    for candidate in [*_turned_shapes(body, components), *shapes_first]:
        vector = candidate * scale
        largest = np.abs(vector).max()
        if not largest:
            continue
        remainder = product @ vector / largest
        if len(basis):
            remainder = remainder - product @ basis.T @ np.linalg.solve(basis @ product @ basis.T, basis @ remainder)
        if np.abs(remainder).max() > DEPENDENT:
            basis = np.vstack([basis, vector / largest])
    coefficients = np.linalg.solve(basis @ product @ basis.T, basis @ product).T
    lengths = np.array([scale[np.abs(vector).argmax()] for vector in basis])
    coefficients = _exact(coefficients * scale[:, None] / lengths, body.nodes["tip"].r0)
    plain = basis * lengths[:, None] / scale
    weights = plain @ gram @ plain.T
    weights, sizes = (weights + weights.T) / 2, np.sqrt(np.diag(weights))
    if body.held:  # modes have nothing in common with each other but rounding
        weights = np.where(np.abs(weights) > ORTHOGONAL * np.outer(sizes, sizes), weights, 0.0)
    return coefficients, weights


def _exact(coefficients: Array, lengths: Array) -> Array:
    """Return coefficients without rounding: integers or lengths of the beam."""
    result = coefficients.copy()
    size = max(1.0, float(np.abs(coefficients).max()))
    for value in (*range(-2, 3), *lengths, *(-lengths)):
        result[np.abs(coefficients - value) < DEPENDENT * size] = value
    return result


def _turned_shapes(body: ElasticBody, components: tuple[int, ...]) -> list[Array]:
    """Return for each elastic coordinate the functions in -hat(phi_k) + Phi hat(u_k), u_k the tip motion."""
    functions: list[Array] = []
    position = {c: k for k, c in enumerate(components)}
    for k, c in enumerate(components):
        for axis in (component - 3 for component in components if component >= 3):
            turn = hat(E3[axis])
            field = np.zeros((3, 1 + 3 * (body.size + 1)))
            field[:, 1 + 3 * (k + 1) : 4 + 3 * (k + 1)] += turn
            if c < 3:
                for i in range(3):
                    if i in position:
                        start = 1 + 3 * (position[i] + 1)
                        field[:, start : start + 3] -= turn[i, c] * E3
            functions += list(field)
    return functions
