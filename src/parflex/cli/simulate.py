"""Command `simulate`."""

from __future__ import annotations

import math
from typing import Any

import click

from parflex.cli import output
from parflex.cli.group import cli
from parflex.cli.options import (
    allocation_options,
    assignments,
    limits_option,
    open_robot,
    read_allocation,
    read_pose_option,
    read_wrenches,
    robot_options,
    split_names,
    without_option,
    wrench_option,
)
from parflex.cli.output import check_convergence, time_progress
from parflex.diagnostics import Diagnostic
from parflex.errors import InputError


@cli.command(
    epilog="\b\nExamples:\n  parflex simulate dualemps --motion square --time 12.5 --without friction --out run.csv\n"
    "  parflex simulate rx90 --time 2 --effort 1=1,2=-40 --method dopri5 --out run.npz"
)
@robot_options
@click.option(
    "--motion",
    metavar="NAME|FILE|TABLE",
    help="Motion of the motors: a name in the robot file, a table in .toml or { ... }, or knots in .csv or .npz.",
)
@click.option("--time", type=float, required=True, metavar="T", help="Duration, s.")
@click.option(
    "--step", type=float, metavar="H",
    help="Step, s; default: chosen by errors; the method rk4 needs it.",
)  # fmt: skip
@click.option("--out-step", type=float, metavar="DT", help="Output interval, s; default 0.001.")
@click.option(
    "--method", metavar="NAME",
    help="gauss4, gauss6, rk4, dopri5 or generalized-alpha; default: gauss6, with --step gauss4.",
)  # fmt: skip
@click.option(
    "--tolerance", type=float, metavar="E",
    help="What positions may err by in a step, m, angles times the typical length; without --step it chooses steps; "
    "default: 1e-8 of how far the robot has moved.",
)  # fmt: skip
@click.option("--check-steps/--no-check-steps", default=None,
              help="Run again with half the steps for the error of the run; default: with a tolerance.")  # fmt: skip
@click.option(
    "--radius",
    type=float,
    default=0.8,
    show_default=True,
    help="Spectral radius of generalized-alpha: 1 no damping, 0 most.",
)
@without_option
@click.option("--drive", metavar="motors|platform", default="motors", show_default=True,
              help="What the motion prescribes: the motors, or the platform by the inverse model.")  # fmt: skip
@click.option(
    "--start", metavar="rest|relaxed|equilibrium|held",
    help="Undeformed; bodies deflected, joints at the pose; deflected with locked motors, or with the platform held; "
    "default: relaxed if flexible, else rest; with --velocity undeformed.",
)  # fmt: skip
@click.option("--pose", metavar="NAME|KEY=VALUE,...", help="Initial pose of a run without a motion.")
@click.option("--velocity", metavar="KEY=VALUE,...", help="Initial velocities of what the motion does not prescribe.")
@click.option("--effort", metavar="JOINT=VALUE,...", help="Constant motor efforts, if no motion is given.")
@wrench_option
@allocation_options
@click.option(
    "--friction-width", type=float, metavar="W",
    help="Rate over which Coulomb friction is smoothed; default: none, joints stick.",
)  # fmt: skip
@click.option(
    "--outputs", metavar="LIST",
    help="More columns: reaction.JOINT.fx (or .fy .fz .mx .my .mz), reaction.JOINT; FRAME.sensor_ax (accelerometer; "
    "wx gyroscope), FRAME.vx ...; BEAM.chord_y@0.5, BEAM.tangent_y@0.5 (deflections; or z); BEAM.Mz@0.5 (or .N .Vy .Vz "
    ".T .My .stress) of its section.",
)  # fmt: skip
@click.option("--reactions", is_flag=True, help="Columns of all reactions of joints and closures, with largest values.")
@click.option("--stops", is_flag=True, help="Let the limits of joints act, by the stops of the robot file.")
@limits_option
@click.option("--frames", metavar="LIST", help="Frames to record, BEAM@0.5 too; default: the end effector.")
@click.option(
    "--low-pass",
    type=float,
    metavar="HZ",
    help="Also low-pass filtered accelerations, columns '... .low'; cut-off in Hz.",
)
@click.option("--elements", type=int, metavar="N", help="Split every beam element into N.")
@click.option(
    "--converge", type=float, metavar="R", help="Repeat the run with more elements until it changes by no more than "
    "this share of deflections and efforts; exit 1 if the limit is reached before.",
)  # fmt: skip
@click.option(
    "--convergence", metavar="FILE", help="Draw the change with the elements of --converge: .svg, .pdf or .png."
)
@click.option("-o", "--out", "path", required=True, metavar="FILE", help="Output file: .csv or .npz.")
def simulate(robot: str, as_json: bool, path: str, **options: Any) -> int:
    """Move a robot in time and write named time series."""
    from parflex import simulate as run_simulation
    from parflex.trajectories.files import check_target

    drawn = check_convergence(options["converge"], options.pop("convergence"))
    load_options = {
        key: options.pop(key) for key in ("settings", "payload", "actuation", "working_mode", "elements", "rigid")
    }
    loaded = open_robot(robot, **load_options)
    check_target(path)
    cutoff = options.pop("low_pass")
    if cutoff is not None and not 0 < cutoff < math.inf:  # the rest is seen when the rows are there
        raise InputError("a cut-off is a positive frequency", key="low-pass", value=cutoff, hint="give e.g. 100")
    with time_progress("simulating", options["time"]) as progress:
        run = run_simulation(loaded, progress=progress, **_arguments(options))
    if cutoff is not None and run.status == "ok":
        run = _with_filtered_accelerations(run, cutoff)
    written = [str(file) for file in [*run.save(path), *drawn(run)]]
    answer = {"files": written, "columns": list(run), **run.summary, "settings": run.settings}
    others = [each for each in run.diagnostics if each.code not in ("stopped", "interrupted")]
    answer["diagnostics"] = [*loaded.diagnostics, *others]
    answer["diagnostics"] += _status_warnings(run)
    rows = [(key, value) for key, value in run.summary.items() if isinstance(value, (int, float, str))]
    done = run.status == "ok" and run.summary.get("converged", True)
    if "friction" in run.summary:
        friction = run.summary["friction"]
        frame, distance, turn = friction["half_width_moves"].values()
        half = f"with half the friction width of {friction['width']:g}, '{frame}'"
        rows += [(f"{half} goes elsewhere by (m)", distance), (f"{half} turns elsewhere by (rad)", turn)]
    rows += _step_size_rows(run.summary)
    for name, most in run.summary.get("couplings", {}).items():
        rows.append((f"largest effort of the coupling '{name}' (N, N m), at t = {most['time']:.4g} s", most["effort"]))
    tables = [("run", ["", "value"], rows), *_tables(run.summary)]
    output.print_result(answer, as_json, *tables, ("", ["written"], [(file,) for file in written]))
    return 0 if done else 1


def _step_size_rows(summary: dict[str, Any]) -> list[tuple[str, Any]]:
    """Lengths and errors of chosen steps, and the error of the run."""
    rows: list[tuple[str, Any]] = []
    if "step_error" in summary:
        summary_entry = summary["step_error"]
        rows += [("shortest and longest step (s)", f"{summary_entry['shortest']:.3g}, {summary_entry['longest']:.3g}")]
        rows += [("largest error of a step (m)", summary_entry["largest"])]
    if "estimated_error" in summary:
        summary_entry = summary["estimated_error"]
        words = f"error of '{summary_entry['frame']}' in the run, by {summary_entry['how']}"
        rows += [(f"{words} (m)", summary_entry["metres"]), ("... (rad)", summary_entry["radians"])]
    return rows


def _tables(summary: dict[str, Any]) -> list[Any]:
    """Stops that were met, joints that stuck, the largest stress, and the largest reactions."""
    tables: list[Any] = []
    if "refinement" in summary:
        rows = [
            (
                entry["elements"],
                entry["coordinates"],
                "" if entry["change"] is None else entry["change"],
                entry["seconds"],
            )
            for entry in summary["refinement"]
        ]
        tables.append(("refinement", ["elements in each of the file", "coordinates", "change", "seconds"], rows))
    if summary.get("sticks"):
        tables.append(("sticks", ["joint", "time", "until"], [tuple(entry.values()) for entry in summary["sticks"]]))
    if summary.get("stops"):
        rows = [(entry["joint"], entry["side"], entry["time"], entry["speed"]) for entry in summary["stops"]]
        tables.append(("stops", ["joint", "side", "time", "speed"], rows))
    if summary.get("largest_stop_effort"):
        most = summary["largest_stop_effort"]
        tables.append(("largest effort of a stop", ["joint", "effort", "time"], [tuple(most.values())]))
    if summary.get("largest_stress"):
        beam, s, time, value = summary["largest_stress"].values()
        tables.append(("largest stress of the rows", ["beam", "s", "time", "MPa"], [(beam, s, time, value / 1e6)]))
    if summary.get("largest_reactions"):
        head = ["", "force (N)", "time", "moment (N m)", "time"]
        tables.append(
            ("largest reactions", head, [(n, *entry.values()) for n, entry in summary["largest_reactions"].items()])
        )
    return tables


def _arguments(options: dict[str, Any]) -> dict[str, Any]:
    """The arguments of the equivalent Python call."""
    arguments = {key: value for key, value in options.items() if value is not None}
    arguments |= read_allocation(arguments)
    arguments["without"] = split_names(arguments["without"])
    arguments["wrench"] = read_wrenches(arguments["wrench"])
    if "effort" in arguments:
        arguments["effort"] = assignments(arguments["effort"], "effort")
    for key in ("frames", "outputs"):
        if key in arguments:
            arguments[key] = split_names(arguments[key])
    if "pose" in arguments:
        arguments["pose"] = read_pose_option(arguments["pose"])
    if "velocity" in arguments:
        words = {"pose": arguments.pop("pose", None), "positions": arguments.pop("start", None)}
        arguments["start"] = words | {"velocity": assignments(arguments.pop("velocity"), "velocity")}
    return arguments


def _with_filtered_accelerations(run: Any, cutoff: float) -> Any:
    from dataclasses import replace

    kinds = ("ax", "ay", "az", "alx", "aly", "alz")
    last = {name: name.rpartition(".")[2].removeprefix("local_").removeprefix("sensor_") for name in run if "." in name}
    names = [name for name, word in last.items() if word in kinds]
    return replace(run, columns={**run.columns, **{f"{name}.low": run.low_passed(name, cutoff) for name in names}})


def _status_warnings(run: Any) -> list[Diagnostic]:
    if run.status == "interrupted" and "refinement" in run.summary:
        return []  # its warnings say which run is kept
    if run.status == "interrupted":
        text = f"interrupted at t = {run.t[-1]:g} s; results so far are kept"
        return [Diagnostic("interrupted", text, "time", float(run.t[-1]))]
    if run.status == "diverged":
        summary = run.summary
        where = f"; '{summary['coordinate']}' moves most" if summary["coordinate"] else ""
        text = (
            f"the run stopped after t = {summary['stopped_at']:g} s, since {summary['why']}{where}; what was computed "
            "is kept: try a smaller --step, --method gauss4 or generalized-alpha, or a motion farther from singular "
            "poses"
        )
        return [Diagnostic("stopped", text, "time", summary["stopped_at"])]
    return []
