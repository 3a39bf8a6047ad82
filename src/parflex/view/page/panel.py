"""The controls beside the scene. They only note requests; the viewer acts on them in its next cycle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from parflex.view.figures.style import BRAND
from parflex.view.page.session import Session, Slider

Ask = Callable[[str, Any], None]
PLAY_HINT = "A cycle takes the seconds below, not its real period."


class Panel:
    """Tabs for pose, modes, a run and what is shown; `ask(what, value)` is called when a person changes something."""

    def __init__(
        self,
        server: Any,
        session: Session,
        ask: Ask,
        duration: float | None,
        first: Callable[[Any], None] | None = None,
    ) -> None:
        self.gui = server.gui
        self.ask = ask
        self.gui.reset()
        self.gui.configure_theme(show_logo=False, show_share_button=False, brand_color=BRAND, control_width="medium")
        self.gui.main_panel.dock_right()
        robot = session.robot
        self.gui.set_panel_label(f"parflex: {robot.name}")
        self.title = self.gui.add_markdown(f"**{robot.description.title or robot.name}**")
        self.status = self.gui.add_markdown("")
        tabs = self.gui.add_tab_group()
        if first is not None:
            first(tabs)
        with tabs.add_tab("Pose"):
            self._pose(session)
        with tabs.add_tab("Modes"):
            self._modes(session)
        if duration is not None:
            with tabs.add_tab("Run"):
                self._run(duration)
        with tabs.add_tab("Show"):
            self._show(session)

    def _asking(self, handle: Any, what: str, value: Callable[[], Any] | None = None) -> Any:
        """Changes that a person made are asked for; our own are not."""

        @handle.on_update
        def _(event: Any) -> None:
            if event.client is not None:
                self.ask(what, handle.value if value is None else value())

        return handle

    def _pose(self, session: Session) -> None:
        names = list(dict.fromkeys(["home", *session.robot.description.poses]))
        self.pose = self._asking(self.gui.add_dropdown("Pose of the file", names, initial_value=names[0]), "named")
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
        handle = self.gui.add_slider(
            f"{slider.word} ({slider.unit})",
            min=round(slider.low - step / 2, digits),
            max=round(slider.high + step / 2, digits),
            step=step,
            initial_value=round(slider.value, digits),
        )
        word = slider.word
        every = what == "pose"  # a rotation is given whole; a motor is given alone, the others stay or follow

        def asked() -> dict[str, float]:
            return {name: one.value for name, one in handles.items()} if every else {word: handle.value}

        return self._asking(handle, what, asked)

    def _modes(self, session: Session) -> None:
        self.frequencies = self.gui.add_markdown("")
        self.mode = self._asking(self.gui.add_dropdown("Mode", ["none"], initial_value="none"), "mode")
        self.play_mode = self._asking(self.gui.add_checkbox("Play the mode", False, hint=PLAY_HINT), "play-mode")
        self.amplitude = self.gui.add_slider("Amplitude (% of size)", 0.0, 20.0, 0.5, 6.0)
        self.cycle = self.gui.add_slider("Seconds a cycle", 0.5, 6.0, 0.1, 2.0)
        self.servo = self._asking(
            self.gui.add_number(
                "Servo stiffness (N/m, N m)",
                0.0,
                min=0.0,
                hint="Stiffness of the servos that hold the motors; 0 locks them. A rigid robot needs it for modes.",
            ),
            "servo",
        )

    def _run(self, duration: float) -> None:
        self.play_run = self._asking(self.gui.add_checkbox("Play the run", False), "play-run")
        self.time = self._asking(
            self.gui.add_slider("Time (s)", 0.0, float(max(duration, 1e-6)), float(max(duration, 1e-6)) / 1000, 0.0),
            "time",
        )
        self.speed = self.gui.add_slider("Speed (of real time)", 0.05, 4.0, 0.05, 1.0)

    def _show(self, session: Session) -> None:
        bends = bool(session.robot.tree.elastic)
        self.sag = self._asking(self.gui.add_checkbox("Deflected by its weight", False, disabled=not bends), "sag")
        self.scale = self._asking(
            self.gui.add_number("Deformation scale", 1.0, min=0.0, step=1.0, disabled=not bends), "scale"
        )
        self.ghost = self._asking(self.gui.add_checkbox("Show undeformed", True), "ghost")
        self.reactions = self._asking(self.gui.add_checkbox("Reactions at rest", False), "reactions")
        self.reaction_note = self.gui.add_markdown("")
        self.stress = self._asking(self.gui.add_checkbox("Stress of beams", False, disabled=not bends), "stress")
        self.stress_note = self.gui.add_markdown("")
        for label, what, hint in (
            ("Save picture", "picture", "A PNG of the view."),
            ("Save page", "page", "An HTML page that opens offline; a playing mode or run keeps playing in it."),
        ):
            button = self.gui.add_button(label, hint=hint)

            @button.on_click
            def _(event: Any, what: str = what) -> None:
                self.ask(what, event.client)

    # -- what the viewer tells --------------------------------------------------------------------------

    def say(self, text: str) -> None:
        """A line above the tabs."""
        self.status.content = text

    def tell(self, session: Session) -> None:
        """Say where the robot is, or what cannot be shown."""
        self.say(f"⚠️ **{session.trouble}**" if session.trouble else session.status())

    def follow(self, session: Session, but: str = "") -> None:
        """Bring the sliders to where the robot is; those that a person just moved are left alone."""
        for what, sliders, handles in (
            ("pose", session.pose_sliders(), self.pose_sliders),
            ("motors", session.motor_sliders(), self.motor_sliders),
        ):
            for slider in sliders:
                handle = handles.get(slider.word)
                if handle is None or what == but:
                    continue
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
        """The chosen mode, from 0."""
        options = list(self.mode.options)
        return options.index(self.mode.value) if self.mode.value in options else 0
