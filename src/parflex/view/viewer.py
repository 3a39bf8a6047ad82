"""The viewer in the browser."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from parflex.errors import InputError, ParflexError
from parflex.robot.robot import Robot
from parflex.view.browser_scene import Stage
from parflex.view.server import start_server, stop_server
from parflex.view.session import Playback, Session, Slider
from parflex.view.solids import merged
from parflex.view.style import BRAND

Array = np.ndarray
Ask = Callable[[str, Any], None]

FRAME = 1 / 30  # seconds between pictures
LOOK = 0.5  # seconds between checks of the robot file
MOST_FRAMES = 900  # of a recorded run
PLAY_HINT = "A cycle takes the seconds below, not its real period."
SERVO_HINT = "Stiffness of the servos that hold the motors; 0 locks them. A rigid robot needs it for modes."
PAGE_HINT = "An HTML page that opens offline; a playing mode or run keeps playing in it."


class RecordedFrame(NamedTuple):
    """Vertices of all meshes, positions, and triangles of beams by colour of their stress, where that is shown."""

    vertices: Array
    q: Array
    levels: list[Array] | None = None


class Viewer:
    """A running page. `turn()` does one round of the loop; `close()` ends it."""

    def __init__(
        self,
        robot: Robot,
        at: str | Mapping[str, float] | None = None,
        run: Playback | None = None,
        port: int | None = None,
        reload: Callable[[], Robot] | None = None,
        watched: Path | None = None,
        frames: Sequence[str] = (),
    ) -> None:
        for name in frames:
            robot.tree.place(name)
        self.session = Session(robot, at)
        self.run = run
        self.reload, self.watched = reload, watched
        self._stamp = _stamp(watched)
        self._looked = self._clock = time.monotonic()
        self._asked: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._wanted = threading.Event()  # set by each request
        self._phase = 0.0
        self._modes_are_old = False
        self._run_is_shown = False  # in place of the pose
        self.server = start_server(port, robot.name)
        try:
            self.stage = Stage(self.server, frames)
            self._open()
        except BaseException:
            self.close()
            raise

    @property
    def address(self) -> str:
        """Address of the page, with its token."""
        return str(self.server.address)

    def close(self) -> None:
        """End the page."""
        stop_server(self.server)

    def begin(self, mode: int | None, amplitude: float = 6.0, stress: bool = False) -> None:
        """Begin with a mode (from 1) that plays, or with the run if there is one; beams in colours of their stress."""
        self.panel.stress.value = stress
        if mode is not None:
            names = self.session.mode_names()
            if mode > len(names):
                text = f"mode {mode} is requested, but the robot shows {len(names)} here"
                hint = "give a lower number" if names else "choose a flexible robot"
                raise InputError(self.session.trouble or text, key="mode", value=mode, hint=hint)
            self.panel.mode.value = names[mode - 1]
            self.panel.amplitude.value = amplitude
            self.panel.play_mode.value = True
        elif self.run is not None:
            self.panel.play_run.value = True
        self._do_show(None)

    def ask(self, what: str, value: Any) -> None:
        """Note a request of a person; of several requests of one kind the last counts."""
        with self._lock:
            self._asked.pop(what, None)
            self._asked[what] = value
        self._wanted.set()

    def watch(self, seconds: float | None = None) -> None:
        """Run until interrupted, or for some seconds: a turn for each picture, and at once upon a request."""
        end = np.inf if seconds is None else time.monotonic() + seconds
        while time.monotonic() < end:
            start = time.monotonic()
            self._wanted.clear()
            self.turn()
            self._wanted.wait(max(0.0, FRAME - (time.monotonic() - start)))

    def turn(self) -> None:
        """Handle requests, check the file, and show the next frame of the animation."""
        with self._lock:
            requests, self._asked = self._asked, {}
        for what, value in requests.items():
            try:
                getattr(self, f"_do_{what.replace('-', '_')}")(value)
            except (ParflexError, ArithmeticError, ValueError, np.linalg.LinAlgError) as error:  # the page lives on
                self.session.trouble = str(error)
                self.panel.tell(self.session)
        if self._modes_are_old and not requests:  # while a slider is dragged, the list is not needed
            self._list_modes()
        self._look_at_file()
        passed, self._clock = time.monotonic() - self._clock, time.monotonic()
        if self.panel.play_mode.value:
            self._phase += 2 * np.pi * passed / self.panel.cycle.value
            self.stage.move(self._in_mode(self._phase).vertices)
        elif self.run is not None and self.panel.play_run.value:
            later = self.panel.time.value + passed * self.panel.speed.value
            self.panel.time.value = later if later <= self.run.duration else 0.0
            self._do_time(None)

    # -- opening and reloading -------------------------------------------------------------------------

    def _open(self) -> None:
        duration = None if self.run is None else self.run.duration
        self.panel = Panel(self.server, self.session, self.ask, duration, self._first_tab)
        self.stage.build(self.session.scene, self.session.q)
        self._list_modes()
        self.panel.tell(self.session)

    def _first_tab(self, tabs: Any) -> None:
        """Add a tab before all others; the studio does."""

    def _look_at_file(self) -> None:
        """Load a changed robot file; if it is invalid, state the error and show the last valid robot."""
        if self.watched is None or self.reload is None or time.monotonic() - self._looked < LOOK:
            return
        self._looked = time.monotonic()
        stamp = _stamp(self.watched)
        if stamp in (self._stamp, None):
            return
        self._stamp = stamp
        try:
            session = Session(self.reload())
        except ParflexError as error:
            self.session.trouble = f"The file changed and cannot be used: {error}"
            self.panel.tell(self.session)
            return
        self.session, self.run, self._run_is_shown = session, None, False
        self._open()

    # -- requests ------------------------------------------------------------------------------------

    def _do_named(self, name: str) -> None:
        self._move(name, "")

    def _do_pose(self, goal: Mapping[str, float]) -> None:
        self._move(goal, "pose")

    def _do_motors(self, goal: Mapping[str, float]) -> None:
        self._move(goal, "")

    def _move(self, goal: str | Mapping[str, float], but: str) -> None:
        """Move to a pose; sliders follow, except those that a person just moved."""
        reached = self.session.move(goal)
        self.stage.show_mark(self.session.asked)
        self.panel.tell(self.session)
        if reached:
            self.panel.follow(self.session, but)
            self._modes_are_old, self._run_is_shown = True, False
            self._do_show(None)

    def _do_show(self, _: Any) -> None:
        """Show the robot with what the panel says: ghost, reactions, stresses."""
        panel, session = self.panel, self.session
        if self._run_is_shown:
            self._do_time(None)
        else:
            self._show_frame(RecordedFrame(session.base, session.q))
        ghost = panel.ghost.value and panel.play_mode.value
        self.stage.show_ghost(session.scene.vertices(session.q) if ghost else None)
        vertices, faces, note = session.reactions() if panel.reactions.value else (*merged([]), "")
        self.stage.show_arrows(vertices, faces)
        self.stage.name_couplings(session.coupling_efforts if panel.reactions.value else {})
        panel.reaction_note.content = note
        run = self.run if self.run is not None and self.run.largest_stress else None
        moment = 0.0 if run is None else panel.time.value
        levels, note = session.stresses(run, moment) if panel.stress.value else (None, "")
        self.stage.colour_beams(levels)
        panel.stress_note.content = note

    def _list_modes(self) -> None:
        """List the modes if the robot is flexible or its motors are held by servos."""
        session = self.session
        self._modes_are_old = False
        if not session.robot.tree.elastic and session.servo is None:
            self.panel.list_modes([], "This robot is rigid: give its motors a stiffness below to see vibration modes.")
            return
        before, session.trouble = session.trouble, ""
        names = session.mode_names()
        note = session.trouble or "Natural frequencies, motors " + ("held" if session.servo else "locked") + "."
        session.trouble = before
        self.panel.list_modes(names, note)

    def _do_servo(self, stiffness: float) -> None:
        self.session.set_servo(float(stiffness) or None)
        self._list_modes()

    def _do_play_mode(self, on: bool) -> None:
        if on and self.run is not None:
            self.panel.play_run.value = False
        self._phase, self._run_is_shown = 0.0, False
        self._do_show(None)

    def _do_play_run(self, on: bool) -> None:
        if on:
            self.panel.play_mode.value, self._run_is_shown = False, True
            self._do_show(None)

    def _do_time(self, _: Any) -> None:
        assert self.run is not None
        self._run_is_shown = True
        self._show_frame(self._in_run(self.run, self.panel.time.value))

    def _do_sag(self, on: bool) -> None:
        self._run_is_shown = False
        self._do_scale(self.panel.scale.value)

    def _do_scale(self, scale: float) -> None:
        self.session.sag(self.panel.sag.value, scale)
        self.panel.sag.value = self.session.sagging
        self._do_show(None)
        self.panel.tell(self.session)

    # -- frames and saving -----------------------------------------------------------------------------

    def _in_mode(self, phase: float) -> RecordedFrame:
        number, amplitude = self.panel.mode_number(), self.panel.amplitude.value / 100
        return RecordedFrame(self.session.in_mode(number, phase, amplitude), self.session.q)

    def _in_run(self, run: Playback, moment: float) -> RecordedFrame:
        stressed = self.panel.stress.value and run.largest_stress
        levels = self.session.stresses(run, moment)[0] if stressed else None
        return RecordedFrame(self.session.in_run(run, moment), run.positions(moment), levels)

    def _show_frame(self, frame: RecordedFrame) -> None:
        self.stage.move(frame.vertices)
        self.stage.place_axes(frame.q)
        if frame.levels is not None:
            self.stage.colour_beams(frame.levels)

    def pictures(self) -> tuple[list[RecordedFrame], float]:
        """Return the frames of what plays now, and the seconds between two of them; none if nothing plays."""
        if self.panel.play_mode.value:
            phases = 2 * np.pi * np.arange(0, 1, FRAME / self.panel.cycle.value)
            return [self._in_mode(phase) for phase in phases], FRAME
        if self.run is not None and self.panel.play_run.value:
            seconds = self.run.duration / self.panel.speed.value
            count = min(int(seconds / FRAME) + 1, MOST_FRAMES)
            moments = np.linspace(0, self.run.duration, count)
            return [self._in_run(self.run, float(t)) for t in moments], seconds / max(count - 1, 1)
        return [], 0.0

    def page(self) -> str:
        """Return the scene as a page that opens offline and plays what plays now."""
        serializer = self.server.get_scene_serializer()
        frames, wait = self.pictures()
        for frame in frames:
            self._show_frame(frame)
            serializer.insert_sleep(wait)
        return str(serializer.as_html())

    def _do_page(self, client: Any) -> None:
        client.send_file_download(f"{self.session.robot.name}.html", self.page().encode(), save_immediately=True)

    def _do_picture(self, client: Any) -> None:
        threading.Thread(target=_send_picture, args=(client, self.session.robot.name), daemon=True).start()


def _send_picture(client: Any, name: str) -> None:
    """Let the browser draw once more, and send it the picture as a file."""
    import imageio.v3 as imageio

    camera = client.camera
    try:
        image = client.get_render(camera.image_height, camera.image_width, transport_format="png", timeout=60)
    except (RuntimeError, TimeoutError) as error:
        client.add_notification("No picture", str(error), auto_close_seconds=10.0)
        return
    client.send_file_download(f"{name}.png", imageio.imwrite("<bytes>", image, extension=".png"), save_immediately=True)


def _stamp(path: Path | None) -> tuple[int, int] | None:
    """Return what changes when a file is written."""
    try:
        status = None if path is None else path.stat()
    except OSError:
        return None
    return None if status is None else (status.st_mtime_ns, status.st_size)


def asking(ask: Ask, handle: Any, what: str, value: Callable[[], Any] | None = None) -> Any:
    """Request changes that a person made, not those of the program."""

    @handle.on_update
    def _(event: Any) -> None:
        if event.client is not None:
            ask(what, handle.value if value is None else value())

    return handle


def add_button(gui: Any, ask: Ask, label: str, what: str, hint: str) -> None:
    """Add a button that requests something for the browser that pressed it."""
    button = gui.add_button(label, hint=hint)

    @button.on_click
    def _(event: Any) -> None:
        ask(what, event.client)


class Panel:
    """Tabs for pose, modes, a run and what is shown; `ask(what, value)` is called when a person changes something."""

    def __init__(
        self, server: Any, session: Session, ask: Ask, duration: float | None, first: Callable[[Any], None]
    ) -> None:
        self.gui, self.ask, robot = server.gui, ask, session.robot
        self.gui.reset()
        self.gui.configure_theme(show_logo=False, show_share_button=False, brand_color=BRAND, control_width="medium")
        self.gui.main_panel.dock_right()
        self.gui.set_panel_label(f"parflex: {robot.name}")
        self.gui.add_markdown(f"**{robot.description.title or robot.name}**")
        self.status = self.gui.add_markdown("")
        tabs = self.gui.add_tab_group()
        first(tabs)
        with tabs.add_tab("Pose"):
            self._pose(session)
        with tabs.add_tab("Modes"):
            self._modes()
        if duration is not None:
            with tabs.add_tab("Run"):
                self._run(max(duration, 1e-6))
        with tabs.add_tab("Show"):
            self._show(bool(robot.tree.elastic))

    def _asking(self, handle: Any, what: str, value: Callable[[], Any] | None = None) -> Any:
        return asking(self.ask, handle, what, value)

    def _pose(self, session: Session) -> None:
        names = list(dict.fromkeys(["home", *session.robot.description.poses]))
        self._asking(self.gui.add_dropdown("Pose of the file", names, initial_value=names[0]), "named")
        self.pose_sliders: dict[str, Any] = {}
        self.motor_sliders: dict[str, Any] = {}
        for title, sliders, handles, what in (
            (f"End effector: {session.robot.tree.end_effector}", session.pose_sliders(), self.pose_sliders, "pose"),
            ("Motors", session.motor_sliders(), self.motor_sliders, "motors"),
        ):
            if sliders:
                with self.gui.add_folder(title):
                    for slider in sliders:
                        handles[slider.word] = self._slider(slider, what, handles)

    def _slider(self, slider: Slider, what: str, handles: dict[str, Any]) -> Any:
        digits = int(3 - np.floor(np.log10(max(slider.high - slider.low, 1e-9))))
        step = 10.0**-digits
        low, high = round(slider.low - step / 2, digits), round(slider.high + step / 2, digits)
        label, value = f"{slider.word} ({slider.unit})", round(slider.value, digits)
        handle = self.gui.add_slider(label, min=low, max=high, step=step, initial_value=value)

        def goal() -> dict[str, float]:  # a pose is given whole; a motor is given alone, the others stay or follow
            return {name: item.value for name, item in handles.items() if what == "pose" or item is handle}

        return self._asking(handle, what, goal)

    def _modes(self) -> None:
        self.frequencies = self.gui.add_markdown("")
        self.mode = self._asking(self.gui.add_dropdown("Mode", ["none"], initial_value="none"), "show")
        self.play_mode = self._asking(self.gui.add_checkbox("Play the mode", False, hint=PLAY_HINT), "play-mode")
        self.amplitude = self.gui.add_slider("Amplitude (% of size)", 0.0, 20.0, 0.5, 6.0)
        self.cycle = self.gui.add_slider("Seconds a cycle", 0.5, 6.0, 0.1, 2.0)
        servo = self.gui.add_number("Servo stiffness (N/m, N m)", 0.0, min=0.0, hint=SERVO_HINT)
        self._asking(servo, "servo")

    def _run(self, duration: float) -> None:
        self.play_run = self._asking(self.gui.add_checkbox("Play the run", False), "play-run")
        self.time = self._asking(self.gui.add_slider("Time (s)", 0.0, duration, duration / 1000, 0.0), "time")
        self.speed = self.gui.add_slider("Speed (of real time)", 0.05, 4.0, 0.05, 1.0)

    def _show(self, bends: bool) -> None:
        add = self.gui.add_checkbox
        self.sag = self._asking(add("Deflected by its weight", False, disabled=not bends), "sag")
        scale = self.gui.add_number("Deformation scale", 1.0, min=0.0, step=1.0, disabled=not bends)
        self.scale = self._asking(scale, "scale")
        self.ghost = self._asking(add("Show undeformed", True), "show")
        self.reactions = self._asking(add("Reactions at rest", False), "show")
        self.reaction_note = self.gui.add_markdown("")
        self.stress = self._asking(add("Stress of beams", False, disabled=not bends), "show")
        self.stress_note = self.gui.add_markdown("")
        add_button(self.gui, self.ask, "Save picture", "picture", "A PNG of the view.")
        add_button(self.gui, self.ask, "Save page", "page", PAGE_HINT)

    # -- output ----------------------------------------------------------------------------------------

    def say(self, text: str) -> None:
        """Show a line above the tabs."""
        self.status.content = text

    def tell(self, session: Session) -> None:
        """State the pose, or what cannot be shown."""
        self.say(f"⚠️ **{session.trouble}**" if session.trouble else session.status())

    def follow(self, session: Session, but: str = "") -> None:
        """Move the sliders to the pose of the robot, except those that a person just moved."""
        for what, sliders, handles in (
            ("pose", session.pose_sliders(), self.pose_sliders),
            ("motors", session.motor_sliders(), self.motor_sliders),
        ):
            for slider in sliders if what != but else ():
                handle = handles.get(slider.word)
                if handle is not None:
                    handle.min, handle.max = min(handle.min, slider.value), max(handle.max, slider.value)
                    handle.value = float(f"{slider.value:.4g}")

    def list_modes(self, names: list[str], note: str) -> None:
        """Offer the modes of this pose; the chosen number stays chosen."""
        shown = names or ["none"]
        number = min(self.mode_number(), len(shown) - 1)
        if tuple(self.mode.options) != tuple(shown):
            self.mode.options = tuple(shown)
            self.mode.value = shown[number]
        self.frequencies.content = note

    def mode_number(self) -> int:
        """Return the chosen mode, from 0."""
        options = list(self.mode.options)
        return options.index(self.mode.value) if self.mode.value in options else 0
