"""Read states as arrays: order of coordinates, checks, closed positions, values of coupled joints.

An array has one number per coordinate, in the order of `robot.coordinates` or `robot.rates`. An array as long as
`robot.independent` has the independent coordinates alone; the others follow from the loops. Errors name the coordinate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy

from parflex.checks import short_text
from parflex.closure.constraints import Constraint, Coupling, coupling_matrix
from parflex.closure.continuation import with_unit_quaternions
from parflex.closure.newton import CLOSED
from parflex.closure.targets import Target
from parflex.diagnostics import Diagnostic
from parflex.errors import InputError, ParflexError, UnreachableError
from parflex.records import Record, name_list
from parflex.recursion.kinematics import pose
from parflex.tree.tree import Link, Tree

if TYPE_CHECKING:
    from parflex.robot.robot import Robot

Array = np.ndarray
OPEN = 1e-8  # opening of loops in characteristic lengths, and error of quaternion lengths, that is an error
SINGLE = 100.0  # factor on OPEN for arrays in single precision, which close loops to 1e-7
SAME = 1e-8  # relative difference of values that is rounding


def evaluate_batch(function: Callable[[Array, Array], Array], *arguments: tuple[Any, str, int]) -> Array:
    """Evaluate a function of two arrays for one state, or for each state of a batch."""
    arrays = {}
    for value, key, length in arguments:
        arrays[key] = array = as_numbers(value, key)
        if array.ndim not in (1, 2) or array.shape[-1] != length:
            raise _shape_error(array, key, f"not ({length},)", f"give {length} numbers; a leading axis is a batch")
    count = common_batch(arrays)
    if count is None:
        return function(*arrays.values())
    first, second = (np.broadcast_to(array, (count, array.shape[-1])) for array in arrays.values())
    rows = [function(*pair) for pair in zip(first, second, strict=True)]
    return np.array(rows).reshape(count, -1) if rows else np.empty((0, arguments[0][2]))


def common_batch(arrays: Mapping[str, Array | None]) -> int | None:
    """Return the number of states of arrays with a leading axis, or None; single states are broadcast."""
    sizes = {name: len(array) for name, array in arrays.items() if array is not None and array.ndim == 2}
    longest = max(sizes, key=lambda name: (sizes[name] != 1, sizes[name]), default="")
    for name in sizes:
        if sizes[name] not in (1, sizes[longest]):
            text = f"'{name}' has {sizes[name]} states and '{longest}' has {sizes[longest]}"
            raise InputError(text, key=name, value=sizes[name], hint="give batches of one size, or one state for all")
    return sizes.get(longest)


def _shape_error(array: Array, key: str, desired: str, hint: str) -> InputError:
    message = f"'{key}' has the shape {array.shape}, {desired}"
    return InputError(message, key=key, value=str(array.shape), hint=hint)


def as_numbers(value: Any, key: str) -> Array:
    """Return an array of floats; raise for text, flags, complex numbers and ragged lists."""
    try:
        array = np.asarray(value)
        if array.dtype == object:  # of numbers such as fractions
            array = np.array([float(entry) for entry in array.flat]).reshape(array.shape)
    except (TypeError, ValueError):
        array = np.array("")
    if array.dtype.kind not in "iuf":
        text, hint = short_text(value), "give floats, as np.zeros(9)"
        raise InputError(f"'{key}' is not an array of numbers", key=key, value=text, hint=hint)
    return array.astype(float, copy=False)


class ToleranceFactors(NamedTuple):
    """Factors on the closure tolerances of positions, rates and accelerations, relative to double precision."""

    positions: float = 1.0
    rates: float = 1.0
    accelerations: float = 1.0


def tolerance_factors(q: Any, qd: Any = None, qdd: Any = None) -> ToleranceFactors:
    """Return the factors for the precision of each array; rates also include errors of positions."""
    return ToleranceFactors(tolerance_factor(q), tolerance_factor(q, qd), tolerance_factor(q, qd, qdd))


def tolerance_factor(*arrays: Any) -> float:
    """Return the factor for quantities that follow from these arrays."""
    return SINGLE if any(isinstance(array, np.ndarray) and array.dtype == np.float32 for array in arrays) else 1.0


def closed_positions(robot: Robot, positions: Any, factor: float | None = None) -> Array:
    """Return all positions from an array of all, whose loops must be closed, or of the independent ones."""
    q, limit = as_numbers(positions, "q"), OPEN * (tolerance_factor(positions) if factor is None else factor)
    if q.ndim != 1:
        hint = f"give {robot.nq} numbers, in the order of robot.coordinates"
        raise _shape_error(q, "q", "for one pose", hint)
    if len(q) != robot.nq:
        return close_positions(robot, q)
    refuse_infinite(q, "q")
    for link in (link for link in robot.tree.links if link.joint.quaternion):  # others would scale vectors
        length = float(np.linalg.norm(q[link.q_quaternion]))
        if abs(length - 1.0) > limit:
            text = f"the quaternion of '{link.name}' has the length {length:.9g}, not 1"
            raise InputError(text, key="q", value=length, hint="divide it by its length, or call robot.close(q)")
    _refuse_open_loops(robot, q, limit)
    return q


def refuse_infinite(values: Array, key: str) -> None:
    """Raise if an entry is not a finite number."""
    if not np.isfinite(values).all():
        place = int(np.flatnonzero(~np.isfinite(values))[0])
        text, value = f"entry {place} of '{key}' is {values[place]}", float(values[place])
        raise InputError(text, key=key, value=value, hint="give finite numbers")


def _refuse_open_loops(robot: Robot, q: Array, limit: float) -> None:
    """Raise if positions do not close a loop, with its name and opening."""
    at, length = pose(robot.tree, q), robot.tree.length
    openings = [float(np.linalg.norm(row.residual(at, length))) for row in robot.closures.rows]
    if max(openings, default=0.0) <= limit * length:
        return
    widest = int(np.argmax(openings))
    row = robot.closures.rows[widest]
    text = f"the positions do not close the loop '{row.name}': it is open by {openings[widest]:.3g} m"
    hint = "give closed positions; robot.close(q) gives those near q"
    if isinstance(row, Coupling):
        off = abs(float(row.linear_residual(at)[0]))
        text = f"the positions contradict the coupling '{row.name}': '{row.joints[0]}' is off by {off:.3g} {row.unit}"
        hint = f"it requires {row.relation}; robot.close(q) gives consistent positions near q"
    raise InputError(text, key="q", value=row.name, hint=hint)


def close_positions(robot: Robot, positions: Any) -> Array:
    """Return closed positions near the input, or with the input as independent ones; a leading axis is a batch."""
    q = as_numbers(positions, "q")
    if q.ndim == 2:
        rows = []
        for number, row in enumerate(q):
            try:
                rows.append(close_positions(robot, row))
            except ParflexError as error:
                error.message = f"state {number}: {error.message}"
                raise
        return np.array(rows).reshape(-1, robot.nq)
    if q.ndim != 1 or len(q) not in (robot.nq, len(robot.independent)):
        raise wrong_length(robot, q, "q", robot.nq, "robot.coordinates")
    refuse_infinite(q, "q")
    return _nearest(robot, q) if len(q) == robot.nq else _from_independent(robot, q)


def wrong_length(
    robot: Robot, values: Array, key: str, full_length: int, names: str, others: str | None = None
) -> InputError:
    """Return the error for an array of wrong length; `names` are its entries, `others` other accepted lengths."""
    few = len(robot.independent)
    usual = f", or {few} in the order of robot.independent" if few != full_length else ""
    hint = f"give {full_length} numbers in the order of {names}{usual if others is None else others}"
    return _shape_error(values, key, f"not ({full_length},)", f"{hint}; a leading axis is a batch")


def _nearest(robot: Robot, q: Array) -> Array:
    for link in (link for link in robot.tree.links if link.joint.quaternion):
        if (length := float(np.linalg.norm(q[link.q_quaternion]))) < OPEN:
            hint = "use (1, 0, 0, 0) for no rotation"
            raise InputError(f"the quaternion of '{link.name}' is zero", key="q", value=length, hint=hint)
    q = with_unit_quaternions(robot.tree, q)
    closed, error = robot.assembler.newton(q, robot.free, list(robot.closures.rows))
    if error <= CLOSED:
        return closed
    text = f"loop closure did not converge from q (residual {error * robot.tree.length:.3g} m)"
    raise UnreachableError(text, key="q", hint="start nearer to a pose of the robot, such as robot.home")


def _from_independent(robot: Robot, values: Array) -> Array:
    """Return positions from the independent ones, in the working mode of home."""
    tree, position_values = robot.tree, {}
    rates = robot.independent_rates
    for value, k in zip(values, rates, strict=True):
        link = tree.links[tree.link_of_rate[k]]
        elastic = link.e_v.start <= k < link.e_v.stop
        if link.joint.quaternion is not None and not elastic:
            text = f"'{link.name}' is spherical: its rates do not define its position"
            hint = f"pass all {robot.nq} positions, with its quaternion, to robot.close(q)"
            raise InputError(text, key="q", value=link.name, hint=hint)
        start = link.e.start - link.e_v.start if elastic else link.q.start - link.v.start
        position_values[start + k] = float(value)
    target, locked = Target(position_values, frozenset(rates)), robot.locked | frozenset(rates)
    return robot.assembler.assemble(target, robot.home, robot.home, locked)


@dataclass(frozen=True, eq=False, repr=False)
class Contradiction(Record):
    """Couplings that determine another value of a joint than the specified one."""

    couplings: tuple[Coupling, ...]
    joints: tuple[str, ...]  # given ones that they relate
    joint: str
    said: float  # by the couplings
    given: float
    unit: str

    def message(self, what: str, per: str = "") -> str:
        """Return one sentence about the specified `what`."""
        names = quoted([coupling.name for coupling in self.couplings])
        single = len(self.couplings) == 1
        unit = f"{self.unit}{per}"
        return (
            f"the {what} contradicts the coupling{'' if single else 's'} {names}: "
            f"{'it gives' if single else 'they give'} '{self.joint}' {self.said:.6g} {unit}, "
            f"and the {what} {self.given:.6g} {unit}"
        )

    @property
    def hint(self) -> str:
        """What to do."""
        relations = "; ".join(coupling.relation for coupling in self.couplings)
        return f"leave out one of {quoted(self.joints)}: {relations}"


def contradiction(
    constraints: Sequence[Constraint], tree: Tree, known_values: Mapping[int, float], offsets: bool
) -> Contradiction | None:
    """Return the contradiction of couplings with values by rate: positions with `offsets`, or rates without."""
    rows = [row for row in constraints if isinstance(row, Coupling)]
    if not rows:
        return None
    C = coupling_matrix(rows, tree)
    rhs = np.array([row.offset * row.scale(tree.length)[0] / tree.length if offsets else 0.0 for row in rows])
    known_rates = sorted(known_values)
    other_rates = [k for k in range(tree.n) if k not in known_values]
    values = np.array([known_values[k] for k in known_rates]) / tree.rate_units[known_rates]
    for y in scipy.linalg.null_space(C[:, other_rates].T, rcond=SAME).T:  # combinations that hold given joints alone
        weights = y @ C[:, known_rates]
        off = float(weights @ values - y @ rhs)
        if np.abs(weights).max(initial=0.0) < SAME:
            continue
        size = float(np.abs(weights * values).max()) + float(np.abs(y * rhs).max())
        if abs(off) <= SAME * max(1.0, size):
            continue
        couplings = tuple(row for row, share in zip(rows, y, strict=True) if abs(share) > SAME)
        related = [n for n, weight in enumerate(weights) if abs(weight) > SAME]
        follows = [row.rates[0] for row in couplings]
        n = next((n for n in reversed(related) if known_rates[n] in follows), related[-1])
        link = tree.links[tree.link_of_rate[known_rates[n]]]
        unit = float(np.max(tree.rate_units[known_rates[n]]))
        said, given = float(values[n] - off / weights[n]) * unit, float(values[n]) * unit
        joints = tuple(tree.rate_names[known_rates[m]] for m in related)
        return Contradiction(couplings, joints, link.name, said, given, "m" if link.joint.unit == "m" else "rad")
    return None


def coupling_warnings(constraints: Sequence[Constraint], tree: Tree, stated: Sequence[Link]) -> list[Diagnostic]:
    """Return diagnostics of couplings that block joints, and of contradictions with `stated` starts."""
    rows, diagnostics = [row for row in constraints if isinstance(row, Coupling)], list[Diagnostic]()
    if len(rows) > 1:
        coupled = sorted({k for row in rows for k in row.rates})
        motions = scipy.linalg.null_space(coupling_matrix(rows, tree)[:, coupled], rcond=SAME)
        stationary = [k for n, k in enumerate(coupled) if np.abs(motions[n]).max(initial=0.0) < SAME]
        names = [row.name for row in rows if {*row.rates} & {*stationary}]
        immobile = [tree.rate_names[k] for k in stationary]
        text = f"the couplings {quoted(names)} together leave {quoted(immobile)} no motion"
        diagnostics += [Diagnostic("immobile-joint", text, immobile[0])] if immobile else []
    starts = {link.v.start: float(tree.start[link.q.start]) for link in stated if link.joint.one_axis}
    conflict = contradiction(constraints, tree, starts, offsets=True)
    if conflict is not None:
        diagnostics.append(Diagnostic("far-start", f"{conflict.message('start')}: the coupling holds"))
    return diagnostics


def quoted(names: Sequence[str]) -> str:
    """Return names in quotes, for a sentence."""
    return name_list([f"'{name}'" for name in names])
