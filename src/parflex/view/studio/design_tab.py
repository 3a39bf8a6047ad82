"""The tab of a design beside the scene: sliders of the variables, bars of the responses, and what can be kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from parflex.view.scene.map_colours import MapPoints
from parflex.view.studio.design_desk import DesignDesk, ShownDesign
from parflex.view.studio.response_bars import frequency_line, line, response_bars

Ask = Callable[[str, Any], None]
STEPS = 500  # of a slider


class DesignTab:
    """Handles of the tab; `ask(what, value)` is called when a person changes something."""

    def __init__(self, gui: Any, tabs: Any, desk: DesignDesk, values: dict[str, float], ask: Ask) -> None:
        self.gui, self.desk, self.ask = gui, desk, ask
        self.sliders: dict[str, Any] = {}
        with tabs.add_tab("Design"):
            for key in desk.keys:
                self.sliders[key] = self._slider(key, values[key])
            self.bars = gui.add_html("")
            self.frequencies = gui.add_html("")  # a browser parses Markdown for longer than it draws this
            self.map = gui.add_checkbox("Map of the lowest frequency", True, disabled=not desk.modes)
            self.map_note = gui.add_html("")
            self._asking(self.map, "map", lambda: self.map.value)
            for label, what, hint in (
                ("Back to the best", "best", "The best design so far: limits first, then the objective."),
                ("Keep to compare", "keep", "This design stays as a grey bar and a ghost."),
                ("Swap with the kept one", "swap", "Show the kept design, and keep this one."),
                ("Write robot file", "write", "A robot file that extends this robot."),
            ):
                self._button(label, what, hint)
            self.note = gui.add_markdown("")

    def _slider(self, key: str, value: float) -> Any:
        one = self.desk.file.variables[key]
        if one.choices:
            words = [f"{choice:g}" for choice in sorted(one.choices)]
            handle = self.gui.add_dropdown(key, words, initial_value=f"{value:g}")
        else:
            low, high = one.bounds
            handle = self.gui.add_slider(key, min=low, max=high, step=(high - low) / STEPS, initial_value=value)
        return self._asking(handle, "design", self.values)

    def _asking(self, handle: Any, what: str, value: Callable[[], Any]) -> Any:
        @handle.on_update
        def _(event: Any) -> None:
            if event.client is not None:
                self.ask(what, value())

        return handle

    def _button(self, label: str, what: str, hint: str) -> None:
        button = self.gui.add_button(label, hint=hint)

        @button.on_click
        def _(_: Any) -> None:
            self.ask(what, None)

    def values(self) -> dict[str, float]:
        """What the sliders say."""
        return {key: self.desk.fitting(key, float(handle.value)) for key, handle in self.sliders.items()}

    def set_values(self, values: dict[str, float]) -> None:
        """Bring the sliders to a design."""
        for key, handle in self.sliders.items():
            handle.value = f"{values[key]:g}" if self.desk.file.variables[key].choices else values[key]

    def show(self, shown: ShownDesign, frequencies: Any, points: MapPoints | None) -> None:
        """Bars, frequencies and the range of the map."""
        self.bars.content = response_bars(self.desk, shown)
        self.frequencies.content = line(frequency_line(dict(enumerate(frequencies))))
        note = "" if points is None else f"Map from {points.lowest:.2f} (dark) to {points.highest:.2f} Hz (light)."
        self.map_note.content = line(note)
