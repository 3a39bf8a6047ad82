"""What a unit knows to watch its independent rates: rows of the closures, which of them depend, limits."""

from __future__ import annotations

from collections.abc import Sequence

from parflex.closure.mobility import SMALL
from parflex.codegen.outputs import closure_rows_program
from parflex.codegen.program import Program
from parflex.simulation.problem import JUMP, LOOK, PartitionWatch, Problem

LEAST_QUALITY = 0.05  # of s_f / s_r: one twentieth of a radian or so before a dead centre of the rates


def watch_of(problem: Problem) -> PartitionWatch | None:
    """The watch of a robot with loops."""
    robot = problem.robot
    return PartitionWatch(problem) if robot.closures.size and robot.mobility.rank > 0 else None


def watched_program(watch: PartitionWatch) -> Program:
    """Closed positions in, scaled rows of the closures over all free rates out."""
    return closure_rows_program(watch.problem.robot).program


def watch_text(watch: PartitionWatch | None) -> str:
    """Sizes and tables."""
    if watch is None:
        return "#define WATCHED 0\n"
    problem, robot = watch.problem, watch.problem.robot
    place = {int(k): column for column, k in enumerate(robot.free)}
    may = [place[int(k)] for k in watch.free]
    dependent = [may[k] for k in watch.dependent(problem.independent)]
    lengths = [link.q.start for link in robot.tree.links if link.strut]
    can_jump = not robot.tree.elastic and problem.gaps is None and not problem.sticking
    rows = len(watched_program(watch).outputs) // len(robot.free)
    names = ", ".join(problem.independent)
    sizes = {
        "WATCHED": 1, "ROWS_WATCHED": rows, "COLUMNS_WATCHED": len(robot.free), "MAY_DEPEND": len(may),
        "DEPENDENT": len(dependent), "RANK": watch.rank, "LENGTHS": len(lengths), "CAN_JUMP": int(can_jump),
        "NEAR_SINGULAR": float(watch.near), "LEAST_QUALITY": LEAST_QUALITY, "FAR_FROM_CHECKED": LOOK,
        "UNEXPLAINED": JUMP, "SMALL_ROWS": SMALL, "USUAL_ROWS": float(watch.usual()),
    }  # fmt: skip
    lines = [f"#define {word} {value!r}" for word, value in sizes.items()]
    shown = names if len(names) < 300 else f"{names[:300]} ..."
    lines.append(f"#define INDEPENDENT {c_string(shown)}")
    for name, values in (("may_depend", may), ("dependent", dependent), ("lengths", lengths)):
        lines.append(f"static const int {name}[] = {{{_listed([*map(int, values), 0])}}};")
    units = [repr(float(unit)) for unit in watch.position_units]
    lines.append(f"static const double position_units[] = {{{_listed(units)}}};")
    return "\n".join(lines) + "\n"


def c_string(text: str) -> str:
    """Words between quotation marks, for C."""
    kept = "".join(letter if " " <= letter <= "~" and letter not in '"\\' else "?" for letter in text)
    return f'"{kept}"'


def _listed(values: Sequence[object]) -> str:
    return ", ".join(map(str, values))
