"""The studio: designs with sliders and responses."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from parflex.design.design_rows import DesignRows
from parflex.design.sweep import DesignFile
from parflex.errors import InputError, ParflexError, UnreachableError
from parflex.maps.batch import Batch
from parflex.maps.continuation import UNREACHABLE
from parflex.maps.responses import read_responses
from parflex.parameters.design_numbers import number_at
from parflex.parameters.robot_file import redesigned, write_design
from parflex.records import Record
from parflex.robot.load import with_file_of
from parflex.robot.robot import Robot
from parflex.statics.load_case import LoadCase
from parflex.statics.modes import natural_frequencies
from parflex.view.colours import MapPoints, coloured, end_effector
from parflex.view.session import Session
from parflex.view.viewer import Ask, Viewer, add_button, asking

Array = np.ndarray
Values = Mapping[str, float]

PREPARING = "Preparing programs for these sliders ..."
REST = 0.4  # s after which a slider rests
HAND_OVER = 0.002  # s in which the thread that sends takes a message; later messages go with the next picture
OF_DESIGNS = ("design", "map", "best", "keep", "swap", "write", "pose", "motors", "named")  # need the programs
STEPS = 500  # of a slider
SPARE = 1.1  # of the bar for the largest number that it shows
GOOD, BAD, OTHER, LINE = "#3468a8", "#dc2626", "#b4bac4", "#1f2430"
CELLS = 16  # of the map along each of its axes: from 200 poses on they are found by compiled steps
AROUND = 0.12  # half the side of the map, as share of the robot's size, where no response has a region
MODES = 4  # whose frequencies follow a slider


class StudioViewer(Viewer):
    """A running page with a tab for the design."""

    def __init__(
        self, desk: DesignSession, at: Any = None, port: int | None = None, folder: Path | None = None
    ) -> None:
        self.desk, self.folder = desk, folder or Path.cwd()
        self.values = dict(desk.start)
        self.shown: DesignRecord | None = None
        self._impossible = False  # the last requested design cannot be shown
        self._moved = -np.inf  # when a design was shown last
        self._at_rest: list[Callable[[], None]] = []  # remaining work of a design, done when no slider moves
        self._ghost: tuple[Any, Array | None] = (None, None)  # the design of the ghost, and its vertices
        super().__init__(desk.robot, at, port=port)
        self.tab.note.content = PREPARING
        self.panel.say(PREPARING)
        self._warming = threading.Thread(target=self._warm, daemon=True)
        self._warming.start()

    def _warm(self) -> None:
        """Compile programs in a background thread: for the first time they take seconds."""
        try:
            self.desk.warm(self.session)
        finally:
            self.ask("prepared", None)

    def _do_prepared(self, _: Any) -> None:
        self.tab.note.content = ""
        self._do_design(self.values)

    def turn(self) -> None:
        """Do a turn of the viewer; requests about designs wait until programs are compiled."""
        held: dict[str, Any] = {}
        if self._warming.is_alive():
            with self._lock:
                held = {what: self._asked.pop(what) for what in OF_DESIGNS if what in self._asked}
        super().turn()
        with self._lock:
            self._asked = held | self._asked

    def page(self) -> str:
        """Return the scene as a page that opens offline."""
        self._warming.join()
        if self.shown is None:
            self.turn()
        return super().page()

    def _first_tab(self, tabs: Any) -> None:
        self.tab = DesignTab(self.server.gui, tabs, self.desk, self.values, self.ask)

    # -- requests --------------------------------------------------------------------------------------

    def _do_design(self, values: Values) -> None:
        """Show a design; if it cannot be assembled, state so and keep the last valid robot."""
        self.values, self._impossible, before = dict(values), False, self.session
        try:
            sight = self.desk.sight(before, values, self.tab.map.value)
            session = None if sight is not None else Session(self.desk.robot_of(values), self.desk.place(before))
        except ParflexError as error:
            before.trouble, self._impossible = f"This design cannot be shown: {error}", True
            self.panel.tell(before)
            missing = dict.fromkeys(self.desk.units, float("nan"))
            self._draw(self._tell(DesignRecord(self.values, missing, error.message), None))
            return
        points = self._tell(self.desk.look_at(values), sight)
        if session is None:
            assert sight is not None
            session = Session(sight.robot, q=sight.q)
        session.servo, session.deformation_scale = before.servo, before.deformation_scale
        self.session = session
        self._draw(points)
        self._at_rest = [self._read_file, super()._list_modes, self._say_where]
        self._modes_are_old, self._moved = True, time.monotonic()

    def _tell(self, shown: DesignRecord, sight: DisplayedDesign | None) -> MapPoints | None:
        """Show bars, frequencies and the range of the map of a design, and return the map, which is drawn later.

        A browser writes text at once, but after a message about the scene it draws for a quarter of a second, in which
        text waits: text is sent first.
        """
        self.shown = shown
        points = None if sight is None or not self.tab.map.value else self.desk.coloured(sight)
        with self.server.atomic():
            self.tab.note.content = ""
            if not self._impossible:
                self.panel.say("")  # the distance to a singularity takes too long while a slider moves
            self.tab.show(shown, np.zeros(0) if sight is None else sight.frequencies, points)
        self.server.flush()
        time.sleep(HAND_OVER)
        return points

    def _draw(self, points: MapPoints | None) -> None:
        """Send changes of robot, map and ghost in one message."""
        with self.server.atomic():
            self.stage.follow(self.session.scene, self.session.q, self.session.base)
            self.stage.show_map(points)
            self._show_stored_design()
        self.server.flush()

    def _list_modes(self) -> None:
        """Do the remaining work of a design step by step when the slider rests, so that it may move again."""
        if time.monotonic() - self._moved < REST:  # the picture of the last move is being drawn
            return
        step = self._at_rest.pop(0) if self._at_rest else super()._list_modes
        with suppress(ParflexError):
            step()
        self._modes_are_old = bool(self._at_rest)

    @property
    def resting(self) -> bool:
        """Whether all of the last design is shown, the list of its modes too."""
        return not (self._at_rest or self._modes_are_old)

    def _read_file(self) -> None:
        """Load the robot with the file of this design, of which only sections were read while the slider moved."""
        self.session.take(with_file_of(self.session.robot, self.values))
        if not self.panel.play_mode.value:
            self.stage.follow(self.session.scene, self.session.q, self.session.base)

    def _say_where(self) -> None:
        if self.shown is not None and not self.session.trouble:
            self.panel.tell(self.session)

    def _do_show(self, _: Any) -> None:
        super()._do_show(None)
        self._ghost = None, None
        self._show_stored_design()

    def _show_stored_design(self) -> None:
        """Show the robot of the stored design as a ghost."""
        stored = self.desk.kept
        if stored is None or stored.values == self.values or self.panel.play_mode.value:
            self._ghost = None, None
            self.stage.show_ghost(None)
            return
        key = stored.values, self.desk.place(self.session)
        if key != self._ghost[0]:
            self._ghost = key, self._vertices_of(stored)
            self.stage.show_ghost(self._ghost[1])

    def _vertices_of(self, design: DesignRecord) -> Array | None:
        try:
            sight = self.desk.sight(self.session, design.values, cells=False)
            robot = self.desk.robot_of(design.values) if sight is None else sight.robot
            other = Session(robot, self.desk.place(self.session), None if sight is None else sight.q)
        except ParflexError:
            return None
        return other.base if len(other.base) == len(self.session.base) else None

    def _do_map(self, on: bool) -> None:
        self._do_design(self.values)

    def _do_best(self, _: Any) -> None:
        if self.desk.best is not None:
            self._change_to(self.desk.best)

    def _do_keep(self, _: Any) -> None:
        self.desk.kept = self.shown
        if self.shown is not None:
            self.tab.bars.content = response_bars(self.desk, self.shown)

    def _do_swap(self, _: Any) -> None:
        stored, self.desk.kept = self.desk.kept, self.shown if self.desk.kept is not None else None
        if stored is not None:
            self._change_to(stored)

    def _change_to(self, design: DesignRecord) -> None:
        self.tab.set_values(design.values)
        self._do_design(design.values)

    def _do_write(self, _: Any) -> None:
        if self._impossible:
            self.tab.note.content = "Not written: this design cannot be shown. Move the slider back."
        else:
            self.tab.note.content = f"Written: `{self.desk.write(self.values, self.folder)}`"

    def _move(self, goal: Any, but: str) -> None:
        """Move to a pose; the map around it follows."""
        super()._move(goal, but)
        if self.shown is not None:
            self._draw(self._tell(self.shown, self.desk.sight(self.session, self.values, self.tab.map.value)))
            self._say_where()


class DesignTab:
    """Handles of the tab; `ask(what, value)` is called when a person changes something."""

    def __init__(self, gui: Any, tabs: Any, desk: DesignSession, values: Values, ask: Ask) -> None:
        self.gui, self.desk, self.ask = gui, desk, ask
        with tabs.add_tab("Design"):
            self.sliders = {key: self._slider(key, values[key]) for key in desk.keys}
            self.bars = gui.add_html("")
            self.frequencies = gui.add_html("")  # a browser parses Markdown for longer than it draws this
            self.map = gui.add_checkbox("Map of the lowest frequency", True, disabled=not desk.modes)
            self.map_note = gui.add_html("")
            asking(ask, self.map, "map")
            for label, what, hint in (
                ("Back to the best", "best", "The best design so far: limits first, then the objective."),
                ("Keep to compare", "keep", "This design stays as a grey bar and a ghost."),
                ("Swap with the kept one", "swap", "Show the kept design, and keep this one."),
                ("Write robot file", "write", "A robot file that extends this robot."),
            ):
                add_button(gui, ask, label, what, hint)
            self.note = gui.add_markdown("")

    def _slider(self, key: str, value: float) -> Any:
        variable = self.desk.file.variables[key]
        if variable.choices:
            words = [f"{choice:g}" for choice in sorted(variable.choices)]
            handle = self.gui.add_dropdown(key, words, initial_value=f"{value:g}")
        else:
            low, high = variable.bounds
            handle = self.gui.add_slider(key, min=low, max=high, step=(high - low) / STEPS, initial_value=value)
        return asking(self.ask, handle, "design", self.values)

    def values(self) -> dict[str, float]:
        """Return the values of the sliders."""
        return {key: self.desk.fitting(key, float(handle.value)) for key, handle in self.sliders.items()}

    def set_values(self, values: Values) -> None:
        """Move the sliders to a design."""
        for key, handle in self.sliders.items():
            handle.value = f"{values[key]:g}" if self.desk.file.variables[key].choices else values[key]

    def show(self, shown: DesignRecord, frequencies: Array, points: MapPoints | None) -> None:
        """Show bars, frequencies and the range of the map."""
        self.bars.content = response_bars(self.desk, shown)
        listed = ", ".join(f"{value:.2f}" for value in frequencies)
        self.frequencies.content = _block(f"Modes here: {listed} Hz" if listed else "")
        note = "" if points is None else f"Map from {points.lowest:.2f} (dark) to {points.highest:.2f} Hz (light)."
        self.map_note.content = _block(note)


def response_bars(desk: DesignSession, shown: DesignRecord) -> str:
    """Return all responses as bars: red if a limit is broken, the stored design in grey below."""
    trouble = f'<p style="color:{BAD};margin:4px 0">{escape(shown.reason)}</p>' if shown.reason else ""
    return _block(trouble + "".join(_bar(desk, name, shown.responses[name]) for name in shown.responses))


def _block(content: str) -> str:
    return f'<div style="font:13px system-ui,sans-serif;padding:3px 12px">{content}</div>' if content else ""


def _bar(desk: DesignSession, name: str, value: float) -> str:
    before, best = (None if design is None else design.responses[name] for design in (desk.kept, desk.best))
    limits = [limit for limit in desk.limits if limit.name == name]
    numbers = [x for x in (value, before, best, *(limit.value for limit in limits)) if x is not None]
    top = SPARE * max((abs(x) for x in numbers if math.isfinite(x)), default=0.0) or 1.0

    def width(number: float) -> str:
        return f"{100 * min(1.0, abs(number) / top) if math.isfinite(number) else 0.0:.2f}%"

    colour = BAD if any(limit.missed(value) > 0 for limit in limits) else GOOD
    bars = [(value, colour, 10), *([] if before is None else [(before, OTHER, 5)])]
    strips = "".join(
        f"<div style='width:{width(number)};height:{height}px;background:{shade};margin:1px 0'></div>"
        for number, shade, height in bars
    )
    marks = "".join(
        f"<div title='limit {limit.value:g}' style='position:absolute;left:{width(limit.value)};top:0;bottom:0;"
        f"width:2px;background:{LINE}'></div>"
        for limit in limits
    )
    text = f"{value:.5g} {desk.units[name]}" if math.isfinite(value) else "-"
    if before and math.isfinite(value) and math.isfinite(before):
        text += f" ({100 * (value / before - 1):+.2f} %)"
    head = f"<b>{escape(name)}</b><span style='float:right'>{escape(text)}</span>"
    body = f"<div style='position:relative;background:#eef0f4;padding:2px 0'>{strips}{marks}</div>"
    return f"<div style='margin:6px 0'>{head}{body}</div>"


@dataclass(frozen=True)
class DesignRecord:
    """Values of the variables, responses by name (NaN where there is none), and why one is missing."""

    values: dict[str, float]
    responses: dict[str, float]
    reason: str = ""


@dataclass(frozen=True)
class Limit:
    """A response that stays on one side of a number."""

    name: str
    value: float
    upper: bool

    def missed(self, value: float) -> float:
        """Return how far a value exceeds the limit, as share of the limit; infinite without a value."""
        if not np.isfinite(value):
            return np.inf
        return max(0.0, (value - self.value if self.upper else self.value - value) / (abs(self.value) or 1.0))


@dataclass(frozen=True, eq=False, repr=False)
class DisplayedDesign(Record):
    """A design as it is displayed: robot, positions, frequencies (Hz), axes of the map, lowest frequencies there."""

    robot: Robot
    q: Array
    frequencies: Array
    axes: dict[str, Array]
    lowest: Array


@dataclass
class DesignSession:
    """A robot, the file of a design, and designs of it."""

    robot: Robot
    file: DesignFile
    source: str  # the robot's name or file
    best: DesignRecord | None = field(default=None, init=False)
    kept: DesignRecord | None = field(default=None, init=False)  # to compare with

    def __post_init__(self) -> None:
        variables = self.file.variables
        self.keys = list(variables)
        file_values = {key: number_at(self.robot, key, "variables") for key in self.keys}
        starts = {key: file_values[key] if item.start is None else item.start for key, item in variables.items()}
        self.start = {key: self.fitting(key, value) for key, value in starts.items()}
        questions = {name: table.question() for name, table in self.file.responses.items()}
        self.rows = DesignRows(self.robot, self.keys, questions, often=True)
        DesignRows(self.robot, self.keys, questions).check()  # few poses, for which nothing is compiled
        self.units = {name: item.response.unit_of(self.robot, item.argument) for name, item in questions.items()}
        sides = [(item, word) for item in self.file.constraint for word in ("lower", "upper")]
        self.limits = [
            Limit(item.response, getattr(item, word), word == "upper")
            for item, word in sides
            if getattr(item, word) is not None
        ]
        try:  # how many frequencies can be shown; none where nothing vibrates
            self.modes = min(MODES, len(natural_frequencies(self.robot).frequencies))
        except ParflexError:
            self.modes = 0
        begin = Session(self.robot)
        self.words = [slider.word for slider in begin.pose_sliders()]
        self._home, self._size = self.place(begin), begin.scene.size

    def fitting(self, key: str, value: float) -> float:
        """Return the value within the bounds of its variable, or the nearest of its choices."""
        variable = self.file.variables[key]
        if variable.choices:
            return min(variable.choices, key=lambda choice: abs(choice - value))
        return float(np.clip(value, *variable.bounds))

    def robot_of(self, values: Values) -> Robot:
        """Return the robot of a design; its numbers do not change the degrees of freedom."""
        design = redesigned(self.robot, values)
        return replace(design, known_home=design.home, known_mobility=self.robot.mobility)

    def look_at(self, values: Values) -> DesignRecord:
        """Return the responses of a design, and store the best design so far."""
        result = self.rows({key: np.array([values[key]]) for key in self.keys})
        responses = {name: float(response[0]) for name, response in result.values.items()}
        shown = DesignRecord(dict(values), responses, result.reasons[0])
        if self._merit(shown) < self._merit(self.best):
            self.best = shown
        return shown

    def _merit(self, design: DesignRecord | None) -> tuple[float, float]:
        """Return how far limits are exceeded, then the objective; less is better."""
        if design is None:
            return np.inf, np.inf
        missed = sum(limit.missed(design.responses[limit.name]) for limit in self.limits)
        objective = self.file.objective
        if objective is None or not np.isfinite(missed):
            return missed, 0.0
        name = objective.maximise or objective.minimise or ""
        value = design.responses[name] * (-1.0 if objective.maximise else 1.0)
        return missed, value if np.isfinite(value) else np.inf

    # -- the map ---------------------------------------------------------------------------------------

    def place(self, session: Session) -> dict[str, float]:
        """Return the pose of the end effector, in the words of its degrees of freedom."""
        known = session.place()
        return {word: known[word] for word in self.words}

    def sight(self, session: Session, values: Values, cells: bool = True) -> DisplayedDesign | None:
        """Return a design with its robot at the pose of a session, frequencies there and those of the map.

        Compiled programs compute it without reading its file again; None where they do not cover it.
        """
        place = self.place(session)
        if not self.modes or not place:
            return None
        axes = {word: self._axis(word) for word in [word for word in "xyz" if word in place][:2]} if cells else {}
        mesh = np.meshgrid(*axes.values(), indexing="ij") if axes else []
        poses = np.tile(np.array(list(place.values())), ((mesh[0].size if mesh else 0) + 2, 1))
        poses[1] = list(self._home.values())
        for word, grid in zip(axes, mesh, strict=True):
            poses[2:, list(place).index(word)] = grid.ravel()
        columns = {key: np.full(len(poses), value) for key, value in values.items()}
        responses = read_responses(self.robot, [f"frequency:{k + 1}" for k in range(self.modes)])
        batch = Batch(self.robot, list(place), poses, responses, LoadCase(), columns, often=True)
        batch.loads = False
        found = batch.all(1)
        if batch.numbers is None or not len(batch.whole):
            return None
        if found.status[0] == UNREACHABLE:
            where = ", ".join(f"{word} = {value:.4g}" for word, value in place.items())
            text = f"{where} cannot be reached by this design"
            raise UnreachableError(text, key="pose", value=where, hint="move the slider back")
        here, home = batch.whole[:2]
        if not np.isfinite(here).all():
            return None
        robot = batch.numbers.robot_of(0, home if np.isfinite(home).all() else here)
        robot = with_file_of(robot, values, sections_alone=True)  # beams are drawn to scale
        frequencies = found.modal("frequency", self.modes)
        lowest = frequencies[0] if np.isfinite(frequencies[0]).all() else np.zeros(0)
        return DisplayedDesign(robot, here, lowest, axes, frequencies[2:, 0])

    def coloured(self, sight: DisplayedDesign) -> MapPoints | None:
        """Return the map as points in the plane of the end effector."""
        good = np.isfinite(sight.lowest)
        if not good.any():
            return None
        points = np.tile(np.asarray(end_effector(sight.robot, sight.q), dtype=float), (int(good.sum()), 1))
        for word, grid in zip(sight.axes, np.meshgrid(*sight.axes.values(), indexing="ij"), strict=True):
            points[:, "xyz".index(word)] = grid.ravel()[good]
        return coloured(points, sight.lowest[good], min(float(axis[1] - axis[0]) for axis in sight.axes.values()))

    def _axis(self, word: str) -> Array:
        """Return places of the map along a coordinate: over the region of a response, else around home."""
        for table in self.file.responses.values():
            span = table.region.get(word)
            if isinstance(span, list) and span[0] != span[1]:
                return np.linspace(float(span[0]), float(span[1]), CELLS)
        middle = float(end_effector(self.robot, self.robot.home)["xyz".index(word)])
        return np.linspace(middle - AROUND * self._size, middle + AROUND * self._size, CELLS)

    # -- programs and files ----------------------------------------------------------------------------

    def warm(self, session: Session) -> None:
        """Compile all programs that sliders will need: for the first design and for a slightly different one."""
        for share in (0.0, 1e-3):
            values = {key: self.start[key] + share * np.ptp(self.file.variables[key].bounds) for key in self.keys}
            fitting = {key: self.fitting(key, value) for key, value in values.items()}
            with suppress(ParflexError):
                self.sight(session, fitting)
                self.rows({key: np.array([value]) for key, value in fitting.items()})

    def write(self, values: Values, folder: Path) -> Path:
        """Write the robot file of a design under an unused name, and return its path."""
        for number in range(1, 1000):
            target = folder / f"{self.robot.name}-design-{number}.toml"
            if not target.exists():
                write_design(self.source, self.robot, self.robot_of(values), values, target, "design")
                return target
        raise InputError("there are a thousand designs already", key="design", file=str(folder), hint="remove some")


def check_robot(file: DesignFile, robot: Robot, design: Any) -> None:
    """Refuse a design of another robot."""
    known = Path(file.robot).stem if file.robot else robot.name
    if known not in (robot.name, Path(robot.file).stem):
        hint = f"show it with 'parflex view {file.robot}', or change its 'robot'"
        raise InputError(f"the design is of '{file.robot}'", file=str(design), key="robot", value=file.robot, hint=hint)
