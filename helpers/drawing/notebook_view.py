"""The live view in a notebook: a moving figure and a Stop button.

Frames go out as display updates of `image/png`, which every front end shows without an extension;
only the button is a widget. At the end the finished figure takes the place of the frames, and
nothing that the saved notebook could not show again is left.
"""

import base64
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from IPython.display import display, update_display

from helpers.drawing.front_end import DRAWN, click_reaches_a_busy_kernel
from helpers.records import Run, Snapshot

if TYPE_CHECKING:  # matplotlib takes a second to import: the experiment starts first
    from helpers.drawing.live_figure import LiveFigure

_FRAME_SECONDS = 0.5
_MOST_OF_A_CORE = 0.05
_INTERRUPT = "interrupt the notebook (press I twice)"


class NotebookView:
    """Shows a running experiment twice a second, and less often where drawing is slow."""

    def __init__(
        self,
        title: str,
        budget_bytes: int,
        enforced_by: str,
        *,
        widgets: bool = True,
        clock: Callable[[], float] = time.monotonic,
        cpu_clock: Callable[[], float] = time.thread_time,
    ) -> None:
        self._about = (title, budget_bytes, enforced_by)
        self._figure: LiveFigure | None = None
        self._clock, self._cpu_clock = clock, cpu_clock
        self._next = 0.0
        self._costs: deque[float] = deque(maxlen=5)
        self._image: Any = None
        self._button = StopButton(widgets=widgets)

    def update(self, snapshots: Sequence[Snapshot]) -> None:
        """Show a frame when it is time for one."""
        if self._clock() < self._next:
            return
        start = self._clock()
        if not self._figure:
            from helpers.drawing.live_figure import LiveFigure

            self._figure = LiveFigure(*self._about)
        figure = self._figure
        backgrounds, started = figure.backgrounds_drawn, self._cpu_clock()
        self._show(figure.frame(snapshots), figure.size)
        if figure.backgrounds_drawn == backgrounds:  # a new one now and then is no reason to wait
            self._costs.append(self._cpu_clock() - started)
        pause = max(_FRAME_SECONDS, median(self._costs or [0]) / _MOST_OF_A_CORE)
        on_time = start - self._next < pause
        self._next = (self._next if on_time else start) + pause

    def _show(self, png: bytes, size: tuple[int, int]) -> None:
        image = base64.b64encode(png).decode()
        bundle = {"image/png": image, "text/plain": "The experiment is running."}
        metadata = {"image/png": {"width": size[0], "height": size[1]}}  # so that nothing jumps
        if self._image is None:
            self._image = display(bundle, metadata=metadata, raw=True, display_id=True)
            self._button.show()
        else:
            update_display(bundle, metadata=metadata, raw=True, display_id=self._image.display_id)

    def finish(self, run: Run) -> None:
        """Put the finished figure in the frames' place, and take the button away."""
        from helpers.plots import last_words

        self._button.remove()
        if self._image is None:
            display(last_words(run), raw=True)
        else:
            update_display(last_words(run), raw=True, display_id=self._image.display_id)
        DRAWN.note(run)

    def stop_requested(self) -> bool:
        """Return whether the button was pressed."""
        return self._button.pressed.is_set()


class StopButton:
    """A button that sets an event. Its click comes in another thread, while a cell runs."""

    def __init__(self, *, widgets: bool) -> None:
        self.pressed = threading.Event()
        self._widgets = widgets
        self._box: Any = None
        self._output: Any = None

    def show(self) -> None:
        """Show the button, or how to stop where there can be none."""
        words = f"To stop it, {_INTERRUPT}."
        bundle = self._widget_bundle() if self._widgets else {"text/html": f"<p>{words}</p>"}
        self._output = display({**bundle, "text/plain": words}, raw=True, display_id=True)

    def remove(self) -> None:
        """Leave nothing: a saved notebook could only say that the widget's model is not found."""
        if self._output is None:
            return
        nothing = {"text/plain": "", "text/html": ""}
        update_display(nothing, raw=True, display_id=self._output.display_id)
        for widget in (*self._box.children, self._box) if self._box else ():
            widget.close()

    def _widget_bundle(self) -> dict[str, Any]:
        import ipywidgets

        button = ipywidgets.Button(description="Stop", button_style="warning", icon="stop")
        button.on_click(lambda _: self._press(button))
        how = "or" if click_reaches_a_busy_kernel() else "with this ipykernel a click waits:"
        hint = f"{how} {_INTERRUPT}"  # always: VS Code has no subshell
        self._box = ipywidgets.HBox([button, ipywidgets.Label(hint)])
        bundle: dict[str, Any] = self._box._repr_mimebundle_()
        return bundle

    def _press(self, button: Any) -> None:
        self.pressed.set()
        button.description, button.disabled = "Stopping", True
