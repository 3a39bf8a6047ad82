"""The options of the command line: metavar, help and reader of each word, once.

An option without a help has that of the word in `parflex.api.WORDS`. A word that differs in one command has an entry
`COMMAND.WORD`. Readers turn the text of an option into the argument of the Python function.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click.shell_completion import CompletionItem

from parflex.api import WORDS
from parflex.checks import short_text
from parflex.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from parflex.robot.robot import Robot
    from parflex.statics.load_case import LoadCase

    Divided = Robot  # a robot whose command has the option --elements

STATE_WORDS = ("pose", "velocity", "acceleration", "effort", "wrench")
LOAD = ("settings", "rigid", "payload", "actuation", "working_mode")
OBJECTS = ("Array", "callable", "Controller", "Executor", "LoadCase", "Robot", "StudySetup")  # types without a text
CASE = ("lock", "servo", "servo_damping", "about", "wrench", "effort", "weights", "preload", "without")


class Option(NamedTuple):
    """An option or argument: metavar, help, reader of its text, flags, and whether it may be repeated."""

    metavar: str | None = None
    help: str = ""
    read: Callable[[Any, str], Any] | None = None  # of the text and the name of the option
    flags: tuple[str, ...] = ()
    many: bool = False
    complete: Callable[..., Any] | None = None


def option_of(verb: str, name: str) -> Option:
    """Return the entry of a word in a command; without one, the type of the word says what its text is."""
    kind = WORDS[name].kind if name in WORDS else ""
    return OPTIONS.get(f"{verb}.{name}") or OPTIONS.get(name) or OPTION_OF_TYPE.get(kind) or Option()


def flags_by_word() -> dict[str, str]:
    """Return the flags of all options by the words of the Python functions."""
    words = {name: Option() for name, word in WORDS.items() if word.kind not in OBJECTS}
    in_one_command_first = sorted(OPTIONS.items(), key=lambda item: "." not in item[0])
    words |= {name.rpartition(".")[2]: entry for name, entry in in_one_command_first}
    return {name: max(entry.flags, key=len, default=f"--{name.replace('_', '-')}") for name, entry in words.items()}


# -- readers -------------------------------------------------------------------------------------------------------


def _refuse(text: str, key: str, value: Any, hint: str, file: str | None = None) -> InputError:
    return InputError(text, key=key, value=value, hint=hint, file=file)


def complete_robot(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the robots of the catalogue; files where none begins so."""
    from parflex.robotfile.read import catalogue_names

    names = [name for name in catalogue_names() if name.startswith(incomplete)]
    return [CompletionItem(name) for name in names] or [CompletionItem(incomplete, type="file")]


def complete_paper(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the papers whose keys begin so."""
    from parflex.reproduction.tables import paper_names

    return [CompletionItem(name) for name in paper_names() if name.lower().startswith(incomplete.lower())]


def open_robot(
    robot: str,
    settings: tuple[str, ...] | None = (),
    rigid: bool = False,
    payload: list[float] | None = None,
    actuation: str | None = None,
    working_mode: str | None = None,
    elements: int | None = None,
) -> Robot:
    """Load the robot of a command line."""
    from parflex import load
    from parflex.robotfile.read import parse_setting

    return load(
        robot,
        settings=dict(parse_setting(setting) for setting in settings or ()),
        payload=payload,
        actuation=actuation,
        working_mode=working_mode,
        elements=elements,
        rigid=rigid,
    )


def load_case(values: dict[str, Any]) -> LoadCase:
    """Return the load case of a command line."""
    from parflex.statics.load_case import LoadCase

    return LoadCase(**{name: value for name, value in values.items() if value is not None})


def split_names(text: str | tuple[str, ...], key: str = "") -> list[str]:
    """Return `a, b` as words."""
    joined = text if isinstance(text, str) else ",".join(text)
    return [word.strip() for word in joined.split(",") if word.strip()]


def numbers(text: str, key: str) -> list[float]:
    """Return `1,2,3` as numbers; each may be an expression."""
    return [_number(part, text, key) for part in text.split(",")]


def _number(text: str, full_text: str, key: str) -> float:
    from parflex.errors import RobotFileError
    from parflex.robotfile.values import LARGEST, evaluate

    try:
        number = evaluate(text, {})
    except RobotFileError:
        hint = "write a number or an expression, e.g. 0.1 or pi/6"
        raise _refuse(f"'{text}' in '{full_text}' is not a number", key, full_text, hint) from None
    if abs(number) > LARGEST:
        raise _refuse(f"'{text}' in '{full_text}' is too large", key, full_text, "check the unit")
    return number


def _pairs(text: str, key: str, form: str, hint: str) -> dict[str, str]:
    """Return `a=1,b=2` as texts by name."""
    table: dict[str, str] = {}
    for part in text.split(","):
        word, equals, value = part.partition("=")
        if not equals or not word.strip():
            raise _refuse(f"'{part}' is not {form}", key, text, hint)
        if word.strip() in table:
            raise _refuse(f"'{word.strip()}' is given twice", key, text, "keep one of them")
        table[word.strip()] = value.strip()
    return table


def assignments(text: str, key: str) -> dict[str, float]:
    """Return `x=0.1,theta_deg=30` as a table."""
    pairs = _pairs(text, key, "KEY=VALUE", "write e.g. x=0.1,z=0.9")
    return {word: _number(value, text, key) for word, value in pairs.items()}


def read_pose(text: str, key: str = "pose") -> str | dict[str, float]:
    """Return a pose by name or by coordinates."""
    return assignments(text, key) if "=" in text else text


def _poses(text: str, key: str) -> list[str | dict[str, float]]:
    return [read_pose(part.strip()) or "home" for part in text.split(";")]


def _wrenches(texts: tuple[str, ...], key: str) -> dict[str, list[float]]:
    """Return `FRAME=FX,FY,FZ` as a table; `FRAME:...` means the same."""
    found: dict[str, list[float]] = {}
    for text in texts:
        name, separator, values = text.partition("=" if "=" in text else ":")
        frame = name.strip()
        if not separator or not frame:
            raise _refuse(f"'{text}' is not FRAME=FX,FY,FZ", "wrench", text, "write platform=0,0,-100")
        if frame in found:
            raise _refuse(f"the wrench on '{frame}' is given twice", "wrench", text, "give their sum once")
        found[frame] = _checked_wrench(numbers(values, "wrench"), text)
    return found


def _checked_wrench(values: list[float], text: str) -> list[float]:
    if len(values) not in (3, 6):
        hint = "give fx,fy,fz or fx,fy,fz,mx,my,mz; for a planar robot fx,fy,mz"
        raise _refuse(f"'{text}' does not have three or six numbers", "wrench", text, hint)
    return values


def _lock(text: str, key: str) -> str | list[str]:
    return text if text in ("actuators", "none") else [name.strip() for name in text.split(",")]


def number_or_table(text: str, key: str) -> Any:
    """Return `VALUE` for all motors, or `JOINT=VALUE,...`."""
    if "=" in text:
        return assignments(text, key)
    values = numbers(text, key)
    if len(values) != 1:
        raise _refuse(f"'{text}' is not one number", key, text, "give one for all motors, or JOINT=VALUE,...")
    return values[0]


def read_effort_limit(text: str, key: str) -> Any:
    """Return `E` for all motors, or `JOINT=E,...` with `LOW:HIGH` for a pair of limits."""
    form = "give one for all motors, or JOINT=E,..."
    if not text.strip():
        raise _refuse("the effort limit is empty", key, text, form)
    limits = _pairs(text, key, "JOINT=E", "write e.g. leg1.1=20") if "=" in text else {"": text}
    read: dict[str, Any] = {}
    for word, value in limits.items():
        ends = value.split(":")
        if len(ends) > 2:
            raise _refuse(f"'{value}' is not one limit, nor LOW:HIGH", key, text, "write e.g. leg1.1=5:300")
        bounds = [numbers(end, key) if end.strip() else [None] for end in ends]
        if any(len(entry) != 1 for entry in bounds):
            raise _refuse(f"'{text}' is not one number", key, text, form)
        read[word] = bounds[0][0] if len(ends) == 1 else [entry[0] for entry in bounds]
    return read if "=" in text else read[""]


def read_range(text: str, key: str) -> list[float]:
    """Return `a:b:n` as n numbers from a to b; `a:b:n:log` with equal ratios."""
    import numpy as np

    parts = text.split(":")
    log = len(parts) == 4 and parts[3] == "log"
    form = "write a:b:n or a:b:n:log, e.g. 1:100:200"
    if len(parts) != 3 and not log:
        raise _refuse(f"'{text}' is not a range", "frequencies", text, form)
    low, high, count = numbers(",".join(parts[:3]), "frequencies")
    if count != int(count) or not 1 <= count <= 100_000 or low < 0 or high < low or (log and low == 0):
        raise _refuse(f"'{text}' is not a range of frequencies", "frequencies", text, form)
    spaced = np.geomspace(low, high, int(count)) if log else np.linspace(low, high, int(count))
    return [float(value) for value in spaced]


def _axes(text: str, key: str) -> list[tuple[str, float, float, int]]:
    """Return `x=a:b:n,y=a:b:n` as axes of a grid."""
    axes = []
    for part in text.split(","):
        word, equals, values = part.partition("=")
        pieces = values.split(":")
        if not equals or not word.strip() or len(pieces) != 3 or not all(piece.strip() for piece in pieces):
            raise _refuse(f"'{part}' is not KEY=FROM:TO:COUNT", "over", text, "write e.g. x=-0.1:0.1:50")
        first, last, count = (numbers(piece.strip(), "over")[0] for piece in pieces)
        if count != int(count):
            raise _refuse(f"'{pieces[2]}' is not a whole number", "over", text, "give a count like 50")
        axes.append((word.strip(), first, last, int(count)))
    return axes


def _region(text: str, key: str) -> Any:
    from parflex.identification.excitation import read_region

    return read_region(text)


def picture(text: str, key: str) -> str:
    """Return the file of a figure; refuse other types before anything is computed."""
    from parflex.view.style import picture_path

    picture_path(text)
    return text


def _columns_file(text: str, key: str) -> str:
    """Return the file of a table; refuse other types before anything is computed."""
    from parflex.trajectories.files import check_target

    check_target(text)
    return text


# -- a state -------------------------------------------------------------------------------------------------------


@contextmanager
def state_of(state_file: str | None, options: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Give the options, with pose, motion, efforts and wrenches of the state file where they have none.

    Errors about a word that only the state file gave name that file.
    """
    state = {} if state_file is None else _state_file(state_file)
    wrench = {**state.get("wrench", {}), **(options["wrench"] or {})}
    stated = {word: value for word, value in state.items() if word in options and options[word] is None}
    try:
        yield {**options, **stated, "wrench": wrench}
    except InputError as error:
        if error.file is None and error.key in STATE_WORDS and not options.get(error.key):
            error.file = state_file
        raise


def _state_file(path: str) -> dict[str, Any]:
    from parflex.io import read_bytes

    form = 'write {"pose": {"x": 0.1}, ...}'
    try:
        state = json.loads(read_bytes(path, "state").decode("utf-8-sig"), object_pairs_hook=_refuse_duplicate_keys)
    except _DuplicateKeyError as error:
        raise _refuse(f"'{error}' appears twice", "state", str(error), "keep one of them", path) from None
    except (ValueError, RecursionError):
        raise _refuse("is not JSON", "state", path, form, path) from None
    if not isinstance(state, dict):
        raise _refuse("is not a JSON object", "state", path, form, path)
    try:
        return {word: _state_entry(word, value) for word, value in state.items()}
    except InputError as error:
        error.file = path
        raise


class _DuplicateKeyError(Exception):
    """A key that a JSON object has twice."""


def _refuse_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _DuplicateKeyError(key[:80])
        found[key] = value
    return found


def _state_entry(word: str, value: Any) -> Any:
    """Return one word of a state file: a pose by name, or a table of numbers or expressions as on a command line."""
    if word not in STATE_WORDS:
        raise _refuse(
            f"unknown key '{short_text(word)}'", word[:80], short_text(value), did_you_mean(word, STATE_WORDS)
        )
    if word == "pose" and isinstance(value, str):
        return value
    if not isinstance(value, dict):
        raise _refuse(f"'{word}' must be a table", word, short_text(value), "write names and values")
    if word != "wrench":
        return {name: _state_number(entry, word, name) for name, entry in value.items()}
    lists = {frame: entry if isinstance(entry, list) else [entry] for frame, entry in value.items()}
    numbers = {frame: [_state_number(entry, word, frame) for entry in entries] for frame, entries in lists.items()}
    return {frame: _checked_wrench(entries, f"{frame}: {short_text(entries)}") for frame, entries in numbers.items()}


def _state_number(value: Any, word: str, name: str) -> float:
    return _number(value if isinstance(value, str) else short_text(value), f"{name}: {short_text(value)}", word)


# -- the vocabulary ------------------------------------------------------------------------------------------------

POSE, TABLE, OUT = "NAME|KEY=VALUE,...", "KEY=VALUE,...", ("-o", "--out")
OPTION_OF_TYPE = {
    "int": Option("N"),
    "str": Option("NAME"),
    "Sequence[str]": Option("LIST", read=split_names),
    "Mapping[str, float]": Option(TABLE, read=assignments),
    "float or Mapping[str, float]": Option("VALUE|JOINT=VALUE,...", read=number_or_table),
}
OPTIONS: dict[str, Option] = {
    # the robot
    "robot": Option("ROBOT", complete=complete_robot),
    "settings": Option(
        "KEY=VALUE", "Override a value of the robot file, e.g. constants.arm=0.3.", None, ("--set",), True
    ),
    "rigid": Option(help="Replace flexible bodies by rigid ones of the same mass and inertia."),
    "payload": Option("MASS,X,Y,Z", read=numbers),
    # state and loads
    "pose": Option(POSE, "A pose of the robot file, or coordinates: x=0.1,z=0.9,rz=0.2; default: home.", read_pose),
    "state_file": Option("FILE.json", "Pose and motion from a file with the same keys.", None, ("--state",)),
    "effort": Option(
        "JOINT=VALUE,...", "Efforts of motors that are neither locked nor servo-held, N or N m.", assignments
    ),
    "direct.effort": Option("JOINT=VALUE,...", "Motor efforts; those not named are zero.", assignments),
    "wrench": Option(
        "FRAME=FX,FY,FZ[,MX,MY,MZ]",
        "Wrench on a frame, N and N m, world axes; the moment may be left out. Planar robots: FX,FY,MZ.",
        _wrenches,
        ("--wrench", "--load"),
        True,
    ),
    "lock": Option("actuators|none|NAMES", read=_lock),
    "about": Option("undeformed|equilibrium"),
    **dict.fromkeys(("weights", "preload"), Option("JOINT=VALUE,...", read=assignments)),
    "effort_limit": Option("E|JOINT=E,...|JOINT=LOW:HIGH,...", read=read_effort_limit),
    **dict.fromkeys(
        ("draw.frames", "view.frames"), Option("LIST", "Frames to mark with their axes, such as arm@0.5.", split_names)
    ),
    "pose.frames": Option(
        "LIST", "More frames: places inside beams, e.g. arm@0.5, nodes of modal bodies.", split_names
    ),
    # programs
    "model": Option("MODEL"),
    "coordinates": Option("platform|motors|independent|all", "Inputs of the program; default: those of its form."),
    "parameters": Option("base|numbers|NAMES"),
    "friction_width": Option(
        "W", "Rate over which Coulomb friction is smoothed; 0: nowhere. In runs joints stick by default."
    ),
    "included": Option("LIST", "Terms to count as well: friction, motor-inertia, springs.", split_names, ("--with",)),
    "target": Option("c|llvm|numpy|jax|casadi|sympy", "Language of the generated files."),
    "float32": Option(help="Use single precision (C only)."),
    "force": Option(help="Overwrite files that parflex did not write."),
    # vibration
    "converge": Option("R"),
    "convergence": Option("FILE", "Draw the change with the elements of --converge: .svg, .pdf or .png.", picture),
    "inputs": Option("JOINT|FRAME.fx", "Input: effort of a joint, or a force.", split_names, ("--input",), True),
    "statespace.outputs": Option(
        "[velocity:]NAME", "Output: coordinate, or FRAME.x ... FRAME.rz.", split_names, ("--output",), True
    ),
    "span": Option(
        "A:B:N[:log]", "Also compute the frequency response at these frequencies, Hz.", read_range, ("--frequencies",)
    ),
    # time
    "motion": Option("NAME|FILE|TABLE"),
    "time": Option("T"),
    "motion.time": Option("T", "Duration of a motion without an end, s."),
    "control.time": Option("T", "Duration, s; default that of the reference."),
    "step": Option("H", "Time between rows, s."),
    "simulate.step": Option("H", "Step, s; default: chosen by errors; the method rk4 needs it."),
    "control.step": Option("H", "Step of the plant's integration, s; default 0.001."),
    "out_step": Option("DT", "Output interval, s; default 0.001."),
    "method": Option("NAME", "gauss4, gauss6, rk4, dopri5 or generalized-alpha; default: gauss6, with --step gauss4."),
    "tolerance": Option(
        "E",
        "What positions may err by in a step, m, angles times the characteristic length; it chooses steps; "
        "default: 1e-8 of how far the robot has moved.",
    ),
    "drive": Option("motors|platform", "What the motion prescribes: the motors, or the platform by the inverse model."),
    "start": Option(
        "rest|relaxed|equilibrium|held",
        "Undeformed; bodies deflected, joints at the pose; deflected with locked motors, or with the platform held; "
        "default: relaxed if flexible, else rest; with --velocity undeformed.",
    ),
    "control.start": Option("motors|platform", "What starts on the reference."),
    "simulate.velocity": Option(TABLE, "Initial velocities of what the motion does not prescribe.", assignments),
    "simulate.pose": Option(POSE, "Initial pose of a run without a motion.", read_pose),
    "simulate.effort": Option("JOINT=VALUE,...", "Constant motor efforts, if no motion is given.", assignments),
    "outputs": Option(
        "LIST",
        "More columns: reaction.JOINT.fx (or .fy .fz .mx .my .mz), reaction.JOINT; FRAME.sensor_ax (accelerometer; "
        "wx gyroscope), FRAME.vx ...; BEAM.chord_y@0.5, BEAM.tangent_y@0.5 (deflections; or z); BEAM.Mz@0.5 (or .N .Vy "
        ".Vz .T .My .stress) of its section.",
        split_names,
    ),
    "simulate.reactions": Option(help="Columns of all reactions of joints and closures, with largest values."),
    "control.reactions": Option(help="Columns of all reactions of joints and closures, with largest values."),
    "low_pass": Option("HZ", "Also low-pass filtered accelerations, columns '... .low'; cut-off in Hz."),
    "given": Option("NAME|FILE|TABLE"),
    "time_optimal": Option(help="Replace the law of the motion by the time-optimal one."),
    # control
    "law": Option("pd|ctc|ctc-task|extended"),
    "reference": Option(
        "WORDS",
        "circle:radius=0.1,time=2,x=0,y=0; line:x=0.1,time=1; quintic:FILE or spline:FILE of poses; a motion's name.",
    ),
    "plant": Option("ROBOT"),
    "plant_set": Option("KEY=VALUE", "Override a value of the plant's file.", many=True),
    "plant_payload": Option("MASS,X,Y,Z", "Point mass on the plant's end effector.", numbers),
    "Kp": Option("GAIN", flags=("--kp",)),
    "Kv": Option("GAIN", flags=("--kv",)),
    "sample_time": Option("T"),
    "noise": Option("S"),
    "rate_noise": Option("S"),
    "resolution": Option("R"),
    "rates": Option("measured|differences"),
    # studies
    "name": Option("NAME[:ARG]"),
    "new.name": Option("NAME"),
    "response": Option(
        "NAME[:ARG]",
        "Response: frequency:k, stiffness:FRAME.x, deflection:FRAME.x, mass, effort:JOINT, stress:BEAM, ...",
    ),
    "responses": Option("NAME", "Also stiffness:FRAME.x, deflection:FRAME, ...", None, ("--response",), True),
    "keys": Option("KEY,...", read=split_names, flags=("--to",)),
    "poses": Option("POSE;POSE;...", "Many poses in place of one; the worst value counts.", _poses),
    "statistic": Option("mean|QUANTILE"),
    "file": Option("FILE.toml"),
    "cluster": Option("ADDRESS"),
    "over": Option("KEY=FROM:TO:COUNT,...", "Coordinates and ranges of the grid.", _axes),
    "lowest_over": Option("KEY,...", "Draw and report the lowest frequency over these coordinates.", split_names),
    # identification and updating
    "record": Option("RECORD..."),
    "identify.columns": Option("MAP.toml", "Columns of the records; default t, q.JOINT, effort.JOINT."),
    "estimator": Option("ols|wls|irls|tls|iv|didim"),
    "cutoff": Option("HZ"),
    "least_speed": Option("V"),
    "friction": Option("file|none|symmetric|offset|direction"),
    "validate": Option("RECORD", many=True),
    "keep": Option("NAME,...", read=split_names),
    "page": Option("DIR", "Write a page with figures and tables to this folder."),
    "excite.amplitude": Option(
        help="Reach of all motors about home, within limits, rad or characteristic lengths; default: 0.5 for "
        "motors without limits."
    ),
    "workspace": Option("x=LOW:HIGH,...", read=_region),
    "distance": Option("D"),
    "data": Option("[DATA]..."),
    "plan": Option("N", "Choose N poses to measure in place of a fit; --out FILE.csv writes them."),
    "tolerance.keys": Option("KEY=DEV,...", "Standard deviations of numbers of the file.", assignments),
    "tolerance.over": Option("KEY=FROM:TO:COUNT,...", "Grid of poses in place of one.", _axes, ("--map", "--over")),
    "calibrate.columns": Option("MAP.toml", "Map of the columns; default: columns named as joints, or FRAME.x."),
    "calibrate.vary": Option(
        "KEY,...", "Numbers to fit: keys of the file, JOINT.offset, JOINT.gain, BASE.x, PLANE.height.", split_names
    ),
    "calibrate.hold_out": Option("ROWS", "Rows predicted but not fitted: names, or FIRST-LAST, separated by commas."),
    "loss": Option("linear|huber", "Huber's loss limits the weight of outliers."),
    "calibrate.about": Option("undeformed|equilibrium", "With equilibrium gravity deflects flexible bodies."),
    "calibrate.out": Option("FILE.toml", "Write a robot file that extends the first.", None, OUT),
    "update.measured": Option("MEASURED..."),
    "vary": Option("KEY,...", read=split_names),
    "prior": Option("VALUE|KEY=VALUE,...", read=number_or_table),
    "hold_out": Option("POSE[:MODE],..."),
    "update.pose": Option(POSE, "Pose of frequency responses; one for each file of them.", many=True),
    "band": Option("LOW-HIGH", "Frequencies in which poles of responses are found, Hz."),
    "order": Option("N", "Highest number of poles in the band; default 30."),
    "quantity": Option(
        "accelerance|mobility|receptance", "What the responses are; default accelerance, or as the UFF file says."
    ),
    "sensors": Option("NODE=FRAME,...", "Frames of the nodes of UFF files."),
    # exchange
    "format_name": Option("FORMAT"),
    "fmi": Option("2|3"),
    "kind": Option("cs|me"),
    "export.drive": Option("efforts|motions", "Inputs of the motors."),
    "export.method": Option("NAME", "Method of co-simulation."),
    "export.step": Option("H", "Longest step of co-simulation (s)."),
    "platforms": Option("own|all"),
    "export.parameters": Option("LIST", "Numbers that can be changed: gravity, payload, M[leg1.2], ...", split_names),
    "export.law": Option("pd|ctc|ctc-task|extended", "A controller in place of the robot."),
    "export.model": Option("MODEL", "A model in place of the robot, as of codegen: inverse, step, ..."),
    "source": Option("FILE"),
    "loops": Option("FILE.yaml"),
    # figures and pages
    "what": Option("RUN|ROBOT"),
    "columns": Option("LIST", "Columns of a run, e.g. 'P.x,effort.*'; default pose, efforts, energies.", split_names),
    "measured": Option("FILE", "Measured columns to compare with: .csv or .npz with 't'."),
    "spectrum": Option(help="Amplitudes over frequency instead of values over time."),
    "highest": Option("HZ"),
    "energies": Option(help="Plot the energies of a run, and how their sum changes."),
    "sections": Option(help="Section forces and stresses along beams, and where they are largest."),
    "instant": Option("T"),
    "amplitude": Option(help="Amplitude of a mode shape, % of the robot's size."),
    "of_robot": Option(
        "ROBOT", "Robot of a run; adds units, and its natural frequencies to a spectrum.", None, ("--robot",)
    ),
    "title": Option("TEXT"),
    "figure": Option("FILE.svg", "Also draw the result to this file.", picture),
    "run": Option("FILE", "Run to play back: .csv or .npz, written by 'parflex simulate'."),
    "mode": Option("N", "Play this mode from the start."),
    "stress": Option(help="Colour beams by stress: of the run if it has it, else at rest."),
    "map_file": Option("FILE.npz", "Map to show in colours, written by 'parflex map'.", None, ("--map",)),
    "design_file": Option("FILE.toml", "Sliders for the variables of a design, computed live.", None, ("--design",)),
    "port": Option("P", "Local port; default: 8080, or the next free one."),
    "no_browser": Option(help="Do not open a browser."),
    "seconds": Option("T", "Stop after this many seconds; default: run until interrupted."),
    "view.record": Option("FILE.html", "Write the animation as an offline HTML page, and exit."),
    "paper": Option("[PAPER]", complete=complete_paper),
    "report": Option("DIR", "Also write a self-contained HTML page."),
    # the rest
    "as_json": Option(help="Print a single JSON object.", flags=("--json",)),
    "schema.as_json": Option(help="No effect: a schema is always JSON.", flags=("--json",)),
    "saving": Option(help="What reduced beams save in the direct model; may take a minute."),
    "strict": Option(help="Reject physically impossible inertias."),
    "markdown": Option(help="Print Markdown."),
    "counts": Option(help="Also count the operators of the programs; tracing them may take seconds."),
    "shell": Option("bash|zsh|fish"),
    # what is written
    "out": Option("FILE", "File to write.", None, OUT),
    "draw.out": Option("FILE", "Output file: .svg, .pdf or .png.", picture, OUT),
    "plot.out": Option("FILE", "Output file: .svg, .pdf or .png.", picture, OUT),
    "simulate.out": Option("FILE", "Output file: .csv or .npz.", _columns_file, OUT),
    "control.out": Option("FILE", "Output file: .csv or .npz.", _columns_file, OUT),
    "motion.out": Option("FILE", "Table of the motors: .csv or .npz.", _columns_file, OUT),
    "statespace.out": Option("FILE", "Output file: .npz or .mat.", None, OUT),
    "new.out": Option("FILE", "Output file; default: standard output.", None, OUT),
    "codegen.out": Option("DIR", "Output folder.", None, OUT),
    "optimise.out": Option("DIR", "Folder for the robot file and the page.", None, OUT),
    "study.out": Option("FILE.json", "File for the results of all cases; run the command again to resume.", None, OUT),
    "sweep.out": Option("FILE.npz|FILE.parquet", "Table; run the command again to resume.", None, OUT),
    "map.out": Option("FILE.npz", "File of the map; a CSV file is written beside it.", None, OUT),
    "excite.out": Option("FILE.csv", "Table of the motors; the motion is written to FILE.toml.", None, OUT),
    "identify.out": Option("FILE.toml", "Write a robot file that extends the first.", None, OUT),
    "update.out": Option("FILE.toml", "Write a robot file that extends the first.", None, OUT),
    "import.out": Option("ROBOT.toml", "Robot file to write.", None, OUT),
}
