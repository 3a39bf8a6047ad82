"""The viewer of designs: while a slider moves, the robot, its responses, its frequencies and the map follow."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from parflex.errors import ParflexError
from parflex.robot.load import with_file_of
from parflex.view.page.session import Session
from parflex.view.page.viewer import Viewer
from parflex.view.scene.map_colours import MapPoints
from parflex.view.studio.design_desk import DesignDesk, SeenDesign, ShownDesign
from parflex.view.studio.design_tab import DesignTab
from parflex.view.studio.response_bars import response_bars

Array = np.ndarray
PREPARING = "Preparing programs for these sliders ..."
REST = 0.4  # s after which a slider rests
HAND_OVER = 0.002  # s in which the thread that sends takes a message; what comes while it does not is sent with it
OF_DESIGNS = ("design", "map", "best", "keep", "swap", "write", "pose", "motors", "named")  # wait for them


class StudioViewer(Viewer):
    """A running page with a tab for the design."""

    def __init__(self, desk: DesignDesk, at: Any = None, port: int | None = None, folder: Path | None = None) -> None:
        self.desk, self.folder = desk, folder or Path.cwd()
        self.values = dict(desk.start)
        self.shown: ShownDesign | None = None
        self._impossible = False  # the design that was asked for last cannot be shown
        self._moved = -np.inf  # when a design was shown last
        self._at_rest: list[Callable[[], None]] = []  # what is left to do when no slider moves
        self._ghost: tuple[Any, Array | None] = (None, None)  # what the pale robot is of, and its vertices
        super().__init__(desk.robot, at, port=port)
        self.tab.note.content = PREPARING
        self.panel.say(PREPARING)
        self._warming = threading.Thread(target=self._warm, daemon=True)
        self._warming.start()

    def _warm(self) -> None:
        """Beside the page: programs take seconds to make when they are made for the first time."""
        try:
            self.desk.warm(self.session)
        finally:
            self.ask("prepared", None)

    def _do_prepared(self, _: Any) -> None:
        self.tab.note.content = ""
        self._do_design(self.values)

    def turn(self) -> None:
        """As the viewer; wishes about designs wait until programs are there."""
        held: dict[str, Any] = {}
        if self._warming.is_alive():
            with self._lock:
                held = {what: self._asked.pop(what) for what in OF_DESIGNS if what in self._asked}
        super().turn()
        with self._lock:
            self._asked = held | self._asked

    def page(self) -> str:
        """What is seen as a page that opens offline."""
        self._warming.join()
        if self.shown is None:
            self.turn()
        return super().page()

    def _first_tab(self, tabs: Any) -> None:
        self.tab = DesignTab(self.server.gui, tabs, self.desk, self.values, self.ask)

    # -- requests --------------------------------------------------------------------------------------

    def _do_design(self, values: Mapping[str, float]) -> None:
        """Show a design; one that cannot be assembled is told, and the last good robot stays."""
        self.values, self._impossible, session = dict(values), False, None
        try:
            sight = self.desk.sight(self.session, self.values, self.tab.map.value)
            if sight is None:
                session = Session(self.desk.robot_of(self.values), self._pose())
        except ParflexError as error:
            self.session.trouble, self._impossible = f"This design cannot be shown: {error}", True
            self.panel.tell(self.session)
            self._tell(ShownDesign(self.values, dict.fromkeys(self.desk.units, float("nan")), error.message), None)
            self._draw(None)
            return
        points = self._tell(self.desk.look_at(self.values), sight)
        if session is None:
            assert sight is not None
            session = Session(sight.robot, q=sight.q)
        before, self.session = self.session, session
        session.servo, session.deformation_scale, session.count = before.servo, before.deformation_scale, before.count
        self._draw(points)
        self._at_rest = [self._read_file, super()._list_modes, self._say_where]
        self._modes_are_old, self._moved = True, time.monotonic()

    def _tell(self, shown: ShownDesign, sight: SeenDesign | None) -> MapPoints | None:
        """Bars and frequencies of a design, and the range of its map; the map itself is drawn with the robot.

        A browser writes text at once, but after a message about the scene it draws for a quarter of a second, in which
        text waits: text is sent first.
        """
        self.shown = shown
        points = None if sight is None or not self.tab.map.value else self.desk.coloured(sight)
        with self.server.atomic():
            self.tab.note.content = ""
            if not self._impossible:
                self.panel.say("")  # how near a singularity is takes too long while a slider moves
            self.tab.show(shown, np.zeros(0) if sight is None else sight.frequencies, points)
        self.server.flush()
        time.sleep(HAND_OVER)
        return points

    def _draw(self, points: MapPoints | None) -> None:
        """Robot, map and ghost, in one message with what changed of them."""
        with self.server.atomic():
            self.stage.follow(self.session.scene, self.session.q, self.session.base)
            self.stage.show_map(points)
            self._show_kept()
        self.server.flush()

    def _list_modes(self) -> None:
        """When the slider rests: what takes long, in steps between which a slider may move again."""
        if time.monotonic() - self._moved < REST:  # the picture of the last move is on its way
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
        """The robot with the file of this design, of which only sections were read while the slider moved."""
        self.session.take(with_file_of(self.session.robot, self.values))
        if self.session.sagging:
            self.session.sag(True)
        if not self.panel.play_mode.value:
            self.stage.follow(self.session.scene, self.session.q, self.session.base)

    def _say_where(self) -> None:
        if self.shown is not None and not self.session.trouble:
            self.panel.tell(self.session)

    def _pose(self) -> dict[str, float]:
        """Where the end effector is, which stays."""
        return self.desk.place(self.session)

    def _show_kept(self) -> None:
        """The robot of the kept design as a ghost."""
        kept = self.desk.kept
        if kept is None or kept.values == self.values or self.panel.play_mode.value:
            wanted, vertices = None, None
        else:
            wanted = kept.values, self._pose()
            vertices = self._ghost[1] if wanted == self._ghost[0] else self._vertices_of(kept)
        if wanted != self._ghost[0] or wanted is None:
            self.stage.show_ghost(vertices)
        self._ghost = wanted, vertices

    def _vertices_of(self, design: ShownDesign) -> Array | None:
        try:
            sight = self.desk.sight(self.session, design.values, cells=False)
            robot = self.desk.robot_of(design.values) if sight is None else sight.robot
            other = Session(robot, self._pose(), None if sight is None else sight.q)
        except ParflexError:
            return None
        return other.base if len(other.base) == len(self.session.base) else None

    def _do_map(self, on: bool) -> None:
        self._do_design(self.values)

    def _do_best(self, _: Any) -> None:
        if self.desk.best is not None:
            self._turn_to(self.desk.best)

    def _do_keep(self, _: Any) -> None:
        self.desk.kept = self.shown
        if self.shown is not None:
            self.tab.bars.content = response_bars(self.desk, self.shown)

    def _do_swap(self, _: Any) -> None:
        kept = self.desk.kept
        if kept is not None:
            self.desk.kept = self.shown
            self._turn_to(kept)

    def _turn_to(self, design: ShownDesign) -> None:
        self.tab.set_values(design.values)
        self._do_design(design.values)

    def _do_write(self, _: Any) -> None:
        if self._impossible:
            self.tab.note.content = "Not written: this design cannot be shown. Move the slider back."
            return
        path = self.desk.write(self.values, self.folder)
        self.tab.note.content = f"Written: `{path}`"

    def _move(self, given: Any, but: str) -> None:
        """Go to a pose; the map around it follows."""
        super()._move(given, but)
        if self.shown is not None:
            self._draw(self._tell(self.shown, self.desk.sight(self.session, self.values, self.tab.map.value)))
            self._say_where()
