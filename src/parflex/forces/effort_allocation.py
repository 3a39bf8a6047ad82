"""Allocate the efforts of redundant motors, theory (46) to (48).

A tau = g with more motors than rows leaves internal efforts undetermined, those with A tau = 0, which cause no motion.
The allocation takes the efforts of least weighted norm and adds the internal efforts of a preload. The smallest further
internal efforts keep the limits of motors and the tension of driven cables. Programs have weights and preload alone,
and report an effort beyond its limit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any

import numpy as np

from parflex.checks import short_text
from parflex.diagnostics import Diagnostic
from parflex.errors import InputError
from parflex.forces.forces import multipliers_of
from parflex.records import Record
from parflex.robot.configuration import Configuration
from parflex.robot.motor_values import by_motor, motor_effort
from parflex.robot.robot import Robot
from parflex.spatial.linear import least_norm

Array = np.ndarray
Weights = Mapping[str, float]
Preload = Mapping[str, float]
EffortLimit = float | Mapping[str, Any]

MISSED = 1e-9  # of the stated efforts: a preload within this is met to rounding
AT_LIMIT = 1e-9  # of an effort: a motor nearer to its limit is reported at the limit
IDLE = 1e-9  # of the largest share of a motor in internal efforts: a motor with a smaller share has none
OUTSIDE = 1e-10  # of the largest effort or limit: violation of a limit that is rounding
PUSH = 1e-9  # of the largest tension: compression of a cable that is rounding

MIXED = "; N and N m count equally, which 'weights' changes"
TAUT = "taut cables"  # the criterion in reports
LOOSE = "choose efforts that keep it taut, by a preload or by limits of the efforts"


@dataclass(frozen=True, eq=False, repr=False)
class AllocatedEfforts(Record):
    """Efforts of the motors, the report on their internal part, and diagnostics."""

    tau: Array
    internal: dict[str, Any] | None
    diagnostics: list[Diagnostic]


@dataclass(frozen=True, eq=False, repr=False)
class EffortAllocation(Record):
    """Criteria of the allocation in the order of the motors: floats, or symbols of a program."""

    names: tuple[str, ...] = ()
    weights: Array | None = None  # of the squared efforts; None: 1
    preloaded: tuple[int, ...] = ()  # motors with a stated internal effort
    preload: Array = field(default_factory=lambda: np.zeros(0))  # internal efforts of these motors
    near: Array | None = None  # efforts of all motors; the preload is the nearest internal effort
    lower: Array | None = None
    upper: Array | None = None
    mixed: bool = False  # whether there are forces and torques among the efforts

    @property
    def has_preload(self) -> bool:
        """Return whether there is a preload."""
        return bool(self.preloaded) or self.near is not None

    @property
    def bounded(self) -> bool:
        """Return whether there are limits."""
        return self.lower is not None

    def weights_only(self) -> EffortAllocation:
        """Return the allocation without preload and limits."""
        return EffortAllocation(self.names, self.weights, mixed=self.mixed)

    def criteria(self, preload: str = "preload") -> str:
        """Return the criteria of the choice in words."""
        return ", ".join([self._norm, *[preload] * self.has_preload, *["limits"] * self.bounded])

    @property
    def _norm(self) -> str:
        return "least norm" if self.weights is None else "least weighted norm"

    def solve(
        self, A: Array, g: Array, configuration: Configuration | None = None, f: Array | None = None
    ) -> AllocatedEfforts:
        """Return efforts with A tau = g, in floats.

        Driven cables of `configuration` are kept taut under the forces `f` along all rates of the open tree, unless a
        preload is stated. Raises InputError if no internal efforts meet the preload and the limits.
        """
        motors, redundancy = A.shape[1], A.shape[1] - A.shape[0]
        if not motors:
            return AllocatedEfforts(np.zeros(0), None, [])
        least = least_norm(A, g, self.weights)
        if redundancy <= 0:
            return self.only(least)
        N = internal_basis(A, self.weights)
        self.check_preload_count(redundancy)
        preload = self._preload_efforts(N)
        tau = least + preload
        if self.bounded:
            free = N  # internal efforts without effect on the preloaded motors
            if self.preloaded:
                _, values, Vt = np.linalg.svd(N[list(self.preloaded)], full_matrices=True)
                free = N @ Vt[int(np.sum(values > IDLE * values.max(initial=0.0))) :].T
            tau = tau + free @ self._shift_to_limits(tau, free, N)
        criteria = [" and of the preload"] * self.has_preload + [", within their limits"] * self.bounded
        text = (
            f"there are more motors than degrees of freedom: the efforts are those of {self._norm}{''.join(criteria)}"
        )
        notes = [Diagnostic("redundant-motors", f"{text}{MIXED * (self.mixed and self.weights is None)}")]
        result = AllocatedEfforts(tau, self._report(tau, least, preload, redundancy), notes)
        if configuration is None or f is None or self.has_preload or not driven_cables(configuration.robot):
            return result
        return self._with_taut_cables(result, configuration, A, f)

    def solve_program(self, A: Array, g: Array) -> Array:
        """Return efforts with A tau = g over any scalar, without branches and limits; the preload is `near`."""
        if self.near is None:
            return least_norm(A, g, self.weights)
        return self.near + least_norm(A, g - A @ self.near, self.weights)

    def exceeded(self, tau: Array) -> Any:
        """Return twice the number of limits that efforts exceed, over any scalar."""
        lower, upper = self._bounds(len(tau))
        beyond = [(low, tau_k) for low, tau_k in zip(lower, tau, strict=True)]
        beyond += [(tau_k, high) for tau_k, high in zip(tau, upper, strict=True)]
        signs = [np.sign(a - b) for a, b in beyond if not any(isinstance(x, float) and np.isinf(x) for x in (a, b))]
        return sum(sign * (1.0 + sign) for sign in signs)

    def only(self, tau: Array) -> AllocatedEfforts:
        """Return efforts without redundancy; raise InputError if they exceed their limits."""
        none = np.zeros((len(tau), 0))
        self._shift_to_limits(tau, none, none)
        return AllocatedEfforts(tau, None, [])

    def check_preload_count(self, redundancy: int) -> None:
        """Raise InputError if the preload names more motors than there are independent internal efforts."""
        if len(self.preloaded) > redundancy:
            names = ", ".join(f"'{self.names[k]}'" for k in self.preloaded)
            text = f"the preload names {len(self.preloaded)} motors ({names}), but {redundancy} of them determine the "
            hint = f"name {redundancy} at most, or all motors for the internal efforts nearest to them"
            raise InputError(f"{text}internal efforts", key="preload", value=names, hint=hint)

    def home_preload(self, robot: Robot) -> Array:
        """Return `near` of a program: efforts of all motors, from the preload at the home pose."""
        if self.near is not None:
            return self.near
        return self._preload_efforts(internal_basis(Configuration(robot, robot.home).J_a.T, self.weights))

    def taut_efforts(self, configuration: Configuration, A: Array, tau: Array, tension: Array) -> Array | None:
        """Return efforts that cause the motion of `tau` with the smallest internal efforts that keep all cables taut.

        `tension` of the cables belongs to `tau`. Tension is linear in the efforts, theory (18), and its limits join
        theory (48). Returns None if all cables are taut under `tau` or if no internal efforts keep them taut.
        """
        if not _pushes(tension).any():
            return None
        still = np.zeros(configuration.robot.tree.n)
        per_effort = np.array([cable_tensions(configuration, still, unit) for unit in np.eye(len(tau))]).T
        least, N = least_norm(A, A @ tau, self.weights), internal_basis(A, self.weights)
        lower, upper = self._bounds(len(tau))
        z = shortest_within(
            np.concatenate([N, per_effort @ N]),
            np.concatenate([least, tension + per_effort @ (least - tau)]),
            np.concatenate([lower, np.zeros(len(tension))]),
            np.concatenate([upper, np.full(len(tension), np.inf)]),
        )
        return None if z is None else least + N @ z

    def _weights(self, count: int) -> Array:
        return np.ones(count) if self.weights is None else self.weights

    def _bounds(self, count: int) -> tuple[Array, Array]:
        if self.lower is None or self.upper is None:
            return np.full(count, -np.inf), np.full(count, np.inf)
        return self.lower, self.upper

    def _preload_efforts(self, N: Array) -> Array:
        """Return the internal efforts of the preload; raise InputError with the motor that cannot have its effort."""
        if self.near is not None:
            return N @ (N.T @ (self._weights(len(N)) * self.near))
        if not self.preloaded:
            return np.zeros(len(N))
        places, size = list(self.preloaded), np.linalg.norm(N, axis=1)
        idle = size <= IDLE * size.max()
        if idle[places].any():
            name = self.names[places[int(idle[places].argmax())]]
            text = f"'{name}' cannot be preloaded at this pose: the other motors cannot work against it"
            others = " or ".join(f"'{other}'" for other, none in zip(self.names, idle, strict=True) if not none)
            raise InputError(text, key="preload", value=name, hint=f"preload {others}")
        z = np.linalg.lstsq(N[places], self.preload, rcond=IDLE)[0]
        missed = np.abs(N[places] @ z - self.preload)
        if missed.max() > MISSED * max(float(np.abs(self.preload).max()), 1e-300):
            worst = int(missed.argmax())
            name, nearest = self.names[places[worst]], f"{float(N[places[worst]] @ z):.6g}"
            text = f"no internal efforts match the preload: the nearest give '{name}' {nearest} instead of "
            hint = "name fewer motors, or efforts in the ratio of the internal ones"
            raise InputError(f"{text}{float(self.preload[worst]):.6g}", key="preload", value=name, hint=hint)
        return N @ z

    def _shift_to_limits(self, tau: Array, free: Array, N: Array) -> Array:
        """Return the shortest z with tau + free @ z within the limits; raise InputError with the nearest efforts."""
        lower, upper = self._bounds(len(tau))
        z = shortest_within(free, tau, lower, upper)
        if z is not None:
            return z
        nearest, outside = nearest_outside(free, tau, lower, upper)
        k = int(outside.argmax())
        limit = lower[k] if nearest[k] < lower[k] else upper[k]
        kept = "with the stated preload " if self.preloaded else ""
        text = (
            f"{kept}no internal efforts keep the motors within their limits: at best '{self.names[k]}' has "
            f"{nearest[k]:.6g} for a limit of {limit:.6g}, {outside[k]:.4g} too much"
            if N.shape[1]
            else f"the effort of '{self.names[k]}' is {nearest[k]:.6g}, which leaves its limit of {limit:.6g} by "
            f"{outside[k]:.4g}, and without redundant motors it is unique"
        )
        hint = "widen the limits, or request a slower motion, a smaller load or another pose"
        if self.preloaded and shortest_within(N, tau, lower, upper) is not None:
            hint = "change the preload, which contradicts limits that can be met"
        raise InputError(text, key="effort_limit", value=self.names[k], hint=hint)

    def _with_taut_cables(
        self, result: AllocatedEfforts, configuration: Configuration, A: Array, f: Array
    ) -> AllocatedEfforts:
        """Return efforts with all cables taut; if no internal efforts do this, `result` with a diagnostic."""
        assert result.internal is not None
        tension = cable_tensions(configuration, f, result.tau)
        if not _pushes(tension).any():
            return result
        tau = self.taut_efforts(configuration, A, result.tau, tension)
        if tau is None:
            lost = Diagnostic("cables-not-taut", "no internal efforts keep all cables taut at this pose and motion")
            return replace(result, diagnostics=[*result.diagnostics, lost])
        internal = tau - least_norm(A, A @ tau, self.weights)
        report = result.internal | {
            "chosen_by": f"{result.internal['chosen_by']}, {TAUT}",
            "efforts": {name: float(value) for name, value in zip(self.names, internal, strict=True)},
        }
        kept = [
            replace(each, text=f"{each.text}; internal efforts keep the cables taut") for each in result.diagnostics
        ]
        return AllocatedEfforts(tau, report, kept)

    def _report(self, tau: Array, least: Array, preload: Array, redundancy: int) -> dict[str, Any]:
        def by_name(values: Array) -> dict[str, float]:
            return {name: float(value) + 0.0 for name, value in zip(self.names, values, strict=True)}

        report: dict[str, Any] = {
            "spare_motors": redundancy,
            "chosen_by": self.criteria(),
            "efforts": by_name(tau - least),
            "weights": by_name(self._weights(len(tau))),
            "preload": by_name(preload) if self.has_preload else {},
            "limits": {},
            "at_limit": [],
        }
        if self.bounded:
            lower, upper = self._bounds(len(tau))
            at = np.minimum(tau - lower, upper - tau) <= AT_LIMIT * np.maximum(np.abs(tau), 1e-300)
            for k, name in enumerate(self.names):
                report["limits"][name] = [None if np.isinf(end) else float(end) for end in (lower[k], upper[k])]
                report["at_limit"] += [name] * bool(at[k])
        return report


def actuation_redundancy(robot: Robot) -> int:
    """Return the number of motors beyond the degrees of freedom of a robot with rigid bodies."""
    return len(robot.actuated) - robot.undeformed.freedoms


def is_specified(value: Any) -> bool:
    """Return whether a keyword has a value other than an empty table."""
    return value is not None and not (isinstance(value, Mapping) and not value)


def read_allocation(
    robot: Robot, weights: Any = None, preload: Any = None, effort_limit: Any = None
) -> EffortAllocation:
    """Return the criteria that keywords of public functions state; raise InputError without redundant motors."""
    motors = robot.actuated_names
    lower, upper = read_limits(motors, effort_limit)
    stated = {k: motor_effort(motors[k], value, "preload")
              for k, value in by_motor(motors, preload, "preload", "preload").items()}  # fmt: skip
    all_stated = bool(stated) and len(stated) == len(motors)
    limited = np.isfinite([*lower, *upper]).any()
    allocation = EffortAllocation(
        tuple(motors),
        weights=_read_weights(motors, weights) if weights else None,
        preloaded=() if all_stated else tuple(stated),
        preload=np.array([] if all_stated else list(stated.values())),
        near=np.array([stated[k] for k in range(len(motors))]) if all_stated else None,
        lower=lower if limited else None,
        upper=upper if limited else None,
        mixed=len({bool(np.any(robot.tree.links[robot.tree.link_of_rate[k]].joint.S_v)) for k in robot.actuated}) > 1,
    )
    redundancy = actuation_redundancy(robot) if weights or preload else 1
    if redundancy <= 0:
        key, value = ("weights", weights) if weights else ("preload", preload)
        text = f"the robot has no redundant motors, so '{key}' has no effect"
        hint = f"remove it, or mark more joints as actuated than the {len(motors) - redundancy} degrees of freedom"
        raise InputError(text, key=key, value=short_text(value), hint=hint)
    if preload:
        allocation.check_preload_count(redundancy)
    return allocation


def _read_weights(motors: Sequence[str], weights: Any) -> Array:
    result = np.ones(len(motors))
    for motor, value in by_motor(motors, weights, "weights", "weight").items():
        if not (_is_number(value) and 0 < float(value) < np.inf):
            text = f"the weight of '{motors[motor]}' is not a positive number"
            hint = "a larger weight means less effort; for a motor without effort, limit its effort to 0"
            raise InputError(text, key="weights", value=short_text(value), hint=hint)
        result[motor] = float(value)
    return result


def read_limits(motors: Sequence[str], effort_limit: Any) -> tuple[Array, Array]:
    """Return lowest and highest efforts from one number for all motors, or from a number or a pair by name."""
    lower, upper = np.full(len(motors), -np.inf), np.full(len(motors), np.inf)
    table = effort_limit if isinstance(effort_limit, Mapping) else dict.fromkeys(motors, effort_limit)
    for motor, value in by_motor(motors, table, "effort_limit", "effort limit").items():
        if value is None:
            continue
        pair, text = isinstance(value, list | tuple | np.ndarray) and np.shape(value) == (2,), ""
        if pair:
            low, high = -np.inf if value[0] is None else value[0], np.inf if value[1] is None else value[1]
            if not (_is_number(low) and _is_number(high) and low <= high and low < np.inf and high > -np.inf):
                text = f"the effort limits of '{motors[motor]}' are not a lowest and a highest effort"
                hint = "give them in this order, e.g. [5, 300]"
        elif _is_number(value) and value >= 0:
            low, high = -value, value
        else:
            text = f"the effort limit of '{motors[motor]}' must be positive or a pair of a lowest and a highest effort"
            hint = "give e.g. 20, or [5, 300] for a cable"
        if text:
            raise InputError(text, key="effort_limit", value=short_text(value), hint=hint)
        lower[motor], upper[motor] = float(low), float(high)
    return lower, upper


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and not np.isnan(float(value))


def internal_basis(A: Array, weights: Array | None = None) -> Array:
    """Return internal efforts, one column for each redundant motor, with N^T W N = 1."""
    units = np.ones(A.shape[1]) if weights is None else 1 / np.sqrt(weights)
    return units[:, None] * np.linalg.svd(A * units)[2][len(A) :].T


def shortest_within(N: Array, tau: Array, lower: Array, upper: Array) -> Array | None:
    """Return the shortest z with lower <= tau + N z <= upper, or None; with N^T W N = 1 efforts change least."""
    G, h = _one_sided(N, tau, lower, upper)
    scale = max(float(np.abs(tau).max(initial=0.0)), float(np.abs(h).max(initial=0.0)), 1e-300)
    if not len(h) or h.max() <= 0:
        return np.zeros(N.shape[1])
    z = _least_distance(G, h / scale) if N.shape[1] else None
    if z is None or (h / scale - G @ z).max() > OUTSIDE:
        return None
    return scale * z


def _one_sided(N: Array, tau: Array, lower: Array, upper: Array) -> tuple[Array, Array]:
    """Return the rows G z >= h of the finite limits."""
    low, high = np.isfinite(lower), np.isfinite(upper)
    return np.concatenate([N[low], -N[high]]), np.concatenate([(lower - tau)[low], (tau - upper)[high]])


def _least_distance(G: Array, h: Array) -> Array | None:
    """Return the shortest z with G z >= h by non-negative least squares (Lawson and Hanson, chapter 23).

    The active set gives the motors at a limit; z follows from these alone, to rounding.
    """
    from scipy.optimize import nnls

    units = np.linalg.norm(G, axis=1)
    units = np.where(units > 0, units, 1.0)
    E = np.concatenate([G.T / units, (h / units)[None]])
    f = np.zeros(len(E))
    f[-1] = 1.0
    u, _ = nnls(E, f, maxiter=30 * E.shape[1])
    r = E @ u - f
    if not -r[-1] > 1e-14:  # h lies in the cone of the rows: no z meets them
        return None
    active = u > 1e-12 * u.max(initial=0.0)
    exact = np.linalg.lstsq(G[active], h[active], rcond=None)[0]
    rough = -r[:-1] / r[-1]
    return min((exact, rough), key=lambda z: float((h - G @ z).max()))


def nearest_outside(N: Array, tau: Array, lower: Array, upper: Array) -> tuple[Array, Array]:
    """Return the efforts with the smallest largest violation of their limits, and the violations."""
    from scipy.optimize import linprog

    G, h = _one_sided(N, tau, lower, upper)
    scale, count = max(float(np.abs(h).max(initial=0.0)), 1e-300), N.shape[1]
    z = np.zeros(count)
    if count:
        found = linprog(
            np.r_[np.zeros(count), 1.0], A_ub=np.column_stack([-G, -np.ones(len(h))]), b_ub=-h / scale,
            bounds=[*[(None, None)] * count, (0.0, None)],
        )  # fmt: skip
        z = scale * found.x[:count] if found.x is not None else z
    efforts = tau + N @ z
    return efforts, np.maximum(np.maximum(lower - efforts, efforts - upper), 0.0)


def driven_cables(robot: Robot) -> list[str]:
    """Return the names of cables whose length is a coordinate."""
    return [link.name for link in robot.tree.links if link.pulls_only]


def cable_rows(robot: Robot) -> list[int]:
    """Return the rows of the closures of driven cables; their multipliers are minus the tension."""
    names, rows = driven_cables(robot), zip(robot.closures.slices(), robot.closures.rows, strict=True)
    return [part.start for part, row in rows if row.name in names]


def cable_tensions(configuration: Configuration, f: Array, tau: Array) -> Array:
    """Return tensions of driven cables (N) under forces of the open tree and the efforts that balance them."""
    rows = cable_rows(configuration.robot)
    return -multipliers_of(configuration, f, tau)[rows] if rows else np.zeros(0)


def slack_warnings(robot: Robot, elements: Mapping[str, Mapping[str, Any]]) -> list[Diagnostic]:
    """Return a diagnostic that names the driven cables that would have to push."""
    names = [name for name in driven_cables(robot) if "force" in elements.get(name, {})]
    tension = np.array([elements[name]["force"] for name in names])
    pushing = [f"'{names[k]}' with {-tension[k]:.4g} N" for k in np.flatnonzero(_pushes(tension))]
    if not pushing:
        return []
    text = f"cables pull only, but would have to push here: {', '.join(pushing)}; {LOOSE}"
    return [Diagnostic("pushing-cable", text, names[int(tension.argmin())], float(-tension.min()))]


def _pushes(tension: Array) -> Array:
    return tension < -PUSH * max(float(np.abs(tension).max(initial=0.0)), 1e-300)
